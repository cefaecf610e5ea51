"""The table of cross-validation scores, and the choice of a row."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from scipy.stats import rankdata
from sklearn.exceptions import FitFailedWarning

from .._fitting.tracing import Grid
from .._tools.shares import Share
from .._tools.typing import AnyArray, Array, IntArray
from .folds import FoldScores

W = TypeVar("W")

_TIE = 1e-9  # relative difference of scores that may be rounding
_SAME_LOSS = 1e-3  # relative difference of losses that may come from the accuracy of the solver alone


@dataclass(frozen=True)
class ScoreTable:
    """What all folds found at all points of the grids of all ways to share.

    scores, losses, gaps, seconds: (n_folds, n_points); counted (n_folds,): which folds enter the means; points: the
    parameters, including "share", one array of length n_points each.
    """

    scores: Array
    losses: Array
    gaps: Array
    seconds: Array
    counted: AnyArray
    points: dict[str, AnyArray]

    @classmethod
    def of(cls, folds: Iterable[FoldScores], grids: Mapping[Share, Grid], error_score: float | str) -> ScoreTable:
        """Join the folds of all ways, in the order of the grids; a fold counts if it does for every way."""
        of_fold = {(fold.number, fold.way): fold for fold in folds}
        together = [[of_fold[k, way] for way in grids] for k in range(len(of_fold) // len(grids))]
        _warn_of_failures([fold for ways in together for fold in ways], error_score)
        skips = isinstance(error_score, str) or np.isnan(error_score)
        counted = np.array([not (skips and any(fold.error for fold in ways)) for ways in together])
        names = "scores", "losses", "gaps", "seconds"
        scores, losses, gaps, seconds = (
            np.array([np.concatenate([getattr(fold, name) for fold in ways]) for ways in together]) for name in names
        )
        columns = [grid.columns() for grid in grids.values()]
        points: dict[str, AnyArray] = {name: np.concatenate([own[name] for own in columns]) for name in columns[0]}
        if np.isnan(points["p"]).any():  # a scalarization of the user's own has no exponent
            del points["p"]
        points["share"] = np.concatenate([np.full(grid.size, way, dtype=object) for way, grid in grids.items()])
        table = cls(scores, losses, gaps, seconds, counted, points)
        if np.isnan(table.mean).all():
            raise ValueError("No point of the grid has a score in every fold; check scoring and cv.")
        return table

    @property
    def mean(self) -> Array:
        """Mean score of each point over the folds that count."""
        return self.scores[self.counted].mean(axis=0)

    @property
    def loss(self) -> Array:
        """Mean loss of each point."""
        return self.losses[self.counted].mean(axis=0)

    def cv_results(self, searched: Sequence[str], loss_name: str) -> dict[str, Any]:
        """``cv_results_`` of a search, with the parameters that were searched."""
        mean, columns = self.mean, [self.points[name] for name in searched]
        filled = np.where(np.isnan(mean), np.nanmin(mean) - 1, mean).round(9)  # rounding errors must not break ties
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return {
            "mean_fit_time": self.seconds.mean(axis=0),
            "std_fit_time": self.seconds.std(axis=0),
            **{f"param_{name}": column for name, column in zip(searched, columns, strict=True)},
            "params": [dict(zip(searched, row, strict=True)) for row in rows],
            **{f"split{k}_test_score": of_fold for k, of_fold in enumerate(self.scores)},
            **{f"split{k}_test_{loss_name}": of_fold for k, of_fold in enumerate(self.losses)},
            "mean_test_score": mean,
            "std_test_score": self.scores[self.counted].std(axis=0),
            "rank_test_score": rankdata(-filled, method="min").astype(np.int32),
            f"mean_test_{loss_name}": self.loss,
            "max_gap": self.gaps.max(axis=0),
        }


def _warn_of_failures(folds: Sequence[FoldScores], error_score: float | str) -> None:
    """Warn if some folds failed; raise if all did."""
    failed = [fold for fold in folds if fold.error is not None]
    if not failed:
        return
    first = failed[0].error
    if len(failed) == len(folds):
        raise ValueError(f"The fit failed in all {len(folds)} folds; the first error was: {first}") from first
    warnings.warn(
        f"The fit failed in {len(failed)} of {len(folds)} folds (error_score={error_score}); the first error was: "
        f"{first}",
        FitFailedWarning,
        stacklevel=5,
    )


@dataclass(frozen=True)
class Choice:
    """What a search takes.

    share: what the tasks have in common; rows: the best row of each way to share; sharing: its mean score and the
    standard error of that over the folds, NaN for a single fold.
    """

    share: Share
    rows: dict[Share, int]
    sharing: dict[Share, tuple[float, float]]

    @classmethod
    def of(cls, table: ScoreTable, by_loss: bool, small_tasks: bool) -> Choice:
        """The choice of :func:`choose` for each way to share, and of :func:`choose_way` among these."""
        scores = table.scores[table.counted]
        rows = best_of_ways(scores, table.loss, table.points, by_loss)
        of_way = {way: scores[:, row] for way, row in rows.items()}
        errors = {way: float(_standard_error(own)) if len(own) > 1 else math.nan for way, own in of_way.items()}
        sharing = {way: (float(own.mean()), errors[way]) for way, own in of_way.items()}
        return cls(choose_way(of_way, small_tasks), rows, sharing)

    @property
    def row(self) -> int:
        """The chosen row."""
        return self.rows[self.share]


def choose(scores: Array, losses: Array, points: Mapping[str, Array], by_loss: bool = False) -> int:
    """The best row, given the score of each fold (n_folds, n_rows), greater is better, and the loss of each row.

    ``points`` are the parameters of the rows, including C and perhaps p. The highest mean score wins; the smallest loss
    breaks ties. But the folds cannot tell rows within one standard error of it apart. Among these, keep the rows with p
    nearest to one, the default choice. Among these, keep the rows that fall behind the best by at most one standard
    error of the paired difference. Of these, take the one with the highest score averaged with the next smaller and
    larger C, since a plateau is safer than a peak; again the smallest loss breaks ties.

    With ``by_loss``, the smallest loss decides directly among the rows nearest to p = 1: if decisions estimate the
    labels, as in least squares, their error is more informative than the few samples that change sides.
    """
    mean = scores.mean(axis=0)
    everyone = np.arange(len(mean))
    best = _best(mean, losses, everyone)
    as_good = everyone[mean >= mean[best] - _standard_error(scores[:, best]) - _tie(mean[best])]
    nearest = as_good
    if "p" in points:
        distance = np.array([_distance_from_one(p) for p in points["p"][as_good].tolist()])
        nearest = as_good[distance == distance.min()]
    if by_loss:
        return _best(np.zeros(len(mean)), losses, nearest)
    first = _best(mean, losses, nearest)
    behind = scores[:, [first]] - scores[:, nearest]
    close = behind.mean(axis=0) <= _standard_error(behind) + _tie(mean[first])
    return _best(steadied(mean, points), losses, nearest[close])


def _standard_error(scores: Array) -> Any:
    """Standard error of the mean over the folds, the first axis; zero for a single fold."""
    return scores.std(axis=0, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else 0.0


def steadied(mean: Array, points: Mapping[str, Array]) -> Array:
    """Each score averaged with the scores at the next smaller and the next larger C, all else equal.

    At an end of the grid, or if a neighbour has no score, the score itself replaces it.
    """
    levels, at = np.unique(points["C"], return_inverse=True)
    others = [points[name] for name in points if name != "C"]
    _, line = np.unique(np.column_stack([*others, np.zeros(len(mean))]), axis=0, return_inverse=True)
    table = np.full((line.max() + 1, len(levels) + 2), np.nan)
    table[line.ravel(), at + 1] = mean
    around = [np.where(np.isnan(side), mean, side) for side in (table[line.ravel(), at], table[line.ravel(), at + 2])]
    return (around[0] + mean + around[1]) / 3


def best_of_ways(scores: Array, losses: Array, points: Mapping[str, Array], by_loss: bool = False) -> dict[Any, int]:
    """The best row of each way to share, in the order of the rows (from nothing to everything).

    ``points`` and ``by_loss`` are as in :func:`choose`; ``points["share"]`` is the way to share of each row.
    """
    ways, others = points["share"], {name: values for name, values in points.items() if name != "share"}
    found = {}
    for way in dict.fromkeys(ways.tolist()):
        own = np.flatnonzero(ways == way)
        here = {name: values[own] for name, values in others.items()}
        found[way] = int(own[choose(scores[:, own], losses[own], here, by_loss)])
    return found


def choose_way(scores: Mapping[W, Array], small: bool) -> W:
    """What the tasks should share, given the fold scores of each way, from nothing to everything.

    The highest mean wins. If tasks are ``small``, the folds cannot rule out ways that share more and fall behind by at
    most half a standard error of the difference; then the way that shares most is taken. (A whole one gains a tenth of
    a point on small tables and loses most of a point where tasks differ: benchmarks/sharing_rule.py.)
    """
    ways = list(scores)
    best = max(ways, key=lambda way: float(scores[way].mean()))
    if small and len(scores[best]) > 1:
        for way in ways[: ways.index(best) : -1]:
            behind = scores[best] - scores[way]
            if behind.mean() <= 0.5 * _standard_error(behind):
                return way
    return best


def _best(mean: Array, losses: Array, rows: IntArray) -> int:
    """The row with the highest score (NaN is lowest); ties go to the smallest loss, then to the first row."""
    score = np.where(np.isnan(mean[rows]), -np.inf, mean[rows])
    tied = rows[score >= score.max() - _tie(score.max())]
    loss = np.where(np.isnan(losses[tied]), np.inf, losses[tied])
    return int(tied[np.flatnonzero(loss <= (1 + _SAME_LOSS) * loss.min())[0]])


def _tie(score: float) -> float:
    return _TIE * max(1.0, abs(score)) if np.isfinite(score) else 0.0


def _distance_from_one(p: float) -> float:
    """|log p|; p ≤ 0 counts as farther away than any positive p."""
    return abs(math.log(p)) if p > 0 else 1e3 - p


def edge_of(chosen: float, mean: Array, of_row: Array) -> str | None:
    """The end of the grid ("smallest" or "largest") that was chosen, if it scores better than all others; else None.

    ``of_row`` holds the value in each row, ``mean`` its score.
    """
    distinct = np.unique(of_row)
    if len(distinct) == 1 or chosen not in (distinct[0], distinct[-1]):
        return None
    here, elsewhere = np.nanmax(mean[of_row == chosen]), np.nanmax(mean[of_row != chosen], initial=-np.inf)
    if here <= elsewhere + _tie(here):
        return None
    return "smallest" if chosen == distinct[0] else "largest"
