"""The frame of a primal-dual interior-point method, without its equations: bounds, step lengths, and when to stop.

Its users eliminate most unknowns in closed form. A general conic solver (CVXPY with Clarabel, default settings) took
1.5 to 270 times as long for :class:`MinimaxMTL` on five of the paper's data sets.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from .._tools.typing import Array

STEP = 0.98  # part of the way to the boundary
SMALLEST_STEP = 1e-8  # smaller steps are only rounding errors
PATIENCE = 10  # stop after this many steps that improve neither bound


class InteriorPoint:
    """Takes steps with the predictor and corrector of Mehrotra (1992).

    ``dual`` and ``slack`` are flat arrays of positive numbers whose products are zero at the optimum.
    """

    dual: Array
    slack: Array
    d_dual: Array
    d_slack: Array
    upper, lower = np.inf, -np.inf
    more_pairs = 0  # in addition to those of dual and slack

    @abstractmethod
    def note_bounds(self) -> None:
        """Update the best bounds of the optimum, and the points that give them."""

    @abstractmethod
    def factor(self) -> None:
        """Factor the Newton equations at the current point."""

    @abstractmethod
    def head(self, goal: Array, tau: float) -> None:
        """Find the direction with dual·d_slack + slack·d_dual = goal, towards products τ."""

    def solve(self, rtol: float, max_steps: int, verbose: int = 0) -> int:
        """Step until the bounds are within rtol or stop improving, and return the number of steps."""
        n_steps = stale = 0
        while True:
            before = self.upper, self.lower
            self.note_bounds()
            stale = stale + 1 if before == (self.upper, self.lower) else 0
            gap = 1 - self.lower / self.upper
            if verbose:
                print(f"iteration {n_steps}: objective {self.upper:.6g}, gap {gap:.1e}")
            if gap <= rtol or n_steps == max_steps or stale > PATIENCE or not self.advance():
                return n_steps
            n_steps += 1

    def advance(self) -> bool:
        """Take one step; return False if rounding errors prevent it."""
        products = self.dual * self.slack
        try:
            with np.errstate(all="ignore"):
                self.factor()
                self.head(-products, 0.0)
                tau = self.target(min(1.0, self.room()))
                self.head(tau - products - self.d_dual * self.d_slack, tau)
                step = min(1.0, STEP * self.room())
        except np.linalg.LinAlgError:
            return False
        if not (step > SMALLEST_STEP and np.isfinite(self.d_dual @ self.d_slack)):
            return False
        self.move(step)
        return True

    def target(self, step: float) -> float:
        """The products to aim for; they are smaller the further the predictor gets."""
        return self.total(step) ** 3 / self.total(0.0) ** 2 / (len(self.dual) + self.more_pairs)

    def total(self, step: float) -> float:
        """Sum of the products after a step."""
        return float((self.dual + step * self.d_dual) @ (self.slack + step * self.d_slack))

    def room(self) -> float:
        """The longest step that keeps all unknowns positive."""
        return float(1 / max((-self.d_dual / self.dual).max(), (-self.d_slack / self.slack).max(), 1e-300))

    def move(self, step: float) -> None:
        self.dual = self.dual + step * self.d_dual
        self.slack = self.slack + step * self.d_slack
