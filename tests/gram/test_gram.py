"""Gram blocks: combined matrices and quadratic forms, compared with dense stacks, for every layout of tasks."""

import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import pairwise

from paretomkl import Gaussian, KernelBank, Laplacian, Linear, Polynomial
from paretomkl._tools.running import run_chunks
from paretomkl.gram import CombinedGram, GramBlocks
from paretomkl.gram._blocks import _connected_blocks
from paretomkl.kernels._fitted import Evaluator
from paretomkl.machines._svc import SVCTasks
from tests.oracles import paper_kernels

N = 300  # more than one tile of columns, and enough rows for threads
RNG = np.random.default_rng(0)
X = RNG.uniform(size=(N, 5))


def rows_of(*ranges):
    return [np.arange(first, last) for first, last in ranges]


def one_vs_one(n_classes):
    label = RNG.integers(n_classes, size=N)
    return [np.flatnonzero((label == a) | (label == b)) for a, b in combinations(range(n_classes), 2)]


LAYOUTS = {
    "one task": rows_of((0, N)),
    "one task on some samples": [np.sort(RNG.choice(N, 270, replace=False))],
    "one vs one": one_vs_one(4),
    "disjoint": rows_of((0, 260), (260, 262), (262, N)),
    "interleaved": [np.arange(k, N, 3) for k in range(3)],
    "overlapping": rows_of((0, 120), (100, 200), (150, 290)),
    "two blocks of two": rows_of((0, 90), (60, 150), (150, 200), (199, 280)),
}


def general_bank(A, B):
    return np.exp(-pairwise.manhattan_distances(A, B)) + A @ B.T


# a bank, and the stack of unit diagonal that it represents
BANKS = {
    "paper": ("paper", paper_kernels(X)),
    "several bases": (
        [general_bank, Laplacian(0.5), Linear(columns=[0, 1]), Gaussian(0.3), Polynomial(3), Laplacian(1.0)],
        [
            general_bank(X, X),
            pairwise.laplacian_kernel(X, gamma=0.5),
            X[:, :2] @ X[:, :2].T,
            pairwise.rbf_kernel(X, gamma=0.5 / 0.09),
            (X @ X.T + 1) ** 3,
            pairwise.laplacian_kernel(X, gamma=1.0),
        ],
    ),
}
BANKS = {
    name: (bank, np.array([K / np.sqrt(np.outer(np.diag(K), np.diag(K))) for K in Ks]))
    for name, (bank, Ks) in BANKS.items()
}

any_layout = pytest.mark.parametrize("layout", LAYOUTS)
any_bank = pytest.mark.parametrize("bank", BANKS)
any_way = pytest.mark.parametrize(
    ("cache_mb", "n_jobs"), [(512, 1), (512, 3), (0, 1), (0, 3)], ids=["kept", "kept-threads", "made", "made-threads"]
)


@pytest.fixture(autouse=True)
def small_panels(monkeypatch):
    """Bases that are not kept are computed about 20 rows at a time."""
    monkeypatch.setattr("paretomkl.gram._blocks.PANEL_BYTES", 8 * 20 * N)


def make_gram(bank, layout, cache_mb=512, n_jobs=1):
    fitted = KernelBank(BANKS[bank][0], cache_mb=cache_mb).fit(X)
    return GramBlocks(fitted, X, LAYOUTS[layout], n_jobs)


def some_theta(n_kernels, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(size=n_kernels) * (rng.random(n_kernels) < 0.7)


def some_dual(gram, density, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(gram.layout.ptr[-1]) * (rng.random(gram.layout.ptr[-1]) < density)


@any_way
@any_bank
@any_layout
def test_every_task_finds_its_combined_gram_matrix(layout, bank, cache_mb, n_jobs):
    gram, Ks = make_gram(bank, layout, cache_mb, n_jobs), BANKS[bank][1]
    theta = some_theta(len(Ks))
    with gram.combined(theta) as K:
        for t, rows in enumerate(LAYOUTS[layout]):
            expected = np.tensordot(theta, Ks[:, rows[:, None], rows], axes=1)
            assert_allclose(K.of_task(t), expected, rtol=1e-11, atol=1e-14)


@any_way
@any_bank
@any_layout
@pytest.mark.parametrize("density", [1.0, 0.3])
def test_quadratic_forms_match_the_dense_stack(layout, bank, cache_mb, n_jobs, density):
    gram, Ks = make_gram(bank, layout, cache_mb, n_jobs), BANKS[bank][1]
    v = some_dual(gram, density)
    G = gram.quadratic_forms(v)
    for t, rows in enumerate(LAYOUTS[layout]):
        part = v[gram.layout.ptr[t] : gram.layout.ptr[t + 1]]
        expected = [part @ K[np.ix_(rows, rows)] @ part for K in Ks]
        assert_allclose(G[t], expected, rtol=1e-10, atol=1e-11 * (part @ part))


@any_layout
def test_forms_and_matrices_agree(layout):
    """Σ_m θ_m G_tm = v_t' K_θ v_t."""
    gram = make_gram("paper", layout)
    theta, v = some_theta(11), some_dual(gram, 0.5)
    with gram.combined(theta) as K:
        for t, form in enumerate(gram.quadratic_forms(v) @ theta):
            part = v[gram.layout.ptr[t] : gram.layout.ptr[t + 1]]
            assert_allclose(form, part @ K.of_task(t) @ part, rtol=1e-11)


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("cache_mb", [512, 0])
def test_a_dual_of_zero_has_forms_of_zero(cache_mb, n_jobs):
    gram = make_gram("paper", "two blocks of two", cache_mb, n_jobs)
    v = some_dual(gram, 0.5)
    v[gram.layout.ptr[2] :] = 0  # the second block has no support vector
    G = gram.quadratic_forms(v)
    assert np.all(G[:2] > 0)
    assert_array_equal(G[2:], 0)


@any_way
def test_combined_matrices_do_not_remember_the_last_theta(cache_mb, n_jobs):
    gram = make_gram("paper", "overlapping", cache_mb, n_jobs)
    flat = []
    for theta in (some_theta(11), np.ones(11), some_theta(11)):
        with gram.combined(theta) as K:
            flat.append(K.flat.copy())
    assert_array_equal(flat[2], flat[0])


@any_layout
def test_combined_matrices_are_exactly_symmetric(layout):
    gram = make_gram("paper", layout)
    with gram.combined(some_theta(11)) as combined:
        for t in range(gram.n_tasks):
            K = combined.of_task(t)
            assert_array_equal(K, K.T)


@pytest.mark.parametrize("cache_mb", [512, 0])
@pytest.mark.parametrize("n_jobs", [1, 3])
@any_layout
def test_precomputed_stacks(layout, n_jobs, cache_mb):
    Ks = BANKS["several bases"][1] * 10.0 ** np.arange(-3, 3)[:, None, None]
    stack = np.moveaxis(Ks, 0, 2)
    gram = GramBlocks(KernelBank("precomputed", cache_mb=cache_mb).fit(stack), stack, LAYOUTS[layout], n_jobs)
    theta, v = some_theta(len(Ks)), some_dual(gram, 0.5)
    G = gram.quadratic_forms(v)
    with gram.combined(theta) as K:
        for t, rows in enumerate(LAYOUTS[layout]):
            part, blocks = v[gram.layout.ptr[t] : gram.layout.ptr[t + 1]], Ks[:, rows[:, None], rows]
            assert_allclose(K.of_task(t), np.tensordot(theta, blocks, axes=1), rtol=1e-13)
            assert_allclose(G[t], blocks @ part @ part, rtol=1e-10)


@pytest.mark.parametrize("n_jobs", [1, 3])
@any_layout
def test_kernels_with_other_samples(layout, n_jobs):
    gram, theta = make_gram("several bases", layout, n_jobs=n_jobs), some_theta(6)
    side = gram.bank.side(X)
    assert_allclose(gram.cross(X[:7], theta), gram.bank.cross(side, side, theta)[:7], rtol=1e-13)


# ------------------------------------------------------------------------------------------------------------- storage
def address(K):
    return K.flat.__array_interface__["data"][0]


def test_storage_is_reused_from_block_to_block():
    gram = make_gram("paper", "overlapping", n_jobs=3)
    machine = SVCTasks(gram, np.resize([1.0, -1.0], gram.layout.ptr[-1]), np.ones(gram.layout.ptr[-1]))
    with gram.combined(np.ones(11)) as K:
        first = address(K)
    machine.sweep(np.ones(11))
    for _ in range(3):
        with gram.combined(some_theta(11)) as K:
            assert address(K) == first


def test_nested_blocks_have_their_own_storage():
    gram = make_gram("paper", "overlapping")
    with gram.combined(some_theta(11)) as outer:
        before = outer.flat.copy()
        with gram.combined(np.ones(11)) as inner:
            assert not np.shares_memory(inner.flat, outer.flat)
        assert_array_equal(outer.flat, before)


def test_threads_have_their_own_storage():
    gram = make_gram("paper", "one vs one")
    thetas = [some_theta(11, seed) for seed in range(8)]

    def of_all_tasks(theta):
        with gram.combined(theta) as K:
            return [K.of_task(t) for t in range(gram.n_tasks)], gram.quadratic_forms(
                np.arange(gram.layout.ptr[-1]) % 3.0
            )

    with ThreadPoolExecutor(4) as pool:
        for (matrices, forms), (expected, expected_forms) in zip(
            pool.map(of_all_tasks, thetas), map(of_all_tasks, thetas), strict=True
        ):
            assert_array_equal(forms, expected_forms)
            for K, expected_K in zip(matrices, expected, strict=True):
                assert_array_equal(K, expected_K)


def test_a_combined_matrix_ends_with_its_block():
    gram = make_gram("paper", "overlapping")
    with gram.combined(np.ones(11)) as K:
        kept = K.of_task(0)
    with pytest.raises(RuntimeError, match="can be used only inside"):
        K.flat  # noqa: B018
    with pytest.raises(RuntimeError, match="can be used only inside"):
        K.of_task(0)
    with gram.combined(some_theta(11)) as other:
        assert not np.shares_memory(kept, other.flat)


def test_an_error_within_a_block_ends_it():
    gram = make_gram("paper", "overlapping")
    with pytest.raises(ZeroDivisionError), gram.combined(np.ones(11)) as K:
        raise ZeroDivisionError
    with pytest.raises(RuntimeError):
        K.of_task(0)


def test_some_rows_and_columns_of_a_task():
    gram = make_gram("paper", "overlapping")
    rows, columns = np.array([3, 5]), np.array([0, 7, 9])
    with gram.combined(np.ones(11)) as K:
        assert_array_equal(K.of_task(1, rows, columns), K.of_task(1)[np.ix_(rows, columns)])


# -------------------------------------------------------------------------------------------------------------- blocks
@pytest.mark.parametrize(
    ("layout", "blocks"),
    [
        ("one task", [0]),
        ("one vs one", [0] * 6),
        ("disjoint", [0, 1, 2]),
        ("interleaved", [0, 1, 2]),
        ("overlapping", [0, 0, 0]),
        ("two blocks of two", [0, 0, 1, 1]),
    ],
)
def test_tasks_that_share_samples_share_a_block(layout, blocks):
    assert_array_equal(_connected_blocks(LAYOUTS[layout], N)[1], blocks)


@settings(deadline=None)
@given(st.lists(st.sets(st.integers(0, 11), min_size=1), min_size=1, max_size=8))
def test_blocks_are_the_finest_partition_that_keeps_every_task_whole(sets):
    samples, block = _connected_blocks([np.array(sorted(rows)) for rows in sets], 12)
    groups = [set(rows) for rows in sets]  # merge overlapping groups until none overlap
    merged = []
    while groups:
        group = groups.pop()
        meeting = [other for other in groups if other & group]
        if meeting:
            groups = [other for other in groups if not other & group] + [group.union(*meeting)]
        else:
            merged.append(group)
    assert sorted(map(sorted, merged)) == sorted(rows.tolist() for rows in samples)
    for rows, b in zip(sets, block, strict=True):
        assert rows <= set(samples[b].tolist())


def test_nothing_is_computed_between_disjoint_tasks():
    gram = make_gram("paper", "interleaved")
    with gram.combined(np.ones(11)) as K:
        assert len(K.flat) == 3 * 100**2


# -------------------------------------------------------------------------------------------------------------- memory
def test_threads_that_need_a_matrix_make_it_once():
    made = []

    def make():
        made.append(1)
        time.sleep(0.05)
        return np.ones(4)

    layout = GramBlocks(KernelBank(["linear"]).fit(np.eye(2)), np.eye(2), [np.arange(2)]).layout
    K = CombinedGram(make, layout)
    found = run_chunks(lambda: K.flat, [()] * 4, 4)
    assert len(made) == 1
    assert all(flat is found[0] for flat in found)


@pytest.mark.parametrize("cache_mb", [512, 0])
def test_no_stack_of_gram_matrices_is_ever_held(cache_mb):
    """Eleven kernels would take 11 N² numbers; only K_θ, one base, and what the base needs are in memory."""
    n = 800
    points = np.random.default_rng(0).uniform(size=(n, 3))
    fitted = KernelBank("paper", cache_mb=cache_mb).fit(points)
    tracemalloc.start()
    try:
        gram = GramBlocks(fitted, points, [np.arange(n)])
        with gram.combined(np.ones(11)) as K:
            assert K.flat[0] > 0  # made when it is needed
            gram.quadratic_forms(np.ones(n))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 8 * n**2 < peak < 3 * 8 * n**2  # below: tracemalloc sees what NumPy allocates
    if cache_mb == 0:
        assert peak < 2 * 8 * n**2


# ------------------------------------------------------------------------------------------- positive semidefiniteness
def psd_check(*kernels):
    GramBlocks(KernelBank(list(kernels)).fit(X), X, LAYOUTS["overlapping"]).check_positive_semidefinite()


@pytest.mark.parametrize(
    "function",
    [
        lambda A, B: A @ B.T,
        lambda A, B: np.zeros((len(A), len(B))),
        lambda A, B: np.ones((len(A), len(B))),
        lambda A, B: pairwise.rbf_kernel(A, B).astype(np.float32),
        lambda A, B: 1e-30 * pairwise.rbf_kernel(A, B),
        lambda A, B: 1e30 * pairwise.rbf_kernel(A, B),
    ],
    ids=["low rank", "zero", "ones", "single precision", "tiny", "huge"],
)
def test_semidefinite_callables_pass(function):
    psd_check(function)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize(
    "function",
    [
        lambda A, B: -A @ B.T,
        lambda A, B: np.tanh(2 * A @ B.T - 1),
        lambda A, B: -pairwise.euclidean_distances(A, B),
        lambda A, B: pairwise.manhattan_distances(A, B),
    ],
    ids=["negative", "tanh", "minus distance", "distance"],
)
def test_indefinite_callables_are_refused_at_any_scale(function, scale):
    def indefinite(A, B):
        return scale * function(A, B)

    with pytest.raises(ValueError, match="Kernel indefinite is not positive semidefinite"):
        psd_check(Linear(), indefinite)


def stack_with_least_eigenvalue(least, n=30):
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((n, n)))[0]
    K = basis * np.append(least, np.ones(n - 1)) @ basis.T
    stack = ((K + K.T) / 2)[:, :, None]
    return GramBlocks(KernelBank("precomputed").fit(stack), stack, rows_of((0, n)))


def test_a_negative_eigenvalue_of_a_thousandth_is_not_mistaken_for_rounding():
    stack_with_least_eigenvalue(-1e-7).check_positive_semidefinite()
    with pytest.raises(ValueError, match=r"not positive semidefinite: its smallest eigenvalue is -0\.001"):
        stack_with_least_eigenvalue(-1e-3).check_positive_semidefinite()


def test_a_stack_is_checked_only_within_tasks():
    """The values of a kernel between samples that share no task do not matter."""
    stack = np.eye(6)[:, :, None].copy()
    stack[:3, 3:], stack[3:, :3] = 5.0, 5.0
    fitted = KernelBank("precomputed").fit(stack)
    GramBlocks(fitted, stack, rows_of((0, 3), (3, 6))).check_positive_semidefinite()
    with pytest.raises(ValueError, match="Kernel 0 of the precomputed stack is not positive semidefinite"):
        GramBlocks(fitted, stack, rows_of((0, 6))).check_positive_semidefinite()


@any_layout
def test_tasks_may_have_their_own_kernel_weights(layout):
    gram, Ks, rows_of_task = make_gram("paper", layout), BANKS["paper"][1], LAYOUTS[layout]
    separate = GramBlocks(gram.bank, X, rows_of_task, shared=False)
    thetas = np.array([some_theta(len(Ks), seed=t) for t in range(len(rows_of_task))])
    v = some_dual(gram, 0.5)
    assert_allclose(separate.quadratic_forms(v), gram.quadratic_forms(v), rtol=1e-12)
    with separate.combined(thetas) as K:
        for t, rows in enumerate(rows_of_task):
            expected = np.tensordot(thetas[t], Ks[:, rows[:, None], rows], axes=1)
            assert_allclose(K.of_task(t), expected, rtol=1e-11, atol=1e-14)


def test_blocks_of_all_samples_each_have_their_base_values():
    """The values that the bank has just measured are those of one block, not of one for each task."""
    X = np.random.default_rng(0).normal(size=(30, 4))
    everyone = np.arange(len(X))
    bank, known = KernelBank("default").fit_and_measure(X, None, None, [(everyone, np.ones(len(X)))] * 3)
    theta = np.random.default_rng(1).random((3, bank.n_kernels))
    gram = GramBlocks(bank, X, [everyone] * 3, shared=False, known=known)
    with gram.combined(theta) as K:
        for t in range(3):
            assert_allclose(K.of_task(t), bank.cross(bank.side(X), bank.side(X), theta[t]), rtol=1e-10, atol=1e-12)


def test_base_values_that_were_measured_are_not_computed_again(monkeypatch):
    X = np.random.default_rng(0).normal(size=(30, 4))
    rows = [np.arange(25), np.arange(5, 30)]
    bank, known = KernelBank("default").fit_and_measure(X, None, None, [(own, np.ones(25)) for own in rows])
    n_panels = 0

    def counted(*args, panel=Evaluator.panel):
        nonlocal n_panels
        n_panels += 1
        return panel(*args)

    monkeypatch.setattr(Evaluator, "panel", counted)
    combined = []
    for passed, expected in ((known, 0), (None, 1)):
        with GramBlocks(bank, X, rows, known=passed).combined(np.ones(13)) as K:
            combined.append(K.flat.copy())
        assert n_panels == expected
    assert_array_equal(*combined)


def test_base_values_among_some_samples_are_not_passed_on():
    X = np.random.default_rng(0).normal(size=(30, 4))
    assert KernelBank("default").fit_and_measure(X, None, None, [(np.arange(29), np.ones(29))])[1] is None
    assert KernelBank("default", cache_mb=0).fit_and_measure(X, None, None, None)[1] is None
