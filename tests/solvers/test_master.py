"""The master's bounds agree and are rigorous, for every weight set that has a barrier."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from paretomkl.scalarizations import PowerMean
from paretomkl.solvers._cut_pool import CutStore
from paretomkl.solvers._master import MasterProblem, minimize_over_cuts
from paretomkl.sweep import Sweep
from paretomkl.weight_sets import LsBall


def random_cuts(n_kernels, seed):
    """Cuts of four tasks with values around one, the constant cuts first; a few have been dropped."""
    rng = np.random.default_rng(seed)
    linear, slopes = 1 + rng.random((6, 4)), rng.random((6, 4, n_kernels)) / n_kernels
    linear[0], slopes[0] = 0.1, 0.0
    return linear, slopes, (rng.random((6, 4)) < 0.8) | (np.arange(6) == 0)[:, None]


@pytest.mark.parametrize("s", [1.0, 1.1, 3.0])
@pytest.mark.parametrize("p", [1.0, 2.0, 30.0, np.inf])
@pytest.mark.parametrize("n_kernels", [1, 6, 80])
def test_the_bounds_agree_and_no_weights_go_below(n_kernels, p, s):
    linear, slopes, present = random_cuts(n_kernels, seed=n_kernels)
    omega, ball = np.array([0.4, 0.3, 0.2, 0.1]), LsBall(s)
    joint = bool(np.isinf(p))

    def value(theta):
        heights = np.where(present, linear - slopes @ theta, -np.inf).max(axis=0)
        return PowerMean(p, omega).value(heights)

    master = MasterProblem(linear, slopes, present, np.ones(4), omega, 1.0 if joint else p, ball, joint)
    found = minimize_over_cuts(master, ball.start(n_kernels), 1e-8)
    assert_allclose(value(found.theta), found.upper, rtol=1e-10)
    assert 0 <= found.upper - found.lower <= 1e-8 * found.upper
    rng = np.random.default_rng(0)
    for _ in range(100):
        other = found.theta * np.exp(10 ** rng.uniform(-4, 0) * rng.standard_normal(n_kernels))
        assert value(ball.scale_to_boundary(other)) >= found.lower * (1 - 1e-12)


@pytest.mark.parametrize("s", [1.0, 1.1, 3.0])
@pytest.mark.parametrize("p", [1.0, 1.3, 4.0, np.inf])
@pytest.mark.parametrize("max_iter", [0, 1, 3, 100])
def test_the_multipliers_prove_the_lower_bound_after_any_number_of_steps(max_iter, p, s):
    """μ is feasible for the dual problem, and Σ_k μ_k a_k − h(Σ_k μ_k h_k) is the bound."""
    linear, slopes, present = random_cuts(5, seed=1)
    omega, scale, joint = np.array([0.4, 0.3, 0.2, 0.1]), np.array([1.0, 2.0, 0.5, 1.0]), bool(np.isinf(p))
    ball = LsBall(s)
    master = MasterProblem(linear, slopes, present, scale, omega, 1.0 if joint else p, ball, joint)
    found = minimize_over_cuts(master, ball.start(5), 1e-9, max_iter)
    mu = found.multipliers
    eta = mu.sum(axis=0)
    assert np.all(mu >= 0)
    assert np.all(mu[~present] == 0)
    if p == 1:
        assert_allclose(eta, omega, rtol=1e-9)
    else:
        assert (eta.sum() if joint else omega @ (eta / omega) ** (p / (p - 1))) <= 1 + 1e-9
    slope = np.tensordot(mu / scale, slopes, axes=2)
    dual_norm = np.linalg.norm(slope, np.inf if s == 1 else s / (s - 1))
    assert_allclose(found.lower, np.sum(mu / scale * linear) - dual_norm, rtol=1e-9)


@pytest.mark.parametrize("n_kernels", range(1, 16))
def test_the_smaller_system_is_chosen_without_a_gap(n_kernels):
    """One task and eight cuts make eleven squares: fewer than, as many as and more than the kernels."""
    rng = np.random.default_rng(n_kernels)
    linear, slopes = 1 + rng.random((8, 1)), rng.random((8, 1, n_kernels)) / n_kernels
    linear[0], slopes[0] = 0.1, 0.0
    everyone, ball = np.ones((8, 1), dtype=bool), LsBall(1.5)
    master = MasterProblem(linear, slopes, everyone, np.ones(1), np.ones(1), 1.0, ball)
    found = minimize_over_cuts(master, ball.start(n_kernels), 1e-9)
    assert found.upper - found.lower <= 1e-9 * found.upper
    assert found.n_steps <= 30


def test_a_useless_cut_is_dropped_and_no_other():
    linear, slopes, _ = random_cuts(5, seed=0)
    linear[2] = 0.05  # below the constant cuts
    cuts = CutStore(4, 5)
    for k in range(1, 6):
        cuts.add(Sweep(np.zeros(5), linear[k], 2 * slopes[k], linear[k], linear[k]))
    cuts.linear[0] = linear[0]
    master = MasterProblem(cuts.linear, cuts.slopes, cuts.live, np.ones(4), np.full(4, 0.25), 1.0, LsBall(1.1))
    found = minimize_over_cuts(master, LsBall(1.1).start(5), 1e-8)
    assert_allclose(found.multipliers.sum(axis=0), 0.25)
    used = cuts.in_use(found.multipliers, found.theta)
    assert not np.any(used[2])
    assert np.all(used.any(axis=0))
    cuts.note_use(used, patience=0)
    assert np.all(cuts.live[:4] == (used[:4] | (np.arange(4) == 0)[:, None]))
    assert np.all(cuts.live[4:])  # the last two are kept
