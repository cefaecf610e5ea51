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

SCRIPTS = [Path(__file__).parent / "typing" / name for name in ("good.py", "bad.py")]


def lines_with_errors_by_mypy(tmp_path: Path) -> dict[str, set[int]]:
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, "--cache-dir", str(tmp_path)]
    # for a package that is next to the tests and not installed
    environment = os.environ | {"MYPYPATH": str(Path(paretomkl.__file__).parents[1])}
    done = subprocess.run(
        [*command, "--ignore-missing-imports", "--follow-imports=silent", *map(str, SCRIPTS)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert "checked 2 source files" in done.stdout, done.stdout + done.stderr
    return {
        script.name: {int(line) for line in re.findall(rf"{re.escape(script.name)}:(\d+): error", done.stdout)}
        for script in SCRIPTS
    }


def lines_with_errors_by_pyright(tmp_path: Path) -> dict[str, set[int]]:
    if shutil.which("pyright") is None:
        pytest.skip("pyright is not installed")
    for script in SCRIPTS:
        shutil.copy(script, tmp_path)
    settings = {"typeCheckingMode": "strict", "include": [script.name for script in SCRIPTS]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = ["pyright", "--outputjson", "--pythonpath", sys.executable, "--project", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    found: dict[str, set[int]] = {script.name: set() for script in SCRIPTS}
    for row in json.loads(done.stdout)["generalDiagnostics"]:
        if row["severity"] == "error":
            found[Path(row["file"]).name].add(1 + row["range"]["start"]["line"])
    return found


@pytest.mark.parametrize("check", [lines_with_errors_by_mypy, lines_with_errors_by_pyright])
def test_a_users_script_is_well_typed_and_mistakes_are_found(check, tmp_path):
    """Both scripts at once: a type checker takes long to read what they import."""
    good, bad = SCRIPTS
    found = check(tmp_path)
    assert found[good.name] == set()
    marked = {k for k, line in enumerate(bad.read_text().splitlines(), 1) if line.endswith("# error")}
    assert marked <= found[bad.name]
