"""How estimators with p, C and s learn."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ._kernel_classifier import keep_solution
from ._kernels import is_precomputed
from ._model import TaskModel
from ._progress import Progress
from ._reading import Training, apart, read_together
from ._remote import is_remote, read_remote
from ._run import Run
from ._tasks import is_matrix
from ._together import SeparateModel, Share, SharedModel, check_share
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
    share: Share
    task_weights_: Array
    common_share_: float
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

    def _learn(self, training: Training) -> Any:
        exponents = [check_exponent(self.p)]
        parts = self.parts(exponents, self.n_jobs)
        bounds = training.bounds(self._cost())
        if check_share(self.share) == "nothing":
            return self._learn_apart(training, parts)
        model = self._solved(self.problem(training, bounds, parts), exponents, parts, training)
        if training.together is None:
            return model
        shared = SharedModel(model, training.together)
        self.common_share_ = shared.common_share
        return shared

    def _solved(
        self, problem: MultiTaskProblem, exponents: Sequence[float], parts: Parts, training: Training
    ) -> TaskModel:
        """The model of the problem at the only exponent; what tells about its optimum is kept."""
        with Progress(1, self.tol, self.verbose) as progress:
            run = Run(progress.report)
            points = trace(problem, exponents, parts.solver, progress, run=run)
        keep_solution(self, points[0], run.n_sweeps)
        return models_of(points, training)[0]

    def _learn_apart(self, training: Training, parts: Parts) -> SeparateModel:
        """Each task by itself, with a bank, kernel weights and functions of its own."""
        alone, models, solutions = apart(training), [], []
        with Progress(len(alone), self.tol, self.verbose) as progress:
            run = Run(progress.report)
            for own in alone:
                problem = make_problem(own, own.bounds(self._cost()), fit_bank(self.kernels, own), parts)
                points = trace(problem, [1.0], parts.solver, progress, run=run)
                solutions.append(points[0])
                models.append(models_of(points, own)[0])
        self.objectives_ = np.concatenate([solution.objectives for solution in solutions])
        self.task_weights_ = np.full(len(self.objectives_), 1 / len(self.objectives_))
        self.objective_, self.gap_ = float(self.objectives_.mean()), max(solution.gap for solution in solutions)
        self.n_sweeps_ = max(solution.n_sweeps for solution in solutions)
        return SeparateModel(models, training.labelling)


def read_shared(owner: Any, read: Any, numbers: bool, X: Any, y: Any, tasks: Any, sample_weight: Any) -> Training:
    """The training data of an estimator as its ``share`` wants them; ``read`` reads those of tasks apart."""
    share = check_share(owner.share)
    if is_remote(X):
        if share != "kernel":
            raise ValueError(f"share={share!r} needs the samples of all tasks in one place; on a cluster use 'kernel'.")
        return read_remote(owner, X, y, tasks, sample_weight)
    if share in ("function", "everything"):
        several = tasks is not None or owner.task_column is not None or is_matrix(y)
        if is_precomputed(owner.kernels):
            raise ValueError(f"share={share!r} needs features; with precomputed kernels use 'kernel' or 'nothing'.")
        if several:
            coded = share == "function"
            given = {"tasks": tasks, "sample_weight": sample_weight, "coded": coded, "numbers": numbers}
            training = read_together(owner, X, y, **given)
            if training.together is not None and training.together.n_tasks > 1:
                return training
        warnings.warn(
            f"There is one task only, so that share={share!r} is the same as 'kernel'.", UserWarning, stacklevel=4
        )
    return read(owner, X, y, tasks=tasks, sample_weight=sample_weight)
