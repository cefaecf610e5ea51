"""The master knows a weight set by its barrier only: one of a user's own plugs in, and the bounds are rigorous."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from paretomkl import pareto_path
from paretomkl._validation import check_data
from paretomkl.path import make_problem
from paretomkl.scalarizations import PowerMean
from paretomkl.solvers import CutPool
from paretomkl.solvers._master import minimize_over_cuts
from paretomkl.tasks import make_tasks
from paretomkl.weight_sets import CONSTRAINT, GAUGE, BarrierFunction, LsBall


@BarrierFunction
def weighted_ball(question, x, parameters, gradient, curvature):
    """Σ_m w_m θ_m^s with parameters (s, w_1, w_2, …)."""
    s, total = parameters[0], 0.0
    if question == CONSTRAINT:
        for m in range(len(x)):
            total += parameters[1 + m] * x[m] ** s
            gradient[m] = s * parameters[1 + m] * x[m] ** (s - 1)
            curvature[m] = s * (s - 1) * parameters[1 + m] * x[m] ** (s - 2)
        return total
    if question == GAUGE:
        for m in range(len(x)):
            total += parameters[1 + m] * x[m] ** s
        return total ** (1 / s)
    dual = s / (s - 1)
    for m in range(len(x)):
        total += (x[m] / parameters[1 + m] ** (1 / s)) ** dual
    return total ** (1 / dual)


@dataclass(frozen=True)
class WeightedBall:
    """θ ≥ 0, Σ_m w_m θ_m^s ≤ 1 for s > 1: the L_s ball in φ_m = w_m^(1/s) θ_m."""

    s: float
    w: np.ndarray

    @property
    def barrier(self):
        return weighted_ball, np.array([self.s, *self.w])

    @property
    def unit(self):
        return self.w ** (-1 / self.s)

    def start(self, n_kernels):
        return self.unit * n_kernels ** (-1 / self.s)

    def greatest(self, n_kernels):
        return None

    def support(self, direction):
        return LsBall(self.s).support(self.unit * direction)

    def scale_to_boundary(self, theta):
        return self.unit * LsBall(self.s).scale_to_boundary(theta / self.unit)

    def minimize_ratio(self, w):
        return self.unit * LsBall(self.s).minimize_ratio(w / self.unit)


def problem_of(toy, stack, weight_set):
    bank, data = check_data(stack, "precomputed")
    tasks = make_tasks(toy.y, toy.tasks)
    problem = make_problem(bank, data, tasks, [np.ones(len(task.rows)) for task in tasks], s=1.1)
    return replace(problem, weight_set=weight_set)


@pytest.mark.parametrize("p", [-1.0, 0.5, 1.0, 3.0, np.inf])
def test_a_weighted_ball_is_the_ball_of_scaled_kernels(toy, p):
    ball = WeightedBall(1.3, np.array([0.2, 1.0, 3.0, 0.5, 7.0]))
    stack = np.moveaxis(toy.Ks, 0, 2)
    scalarization = PowerMean(p)
    own = CutPool(tol=1e-6).solve(replace(problem_of(toy, stack, ball), scalarization=scalarization))
    plain = CutPool(tol=1e-6).solve(
        replace(problem_of(toy, stack * ball.unit, LsBall(1.3)), scalarization=scalarization)
    )
    assert max(own.gap, plain.gap) <= 1e-6
    assert_allclose(own.objective, plain.objective, rtol=3e-6)
    assert_allclose(own.theta / ball.unit, plain.theta, atol=2e-3)


def random_cuts(n_kernels, seed):
    """Cuts of four tasks of value one or so, the constant ones first; a few have been dropped."""
    rng = np.random.default_rng(seed)
    linear, slopes = 1 + rng.random((6, 4)), rng.random((6, 4, n_kernels)) / n_kernels
    linear[0], slopes[0] = 0.1, 0.0
    return linear, slopes, (rng.random((6, 4)) < 0.8) | (np.arange(6) == 0)[:, None]


@pytest.mark.parametrize("s", [1.0, 1.1, 3.0])
@pytest.mark.parametrize("p", [1.0, 2.0, 30.0, np.inf])
@pytest.mark.parametrize("n_kernels", [1, 6, 80])
def test_the_bounds_meet_and_no_weights_go_below(n_kernels, p, s):
    linear, slopes, present = random_cuts(n_kernels, seed=n_kernels)
    omega, ball = np.array([0.4, 0.3, 0.2, 0.1]), LsBall(s)
    joint = bool(np.isinf(p))

    def value(theta):
        heights = np.where(present, linear - slopes @ theta, -np.inf).max(axis=0)
        return PowerMean(p, omega).value(heights)

    found = minimize_over_cuts(
        linear, slopes, present, np.ones(4), omega, 1.0 if joint else p, ball, ball.start(n_kernels), 1e-8, joint
    )
    assert_allclose(value(found.theta), found.upper, rtol=1e-10)
    assert 0 <= found.upper - found.lower <= 1e-8 * found.upper
    rng = np.random.default_rng(0)
    for _ in range(100):
        other = found.theta * np.exp(10 ** rng.uniform(-4, 0) * rng.standard_normal(n_kernels))
        assert value(ball.scale_to_boundary(other)) >= found.lower * (1 - 1e-12)


def test_a_cut_of_no_use_is_not_reported_as_used():
    linear, slopes, present = random_cuts(5, seed=0)
    linear[2] = 0.05  # below the constant cuts
    found = minimize_over_cuts(
        linear, slopes, present, np.ones(4), np.full(4, 0.25), 1.0, LsBall(1.1), LsBall(1.1).start(5), 1e-8
    )
    assert not np.any(found.used[2])
    assert np.all(found.used.any(axis=0))
    assert not np.any(found.used & ~present)
    assert_allclose(found.task_weights, 0.25)


@pytest.mark.parametrize("p", [-np.inf, -2.0, 0.5, 1.0, 3.0, np.inf])
def test_the_plain_sum_of_kernels_needs_no_master(toy, p):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = pareto_path(toy.X, toy.y, toy.tasks, ps=[p], s=np.inf, kernels=toy.kernels)
    assert_allclose(path.theta, 1.0)
    assert path.gap[0] <= 1e-3
    if np.isinf(p):  # the task at the extreme, and no other
        extreme = path.objectives[0].argmax() if p > 0 else path.objectives[0].argmin()
        assert_allclose(path.task_weights[0], np.arange(3) == extreme)
