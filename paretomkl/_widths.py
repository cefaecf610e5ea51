"""Exponentials of very many rates from few: exp(−γd) for every γ of some octaves, from fixed nodes among them.

As a function of x = log γ, exp(−d e^x) is analytic and bounded by one for |Im x| ≤ π/2, whatever d ≥ 0. On an interval
of half-width h, interpolation at n Chebyshev nodes therefore misses it by at most 4 ρ^(1−n) / (ρ − 1) with
ρ = π/2h + √(1 + (π/2h)²). For four octaves ρ = 2.64: the 36 nodes below leave 4e-15, which is what rounding leaves too.
Within a segment γ changes by a factor of 16 only, so that 1 − exp(−γd) keeps its digits where it is small.

What is linear in the kernel, such as sums and quadratic forms, is made of the nodes' values in the same way. So is a
product of two such things: it is bounded by one in the same strip.
"""

from __future__ import annotations

import numpy as np

from ._typing import Array, IntArray

OCTAVES = 4  # rates of one segment lie between 16^k and 16^(k+1); its nodes are those of the segment below, times 16
N_NODES = 36
WORTHWHILE = 48  # rates in a segment from which on nodes are less work: 36 of them, and a sum for each rate

_ANGLES = (np.arange(N_NODES) + 0.5) * (np.pi / N_NODES)
_POSITIONS = -np.cos(_ANGLES)  # in the segment, from −1 to 1
_BARYCENTRIC = (-1.0) ** np.arange(N_NODES) * np.sin(_ANGLES)


def segment_of(rate: Array) -> IntArray:
    """The segment of each rate γ > 0."""
    return np.floor(np.log2(rate) / OCTAVES).astype(np.int64)


def nodes_of(segment: IntArray) -> Array:
    """The rates of the nodes of each segment, (n_segments, N_NODES); from one segment to the next exactly 16 times."""
    return np.ldexp(np.exp2(0.5 * OCTAVES * (1 + _POSITIONS)), OCTAVES * segment[:, None])


def mixing_of(rate: Array) -> Array:
    """exp(−rate_m d) = Σ_i mixing[m, i] exp(−node_i d) with the nodes of its segment: (n_rates, N_NODES)."""
    position = 2 * (np.log2(rate) / OCTAVES - segment_of(rate)) - 1
    apart = position[:, None] - _POSITIONS
    hit = np.abs(apart) < 1e-15
    share = _BARYCENTRIC / np.where(hit, 1.0, apart)
    share = np.where(hit.any(axis=1, keepdims=True), hit, share)
    return share / share.sum(axis=1, keepdims=True)
