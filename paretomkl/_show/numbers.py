"""Predicted numbers against the truth, for the page."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._data.labels import Decided, Samples
from .._data.numbers import Targets
from .._tools.typing import Array, IntArray

MOST_DRAWN = 100_000  # predictions on a page: 800 samples at 121 exponents take half a megabyte
STEPS = 9999  # predictions are rounded to this many steps of their range


@dataclass(frozen=True)
class Predictions:
    """Predicted and true numbers of held-out samples, or of some of them drawn evenly from all tasks.

    Parameters
    ----------
    tasks : array of int of shape (n_entries,)
        The task of each entry. A sample has one entry for each of its tasks.
    rows : array of int of shape (n_entries,)
        The sample of each entry.
    truth : array of shape (n_entries,)
    predicted : array of shape (n_points, n_entries)
        Predictions at each exponent of the path.
    n_all : int
        Number of entries before drawing.
    """

    tasks: IntArray
    rows: IntArray
    truth: Array
    predicted: Array
    n_all: int

    @classmethod
    def drawn_from(cls, targets: Targets, samples: Samples, y: Any, n_points: int) -> Predictions:
        """The samples to show, without predictions yet."""
        missing = Decided.missing(targets.groups(samples), len(samples))
        parts = targets.by_task(replace(missing, values=np.zeros(missing.values.shape)), y)
        n_all = sum(len(rows) for _, _, rows in parts)
        share = min(1.0, MOST_DRAWN / n_points / max(1, n_all))
        rng = np.random.default_rng(0)
        drawn = []
        for t, (truth, _, rows) in enumerate(parts):
            some = np.sort(rng.permutation(len(rows))[: int(np.ceil(share * len(rows)))])
            drawn.append((np.full(len(some), t), rows[some], truth[some]))
        tasks, chosen, known = (np.concatenate(column) for column in zip(*drawn, strict=True))
        return cls(tasks, chosen, known, np.empty((0, len(chosen))), n_all)

    def of_decisions(self, targets: Targets, decided: Decided) -> Array:
        """The predictions of one model, (n_entries,), from its decisions."""
        slots = self.tasks if targets.kind == "matrix" else 0
        return targets.centre[self.tasks] + targets.spread[self.tasks] * decided.values[self.rows, slots]

    def page_data(self, points: IntArray) -> dict[str, Any]:
        """What the page draws at these points of the path: whole steps of a range, which keep the file short."""
        predicted = self.predicted[points]
        low = float(min(self.truth.min(), predicted.min()))
        step = (float(max(self.truth.max(), predicted.max())) - low) / STEPS or 1.0
        return {
            "low": float(f"{low:.9g}"),
            "step": float(f"{step:.9g}"),
            "task": self.tasks.tolist(),
            "truth": np.rint((self.truth - low) / step).astype(int).tolist(),
            "predicted": np.rint((predicted - low) / step).astype(int).tolist(),
            "all": self.n_all,
        }
