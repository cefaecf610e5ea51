"""Build problems from training data and trace them along p and C, for paths, estimators and searches."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatch
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._data.tasks import Task
from .._tools.checks import check_count, check_number, check_task_scale
from .._tools.running import Progress, effective_jobs
from .._tools.typing import AnyArray, Array, SolverLike, TaskScale
from ..gram._blocks import GramBlocks
from ..gram._coupled import CoupledBank, CoupledGram
from ..kernels._evaluation import one_below_the_other
from ..kernels._fitted import BaseValues, FittedBank
from ..kernels._kernels import KernelLike, as_bank
from ..machines import MACHINES, MachineKind
from ..problem import MultiTaskProblem
from ..protocols import Machine, PathSolver, Scalarization, WeightSet, check_part
from ..scalarizations import PowerMean
from ..solution import Solution
from ..solvers import make_solver
from ..solvers._base import Run
from ..sweep import Decisions, Sweep
from .continuing import Continuation, check_continuation
from .models import Fit, SeparateModel, SharedModel, StandIn, TaskModel, make_models

if TYPE_CHECKING:
    from .._data.reading import Training

MOST_STAND_INS = 16  # sets of sources that get a model of their own
FAR_ABOVE = 1e8  # ratio of k(x, x) to its median at which pair steps become too short to solve a task


class Point(NamedTuple):
    """A point of a grid; a parameter that its kernels or its machine do not have is None."""

    C: float
    capacity: float | None
    epsilon: float | None
    p: float
    s: float


@dataclass(frozen=True)
class Grid:
    """Exponents, costs, norms, capacities (None: keep the bank's) and ε of SVR to combine.

    ``points`` has the order of scikit-learn's ParameterGrid.
    """

    ps: Sequence[float]
    Cs: Sequence[float]
    norms: Sequence[float]
    capacities: Sequence[float] | None = None
    epsilons: Sequence[float] | None = None

    @property
    def points(self) -> list[Point]:
        choices = self.Cs, self.capacities or (None,), self.epsilons or (None,), self.ps, self.norms
        return [Point(*values) for values in product(*choices)]

    @property
    def size(self) -> int:
        return len(self.points)

    def columns(self) -> dict[str, Array]:
        """The parameters that the points have, one array of length ``size`` each."""
        named = dict(zip(Point._fields, np.array(self.points, dtype=float).T, strict=True))
        absent = {"capacity": self.capacities is None, "epsilon": self.epsilons is None}
        return {name: values for name, values in named.items() if not absent.get(name)}


class Stretch(NamedTuple):
    """A path at one C, capacity, ε and norm: its bank, its run, and the solutions in the order of the exponents."""

    C: float
    capacity: float | None
    epsilon: float | None
    s: float
    bank: Any
    run: Run
    points: list[Solution]

    def at(self, p: float) -> Point:
        return Point(self.C, self.capacity, self.epsilon, p, self.s)


@dataclass(frozen=True)
class Parts:
    """The checked parameters that do not depend on the data.

    ``own`` are those that only this kind of machine has. A scalarization of the user replaces the power means, and a
    weight set of the user the balls.
    """

    solver: PathSolver
    s: float
    n_jobs: int
    task_scale: TaskScale = "none"
    machine: MachineKind = MACHINES["svc"]
    own: Mapping[str, float] = field(default_factory=dict)
    scalarization: Scalarization | None = None
    weight_set: WeightSet | None = None

    def allowed(self, s: float) -> WeightSet:
        """The allowed kernel weights for the norm s."""
        return self.machine.weight_set(s) if self.weight_set is None else self.weight_set

    def problem(self, machine: Machine, omega: Array | None) -> MultiTaskProblem:
        """The problem of this machine, at p = 1; ω are the preferences among the tasks."""
        if self.scalarization is not None and omega is not None:
            raise ValueError("task_weight is part of the power mean; with scalarization=, give it the weights.")
        return MultiTaskProblem(machine, self.scalarization or PowerMean(1.0, omega), self.allowed(self.s))

    def make(self, gram: Any, targets: Array, C: Array, scale: Array | None, **own: float) -> Machine:
        """The machine of these tasks; ``own`` replaces parameters of its kind."""
        return self.machine.make(gram, targets, C, scale, **{**self.own, **own})


def check_parts(
    ps: Sequence[float],
    s: float,
    tol: float,
    solver: SolverLike,
    max_iter: int | None,
    n_jobs: int | None,
    task_scale: TaskScale = "none",
    machine: MachineKind = MACHINES["svc"],
    scalarization: Any = None,
    weight_set: Any = None,
    **own: Any,
) -> Parts:
    """``own`` are parameters that only some machines have; they are checked for all, and kept for this one."""
    if scalarization is not None:
        check_part(scalarization, Scalarization)
    if weight_set is not None:
        check_part(weight_set, WeightSet)
    check_number("s", s, lambda v: v >= 1, "at least 1")
    check_number("tol", tol, lambda v: 0 < v < 1, "between 0 and 1")
    if max_iter is not None:
        check_count("max_iter", max_iter)
    made = make_solver(solver, ps if scalarization is None else (), tol=tol, max_iter=max_iter)
    if made.name == "tseng" and not machine.promises.hinge:
        raise ValueError(f"solver='tseng' needs machine='svc', got {machine.name!r}; use solver='auto'.")
    known = {name: about for kind in (*MACHINES.values(), machine) for name, about in kind.parameters.items()}
    checked = {name: known[name].checked(name, value) for name, value in own.items() if value is not None}
    jobs, scale = effective_jobs(n_jobs), check_task_scale(task_scale)
    return Parts(made, float(s), jobs, scale, machine, machine.own(checked), scalarization, weight_set)


# What a problem is made of depends on where its samples are; paretomkl.distributed registers its own for a cluster.


@singledispatch
def fit_and_measure(training: Training, kernels: KernelLike, centred: bool) -> tuple[Any, BaseValues | None]:
    """:func:`fit_bank`, and the distances among all samples if fitting computed them."""
    samples, known = training.samples, None
    bank = as_bank(kernels).for_blocks(samples.blocks)
    groups = [(task.rows, weight) for task, weight in zip(training.tasks, training.weights, strict=True)]
    if all(np.array_equal(rows, groups[0][0]) and np.array_equal(w, groups[0][1]) for rows, w in groups[1:]):
        groups = groups[:1]  # all tasks have the same samples: measure the kernels once
    fitted: Any
    weight, n_levels = training.sample_weight, samples.n_levels
    if training.share != "function":
        level = training.share == "everything"
        fitted, known = bank.fit_and_measure(samples.data, samples.names, weight, groups, level, n_levels)
    else:
        base = bank.fit(samples.data[:, :-1], samples.names, weight, groups, n_levels)
        fitted = CoupledBank.of(base, samples.data, groups)
    return (fitted.for_shift_invariant() if centred else fitted), known


def fit_bank(kernels: KernelLike, training: Training, centred: bool = True) -> Any:
    """Fit the bank to the samples, for shift-invariant machines or any; a CoupledBank if they have codes of tasks."""
    return fit_and_measure(training, kernels, centred)[0]


def make_gram(
    bank: Any,
    X: AnyArray,
    tasks: Sequence[Task],
    n_jobs: int = 1,
    shared: bool = True,
    known: BaseValues | None = None,
) -> Any:
    """The Gram store of these tasks; ``shared`` and ``known`` are as in GramBlocks."""
    rows = [task.rows for task in tasks]
    gram: Any
    if bank.coupled:
        gram = CoupledGram(bank, X, rows, n_jobs)
    else:
        gram = GramBlocks(bank, X, rows, n_jobs, shared, known)
    gram.check_positive_semidefinite()
    return gram


@dataclass(frozen=True)
class TaskData:
    """What the machine of some tasks is made of, at C = 1: the same for every C, capacity and ε."""

    gram: Any
    targets: Array
    costs: Array
    scale: Array | None
    make: Callable[..., Machine]

    @classmethod
    def of(
        cls, gram: Any, tasks: Sequence[Task], costs: Sequence[Array], scale: Array | None, make: Callable[..., Machine]
    ) -> TaskData:
        """The data of these tasks; ``costs`` holds the cost of each sample of each task."""
        return cls(gram, np.concatenate([task.targets for task in tasks]), np.concatenate(costs), scale, make)

    def machine(self, C: float = 1.0, epsilon: float | None = None) -> Machine:
        """The machine at another C and ε; None keeps the ε of ``make``."""
        own = {} if epsilon is None else {"epsilon": epsilon}
        return self.make(self.gram, self.targets, C * self.costs, self.scale, **own)

    def with_capacity(self, capacity: float | None) -> TaskData:
        """The same tasks at another capacity exponent of the kernels; None keeps that of the bank."""
        return self if capacity is None else replace(self, gram=self.gram.with_capacity(capacity))

    def with_bank(self, bank: Any) -> TaskData:
        """The same tasks with a bank that differs only in the factors of its kernels."""
        return replace(self, gram=self.gram.with_bank(bank))


class Posed(NamedTuple):
    """A problem at p = 1, its bank of kernels, and its data (None if they are on a cluster)."""

    problem: MultiTaskProblem
    bank: Any
    data: Any


def fit_and_pose(
    training: Training, bounds: Sequence[Array], kernels: KernelLike, parts: Parts, omega: Array | None = None
) -> Posed:
    """Fit the kernels and pose the problem, which computes distances between samples only once."""
    bank, known = fit_and_measure(training, kernels, parts.machine.promises.shifts)
    return pose(training, bounds, bank, parts, omega, known)


@singledispatch
def pose(
    training: Training,
    bounds: Sequence[Array],
    bank: Any,
    parts: Parts,
    omega: Array | None = None,
    known: BaseValues | None = None,
) -> Posed:
    """The problem of these tasks; ``bounds`` holds C for each sample of each task, ``known`` is as in GramBlocks."""
    scale = 1 / training.task_sizes if parts.task_scale == "samples" else None
    gram = make_gram(bank, training.samples.data, training.tasks, parts.n_jobs, known=known)
    data = TaskData.of(gram, training.tasks, bounds, scale, parts.make)
    return Posed(parts.problem(data.machine(), omega), bank, data)


def make_model(bank: FittedBank, training: Training, theta: Array, decisions: Decisions) -> TaskModel:
    """The fitted model of one θ."""
    fit = Fit(bank, theta, decisions)
    return make_models(training.samples.data, training.tasks, training.labelling, [fit])[0]


@singledispatch
def models_of(training: Training, points: Sequence[Solution], *banks: Any) -> list[TaskModel]:
    """The fitted models of solutions for the same training data; points with the same sweep share a model.

    ``banks`` are the kernels of each point, or of all points.
    """
    if not all(point.converged for point in points):
        _warn_of_scales(banks[0], training.samples.data)
    distinct: dict[int, Fit] = {}
    for point, bank in zip(points, banks if len(banks) > 1 else banks * len(points), strict=True):
        if id(point.sweep) not in distinct:
            machine: Any = point.machine
            distinct[id(point.sweep)] = Fit(bank, point.sweep.theta, machine.decisions(point.sweep))
    made = make_models(training.samples.data, training.tasks, training.labelling, list(distinct.values()))
    model_of = dict(zip(distinct, made, strict=True))
    return [model_of[id(point.sweep)] for point in points]


def with_stand_ins(training: Any, points: Sequence[Solution], models: list[TaskModel]) -> list[TaskModel]:
    """The models, with others for samples that lack sources, if some training samples do.

    Each set of sources has its own duals, at the same kernel weights without those of the other sources, scaled so that
    the variance of the functions stays the same.
    """
    bank = models[0].bank
    if bank.preparation is None or bank.preparation.ridge is None:
        return models
    names, data = [name for name in dict.fromkeys(bank.sources) if name], training.samples.data
    seen, counts = np.unique(~bank.preparation.lacking(data), axis=0, return_counts=True)
    frequent = seen[np.argsort(-counts, kind="stable")][:MOST_STAND_INS]
    sets = dict.fromkeys(tuple(one.tolist()) for one in [*np.eye(len(names), dtype=bool), *frequent])
    wanted = [one for one in sets if any(one) and not all(one)]
    made: dict[int, TaskModel] = {}
    for key, point in {id(point.sweep): point for point in points}.items():
        machine: Any = point.machine
        fits = []
        for one in wanted:
            theta = _without(bank, point.sweep.theta, [name for name, has in zip(names, one, strict=True) if not has])
            fits.append(Fit(bank, theta, machine.decisions(machine.sweep(theta))))
        all_of_them = [Fit(bank, point.sweep.theta, machine.decisions(point.sweep)), *fits]
        whole, *others = make_models(data, training.tasks, training.labelling, all_of_them)
        stand_ins = [StandIn(one, own.theta, own.dual, own.intercepts) for one, own in zip(wanted, others, strict=True)]
        made[key] = replace(whole, stand_ins=stand_ins)
    return [made[id(point.sweep)] for point in points]


def _without(bank: Any, theta: Array, sources: Sequence[str]) -> Array:
    """Kernel weights without those of some sources; equal ones if the others have none."""
    kept = np.array([source not in sources for source in bank.sources], dtype=float)
    own, size = theta * kept, bank.variance * bank.factor
    if not own @ size > 0:
        own = kept
    return own * (theta @ size) / max(own @ size, 1e-300)


def _warn_of_scales(bank: Any, data: AnyArray) -> None:
    """Warn of a sample whose kernel values are so far above all others that pair steps cannot solve its tasks."""
    sizes = bank.diagonals(data)
    ratios = sizes / np.maximum(np.median(sizes, axis=1, keepdims=True), 1e-100)
    m, i = np.unravel_index(np.argmax(ratios), ratios.shape)
    if ratios[m, i] > FAR_ABOVE:
        warnings.warn(
            f"Kernel {bank.names[m]} of sample {i} is {ratios[m, i]:.0e} times that of a typical sample, too much for "
            "the tasks to be solved. Scale the features, as standardize=True in KernelBank does, or remove numbers "
            "that stand for missing values.",
            ConvergenceWarning,
            stacklevel=4,
        )


def trace(
    problem: MultiTaskProblem,
    ps: Sequence[float],
    solver: PathSolver,
    progress: Progress,
    init: Solution | None = None,
    run: Run | None = None,
) -> list[Solution]:
    """Solve the problem for each p, starting from the previous solution; returns the solutions in the order of ps.

    The scalarization of the problem is a power mean of any exponent. If ps is [NaN], it is used as it is.
    """
    run = run or Run(progress.report)
    if np.isnan(ps).any():
        points = [solver.solve(problem, init, run)]
        progress.done()
        return points
    mean = cast(PowerMean, problem.scalarization)
    solutions: dict[float, Solution] = {}
    last = init
    waiting = order = walking_order(ps)
    while waiting:
        here = replace(problem, scalarization=replace(mean, p=waiting[0]))
        last = solutions[waiting[0]] = solver.solve(here, last, run)
        for p, solution in solver.also_solved(here, last, mean, waiting[1:]).items():
            solutions[p] = solution
            run.note(p, solution.gap)
        left = [p for p in waiting if p not in solutions]
        progress.done(len(waiting) - len(left))
        waiting = left
    if last is not None:  # other paths start from the first point: it takes along what the others have found
        solutions[order[0]] = replace(solutions[order[0]], state=last.state)
    return [solutions[p] for p in ps]


class Learned(NamedTuple):
    """What was learned at one or several exponents: the cost of the run, the solutions and their models."""

    run: Run
    points: list[Solution]
    models: list[Any]  # FittedTasks
    n_kept: int = 0  # as in Traced


def learn(
    training: Training,
    exponents: Sequence[float],
    C: float,
    kernels: KernelLike,
    parts: Parts,
    omega: Array | None,
    verbose: int | None,
) -> Learned:
    """Solve the tasks at each exponent: the fit of estimators and paths.

    Tasks that share nothing, or more than a kernel, give one point, on which p has no effect.
    """
    if training.share != "kernel" and parts.scalarization is not None:
        raise ValueError(f"With share={training.share!r} there are no objectives for a scalarization to combine.")
    if training.earlier is not None:
        check_continuation(training.earlier).check_kind(training, parts)
    if training.share == "nothing":
        return _learn_apart(training, C, kernels, parts, omega, verbose)
    with Progress(len(exponents), parts.solver.tol, verbose) as progress:
        run = Run(progress.report)
        learned = Learned(run, *pose_and_trace(training, C, kernels, parts, omega, exponents, progress, run))
    if training.together is None:
        return learned
    return learned._replace(models=[SharedModel(model, training.together) for model in learned.models])


def solve(training: Training, posed: Posed, exponents: Sequence[float], parts: Parts, verbose: int | None) -> Learned:
    """Solve a problem at each exponent."""
    with Progress(len(exponents), parts.solver.tol, verbose) as progress:
        run = Run(progress.report)
        points = trace(posed.problem, exponents, parts.solver, progress, run=run)
    models = models_of(training, points, posed.bank)
    return Learned(run, points, with_stand_ins(training, points, models))


class Traced(NamedTuple):
    """The solutions of a problem, their models, and how many tasks took over duals and cuts of an earlier fit."""

    points: list[Solution]
    models: list[TaskModel]
    n_kept: int


def pose_and_trace(
    training: Training,
    C: float,
    kernels: KernelLike,
    parts: Parts,
    omega: Array | None,
    exponents: Sequence[float],
    progress: Progress,
    run: Run,
) -> Traced:
    """Solve the tasks at each exponent, as one problem; their models tell how a later fit can continue."""
    earlier = training.earlier.whole if isinstance(training.earlier, SharedModel) else training.earlier
    bounds, init, n_kept = training.bounds(C), None, 0
    if earlier is None:
        posed = fit_and_pose(training, bounds, kernels, parts, omega)
    else:
        before = check_continuation(earlier)
        before.check_rows(training)
        posed = pose(training, bounds, earlier.bank, parts, omega)
        init, n_kept = before.start(earlier, training, bounds, parts, posed.problem)
    points = trace(posed.problem, exponents, parts.solver, progress, init, run)
    models = with_stand_ins(training, points, models_of(training, points, posed.bank))
    if posed.data is None:  # the samples are on a cluster
        return Traced(points, models, n_kept)
    fullest = points[list(exponents).index(walking_order(exponents)[0])] if len(points) > 1 else points[0]
    left = Continuation.of(training, bounds, parts, fullest)
    distinct = {id(model): replace(model, continuation=left) for model in models}
    return Traced(points, [distinct[id(model)] for model in models], n_kept)


def _learn_apart(
    training: Training, C: float, kernels: KernelLike, parts: Parts, omega: Array | None, verbose: int | None
) -> Learned:
    """Solve each task separately, with its own bank, kernel weights and function."""
    from .._data.reading import apart  # imported here because scikit-learn takes a second to import

    alone = apart(training)
    with Progress(len(alone), parts.solver.tol, verbose) as progress:
        run = Run(progress.report)
        given = training.earlier
        known = {} if given is None else dict(zip(given.tasks.distinct_sources, given.models, strict=True))
        before = [known.get(source) for source in training.labelling.distinct_sources]
        alone = [replace(own, earlier=model) for own, model in zip(alone, before, strict=True)]
        point, models, n_kept = solve_apart(alone, C, kernels, parts, omega, progress, run)
    run.n_sweeps = point.n_sweeps  # one pass over the tasks is one sweep of each task
    return Learned(run, [point], [SeparateModel(models, training.labelling)], n_kept)


def solve_apart(
    alone: Sequence[Training],
    C: float,
    kernels: KernelLike,
    parts: Parts,
    omega: Array | None,
    progress: Progress,
    run: Run,
) -> tuple[Solution, list[TaskModel], int]:
    """Solve tasks that share nothing, each with its own bank and kernel weights; one solution and all models.

    The last result is the number of tasks that continue an earlier model.

    It minimises Σ_t ω_t J_t(θ_t) for every ω > 0, so p has no effect. The relative gap of the sum is at most the
    largest gap of its parts.
    """
    counts = [len(own.tasks) for own in alone]
    omega = np.full(sum(counts), 1 / sum(counts)) if omega is None else omega
    solutions: list[Solution] = []
    models: list[TaskModel] = []
    n_kept = 0
    first, bank = alone[0].samples, as_bank(kernels).for_blocks(alone[0].samples.blocks)
    if bank.made_from_data:  # so that all tasks have the same kernels
        together = one_below_the_other([own.samples.data for own in alone])
        kernels = bank.with_scaling(together, first.names, first.n_levels)
    for own, weight in zip(alone, np.split(omega, np.cumsum(counts)[:-1]), strict=True):
        given = C, kernels, parts, weight / weight.sum()
        points, made, kept = pose_and_trace(own, *given, [1.0], progress, run)
        solutions += points
        models += made
        n_kept += kept
    sweeps = [solution.sweep for solution in solutions]
    theta = np.concatenate([np.tile(sweep.theta, (count, 1)) for sweep, count in zip(sweeps, counts, strict=True)])
    names = "linear", "forms", "lower", "upper"
    linear, forms, lower, upper = (np.concatenate([getattr(sweep, name) for sweep in sweeps]) for name in names)
    whole = Sweep(theta, linear, forms, lower, upper)
    gap, n_sweeps = (max(getattr(solution, name) for solution in solutions) for name in ("gap", "n_sweeps"))
    converged = all(solution.converged for solution in solutions)
    return Solution(1.0, whole, omega, float(omega @ whole.lower), gap, n_sweeps, converged), models, n_kept


def trace_grid(
    problem: MultiTaskProblem, data: TaskData, grid: Grid, parts: Parts, progress: Progress
) -> Iterator[Stretch]:
    """The path for each C, capacity, ε and s.

    The given problem has C = 1. C increases, because a cut at one C is valid at every larger one. Capacities and norms
    go back and forth, so that every path starts from its neighbour; they share duals and cuts, which are valid for
    every s and every scale of the kernels.
    """
    for epsilon in grid.epsilons or (None,):
        yield from _trace_costs(problem, data, grid, epsilon, parts, progress)


def _trace_costs(
    problem: MultiTaskProblem,
    data: TaskData,
    grid: Grid,
    epsilon: float | None,
    parts: Parts,
    progress: Progress,
) -> Iterator[Stretch]:
    solver = parts.solver
    first = list(grid.ps).index(walking_order(grid.ps)[0]) if len(grid.ps) > 1 else 0
    at_capacity = {capacity: data.with_capacity(capacity) for capacity in grid.capacities or (None,)}
    turns = [(capacity, s) for k, capacity in enumerate(at_capacity) for s in grid.norms[:: 1 - 2 * (k % 2)]]
    last: Solution | None = None
    last_C, last_bank = 0.0, data.gram.bank
    for k, C in enumerate(sorted(set(grid.Cs))):
        machines = {capacity: own.machine(C, epsilon) for capacity, own in at_capacity.items()}
        for capacity, s in turns if k % 2 == 0 else turns[::-1]:
            bank = at_capacity[capacity].gram.bank
            here = replace(problem, machine=machines[capacity], weight_set=parts.allowed(s))
            run = Run(progress.report)
            init = last
            if last is not None and last_C < C:  # neighbours differ only in C
                init = solver.grown(last, here, C / last_C)
            elif last is not None and bank is not last_bank:
                old, new = last_bank.factor, bank.factor
                init = solver.rescaled(last, here, np.divide(new, old, out=np.ones_like(new), where=old > 0))
            points = trace(here, grid.ps, solver, progress, init, run)
            last, last_C, last_bank = points[first], C, bank
            yield Stretch(C, capacity, epsilon, s, bank, run, points)


def trace_without(
    posed: Posed, left_out: Iterable[AnyArray], ps: Sequence[float], parts: Parts, progress: Progress
) -> Iterator[tuple[Any, Solution]]:
    """The bank and the solution with all kernels, at one p, and without each of these sets of kernels (n_kernels,).

    Leaving kernels out sets their weights to zero, so all problems share the cuts of the first. The factors of the
    other kernels stay as they are.
    """
    problem, bank, data = posed
    (whole,) = trace(problem, ps, parts.solver, progress)
    yield bank, whole
    for which in left_out:
        rest = bank.without(which)
        here = replace(problem, machine=data.with_bank(rest).machine())
        init = parts.solver.rescaled(whole, here, np.where(which, 0.0, 1.0))
        yield rest, trace(here, ps, parts.solver, progress, init)[0]


def walking_order(ps: Sequence[float]) -> list[float]:
    """Exponents from the largest p ≤ 1 down, then from the smallest p > 1 up, so that each starts near the last."""
    below = sorted({p for p in ps if p <= 1}, reverse=True)
    return below + sorted({p for p in ps if p > 1})
