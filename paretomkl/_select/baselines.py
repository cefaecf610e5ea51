"""Compare a search with simple baselines on its folds.

For classes: the majority, an SVM per task, one SVM for all. For regression: the mean, and kernel ridge regressions.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from .._data.labels import Labelling
from .._data.numbers import Targets, deviations, levels, unexplained
from .._data.reading import Examples, PathReader, read_samples
from .._data.tasks import codes_of, listed, missing_labels, rows_by_code
from .._tools.checks import shown
from .._tools.running import SMALL_SYSTEM, Progress, blas_threads, effective_jobs
from .._tools.shares import Share
from .._tools.typing import AnyArray, Array, IntArray
from ..kernels._evaluation import gaps_in, one_below_the_other, side_by_side
from ..kernels._preparing import Preparation
from .held_out import held_out_parts, joined_folds
from .honest import best, choices, honest_scores, splits_of
from .intervals import Estimate
from .results import OURS, Comparison, Contender, TaskErrors
from .scorers import MultiTaskScorer, Part, plain_labels
from .scores import Answers, Judge, explained_estimate, make_judge
from .search import PathSearch
from .splits import TrainTest
from .task_scores import judged, training_levels

__all__ = ["compare"]

MOST_ROWS = 1000  # limit on rows for choosing parameters; the chosen models learn from all rows

Pair = tuple[float, float]  # the parameters of a model: its cost or penalty, and a factor of gamma="scale"


SIMPLEST: list[Any] = [None]  # the grid of a model that ignores the features
AS_GIVEN: list[Any] = [()]  # the grid of a model of one's own


def _simplest_first(costs: Sequence[float], widths: Sequence[float]) -> list[Pair]:
    """All pairs; the first one wins a tie."""
    return sorted(product(costs, widths), key=lambda pair: abs(np.log(pair)).sum())


def compare(
    search: PathSearch,
    X: object,
    y: object,
    *,
    tasks: object = None,
    held_out: tuple[object, object, object] | None = None,
    n_jobs: int | None = None,
    verbose: int | None = 0,
    share: Share | None = None,
    baselines: Mapping[str, Any] | None = None,
) -> Comparison:
    """Compare a search with simple baselines, on the same folds and by the same score.

    The baselines are the majority class of each task, one SVM per task, and one SVM on all tasks together with
    indicators of the task as extra columns. Without tasks, the last two are the same and shown once. The SVMs have
    Gaussian kernels on standardised columns, C and gamma from a grid of twelve, and the class weights of the search.

    For regression, the baselines are the mean of each task, and kernel ridge regressions instead of SVMs, with penalty
    and gamma from a grid of twenty. ``errors`` of each contender then has R² and the root mean squared error of each
    task over the samples of all folds, each predicted by the fold that holds it out.

    All methods are judged alike: in each fold, a method has the parameters that the *other* folds choose, so no score
    is the best of many on the same samples. It is therefore a little lower than ``search.best_score_``.

    Parameters
    ----------
    search : fitted ParetoMKLClassifierCV or ParetoMKLRegressorCV
        Its folds are used again. With tasks, its ``scoring`` must be None or one from
        :func:`~paretomkl.model_selection.make_multitask_scorer`.
    X, y, tasks
        The data it was fitted to. With precomputed kernels, the majority class or the mean is the only baseline; of
        blocks, the others learn from those that are not stacks of kernels.
    held_out : tuple of X, y and tasks (or None), default=None
        More samples to score the chosen models on.
    n_jobs : int, default=None
        Number of folds to run in parallel; -1 uses all cores.
    verbose : int or None, default=0
        1 shows progress; None shows it on a terminal once two seconds have passed.
    share : str, default=None
        If the search covers several ways to share, compare only this one. With None, the search has in each fold the
        way that the other folds choose.
    baselines : mapping of str to estimator, default=None
        More models to compare with, by name: classifiers or regressors of scikit-learn. A clone of each learns from the
        training rows of each fold, of all tasks together, in the same columns as the SVMs, which contain the indicators
        of the tasks; a search such as :class:`~sklearn.model_selection.GridSearchCV` chooses within these rows.

    Returns
    -------
    comparison : Comparison
        The scores of the search and of the baselines, and a summary in words.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl import ParetoMKLClassifierCV
    >>> from paretomkl.report import compare
    >>> X, y = load_iris(return_X_y=True)
    >>> search = ParetoMKLClassifierCV(ps=[1.0, 10.0], Cs=[1.0, 10.0]).fit(X, y)
    >>> [baseline.name for baseline in compare(search, X, y).baselines]
    ['one SVM', 'the majority class']
    """
    regression = not search.stratify
    reader = PathReader(replace(search.reading, share="kernel", multi_class="one-vs-one"))
    examples = Examples(read_samples(reader, X, tasks=tasks, reset=True), y)
    labelling = examples.training(reader.reading).labelling
    with_tasks = labelling.kind not in ("classes", "single")
    if with_tasks and not (search.scoring is None or isinstance(search.scoring, MultiTaskScorer)):
        raise ValueError(f"Tasks are compared one by one; use scoring=make_multitask_scorer({search.scoring!r}).")
    judge = make_judge(search.scoring, regression=regression).of_tasks(labelling)
    splits = splits_of(search, len(examples.samples))
    ours = Contender(OURS, honest_scores(search, share))
    entries = Entries.of(examples, labelling)
    own = _check_own(baselines or {}, regression, entries.precomputed)
    folds = [entries.fold(*split) for split in splits]
    if held_out is not None:
        n = len(entries.rows)
        further = Examples(read_samples(reader, held_out[0], tasks=held_out[2]), held_out[1])
        entries = entries.joined(Entries.of(further, labelling))
        folds.append((np.arange(n), np.arange(n, len(entries.rows))))
        if hasattr(search, "best_estimator_"):  # not if it only chose
            ours = replace(ours, held_out=judge.score_model(search.best_estimator_, *held_out))
    groups, kind = np.arange(len(labelling.distinct_sources)), RegressionBaseline if regression else ClassBaseline
    model = kind(entries, groups, folds, len(splits), judge, search.reading.class_weight)
    by_task = None
    if regression:
        predicted, method, fitted = held_out_parts(search, X, y, tasks, n_jobs=n_jobs, share=share)
        by_task = judged(
            judge.metric, [joined_folds(predicted)], method, None, search.groups_, levels_of=training_levels(fitted)
        )
        ours = replace(ours, errors=_our_errors(predicted, len(splits), labelling.names))
    some = search.search_rows_ is not None
    about = f"The folds are made of {search.n_search_rows_:,} of {len(examples.samples):,} rows." if some else ""
    found = contenders(model, labelling.names, entries.precomputed, n_jobs, verbose, own)
    return Comparison(ours, found, judge.measure, about, sum(len(test) for _, test in splits), by_task)


def _check_own(baselines: Mapping[str, Any], regression: bool, precomputed: bool) -> Mapping[str, Any]:
    """Raise if a model of one's own cannot be compared."""
    if not isinstance(baselines, Mapping):
        raise TypeError(f"baselines must map names to estimators, such as {{'GP': model}}, got {shown(baselines)}.")
    if baselines and precomputed:
        raise ValueError("Models in baselines learn from columns, but the kernels of the search are precomputed.")
    kind, fits = ("regressor", is_regressor) if regression else ("classifier", is_classifier)
    for name, model in baselines.items():
        if not isinstance(name, str) or name == OURS:
            raise ValueError(f"Names in baselines must be texts other than {OURS!r}, got {shown(name)}.")
        if isinstance(model, type) or not (hasattr(model, "get_params") and fits(model)):
            raise TypeError(
                f"Baseline {name!r} must be a {kind} with the interface of scikit-learn, got {shown(model)}."
            )
    return baselines


# --------------------------------------------------------------------------------------------------- the search
def _our_errors(folds: list[list[Part]], n_folds: int, names: list[str]) -> TaskErrors | None:
    """Errors of a search, each fold at the point that the other folds choose; None if a fold has failed."""
    if len(folds) < n_folds:
        return None
    known = {part.name: (part.truth.astype(float), part.response, None) for part in joined_folds(folds)}
    if len(names) == 1:
        known = {names[0]: next(iter(known.values()))}
    parts = [known.get(name, (np.empty(0), np.empty(0), None)) for name in names]
    return task_errors(names, [parts])


# ------------------------------------------------------------------------------------------------------- rows
def thinned(entries: IntArray, strata: IntArray) -> IntArray:
    """At most about ``MOST_ROWS`` of the entries, with each stratum in proportion to within one."""
    if len(entries) <= MOST_ROWS:
        return entries
    shuffled = np.random.default_rng(0).permutation(entries)
    parts = [shuffled[strata[shuffled] == stratum] for stratum in np.unique(strata[entries])]
    kept = [mine[: math.ceil(len(mine) * MOST_ROWS / len(entries))] for mine in parts]
    return np.sort(np.concatenate(kept))


# --------------------------------------------------------------------------------------------------- the samples
@dataclass(frozen=True)
class Entries:
    """All known labels or targets in one column: a sample has one entry for each task whose y is known.

    data (n_samples, n_features); rows, groups, values (n_entries,): sample and task of each entry, and its target, or
    the position of its label in a row of ``labels`` (n_groups, n_labels), which is empty for regression.
    """

    data: AnyArray
    rows: IntArray
    groups: IntArray
    values: AnyArray
    labels: AnyArray
    matrix: bool  # whether the tasks are columns of y
    n_levels: Mapping[int, int] = field(default_factory=dict)  # of the columns that hold codes of categories

    @classmethod
    def of(cls, examples: Examples, tasks: Labelling | Targets) -> Entries:
        """The entries of all samples; labels that the tasks do not know are skipped."""
        samples, truth, sources, parts = examples.samples, tasks.truth(examples.y), tasks.distinct_sources, []
        known: list[Any] = [()] * len(sources)
        if isinstance(tasks, Labelling):
            known = tasks.classes if tasks.kind == "matrix" else [tasks.classes] * len(sources)
        labels = np.empty((len(sources), len(known[0])), dtype=object)
        of_source = [np.arange(len(samples))] * len(sources)
        if samples.sources is not None:
            of_source = rows_by_code(codes_of(samples.sources, sources), len(sources))
        for g, mine in enumerate(of_source):
            rows = mine[~missing_labels((truth if truth.ndim == 1 else truth[:, g])[mine])]
            values = (truth if truth.ndim == 1 else truth[:, g])[rows]
            if labels.size:
                labels[g], codes = known[g], codes_of(values, listed(known[g]))
                rows, values = rows[codes >= 0], codes[codes >= 0]
            parts.append((rows, np.full(len(rows), g), values))
        rows, groups, values = (np.concatenate(column) for column in zip(*parts, strict=True))
        data: Any = samples.data
        n_levels = samples.n_levels
        stacks = [block.columns for block in samples.blocks.values() if block.n_kernels]
        if stacks:  # SVMs learn from the other columns
            kept = np.delete(np.arange(data.shape[1]), np.r_[tuple(stacks)])
            data = data[:, kept]
            n_levels = {k: n_levels[column] for k, column in enumerate(kept.tolist()) if column in n_levels}
        if issparse(data):  # scikit-learn wants short indices, which this makes if they are enough
            data = csr_matrix((data.data, data.indices, data.indptr), shape=data.shape)
        return cls(data, rows, groups, values, labels, truth.ndim == 2, n_levels)

    @property
    def precomputed(self) -> bool:
        """Whether there are only kernel values, and no columns to learn from."""
        return self.data.ndim > 2 or self.data.shape[1] == 0

    def fold(self, train: IntArray, test: IntArray) -> TrainTest:
        """The entries of the training samples and of the test samples."""
        first, last = (np.flatnonzero(np.isin(self.rows, part)) for part in (train, test))
        return first, last

    def joined(self, other: Entries) -> Entries:
        """These entries, followed by the others."""
        pairs = (self.rows, other.rows + self.data.shape[0]), (self.groups, other.groups), (self.values, other.values)
        rows, groups, values = map(np.concatenate, pairs)
        # kernel values of other samples cannot be appended to a stack, and are not needed
        data = self.data if self.data.ndim > 2 else one_below_the_other([self.data, other.data])
        return Entries(data, rows, groups, values, self.labels, self.matrix, self.n_levels)

    def truth(self, entries: IntArray) -> AnyArray:
        """Labels or targets of some entries."""
        return self.values[entries] if not self.labels.size else self.labelled(entries, self.values[entries])

    def labelled(self, entries: IntArray, codes: Any) -> AnyArray:
        """The labels of the tasks of some entries with the given codes."""
        return self.labels[self.groups[entries], codes]

    def pair(self, group: int) -> list[Any] | None:
        """The labels of a task, if there are two of them."""
        codes = np.unique(self.values[self.groups == group])
        return self.labels[group, codes].tolist() if self.labels.size and len(codes) == 2 else None

    def features(self, fold: TrainTest, groups: IntArray) -> list[Array]:
        """Columns of both parts, standardised on the first, plus an indicator per group if there are several.

        Gaps and categories become numbers as in a bank of kernels, fitted to the first part too. Sparse columns stay
        sparse: they are divided by their deviations, but not centred, which changes no distance.
        """
        columns = [self.data[self.rows[part]] for part in fold]
        sparse = issparse(self.data)
        if self.n_levels or any(map(gaps_in, columns)):
            preparation = Preparation.of(columns[0], n_levels=self.n_levels)
            kept = preparation.expanded(np.arange(self.data.shape[1]))
            columns = [preparation(own)[:, kept] for own in columns]
        scaler = StandardScaler(with_mean=not sparse).fit(columns[0])
        columns = [scaler.transform(own) for own in columns]
        if len(groups) == 1:
            return columns
        own = [(self.groups[part, None] == groups).astype(float) for part in fold]
        return [side_by_side(pair) for pair in zip(columns, own, strict=True)]


def usual_gamma(train: AnyArray) -> float:
    """The value of gamma="scale"; sparse columns, which are not centred, have the mean of their variances."""
    variance = StandardScaler(with_mean=False).fit(train).var_.mean() if issparse(train) else train.var()
    return float(1 / (train.shape[1] * (variance or 1.0)))


# ------------------------------------------------------------------------------------------------- the baselines
@dataclass(frozen=True)
class Baseline(ABC):
    """One model of the tasks ``groups``; a response is what the judge compares with the truth, one per test entry.

    ``folds`` are those of the search, and with held-out samples one more, for the model that the others choose.
    """

    entries: Entries
    groups: IntArray
    folds: list[TrainTest]
    n_folds: int
    judge: Judge
    class_weight: Any
    own: Any = None  # a model to clone instead of those of the grid

    grid: ClassVar[Sequence[Pair]]
    name: ClassVar[str]
    simplest: ClassVar[str]

    @abstractmethod
    def constant(self, train: IntArray, test: IntArray) -> AnyArray:
        """The response of a model that ignores the features."""

    @abstractmethod
    def learned(self, fold: TrainTest, grid: Sequence[Pair]) -> list[AnyArray]:
        """The responses for each pair of the grid."""

    def of_task(self, group: int) -> Self:
        """The model of one task."""
        own = self.entries.groups == group
        folds = [(train[own[train]], test[own[test]]) for train, test in self.folds]
        return replace(self, groups=np.array([group]), folds=folds)

    def parts(self, k: int, response: AnyArray) -> list[Answers]:
        """Truth, response and labels of each task in fold k, as a judge needs them."""
        test = self.folds[k][1]
        of_task = [np.flatnonzero(self.entries.groups[test] == group) for group in self.groups]
        truth = self.entries.truth(test)
        return [
            (plain_labels(truth[own]), plain_labels(response[own]), self.entries.pair(group))
            for group, own in zip(self.groups, of_task, strict=True)
        ]

    def overall(self, k: int, parts: Sequence[Answers]) -> float:
        """The score of a fold over all tasks, from what the judge needs of each."""
        if not self.judge.of_variance_within_tasks:
            return self.judge.overall([self.judge.score(*part) for part in parts])
        errors, varied = self._scaled(k, parts)
        return 1 - unexplained(errors, varied, np.ones(len(errors)))

    def overall_estimate(self, k: int, parts: Sequence[Answers]) -> Estimate:
        """The same with its interval."""
        if not self.judge.of_variance_within_tasks:
            return self.judge.overall_estimate([self.judge.estimate(*part) for part in parts])
        return explained_estimate(*self._scaled(k, parts))

    def _scaled(self, k: int, parts: Sequence[Answers]) -> tuple[Array, Array]:
        """Errors and differences from the mean, in units of the deviation, all of the training targets of the task."""
        train = self.folds[k][0]
        everyone, group = self.entries.values[train], self.entries.groups[train]
        known = [everyone[group == one] for one in self.groups]
        seen = [(own, np.ones(len(own))) for own in known if len(own)]
        scales = iter(zip(levels(seen), deviations(seen), strict=True))
        new = everyone.mean(), deviations(seen).mean()  # of tasks that the fold does not learn from
        errors, varied = [], []
        for own, (truth, response, _) in zip(known, parts, strict=True):
            level, deviation = next(scales) if len(own) else new
            errors.append((truth - response) / deviation)
            varied.append((truth - level) / deviation)
        return np.concatenate(errors), np.concatenate(varied)

    def chosen(self, grid: Sequence[Pair], n_jobs: int | None, progress: Progress) -> list[list[Answers]]:
        """What the judge needs in each fold, with the parameters that the other folds choose."""
        responses, scores = [], []
        jobs = (delayed(self._thinned_responses)(fold, grid) for fold in self.folds[: self.n_folds])
        several = effective_jobs(n_jobs) > 1  # each fold has its own thread, so BLAS should not add more
        with threadpool_limits(1 if several else None, user_api="blas"):
            # threads suit models that release the interpreter lock
            for k, found in enumerate(Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(jobs)):
                responses.append(found)
                scores.append([self.overall(k, self.parts(k, response)) for response in found])
                progress.done()
                progress.show(f"{self.name}s to compare with")
        table = np.array(scores).T
        parts = []
        for k, (fold, pair) in enumerate(zip(self.folds, [*choices(table), best(table)], strict=False)):
            known = k < self.n_folds and (self.own is not None or len(fold[0]) <= MOST_ROWS)
            parts.append(self.parts(k, responses[k][pair] if known else self._responses(fold, [grid[pair]])[0]))
        return parts

    def _thinned_responses(self, fold: TrainTest, grid: Sequence[Pair]) -> list[AnyArray]:
        """Responses for all pairs of the grid, learned from at most ``MOST_ROWS`` rows."""
        if self.own is not None:
            return self._responses(fold, grid)
        strata = self.entries.groups if not self.entries.labels.size else self.entries.values
        return self._responses((thinned(fold[0], strata), fold[1]), grid)

    def _responses(self, fold: TrainTest, grid: Sequence[Pair]) -> list[AnyArray]:
        same = len(fold[1]) == 0 or len(np.unique(self.entries.values[fold[0]])) < 2
        return [self.constant(*fold)] * len(grid) if same or grid == SIMPLEST else self.learned(fold, grid)


@dataclass(frozen=True)
class ClassBaseline(Baseline):
    """A response is a label, or a number that is larger for the second label of a task."""

    grid = _simplest_first((0.1, 1.0, 10.0, 100.0), (0.25, 1.0, 4.0))
    name = "SVM"
    simplest = "the majority class"

    def constant(self, train: IntArray, test: IntArray) -> AnyArray:
        """The most common label."""
        if not self.judge.metric.of_labels:
            return np.zeros(len(test))
        return self.entries.labelled(test, np.bincount(self.entries.values[train], minlength=1).argmax())

    def learned(self, fold: TrainTest, grid: Sequence[Pair]) -> list[AnyArray]:
        (train, test), codes = self.entries.features(fold, self.groups), self.entries.values[fold[0]]
        if self.own is not None:
            return [self._of_own(fold, train, test)]
        weight, scale = self._weights(fold[0]), usual_gamma(train)
        found: list[AnyArray] = []
        for C, width in grid:
            model = SVC(C=C, gamma=width * scale, cache_size=500).fit(train, codes, sample_weight=weight)
            if self.judge.metric.of_labels:
                found.append(self.entries.labelled(fold[1], model.predict(test)))
            else:
                found.append(self._differences(fold[1], model.decision_function(test), model.classes_))
        return found

    def _of_own(self, fold: TrainTest, train: Array, test: Array) -> AnyArray:
        """The response of a model of one's own; it sees codes if columns of y have labels of their own."""
        entries, matrix = self.entries, self.entries.matrix
        targets = entries.values[fold[0]] if matrix else plain_labels(entries.truth(fold[0]))
        model = clone(self.own).fit(train, targets)
        if self.judge.metric.of_labels:
            predicted = model.predict(test)
            return entries.labelled(fold[1], predicted) if matrix else np.asarray(predicted, dtype=object)
        decide = model.decision_function if hasattr(model, "decision_function") else model.predict_proba
        codes = model.classes_ if matrix else codes_of(model.classes_, listed(entries.labels[0]))
        return self._differences(fold[1], np.asarray(decide(test)), codes)

    def _differences(self, test: IntArray, decisions: Array, codes: IntArray) -> Array:
        """The score of the second label of each task minus that of the first; unknown labels score lowest."""
        entries, everyone = self.entries, np.arange(len(test))
        scores = np.full((len(test), entries.labels.shape[1]), -np.abs(decisions).max() - 1)
        scores[:, codes] = np.stack([-decisions, decisions], axis=1) if decisions.ndim == 1 else decisions
        pairs = {group: np.unique(entries.values[entries.groups == group])[:2] for group in self.groups.tolist()}
        first, second = np.array([pairs[group] for group in entries.groups[test].tolist()]).T
        return scores[everyone, second] - scores[everyone, first]

    def _weights(self, train: IntArray) -> Array | None:
        """The weight of each entry from ``class_weight``, for a model that learns from all of them."""
        if isinstance(self.class_weight, Mapping):
            return np.array([float(self.class_weight.get(label, 1.0)) for label in self.entries.truth(train)])
        return compute_sample_weight(self.class_weight, self.entries.values[train])


@dataclass(frozen=True)
class RegressionBaseline(Baseline):
    """A response is a predicted number."""

    # small widths are nearly linear
    grid = _simplest_first((0.001, 0.01, 0.1, 1.0, 10.0), (0.0625, 0.25, 1.0, 4.0))
    name = "kernel ridge"
    simplest = "the mean of each task"

    def constant(self, train: IntArray, test: IntArray) -> AnyArray:
        return np.full(len(test), self.entries.values[train].mean() if len(train) else 0.0)

    def learned(self, fold: TrainTest, grid: Sequence[Pair]) -> list[AnyArray]:
        (train, test), targets = self.entries.features(fold, self.groups), self.entries.values[fold[0]]
        learned, asked = (self.entries.groups[part] for part in fold)
        # each column of a matrix has its own units; tasks in one column share theirs, and perhaps their level
        middle = targets.mean() if self.own is None else 0.0  # models of one's own get the targets as they are
        level, unit = np.full(self.groups.max() + 1, middle), np.ones(self.groups.max() + 1)
        if self.entries.matrix:
            for group in np.unique(learned):
                own = targets[learned == group]
                level[group], unit[group] = own.mean(), own.std() or 1.0
        scaled, scale = (targets - level[learned]) / unit[learned], usual_gamma(train)
        if self.own is None:
            models = [KernelRidge(alpha=penalty, kernel="rbf", gamma=width * scale) for penalty, width in grid]
        else:
            models = [clone(self.own)]
        with blas_threads(1 if len(targets) <= SMALL_SYSTEM else None):
            return [level[asked] + unit[asked] * model.fit(train, scaled).predict(test) for model in models]


def contenders(
    model: Baseline,
    names: list[str],
    precomputed: bool,
    n_jobs: int | None,
    verbose: int | None,
    own: Mapping[str, Any],
) -> list[Contender]:
    """All baselines, own ones first and the simplest last; with precomputed kernels, the simplest is the only one."""
    together, each = [model], [model.of_task(group) for group in model.groups]
    several, one = len(each) > 1, f"one {model.name}"
    models: dict[str, tuple[list[Baseline], Sequence[Pair]]] = {}
    if not precomputed:
        models[f"{one} on all tasks together" if several else one] = together, model.grid
    if not precomputed and several:
        models[f"{one} per task"] = each, model.grid
    models[model.simplest if several else model.simplest.removesuffix(" of each task")] = each, SIMPLEST
    for name in own:
        if name in models:
            raise ValueError(f"{name!r} in baselines is the name of another baseline; choose another name.")
    models = {name: ([replace(model, own=given)], AS_GIVEN) for name, given in own.items()} | models
    n_steps = sum(len(teams) for teams, _ in models.values()) * model.n_folds
    found = []
    with Progress(n_steps, math.nan, verbose, unit="folds") as progress:
        for name, (team, grid) in models.items():
            of_models = [one.chosen(grid, n_jobs, progress) for one in team]
            parts = [[part for own in of_fold for part in own] for of_fold in zip(*of_models, strict=True)]
            found.append(_contender(name, names, parts, model))
    return found


def _contender(name: str, names: list[str], parts: list[list[Answers]], model: Baseline) -> Contender:
    """A contender from what the judge needs in each fold."""
    errors = None
    scores = np.array([model.overall(k, of_fold) for k, of_fold in enumerate(parts)])
    if isinstance(model, RegressionBaseline):
        errors = task_errors(names, parts[: model.n_folds])
    if len(parts) == model.n_folds:
        return Contender(name, scores, errors=errors)
    held_out = model.overall_estimate(len(parts) - 1, parts[-1])
    return Contender(name, scores[:-1], held_out.score, errors, (held_out.low, held_out.high))


def task_errors(names: list[str], parts: Sequence[Sequence[Answers]]) -> TaskErrors:
    """Errors per task over the entries of all folds, each predicted by the fold that holds it out."""
    tasks = [
        [np.concatenate(column) for column in list(zip(*own, strict=True))[:2]] for own in zip(*parts, strict=True)
    ]
    n = np.array([len(truth) for truth, _ in tasks])
    squares = np.array([np.sum((truth - response) ** 2) for truth, response in tasks])
    varied = np.array([len(truth) * truth.var() if len(truth) else 0.0 for truth, _ in tasks])
    with np.errstate(divide="ignore", invalid="ignore"):
        return TaskErrors(names, n, np.where(varied > 0, 1 - squares / varied, np.nan), np.sqrt(squares / n))
