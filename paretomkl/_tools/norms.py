"""Norms that neither overflow nor underflow."""

from __future__ import annotations

import numpy as np

from .typing import Array


def power_norm(v: Array, r: float) -> Array:
    """‖v‖_r along the last axis for v ≥ 0 and 1 ≤ r ≤ ∞; factoring out the largest entry prevents overflow."""
    top = np.maximum.reduce(v, axis=-1)  # reduce has less overhead than max and sum
    if r == np.inf:
        return top
    scaled = v / (top or 1.0) if v.ndim == 1 else v / np.where(top > 0, top, 1.0)[..., None]
    return top * np.add.reduce(scaled**r, axis=-1) ** (1 / r)
