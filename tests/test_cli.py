"""The command line, as a person would call it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).with_name("paretomkl")


def run(*arguments: str, columns: int = 80) -> subprocess.CompletedProcess[str]:
    environment = {"COLUMNS": str(columns), "PATH": "/usr/bin:/bin", "PYTHONIOENCODING": "utf-8"}
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, env=environment, encoding="utf-8")


@pytest.mark.parametrize("columns", [80, 140])
def test_demo_prints_the_whole_path(columns):
    done = run("demo", "--samples", "60", columns=columns)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    first = [line.split()[0] for line in lines if line.strip()]
    for p in ("0.01", "0.5", "1", "50", "∞"):
        assert first.count(p) == 1
    assert not any(token.endswith("%") for token in first), "one line for each exponent: nothing is wrapped"
    assert "13 certified points" in done.stdout
    assert all(len(line) <= columns for line in lines)


def test_help_names_the_commands():
    done = run("--help")
    assert done.returncode == 0
    assert "demo" in done.stdout


def test_bad_options_are_refused():
    done = run("demo", "--samples", "3")
    assert done.returncode == 2
    assert "samples" in done.stderr
