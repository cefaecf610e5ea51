"""The base classes of all kernel methods: f_t(x) = Σ_i v_ti k_t(x_i, x) + b_t."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Literal, Self, TypeVar

import numpy as np

from .._fitting.models import TaskModel, by_columns
from .._tools.checks import check_number
from .._tools.typing import Array, ClassWeight, IntArray
from ..kernels import KernelLike
from ..kernels._kernels import as_bank
from ..solution import Solution
from .classifier import MultiTaskClassifier

E = TypeVar("E")


class KernelFit:
    """The fitted attributes that follow from the :class:`TaskModel` of an estimator and its optimum."""

    C: float
    kernels: KernelLike
    verbose: int | None
    model_: TaskModel
    objectives_: Array
    objective_: float
    gap_: float
    n_sweeps_: int

    def set_params(self, **params: Any) -> Self:
        """Set parameters as scikit-learn does; ``kernels__capacity`` works for kernels of any form, names included."""
        if any(name.startswith("kernels__") for name in params):
            params = {**params, "kernels": as_bank(params.get("kernels", self.kernels))}
        return super().set_params(**params)  # type: ignore[misc]

    def _cost(self) -> float:
        """C, checked."""
        C: Any = self.C
        if isinstance(C, Sequence | np.ndarray) and not isinstance(C, str):
            raise ValueError("C must be one number; pass sample_weight to fit to multiply C for each sample.")
        check_number("C", C, lambda v: 0 < v < np.inf, "greater than 0")
        return float(C)

    def _keep(self, objectives: Array, gap: float, n_sweeps: int, objective: float | None = None) -> None:
        """Set the fitted attributes of the optimum; ``objective`` defaults to the mean."""
        self.objectives_ = objectives
        self.objective_ = float(objectives.mean()) if objective is None else objective
        self.gap_ = float(gap)
        self.n_sweeps_ = n_sweeps

    @property
    def _repr_html_(self) -> Callable[[], str]:
        """Scikit-learn's diagram, then tables of what was fitted."""
        from .._show.page import estimator_html

        diagram = super()._repr_html_  # type: ignore[misc]  # raises AttributeError if display is "text"
        return lambda: diagram() + estimator_html(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        from .._show.page import estimator_html

        bundle = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        return bundle | {kind: text + estimator_html(self) for kind, text in bundle.items() if kind == "text/html"}

    @property
    def n_iter_(self) -> int:
        """``n_sweeps_`` under scikit-learn's name."""
        return self.n_sweeps_

    @property
    def theta_(self) -> Array:
        """Kernel weights, (n_kernels,), or (n_tasks, n_kernels) if each task has its own."""
        return self.model_.theta

    @property
    def kernel_names_(self) -> list[str]:
        """Names of the base kernels."""
        return self.model_.bank.names

    @property
    def kernel_shares_(self) -> Array:
        """Share of each kernel in the variance within tasks, θ_m v_m / Σ θ v, with the shape of ``theta_``."""
        return self.model_.bank.variance_share(self.theta_)

    @property
    def source_shares_(self) -> dict[str, Any]:
        """``kernel_shares_`` summed over the kernels of each source: one number per source, or one per task."""
        shares = self.model_.bank.by_source(self.kernel_shares_)
        if not shares:
            raise AttributeError("The kernels have no named sources; make them with kernels=sources({…}).")
        return {name: share.item() if share.ndim == 0 else share for name, share in shares.items()}

    @property
    def support_(self) -> IntArray:
        """Indices of the training samples that support at least one task, (n_support,)."""
        return self.model_.support.rows

    @property
    def support_vectors_(self) -> Array:
        """Features of the samples in ``support_``, (n_support, n_features)."""
        vectors = self.model_.support.vectors
        if vectors is None:
            raise AttributeError("Precomputed kernels have no support vectors; use support_.")
        return vectors

    @property
    def dual_coef_(self) -> Array:
        """Signed dual variables, (n_tasks, n_support)."""
        return self.model_.dual.toarray()

    @property
    def intercept_(self) -> Array:
        """Intercept of each task, (n_tasks,)."""
        return self.model_.intercepts

    def contributions(self, X: Any, *, tasks: Any = None, by: Literal["kernel", "source"] = "kernel") -> Array:
        """What each kernel adds to the decision (in regression: the prediction) of each sample.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
        tasks : array-like of shape (n_samples,), default=None
            The task of each row, if you passed ``tasks=`` to ``fit``.
        by : {"kernel", "source"}, default="kernel"
            "source" adds up the kernels of each named source, in the order of ``source_shares_``.

        Returns
        -------
        parts : array of shape (n_samples, n_kernels), or (n_samples, n_tasks, n_kernels)
            The second shape applies if a sample has several tasks: for a matrix y and for pairs of classes. The sum
            over the last axis is the decision minus ``intercept_`` (in regression: the prediction minus its constant
            part).
        """
        if by not in ("kernel", "source"):
            raise ValueError(f"by must be 'kernel' or 'source', got {by!r}.")
        samples = self._samples(X, tasks)  # type: ignore[attr-defined]
        model = self.model_
        parts, asked, n_columns = model.parts(samples)
        parts = parts * np.broadcast_to(getattr(model.tasks, "spread", 1.0), n_columns)[asked][..., None]
        if by == "source":
            sums = model.bank.by_source(parts)
            if not sums:
                raise ValueError("The kernels have no named sources; make them with kernels=sources({…}).")
            parts = np.stack(list(sums.values()), axis=-1)
        several = (~np.isnan(parts[:, :, 0])).sum(axis=1).max(initial=0) > 1
        return by_columns(parts, asked, n_columns) if several else np.nansum(parts, axis=1)


class KernelTaskClassifier(KernelFit, MultiTaskClassifier):
    """A multi-task classifier whose model is a :class:`TaskModel`."""

    model_: TaskModel

    def __init__(
        self,
        C: float = 1.0,
        kernels: KernelLike = "default",
        task_column: int | str | None = None,
        tol: float = 1e-3,
        class_weight: ClassWeight = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.C = C
        self.kernels = kernels
        self.task_column = task_column
        self.tol = tol
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state


def keep_solution(estimator: Any, solution: Solution, n_sweeps: int) -> None:
    """Copy the values of a solution into fitted attributes."""
    estimator.task_weights_, estimator.objectives_ = solution.task_weights, solution.objectives
    estimator.objective_, estimator.gap_, estimator.n_sweeps_ = solution.objective, solution.gap, n_sweeps


def fitted_at(plain: E, solution: Solution, model: TaskModel, C: float, n_sweeps: int) -> E:
    """Copy an estimator that has read the training data, and fit it with the given solution and C."""
    point: Any = copy(plain)
    point.p, point.C, point.model_ = solution.p, C, model
    keep_solution(point, solution, n_sweeps)
    return point
