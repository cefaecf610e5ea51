"""Many tasks cost memory and time in proportion to their samples, and samples out of scale are reported."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from paretomkl import ParetoMKLClassifier, ParetoMKLOutlierDetector, ParetoMKLRegressor, pareto_path
from paretomkl._data.labels import log_loss
from paretomkl._data.tasks import make_number_tasks, rows_by_label
from paretomkl._fitting.models import as_samples, share
from paretomkl._select.cells import rows_of_tasks
from paretomkl.gram._blocks import _connected_blocks
from paretomkl.kernels import Gaussian, KernelBank, Polynomial
from paretomkl.machines._smo import HOPELESS, is_hopeless

KERNELS = KernelBank([Gaussian(1.0)], normalize="none")


def peak_bytes(work):
    """Memory that a call takes at most."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def small_tasks(n_tasks, n_rows=2):
    """X, y of two classes and the task of each row."""
    rng = np.random.default_rng(0)
    y = np.tile(np.arange(n_rows) % 2, n_tasks)
    return rng.standard_normal((len(y), 2)) + y[:, None], y, np.repeat(np.arange(n_tasks), n_rows)


# ---------------------------------------------------------------------------------------------------- predictions
@pytest.mark.parametrize("kind", ["classes", "own classes", "numbers", "outliers"])
def test_predictions_need_no_matrix_of_rows_and_tasks(kind):
    X, y, tasks = small_tasks(600)
    if kind == "own classes":  # decision_function has a column for each of 1200
        y = np.char.add(np.char.add(tasks.astype(str), " "), y.astype(str))
    if "classes" in kind:
        model = ParetoMKLClassifier(kernels=KERNELS).fit(X, y, tasks=tasks)
    elif kind == "numbers":
        model = ParetoMKLRegressor(kernels=KERNELS).fit(X, X[:, 0], tasks=tasks)
    else:
        model = ParetoMKLOutlierDetector(kernels=KERNELS).fit(X, tasks=tasks)
    matrix = 8 * len(X) * 600
    assert peak_bytes(lambda: model.predict(X, tasks=tasks)) < matrix / 3
    if kind != "outliers":
        assert peak_bytes(lambda: model.score(X, y, tasks=tasks)) < matrix / 3
    if kind == "own classes":
        assert_array_equal(
            model.predict(X, tasks=tasks), model.classes_[model.decision_function(X, tasks=tasks).argmax(axis=1)]
        )
    elif kind != "numbers":
        assert peak_bytes(lambda: model.decision_function(X, tasks=tasks)) < matrix / 3


@pytest.mark.parametrize("multi_class", ["one-vs-one", "one-vs-rest"])
def test_the_entries_of_the_matrix_of_decisions_say_as_much_as_the_matrix(multi_class):
    X, _, tasks = small_tasks(6, 12)
    y = np.arange(len(X)) % np.array([2, 3, 4, 2, 3, 2])[tasks]  # tasks with several numbers of classes
    model = ParetoMKLClassifier(kernels=KERNELS, multi_class=multi_class).fit(X, y, tasks=tasks)
    samples, labelling = as_samples(X, tasks), model.model_.tasks
    decided = model.model_.decided(samples)
    matrix = decided.matrix(labelling.n_tasks)
    assert decided.values.shape[1] < labelling.n_tasks
    assert_array_equal(labelling.predictions(decided), labelling.predictions(matrix))
    assert_allclose(labelling.scores(decided), labelling.scores(matrix), rtol=1e-12)
    every_task = np.arange(labelling.n_tasks)[None]
    expected = log_loss(matrix, labelling.sides(y, every_task))
    assert labelling.loss(samples, y)(decided) == pytest.approx(expected, rel=1e-12)
    assert_array_equal(model.model_.task_accuracy(samples, y), share(*labelling.right(matrix, y)))
    assert model.contributions(X, tasks=tasks).shape == (*matrix.shape, 1)


def test_a_task_is_predicted_the_same_alone_and_among_others():
    X, y, tasks = small_tasks(40, 6)
    path = pareto_path(X, y, tasks=tasks, ps=[1, 4], kernels=KERNELS)
    for model in path.models:
        together = model.decisions(X, tasks)
        for task in range(0, 40, 13):
            mine = tasks == task
            assert_allclose(together[mine], model.decisions(X[mine], tasks[mine]), rtol=1e-12)


# --------------------------------------------------------------------------------------------------------- labels
class Name(str):
    """Text that counts how often it is compared."""

    n_compared = 0

    def __eq__(self, other):
        Name.n_compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_splitting_by_labels_compares_each_label_a_few_times():
    _, _, tasks = small_tasks(100, 4)
    names = np.array([Name(f"task {task}") for task in tasks], dtype=object)
    Name.n_compared = 0
    split = rows_by_label(names)
    made = make_number_tasks(np.arange(400.0), names)
    appeared = rows_of_tasks(names, 400)
    assert Name.n_compared < 10 * len(names)
    for task in range(100):
        for rows in (split[f"task {task}"], appeared[task][1]):
            assert_array_equal(rows, np.flatnonzero(tasks == task))
    assert [task.name for task in made] == sorted(f"task {task}" for task in range(100))


# --------------------------------------------------------------------------------------------------------- blocks
def test_blocks_are_the_components_of_tasks_that_share_samples():
    rng = np.random.default_rng(0)
    for n_tasks in (1, 5, 12, 30):
        rows = [np.sort(rng.choice(60, rng.integers(1, 4), replace=False)) for _ in range(n_tasks)]
        samples, block = _connected_blocks(rows, 60)
        share_samples = np.array([[bool(np.intersect1d(a, b).size) for a in rows] for b in rows])
        connected = np.linalg.matrix_power(share_samples.astype(float), n_tasks) > 0
        assert_array_equal(block[:, None] == block, connected)
        for b, members in enumerate(samples):
            assert_array_equal(
                members, np.unique(np.concatenate([r for r, of in zip(rows, block, strict=True) if of == b]))
            )


def test_blocks_of_many_outputs_take_linear_memory():
    rows = [np.arange(20)] * 3000
    assert peak_bytes(lambda: _connected_blocks(rows, 20)) < 200 * 20 * 3000  # the square of the tasks is 9 million


# ------------------------------------------------------------------------------------------------------ sentinels
def test_a_sentinel_row_stops_soon_with_advice_and_a_gap_that_holds():
    rng = np.random.default_rng(0)
    X, raw = rng.standard_normal((100, 5)), KernelBank([Polynomial(2)], normalize="none")
    y = (X.sum(axis=1) + 0.5 * rng.standard_normal(100) > 0).astype(int)
    others = np.arange(100) != 7
    without = ParetoMKLClassifier(kernels=raw).fit(X[others], y[others]).objective_
    X[7] = 999999
    with pytest.warns(ConvergenceWarning) as noted:
        model = ParetoMKLClassifier(kernels=raw).fit(X, y)
    assert any("sample 7" in str(one.message) and "Scale the features" in str(one.message) for one in noted)
    assert model.objective_ < 100
    assert model.objective_ / (1 - model.gap_) > without  # a sample more costs more


def test_slow_progress_is_not_hopeless():
    stuck = [(1.0 + 1e-9 * k, 1e5) for k in range(HOPELESS)]
    assert is_hopeless(stuck)
    assert not is_hopeless(stuck[1:])
    assert not is_hopeless([(value, 0.9**k * gap) for k, (value, gap) in enumerate(stuck)])  # the gap halves
    assert not is_hopeless([(1.0 + 100.0 * k, gap) for k, (_, gap) in enumerate(stuck)])  # the value rises
    assert not is_hopeless([(value, 0.5) for value, _ in stuck])  # the value is known within a factor of two
