"""The base class of all multi-task classifiers."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from .._fitting.models import FittedTasks
from .._tools.typing import AnyArray, Array, ClassWeight
from .base import ClassifierKind, MultiTaskEstimator


class MultiTaskClassifier(ClassifierKind, MultiTaskEstimator):
    """A classifier that wraps one fitted model of several tasks, with the extra parameter ``class_weight``."""

    class_weight: ClassWeight
    model_: FittedTasks

    __metadata_request__decision_function: ClassVar = {"tasks": True}

    # ------------------------------------------------------------------------------------------------ fit
    def fit(self, X: Any, y: Any = None, *, tasks: Any = None, sample_weight: Any = None) -> Self:
        """Learn the shared kernel and all tasks.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            With ``task_column``, one of the columns names the task of each row. With ``kernels="precomputed"``, a stack
            of shape (n_samples, n_samples, n_kernels). A Dask array or frame with tasks, or
            :class:`~paretomkl.distributed.Sites` (without y), is solved on a cluster.
        y : array-like of shape (n_samples,) or (n_samples, n_tasks)
            Labels; a matrix has one task per column, with two values in each column and NaN for missing labels.
        tasks : array-like of shape (n_samples,), default=None
            The task of each row, if no column of X names it.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies C for each sample.

        Returns
        -------
        self : object
        """
        self._forget()
        self.model_ = self._learn(self.read_data(X, y, tasks=tasks, sample_weight=sample_weight))
        return self

    @property
    def classes_(self) -> Any:
        """All labels, (n_classes,); after a fit on a matrix y, one array per task."""
        return self.model_.tasks.classes

    # -------------------------------------------------------------------------------------------- predict
    def decision_function(self, X: Any, *, tasks: Any = None) -> Array:
        """Signed distances, up to scale.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            With ``kernels="precomputed"``, shape (n_samples, n_train, n_kernels).
        tasks : array-like of shape (n_samples,), default=None
            The task of each row, if you passed ``tasks=`` to ``fit``.

        Returns
        -------
        scores : array of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_tasks)
            With two classes in total, one number per sample, positive for ``classes_[1]``. With more classes, one
            column per class: the votes of the pairs, refined by their confidences. A class that the sample's task does
            not have scores below all classes that it has. After a fit on a matrix y, one column per task.
        """
        samples = self._samples(X, tasks)
        return self.model_.tasks.scores(self.model_.decided(samples))

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
        """Mean accuracy over the tasks; plain accuracy if the tasks are made from the classes.

        Parameters
        ----------
        X, tasks
            As in ``decision_function``.
        y : array-like of shape (n_samples,) or (n_samples, n_tasks)
            True labels. The columns of a frame are matched to the tasks by name.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        score : float
            The mean skips tasks without a label of positive weight.
        """
        return self._scored(X, y, tasks, sample_weight)
