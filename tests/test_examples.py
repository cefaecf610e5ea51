"""The examples and the code of the documentation run, without a warning."""

import doctest
import importlib
import re
import runpy
import shlex
import warnings
from pathlib import Path

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
from matplotlib import pyplot as plt

ROOT = Path(__file__).resolve().parents[1]
NEED_DATA = {"mfeat": "mfeat", "regression": "school", "landmine": "landmine"}  # example: data set
MFEAT, REGRESSION, LANDMINE = (ROOT / "examples" / f"plot_{name}.py" for name in NEED_DATA)
SHARING = ROOT / "examples" / "plot_sharing.py"
EXAMPLES = sorted(set((ROOT / "examples").glob("plot_*.py")) - {MFEAT, REGRESSION, LANDMINE, SHARING})
TEXTS = [*sorted((ROOT / "doc").rglob("*.md")), *sorted(ROOT.glob("*.md"))]
PAGES = [page for page in TEXTS if page.name != "README.md" and re.search(r"^```py", page.read_text("utf-8"), re.M)]


@pytest.fixture(autouse=True)
def strict(tmp_path, monkeypatch):
    """Warnings that users would see are errors, files go to another folder, and figures are closed."""
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DeprecationWarning)  # hidden from users by default
        yield
    plt.close("all")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(example, capsys):
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out
    assert plt.get_fignums()


@pytest.mark.slow
def test_example_on_six_sources(shared_data, monkeypatch, capsys):
    """It runs if its data are there; as it claims, with few samples separate sources beat an SVC on all columns."""
    monkeypatch.setenv("PARETOMKL_DATA", str(shared_data))
    names = runpy.run_path(str(MFEAT), run_name="__main__")
    assert capsys.readouterr().out
    assert plt.get_fignums()
    for n in (5, 10):
        assert np.mean(names["accuracy"][n, "sources, uniform"]) > np.mean(names["accuracy"][n, "SVC, all columns"])


@pytest.mark.slow
def test_example_of_regression(shared_data, monkeypatch, capsys):
    """It runs if its data are there, and its ranking of the methods is true: shared, own, uniform, kernel ridge."""
    monkeypatch.setenv("PARETOMKL_DATA", str(shared_data))
    names = runpy.run_path(str(REGRESSION), run_name="__main__")
    assert capsys.readouterr().out
    assert plt.get_fignums()
    mean = {name: values.mean() for name, values in names["scores"].items()}
    assert mean["shared kernel"] > mean["own kernel"] > mean["uniform weights"] > mean["KernelRidge"]


@pytest.mark.slow
def test_example_of_landmines(shared_data, monkeypatch, capsys):
    """It runs if its data are there; a common function beats a shared kernel, and the search finds that."""
    monkeypatch.setenv("PARETOMKL_DATA", str(shared_data))
    names = runpy.run_path(str(LANDMINE), run_name="__main__")
    assert capsys.readouterr().out
    assert plt.get_fignums()
    for scores in names["accuracy"].values():
        _, kernel, function, everything = scores.mean(axis=0)
        assert min(function, everything) > kernel + 0.01
    assert {search.best_share_ for search in names["chosen"].values()} <= {"function", "everything"}


def test_example_of_sharing(capsys):
    """Its claim about its figure is true: the more tasks have in common, the more it pays to share."""
    names = runpy.run_path(str(SHARING), run_name="__main__")
    assert capsys.readouterr().out
    assert plt.get_fignums()
    mean = {
        key: dict(zip(names["ways"], scores.mean(axis=0), strict=True)) for key, scores in names["accuracy"].items()
    }
    nothing, kernel, alike, same = (
        mean[key] for key in (("relatedness", 0.0), ("relatedness", 1.0), ("common", 0.75), ("common", 1.0))
    )
    assert nothing["nothing"] > nothing["kernel"] + 0.05
    assert kernel["kernel"] > kernel["nothing"] + 0.02
    assert abs(kernel["kernel"] - kernel["function"]) < 0.02
    assert alike["function"] > alike["kernel"] + 0.01
    assert max(same, key=same.get) == "everything"
    assert kernel["everything"] < 0.6


@pytest.mark.parametrize(("name", "data"), NEED_DATA.items())
def test_example_without_its_data_says_so(name, data, tmp_path, monkeypatch):
    monkeypatch.setenv("PARETOMKL_DATA", str(tmp_path))
    with pytest.raises(OSError, match=data):
        runpy.run_path(str(ROOT / "examples" / f"plot_{name}.py"), run_name="__main__")


@pytest.mark.parametrize("name", NEED_DATA)
def test_stored_output_is_of_the_present_example(name, monkeypatch):
    """What the site shows where the data are not at hand: the pictures are there, and the code has not changed."""
    pytest.importorskip("sphinx_gallery")
    monkeypatch.syspath_prepend(ROOT / "doc")
    stored_examples = importlib.import_module("stored_examples")
    blocks = stored_examples.stored(name)
    pictures = [picture for block in blocks for picture in block["pictures"]]
    assert pictures
    assert all((stored_examples.STORED / picture).exists() for picture in pictures)
    assert any(block["output"] for block in blocks)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_code_of_the_documentation(page):
    """Blocks of a page run in order; the output of interactive blocks is compared, and pictures have a figure."""
    names: dict = {}
    parts = r"^```(py\w*)\n(.*?)^```|^!\[.*?\]\(\S*pictures/(\S+)\)"
    for kind, code, picture in re.findall(parts, page.read_text("utf-8"), re.M | re.S):
        if picture:
            assert plt.get_fignums(), f"no figure is open for {picture}"
            plt.close("all")
            continue
        assert kind in {"python", "pycon"}, f"a block of {kind!r} would not be run"
        if kind == "python":
            exec(compile(code, page.name, "exec"), names)
            continue
        session = doctest.DocTestParser().get_doctest(code, names, page.name, str(page), 0)
        report: list[str] = []
        doctest.DocTestRunner(verbose=False).run(session, out=report.append, clear_globs=False)
        names.update(session.globs)
        assert not report, "".join(report)


def test_the_site_has_five_headings():
    (tree,) = re.findall(r"^```{toctree}\n(.*?)^```", (ROOT / "doc" / "index.md").read_text("utf-8"), re.M | re.S)
    entries = [re.sub(r".*<(.*)>", r"\1", line) for line in tree.splitlines() if line and not line.startswith(":")]
    assert entries == ["start", "guide/index", "auto_examples/index", "api/index", "evidence"]


def test_commands_of_the_documentation_exist():
    """Every command in a shell block, and after a prompt in a block of text, exists with its options."""
    typer = pytest.importorskip("typer")
    program = typer.main.get_command(importlib.import_module("paretomkl.cli._app").app)
    lines = [
        (page.name, shlex.split(line.removeprefix("$ "), comments=True))
        for page in TEXTS
        for kind, block in re.findall(r"^```(sh|text)\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
        for line in block.replace("\\\n", " ").splitlines()
        if line.startswith("paretomkl " if kind == "sh" else "$ paretomkl ")
    ]
    assert len(lines) > 10
    for page, (_, name, *words) in lines:
        assert name in program.commands, f"{page}: there is no command {name!r}"
        program.commands[name].make_context(name, words, resilient_parsing=True)  # raises for an unknown option
