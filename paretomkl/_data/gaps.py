"""Say which values of X are missing."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .._tools.typing import AnyArray
from .._tools.wording import bounded, counted, joined, percent, quoted
from ..exceptions import MissingValueWarning
from ..kernels._kernels import as_bank
from ..kernels._preparing import NEARLY_EMPTY, lacking
from .labels import Samples

MOST_NAMED = 5  # columns and sources that a message names at most


def note_gaps(kernels: Any, samples: Samples, training: bool) -> None:
    """Warn of the rows, columns and sources with missing values, and in training of columns with hardly any values."""
    X: Any = samples.data
    bank, names = as_bank(kernels).for_blocks(samples.blocks), samples.names
    n_columns = X.shape[1]
    blocks = bank.columns_by_source(n_columns, names) if bank.n_sources else []
    if issparse(X):  # the columns with gaps are enough
        some = np.unique(X.indices[np.isnan(X.data)])
        X, names = X[:, some].toarray(), (some.tolist() if names is None else [names[k] for k in some])
        blocks = [(k, one, np.searchsorted(some, seen)) for k, one, seen in blocks if np.isin(seen, some).all()]
    gaps = np.isnan(X)
    lacks = lacking(gaps, [seen for _, _, seen in blocks])

    def counts(found: AnyArray) -> dict[Any, int]:
        return {int(k) if names is None else names[k]: int(n) for k, n in enumerate(found.sum(axis=0)) if n}

    single = gaps.copy()
    for (_, _, seen), rows in zip(blocks, lacks.T, strict=True):
        single[np.ix_(rows, seen)] = False  # these gaps are named by their source
    sources = {name: int(n) for (name, _, _), n in zip(blocks, lacks.sum(axis=0), strict=True) if n}
    n_rows, share = int(gaps.any(axis=1).sum()), float(gaps.sum() / (len(gaps) * n_columns))
    said = [f"source {name!r} in {counted(n, 'row')}" for name, n in sources.items()]
    said += [f"{name!r} in {counted(n, 'row')}" for name, n in sorted(counts(single).items(), key=lambda one: -one[1])]
    rest = len(said) - MOST_NAMED
    message = (
        f"{n_rows:,} of {counted(len(gaps), 'row')} have gaps, {percent(share)} of all values; the training data fill "
        f"them in: {joined(said[:MOST_NAMED] + [f'{rest:,} more'] * (rest > 0))}."
    )
    empty = np.flatnonzero(training & (gaps.mean(axis=0) > 1 - NEARLY_EMPTY))
    unused = [int(k) if names is None else names[k] for k in empty]
    if unused:
        columns, are = ("Column", "is") if len(unused) == 1 else ("Columns", "are")
        message = f"{columns} {quoted(unused, MOST_NAMED)} {are} nearly empty and left out. {message}"
    warnings.warn(MissingValueWarning(bounded(message), n_rows, counts(gaps), sources, share, unused), stacklevel=6)
