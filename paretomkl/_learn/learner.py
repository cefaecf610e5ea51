"""The fit of estimators with p, C and s."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._data.reading import Reading, Training, apart, read_data
from .._data.together import Share, check_share
from .._fitting.models import TaskModel
from .._fitting.shared_models import SeparateModel, SharedModel
from .._fitting.tracing import Parts, Posed, check_parts, fit_and_pose, models_of, solve_apart, trace
from .._tools.checks import check_exponent, check_task_weight
from .._tools.progress import Progress
from .._tools.typing import Array, TaskScale
from ..distributed._training import is_remote, read_remote
from ..machines import MachineKind
from ..solvers._base import Run
from .kernel_estimators import keep_solution


class ParetoLearner:
    """Mixin that fits an estimator with p, C and s: one point of a path."""

    p: float
    s: float
    kernels: Any
    task_weight: Any
    solver: Any
    tol: float
    n_jobs: int | None
    verbose: int | None
    max_iter: int | None
    task_scale: TaskScale
    share: Share
    task_weights_: Array
    common_share_: float
    _cost: Callable[[], float]  # of KernelFit

    @property
    def machine_kind(self) -> MachineKind:
        """The kind of machine that solves the tasks."""
        raise NotImplementedError

    @property
    def reading(self) -> Reading:
        """How to read X and y, which depends on the machine."""
        return Reading.of(self, machine=self.machine_kind)

    def read_data(
        self, X: Any, y: Any, *, tasks: Any = None, sample_weight: Any = None, strict: bool = True
    ) -> Training:
        """Check and arrange the training data as ``share`` requires; ``strict=False`` is for a part of checked data."""
        owner: Any = self
        if is_remote(X):
            return read_remote(owner, X, y, tasks=tasks, sample_weight=sample_weight)
        return read_data(owner, X, y, tasks=tasks, sample_weight=sample_weight, strict=strict)

    def parts(self, exponents: Sequence[float], n_jobs: int | None = None) -> Parts:
        """The checked parameters that do not depend on the data, such as solver and machine."""
        given = self.s, self.tol, self.solver, self.max_iter, n_jobs, self.task_scale
        return check_parts(exponents, *given, self.machine_kind, epsilon=getattr(self, "epsilon", None))

    def posed(self, training: Training, bounds: list[Array], parts: Parts) -> Posed:
        """The problem of these data at p = 1."""
        omega = check_task_weight(self.task_weight, training.tasks)
        return fit_and_pose(training, bounds, self.kernels, parts, omega)

    def _learn(self, training: Training) -> Any:
        exponents = [check_exponent(self.p)]
        parts = self.parts(exponents, self.n_jobs)
        bounds = training.bounds(self._cost())
        if training.shares_nothing(check_share(self.share)):
            return self._learn_apart(training, parts)
        model = self._solved(self.posed(training, bounds, parts), exponents, parts, training)
        if training.together is None:
            return model
        shared = SharedModel(model, training.together)
        self.common_share_ = shared.common_share
        return shared

    def _solved(self, posed: Posed, exponents: Sequence[float], parts: Parts, training: Training) -> TaskModel:
        """Solve the problem at the single exponent, set the fitted attributes, and return the model."""
        with Progress(1, self.tol, self.verbose) as progress:
            run = Run(progress.report)
            points = trace(posed.problem, exponents, parts.solver, progress, run=run)
        keep_solution(self, points[0], run.n_sweeps)
        return models_of(points, training, posed.bank)[0]

    def _learn_apart(self, training: Training, parts: Parts) -> SeparateModel:
        """Solve each task separately, with its own bank, kernel weights and function."""
        omega = check_task_weight(self.task_weight, training.tasks)
        alone = apart(training)
        with Progress(len(alone), self.tol, self.verbose) as progress:
            run = Run(progress.report)
            solution, models = solve_apart(alone, self._cost(), self.kernels, parts, omega, progress, run)
        keep_solution(self, solution, solution.n_sweeps)
        return SeparateModel(models, training.labelling)
