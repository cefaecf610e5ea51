"""From records to numbers: which C, which p, means over runs, and what is significant."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .._typing import Array
from .methods import Outcome, Point
from .results import Record

LEVEL = 0.05
Scores = dict[int, float]  # accuracy by run


@dataclass(frozen=True)
class PathScores:
    """Accuracies along p, run by run.

    ps (n_ps,); runs: their numbers; overall (n_runs, n_ps); by_task (n_runs, n_ps, n_tasks); C (n_runs, n_ps): the cost
    used at each p; tasks: their names.
    """

    ps: Array
    runs: list[int]
    overall: Array
    by_task: Array
    C: Array
    tasks: list[str]

    def at(self, p: float) -> Scores:
        """Overall accuracy at one p."""
        return dict(zip(self.runs, self.overall[:, self.index(p)].tolist(), strict=True))

    def index(self, p: float) -> int:
        return int(np.flatnonzero(self.ps == p)[0])

    @property
    def best_below_one(self) -> float:
        """The p < 1 of highest mean accuracy on the test parts, which is what the paper reports."""
        below = np.flatnonzero(self.ps < 1)
        return float(self.ps[below[self.overall[:, below].mean(axis=0).argmax()]])

    def n_rising(self) -> int:
        """Tasks whose mean accuracy rises as p falls, by rank correlation over the whole path."""
        from scipy.stats import rankdata

        ranks = rankdata(self.ps)
        by_task = rankdata(self.by_task.mean(axis=0), axis=0)
        return int(((ranks - ranks.mean()) @ by_task < -1e-9).sum())

    def n_better(self, p: float, than: float) -> int:
        """Tasks whose mean accuracy at p is higher than at another."""
        means = self.by_task.mean(axis=0)
        return int((means[self.index(p)] > means[self.index(than)] + 1e-12).sum())


class Collection:
    """Records by data set, fraction and method."""

    def __init__(self, records: Iterable[Record]):
        self._cells: dict[tuple[str, int, str], dict[int, Record]] = defaultdict(dict)
        self.versions: list[dict[str, str]] = []
        for record in sorted(records, key=lambda record: record.cell.run):
            cell = record.cell
            if record.outcome is not None:
                self._cells[cell.dataset, cell.fraction, cell.method][cell.run] = record
                if record.versions and record.versions not in self.versions:
                    self.versions.append(record.versions)

    def has(self, dataset: str, fraction: int, method: str) -> bool:
        return (dataset, fraction, method) in self._cells

    def fractions(self, dataset: str) -> list[int]:
        """Those that have results, rising."""
        return sorted({fraction for name, fraction, _ in self._cells if name == dataset})

    def outcomes(self, dataset: str, fraction: int, method: str) -> dict[int, Outcome]:
        """By run, rising."""
        records = self._cells.get((dataset, fraction, method), {})
        return {run: record.outcome for run, record in records.items() if record.outcome is not None}

    def largest_gap(self, method: str) -> float:
        """Of all models of a method that were tested; NaN where there are none."""
        gaps = [outcome.gap for key in self._cells if key[2] == method for outcome in self.outcomes(*key).values()]
        return max(gaps, default=float("nan"))

    def seconds(self, dataset: str, fraction: int, method: str) -> float:
        """Mean seconds of a cell on one core, cross-validation included."""
        return float(np.mean([record.seconds for record in self._cells[dataset, fraction, method].values()]))

    def path(self, dataset: str, fraction: int, C: float | None = None) -> PathScores:
        """Accuracies along p, with C by cross-validation at each p, or fixed."""
        outcomes = self.outcomes(dataset, fraction, "pareto")
        first = next(iter(outcomes.values()))
        ps = sorted({point.params["p"] for point in first.points})
        chosen = [[pick(outcome, p, C) for p in ps] for outcome in outcomes.values()]
        by_task = [
            [np.array(point.right) / outcome.n_test for point in row]
            for row, outcome in zip(chosen, outcomes.values(), strict=True)
        ]
        return PathScores(
            ps=np.array(ps),
            runs=list(outcomes),
            overall=np.array([[point.accuracy for point in row] for row in chosen], dtype=float),
            by_task=np.array(by_task),
            C=np.array([[point.params["C"] for point in row] for row in chosen]),
            tasks=first.tasks,
        )

    def chosen(self, dataset: str, fraction: int, method: str) -> Scores:
        """Accuracy of what cross-validation chooses among all candidates of a method; of "pareto" both C and p."""
        outcomes = self.outcomes(dataset, fraction, method)
        return {run: float(outcome.chosen.accuracy or 0.0) for run, outcome in outcomes.items()}

    def as_reported(self, dataset: str, fraction: int, method: str) -> Scores:
        """As the paper reports a method: of Minimax MTL the α of higher mean accuracy on the test parts."""
        if not method.startswith("mm-"):
            return self.chosen(dataset, fraction, method)
        by_alpha: dict[float, Scores] = defaultdict(dict)
        for run, outcome in self.outcomes(dataset, fraction, method).items():
            for point in outcome.points:
                if point.tested:
                    by_alpha[round(point.params["alpha"], 9)][run] = float(point.accuracy or 0.0)
        return max(by_alpha.values(), key=lambda scores: float(np.mean(list(scores.values()))))


def pick(outcome: Outcome, p: float, C: float | None = None) -> Point:
    """The point of one p, with the C given or the C of highest cross-validated score, the smallest among equals."""
    points = [point for point in outcome.points if point.params["p"] == p and C in (None, point.params["C"])]
    if not points:
        raise ValueError(f"There is no point with p={p:g} and C={C}.")
    return max(sorted(points, key=lambda point: point.params["C"]), key=lambda point: point.cv)


def compare(ours: Scores, reference: Scores) -> int:
    """−1 if significantly worse than the reference, 1 if better, else 0: paired t-test over the runs both have."""
    runs = sorted(ours.keys() & reference.keys())
    difference = np.array([ours[run] - reference[run] for run in runs])
    if len(runs) < 2 or np.ptp(difference) < 1e-12:  # no spread: no test, unless nothing differs at all
        return 0 if len(runs) < 2 or abs(difference[0]) < 1e-12 else int(np.sign(difference[0]))
    from scipy.stats import ttest_1samp

    return int(np.sign(difference.mean())) if ttest_1samp(difference, 0.0).pvalue < LEVEL else 0


def difference(ours: Scores, reference: Scores) -> float:
    """Mean difference over the runs both have; NaN where there are none."""
    runs = ours.keys() & reference.keys()
    return mean({run: ours[run] - reference[run] for run in runs}) if runs else float("nan")


def mean(scores: Scores) -> float:
    return float(np.mean(list(scores.values())))
