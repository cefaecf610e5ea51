"""The power mean: its formula, its limits, its gradient, at every exponent and scale."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from paretomkl.scalarizations import PowerMean
from tests.oracles import power_mean

FINITE_PS = [-20.0, -1.0, -0.01, 0.0, 1e-12, 0.01, 0.5, 1.0, 1.5, 2.0, 20.0]
PS = [-np.inf, *FINITE_PS, np.inf]
G = np.array([0.3, 1.0, 2.5, 7.0, 7.5])
OMEGA = np.array([0.1, 0.3, 0.2, 0.15, 0.25])
WIDE = 10 ** np.random.default_rng(0).uniform(-8, 8, 200)

weighted = pytest.mark.parametrize("weights", [None, OMEGA], ids=["equal", "weighted"])

exponents = st.floats(-50, 50)


@st.composite
def objectives_and_weights(draw):
    n_tasks = draw(st.integers(1, 8))
    log_objectives = st.lists(st.floats(-5, 5), min_size=n_tasks, max_size=n_tasks)
    preferences = st.lists(st.floats(0.01, 1), min_size=n_tasks, max_size=n_tasks)
    omega = np.array(draw(preferences))
    return np.exp(draw(log_objectives)), draw(st.sampled_from([None, omega / omega.sum()]))


def exact_power_mean(g, p):
    """The formula in 50 decimal digits."""
    with localcontext() as context:
        context.prec = 50
        p = Decimal(p)
        mean = sum(Decimal(float(x)) ** p for x in g) / len(g)
        return float(mean ** (1 / p))


@weighted
@pytest.mark.parametrize("p", [p for p in PS if abs(p) > 1e-6 or p == 0])
def test_value_is_the_formula_for_moderate_numbers(p, weights):
    assert_allclose(PowerMean(p, weights).value(G), power_mean(G, p, weights), rtol=1e-12)


@pytest.mark.parametrize("p", [-50.0, -0.01, 1e-6, 1e-4, 1e-3, 0.01, 0.03, 0.1, 0.5, 1.0, 3.0, 50.0, 300.0])
def test_value_keeps_its_digits_over_sixteen_decades_and_200_tasks(p):
    value = PowerMean(p).value(WIDE)
    assert WIDE.min() <= value <= WIDE.max()
    assert_allclose(value, exact_power_mean(WIDE, p), rtol=1e-12)


@pytest.mark.parametrize("p", [5e-324, -1e-320, 1e-308, -1e-301, 1e-299, 1e-100])
def test_exponents_next_to_zero_are_the_geometric_mean(p):
    near, exact = PowerMean(p), PowerMean(0.0)
    assert_allclose(near.value(WIDE), exact.value(WIDE), rtol=1e-14)
    assert_allclose(near.gradient(WIDE), exact.gradient(WIDE), rtol=1e-13)
    assert_allclose(PowerMean(1.0).means_and_gradients([p], WIDE)[0], exact.value(WIDE), rtol=1e-14)


@weighted
def test_infinite_exponents_are_the_extremes(weights):
    assert PowerMean(np.inf, weights).value(G) == pytest.approx(G.max(), rel=1e-15)
    assert PowerMean(-np.inf, weights).value(G) == pytest.approx(G.min(), rel=1e-15)


@weighted
@pytest.mark.parametrize("p", [0.0, 1e-300, -1e-300, 1e-12, -1e-12, 1e-9, 1e-6, -1e-6])
def test_small_exponents_differ_from_the_geometric_mean_by_half_p_times_the_variance(p, weights):
    """log M_p = mean + p/2 variance + O(p²), of the log objectives."""
    omega = np.full(len(G), 1 / len(G)) if weights is None else weights
    mean = omega @ np.log(G)
    variance = omega @ (np.log(G) - mean) ** 2
    assert_allclose(PowerMean(p, weights).log_value(G), mean + p / 2 * variance, rtol=0, atol=1e-15 + 2 * p**2)


@settings(deadline=None)
@given(objectives_and_weights(), exponents, exponents)
def test_value_rises_with_p(given_task, p, q):
    g, omega = given_task
    low, high = min(p, q), max(p, q)
    values = [PowerMean(each, omega).value(g) for each in (-np.inf, low, high, np.inf)]
    assert np.all(np.diff(values) >= -1e-13 * g.max())


@settings(deadline=None)
@given(objectives_and_weights(), st.sampled_from(PS), st.floats(-200, 200))
def test_value_and_gradient_scale_with_the_objectives(given_task, p, exponent):
    g, omega = given_task
    mean, factor = PowerMean(p, omega), 10.0**exponent
    assert_allclose(mean.value(factor * g), factor * mean.value(g), rtol=1e-12)
    if np.isfinite(p):  # at the ends rounding may break a tie
        assert_allclose(mean.task_weights(factor * g), mean.task_weights(g), rtol=1e-10, atol=1e-300)
        assert_allclose(mean.gradient(factor * g), mean.gradient(g), rtol=1e-10, atol=1e-300)


@settings(deadline=None)
@given(objectives_and_weights(), st.sampled_from(PS))
def test_gradient_times_objectives_is_the_value(given_task, p):
    g, omega = given_task
    mean = PowerMean(p, omega)
    assert_allclose(mean.gradient(g) @ g, mean.value(g), rtol=1e-12)


@pytest.mark.parametrize("p", [-50.0, 0.01, 1.0, 50.0, np.inf])
def test_gradient_times_objectives_is_the_value_over_sixteen_decades(p):
    mean = PowerMean(p)
    assert_allclose(mean.gradient(WIDE) @ WIDE, mean.value(WIDE), rtol=1e-11)


@pytest.mark.parametrize("p", [1e9, 1e12, 1e15, -1e12])
def test_gradient_times_objectives_is_the_value_at_huge_exponents(p):
    """The gradient gives the lower bound of the certificate: too large a gradient would be a false certificate."""
    mean = PowerMean(p)
    assert_allclose(mean.gradient(1e3 * G) @ (1e3 * G), mean.value(1e3 * G), rtol=1e-9)


@weighted
@pytest.mark.parametrize("p", FINITE_PS)
def test_gradient_matches_finite_differences(p, weights):
    mean = PowerMean(p, weights)
    step = 1e-6 * np.diag(G)
    rises = [mean.value(G + h) - mean.value(G - h) for h in step]
    assert_allclose(2e-6 * G * mean.gradient(G), rises, rtol=1e-6, atol=1e-14)


@settings(deadline=None)
@given(objectives_and_weights(), st.sampled_from(FINITE_PS))
def test_task_weights_sum_to_one_and_go_with_the_power_p_minus_one(given_task, p):
    g, omega = given_task
    omega = np.full(len(g), 1 / len(g)) if omega is None else omega
    eta = PowerMean(p, omega).task_weights(g)
    assert_allclose(eta.sum(), 1, rtol=1e-12)
    expected = omega * (g / g[np.argmax(eta)]) ** (p - 1)
    assert_allclose(eta, expected / expected.sum(), rtol=1e-10)


@weighted
@pytest.mark.parametrize("p", PS)
def test_task_weights_are_the_gradient_up_to_scale(p, weights):
    mean = PowerMean(p, weights)
    gradient = mean.gradient(G)
    assert_allclose(mean.task_weights(G), gradient / gradient.sum(), rtol=1e-12)


@pytest.mark.parametrize("p", [np.inf, -np.inf])
def test_at_the_ends_the_tasks_that_attain_the_extreme_share_the_weight(p):
    g = np.array([1.0, 3.0, 3.0, 1.0, 2.0])
    expected = [0, 0.5, 0.5, 0, 0] if p > 0 else [0.5, 0, 0, 0.5, 0]
    assert_allclose(PowerMean(p).task_weights(g), expected)


@pytest.mark.parametrize("p", FINITE_PS)
def test_a_task_of_weight_two_counts_twice(p):
    twice = PowerMean(p).value(np.array([1.0, 4.0, 4.0]))
    assert_allclose(PowerMean(p, np.array([1, 2]) / 3).value(np.array([1.0, 4.0])), twice, rtol=1e-13)


@pytest.mark.parametrize("p", PS)
def test_convex_from_p_one_up_and_concave_below(p):
    rng = np.random.default_rng(1)
    mean = PowerMean(p)
    g, h = rng.uniform(0.1, 5, (2, 50, 4))
    excess = [(mean.value(a) + mean.value(b)) / 2 - mean.value((a + b) / 2) for a, b in zip(g, h, strict=True)]
    assert mean.convex == (p >= 1)
    assert np.min(excess) >= -1e-14 if mean.convex else np.max(excess) <= 1e-14


def test_one_task_is_its_own_mean():
    for p in PS:
        assert_allclose(PowerMean(p).value(np.array([0.7])), 0.7, rtol=1e-15)
        assert_allclose(PowerMean(p).task_weights(np.array([0.7])), [1.0])


@weighted
def test_several_exponents_at_once_are_those_one_by_one(weights):
    values, gradients = PowerMean(1.0, weights).means_and_gradients(FINITE_PS, G)
    for p, value, gradient in zip(FINITE_PS, values, gradients, strict=True):
        assert_allclose(value, PowerMean(p, weights).value(G), rtol=1e-14)
        assert_allclose(gradient, PowerMean(p, weights).gradient(G), rtol=1e-14)


@pytest.mark.parametrize("p", [-np.inf, -2.0, 0.0, 1e-4, 0.5, 1.0, 3.0, np.inf])
@pytest.mark.parametrize("weights", [None, np.array([0.2, 0.5, 0.3])])
def test_objectives_of_zero_enter_from_p_one_on_and_are_left_out_below(p, weights):
    g = np.array([1.5, 0.0, 4.0])
    omega = np.full(3, 1 / 3) if weights is None else weights
    mean, others = PowerMean(p, weights), PowerMean(p, omega[::2] / omega[::2].sum())
    expected = others.value(g[::2])
    if 1 <= p < np.inf:
        expected = (omega @ g**p) ** (1 / p)
    assert mean.value(g) == pytest.approx(expected, rel=1e-12)
    assert mean.gradient(g) @ g == pytest.approx(expected, rel=1e-12)
    assert mean.gradient(g)[1] == mean.task_weights(g)[1] == 0
    assert_allclose(mean.task_weights(g)[::2], others.task_weights(g[::2]), rtol=1e-12)
    assert_allclose(mean.log_value(np.array([g, g + 1])), np.log([expected, mean.value(g + 1)]), rtol=1e-12)
    if np.isfinite(p):
        means, gradients = PowerMean(1.0, weights).means_and_gradients([p], g)
        assert_allclose([means[0], *gradients[0]], [expected, *mean.gradient(g)], rtol=1e-12)
    nothing = np.zeros(3)
    assert mean.value(nothing) == 0
    assert not mean.gradient(nothing).any()
    assert_allclose(mean.task_weights(nothing), 1 / 3)
