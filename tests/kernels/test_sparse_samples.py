"""Sparse samples: the same kernels and models as dense ones, and features that stay sparse."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, csr_matrix, issparse

from paretomkl import (
    Cosine,
    Gaussian,
    KernelBank,
    Laplacian,
    Linear,
    ParetoMKLClassifier,
    ParetoMKLClassifierCV,
    ParetoMKLRegressor,
    Polynomial,
    Source,
    load_model,
    pareto_path,
    save_model,
    sources,
)
from paretomkl.exceptions import SourceWarning

RNG = np.random.default_rng(0)
N = 60
WORDS = csr_array(np.where(RNG.random((N, 300)) < 0.05, RNG.integers(1, 5, (N, 300)), 0.0))
SIGNED = csr_array(WORDS * np.where(RNG.random(300) < 0.5, -1.0, 1.0))
CLINIC = RNG.normal(size=(N, 3))
LABELS = np.where(WORDS.toarray()[:, :150].sum(axis=1) > WORDS.toarray()[:, 150:].sum(axis=1), "a", "b")
TASKS = np.array(["x", "y"])[np.arange(N) % 2]
TEXT = sources({"words": Source(kernels=[Linear(), Cosine(), Gaussian(3.0)])})
ALL = [Linear(), Polynomial(3, gamma=0.1), Cosine(), Gaussian(3.0), Laplacian(0.1)]


@pytest.mark.parametrize("X", [WORDS, SIGNED], ids=["counts", "signed"])
@pytest.mark.parametrize("normalize", ["unit", "trace", "capacity", "none"])
def test_sparse_samples_have_the_kernels_of_dense_ones(X, normalize):
    sparse, dense = (KernelBank(ALL, normalize=normalize).fit(x) for x in (X, X.toarray()))
    assert_allclose(sparse.factor, dense.factor, rtol=1e-9)
    expected = dense.stack(dense.side(X.toarray()[:9]), dense.side(X.toarray()))
    assert_allclose(sparse.stack(sparse.side(X[:9]), sparse.side(X)), expected, rtol=1e-9, atol=1e-9)
    assert_allclose(sparse.stack(sparse.side(X[:9].toarray()), sparse.side(X)), expected, rtol=1e-9, atol=1e-9)
    assert_allclose(sparse.diagonals(X), dense.diagonals(X.toarray()), rtol=1e-9, atol=1e-12)


def test_copies_of_a_sparse_sample_are_at_distance_zero():
    """Distances from inner products would be off by the rounding errors of the norms."""
    X = csr_array(np.vstack([WORDS.toarray() * 1e3, WORDS.toarray()[:1] * 1e3 + 1e-6 * (WORDS.toarray()[:1] > 0)]))
    bank = KernelBank([Gaussian(1e-5)]).fit(X)
    value = bank.stack(bank.side(X[:1]), bank.side(X[[0, N]]))[0, 0]
    square = 1e-12 * WORDS[[0]].nnz
    assert_allclose(value, [1.0, np.exp(-square / 2e-10)], rtol=1e-6)


def test_features_stay_sparse_and_counts_get_square_roots():
    bank = KernelBank().fit(WORDS)
    assert bank.scaling == KernelBank().fit(WORDS.toarray()).scaling == {"X": "root"}
    assert all(issparse(part) for part in bank.side(WORDS).features)
    dense = [name for name in KernelBank().fit(WORDS.toarray()).names if "laplacian" not in name]
    assert bank.names == dense  # L1 distances between sparse samples would be slow
    signed = KernelBank().fit(SIGNED)
    assert signed.scaling == {"X": "none"}
    assert KernelBank().fit(csr_array(CLINIC)).scaling == {"X": "standardize"}  # sparse by type only


@pytest.mark.parametrize(
    "model",
    [
        ParetoMKLClassifier(kernels=TEXT),
        ParetoMKLClassifier(kernels=TEXT, share="function"),
        ParetoMKLClassifier(kernels=TEXT, share="everything"),
        ParetoMKLClassifier(kernels=TEXT, share="nothing"),
        ParetoMKLClassifierCV(kernels=TEXT, ps=[1.0], Cs=[1.0], cv=3),
    ],
    ids=["kernel", "function", "everything", "nothing", "search"],
)
@pytest.mark.filterwarnings("ignore:Kernel words")
@pytest.mark.filterwarnings("ignore:Kernel gaussian")
def test_models_of_sparse_samples(model, tmp_path):
    found = model.fit(WORDS, LABELS, tasks=TASKS)
    assert getattr(found, "scaling_", {"words": "root"}) == {"words": "root"}
    decided, score = found.decision_function(WORDS, tasks=TASKS), found.score(WORDS, LABELS, tasks=TASKS)
    pytest.importorskip("skops")
    save_model(found, tmp_path / "model.skops")
    loaded = load_model(tmp_path / "model.skops")
    assert_allclose(loaded.decision_function(csr_matrix(WORDS), tasks=TASKS), decided, rtol=1e-9, atol=1e-9)
    dense = model.fit(WORDS.toarray(), LABELS, tasks=TASKS)
    assert_allclose(dense.decision_function(WORDS.toarray(), tasks=TASKS), decided, atol=5e-3)
    assert score == pytest.approx(dense.score(WORDS.toarray(), LABELS, tasks=TASKS), abs=0.05)


def test_support_vectors_stay_sparse():
    model = ParetoMKLClassifier().fit(WORDS, LABELS)
    assert issparse(model.support_vectors_)
    assert_array_equal(model.support_vectors_.toarray(), WORDS[model.support_].toarray())


def test_a_sparse_block_among_others():
    """The sparse block gets square roots, the dense one is standardised, as if both were dense."""
    blocks, y = {"words": WORDS, "clinic": CLINIC}, CLINIC[:, 0] + WORDS.toarray()[:, :50].sum(axis=1)
    model = ParetoMKLRegressor().fit(blocks, y)
    assert model.scaling_ == {"words": "root", "clinic": "standardize"}
    dense = ParetoMKLRegressor().fit({**blocks, "words": WORDS.toarray()}, y)
    assert_allclose(model.predict(blocks), dense.predict({**blocks, "words": WORDS.toarray()}), rtol=1e-3, atol=1e-2)
    path = pareto_path(blocks, LABELS, ps=[1.0])
    assert path.models[0].predict(blocks).shape == (N,)


@pytest.mark.filterwarnings("ignore::paretomkl.exceptions.MissingValueWarning")
@pytest.mark.parametrize("share", ["kernel", "everything"])
def test_gaps_and_categories_beside_sparse_blocks_are_those_of_dense_ones(share):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"age": CLINIC[:, 0], "town": RNG.permutation(np.repeat(["a", "b", "c"], N // 3))})
    y = np.where(table["town"] == "b", "yes", "no")
    table.loc[0, "town"], table.loc[1, "age"], new = None, np.nan, table.copy()
    new.loc[5:9, "age"], new.loc[7, "town"] = np.nan, "d"
    own = [Linear(), Gaussian(1.0)]
    bank = sources({"table": Source("table", kernels=own), "words": Source("words", standardize="root", kernels=own)})
    sparse, dense = (
        ParetoMKLClassifier(kernels=bank, share=share, C=10.0, tol=1e-8).fit(
            {"table": table, "words": words}, y, tasks=TASKS
        )
        for words in (WORDS, WORDS.toarray())
    )
    for asked in (table, new, None):
        blocks = {"table": asked, "words": WORDS}
        expected = dense.decision_function({**blocks, "words": WORDS.toarray()}, tasks=TASKS)
        assert_allclose(sparse.decision_function(blocks, tasks=TASKS), expected, atol=1e-4)


def test_distances_between_sparse_samples_are_noted():
    with pytest.warns(SourceWarning, match="block by block"):
        ParetoMKLClassifier(kernels=[Linear(), Gaussian(3.0)]).fit(WORDS, LABELS)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SourceWarning)
        ParetoMKLClassifier(kernels=[Linear(), Cosine()]).fit(WORDS, LABELS)
        ParetoMKLClassifier().fit(WORDS, LABELS)
