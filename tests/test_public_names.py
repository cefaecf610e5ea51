"""Tab completion and ``dir()`` show what the reference documents, and nothing else."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin, TransformerMixin

import paretomkl
from paretomkl import protocols
from paretomkl._tools.public import internal_names

INDEX = Path(__file__).parent.parent / "doc" / "api" / "index.md"
OF_SKLEARN = {"n_features_in_", "feature_names_in_"} | {
    name
    for kind in (BaseEstimator, ClassifierMixin, RegressorMixin, OutlierMixin, TransformerMixin)
    for name in dir(kind)
}
OF_PROTOCOLS = {name for kind in vars(protocols).values() if inspect.isclass(kind) for name in dir(kind)}


def referenced() -> Iterator[type]:
    """The classes of the reference."""
    module = "paretomkl"
    for line in INDEX.read_text(encoding="utf-8").splitlines():
        if found := re.match(r"\.\. currentmodule:: ([\w.]+)", line):
            module = found[1]
        elif found := re.fullmatch(r" {3}([\w.]+)", line):
            folder, _, name = f"{module}.{found[1]}".rpartition(".")
            one = getattr(importlib.import_module(folder), name)
            if inspect.isclass(one) and not issubclass(one, Exception):
                yield one


CLASSES = sorted(set(referenced()), key=lambda kind: kind.__qualname__)


def public(names: list[str]) -> set[str]:
    return {name for name in names if not name.startswith("_") and not re.fullmatch(r"set_\w+_request", name)}


def sections(kind: type) -> set[str]:
    """The names under Parameters and Attributes in the docstrings of a class and its bases."""
    found: set[str] = set()
    for base in kind.__mro__:
        lines, section = inspect.cleandoc(vars(base).get("__doc__") or "").splitlines(), ""
        for line, after in zip(lines, [*lines[1:], ""], strict=True):
            if re.fullmatch("-{3,}", after):
                section = line
            elif section in ("Parameters", "Attributes") and re.match(r"\w", line):
                found |= set(re.split(r",\s*", line.split(" : ")[0]))
    like = {
        "As in :class:`ParetoMKLClassifierCV`": paretomkl.ParetoMKLClassifierCV,
        "As in :class:`ParetoMKLRegressor`": paretomkl.ParetoMKLRegressor,
        "As in ``best_estimator_``": paretomkl.ParetoMKLClassifier,
    }
    for words, other in like.items():
        if words in (inspect.getdoc(kind) or ""):
            found |= {name for name in sections(other) if name.endswith("_")}
    return found


def has_text(kind: type, name: str) -> bool:
    """Whether the reference has an entry for a method or property."""
    member = inspect.getattr_static(kind, name, None)
    if inspect.isdatadescriptor(member) or inspect.isroutine(member) or hasattr(member, "func"):
        return bool(inspect.getdoc(getattr(kind, name)) or member.__doc__)
    return callable(getattr(kind, name, None)) and bool(getattr(kind, name).__doc__)


def undocumented(names: list[str], kind: type) -> set[str]:
    known = sections(kind) | OF_SKLEARN | OF_PROTOCOLS
    return {name for name in public(names) - known if not has_text(kind, name)}


def shown(kind: type) -> list[str]:
    """What ``dir()`` shows of an object of a class, before it has attributes of its own."""
    try:
        return dir(object.__new__(kind))
    except TypeError:  # abstract
        return dir(kind)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__qualname__)
def test_classes_show_what_the_reference_documents(kind):
    assert undocumented(shown(kind), kind) == set()
    internal = {name for base in kind.__mro__ for name in vars(base).get("_internal", ())}
    assert not sections(kind) & internal, "documented but not shown"


def test_the_reference_was_read():
    assert {paretomkl.ParetoPath, paretomkl.ParetoMKLClassifierCV, paretomkl.KernelBank} <= set(CLASSES)
    assert len(CLASSES) > 60


@pytest.fixture(scope="module")
def objects() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    X, tasks = rng.standard_normal((60, 4)), np.array(["a", "b"])[np.arange(60) % 2]
    y = X[:, 0] + X[:, 1] > 0
    search = paretomkl.ParetoMKLClassifierCV(ps=1.0, Cs=1.0, cv=2, share=["nothing", "kernel"]).fit(X, y, tasks=tasks)
    numbers = paretomkl.ParetoMKLRegressorCV(ps=1.0, Cs=1.0, cv=2, share="function").fit(X, X[:, 0], tasks=tasks)
    path = paretomkl.pareto_path(X, y, tasks=tasks, ps=[1.0, 2.0], verbose=0)
    return {
        "search": search,
        "search of numbers": numbers,
        "classifier": paretomkl.ParetoMKLClassifier(probability=True).fit(X, y, tasks=tasks),
        "regressor": paretomkl.ParetoMKLRegressor(share="everything").fit(X, X[:, 0], tasks=tasks),
        "detector": paretomkl.ParetoMKLOutlierDetector().fit(X),
        "path": path,
        "importance": paretomkl.inspection.importance(search, X, y, tasks=tasks, by="column", n_repeats=1),
        "scores": paretomkl.model_selection.score_by_task(search, X, y, tasks=tasks),
        "bank": paretomkl.KernelBank("default"),
        "kernel": paretomkl.Gaussian(1.0),
        "model": path.models[0],
        "encoder": paretomkl.TableEncoder().fit(X),
        "baseline": paretomkl.baselines.IndependentMKL().fit(X, y, tasks=tasks),
    }


NAMES = ("search", "search of numbers", "classifier", "regressor", "detector", "path", "importance", "scores", "bank")


@pytest.mark.parametrize("name", [*NAMES, "kernel", "model", "encoder", "baseline"])
def test_fitted_objects_show_what_the_reference_documents(objects, name):
    one = objects[name]
    assert undocumented(dir(one), type(one)) == set()


def test_no_internal_name_is_shown_anywhere(objects):
    """Names are internal in every class or in none, since the reference leaves them out by name."""
    for kind in CLASSES:
        documented = {name for name in public(shown(kind)) if has_text(kind, name)}
        assert not documented & internal_names(), kind
    for one in objects.values():
        assert not {"read_data", "parts", "problem", "learned", "reading", "choose"} & set(dir(one))


def test_internal_names_still_work(objects):
    search = objects["search"]
    assert "learned" not in dir(search)
    assert callable(search.learned)
    assert "fit" in dir(search)
    assert "__class__" in dir(search)
    assert "_repr_html_" in dir(search)


def test_the_package_shows_its_parts_only():
    assert "TYPE_CHECKING" not in dir(paretomkl)
    assert set(paretomkl.__all__) <= set(dir(paretomkl))
