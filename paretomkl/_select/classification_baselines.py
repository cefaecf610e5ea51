"""Compare a search with simple alternatives on its folds.

For classes: the majority, an SVM per task, one SVM for all. For numbers: the mean, and kernel ridge regressions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np
from sklearn.svm import SVC

from .._data.labels import Labelling, Samples
from .._data.numbers import Targets
from .._data.reading import PathReader, read_samples, take_rows
from .._data.tasks import array_of, codes_of, listed, missing_labels, rows_by_code
from .._show.comparison import OURS, Comparison, Contender
from .._tools.shares import Share
from .._tools.typing import AnyArray, Array, IntArray
from ..kernels._kernels import is_precomputed
from ..machines import MACHINES
from .choice import best_of_ways, choose_way
from .comparison import Contest, Entries, Fold, GaussianKernels, Pair, choices, usual_gamma
from .regression_baselines import NumberContest, Numbers, refitted
from .scorers import MultiTaskScorer
from .scores import make_judge, plain_labels
from .splits import make_splits

__all__ = ["compare"]

# candidates, the simplest first; widths multiply gamma="scale"
GRID = sorted(product((0.1, 1.0, 10.0, 100.0), (0.25, 1.0, 4.0)), key=lambda pair: abs(np.log(pair)).sum())


def compare(
    search: Any,
    X: Any,
    y: Any,
    *,
    tasks: Any = None,
    held_out: tuple[Any, Any, Any] | None = None,
    n_jobs: int | None = None,
    verbose: int | None = 0,
    share: Share | None = None,
) -> Comparison:
    """Compare a search with simple alternatives, on the same folds and by the same score.

    The rivals are the majority class of each task, one SVM per task, and one SVM on all tasks together with indicators
    of the task as extra columns. Without tasks, the last two are the same and shown once. The SVMs have Gaussian
    kernels on standardised columns, C and gamma from a grid of twelve, and the class weights of the search.

    For regression, the rivals are the mean of each task, and kernel ridge regressions instead of SVMs, with penalty and
    gamma from a grid of twenty. ``errors`` of each contender then has R² and the root mean squared error of each task
    over the samples of all folds, each predicted by the fold that holds it out.

    All methods are judged alike: in each fold, a method has the parameters that the *other* folds choose, so no score
    is the best of many on the same samples. It is therefore a little lower than ``search.best_score_``.

    Parameters
    ----------
    search : fitted ParetoMKLClassifierCV or ParetoMKLRegressorCV
        Its ``cv`` and ``random_state`` must reproduce its folds. With tasks, its ``scoring`` must be None or one from
        :func:`~paretomkl.model_selection.make_multitask_scorer`.
    X, y, tasks
        The data it was fitted to. With precomputed kernels, the majority class or the mean is the only rival.
    held_out : tuple of X, y and tasks (or None), default=None
        More samples to score the chosen models on.
    n_jobs : int, default=None
        Number of folds to run in parallel; -1 uses all cores.
    verbose : int or None, default=0
        1 shows progress; None shows it on a terminal once two seconds have passed.
    share : str, default=None
        If the search covers several ways to share, compare only this one. With None, the search has in each fold the
        way that the other folds choose.

    Returns
    -------
    comparison : Comparison
        The scores of the search and of its rivals, and a summary in words.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl import ParetoMKLClassifierCV
    >>> from paretomkl.report import compare
    >>> X, y = load_iris(return_X_y=True)
    >>> search = ParetoMKLClassifierCV(ps=[1.0, 10.0], Cs=[1.0, 10.0]).fit(X, y)
    >>> [rival.name for rival in compare(search, X, y).rivals]
    ['one SVM', 'the majority class']
    """
    regression = not search.stratify
    machine = MACHINES["ridge" if regression else "svc"]
    reader = PathReader(replace(search.reading, machine=machine, share="kernel", multi_class="one-vs-one"))
    training = reader.read_data(X, y, tasks=tasks)
    labelling, samples = training.labelling, training.samples
    with_tasks = labelling.kind not in ("classes", "single")
    if with_tasks and not (search.scoring is None or isinstance(search.scoring, MultiTaskScorer)):
        raise ValueError(f"Tasks are compared one by one; use scoring=make_multitask_scorer({search.scoring!r}).")
    judge = make_judge(search.scoring, regression=regression).of_tasks(labelling)
    splits = _same_splits(search, samples, y)
    if len(splits) != search.n_splits_:
        raise ValueError(
            f"cv yields {len(splits)} folds now, but yielded {search.n_splits_} in the search; use a cv that repeats."
        )
    further = None if held_out is None else read_samples(reader, held_out[0], tasks=held_out[2])
    ours, rows = _ours(search, share)
    if further is not None and held_out is not None and hasattr(search, "best_estimator_"):  # not if it only chose
        last = judge.score_model(search.best_estimator_, held_out[0], held_out[1], held_out[2])
        ours = replace(ours, held_out=last)

    def folds_of(entries: Any, kind: Any) -> tuple[Any, list[Fold]]:
        folds = [entries.split(*split) for split in splits]
        if further is not None and held_out is not None:
            n, entries = len(entries), entries.joined(kind.of(further, held_out[1], labelling))
            folds.append(Fold(np.arange(n), np.arange(n, len(entries))))
        return entries, folds

    contest: Contest
    if isinstance(labelling, Targets):
        numbers, folds = folds_of(Numbers.of(samples, y, labelling), Numbers)
        contest = NumberContest(numbers, folds, further is not None, judge, labelling)
        ours = replace(ours, errors=refitted(contest, search, splits, rows, X, y, tasks, n_jobs))
    else:
        labels, folds = folds_of(Labels.of(samples, y, labelling), Labels)
        contest = ClassContest(labels, folds, further is not None, judge, search.class_weight)
    some = search.search_rows_ is not None
    about = f"The folds are made of {search.n_search_rows_:,} of {len(samples):,} rows." if some else ""
    return Comparison(ours, contest.rivals(is_precomputed(search.kernels), n_jobs, verbose), judge.measure, about)


def _same_splits(search: Any, samples: Samples, y: Any) -> list[tuple[IntArray, IntArray]]:
    """The folds of a search again; they may contain only some of the rows."""
    rows = np.arange(len(samples)) if search.search_rows_ is None else search.search_rows_
    some, sources = take_rows(y, rows), None if samples.sources is None else samples.sources[rows]
    given = {"random_state": search.random_state, "stratify": search.stratify}
    splits = make_splits(search.cv, samples.data[rows], some, sources, **given)
    return [(rows[train], rows[test]) for train, test in splits]


def _ours(search: Any, share: Share | None) -> tuple[Contender, IntArray]:
    """The fold scores of a search, each at the point that the other folds choose; and these points."""
    results = search.cv_results_
    scores = np.array([results[f"split{k}_test_score"] for k in range(search.n_splits_)]).T
    points = {name.removeprefix("param_"): results[name] for name in results if name.startswith("param_")}
    losses = results[f"mean_test_{search.loss_name}"]

    points.setdefault("share", np.full(len(losses), search.best_share_, dtype=object))

    def chosen(kept: Array) -> int:
        known = kept[:, ~np.isnan(kept).all(axis=0)]  # a fold may have failed
        if not known.size:
            return search.best_index_ if share is None else search.best_indices_[share]
        best = best_of_ways(known.T, losses, points, search.by_loss)
        return best[share or choose_way({way: known[k] for way, k in best.items()}, search.small_tasks_)]

    rows = choices(scores, chosen)
    return Contender(OURS, scores[rows, np.arange(scores.shape[1])]), rows


# ------------------------------------------------------------------------------------------------------ classes
@dataclass(frozen=True)
class Labels(Entries):
    """Entries with labels: codes (n_entries,) are positions in ``classes[group]``."""

    codes: IntArray
    classes: list[list[Any]]

    @classmethod
    def of(cls, samples: Samples, y: Any, labelling: Labelling) -> Labels:
        """The entries of all samples; labels that the tasks do not know are skipped."""
        truth, matrix = labelling.truth(y), labelling.kind == "matrix"
        sources = labelling.distinct_sources
        known = [list(pair) for pair in labelling.pairs] if matrix else [listed(labelling.classes)] * len(sources)
        parts = []
        of_source = [np.arange(len(samples))] * len(sources)
        if samples.sources is not None:
            of_source = rows_by_code(codes_of(samples.sources, sources), len(sources))
        for g, mine in enumerate(of_source):
            labels = (truth[:, g] if matrix else truth)[mine]
            there = np.flatnonzero(~missing_labels(labels))
            for code, found in enumerate(rows_by_code(codes_of(labels[there], known[g]), len(known[g]))):
                rows = mine[there[found]]
                parts.append(np.array([rows, np.full(len(rows), g), np.full(len(rows), code)]))
        rows, groups, codes = np.concatenate(parts, axis=1)
        return cls(samples.data, rows, groups, codes, known)

    def joined(self, other: Labels) -> Labels:
        """These entries, followed by the others."""
        return Labels(*self.stacked(other), np.concatenate([self.codes, other.codes]), self.classes)

    def weights(self, entries: IntArray, class_weight: Any) -> Array | None:
        """The weight of each entry, from ``class_weight`` of a machine that learns from all of them."""
        if class_weight is None:
            return None
        if class_weight == "balanced":
            _, which, counts = np.unique(self.codes[entries], return_inverse=True, return_counts=True)
            return len(entries) / (len(counts) * counts[which])
        labels = [self.classes[g][code] for g, code in zip(self.groups[entries], self.codes[entries], strict=True)]
        return np.array([float(class_weight.get(label, 1.0)) for label in labels])


@dataclass(frozen=True)
class ClassContest(Contest):
    """An answer holds the codes of predicted labels, (n,), or for scores the decisions for all codes, (n, n_codes)."""

    entries: Labels
    class_weight: Any
    plainest_name: ClassVar[str] = "the majority class"
    machine_name: ClassVar[str] = "SVM"

    @property
    def n_groups(self) -> int:
        return len(self.entries.classes)

    @property
    def n_codes(self) -> int:
        return max(map(len, self.entries.classes))

    @property
    def grid(self) -> Sequence[Pair]:
        return GRID

    @property
    def strata(self) -> IntArray:
        return self.entries.codes

    def _constant(self, codes: IntArray) -> AnyArray:
        return codes if self.judge.metric.of_labels else np.zeros((len(codes), self.n_codes))

    def plainest(self, fold: Fold) -> AnyArray:
        """The most common class of each group."""
        entries, codes = self.entries, np.zeros(len(fold.test), dtype=int)
        for group in range(self.n_groups):
            counts = np.bincount(entries.codes[fold.train[entries.groups[fold.train] == group]], minlength=1)
            codes[entries.groups[fold.test] == group] = counts.argmax()
        return self._constant(codes)

    def parts(self, fold: Fold, groups: IntArray, answer: AnyArray) -> Iterator[tuple[AnyArray, AnyArray, Any]]:
        for group in groups:
            mine = np.flatnonzero(self.entries.groups[fold.test] == group)
            classes = array_of(self.entries.classes[group])
            truth = classes[self.entries.codes[fold.test[mine]]]
            own = np.unique(self.entries.codes[self.entries.groups == group])
            if self.judge.metric.of_labels:
                response = classes[answer[mine]]
            else:
                response = answer[mine, own[1]] - answer[mine, own[0]]
            pair = classes[own].tolist() if len(own) == 2 else None
            yield plain_labels(truth), plain_labels(response), pair

    def answers(self, fold: Fold, groups: IntArray, grid: Sequence[Pair]) -> list[AnyArray]:
        entries, labels = self.entries, self.entries.codes[fold.train]
        if len(fold.test) == 0 or len(np.unique(labels)) < 2:  # nothing to score, or only one class
            constant = np.full(len(fold.test), labels[0] if len(labels) else 0)
            return [self._constant(constant)] * len(grid)
        train, test = (entries.features(part, fold.train, groups) for part in (fold.train, fold.test))
        weight = entries.weights(fold.train, self.class_weight)
        scale = usual_gamma(train)
        kernels = GaussianKernels(train, test) if len(grid) > 1 else None
        found: list[AnyArray] = []
        for C, width in grid:
            machine = SVC(C=C, gamma=width * scale, kernel="rbf" if kernels is None else "precomputed", cache_size=500)
            learn, answer = (train, test) if kernels is None else kernels.at(width * scale)
            machine.fit(learn, labels, sample_weight=weight)
            if self.judge.metric.of_labels:
                found.append(machine.predict(answer))
                continue
            decided = machine.decision_function(answer)
            values = np.full((len(test), self.n_codes), -np.abs(decided).max() - 1)  # unknown classes score lowest
            two = decided.ndim == 1
            values[:, machine.classes_] = np.stack([-decided, decided], axis=1) if two else decided
            found.append(values)
        return found
