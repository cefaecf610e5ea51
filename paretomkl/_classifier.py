"""What all multi-task classifiers share: reading, prediction and scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ._kernels import is_precomputed
from ._labelling import Samples
from ._model import FittedTasks
from ._reading import Training, read_samples, read_training
from ._typing import AnyArray, Array, ClassWeight

if TYPE_CHECKING:

    class _Estimator:
        """What type checkers see of scikit-learn's base classes, which have no types: Any would hide misspelt names."""

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def __sklearn_tags__(self) -> Any: ...
else:

    class _Estimator(ClassifierMixin, BaseEstimator):
        pass


class MultiTaskClassifier(_Estimator):
    """A classifier that wraps one fitted model of several tasks.

    A subclass has the parameters ``task_column``, ``class_weight`` and ``random_state``, and a method ``_learn`` that
    solves the tasks and returns their model.
    """

    task_column: int | str | None
    class_weight: ClassWeight
    random_state: int | np.random.RandomState | None

    model_: FittedTasks
    n_features_in_: int
    feature_names_in_: AnyArray

    # so that tasks= is routed without set_fit_request and its like, where routing is on
    __metadata_request__fit: ClassVar = {"tasks": True}
    __metadata_request__predict: ClassVar = {"tasks": True}
    __metadata_request__decision_function: ClassVar = {"tasks": True}
    __metadata_request__score: ClassVar = {"tasks": True}

    def _learn(self, training: Training) -> FittedTasks:
        """Solve the tasks and return their model."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        stack = is_precomputed(getattr(self, "kernels", None))
        tags.input_tags.pairwise = tags.input_tags.three_d_array = stack
        return tags

    # ------------------------------------------------------------------------------------------------ fit
    def fit(self, X: Any, y: Any, *, tasks: Any = None, sample_weight: Any = None) -> Self:
        """Learn the shared kernel and all tasks.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            With ``task_column`` one of the columns names the task of each row. With ``kernels="precomputed"`` a stack
            of shape (n_samples, n_samples, n_kernels).
        y : array-like of shape (n_samples,) or (n_samples, n_tasks)
            Labels; a matrix has one task per column, two values in each, NaN for "not labelled".
        tasks : array-like of shape (n_samples,), default=None
            The task of each row, where no column of X names it.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies C, sample by sample.

        Returns
        -------
        self : object
        """
        self._forget()
        self.model_ = self._learn(read_training(self, X, y, tasks=tasks, sample_weight=sample_weight))
        return self

    def _forget(self) -> None:
        """Drop what an earlier fit has learned, of which the next one may not have all; check what no fit reads."""
        check_random_state(self.random_state)
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)

    @property
    def n_tasks_(self) -> int:
        """Number of tasks."""
        return self.model_.tasks.n_tasks

    @property
    def task_names_(self) -> list[str]:
        """What messages and tables call the tasks."""
        return self.model_.tasks.names

    @property
    def sources_(self) -> list[Any]:
        """The labels of ``tasks=``, or the columns of y, that the tasks come from."""
        return self.model_.tasks.distinct_sources

    @property
    def classes_(self) -> Any:
        """All labels, (n_classes,); after a fit on a matrix y one array for each task."""
        return self.model_.tasks.classes

    # -------------------------------------------------------------------------------------------- predict
    def _samples(self, X: Any, tasks: Any) -> Samples:
        check_is_fitted(self)
        return read_samples(self, X, tasks=tasks)

    def decision_function(self, X: Any, *, tasks: Any = None) -> Array:
        """Signed distances, up to scale.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            With ``kernels="precomputed"`` of shape (n_samples, n_train, n_kernels).
        tasks : array-like of shape (n_samples,), default=None
            The task of each row, where ``fit`` had ``tasks=``.

        Returns
        -------
        scores : array of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_tasks)
            With two classes in all, one number per sample, positive for ``classes_[1]``. With more classes one column
            per class, votes of the pairs refined by their confidences; a class that the task of a sample does not
            have is scored below all that it has. After a fit on a matrix y one column per task.
        """
        samples = self._samples(X, tasks)
        return self.model_.tasks.scores(self.model_.decisions(samples))

    def predict(self, X: Any, *, tasks: Any = None) -> AnyArray:
        """Predict labels.

        Parameters
        ----------
        X, tasks
            As in ``decision_function``.

        Returns
        -------
        labels : array of shape (n_samples,), or (n_samples, n_tasks) after a fit on a matrix y
        """
        samples = self._samples(X, tasks)
        return self.model_.predict(samples)

    def score(self, X: Any, y: Any, *, tasks: Any = None, sample_weight: Any = None) -> float:
        """Mean over the tasks of the task accuracy; plain accuracy where the classes are the tasks.

        Parameters
        ----------
        X, tasks
            As in ``decision_function``.
        y : array-like of shape (n_samples,) or (n_samples, n_tasks)
            True labels. A frame has its columns matched to the tasks by name.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        score : float
            Tasks without a label of positive weight are left out.
        """
        samples = self._samples(X, tasks)
        check_consistent_length(samples.data, y, sample_weight)
        return self.model_.score(samples, y, weight=sample_weight)
