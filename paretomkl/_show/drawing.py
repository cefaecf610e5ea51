"""Shared by pages and figures: the axis of exponents, and labels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

import numpy as np
from numpy.typing import ArrayLike

from .._tools.typing import Array

NUMBER_AT_START, NUMBER_AT_END = re.compile(r"^[\d.]+"), re.compile(r"[\d.]+$")
LINEAR_BELOW = 1e-3  # |p| below which M_p looks like the geometric mean


def exponent_label(p: float) -> str:
    if np.isinf(p):
        return "∞" if p > 0 else "−∞"
    return f"{float(f'{p:.4g}'):g}".replace("-", "−")  # four digits, and 1000 in full


def exponent_ranks(ps: Array) -> Array:
    """Priority of the labels: 0 for ±∞ and p = 1, then the two ends, decades, others."""
    with np.errstate(divide="ignore", invalid="ignore"):
        decade = np.isin(np.log10(np.abs(ps)), np.arange(-9, 10)) | (ps == 0)
    return np.select([np.isinf(ps) | (ps == 1), (ps == ps.min()) | (ps == ps.max()), decade], [0, 1, 2], 3)


def shorten(name: str, length: int = 40) -> str:
    """A long name with its middle cut out, since both ends help to recognise it."""
    if len(name) <= length:
        return name
    head = length // 2
    return _start(name, head).rstrip() + "…" + _end(name, length - head - 1).lstrip()


def shorten_all(names: Sequence[str], length: int = 40) -> list[str]:
    """Cut long names where they differ least, or elsewhere if that keeps more of them distinct."""
    if all(len(name) <= length for name in names):
        return list(names)
    distinct = list(dict.fromkeys(names))
    if len(distinct) == 1:
        return [shorten(name, length) for name in names]
    same_start, same_end = _n_common(distinct), _n_common([name[::-1] for name in distinct])
    start = max(0, same_start - 4)  # keep a little of the common start

    def cut(name: str, way: str) -> str:
        if len(name) <= length:
            return name
        if way == "end":
            return _start(name, length - 1).rstrip() + "…"
        if way == "start":
            return "…" + _end(name, length - 1).lstrip()
        return shorten(name, length) if way == "middle" else "…" + _start(name[start:], length - 2).strip() + "…"

    ways = ["end", "start"] if same_end >= same_start else ["start", "end"]
    found = [[cut(name, way) for name in names] for way in [*ways, "middle", "both"]]
    return max(found, key=lambda short: len(set(short)))  # the first one in a tie


def _n_common(names: Sequence[str]) -> int:
    """Length of the common prefix of all names."""
    return sum(1 for _ in takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False)))


def _start(name: str, length: int) -> str:
    """The first letters, without cutting through a number."""
    kept = name[:length]
    return NUMBER_AT_END.sub("", kept) or kept if NUMBER_AT_START.match(name[length:]) else kept


def _end(name: str, length: int) -> str:
    """The last letters, without cutting through a number."""
    kept = name[len(name) - length :]
    return NUMBER_AT_START.sub("", kept) or kept if NUMBER_AT_END.search(name[: len(name) - length]) else kept


def pool_kernels(theta: Array, names: list[str], n_named: int) -> tuple[Array, list[str]]:
    """Weights (n_points, n_shown) and names: the heaviest kernels in bank order, then the sum of the others."""
    if len(names) <= n_named + 1:  # pooling a single kernel saves nothing
        return theta, list(names)
    ranked = np.argsort(-theta.max(axis=0), kind="stable")
    named, others = np.sort(ranked[:n_named]), ranked[n_named:]
    weights = np.column_stack([theta[:, named], theta[:, others].sum(axis=1)])
    return weights, [names[m] for m in named] + [f"{len(others)} others"]


class ExponentScale:
    """Exponents on an axis that is logarithmic on either side of zero, with ±∞ one step beyond the last.

    ps: distinct exponents, increasing; finite: the finite ones; linear: |p| below which the axis is linear; beyond: the
    positions of −∞ and ∞.
    """

    def __init__(self, ps: ArrayLike):
        self.ps = np.unique(np.asarray(ps, dtype=float))
        finite = self.ps[np.isfinite(self.ps)]
        self.finite = finite if len(finite) else np.ones(1)
        sizes = np.abs(self.finite[self.finite != 0])
        self.linear = max(float(min(sizes, default=1.0)), LINEAR_BELOW)
        u = self.forward(self.finite)
        step = max(float(np.median(np.diff(u))), 0.08 * (u[-1] - u[0])) if len(u) > 1 else 0.5
        self.beyond = float(u[0] - step), float(u[-1] + step)

    def forward(self, p: ArrayLike) -> Array:
        """Position of a finite p: sign(p) (1 + log10 |p|/l) beyond ±l, p/l between."""
        ratio = np.asarray(p, dtype=float) / self.linear
        return np.where(np.abs(ratio) <= 1, ratio, np.sign(ratio) * (1 + np.log10(np.maximum(np.abs(ratio), 1))))

    def inverse(self, u: ArrayLike) -> Array:
        u = np.asarray(u, dtype=float)
        beyond = np.sign(u) * 10 ** np.minimum(np.maximum(np.abs(u) - 1, 0), 300)
        return self.linear * np.where(np.abs(u) <= 1, u, beyond)

    def heights(self, ps: ArrayLike) -> Array:
        """Positions of any exponents."""
        ps = np.asarray(ps, dtype=float)
        infinite = np.isinf(ps)
        return np.where(infinite, np.where(ps > 0, *self.beyond[::-1]), self.forward(np.where(infinite, 0.0, ps)))

    def round_ps(self) -> Array:
        """Round numbers in the range of the exponents, and ±∞ if it is one of them."""
        decades = 10.0 ** np.arange(-3, 10)
        sizes = np.concatenate([decades, 2 * decades, 5 * decades])
        sizes = sizes[sizes >= self.linear * (1 - 1e-9)]
        candidates = np.unique(np.concatenate([-sizes, [0.0], sizes]))
        inside = candidates[(candidates >= self.finite[0]) & (candidates <= self.finite[-1])]
        low, high = self.finite[[0, -1]]
        if len(inside) < 3 and high > low:  # a short range
            step = 10.0 ** np.floor(np.log10((high - low) / 3))
            inside = step * np.arange(np.ceil(low / step), np.floor(high / step) + 1)
        return np.concatenate([inside, self.ps[np.isinf(self.ps)]])


class ExponentAxis(ExponentScale):
    """The scale of a page: places in [0, 1], from the first to the last exponent."""

    def places(self, ps: ArrayLike) -> Array:
        return self._between(self.heights(ps))

    def _between(self, heights: Array) -> Array:
        low, high = self.heights(self.ps[[0, -1]])
        return (heights - low) / (high - low) if high > low else np.full(len(heights), 0.5)

    def nearest(self, p: float) -> int:
        """The row whose exponent is nearest to p on the axis."""
        return int(np.abs(self.heights(self.ps) - self.heights(p)).argmin())

    def breaks(self) -> Array:
        """Places between the finite exponents and ±∞, where the axis is broken."""
        ends = zip(self.ps[[0, -1]], self.beyond, self.forward(self.finite[[0, -1]]), strict=True)
        middles = [(beyond + last) / 2 for p, beyond, last in ends if np.isinf(p)]
        return self._between(np.array(middles)) if len(self.ps) > 1 else np.empty(0)

    def ticks(self) -> list[tuple[float, str, int]]:
        """Place, label and rank of round exponents; low ranks are labelled first."""
        ps = self.round_ps()
        ranks = exponent_ranks(ps).tolist()
        return list(zip(self.places(ps).round(6).tolist(), map(exponent_label, ps), ranks, strict=True))
