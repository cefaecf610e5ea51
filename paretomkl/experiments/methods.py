"""The methods of the comparison, each from a split to scores: parameters by cross-validation, then tested."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._typing import AnyArray, Array
from ..baselines import (
    IndependentMKL,
    IndependentSVC,
    MinimaxMTL,
    PartiallySharedMKL,
    SparseMTL,
    UniformKernelSVC,
)
from ..estimators import ParetoMKLClassifier
from ..kernels import as_bank
from ..multitask import MultiTaskClassifier
from ..path import trace_grid
from ..progress import Progress
from ..search import ParetoMKLClassifierCV
from .plan import Settings
from .protocol import Part, Split


@dataclass
class Point:
    """One candidate of a method.

    params: what makes it differ from others; cv: mean score over the folds; and, where it was fitted on the whole
    training part and tested, accuracy: of the votes, or the mean over the tasks; right: correct test samples of each
    task; gap: its certificate; objectives and theta: of "pareto".
    """

    params: dict[str, float]
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
    """What a method did on a split: its points, the tasks with their numbers of test samples, and sweeps in all."""

    points: list[Point]
    tasks: list[str] = field(default_factory=list)
    n_test: list[int] = field(default_factory=list)
    n_sweeps: int = 0

    @property
    def gap(self) -> float:
        """The largest gap of a tested point."""
        return max((point.gap for point in self.points if point.gap is not None), default=float("nan"))

    @property
    def chosen(self) -> Point:
        """The tested point of highest cross-validated score, the first among equals."""
        return max((point for point in self.points if point.tested), key=lambda point: point.cv)


# ------------------------------------------------------------------------------------------------ testing
def count_right(decisions: Array, y: AnyArray, classes: Sequence[tuple[Any, Any]]) -> tuple[list[int], list[int]]:
    """Correct samples of each task, and all its samples.

    decisions (n_samples, n_tasks): f_t(x), NaN where a task is not asked; a task that is a pair of classes is judged by
    the samples of these classes.
    """
    right, total = [], []
    for f, (negative, positive) in zip(decisions.T, classes, strict=True):
        judged = ~np.isnan(f) & ((y == negative) | (y == positive))
        right.append(int(((f > 0) == (y == positive))[judged].sum()))
        total.append(int(judged.sum()))
    return right, total


def overall(model: MultiTaskClassifier, decisions: Array, y: AnyArray, right: list[int], total: list[int]) -> float:
    """Accuracy by votes where the classes are the tasks, else the mean of the task accuracies."""
    if model._kind == "classes":
        return float(np.mean(model.classes_[model._scores_of_classes(decisions).argmax(axis=1)] == y))
    return float(np.mean(np.array(right) / total))


def put_to_test(model: MultiTaskClassifier, test: Part, point: Point, outcome: Outcome) -> None:
    """Fill in how a fitted model does on the test part."""
    decisions = model._pair_decisions(model._read(test.X, test.tasks, reset=False))
    right, total = count_right(decisions, test.y, model._classes_of_task)
    point.right, point.accuracy = right, overall(model, decisions, test.y, right, total)
    point.gap = float(model.gap_)
    outcome.tasks, outcome.n_test = list(model.task_names_), total


# ------------------------------------------------------------------------------------------------- pareto
def pareto(split: Split, settings: Settings) -> Outcome:
    """Every C and every p: cross-validated, and the whole path of each C tested.

    Which C and which p to report is left to the tables; p = 1 is traditional multi-task MKL.
    """
    ps, Cs = list(settings.ps), list(settings.Cs)
    train, test = split.train, split.test
    search = ParetoMKLClassifierCV(ps, Cs, cv=split.folds, kernels=split.kernels, tol=settings.tol)
    results = search.fit(train.X, train.y, tasks=train.tasks).cv_results_
    scores = {
        (pair["C"], pair["p"]): cv for pair, cv in zip(results["params"], results["mean_test_score"], strict=True)
    }
    model = ParetoMKLClassifier(kernels=split.kernels, tol=settings.final_tol)
    training = model._read_training(train.X, train.y, None, train.tasks)
    bank = as_bank(model.kernels).fit(training.samples.data)
    solver, problem = model._parts(bank, training.samples.data, training.tasks, training.weights, ps)
    outcome = Outcome([])
    for C, at_C, solutions in trace_grid(problem, ps, Cs, solver, Progress(1, model.tol, 0)):
        outcome.n_sweeps += at_C.tasks.n_sweeps
        for p, solution in zip(ps, solutions, strict=True):
            fitted = model._at(solution, p, C, at_C.tasks.n_sweeps, training, bank)
            point = Point({"C": C, "p": p}, float(scores[C, p]))
            put_to_test(fitted, test, point, outcome)
            point.objectives, point.theta = fitted.objectives_.tolist(), fitted.theta_.tolist()
            outcome.points.append(point)
    return outcome


# ---------------------------------------------------------------------------------------------- the others
Make = Callable[..., MultiTaskClassifier]


def choose_and_test(
    split: Split, make: Make, grid: Sequence[dict[str, float]], settings: Settings, apart: str | None = None
) -> Outcome:
    """Score every candidate in every fold, fit the best on the whole training part, and test it.

    ``make(tol=…, **candidate)`` is the classifier. With ``apart``, the name of a parameter, the best candidate of each
    of its values is tested.
    """
    outcome = Outcome([Point(candidate, _cross_validate(split, make, candidate, settings)) for candidate in grid])
    values = dict.fromkeys(0.0 if apart is None else point.params[apart] for point in outcome.points)
    for value in values:
        rivals = [point for point in outcome.points if apart is None or point.params[apart] == value]
        best = max(rivals, key=lambda point: point.cv)
        _fit_and_test(split, make(tol=settings.final_tol, **best.params), best, outcome)
    return outcome


def _cross_validate(split: Split, make: Make, candidate: dict[str, float], settings: Settings) -> float:
    scores = []
    for rows, held_out in split.folds:
        fit, rest = split.train[rows], split.train[held_out]
        model = make(tol=settings.tol, **candidate).fit(fit.X, fit.y, tasks=fit.tasks)
        scores.append(model.score(rest.X, rest.y, tasks=rest.tasks))
    return float(np.mean(scores))


def _fit_and_test(split: Split, model: MultiTaskClassifier, point: Point, outcome: Outcome) -> None:
    model.fit(split.train.X, split.train.y, tasks=split.train.tasks)
    put_to_test(model, split.test, point, outcome)
    outcome.n_sweeps += int(getattr(model, "n_sweeps_", 0))


def combinations(**values: Sequence[float]) -> list[dict[str, float]]:
    """All candidates of a grid, those of the first values first."""
    return [dict(zip(values, point, strict=True)) for point in product(*values.values())]


def independent(split: Split, settings: Settings) -> Outcome:
    """The paper's baseline: each task learns its own kernel weights; one C for all."""
    return choose_and_test(split, partial(IndependentMKL, kernels=split.kernels), combinations(C=settings.Cs), settings)


def uniform(split: Split, settings: Settings) -> Outcome:
    """Nothing learned about the kernel."""
    return choose_and_test(
        split, partial(UniformKernelSVC, kernels=split.kernels), combinations(C=settings.Cs), settings
    )


def sparse(split: Split, settings: Settings) -> Outcome:
    """Sparse MTL of Rakotomamonjy et al.; p, q and C by cross-validation."""
    grid = combinations(C=settings.sparse_Cs, p=settings.sparse_ps, q=settings.sparse_qs)
    return choose_and_test(split, partial(SparseMTL, kernels=split.kernels), grid, settings)


def tang(split: Split, settings: Settings) -> Outcome:
    """Partially shared kernels of Tang et al.; β and C by cross-validation."""
    grid = combinations(C=settings.Cs, beta=[share * split.n_tasks for share in settings.shares])
    return choose_and_test(split, partial(PartiallySharedMKL, kernels=split.kernels), grid, settings)


def minimax_trace(split: Split, settings: Settings) -> Outcome:
    """Minimax MTL under the trace norm; the best of each α is tested, as the paper reports the better α."""
    grid = combinations(alpha=[share * split.n_tasks for share in settings.alphas], mu=settings.mus)
    return choose_and_test(split, partial(MinimaxMTL, "trace"), grid, settings, apart="alpha")


def minimax_common(split: Split, settings: Settings) -> Outcome:
    """Minimax MTL with a common part."""
    alphas = [share * split.n_tasks for share in settings.alphas]
    grid = combinations(alpha=alphas, mu=settings.mus, lam=settings.lams)
    return choose_and_test(split, partial(MinimaxMTL, "ep"), grid, settings, apart="alpha")


def independent_svc(split: Split, settings: Settings) -> Outcome:
    """What most people would do: for each task an SVM of one Gaussian kernel, C and width by its own folds."""
    point = Point({}, float("nan"))
    outcome = Outcome([point])
    own = None if split.kernels == "default" else split.kernels  # the nine Gaussians of the default bank
    model = IndependentSVC(Cs=settings.Cs, kernels=own, cv=settings.n_folds, tol=settings.tol)
    _fit_and_test(split, model, point, outcome)
    point.cv = float(np.mean(model.cv_scores_.max(axis=(1, 2))))
    return outcome


RUNNERS: dict[str, Callable[[Split, Settings], Outcome]] = {
    "pareto": pareto,
    "independent": independent,
    "sparse": sparse,
    "tang": tang,
    "mm-aep": minimax_trace,
    "mm-ep": minimax_common,
    "independent-svc": independent_svc,
    "uniform": uniform,
}


def run_method(method: str, split: Split, settings: Settings) -> Outcome:
    """Run one method; that a candidate did not reach its tolerance is told by its gap, not by a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return RUNNERS[method](split, settings)
