"""Compare a model with its rivals on the folds of its search, for labels or numbers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import euclidean_distances
from sklearn.preprocessing import StandardScaler
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from .._show.comparison import Contender
from .._tools.parallel import effective_jobs
from .._tools.progress import Progress
from .._tools.typing import AnyArray, Array, IntArray
from .scores import Judge

MOST_ROWS = 1000  # limit on rows for choosing parameters; the final machines learn from all rows

Pair = tuple[float, float]  # the parameters of a machine: its cost or penalty, and a factor of gamma="scale"
Team = tuple[IntArray, Sequence[AnyArray]]  # groups, and the predictions of one machine for them in each fold


def best(scores: Array) -> int:
    """The candidate with the highest mean over the folds that have a score; the first one in a tie."""
    known = ~np.isnan(scores)
    total = np.where(known, scores, 0.0).sum(axis=1)
    mean = np.divide(total, known.sum(axis=1), out=np.full(len(scores), -np.inf), where=known.any(axis=1))
    return int(np.argmax(mean.round(12)))  # rounding errors must not break ties


def choices(scores: Array, choice: Callable[[Array], int] = best) -> IntArray:
    """For each fold, the candidate that the other folds choose, (n_folds,); scores (n_candidates, n_folds)."""
    n_folds = scores.shape[1]
    others = [[k for k in range(n_folds) if k != fold] or [fold] for fold in range(n_folds)]
    return np.array([choice(scores[:, kept]) for kept in others])


# ------------------------------------------------------------------------------------------------------ the samples
@dataclass(frozen=True)
class Fold:
    """Entries for training and for testing."""

    train: IntArray
    test: IntArray


@dataclass(frozen=True)
class Entries:
    """All labels or targets in one column: a sample has one entry per task with a known value.

    data (n_samples, n_features); rows, groups (n_entries,): sample and task of each entry. Subclasses add the values.
    """

    data: AnyArray
    rows: IntArray
    groups: IntArray

    def __len__(self) -> int:
        return len(self.rows)

    def split(self, train: IntArray, test: IntArray) -> Fold:
        """The entries of the training samples and of the test samples."""
        return Fold(*(np.flatnonzero(np.isin(self.rows, part)) for part in (train, test)))

    def stacked(self, other: Entries) -> tuple[AnyArray, IntArray, IntArray]:
        """Data, rows and groups of these entries, followed by the others."""
        rows, groups = np.concatenate([self.rows, other.rows + len(self.data)]), [self.groups, other.groups]
        stack = self.data.ndim > 2  # a stack of kernels, which cannot be concatenated
        return self.data if stack else np.concatenate([self.data, other.data]), rows, np.concatenate(groups)

    def features(self, entries: IntArray, fit_on: IntArray, groups: IntArray) -> Array:
        """Columns standardised on the entries ``fit_on``, plus an indicator per group if there are several."""
        scaler = StandardScaler().fit(self.data[self.rows[fit_on]])
        columns = scaler.transform(self.data[self.rows[entries]])
        if len(groups) == 1:
            return columns
        return np.hstack([columns, self.groups[entries, None] == groups])


class GaussianKernels:
    """Gaussian kernels of several widths, from distances that are computed only once."""

    def __init__(self, train: Array, test: Array):
        self.distances = euclidean_distances(train, squared=True), euclidean_distances(test, train, squared=True)
        self.known: dict[float, tuple[Array, Array]] = {}

    def at(self, gamma: float) -> tuple[Array, Array]:
        """Kernel values among the training samples, and between test and training samples."""
        if gamma not in self.known:
            learn, answer = (np.exp(-gamma * distances) for distances in self.distances)
            self.known[gamma] = learn, answer
        return self.known[gamma]


def usual_gamma(train: Array) -> float:
    """The value of gamma="scale"."""
    return float(1 / (train.shape[1] * (train.var() or 1.0)))


# ------------------------------------------------------------------------------------------------------ the contest
@dataclass(frozen=True)
class Contest(ABC):
    """The entries, folds (with ``held_out``, the last one is for the chosen model) and judge of a comparison."""

    entries: Any
    folds: list[Fold]
    held_out: bool
    judge: Judge
    plainest_name: ClassVar[str]
    machine_name: ClassVar[str]

    @property
    @abstractmethod
    def n_groups(self) -> int: ...

    @property
    @abstractmethod
    def grid(self) -> Sequence[Pair]:
        """Candidates, the simplest first, since the first one wins a tie."""

    @property
    @abstractmethod
    def strata(self) -> IntArray:
        """(n_entries,): strata that a subset of the entries keeps in proportion."""

    @abstractmethod
    def plainest(self, fold: Fold) -> AnyArray:
        """Predictions for ``fold.test`` that ignore the features."""

    @abstractmethod
    def answers(self, fold: Fold, groups: IntArray, grid: Sequence[Pair]) -> list[AnyArray]:
        """Predictions of one machine for these groups on ``fold.test``, for each pair of the grid."""

    @abstractmethod
    def parts(self, fold: Fold, groups: IntArray, answer: AnyArray) -> Iterator[tuple[AnyArray, AnyArray, Any]]:
        """Truth, response and classes of each group, as a judge needs them, from predictions for ``fold.test``."""

    def score(self, fold: Fold, groups: IntArray, answer: AnyArray) -> Array:
        """Score of each group from predictions for ``fold.test``."""
        return np.array([self.judge.score(*part) for part in self.parts(fold, groups, answer)])

    @property
    def n_folds(self) -> int:
        return len(self.folds) - self.held_out

    def of_groups(self, groups: IntArray) -> list[Fold]:
        """The folds with only the entries of these groups."""
        belongs = np.isin(self.entries.groups, groups)
        return [Fold(fold.train[belongs[fold.train]], fold.test[belongs[fold.test]]) for fold in self.folds]

    def contender(self, name: str, teams: Sequence[Team]) -> Contender:
        """A contender from the predictions of the machines of all groups."""
        scores = np.concatenate(
            [
                [self.score(fold, groups, answer) for fold, answer in zip(self.of_groups(groups), answers, strict=True)]
                for groups, answers in teams
            ],
            axis=1,
        )
        overall = np.array([self.judge.overall(of_fold) for of_fold in scores])
        if not self.held_out:
            return Contender(name, overall)
        last = [
            part for groups, answers in teams for part in self.parts(self.of_groups(groups)[-1], groups, answers[-1])
        ]
        error = self.judge.overall_error(scores[-1], [self.judge.standard_error(*part) for part in last])
        return Contender(name, overall[:-1], float(overall[-1]), held_out_error=error)

    def rivals(self, precomputed: bool, n_jobs: int | None, verbose: int | None) -> list[Contender]:
        """All rivals, the simplest last; with precomputed kernels it is the only one."""
        everyone = np.arange(self.n_groups)
        plainest = self.contender(self.plainest_name, [(everyone, [self.plainest(fold) for fold in self.folds])])
        if precomputed:
            return [plainest]
        together, each = [everyone], [np.array([group]) for group in everyone]
        teams = {f"one {self.machine_name}": together}
        if self.n_groups > 1:
            ours = f"one {self.machine_name}"
            teams = {f"{ours} on all tasks together": together, f"{ours} per task": each}
        n_machines = sum(map(len, teams.values()))
        with Progress(n_machines * self.n_folds, math.nan, verbose, unit="folds") as progress:
            found = [
                self.contender(name, [(groups, self._chosen_answers(groups, n_jobs, progress)) for groups in machines])
                for name, machines in teams.items()
            ]
        return [*found, plainest]

    def _chosen_answers(self, groups: IntArray, n_jobs: int | None, progress: Progress) -> list[AnyArray]:
        """Predictions of one machine in each fold, with the parameters that the other folds choose."""
        folds = self.of_groups(groups)
        jobs = (delayed(self._grid_answers)(fold, groups) for fold in folds[: self.n_folds])
        answers, overall = [], []
        several = effective_jobs(n_jobs) > 1  # each fold has its own thread, so BLAS should not add more
        with threadpool_limits(1 if several else None, user_api="blas"):
            # threads suit machines that release the interpreter lock
            for of_fold, scores in Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(jobs):
                answers.append(of_fold)
                overall.append([self.judge.overall(of_pair) for of_pair in scores])
                progress.done()
                progress.show(f"{self.machine_name}s to compare with")
        table = np.array(overall).T
        chosen = choices(table)
        found = [
            answers[k][pair] if len(fold.train) <= MOST_ROWS else self.answers(fold, groups, [self.grid[pair]])[0]
            for k, (fold, pair) in enumerate(zip(folds, chosen, strict=False))
        ]
        if self.held_out:
            found += self.answers(folds[-1], groups, [self.grid[best(table)]])
        return found

    def _grid_answers(self, fold: Fold, groups: IntArray) -> tuple[list[AnyArray], list[Array]]:
        """Predictions and scores for all pairs of the grid, learned from at most ``MOST_ROWS`` rows."""
        answers = self.answers(Fold(thinned(fold.train, self.strata), fold.test), groups, self.grid)
        return answers, [self.score(fold, groups, answer) for answer in answers]


def thinned(entries: IntArray, strata: IntArray) -> IntArray:
    """At most about ``MOST_ROWS`` of the entries, with each stratum in proportion to within one."""
    if len(entries) <= MOST_ROWS:
        return entries
    shuffled = np.random.default_rng(0).permutation(entries)
    parts = [shuffled[strata[shuffled] == stratum] for stratum in np.unique(strata[entries])]
    kept = [mine[: math.ceil(len(mine) * MOST_ROWS / len(entries))] for mine in parts]
    return np.sort(np.concatenate(kept))
