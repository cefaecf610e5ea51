"""Rivals for regression: the mean of each task, and kernel ridge regressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import eigh, solve

from .._data.labels import Samples
from .._data.numbers import Targets
from .._data.reading import read_samples, take_rows
from .._data.tasks import codes_of, rows_by_code
from .._show.comparison import Contender, TaskErrors
from .._tools.parallel import SMALL_SYSTEM, blas_threads
from .._tools.typing import AnyArray, Array, IntArray
from .comparison import Contest, Entries, Fold, GaussianKernels, Pair, Team, usual_gamma

# penalty and width, the simplest first; widths multiply gamma="scale", small ones are nearly linear
GRID = sorted(
    product((0.001, 0.01, 0.1, 1.0, 10.0), (0.0625, 0.25, 1.0, 4.0)), key=lambda pair: abs(np.log(pair)).sum()
)


@dataclass(frozen=True)
class Numbers(Entries):
    """Entries with targets: values (n_entries,)."""

    values: Array

    @classmethod
    def of(cls, samples: Samples, y: Any, targets: Targets) -> Numbers:
        truth, parts = targets.truth(y), []
        everyone = np.arange(len(samples))
        of_task = [everyone] * targets.n_tasks
        if samples.sources is not None:
            of_task = rows_by_code(codes_of(samples.sources, targets.sources), targets.n_tasks)
        for g, mine in enumerate(of_task):
            values = truth[:, g] if truth.ndim == 2 else truth
            rows = mine[~np.isnan(values[mine])]
            parts.append((rows, np.full(len(rows), g), values[rows]))
        rows, groups, values = (np.concatenate(column) for column in zip(*parts, strict=True))
        return cls(samples.data, rows, groups, values)

    def joined(self, other: Numbers) -> Numbers:
        """These entries, followed by the others."""
        return Numbers(*self.stacked(other), np.concatenate([self.values, other.values]))


@dataclass(frozen=True)
class NumberContest(Contest):
    """An answer holds the predicted numbers, (n,)."""

    entries: Numbers
    targets: Targets
    plainest_name: ClassVar[str] = "the mean of each task"
    machine_name: ClassVar[str] = "kernel ridge"

    @property
    def n_groups(self) -> int:
        return self.targets.n_tasks

    @property
    def grid(self) -> Sequence[Pair]:
        return GRID

    @property
    def strata(self) -> IntArray:
        return self.entries.groups

    def plainest(self, fold: Fold) -> AnyArray:
        return self._levels(fold)[0][self.entries.groups[fold.test]]

    def _levels(self, fold: Fold) -> tuple[Array, Array]:
        """Mean and spread of each group in the training part, (n_groups,); 0 and 1 for an empty group."""
        mean, spread = np.zeros(self.n_groups), np.ones(self.n_groups)
        own, values = self.entries.groups[fold.train], self.entries.values[fold.train]
        for group in np.unique(own):
            mean[group], spread[group] = values[own == group].mean(), values[own == group].std() or 1.0
        return mean, spread

    def parts(self, fold: Fold, groups: IntArray, answer: AnyArray) -> Iterator[tuple[AnyArray, AnyArray, Any]]:
        own = self.entries.groups[fold.test]
        for group in groups:
            mine = np.flatnonzero(own == group)
            yield self.entries.values[fold.test[mine]], answer[mine], None

    def answers(self, fold: Fold, groups: IntArray, grid: Sequence[Pair]) -> list[AnyArray]:
        entries = self.entries
        if len(fold.test) == 0 or len(fold.train) == 0:
            return [np.zeros(len(fold.test))] * len(grid)
        train, test = (entries.features(part, fold.train, groups) for part in (fold.train, fold.test))
        targets = entries.values[fold.train]
        # each column of a matrix has its own units; tasks in one column share theirs, and perhaps their level
        mean, spread = np.full(self.n_groups, targets.mean()), np.ones(self.n_groups)
        if self.targets.kind == "matrix":
            mean, spread = self._levels(fold)
        learned, asked = entries.groups[fold.train], entries.groups[fold.test]
        scaled = (targets - mean[learned]) / spread[learned]
        kernels, scale = GaussianKernels(train, test), usual_gamma(train)
        duals: dict[float, Callable[[float], Array]] = {}
        found: list[AnyArray] = []
        for penalty, width in grid:
            learn, answer = kernels.at(width * scale)
            with blas_threads(1 if len(targets) <= SMALL_SYSTEM else None):
                if width not in duals:
                    duals[width] = _solved(learn, scaled, len(grid) > 1)
                found.append(mean[asked] + spread[asked] * (answer @ duals[width](penalty)))
        return found

    def contender(self, name: str, teams: Sequence[Team]) -> Contender:
        if self.n_groups == 1:
            name = name.removesuffix(" of each task")
        return replace(super().contender(name, teams), errors=self.errors(teams))

    def errors(self, teams: Sequence[Team]) -> TaskErrors:
        """Errors per task over the entries of all folds, each predicted by the fold that holds it out."""
        entries, counted = self.entries, np.concatenate([fold.test for fold in self.folds[: self.n_folds]])
        squares = np.zeros(self.n_groups)
        for groups, answers in teams:
            for fold, answer in zip(self.of_groups(groups)[: self.n_folds], answers, strict=False):
                own = entries.groups[fold.test]
                squares += np.bincount(own, (entries.values[fold.test] - answer) ** 2, minlength=self.n_groups)
        own, values = entries.groups[counted], entries.values[counted]
        n = np.bincount(own, minlength=self.n_groups)
        varied = np.array([len(v := values[own == g]) * v.var() if n[g] else 0.0 for g in range(self.n_groups)])
        with np.errstate(divide="ignore", invalid="ignore"):
            r2 = np.where(varied > 0, 1 - squares / varied, np.nan)
            rmse = np.sqrt(squares / n)
        return TaskErrors(self.targets.names, n, r2, rmse)


def refitted(
    contest: NumberContest,
    search: Any,
    splits: Sequence[tuple[IntArray, IntArray]],
    points: IntArray,
    X: Any,
    y: Any,
    tasks: Any,
    n_jobs: int | None,
) -> TaskErrors | None:
    """Errors of a search, each fold at the point that the other folds choose; None if a fold has failed.

    points (n_folds,): rows of ``cv_results_``.
    """
    results, answers = search.cv_results_, []
    for k, ((train, test), point) in enumerate(zip(splits, points, strict=True)):
        if np.isnan(results[f"split{k}_test_score"]).all():
            return None
        plain = search.estimator_at(point).set_params(n_jobs=n_jobs, verbose=0)
        learn, judge = (
            {"X": take_rows(X, rows, train, search.kernels), "tasks": take_rows(tasks, rows)} for rows in (train, test)
        )
        model = plain.learned(plain.read_data(**learn, y=take_rows(y, train), strict=False)).model_
        values = model.predict(read_samples(plain, **judge))
        values = values.reshape(len(values), -1)
        place = [model.tasks.sources.index(source) if values.shape[1] > 1 else 0 for source in contest.targets.sources]
        entries, own = contest.entries, contest.folds[k].test
        at = np.full(len(entries.data), -1)
        at[test] = np.arange(len(test))
        answers.append(values[at[entries.rows[own]], np.array(place)[entries.groups[own]]])
    return contest.errors([(np.arange(contest.n_groups), answers)])


def _solved(K: Array, y: Array, often: bool) -> Callable[[float], Array]:
    """A function of the penalty that returns (K + penalty I)⁻¹ y; ``often`` pays for an eigendecomposition."""
    if not often:
        return lambda penalty: np.asarray(solve(K + penalty * np.eye(len(K)), y, assume_a="pos"))
    values, vectors = eigh(K)
    along = vectors.T @ y
    return lambda penalty: np.asarray(vectors @ (along / (np.maximum(values, 0.0) + penalty)))
