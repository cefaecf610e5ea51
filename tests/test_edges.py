"""Pitfalls that users have run into, each with a test."""

from __future__ import annotations

import inspect
import os
import pty
import shutil
import subprocess
import sys
import warnings
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.base import clone, is_regressor
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold

import paretomkl
from paretomkl import (
    Gaussian,
    KernelBank,
    ParetoMKLClassifier,
    ParetoMKLClassifierCV,
    baselines,
    model_selection,
    pareto_path,
    stack_tasks,
)
from paretomkl.gram import GramBlocks
from paretomkl.machines import SVCTasks
from paretomkl.problem import MultiTaskProblem
from paretomkl.scalarizations import PowerMean
from paretomkl.solvers import BlockCoordinateDescent, CutPool, Tseng
from paretomkl.weight_sets import LsBall

PACKAGE = Path(paretomkl.__file__).parent
ESTIMATORS = [
    ParetoMKLClassifier,
    ParetoMKLClassifierCV,
    *(getattr(baselines, name) for name in baselines.__all__),
]


def make_problem(toy, C=1.0, s=1.1, p=1.0, kernels=None):
    rows = [rows for rows, _ in toy.pairs]
    signs = np.concatenate([signs for _, signs in toy.pairs])
    gram = GramBlocks(KernelBank(toy.kernels if kernels is None else kernels).fit(toy.X), toy.X, rows)
    return MultiTaskProblem(SVCTasks(gram, signs, np.full(len(signs), C)), PowerMean(p), LsBall(s))


# ----------------------------------------------------------------------------------- where nothing can be written
def test_it_runs_where_no_cache_can_be_written(tmp_path):
    """Files instead of cache folders prevent even root from writing there."""
    copy = shutil.copytree(PACKAGE, tmp_path / "paretomkl", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [copy, *(path for path in copy.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").touch()
    nowhere = str(tmp_path / "paretomkl" / "__pycache__" / "below a file")
    code = (
        "import paretomkl, numpy; from paretomkl.machines._smo import find_largest;"
        "print(paretomkl.__file__, *find_largest(numpy.arange(3.0)), find_largest.stats.cache_path)"
    )
    homeless = {"HOME": nowhere, "XDG_CACHE_HOME": nowhere, "NUMBA_CACHE_DIR": nowhere, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=os.environ | homeless, capture_output=True, text=True
    )
    assert done.stdout.split() == [str(copy / "__init__.py"), "2", "2.0", "None"], done.stderr


def test_compiling_is_announced_once_on_a_terminal(tmp_path):
    code = (
        "import numpy; from paretomkl.machines._smo import find_largest;"
        "from paretomkl.kernels._evaluation import mirror;"
        "find_largest(numpy.ones(2)); mirror(numpy.ones(1), numpy.array([0]), numpy.array([1]))"
    )

    def shown() -> str:
        main, secondary = pty.openpty()
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        subprocess.run([sys.executable, "-c", code], env=environment, stderr=secondary, check=True, timeout=300)
        os.close(secondary)
        text = b""
        while True:
            try:
                text += os.read(main, 1024)
            except OSError:
                break
        os.close(main)
        return text.decode()

    assert shown().count("compiling, once per machine") == 1
    assert shown() == ""


# ------------------------------------------------------------------------------------------------------ arguments
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("method", ["fit", "predict", "decision_function", "score"])
def test_tasks_and_weights_are_keywords(estimator, method):
    if method == "decision_function" and is_regressor(estimator()):
        return
    parameters = inspect.signature(getattr(estimator, method)).parameters
    assert parameters["tasks"].kind is inspect.Parameter.KEYWORD_ONLY
    if method in ("fit", "score"):
        assert parameters["sample_weight"].kind is inspect.Parameter.KEYWORD_ONLY


def test_a_third_positional_argument_is_refused(toy):
    with pytest.raises(TypeError, match="positional"):
        ParetoMKLClassifier().fit(toy.X, toy.y, toy.tasks)
    with pytest.raises(TypeError, match="positional"):
        pareto_path(toy.X, toy.y, toy.tasks)


def test_a_path_reads_what_estimators_read(toy):
    weight = np.linspace(0.5, 2, len(toy.y))
    frame = pd.DataFrame(toy.X, columns=["a", "b", "c"]).assign(site=toy.tasks)
    given = {"sample_weight": weight, "class_weight": "balanced", "kernels": toy.kernels, "tol": 1e-6}
    path = pareto_path(frame, toy.y, task_column="site", ps=[0.5], **given)
    clf = ParetoMKLClassifier(p=0.5, task_column="site", class_weight="balanced", kernels=toy.kernels, tol=1e-6)
    clf.fit(frame, toy.y, sample_weight=weight)
    assert_allclose(path.theta[0], clf.theta_, atol=1e-12)
    assert_allclose(path.objectives[0], clf.objectives_)
    assert_array_equal(path.models[0].predict(toy.X, toy.tasks), clf.predict(frame))
    assert not np.allclose(path.objectives, pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=[0.5]).objectives)


def test_models_of_a_path_score_as_estimators_do(toy):
    path = pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=[0.5, np.inf], kernels=toy.kernels, tol=1e-6)
    for p, model in zip(path.ps, path.models, strict=True):
        clf = ParetoMKLClassifier(p=p, kernels=toy.kernels, tol=1e-6).fit(toy.X, toy.y, tasks=toy.tasks)
        assert_allclose(model.score(toy.X, toy.y, toy.tasks), clf.score(toy.X, toy.y, tasks=toy.tasks))
        right = clf.predict(toy.X, tasks=toy.tasks) == toy.y
        by_hand = [right[toy.tasks == name].mean() for name in clf.task_names_]
        assert_allclose(model.task_accuracy(toy.X, toy.y, toy.tasks), by_hand)


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_stacked_frames_are_aligned_by_name(library):
    first = library.DataFrame({"u": [1.0, 2.0], "v": [10.0, 20.0]})
    second = library.DataFrame({"v": [30.0, 40.0], "u": [3.0, 4.0]})
    X, y, tasks = stack_tasks([first, second], [[0, 1], [1, 0]])
    assert list(X.columns) == ["u", "v"]
    assert_array_equal(np.asarray(X), [[1, 10], [2, 20], [3, 30], [4, 40]])
    assert len(X) == len(y) == len(tasks)
    with pytest.raises(ValueError, match="Task 1 has no column 'u'; its columns are"):
        stack_tasks([first, library.DataFrame({"v": [3.0], "w": [4.0]})], [[0, 1], [1]])
    with pytest.raises(
        ValueError, match="X of task 1 must have the type of the other tasks, got ndarray and DataFrame"
    ):
        stack_tasks([first, np.ones((1, 2))], [[0, 1], [1]])


def test_unusual_arguments_work(toy):
    assert Gaussian(columns=np.array([0, 1])) == Gaussian(columns=[0, 1])
    assert Gaussian(columns=np.array([0, 1])) != Gaussian(columns=[0, 2])
    labels = csr_matrix(np.c_[toy.y == "yes", toy.X[:, 0] > 0.5].astype(int))
    assert ParetoMKLClassifier().fit(toy.X, labels).n_tasks_ == 2
    with pytest.raises(ValueError, match="kernels is an iterator, which can be read only once; pass a list"):
        ParetoMKLClassifier(kernels=(kernel for kernel in toy.kernels)).fit(toy.X, toy.y)
    with pytest.raises(ValueError, match="ps is an iterator, which can be read only once; pass a list"):
        ParetoMKLClassifierCV(ps=iter([1.0])).fit(toy.X, toy.y)
    for estimator in ESTIMATORS:
        with pytest.raises(ValueError, match="'foo' cannot be used to seed"):
            estimator(random_state="foo").fit(toy.X, toy.y, tasks=toy.tasks)


def test_names_are_listed():
    assert set(paretomkl.__all__) <= set(dir(paretomkl))
    assert {"ParetoMKLClassifier", "ParetoMKLClassifierCV"} <= set(dir(paretomkl))
    assert {"MultiTaskStratifiedKFold", "make_multitask_scorer"} <= set(model_selection.__all__)


# -------------------------------------------------------------------------------------------------- certificates
@pytest.mark.parametrize("C", [1e-300, 1e-101, 1e101, 1e200, 1e300])
def test_costs_beyond_the_range_of_doubles_are_refused(toy, C):
    with pytest.raises(ValueError, match=r"must be between 1e-100 and 1e\+100, got 1e"):
        pareto_path(toy.X, toy.y, tasks=toy.tasks, C=C)
    for baseline in (ParetoMKLClassifier, baselines.IndependentMKL, baselines.UniformKernelSVC):
        with pytest.raises(ValueError, match="multiply them by a common factor"):
            baseline().fit(toy.X, toy.y, tasks=toy.tasks, sample_weight=np.full(len(toy.y), C))
    with pytest.raises(ValueError, match="common factor"):
        ParetoMKLClassifierCV(Cs=[1.0, C], cv=2, error_score="raise").fit(toy.X, toy.y, tasks=toy.tasks)


@pytest.mark.parametrize(
    "estimator",
    [
        ParetoMKLClassifier(),
        ParetoMKLClassifier(loss="squared"),
        paretomkl.ParetoMKLRegressor(),
        paretomkl.ParetoMKLRegressor(loss="epsilon_insensitive"),
        paretomkl.ParetoMKLOutlierDetector(),
        paretomkl.ParetoMKLOutlierDetector(method="svdd"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("tiny", [1e-300, 1e-40])
def test_tiny_weights_are_like_none(toy, estimator, tiny):
    """The reciprocals of such weights would swamp the others in kernel ridge regression."""
    y = toy.X[:, 0] if is_regressor(estimator) else toy.y
    weight = np.where(np.arange(len(y)) % 5, 1.0, tiny)
    found = clone(estimator).fit(toy.X, y, tasks=toy.tasks, sample_weight=weight)
    without = clone(estimator).fit(toy.X, y, tasks=toy.tasks, sample_weight=np.where(weight == 1, 1.0, 0.0))
    assert_allclose(found.objectives_, without.objectives_, rtol=2e-3)  # each within its gap
    assert found.gap_ < 1e-3


def test_the_scale_of_weights_does_not_matter_to_kernels(toy):
    weight = np.random.default_rng(0).random(len(toy.X))
    one = KernelBank("default").fit(toy.X, weight=weight)
    for scale in (2.0**-1000, 2.0**900):
        other = KernelBank("default").fit(toy.X, weight=scale * weight)
        assert_array_equal(other.factor, one.factor)
        assert_array_equal(other.evaluator.standardizer.scale, one.evaluator.standardizer.scale)


def test_a_class_of_tiny_weight_is_named(toy):
    weight = np.where(toy.y == toy.y[0], 1e-40, 1.0)
    with pytest.raises(ValueError, match=r"samples of class .* no effect"):
        ParetoMKLClassifier().fit(toy.X, toy.y, tasks=toy.tasks, sample_weight=weight)


class Overflowing(SVCTasks):
    """A machine whose second task overflows a double."""

    def sweep(self, *args, **kwargs):
        sweep = super().sweep(*args, **kwargs)
        return replace(sweep, upper=np.where(np.arange(self.n_tasks) == 1, np.inf, sweep.upper))


@pytest.mark.parametrize("solver", [CutPool, BlockCoordinateDescent, Tseng])
def test_an_objective_that_overflows_is_refused(toy, solver):
    machine = make_problem(toy).machine
    broken = Overflowing(machine.gram, machine.targets, machine.C)
    with pytest.raises(ValueError, match="The objective of task 1 is not finite: C, the sample weights and"):
        solver().solve(MultiTaskProblem(broken, PowerMean(1.0), LsBall(1.1)))


def test_nan_certifies_nothing(toy):
    problem = make_problem(toy)
    sweep = problem.machine.sweep(problem.start())
    broken = replace(sweep, forms=np.full_like(sweep.forms, np.nan))
    assert np.isnan(problem.relative_gap(broken))
    assert np.isnan(problem.relative_gap(broken, 1.0))


@pytest.mark.parametrize("solver", [CutPool, BlockCoordinateDescent, Tseng])
@pytest.mark.parametrize("other", [{"C": 10.0}, {"s": 2.0}, {"C": 0.01, "s": 1.0}])
def test_a_foreign_start_does_no_harm(toy, solver, other):
    here, there = make_problem(toy, C=0.1), make_problem(toy, **{"C": 0.1} | other)
    cold = solver(tol=1e-5).solve(here)
    warm = solver(tol=1e-5).solve(here, init=solver(tol=1e-5).solve(there))
    assert warm.gap <= 1e-5
    assert warm.objective == pytest.approx(cold.objective, rel=2e-5)
    assert here.weight_set.support(np.ones(5)) >= warm.theta.sum() - 1e-9  # inside its own set
    with pytest.raises(ValueError, match="init has 5 kernel weights, but the problem has 1 kernels"):
        solver().solve(make_problem(toy, kernels=["linear"]), init=cold)


def test_one_pool_serves_every_set(toy):
    """Cuts do not depend on s: a pool reused for another ball needs fewer sweeps and reaches the same optimum."""
    problem = make_problem(toy)
    first = CutPool(tol=1e-5).solve(problem)
    for s in (1.0, 1.5, 4.0):
        other = replace(problem, weight_set=LsBall(s))
        cold, warm = CutPool(tol=1e-5).solve(other), CutPool(tol=1e-5).solve(other, init=first)
        assert warm.objective == pytest.approx(cold.objective, rel=2e-5)
        assert warm.n_sweeps < cold.n_sweeps


@pytest.mark.parametrize("p", [-np.inf, -1.0, 0.0, 0.5, 1.0, 5.0, np.inf])
def test_the_plain_sum_of_kernels_at_every_p(toy, p):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = pareto_path(toy.X, toy.y, tasks=toy.tasks, ps=[p], s=np.inf, kernels=toy.kernels)
    assert_array_equal(path.theta, np.ones((1, 5)))
    assert path.gap[0] <= 1e-3
    assert path.task_weights.sum() == pytest.approx(1)
    if np.isinf(p):  # the task at the extreme, and no other
        extreme = path.objectives[0].argmax() if p > 0 else path.objectives[0].argmin()
        assert_allclose(path.task_weights[0], np.arange(3) == extreme)


def test_the_advice_in_a_warning_works(toy):
    few = ParetoMKLClassifier(kernels="paper", tol=1e-9, max_iter=2)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=2, gap .* Raise max_iter or tol"):
        few.fit(toy.X, toy.y, tasks=toy.tasks)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert few.set_params(max_iter=300).fit(toy.X, toy.y, tasks=toy.tasks).gap_ <= 1e-9
    with pytest.warns(ConvergenceWarning, match="Rounding allows no gap .* raise tol"):
        few.set_params(tol=1e-15).fit(toy.X, toy.y, tasks=toy.tasks)


def test_trace_normalisation_uses_weights(toy):
    """A sample of weight zero counts as absent."""
    bank = KernelBank(["linear", "poly"], normalize="trace")
    X = np.vstack([toy.X, 50 + toy.X])
    y, tasks = np.tile(toy.y, 2), np.tile(toy.tasks, 2)
    weight = np.repeat([1.0, 0.0], len(toy.y))
    absent = ParetoMKLClassifier(kernels=bank, tol=1e-6).fit(toy.X, toy.y, tasks=toy.tasks)
    idle = ParetoMKLClassifier(kernels=bank, tol=1e-6).fit(X, y, tasks=tasks, sample_weight=weight)
    assert_allclose(
        idle.decision_function(toy.X, tasks=toy.tasks), absent.decision_function(toy.X, tasks=toy.tasks), atol=1e-4
    )


# -------------------------------------------------------------------------------------------------------- searches
@pytest.fixture(scope="module")
def two_classes():
    X, y = load_iris(return_X_y=True)
    rows = np.random.default_rng(0).permutation(np.flatnonzero(y > 0))
    return X[rows], y[rows]


def test_a_search_scores_as_it_chose(two_classes):
    X, y = two_classes
    grid = {"ps": [1.0], "Cs": [0.1, 1.0]}
    search = ParetoMKLClassifierCV(**grid, scoring="roc_auc", cv=3).fit(X, y)
    assert search.score(X, y) == pytest.approx(roc_auc_score(y, search.decision_function(X)))
    assert search.score(X, y) == search.scorer_(search.best_estimator_, X, y)
    assert search.refit_time_ > 0
    plain = ParetoMKLClassifierCV(**grid, cv=3).fit(X, y)
    assert plain.score(X, y) == plain.best_estimator_.score(X, y)


def test_a_fold_that_fails_is_a_warning(two_classes):
    X, y = two_classes
    quarters = [test for _, test in StratifiedKFold(4).split(X, y)]
    folds = list(pairwise(quarters))  # each quarter is tested by the one before
    weight = np.ones(len(y))
    weight[quarters[0]] = 0.0
    search = ParetoMKLClassifierCV(ps=[1.0], Cs=[1.0, 10.0], cv=folds)
    lost = "(Sample weights must contain|has no sample of class 1 with)"  # old versions of scikit-learn let it pass
    with pytest.warns(
        FitFailedWarning, match=rf"failed in 1 of 3 folds \(error_score=nan\); the first error was: .*{lost}"
    ):
        search.fit(X, y, sample_weight=weight)
    assert np.isnan(search.cv_results_["split0_test_score"]).all()
    others = (search.cv_results_["split1_test_score"] + search.cv_results_["split2_test_score"]) / 2
    assert_allclose(search.cv_results_["mean_test_score"], others)
    with pytest.raises(ValueError, match=lost):
        search.set_params(error_score="raise").fit(X, y, sample_weight=weight)
    with pytest.warns(FitFailedWarning, match="error_score=0"):
        search.set_params(error_score=0.0).fit(X, y, sample_weight=weight)
    assert search.cv_results_["mean_test_score"].max() <= 2 / 3


def test_a_class_lost_in_a_fold_names_the_folds_that_keep_it(toy):
    """If rows are sorted by site, a fold can miss a whole site."""
    frame = pd.DataFrame(toy.X).assign(site=toy.tasks)
    frame.columns = [str(name) for name in frame.columns]
    search = GridSearchCV(ParetoMKLClassifier(task_column="site"), {"C": [1.0, 10.0]}, cv=KFold(3), error_score="raise")
    with pytest.raises(ValueError, match="MultiTaskStratifiedKFold"):
        search.fit(frame, toy.y)
    order = np.argsort(toy.y, kind="stable")  # sorted by label: a fold trains on one class of every task
    with pytest.raises(ValueError, match=r"has only one class.*MultiTaskStratifiedKFold"):
        search.set_params(cv=KFold(2)).fit(frame.iloc[order], toy.y[order])
