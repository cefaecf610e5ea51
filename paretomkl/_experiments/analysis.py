"""From records to numbers: the choice of C and p, means over runs, significance, and the numbers in the paper."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .._tools.typing import Array
from .methods import Candidate, Outcome
from .results import Record

LEVEL = 0.05
PAPER_SETS = ("robot", "satellite", "vehicle", "steel", "segment", "shuttle", "letter", "landmine")
Scores = dict[int, float]  # accuracy by run


class Printed(NamedTuple):
    """A number in the paper, and whether it is underlined: significantly worse than at p < 1."""

    value: float
    worse: bool


def _read_paper() -> dict[tuple[str, int, str], Printed]:
    """The numbers in ``paper.txt`` by data set, fraction and row: a method, an exponent, or "rising"."""
    lines = Path(__file__).with_name("paper.txt").read_text(encoding="utf-8").splitlines()
    (_, _, *sets), *rows = [line.split() for line in lines if not line.startswith("#")]
    landmine = {"10": 20, "20": 30, "50": 50}
    return {
        (dataset, landmine[n] if dataset == "landmine" else int(n), row): Printed(float(word.strip("_")), "_" in word)
        for row, n, *words in rows
        for dataset, word in zip(sets, words, strict=True)
    }


PRINTED = _read_paper()


@dataclass(frozen=True)
class PathScores:
    """Accuracies along p for each run.

    ps (n_ps,); runs: the run numbers; overall (n_runs, n_ps); by_task (n_runs, n_ps, n_tasks); C (n_runs, n_ps): the
    cost used at each p; tasks: the task names.
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
        """The p < 1 with the highest mean accuracy on the test sets, which is what the paper reports."""
        below = np.flatnonzero(self.ps < 1)
        return float(self.ps[below[self.overall[:, below].mean(axis=0).argmax()]])

    def n_rising(self) -> int:
        """Number of tasks whose mean accuracy rises as p falls, by rank correlation over the whole path."""
        from scipy.stats import rankdata

        ranks = rankdata(self.ps)
        by_task = rankdata(self.by_task.mean(axis=0), axis=0)
        return int(((ranks - ranks.mean()) @ by_task < -1e-9).sum())

    def n_better(self, p: float, than: float) -> int:
        """Number of tasks whose mean accuracy at p is higher than at ``than``."""
        means = self.by_task.mean(axis=0)
        return int((means[self.index(p)] > means[self.index(than)] + 1e-12).sum())


class Findings:
    """Records of finished cells by data set, fraction and method."""

    def __init__(self, records: Iterable[Record]):
        self._cells: dict[tuple[str, int, str], dict[int, Record]] = defaultdict(dict)
        self._paths: dict[tuple[str, int, float | None], PathScores] = {}
        self.versions: list[dict[str, str]] = []
        for record in sorted(records, key=lambda record: record.cell.run):
            cell = record.cell
            self._cells[cell.dataset, cell.fraction, cell.method][cell.run] = record
            if record.versions and record.versions not in self.versions:
                self.versions.append(record.versions)

    def has(self, dataset: str, fraction: int, method: str) -> bool:
        return (dataset, fraction, method) in self._cells

    def fractions(self, dataset: str) -> list[int]:
        """The fractions with results, in increasing order."""
        return sorted({fraction for name, fraction, _ in self._cells if name == dataset})

    def outcomes(self, dataset: str, fraction: int, method: str) -> dict[int, Outcome]:
        """Outcomes by run, in increasing order."""
        records = self._cells.get((dataset, fraction, method), {})
        return {run: record.outcome for run, record in records.items() if record.outcome is not None}

    def largest_gap(self, method: str) -> float:
        """The largest gap of a method's tested models; NaN if there are none."""
        gaps = [outcome.gap for key in self._cells if key[2] == method for outcome in self.outcomes(*key).values()]
        return max(gaps, default=float("nan"))

    def seconds(self, dataset: str, fraction: int, method: str) -> float:
        """Mean seconds per cell on one core, including cross-validation."""
        return float(np.mean([record.seconds for record in self._cells[dataset, fraction, method].values()]))

    def path(self, dataset: str, fraction: int, C: float | None = None) -> PathScores:
        """Accuracies along p; cross-validation chooses C at each p unless C is given."""
        if (dataset, fraction, C) not in self._paths:
            self._paths[dataset, fraction, C] = self._path(dataset, fraction, C)
        return self._paths[dataset, fraction, C]

    def _path(self, dataset: str, fraction: int, C: float | None) -> PathScores:
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

    def scores(self, dataset: str, fraction: int, what: str) -> Scores:
        """Accuracies at "p=…", at the best "p<1", with p by cross-validation ("cv"), or of a method; empty if not run.

        Cross-validation chooses among the candidates of a method, except that Minimax MTL is reported as in the paper,
        with the α of higher mean accuracy on the test sets.
        """
        if what in ("pareto", "cv") or not what.startswith("p"):
            outcomes = self.outcomes(dataset, fraction, "pareto" if what == "cv" else what)
            if what.startswith("mm-"):
                return _of_better_alpha(outcomes)
            return {run: float(outcome.chosen.accuracy or 0.0) for run, outcome in outcomes.items()}
        if not self.has(dataset, fraction, "pareto"):
            return {}
        path = self.path(dataset, fraction)
        return path.at(path.best_below_one if what == "p<1" else float(what[2:]))


def _of_better_alpha(outcomes: dict[int, Outcome]) -> Scores:
    by_alpha: dict[float, Scores] = defaultdict(dict)
    for run, outcome in outcomes.items():
        for point in outcome.points:
            if point.tested:
                by_alpha[round(point.params["alpha"], 9)][run] = float(point.accuracy or 0.0)
    return max(by_alpha.values(), key=mean, default={})


def pick(outcome: Outcome, p: float, C: float | None = None) -> Candidate:
    """The point at one p with the given C, or with the C of highest cross-validated score (the smallest on a tie)."""
    points = [point for point in outcome.points if point.params["p"] == p and C in (None, point.params["C"])]
    if not points:
        raise ValueError(f"There is no point with p={p:g} and C={C}.")
    return max(sorted(points, key=lambda point: point.params["C"]), key=lambda point: point.cv)


def compare(ours: Scores, reference: Scores) -> int:
    """−1 if significantly worse than the reference, 1 if better, else 0, by a paired t-test over the common runs."""
    runs = sorted(ours.keys() & reference.keys())
    difference = np.array([ours[run] - reference[run] for run in runs])
    if len(runs) < 2 or np.ptp(difference) < 1e-12:  # without spread there is no t-test, but every run agrees
        return 0 if len(runs) < 2 or abs(difference[0]) < 1e-12 else int(np.sign(difference[0]))
    from scipy.stats import ttest_1samp

    return int(np.sign(difference.mean())) if ttest_1samp(difference, 0.0).pvalue < LEVEL else 0


def difference(ours: Scores, reference: Scores) -> float:
    """Mean difference over the common runs; NaN if there are none."""
    runs = ours.keys() & reference.keys()
    return mean({run: ours[run] - reference[run] for run in runs}) if runs else float("nan")


def mean(scores: Scores) -> float:
    return float(np.mean(list(scores.values())))
