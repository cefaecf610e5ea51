"""How estimators with p, C and s learn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ._kernel_classifier import keep_solution
from ._model import TaskModel
from ._progress import Progress
from ._reading import Training
from ._run import Run
from ._tracing import Parts, check_parts, fit_bank, make_problem, models_of, trace
from ._typing import Array, TaskScale
from ._validation import check_exponent, check_task_weight
from .problem import MultiTaskProblem


class ParetoLearner:
    """How an estimator with p, C and s learns: one point of a path."""

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
    task_weights_: Array
    _cost: Callable[[], float]  # of KernelFit

    def _machine(self) -> dict[str, Any]:
        """Which machine solves the tasks, and its parameters: ``machine`` and perhaps ``epsilon``."""
        raise NotImplementedError

    def parts(self, exponents: Sequence[float], n_jobs: int | None = None) -> Parts:
        """Solver, machine and the like, checked."""
        given = self.s, self.tol, self.solver, self.max_iter, n_jobs, self.task_scale
        return check_parts(exponents, *given, **self._machine())

    def problem(self, training: Training, bounds: list[Array], parts: Parts) -> MultiTaskProblem:
        """The problem of these data at p = 1."""
        omega = check_task_weight(self.task_weight, training.tasks)
        return make_problem(training, bounds, fit_bank(self.kernels, training), parts, omega)

    def _learn(self, training: Training) -> TaskModel:
        exponents = [check_exponent(self.p)]
        parts = self.parts(exponents, self.n_jobs)
        problem = self.problem(training, training.bounds(self._cost()), parts)
        with Progress(1, self.tol, self.verbose) as progress:
            run = Run(progress.report)
            points = trace(problem, exponents, parts.solver, progress, run=run)
        keep_solution(self, points[0], run.n_sweeps)
        return models_of(points, training)[0]
