"""Type checkers see the real types of the public interface."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import paretomkl

SCRIPTS = Path(__file__).parent / "typing"


def lines_with_errors_by_mypy(script: Path, tmp_path: Path) -> set[int]:
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, "--cache-dir", str(tmp_path)]
    # for a package that is next to the tests and not installed
    environment = os.environ | {"MYPYPATH": str(Path(paretomkl.__file__).parents[1])}
    done = subprocess.run(
        [*command, "--ignore-missing-imports", "--follow-imports=silent", str(script)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    return {int(line) for line in re.findall(rf"{re.escape(script.name)}:(\d+): error", done.stdout)}


def lines_with_errors_by_pyright(script: Path, tmp_path: Path) -> set[int]:
    if shutil.which("pyright") is None:
        pytest.skip("pyright is not installed")
    shutil.copy(script, tmp_path)
    settings = {"typeCheckingMode": "strict", "include": [script.name]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = ["pyright", "--outputjson", "--pythonpath", sys.executable, "--project", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    found = json.loads(done.stdout)["generalDiagnostics"]
    return {1 + row["range"]["start"]["line"] for row in found if row["severity"] == "error"}


CHECKERS = [lines_with_errors_by_mypy, lines_with_errors_by_pyright]


@pytest.mark.parametrize("check", CHECKERS)
def test_a_users_script_is_well_typed(check, tmp_path):
    assert check(SCRIPTS / "good.py", tmp_path) == set()


@pytest.mark.parametrize("check", CHECKERS)
def test_mistakes_are_found(check, tmp_path):
    script = SCRIPTS / "bad.py"
    marked = {k for k, line in enumerate(script.read_text().splitlines(), 1) if line.endswith("# error")}
    assert marked <= check(script, tmp_path)
