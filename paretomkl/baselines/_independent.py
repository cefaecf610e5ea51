"""Baselines that share nothing between tasks: a learned kernel, a cross-validated kernel, or the mean kernel."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from .._data.reading import Training
from .._data.tasks import FOLDS, Task
from .._fitting.models import TaskModel
from .._fitting.tracing import TaskData, check_parts, fit_bank, make_gram, make_model, pose, trace
from .._learn.kernel_estimators import KernelTaskClassifier
from .._select.splits import make_splits
from .._tools.checks import check_grid, check_number, shown
from .._tools.parallel import effective_jobs, run_chunks
from .._tools.progress import Progress
from .._tools.typing import Array, ClassWeight, IntArray
from .._tools.wording import literal
from ..exceptions import TaskDataError
from ..gram._blocks import GramBlocks, TaskLayout
from ..kernels._kernels import PAPER_SIGMAS, Gaussian, KernelLike
from ..machines import SVCTasks
from ..machines._smo import classifier_box, solve_tasks
from ..problem import MultiTaskProblem
from ..scalarizations import PowerMean
from ..solution import Solution
from ..solvers._base import TASK_SHARE, Run
from ..sweep import Decisions
from ..weight_sets import LsBall


class KernelLearner:
    """What the classifier and the regressor of a method share: everything except the machine that solves a task."""

    kernels: Any
    tol: float
    n_jobs: int | None
    verbose: int | None
    _cost: Callable[[], float]  # defined in KernelFit
    _keep: Callable[..., None]

    def _machine(self) -> dict[str, Any]:
        """The machine that solves the tasks, and its parameters, for ``check_parts``."""
        return {}


class SeparateKernels(KernelLearner):
    """Learns a separate kernel for each task."""

    s: float
    max_iter: int | None

    def _learn(self, training: Training) -> TaskModel:
        parts = check_parts([1.0], self.s, self.tol, "auto", self.max_iter, self.n_jobs, **self._machine())
        bank, data = fit_bank(self.kernels, training), training.samples.data
        inner = parts.n_jobs if len(training.tasks) == 1 else 1  # one thread per task, or all threads for a single task
        with Progress(len(training.tasks), self.tol, self.verbose) as progress:

            def solve(task: Task, bound: Array) -> tuple[Solution, Decisions]:
                own = data[np.ix_(task.rows, task.rows)] if bank.precomputed else data[task.rows]
                alone = replace(task, rows=np.arange(len(task.rows)))
                gram = make_gram(bank, own, [alone], inner)
                machine = TaskData.of(gram, [alone], [bound], None, parts.make).machine()
                problem = MultiTaskProblem(machine, PowerMean(1.0), LsBall(parts.s))
                (solution,) = trace(problem, [1.0], parts.solver, progress)
                return solution.alone(), machine.decisions(solution.sweep)

            chunks = list(zip(training.tasks, training.bounds(self._cost()), strict=True))
            found = run_chunks(solve, chunks, parts.n_jobs)
        solutions, functions = zip(*found, strict=True)
        self.gaps_ = np.array([solution.gap for solution in solutions])
        objectives = np.array([solution.objective for solution in solutions])
        self._keep(objectives, self.gaps_.max(), max(solution.n_sweeps for solution in solutions))
        theta = np.array([solution.theta for solution in solutions])
        decisions = Decisions([f.dual[0] for f in functions], np.concatenate([f.intercepts for f in functions]))
        return make_model(bank, training, theta, decisions)


class UniformKernel(KernelLearner):
    """Solves the tasks under the mean of all kernels."""

    def _learn(self, training: Training) -> TaskModel:
        parts = check_parts([1.0], 1.0, self.tol, "auto", None, self.n_jobs, **self._machine())
        bank = fit_bank(self.kernels, training)
        problem = pose(training, training.bounds(self._cost()), bank, parts).problem
        sweep = Run().sweep(problem.machine, problem.start(), None, TASK_SHARE * self.tol)
        self._keep(sweep.lower, sweep.gaps.max(), 1)
        return make_model(bank, training, sweep.theta, problem.machine.decisions(sweep))


class IndependentMKL(SeparateKernels, KernelTaskClassifier):
    """Multiple kernel learning for each task on its own: the paper's baseline.

        for each task t     minimise over θ^t ≥ 0, ‖θ^t‖_s ≤ 1     J_t(θ^t)

    where J_t(θ) is the optimum of SVM task t under the kernel Σ_m θ_m K_m. With one task this is
    :class:`~paretomkl.ParetoMKLClassifier`.

    Parameters
    ----------
    s, C, kernels, task_column, tol, class_weight, n_jobs, verbose, random_state
        As in :class:`~paretomkl.ParetoMKLClassifier`; each task stops at ``tol``, and each thread solves one task.
    max_iter : int, default=None
        Maximum number of sweeps for one task; None means 200.

    Attributes
    ----------
    theta_ : array of shape (n_tasks, n_kernels)
        Learned kernel weights of each task.
    objectives_, objective_
        J_t at θ^t (n_tasks,), and their mean.
    gaps_ : array of shape (n_tasks,)
        Certified relative gap of each task, never below the true gap.
    gap_ : float
        The largest of them, which also bounds the gap of the mean.
    n_sweeps_ : int
        Passes over the tasks: the largest number of times that any task was solved.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl.baselines import IndependentMKL
    >>> IndependentMKL(C=10).fit(*load_iris(return_X_y=True)).theta_.shape
    (3, 13)
    """

    def __init__(
        self,
        s: float = 1.1,
        C: float = 1.0,
        kernels: KernelLike = "default",
        task_column: int | str | None = None,
        tol: float = 1e-3,
        class_weight: ClassWeight = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
        max_iter: int | None = None,
    ):
        super().__init__(C, kernels, task_column, tol, class_weight, n_jobs, verbose, random_state)
        self.s = s
        self.max_iter = max_iter


class UniformKernelSVC(UniformKernel, KernelTaskClassifier):
    """Support vector classifiers with the mean of all kernels, k = Σ_m K_m / M; the kernel is not learned.

    Parameters
    ----------
    C, kernels, task_column, tol, class_weight, n_jobs, verbose, random_state
        As in :class:`~paretomkl.ParetoMKLClassifier`, with the same accuracy of the tasks.

    Attributes
    ----------
    theta_ : array of shape (n_kernels,)
        1/M for each kernel.
    objectives_, objective_
        J_t at ``theta_`` (n_tasks,), and their mean.
    gap_ : float
        Largest relative duality gap of a task.
    n_sweeps_ : int
        Always 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl.baselines import UniformKernelSVC
    >>> UniformKernelSVC(C=10).fit(*load_iris(return_X_y=True)).objectives_.shape
    (3,)
    """


class IndependentSVC(KernelTaskClassifier):
    """One SVM with one kernel per task; cross-validation within the task chooses C and the kernel.

    For each task this does what ``GridSearchCV(SVC())`` does: it takes the pair of C and Gaussian width with the
    highest mean accuracy over stratified folds. On a tie it takes the smallest C, then the kernel listed first.

    Parameters
    ----------
    Cs : sequence of float, default=(0.1, 1.0, 10.0, 100.0)
        Costs of a margin violation to choose from.
    sigmas : sequence of float, default=the nine widths of the paper
        Widths of the Gaussian kernels exp(−‖x − z‖² / 2σ²) to choose from.
    kernels : None, "precomputed", sequence or KernelBank, default=None
        Kernels to choose from instead of the Gaussians.
    cv : int, splitter or iterable, default=5
        The folds. A number means stratified folds without shuffling, at most as many as the rarer class of a task has
        samples; a scikit-learn splitter is applied to each task separately; an iterable of (train, test) indices splits
        all samples.
    task_column, tol, class_weight, n_jobs, verbose, random_state
        As in :class:`~paretomkl.ParetoMKLClassifier`, with the same accuracy of the tasks. Weights of classes and
        samples count in the accuracy of a fold as they do in the SVM.

    Attributes
    ----------
    theta_ : array of shape (n_tasks, n_kernels)
        1 for the chosen kernel, 0 for the others.
    C_ : array of shape (n_tasks,)
        The chosen costs.
    sigmas_ : array of shape (n_tasks,)
        The chosen widths; NaN if the kernel is not Gaussian.
    cv_scores_ : array of shape (n_tasks, n_Cs, n_kernels)
        Mean accuracy over the folds, in increasing C.
    objectives_, objective_
        J_t of the tasks with the chosen values (n_tasks,), and their mean.
    gap_ : float
        Largest relative duality gap of a task.
    n_sweeps_ : int
        Passes over the tasks: one for each pair of C and kernel, and a final one.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl.baselines import IndependentSVC
    >>> IndependentSVC(Cs=[1, 10]).fit(*load_iris(return_X_y=True)).C_.shape
    (3,)
    """

    def __init__(
        self,
        Cs: Any = (0.1, 1.0, 10.0, 100.0),
        sigmas: Any = PAPER_SIGMAS,
        kernels: KernelLike | None = None,
        cv: Any = 5,
        task_column: int | str | None = None,
        tol: float = 1e-3,
        class_weight: ClassWeight = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
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

    def _learn(self, training: Training) -> TaskModel:
        check_number("tol", self.tol, lambda v: 0 < v < 1, "between 0 and 1")
        costs = np.unique(check_grid("Cs", self.Cs))
        gaussians = [Gaussian(sigma) for sigma in check_grid("sigmas", self.sigmas)]
        data, tasks = training.samples.data, training.tasks
        for C in (costs.min(), costs.max()):
            training.bounds(C)
        folds = make_folds(training, self.cv)
        bank = fit_bank(self.kernels or gaussians, training)
        gram = make_gram(bank, data, tasks, effective_jobs(self.n_jobs), shared=False)
        rtol = TASK_SHARE * self.tol
        with Progress(len(costs) * bank.n_kernels, self.tol, self.verbose) as progress:
            scores = cross_validate(gram, training, folds, costs, rtol, progress)
        # rounded, so that sums of the same accuracies in another order tie
        best = np.round(scores, 12).reshape(len(tasks), -1).argmax(axis=1)
        cost, kernel = np.unravel_index(best, scores.shape[1:])
        self.cv_scores_ = scores
        self.C_ = costs[cost]
        widths = {m: k.sigma for m, k in enumerate(bank.kernels) if isinstance(k, Gaussian)}
        self.sigmas_ = np.array([widths.get(m, np.nan) for m in kernel])
        bounds = [C * weight for C, weight in zip(self.C_, training.weights, strict=True)]
        chosen = TaskData.of(gram, tasks, bounds, None, SVCTasks).machine()
        sweep = Run().sweep(chosen, np.eye(bank.n_kernels)[kernel], None, rtol)
        self._keep(sweep.lower, sweep.gaps.max(), scores[0].size + 1)
        return make_model(bank, training, sweep.theta, chosen.decisions(sweep))


@dataclass(frozen=True)
class Fold:
    """The training and held-out samples of a task, as indices within the task."""

    task: int
    train: IntArray
    test: IntArray


def make_folds(training: Training, cv: Any) -> list[Fold]:
    """The folds of every task, as :class:`IndependentSVC` describes them; samples with weight zero are in no fold."""
    number = isinstance(cv, numbers.Integral) and not isinstance(cv, bool) and int(cv) >= 2
    if isinstance(cv, str) or not (number or hasattr(cv, "split") or isinstance(cv, Iterable)):
        wanted = "a whole number of at least 2, a splitter or an iterable of splits"
        raise ValueError(f"cv must be {wanted}, got cv={shown(cv)}.")
    splits = None
    if not (number or hasattr(cv, "split")):
        splits = make_splits(cv, training.samples.data, np.zeros(len(training.samples)))
    folds = []
    for t, (task, weight) in enumerate(zip(training.tasks, training.weights, strict=True)):
        present = np.flatnonzero(weight > 0)
        if splits is None:
            parts = split_task(task, present, cv)
        else:
            inside = [[present[np.isin(task.rows[present], part)] for part in split] for split in splits]
            parts = [(train, test) for train, test in inside if len(test)]
            check_folds(task, parts)
        folds += [Fold(t, train, test) for train, test in parts]
    return folds


def split_task(task: Task, present: IntArray, cv: Any) -> list[tuple[IntArray, IntArray]]:
    """Training and held-out samples of each fold, as indices within the task."""
    signs = task.targets[present]
    if isinstance(cv, numbers.Integral):
        rarer = int(min((signs < 0).sum(), (signs > 0).sum()))
        if rarer < 2:
            label = task.classes[int((signs > 0).sum() == rarer)]
            raise ValueError(
                f"Task {task.name!r} has one sample of class {literal(label)}; cross-validation needs two or more."
            )
        cv = StratifiedKFold(min(int(cv), rarer))
    splits = cv.split(np.zeros((len(present), 1)), signs)
    return [(present[np.sort(train)], present[np.sort(test)]) for train, test in splits]


def check_folds(task: Task, parts: list[tuple[IntArray, IntArray]]) -> None:
    if not parts:
        raise ValueError(f"Task {task.name!r} has no held-out sample in any split of cv.")
    for train, _ in parts:
        if len(np.unique(task.targets[train])) < 2:
            raise TaskDataError(f"Task {task.name!r} has only one class in the training part of a split of cv.", FOLDS)


def cross_validate(
    gram: GramBlocks, training: Training, folds: list[Fold], costs: Array, rtol: float, progress: Progress
) -> Array:
    """Mean accuracy over the folds of each task, (n_tasks, n_costs, n_kernels), for increasing ``costs``.

    Each fold is solved as a task on the Gram matrix of the whole task, and starts from the dual of the last C.
    """
    tasks, weights = training.tasks, training.weights
    block = np.array([fold.task for fold in folds])
    layout = TaskLayout(
        ptr=np.concatenate([[0], np.cumsum([len(fold.train) for fold in folds])]),
        idx=np.concatenate([fold.train for fold in folds]),
        start=gram.layout.start[block],
        size=gram.layout.size[block],
    )
    signs = np.concatenate([tasks[fold.task].targets[fold.train] for fold in folds])
    unit = np.concatenate([weights[fold.task][fold.train] for fold in folds])
    accuracy = np.empty((len(folds), len(costs), gram.n_kernels))

    def score(f: int, K: Array, dual: Array, intercept: float) -> float:
        fold = folds[f]
        decisions = K @ dual[layout.ptr[f] : layout.ptr[f + 1]] + intercept
        right = (decisions > 0) == (tasks[fold.task].targets[fold.test] > 0)
        return float(np.average(right, weights=weights[fold.task][fold.test]))

    for m, theta in enumerate(np.eye(gram.n_kernels)):
        dual = np.zeros(len(unit))
        with gram.combined(theta) as K:
            held_out = [K.of_task(fold.task, fold.test, fold.train) for fold in folds]
            for k, C in enumerate(costs):
                progress.show(f"{gram.bank.names[m]} · C={C:g}")
                box = classifier_box(signs, C * unit, len(folds))
                solved = solve_tasks(K.flat, layout, signs, box, dual, rtol, gram.n_jobs)
                accuracy[:, k, m] = [score(f, K_f, dual, solved.intercept[f]) for f, K_f in enumerate(held_out)]
                progress.done()
    return np.array([accuracy[block == t].mean(axis=0) for t in range(len(tasks))])
