"""X as several blocks of columns with the same rows, one per source, in a dict or a list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing

from .._tools.typing import AnyArray, IntArray
from .._tools.wording import quoted


@dataclass(frozen=True)
class Blocks:
    """Blocks of columns by name, as the user passed them: arrays, frames or sparse matrices of the same rows."""

    parts: Mapping[str, Any]

    @property
    def shape(self) -> tuple[int, int]:
        widths = [part.shape[1] for part in self.parts.values()]
        return next(iter(self.parts.values())).shape[0], sum(widths)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | IntArray) -> Blocks:
        return Blocks({name: _safe_indexing(part, rows) for name, part in self.parts.items()})


def as_blocks(X: Any) -> Any:
    """:class:`Blocks` if X is a dict, or a list of arrays or frames; else X itself."""
    if issparse(X):  # some sparse matrices are mappings
        return X
    if isinstance(X, Mapping):
        parts = {str(name): part for name, part in X.items()}
    elif isinstance(X, list | tuple) and X and all(len(getattr(part, "shape", ())) > 1 for part in X):
        parts = {f"block {k}": part for k, part in enumerate(X)}
    else:
        return X
    if not parts:
        raise ValueError("X has no blocks; pass one array or frame per source.")
    for name, part in parts.items():
        parts[name] = part = part if hasattr(part, "shape") else np.asarray(part)
        if len(part.shape) != 2:
            raise ValueError(f"Block {name!r} must have two dimensions, (n_samples, n_columns), got {part.shape}.")
        if part.shape[1] == 0:
            raise ValueError(f"Block {name!r} is empty: it has no columns.")
    first, one = next(iter(parts.items()))
    for name, part in parts.items():
        if part.shape[0] != one.shape[0]:
            raise ValueError(
                f"Block {name!r} has {part.shape[0]} rows, but block {first!r} has {one.shape[0]}; blocks describe the "
                "same samples, in the same order."
            )
        if hasattr(one, "iloc") and hasattr(part, "iloc") and not part.index.equals(one.index):
            raise ValueError(f"Block {name!r} has other row labels than block {first!r}; align them with .loc first.")
    return Blocks(parts)


def check_same_blocks(found: Mapping[str, AnyArray], known: Mapping[str, int] | None) -> None:
    """Raise unless X has the blocks of the training data, with the same numbers of columns."""
    if known is None:
        raise ValueError("X has blocks, but the model was fitted without; pass one array or frame as in fit.")
    missing, new = known.keys() - found.keys(), found.keys() - known.keys()
    if missing:
        raise ValueError(f"X has no block {min(missing)!r}; the model was fitted with {quoted(known)}.")
    if new:
        raise ValueError(f"X has the unknown block {min(new)!r}; the model was fitted with {quoted(known)}.")
    for name, n_columns in known.items():
        if found[name].shape[1] != n_columns:
            raise ValueError(f"Block {name!r} has {found[name].shape[1]} columns, but {n_columns} in training.")
