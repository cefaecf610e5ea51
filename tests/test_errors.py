"""Bad input gets one clear sentence that names the culprit, before any task is solved."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone, is_regressor

import paretomkl
from paretomkl import Gaussian, KernelBank, pareto_path
from paretomkl._tools.wording import literal
from paretomkl.machines._svc import SVCTasks

N = 12
RNG = np.random.default_rng(0)
X = RNG.uniform(size=(N, 3))
Y = np.arange(N) % 2
THREE = np.arange(N) % 3
TASKS = np.repeat(["a", "b", "c"], 4)
STACK = np.stack([X @ X.T, np.eye(N)], axis=2)
NAN, INF = float("nan"), float("inf")


def changed(array, index, value):
    array = np.array(array, dtype=float)
    array[index] = value
    return array


def minus_linear(A, B):
    return -A @ B.T


def tanh_kernel(A, B):
    return np.tanh(3 * A @ B.T - 2)


def lopsided(A, B):
    """Positive definite from either triangle alone, but not symmetric."""
    return np.eye(len(A), len(B)) * (len(A) == len(B)) + 0.01 * (A[:, :1] - B[:, :1].T)


def wrong_shape(A, B):
    return A @ A.T[:, :1]


def sometimes_nan(A, B):
    return np.where(A @ B.T > 1, NAN, 1.0)


# what is wrong: the arguments, and what the message must say
CASES = {
    # X
    "NaN in sparse X": ({"X": csr_array(changed(X, (3, 1), NAN))}, "Input X contains NaN"),
    "inf in X": ({"X": changed(X, (3, 1), INF)}, "Input X contains infinity"),
    "inf in a column": ({"X": changed(X, (3, 1), INF)}, "(column '1')"),
    "X of three dimensions": ({"X": STACK}, "array with dim 3"),
    "X without samples": ({"X": X[:0], "y": []}, "0 sample(s)"),
    "X without columns": ({"X": X[:, :0]}, "0 feature(s)"),
    "X shorter than y": ({"X": X[:-1]}, "X and y must have one row per sample: X has 11, y has 12"),
    "X longer than Y": ({"y": np.c_[Y, Y][:-2]}, "X and y must have one row per sample: X has 12, y has 10"),
    # y and tasks
    "no labels": ({"y": None}, "y is missing"),
    "empty labels": ({"y": []}, "y is empty"),
    "a label missing": ({"y": changed(Y, 5, NAN)}, "y is missing for sample 5 (1 in total)"),
    "one class": ({"y": 0 * Y}, "y has only one class, 0; a task needs two classes or more"),
    "one class in a task": (
        {"y": np.where(TASKS == "b", 1, Y), "tasks": TASKS},
        "Task 'b' has only one class, 1; a task needs two classes or more",
    ),
    "one class in a column": ({"y": np.c_[Y, 0 * Y]}, "Task 1 needs two classes in its column of y, got 1: [0]"),
    "one class in a named column": (
        {"y": pd.DataFrame({"pump": Y, "fan": 0 * Y})},
        "Task 'fan' needs two classes in its column of y, got 1: [0]",
    ),
    "three classes in a column": (
        {"y": np.c_[Y, THREE]},
        "Task 1 needs two classes in its column of y, got 3: [0, 1, 2]",
    ),
    "an empty task": ({"y": np.c_[Y, np.full(N, NAN)]}, "Task 1 is empty: its column of y has no labels"),
    "no columns in Y": ({"y": np.empty((N, 0))}, "y has no columns"),
    "y of three dimensions": ({"y": np.zeros((N, 2, 2))}, "y must have one or two dimensions, got 3"),
    "tasks of wrong length": ({"tasks": TASKS[:-1]}, "tasks must have one entry per sample (12), got shape (11,)"),
    "a task label missing": ({"tasks": changed(THREE, 2, NAN)}, "tasks is missing for sample 2 (1 in total)"),
    "tasks twice": ({"y": np.c_[Y, Y], "tasks": TASKS}, "tasks cannot be given together with a matrix y"),
    # p, s, C, tol
    "s below one": ({"s": 0.99}, "s must be a number at least 1, got s=0.99"),
    "s of NaN": ({"s": NAN}, "s must be a number at least 1, got s=nan"),
    "s of text": ({"s": "1"}, "s must be a number at least 1, got s='1'"),
    "s of None": ({"s": None}, "s must be a number at least 1, got s=None"),
    "p of NaN": ({"ps": [1.0, NAN]}, "p must be a number or ±inf, got p=nan"),
    "p of text": ({"ps": ["one"]}, "p must be a number or ±inf, got p='one'"),
    "no p": ({"ps": []}, "ps is empty; pass at least one exponent"),
    "C of zero": ({"C": 0}, "C must be a number greater than 0 and finite, got C=0"),
    "C below zero": ({"C": -1.0}, "C must be a number greater than 0 and finite, got C=-1"),
    "C of NaN": ({"C": NAN}, "C must be a number greater than 0 and finite, got C=nan"),
    "C of inf": ({"C": INF}, "C must be a number"),
    "C of wrong length": ({"C": np.ones(5)}, "C must be a number or have one entry per sample (12), got shape (5,)"),
    "an entry of C below zero": ({"C": changed(np.ones(N), 3, -1)}, "C must not have negative, infinite or missing"),
    "an entry of C of NaN": ({"C": changed(np.ones(N), 3, NAN)}, "C must not have negative, infinite or missing"),
    "C of zero for a class": (
        {"y": THREE, "C": np.where(THREE == 2, 0.0, 1.0)},
        "Task '0 vs 2' has no sample of class 2 with C > 0",
    ),
    "tol of zero": ({"tol": 0}, "tol must be a number between 0 and 1, got tol=0"),
    "tol of one": ({"tol": 1.0}, "tol must be a number between 0 and 1, got tol=1.0"),
    "tol of NaN": ({"tol": NAN}, "tol must be a number between 0 and 1, got tol=nan"),
    "n_jobs of zero": ({"n_jobs": 0}, "n_jobs must be None (one thread), a positive number"),
    # solvers
    "unknown solver": ({"solver": "newton"}, "solver must be one of"),
    "bcd above one": ({"solver": "bcd", "ps": [0.5, 2.0]}, "solver='bcd' handles only p <= 1, got p=2"),
    "bcd at infinity": ({"solver": "bcd", "ps": [INF]}, "solver='bcd' handles only p <= 1, got p=inf"),
    "tseng below one": ({"solver": "tseng", "ps": [0.5, 2.0]}, "solver='tseng' handles only p >= 1, got p=0.5"),
    # task weights
    "too few task weights": ({"y": THREE, "task_weight": [1, 2]}, "task_weight must have one entry per task (3)"),
    "unknown task": ({"y": THREE, "task_weight": {"0 vs 4": 2}}, "task_weight names the unknown task '0 vs 4'"),
    "negative task weight": (
        {"y": THREE, "task_weight": [1, -1, 1]},
        "task_weight of task '0 vs 2' must be a positive number",
    ),
    "task weight of zero": (
        {"y": THREE, "task_weight": {"1 vs 2": 0}},
        "task_weight of task '1 vs 2' must be a positive number",
    ),
    "task weight of NaN": (
        {"y": THREE, "task_weight": [NAN, 1, 1]},
        "task_weight of task '0 vs 1' must be a positive number",
    ),
    # kernels
    "negative kernel": ({"kernels": ["linear", minus_linear]}, "Kernel minus_linear is not positive semidefinite"),
    "tanh kernel": ({"kernels": [tanh_kernel]}, "Kernel tanh_kernel is not positive semidefinite"),
    "kernel of wrong shape": ({"kernels": [wrong_shape]}, "Kernel wrong_shape must return a matrix of shape"),
    "kernel with NaN": ({"kernels": [sometimes_nan]}, "Kernel sometimes_nan returned NaN or infinite values"),
    "unknown kernel": ({"kernels": ["rbf", "rfb"]}, "Kernel 1 has the unknown name 'rfb'"),
    "no kernels": ({"kernels": []}, "kernels is empty"),
    "one kernel without a list": ({"kernels": "rbf"}, "for a single kernel, pass ['rbf']"),
    "column out of range": ({"kernels": [Gaussian(columns=[0, 3])]}, "asks for column 3, but X has 3 columns"),
    "column without names": (
        {"kernels": [Gaussian(columns="age")]},
        "names the column 'age', but X has no column names",
    ),
    "unknown normalisation": ({"kernels": KernelBank(normalize="one")}, "normalize must be 'auto', 'unit'"),
    # precomputed stacks
    "flat precomputed": ({"kernels": "precomputed"}, "needs X of shape (n_samples, n_samples, n_kernels), got shape"),
    "one precomputed matrix": ({"X": STACK[:, :, 0], "kernels": "precomputed"}, "got shape (12, 12)"),
    "kernels first": ({"X": STACK.T, "kernels": "precomputed"}, "got shape (2, 12, 12)"),
    "stack of none": ({"X": STACK[:, :, :0], "kernels": "precomputed"}, "got shape (12, 12, 0)"),
    "stack shorter than y": ({"X": STACK[1:, 1:], "kernels": "precomputed"}, "X has 11, y has 12"),
    "NaN in a stack": (
        {"X": changed(STACK, (4, 4, 1), NAN), "kernels": "precomputed"},
        "Kernel 1 of the precomputed stack has NaN or infinite entries",
    ),
    "nonsymmetric stack": (
        {"X": changed(STACK, (4, 5, 1), 0.5), "kernels": "precomputed"},
        "Kernel 1 of the precomputed stack is not symmetric",
    ),
    "indefinite stack": (
        {"X": np.stack([X @ X.T, -np.eye(N)], axis=2), "kernels": "precomputed"},
        "Kernel 1 of the precomputed stack is not positive semidefinite",
    ),
    "unit diagonals of a stack": (
        {"X": STACK, "kernels": KernelBank("precomputed", normalize="unit")},
        "normalize='unit' needs the norm of every test sample",
    ),
    # more
    "lopsided kernel": ({"kernels": [lopsided]}, "Kernel lopsided is not symmetric"),
    "C of text": ({"C": "large"}, "C must be a number"),
    "hard margin": ({"C": INF}, "finite"),
    "ps of None": ({"ps": None}, "ps must be"),
    "max_iter of zero": ({"max_iter": 0}, "max_iter must be"),
    "max_iter of text": ({"max_iter": "many"}, "max_iter must be"),
    "n_jobs of text": ({"n_jobs": "all"}, "n_jobs must be"),
    "solver of wrong type": ({"solver": ["bcd"]}, "solver must be one of"),
    "task weight of text": ({"task_weight": {"0 vs 1": "high"}}, "task_weight of task '0 vs 1' must be"),
    "a kernel class": ({"kernels": [Gaussian]}, "Kernel 0"),
    "unknown parameter of a kernel": ({"kernels": [(Gaussian(), {"width": 2})]}, "Kernel 0"),
    "two widths": ({"kernels": [("rbf", {"sigma": 2.0, "gamma": 1.0})]}, "gamma"),
    "no columns by slice": ({"kernels": [Gaussian(columns=slice(3, 3))]}, "columns"),
    "columns by mask": ({"kernels": [Gaussian(columns=[True, False, False])]}, "columns"),
    "width beyond range": ({"kernels": [("rbf", {"sigma": 1e-170})]}, "sigma"),
    "overflowing kernel": ({"X": 1e4 * X, "kernels": [("poly", {"degree": 100})]}, "Kernel polynomial"),
    "X of one dimension": ({"X": X[:, 0]}, "X must have"),
    "X of text": ({"X": np.full((N, 2), "a")}, "X must contain only numbers"),
    "dates in a frame": (
        {"X": pd.DataFrame(X).assign(day=pd.Timestamp("2024-01-01"))},
        "Column 'day' contains dates or times",
    ),
    "y of uneven rows": ({"y": [[0, 1]] * (N - 1) + [[0]]}, "y must"),
}


class Solved(Exception):
    """A task was solved."""


@pytest.fixture
def refuse(monkeypatch):
    """Call pareto_path with some changed arguments, and return the error; no task may be solved before it."""

    def sweep(*args, **kwargs):
        raise Solved

    monkeypatch.setattr(SVCTasks, "sweep", sweep)

    def call(change):
        with np.errstate(all="ignore"), pytest.raises(ValueError) as caught:
            pareto_path(**{"X": X, "y": Y} | change)
        return str(caught.value)

    return call


def assert_one_clear_sentence(said, message):
    assert re.search(re.escape(message), said)
    assert "\n" not in said
    assert len(said) < 300


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_named_before_any_work(refuse, case):
    change, message = CASES[case]
    assert_one_clear_sentence(refuse(change), message)


def test_good_input_gets_as_far_as_solving_tasks(monkeypatch):
    """The cases above fail only because of what they change."""

    def sweep(*args, **kwargs):
        raise Solved

    monkeypatch.setattr(SVCTasks, "sweep", sweep)
    for change in (
        {},
        {"X": STACK, "kernels": "precomputed"},
        {"tasks": TASKS},
        {"y": THREE, "task_weight": [1, 2, 3]},
    ):
        with pytest.raises(Solved):
            pareto_path(**{"X": X, "y": Y} | change)


ONE, TWO_TASKS = np.int64(1), np.array([np.int64(1), np.int64(2)] * 10, dtype=object)
Z, BINARY = np.random.default_rng(0).random((20, 2)), np.tile([0, 1], 10)


def fitted(**given):
    return paretomkl.ParetoMKLClassifier(kernels=["linear"], **given).fit(Z, np.repeat(BINARY, 2)[:20], tasks=TWO_TASKS)


SCALARS = {
    "C": lambda: fitted(C=np.float64(-1)),
    "p": lambda: fitted(p=np.float64("nan")),
    "n_jobs": lambda: fitted(n_jobs=np.int64(0)),
    "max_iter": lambda: fitted(max_iter=np.int64(0)),
    "task_weight": lambda: fitted(task_weight=[np.float64(-1), 1.0]),
    "task_weight of an unknown task": lambda: fitted(task_weight={np.int64(3): 1.0}),
    "class_weight": lambda: fitted(class_weight={np.int64(0): np.float64(-1)}),
    "class_weight of an unknown class": lambda: fitted(class_weight={np.int64(7): 1.0}),
    "task_column": lambda: paretomkl.ParetoMKLClassifier(task_column=np.int64(7)).fit(Z, BINARY),
    "task_column of a frame": lambda: pareto_path(pd.DataFrame(Z, columns=[5, 6]), BINARY, task_column=np.int64(7)),
    "a task with one class": lambda: pareto_path(Z, np.repeat(ONE, 20), tasks=TWO_TASKS),
    "an unknown task": lambda: fitted().predict(Z, tasks=np.array([np.int64(9)] * 20, dtype=object)),
    "no task": lambda: fitted().predict(Z),
    "no task, shared functions": lambda: fitted(share="function").predict(Z),
    "columns of y": lambda: pareto_path(Z, pd.DataFrame({ONE: np.zeros(20), np.int64(2): BINARY})),
    "an empty column": lambda: pareto_path(Z, pd.DataFrame({ONE: [None] * 20, np.int64(2): BINARY})),
    "stacked names": lambda: paretomkl.stack_tasks([Z, Z], [BINARY, BINARY], names=[ONE, ONE]),
    "stacked task": lambda: paretomkl.stack_tasks([Z, Z[:3]], [BINARY, BINARY], names=[ONE, np.int64(2)]),
    "sigma": lambda: Gaussian(np.float64(-1)),
    "degree": lambda: paretomkl.Polynomial(np.int64(0)),
    "coef0": lambda: paretomkl.Polynomial(2, np.float64(-1)),
    "capacity": lambda: KernelBank(capacity=np.float64(-1)).fit(Z),
    "columns of a kernel": lambda: KernelBank([paretomkl.Linear(columns=[np.str_("a")])]).fit(Z),
    "folds": lambda: list(paretomkl.model_selection.MultiTaskStratifiedKFold(2).split(Z, 1 * (np.arange(20) == 0))),
    "splits": lambda: list(paretomkl.model_selection.MultiTaskShuffleSplit(train_size=np.float64(7)).split(Z, BINARY)),
    "splits by task": lambda: list(
        paretomkl.model_selection.MultiTaskShuffleSplit(train_size=np.int64(90)).split(Z, BINARY, tasks=TWO_TASKS)
    ),
    "site": lambda: paretomkl.distributed.Site(ONE),
    "ps": lambda: pareto_path(Z, BINARY, ps=np.str_("x")),
    "look-alikes": lambda: pareto_path(Z, BINARY, tasks=np.array([ONE, np.str_("1")] * 10, dtype=object)),
}


@pytest.mark.parametrize("case", SCALARS)
def test_numpy_scalars_look_like_those_of_python(case):
    with pytest.raises(ValueError) as caught:
        SCALARS[case]()
    message = str(caught.value)
    assert "np." not in message
    assert "numpy" not in message


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.int64(1), "1"),
        (np.str_("a"), "'a'"),
        (np.bool_(True), "True"),
        (np.datetime64("2020-01-01"), "'2020-01-01'"),
        ([np.float64(0.5), None], "[0.5, None]"),
        ((np.int64(1),), "(1,)"),
        ({np.int64(1): np.str_("a")}, "{1: 'a'}"),
    ],
)
def test_values_in_messages_are_python(value, text):
    assert literal(value) == text


def test_names_that_look_alike_are_refused():
    alike = np.array([1, "1"] * 10, dtype=object)
    for learn in (
        paretomkl.ParetoMKLClassifier(),
        paretomkl.ParetoMKLRegressor(),
        paretomkl.ParetoMKLOutlierDetector(),
    ):
        with pytest.raises(ValueError, match=r"tasks has the labels 1 and '1', which look alike"):
            learn.fit(Z, Z[:, 0] if is_regressor(learn) else np.repeat(BINARY, 2)[:20], tasks=alike)
    with pytest.raises(ValueError, match=r"y has the labels 1 and '1', which look alike"):
        paretomkl.ParetoMKLClassifier().fit(Z, alike)


@pytest.mark.parametrize("names", [["a", "a"], [1, "1"]])
@pytest.mark.parametrize("learn", [paretomkl.ParetoMKLClassifier(), paretomkl.ParetoMKLRegressor()], ids=repr)
@pytest.mark.parametrize("share", ["kernel", "function"])
def test_columns_of_one_name_are_refused(learn, names, share):
    y = pd.DataFrame(np.column_stack([BINARY, BINARY]), columns=pd.Index(names, dtype=object))
    with pytest.raises(ValueError, match=f"y has two columns called '{names[0]}'"):
        clone(learn).set_params(share=share).fit(Z, y)
