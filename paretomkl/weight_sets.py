"""The allowed kernel weights: the L_s ball, with the closed forms that the solvers need.

A weight set is {θ ≥ 0, c(θ) ≤ 1} with a convex c. Its ``barrier`` describes c to the master of the cut pool: a compiled
function and an array of its parameters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._tools.compiled import barrier_function
from ._tools.typing import Array

__all__ = ["CONSTRAINT", "GAUGE", "SUPPORT", "LsBall", "barrier_function"]

CONSTRAINT, GAUGE, SUPPORT = 0, 1, 2  # what to ask a barrier function for


@barrier_function
def _ls_ball(question: int, x: Array, parameters: Array, gradient: Array, curvature: Array) -> float:
    """Barrier function of c(θ) = Σ_m θ_m^s, for x ≥ 0.

    CONSTRAINT: c(x); the gradient and the diagonal of the second derivatives are written to the arrays. GAUGE: ‖x‖_s;
    x divided by it lies on the boundary. SUPPORT: the largest θ'x over the set, ‖x‖_{s*}.
    """
    s = parameters[0]
    total = 0.0
    if question == CONSTRAINT:
        for m in range(len(x)):
            power = x[m] ** (s - 1.0)
            total += power * x[m]
            gradient[m] = s * power
            curvature[m] = s * (s - 1.0) * power / x[m]
        return total
    top = 0.0
    for m in range(len(x)):
        top = x[m] if x[m] > top else top
    if question == SUPPORT:
        s = np.inf if s == 1.0 else s / (s - 1.0)
    if s == np.inf or top == 0.0:
        return top
    for m in range(len(x)):
        total += (x[m] / top) ** s
    return top * total ** (1.0 / s)


@dataclass(frozen=True)
class LsBall:
    """Kernel weights Θ_s = {θ ≥ 0, ‖θ‖_s ≤ 1}, 1 ≤ s ≤ ∞.

    s = 1 gives sparse weights, a larger s spreads them, s = ∞ is the plain sum of all kernels.

    Parameters
    ----------
    s : float
        Norm of the weights, at least 1; infinity is allowed.

    Examples
    --------
    >>> from paretomkl.weight_sets import LsBall
    >>> LsBall(2.0).start(4).tolist()
    [0.5, 0.5, 0.5, 0.5]
    """

    s: float

    @property
    def conjugate(self) -> float:
        """s* with 1/s + 1/s* = 1."""
        if self.s == 1:
            return np.inf
        return 1.0 if np.isinf(self.s) else self.s / (self.s - 1)

    @property
    def norm(self) -> float:
        return self.s

    @property
    def sparse(self) -> bool:
        """Whether most optimal weights are zero: s = 1."""
        return self.s == 1

    def start(self, n_kernels: int) -> Array:
        """Uniform weights on the boundary."""
        return np.full(n_kernels, n_kernels ** (-1 / self.s))

    def greatest(self, n_kernels: int) -> Array | None:
        """The elementwise largest weights if they lie in the set, else None; they minimise all objectives at once."""
        return np.ones(n_kernels) if np.isinf(self.s) else None

    @property
    def barrier(self) -> tuple[barrier_function, Array]:
        """Σ_m θ_m^s ≤ 1, for the master of the cut pool."""
        return _ls_ball, np.array([self.s])

    def scale_to_boundary(self, theta: Array) -> Array:
        """θ / ‖θ‖_s. Task objectives fall as θ grows, so optimal weights lie on the boundary."""
        scaled = theta / theta.max()  # keeps the norm finite for weights of any size
        return scaled / _power_norm(scaled, self.s)

    def support(self, direction: Array) -> Array:
        """max over Θ_s of θ'v for v ≥ 0, which is the dual norm ‖v‖_{s*}, along the last axis."""
        return _power_norm(direction, self.conjugate)

    def minimize_ratio(self, w: Array) -> Array:
        """argmin over Θ_s of Σ_m w_m / θ_m for w ≥ 0: θ ∝ w^(1/(1+s)), ‖θ‖_s = 1 (the paper's Lemma 2)."""
        if not w.max() > 0:
            return self.start(len(w))
        if np.isinf(self.s):
            return np.ones_like(w)
        root = 1 / (1 + self.s)
        return self.scale_to_boundary(w**root / w.max() ** root)  # take roots first: w / w.max() may underflow

    def prox_step(self, theta: Array, gradient: Array, zeta: float) -> Array:
        """argmin over Θ_s of θ'gradient + ζ D(θ, θ_k), gradient ≤ 0 (the paper's Theorem 2).

        D is the Bregman divergence of ‖θ‖_s^s / s (of ‖θ‖_2²/2 for s = 1).
        """
        if self.s == 1:
            return _project_to_simplex_hull(theta - gradient / zeta)
        psi = theta ** (self.s - 1) - gradient / zeta
        top = psi.max()
        if not top > 0:
            return theta
        r = 1 / (self.s - 1)
        step = (psi / top) ** r  # ψ^r without the factor top^r, which may overflow for s near 1
        norm = _power_norm(step, self.s)
        # ψ^r / max(1, ‖ψ^r‖_s), in logarithms
        return step / norm * np.exp(min(0.0, r * np.log(top) + np.log(norm)))


def _project_to_simplex_hull(v: Array) -> Array:
    """Euclidean projection onto {θ ≥ 0, Σθ ≤ 1}: max(v - μ, 0) with the smallest feasible μ ≥ 0."""
    positive = np.maximum(v, 0)
    if positive.sum() <= 1:
        return positive
    v = v - v.max()  # a shift does not change the projection onto Σθ = 1, and keeps the 1 from being rounded away
    falling = np.sort(v)[::-1]
    excess = np.cumsum(falling) - 1
    count = np.arange(1, len(v) + 1)
    last = np.nonzero(falling * count > excess)[0][-1]
    return np.maximum(v - excess[last] / count[last], 0)


def _power_norm(v: Array, r: float) -> Array:
    """‖v‖_r along the last axis for v ≥ 0 and 1 ≤ r ≤ ∞; factoring out the largest entry prevents overflow."""
    top = np.maximum.reduce(v, axis=-1)  # reduce has less overhead than max and sum
    if r == np.inf:
        return top
    scaled = v / (top or 1.0) if v.ndim == 1 else v / np.where(top > 0, top, 1.0)[..., None]
    return top * np.add.reduce(scaled**r, axis=-1) ** (1 / r)
