"""The pages of the benchmarks."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import MultiTaskLasso, Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from paretomkl.model_selection import MultiTaskKFold

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "benchmarks"))  # where they find each other
GRID = {"alpha": [0.01, 0.1, 1.0], "gamma": [0.1, 1.0]}


def load(name):
    spec = importlib.util.spec_from_file_location(f"benchmarks_{name}", ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look up their types
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def report():
    return load("report")


def numbers(page: Path) -> list[int]:
    return [int(number) for number in re.findall(r"^## (\d+)\. ", page.read_text(encoding="utf-8"), re.MULTILINE)]


def test_sections_are_in_numerical_order(report, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "machine", lambda: "a machine")
    files = tmp_path / "results.json", tmp_path / "page.md"
    for key in ("10", "2", "1"):
        page = report.Page("Title", "Introduction", *files)
        with page.section(key, f"{key}. Title", "Text", "command"):
            pass
    assert numbers(files[1]) == [1, 2, 10]
    assert list(report.Page("Title", "Introduction", *files).sections) == ["1", "2", "10"]


def test_the_benchmark_page_matches_its_results(report):
    results = ROOT / "benchmarks" / "results.json"
    page = ROOT / "doc" / "benchmarks.md"
    assert numbers(page) == list(range(1, 12))
    body = report.Page("Benchmarks", "", results, page).markdown().partition("Machine")[2]
    assert page.read_text(encoding="utf-8").partition("Machine")[2] == body


def test_the_regression_tables_match_their_results():
    tables = load("regression").report(ROOT / "doc" / "experiments" / "regression.json.gz")
    page = (ROOT / "doc" / "regression.md").read_text(encoding="utf-8")
    found = page.partition("<!-- begin regression -->")[2].partition("<!-- end regression -->")[0]
    assert "| **paretomkl**, the default search |" in found
    assert found.strip() == tables.strip()


def test_the_table_of_rules_matches_its_results():
    table = load("sharing_rule").report(ROOT / "doc" / "experiments" / "sharing-rule.json.gz")
    page = (ROOT / "doc" / "sharing_results.md").read_text(encoding="utf-8")
    assert page.partition("<!-- begin rules -->")[2].partition("<!-- end rules -->")[0].strip() == table.strip()


@pytest.mark.parametrize(
    ("script", "results", "page", "place"),
    [
        ("views", "views.json", "accuracy.md", "views"),
        ("views", "losses.json", "accuracy.md", "losses"),
        ("sharing", "sharing.json.gz", "sharing_results.md", "sharing"),
        ("small_tasks", "small_tasks.json", "sharing_results.md", "small tasks"),
    ],
)
def test_the_tables_of_accuracy_match_their_results(script, results, page, place, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [script, "report", str(ROOT / "doc" / "experiments" / results)])
    load(script).main()
    text = (ROOT / "doc" / page).read_text(encoding="utf-8")
    shown = text.partition(f"<!-- begin {place} -->")[2].partition(f"<!-- end {place} -->")[0]
    assert shown.strip() == capsys.readouterr().out.strip()


# ------------------------------------------------------------------------------- regressors of scikit-learn, by task
@pytest.fixture(scope="module")
def taskwise():
    return load("taskwise").TaskwiseRegressor


@pytest.fixture
def table():
    """Three tasks of 14 to 20 samples with their own means, scales and functions."""
    rng = np.random.default_rng(0)
    tasks = np.repeat(["a", "b", "c"], [20, 17, 14])
    X = rng.standard_normal((51, 4)) * [1, 10, 0.1, 1]
    slope = np.repeat([1.0, -2.0, 30.0], [20, 17, 14])
    return X, slope * (np.sin(X[:, 0]) + 0.1 * X[:, 1] + 0.2 * X[:, 3]) + 5 * (tasks == "b"), tasks


@pytest.mark.parametrize("scoring", ["r2", "neg_mean_squared_error"])
def test_each_task_chooses_as_grid_search_does(taskwise, table, scoring):
    X, y, tasks = table
    folds = list(MultiTaskKFold(4, shuffle=True, random_state=3).split(X, y, tasks=tasks))
    model = taskwise(KernelRidge(kernel="rbf"), GRID, each=True, cv=folds, scoring=scoring, normalize_y=False)
    model.fit(X, y, tasks=tasks)
    pipeline = make_pipeline(StandardScaler(), KernelRidge(kernel="rbf"))
    named = {f"kernelridge__{name}": values for name, values in GRID.items()}
    for t, task in enumerate("abc"):
        mine = np.flatnonzero(tasks == task)
        place = {row: k for k, row in enumerate(mine)}
        own = [tuple([place[row] for row in part if row in place] for part in fold) for fold in folds]
        search = GridSearchCV(pipeline, named, cv=own, scoring=scoring).fit(X[mine], y[mine])
        assert_allclose(model.cv_scores_[t], search.cv_results_["mean_test_score"])
        assert {f"kernelridge__{name}": value for name, value in model.best_params_[t].items()} == search.best_params_
        assert_allclose(model.predict(X[mine], tasks=tasks[mine]), search.predict(X[mine]))


def test_pooled_is_one_search_with_a_column_for_each_task(taskwise, table):
    X, y, tasks = table
    folds = list(KFold(4, shuffle=True, random_state=0).split(X))
    given = {"form": "pooled", "cv": folds, "scoring": "neg_mean_squared_error"}
    plain = {"standardize": False, "normalize_y": False}
    model = taskwise(Ridge(), {"alpha": [0.1, 1.0, 10.0]}, **given, **plain).fit(X, y, tasks=tasks)
    wide = np.hstack([X, np.array(["a", "b", "c"]) == tasks[:, None]])
    order = np.argsort(tasks, kind="stable")
    assert (order == np.arange(51)).all()
    alpha = model.best_params_["alpha"]
    assert_allclose(model.predict(X, tasks=tasks), Ridge(alpha=alpha).fit(wide, y).predict(wide))
    for k, candidate in enumerate([0.1, 1.0, 10.0]):
        errors = []
        for train, test in folds:
            found = (Ridge(alpha=candidate).fit(wide[train], y[train]).predict(wide[test]) - y[test]) ** 2
            errors.append([found[tasks[test] == task].mean() for task in "abc"])
        assert_allclose(model.cv_scores_[:, k], -np.mean(errors, axis=0))


def test_joint_outputs_match_a_grid_search(taskwise, table):
    X, _, _ = table
    Y = X @ np.random.default_rng(1).standard_normal((4, 3)) + [0, 10, -100]
    folds = list(KFold(3).split(X))
    model = taskwise(MultiTaskLasso(), {"alpha": [0.01, 0.1, 1.0]}, form="joint", cv=folds, normalize_y=False)
    model.fit(X, Y)
    pipeline = make_pipeline(StandardScaler(), MultiTaskLasso())
    search = GridSearchCV(pipeline, {"multitasklasso__alpha": [0.01, 0.1, 1.0]}, cv=folds).fit(X, Y)
    assert_allclose(model.cv_scores_.mean(axis=0), search.cv_results_["mean_test_score"])
    assert_allclose(model.predict(X), search.predict(X))
    assert_allclose(model.score(X, Y), search.score(X, Y))
