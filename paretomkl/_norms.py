"""Norms that neither overflow nor underflow."""

from __future__ import annotations

import numpy as np

from ._typing import Array


def power_norm(v: Array, r: float) -> Array:
    """‖v‖_r along the last axis for v ≥ 0 and 1 ≤ r ≤ ∞; factoring out the largest entry prevents overflow."""
    top = v.max(axis=-1)
    if np.isinf(r):
        return top
    scaled = v / (top or 1.0) if v.ndim == 1 else v / np.where(top > 0, top, 1.0)[..., None]
    return top * np.sum(scaled**r, axis=-1) ** (1 / r)
