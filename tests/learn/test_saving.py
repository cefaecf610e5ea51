"""Every public estimator, in every form, predicts the same to the last bit after saving and loading."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from datetime import date
from typing import Any, Literal, get_args, get_origin

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone, is_outlier_detector, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import MultiOutputClassifier, RegressorChain
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import paretomkl
from paretomkl import baselines, load_model, save_model

pytest.importorskip("skops")
pytestmark = pytest.mark.filterwarnings("ignore")  # loose tolerances and few samples

rng = np.random.default_rng(0)
X = rng.random((36, 3))
TASKS = np.tile(["north", "south"], 18)
LABELS, NUMBERS = np.repeat([0, 1, 2], 12)[rng.permutation(36)], X @ [1.0, 2.0, 3.0] + rng.random(36)

ESTIMATORS = {
    name: found
    for module in (paretomkl, baselines)
    for name in module.__all__
    if isinstance(found := getattr(module, name), type) and hasattr(found, "fit") and hasattr(found, "predict")
}
CHEAP = {"tol": 0.1, "cv": 2, "ps": 1.0, "Cs": [1.0], "sigmas": [1.0], "capacity": 0.5, "max_search_rows": None}


def product_kernel(A, B):
    return (A @ B.T) ** 2


def options(kind: type) -> Iterator[dict[str, Any]]:
    """One parameter at a time, each word that its annotation lists."""
    for name, parameter in inspect.signature(kind).parameters.items():
        hint = str(parameter.annotation)
        aliases = [getattr(inspect.getmodule(kind), word, None) for word in re.findall(r"\w+", hint)]
        words = [word for alias in aliases if get_origin(alias) is Literal for word in get_args(alias)]
        for word in dict.fromkeys([*re.findall(r"['\"]([^'\"]+)['\"]", hint), *words]):
            if name not in CHEAP:
                yield {name: word}


def cheap(kind: type, **given: Any) -> Any:
    known = inspect.signature(kind).parameters
    return kind(**{name: value for name, value in CHEAP.items() if name in known} | given)


def forms(kind: type) -> dict[str, tuple[Any, Any, dict[str, Any], dict[str, Any]]]:
    """X, y, parameters, and further arguments of ``fit`` and ``predict``, for every form of the data."""
    numbers, outliers = is_regressor(kind()), is_outlier_detector(kind())
    y = None if outliers else NUMBERS if numbers else LABELS
    two = y if numbers or outliers else LABELS > 0
    made = {
        "one y": (X, y, {}, {}),
        "tasks": (X, y, {}, {"tasks": TASKS}),
        "task column": (np.column_stack([X, TASKS == "north"]), two, {"task_column": 3}, {}),
    }
    if not outliers:
        made["matrix"] = X, np.column_stack([two, two[::-1]]), {}, {}
    if "kernels" in inspect.signature(kind).parameters:
        own, named = [product_kernel, paretomkl.Gaussian(1.0)], paretomkl.sources({"a": [0], "b": [1, 2]})
        made["own kernel"] = X, two, {"kernels": own}, {"tasks": TASKS}
        made["paper kernels"] = X, two, {"kernels": "paper"}, {"tasks": TASKS}
        made["sources"] = X, two, {"kernels": named}, {}
        made["precomputed"] = np.stack([X @ X.T, np.exp(X @ X.T)], axis=2), two, {"kernels": "precomputed"}, {}
    return made


def check_saving(model: Any, X: Any, file: Any, **given: Any) -> None:
    save_model(model, file)
    again = load_model(file, trusted=[f"{__name__}.product_kernel"])
    assert type(again) is type(model)
    for method in ("predict", "decision_function", "predict_proba", "score_samples"):
        if hasattr(model, method):
            assert_array_equal(getattr(again, method)(X, **given), getattr(model, method)(X, **given))


@pytest.mark.parametrize(
    ("name", "form"), [(name, form) for name, kind in ESTIMATORS.items() for form in forms(kind)], ids=str
)
def test_every_form_of_data(name, form, tmp_path):
    data, y, parameters, given = forms(ESTIMATORS[name])[form]
    model = cheap(ESTIMATORS[name], **parameters).fit(data, y, **given)
    check_saving(model, data, tmp_path / "model.skops", **given)


@pytest.mark.parametrize(
    ("name", "option"), [(name, option) for name, kind in ESTIMATORS.items() for option in options(kind)], ids=str
)
def test_every_option(name, option, tmp_path):
    data, y, _, given = forms(ESTIMATORS[name])["tasks"]
    check_saving(cheap(ESTIMATORS[name], **option).fit(data, y, **given), data, tmp_path / "model.skops", **given)


def test_the_options_are_found():
    assert {"share": "function"} in options(paretomkl.ParetoMKLClassifierCV)
    assert {"loss": "epsilon_insensitive"} in options(baselines.IndependentMKLRegressor)


OURS = cheap(paretomkl.ParetoMKLClassifier)
REGRESSOR = cheap(paretomkl.ParetoMKLRegressor)
TWO = LABELS > 0
AROUND = {
    "calibrated": (CalibratedClassifierCV(OURS, cv=2), LABELS),
    "calibrated once": (CalibratedClassifierCV(OURS, cv=2, ensemble=False), TWO),
    "isotonic": (CalibratedClassifierCV(OURS, method="isotonic", cv=2), LABELS),
    "pipeline": (make_pipeline(StandardScaler(), SelectKBest(k=2), OURS), LABELS),
    "one vs rest": (OneVsRestClassifier(OURS), LABELS),
    "one vs one": (OneVsOneClassifier(OURS), LABELS),
    "output codes": (OutputCodeClassifier(OURS, random_state=0), LABELS),
    "outputs": (MultiOutputClassifier(OURS), np.column_stack([TWO, ~TWO])),
    "bagging": (BaggingClassifier(OURS, 2, random_state=0), LABELS),
    "voting": (VotingClassifier([("ours", OURS)]), LABELS),
    "stacking": (StackingClassifier([("ours", OURS)], LogisticRegression(), cv=2), LABELS),
    "threshold": (TunedThresholdClassifierCV(OURS, cv=2), TWO),
    "search": (
        GridSearchCV(make_pipeline(StandardScaler(), OURS), {"paretomklclassifier__C": np.ones(1)}, cv=2),
        LABELS,
    ),
    "two scores": (GridSearchCV(OURS, {"C": [1.0]}, cv=2, scoring=["accuracy", "f1_macro"], refit="accuracy"), LABELS),
    "logarithm of y": (TransformedTargetRegressor(REGRESSOR, func=np.log, inverse_func=np.exp), NUMBERS),
    "chain": (RegressorChain(REGRESSOR), np.column_stack([NUMBERS, -NUMBERS])),
}


@pytest.mark.parametrize("name", AROUND)
def test_estimators_of_scikit_learn_around_ours(name, tmp_path):
    model, y = AROUND[name]
    check_saving(clone(model).fit(X, y), X, tmp_path / "model.skops")


def test_parameters_may_be_numpy_scalars(tmp_path):
    scalars = {"C": np.float64(3), "p": np.float32(2), "s": np.int64(2), "tol": np.float64(0.1), "n_jobs": np.int64(1)}
    check_saving(paretomkl.ParetoMKLClassifier(**scalars).fit(X, LABELS), X, tmp_path / "model.skops")


@pytest.mark.parametrize(
    "names",
    [
        np.array([1, 2]),
        np.array([True, False]),
        np.array([1.5, 2.5]),
        np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]"),
        np.array([date(2020, 1, 1), date(2021, 1, 1)], dtype=object),
        np.array([1, "one"], dtype=object),
    ],
    ids=lambda names: str(names[0]),
)
def test_tasks_may_have_labels_of_any_type(names, tmp_path):
    tasks = names[(TASKS == "north").astype(int)]
    for share in ("kernel", "function"):
        model = cheap(paretomkl.ParetoMKLClassifier, share=share).fit(X, TWO, tasks=tasks)
        check_saving(model, X, tmp_path / "model.skops", tasks=tasks)


def test_paths_and_their_models(tmp_path):
    path = paretomkl.pareto_path(X, LABELS, ps=[1.0, np.inf], tasks=TASKS, tol=0.1)
    save_model(path, tmp_path / "path.skops")
    for model, again in zip(path.models, load_model(tmp_path / "path.skops").models, strict=True):
        assert_array_equal(again.decisions(X, TASKS), model.decisions(X, TASKS))
