"""Statistics of samples do not depend on how the samples are divided."""

from math import fsum

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from paretomkl.distributed._training import quantiles_by_counting
from paretomkl.kernels._fitted import (
    Standardizer,
    Statistics,
    draw_groups,
    exact_sums,
    weighted_quantiles,
)


@given(st.integers(0, 2**32), st.floats(-220, 280), st.integers(1, 200))
@settings(max_examples=50)
def test_sums_are_exact_in_every_order_and_division(seed, size, n):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((n, 3)) * 10.0 ** (size + 3 * rng.standard_normal((n, 3)))
    bound = np.abs(values).max(axis=0)
    total = exact_sums(values, bound, n)
    order = rng.permutation(n)
    parts = np.array_split(values[order], rng.integers(1, n + 1))
    assert_array_equal(np.sum([exact_sums(part, bound, n) for part in parts], axis=0), total)
    truth = [fsum(column) for column in values.T]
    assert (np.abs(total.sum(axis=0) - truth) <= 1e-15 * n * bound).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_counting_finds_the_quantiles(weighted):
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [
            rng.standard_normal(101),
            np.round(rng.standard_normal(101)),
            np.full(101, -3.5),
            rng.standard_normal(101) * 10.0 ** rng.integers(-300, 300, 101),
            np.where(rng.random(101) < 0.5, -0.0, 0.0),
        ]
    )
    weight = rng.random(101) if weighted else np.ones(101)
    rounds = []

    def weight_up_to(values):
        rounds.append(len(values))
        return np.array([[weight[X[:, k] <= v].sum() for k, v in enumerate(row)] for row in values])

    shares = (0.5, 0.05, 0.95)
    found = quantiles_by_counting(weight_up_to, X.min(axis=0), X.max(axis=0), weight.sum(), shares)
    assert_array_equal(found, weighted_quantiles(X, weight, shares))
    assert len(rounds) <= 20


def test_a_standardizer_does_not_depend_on_the_order_of_samples():
    rng = np.random.default_rng(1)
    X, weight = rng.lognormal(size=(300, 4)) + 1e6, rng.random(300)
    order = rng.permutation(300)
    one, other = (Standardizer.of(Statistics(X[at], weight[at])) for at in (np.arange(len(X)), order))
    for name in ("low", "high", "mean", "scale"):
        assert_array_equal(getattr(one, name), getattr(other, name))
    assert_allclose(np.average(one(X), axis=0, weights=weight), 0, atol=1e-8)


def test_samples_of_weight_zero_do_not_count():
    rng = np.random.default_rng(2)
    X, weight = rng.standard_normal((50, 2)), rng.integers(0, 2, 50).astype(float)
    X[weight == 0] *= 1e9
    all_of_them, some = Statistics(X, weight), Statistics(X[weight > 0])
    assert_array_equal(all_of_them.mean(np.square), some.mean(np.square))
    assert_array_equal(all_of_them.largest(np.abs), some.largest(np.abs))


def test_groups_are_drawn_once_for_all():
    drawn = draw_groups([5, 2000, 3000], 1000)
    assert [k for k, _ in drawn] == [0, 1, 2]
    assert [len(some) for _, some in drawn] == [5, 1000, 1000]
    assert len(draw_groups([4] * 5000, 1000)) == 1000
