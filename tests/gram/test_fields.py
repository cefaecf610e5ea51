"""Fields of kernels and of their combination, compared with dense kernel matrices."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from paretomkl.gram import GramBlocks
from paretomkl.gram._large.distances import ColumnStore
from paretomkl.gram._large.fields import CombinedField, Fields, KernelFields
from paretomkl.kernels import Gaussian, KernelBank, Laplacian, Linear, Polynomial

KERNELS = [Linear(), Polynomial(2), Gaussian(1.0), Gaussian(2.0), Laplacian(0.3), Gaussian(0.7, columns=[0, 2])]


def _pairs_of_classes(rng, n):
    """Tasks that share samples by class."""
    y = rng.integers(0, 3, n)
    return [np.flatnonzero((y == a) | (y == b)) for a, b in ((0, 1), (0, 2), (1, 2))]


def _separate(rng, n):
    return np.split(np.arange(n), [n // 4, n // 2])


def _columns(rng, n):
    """Tasks that each use most samples, without a pattern."""
    return [np.flatnonzero(rng.random(n) < 0.8) for _ in range(4)]


@pytest.fixture(params=[_pairs_of_classes, _separate, _columns])
def store(request):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 4))
    rows = request.param(rng, 700)
    return X, rows, rng


@pytest.mark.parametrize("kind", [KernelFields, CombinedField])
@pytest.mark.parametrize("cache_mb", [512, 0.2, 0])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_fields_match_dense_kernels(store, kind, cache_mb, n_jobs, monkeypatch):
    monkeypatch.setattr("paretomkl.gram._large.distances.PANEL_BYTES", 1e5)  # so that small stores are full
    X, rows, rng = store
    bank = KernelBank(KERNELS, normalize="unit", cache_mb=cache_mb).fit(X)
    gram = GramBlocks(bank, X, rows, n_jobs)
    side = bank.side(X)
    dense = bank.stack(side, side)
    fields = kind(ColumnStore(gram))
    ptr = gram.layout.ptr
    dual = np.zeros(ptr[-1])
    for share in (0.05, 0.3, 0.1):  # duals that share some samples with the one before
        dual = np.where(rng.random(len(dual)) < share, rng.normal(size=len(dual)), dual * (rng.random(len(dual)) < 0.5))
        weight = rng.random(len(KERNELS)) * (rng.random(len(KERNELS)) < 0.8)
        fields.begin(weight, 0.5 * dual)
        fields.move_to(dual)
        forms = fields.quadratic_forms()
        for t, f in enumerate(fields.decisions(range(len(rows)))):
            K = dense[:, rows[t]][:, :, rows[t]]
            v = dual[ptr[t] : ptr[t + 1]]
            assert_allclose(f, np.tensordot(weight, K, axes=1) @ v, atol=2e-5)
            assert_allclose(forms[t], v @ K @ v, rtol=1e-5)
            some = np.sort(rng.choice(len(v), 60, replace=False))
            fields.prepare({t: some})
            expected = np.tensordot(weight, K, axes=1)[np.ix_(some, some)]
            with fields.among(t, some) as among:
                assert_allclose(among.reshape(60, 60), expected, atol=1e-5)


def test_the_kind_of_field_that_is_less_work_comes_next():
    X = np.random.default_rng(0).normal(size=(400, 3))
    bank = KernelBank([Gaussian(1.0), Gaussian(2.0), Gaussian(3.0)]).fit(X)
    fields = Fields(GramBlocks(bank, X, [np.arange(400)]))
    weight, dual = np.array([1.0, 0.5, 0.0]), np.zeros(400)
    for n_moved, expected in ((2, KernelFields), (200, CombinedField), (2, KernelFields)):
        field = fields.best
        dual[:200] = 1.0
        field.begin(weight, dual)
        for step in range(5):  # either all support vectors move in every round, or a few do
            dual[:n_moved] += step + 1.0
            field.move_to(dual)
        fields.note(field)
        assert type(fields.best) is expected


@pytest.mark.parametrize(("cache_mb", "most_mb"), [(0, 64), (20, 80), (50, 4 * 36), (1000, 1000)])
def test_columns_take_at_most_four_caches_or_half_the_place_of_full_matrices(cache_mb, most_mb):
    X = np.random.default_rng(0).normal(size=(6000, 2))
    bank = KernelBank([Gaussian(sigma) for sigma in (1.0, 2.0)], cache_mb=cache_mb).fit(X)
    store = ColumnStore(GramBlocks(bank, X, [np.arange(6000)]))
    n_values = store.values.size + store.values.shape[1]  # those of K_θ too
    assert 4 * n_values <= most_mb * 2**20
    assert store.values.shape[1] == 6000**2 or 4 * n_values > 0.99 * min(most_mb, 4 * 36) * 1e6
