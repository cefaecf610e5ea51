"""X as blocks of columns, one per source."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from paretomkl import (
    ParetoMKLClassifier,
    ParetoMKLClassifierCV,
    ParetoMKLOutlierDetector,
    ParetoMKLRegressor,
    Source,
    load_model,
    pareto_path,
    save_model,
    sources,
)
from paretomkl.exceptions import SourceWarning

RNG = np.random.default_rng(0)
GENES, CLINIC = RNG.normal(size=(60, 6)), RNG.normal(size=(60, 2))
LABELS = np.where(GENES[:, 0] + CLINIC[:, 0] > 0, "ill", "well")
NUMBERS = GENES[:, 1] - CLINIC[:, 1]
TASKS = np.array(["north", "south"])[np.arange(60) % 2]
SIDE_BY_SIDE = np.hstack([GENES, CLINIC])
BLOCKS = {"genes": GENES, "clinic": CLINIC}
COLUMNS = sources({"genes": slice(0, 6), "clinic": slice(6, 8)})


def some(rows, blocks=BLOCKS):
    return {name: part[rows] for name, part in blocks.items()}


@pytest.mark.parametrize(
    ("model", "y", "tasks"),
    [
        (ParetoMKLClassifier(), LABELS, None),
        (ParetoMKLClassifier(share="function"), LABELS, TASKS),
        (ParetoMKLRegressor(share="everything"), NUMBERS, TASKS),
        (ParetoMKLClassifierCV(ps=[1.0], Cs=[1.0], cv=3, random_state=0), LABELS, None),
        (ParetoMKLClassifierCV(ps=[1.0], Cs=[1.0], cv=3, scoring="accuracy"), LABELS, None),
    ],
    ids=["classifier", "function", "everything", "search", "scored search"],
)
def test_blocks_are_sources(model, y, tasks):
    """One source per block is what sources of columns are to the blocks side by side."""
    given = {} if tasks is None else {"tasks": tasks}
    found = model.fit(BLOCKS, y, **given)
    predicted, score = found.predict(some(slice(0, 9)), **_some(given)), found.score(BLOCKS, y, **given)
    shares = dict(found.source_shares_)
    same = model.set_params(kernels=COLUMNS).fit(SIDE_BY_SIDE, y, **given)
    assert_array_equal(predicted, same.predict(SIDE_BY_SIDE[:9], **_some(given)))
    assert score == same.score(SIDE_BY_SIDE, y, **given)
    assert shares == same.source_shares_
    model.set_params(kernels="default")


def _some(given):
    return {name: value[:9] for name, value in given.items()}


def test_a_path_and_a_detector_take_blocks():
    path = pareto_path(BLOCKS, LABELS, ps=[1.0])
    assert list(path.source_shares) == ["genes", "clinic"]
    assert_array_equal(path.models[0].predict(BLOCKS), path.models[0].predict(SIDE_BY_SIDE))
    detector = ParetoMKLOutlierDetector().fit(BLOCKS)
    assert detector.kernel_names_ == ["genes: gaussian ×1", "clinic: gaussian ×1"]


def test_a_list_numbers_its_blocks_and_frames_name_their_columns(tmp_path):
    pd = pytest.importorskip("pandas")
    listed = ParetoMKLClassifier().fit([GENES, CLINIC], LABELS)
    assert list(listed.source_shares_) == ["block 0", "block 1"]
    frames = {"genes": pd.DataFrame(GENES).add_prefix("g"), "clinic": pd.DataFrame(CLINIC, columns=["age", "bmi"])}
    model = ParetoMKLClassifier().fit(frames, LABELS)
    assert model.feature_names_in_[-1] == "clinic: bmi"
    turned = {"clinic": frames["clinic"], "genes": frames["genes"]}  # blocks are matched by name
    assert_allclose(model.decision_function(turned), listed.decision_function([GENES, CLINIC]), rtol=1e-9)
    pytest.importorskip("skops")
    save_model(model, tmp_path / "model.skops")
    assert_array_equal(load_model(tmp_path / "model.skops").predict(frames), model.predict(frames))
    with pytest.raises(ValueError, match="column 'clinic: bmi' is at another place"):
        model.predict({**frames, "clinic": frames["clinic"][["bmi", "age"]]})
    with pytest.raises(ValueError, match="row labels"):
        model.fit({**frames, "clinic": frames["clinic"].iloc[::-1]}, LABELS)


def test_sources_may_name_blocks():
    bank = sources({"genes": Source(kernels=["linear"]), "both": ["genes", "clinic"], "age": "clinic: 0"})
    model = ParetoMKLClassifier(kernels=bank).fit(BLOCKS, LABELS)
    used = {kernel.source: kernel.columns for kernel in model.model_.bank.kernels}
    assert {name: len(columns) for name, columns in used.items()} == {"genes": 6, "both": 8, "age": 1}


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ({}, "no blocks"),
        ({"genes": GENES, "clinic": CLINIC[:50]}, "Block 'clinic' has 50 rows, but block 'genes' has 60"),
        ({"genes": GENES, "clinic": CLINIC[:, :0]}, "Block 'clinic' is empty"),
        ({"genes": GENES, "clinic": CLINIC[:, 0]}, "Block 'clinic' must have two dimensions"),
        ({"genes": np.where(GENES > 2, np.inf, GENES)}, r"Block 'genes' contains infinity.* \(columns '"),
        ({"genes": None, "clinic": CLINIC}, "Block 'genes' is None"),
    ],
)
def test_bad_blocks_are_refused(X, words):
    with pytest.raises(ValueError, match=words):
        ParetoMKLClassifier().fit(X, LABELS)
    with pytest.raises(ValueError, match=words):
        ParetoMKLClassifierCV().fit(X, LABELS)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ({"genes": GENES}, "no block 'clinic'"),
        ({**BLOCKS, "age": CLINIC}, "unknown block 'age'"),
        ({"genes": GENES[:, :5], "clinic": CLINIC}, "Block 'genes' has 5 columns, but 6 in training"),
        (SIDE_BY_SIDE, "fitted with the blocks 'genes' and 'clinic'"),
    ],
)
def test_blocks_that_differ_from_the_training_data_are_refused(X, words):
    with pytest.raises(ValueError, match=words):
        ParetoMKLClassifier().fit(BLOCKS, LABELS).predict(X)


def test_blocks_need_a_model_of_blocks():
    with pytest.raises(ValueError, match="fitted without"):
        ParetoMKLClassifier().fit(SIDE_BY_SIDE, LABELS).predict(BLOCKS)
    with pytest.raises(ValueError, match="task_column needs one X"):
        ParetoMKLClassifier(task_column=0).fit(BLOCKS, LABELS)


def test_constant_sources_are_noted():
    with pytest.warns(SourceWarning, match="same values in all samples") as found:
        model = ParetoMKLClassifier().fit({**BLOCKS, "empty": np.ones((60, 2))}, LABELS)
    assert found[0].message.source == "empty"
    assert model.source_shares_["empty"] == 0


def test_columns_without_a_source_are_noted():
    with pytest.warns(SourceWarning, match="No source names the column '7', so it is not used"):
        ParetoMKLClassifier(kernels=sources({"a": slice(0, 7)})).fit(SIDE_BY_SIDE, LABELS)
    with pytest.warns(SourceWarning, match="No source names the columns '2', '3', '4', '5', '6' and 1 more") as found:
        ParetoMKLClassifier(kernels=sources({"a": [0, 1]})).fit(SIDE_BY_SIDE, LABELS)
    assert found[0].message.columns == (2, 3, 4, 5, 6, 7)
    with pytest.warns(SourceWarning, match="'clinic: 0' and 'clinic: 1'"):
        pareto_path(BLOCKS, LABELS, ps=[1.0], kernels=sources({"genes": "genes"}))


# --------------------------------------------------------------------------------------- a stack as a block
def gram(rows, columns):
    """Two kernels between rows of the genes and of the clinic, (n, m, 2)."""
    parts = [GENES[rows] @ GENES[columns].T, np.exp(-((CLINIC[rows, None] - CLINIC[columns]) ** 2).sum(axis=-1))]
    return np.stack(parts, axis=2)


TRAIN, TEST = np.arange(45), np.arange(45, 60)


@pytest.mark.parametrize("way", ["kernel", "function", "everything"])
def test_a_stack_of_kernels_is_a_source_with_the_kernels_themselves(way, tmp_path):
    listed = [lambda X, Z: X[:, :6] @ Z[:, :6].T, lambda X, Z: np.exp(-((X[:, None, 6:] - Z[:, 6:]) ** 2).sum(axis=-1))]
    given = {"C": 3.0, "tol": 1e-8, "share": way}
    bank = sources({"kernels": Source(standardize=False, kernels=listed)})
    same = ParetoMKLClassifier(kernels=bank, **given).fit(SIDE_BY_SIDE[TRAIN], LABELS[TRAIN], tasks=TASKS[TRAIN])
    model = ParetoMKLClassifier(**given).fit({"kernels": gram(TRAIN, TRAIN)}, LABELS[TRAIN], tasks=TASKS[TRAIN])
    new = {"kernels": gram(TEST, TRAIN)}
    expected = same.decision_function(SIDE_BY_SIDE[TEST], tasks=TASKS[TEST])
    assert_allclose(model.decision_function(new, tasks=TASKS[TEST]), expected, atol=1e-5)
    pytest.importorskip("skops")
    save_model(model, tmp_path / "model.skops")
    loaded = load_model(tmp_path / "model.skops")
    assert_allclose(loaded.decision_function(new, tasks=TASKS[TEST]), expected, atol=1e-5)


def test_folds_take_the_rows_and_columns_of_a_stack_among_blocks():
    blocks = {"clinic": CLINIC[TRAIN], "kernels": gram(TRAIN, TRAIN)}
    for scoring in (None, "accuracy"):
        search = ParetoMKLClassifierCV(ps=[1.0], Cs=[1.0], cv=3, scoring=scoring).fit(blocks, LABELS[TRAIN])
        assert list(search.source_shares_) == ["clinic", "kernels"]
        assert search.best_estimator_.kernel_names_[-2:] == ["kernels: kernel 0", "kernels: kernel 1"]
        assert search.score({"clinic": CLINIC[TEST], "kernels": gram(TEST, TRAIN)}, LABELS[TEST]) > 0.7
        assert 0.7 < search.best_score_ < 1


def test_permuted_labels_are_scored_by_task_with_a_stack_among_blocks():
    blocks = {"clinic": CLINIC, "kernels": gram(slice(None), slice(None))}
    search = ParetoMKLClassifierCV(ps=[1.0], Cs=[1.0], cv=3, n_permutations=3).fit(blocks, LABELS, tasks=TASKS)
    assert search.p_values_by_task_ == {"north": 0.25, "south": 0.25}


def test_bad_stacks_are_refused():
    with pytest.raises(ValueError, match="Block 'kernels' must be a stack of kernels"):
        ParetoMKLClassifier().fit({"kernels": gram(TEST, TRAIN)}, LABELS[TEST])
    model = ParetoMKLClassifier().fit({"kernels": gram(TRAIN, TRAIN)}, LABELS[TRAIN])
    with pytest.raises(ValueError, match="has 15 and 2 training samples and kernels, but 45 and 2 in training"):
        model.predict({"kernels": gram(TEST, TEST)})
    with pytest.raises(ValueError, match="has 2 dimensions, but 3 in training"):
        model.predict({"kernels": CLINIC})
    detector = ParetoMKLOutlierDetector("svdd").fit({"kernels": gram(TRAIN, TRAIN)})
    with pytest.raises(ValueError, match="new samples, which SVDD needs"):
        detector.predict({"kernels": gram(TEST, TRAIN)})
    bank = sources({"both": ["clinic", "kernels"]})
    with pytest.raises(ValueError, match="make it a source of its own"):
        ParetoMKLClassifier(kernels=bank).fit({"clinic": CLINIC[TRAIN], "kernels": gram(TRAIN, TRAIN)}, LABELS[TRAIN])
