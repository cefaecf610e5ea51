"""From labels to binary tasks: every form of labels, with names, signs and sources."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from paretomkl._data.tasks import array_of, labels_by_task, make_tasks, stack_tasks, task_column_of, unique_labels

NAN = float("nan")


def summary(tasks):
    """What distinguishes tasks, in a comparable form."""
    return [(task.name, task.rows.tolist(), task.targets.tolist(), task.classes, task.source) for task in tasks]


# ------------------------------------------------------------------------------------------------------- one vector y
def test_two_classes_are_one_task_and_the_larger_label_is_positive():
    assert summary(make_tasks([3, 1, 1, 3])) == [("1 vs 3", [0, 1, 2, 3], [1, -1, -1, 1], (1, 3), None)]


def test_three_classes_are_a_task_for_each_pair():
    assert summary(make_tasks([0, 1, 2, 1])) == [
        ("0 vs 1", [0, 1, 3], [-1, 1, 1], (0, 1), None),
        ("0 vs 2", [0, 2], [-1, 1], (0, 2), None),
        ("1 vs 2", [1, 2, 3], [-1, 1, -1], (1, 2), None),
    ]


@settings(deadline=None)
@given(st.lists(st.integers(0, 5), min_size=2, max_size=30).filter(lambda y: len(set(y)) > 1))
def test_pairs_cover_every_sample_once_for_each_other_class(y):
    tasks = make_tasks(y)
    n_classes = len(set(y))
    assert len(tasks) == n_classes * (n_classes - 1) // 2
    times = np.bincount(np.concatenate([task.rows for task in tasks]), minlength=len(y))
    assert_array_equal(times, n_classes - 1)
    for task in tasks:
        assert_array_equal(np.array(y)[task.rows], np.where(task.targets > 0, task.classes[1], task.classes[0]))
        assert np.all(np.diff(task.rows) > 0)


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        ([False, True, True], (False, True)),
        (["no", "yes", "no"], ("no", "yes")),
        (np.array(["no", "yes", "no"], dtype=object), ("no", "yes")),
        ([0.5, 1.5, 0.5], (0.5, 1.5)),
        (np.array([2, 1, 2], dtype=np.uint8), (1, 2)),
        (pd.Series(["b", "a", "b"]), ("a", "b")),
        (pd.Series(["b", "a", "b"], dtype="category"), ("a", "b")),
        (pd.Series([1, 2, 1], index=[7, 8, 9], dtype="Int64"), (1, 2)),
        (pl.Series(["b", "a", "b"]), ("a", "b")),
        (np.array(["x", 1, "x"], dtype=object), ("x", 1)),  # not comparable, so in order of appearance
        (np.array([(0, 1), 3, 3], dtype=object), ((0, 1), 3)),
    ],
    ids=repr,
)
def test_labels_of_any_type(y, classes):
    (task,) = make_tasks(y)
    assert task.classes == classes
    signs = [1.0 if label == classes[1] else -1.0 for label in np.asarray(y).tolist()]
    assert_array_equal(task.targets, signs)


def test_distinct_labels_are_sorted_where_they_can_be():
    assert unique_labels(np.array([3, 1, 2, 1])) == [1, 2, 3]
    assert unique_labels(np.array(["b", 1, "a", 1], dtype=object)) == ["b", 1, "a"]


def test_labels_of_a_list_keep_their_types():
    (task,) = make_tasks([1, "a", 1, "a"])
    assert task.classes == (1, "a")


# ------------------------------------------------------------------------------------------------------------- tasks=
def test_task_labels_split_the_samples():
    assert summary(make_tasks([0, 1, 1, 0, 1], tasks=["b", "a", "b", "a", "b"])) == [
        ("a", [1, 3], [1, -1], (0, 1), "a"),
        ("b", [0, 2, 4], [-1, 1, 1], (0, 1), "b"),
    ]


def test_a_task_of_three_classes_is_three_tasks_of_one_source():
    tasks = make_tasks([0, 1, 2, 0, 1], tasks=[7, 7, 7, 8, 8])
    assert [task.name for task in tasks] == ["7: 0 vs 1", "7: 0 vs 2", "7: 1 vs 2", "8"]
    assert [task.source for task in tasks] == [7, 7, 7, 8]


def test_tasks_may_have_their_own_classes():
    tasks = make_tasks(["cat", "dog", "ham", "spam"], tasks=["pets", "pets", "mail", "mail"])
    assert [(task.name, task.classes) for task in tasks] == [("mail", ("ham", "spam")), ("pets", ("cat", "dog"))]


@pytest.mark.parametrize("unit", ["ns", "us", "D"])
def test_times_are_labels_of_one_kind_whatever_their_unit(unit):
    days = np.array(["2021-01-01", "2020-01-01"], f"M8[{unit}]")
    tasks = make_tasks(np.tile(days, 4), np.repeat(days, 4))
    assert [task.source for task in tasks] == sorted(days)
    assert tasks[0].name.startswith("2020-01-01")
    assert tasks[0].classes == (days[1], days[0])
    assert array_of(list(days)).dtype == days.dtype


def test_a_task_column_keeps_the_types_of_a_list():
    rows = [[0.5, "pump"], [0.25, 1], [0.75, "pump"]]
    assert task_column_of(rows, -1).tolist() == ["pump", 1, "pump"]
    with pytest.raises(ValueError, match="task_column=1 is missing for sample 1"):
        task_column_of([[0.5, "pump"], [0.25, None]], 1)


@pytest.mark.parametrize("container", [list, np.array, pd.Series, pl.Series], ids=lambda c: c.__module__)
def test_task_labels_come_in_any_container(container):
    expected = summary(make_tasks([0, 1, 1, 0], tasks=[2, 1, 2, 1]))
    assert summary(make_tasks(container([0, 1, 1, 0]), tasks=container([2, 1, 2, 1]))) == expected


# ------------------------------------------------------------------------------------------------------------ a matrix
MATRIX = np.array([[0, 5], [1, NAN], [1, 6], [NAN, 6]])


def test_each_column_is_a_task_and_nan_means_not_labelled():
    assert summary(make_tasks(MATRIX)) == [
        ("0", [0, 1, 2], [-1, 1, 1], (0, 1), 0),
        ("1", [0, 2, 3], [-1, 1, 1], (5, 6), 1),
    ]


@pytest.mark.parametrize(
    "matrix",
    [
        pd.DataFrame(MATRIX, columns=["a", "b"]),
        pytest.param(
            pd.DataFrame(
                {"a": pd.array([0, 1, 1, None], dtype="Int64"), "b": pd.array([5, None, 6, 6], dtype="Int64")}
            ),
        ),
        pl.DataFrame({"a": [0, 1, 1, None], "b": [5, None, 6, 6]}),
    ],
    ids=["pandas", "pandas nullable", "polars"],
)
def test_frames_name_their_tasks(matrix):
    assert [(task.name, task.source, task.rows.tolist(), task.classes) for task in make_tasks(matrix)] == [
        ("a", "a", [0, 1, 2], (0, 1)),
        ("b", "b", [0, 2, 3], (5, 6)),
    ]


def test_columns_are_matched_by_name():
    frame = pd.DataFrame(MATRIX, columns=["a", "b"])
    assert_array_equal(labels_by_task(frame[["b", "a"]], ["a", "b"]), MATRIX)
    assert_array_equal(labels_by_task(MATRIX, ["a", "b"]), MATRIX)  # no names: in the order of the tasks
    assert_array_equal(labels_by_task(frame, [0, 1]), MATRIX)  # tasks without names
    with pytest.raises(ValueError, match=re.escape("y has the columns ['a', 'b'], but the tasks are ['a', 'c']")):
        labels_by_task(frame, ["a", "c"])


@pytest.mark.parametrize("missing", [None, NAN, pd.NA], ids=repr)
def test_strings_may_be_missing_too(missing):
    matrix = np.array([["a", "x"], ["b", missing], [missing, "y"]], dtype=object)
    assert [(task.rows.tolist(), task.classes) for task in make_tasks(matrix)] == [
        ([0, 1], ("a", "b")),
        ([0, 2], ("x", "y")),
    ]


def test_nan_in_a_list_of_strings_is_not_a_class():
    tasks = make_tasks([["a", "x"], ["b", NAN], [NAN, "y"]])
    assert [task.classes for task in tasks] == [("a", "b"), ("x", "y")]


def test_a_string_frame_with_gaps():
    matrix = pd.DataFrame({"a": ["u", "v", None], "b": ["x", None, "y"]}, dtype="string")
    assert [(task.name, task.rows.tolist(), task.classes) for task in make_tasks(matrix)] == [
        ("a", [0, 1], ("u", "v")),
        ("b", [0, 2], ("x", "y")),
    ]


# ------------------------------------------------------------------------------------------------------------ mistakes
MISTAKES = [
    (None, None, "y is missing"),
    ([], None, "y is empty"),
    ([1, 1, 1], None, "y has only one class, 1; a task needs two classes or more"),
    (["a", "a"], None, "y has only one class, 'a'"),
    ([0, 1, 1], ["p", "p", "q"], "Task 'q' has only one class, 1; a task needs two classes or more"),
    ([0, 1, 1], [0, 0], "tasks must have one entry per sample (3), got shape (2,)"),
    ([0, 1], [("a", 0), ("b", 0)], "tasks must have one entry per sample (2), got shape (2, 2)"),
    ([0, 1], "pump", "tasks must have one entry per sample (2), got 'pump'"),
    ([0, 1], ["a", NAN], "tasks is missing for sample 1 (1 in total)"),
    ([0, 1], np.array(["2020-01-01", "NaT"], "M8[ns]"), "tasks is missing for sample 1 (1 in total)"),
    ([0.0, NAN, 1.0, NAN], None, "y is missing for sample 1 (2 in total); remove those samples"),
    (np.array(["a", None, "b"], dtype=object), None, "y is missing for sample 1 (1 in total)"),
    ([0, 1], np.array(["a", None], dtype=object), "tasks is missing for sample 1 (1 in total)"),
    ([0, 1], [1.0, NAN], "tasks is missing for sample 1 (1 in total)"),
    (MATRIX, [0, 0, 1, 1], "tasks cannot be given together with a matrix y"),
    (np.where(MATRIX == 6, 5, MATRIX), None, "Task 1 needs two classes in its column of y, got 1: [5.0]"),
    (np.array([[0], [1], [2]]), None, "Task 0 needs two classes in its column of y, got 3: [0, 1, 2]"),
    (np.full((3, 1), NAN), None, "Task 0 is empty: its column of y has no labels"),
    (pd.DataFrame({"ok": [0, 1], "void": [None, None]}), None, "Task 'void' is empty"),
    (pd.DataFrame([[0, 1], [1, 0]], columns=["a", "a"]), None, "y has two columns called 'a'"),
    (np.empty((3, 0)), None, "y has no columns; each column is a task"),
    (np.zeros((2, 2, 2)), None, "y must have one or two dimensions, got 3"),
]


@pytest.mark.parametrize(("y", "tasks", "message"), MISTAKES, ids=[message for _, _, message in MISTAKES])
def test_mistakes_name_the_task(y, tasks, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make_tasks(y, tasks)


def test_labels_missing_in_pandas_are_named():
    with pytest.raises(ValueError, match="y is missing for sample 1"):
        make_tasks(pd.Series(["a", None, "b"], dtype="string"))


# ---------------------------------------------------------------------------------------------------- stacking of lists
def test_lists_of_tasks_are_stacked_in_order():
    X, y, tasks = stack_tasks([np.eye(2), np.ones((3, 2))], [["a", "b"], ["c", "d", "c"]], names=["pump", "valve"])
    assert_array_equal(X, np.vstack([np.eye(2), np.ones((3, 2))]))
    assert [task.classes for task in make_tasks(y, tasks)] == [("a", "b"), ("c", "d")]
    assert [task.name for task in make_tasks(y, tasks)] == ["pump", "valve"]


def test_stacking_keeps_the_types_of_names_and_labels():
    _, y, tasks = stack_tasks([np.eye(2), np.eye(2)], [[0, 1], ["no", "yes"]], names=[1, "valve"])
    assert y.tolist() == [0, 1, "no", "yes"]
    assert tasks.tolist() == [1, 1, "valve", "valve"]


def test_mappings_and_generators_are_stacked_too():
    Xs, ys = {"b": np.eye(2), "a": np.ones((3, 2))}, {"a": [0, 1, 0], "b": [2, 3]}
    X, y, tasks = stack_tasks(Xs, ys)
    assert (y.tolist(), tasks.tolist()) == ([2, 3, 0, 1, 0], ["b", "b", "a", "a", "a"])
    again = stack_tasks((Xs[name] for name in Xs), (ys[name] for name in Xs), names=iter(Xs))
    for one, other in zip((X, y, tasks), again, strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("Xs", "ys", "names", "message"),
    [
        ([], [], None, "There is no task to stack"),
        ([np.eye(2)], [], None, "one entry per task, got 1, 0 and 1"),
        ([np.eye(2), np.eye(3)], [[0, 1], [0, 1, 1]], None, "X of task 1 must have 2 columns, got shape (3, 3)"),
        ([np.eye(2), np.eye(2)], [[0, 1], [0]], ["a", "b"], "Task 'b' has 2 rows in X, but its labels have shape (1,)"),
        ([np.ones(2)], [[0, 1]], None, "X of task 0 must have two dimensions, got shape (2,)"),
        ({"a": np.eye(2)}, {"b": [0, 1]}, None, "two mappings with the same keys"),
        ({"a": np.eye(2)}, [[0, 1]], None, "two mappings with the same keys"),
        ([np.eye(2), np.eye(2)], [[0, 1], [0, 1]], ["a", "a"], "names must be unique"),
    ],
)
def test_lists_that_do_not_fit_are_named(Xs, ys, names, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        stack_tasks(Xs, ys, names)
