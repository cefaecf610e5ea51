"""From data to the page: hold out samples, choose C, s and κ, trace a dense path, and score every model on it."""

from __future__ import annotations

import html
import math
import numbers
import os
import warnings
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from inspect import signature
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.base import clone

from .._data.labels import Blocks, Decided, Labelling, Samples, as_blocks
from .._data.numbers import Targets
from .._data.reading import read_samples, take_rows
from .._data.tasks import as_labels, as_sources, is_matrix, listed, missing_labels, task_column_of
from .._fitting.models import decide_all
from .._learn.estimators import ParetoMKLClassifier, ParetoMKLRegressor
from .._learn.path import ParetoPath, parameters_of, pareto_path
from .._select.baselines import compare
from .._select.folds import noted
from .._select.results import Comparison, CrossValidation, Sharing
from .._select.scores import Judge, make_judge
from .._select.search import ParetoMKLClassifierCV, ParetoMKLRegressorCV
from .._select.splits import (
    MultiTaskGroupKFold,
    MultiTaskKFold,
    MultiTaskStratifiedGroupKFold,
    MultiTaskStratifiedKFold,
    make_splits,
)
from .._select.task_scores import ScoresByTask, score_by_task
from .._select.ways import is_auto, ways_asked
from .._show.code import with_loading
from .._show.page import TITLE, PageData, build_page, dense_ps
from .._show.words import parameters, verdict
from .._tools.checks import check_count, check_exponents, check_number, check_share, shown
from .._tools.files import check_writable, write_whole
from .._tools.public import PublicNames
from .._tools.shares import SHARES
from .._tools.typing import AnyArray, Array, IntArray
from .._tools.wording import Measure
from ..exceptions import RareLabelWarning
from ..kernels._kernels import KernelLike, as_bank
from ..solvers import CutPool

MOST_PARTS = 10  # the held-out share is a fraction with at most this denominator
DECISION_BYTES = 256 * 2**20  # limit on the decisions in memory, which sets how many models are judged at a time
ROUGH = 1e-3  # from this tol on, neighbouring points of the path may share a model
MOST_DRAWN = 100_000  # predictions on a page: 800 samples at 121 exponents take half a megabyte
STEPS = 9999  # predictions are rounded to this many steps of their range
OF_THE_PAGE = {"solver", "tol", "max_iter", "n_jobs", "verbose"}  # not taken from the estimator whose path is traced

Search: TypeAlias = ParetoMKLClassifierCV | ParetoMKLRegressorCV
Estimator: TypeAlias = ParetoMKLClassifier | ParetoMKLRegressor
Seed: TypeAlias = int | np.random.RandomState | None


@dataclass(frozen=True, kw_only=True)
class HeldOutResults:
    """How the models of a path do on samples that they did not learn from; see :class:`TradeOff`."""

    scores: Array
    scores_overall: Array
    measure: Measure
    n_held_out: IntArray
    low: Array
    high: Array
    low_overall: Array
    high_overall: Array
    predictions: Predictions | None = None
    confusion: Confusion | None = None


@dataclass(frozen=True, kw_only=True)
class TradeOff(HeldOutResults):
    """What :func:`trade_off_page` found.

    Attributes
    ----------
    path : ParetoPath
        The dense path on the training set, or the path that you gave.
    scores : array of shape (n_points, n_tasks)
        Score on the held-out samples of each task; NaN where undefined. If a task is a pair of classes, only samples of
        these classes count. Accuracy, or R² for regression, unless the search has ``scoring``.
    scores_overall : array of shape (n_points,)
        Score of all tasks together: of the votes if the tasks are pairs of classes, else the mean over the tasks.
    measure : Measure
        What the scores are.
    n_held_out : array of shape (n_tasks,)
    low, high, low_overall, high_overall : arrays of the shapes of ``scores`` and ``scores_overall``
        Ends of the 95 % intervals over the held-out samples; NaN for scores without a formula for it.
    predictions : Predictions or None
        Predicted and true numbers of held-out samples; None for classification.
    confusion : Confusion or None
        Which classes the models confuse; None for regression.
    train, test : arrays of int
        The samples that the models learned from (None for a path that you gave), and the held-out ones.
    C, s, capacity, epsilon : floats
        Parameters of the path, None for one that you gave; capacity is None for kernels without a capacity penalty,
        epsilon if the loss has none.
    cv : CrossValidation or None
    comparison : Comparison or None
        The scores of simpler models.
    sharing : Sharing or None
        The scores of the ways to share; None if they were not compared.
    by_task : ScoresByTask or None
        The scores of the chosen model on the held-out samples, per task and over all, with intervals.
    seconds : dict
        Where the time went: ``"cross-validation"``, ``"path"``, ``"scores"`` and ``"baselines"``.
    title, facts, verdict, refit_note : str, tuples of str, and str
        Texts of the page, see :func:`build_page`.
    html, file : str, and pathlib.Path or None
        The page, and the file it was written to.
    """

    path: ParetoPath
    test: IntArray
    train: IntArray | None = None
    C: float | None = None
    s: float | None = None
    capacity: float | None = None
    epsilon: float | None = None
    cv: CrossValidation | None = None
    comparison: Comparison | None = None
    sharing: Sharing | None = None
    by_task: ScoresByTask | None = None
    seconds: dict[str, float]
    title: str = TITLE
    facts: tuple[str, ...] = ()
    verdict: tuple[str, ...] = ()
    refit_note: str = ""
    file: Path | None = None

    def __repr__(self) -> str:
        size = len(self.html.encode()) / 1e6
        chosen = "" if self.C is None else f"C={self.C:g}, s={self.s:g}, "
        return f"TradeOff({self.path!r}, {chosen}{len(self.test)} held-out samples, page of {size:.2f} MB)"

    @cached_property
    def html(self) -> str:
        return self.page()

    def page(
        self, *, loading: str = "", predicting: str = "", refit_note: str | None = None, next_step: str = ""
    ) -> str:
        """Build the page.

        Parameters
        ----------
        loading : str
            Lines of Python that create X, y and tasks, shown before the line that fits the model again.
        predicting : str
            Lines of Python shown after it, with ``{model}`` for the name of the model.
        refit_note : str, default=None
            Shown below that line, see :func:`build_page`; None says how the samples were split.
        next_step : str
            A sentence that ends the verdict on top of the page.

        Returns
        -------
        page : str
            HTML that needs no other file.
        """
        judged = {field.name: getattr(self, field.name) for field in fields(HeldOutResults)}
        return build_page(
            self.path,
            **judged,
            cv=self.cv,
            comparison=self.comparison,
            sharing=self.sharing,
            title=self.title,
            facts=self.facts,
            verdict=[*self.verdict, next_step] if next_step else self.verdict,
            refit=with_loading(self.path.refit, loading, predicting),
            refit_note=self.refit_note if refit_note is None else refit_note,
        )

    def _repr_html_(self) -> str:
        """The page in a frame."""
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" sandbox="allow-scripts allow-downloads" '
            f'title="{html.escape(TITLE)}" style="width:100%;height:820px;border:1px solid #8884"></iframe>'
        )


def trade_off_page(
    model: Search | Estimator | ParetoPath,
    X: Any,
    y: Any,
    *,
    tasks: Any = None,
    groups: Any = None,
    test_size: float = 0.25,
    random_state: Seed = 0,
    n_points: int = 121,
    tol: float = 1e-6,
    baselines: bool = True,
    max_task_rows: int | None = None,
    title: str = TITLE,
    file: str | os.PathLike[str] | None = None,
) -> TradeOff:
    """Show what p does to your tasks: one HTML file with a slider over a dense, certified path.

    The function first holds out some samples, stratified by task and label (by task only for regression). On the
    others, a clone of the search chooses C, s and the capacity of kernels, and says which p it would pick. With these
    values the function traces a path of ``n_points`` exponents and scores every model on the held-out samples. It also
    compares the chosen model with simpler ones on the same folds and the same held-out samples.

    Parameters
    ----------
    model : search, estimator or ParetoPath
        - :class:`~paretomkl.ParetoMKLClassifierCV` or :class:`~paretomkl.ParetoMKLRegressorCV`, fitted or not: its
          parameters say how to choose. ``scoring`` also judges the held-out samples, for each task and as the mean over
          the tasks; names of scores that begin with ``worst_`` are the score of the worst task. If there are several
          ways to ``share``, the chosen one is compared with simpler models; the path is that of the shared kernel.
        - :class:`~paretomkl.ParetoMKLClassifier` or :class:`~paretomkl.ParetoMKLRegressor`: nothing is chosen, and the
          page shows no simpler models; p is not used.
        - :class:`~paretomkl.ParetoPath`: its models are scored on all of X and y, which they should not have seen.
          Nothing is held out, chosen or traced, so only ``tasks``, ``title`` and ``file`` matter.
    X, y, tasks
        As in the ``fit`` of the estimators.
    groups : array-like of shape (n_samples,), default=None
        The group of each row, such as the patient that it is from: rows of a group are held out, and divided into
        folds, together.
    test_size : float, default=0.25
        Share of the samples to hold out, rounded to a fraction with a denominator of at most ten.
    random_state : int, RandomState or None, default=0
        Seed of the split.
    n_points : int, default=121
        Number of exponents, see :func:`dense_ps`; others that the search tries are added.
    tol : float, default=1e-6
        Relative gap at every exponent. Each exponent is solved on its own, to a smaller gap than one model needs, so
        that the curves are smooth.
    baselines : bool, default=True
        Whether to compare with simpler models, see :func:`compare`.
    max_task_rows : int, default=None
        Learn from at most this many training samples of a task, drawn at random within classes; the page says so. None
        uses all.
    title : str
        Title of the page.
    file : path, default=None
        The file to write the page to; it is written completely or not at all.

    Returns
    -------
    result : TradeOff
        The path, the scores of its models, and the page.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl import ParetoMKLClassifier
    >>> from paretomkl.report import trade_off_page
    >>> result = trade_off_page(ParetoMKLClassifier(C=10.0), *load_iris(return_X_y=True), n_points=20)
    >>> result.scores.shape, len(result.test)
    ((20, 3), 38)
    """
    X = as_blocks(X)
    samples = _Given(X, y, tasks)
    about: dict[str, Any] = {"title": title, "file": None if file is None else check_writable(file)}
    if isinstance(model, ParetoPath):
        found = _judge_path(model, samples, about)
    else:
        ps = _check_model(model, dense_ps(n_points))
        if max_task_rows is not None:
            check_count("max_task_rows", max_task_rows)
        by: dict[str, Any] = {"task_column": model.task_column, "test_size": test_size, "random_state": random_state}
        by["stratify"] = model.machine_kind.reads == "labels"
        train, test = held_out_split(X, y, tasks=tasks, groups=groups, **by)
        drawn = samples.draw(train, model.task_column, max_task_rows, by["stratify"])
        about |= {
            "train": drawn,
            "test": test,
            "refit_note": _how_to_split(tasks is not None, groups is not None, **by),
        }
        about["facts"] = (_sizes_in_words(len(train), len(drawn), len(test)),)
        learn_from, held_out = (samples.take(rows, drawn, model.kernels) for rows in (drawn, test))
        found = _learn_and_judge(model, learn_from, held_out, take_rows(groups, drawn), ps, tol, baselines, about)
    if found.file is not None:
        write_whole(found.file, found.html)
    return found


class _Given(NamedTuple):
    """Samples with their labels and tasks, as users give them."""

    X: Any
    y: Any
    tasks: Any

    def take(self, rows: IntArray, train: IntArray, kernels: KernelLike) -> _Given:
        """Some of the samples; the columns of a stack of kernels are the samples to learn from."""
        X = self.X.take(rows, train) if isinstance(self.X, Blocks) else take_rows(self.X, rows, train, kernels)
        return _Given(X, take_rows(self.y, rows), take_rows(self.tasks, rows))

    def sources(self, task_column: int | str | None) -> AnyArray | None:
        """The task of each sample, or None without tasks."""
        return as_sources(self.tasks, len(self.y)) if task_column is None else task_column_of(self.X, task_column)

    def draw(self, rows: IntArray, task_column: int | str | None, most: int | None, stratify: bool) -> IntArray:
        """At most ``most`` of these rows for each task, with ``stratify`` in the same class proportions; None: all."""
        if most is None:
            return rows
        labels = as_labels(self.y, "y").ravel() if stratify and not is_matrix(self.y) else None
        rng, kept = np.random.default_rng(0), []
        for mine in _groups(rows, self.sources(task_column)):
            share = min(1.0, most / len(mine))
            kept += [rng.permutation(cell)[: math.ceil(share * len(cell))] for cell in _groups(mine, labels)]
        return np.sort(np.concatenate(kept))

    def of_tasks_in(self, others: _Given, task_column: int | str | None) -> _Given:
        """The samples whose task is among those of the others."""
        own, known = self.sources(task_column), others.sources(task_column)
        if own is None or known is None:
            return self
        names = set(listed(known))
        rows = np.flatnonzero([name in names for name in listed(own)])
        return _Given(*(take_rows(values, rows) for values in self))


def _groups(rows: IntArray, labels: AnyArray | None) -> list[IntArray]:
    """The rows of each label."""
    if labels is None:
        return [rows]
    found: dict[Hashable, list[int]] = {}
    for row, label in zip(rows.tolist(), listed(labels[rows]), strict=True):
        found.setdefault(label, []).append(row)
    return [np.array(cell) for cell in found.values()]


def _check_model(model: object, ps: Sequence[float]) -> list[float]:
    """The exponents of the page, which include those that a search tries; raises for models without such a page."""
    if not isinstance(model, Search | Estimator):
        raise ValueError(
            "trade_off_page takes a search (ParetoMKLClassifierCV, ParetoMKLRegressorCV), an estimator or a ParetoPath "
            f"before X and y, got {shown(model)}."
        )
    ways = [model.share] if isinstance(model, Estimator) else ways_asked(model)
    if [check_share(way) for way in ways] != ["kernel"] and not (isinstance(model, Search) and len(ways) > 1):
        raise ValueError(
            f"The page is about tasks that share their kernel, but share={model.share!r}; use a search with "
            f"share=['kernel', {ways[0]!r}] to compare both."
        )
    return sorted({*ps, *(check_exponents(model.ps) if isinstance(model, Search) else [])})


def held_out_split(
    X: Any,
    y: Any,
    *,
    tasks: Any = None,
    groups: Any = None,
    task_column: int | str | None = None,
    test_size: float = 0.25,
    random_state: Seed = 0,
    stratify: bool = True,
) -> tuple[IntArray, IntArray]:
    """Split samples into a training and a held-out part exactly as :func:`trade_off_page` does.

    Parameters
    ----------
    X, y, tasks, groups, task_column : as in :func:`trade_off_page`
        The samples, their tasks and their groups.
    test_size : float, default=0.25
        Share of the samples to hold out, rounded to a fraction with a denominator of at most ten.
    random_state : int, RandomState or None, default=0
        Seed of the split.
    stratify : bool, default=True
        Whether to stratify by task and label; False, for regression, stratifies by task only.

    Returns
    -------
    train, test : arrays of int
        Indices of the samples in increasing order.

    Examples
    --------
    >>> import numpy as np
    >>> train, test = held_out_split(np.zeros((8, 1)), ["no", "yes"] * 4)
    >>> len(train), len(test)
    (6, 2)
    """
    check_number("test_size", test_size, lambda v: 0 < v < 1, "between 0 and 1")
    share = Fraction(float(test_size)).limit_denominator(MOST_PARTS)
    if not 0 < share < 1:
        raise ValueError(f"test_size must be from 0.1 to 0.9, got {test_size}.")
    if task_column is not None:
        tasks = task_column_of(X, task_column)
    kind: Any = MultiTaskStratifiedKFold if stratify else MultiTaskKFold
    if groups is not None:
        kind = MultiTaskStratifiedGroupKFold if stratify else MultiTaskGroupKFold
    folds = kind(share.denominator, shuffle=True, random_state=random_state)
    with warnings.catch_warnings():
        # a label with fewer samples than parts is missing from some parts; for a single split that does no harm
        warnings.simplefilter("ignore", RareLabelWarning)
        parts = make_splits(folds, as_blocks(X), y, tasks, groups, stratify=stratify)
    test = np.sort(np.concatenate([held_out for _, held_out in parts[: share.numerator]]))
    return np.setdiff1d(np.concatenate(parts[0]), test), test


def _how_to_split(
    tasks: bool, groups: bool, task_column: int | str | None, test_size: float, random_state: Seed, stratify: bool
) -> str:
    given = ["X", "y"] + ["tasks=tasks"] * tasks + ["groups=groups"] * groups
    given += [f"task_column={task_column!r}"] * (task_column is not None)
    seed = random_state if isinstance(random_state, numbers.Integral) or random_state is None else "random_state"
    given += [f"test_size={test_size!r}", f"random_state={seed}"] + ["stratify=False"] * (not stratify)
    return (
        "This code learns from all samples. The models on this page learned only from the training set: "
        f"`train, test = paretomkl.report.held_out_split({', '.join(given)})`."
    )


def _sizes_in_words(n_all: int, n_train: int, n_test: int) -> str:
    drawn = f" drawn from {n_all:,}" * (n_train < n_all)
    return f"learned from {n_train:,} samples{drawn}, tested on {n_test:,} others"


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    began = perf_counter()
    yield
    seconds[stage] = perf_counter() - began


def _learn_and_judge(
    model: Search | Estimator,
    learn_from: _Given,
    held_out: _Given,
    groups: Any,
    ps: Sequence[float],
    tol: float,
    baselines: bool,
    about: dict[str, Any],
) -> TradeOff:
    """Choose if the model is a search, trace the path, score its models, and compare them with simpler ones."""
    judge = make_judge(getattr(model, "scoring", None), regression=model.machine_kind.reads == "numbers")
    read = {"kernels": model.kernels, "task_column": model.task_column}
    judge = judge.of_samples(**learn_from._asdict(), **read)
    seconds: dict[str, float] = {}
    search: Search | None = None
    best: Estimator
    with _timed(seconds, "cross-validation"):
        if not isinstance(model, Search):
            best = model
        else:
            search = _chosen(model, learn_from, judge, groups)
            best = search.estimator_at(search.best_indices_["kernel"])
            best.set_params(n_jobs=model.n_jobs, verbose=model.verbose)
            about |= {"cv": CrossValidation.from_search(search, judge.measure)}
            about |= {"sharing": Sharing.from_search(search, judge.measure)}
    with _timed(seconds, "path"):
        # a fine page needs a separate solution for every step of the slider
        path = _trace(best, learn_from, ps, CutPool(tol=tol, borrow=0.0 if tol < ROUGH else 0.1))
    path = replace(path, fitted_with=parameters_of(best, tol, learn_from.tasks is not None))
    with _timed(seconds, "scores"):
        judged = _judge(path, judge, held_out)
    with _timed(seconds, "baselines"):
        if baselines and search is not None:
            about["comparison"] = _compare(search, best, learn_from, held_out, judge, judged, path.ps, tol)
    if search is not None:
        several, compared = about["sharing"] is not None, about.get("comparison")
        found = verdict(search.best_share_, search.best_params_, about["cv"], compared, len(path.task_names), several)
        about["verdict"] = tuple(found)
    if search is not None and search.best_share_ != "kernel":
        fitted = search.best_estimator_
    else:
        fitted = noted(copy(best), path.reader)
        fitted.model_ = path.models[list(path.ps).index(1.0 if search is None else best.p)]
    about["by_task"] = score_by_task(fitted, held_out.X, held_out.y, tasks=held_out.tasks, scoring=judge.scorer)
    if about.get("comparison") is not None:
        about["comparison"] = _with_interval(about["comparison"], about["by_task"])
    given, bank, own = best.get_params(deep=False), as_bank(best.kernels), best.machine_kind.parameters
    chosen: dict[str, Any] = {
        "C": float(given["C"]),
        "capacity": float(bank.capacity) if bank.normalization == "capacity" else None,
        "s": float(given["s"]),
        "epsilon": float(given["epsilon"]) if "epsilon" in own else None,
    }
    about["facts"] = (parameters(chosen), *about["facts"])
    return TradeOff(path=path, seconds=seconds, **vars(judged), **chosen, **about)


def _judge_path(path: ParetoPath, samples: _Given, about: dict[str, Any]) -> TradeOff:
    """Score the models of a path on samples that they have not seen."""
    reads = path.along_p().reader.reading.machine.reads
    if reads == "nothing":
        raise ValueError("A path of outlier detectors has no scores to show, because there are no labels.")
    seconds: dict[str, float] = {}
    with _timed(seconds, "scores"):
        judged = _judge(path, make_judge(regression=reads == "numbers"), samples)
    n_samples = len(samples.y)
    facts = (f"tested on {n_samples:,} samples",)
    return TradeOff(path=path, test=np.arange(n_samples), seconds=seconds, facts=facts, **vars(judged), **about)


def _chosen(model: Search, samples: _Given, judge: Judge, groups: Any) -> Search:
    """A clone of the search that has chosen; the page itself traces the path of a shared kernel."""
    search: Search = clone(model).set_params(scoring=judge.scoring)
    ways = sorted({"kernel", *ways_asked(model)}, key=SHARES.index)
    if not is_auto(model.share):
        search.set_params(share=ways if len(ways) > 1 else "kernel")
    others = [way for way in SHARES if way != "kernel"]  # the page has no path for these
    search.choose(samples._asdict(), groups, refit=others)
    if "kernel" not in search.best_indices_:
        raise ValueError(
            "The page is about tasks that share their kernel, which cannot be judged on folds that leave tasks out."
        )
    return search


def _trace(estimator: Estimator, samples: _Given, ps: Sequence[float], solver: CutPool) -> ParetoPath:
    """The path of an estimator."""
    known = signature(pareto_path).parameters.keys() - OF_THE_PAGE
    given = {name: value for name, value in estimator.get_params(deep=False).items() if name in known}
    given |= {"machine": estimator.machine_kind, "n_jobs": estimator.n_jobs, "verbose": estimator.verbose}
    return pareto_path(**samples._asdict(), ps=ps, tol=solver.tol, solver=solver, **given)


def _compare(
    search: Search,
    best: Estimator,
    learn_from: _Given,
    held_out: _Given,
    judge: Judge,
    judged: HeldOutResults,
    ps: Array,
    tol: float,
) -> Comparison:
    """The chosen model, however its tasks share, and simpler ones.

    If parameters were chosen on some samples, all learn from these only.
    """
    rows, about, at = search.search_rows_, "", list(ps).index(best.p)
    if rows is not None:
        about = (
            f"To save time, all methods here learn from the same {len(rows):,} of {len(learn_from.y):,} samples; the "
            "models on the page learn from all of them."
        )
        learn_from = learn_from.take(rows, rows, best.kernels)
        everyone = np.arange(len(held_out.y))
        held_out = held_out.take(everyone, rows, best.kernels).of_tasks_in(learn_from, best.task_column)
        search = copy(search)
        search = copy(search)
        search.splits_ = [(np.searchsorted(rows, train), np.searchsorted(rows, test)) for train, test in search.splits_]
        search.search_rows_, search.n_samples_ = None, len(rows)
        if search.best_share_ == "kernel":
            judged, at = _judge(_trace(best, learn_from, [best.p], CutPool(tol=tol)), judge, held_out), 0
        else:
            search.best_estimator_ = search.estimator_at(search.best_index_).fit(**learn_from._asdict())
    running: dict[str, Any] = {"n_jobs": search.n_jobs, "verbose": search.verbose}
    found = replace(compare(search, **learn_from._asdict(), held_out=tuple(held_out), **running), about=about)
    if search.best_share_ != "kernel":  # the path has no model of it
        return found
    score, low, high = (float(v[at]) for v in (judged.scores_overall, judged.low_overall, judged.high_overall))
    ours = replace(found.ours, held_out=score, held_out_interval=(low, high))
    return replace(found, ours=ours)


def _with_interval(comparison: Comparison, by_task: ScoresByTask) -> Comparison:
    """The comparison with the interval of our held-out score, if it has none and these are scores of the same model."""
    ours, mean = comparison.ours, by_task.mean
    same = ours.held_out is not None and math.isclose(mean.score, ours.held_out)
    if not same or not math.isnan(ours.held_out_interval[0]):
        return comparison
    return replace(comparison, ours=replace(ours, held_out_interval=(mean.low, mean.high)))


def _judge(path: ParetoPath, judge: Judge, given: _Given) -> HeldOutResults:
    """Scores of every model with standard errors, sample counts, and what the models answer."""
    samples, y = read_samples(path.reader, given.X, tasks=given.tasks), given.y
    models = {id(model): model for model in path.models}  # neighbouring points may share a model
    tasks: Any = path.models[0].tasks
    numeric = isinstance(tasks, Targets)
    answers: Any = (
        Predictions.drawn_from(tasks, samples, y, len(path)) if numeric else Confusion.drawn_from(tasks, samples, y)
    )
    step = max(1, int(DECISION_BYTES // (8 * len(samples) * tasks.n_tasks)))
    judged: dict[int, tuple[Any, ...]] = {}
    for first in range(0, len(models), step):
        some = list(models.values())[first : first + step]
        for model, decided in zip(some, decide_all(some, samples), strict=True):
            decisions = decided.matrix(tasks.n_tasks)
            judged[id(model)] = *judge.judge(tasks, decisions, samples, y), answers.of_model(tasks, decided)
    scores, low, high, counts, overall, drawn = zip(*(judged[id(model)] for model in path.models), strict=True)
    answers = answers.along(drawn)
    of_all, low_of_all, high_of_all = np.array(overall, dtype=float).T
    return HeldOutResults(
        scores=np.array(scores),
        scores_overall=of_all,
        measure=judge.measure,
        n_held_out=counts[0],
        low=np.array(low),
        high=np.array(high),
        low_overall=low_of_all,
        high_overall=high_of_all,
        predictions=answers if numeric else None,
        confusion=None if numeric else answers,
    )


@dataclass(frozen=True)
class Predictions(PublicNames):
    """Predicted and true numbers of held-out samples, or of some of them drawn evenly from all tasks.

    Parameters
    ----------
    tasks : array of int of shape (n_entries,)
        The task of each entry. A sample has one entry for each of its tasks.
    rows : array of int of shape (n_entries,)
        The sample of each entry.
    truth : array of shape (n_entries,)
    predicted : array of shape (n_points, n_entries)
        Predictions at each exponent of the path.
    n_all : int
        Number of entries before drawing.
    """

    _internal = ("along", "drawn_from", "of_model", "page_data")

    tasks: IntArray
    rows: IntArray
    truth: Array
    predicted: Array
    n_all: int

    @classmethod
    def drawn_from(cls, targets: Targets, samples: Samples, y: Any, n_points: int) -> Predictions:
        """The samples to show, without predictions yet."""
        missing = Decided.missing(targets.groups(samples), len(samples))
        parts = targets.by_task(replace(missing, values=np.zeros(missing.values.shape)), y)
        n_all = sum(len(rows) for _, _, rows in parts)
        share = min(1.0, MOST_DRAWN / n_points / max(1, n_all))
        rng = np.random.default_rng(0)
        drawn = []
        for t, (truth, _, rows) in enumerate(parts):
            some = np.sort(rng.permutation(len(rows))[: int(np.ceil(share * len(rows)))])
            drawn.append((np.full(len(some), t), rows[some], truth[some]))
        tasks, chosen, known = (np.concatenate(column) for column in zip(*drawn, strict=True))
        return cls(tasks, chosen, known, np.empty((0, len(chosen))), n_all)

    def of_model(self, targets: Targets, decided: Decided) -> Array:
        """The predictions of one model, (n_entries,), from its decisions."""
        slots = self.tasks if targets.kind == "matrix" else 0
        return targets.centre[self.tasks] + targets.spread[self.tasks] * decided.values[self.rows, slots]

    def along(self, of_points: Sequence[Array]) -> Predictions:
        """A copy with the predictions of every point of a path."""
        return replace(self, predicted=np.array(of_points))

    def page_data(self, points: IntArray) -> PageData:
        """What the page draws at these points of the path: whole steps of a range, which keep the file short."""
        predicted = self.predicted[points]
        low = float(min(self.truth.min(), predicted.min()))
        step = (float(max(self.truth.max(), predicted.max())) - low) / STEPS or 1.0
        return {
            "low": float(f"{low:.9g}"),
            "step": float(f"{step:.9g}"),
            "task": self.tasks.tolist(),
            "truth": np.rint((self.truth - low) / step).astype(int).tolist(),
            "predicted": np.rint((predicted - low) / step).astype(int).tolist(),
            "all": self.n_all,
        }


@dataclass(frozen=True)
class Confusion(PublicNames):
    """How many held-out samples of each class are predicted as each class, in each group.

    A group is a task, or all samples if the tasks are pairs of classes.

    Parameters
    ----------
    groups : list of n_groups str
    classes : list of n_groups lists of str
        The classes of each group, in the order of rows and columns.
    rows, truth : lists of n_groups arrays of int
        The samples of each group, and the index of their true class among its classes.
    labels : list of n_groups lists
        The classes as they appear in y.
    counts : list of n_groups int arrays of shape (n_points, n_classes, n_classes)
        Counts at each exponent of the path: rows are true classes, columns predicted ones.
    """

    _internal = ("along", "drawn_from", "of_model", "page_data")

    groups: list[str]
    classes: list[list[str]]
    rows: list[IntArray]
    truth: list[IntArray]
    labels: list[list[Hashable]]
    counts: list[IntArray]

    @classmethod
    def drawn_from(cls, labelling: Labelling, samples: Samples, y: Any) -> Confusion:
        """The held-out samples of each group, without predictions yet."""
        truth = labelling.truth(y)
        found = cls([], [], [], [], [], [])
        for rows, tasks in labelling.groups(samples):
            # each column of a label matrix is a task on the same rows
            parts = [(rows, [t]) for t in tasks] if truth.ndim == 2 else [(rows, list(tasks))]
            for mine, own in parts:
                true = truth[mine, own[0]] if truth.ndim == 2 else truth[mine]
                known = ~missing_labels(true)
                mine, true = mine[known], true[known]
                labels = _ordered([label for t in own for label in labelling.pairs[t]] + listed(true), labelling)
                several = labelling.kind in ("tasks", "matrix")
                found.groups.append(str(labelling.sources[own[0]]) if several else "")
                found.classes.append([_shown(label) for label in labels])
                found.rows.append(mine)
                found.truth.append(_codes(true, labels))
                found.labels.append(labels)
        return found

    @property
    def n_rows(self) -> int:
        """The number of labels to compare: one for each sample and task."""
        return sum(map(len, self.rows))

    @property
    def right(self) -> tuple[Array, Array]:
        """Share of correct predictions, (n_points, n_groups), NaN without samples; and sample counts, (n_groups,)."""
        sizes = np.array([len(rows) for rows in self.rows], dtype=float)
        hits = np.stack([np.trace(counts, axis1=1, axis2=2) for counts in self.counts], axis=1)
        return np.where(sizes > 0, hits / np.maximum(sizes, 1), np.nan), sizes

    def of_model(self, labelling: Labelling, decided: Decided) -> list[IntArray]:
        """The counts of one model, (n_classes, n_classes) for each group, from its decisions."""
        predicted = labelling.predictions(decided)
        matrix = predicted.ndim == 2
        counts = []
        for g, (rows, truth, labels) in enumerate(zip(self.rows, self.truth, self.labels, strict=True)):
            answers = _codes(predicted[rows, g] if matrix else predicted[rows], labels)
            table = np.zeros((len(labels), len(labels)), dtype=int)
            np.add.at(table, (truth, answers), 1)
            counts.append(table)
        return counts

    def along(self, of_points: Sequence[list[IntArray]]) -> Confusion:
        """A copy with the counts of every point of a path."""
        return replace(self, counts=[np.stack(of_group) for of_group in zip(*of_points, strict=True)])

    def page_data(self, points: IntArray) -> PageData:
        """What the page shows: the nonzero cells of each distinct table of a group, and which table each point has.

        This is short: neighbouring points mostly make the same predictions, and with many classes most cells are zero.
        """
        groups = []
        for name, classes, counts in zip(self.groups, self.classes, self.counts, strict=True):
            flat = counts[points].reshape(len(points), -1)
            states, at = np.unique(flat, axis=0, return_inverse=True)
            filled = [np.flatnonzero(state) for state in states]
            groups.append(
                {
                    "name": name,
                    "classes": classes,
                    "places": [places.tolist() for places in filled],
                    "counts": [state[places].tolist() for state, places in zip(states, filled, strict=True)],
                    "at": at.ravel().tolist(),
                }
            )
        return {"groups": groups}


def _ordered(labels: list[Hashable], labelling: Labelling) -> list[Hashable]:
    """Each label once, in the order of the tasks' classes; unknown labels come last."""
    known = labelling.pairs if labelling.kind == "matrix" else [listed(labelling.classes)]
    order = {label: k for k, label in enumerate(label for some in known for label in some)}
    return sorted(dict.fromkeys(labels), key=lambda label: order.get(label, len(order)))


def _codes(values: AnyArray, labels: list[Hashable]) -> IntArray:
    """The index of each value among the labels."""
    place = {label: k for k, label in enumerate(labels)}
    return np.array([place[value] for value in listed(values)], dtype=int)


def _shown(label: object) -> str:
    """A label as text; a label matrix with gaps holds floats, and 1.0 is shown as 1."""
    return f"{label:g}" if isinstance(label, float) else str(label)
