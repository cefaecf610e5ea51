"""task_scale="samples": M_p of J_t / n_t, with its certificate, for every solver and every way to give weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import paretomkl
from paretomkl import ParetoMKLClassifier, ParetoMKLClassifierCV, pareto_path
from paretomkl._data.tasks import make_tasks
from paretomkl.cli._showing import path_table
from tests.conftest import Toy, make_toy
from tests.oracles import conic_optimum, objectives, power_mean, weighted_optimum

SIZES = (8, 30, 10)
C, S = 2.0, 1.1


@pytest.fixture(scope="module")
def unlike() -> Toy:
    """Three tasks of 8, 30 and 10 samples; the noisiest is not the largest."""
    toy = make_toy(n=30)
    kept = np.concatenate([own[:size] for size, own in zip(SIZES, np.arange(90).reshape(3, 30), strict=True)])
    tasks, y = toy.tasks[kept], toy.y[kept]
    pairs = [(task.rows, task.targets) for task in make_tasks(y, tasks)]
    return Toy(toy.X[kept], y, tasks, toy.kernels, toy.Ks[:, kept[:, None], kept], pairs)


def per_sample(toy: Toy) -> tuple[np.ndarray, list[np.ndarray]]:
    """Kernels and costs of tasks whose plain objectives are J_t / n_t.

    With a = n b, (a'1 − ½ (ya)'K(ya)) / n = b'1 − ½ (yb)'(nK)(yb): kernels n_t K_m on the samples of task t, and bounds
    C / n_t.
    """
    Ks = toy.Ks.copy()
    for rows, _ in toy.pairs:
        Ks[:, rows[:, None], rows] *= len(rows)
    return Ks, [np.full(len(rows), C / len(rows)) for rows, _ in toy.pairs]


def trace(toy: Toy, ps, **options):
    options = {"C": C, "s": S, "kernels": toy.kernels, "tol": 1e-5, "task_scale": "samples"} | options
    return pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=ps, **options)


@pytest.mark.parametrize("p", [1.0, 2.0, 20.0, np.inf])
def test_optimum_matches_a_conic_solver(unlike, p):
    """The objective is optimal, and the gap is never below the true gap, however coarse the tolerance."""
    Ks, costs = per_sample(unlike)
    best, _ = conic_optimum(Ks, unlike.pairs, costs, p, S)
    for tol in (0.1, 1e-2, 1e-5):
        path = trace(unlike, [p], tol=tol)
        there = objectives(Ks, path.theta[0], unlike.pairs, costs)
        assert_allclose(path.objectives[0], there, rtol=0.03 * tol)
        assert_allclose(path.objective[0], power_mean(path.objectives[0], p))
        assert 1 - best / power_mean(there, p) <= path.gap[0] + 1e-7
        assert path.gap[0] <= tol
    assert_allclose(path.objective[0], best, rtol=1e-4)


@pytest.mark.parametrize("p", [-1.0, 0.1, 0.5])
def test_concave_means_end_on_the_front(unlike, p):
    Ks, costs = per_sample(unlike)
    path = trace(unlike, [p])
    best, _ = weighted_optimum(Ks, unlike.pairs, costs, path.task_weights[0], S)
    assert 1 - best / (path.task_weights[0] @ path.objectives[0]) <= path.gap[0] + 1e-7
    assert_allclose(path.task_weights[0], (w := path.objectives[0] ** (p - 1)) / w.sum())


def test_preferences_among_tasks_per_sample(unlike):
    Ks, costs = per_sample(unlike)
    weight = np.array([3.0, 1.0, 2.0])
    best, _ = conic_optimum(Ks, unlike.pairs, costs, 2.0, S, weight)
    assert_allclose(trace(unlike, [2.0], task_weight=weight).objective[0], best, rtol=1e-5)


@pytest.mark.parametrize("p", [-1.0, 0.5, 3.0])
def test_scale_is_a_preference(unlike, p):
    """Σ_t (J_t / n_t)^p = Σ_t n_t^(−p) J_t^p: objectives per sample are preferences n_t^(−p), at finite p."""
    preferred = trace(unlike, [p], task_scale="none", task_weight=np.array(SIZES, dtype=float) ** -p, tol=1e-7)
    scaled = trace(unlike, [p], tol=1e-7)
    assert_allclose(scaled.theta, preferred.theta, atol=1e-3)
    assert_allclose(scaled.objectives, preferred.objectives / SIZES, rtol=1e-4)


@pytest.mark.parametrize(("solver", "ps"), [("bcd", [0.1, 1.0]), ("tseng", [1.0, 5.0, np.inf])])
def test_solvers_agree(unlike, solver, ps):
    slow = trace(unlike, ps, solver=solver, tol=1e-4, max_iter=20_000)
    assert_allclose(slow.objective, trace(unlike, ps, tol=1e-6).objective, rtol=1.1e-4)


def test_the_forms_differ_where_sizes_do(unlike):
    """p = ∞ minimises the objective of the largest task in one form, and of the hardest per sample in the other."""
    plain, scaled = trace(unlike, [np.inf], task_scale="none"), trace(unlike, [np.inf])
    assert plain.objectives[0].argmax() == 1
    assert scaled.objectives[0].argmax() == 2
    assert np.abs(plain.theta - scaled.theta).max() > 0.05
    assert not plain.large_is_hard
    assert scaled.large_is_hard
    assert_array_equal(plain.task_sizes, SIZES)
    assert_allclose(plain.difficulty, plain.objectives / SIZES)
    assert_array_equal(scaled.difficulty, scaled.objectives)


@pytest.mark.parametrize("n_tasks", [1, 3])
def test_tasks_of_one_size_learn_the_same_kernel(n_tasks):
    toy, ps = make_toy(n_tasks=n_tasks), [0.1, 1.0, 5.0, np.inf]
    plain, scaled = (trace(toy, ps, task_scale=scale, tol=1e-7) for scale in ("none", "samples"))
    assert_allclose(scaled.theta, plain.theta, atol=1e-6)
    assert_allclose(scaled.objectives, plain.objectives / 18, rtol=1e-6)
    assert plain.large_is_hard


@pytest.mark.parametrize("p", [0.5, 5.0])
def test_weights_count_samples(unlike, p):
    """A sample of weight 2 counts as two samples, one of weight 0 as none."""
    weight = np.random.default_rng(0).choice([0.0, 1.0, 2.0], size=len(unlike.y))
    weight[[0, 1, 2, 3]] = 1.0  # both classes of the smallest task
    rows = np.repeat(np.arange(len(weight)), weight.astype(int))
    settings = {"p": p, "C": C, "kernels": unlike.kernels, "tol": 1e-7, "task_scale": "samples"}
    weighted = ParetoMKLClassifier(**settings).fit(unlike.X, unlike.y, tasks=unlike.tasks, sample_weight=weight)
    repeated = ParetoMKLClassifier(**settings).fit(unlike.X[rows], unlike.y[rows], tasks=unlike.tasks[rows])
    assert_allclose(weighted.objectives_, repeated.objectives_, rtol=1e-5)
    assert_allclose(weighted.theta_, repeated.theta_, atol=1e-3)
    by_cost = trace(unlike, [p], C=C * weight, tol=1e-7)
    assert_allclose(C * by_cost.objectives[0], weighted.objectives_, rtol=1e-5)  # per unit of C


def test_balanced_classes_keep_the_sizes(unlike):
    assert_allclose(trace(unlike, [1.0], class_weight="balanced").task_sizes, SIZES)


def test_cuts_hold_along_C(unlike):
    """A pool from a smaller C ends at the same point as a cold start."""
    from paretomkl._data.reading import PathReader, Reading
    from paretomkl._fitting.tracing import Grid, check_parts, fit_bank, pose, trace_grid
    from paretomkl._tools.running import Progress

    training = PathReader(Reading(unlike.kernels)).read_data(unlike.X, unlike.y, tasks=unlike.tasks)
    parts = check_parts([0.5, 5.0], S, 1e-6, "auto", None, None, "samples")
    problem, _, data = pose(training, training.weights, fit_bank(unlike.kernels, training), parts)
    grid = Grid([0.5, 5.0], [0.5, 3.0, 20.0], [S])
    for stretch in trace_grid(problem, data, grid, parts, Progress(1, 1e-6, 0)):
        cold = trace(unlike, [0.5, 5.0], C=stretch.C, tol=1e-6)
        assert_allclose([point.objective for point in stretch.points], cold.objective, rtol=3e-6)


def test_scale_keeps_duals_and_decisions(unlike):
    path = trace(unlike, [2.0])
    model = path.models[0]
    values = objectives(unlike.Ks, model.theta, unlike.pairs, C)
    assert_allclose(path.objectives[0] * SIZES, values, rtol=1e-6)
    for t, (rows, signs) in enumerate(unlike.pairs):
        K = np.tensordot(model.theta, unlike.Ks[:, rows[:, None], rows], axes=1)
        v = np.zeros(len(unlike.y))
        v[model.support.rows] = model.dual[t].toarray()[0]
        assert np.abs(v).max() <= C * (1 + 1e-12)
        decided = model.decisions(unlike.X[rows], unlike.tasks[rows])[:, t]
        assert_allclose(decided, K @ v[rows] + model.intercepts[t], atol=1e-9)
        losses = np.maximum(0, 1 - signs * decided)
        assert_allclose(0.5 * v[rows] @ K @ v[rows] + C * losses.sum(), values[t], rtol=1e-4)


def test_search_chooses_among_scaled_models(unlike, tmp_path):
    given = {"kernels": unlike.kernels, "tol": 1e-6, "task_scale": "samples"}
    search = ParetoMKLClassifierCV([0.1, 1.0, np.inf], [1.0, 5.0], cv=2, share="kernel", **given)
    search.fit(unlike.X, unlike.y, tasks=unlike.tasks)
    best = ParetoMKLClassifier(**search.best_params_, **given).fit(unlike.X, unlike.y, tasks=unlike.tasks)
    assert_allclose(search.objectives_, best.objectives_, rtol=1e-4)
    assert search.path_.task_scale == "samples"
    assert "task_scale='samples'" in search.path_.refit
    paretomkl.save_model(search, tmp_path / "search.skops")
    again = paretomkl.load_model(tmp_path / "search.skops")
    assert again.task_scale == again.path_.task_scale == "samples"
    assert_array_equal(again.path_.task_sizes, SIZES)


def test_refit_code_includes_the_scale(unlike):
    path = trace(unlike, [0.5])
    made: dict = {"X": unlike.X, "y": unlike.y, "tasks": unlike.tasks}
    exec(path.refit.replace("{p}", "0.5"), made)
    assert_allclose(made["clf"].objectives_, path.objectives[0], rtol=1e-5)
    assert "task_scale" not in trace(unlike, [0.5], task_scale="none").refit


@pytest.mark.parametrize("wrong", ["sample", None, 1, np.ones(3)], ids=str)
def test_other_scales_are_refused(unlike, wrong):
    message = "task_scale must be 'none' or 'samples', got"
    with pytest.raises(ValueError, match=message):
        trace(unlike, [1.0], task_scale=wrong)
    for estimator in (ParetoMKLClassifier, ParetoMKLClassifierCV):
        with pytest.raises(ValueError, match=f"^{message}"):
            estimator(task_scale=wrong).fit(unlike.X, unlike.y, tasks=unlike.tasks)


def test_paths_saved_before_sizes_were_known(unlike):
    """Then only the objectives can rank the tasks."""
    old = replace(trace(unlike, [1.0], task_scale="none"), task_sizes=None)
    assert_array_equal(old.difficulty, old.objectives)


def test_table_of_a_path_calls_hard_what_is_hard(unlike):
    """If the largest objective belongs to the largest task and not the hardest, the columns say so."""
    for scale, headers in (("none", ["smallest J", "largest J"]), ("samples", ["easiest", "hardest"])):
        table = path_table(trace(unlike, [1.0], task_scale=scale), "title")
        assert [column.header for column in table.columns][2:4] == headers


def test_axis_of_the_objectives_names_the_scale(unlike):
    pytest.importorskip("matplotlib").use("Agg")
    from paretomkl.plotting import ObjectivesDisplay

    for scale, symbol in (("none", "$J_t$"), ("samples", "$J_t / n_t$")):
        display = ObjectivesDisplay.from_path(trace(unlike, [0.5, 1.0], task_scale=scale))
        assert display.ax_.get_ylabel() == f"task objective {symbol}"
