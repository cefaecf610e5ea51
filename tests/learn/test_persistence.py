"""Saved models: the same predictions, complete files, no foreign code."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import subprocess
import sys
from zipfile import ZipFile

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_wine
from sklearn.gaussian_process.kernels import RBF, Matern
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import paretomkl
from paretomkl import Cosine, Custom, Gaussian, KernelBank, Laplacian, Linear, ParetoMKLClassifier, Polynomial, sources
from paretomkl._learn.saving import OWN_FUNCTIONS, _is_trusted

skops = pytest.importorskip("skops.io")

X, y = load_wine(return_X_y=True)
X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
TASKS = np.where(np.arange(len(y)) % 2, "odd", "even")


def own_kernel(A, B):
    return (A @ B.T) ** 2


MODELS = {
    "plain": ParetoMKLClassifier(p=0.5),
    "every kernel": ParetoMKLClassifier(
        kernels=KernelBank([Gaussian(0.5, columns=[0, 3]), Linear(), Laplacian(0.2), Polynomial(3), Cosine()])
    ),
    "search": paretomkl.ParetoMKLClassifierCV(ps=[0.1, np.inf], Cs=[1.0, 10.0], cv=2),
    "search by another score": paretomkl.ParetoMKLClassifierCV(
        ps=[1.0], Cs=[1.0], cv=StratifiedKFold(2), scoring=paretomkl.model_selection.make_multitask_scorer("f1_macro")
    ),
    "grid search": GridSearchCV(ParetoMKLClassifier(), {"C": [1.0, 10.0]}, cv=2),
    "grid search on our folds": GridSearchCV(
        ParetoMKLClassifier(),
        {"C": [1.0, 10.0]},
        cv=paretomkl.model_selection.MultiTaskKFold(2, shuffle=True, random_state=0),
    ),
    "grid search on our splits": GridSearchCV(
        ParetoMKLClassifier(), {"C": [1.0]}, cv=paretomkl.model_selection.MultiTaskShuffleSplit(2, random_state=0)
    ),
    "grid search by name": GridSearchCV(ParetoMKLClassifier(), {"C": [1.0, 10.0]}, cv=2, scoring="f1_macro"),
    "kernels of scikit-learn": ParetoMKLClassifier(kernels=[RBF(1.0), 2.0 * Matern(1.0), RBF(0.5) + RBF(0.1)]),
    "sources": ParetoMKLClassifier(kernels=sources({"left": slice(0, 6), "right": [6, 7, 8]})),
    "pipeline": make_pipeline(SimpleImputer(), MinMaxScaler(), ParetoMKLClassifier(C=10)),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_saved_model_loads_unchanged(name, tmp_path):
    model = MODELS[name].fit(X, y)
    paretomkl.save_model(model, tmp_path / "model.skops")
    again = paretomkl.load_model(tmp_path / "model.skops")
    assert type(again) is type(model)
    assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert_array_equal(again.predict(X), model.predict(X))
    assert [file.name for file in tmp_path.iterdir()] == ["model.skops"]


def test_saved_tasks_and_words_load_unchanged(tmp_path):
    words = np.array(["red", "white", "rosé"])[y]
    model = ParetoMKLClassifier().fit(X, words, tasks=TASKS)
    paretomkl.save_model(model, tmp_path / "model.skops")
    again = paretomkl.load_model(tmp_path / "model.skops")
    assert_array_equal(again.predict(X, tasks=TASKS), model.predict(X, tasks=TASKS))
    assert again.task_names_ == model.task_names_
    with pytest.raises(ValueError, match="Unknown task 'new'"):
        again.predict(X[:1], tasks=["new"])


def test_foreign_code_is_refused_unless_named(tmp_path):
    model = ParetoMKLClassifier(kernels=[Custom(function=own_kernel), Gaussian(1.0)]).fit(X, y)
    paretomkl.save_model(model, tmp_path / "model.skops")
    with pytest.raises(ValueError, match=r"untrusted types: .*own_kernel") as refusal:
        paretomkl.load_model(tmp_path / "model.skops")
    (foreign,) = str(refusal.value).split("untrusted types: ")[1].split(". If")[0].split(", ")
    again = paretomkl.load_model(tmp_path / "model.skops", trusted=[foreign])
    assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize(
    "name",
    [
        "builtins.eval",
        "subprocess.Popen",
        "sklearn.tree._tree.Tree",  # its nodes are indices that compiled code does not check
        "scipy.stats._distn_infrastructure.rv_continuous_frozen",  # compiles text from its state
        "paretomkl.__main__.app",
        "paretomkl._learn.saving.save_model",
        "paretomkl._learn.saving.ZipFile",
        "paretomkl.cli._running.Output",
        "paretomkl.distributed._workers.Workers",
        "paretomkl._fitting.models.nowhere",
        "paretomkl.nowhere.TaskModel",
        "paretomkl_of_a_stranger.TaskModel",
        "paretomkl._fitting.models.TaskModel.predict",
    ],
)
def test_code_and_what_acts_are_not_trusted(name):
    assert not _is_trusted(name)


def test_trusted_types_of_this_library_only_hold_data():
    """Loading may call a trusted type with any arguments, so it must not act when it is created or thrown away."""
    trusted = []
    for module in pkgutil.walk_packages(paretomkl.__path__, "paretomkl."):
        if module.name.endswith("__main__"):
            continue
        try:
            loaded = importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            if error.name == "torch":  # the modules for devices cannot be loaded without PyTorch
                continue
            raise
        for kind in vars(loaded).values():
            if inspect.isclass(kind) and _is_trusted(f"{module.name}.{kind.__name__}"):
                trusted.append(kind)
    assert {ParetoMKLClassifier, Gaussian, paretomkl.TaskModel} <= set(trusted)
    acting = [kind for kind in trusted if {"__setstate__", "__reduce__", "__reduce_ex__", "__del__"} & set(vars(kind))]
    assert not acting
    for name in OWN_FUNCTIONS:
        module, _, function = name.rpartition(".")
        assert inspect.isfunction(getattr(importlib.import_module(module), function))


@pytest.mark.parametrize("function", [subprocess.Popen, paretomkl.datasets.fetch], ids=lambda one: one.__name__)
def test_functions_in_place_of_kernels_are_named_and_refused(function, tmp_path):
    model = ParetoMKLClassifier(kernels=[Custom(function=function)])
    paretomkl.save_model(model, tmp_path / "model.skops")
    with pytest.raises(ValueError, match=rf"untrusted types: [\w.]*{function.__name__}\."):
        paretomkl.load_model(tmp_path / "model.skops")


def test_a_model_that_could_not_be_loaded_is_not_saved(tmp_path):
    model = ParetoMKLClassifier(kernels=[lambda A, B: A @ B.T]).fit(X, y)
    with pytest.raises(ValueError, match=r"cannot be saved.*<lambda>"):
        paretomkl.save_model(model, tmp_path / "model.skops")
    assert not list(tmp_path.iterdir())


def part_of(model, kind):
    return next(
        part
        for part in (model, model.bank, model.tasks, model.bank.evaluator.standardizer)
        if type(part).__name__ == kind
    )


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("TaskModel", "theta"),
        ("TaskModel", "dual"),
        ("TaskModel", "intercepts"),
        ("FittedBank", "factor"),
        ("Targets", "spread"),
        ("Standardizer", "mean"),
    ],
)
def test_models_with_nan_or_infinity_are_refused(kind, field, value, tmp_path):
    model = make_pipeline(MinMaxScaler(), paretomkl.ParetoMKLRegressor()).fit(X, y)
    numbers = vars(part_of(model[-1].model_, kind))[field]
    (numbers.data if field == "dual" else numbers)[0] = value
    paretomkl.save_model(model, tmp_path / "model.skops")
    if (kind, value) == ("Standardizer", np.inf):  # an infinite scale makes a constant column zero
        return
    with pytest.raises(ValueError, match=f"{field} of its {kind} has NaN"):
        paretomkl.load_model(tmp_path / "model.skops")


def test_files_record_versions_and_other_formats_are_refused(tmp_path):
    model = ParetoMKLClassifier().fit(X, y)
    paretomkl.save_model(model, tmp_path / "model.skops")
    with ZipFile(tmp_path / "model.skops") as archive:
        recorded = json.loads(archive.read("versions.json"))
    assert recorded["paretomkl"] == paretomkl.__version__
    assert recorded["numpy"] == np.__version__
    skops.dump(model, tmp_path / "foreign.skops")
    with pytest.raises(ValueError, match=r"has no versions\.json: save_model did not write it"):
        paretomkl.load_model(tmp_path / "foreign.skops")
    for number, advice in ((0, "fit the model again"), (99, "update paretomkl")):
        with ZipFile(tmp_path / "foreign.skops") as whole, ZipFile(tmp_path / "other.skops", "w") as other:
            for name in whole.namelist():
                other.writestr(name, whole.read(name))
            other.writestr("versions.json", json.dumps(recorded | {"format": number}))
        with pytest.raises(ValueError, match=f"has format {number}, and .* reads format 1: .* wrote it; {advice}"):
            paretomkl.load_model(tmp_path / "other.skops")


def test_a_file_of_another_version_is_named(tmp_path):
    """Arrays in another format stand for any change that makes a file unreadable."""
    paretomkl.save_model(ParetoMKLClassifier(kernels=[Gaussian(1.0)]).fit(X, y), tmp_path / "model.skops")
    with ZipFile(tmp_path / "model.skops") as whole, ZipFile(tmp_path / "changed.skops", "w") as changed:
        for name in whole.namelist():
            content = b"another format" if name.endswith(".npy") else whole.read(name)
            changed.writestr(name, b'{"paretomkl": "9.9"}' if name == "versions.json" else content)
    with pytest.raises(ValueError, match=r"paretomkl 9\.9 wrote it"):
        paretomkl.load_model(tmp_path / "changed.skops")


def test_a_failed_write_leaves_nothing_behind(tmp_path, monkeypatch):
    (tmp_path / "model.skops").write_bytes(b"before")
    model = ParetoMKLClassifier().fit(X, y)
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        paretomkl.save_model(model, tmp_path / "model.skops")
    assert [file.name for file in tmp_path.iterdir()] == ["model.skops"]
    assert (tmp_path / "model.skops").read_bytes() == b"before"


def test_files_that_are_not_models_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file"):
        paretomkl.load_model(tmp_path / "absent.skops")
    (tmp_path / "text.skops").write_text("hello")
    with pytest.raises(ValueError, match="not a saved model"):
        paretomkl.load_model(tmp_path / "text.skops")
    paretomkl.save_model(ParetoMKLClassifier().fit(X, y), tmp_path / "whole.skops")
    content = (tmp_path / "whole.skops").read_bytes()
    (tmp_path / "cut.skops").write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="not a saved model"):
        paretomkl.load_model(tmp_path / "cut.skops")


def test_a_missing_library_is_named(tmp_path):
    code = (
        "import sys; sys.modules['skops'] = None; sys.modules['skops.io'] = None; import paretomkl; "
        f"paretomkl.load_model({str(tmp_path / 'x.skops')!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'paretomkl[save]'" in done.stderr


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no folder '.*absent' to write 'model.skops' into"):
        paretomkl.save_model(ParetoMKLClassifier().fit(X, y), tmp_path / "absent" / "model.skops")
