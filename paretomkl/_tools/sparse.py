"""Matrices that are NumPy arrays or SciPy's sparse arrays by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack, issparse, vstack

from .typing import AnyArray, Array


def as_matrix(X: Any) -> AnyArray:
    """X in double precision: an array, or a sparse array by row without stored zeros."""
    if not issparse(X):
        return np.asarray(X, dtype=np.float64)
    made = csr_array(X, dtype=np.float64)
    if not made.has_canonical_format or (made.data == 0).any():
        made = made.copy()
        made.sum_duplicates()
        made.eliminate_zeros()
    return made


def side_by_side(parts: Sequence[AnyArray]) -> AnyArray:
    """The columns of several matrices; sparse if one of them is."""
    return csr_array(hstack(parts, format="csr")) if any(map(issparse, parts)) else np.hstack(parts)


def one_below_the_other(parts: Sequence[AnyArray]) -> AnyArray:
    """The rows of several matrices; sparse if one of them is."""
    return csr_array(vstack(parts, format="csr")) if any(map(issparse, parts)) else np.concatenate(parts)


def dense(part: Any) -> AnyArray:
    """The matrix as an array."""
    return part.toarray() if issparse(part) else part


def last_column(X: AnyArray) -> Array:
    return dense(X[:, [-1]]).ravel() if issparse(X) else X[:, -1]


def sums_of_squares(X: Any) -> Array:
    """‖x‖² of each row."""
    return np.asarray(X.multiply(X).sum(axis=1)).ravel() if issparse(X) else np.einsum("ij,ij->i", X, X)


def is_constant(X: Any) -> bool:
    """Whether all rows are the same."""
    if issparse(X):
        return bool((dense(X.max(axis=0)) == dense(X.min(axis=0))).all())
    return bool((X[:1] == X).all())
