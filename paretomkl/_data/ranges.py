"""Values far outside the range of the training data, in Python and on the command line."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from .._tools.typing import AnyArray, Array, IntArray
from .._tools.wording import counted
from ..exceptions import UnlikeTrainingWarning
from ..kernels._evaluation import dense
from .labels import Samples

FAR = 3.0  # a value is far outside if it is beyond the training range by more than this many widths of the range, …
FAR_IF_RARE = 10.0  # … or this many if most training values are the same, since a few others then make the range
MOST_NAMED = 2  # columns that a warning names at most
MOST_ROWS = 1000  # rows that a warning lists at most


class FarColumn(NamedTuple):
    """A column with values far outside the training range: its position, that range, and the rows with one."""

    position: int
    low: float
    high: float
    rows: IntArray
    first: float

    def in_words(self, name: object, start: int = 0) -> str:
        """``column 'age' is far outside what the model has seen (20 to 89) in 1 row, such as 1990 in row 4``.

        ``start`` is the number of the first row.
        """
        where = f"{counted(len(self.rows), 'row')}, such as {self.first:g} in row {self.rows[0] + start}"
        seen = f"{self.low:g} to {self.high:g}"
        return f"column {str(name)[:60]!r} is far outside what the model has seen ({seen}) in {where}"


def far_outside(X: AnyArray, known: Array) -> list[FarColumn]:
    """The columns of X with values far outside the training range.

    ``known`` (3, n_features) are the smallest and the largest value in training, and the share of samples with one of
    them. A column with a single value has no range to measure by, and no effect once it is standardised.
    """
    low, high, same = known
    some: Any = X
    if issparse(some):
        bottom, top = dense(some.nanmin(axis=0)).ravel(), dense(some.nanmax(axis=0)).ravel()
    else:
        bottom, top = np.fmin.reduce(some, axis=0), np.fmax.reduce(some, axis=0)
    if not ((bottom < low) | (top > high)).any():
        return []
    with np.errstate(invalid="ignore"):  # infinite ranges have no width
        width = np.where(high > low, high - low, np.inf)
    reach = np.where(same > 0.5, FAR_IF_RARE, FAR) * width
    least, most = low - reach, high + reach
    found = []
    for k in np.flatnonzero((bottom < least) | (top > most)).tolist():
        values = dense(some[:, [k]]).ravel()
        rows = np.flatnonzero((values < least[k]) | (values > most[k]))
        found.append(FarColumn(k, float(low[k]), float(high[k]), rows, float(values[rows[0]])))
    return found


def warn_if_far(samples: Samples, known: Array, names: Sequence[object] | None, stacklevel: int) -> None:
    """Warn of values far outside the training range, once for all of them."""
    if samples.data.ndim != 2 or samples.data.shape[1] != known.shape[1] or not len(samples):
        return
    found = far_outside(samples.data, known)
    if not found:
        return
    labels = [far.position if names is None else names[far.position] for far in found]
    said = "; ".join(far.in_words(label) for far, label in zip(found[:MOST_NAMED], labels, strict=False))
    rest = len(found) - MOST_NAMED
    more = f"; so {'is' if rest == 1 else 'are'} {counted(rest, 'more column')}" if rest > 0 else ""
    rows = np.unique(np.concatenate([far.rows for far in found]))[:MOST_ROWS]
    message = f"{said[0].upper()}{said[1:]}{more}. Predictions there are guesses."
    warnings.warn(UnlikeTrainingWarning(message, rows.tolist(), labels), stacklevel=stacklevel)
