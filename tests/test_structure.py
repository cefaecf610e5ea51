"""The structure of the code: imports go one way, public modules declare what is public, functions stay short."""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

import paretomkl

PACKAGE = Path(paretomkl.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
DOC = Path(__file__).resolve().parents[1] / "doc"


def is_public(file: Path) -> bool:
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    return not any(part.startswith("_") and part != "__init__" for part in parts)


def name_of(file: Path) -> str:
    return str(file.relative_to(PACKAGE))


def top_level_names(tree: ast.Module) -> list[str]:
    names: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.append(node.target.id)
    return names


def test_imports_run_one_way(monkeypatch):
    """Including lazy imports; pyproject.toml lists the layers."""
    monkeypatch.chdir(PACKAGE.parent)
    assert lint_imports(no_cache=True) == EXIT_STATUS_SUCCESS


@pytest.mark.parametrize("file", [file for file in MODULES if is_public(file)], ids=name_of)
def test_public_modules_say_what_is_public(file):
    tree = ast.parse(file.read_text())
    listed = next(
        (
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
        ),
        [],
    )
    listed = [*listed, "TYPE_CHECKING"]  # defined by hand if importing typing would take too long
    stray = [name for name in top_level_names(tree) if not name.startswith("_") and name not in listed]
    assert not stray, f"{stray} should be in __all__, begin with an underscore, or live in a private module"


def length(function: ast.FunctionDef) -> int:
    """Lines of a function without its docstring."""
    lines = function.end_lineno - function.lineno + 1
    first = function.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str)
    return lines - (first.end_lineno - first.lineno + 1) * documented


@pytest.mark.parametrize("file", MODULES, ids=name_of)
def test_functions_are_short(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef):
            compiled = any("njit" in ast.unparse(decorator) for decorator in node.decorator_list)
            assert length(node) <= (80 if compiled else 60), f"{node.name} has {length(node)} lines"


# A solver may look at the type of its own state, and at the edge of the library it finds out what it was given.
OWN_OR_GIVEN = {"isinstance(given, str)", "isinstance(given, MachineKind)"}
OWN_OR_GIVEN |= {"isinstance(solver, str)", "isinstance(solver, PathSolver)", "hasattr(solver, 'solve')"}
OWN_OR_GIVEN |= {
    f"isinstance({state}, {kind})" for state in ("pool", "carried", "solution.state") for kind in ("Pool", "Few")
}
FORMULA = [*(PACKAGE / "solvers").glob("*.py"), *(PACKAGE / "machines").glob("*.py")]
FORMULA += [PACKAGE / f"{name}.py" for name in ("problem", "sweep", "scalarizations", "weight_sets", "gram/_blocks")]


@pytest.mark.parametrize("file", FORMULA, ids=name_of)
def test_parts_do_not_guess_about_each_other(file):
    """What a part offers is a member of its protocol, so that a part of someone else is never misjudged."""
    calls = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
    guesses = [ast.unparse(c) for c in calls if ast.unparse(c.func) in ("hasattr", "isinstance", "getattr")]
    assert not [guess for guess in guesses if guess not in OWN_OR_GIVEN]


def test_a_call_enters_few_modules(tmp_path):
    """The way of X and y through the package stays short enough to follow; tools/walk.py prints it."""
    tool = runpy.run_path(str(DOC.parent / "tools" / "walk.py"))
    calls = tool["calls"](tmp_path)
    most = {"predict": 10, "fit": 25, "pareto_path": 25, "search": 34}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in most:
            calls[name]()  # the first call may compile
        entered = {name: tool["walk"](calls[name])[0] for name in most}
    assert {name: sorted(modules) for name, modules in entered.items() if len(modules) > most[name]} == {}


def test_the_guide_to_the_code_names_every_room_and_no_other_module():
    graph = runpy.run_path(str(DOC / "module_graph.py"))
    assert graph["PICTURE"].read_text("utf-8") == graph["draw"](), "run python doc/module_graph.py"
    page = (DOC / "how_it_is_built.md").read_text("utf-8")
    rooms = [name for layer in graph["layers"]() for name in layer if name != "__main__"]
    assert [name for name in rooms if not re.search(rf"\b{name}\b", page)] == []
    named = re.findall(r"`([a-z_]+(?:/[a-z_]+)+\.py)`", page)
    assert named
    assert [name for name in named if not ((PACKAGE / name).exists() or (DOC.parent / name).exists())] == []


def test_importing_an_estimator_imports_neither_cluster_nor_page_nor_command_line():
    code = "import sys, paretomkl.estimators; print(*[name for name in sys.modules if name.startswith('paretomkl.')])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    rooms = {name.split(".")[1] for name in loaded}
    assert rooms & {"_learn", "_fitting"}
    assert not rooms & {"distributed", "_show", "report", "plotting", "cli", "_select", "baselines", "_experiments"}
