"""The pages of the benchmarks."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


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
    assert numbers(page) == list(range(1, 11))
    body = report.Page("Benchmarks", "", results, page).markdown().partition("Machine")[2]
    assert page.read_text(encoding="utf-8").partition("Machine")[2] == body


def test_the_regression_tables_match_their_results():
    tables = load("regression").report(ROOT / "doc" / "experiments" / "regression.json.gz")
    page = (ROOT / "doc" / "regression.md").read_text(encoding="utf-8")
    found = page.partition("<!-- begin regression -->")[2].partition("<!-- end regression -->")[0]
    assert "| **ours**, the default search |" in found
    assert found.strip() == tables.strip()
