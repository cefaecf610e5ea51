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
from sklearn.base import TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from .._data.labels import Labelling, Samples
from .._data.reading import Training, read_samples
from .._fitting.models import FittedTasks, SharedModel, share
from .._learn.base import MultiTaskClassifier
from .._learn.path import pareto_path
from .._select.search import ParetoMKLClassifierCV
from .._tools.typing import AnyArray, Array, IntArray
from ..baselines import IndependentMKL, MinimaxMTL, PartiallySharedMKL, SparseMTL, UniformKernelSVC
from ..exceptions import GridEdgeWarning
from ..kernels._kernels import PAPER_SIGMAS, Gaussian
from .plan import Settings, Split

PAPER_S = 1.1
WIDTHS = [Gaussian(sigma) for sigma in PAPER_SIGMAS]
# the grid of "svc"; not part of the settings, so that adding it kept the results of the other methods valid
SVC_CS = (0.1, 1.0, 10.0, 100.0, 1000.0)
SVC_GAMMAS = tuple(2.0**k for k in range(-6, 7, 2))  # divided by the number of features


@dataclass
class Candidate:
    """One candidate of a method.

    params: its parameters; cv: mean score over the folds. If it was fitted on the whole training set and tested,
    also accuracy: of the votes, or the mean over the tasks; right: number of correct test samples of each task; gap:
    its certificate (SVMs of scikit-learn have none); objectives: for "pareto".
    """

    params: dict[str, Any]  # numbers, except for the kernels that our default chooses
    cv: float
    accuracy: float | None = None
    right: list[int] | None = None
    gap: float | None = None
    objectives: list[float] | None = None

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
    """Fill in the scores of a fitted model on the test set."""
    decisions = model.decisions(samples)
    if isinstance(model, SharedModel):  # one function: a task is right where the function is
        belongs = np.asarray(samples.sources)[:, None] == np.array(model.tasks.sources)
        right = belongs & (model.predict(samples) == y)[:, None]
    else:
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
    ps, train, test = list(settings.ps), split.train, split.test
    fixed: dict[str, Any] = {"s": PAPER_S, "kernels": split.kernels, "share": "kernel"}
    search = ParetoMKLClassifierCV(ps, list(settings.Cs), cv=split.folds, tol=settings.tol, **fixed)
    results = search.fit(train.X, train.y, tasks=train.tasks).cv_results_
    pairs = [(params["C"], params["p"]) for params in results["params"]]
    scores = dict(zip(pairs, results["mean_test_score"], strict=True))
    outcome = Outcome([])
    for C in settings.Cs:
        path = pareto_path(train.X, train.y, tasks=train.tasks, ps=ps, C=C, tol=settings.final_tol, **fixed)
        outcome.n_sweeps += path.n_sweeps
        samples = read_samples(path.reader, test.X, tasks=test.tasks)
        for k, p in enumerate(ps):
            objectives = path.objectives[k].tolist()
            point = Candidate({"C": C, "p": p}, float(scores[C, p]), gap=float(path.gap[k]), objectives=objectives)
            put_to_test(path.models[k], samples, test.y, point, outcome)
            outcome.points.append(point)
    return outcome


# ---------------------------------------------------------------------------------------------- the others
Make = Callable[..., MultiTaskClassifier]  # from parameters


def choose_and_test(
    split: Split, make: Make, grid: Sequence[dict[str, float]], settings: Settings, apart: str = ""
) -> Outcome:
    """Score every candidate in every fold, fit the best on the whole training set, and test it.

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
        candidates = [point for point in outcome.points if point.params.get(apart) == value]
        best = max(candidates, key=lambda point: point.cv)
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
        "svc": (shared_width_svc, {"C": SVC_CS, "gamma": [g / split.train.X.shape[1] for g in SVC_GAMMAS]}),
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


# --------------------------------------------------------------------------------------- SVMs of scikit-learn
@dataclass(frozen=True)
class EachTaskModel(FittedTasks):
    """A fitted transformer of the features, and a fitted classifier for each task."""

    tasks: Labelling
    scaler: TransformerMixin
    machines: list[Any]

    def _values(self, data: AnyArray, rows: IntArray, tasks: IntArray) -> Array:
        scaled = self.scaler.transform(data[rows])
        return np.column_stack([self.machines[t].decision_function(scaled) for t in tasks])


class EachTask(MultiTaskClassifier):
    """The classifier of scikit-learn that ``make`` returns for each task, given the signs of its samples.

    ``scaler`` is fitted to the samples of all tasks.
    """

    model_: EachTaskModel
    task_column = class_weight = random_state = None

    def __init__(self, make: Callable[[Array], Any], scaler: Any):
        self.make = make
        self.scaler = scaler

    def _learn(self, training: Training) -> EachTaskModel:
        X = self.scaler.fit_transform(training.samples.data)
        machines = [self.make(task.targets).fit(X[task.rows], task.targets) for task in training.tasks]
        return EachTaskModel(training.labelling, self.scaler, machines)


def shared_width_svc(C: float, gamma: float, tol: float) -> EachTask:
    """An SVC per task with the same C and γ for all, and columns standardised over all tasks.

    If the tasks are pairs of classes this is ``make_pipeline(StandardScaler(), SVC(C=C, gamma=gamma))``, which solves
    the same pairs; confidence breaks ties between votes, as for all methods.
    """
    return EachTask(lambda signs: SVC(C=C, gamma=gamma, tol=tol), StandardScaler())


def independent_svc(split: Split, settings: Settings) -> Outcome:
    """What most people would do: ``GridSearchCV(SVC())`` for each task, over C and the width of a Gaussian kernel.

    The folds are at most as many as the rarer class of the task has samples.
    """
    widths = WIDTHS if split.kernels == "paper" else split.kernels  # the nine Gaussians of the paper's bank
    grid = {"C": settings.Cs, "kernel": [partial(gaussian_gram, width) for width in widths]}

    def search(signs: Array) -> GridSearchCV:
        folds = min(settings.n_folds, int((signs < 0).sum()), int((signs > 0).sum()))
        return GridSearchCV(SVC(tol=settings.tol), grid, cv=StratifiedKFold(folds))

    model, point = EachTask(search, FunctionTransformer()), Candidate({}, float("nan"))
    outcome = Outcome([point])
    fit_and_test(split, model, point, outcome)
    point.cv = float(np.mean([machine.best_score_ for machine in model.model_.machines]))
    return outcome


def gaussian_gram(kernel: Gaussian, X: Array, Z: Array) -> Array:
    columns: Any = slice(None) if kernel.columns is None else kernel.columns
    return rbf_kernel(X[:, columns], Z[:, columns], gamma=0.5 / kernel.sigma**2)


# ------------------------------------------------------------------------------------------------ our default
def default_search(split: Split, settings: Settings) -> Outcome:
    """The library with its defaults, on the same folds as all methods; the only point is the chosen one."""
    search, point = ParetoMKLClassifierCV(cv=split.folds), Candidate({}, float("nan"))
    outcome = Outcome([point])
    fit_and_test(split, search, point, outcome)
    best = search.best_params_.items()  # as values that JSON can hold
    point.params = {name: float(value) if isinstance(value, Real) else str(value) for name, value in best}
    point.cv = float(search.best_score_)
    return outcome


def run_method(method: str, split: Split, settings: Settings) -> Outcome:
    """Run one method without convergence warnings: the gap shows if a candidate missed its tolerance."""
    own = {"pareto": pareto, "independent-svc": independent_svc, "default": default_search}
    run = own.get(method, partial(with_grid, method))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", GridEdgeWarning)  # the grids are part of the protocol
        return run(split, settings)
