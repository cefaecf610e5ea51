"""The L_s ball: no other point of the ball beats its closed forms, at any scale."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from paretomkl.weight_sets import CONSTRAINT, GAUGE, SUPPORT, LsBall, _power_norm, _project_to_simplex_hull

SS = [1.0, 1.0001, 1.1, 1.5, 2.0, 4.0, 50.0, np.inf]
PROX_SS = [s for s in SS if np.isfinite(s)]  # there is no Bregman divergence at s = inf
SCALES = [1e-200, 1e-20, 1e20, 1e200]

any_s = pytest.mark.parametrize("s", SS)
any_scale = pytest.mark.parametrize("scale", SCALES)


def vectors(n_max=6, low=-3.0, high=3.0):
    """Positive vectors over several decades, some entries zero."""
    entry = st.one_of(st.floats(low, high).map(lambda x: 10.0**x), st.just(0.0))
    return st.lists(entry, min_size=1, max_size=n_max).map(np.array)


def points_of_the_ball(ball, near, rng, count=300):
    """Random weights: anywhere on the sphere, near ``near`` on the sphere, and inside."""
    n = len(near)
    anywhere = rng.exponential(size=(count, n)) ** rng.uniform(0.2, 3, (count, 1))
    spread = 10 ** rng.uniform(-4, 0, (count, 1))
    nearby = near * np.exp(spread * rng.standard_normal((count, n)))
    raised = np.maximum(nearby, spread * (rng.random((count, n)) < 0.3))
    on_sphere = [theta / _power_norm(theta, ball.s) for theta in (*anywhere, *nearby, *raised) if theta.max() > 0]
    inside = [theta * (1 - 10 ** rng.uniform(-4, 0)) for theta in on_sphere[::5]]
    return np.array([*on_sphere, *inside, *np.eye(n)])


def contains(ball, theta):
    return np.all(theta >= 0) and _power_norm(theta, ball.s) <= 1 + 1e-9


def farthest(ball, v):
    """The θ of the ball with the largest θ'v, v ≥ 0: θ ∝ v^(1/(s−1)), by Hölder's inequality."""
    if not v.max() > 0:
        return ball.start(len(v))
    if ball.s == 1:
        return (v == v.max()) / np.sum(v == v.max())
    return np.ones(len(v)) if np.isinf(ball.s) else ball.scale_to_boundary((v / v.max()) ** (1 / (ball.s - 1)))


@pytest.mark.parametrize("s", PROX_SS)
@settings(deadline=None, max_examples=30)
@given(v=vectors(low=-2.0, high=1.0))
def test_the_master_is_given_the_same_ball(s, v):
    """Its compiled function has the value, the derivatives, the gauge and the support function of c(θ) = Σ θ^s."""
    function, parameters = LsBall(s).barrier
    v = v + 0.01
    gradient, curvature, unused = np.empty((3, len(v)))
    assert_allclose(function.function(CONSTRAINT, v, parameters, gradient, curvature), np.sum(v**s), rtol=1e-12)
    assert_allclose(gradient, s * v ** (s - 1), rtol=1e-12)
    assert_allclose(curvature, s * (s - 1) * v ** (s - 2), rtol=1e-9, atol=1e-300)
    assert_allclose(function.function(GAUGE, v, parameters, unused, unused), _power_norm(v, s), rtol=1e-12)
    assert_allclose(function.function(SUPPORT, v, parameters, unused, unused), LsBall(s).support(v), rtol=1e-12)


@any_s
def test_conjugate_exponents(s):
    assert 1 / s + 1 / LsBall(s).conjugate == pytest.approx(1)


@any_s
@pytest.mark.parametrize("n_kernels", [1, 2, 1000])
def test_start_is_uniform_and_on_the_sphere(s, n_kernels):
    theta = LsBall(s).start(n_kernels)
    assert np.ptp(theta) == 0
    assert_allclose(np.linalg.norm(theta, s), 1, rtol=1e-12)


@any_s
@settings(deadline=None, max_examples=30)
@given(v=vectors())
def test_norms_match_numpy(s, v):
    assert_allclose(_power_norm(v, s), np.linalg.norm(v, s), rtol=1e-12)
    with np.errstate(over="ignore", under="ignore"):
        expected = np.linalg.norm(v / max(v.max(), 1e-300), LsBall(s).conjugate) * v.max()
    assert_allclose(LsBall(s).support(v), expected, rtol=1e-12)


@any_s
@settings(deadline=None, max_examples=30)
@given(v=vectors(), seed=st.integers(0, 1000))
def test_the_support_is_attained_and_never_exceeded(s, v, seed):
    ball = LsBall(s)
    theta = farthest(ball, v)
    assert contains(ball, theta)
    assert_allclose(theta @ v, ball.support(v), rtol=1e-10)
    others = points_of_the_ball(ball, theta, np.random.default_rng(seed))
    assert np.max(others @ v) <= (1 + 1e-12) * ball.support(v)


@any_s
@settings(deadline=None, max_examples=30)
@given(w=vectors(), seed=st.integers(0, 1000))
def test_minimize_ratio_is_never_beaten(s, w, seed):
    ball = LsBall(s)
    theta = ball.minimize_ratio(w)
    assert contains(ball, theta)
    seen = w > 0
    least = np.sum(w[seen] / theta[seen])
    others = points_of_the_ball(ball, theta, np.random.default_rng(seed))
    with np.errstate(divide="ignore", over="ignore"):
        assert np.min((w[seen] / others[:, seen]).sum(axis=1)) >= (1 - 1e-12) * least


@pytest.mark.parametrize("s", [1.0, 1.1, 2.0, 4.0])
def test_minimize_ratio_is_what_a_general_optimizer_finds(s):
    w = np.array([0.2, 1.0, 3.0, 0.7])
    constraint = {"type": "ineq", "fun": lambda theta: 1 - np.sum(theta**s)}
    found = minimize(
        lambda theta: np.sum(w / theta),
        np.full(4, 0.2),
        bounds=[(1e-3, 1)] * 4,
        constraints=constraint,
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert_allclose(LsBall(s).minimize_ratio(w), found.x, rtol=1e-4)


def prox_objective(s, theta, anchor, gradient, zeta):
    """θ'gradient + ζ D(θ, anchor) along the last axis."""
    r = 2.0 if s == 1 else s
    divergence = np.sum(theta**r - anchor**r, axis=-1) / r - (theta - anchor) @ anchor ** (r - 1)
    return theta @ gradient + zeta * divergence


@pytest.mark.parametrize("s", PROX_SS)
@settings(deadline=None, max_examples=30)
@given(v=vectors(), decade=st.floats(-2, 2), radius=st.floats(0.01, 1), seed=st.integers(0, 1000))
def test_prox_step_is_never_beaten(s, v, decade, radius, seed):
    ball, rng, zeta = LsBall(s), np.random.default_rng(seed), 10.0**decade
    anchor = rng.exponential(size=len(v))
    anchor *= radius / _power_norm(anchor, s)
    theta = ball.prox_step(anchor, -v, zeta)
    assert contains(ball, theta)
    least = prox_objective(s, theta, anchor, -v, zeta)
    others = prox_objective(s, points_of_the_ball(ball, theta, rng), anchor, -v, zeta)
    assert np.min(others) >= least - 1e-12 * (v.max() + zeta)


@pytest.mark.parametrize("s", PROX_SS)
@pytest.mark.parametrize("radius", [0.3, 1.0])
def test_prox_step_rests_where_there_is_no_slope(s, radius):
    theta = radius * LsBall(s).scale_to_boundary(np.array([0.5, 0.9, 0.2, 0.0]))
    # θ^(s-1) is one up to rounding for s near 1, and its root brings the rounding back
    assert_allclose(LsBall(s).prox_step(theta, np.zeros(4), 1.0), theta, rtol=1e-10)


@pytest.mark.parametrize("s", PROX_SS)
def test_long_prox_steps_end_at_the_linear_minimum(s):
    ball = LsBall(s)
    gradient = -np.array([0.1, 2.0, 0.5])
    assert_allclose(ball.prox_step(ball.start(3), gradient, 1e-200), farthest(ball, -gradient), atol=1e-12)


@any_scale
@any_s
def test_closed_forms_do_not_depend_on_scale(s, scale):
    ball = LsBall(s)
    v = np.array([0.3, 0.0, 1.0, 0.999, 0.02])
    assert_allclose(_power_norm(scale * v, s), scale * _power_norm(v, s), rtol=1e-12)
    assert_allclose(ball.support(scale * v), scale * ball.support(v), rtol=1e-12)
    assert_allclose(ball.minimize_ratio(scale * v), ball.minimize_ratio(v), rtol=1e-12)
    assert_allclose(ball.scale_to_boundary(scale * v), ball.scale_to_boundary(v), rtol=1e-12)


@any_scale
@pytest.mark.parametrize("s", PROX_SS)
def test_prox_step_depends_only_on_the_ratio_of_slope_and_zeta(s, scale):
    ball = LsBall(s)
    theta, v = ball.start(4), np.array([0.3, 0.0, 1.0, 0.2])
    expected = ball.prox_step(theta, -v, 2.0)
    assert_allclose(ball.prox_step(theta, -scale * v, scale * 2.0), expected, rtol=1e-9)


@any_s
def test_without_information_the_weights_are_uniform(s):
    ball = LsBall(s)
    assert_allclose(ball.minimize_ratio(np.zeros(3)), ball.start(3))


@any_s
def test_equal_kernels_get_equal_weights(s):
    v = np.array([1.0, 2.0, 2.0, 0.5])
    theta = LsBall(s).minimize_ratio(v)
    assert theta[1] == theta[2]


@settings(deadline=None)
@given(st.lists(st.floats(-3, 3), min_size=1, max_size=8).map(np.array))
def test_projection_to_the_simplex_hull_satisfies_its_variational_inequality(v):
    """z is the projection iff (v - z)'(u - z) <= 0 for every vertex u of the set: zero and the unit vectors."""
    z = _project_to_simplex_hull(v)
    assert np.all(z >= 0)
    assert z.sum() <= 1 + 1e-14
    vertices = np.vstack([np.zeros(len(v)), np.eye(len(v))])
    assert np.max((vertices - z) @ (v - z)) <= 1e-13
