"""Every public object has a complete docstring: what it is, its parameters, what it returns, and an example."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

validate = pytest.importorskip("numpydoc.validate").validate
REFERENCE = Path(__file__).resolve().parents[1] / "doc" / "api" / "index.md"


def listed() -> list[str]:
    """The names that the reference lists, with their modules."""
    module, names = "", []
    for line in REFERENCE.read_text("utf-8").splitlines():
        if found := re.fullmatch(r"\.\. currentmodule:: (\S+)", line):
            module = found[1]
        elif found := re.fullmatch(r"   ([A-Za-z_.]+)", line):
            names.append(f"{module}.{found[1]}")
    return names


NAMES = listed()
# Return values of functions, and protocols of parts: the example is at the function or on the page about parts.
RESULTS = {
    *(f"paretomkl.report.{name}" for name in ("TradeOff", "Comparison", "Contender", "Sharing", "Predictions")),
    *(f"paretomkl.report.{name}" for name in ("TaskErrors", "CrossValidation", "Measure", "Confusion")),
    *(f"paretomkl.distributed.{name}" for name in ("SiteModel", "RemoteTasks")),
    *(f"paretomkl.tables.{name}" for name in ("Table", "Columns", "TableError")),
    *(f"paretomkl.{name}" for name in ("sweep.Sweep", "sweep.Decisions", "solution.Solution")),
    *(f"paretomkl.gram.{name}" for name in ("CombinedGram", "TaskLayout")),
    *(name for name in NAMES if name.startswith("paretomkl.protocols.")),
}
# You make machines like SVCTasks, and the example of MultiTaskProblem shows how.
MACHINES = {name for name in NAMES if name.startswith("paretomkl.machines.")}
CHECKS = {
    "GL08": "a docstring",
    "SS01": "a first line",
    "PR01": "every parameter",
    "PR02": "no parameter that is not there",
    "RT01": "what is returned",
    "RT03": "a word about what is returned",
    "EX01": "an example",
}


def find(name: str) -> Any:
    """The object of a dotted name; modules are imported on the way."""
    module, _, rest = name.rpartition(".")
    try:
        return getattr(importlib.import_module(module), rest)
    except ImportError:
        return getattr(find(module), rest)


def attributes(name: str) -> set[str]:
    """The names in the section Attributes, where dataclasses describe their fields."""
    section = re.search(r"Attributes\n +-+\n(.*?)(?:\n\n|\Z)", find(name).__doc__ or "", re.S)
    heads = re.findall(r"^ {4}(\w[\w, ]*?)(?: :.*)?$", section[1], re.M) if section else []
    return {part.strip() for head in heads for part in head.split(",")}


def flaws(name: str) -> list[str]:
    found = []
    for code, message in validate(name)["errors"]:
        if code not in CHECKS or (code == "EX01" and name in RESULTS | MACHINES):
            continue
        if code == "PR01":
            missing = set(re.findall(r"'([^']+)'", message)) - attributes(name)
            if not missing or (name.startswith("paretomkl.protocols.") and missing <= {"*args", "**kwargs"}):
                continue
            message = f"Parameters {sorted(missing)} not documented"
        found.append(f"{message} ({code}: {CHECKS[code]})")
    return found


def test_the_reference_lists_objects():
    assert len(NAMES) > 80
    assert set(NAMES) >= RESULTS


@pytest.mark.parametrize("name", NAMES)
def test_docstring_is_complete(name):
    assert not flaws(name)
