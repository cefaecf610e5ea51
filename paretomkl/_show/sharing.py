"""What tasks share: the scores of the ways to share on the same folds, for messages and the page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._data.together import CALLED, Share, sharing_in_words
from .words import ACCURACY, Measure


@dataclass(frozen=True)
class Sharing:
    """The scores of the ways to share on the same folds.

    Parameters
    ----------
    scores : mapping of "nothing", "kernel", "function", "everything" to pairs of float
        Mean score over the folds and its standard error, each way with its own best parameters.
    best : str
        The chosen way.
    n_splits, n_rows : int
        The number of folds, and of the rows in them.
    measure : Measure
        What the scores are.
    common : float, default=None
        Share of the common part in the functions, if "function" was chosen.
    """

    scores: Mapping[Share, tuple[float, float]]
    best: Share
    n_splits: int
    n_rows: int
    measure: Measure = ACCURACY
    common: float | None = None

    @classmethod
    def from_search(cls, search: Any, measure: Measure = ACCURACY) -> Sharing | None:
        """The scores of a fitted search; None if it tried only one way."""
        if len(search.sharing_) < 2:
            return None
        common = getattr(search, "common_share_", None)
        return cls(search.sharing_, search.best_share_, search.n_splits_, search.n_search_rows_, measure, common)

    @property
    def in_words(self) -> str:
        """The result in one sentence."""
        return sharing_in_words(self.scores, self.best, self.common, self.measure.size)

    def text(self, way: Share) -> str:
        """Mean and standard error: "91.2 % ± 1.1"."""
        return self.measure.with_error(*self.scores[way])

    def facts(self) -> dict[str, Any]:
        """Numbers by name, for JSON."""
        by_way = {
            way: {"mean": mean, "standard_error": None if math.isnan(error) else error}
            for way, (mean, error) in self.scores.items()
        }
        found = {"best": self.best, "common_share": self.common, "in_words": self.in_words}
        return {"folds": self.n_splits, "rows": self.n_rows, "scores": by_way, **found}

    def page_data(self) -> dict[str, Any]:
        """What the page shows: bars from below the lowest score to the highest, with their errors."""
        spans = [(mean, 0.0 if math.isnan(error) else error) for mean, error in self.scores.values()]
        top, low = max(mean + error for mean, error in spans), min(mean - error for mean, error in spans)
        start = low - (top - low) / 2  # bars from zero would hide the differences, which are small
        width = (top - start) or 1.0
        rows = [
            {
                "name": way,
                "called": CALLED[way],
                "text": self.text(way),
                "bar": round((mean - start) / width, 4),
                "error": round(error / width, 4),
                "best": way == self.best,
            }
            for way, (mean, error) in zip(self.scores, spans, strict=True)
        ]
        ends = {"start": self.measure.text(start), "end": self.measure.text(top)}
        return {"rows": rows, "words": self.in_words, "folds": self.n_splits, "rowsOfFolds": self.n_rows, **ends}
