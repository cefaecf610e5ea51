"""Move the modules of the package into sub-packages, and rewrite every import of them. Run once, from the root."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

PACKAGE = "paretomkl"
ROOMS = """
_tools: _typing=typing _compiled=compiled _parallel=parallel _progress=progress _files=files _wording=wording
_tools: _norms=norms _shares=shares _validation=checks
kernels: _kernels=_kernels _bank=_fitted _kernel_plan=_plan _kernel_rows=_tiles _widths=_many_widths
kernels: _column_pairs=_many_pairs _distances=_distances _statistics=_statistics _standardizer=_standardizer
kernels: _rounding=_rounding kernels=__init__
gram: gram=_blocks _kernel_values=_stored _coupled=_coupled
gram/_large: _column_store=store _kernel_columns=columns _kernel_fields=fields _combined_field=combined
solvers: _run=_run _cuts=_cuts
_data: _tasks=tasks _labelling=labels _targets=numbers _reading=reading _together=together
_fitting: _tracing=tracing _model=models
_learn: path=path estimators=estimators _estimator=base _classifier=classifier _regressor=regressor
_learn: _kernel_classifier=kernel_estimators _learner=learner _persistence=saving
_select: search=search _path_search=path_search _choice=choice _splits=splits _scorers=scorers _judging=scores
_select: _score_names=score_names _contest=comparison _rivals=classification_baselines
_select: _rival_numbers=regression_baselines
distributed: distributed=__init__ _crew=_workers _collections=_dask_inputs _remote=_training _shard=_shard
_show: _drawing=drawing _refit=code
_show: _page.__init__=__init__ _page.comparison=comparison _page.confusion=confusion _page.notebook=notebook
_show: _page.numbers=numbers _page.page=page _page.sharing=sharing _page.words=words
tables: tables=__init__ _tables=_tables _table_files=_files _row_selection=_row_selection
cli: cli=__init__ _kernel_options=_kernel_options _warm_up=_warm_up _demo=_demonstration
cli: _commands.__init__=_app _commands._checks=_checks _commands._demo=_demo _commands._effort=_effort
cli: _commands._expectation=_expectation _commands._fit=_fit _commands._info=_info _commands._options=_options
cli: _commands._path=_path _commands._predict=_predict _commands._reproduce=_reproduce _commands._running=_running
cli: _commands._saved_model=_saved_model _commands._showing=_showing
"""
SPLIT = {"_fitting/shared_models": ("_together", ["SharedModel", "SeparateModel"])}  # classes that leave their module
FACADES = {
    "path": ("_learn.path", "The Pareto path: one solution per exponent p, all from one pool of cuts."),
    "estimators": ("_learn.estimators", "Estimators with the interface of scikit-learn."),
    "search": ("_select.search", "Estimators that choose their parameters by cross-validation."),
    "gram": ("gram._blocks", None),
}
LAYERS = """layers = [
  "__main__",
  "cli : path : estimators : search : model_selection",
  "_experiments",
  "report : baselines : plotting",
  "_select",
  "_learn",
  "distributed : _show",
  "_fitting",
  "_data : solvers",
  "machines : problem : solution",
  "gram",
  "kernels : protocols : sweep : scalarizations : weight_sets : tables : datasets",
  "_tools",
]
"""
BY_HAND = [  # file, what it says after the move, what it should say
    ("cli/_app.py", 'f".{_name}", __name__)', 'f".{_name}", __package__)'),
    ("cli/__init__.py", "the commands are in the package ``_commands``", "every command is a module of its own"),
    ("__init__.py", '"._model": "TaskModel"', '"._fitting.models": "TaskModel"'),
    ("__init__.py", '"._persistence": ', '"._learn.saving": '),
    ("__init__.py", '"._tasks": ', '"._data.tasks": '),
    ("_learn/saving.py", '"_commands", "_demo", "_experiments", "_page", "cli",', '"_experiments", "_show", "cli",'),
    ("kernels/_plan.py", "for a tile of pairs. With\nmany", "for a tile of pairs.\nWith many"),
    ("gram/_large/fields.py", "A new θ\nneeds", "A new\nθ needs"),
    ("_tools/checks.py", "from typing import Any,", "from typing import TYPE_CHECKING, Any,"),
    ("_tools/checks.py", "from .._data.tasks import Task\n", ""),
    (
        "_tools/checks.py",
        "from .wording import literal\n",
        "from .wording import literal\n\nif TYPE_CHECKING:\n    from .._data.tasks import Task\n",
    ),
    ("_experiments/protocol.py", "from ..model_selection import", "from .._select.splits import"),
    ("../tests/test_structure.py", '"gram", "_run", "_cuts")', '"gram/_blocks")'),
]
TEST_ROOMS = """
kernels: test_kernels test_many_kernels test_statistics test_capacity test_rounding
gram: test_gram test_kernel_fields=test_fields
data: test_tasks test_many_tasks
learn: test_estimators test_path test_regression test_outliers test_sharing test_task_scale test_persistence test_saving
learn: test_multi_class
select: test_search test_model_selection test_judging=test_scores test_rivals=test_compare
distributed: test_distributed test_cluster_parameters
baselines: test_baselines_kernel=test_kernel test_baselines_minimax=test_minimax test_baselines_sparse=test_sparse
baselines: test_baselines_regression=test_regression
datasets: test_datasets
plotting: test_plotting
cli: test_cli test_shell
tools: test_parallel
"""


def moves(text: str, default_same: bool = False) -> dict[str, str]:
    """Old dotted name -> new path without suffix."""
    found = {}
    for line in text.strip().splitlines():
        room, names = line.split(":")
        for name in names.split():
            old, _, new = name.partition("=")
            found[old] = f"{room}/{new or old}"
    return found


MOVES = moves(ROOMS)


def dotted(path: str) -> str:
    return path.replace("/", ".").removesuffix(".__init__")


def old_modules() -> dict[str, Path]:
    found = {}
    for file in sorted(Path(PACKAGE).rglob("*.py")):
        name = ".".join(file.relative_to(PACKAGE).with_suffix("").parts)
        found[name] = file
    return found


OLD = old_modules()
NEW = {name.removesuffix(".__init__"): dotted(MOVES.get(name, name.replace(".", "/"))) for name in OLD}
NEW["__init__"] = ""
LEFT = {(module, name): dotted(new) for new, (module, names) in SPLIT.items() for name in names}


def new_home(module: str, name: str | None) -> str:
    return LEFT.get((module, name or ""), NEW[module])


def relative(target: str, package: list[str]) -> tuple[str, str]:
    """How a module of the package is written in an import inside `package`: dots and the rest."""
    parts = target.split(".") if target else []
    common = 0
    while common < min(len(parts), len(package)) and parts[common] == package[common]:
        common += 1
    return "." * (len(package) - common + 1), ".".join(parts[common:])


def statement(names: list[tuple[str, str, str | None]], inside: list[str] | None, indent: str) -> str:
    """Imports of (module, name, alias); relative inside the package, absolute outside."""
    lines: dict[str, list[str]] = {}
    for module, name, alias in names:
        if name == "*module*":  # a module itself
            parent, _, leaf = module.rpartition(".")
            module, name = parent, leaf
            alias = alias if alias != leaf else None
        if inside is None:
            source = f"{PACKAGE}.{module}" if module else PACKAGE
        else:
            source = "".join(relative(module, inside))
        lines.setdefault(source, []).append(name + (f" as {alias}" if alias else ""))
    return "\n".join(f"{indent}from {source} import {', '.join(what)}" for source, what in lines.items())


def rewritten(text: str, old_package: list[str] | None, new_package: list[str] | None) -> str:
    lines = text.splitlines(keepends=True)
    for node in sorted(ast.walk(ast.parse(text)), key=lambda n: -getattr(n, "lineno", 0)):
        if not isinstance(node, ast.ImportFrom):
            continue
        if node.level:
            if old_package is None:
                continue
            base = old_package[: len(old_package) - node.level + 1]
            module = ".".join(base + (node.module.split(".") if node.module else []))
        elif node.module and node.module.split(".")[0] == PACKAGE:
            module = node.module[len(PACKAGE) + 1 :]
        else:
            continue
        names = []
        for a in node.names:
            whole = f"{module}.{a.name}" if module else a.name
            if whole in NEW and whole != "__init__" and not (new_package is None and whole in FACADES):
                names.append((NEW[whole], "*module*", a.asname or a.name))
            elif new_package is None and (module in FACADES or module == "") and not a.name.startswith("_"):
                names.append((module, a.name, a.asname))
            else:
                names.append((new_home(module, a.name) if module in NEW else module, a.name, a.asname))
        first, last = node.lineno - 1, node.end_lineno or node.lineno
        indent = lines[first][: len(lines[first]) - len(lines[first].lstrip())]
        comment = re.search(r"\)?\s*(#.*)$", lines[last - 1])
        new = statement(names, None if new_package is None or not node.level else new_package, indent)
        lines[first:last] = [new + (f"  {comment[1]}" if comment else "") + "\n"]
    return "".join(lines)


def rename_in_prose(text: str) -> str:
    """Dotted names in strings and documents."""

    def new(match: re.Match[str]) -> str:
        parts = match[1].split(".")
        for n in (2, 1):
            name = ".".join(parts[:n])
            if len(parts) >= n and name in NEW and name not in FACADES and name != NEW[name]:
                name_of = parts[n] if len(parts) > n else None
                return ".".join([PACKAGE, new_home(name, name_of), *parts[n:]])
        return match[0]

    return re.sub(rf"\b{PACKAGE}\.([a-z_]\w*(?:\.\w+)*)", new, text)


def split_off(text: str, names: list[str]) -> tuple[str, str]:
    """Take the definitions out of a module; both halves keep its imports, and the linter removes what is unused."""
    lines = text.splitlines(keepends=True)
    tree = ast.parse(text)
    spans, head = [], 0
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom) or (isinstance(node, ast.Expr) and node is tree.body[0]):
            head = node.end_lineno or 0
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name in names:
            start = min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1
            spans.append((start, node.end_lineno or 0))
    taken = "".join(lines[:head]) + "\n\n" + "\n\n".join("".join(lines[a:b]) for a, b in spans)
    for a, b in reversed(spans):
        del lines[a:b]
    return "".join(lines), taken


def move_package() -> None:
    texts = {name: file.read_text() for name, file in OLD.items()}
    written: dict[str, str] = {}
    for name, text in texts.items():
        old_package = name.split(".")[:-1]
        path = MOVES.get(name, name.replace(".", "/"))
        new_package = path.split("/")[:-1]
        if path.endswith("/__init__") and name not in ("_page.__init__",) and not name.endswith("__init__"):
            old_package = []
        text = rename_in_prose(rewritten(text, old_package, new_package))
        written[path] = text
    for new, (module, names) in SPLIT.items():
        path = MOVES[module]
        written[path], taken = split_off(written[path], names)
        here, there = new.split("/")[:-1], path.split("/")[:-1]
        # the relative imports of the new half start from another room, and it may need what stayed
        stayed = [n.name for n in ast.parse(written[path]).body if isinstance(n, ast.ClassDef | ast.FunctionDef)]
        source = "".join(relative(dotted(path), here))
        taken = re.sub(r"^from \.(?=\w)", f"from {'.' * 2}{'.'.join(there)}.", taken, flags=re.M)
        taken = taken.replace("\nfrom ", f"\nfrom {source} import {', '.join(stayed)}\nfrom ", 2).replace(
            f"\nfrom {source} import {', '.join(stayed)}\nfrom __future__", "\nfrom __future__", 1
        )
        taken = re.sub(r"^from \.\.(_fitting)\.(\w+)", r"from .\2", taken, flags=re.M)
        written[new] = taken
    for name, path in MOVES.items():
        target = Path(PACKAGE, path + ".py")
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "mv", "-k", str(OLD[name]), str(target)], check=True)
    subprocess.run(["git", "mv", f"{PACKAGE}/_page/templates", f"{PACKAGE}/_show/templates"], check=True)
    for path, text in written.items():
        Path(PACKAGE, path + ".py").write_text(text)
    for name, (home, about) in FACADES.items():
        target = Path(PACKAGE, f"{name}.py" if about else f"{name}/__init__.py")
        source = texts[name]
        public = next(
            ast.literal_eval(n.value)
            for n in ast.parse(source).body
            if isinstance(n, ast.Assign) and getattr(n.targets[0], "id", "") == "__all__"
        )
        about = about or (ast.get_docstring(ast.parse(source)) or "")
        dots = home if target.name != "__init__.py" else home.split(".", 1)[1]
        target.write_text(f'"""{about}"""\n\nfrom .{dots} import {", ".join(public)}\n\n__all__ = {public!r}\n')
    for folder in {Path(PACKAGE, path).parent for path in written}:
        if not (folder / "__init__.py").exists():
            (folder / "__init__.py").write_text("")


def move_tests() -> dict[str, str]:
    found = moves(TEST_ROOMS)
    renamed = {}
    for old, new in found.items():
        target = Path("tests", new + ".py")
        target.parent.mkdir(parents=True, exist_ok=True)
        if not (target.parent / "__init__.py").exists():
            (target.parent / "__init__.py").write_text("")
        subprocess.run(["git", "mv", f"tests/{old}.py", str(target)], check=True)
        renamed[f"tests/{old}.py"] = str(target)
        renamed[f"tests.{old}"] = "tests." + new.replace("/", ".")
    return renamed


def rewrite_users(renamed: dict[str, str]) -> None:
    files = [f for folder in ("tests", "benchmarks", "examples", "tools", "doc") for f in Path(folder).rglob("*.py")]
    for file in files:
        if file.name == "rooms.py" or "_build" in file.parts or "auto_examples" in file.parts:
            continue
        text = file.read_text()
        text = re.sub(r"^from \.test_(\w+) import", lambda m: local_test(m[1], renamed), text, flags=re.M)
        text = re.sub(r"^from \.report\.conftest", "from tests.report.conftest", text, flags=re.M)
        file.write_text(rename_in_prose(rewritten(text, None, None)))
    prose = [*Path("doc").rglob("*.md"), *Path("doc").rglob("*.rst"), Path("README.md"), Path("CONTRIBUTING.md")]
    for file in [*prose, Path("Makefile"), *Path(".github").rglob("*.yml")]:
        if "_build" in file.parts or "auto_examples" in file.parts or "generated" in file.parts:
            continue
        text = rename_in_prose(file.read_text())
        for old, new in renamed.items():
            text = text.replace(old, new)
        file.write_text(text)


def local_test(name: str, renamed: dict[str, str]) -> str:
    return f"from {renamed.get(f'tests.test_{name}', f'.test_{name}')} import"


def finish() -> None:
    for name, before, after in BY_HAND:
        file = Path(PACKAGE, name)
        text = file.read_text()
        assert before in text, (name, before)
        file.write_text(text.replace(before, after))
    project = Path("pyproject.toml")
    text = project.read_text()
    project.write_text(text[: text.index("layers = [")] + LAYERS)


if __name__ == "__main__":
    move_package()
    rewrite_users(move_tests())
    finish()
    subprocess.run(["ruff", "check", "--quiet", "--select", "I,F401,RUF022", "--fix", "."], check=False)
    subprocess.run(["ruff", "format", "--quiet", "."], check=True)
