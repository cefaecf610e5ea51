"""The master problem restricted to a few kernels, for sparse weights and very many kernels.

A restricted master keeps most θ_m at zero. Its multipliers μ also give a lower bound on the full master, since

    Σ_k μ_k a_k − h(Σ_k μ_k h_k),    h the support function of the full weight set,

needs no θ, only the slopes Σ_k μ_k h_k of all kernels, which are one matrix-vector product. The restricted master
misses the kernels whose slopes exceed those of the chosen ones; these join it until what is missing is negligible.
"""

from __future__ import annotations

import numpy as np

from .._tools.typing import AnyArray, Array, IntArray
from ..protocols import WeightSet
from ._master import Optimum, minimize_over_cuts

MANY = 1000  # number of kernels from which a restricted master is less work
_JOINING = 200  # kernels that join at a time
_MOST_ROUNDS = 25
_UNUSED = 1e-9  # weights below this fraction of the largest count as unused
_NEARLY = 0.98  # kernels with a slope above this fraction of the largest are likely to be needed next time


def minimize_over_few(
    linear: Array,
    slopes: Array,
    present: AnyArray,
    scale: Array,
    omega: Array,
    p: float,
    weight_set: WeightSet,
    start: Array,
    rtol: float,
    joint: bool,
    likely: IntArray,
) -> tuple[Optimum, IntArray]:
    """``minimize_over_cuts`` for sparse weights; also returns the kernels to begin with next time.

    The bounds are valid for the master with all kernels, whichever were chosen.
    """
    rows = np.flatnonzero(present.any(axis=1))
    here, live = slopes[rows], present[rows]
    chosen = np.zeros(slopes.shape[2], dtype=bool)
    chosen[likely] = chosen[largest(start)] = chosen[largest(omega / scale @ here[-1])] = True
    lower = -np.inf
    for _ in range(_MOST_ROUNDS):
        few = np.flatnonzero(chosen)
        some = np.ascontiguousarray(here[:, :, few])
        found = minimize_over_cuts(linear[rows], some, live, scale, omega, p, weight_set, start[few], 0.5 * rtol, joint)
        slope = (found.multipliers / scale).ravel() @ here.reshape(-1, len(chosen))
        least, steepest = float(weight_set.support(slope[few])), float(weight_set.support(slope))
        lower = max(lower, found.lower + least - steepest)
        missing = np.flatnonzero((slope > least) & ~chosen)
        if found.upper - lower <= rtol * found.upper or not len(missing):
            break
        chosen[missing[largest(slope[missing])]] = True
    theta, used = np.zeros(len(chosen)), np.zeros(present.shape, dtype=bool)
    theta[few], used[rows] = found.theta, found.used
    likely = few[(found.theta > _UNUSED * found.theta.max()) | (slope[few] > _NEARLY * steepest)]
    return found._replace(theta=theta, lower=lower, used=used), likely


def largest(values: Array) -> IntArray:
    """Positions of the largest values."""
    return np.argpartition(values, -_JOINING)[-_JOINING:] if len(values) > _JOINING else np.arange(len(values))
