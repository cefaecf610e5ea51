"""Folds stratified by task and label, and scores for each task, for use with scikit-learn's model selection."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    f1_score,
    fbeta_score,
    get_scorer,
    get_scorer_names,
    log_loss,
    make_scorer,
    roc_auc_score,
    zero_one_loss,
)
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    StratifiedKFold,
    cross_val_predict,
    cross_validate,
    learning_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from paretomkl import ParetoMKLClassifier
from paretomkl._select.splits import make_splits
from paretomkl.exceptions import RareLabelWarning
from paretomkl.model_selection import (
    MultiTaskKFold,
    MultiTaskShuffleSplit,
    MultiTaskStratifiedGroupKFold,
    MultiTaskStratifiedKFold,
    make_multitask_scorer,
    split_by_time,
)
from tests.conftest import Toy, make_toy

KERNELS = ["linear", ("rbf", {"sigma": 1.0})]
TASKS = ["task 0", "task 1", "task 2"]
EXAMPLES = settings(max_examples=60, deadline=None)


def make(**parameters):
    return ParetoMKLClassifier(kernels=KERNELS, tol=1e-2, **parameters)


def frame_of(toy: Toy) -> pd.DataFrame:
    return pd.DataFrame(toy.X, columns=["a", "b", "c"]).assign(site=toy.tasks)


def matrix_of(toy: Toy) -> np.ndarray:
    """One column of signs per task, NaN elsewhere."""
    matrix = np.full((len(toy.y), 3), np.nan)
    for t, (rows, signs) in enumerate(toy.pairs):
        matrix[rows, t] = signs
    return matrix


def fold_of_rows(parts, n) -> np.ndarray:
    """The fold that tests each row; every row is tested once and trained on otherwise."""
    fold = np.full(n, -1)
    for f, (train, test) in enumerate(parts):
        assert (fold[test] == -1).all()
        fold[test] = f
        assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(n))
    assert (fold >= 0).all()
    return fold


def spread(fold, rows, n_splits) -> int:
    counts = np.bincount(fold[rows], minlength=n_splits)
    return int(counts.max() - counts.min())


# ------------------------------------------------------------ folds of a vector y
@pytest.mark.filterwarnings("ignore::paretomkl.exceptions.RareLabelWarning")
@EXAMPLES
@given(data=st.data(), n_splits=st.integers(2, 6), seed=st.sampled_from([None, 0, 1]))
def test_cells_tasks_and_folds_are_even(data, n_splits, seed):
    size = data.draw(st.integers(n_splits, 60))
    tasks = data.draw(hnp.arrays(int, size, elements=st.integers(0, 3)))
    y = data.draw(hnp.arrays(int, size, elements=st.integers(0, 2)))
    cells = [(tasks == t) & (y == k) for t in range(4) for k in range(3)]
    assume(all(cell.sum() != 1 for cell in cells))
    splitter = MultiTaskStratifiedKFold(n_splits, shuffle=seed is not None, random_state=seed)
    fold = fold_of_rows(splitter.split(np.zeros((size, 1)), y, groups=tasks), size)
    for rows in [*cells, *(tasks == t for t in range(4)), np.ones(size, dtype=bool)]:
        assert spread(fold, rows, n_splits) <= 1


@pytest.mark.parametrize("seed", [None, 0, 7])
def test_without_tasks_it_matches_stratified_k_fold(seed):
    y = np.random.default_rng(0).choice(["b", "a", "c"], 50, p=[0.5, 0.3, 0.2])
    options = {"shuffle": seed is not None, "random_state": seed}
    ours = MultiTaskStratifiedKFold(4, **options).split(y[:, None], y)
    for (train, test), (train_, test_) in zip(ours, StratifiedKFold(4, **options).split(y, y), strict=True):
        assert_array_equal(train, train_)
        assert_array_equal(test, test_)


def test_all_ways_to_give_the_tasks_yield_the_same_folds(toy):
    frame = frame_of(toy)
    splitter = MultiTaskStratifiedKFold(3)
    by_groups = fold_of_rows(splitter.split(toy.X, toy.y, groups=toy.tasks), 54)
    others = [
        splitter.split(toy.X, toy.y, tasks=list(toy.tasks)),
        splitter.split(toy.X, matrix_of(toy)),
        MultiTaskStratifiedKFold(3, task_column="site").split(frame, toy.y),
        MultiTaskStratifiedKFold(3, task_column=-1).split(frame, pd.Series(toy.y)),
        MultiTaskStratifiedKFold(3, task_column="site").split(pl.from_pandas(frame), toy.y),
        MultiTaskStratifiedKFold(3, task_column=3).split(frame.to_numpy(), toy.y[:, None]),
    ]
    for parts in others:
        assert_array_equal(fold_of_rows(parts, 54), by_groups)


def test_shuffling_follows_the_seed(toy):
    def folds(seed):
        splitter = MultiTaskStratifiedKFold(3, shuffle=True, random_state=seed)
        return fold_of_rows(splitter.split(toy.X, toy.y, groups=toy.tasks), 54)

    assert_array_equal(folds(0), folds(0))
    assert (folds(0) != folds(1)).any()


def test_labels_of_several_types():
    tasks = np.repeat(np.array([1, "b"], dtype=object), 6)
    y = np.array([0, 1, 2] * 2 + ["yes", "no"] * 3, dtype=object)
    fold = fold_of_rows(MultiTaskStratifiedKFold(2).split(y, y, groups=tasks), 12)
    for task, labels in ((1, (0, 1, 2)), ("b", ("yes", "no"))):
        for label in labels:
            rows = [t == task and k == label for t, k in zip(tasks, y, strict=True)]
            assert spread(fold, rows, 2) <= 1


# ------------------------------------------------------------ folds of a matrix y
def cells_of(matrix):
    return [
        matrix[:, t] == label for t in range(matrix.shape[1]) for label in np.unique(matrix[:, t]) if label == label
    ]


def gain_of_moving(fold, cells, n_splits) -> float:
    """The most that Σ_c Σ_f (n_cf / n_c)² falls if one sample moves; the whole data set is a cell too."""
    member = np.array([*cells, np.ones(len(fold), dtype=bool)], dtype=float)

    def cost(fold):
        return np.sum((member @ np.eye(n_splits)[fold] / member.sum(axis=1, keepdims=True)) ** 2)

    moved = [np.where(np.arange(len(fold)) == i, f, fold) for i in range(len(fold)) for f in range(n_splits)]
    return cost(fold) - min(cost(other) for other in moved)


@pytest.mark.filterwarnings("ignore::paretomkl.exceptions.RareLabelWarning")
@EXAMPLES
@given(data=st.data(), n_splits=st.integers(2, 5), seed=st.sampled_from([None, 0]))
def test_no_sample_of_a_matrix_is_better_off_elsewhere(data, n_splits, seed):
    shape = (data.draw(st.integers(8, 30)), data.draw(st.integers(2, 4)))
    matrix = data.draw(hnp.arrays(float, shape, elements=st.sampled_from([0.0, 1.0, np.nan])))
    cells = cells_of(matrix)
    assume(cells and all(cell.sum() > 1 for cell in cells))
    assume((~np.isnan(matrix)).sum(axis=1).max() > 1)
    splitter = MultiTaskStratifiedKFold(n_splits, shuffle=seed is not None, random_state=seed)
    try:
        fold = fold_of_rows(splitter.split(matrix, matrix), len(matrix))
    except ValueError as error:
        assume("fall into one fold" not in str(error))  # see IMPOSSIBLE
        raise
    assert gain_of_moving(fold, cells, n_splits) < 1e-9
    assert all(len(set(fold[cell])) > 1 for cell in cells)


def test_samples_with_labels_of_many_tasks():
    rng = np.random.default_rng(0)
    spreads = []
    for _ in range(5):
        matrix = np.where(rng.random((150, 20)) < 0.5, rng.random((150, 20)) < 0.3, np.nan)
        fold = fold_of_rows(MultiTaskStratifiedKFold(5).split(matrix, matrix), 150)
        assert gain_of_moving(fold, cells_of(matrix), 5) < 1e-9
        spreads += [spread(fold, cell, 5) for cell in cells_of(matrix)]
    assert np.mean(spreads) < 1.95  # 2.0 where rare labels do not go first, 2.6 without moves too


@pytest.mark.parametrize("missing", [np.nan, None])
def test_labels_of_a_matrix_are_spread(missing):
    rng = np.random.default_rng(0)
    matrix = (rng.random((300, 10)) < 0.2).astype(float if missing is not None else object)
    matrix[rng.random((300, 10)) < 0.6] = missing
    matrix[:20] = missing
    fold = fold_of_rows(MultiTaskStratifiedKFold(5).split(matrix, matrix), 300)
    by_chance = fold_of_rows(KFold(5).split(matrix), 300)
    cells = cells_of(matrix.astype(float))
    assert max(spread(fold, cell, 5) for cell in cells) <= 2
    assert max(spread(by_chance, cell, 5) for cell in cells) > 4
    assert spread(fold, np.arange(300), 5) <= 3
    assert spread(fold, np.arange(20), 5) <= 3  # samples without any label too


@pytest.mark.filterwarnings("ignore::paretomkl.exceptions.RareLabelWarning")
@pytest.mark.parametrize("seed", range(5))
def test_rare_labels_are_not_lost_among_many_tasks(seed):
    """Tasks with 2, 3, … 7 positive labels among 54 others: each positive label is in a different fold."""
    rng = np.random.default_rng(seed)
    matrix = (rng.random((100, 60)) < 0.2).astype(int)
    for t in range(6):
        matrix[:, t] = rng.permutation(100) < t + 2
    splitter = MultiTaskStratifiedKFold(5, shuffle=True, random_state=seed)
    fold = fold_of_rows(splitter.split(matrix, matrix), 100)
    assert [len(set(fold[matrix[:, t] == 1])) for t in range(6)] == [2, 3, 4, 5, 5, 5]
    other = MultiTaskStratifiedKFold(5, shuffle=True, random_state=seed + 1)
    assert (fold_of_rows(other.split(matrix, matrix), 100) != fold).any()


def test_frames_name_the_tasks_of_a_matrix():
    frame = pd.DataFrame({"toxic": [0, 0, 1, 1, np.nan, 0], "soluble": [1, 1, 0, np.nan, np.nan, np.nan]})
    with pytest.raises(ValueError, match="Task 'soluble' has a single sample with label 0"):
        MultiTaskStratifiedKFold(2).split(frame, frame)


# ------------------------------------------------------------ what folds cannot do
TWELVE = np.arange(12)
PAIRS = np.array([0, 1] * 6)
# any two of the first three samples are all that have some label of some task: they need three folds
IMPOSSIBLE = np.array([[1, np.nan, 1], [1, 1, np.nan], [np.nan, 1, 1], [0, 0, 0], [0, 0, 0], [0, 0, 0]])


@pytest.mark.parametrize(
    ("options", "X", "y", "said", "message"),
    [
        ({}, TWELVE, [0] * 11 + [1], {}, "y has a single sample with label 1"),
        ({}, TWELVE, PAIRS, {"groups": ["a"] * 11 + ["b"]}, "Task 'b' has a single sample with label 1"),
        ({}, TWELVE, PAIRS, {"groups": TWELVE, "tasks": TWELVE}, "Pass groups or tasks, not both"),
        ({"task_column": 0}, TWELVE[:, None], PAIRS, {"groups": PAIRS}, "Pass task_column or groups, not both"),
        (
            {"task_column": 0},
            TWELVE[:, None],
            np.eye(12),
            {},
            "Pass a matrix y, .* or the task of each row",
        ),
        ({"task_column": 2}, TWELVE[:, None], PAIRS, {}, "task_column=2 is out of range: X has 1 columns"),
        ({"task_column": "site"}, TWELVE[:, None], PAIRS, {}, "'site' is a name, but X has no column names"),
        ({"task_column": "site"}, pd.DataFrame({"a": PAIRS}), PAIRS, {}, "X has no column 'site'"),
        ({}, TWELVE, None, {}, "y is missing"),
        ({}, TWELVE, np.full((12, 2), np.nan), {}, "y has no labels"),
        ({}, TWELVE, np.zeros((12, 2, 2)), {}, "one or two dimensions"),
        ({}, TWELVE, PAIRS[:6], {}, "inconsistent numbers of samples"),
        ({}, TWELVE, PAIRS + 0.5, {}, "Unknown label type"),
        ({}, TWELVE, [None, *PAIRS[1:]], {}, "y is missing for sample 0"),
        ({}, TWELVE, PAIRS, {"groups": [None, *PAIRS[1:]]}, "tasks is missing for sample 0"),
        ({"n_splits": 13}, TWELVE, PAIRS, {}, "12 samples for 13 folds"),
        ({"n_splits": 2}, np.zeros(6), IMPOSSIBLE, {}, "fall into one fold"),
    ],
)
def test_impossible_splits_are_refused(options, X, y, said, message):
    with pytest.raises(ValueError, match=message):
        MultiTaskStratifiedKFold(**options).split(X, y, **said)


@pytest.mark.parametrize("options", [{"n_splits": 1}, {"random_state": 0}, {"n_splits": 2.5}])
def test_bad_options_are_refused(options):
    with pytest.raises(ValueError):
        MultiTaskStratifiedKFold(**options)


def test_small_cells_are_warned_about_once():
    y = np.array([0] * 20 + [1, 1, 1, 2, 2])
    with pytest.warns(RareLabelWarning, match="label 2") as caught:
        fold = fold_of_rows(MultiTaskStratifiedKFold(5).split(y, y), 25)
    (rare,) = [one.message for one in caught]
    assert (rare.task, rare.label, rare.n_samples, rare.n_splits) == (None, 2, 2, 5)
    assert len(set(fold[y == 2])) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MultiTaskStratifiedKFold(2).split(y, y)


def test_splitter_works_with_scikit_learn(toy):
    splitter = MultiTaskStratifiedKFold(4, shuffle=True, random_state=0, task_column="site")
    assert splitter.get_n_splits() == splitter.get_n_splits(toy.X, toy.y) == 4
    text = "MultiTaskStratifiedKFold(n_splits=4, random_state=0, shuffle=True, task_column='site')"
    assert " ".join(repr(splitter).split()) == text
    for copy in (pickle.loads(pickle.dumps(splitter)), clone(GridSearchCV(make(), {}, cv=splitter)).cv):
        assert repr(copy) == repr(splitter)


# ------------------------------------------------------------ folds and splits for regression
@EXAMPLES
@given(data=st.data(), n_splits=st.integers(2, 6), seed=st.sampled_from([None, 0, 1]))
def test_tasks_are_even_over_the_folds_of_a_regression(data, n_splits, seed):
    tasks = np.repeat(np.arange(4), data.draw(st.lists(st.integers(4, 20), min_size=4, max_size=4)))
    tasks = tasks[np.random.default_rng(0).permutation(len(tasks))]
    splitter = MultiTaskKFold(n_splits, shuffle=seed is not None, random_state=seed)
    y = np.linspace(0, 1, len(tasks))  # no two targets are equal: nothing to stratify by
    parts = list(splitter.split(y[:, None], y, tasks=tasks))
    fold = fold_of_rows(parts, len(tasks))
    for t in range(4):
        assert spread(fold, tasks == t, n_splits) <= 1
        assert min((tasks[train] == t).sum() for train, _ in parts) >= 2
    assert spread(fold, np.ones(len(tasks), dtype=bool), n_splits) <= 1


def test_without_tasks_it_matches_k_fold():
    X = np.zeros((23, 1))
    for (train, test), (train_, test_) in zip(MultiTaskKFold(4).split(X), KFold(4).split(X), strict=True):
        assert_array_equal(train, train_)
        assert_array_equal(test, test_)


def test_targets_of_a_matrix_are_spread():
    rng = np.random.default_rng(0)
    full = rng.standard_normal((103, 4))
    gaps = np.where(rng.random(full.shape) < 0.6, full, np.nan)
    shuffled = MultiTaskKFold(5, shuffle=True, random_state=0)
    fold = fold_of_rows(shuffled.split(full, full), 103)
    assert spread(fold, np.arange(103), 5) == 1
    assert (np.diff(fold) < 0).sum() > 20  # shuffled
    fold = fold_of_rows(shuffled.split(full, gaps), 103)
    by_chance = fold_of_rows(KFold(5, shuffle=True, random_state=0).split(full), 103)
    given = ~np.isnan(gaps)
    assert max(spread(fold, given[:, t], 5) for t in range(4)) <= 2
    assert max(spread(by_chance, given[:, t], 5) for t in range(4)) > 4


@pytest.mark.parametrize("splitter", [MultiTaskKFold(3), MultiTaskShuffleSplit(3, train_size=0.6, random_state=0)])
def test_regression_splitters_take_tasks_in_all_ways(toy, splitter):
    y = np.linspace(0, 1, 54)
    expected = [test.tolist() for _, test in splitter.split(toy.X, y, groups=toy.tasks)]
    by_column = clone(splitter, safe=False)
    by_column.task_column = "site"
    matrix = np.where(np.unique(toy.tasks)[None, :] == toy.tasks[:, None], y[:, None], np.nan)
    for parts in (
        splitter.split(toy.X, y, tasks=list(toy.tasks)),
        splitter.split(toy.X, matrix),
        by_column.split(frame_of(toy), y),
    ):
        assert [test.tolist() for _, test in parts] == expected
    # without and with metadata routing
    model = LinearRegression()
    scores = cross_validate(model, toy.X, y, groups=toy.tasks, cv=splitter)["test_score"]
    with sklearn.config_context(enable_metadata_routing=True):
        routed = cross_validate(model, toy.X, y, params={"tasks": toy.tasks}, cv=splitter)["test_score"]
    by_hand = [
        model.fit(toy.X[train], y[train]).score(toy.X[test], y[test])
        for train, test in splitter.split(toy.X, y, toy.tasks)
    ]
    assert_allclose(scores, by_hand)
    assert_allclose(routed, by_hand)
    assert splitter.get_n_splits(toy.X, y) == 3
    assert repr(pickle.loads(pickle.dumps(splitter))) == repr(splitter)


def test_random_splits_take_a_share_or_a_number_of_every_task():
    tasks = np.repeat(["a", "b", "c"], [20, 9, 4])
    for train_size, sizes in (
        (0.75, (15, 7, 3)),
        (3, (3, 3, 3)),
        (np.int64(2), (2, 2, 2)),
        (np.float32(0.5), (10, 4, 2)),
    ):
        splits = list(MultiTaskShuffleSplit(4, train_size=train_size, random_state=0).split(tasks, tasks=tasks))
        assert len({tuple(train) for train, _ in splits}) == 4
        for train, test in splits:
            assert tuple((tasks[train] == task).sum() for task in "abc") == sizes
            assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(33))
    again = MultiTaskShuffleSplit(4, train_size=np.float32(0.5), random_state=0).split(tasks, tasks=tasks)
    assert [train.tolist() for train, _ in again] == [train.tolist() for train, _ in splits]


def test_random_splits_of_a_matrix_take_a_share_of_all_samples():
    matrix = np.random.default_rng(0).standard_normal((40, 3))
    matrix[::4, 1] = np.nan
    for train, test in MultiTaskShuffleSplit(5, train_size=0.6, random_state=0).split(matrix, matrix):
        assert (len(train), len(test)) == (24, 16)
        assert not set(train) & set(test)
    matrix[3:, 2] = np.nan
    with pytest.raises(ValueError, match=r"Task 2 has \d samples in a training set and \d in its test set"):
        MultiTaskShuffleSplit(20, train_size=0.6, random_state=0).split(matrix, matrix)


@EXAMPLES
@given(data=st.data(), train_size=st.floats(0.4, 0.8))
def test_training_samples_come_before_test_samples(data, train_size):
    size = data.draw(st.integers(12, 40))
    tasks = np.arange(size) % 3
    time = data.draw(hnp.arrays(float, size, elements=st.integers(0, 1000), unique=True))
    train, test = split_by_time(tasks, time, train_size)
    assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(size))
    for t in range(3):
        earlier, later = time[train[tasks[train] == t]], time[test[tasks[test] == t]]
        assert earlier.max() < later.min()
        assert len(earlier) == round(train_size * (tasks == t).sum())


def test_samples_at_one_time_stay_together():
    time = np.array([5, 1, 2, 3, 3, 3, 4])
    train, test = split_by_time(None, time, 4)
    assert_array_equal(time[train], [1, 2])
    assert_array_equal(time[test], [5, 3, 3, 3, 4])
    assert_array_equal(split_by_time(None, time, 5)[0], [1, 2, 3, 4, 5])
    dates = np.datetime64("2020-01-01") + time
    assert_array_equal(split_by_time(None, dates, 4)[0], train)


FEW = ["a"] * 9 + ["b"] * 3


@pytest.mark.parametrize(
    ("split", "message"),
    [
        (
            lambda: MultiTaskKFold(2).split(TWELVE, tasks=FEW),
            "Task 'b' has 3 samples, and with 2 folds",
        ),
        (
            lambda: MultiTaskKFold(5).split(TWELVE, tasks=["a"] * 10 + ["b"] * 2),
            "Task 'b' has 2 samples, .* keeps only 1",
        ),
        (
            lambda: MultiTaskKFold(2).split(TWELVE[:3]),
            "y has 3 samples, and with 2 folds",
        ),
        (lambda: MultiTaskKFold(13).split(TWELVE), "12 samples for 13 folds"),
        (lambda: MultiTaskKFold().split(TWELVE, np.full((12, 2), np.nan)), "Task 0 has 0 samples"),
        (lambda: MultiTaskKFold().split(TWELVE, np.empty((12, 0))), "y has no columns"),
        (lambda: MultiTaskKFold().split(TWELVE, np.eye(12), tasks=FEW), "Pass a matrix y, .* or the task of each row"),
        (lambda: MultiTaskKFold().split(TWELVE, tasks=FEW, groups=FEW), "Pass groups or tasks, not both"),
        (lambda: MultiTaskKFold().split(TWELVE, tasks=[None, *FEW[1:]]), "tasks is missing for sample 0"),
        (lambda: MultiTaskKFold().split(TWELVE, TWELVE[:6]), "inconsistent numbers of samples"),
        (lambda: MultiTaskShuffleSplit(train_size=3).split(TWELVE, tasks=FEW), "Task 'b' has 3 samples, too few for"),
        (lambda: MultiTaskShuffleSplit(train_size=0.2).split(TWELVE, tasks=FEW), "Task 'b' has 3 samples, too few for"),
        *[
            (lambda size=size: MultiTaskShuffleSplit(train_size=size).split(TWELVE), "train_size must be a fraction in")
            for size in (0.0, 1.0, 1, -3, True, np.nan, "half", None)
        ],
        (lambda: split_by_time(FEW, TWELVE, 1.5), "train_size must be a fraction in"),
        (lambda: split_by_time(FEW, TWELVE, 3), "Task 'b' has 3 samples, too few for train_size=3"),
        (lambda: split_by_time(None, [0, 1, 1, 1], 3), "has fewer than two samples before 1"),
        (lambda: split_by_time(FEW, TWELVE[:5], 0.5), r"tasks must have one entry per sample \(5\)"),
        (lambda: split_by_time(FEW, [np.nan, *TWELVE[1:]], 0.5), "time is missing for sample 0"),
        (lambda: split_by_time(FEW, FEW, 0.5), "time must be a vector of numbers or dates"),
        (lambda: split_by_time(FEW, TWELVE[:, None], 0.5), "time must be a vector of numbers or dates"),
    ],
)
def test_impossible_regression_splits_are_refused(split, message):
    with pytest.raises(ValueError, match=message):
        split()


# ------------------------------------------------------------ make_splits
@pytest.mark.parametrize("cv", [None, 5, np.int64(5), MultiTaskStratifiedKFold(5, task_column="gone")], ids=str)
def test_numbers_of_folds_mean_folds_over_the_tasks(toy, cv):
    given = isinstance(cv, MultiTaskStratifiedKFold)
    folds = MultiTaskStratifiedKFold(5) if given else MultiTaskStratifiedKFold(5, shuffle=True, random_state=0)
    expected = fold_of_rows(folds.split(toy.X, toy.y, groups=toy.tasks), 54)
    assert_array_equal(fold_of_rows(make_splits(cv, toy.X, toy.y, tasks=toy.tasks), 54), expected)
    groups = np.arange(54) // 2
    if given:
        with pytest.raises(ValueError, match="do not keep groups together"):
            make_splits(cv, toy.X, toy.y, tasks=toy.tasks, groups=groups)
    else:
        kept = MultiTaskStratifiedGroupKFold(5, shuffle=True, random_state=0)
        expected = fold_of_rows(kept.split(toy.X, toy.y, groups, toy.tasks), 54)
        assert_array_equal(fold_of_rows(make_splits(cv, toy.X, toy.y, toy.tasks, groups), 54), expected)


def test_splitters_and_iterables_work_as_in_scikit_learn(toy):
    groups = np.arange(54) // 3
    by_group = make_splits(GroupKFold(3), toy.X, toy.y, tasks=toy.tasks, groups=groups)
    for (train, test), (train_, test_) in zip(by_group, GroupKFold(3).split(toy.X, toy.y, groups), strict=True):
        assert_array_equal(train, train_)
        assert_array_equal(test, test_)
    first = np.arange(54) < 27
    ((train, test),) = make_splits(iter([(first, ~first)]), toy.X, matrix_of(toy))
    assert_array_equal(train, np.arange(27))
    assert_array_equal(test, np.arange(27, 54))
    assert len(make_splits(3, toy.X, matrix_of(toy))) == 3
    with pytest.raises(ValueError, match="cv must be a number, a splitter"):
        make_splits("five", toy.X, toy.y)
    with pytest.raises(ValueError, match="cv yields no splits"):
        make_splits([], toy.X, toy.y)


def test_a_regression_makes_folds_within_tasks(toy):
    y = np.linspace(0, 1, 54)
    expected = fold_of_rows(MultiTaskKFold(4, shuffle=True, random_state=0).split(toy.X, y, toy.tasks), 54)
    assert_array_equal(fold_of_rows(make_splits(4, toy.X, y, toy.tasks, stratify=False), 54), expected)
    assert len(make_splits(None, toy.X, y, toy.tasks, stratify=False)) == 5
    other = fold_of_rows(make_splits(4, toy.X, y, toy.tasks, random_state=1, stratify=False), 54)
    assert (other != expected).any()
    # a splitter whose task column is no longer in X, and one that is left as it was
    for cv in (MultiTaskKFold(3, task_column="gone"), MultiTaskShuffleSplit(3, task_column="gone", random_state=0)):
        for train, test in make_splits(cv, toy.X, y, toy.tasks, stratify=False):
            assert set(toy.tasks[train]) == set(toy.tasks[test]) == set(TASKS)
        assert cv.task_column == "gone"
        with pytest.raises(ValueError, match=f"{type(cv).__name__} do not keep groups"):
            make_splits(cv, toy.X, y, toy.tasks, groups=np.arange(54), stratify=False)
    matrix = np.where(np.random.default_rng(0).random((54, 3)) < 0.7, y[:, None], np.nan)
    fold = fold_of_rows(make_splits(3, toy.X, matrix, stratify=False), 54)
    assert max(spread(fold, ~np.isnan(matrix[:, t]), 3) for t in range(3)) <= 2
    by_time = split_by_time(toy.tasks, np.arange(54))
    ((train, test),) = make_splits([by_time], toy.X, y, toy.tasks, stratify=False)
    assert_array_equal(train, by_time[0])
    assert_array_equal(test, by_time[1])


# ------------------------------------------------------------ scores against the plain metrics
def by_hand(metric, toy, predicted, **arguments):
    """The metric of each task, in a plain loop."""
    rows = [toy.tasks == task for task in TASKS]
    return {task: metric(toy.y[k], predicted[k], **arguments) for task, k in zip(TASKS, rows, strict=True)}


@pytest.fixture(scope="module")
def fitted(toy):
    return make().fit(toy.X, toy.y, tasks=toy.tasks)


@pytest.fixture(scope="module")
def fitted_column(toy):
    return make(task_column="site").fit(frame_of(toy), toy.y)


LABEL_METRICS = ["accuracy", "balanced_accuracy", "f1_macro", "f1_weighted", "matthews_corrcoef"]


@pytest.mark.parametrize("name", LABEL_METRICS)
def test_metrics_of_labels(toy, fitted, fitted_column, name):
    scorer = get_scorer(name)
    # scikit-learn offers no public way to ask a scorer for its metric
    metric, given = scorer._score_func, scorer._kwargs  # noqa: SLF001
    expected = by_hand(metric, toy, fitted.predict(toy.X, tasks=toy.tasks), **given)
    assert len(set(expected.values())) > 1
    each = make_multitask_scorer(name, average=None)(fitted_column, frame_of(toy), toy.y)
    assert each == expected
    assert make_multitask_scorer(name, average=None)(fitted, toy.X, toy.y, tasks=toy.tasks) == expected
    assert_allclose(make_multitask_scorer(name)(fitted_column, frame_of(toy), toy.y), np.mean(list(expected.values())))
    worst = make_multitask_scorer(name, average="worst")(fitted_column, frame_of(toy), toy.y)
    assert worst == min(expected.values())


def test_metrics_of_scores_and_of_a_positive_label(toy, fitted):
    """Words have no default positive label: the larger one counts as positive, unless you name another."""
    labels = fitted.predict(toy.X, tasks=toy.tasks)
    scores = fitted.decision_function(toy.X, tasks=toy.tasks)
    cases = [
        ("roc_auc", {}, by_hand(roc_auc_score, toy, scores)),
        (roc_auc_score, {}, by_hand(roc_auc_score, toy, scores)),
        (make_scorer(roc_auc_score, response_method="decision_function"), {}, by_hand(roc_auc_score, toy, scores)),
        ("average_precision", {}, by_hand(average_precision_score, toy, scores, pos_label="yes")),
        ("average_precision", {"pos_label": "no"}, by_hand(average_precision_score, toy, -scores, pos_label="no")),
        ("f1", {}, by_hand(f1_score, toy, labels, pos_label="yes")),
        ("f1", {"pos_label": "no"}, by_hand(f1_score, toy, labels, pos_label="no")),
        (fbeta_score, {"beta": 2}, by_hand(fbeta_score, toy, labels, pos_label="yes", beta=2)),
    ]
    for metric, arguments, expected in cases:
        scorer = make_multitask_scorer(metric, average=None, **arguments)
        assert scorer(fitted, toy.X, toy.y, tasks=toy.tasks) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", ["accuracy", "f1", "roc_auc", "average_precision"])
def test_tasks_may_have_their_own_labels(toy, name):
    """Six labels instead of two for the same problem give the same scores."""
    own = np.array([f"{label} {task}" for label, task in zip(toy.y, toy.tasks, strict=True)])
    scorer = make_multitask_scorer(name, average=None)
    few, many = make().fit(toy.X, toy.y, tasks=toy.tasks), make().fit(toy.X, own, tasks=toy.tasks)
    expected = scorer(few, toy.X, toy.y, tasks=toy.tasks)
    assert scorer(many, toy.X, own, tasks=toy.tasks) == pytest.approx(expected, abs=1e-12)


def test_labels_of_several_types_are_scored():
    toy = make_toy(seed=3, n_tasks=2, n=30)
    y = toy.y.astype(object)
    y[:30] = np.arange(30) % 3
    model = make(C=100.0).fit(toy.X, y, tasks=toy.tasks)
    predicted = model.predict(toy.X, tasks=toy.tasks)
    expected = {"task 0": np.mean(predicted[:30] == y[:30]), "task 1": np.mean(predicted[30:] == y[30:])}
    assert make_multitask_scorer(average=None)(model, toy.X, y, tasks=toy.tasks) == pytest.approx(expected)


def test_losses_are_negated(toy, fitted):
    loss = by_hand(zero_one_loss, toy, fitted.predict(toy.X, tasks=toy.tasks))
    turned = make_multitask_scorer(zero_one_loss, greater_is_better=False, average="worst")
    assert turned(fitted, toy.X, toy.y, tasks=toy.tasks) == -max(loss.values())


def test_score_of_the_estimator_is_the_default_scorer(toy, fitted, fitted_column):
    scorer = make_multitask_scorer()
    matrix = matrix_of(toy)
    by_matrix = make().fit(toy.X, matrix)
    assert_allclose(scorer(fitted_column, frame_of(toy), toy.y), fitted_column.score(frame_of(toy), toy.y))
    assert_allclose(scorer(by_matrix, toy.X, matrix), by_matrix.score(toy.X, matrix))
    assert_allclose(scorer(by_matrix, toy.X, matrix), scorer(fitted, toy.X, toy.y, tasks=toy.tasks))


@pytest.mark.parametrize("name", ["accuracy", "f1_macro", "matthews_corrcoef", "neg_log_loss", "roc_auc_ovr"])
def test_without_tasks_it_matches_the_plain_scorer(name):
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(C=0.01).fit(X, y)
    plain = get_scorer(name)(model, X, y)
    assert_allclose(make_multitask_scorer(name)(model, X, y), plain)
    assert make_multitask_scorer(name, average=None)(model, X, y) == pytest.approx({"score": plain})


def test_every_scorer_of_scikit_learn_is_understood():
    """We read its private attributes; this test notices if a new scikit-learn renames them."""
    for name in get_scorer_names():
        assert repr(make_multitask_scorer(name)) == f"make_multitask_scorer({name!r})"


def test_regressors_are_scored_too(toy):
    target = toy.X[:, 0] + toy.X[:, 1] ** 2
    model = LinearRegression().fit(toy.X, target)
    error = (model.predict(toy.X) - target) ** 2
    expected = {task: -error[toy.tasks == task].mean() for task in TASKS}
    scorer = make_multitask_scorer("neg_mean_squared_error", average=None)
    assert scorer(model, toy.X, target, tasks=toy.tasks) == pytest.approx(expected)


# ------------------------------------------------------------ matrix y
def test_only_labelled_entries_count(toy):
    rng = np.random.default_rng(0)
    matrix = np.where(toy.X[:, :2] + 0.3 * rng.random((54, 2)) > 0.6, 1.0, 0.0)
    matrix[rng.random((54, 2)) < 0.3] = np.nan
    frame = pd.DataFrame(matrix, columns=["first", "second"])
    model = make().fit(toy.X, frame)
    kept = [~np.isnan(matrix[:, t]) for t in range(2)]
    scores = model.decision_function(toy.X)
    for metric, name, answer in (
        (accuracy_score, "accuracy", model.predict(toy.X)),
        (f1_score, "f1", model.predict(toy.X)),
        (roc_auc_score, "roc_auc", scores),
    ):
        expected = [metric(matrix[k, t], answer[k, t]) for t, k in enumerate(kept)]
        found = make_multitask_scorer(name, average=None)(model, toy.X, frame)
        assert found == pytest.approx(dict(zip(["first", "second"], expected, strict=True)))
        objects = frame.astype(object).where(frame.notna(), None)
        assert make_multitask_scorer(name)(model, toy.X, objects) == pytest.approx(np.mean(expected))
    alone = np.flatnonzero(np.isnan(matrix[:, 1]))
    partly = make_multitask_scorer(average=None)(model, toy.X[alone], matrix[alone])
    assert list(partly) == ["0", "1"]
    assert np.isnan(partly["1"])
    assert make_multitask_scorer()(model, toy.X[alone], matrix[alone]) == partly["0"]
    assert make_multitask_scorer(average="worst")(model, toy.X[alone], matrix[alone]) == partly["0"]


def test_probabilities_of_several_outputs(toy):
    matrix = np.column_stack([toy.y, np.where(toy.X[:, 0] > 0.5, "high", "low")])
    model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(toy.X, matrix)
    expected = [roc_auc_score(matrix[:, t], model.predict_proba(toy.X)[t][:, 1]) for t in range(2)]
    assert_allclose(make_multitask_scorer("roc_auc")(model, toy.X, matrix), np.mean(expected))


# ------------------------------------------------------------ what a task lacks
def test_undefined_tasks_are_skipped_with_a_warning(toy, fitted, fitted_column):
    kept = (toy.tasks != "task 1") | (toy.y == "yes")
    X, y = frame_of(toy)[kept], toy.y[kept]
    with pytest.warns(UndefinedMetricWarning, match=r"roc_auc is undefined for 1 of 3 tasks \(task 1\)"):
        found = make_multitask_scorer("roc_auc", average=None)(fitted_column, X, y)
    expected = by_hand(roc_auc_score, toy, fitted.decision_function(toy.X, tasks=toy.tasks)) | {"task 1": np.nan}
    assert found == pytest.approx(expected, nan_ok=True)
    with pytest.warns(UndefinedMetricWarning):
        mean = make_multitask_scorer("roc_auc")(fitted_column, X, y)
    assert mean == pytest.approx(np.nanmean(list(expected.values())))
    with pytest.warns(UndefinedMetricWarning, match="average_precision"):  # 1 by convention, which is meaningless
        found = make_multitask_scorer("average_precision", average=None)(fitted_column, X, y)
    assert np.isnan(found["task 1"])
    ones = toy.y == "yes"
    with pytest.warns(UndefinedMetricWarning):
        assert np.isnan(make_multitask_scorer("roc_auc")(fitted_column, frame_of(toy)[ones], toy.y[ones]))
    assert make_multitask_scorer()(fitted_column, X, y) > 0  # accuracy is defined


def test_absent_tasks_are_named_and_skipped(toy, fitted_column):
    kept = toy.tasks != "task 1"
    X, y = frame_of(toy)[kept], toy.y[kept]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = make_multitask_scorer(average=None)(fitted_column, X, y)
        assert np.isnan(found.pop("task 1"))
        assert make_multitask_scorer()(fitted_column, X, y) == pytest.approx(np.mean(list(found.values())))


def test_scores_may_be_for_tasks_of_another_kind(toy, fitted_column):
    frame = frame_of(toy).assign(shift=np.where(toy.X[:, 0] > 0.5, "day", "night"))
    model = make_pipeline(FunctionTransformer(drop_shift), fitted_column)
    right = fitted_column.predict(frame_of(toy)) == toy.y
    expected = {shift: right[frame["shift"] == shift].mean() for shift in ("day", "night")}
    assert make_multitask_scorer(average=None, task_column="shift")(model, frame, toy.y) == pytest.approx(expected)


def drop_shift(frame):
    return frame.drop(columns="shift")


def test_the_positive_label_is_not_guessed_from_one_label(toy):
    own = np.array([f"{label} {task}" for label, task in zip(toy.y, toy.tasks, strict=True)])
    model = make(C=1e4).fit(toy.X, own, tasks=toy.tasks)
    right = (model.predict(toy.X, tasks=toy.tasks) == own) & ((toy.tasks != "task 0") | (toy.y == "yes"))
    with pytest.warns(UndefinedMetricWarning, match="task 0"):
        found = make_multitask_scorer("f1", average=None)(model, toy.X[right], own[right], tasks=toy.tasks[right])
    assert found == pytest.approx({"task 0": np.nan, "task 1": 1.0, "task 2": 1.0}, nan_ok=True)


# ------------------------------------------------------------ weights
@pytest.mark.parametrize("name", ["accuracy", "f1", "roc_auc"])
def test_weights_act_like_repetitions(toy, fitted, name):
    weight = np.random.default_rng(0).integers(0, 3, 54)
    again = np.repeat(np.arange(54), weight)
    scorer = make_multitask_scorer(name, average=None)
    weighted = scorer(fitted, toy.X, toy.y, sample_weight=weight, tasks=toy.tasks)
    assert weighted == pytest.approx(scorer(fitted, toy.X[again], toy.y[again], tasks=toy.tasks[again]))
    assert weighted != pytest.approx(scorer(fitted, toy.X, toy.y, tasks=toy.tasks))
    only = scorer(fitted, toy.X, toy.y, sample_weight=toy.tasks == "task 0", tasks=toy.tasks)
    assert only["task 0"] > 0
    assert np.isnan([only["task 1"], only["task 2"]]).all()


def test_weights_in_a_matrix(toy):
    matrix, weight = matrix_of(toy), np.random.default_rng(0).integers(0, 3, 54)
    weight[toy.tasks == "task 2"] = 0
    again = np.repeat(np.arange(54), weight)
    model, scorer = make().fit(toy.X, matrix), make_multitask_scorer(average=None)
    weighted = scorer(model, toy.X, matrix, sample_weight=weight)
    assert np.isnan(weighted["2"])
    assert weighted == pytest.approx(scorer(model, toy.X[again], matrix[again]), nan_ok=True)


def plain_accuracy(y_true, y_pred):
    return float(np.mean(y_true == y_pred))


def test_metrics_without_weights_say_so(toy, fitted):
    scorer = make_multitask_scorer(plain_accuracy)
    assert scorer(fitted, toy.X, toy.y, tasks=toy.tasks) == pytest.approx(
        make_multitask_scorer()(fitted, toy.X, toy.y, tasks=toy.tasks)
    )
    with pytest.raises(ValueError, match="plain_accuracy takes no sample_weight"):
        scorer(fitted, toy.X, toy.y, sample_weight=np.ones(54), tasks=toy.tasks)


# ------------------------------------------------------------ pipelines, searches, other estimators
def last_first(X):
    return np.asarray(X)[:, ::-1]


def test_the_column_is_found_at_the_end_of_a_pipeline(toy):
    """Index 0 of the data that reach the last step; index 3 of the data that the scorer gets."""
    codes = np.array([TASKS.index(task) for task in toy.tasks])
    X = np.column_stack([toy.X, codes])
    plain = make(task_column=0).fit(last_first(X), toy.y)
    expected = make_multitask_scorer(average=None)(plain, last_first(X), toy.y)
    pipe = make_pipeline(FunctionTransformer(last_first), make(task_column=0)).fit(X, toy.y)
    search = GridSearchCV(pipe, {}, cv=MultiTaskStratifiedKFold(2, task_column=3)).fit(X, toy.y)
    for model in (pipe, search, make_pipeline(pipe)):
        assert make_multitask_scorer(average=None)(model, X, toy.y) == expected
        assert make_multitask_scorer(average=None, task_column=3)(model, X, toy.y).keys() == {"0.0", "1.0", "2.0"}


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("name", ["accuracy", "roc_auc"])
def test_tasks_reach_the_end_of_a_pipeline(toy, fitted, name, routing):
    with sklearn.config_context(enable_metadata_routing=routing):
        scorer = make_multitask_scorer(name)
        told = {"tasks": toy.tasks} if routing else {"paretomklclassifier__tasks": toy.tasks}
        pipe = make_pipeline(FunctionTransformer(), make()).fit(toy.X, toy.y, **told)
        expected = scorer(fitted, toy.X, toy.y, tasks=toy.tasks)
        assert_allclose(scorer(pipe, toy.X, toy.y, tasks=toy.tasks), expected)


def test_estimators_without_tasks_can_be_scored(toy):
    frame = frame_of(toy)
    drop = ColumnTransformer([("scaled", MinMaxScaler(), ["a", "b", "c"])])
    svc = make_pipeline(drop, SVC()).fit(frame, toy.y)
    labels, scores = svc.predict(frame), svc.decision_function(frame)
    assert make_multitask_scorer(task_column="site", average=None)(svc, frame, toy.y) == by_hand(
        accuracy_score, toy, labels
    )
    by_tasks = make_multitask_scorer("roc_auc", average=None)(svc, frame, toy.y, tasks=toy.tasks)
    assert by_tasks == by_hand(roc_auc_score, toy, scores)
    pooled = make().fit(toy.X, toy.y)
    assert make_multitask_scorer(average=None)(pooled, toy.X, toy.y, tasks=toy.tasks) == by_hand(
        accuracy_score, toy, pooled.predict(toy.X)
    )


def test_probabilities_are_those_given_the_classes_of_the_task():
    X, y = load_iris(return_X_y=True)
    tasks = np.where(y == 2, "b", "a")
    tasks[75:100] = "b"  # classes 0 and 1 in one task, 1 and 2 in the other
    model = LogisticRegression(C=0.1).fit(X, y)
    probability = model.predict_proba(X)
    expected = {}
    for task, (low, high) in {"a": (0, 1), "b": (1, 2)}.items():
        k = tasks == task
        expected[task] = -log_loss(y[k] == high, probability[k, high] / (probability[k, low] + probability[k, high]))
    found = make_multitask_scorer("neg_log_loss", average=None)(model, X, y, tasks=tasks)
    assert found == pytest.approx(expected)


# ------------------------------------------------------------ the tools of scikit-learn, column form
def test_cross_validation_in_column_form(toy):
    frame = frame_of(toy)
    model, cv = make(task_column="site"), MultiTaskStratifiedKFold(3, task_column="site")
    scoring = {"mean": make_multitask_scorer(), "worst": make_multitask_scorer(average="worst")}
    several = cross_validate(model, frame, toy.y, cv=cv, scoring=scoring)
    each = cross_validate(model, frame, toy.y, cv=cv, scoring=make_multitask_scorer(average=None))
    scores = np.array([each[f"test_{task}"] for task in TASKS])
    assert_allclose(several["test_mean"], scores.mean(axis=0))
    assert_allclose(several["test_worst"], scores.min(axis=0))
    by_groups = cross_validate(model, frame, toy.y, cv=MultiTaskStratifiedKFold(3), groups=toy.tasks)
    assert_allclose(by_groups["test_score"], several["test_mean"])

    predicted = cross_val_predict(model, frame, toy.y, cv=cv)
    parts = list(cv.split(frame, toy.y))
    expected = [[np.mean((predicted == toy.y)[k][toy.tasks[k] == t]) for _, k in parts] for t in TASKS]
    assert_allclose(scores, expected)

    _, train, test = learning_curve(
        model, frame, toy.y, cv=cv, scoring=scoring["mean"], train_sizes=[1.0], shuffle=False, error_score="raise"
    )
    assert_allclose(test[0], several["test_mean"])
    assert train.shape == (1, 3)


def test_grid_search_by_task(toy):
    frame, cv = frame_of(toy), MultiTaskStratifiedKFold(3, task_column="site")
    grid = {"C": [0.01, 10.0]}
    scorer = make_multitask_scorer(average=None)
    search = GridSearchCV(make(task_column="site"), grid, scoring=scorer, cv=cv, refit="task 1", error_score="raise")
    search.fit(frame, toy.y)
    each = np.array([search.cv_results_[f"mean_test_{task}"] for task in TASKS])
    assert search.best_index_ == each[1].argmax()
    assert search.score(frame, toy.y) == scorer(search.best_estimator_, frame, toy.y)["task 1"]
    mean = GridSearchCV(make(task_column="site"), grid, scoring=make_multitask_scorer(), cv=cv).fit(frame, toy.y)
    assert_allclose(mean.cv_results_["mean_test_score"], each.mean(axis=0))
    loose = clone(search).set_params(refit=False).fit(frame, toy.y)
    assert_allclose(loose.cv_results_["mean_test_task 2"], each[2])


def test_grid_search_of_a_matrix_with_gaps(toy):
    matrix = matrix_of(toy)
    matrix[5, 1] = matrix[40, 0] = 1.0  # two samples have labels of two tasks
    search = GridSearchCV(
        make(), {"C": [0.1, 10.0]}, scoring=make_multitask_scorer("roc_auc"), cv=MultiTaskStratifiedKFold(3)
    )
    search.set_params(error_score="raise").fit(toy.X, matrix)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    expected = [
        roc_auc_score(matrix[k, t], search.decision_function(toy.X)[k, t]) for t, k in enumerate(~np.isnan(matrix.T))
    ]
    assert_allclose(search.score(toy.X, matrix), np.mean(expected))


# ------------------------------------------------------------ metadata routing
def test_routed_tasks_reach_splitter_estimator_and_scorer(toy):
    column = cross_validate(
        make(task_column="site"),
        frame_of(toy),
        toy.y,
        cv=MultiTaskStratifiedKFold(3, task_column="site"),
        scoring=make_multitask_scorer("roc_auc"),
    )
    with sklearn.config_context(enable_metadata_routing=True):
        for scoring, key in (
            (make_multitask_scorer("roc_auc"), "test_score"),
            ({"auc": make_multitask_scorer("roc_auc"), "worst": make_multitask_scorer(average="worst")}, "test_auc"),
        ):
            routed = cross_validate(
                make(),
                toy.X,
                toy.y,
                cv=MultiTaskStratifiedKFold(3),
                scoring=scoring,
                params={"tasks": toy.tasks},
                error_score="raise",
            )
            assert_allclose(routed[key], column["test_score"])
        grouped = cross_validate(
            make(),
            toy.X,
            toy.y,
            cv=MultiTaskStratifiedKFold(3).set_split_request(tasks=False),
            scoring=make_multitask_scorer("roc_auc"),
            params={"tasks": toy.tasks, "groups": toy.tasks},
        )
        assert_allclose(grouped["test_score"], column["test_score"])


def test_routed_tasks_and_weights_in_a_search(toy):
    weight = np.random.default_rng(0).integers(1, 4, 54).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = make_multitask_scorer().set_score_request(sample_weight=True)
        search = GridSearchCV(
            make().set_fit_request(sample_weight=True),
            {"C": [0.1, 10.0]},
            scoring=scorer,
            cv=MultiTaskStratifiedKFold(3),
            error_score="raise",
        )
        search = clone(search).fit(toy.X, toy.y, tasks=toy.tasks, sample_weight=weight)
        found = search.score(toy.X, toy.y, tasks=toy.tasks, sample_weight=weight)
        assert search.cv_results_["mean_test_score"].shape == (2,)
    right = search.best_estimator_.predict(toy.X, tasks=toy.tasks) == toy.y
    expected = [np.average(right[toy.tasks == t], weights=weight[toy.tasks == t]) for t in TASKS]
    assert_allclose(found, np.mean(expected))


def test_what_the_parts_request_by_default():
    with sklearn.config_context(enable_metadata_routing=True):
        assert make_multitask_scorer().get_metadata_routing().score.requests == {"tasks": True, "sample_weight": None}
        assert MultiTaskStratifiedKFold().get_metadata_routing().split.requests == {"groups": True, "tasks": True}
        renamed = make_multitask_scorer().set_score_request(tasks="site")
        assert clone(renamed).get_metadata_routing().score.requests["tasks"] == "site"


# ------------------------------------------------------------ the scorer as an object
def test_scorers_can_be_copied_and_read(toy, fitted_column):
    scorer = make_multitask_scorer(fbeta_score, average="worst", task_column="site", beta=2)
    assert repr(scorer) == "make_multitask_scorer(fbeta_score, average='worst', task_column='site', beta=2)"
    assert repr(make_multitask_scorer("f1", average=None)) == "make_multitask_scorer('f1', average=None)"
    value = scorer(fitted_column, frame_of(toy), toy.y)
    search = GridSearchCV(make(), {}, scoring=scorer)
    for copy in (pickle.loads(pickle.dumps(scorer)), clone(scorer), clone(search).scoring):
        assert repr(copy) == repr(scorer)
        assert copy(fitted_column, frame_of(toy), toy.y) == value


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metric": "acuracy"}, "'acuracy' is not a valid scoring value"),
        ({"metric": 3}, "metric must be the name of a scorer or a function, got 3"),
        ({"average": "micro"}, "average must be one of"),
        ({"metric": accuracy_score, "response_method": "transform"}, "response_method must be one of"),
        ({"metric": accuracy_score, "response_method": ()}, "response_method must be one of"),
        ({"metric": "accuracy", "greater_is_better": False}, "greater_is_better applies only to functions"),
    ],
)
def test_bad_scorers_are_refused_when_made(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_multitask_scorer(**arguments)


def test_bad_calls_are_refused(toy, fitted):
    matrix = matrix_of(toy)
    cases = [
        (make_multitask_scorer(task_column=0), toy.y, {"tasks": toy.tasks}, "Pass task_column or tasks=, not both"),
        (
            make_multitask_scorer(),
            matrix,
            {"tasks": toy.tasks},
            "Pass a matrix y, .* or the task of each row",
        ),
        (make_multitask_scorer(), toy.y, {}, "was fitted with tasks"),
        (make_multitask_scorer(), toy.y, {"tasks": toy.tasks[:3]}, "inconsistent numbers of samples"),
        (make_multitask_scorer("neg_log_loss"), toy.y, {"tasks": toy.tasks}, "has no method predict_proba"),
    ]
    for scorer, y, told, message in cases:
        with pytest.raises(ValueError, match=message):
            scorer(fitted, toy.X, y, **told)
    svc = SVC().fit(toy.X, toy.y)
    mixed = np.array([1, "1"] * 27, dtype=object)
    with pytest.raises(ValueError, match="look alike"):
        make_multitask_scorer()(svc, toy.X, toy.y, tasks=mixed)
    with pytest.raises(ValueError, match=r"y has shape \(54, 3\), but the estimator returns shape \(54,\)"):
        make_multitask_scorer()(svc, toy.X, matrix)
    three = np.where(toy.X[:, 0] > 0.5, toy.y, "maybe")
    relabelled = np.where(three == "maybe", "perhaps", three)
    with pytest.raises(ValueError, match="has label 'perhaps', which the estimator does not know"):
        make_multitask_scorer("roc_auc")(SVC().fit(toy.X, three), toy.X, relabelled, tasks=toy.tasks)


def test_frames_are_scored_by_column_name(toy):
    frame = pd.DataFrame(matrix_of(toy), columns=["a", "b", "c"])
    model = make(C=0.1).fit(toy.X, frame)
    scorer = make_multitask_scorer("accuracy", average=None)
    expected = scorer(model, toy.X, frame)
    assert len(set(expected.values())) > 1
    grid = GridSearchCV(make(C=0.1), {"p": [1.0]}, cv=KFold(3, shuffle=True, random_state=0)).fit(toy.X, frame)
    for fitted in (model, grid):
        assert scorer(fitted, toy.X, frame[["c", "a", "b"]]) == expected
        with pytest.raises(ValueError, match="but the tasks are"):
            scorer(fitted, toy.X, frame.rename(columns={"c": "d"}))


def test_times_name_tasks_in_folds_and_scores(toy):
    days = np.array(["2020-01-01", "2021-01-01", "2022-01-01"], "M8[ns]")
    tasks = days[np.unique(toy.tasks, return_inverse=True)[1]]
    model = make(C=0.1).fit(toy.X, toy.y, tasks=tasks)
    scores = make_multitask_scorer(average=None)(model, toy.X, toy.y, tasks=tasks)
    assert [name[:10] for name in scores] == ["2020-01-01", "2021-01-01", "2022-01-01"]
    assert_allclose(np.mean(list(scores.values())), model.score(toy.X, toy.y, tasks=tasks))
    folds = MultiTaskStratifiedKFold(3)
    for one, other in zip(folds.split(toy.X, toy.y, tasks), folds.split(toy.X, toy.y, toy.tasks), strict=True):
        assert_array_equal(one[1], other[1])
