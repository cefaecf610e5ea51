"""What all multi-task estimators share: reading, prediction and scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .._data.labels import Samples
from .._data.reading import Reading, Training, read_data, read_samples
from .._fitting.models import FittedTasks
from .._tools.typing import AnyArray
from ..distributed._training import Sites
from ..kernels._kernels import is_precomputed

if TYPE_CHECKING:

    class _Estimator:
        """Typed stand-in for scikit-learn's untyped base classes, where Any would hide misspelt names."""

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def __sklearn_tags__(self) -> Any: ...

    class ClassifierKind: ...

    class RegressorKind: ...

    class OutlierKind: ...
else:
    _Estimator = BaseEstimator
    ClassifierKind, RegressorKind, OutlierKind = ClassifierMixin, RegressorMixin, OutlierMixin


class MultiTaskEstimator(_Estimator):
    """An estimator that wraps one fitted model of several tasks.

    Subclasses provide the parameters ``task_column`` and ``random_state``, and a method ``_learn`` that solves the
    tasks and returns their model.
    """

    task_column: int | str | None
    random_state: int | np.random.RandomState | None

    model_: Any  # FittedTasks
    n_features_in_: int
    n_kernels_in_: int
    feature_names_in_: AnyArray

    # With metadata routing on, tasks= is routed without set_fit_request and the like.
    __metadata_request__fit: ClassVar = {"tasks": True}
    __metadata_request__predict: ClassVar = {"tasks": True}
    __metadata_request__score: ClassVar = {"tasks": True}

    @property
    def reading(self) -> Reading:
        """How to read X and y."""
        return Reading.of(self)

    def read_data(
        self, X: Any, y: Any, *, tasks: Any = None, sample_weight: Any = None, strict: bool = True
    ) -> Training:
        """Read and check the training data; ``strict=False`` is for a part of checked data."""
        if isinstance(X, Sites):
            raise ValueError(f"{type(self).__name__} needs all samples in one place; it does not learn at Sites.")
        return read_data(self, X, y, tasks=tasks, sample_weight=sample_weight, strict=strict)

    def _learn(self, training: Training) -> FittedTasks:
        """Solve the tasks and return their model."""
        raise NotImplementedError

    def learned(self, training: Training) -> Self:
        """Fit to training data that are already read."""
        self.model_ = self._learn(training)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        stack = is_precomputed(getattr(self, "kernels", None))
        tags.input_tags.pairwise = tags.input_tags.three_d_array = stack
        return tags

    def _forget(self) -> None:
        """Drop all fitted attributes, since the next fit may not set each of them; check ``random_state``."""
        check_random_state(self.random_state)
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)

    @property
    def n_tasks_(self) -> int:
        """Number of tasks."""
        return self.model_.tasks.n_tasks

    @property
    def task_names_(self) -> list[str]:
        """Names of the tasks in messages and tables."""
        return self.model_.tasks.names

    @property
    def sources_(self) -> list[Any]:
        """The labels of ``tasks=``, or the columns of y, that the tasks come from."""
        return self.model_.tasks.distinct_sources

    def _samples(self, X: Any, tasks: Any) -> Samples:
        check_is_fitted(self)
        return read_samples(self, X, tasks=tasks)

    def _scored(self, X: Any, y: Any, tasks: Any, sample_weight: Any) -> float:
        samples = self._samples(X, tasks)
        check_consistent_length(samples.data, y, sample_weight)
        return self.model_.score(samples, y, weight=sample_weight)
