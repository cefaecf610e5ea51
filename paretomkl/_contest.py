"""How rivals of a model compete on the folds of its search, whatever they predict."""

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

from ._judging import Judge
from ._page.comparison import Contender
from ._parallel import effective_jobs
from ._progress import Progress
from ._typing import AnyArray, Array, IntArray

MOST_ROWS = 1000  # to choose parameters by; the chosen ones learn from all rows

Pair = tuple[float, float]  # the parameters of a machine: its cost or penalty, and what multiplies gamma="scale"
Team = tuple[IntArray, Sequence[AnyArray]]  # groups, and what one machine answers for them in each fold


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
    """All labels or targets in one column: a sample has one for each task it is known in.

    data (n_samples, n_features); rows, groups (n_entries,): the sample, and its task. A subclass has what is known.
    """

    data: AnyArray
    rows: IntArray
    groups: IntArray

    def __len__(self) -> int:
        return len(self.rows)

    def split(self, train: IntArray, test: IntArray) -> Fold:
        """Entries of some samples and of others."""
        return Fold(*(np.flatnonzero(np.isin(self.rows, part)) for part in (train, test)))

    def stacked(self, other: Entries) -> tuple[AnyArray, IntArray, IntArray]:
        """Data, rows and groups of these entries and then the others."""
        rows, groups = np.concatenate([self.rows, other.rows + len(self.data)]), [self.groups, other.groups]
        stack = self.data.ndim > 2  # of kernels, whose rows have other columns
        return self.data if stack else np.concatenate([self.data, other.data]), rows, np.concatenate(groups)

    def features(self, entries: IntArray, fit_on: IntArray, groups: IntArray) -> Array:
        """Columns standardised on some entries, and an indicator for each group if there are several."""
        scaler = StandardScaler().fit(self.data[self.rows[fit_on]])
        columns = scaler.transform(self.data[self.rows[entries]])
        if len(groups) == 1:
            return columns
        return np.hstack([columns, self.groups[entries, None] == groups])


class GaussianKernels:
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


def usual_gamma(train: Array) -> float:
    """What gamma="scale" is."""
    return float(1 / (train.shape[1] * (train.var() or 1.0)))


# ------------------------------------------------------------------------------------------------------ the contest
@dataclass(frozen=True)
class Contest(ABC):
    """Where all compete: entries, folds (with ``held_out`` the last of them is for the chosen model), and the judge."""

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
        """Candidates, the plainest first: of equals the first is chosen."""

    @property
    @abstractmethod
    def strata(self) -> IntArray:
        """(n_entries,): what a part of the entries has as much of as all."""

    @abstractmethod
    def plainest(self, fold: Fold) -> AnyArray:
        """What one answers for ``fold.test`` without looking at the features."""

    @abstractmethod
    def answers(self, fold: Fold, groups: IntArray, grid: Sequence[Pair]) -> list[AnyArray]:
        """What one machine for these groups answers for ``fold.test`` at each pair of the grid."""

    @abstractmethod
    def parts(self, fold: Fold, groups: IntArray, answer: AnyArray) -> Iterator[tuple[AnyArray, AnyArray, Any]]:
        """Truth, response and classes of each group, as a judge wants them, from the answers for ``fold.test``."""

    def score(self, fold: Fold, groups: IntArray, answer: AnyArray) -> Array:
        """Score of each group from the answers for ``fold.test``."""
        return np.array([self.judge.score(*part) for part in self.parts(fold, groups, answer)])

    @property
    def n_folds(self) -> int:
        return len(self.folds) - self.held_out

    def of_groups(self, groups: IntArray) -> list[Fold]:
        """The folds, with the entries of these groups only."""
        belongs = np.isin(self.entries.groups, groups)
        return [Fold(fold.train[belongs[fold.train]], fold.test[belongs[fold.test]]) for fold in self.folds]

    def contender(self, name: str, teams: Sequence[Team]) -> Contender:
        """From what the machines of all groups answer."""
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
        """All of them, the plainest last; precomputed kernels have no other."""
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
        """Answers of one machine in each fold, each with the parameters that suit the others."""
        folds = self.of_groups(groups)
        jobs = (delayed(self._grid_answers)(fold, groups) for fold in folds[: self.n_folds])
        answers, overall = [], []
        several = effective_jobs(n_jobs) > 1  # then each fold has a thread, and BLAS should not have more
        with threadpool_limits(1 if several else None, user_api="blas"):
            # threads suit machines that work outside of the interpreter
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
        """Answers and scores at all pairs of the grid, learned from no more rows than it takes to choose."""
        answers = self.answers(Fold(thinned(fold.train, self.strata), fold.test), groups, self.grid)
        return answers, [self.score(fold, groups, answer) for answer in answers]


def thinned(entries: IntArray, strata: IntArray) -> IntArray:
    """Some of many entries, as many of each stratum as before, to within one."""
    if len(entries) <= MOST_ROWS:
        return entries
    shuffled = np.random.default_rng(0).permutation(entries)
    parts = [shuffled[strata[shuffled] == stratum] for stratum in np.unique(strata[entries])]
    kept = [mine[: math.ceil(len(mine) * MOST_ROWS / len(entries))] for mine in parts]
    return np.sort(np.concatenate(kept))
