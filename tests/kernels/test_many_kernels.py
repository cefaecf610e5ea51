"""Banks of very many kernels, compared with plain NumPy and with the same kernels as a stack."""

import pickle
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import pairwise

from paretomkl import Gaussian, KernelBank, Laplacian, Linear, Polynomial
from paretomkl.gram import GramBlocks
from paretomkl.kernels._fitted import spreads
from paretomkl.kernels._many_kernels import MOST_TOGETHER, N_NODES, WORTHWHILE, mixing_of, nodes_of, segment_of
from paretomkl.machines import SVCTasks
from paretomkl.problem import MultiTaskProblem
from paretomkl.scalarizations import PowerMean
from paretomkl.solvers import CutPool
from paretomkl.solvers._base import Run
from paretomkl.solvers._cut_pool import Pool
from paretomkl.solvers._master import MANY, MasterProblem, minimize_over_cuts, minimize_over_few
from paretomkl.weight_sets import LsBall

RNG = np.random.default_rng(0)
N = 40
X = RNG.uniform(size=(N, 6)) * [1, 1, 1, 30, 1e-3, 1]
Z = RNG.uniform(size=(7, 6)) * [1, 1, 1, 90, 1e-3, 1]
ROWS = [np.arange(0, 25), np.arange(20, N), np.arange(3, N, 2)]


def dense(kernel, A, B):
    """A kernel of unit diagonal by its formula, on its columns."""
    seen = [kernel.columns] if isinstance(kernel.columns, int) else kernel.columns
    A, B = (A, B) if seen is None else (A[:, list(seen)], B[:, list(seen)])
    if isinstance(kernel, Gaussian):
        return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2) / (2 * kernel.sigma**2))
    if isinstance(kernel, Laplacian):
        return np.exp(-kernel.gamma * np.abs(A[:, None] - B[None]).sum(axis=2))
    if isinstance(kernel, Polynomial):
        return normalized(lambda P, Q: (kernel.gamma * P @ Q.T + kernel.coef0) ** kernel.degree, A, B)
    return normalized(lambda P, Q: P @ Q.T, A, B)


def normalized(function, A, B):
    norms = [np.sqrt(np.array([function(row[None], row[None])[0, 0] for row in side])) for side in (A, B)]
    return function(A, B) / np.outer(*norms)


def many_widths():
    """Many more widths than nodes on two columns and on all, few on others, mixed with kernels of other kinds."""
    widths = np.geomspace(0.02, 40, 10 * WORTHWHILE)
    return [
        *(Gaussian(sigma, columns=3) for sigma in widths),
        Polynomial(2, columns=[0, 1]),
        *(Laplacian(gamma) for gamma in np.geomspace(1e-3, 10, 6 * WORTHWHILE)),
        *(Gaussian(sigma, columns=4) for sigma in 2.0 ** np.arange(-12, 3)),
        *(Gaussian(sigma) for sigma in widths[::-1]),
        Linear(),
        *(Gaussian(sigma, columns=0) for sigma in widths[::40]),
    ]


def many_bases():
    """One or two kernels on each of many sets of columns."""
    sets = [tuple(RNG.choice(6, RNG.integers(1, 5), replace=False).tolist()) for _ in range(2 * MOST_TOGETHER)]
    kinds = Gaussian, Laplacian, lambda width, columns: Polynomial(3, columns=columns)
    return [kinds[k % 3](0.2 + 0.01 * k, columns=columns) for k, columns in enumerate(sets)]


def many_pairs():
    """Gaussians on all pairs of columns and on some single ones, with other kernels on some of the pairs."""
    pairs = list(combinations(range(6), 2))
    return [
        *(Gaussian(sigma, columns=2) for sigma in np.geomspace(0.1, 1, 5)),
        *(Gaussian(sigma, columns=pair) for pair in pairs for sigma in np.geomspace(0.05, 50, 80)),
        Polynomial(2, columns=pairs[3]),
        Laplacian(0.7, columns=pairs[4]),
        *(Gaussian(sigma) for sigma in (0.5, 1.0, 3.0)),
        Gaussian(0.123, columns=pairs[7]),
    ]


BANKS = {"many widths": many_widths(), "many bases": many_bases(), "many pairs": many_pairs()}
any_bank = pytest.mark.parametrize("kernels", BANKS.values(), ids=BANKS)


@pytest.fixture(autouse=True)
def pairs_of_six_columns_are_many(monkeypatch):
    monkeypatch.setattr("paretomkl.kernels._many_kernels._MANY_BASES", 10)


def test_kernels_on_pairs_of_columns_are_products():
    bank = KernelBank(many_pairs()).fit(X)
    assert bank.evaluator.plan.n_products == 14 * 80 + 1  # those of the pair with a polynomial kernel have its base
    assert bank.evaluator.plan.n_bases < 12 < bank.n_bases


def test_nodes_stand_for_every_rate_at_every_distance():
    rate = np.exp2(RNG.uniform(-40, 40, 500))
    rate[:3] = nodes_of(np.array([2]))[0, [0, 7, 35]]  # nodes themselves, too
    d = np.concatenate([[0.0], np.geomspace(1e-14, 1e14, 900)])
    nodes = np.exp(-nodes_of(segment_of(rate))[:, :, None] * d)
    made = np.einsum("mi,mid->md", mixing_of(rate), nodes)
    exact = np.exp(-rate[:, None] * d)
    assert np.abs(made - exact).max() <= 1e-14
    # a kernel that hardly varies keeps the digits of what varies, up to those that rounding takes
    assert np.all(np.abs(made - exact) <= 1e-12 * (1 - exact) + 2e-15)
    assert nodes_of(np.array([0, 3])).shape == (2, N_NODES)


@any_bank
def test_values_match_the_formula(kernels):
    bank = KernelBank(kernels).fit(X)
    Ks = np.array([dense(kernel, Z, X) for kernel in kernels])
    assert_allclose(bank.stack(bank.side(Z), bank.side(X)), Ks, rtol=1e-12, atol=1e-12)
    theta = RNG.uniform(size=len(kernels)) * (RNG.random(len(kernels)) < 0.8)
    assert_allclose(bank.cross(bank.side(Z), bank.side(X), theta), np.tensordot(theta, Ks, 1), rtol=1e-12, atol=1e-12)


@any_bank
@pytest.mark.parametrize(("cache_mb", "n_jobs"), [(512, 1), (0, 1), (512, 2)])
def test_sums_and_quadratic_forms_match_the_formula(kernels, cache_mb, n_jobs):
    bank = KernelBank(kernels, cache_mb=cache_mb, normalize="capacity").fit(X)
    raw = replace(KernelBank(kernels).fit(X), factor=bank.factor)
    gram = GramBlocks(raw, X, ROWS, n_jobs)
    Ks = np.array([dense(kernel, X, X) for kernel in kernels]) * raw.factor[:, None, None]
    theta = RNG.uniform(size=len(kernels)) / np.maximum(raw.factor, 1e-300)
    v = RNG.standard_normal(sum(map(len, ROWS))) * (RNG.random(sum(map(len, ROWS))) < 0.7)
    with gram.combined(theta) as K:
        for t, rows in enumerate(ROWS):
            assert_allclose(K.of_task(t), np.tensordot(theta, Ks[:, rows[:, None], rows], 1), rtol=1e-12)
    forms = gram.quadratic_forms(v)
    for t, rows in enumerate(ROWS):
        part = v[gram.layout.ptr[t] : gram.layout.ptr[t + 1]]
        expected = np.einsum("i,mij,j->m", part, Ks[:, rows[:, None], rows], part)
        assert np.all(np.abs(forms[t] - expected) <= 1e-12 * raw.factor * np.abs(part).sum() ** 2)


@any_bank
def test_capacities_match_kernels_measured_one_by_one(kernels):
    groups = [(rows, np.ones(len(rows))) for rows in ROWS]
    bank = KernelBank(kernels, normalize="capacity").fit(X, groups=groups)
    raw = bank.stack(bank.side(X), bank.side(X))
    v, r = np.zeros((2, len(kernels)))
    for rows in ROWS:
        seen = spreads(raw[:, rows[:, None], rows], np.full(len(rows), 1 / len(rows)))
        v += seen[0] / len(ROWS)
        r += seen[1] / len(ROWS)
    assert_allclose(bank.variance, v, rtol=1e-9, atol=1e-15)
    wide = v < 1e-6  # what varies by a millionth has lost six digits to rounding, twice as many when squared
    assert_allclose(bank.effective_rank[~wide], r[~wide], rtol=1e-8)
    assert_allclose(bank.effective_rank[wide], r[wide], rtol=1e-2)


def test_many_kernels_are_evaluated_in_parts_and_few_at_once():
    plan = KernelBank(many_widths()).fit(X).evaluator.plan
    assert len(plan.groups) > 1
    assert plan.n_evaluated < 0.6 * len(many_widths())
    few = KernelBank([Gaussian(sigma) for sigma in np.geomspace(0.01, 100, 200)]).fit(X).evaluator.plan
    assert len(few.groups) == 1
    assert few.mixing is None


def test_a_fitted_bank_of_many_kernels_can_be_stored():
    bank = KernelBank(many_widths()).fit(X)
    theta = RNG.uniform(size=bank.n_kernels)
    expected = bank.cross(bank.side(Z), bank.side(X), theta)
    again = pickle.loads(pickle.dumps(bank))
    assert_allclose(again.cross(again.side(Z), again.side(X), theta), expected, rtol=1e-14)


def test_the_reference_matches_scikit_learn():
    assert_allclose(dense(Gaussian(0.5), Z, X), pairwise.rbf_kernel(Z, X, gamma=2.0), rtol=1e-9, atol=1e-15)
    assert_allclose(dense(Laplacian(0.5), Z, X), pairwise.laplacian_kernel(Z, X, gamma=0.5), rtol=1e-9)


def sparse_tasks(n_classes):
    """More kernels than a master handles at once, on one column each, and a task for each pair of classes."""
    rng = np.random.default_rng(1)
    y = np.arange(60) % n_classes
    data = rng.standard_normal((60, 5)) + 0.8 * np.eye(5)[y]
    kernels = [Gaussian(sigma, columns=j) for j in range(5) for sigma in np.geomspace(0.05, 20, 220)]
    pairs = list(combinations(range(n_classes), 2))
    rows = [np.flatnonzero(np.isin(y, pair)) for pair in pairs]
    signs = np.concatenate(
        [np.where(y[mine] == first, 1.0, -1.0) for (first, _), mine in zip(pairs, rows, strict=True)]
    )
    gram = GramBlocks(KernelBank(kernels).fit(data), data, rows)
    return SVCTasks(gram, signs, np.ones(len(signs)))


@pytest.mark.parametrize(("ps", "n_classes"), [([1.0], 2), ([1.0, 0.1, 5.0, np.inf], 3)])
def test_sparse_weights_on_few_kernels_are_certified_over_all(ps, n_classes):
    machine = sparse_tasks(n_classes)
    assert machine.n_kernels >= MANY
    last = None
    for p in ps:
        problem = MultiTaskProblem(machine, PowerMean(p), LsBall(1.0))
        last = CutPool(tol=1e-3).solve(problem, last)
        assert last.gap <= 1e-3
        assert np.count_nonzero(last.theta) < 0.5 * machine.n_kernels
        assert_allclose(last.theta.sum(), 1.0, rtol=1e-9)
        # the problem with all kernels at once and far more exactly; for p < 1 that of the sum weighted by η
        weights = None if p >= 1 else last.task_weights
        whole = replace(problem, scalarization=PowerMean(max(p, 1.0), weights))
        exact = CutPool(tol=1e-5).iterate(whole, Pool(whole.machine, whole.weight_set), Run())
        assert exact.gap <= 1e-5
        assert 1 - exact.master.lower / whole.scalarization.value(last.objectives) <= last.gap + 2e-5


def test_a_master_of_few_kernels_has_the_same_bounds_as_the_full_one():
    rng = np.random.default_rng(3)
    slopes = np.concatenate([np.zeros((1, 2, 3000)), rng.uniform(size=(12, 2, 3000)) ** 2])
    linear = np.concatenate([np.full((1, 2), 0.01), rng.uniform(1, 1.5, (12, 2))])
    present = np.ones(linear.shape, dtype=bool)
    present[3] = False
    scale, start = np.array([1.0, 2.0]), np.full(3000, 1 / 3000)
    for p in (1.0, 4.0):
        master = MasterProblem(linear, slopes, present, scale, np.array([0.3, 0.7]), p, LsBall(1.0))
        whole = minimize_over_cuts(master, start, 1e-6)
        few, likely = minimize_over_few(master, start, 1e-6, np.empty(0, dtype=np.int64))
        proven = np.sum(few.multipliers / scale * linear) - master.slope(few.multipliers).max()
        assert few.lower - 1e-6 <= proven <= few.upper
        assert max(few.lower, whole.lower) <= min(few.upper, whole.upper)
        assert few.upper - few.lower <= 2e-6 * few.upper  # the whole one stalls at 1e-6 to 1e-5, by rounding
        assert whole.upper - whole.lower <= 2e-5 * whole.upper
        assert np.count_nonzero(few.theta) < 1500
        assert np.isin(np.flatnonzero(few.theta > 1e-3), likely).all()
