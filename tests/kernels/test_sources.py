"""Named blocks of columns: which are standardised, with which kernels, and what is refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris

from paretomkl import Cosine, Gaussian, KernelBank, Linear, ParetoMKLClassifier, Source, load_model, save_model, sources

RNG = np.random.default_rng(0)
N = 60
COUNTS = RNG.poisson(0.2, (N, 40)).astype(float)
DENSE = RNG.normal(2, [1, 100, 0.01], (N, 3))
LABELS = np.where(COUNTS[:, :5].sum(axis=1) + DENSE[:, 0] > 3, "high", "low")
BOTH = np.column_stack([COUNTS, DENSE])
BLOCKS = {"words": slice(0, 40), "measured": slice(40, 43)}


def scaling(X, **given):
    return KernelBank(**given).fit(X).scaling["X"]


@pytest.mark.parametrize(
    ("X", "expected"),
    [
        (COUNTS, "root"),
        (COUNTS / COUNTS.sum(axis=1, keepdims=True).clip(1), "root"),  # shares
        (np.eye(4)[RNG.choice(4, N, p=[0.7, 0.1, 0.1, 0.1])], "root"),  # indicators of categories
        (DENSE, "standardize"),
        (np.where(COUNTS > 0, COUNTS, -1.0), "standardize"),  # negative values
        (COUNTS + 1, "standardize"),  # no zeros
        (
            np.column_stack([np.eye(4)[RNG.integers(4, size=N)], RNG.integers(18, 90, N)]),
            "standardize",
        ),  # age
        (np.zeros((N, 3)), "standardize"),
    ],
    ids=["counts", "shares", "indicators", "dense", "signed", "no zeros", "one large column", "constant"],
)
def test_only_balanced_blocks_that_are_mostly_zero_are_not_standardised(X, expected):
    assert scaling(X) == scaling(1000 * X) == expected
    assert [scaling(X, standardize=how) for how in (True, "root", False)] == ["standardize", "root", "none"]


def test_each_source_decides_for_itself():
    bank = sources(BLOCKS).fit(BOTH)
    assert bank.scaling == {"words": "root", "measured": "standardize"}
    assert {type(kernel) for kernel in bank.kernels if kernel.source == "words"} >= {Cosine, Linear}
    alone = {name: sources({name: slice(None)}).fit(BOTH[:, BLOCKS[name]]) for name in BLOCKS}
    side = bank.side(BOTH)
    for name, own in alone.items():
        there = [m for m, kernel in enumerate(bank.kernels) if kernel.source == name]
        there = [m for m in there if name == "words" or m != there[0]]  # the cosine, which one source lacks
        names = [bank.names[m] for m in there]
        mine = own.some(np.array([own.names.index(n) for n in names]))
        X = BOTH[:, BLOCKS[name]]
        assert_allclose(bank.stack(side, side)[there], mine.stack(mine.side(X), mine.side(X)), rtol=1e-9, atol=1e-9)


def test_square_roots_make_the_cosine_the_overlap_of_two_distributions():
    bank = KernelBank().fit(COUNTS)
    shares = COUNTS / COUNTS.sum(axis=1, keepdims=True)
    cosine = bank.stack(bank.side(COUNTS), bank.side(COUNTS))[bank.names.index("cosine")]
    assert_allclose(cosine, np.sqrt(shares) @ np.sqrt(shares).T, atol=1e-12)


def test_columns_may_be_in_two_sources_that_treat_them_differently():
    both = {
        "raw": Source([40, 41], standardize=False, kernels=["linear"]),
        "scaled": Source([40, 41], kernels=["linear"]),
    }
    bank = sources(both).fit(BOTH)
    assert bank.scaling == {"raw": "none", "scaled": "standardize"}
    raw, scaled = bank.stack(bank.side(BOTH), bank.side(BOTH))
    X = BOTH[:, [40, 41]]
    assert_allclose(raw, X @ X.T, rtol=1e-9)
    assert_allclose(np.trace(scaled), 2 * N, rtol=0.05)


def test_kernels_of_a_source_have_its_columns():
    bank = sources(
        {"words": Source(range(40), standardize=False, kernels=[Cosine(), ("rbf", {"sigma": 3.0})]), "rest": 41}
    )
    fitted = bank.fit(BOTH)
    assert fitted.names[:2] == ["words: cosine", "words: gaussian(sigma=3)"]
    norms = np.linalg.norm(COUNTS, axis=1)
    expected = COUNTS @ COUNTS.T / np.outer(norms, norms).clip(1e-300)
    assert_allclose(fitted.stack(fitted.side(BOTH), fitted.side(BOTH))[0], expected, atol=1e-12)


def test_training_samples_of_each_fold_decide_and_models_remember(tmp_path):
    model = ParetoMKLClassifier(kernels=sources(BLOCKS)).fit(BOTH, LABELS)
    assert model.scaling_ == {"words": "root", "measured": "standardize"}
    assert "square roots of words" in model._repr_html_()
    pytest.importorskip("skops")
    save_model(model, tmp_path / "model.skops")
    loaded = load_model(tmp_path / "model.skops")
    assert loaded.scaling_ == model.scaling_
    moved = BOTH[:5] - 1  # negative now, but the decision was taken in training
    assert_allclose(loaded.decision_function(moved), model.decision_function(moved), rtol=1e-12)
    other = ParetoMKLClassifier(kernels=sources(BLOCKS)).fit(BOTH + 1, LABELS)
    assert set(other.scaling_.values()) == {"standardize"}


def test_dense_data_have_the_default_bank():
    X, _ = load_iris(return_X_y=True)
    bank = KernelBank().fit(X)
    assert bank.scaling == {"X": "standardize"}
    assert len(bank.kernels) == 13
    assert not any(isinstance(kernel, Cosine) for kernel in bank.kernels)


def test_keywords_are_refused():
    with pytest.raises(TypeError, match=r"one mapping .* got the keyword 'standardize'"):
        sources({"words": [0, 1]}, standardize=False)
    with pytest.raises(TypeError, match="one mapping"):
        sources(words=[0, 1])
    with pytest.raises(TypeError, match="one mapping"):
        sources([0, 1])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"standardize": "no"}, "standardize must be True, False, 'root' or 'auto', got 'no'"),
        ({"kernels": "linear"}, "kernels of a Source must be a list"),
        ({"kernels": []}, "kernels of a Source is empty"),
        ({"kernels": [Gaussian(1.0, columns=[0])]}, "has columns or a source of its own"),
    ],
)
def test_bad_settings_of_a_source_are_refused(given, words):
    with pytest.raises(ValueError, match=words):
        Source([0, 1], **given)


def test_tasks_that_share_nothing_have_the_same_kernels():
    """One task alone would be standardised and the other not."""
    tasks = np.arange(N) % 2
    X = COUNTS + (tasks[:, None] * RNG.integers(2, size=(N, 40)))
    assert [scaling(X[tasks == t]) for t in (0, 1)] == ["root", "standardize"]
    model = ParetoMKLClassifier(share="nothing").fit(X, LABELS, tasks=tasks)
    assert model.theta_.shape[0] == 2
