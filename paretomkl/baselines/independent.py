"""Baselines without anything shared: a learned kernel, a cross-validated kernel, or the plain sum for each task."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from .._parallel import effective_jobs, run_chunks
from .._typing import AnyArray, Array, IntArray
from .._validation import check_number, shown
from ..estimators import KernelTaskClassifier
from ..gram import GramBlocks, TaskLayout
from ..kernels import PAPER_SIGMAS, FittedBank, Gaussian, as_bank
from ..machines._smo import solve_tasks
from ..machines.svc import SVCTasks, Sweep
from ..multitask import Training
from ..path import make_problem, trace
from ..progress import Progress
from ..solution import Solution
from ..solvers import CutPool, Solver
from ..tasks import Task


class IndependentMKL(KernelTaskClassifier):
    """Multiple kernel learning for each task by itself: the paper's baseline.

        for each task t     minimise over θ^t ≥ 0, ‖θ^t‖_s ≤ 1     J_t(θ^t)

    where J_t(θ) is the optimum of SVM task t under the kernel Σ_m θ_m K_m. With one task this is
    :class:`~paretomkl.ParetoMKLClassifier`.

    Parameters
    ----------
    s : float, default=1.1
        Norm of the kernel weights, at least 1; 1 is sparse.
    C : float, default=1.0
        Cost of a margin violation.
    kernels : "default", "precomputed", sequence or KernelBank, default="default"
        Base kernels, see :class:`~paretomkl.KernelBank`.
    task_column : int or str, default=None
        The column of X that names the task of each row. It is not used as a feature.
    tol : float, default=1e-3
        Relative gap at which each task stops.
    class_weight : dict or "balanced", default=None
        Multiplies C by class; "balanced" weighs the two classes of each task (of each pair, where there are more)
        inversely to their frequency there, samples counted by their weight.
    n_jobs : int, default=None
        Threads, over the tasks; -1 is all cores.
    verbose : int, default=0
        1 shows progress.
    random_state : int, RandomState or None, default=None
        Not used: the method is deterministic. Present for a common interface.

    Attributes
    ----------
    theta_ : array of shape (n_tasks, n_kernels)
        Learned kernel weights of each task.
    objectives_ : array of shape (n_tasks,)
        J_t at θ^t.
    objective_ : float
        Mean of ``objectives_``.
    gaps_ : array of shape (n_tasks,)
        Relative certificate of each task, never below the truth.
    gap_ : float
        The largest of them, which bounds that of the mean as well.
    n_sweeps_ : int
        Passes over the tasks: how often the task that took longest was solved.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl.baselines import IndependentMKL
    >>> X, y = load_iris(return_X_y=True)
    >>> IndependentMKL(C=10).fit(X, y).theta_.shape
    (3, 11)
    """

    def __init__(
        self,
        s: float = 1.1,
        C: float = 1.0,
        kernels: Any = "default",
        task_column: Any = None,
        tol: float = 1e-3,
        class_weight: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.s = s
        self.C = C
        self.kernels = kernels
        self.task_column = task_column
        self.tol = tol
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def _solve(self, bank: FittedBank, data: AnyArray, tasks: list[Task], bounds: list[Array]) -> tuple[Array, Array]:
        check_number("s", self.s, lambda v: v >= 1, "at least 1")
        check_number("tol", self.tol, lambda v: 0 < v < 1, "between 0 and 1")
        solver = CutPool(tol=self.tol)
        jobs = effective_jobs(self.n_jobs)
        inner = jobs if len(tasks) == 1 else 1  # one thread for each task, or all of them for the only one
        with Progress(len(tasks), self.tol, self.verbose) as progress:

            def solve(task: Task, bound: Array) -> Solution:
                own = data[np.ix_(task.rows, task.rows)] if bank.precomputed else data[task.rows]
                alone = replace(task, rows=np.arange(len(task.rows)))
                problem = make_problem(bank, own, [alone], [bound], self.s, n_jobs=inner)
                return trace(problem, [1.0], solver, progress)[0]

            solutions = run_chunks(solve, list(zip(tasks, bounds, strict=True)), jobs)
        self.theta_ = np.array([solution.theta for solution in solutions])
        self.objectives_ = np.array([solution.objective for solution in solutions])
        self.objective_ = float(self.objectives_.mean())
        self.gaps_ = np.array([solution.gap for solution in solutions])
        self.gap_ = float(self.gaps_.max())
        self.n_sweeps_ = max(solution.n_sweeps for solution in solutions)
        dual = np.concatenate([solution.sweep.dual for solution in solutions])
        return dual, np.concatenate([solution.sweep.intercepts for solution in solutions])


class GivenKernelSVC(KernelTaskClassifier):
    """What classifiers under a kernel that is not optimised share: one sweep holds all their results."""

    def _keep(self, sweep: Sweep, n_sweeps: int) -> None:
        self.theta_ = sweep.theta
        self.objectives_ = sweep.lower
        self.objective_ = float(sweep.lower.mean())
        self.gap_ = float(np.max(1 - sweep.lower / sweep.upper))
        self.n_sweeps_ = n_sweeps


class UniformKernelSVC(GivenKernelSVC):
    """Support vector classifiers under the mean of all kernels, k = Σ_m K_m / M: nothing about the kernel is learned.

    Parameters
    ----------
    C : float, default=1.0
        Cost of a margin violation.
    kernels : "default", "precomputed", sequence or KernelBank, default="default"
        Base kernels, see :class:`~paretomkl.KernelBank`.
    task_column : int or str, default=None
        The column of X that names the task of each row. It is not used as a feature.
    tol : float, default=1e-3
        The tasks are solved as accurately as for a :class:`~paretomkl.ParetoMKLClassifier` of this ``tol``.
    class_weight : dict or "balanced", default=None
        Multiplies C by class; "balanced" weighs the two classes of each task (of each pair, where there are more)
        inversely to their frequency there, samples counted by their weight.
    n_jobs : int, default=None
        Threads; -1 is all cores.
    verbose : int, default=0
        Not used: there is one sweep. Present for a common interface.
    random_state : int, RandomState or None, default=None
        Not used: the method is deterministic. Present for a common interface.

    Attributes
    ----------
    theta_ : array of shape (n_kernels,)
        1/M each.
    objectives_ : array of shape (n_tasks,)
        J_t at ``theta_``.
    objective_ : float
        Mean of ``objectives_``.
    gap_ : float
        Largest relative duality gap of a task.
    n_sweeps_ : int
        One.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl.baselines import UniformKernelSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> UniformKernelSVC(C=10).fit(X, y).objectives_.shape
    (3,)
    """

    def __init__(
        self,
        C: float = 1.0,
        kernels: Any = "default",
        task_column: Any = None,
        tol: float = 1e-3,
        class_weight: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.C = C
        self.kernels = kernels
        self.task_column = task_column
        self.tol = tol
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def _solve(self, bank: FittedBank, data: AnyArray, tasks: list[Task], bounds: list[Array]) -> tuple[Array, Array]:
        check_number("tol", self.tol, lambda v: 0 < v < 1, "between 0 and 1")
        problem = make_problem(bank, data, tasks, bounds, s=1.0, n_jobs=effective_jobs(self.n_jobs))
        sweep = problem.tasks.sweep(problem.start(), rtol=Solver(tol=self.tol).task_rtol())
        self._keep(sweep, problem.tasks.n_sweeps)
        return sweep.dual, sweep.intercepts


class IndependentSVC(GivenKernelSVC):
    """One SVM with one kernel for each task, both C and the kernel chosen by cross-validation within the task.

    What ``GridSearchCV(SVC())`` does, task by task: of all pairs of a C and a Gaussian width the one of highest mean
    accuracy over stratified folds; among equals the smallest C, then the kernel named first.

    Parameters
    ----------
    Cs : sequence of float, default=(0.1, 1.0, 10.0, 100.0)
        Costs of a margin violation to choose from.
    sigmas : sequence of float, default=the nine widths of the paper
        Widths of the Gaussian kernels exp(−‖x − z‖² / 2σ²) to choose from.
    kernels : None, "precomputed", sequence or KernelBank, default=None
        Kernels to choose from instead of the Gaussians.
    cv : int or splitter, default=5
        Folds. A number means stratified folds without shuffling, in a task whose rarer class has fewer samples so many;
        a splitter of scikit-learn is applied to each task by itself.
    task_column : int or str, default=None
        The column of X that names the task of each row. It is not used as a feature.
    tol : float, default=1e-3
        The tasks are solved as accurately as for a :class:`~paretomkl.ParetoMKLClassifier` of this ``tol``.
    class_weight : dict or "balanced", default=None
        Multiplies C by class; "balanced" weighs the two classes of each task (of each pair, where there are more)
        inversely to their frequency there, samples counted by their weight.
        Weights of classes and samples count in the accuracy of a fold as they do in the SVM.
    n_jobs : int, default=None
        Threads; -1 is all cores.
    verbose : int, default=0
        1 shows progress.
    random_state : int, RandomState or None, default=None
        Not used: folds that shuffle have a random state of their own. Present for a common interface.

    Attributes
    ----------
    theta_ : array of shape (n_tasks, n_kernels)
        One for the kernel chosen, zero for the others.
    C_ : array of shape (n_tasks,)
        The cost chosen.
    sigmas_ : array of shape (n_tasks,)
        The width chosen; NaN where the kernel is not Gaussian.
    cv_scores_ : array of shape (n_tasks, n_Cs, n_kernels)
        Mean accuracy over the folds, by rising C.
    objectives_ : array of shape (n_tasks,)
        J_t of the tasks as chosen.
    objective_ : float
        Mean of ``objectives_``.
    gap_ : float
        Largest relative duality gap of a task.
    n_sweeps_ : int
        Passes over the tasks, one for each pair of C and kernel and a last one.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl.baselines import IndependentSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> IndependentSVC(Cs=[1, 10]).fit(X, y).C_.shape
    (3,)
    """

    def __init__(
        self,
        Cs: Any = (0.1, 1.0, 10.0, 100.0),
        sigmas: Any = PAPER_SIGMAS,
        kernels: Any = None,
        cv: Any = 5,
        task_column: Any = None,
        tol: float = 1e-3,
        class_weight: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.Cs = Cs
        self.sigmas = sigmas
        self.kernels = kernels
        self.cv = cv
        self.task_column = task_column
        self.tol = tol
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def _learn(self, training: Training) -> None:
        check_number("tol", self.tol, lambda v: 0 < v < 1, "between 0 and 1")
        costs = np.unique(check_grid("Cs", self.Cs))
        gaussians = [Gaussian(sigma) for sigma in check_grid("sigmas", self.sigmas)]
        samples, tasks, weights = training.samples, training.tasks, training.weights
        folds = [
            Fold(t, train, test)
            for t, (task, weight) in enumerate(zip(tasks, weights, strict=True))
            for train, test in split_task(task, weight, self.cv)
        ]
        bank = as_bank(gaussians if self.kernels is None else self.kernels).fit(samples.data, samples.names)
        jobs = effective_jobs(self.n_jobs)
        gram = GramBlocks(bank, samples.data, [task.rows for task in tasks], jobs, shared=False)
        gram.check_positive_semidefinite()
        rtol = Solver(tol=self.tol).task_rtol()
        with Progress(len(costs) * bank.n_kernels, self.tol, self.verbose) as progress:
            scores = cross_validate(gram, tasks, weights, folds, costs, rtol, progress)
        # rounded, so that sums of the same accuracies in another order are equals
        best = np.round(scores, 12).reshape(len(tasks), -1).argmax(axis=1)
        cost, kernel = np.unravel_index(best, scores.shape[1:])
        self.cv_scores_ = scores
        self.C_ = costs[cost]
        widths = {m: k.sigma for m, k in enumerate(bank.kernels) if isinstance(k, Gaussian)}
        self.sigmas_ = np.array([widths.get(m, np.nan) for m in kernel])
        bounds = [C * weight for C, weight in zip(self.C_, weights, strict=True)]
        machine = SVCTasks(gram, np.concatenate([task.signs for task in tasks]), np.concatenate(bounds))
        sweep = machine.sweep(np.eye(bank.n_kernels)[kernel], rtol=rtol)
        self._keep(sweep, scores[0].size + machine.n_sweeps)
        self._keep_support(bank, samples.data, tasks, sweep.dual, sweep.intercepts)


@dataclass(frozen=True)
class Fold:
    """Which samples of a task are trained on and which are held out, by their place within the task."""

    task: int
    train: IntArray
    test: IntArray


def split_task(task: Task, weight: Array, cv: Any) -> list[tuple[IntArray, IntArray]]:
    """Training and held-out samples of each fold, by their place within the task; samples of weight zero in none."""
    present = np.flatnonzero(weight > 0)
    signs = task.signs[present]
    if isinstance(cv, numbers.Integral) and not isinstance(cv, bool) and int(cv) >= 2:
        rarer = int(min((signs < 0).sum(), (signs > 0).sum()))
        if rarer < 2:
            label = task.classes[int((signs > 0).sum() == rarer)]
            raise ValueError(
                f"Task {task.name!r} has one sample of class {label!r}; to be cross-validated it needs two or more."
            )
        cv = StratifiedKFold(min(int(cv), rarer))
    elif not hasattr(cv, "split") or isinstance(cv, str):
        raise ValueError(f"cv must be a whole number of at least 2 or a splitter, got cv={shown(cv)}.")
    splits = cv.split(np.zeros((len(present), 1)), signs)
    return [(present[np.sort(train)], present[np.sort(test)]) for train, test in splits]


def cross_validate(
    gram: GramBlocks,
    tasks: list[Task],
    weights: list[Array],
    folds: list[Fold],
    costs: Array,
    rtol: float,
    progress: Progress,
) -> Array:
    """Mean accuracy over the folds of each task, (n_tasks, n_costs, n_kernels); ``costs`` rise.

    A fold is a task of its own on the Gram matrix of the whole task, and starts from the dual of the last C.
    """
    block = np.array([fold.task for fold in folds])
    layout = TaskLayout(
        ptr=np.concatenate([[0], np.cumsum([len(fold.train) for fold in folds])]),
        idx=np.concatenate([fold.train for fold in folds]),
        start=gram.layout.start[block],
        size=gram.layout.size[block],
    )
    signs = np.concatenate([tasks[fold.task].signs[fold.train] for fold in folds])
    unit = np.concatenate([weights[fold.task][fold.train] for fold in folds])
    accuracy = np.empty((len(folds), len(costs), gram.n_kernels))

    def score(f: int, K: Array, dual: Array, intercept: float) -> float:
        fold = folds[f]
        decisions = K @ dual[layout.ptr[f] : layout.ptr[f + 1]] + intercept
        right = (decisions > 0) == (tasks[fold.task].signs[fold.test] > 0)
        return float(np.average(right, weights=weights[fold.task][fold.test]))

    for m, theta in enumerate(np.eye(gram.n_kernels)):
        dual = np.zeros(len(unit))
        with gram.combined(theta) as K:
            held_out = [K.of_task(fold.task, fold.test, fold.train) for fold in folds]
            for k, C in enumerate(costs):
                progress.show(f"{gram.bank.names[m]} · C={C:g}")
                solved = solve_tasks(K.flat, layout, signs, C * unit, dual, rtol, gram.n_jobs)
                accuracy[:, k, m] = [score(f, K_f, dual, solved.intercept[f]) for f, K_f in enumerate(held_out)]
                progress.done()
    return np.array([accuracy[block == t].mean(axis=0) for t in range(len(tasks))])


def check_grid(name: str, values: Any) -> list[float]:
    """Positive numbers to choose from, at least one."""
    grid = list(values) if isinstance(values, Iterable) and not isinstance(values, str) else [values]
    if not grid:
        raise ValueError(f"{name} is empty; give at least one number.")
    for value in grid:
        check_number(f"every entry of {name}", value, lambda v: 0 < v < np.inf, "greater than 0")
    return [float(value) for value in grid]
