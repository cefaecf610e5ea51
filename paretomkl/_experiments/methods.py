"""The methods to compare: each takes a split, chooses parameters by cross-validation, and tests the result."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from numbers import Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._data.labels import Samples
from .._data.reading import PathReader, Reading, read_samples
from .._fitting.models import FittedTasks, share
from .._fitting.tracing import Grid, check_parts, fit_bank, models_of, pose, trace_grid
from .._learn.base import MultiTaskClassifier
from .._select.search import ParetoMKLClassifierCV
from .._tools.running import Progress
from .._tools.typing import AnyArray
from ..baselines import IndependentMKL, MinimaxMTL, PartiallySharedMKL, SparseMTL, UniformKernelSVC
from ..exceptions import GridEdgeWarning
from .plan import Settings, Split
from .svc import WIDTHS, IndependentSVC, SharedWidthSVC

PAPER_S = 1.1
# the grid of "svc"; not part of the settings, so that adding it kept the results of the other methods valid
SVC_CS = (0.1, 1.0, 10.0, 100.0, 1000.0)
SVC_GAMMAS = tuple(2.0**k for k in range(-6, 7, 2))  # divided by the number of features


@dataclass
class Candidate:
    """One candidate of a method.

    params: its parameters; cv: mean score over the folds. If it was fitted on the whole training part and tested,
    also accuracy: of the votes, or the mean over the tasks; right: number of correct test samples of each task; gap:
    its certificate ("svc" has none); objectives and theta: for "pareto" and "default".
    """

    params: dict[str, Any]  # numbers, except for the kernels that our default chooses
    cv: float
    accuracy: float | None = None
    right: list[int] | None = None
    gap: float | None = None
    objectives: list[float] | None = None
    theta: list[float] | None = None

    @property
    def tested(self) -> bool:
        return self.accuracy is not None


@dataclass
class Outcome:
    """The result of a method on a split: its points, the tasks and their numbers of test samples, and all sweeps."""

    points: list[Candidate]
    tasks: list[str] = field(default_factory=list)
    n_test: list[int] = field(default_factory=list)
    n_sweeps: int = 0

    @property
    def gap(self) -> float:
        """The largest gap of a tested point."""
        return max((point.gap for point in self.points if point.gap is not None), default=float("nan"))

    @property
    def chosen(self) -> Candidate:
        """The tested point with the highest cross-validated score; the first on a tie."""
        return max((point for point in self.points if point.tested), key=lambda point: point.cv)


# ------------------------------------------------------------------------------------------------ testing
def put_to_test(model: FittedTasks, samples: Samples, y: AnyArray, point: Candidate, outcome: Outcome) -> None:
    """Fill in the scores of a fitted model on the test part."""
    decisions = model.decisions(samples)
    right, belongs = model.tasks.right(decisions, y)
    by_votes = model.tasks.kind == "classes"  # else the mean over the tasks
    point.accuracy = float(np.mean(model.tasks.predictions(decisions) == y if by_votes else share(right, belongs)))
    point.right = right.sum(axis=0).tolist()
    outcome.tasks, outcome.n_test = list(model.tasks.names), belongs.sum(axis=0).tolist()


# ------------------------------------------------------------------------------------------------- pareto
def pareto(split: Split, settings: Settings) -> Outcome:
    """Cross-validate every C and p, and test the whole path of each C.

    The tables decide which C and p to report; p = 1 is traditional multi-task MKL.
    """
    ps, Cs = list(settings.ps), list(settings.Cs)
    train, test = split.train, split.test
    search = ParetoMKLClassifierCV(ps, Cs, s=PAPER_S, cv=split.folds, kernels=split.kernels, tol=settings.tol)
    results = search.fit(train.X, train.y, tasks=train.tasks).cv_results_
    pairs = [(params["C"], params["p"]) for params in results["params"]]
    scores = dict(zip(pairs, results["mean_test_score"], strict=True))
    reader = PathReader(Reading(split.kernels))
    training = reader.read_data(train.X, train.y, tasks=train.tasks)
    samples = read_samples(reader, test.X, tasks=test.tasks)
    parts = check_parts(ps, PAPER_S, settings.final_tol, "auto", None, None)
    problem, _, data = pose(training, training.weights, fit_bank(split.kernels, training), parts)
    outcome = Outcome([])
    progress = Progress(1, settings.final_tol, 0)
    for stretch in trace_grid(problem, data, Grid(ps, Cs, [PAPER_S]), parts, progress):
        outcome.n_sweeps += stretch.run.n_sweeps
        for solution, model in zip(stretch.points, models_of(training, stretch.points, stretch.bank), strict=True):
            params = {"C": stretch.C, "p": solution.p}
            point = Candidate(params, float(scores[stretch.C, solution.p]), gap=solution.gap)
            put_to_test(model, samples, test.y, point, outcome)
            point.objectives, point.theta = solution.objectives.tolist(), solution.theta.tolist()
            outcome.points.append(point)
    return outcome


# ---------------------------------------------------------------------------------------------- the others
Make = Callable[..., MultiTaskClassifier]


def choose_and_test(
    split: Split, make: Make, grid: Sequence[dict[str, float]], settings: Settings, apart: str = ""
) -> Outcome:
    """Score every candidate in every fold, fit the best on the whole training part, and test it.

    ``make(tol=…, **candidate)`` is the classifier. If ``apart`` names a parameter, the best candidate for each of its
    values is tested.
    """
    outcome = Outcome([])
    for candidate in grid:
        scores = []
        for rows, held_out in split.folds:
            fit, rest = split.train[rows], split.train[held_out]
            model = make(tol=settings.tol, **candidate).fit(fit.X, fit.y, tasks=fit.tasks)
            scores.append(model.score(rest.X, rest.y, tasks=rest.tasks))
        outcome.points.append(Candidate(candidate, float(np.mean(scores))))
    for value in dict.fromkeys(point.params.get(apart) for point in outcome.points):
        rivals = [point for point in outcome.points if point.params.get(apart) == value]
        best = max(rivals, key=lambda point: point.cv)
        fit_and_test(split, make(tol=settings.final_tol, **best.params), best, outcome)
    return outcome


def fit_and_test(
    split: Split, model: MultiTaskClassifier | ParetoMKLClassifierCV, point: Candidate, outcome: Outcome
) -> None:
    model.fit(split.train.X, split.train.y, tasks=split.train.tasks)
    samples = read_samples(model, split.test.X, tasks=split.test.tasks)
    put_to_test(model.model_, samples, split.test.y, point, outcome)
    gap = getattr(model, "gap_", None)
    point.gap = None if gap is None else float(gap)
    outcome.n_sweeps += int(getattr(model, "n_sweeps_", 0))


def combinations(**values: Sequence[float]) -> list[dict[str, float]]:
    """All candidates of a grid; the last parameter varies fastest."""
    return [dict(zip(values, point, strict=True)) for point in product(*values.values())]


def with_grid(method: str, split: Split, settings: Settings) -> Outcome:
    """Run a method that has a grid of candidates; β and α are given as shares of the number of tasks."""
    betas, alphas = ([share * split.n_tasks for share in shares] for shares in (settings.shares, settings.alphas))
    grids: dict[str, tuple[Make, dict[str, Sequence[float]]]] = {
        "independent": (IndependentMKL, {"C": settings.Cs}),  # the paper's baseline; one C for all tasks
        "uniform": (UniformKernelSVC, {"C": settings.Cs}),
        "svc": (SharedWidthSVC, {"C": SVC_CS, "gamma": [g / split.train.X.shape[1] for g in SVC_GAMMAS]}),
        "sparse": (SparseMTL, {"C": settings.sparse_Cs, "p": settings.sparse_ps, "q": settings.sparse_qs}),
        "tang": (PartiallySharedMKL, {"C": settings.Cs, "beta": betas}),
        "mm-aep": (partial(MinimaxMTL, "trace"), {"alpha": alphas, "mu": settings.mus}),
        "mm-ep": (partial(MinimaxMTL, "ep"), {"alpha": alphas, "mu": settings.mus, "lam": settings.lams}),
    }
    make, grid = grids[method]
    linear = method.startswith("mm-")  # test the best candidate of each α, since the paper reports the better α
    if not (linear or method == "svc"):  # which has its own kernel
        make = partial(make, kernels=split.kernels)
    return choose_and_test(split, make, combinations(**grid), settings, apart="alpha" if linear else "")


def independent_svc(split: Split, settings: Settings) -> Outcome:
    """What most people would do: one Gaussian-kernel SVM per task, with C and width chosen by the task's own folds."""
    kernels = WIDTHS if split.kernels == "paper" else split.kernels  # the nine Gaussians of the paper's bank
    model = IndependentSVC(settings.Cs, kernels, settings.n_folds, settings.tol)
    point = Candidate({}, float("nan"))
    outcome = Outcome([point])
    fit_and_test(split, model, point, outcome)
    point.cv = float(np.mean(model.cv_scores_.max(axis=(1, 2))))
    return outcome


def default_search(split: Split, settings: Settings) -> Outcome:
    """The library with its defaults, on the same folds as all methods; the only point is the chosen one."""
    search, point = ParetoMKLClassifierCV(cv=split.folds), Candidate({}, float("nan"))
    outcome = Outcome([point])
    fit_and_test(split, search, point, outcome)
    best = search.best_params_.items()  # as values that JSON can hold
    point.params = {name: float(value) if isinstance(value, Real) else str(value) for name, value in best}
    point.cv = float(search.best_score_)
    point.objectives, point.theta = search.objectives_.tolist(), search.theta_.tolist()
    return outcome


def run_method(method: str, split: Split, settings: Settings) -> Outcome:
    """Run one method without convergence warnings: the gap shows if a candidate missed its tolerance."""
    own = {"pareto": pareto, "independent-svc": independent_svc, "default": default_search}
    run = own.get(method, partial(with_grid, method))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", GridEdgeWarning)  # the grids are part of the protocol
        return run(split, settings)
