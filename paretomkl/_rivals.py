"""What a user would do instead, on the folds of a search: the majority class, an SVM per task, one SVM for all."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.metrics import euclidean_distances
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.parallel import Parallel, delayed

from ._choice import choose
from ._judging import Judge, make_judge, plain_labels
from ._kernels import is_precomputed
from ._labelling import Labelling, Samples
from ._page.comparison import OURS, Comparison, Contender
from ._progress import Progress
from ._reading import PathReader, read_samples, read_training
from ._scorers import MultiTaskScorer
from ._splits import make_splits
from ._tasks import array_of, equal_labels, listed, missing_labels
from ._typing import AnyArray, Array, IntArray

__all__ = ["compare"]

# candidates, the plainest first: of equals the first is chosen; widths multiply gamma="scale"
GRID = sorted(product((0.1, 1.0, 10.0, 100.0), (0.25, 1.0, 4.0)), key=lambda pair: abs(np.log(pair)).sum())
MOST_ROWS = 1000  # to choose C and gamma by; the chosen ones learn from all rows


def compare(
    search: Any,
    X: Any,
    y: Any,
    *,
    tasks: Any = None,
    held_out: tuple[Any, Any, Any] | None = None,
    n_jobs: int | None = None,
    verbose: int | None = 0,
) -> Comparison:
    """Set a search beside what a user would do instead, on the same folds and by the same score.

    The rivals are the majority class of each task; one SVM per task; and one SVM on all tasks together, with indicators
    of the task as further columns. Without tasks the last two are the same, and shown once. The SVMs are Gaussian, on
    standardised columns, with C and gamma from a grid of twelve, and have the class weights of the search.

    All methods are judged alike: in each fold a method has the parameters that the *other* folds choose, so that no
    score is the best of many on the same samples. It is therefore a little lower than ``search.best_score_``.

    Parameters
    ----------
    search : fitted ParetoMKLClassifierCV
        Its ``cv`` and ``random_state`` must give the same folds again. Where there are tasks, its ``scoring`` must be
        None or one of :func:`~paretomkl.model_selection.make_multitask_scorer`.
    X, y, tasks
        What it was fitted to. Precomputed kernels have the majority class as their only rival.
    held_out : tuple of X, y and tasks (or None), default=None
        Further samples to score the chosen models on.
    n_jobs : int, default=None
        Folds at a time; -1 is all cores.
    verbose : int or None, default=0
        1 shows progress; None shows it on a terminal once two seconds have passed.

    Returns
    -------
    comparison : Comparison

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
    reader = PathReader(search.kernels, search.task_column, search.class_weight)
    training = read_training(reader, X, y, tasks=tasks)
    labelling = training.labelling
    if labelling.kind != "classes" and not (search.scoring is None or isinstance(search.scoring, MultiTaskScorer)):
        raise ValueError(f"Tasks are compared one by one; use scoring=make_multitask_scorer({search.scoring!r}).")
    judge = make_judge(search.scoring).of_tasks(labelling)
    samples = training.samples
    splits = make_splits(search.cv, samples.data, y, samples.sources, random_state=search.random_state)
    if len(splits) != search.n_splits_:
        raise ValueError(f"cv gives {len(splits)} folds now and gave {search.n_splits_} to the search.")
    entries = Entries.of(samples, y, labelling)
    folds = [entries.split(*split) for split in splits]
    if held_out is not None:
        further = Entries.of(read_samples(reader, held_out[0], tasks=held_out[2]), held_out[1], labelling)
        n, entries = len(entries), entries.joined(further)
        folds.append(Fold(np.arange(n), np.arange(n, len(entries))))
    ours = _ours(search)
    if held_out is not None:
        model, others = search.best_estimator_.model_, read_samples(reader, held_out[0], tasks=held_out[2])
        last = judge.judge(model.tasks, model.decisions(others), others, held_out[1])[1]
        ours = Contender(OURS, ours.folds, last)
    contest = Contest(entries, folds, held_out is not None, judge, search.class_weight)
    return Comparison(ours, _rivals(contest, is_precomputed(search.kernels), n_jobs, verbose), judge.measure)


def _ours(search: Any) -> Contender:
    """The scores of a search, each fold's at the point that the search would choose by the others."""
    results = search.cv_results_
    scores = np.array([results[f"split{k}_test_score"] for k in range(search.n_splits_)]).T
    points = {name.removeprefix("param_"): results[name] for name in results if name.startswith("param_")}

    def chosen(kept: Array) -> int:
        known = kept[:, ~np.isnan(kept).all(axis=0)]  # a fold may have failed
        return choose(known.T, results["mean_test_log_loss"], points) if known.size else search.best_index_

    return Contender(OURS, scores[choices(scores, chosen), np.arange(scores.shape[1])])


def best(scores: Array) -> int:
    """The candidate of the highest mean over the folds that have a score, the first of equals."""
    known = ~np.isnan(scores)
    total = np.where(known, scores, 0.0).sum(axis=1)
    mean = np.divide(total, known.sum(axis=1), out=np.full(len(scores), -np.inf), where=known.any(axis=1))
    return int(np.argmax(mean.round(12)))  # sums of other orders differ in the last digits


def choices(scores: Array, choice: Callable[[Array], int] = best) -> IntArray:
    """For each fold the candidate that is the choice of the others, (n_folds,); scores (n_candidates, n_folds)."""
    n_folds = scores.shape[1]
    others = [[k for k in range(n_folds) if k != fold] or [fold] for fold in range(n_folds)]
    return np.array([choice(scores[:, kept]) for kept in others])


# ------------------------------------------------------------------------------------------------------ the samples
@dataclass(frozen=True)
class Fold:
    """Entries to learn from, and to score."""

    train: IntArray
    test: IntArray


@dataclass(frozen=True)
class Entries:
    """All labels in one column: a sample has one for each task it is labelled in.

    data (n_samples, n_features); rows, groups, codes (n_entries,): the sample, its task, and which of
    ``classes[group]`` its label is.
    """

    data: AnyArray
    rows: IntArray
    groups: IntArray
    codes: IntArray
    classes: list[list[Any]]

    @classmethod
    def of(cls, samples: Samples, y: Any, labelling: Labelling) -> Entries:
        """Labels that the tasks do not know are left out."""
        truth, matrix = labelling.truth(y), labelling.kind == "matrix"
        sources = labelling.distinct_sources
        known = [list(pair) for pair in labelling.pairs] if matrix else [listed(labelling.classes)] * len(sources)
        parts = []
        for g, source in enumerate(sources):
            labels = truth[:, g] if matrix else truth
            of_source = samples.sources is None or equal_labels(samples.sources, source)
            for code, label in enumerate(known[g]):
                rows = np.flatnonzero(equal_labels(labels, label) & ~missing_labels(labels) & of_source)
                parts.append(np.array([rows, np.full(len(rows), g), np.full(len(rows), code)]))
        rows, groups, codes = np.concatenate(parts, axis=1)
        return cls(samples.data, rows, groups, codes, known)

    def __len__(self) -> int:
        return len(self.rows)

    def split(self, train: IntArray, test: IntArray) -> Fold:
        """Entries of some samples and of others."""
        return Fold(*(np.flatnonzero(np.isin(self.rows, part)) for part in (train, test)))

    def joined(self, other: Entries) -> Entries:
        """These entries and then the others."""
        rows = np.concatenate([self.rows, other.rows + len(self.data)])
        groups, codes = np.concatenate([self.groups, other.groups]), np.concatenate([self.codes, other.codes])
        stack = self.data.ndim > 2  # of kernels, whose rows have other columns
        return Entries(
            self.data if stack else np.concatenate([self.data, other.data]), rows, groups, codes, self.classes
        )

    def features(self, entries: IntArray, fit_on: IntArray, groups: IntArray) -> Array:
        """Columns standardised on some entries, and an indicator for each group if there are several."""
        scaler = StandardScaler().fit(self.data[self.rows[fit_on]])
        columns = scaler.transform(self.data[self.rows[entries]])
        if len(groups) == 1:
            return columns
        return np.hstack([columns, self.groups[entries, None] == groups])

    def weights(self, entries: IntArray, class_weight: Any) -> Array | None:
        """Of each entry, as ``class_weight`` of a machine that learns from them all."""
        if class_weight is None:
            return None
        if class_weight == "balanced":
            _, which, counts = np.unique(self.codes[entries], return_inverse=True, return_counts=True)
            return len(entries) / (len(counts) * counts[which])
        labels = [self.classes[g][code] for g, code in zip(self.groups[entries], self.codes[entries], strict=True)]
        return np.array([float(class_weight.get(label, 1.0)) for label in labels])


# ------------------------------------------------------------------------------------------------------- the rivals
@dataclass(frozen=True)
class Contest:
    """Where all compete: entries, folds (with ``held_out`` the last of them is for the chosen model), and the judge."""

    entries: Entries
    folds: list[Fold]
    held_out: bool
    judge: Judge
    class_weight: Any

    @property
    def n_groups(self) -> int:
        return len(self.entries.classes)

    @property
    def n_folds(self) -> int:
        return len(self.folds) - self.held_out

    def contender(self, name: str, scores: Array) -> Contender:
        """From the scores of all groups in all folds, (n_folds, n_groups)."""
        overall = np.array([self.judge.overall(of_fold) for of_fold in scores])
        return Contender(name, overall[: self.n_folds], float(overall[-1]) if self.held_out else None)

    def score(self, fold: Fold, groups: IntArray, codes: IntArray | None, values: Array | None) -> Array:
        """Score of each group from what is known of its entries in ``fold.test``.

        codes (n,): predicted labels, for scores of labels; values (n, n_codes): decision values, for the others.
        """
        scores = []
        for group in groups:
            mine = np.flatnonzero(self.entries.groups[fold.test] == group)
            classes = array_of(self.entries.classes[group])
            truth = classes[self.entries.codes[fold.test[mine]]]
            own = self._own_codes(group)
            if self.judge.metric.of_labels:
                assert codes is not None
                answer = classes[codes[mine]]
            else:
                assert values is not None
                answer = values[mine, own[1]] - values[mine, own[0]]
            pair = classes[own].tolist() if len(own) == 2 else None
            scores.append(self.judge.score(plain_labels(truth), plain_labels(answer), pair))
        return np.array(scores)

    def _own_codes(self, group: int) -> IntArray:
        return np.unique(self.entries.codes[self.entries.groups == group])


def _rivals(contest: Contest, precomputed: bool, n_jobs: int | None, verbose: int | None) -> list[Contender]:
    everyone = np.arange(contest.n_groups)
    majority = contest.contender("the majority class", np.array([_majority(contest, fold) for fold in contest.folds]))
    if precomputed:
        return [majority]
    together, each = [everyone], [np.array([group]) for group in everyone]
    teams = {"one SVM": together}
    if contest.n_groups > 1:
        teams = {"one SVM on all tasks together": together, "one SVM per task": each}
    n_machines = sum(map(len, teams.values()))
    with Progress(n_machines * contest.n_folds, math.nan, verbose, unit="folds") as progress:
        found = []
        for name, machines in teams.items():
            scores = [_machine_scores(contest, groups, n_jobs, progress) for groups in machines]
            found.append(contest.contender(name, np.concatenate(scores, axis=1)))
    return [*found, majority]


def _majority(contest: Contest, fold: Fold) -> Array:
    """Scores of the commonest class of each group."""
    entries, answers = contest.entries, np.zeros(len(fold.test), dtype=int)
    for group in range(contest.n_groups):
        counts = np.bincount(entries.codes[fold.train[entries.groups[fold.train] == group]], minlength=1)
        answers[entries.groups[fold.test] == group] = counts.argmax()
    n_codes = max(map(len, entries.classes))
    return contest.score(fold, np.arange(contest.n_groups), answers, np.zeros((len(answers), n_codes)))


def _machine_scores(contest: Contest, groups: IntArray, n_jobs: int | None, progress: Progress) -> Array:
    """Scores of one SVM for some groups, (n_folds, n_groups), each fold with the C and gamma that suit the others."""
    belongs = np.isin(contest.entries.groups, groups)
    folds = [Fold(fold.train[belongs[fold.train]], fold.test[belongs[fold.test]]) for fold in contest.folds]
    jobs = (delayed(_grid_scores)(contest, fold, groups) for fold in folds[: contest.n_folds])
    grid = []
    # threads suit libsvm, which works outside of the interpreter
    for of_fold in Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(jobs):
        grid.append(of_fold)
        progress.done()
        progress.show("SVMs to compare with")
    scores = np.array(grid)  # (n_folds, n_pairs, n_groups)
    overall = np.array([[contest.judge.overall(of_pair) for of_pair in of_fold] for of_fold in scores]).T
    chosen = choices(overall)
    found = [
        scores[k, pair] if len(fold.train) <= MOST_ROWS else _scores_at(contest, fold, groups, [GRID[pair]])[0]
        for k, (fold, pair) in enumerate(zip(folds, chosen, strict=False))
    ]
    if contest.held_out:
        found.append(_scores_at(contest, folds[-1], groups, [GRID[best(overall)]])[0])
    return np.array(found)


def _grid_scores(contest: Contest, fold: Fold, groups: IntArray) -> Array:
    """Scores at all pairs of the grid, (n_pairs, n_groups), learned from no more rows than it takes to choose."""
    return _scores_at(contest, Fold(_thinned(fold.train, contest.entries.codes), fold.test), groups, GRID)


def _thinned(entries: IntArray, codes: IntArray) -> IntArray:
    """Some of many entries, as many of each class as before, to within one."""
    if len(entries) <= MOST_ROWS:
        return entries
    shuffled = np.random.default_rng(0).permutation(entries)
    of_class = [shuffled[codes[shuffled] == code] for code in np.unique(codes[entries])]
    kept = [mine[: math.ceil(len(mine) * MOST_ROWS / len(entries))] for mine in of_class]
    return np.sort(np.concatenate(kept))


def _scores_at(contest: Contest, fold: Fold, groups: IntArray, grid: Sequence[tuple[float, float]]) -> Array:
    """Scores of the SVMs with these pairs of C and width, (n_pairs, n_groups)."""
    entries, n_codes = contest.entries, max(map(len, contest.entries.classes))
    labels = entries.codes[fold.train]
    if len(fold.test) == 0 or len(np.unique(labels)) < 2:  # nothing to score, or nothing to tell apart
        constant = np.full(len(fold.test), labels[0] if len(labels) else 0)
        alike = contest.score(fold, groups, constant, np.zeros((len(constant), n_codes)))
        return np.tile(alike, (len(grid), 1))
    train, test = (entries.features(part, fold.train, groups) for part in (fold.train, fold.test))
    weight = entries.weights(fold.train, contest.class_weight)
    scale = 1 / (train.shape[1] * (train.var() or 1.0))  # what gamma="scale" is
    kernels = _GaussianKernels(train, test) if len(grid) > 1 else None
    scores = []
    for C, width in grid:
        machine = SVC(C=C, gamma=width * scale, kernel="rbf" if kernels is None else "precomputed", cache_size=500)
        learn, answer = (train, test) if kernels is None else kernels.at(width * scale)
        machine.fit(learn, labels, sample_weight=weight)
        if contest.judge.metric.of_labels:
            scores.append(contest.score(fold, groups, machine.predict(answer), None))
            continue
        decided = machine.decision_function(answer)
        values = np.full((len(test), n_codes), -np.abs(decided).max() - 1)  # below all that are known
        two = decided.ndim == 1
        values[:, machine.classes_] = np.stack([-decided, decided], axis=1) if two else decided
        scores.append(contest.score(fold, groups, None, values))
    return np.array(scores)


class _GaussianKernels:
    """Gaussian kernels of several widths, from distances that are computed once, and kept."""

    def __init__(self, train: Array, test: Array):
        self.distances = euclidean_distances(train, squared=True), euclidean_distances(test, train, squared=True)
        self.known: dict[float, tuple[Array, Array]] = {}

    def at(self, gamma: float) -> tuple[Array, Array]:
        """Between the training samples, and from the test samples to these."""
        if gamma not in self.known:
            learn, answer = (np.exp(-gamma * distances) for distances in self.distances)
            self.known[gamma] = learn, answer
        return self.known[gamma]
