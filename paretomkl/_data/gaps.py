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


def nearly_empty(X: Any) -> AnyArray:
    """Which columns have hardly any values."""
    n_gaps = np.bincount(X.indices[np.isnan(X.data)], minlength=X.shape[1]) if issparse(X) else np.isnan(X).sum(axis=0)
    return np.asarray(n_gaps > (1 - NEARLY_EMPTY) * X.shape[0])


def note_gaps(kernels: Any, samples: Samples, training: bool, left_out: AnyArray) -> None:
    """Warn of the rows, columns and sources with missing values, and in training of columns that are left out."""
    X: Any = samples.data
    bank, names = as_bank(kernels).for_blocks(samples.blocks), samples.names
    n_columns = X.shape[1]
    blocks = bank.columns_by_source(n_columns, names) if bank.n_sources else []
    if issparse(X):  # the columns with gaps are enough
        some = np.unique(X.indices[np.isnan(X.data)])
        X, names = X[:, some].toarray(), (some.tolist() if names is None else [names[k] for k in some])
        blocks = [(k, one, np.searchsorted(some, seen)) for k, one, seen in blocks if np.isin(seen, some).all()]
        left_out = left_out[some]
    gaps = np.isnan(X)
    lacks = lacking(gaps, [seen for _, _, seen in blocks])
    if not training:
        gaps[:, left_out] = False  # training has told that these columns have no effect
        if not gaps.any():
            return

    def counts(found: AnyArray) -> dict[Any, int]:
        return {int(k) if names is None else names[k]: int(n) for k, n in enumerate(found.sum(axis=0)) if n}

    single = gaps & ~left_out  # that are filled in
    for (_, _, seen), rows in zip(blocks, lacks.T, strict=True):
        single[np.ix_(rows, seen)] = False  # these gaps are named by their source
    sources = {name: int(n) for (name, _, _), n in zip(blocks, lacks.sum(axis=0), strict=True) if n}
    n_rows, n_cells = int(gaps.any(axis=1).sum()), len(gaps) * n_columns
    said = [f"source {name!r} in {counted(n, 'row')}" for name, n in sources.items()]
    said += [f"{name!r} in {counted(n, 'row')}" for name, n in sorted(counts(single).items(), key=lambda one: -one[1])]
    rest, filled = len(said) - MOST_NAMED, gaps & ~left_out
    listed = joined(said[:MOST_NAMED] + [f"{rest:,} more"] * (rest > 0)) if said else ""
    n_filled, part = int(filled.any(axis=1).sum()), percent(float(filled.sum() / n_cells))
    sentences = [
        f"{n_filled:,} of {counted(len(gaps), 'row')} have gaps, {part} of all values; "
        f"the training data fill them in: {listed}."
    ] * bool(filled.any())
    unused = [int(k) if names is None else names[k] for k in np.flatnonzero(training & left_out)]
    if unused:
        columns, are = ("Column", "is") if len(unused) == 1 else ("Columns", "are")
        sentences.insert(0, f"{columns} {quoted(unused, MOST_NAMED)} {are} nearly empty and left out.")
    message = bounded(" ".join(sentences))
    share = float(gaps.sum() / n_cells)
    warnings.warn(MissingValueWarning(message, n_rows, counts(gaps), sources, share, unused), stacklevel=6)
