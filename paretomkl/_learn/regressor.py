"""The base class of all multi-task regressors."""

from __future__ import annotations

from typing import Any, Self

from .._data.reading import Reading
from .._fitting.models import FittedTasks
from .._tools.typing import Array
from ..machines import MACHINES
from .base import MultiTaskEstimator, RegressorKind
from .kernel_estimators import KernelFit


class MultiTaskRegressor(RegressorKind, MultiTaskEstimator):
    """A regressor that wraps one fitted model of several tasks, with the extra parameter ``normalize_y``."""

    normalize_y: bool
    model_: FittedTasks

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @property
    def reading(self) -> Reading:
        """How to read X and y: as numbers, whatever the loss."""
        return Reading.of(self, machine=MACHINES["ridge"])

    def fit(self, X: Any, y: Any = None, *, tasks: Any = None, sample_weight: Any = None) -> Self:
        """Learn all tasks.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            With ``task_column``, one of the columns names the task of each row. With ``kernels="precomputed"``, a stack
            of shape (n_samples, n_samples, n_kernels). A Dask array or frame with tasks, or
            :class:`~paretomkl.distributed.Sites` (without y), is solved on a cluster.
        y : array-like of shape (n_samples,) or (n_samples, n_tasks)
            Targets; a matrix has one task per column, with NaN for missing values.
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

    def predict(self, X: Any, *, tasks: Any = None) -> Array:
        """Predict targets.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            With ``kernels="precomputed"``, shape (n_samples, n_train, n_kernels).
        tasks : array-like of shape (n_samples,), default=None
            The task of each row, if you passed ``tasks=`` to ``fit``.

        Returns
        -------
        y : array of shape (n_samples,), or (n_samples, n_tasks) after a fit on a matrix y
        """
        samples = self._samples(X, tasks)
        return self.model_.predict(samples)

    def score(self, X: Any, y: Any, *, tasks: Any = None, sample_weight: Any = None) -> float:
        """Mean R² over the tasks: the share of the variance within a task that the model explains.

        Parameters
        ----------
        X, tasks
            As in ``predict``.
        y : array-like of shape (n_samples,) or (n_samples, n_tasks)
            True targets. The columns of a frame are matched to the tasks by name; NaN is skipped.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        score : float
            The mean skips tasks with fewer than two samples.
        """
        return self._scored(X, y, tasks, sample_weight)


class KernelTaskRegressor(KernelFit, MultiTaskRegressor):
    """A multi-task regressor whose model is a :class:`TaskModel`."""

    model_: Any
