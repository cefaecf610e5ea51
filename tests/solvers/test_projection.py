"""The projection of Tseng's step, compared with a conic solver and with the conditions that define it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from paretomkl.solvers._tseng import PointAndSet, project
from tests.oracles import power_norm

QS = [1.0, 1.02, 1.25, 2.0, 10.0, np.inf]


def make_point(seed, sizes=(2, 9, 20, 5), scale=1.0, spread=0.0):
    """A point to project and the set: tasks of the given sizes, bounds C and scales w over ``spread`` powers of ten."""
    rng = np.random.default_rng(seed)
    ptr = np.concatenate(([0], np.cumsum(sizes)))
    y = np.where(rng.random(ptr[-1]) < 0.5, 1.0, -1.0)
    y[ptr[:-1]], y[ptr[:-1] + 1] = 1.0, -1.0
    C = 10 ** (spread * (rng.random(ptr[-1]) - 0.5))
    omega = rng.uniform(0.2, 1, len(sizes))
    b = scale * (rng.standard_normal(ptr[-1]) + rng.uniform(-0.5, 0.5))
    l = scale * rng.standard_normal(len(sizes))
    w = 10 ** (spread * (rng.random(len(sizes)) - 0.5))
    return b, l, ptr, y, C, omega / omega.sum(), w


def solve(b, l, ptr, y, C, omega, w, q, nu=None):
    """The projection as new arrays: beta, lam, nu, kappa."""
    nu = np.zeros_like(l) if nu is None else nu.copy()
    beta, lam, kappa = project(PointAndSet(b, l, ptr, y, C, omega, w, float(q)), nu)
    return beta, lam, nu, kappa


def weighted_norm(lam, omega, q):
    """(sum omega (lam / omega)^q)^(1/q), at most one on the set."""
    x = lam / omega
    top = x.max()
    if top == 0 or np.isinf(q):
        return top
    return top * np.sum(omega * (x / top) ** q) ** (1 / q)


def largest(slope_beta, slope_lam, ptr, y, C, omega, q):
    """max of <slope, (beta, lam)> over the set.

    Per task, beta = lam a with 0 <= a <= C, a'y = 0: a linear programme whose dual is a minimum over one number,
    attained at a knot. Over lam it is the power mean that q is the conjugate exponent of.
    """
    z = slope_lam.copy()
    for t in range(len(z)):
        d, labels, upper = slope_beta[ptr[t] : ptr[t + 1]], y[ptr[t] : ptr[t + 1]], C[ptr[t] : ptr[t + 1]]
        z[t] += min(np.sum(upper * np.maximum(d - nu * labels, 0)) for nu in d * labels)
    z = np.maximum(z, 0)
    if q == 1 or z.max() == 0:
        return z.max()
    p = 1.0 if np.isinf(q) else q / (q - 1)
    return z.max() * np.sum(omega * (z / z.max()) ** p) ** (1 / p)


def assert_is_projection(b, l, ptr, y, C, omega, w, q, rtol=1e-10):
    """Feasible, and <x0 - x*, x - x*> <= 0 for every feasible x, to rounding."""
    beta, lam, *_ = solve(b, l, ptr, y, C, omega, w, q)
    size = max(np.abs(b).max(), np.abs(l).max(), 1.0)
    assert np.all(lam >= 0)
    assert weighted_norm(lam, omega, q) <= 1 + 1e-12
    assert np.all(beta >= 0)
    assert np.all(beta <= np.repeat(lam, np.diff(ptr)) * C)
    assert_allclose(np.add.reduceat(beta * y, ptr[:-1]), 0, atol=1e-14 * size)
    slope_beta, slope_lam = (b - beta) / np.repeat(w, np.diff(ptr)), (l - lam) / w
    best = largest(slope_beta, slope_lam, ptr, y, C, omega, q)
    reached = slope_beta @ beta + slope_lam @ lam
    assert best - reached <= rtol * size * max(C.max(), 1.0) / w.min()


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("scale", [0.05, 1.0, 30.0])
@pytest.mark.parametrize("q", QS)
def test_matches_a_conic_solver(q, scale):
    cp = pytest.importorskip("cvxpy")
    b, l, ptr, y, C, omega, w = make_point(int(10 * scale), scale=scale, spread=1.0)
    beta, lam, *_ = solve(b, l, ptr, y, C, omega, w, q)

    x, z = cp.Variable(len(b), nonneg=True), cp.Variable(len(l), nonneg=True)
    member = np.repeat(np.eye(len(l)), np.diff(ptr), axis=0)  # (n_samples, n_tasks)
    power = 1 / q - 1
    constraints = [
        x <= cp.multiply(member @ z, C),
        member.T @ cp.multiply(x, y) == 0,
        power_norm(cp.multiply(omega**power, z), q, approx=False) <= 1,
    ]
    per_sample = np.repeat(w, np.diff(ptr))
    objective = cp.sum_squares((x - b) / np.sqrt(per_sample)) + cp.sum_squares((z - l) / np.sqrt(w))
    cp.Problem(cp.Minimize(objective), constraints).solve(
        solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10
    )
    assert_allclose(lam, z.value, atol=2e-5)
    assert_allclose(beta, x.value, atol=2e-5)
    # nearer than the conic solver's point, or as near
    assert np.sum((beta - b) ** 2 / per_sample) + np.sum((lam - l) ** 2 / w) <= objective.value * (1 + 1e-6)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("spread", [0.0, 6.0])
@pytest.mark.parametrize("q", [*QS, 1 + 1e-6, 1e6])
def test_variational_inequality(q, spread, scale):
    for seed in range(5):
        assert_is_projection(*make_point(seed, scale=scale, spread=spread), q)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    q=st.one_of(st.floats(1, 3), st.floats(3, 1e4), st.sampled_from(QS)),
    sizes=st.lists(st.integers(2, 12), min_size=1, max_size=6),
    scale=st.floats(1e-4, 1e5),
    spread=st.floats(0, 6),
)
def test_variational_inequality_anywhere(seed, q, sizes, scale, spread):
    assert_is_projection(*make_point(seed, sizes, scale, spread), q)


@pytest.mark.parametrize("q", QS)
def test_stationarity_to_rounding(q):
    """The stationarity conditions hold to 1e-12, so the point is that accurate (projections do not expand)."""
    b, l, ptr, y, C, omega, w = make_point(3, sizes=(30, 40, 2, 60, 15), scale=0.3)
    l += 1
    w *= np.arange(1, 6)
    beta, lam, nu, kappa = solve(b, l, ptr, y, C, omega, w, q)
    per_sample = np.repeat(np.arange(len(l)), np.diff(ptr))
    free = b - nu[per_sample] * y
    assert_allclose(beta, np.clip(free, 0, lam[per_sample] * C), atol=1e-13)
    force = 2 * (lam - l) - 2 * np.add.reduceat(C * np.maximum(free - lam[per_sample] * C, 0), ptr[:-1])
    if np.isinf(q):
        assert np.all(force[lam == omega] <= 0)
        assert_allclose(force[lam < omega], 0, atol=1e-12)
    else:
        force += kappa * w * (lam / omega) ** (q - 1)
        positive = lam > 1e-15 * omega  # below that, lam counts as zero
        assert_allclose(force[positive], 0, atol=1e-12 * max(kappa, 1))
        assert_allclose(weighted_norm(lam, omega, q), 1, rtol=1e-13)


@pytest.mark.parametrize("q", QS)
def test_random_feasible_points_are_behind(q):
    b, l, ptr, y, C, omega, w = make_point(5, scale=2.0)
    beta, lam, *_ = solve(b, l, ptr, y, C, omega, w, q)
    for seed in range(20):
        other_b, other_l, *_ = make_point(100 + seed, scale=0.5)
        other_beta, other_lam, *_ = solve(other_b, other_l, ptr, y, C, omega, w, q)
        assert (b - beta) @ (other_beta - beta) + (l - lam) @ (other_lam - lam) <= 1e-12


@pytest.mark.parametrize("q", QS)
def test_feasible_points_stay(q):
    b, l, *others = make_point(7, scale=3.0, spread=2.0)
    beta, lam, nu, _ = solve(b, l, *others, q)
    again_beta, again_lam, *_ = solve(beta, lam, *others, q, nu=nu)
    assert_allclose(again_beta, beta, atol=1e-13)
    assert_allclose(again_lam, lam, atol=1e-13)


@pytest.mark.parametrize("q", QS)
def test_the_start_of_the_multipliers_does_not_matter(q):
    point = make_point(11, scale=0.4)
    expected = solve(*point, q)
    for start in (-1e8, 1e-3, 1e8):
        got = solve(*point, q, nu=np.full(4, start))
        for have, want in zip(got[:2], expected[:2], strict=True):
            assert_allclose(have, want, atol=1e-13)


@pytest.mark.parametrize(("q", "limit"), [(1 + 1e-9, 1.0), (1e9, np.inf)])
def test_ends_of_q_are_limits(q, limit):
    point = make_point(13, scale=1.5)
    for have, want in zip(solve(*point, q)[:2], solve(*point, limit)[:2], strict=True):
        assert_allclose(have, want, atol=1e-7)


def test_lam_is_zero_for_tasks_that_pull_nothing():
    b, l, *others = make_point(17)
    beta, lam, *_ = solve(-np.abs(b), -np.abs(l), *others, 2.0)
    assert np.all(lam == 0)
    assert np.all(beta == 0)


def test_a_class_with_no_room_leaves_beta_zero():
    """C_i = 0 for all samples of one class: only beta = 0 satisfies beta'y = 0, and lam is independent of it."""
    b, _, ptr, y, C, omega, w = make_point(19)
    beta, lam, *_ = solve(b, np.full(4, 0.1), ptr, y, np.where(y > 0, 0.0, C), omega, w, 2.0)
    assert_allclose(beta, 0)
    assert_allclose(lam, 0.1)
