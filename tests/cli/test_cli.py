"""The command line, as a person would use it."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris
from sklearn.metrics import roc_auc_score
from typer.main import get_command
from typer.testing import CliRunner

import paretomkl
from paretomkl import PAPER_PS
from paretomkl._tools.compiled import ANNOUNCEMENT
from paretomkl._tools.files import write_whole
from paretomkl.cli._app import app
from paretomkl.cli._demo import LOADING
from paretomkl.cli._kernel_options import parse_kernels, parse_sources, split_names
from paretomkl.datasets import load_digit_views
from paretomkl.kernels._kernels import resolve_columns
from paretomkl.machines import MACHINES
from paretomkl.tables._tables import Columns, Table, TableError, _quoted, load_table, read_table

COMMAND = Path(sys.executable).with_name("paretomkl")


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


def run(*arguments: object, columns: int = 80) -> Done:
    """Run a command in this process, and return what a shell would see."""
    words = [str(argument) for argument in arguments]
    found = CliRunner().invoke(app, words, env={"COLUMNS": str(columns)})
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return Done(found.exit_code, found.stdout, found.stderr)


def run_process(*arguments: object, columns: int = 80, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command in a separate process, with an almost empty environment."""
    environment = {"COLUMNS": str(columns), "PATH": "/usr/bin:/bin", "PYTHONIOENCODING": "utf-8"}
    for name in ("HOME", "NUMBA_CACHE_DIR", "PYTHONPATH"):
        if name in os.environ:
            environment[name] = os.environ[name]
    words = [str(argument) for argument in arguments]
    return subprocess.run([COMMAND, *words], capture_output=True, text=True, env=environment, encoding="utf-8", cwd=cwd)


def run_on_a_terminal(*arguments: object, cache: Path) -> tuple[int, str]:
    """The exit code of a Python process and what a person sees; ``cache`` is the folder for compiled code."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "COLUMNS": "100", "TERM": "xterm"}
    process, terminal = pty.fork()
    if process == 0:
        os.execve(sys.executable, [sys.executable, *map(str, arguments)], environment)
    written = b""
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # on Linux this means that the other side is closed
            part = b""
        if not part:
            break
        written += part
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), written.decode()


def patients(n: int = 120, seed: int = 0) -> pd.DataFrame:
    """Two hospitals, numbers and words, an outcome that depends on them."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 90, n),
            "bmi": rng.normal(26, 4, n).round(1),
            "ward": rng.choice(["east", "west", "north"], n),
            "hospital": np.where(np.arange(n) % 2, "St. Anna", "St. Bo"),
        }
    )
    risk = (frame["age"] - 55) / 20 + (frame["bmi"] - 26) / 4 + (frame["ward"] == "east")
    frame["outcome"] = np.where(risk + 0.3 * rng.standard_normal(n) > 0.3, "ill", "well")
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    patients().to_csv(folder / "patients.csv", index=False)
    patients(seed=1).drop(columns="outcome").to_csv(folder / "new.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def model(folder) -> Path:
    words = (folder / "patients.csv", "-y", "outcome", "-t", "hospital", "--share", "kernel")
    done = run("fit", *words, "-o", folder / "model.skops")
    assert done.returncode == 0, done.stderr
    assert "Chosen by 5-fold cross-validation" in done.stdout
    return folder / "model.skops"


# --------------------------------------------------------------------------------------------------- demo
@pytest.mark.parametrize("columns", [80, 140])
def test_demo_prints_its_three_steps(columns, tmp_path, monkeypatch):
    """The first two write no file; all lines fit into a narrow terminal, in a process of its own too."""
    monkeypatch.chdir(tmp_path)
    done = (run_process if columns == 80 else run)("demo", "--no-page", columns=columns)
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^\d", done.stdout, re.M) == ["1", "2"]
    assert len(re.findall(r"  \d\d\.\d %$", done.stdout, re.M)) == 3
    for source in load_digit_views()[0]:
        assert re.search(rf"^   {source} +[+−]\d+\.\d  [+−]\d+\.\d to [+−]\d+\.\d$", done.stdout, re.M)
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    assert list(tmp_path.iterdir()) == []


def test_demo_writes_a_page(tmp_path):
    """Its models learned from the digits that the model of the first step learned from."""
    done = run("demo", "--page", tmp_path / "demo.html")
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^\d", done.stdout, re.M) == ["1", "2", "3"]
    assert "Open it in a browser" in " ".join(done.stdout.split())
    page = (tmp_path / "demo.html").read_text(encoding="utf-8")
    assert "learned from 100 samples, tested on 900 others" in page
    assert "Accuracy on 900 other digits" in done.stdout
    names: dict = {}
    exec(LOADING, names)
    assert_allclose(names["X"]["sums"], load_digit_views()[0]["sums"])
    assert not re.search(r"\b_\w", LOADING)  # public names only


def test_help_names_the_commands_and_gives_examples():
    done = run("--help")
    assert done.returncode == 0
    for name in ("demo", "path", "fit", "predict", "reproduce", "info"):
        assert name in done.stdout
    assert "Example" in run("fit", "--help").stdout
    assert run("--version").stdout.strip() == paretomkl.__version__


@pytest.mark.parametrize("words", [[], *([name] for name in sorted(get_command(app).commands))], ids=" ".join)
def test_help_fits_eighty_columns(words):
    """Every option is spelt out, no line is wider, and no text is cut."""
    shown = run(*words, "--help").stdout
    command = get_command(app)
    for word in words:
        command = command.commands[word]
    for option in command.params:
        assert all(re.search(rf"(?<!\S){name}(?![\w-])", shown) for name in (*option.opts, *option.secondary_opts))
    assert max(map(len, shown.splitlines())) <= 80
    assert not re.search(r"\w(…|\.\.\.)", shown)


def test_bad_options_are_refused():
    done = run("path", "absent.csv", "-y", "y", "--points", "3")
    assert done.returncode == 2
    assert "--points" in done.stderr


# --------------------------------------------------------------------------------------------------- path
def test_path_writes_a_page_and_numbers(folder, tmp_path):
    out = tmp_path / "trade-off"
    done = run("path", folder / "patients.csv", "-y", "outcome", "-t", "hospital", "--out", out, "--points", "25")
    assert done.returncode == 0, done.stderr
    assert sorted(file.name for file in out.iterdir()) == ["page.html", "path.csv"]
    table = pd.read_csv(out / "path.csv")
    assert len(table) >= 25
    assert set(np.round(PAPER_PS, 6)) <= set(np.round(table["p"], 6))
    assert (table["gap"] <= 1e-5).all()
    assert table[["weight: St. Anna", "weight: St. Bo"]].sum(axis=1).round(6).eq(1).all()
    assert table["accuracy"].between(0.5, 1).all()
    assert "of the training set) would pick p" in done.stdout
    assert "St. Anna" in (out / "page.html").read_text(encoding="utf-8")


def test_a_model_of_the_page_can_be_fitted_again(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    patients().to_csv("my patients.csv", index=False)
    kernels = "linear,rbf:0.5@age+bmi,rbf:1@ward"
    table = ("my patients.csv", "--target", "outcome", "--task", "hospital", "--drop", "age", "--seed", "3")
    words = ("--kernels", kernels.replace("@age+bmi", "@bmi"), "--C", "2", "--points", "15", "--out", "out")
    assert run("path", *table, *words).returncode == 0
    page = (tmp_path / "out" / "page.html").read_text(encoding="utf-8")
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page)[1])
    names: dict[str, object] = {}
    exec(data["code"].replace("{p}", data["codeP"][-1]), names)  # the line of Python
    assert names["clf"].p == np.inf
    assert names["clf"].gap_ <= 1e-5
    command = re.search(r"`(paretomkl fit .*?)`", data["codeNote"])[1].replace("{p}", "inf")
    done = run(*shlex.split(command)[1:], "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["p"], facts["C"]) == ("inf", 2.0)
    assert_allclose(list(facts["theta"].values()), names["clf"].theta_, atol=1e-9)


def test_path_prints_json(folder, tmp_path):
    words = (
        *("path", folder / "patients.csv", "--target", "outcome", "--C", "1", "--points", "15"),
        *("--kernels", "linear,rbf:0.5@age+bmi,rbf:1@ward", "--out", tmp_path / "out"),
    )
    lines = [line.split() for line in run(*words).stdout.splitlines()]
    rows = [line for line in lines if line and line[0] in {*(f"{p:g}" for p in PAPER_PS), "∞"}]
    assert len(rows) == len(PAPER_PS)
    assert all("e-" in row[-1] for row in rows), "long names of kernels leave one line for each exponent"
    done = run(*words, "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["C"] == 1
    assert len(facts["kernels"]) == 3
    assert facts["rows"] == {"train": 90, "held_out": 30}
    assert facts["largest_gap"] <= 1e-5


# ----------------------------------------------------------------------------------------- fit and predict
def test_a_saved_model_predicts_new_rows(folder, model, tmp_path):
    out = tmp_path / "predictions.csv"
    done = run("predict", model, folder / "new.csv", "--out", out, "--scores")
    assert done.returncode == 0, done.stderr
    table = pd.read_csv(out)
    truth = patients(seed=1)["outcome"]
    assert list(table.columns) == ["hospital", "predicted_outcome", "margin: well"]
    assert (table["hospital"] == patients(seed=1)["hospital"]).all()
    assert (table["predicted_outcome"] == truth).mean() > 0.8
    assert ((table["margin: well"] > 0) == (table["predicted_outcome"] == "well")).all()


def test_probabilities_beside_the_predictions(folder, model, tmp_path):
    out = tmp_path / "predictions.csv"
    assert run("predict", model, folder / "new.csv", "-o", out, "--proba", "--no-scores").returncode == 0
    table = pd.read_csv(out)
    names = ["probability: ill", "probability: well"]
    assert list(table.columns) == ["hospital", "predicted_outcome", *names]
    assert ((table[names[1]] > 0.5) == (table["predicted_outcome"] == "well")).all()
    np.testing.assert_allclose(table[names].sum(axis=1), 1.0)
    right = np.where(patients(seed=1)["outcome"] == "well", table[names[1]], table[names[0]])
    assert -np.log(right).mean() < 0.5
    facts = json.loads(run("predict", model, folder / "new.csv", "--json", "--proba").stdout)
    np.testing.assert_allclose(facts["probabilities"][names[1]], table[names[1]])


def test_predictions_without_a_file_are_printed(folder, model):
    done = run_process("predict", model, folder / "new.csv")
    assert done.stdout.splitlines()[0] == "hospital,predicted_outcome,margin: well"
    assert run("predict", model, folder / "new.csv", "--no-scores").stdout.startswith("hospital,predicted_outcome\n")
    assert len(done.stdout.splitlines()) == 121
    facts = json.loads(run("predict", model, folder / "new.csv", "--json").stdout)
    assert facts["rows"] == 120
    assert sum(facts["counts"].values()) == 120


def test_fit_with_given_parameters(folder, tmp_path):
    done = run(
        *("fit", folder / "patients.csv", "-y", "outcome", "-o", tmp_path / "m.skops", "--p", "inf", "--C", "2"),
        *("--balanced", "--drop", "hospital", "--json"),
    )
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["p"], facts["C"], facts["cv_score"]) == ("inf", 2, None)
    assert facts["gap"] <= 1e-3
    assert (facts["s"], facts["capacity"]) == (1.1, 0.5)
    assert len(facts["theta"]) == 13
    assert facts["shares"].keys() == facts["theta"].keys()
    assert sum(facts["shares"].values()) == pytest.approx(1)
    assert facts["sources"] == {}


@pytest.mark.parametrize("loss", [kind.loss for kind in MACHINES.values() if kind.reads == "labels"])
def test_every_loss_for_classes_is_offered(folder, tmp_path, loss):
    words = (folder / "patients.csv", "-y", "outcome", "-t", "hospital", "--loss", loss, "--C", "1")
    done = run("fit", *words, "--p", "1", "-o", tmp_path / "m.skops")
    assert done.returncode == 0, done.stderr
    assert paretomkl.load_model(tmp_path / "m.skops").model.loss == loss
    kernels = ("--kernels", "linear,rbf:1", "--points", "15", "--no-baselines")
    done = run("path", *words, *kernels, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert f"--loss {loss}" in (tmp_path / "out" / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("folds", [True, False])
def test_norm_and_capacity_can_be_fixed(folder, tmp_path, folds):
    words = ("fit", folder / "patients.csv", "-y", "outcome", "-o", tmp_path / "m.skops", "--C", "2", "--no-baselines")
    words += ("--ps", "1,2") if folds else ("--p", "1")
    given = ("--s", "3", "--capacity", "0.25")
    facts = json.loads(run(*words, *given, "--json").stdout)
    assert (facts["s"], facts["capacity"]) == (3.0, 0.25)
    assert (facts["cv_score"] is not None) == folds
    said = run(*words, *given).stdout
    assert ("p = 1, C = 2, capacity = 0.25, s = 3" in said) == (not folds), "what was not chosen is not called chosen"
    other = json.loads(run(*words, *given, "--kernels", "linear,rbf:1", "--json").stdout)
    assert other["capacity"] == 0.25, "any kernels can pay for their capacity"
    plain = json.loads(run(*words, "--s", "3", "--kernels", "paper", "--json").stdout)
    assert (plain["capacity"], len(plain["theta"])) == (None, 11)


def test_norm_and_capacity_are_chosen_by_folds(folder, tmp_path):
    words = (folder / "patients.csv", "-y", "outcome", "-t", "hospital", "--C", "1", "--share", "kernel")
    words += ("--no-baselines",)
    done = run("fit", *words, "--ps", "1,2", "-o", tmp_path / "m.skops")
    assert re.search(r"cross-validation: p = 1, C = 1, capacity = (0\.5|1|1\.5), s = (1\.1|2); accuracy", done.stdout)
    facts = json.loads(run("path", *words, "--points", "15", "--out", tmp_path / "out", "--json").stdout)
    assert facts["s"] in (1.1, 2.0)
    assert facts["capacity"] in (0.5, 1.0, 1.5)
    table = pd.read_csv(tmp_path / "out" / "path.csv")
    row = table[table["p"] == float(facts["best_p"])].iloc[0]
    assert facts["shares"] == pytest.approx({name: row[f"share: {name}"] for name in facts["kernels"]})
    theta = table[[f"theta: {name}" for name in facts["kernels"]]]
    assert_allclose((theta ** facts["s"]).sum(axis=1), 1, rtol=1e-6)


# ------------------------------------------------------------------------------------------------- sources
SOURCES = ("--source", "body=a*+bmi", "--source", "place=ward")


def test_sources_are_shown_saved_and_used(folder, tmp_path):
    words = ("fit", folder / "patients.csv", "-y", "outcome", "-t", "hospital", "-o", tmp_path / "m.skops", "--C", "1")
    done = run(*words, "--p", "1", *SOURCES)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    facts = json.loads(run(*words, "--p", "1", *SOURCES, "--json").stdout)
    assert facts["sources"].keys() == {"body", "place"}
    assert len(facts["theta"]) == 7 + 3  # indicators of a category are not standardised and have fewer kernels
    for source, share in facts["sources"].items():
        assert share == pytest.approx(sum(v for name, v in facts["shares"].items() if name.startswith(f"{source}: ")))
        assert f"{source} {100 * share:.0f} %" in done.stdout
    assert done.stdout.splitlines()[2].startswith("Sources: body ")
    new = json.loads(run("predict", tmp_path / "m.skops", folder / "new.csv", "--json").stdout)
    assert np.mean(np.array(new["predictions"]) == patients(seed=1)["outcome"]) > 0.8
    table = load_table(folder / "patients.csv", "outcome", "hospital")
    bank = paretomkl.kernels.sources({"body": ["age", "bmi"], "place": "ward"})
    clf = paretomkl.ParetoMKLClassifier(p=1.0, C=1.0, kernels=bank, task_column="hospital").fit(table.X, table.y)
    assert_allclose(list(facts["theta"].values()), clf.theta_, atol=1e-9)


def test_sources_along_the_path(folder, tmp_path):
    """In the numbers, in words, on the page, in its code and in its command."""
    words = ("path", folder / "patients.csv", "-y", "outcome", "-t", "hospital", "--C", "1", "--points", "15")
    words += ("--no-baselines", "--out", tmp_path / "out", *SOURCES)
    done = run(*words)
    assert done.returncode == 0, done.stderr
    facts = json.loads(run(*words, "--json").stdout)
    table = pd.read_csv(tmp_path / "out" / "path.csv")
    assert_allclose(table["share of source: body"] + table["share of source: place"], 1)
    row = table[table["p"] == float(facts["best_p"])].iloc[0]
    assert facts["sources"] == pytest.approx({name: row[f"share of source: {name}"] for name in ("body", "place")})
    assert re.search(r"^Sources: body \d+ %, place \d+ %\.$", done.stdout, re.MULTILINE)
    page = (tmp_path / "out" / "page.html").read_text(encoding="utf-8")
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page)[1])
    assert [one["name"] for one in data["sources"]] == ["body", "place"]
    names: dict[str, object] = {}
    exec(data["code"].replace("{p}", "1.0"), names)
    at_one = table[table["p"] == 1].iloc[0]
    command = re.search(r"`(paretomkl fit .*?)`", data["codeNote"])[1].replace("{p}", "1").replace("model.skops", "{}")
    again = json.loads(run(*shlex.split(command.format(tmp_path / "m.skops"))[1:], "--json").stdout)
    assert_allclose(list(again["theta"].values()), names["clf"].theta_, atol=1e-9)
    assert (again["s"], again["capacity"]) == (facts["s"], facts["capacity"])
    assert again["sources"]["body"] == pytest.approx(at_one["share of source: body"], abs=0.2)  # of all rows, not most


def test_columns_in_no_source_form_their_own_source(folder, tmp_path):
    words = ("fit", folder / "patients.csv", "-y", "outcome", "-t", "hospital", "-o", tmp_path / "m.skops", "--p", "1")
    done = run(*words, "--C", "1", "--source", "body=age", "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == (
        "Note: columns that no --source names form the source 'other columns': 'bmi' and 'ward'; --drop ignores "
        "columns.\n"
    )
    assert list(json.loads(done.stdout)["sources"]) == ["body", "other columns"]
    everything = run(*words, "--C", "1", "--source", "all=*", "--json")
    assert everything.stderr == ""
    whole = run(*words, "--C", "1", "--capacity", "0", "--json")  # else kernels pay relative to their source
    everything = run(*words, "--C", "1", "--capacity", "0", "--source", "all=*", "--json")
    shares = [list(json.loads(done.stdout)["shares"].values()) for done in (everything, whole)]
    assert_allclose(*shares, atol=1e-9)


def test_patterns_of_sources():
    """Names come before patterns."""
    columns = Columns("y", "site", ["a_1", "a_2", "b+c", "ward_size"], ["ward", "a_kind"])
    features = ["a_1", "a_2", "b+c", "ward_size", "ward", "a_kind"]
    words = {"ward": ["west", "east"], "a_kind": ["x", "x"], "site": ["s", "s"]}
    inputs = pd.DataFrame({"a_1": [0.0, 1.0], "a_2": [0.0, 1.0], "b+c": [0.0, 1.0], "ward_size": [0.0, 1.0], **words})
    table = Table(inputs, np.array([0, 1]), columns)
    assert table.features == features == table.X.columns.tolist()[:-1]

    def columns_of(*typed: str) -> dict[str, list[str]]:
        bank, _ = parse_sources(typed, table)
        at = {name: resolve_columns(given.columns, 6, features, name) for name, given in bank.kernels.blocks.items()}
        return {name: [features[k] for k in places] for name, places in at.items()}

    assert columns_of("s=a_*")["s"] == ["a_1", "a_2", "a_kind"]
    assert columns_of("s=*_kind")["s"] == ["a_kind"]
    assert columns_of("s=ward") == {"s": ["ward"], "other columns": [*features[:4], "a_kind"]}
    assert columns_of("s=b+c", "t = a_? + w*d ")["s"] == ["b+c"]
    assert columns_of("s=b+c", "t = a_? + w*d ")["t"] == ["a_1", "a_2", "ward"]
    assert columns_of("other columns=ward", "t=a_*")["other columns"] == ["ward", "b+c", "ward_size"]


def test_every_kind_of_file(tmp_path):
    frame = patients()
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_feather(tmp_path / "t.arrow")
    frame.to_csv(tmp_path / "t.tsv", sep="\t", index=False)
    frame.to_csv(tmp_path / "t.csv.gz", index=False)
    thetas = []
    for name in ("t.parquet", "t.arrow", "t.tsv", "t.csv.gz"):
        done = run(
            *("fit", tmp_path / name, "-y", "outcome", "-t", "hospital", "-o", tmp_path / "m.skops"),
            *("--p", "1", "--C", "1", "--json"),
        )
        assert done.returncode == 0, done.stderr
        thetas.append(list(json.loads(done.stdout)["theta"].values()))
    assert np.ptp(thetas, axis=0).max() < 1e-9
    X, y = load_iris(return_X_y=True)
    np.save(tmp_path / "t.npy", np.column_stack([X, y]))
    np.savez(tmp_path / "t.npz", x=X, kind=y)
    for name, target in (("t.npy", "4"), ("t.npz", "kind")):
        done = run("fit", tmp_path / name, "-y", target, "-o", tmp_path / "m.skops", "--p", "1", "--C", "1")
        assert done.returncode == 0, done.stderr
        done = run("predict", tmp_path / "m.skops", tmp_path / name, "--json")
        assert json.loads(done.stdout)["rows"] == 150


def test_numbers_are_numbers_in_every_type(tmp_path):
    """Text, fixed decimals and nullable integers in Parquet, decimal commas in CSV: the same model for every file."""
    import decimal

    frame = patients()
    frame.to_csv(tmp_path / "plain.csv", index=False)
    frame.to_csv(tmp_path / "commas.csv", sep=";", decimal=",", index=False)
    other = frame.assign(age=frame["age"].astype("Int64"), bmi=[decimal.Decimal(str(bmi)) for bmi in frame["bmi"]])
    other.to_parquet(tmp_path / "decimals.parquet")
    frame.assign(age=frame["age"].astype(str), bmi=frame["bmi"].astype(str)).to_parquet(tmp_path / "text.parquet")
    commas = ("--delimiter", ";", "--decimal", ",")
    files = {"plain.csv": (), "commas.csv": commas, "decimals.parquet": (), "text.parquet": ()}
    found = []
    for name, options in files.items():
        done = run(
            *("fit", tmp_path / name, "-y", "outcome", "-o", tmp_path / "m.skops", "--p", "1", "--C", "1", "--json"),
            *options,
        )
        assert done.returncode == 0, done.stderr
        theta = list(json.loads(done.stdout)["theta"].values())
        done = run("predict", tmp_path / "m.skops", tmp_path / name, "--json", *options)
        assert done.returncode == 0, done.stderr
        found.append((theta, json.loads(done.stdout)["predictions"]))
    assert_allclose([theta for theta, _ in found], [found[0][0]] * 4, atol=1e-9)
    assert all(predictions == found[0][1] for _, predictions in found)


def test_all_rows_and_columns_of_parquet_are_read(tmp_path):
    """Row groups with categories arrive in pieces, and the index that pandas stored is a column like any other."""
    frame = patients().astype({"ward": "category"}).assign(kind=pd.Categorical(["one"] * 120))
    frame.set_index("hospital").to_parquet(tmp_path / "pieces.parquet", row_group_size=40)
    frame.sample(frac=1, random_state=0).to_parquet(tmp_path / "shuffled.parquet")  # an index without a name
    assert read_table(tmp_path / "pieces.parquet").shape == frame.shape
    assert sorted(read_table(tmp_path / "shuffled.parquet").columns) == sorted(frame.columns)
    with pytest.raises(TableError, match="more than 50 rows"):
        read_table(tmp_path / "pieces.parquet", max_rows=50)
    words = ("-y", "outcome", "-t", "hospital", "-o", tmp_path / "m.skops", "--p", "1", "--C", "1", "--json")
    done = run("fit", tmp_path / "pieces.parquet", *words)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == 120
    done = run("predict", tmp_path / "m.skops", tmp_path / "pieces.parquet", "--json")
    assert json.loads(done.stdout)["rows"] == 120


def test_names_with_commas_and_words_with_blanks(tmp_path):
    frame = patients().rename(columns={"bmi": "height, cm", "age": "b+c"}).assign(name=[f"n{k}" for k in range(120)])
    frame.loc[::2, "outcome"] += " "
    frame.to_csv(tmp_path / "t.csv", index=False)
    done = run(
        *("fit", tmp_path / "t.csv", "-y", "outcome", "-o", tmp_path / "m.skops", "--p", "1", "--C", "1", "--json"),
        *("--drop", 'name, "hospital"', "--kernels", '"rbf:1@height, cm",linear@b+c'),
    )
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["tasks"] == ["ill vs well"]
    assert len(facts["theta"]) == 2
    for column in ("a", "b, c", 'd"e'):
        assert split_names(*shlex.split(_quoted(column))) == [column], "what messages advise can be typed"


def test_quoted_decimal_commas(tmp_path):
    frame = patients().assign(bmi=lambda f: f["bmi"].astype(str).str.replace(".", ","))
    frame.to_csv(tmp_path / "t.csv", index=False)
    fit = ("fit", tmp_path / "t.csv", "-y", "outcome", "-o", tmp_path / "m.skops", "--p", "1", "--C", "1")
    assert "use --decimal ," in run(*fit).stderr
    assert run(*fit, "--decimal", ",").returncode == 0
    done = run("predict", tmp_path / "m.skops", tmp_path / "t.csv")
    assert "if the comma is a decimal point, use --decimal ," in done.stderr


def test_missing_values_are_imputed_on_request(tmp_path):
    frame = patients()
    frame.loc[3, "age"] = np.nan
    frame.loc[5, "ward"] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    fit = ("fit", tmp_path / "t.csv", "-y", "outcome", "-o", tmp_path / "m.skops", "--p", "1", "--C", "1")
    assert "Values are missing: 'age' in 1 row and 'ward' in 1 row" in run(*fit).stderr
    assert run(*fit, "--impute").returncode == 0
    assert run("predict", tmp_path / "m.skops", tmp_path / "t.csv", "--json").returncode == 0


def test_unknown_categories_and_tasks_at_prediction(folder, model, tmp_path):
    new = patients(seed=1)
    new.loc[0, "ward"] = "south"
    new.to_csv(tmp_path / "south.csv", index=False)
    done = run("predict", model, tmp_path / "south.csv")
    assert done.returncode == 0
    assert "column 'ward' has words that the model has not seen and ignores: 'south'" in done.stderr
    new.loc[1, "hospital"] = "St. Clara"
    new.to_csv(tmp_path / "clara.csv", index=False)
    done = run("predict", model, tmp_path / "clara.csv")
    assert done.returncode == 2
    assert "1 row of the unknown task 'St. Clara' has no prediction" in done.stderr


def test_words_and_tasks_are_the_same_in_every_type(tmp_path):
    """Codes that become floats because of a gap, and tasks that are numbers in one file and text in the other."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"code": rng.integers(1, 4, 150), "x": rng.random(150), "site": np.arange(150) % 3})
    frame["y"] = np.where(frame["code"] + 0.2 * rng.standard_normal(150) > 1.5, "high", "low")
    frame.to_csv(tmp_path / "t.csv", index=False)
    done = run(
        *("fit", tmp_path / "t.csv", "-y", "y", "-t", "site", "--categorical", "code", "--impute", "--p", "1"),
        *("--C", "1", "--kernels", "linear,rbf:1@code", "-o", tmp_path / "m.skops"),
    )
    assert done.returncode == 0, done.stderr
    expected = json.loads(run("predict", tmp_path / "m.skops", tmp_path / "t.csv", "--json").stdout)["predictions"]
    assert np.mean(np.array(expected) == frame["y"]) > 0.9
    floats = frame.astype({"code": float})
    floats.loc[0, "code"] = np.nan
    floats.to_csv(tmp_path / "floats.csv", index=False)
    frame.astype({"site": str, "code": str}).to_parquet(tmp_path / "text.parquet")
    for name, noted in (("floats.csv", "what it learned from: 'code'."), ("text.parquet", "")):
        done = run("predict", tmp_path / "m.skops", tmp_path / name, "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["predictions"][1:] == expected[1:]
        assert done.stderr.strip().endswith(noted)
        assert bool(done.stderr) == bool(noted)


def test_a_column_named_like_an_indicator(tmp_path):
    patients().assign(ward_east=1.5).to_csv(tmp_path / "t.csv", index=False)
    done = run("fit", tmp_path / "t.csv", "-y", "outcome", "-o", tmp_path / "m.skops", "--p", "1", "--C", "1")
    assert done.returncode == 0, done.stderr


def test_outputs_that_cannot_be_written_are_refused_at_once(folder, model, tmp_path):
    table = folder / "patients.csv"
    assert "is a folder" in run("fit", table, "-y", "outcome", "-o", tmp_path).stderr
    assert "is a folder" in run("predict", model, folder / "new.csv", "-o", tmp_path).stderr
    assert "is a file" in run("path", table, "-y", "outcome", "--out", table).stderr
    done = run("path", table, "-y", "outcome", "--out", tmp_path / "a" / "b")
    assert "There is no folder" in done.stderr
    assert list(tmp_path.iterdir()) == []
    assert "would overwrite its table" in run("fit", table, "-y", "outcome", "-o", table).stderr
    assert "would overwrite" in run("predict", model, folder / "new.csv", "-o", model).stderr
    (tmp_path / "out" / "path.csv").mkdir(parents=True)
    assert "is a folder" in run("path", table, "-y", "outcome", "--out", tmp_path / "out").stderr
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["path.csv"]


def test_links_and_pipes_stay_what_they_are(folder, model, tmp_path):
    (tmp_path / "there.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to(tmp_path / "there.csv")
    assert run("predict", model, folder / "new.csv", "-o", tmp_path / "link.csv").returncode == 0
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "there.csv").read_text().startswith("hospital,predicted_outcome,")
    os.mkfifo(tmp_path / "pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_text()))
    reader.start()
    write_whole(tmp_path / "pipe", "some text")
    reader.join(timeout=10)
    assert read == ["some text"]
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.skipif(not Path("/proc/version").exists(), reason="needs a folder that nobody can write to")
def test_a_folder_that_cannot_be_written_to_is_noticed_first(folder):
    done = run("fit", folder / "patients.csv", "-y", "outcome", "-o", "/proc/m.skops")
    assert done.returncode == 2
    assert "'/proc/m.skops' cannot be written" in done.stderr


def test_demo_refuses_a_page_that_cannot_be_written_before_any_work(tmp_path):
    done = run("demo", "--page", tmp_path / "absent" / "page.html")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "There is no folder" in done.stderr


def test_p_takes_only_one_exponent(folder, tmp_path):
    done = run("fit", folder / "patients.csv", "-y", "outcome", "--p", "1,2", "-o", tmp_path / "m.skops")
    assert done.returncode == 2
    assert "--p takes one exponent, got '1,2'; to choose among several use --ps 1,2." in done.stderr


def test_warnings_are_notes(tmp_path):
    """A class with three rows in five folds gives a note, without a line of source code."""
    few = patients(80)
    few.loc[few.index[few["outcome"] == "ill"][3:], "outcome"] = "well"
    few.to_csv(tmp_path / "few.csv", index=False)
    done = run("fit", tmp_path / "few.csv", "-y", "outcome", "-o", tmp_path / "m.skops", "--ps", "1", "--Cs", "1,10")
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("Note: ")
    assert "Warning" not in done.stderr
    assert ".py:" not in done.stderr


# --------------------------------------------------------------------------- scores, rare classes, simpler models
def rare(n: int = 450, n_tasks: int = 1, seed: int = 0) -> pd.DataFrame:
    """Two Gaussians that overlap, one with 4 % of the rows of every task."""
    rng = np.random.default_rng(seed)
    site, ill = np.arange(n) % n_tasks, np.zeros(n, dtype=bool)
    for t in range(n_tasks):
        rows = np.flatnonzero(site == t)
        ill[rng.choice(rows, round(0.04 * len(rows)), replace=False)] = True
    X = rng.standard_normal((n, 4))
    X[:, :2] += 1.4 * ill[:, None]
    frame = pd.DataFrame(X, columns=list("abcd")).assign(outcome=np.where(ill, "ill", "well"))
    return frame.assign(site=[f"site {t}" for t in site]) if n_tasks > 1 else frame


@pytest.mark.parametrize("n_tasks", [1, 3])
def test_balanced_finds_the_rare_class(tmp_path, n_tasks):
    rare(n_tasks=n_tasks).to_csv(tmp_path / "t.csv", index=False)
    new = rare(1500, n_tasks, seed=1)
    new.drop(columns="outcome").to_csv(tmp_path / "new.csv", index=False)
    words = ("-y", "outcome", *(("-t", "site") if n_tasks > 1 else ()), "-o", tmp_path / "m.skops", "--no-baselines")
    words += ("--ps", "1", "--Cs", "0.1,1")
    recall, balanced_accuracy = {}, {}
    for options in ((), ("--balanced",)):
        done = run("fit", tmp_path / "t.csv", *words, *options, "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["scoring"] == ("balanced_accuracy" if options else "accuracy")
        named = "--balanced gives the classes equal weight, --scoring balanced_accuracy judges models by" in done.stderr
        assert named == (not options)
        said = json.loads(run("predict", tmp_path / "m.skops", tmp_path / "new.csv", "--json").stdout)["predictions"]
        right = np.array(said) == new["outcome"]
        recall[options] = right[new["outcome"] == "ill"].mean()
        balanced_accuracy[options] = (recall[options] + right[new["outcome"] == "well"].mean()) / 2
    assert recall[()] < 0.2
    assert recall[("--balanced",)] > recall[()] + 0.3
    assert balanced_accuracy[("--balanced",)] > balanced_accuracy[()] + 0.1


def test_a_score_is_shown_wherever_there_is_one(tmp_path):
    rare(n_tasks=3).to_csv(tmp_path / "t.csv", index=False)
    words = (tmp_path / "t.csv", "-y", "outcome", "-t", "site", "--scoring", "roc_auc", "--C", "1", "--share", "kernel")
    done = run("fit", *words, "-o", tmp_path / "m.skops")
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"Chosen by 5-fold cross-validation: p = .*, C = 1, capacity = .*, s = .*; ROC AUC 0\.\d{3}\.", done.stdout
    )
    assert re.search(r"ROC AUC on the training rows [01]\.\d{3}\.", done.stdout)
    assert "accuracy" not in done.stdout
    assert "Note: class" not in done.stderr
    done = run("path", *words, "--points", "15", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert re.search(r"with C = 1, capacity = \S+, s = \S+: ROC AUC 0\.", done.stdout)
    table = pd.read_csv(tmp_path / "out" / "path.csv")
    assert {"roc_auc", "roc_auc: site 0"} <= set(table.columns)
    assert not [name for name in table.columns if "accuracy" in name]
    page = (tmp_path / "out" / "page.html").read_text(encoding="utf-8")
    assert "Held-out ROC AUC of the tasks" in page
    assert re.search(r"Held-out [^.]*ROC AUC[^.]* is 0\.", page)
    lines = done.stderr.splitlines()
    assert len(set(lines)) == len(lines), "a note is written once"
    again = run("path", *words, "--points", "15", "--out", tmp_path / "out", "--json", "--no-baselines")
    facts = json.loads(again.stdout)
    assert (facts["scoring"], facts["score_name"]) == ("roc_auc", "ROC AUC")
    row = table[table["p"] == float(facts["best_p"])].iloc[0]
    assert facts["held_out_score"] == pytest.approx(row["roc_auc"])
    assert facts["task_scores"] == pytest.approx({f"site {t}": row[f"roc_auc: site {t}"] for t in range(3)})


def test_simpler_models_are_compared(folder, tmp_path):
    words = (folder / "patients.csv", "-y", "outcome", "-t", "hospital", "--C", "1", "--share", "kernel")
    done = run("fit", *words, "-o", tmp_path / "m.skops")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if " % ± " in line]
    names = ["paretomkl", "one SVM on all tasks together", "one SVM per task", "the majority class"]
    assert [line.split("  ")[1].strip() for line in lines] == names
    assert all(len(line) <= 80 for line in lines)
    facts = json.loads(run("fit", *words, "-o", tmp_path / "m.skops", "--json").stdout)["comparison"]
    assert list(facts["scores"]) == names
    assert facts["verdict"] in done.stdout
    for line, scores in zip(lines, facts["scores"].values(), strict=True):
        assert f"{100 * scores['mean']:.1f} % ± {100 * scores['standard_error']:.1f}" in line
    done = run("path", *words, "--points", "15", "--out", tmp_path / "out")
    held_out = re.findall(r" % ± \d\.\d +\d+\.\d % \(\d+\.\d to \d+\.\d\)", done.stdout)
    assert len(held_out) == 4, "folds and held out"
    for command in (("fit", *words, "-o", tmp_path / "m.skops"), ("path", *words, "--points", "15", "--out", tmp_path)):
        done = run(*command, "--no-baselines")
        assert done.returncode == 0, done.stderr
        assert " ± " not in done.stdout
        assert json.loads(run(*command, "--no-baselines", "--json").stdout)["comparison"] is None


# ------------------------------------------------------------------------------------------------- sharing
WAYS = ["nothing", "kernel", "function", "everything"]


def test_fit_finds_out_what_tasks_share(folder, tmp_path):
    """Both hospitals have the same risks: with few rows each, the search shares more, and predicts a new hospital."""
    words = ("fit", folder / "patients.csv", "-y", "outcome", "-t", "hospital", "-o", tmp_path / "m.skops", "--C", "1")
    done = run(*words, "--ps", "1,2")
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if " % ± " in line]
    assert [line[0] for line in lines[:4]] == WAYS
    facts = json.loads(run(*words, "--ps", "1,2", "--json").stdout)
    assert facts["share"] == facts["sharing"]["best"]
    assert facts["share"] in ("function", "everything")
    assert (facts["p"], list(facts["sharing"]["scores"])) == (None, WAYS)
    assert facts["sharing"]["in_words"] in done.stdout
    assert f"cross-validation: share = {facts['share']}, C = 1, capacity" in done.stdout
    for line, score in zip(lines, facts["sharing"]["scores"].values(), strict=False):
        assert line[-4:] == [f"{100 * score['mean']:.1f}", "%", "±", f"{100 * score['standard_error']:.1f}"]
    new = patients(seed=1).drop(columns="outcome")
    new.to_csv(tmp_path / "known.csv", index=False)
    assert run("predict", tmp_path / "m.skops", tmp_path / "known.csv").stdout.startswith("hospital,predicted_outcome,")
    new.loc[[1, 5], "hospital"] = "St. Clara"
    new.to_csv(tmp_path / "clara.csv", index=False)
    done = run("predict", tmp_path / "m.skops", tmp_path / "clara.csv", "-o", tmp_path / "p.csv", "--scores")
    assert "2 of 120 rows belong to tasks the model has not seen, 'St. Clara'" in done.stderr
    table = pd.read_csv(tmp_path / "p.csv")
    assert list(table.columns) == ["hospital", "predicted_outcome", "margin: well", "new_task"]
    assert np.flatnonzero(table["new_task"]).tolist() == [1, 5]
    facts = json.loads(run("predict", tmp_path / "m.skops", tmp_path / "clara.csv", "--json").stdout)
    assert sum(facts["new_task"]) == 2


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("target", ["outcome", "age"])
def test_every_way_to_share_is_fitted_and_saved(folder, tmp_path, way, target):
    words = ("fit", folder / "patients.csv", "-y", target, "-t", "hospital", "-o", tmp_path / "m.skops", "--C", "1")
    words += ("--share", way, "--source", "body=bmi", "--source", "place=ward", "--cv", "3", "--ps", "1,2")
    words += ("--drop", "age" if target == "outcome" else "outcome")
    done = run(*words)
    assert done.returncode == 0, done.stderr
    assert "What tasks share" not in done.stdout
    assert "Sources: " in done.stdout
    assert ("of the function is common to the tasks." in done.stdout) == (way == "function")
    assert ("p = " in done.stdout) == (way == "kernel")
    facts = json.loads(run(*words, "--json").stdout)
    assert (facts["share"], facts["sharing"]) == (way, None)
    shares = list(facts["shares"].values()) if way == "nothing" else [facts["shares"]]
    assert [sum(of_task.values()) for of_task in shares] == pytest.approx([1.0] * len(shares))
    assert (facts["common_share"] is None) == (way in ("nothing", "kernel"))
    new = patients(seed=1)
    new.to_csv(tmp_path / "new.csv", index=False)
    assert run("predict", tmp_path / "m.skops", tmp_path / "new.csv").returncode == 0
    new["hospital"] = "St. Clara"
    new.to_csv(tmp_path / "new.csv", index=False)
    done = run("predict", tmp_path / "m.skops", tmp_path / "new.csv")
    if way in ("nothing", "kernel"):
        assert done.returncode == 2
        assert "120 rows of the unknown task 'St. Clara' have no prediction" in done.stderr
        assert done.stdout == ""
    else:
        assert "120 of 120 rows belong to tasks the model has not seen" in done.stderr


def test_sharing_needs_no_folds_when_there_is_nothing_to_choose(folder, tmp_path):
    words = ("fit", folder / "patients.csv", "-y", "outcome", "-o", tmp_path / "m.skops", "--C", "1", "--json")
    facts = json.loads(run(*words, "-t", "hospital", "--share", "function").stdout)
    assert (facts["cv_score"], facts["share"]) == (None, "function")
    facts = json.loads(run(*words, "-t", "hospital", "--p", "2").stdout)
    assert (facts["cv_score"], facts["share"], facts["p"]) == (None, "kernel", 2.0), "to ask for p asks for the kernel"
    done = run(*words, "--p", "1", "--drop", "hospital", "--share", "auto")
    assert "--share has no effect: it needs several tasks (--task)" in done.stderr
    assert json.loads(done.stdout)["share"] == "kernel"
    done = run(*words, "-t", "hospital", "--share", "kernel,all")
    assert done.returncode == 2
    assert "--share takes nothing, kernel, function, everything or auto, got 'kernel,all'" in done.stderr


def test_path_compares_the_ways_with_the_kernel(folder, tmp_path):
    words = ("path", folder / "patients.csv", "-y", "outcome", "-t", "hospital", "--C", "1", "--points", "15")
    words += ("--no-baselines", "--kernels", "linear,rbf:1", "--out", tmp_path / "out")
    plain = json.loads(run(*words, "--share", "kernel", "--json").stdout)
    assert plain["sharing"] is None
    done = run(*words)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines() if " % ± " in line] == WAYS
    facts = json.loads(run(*words, "--share", "auto", "--json").stdout)
    assert facts["sharing"]["in_words"] in done.stdout
    assert list(facts["sharing"]["scores"]) == WAYS
    for same in ("C", "s", "best_p", "shares", "held_out_score"):
        assert facts[same] == plain[same], "the path stays that of the kernel"
    assert 'id="sharing"' in (tmp_path / "out" / "page.html").read_text(encoding="utf-8")


def test_folds_in_time_and_of_new_tasks(folder, tmp_path):
    frame = pd.read_csv(folder / "patients.csv")
    frame["day"] = pd.date_range("2026-01-01", periods=len(frame)).strftime("%Y-%m-%d")
    frame.to_csv(tmp_path / "sorted.csv", index=False)
    frame.iloc[np.random.default_rng(0).permutation(len(frame))].to_csv(tmp_path / "t.csv", index=False)
    words = ("-y", "outcome", "-t", "hospital", "--C", "1", "--ps", "1", "--kernels", "linear", "--json")
    words += ("--no-baselines", "--time-column", "day", "-o", tmp_path / "m.skops")
    found = [json.loads(run("fit", tmp_path / name, *words, "--cv", "time").stdout) for name in ("sorted.csv", "t.csv")]
    assert found[0]["cv_score"] == found[1]["cv_score"], "the column sorts the rows"
    assert found[0]["sharing"]["folds"] == 3
    done = run("fit", tmp_path / "t.csv", *words, "--cv", "new-tasks")
    assert "skipped --share nothing and kernel: the folds leave tasks out" in done.stderr
    assert set(json.loads(done.stdout)["sharing"]["scores"]) == {"function", "everything"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fit", "-t", "hospital", "--cv", "tim"), "new-tasks or time, got 'tim'; did you mean 'time'"),
        (("fit", "-t", "hospital", "--cv", "1"), "--cv takes a number of at least 2"),
        (("fit", "--cv", "new-tasks"), "needs several (--task)"),
        (("path", "-t", "hospital", "--cv", "new-tasks"), "cannot judge a shared kernel"),
        (("fit", "-t", "hospital", "--time-column", "outcome"), "cannot be the target, the task or the group too"),
        (("fit", "-t", "hospital", "--time-column", "ward"), "needs numbers, or dates such as 2026-01-31"),
        (("fit", "-t", "hospital", "--time-column", "when"), "no column 'when' (--time-column)"),
        (("fit", "-t", "bmi", "--cv", "time", "--share", "function"), "needs 10 rows, but task"),
    ],
)
def test_folds_that_cannot_be_made_are_refused(folder, tmp_path, words, said):
    out = () if words[0] == "path" else ("-o", tmp_path / "m.skops")
    done = run(words[0], folder / "patients.csv", "-y", "outcome", *words[1:], *out)
    assert done.returncode == 2
    assert said in done.stderr


def test_the_number_of_folds_suits_the_score(tmp_path):
    few = rare()
    few.drop(index=few.index[few["outcome"] == "ill"][4:]).to_csv(tmp_path / "few.csv", index=False)
    words = (tmp_path / "few.csv", "-y", "outcome", "--C", "1", "--no-baselines", "--scoring", "roc_auc")
    done = run("fit", *words, "-o", tmp_path / "m.skops")
    assert done.returncode == 0, done.stderr
    assert done.stderr == "Note: 4 folds instead of 5: ROC AUC needs rows of two classes in each.\n"
    assert "Chosen by 4-fold" in done.stdout
    done = run("path", *words, "--points", "15", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "Note: 3 folds instead of 5" in done.stderr


def test_classes_are_not_rare_just_because_there_are_many(tmp_path):
    rng = np.random.default_rng(0)
    kind = np.arange(160) % 12
    frame = pd.DataFrame({"x": kind + 0.1 * rng.standard_normal(160), "kind": [f"k{k}" for k in kind]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    done = run("fit", tmp_path / "t.csv", "-y", "kind", "-o", tmp_path / "m.skops", "--p", "1", "--C", "1")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


# ------------------------------------------------------------------------------------------------ bad files
def _spoilt(folder: Path) -> dict[str, tuple[list[str], str]]:
    frame = patients()
    frame.to_csv(folder / "semicolons.csv", sep=";", index=False)
    frame.to_csv(folder / "good.csv", index=False)
    one = frame.copy()
    one.loc[one["hospital"] == "St. Bo", "outcome"] = "well"
    one.to_csv(folder / "one_class.csv", index=False)
    text = frame.astype({"age": object})
    text.loc[7, "age"] = "unknown"
    text.to_csv(folder / "text.csv", index=False)
    (folder / "empty.csv").write_text("")
    (folder / "header.csv").write_text("age,outcome\n")
    (folder / "doubled.csv").write_text("age,age,outcome\n1,2,well\n3,4,ill\n")
    names = frame.assign(name=[f"patient {k}" for k in range(len(frame))])
    names.to_csv(folder / "names.csv", index=False)
    (folder / "broken.parquet").write_bytes(b"PAR1 not really")
    (folder / "table.xyz").write_text("1,2\n")
    frame.assign(outcome=np.random.default_rng(0).random(len(frame))).to_csv(folder / "numbers.csv", index=False)
    at, values = np.arange(len(frame)), np.random.default_rng(0).random(len(frame))
    frame.assign(outcome=np.where(at % 2, values, 7.5)).to_csv(folder / "constant.csv", index=False)
    frame.assign(outcome=np.where(at == 3, np.nan, values)).to_csv(folder / "no_number.csv", index=False)
    frame.assign(outcome=np.where(at == 3, np.inf, values)).to_csv(folder / "endless.csv", index=False)
    small = frame.assign(outcome=values, hospital=np.where(at < 2, "tiny", "large"))
    small.to_csv(folder / "small_task.csv", index=False)
    frame.assign(age=np.where(np.arange(len(frame)) == 3, np.inf, frame["age"])).to_csv(folder / "inf.csv", index=False)
    frame.assign(outcome=frame["outcome"].where(np.arange(len(frame)) != 4)).to_csv(folder / "no_y.csv", index=False)
    days = pd.to_datetime("2024-01-01") + pd.to_timedelta(np.arange(len(frame)) % 30, unit="D")
    frame.assign(day=days.strftime("%Y-%m-%d")).to_csv(folder / "dates.csv", index=False)
    frame.assign(day=days.strftime("%d.%m.%Y")).to_csv(folder / "german_dates.csv", index=False)
    frame.assign(day=days.date).to_parquet(folder / "dates.parquet")
    frame.assign(stay=days - days[0]).to_parquet(folder / "stays.parquet")
    frame.to_csv(folder / "commas.csv", sep=";", decimal=",", index=False)
    frame.assign(outcome=np.arange(len(frame)) % 60).to_csv(folder / "ages.csv", index=False)
    frame.to_csv(folder / "numbered.csv")
    lines = frame.to_csv(index=False).splitlines()
    (folder / "too_long.csv").write_text("\n".join([lines[0], *(f"{line}," for line in lines[1:])]))
    (folder / "remark.csv").write_text("# made by hand\n" + "\n".join(lines))
    (folder / "latin.csv").write_bytes("\n".join(lines).replace("east", "östlich").encode("latin-1"))
    frame.rename(columns={"bmi": "height, cm"}).assign(**{"height, cm": None}).to_csv(folder / "comma.csv", index=False)
    frame.assign(both=[[1, 2]] * len(frame)).to_parquet(folder / "lists.parquet")
    rare = frame.copy()
    rare.loc[0, "outcome"] = "lost"
    rare.to_csv(folder / "rare.csv", index=False)
    good = ["good.csv", "-y", "outcome"]
    return {
        "dates": (["dates.csv", "-y", "outcome"], "Column 'day' contains dates, such as '2024-01-01'"),
        "dates of another form": (["german_dates.csv", "-y", "outcome"], "Column 'day' contains dates"),
        "dates in Parquet": (["dates.parquet", "-y", "outcome"], "Column 'day' contains dates"),
        "lengths of time": (["stays.parquet", "-y", "outcome"], "Column 'stay' contains durations"),
        "decimal commas": (
            ["commas.csv", "-y", "outcome", "--delimiter", ";"],
            "Column 'bmi' contains numbers with a comma",
        ),
        "many whole numbers": (
            ["ages.csv", "-y", "outcome", "--classification"],
            "contains 60 different values in 120 rows",
        ),
        "row numbers": (["numbered.csv", "-y", "outcome"], "leave it out with --drop 'Unnamed: 0'"),
        "rows too long": (["too_long.csv", "-y", "outcome"], "have more values than its first line has names"),
        "a remark": (["remark.csv", "-y", "outcome"], "begins with a comment"),
        "another encoding": (["latin.csv", "-y", "outcome"], "is not encoded in UTF-8"),
        "empty, with a comma": (["comma.csv", "-y", "outcome"], """--drop '"height, cm"'"""),
        "lists": (["lists.parquet", "-y", "outcome"], "Column 'both' contains lists"),
        "one kernel twice": ([*good, "--kernels", "rbf:1,gaussian:1"], "--kernels names 'gaussian:1' twice"),
        "a single row": (["rare.csv", "-y", "outcome"], "Class 'lost' has only 1 row"),
        "strange decimals": ([*good, "--decimal", "x"], "--decimal must be a point or a comma, got 'x'"),
        "long delimiter": ([*good, "--delimiter", "||"], "--delimiter must be a single character"),
        "target dropped": ([*good, "--drop", "outcome"], "Column 'outcome' is the target (--target), not an input"),
        "task dropped": ([*good, "-t", "hospital", "--drop", "hospital"], "is the task (--task), not an input"),
        "task as an input": ([*good, "-t", "hospital", "--categorical", "hospital"], "remove it from --categorical"),
        "dropped and kept": ([*good, "--drop", "ward", "--categorical", "ward"], "both in --categorical and in --drop"),
        "kernel on nothing": ([*good, "--kernels", "rbf:1@"], "No column follows the @ in 'rbf:1@'"),
        "wrong delimiter": (["semicolons.csv", "-y", "outcome"], "use --delimiter ';'"),
        "missing target": (["good.csv", "-y", "result"], "There is no column 'result' (--target); the columns are age"),
        "missing task": (["good.csv", "-y", "outcome", "-t", "site"], "There is no column 'site' (--task)"),
        "one class in a task": (
            ["one_class.csv", "-y", "outcome", "-t", "hospital", "--share", "kernel"],
            "Task 'St. Bo' has only one class, but a task needs two or more; leave such tasks out with --min-class",
        ),
        "text among numbers": (
            ["text.csv", "-y", "outcome"],
            "Column 'age' contains numbers and text, such as 'unknown'",
        ),
        "empty file": (["empty.csv", "-y", "outcome"], "empty.csv is empty"),
        "no rows": (["header.csv", "-y", "outcome"], "no rows"),
        "no such file": (["absent.csv", "-y", "outcome"], "There is no file"),
        "a folder": ([".", "-y", "outcome"], "is a folder"),
        "names": (["names.csv", "-y", "outcome"], "Column 'name' contains 120 different texts"),
        "damaged": (["broken.parquet", "-y", "outcome"], "broken.parquet cannot be read"),
        "unknown kind": (["table.xyz", "-y", "outcome"], "table.xyz: unsupported file type; supported are .csv"),
        "a target of numbers": (
            ["numbers.csv", "-y", "outcome", "--classification"],
            "different values in 120 rows, too many for classes",
        ),
        "words to predict": (
            [*good, "--regression"],
            "Column 'outcome' must contain numbers to predict (--regression); row",
        ),
        "balanced numbers": (
            ["numbers.csv", "-y", "outcome", "--balanced"],
            "--balanced weights classes, but 'outcome'",
        ),
        "loss of numbers": ([*good, "--loss", "epsilon_insensitive"], "--loss for classes is hinge"),
        "loss of classes": (["numbers.csv", "-y", "outcome", "--loss", "hinge"], "--loss for numbers is squared"),
        "unknown loss": (
            ["numbers.csv", "-y", "outcome", "--loss", "huber"],
            "got 'huber'",
        ),
        "ε of the squared loss": (
            ["numbers.csv", "-y", "outcome", "--epsilon", "0.1"],
            "--epsilon works only with --loss",
        ),
        "accuracy of numbers": (["numbers.csv", "-y", "outcome", "--scoring", "accuracy"], "not a score for numbers"),
        "R² of classes": ([*good, "--scoring", "r2"], "'r2' is not a score for classes (--scoring)"),
        "constant in a task": (
            ["constant.csv", "-y", "outcome", "-t", "hospital", "--share", "kernel"],
            "Task 'St. Bo' has the same target, 7.5, in all rows",
        ),
        "numbers missing": (["no_number.csv", "-y", "outcome"], "Column 'outcome' is missing in 1 of 120 rows"),
        "an infinite number to predict": (
            ["endless.csv", "-y", "outcome"],
            "'outcome' has an infinite number in row 4",
        ),
        "a task of two rows": (
            ["small_task.csv", "-y", "outcome", "-t", "hospital", "--share", "kernel"],
            "Task 'tiny' has only 2 rows",
        ),
        "infinite": (["inf.csv", "-y", "outcome"], "Column 'age' has an infinite number in row 4"),
        "rows without target": (["no_y.csv", "-y", "outcome"], "Column 'outcome' is missing in 1 of 120 rows"),
        "unknown score": (
            [*good, "--scoring", "roc-auc"],
            "'roc-auc' is not a score for classes (--scoring); did you mean 'roc_auc'?",
        ),
        "score of probabilities": ([*good, "--scoring", "neg_log_loss"], "needs probabilities (--scoring)"),
        "unknown kernel": (["good.csv", "-y", "outcome", "--kernels", "magic"], "There is no kernel 'magic'"),
        "unknown column": (["good.csv", "-y", "outcome", "--kernels", "rbf:1@size"], "There is no column 'size'"),
        "two columns of one name": (["doubled.csv", "-y", "outcome"], "has two columns called 'age'"),
        "unknown source": ([*good, "--source", "body=agee"], "matches 'agee' (--source body); did you mean 'age'?"),
        "unknown pattern": (
            [*good, "--source", "g=g_*"],
            "matches 'g_*' (--source g); the columns are age, bmi, ward",
        ),
        "target as a source": ([*good, "--source", "y=outcome"], "No feature column matches 'outcome'"),
        "a source without columns": ([*good, "--source", "body="], "such as genes=g_* or clinic=age+bmi; got 'body='"),
        "one source twice": ([*good, "--source", "b=age", "--source", "b=bmi"], "--source 'b' is given twice"),
        "sources and kernels": (
            [*good, "--source", "b=age", "--kernels", "paper"],
            "--source gives each source the default kernels; do not use it with --kernels.",
        ),
        "half a degree": (["good.csv", "-y", "outcome", "--kernels", "poly:2.5"], "must be a whole number"),
        "bad number": (["good.csv", "-y", "outcome", "--Cs", "1,two"], "--Cs takes numbers"),
        "too many rows": (["good.csv", "-y", "outcome", "--max-rows", "100"], "more than 100 rows"),
    }


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spoilt")
    return folder, _spoilt(folder)


def test_bad_files_get_one_sentence_that_says_what_to_do(spoilt):
    folder, cases = spoilt
    before = sorted(folder.iterdir())
    for name, (arguments, words) in cases.items():
        file = str(folder / arguments[0])
        for command in (["path", "--out", str(folder / "out")], ["fit", "--out", str(folder / "out.skops")]):
            done = run(command[0], file, *arguments[1:], *command[1:])
            assert done.returncode == 2, (name, done)
            assert words in done.stderr, (name, done.stderr)
            assert len(done.stderr.strip().splitlines()) == 1, (name, done.stderr)
            assert done.stdout == "", name
    assert sorted(folder.iterdir()) == before, "nothing is left behind"


def test_errors_are_printed_as_json(spoilt):
    folder, _ = spoilt
    done = run("path", folder / "empty.csv", "-y", "outcome", "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout) == {"error": "empty.csv is empty."}


def test_ten_million_rows_are_refused_at_once_and_can_be_sampled(tmp_path):
    block = "".join(f"{k % 97},{k % 89},{k % 2}\n" for k in range(100_000))
    with open(tmp_path / "big.csv", "w") as file:
        file.write("a,b,y\n")
        for _ in range(100):
            file.write(block)
    began = time.perf_counter()
    done = run_process("fit", tmp_path / "big.csv", "-y", "y", "-o", tmp_path / "m.skops")
    assert done.returncode == 2
    assert "big.csv has more than 20,000 rows" in done.stderr
    assert "--sample" in done.stderr
    assert time.perf_counter() - began < 20
    done = run(
        *("fit", tmp_path / "big.csv", "-y", "y", "-o", tmp_path / "m.skops", "--sample", "200", "--json"),
        *("--p", "1", "--C", "1"),
    )
    assert json.loads(done.stdout)["rows"] == 200


def test_a_file_that_is_not_a_model_is_refused(folder, tmp_path):
    done = run("predict", folder / "new.csv", folder / "new.csv")
    assert done.returncode == 2
    assert "is not a saved model" in done.stderr
    other = paretomkl.ParetoMKLClassifier().fit(*load_iris(return_X_y=True))
    paretomkl.save_model(other, tmp_path / "other.skops")
    assert (
        "was fitted to an array, which names no columns"
        in run("predict", tmp_path / "other.skops", folder / "new.csv").stderr
    )


def test_columns_that_a_model_needs_are_named(folder, model, tmp_path):
    patients().drop(columns="bmi").to_csv(tmp_path / "less.csv", index=False)
    done = run("predict", model, tmp_path / "less.csv")
    assert done.returncode == 2
    assert "has no column 'bmi'" in done.stderr


def cpu_seconds(pid: int) -> float:
    """CPU seconds of a process; without /proc, assume enough."""
    if not Path("/proc").exists():
        return 4.0
    times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def test_an_interrupt_leaves_nothing_behind(folder, tmp_path):
    patients(20_000).to_csv(tmp_path / "t.csv", index=False)
    words = [COMMAND, "path", tmp_path / "t.csv", "-y", "outcome", "--out", tmp_path / "out", "--points", "1000"]
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(1200):  # wait until it is working, with seconds left to run
        if cpu_seconds(process.pid) > 1.5:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert sorted(file.name for file in tmp_path.iterdir()) == ["t.csv"]


# --------------------------------------------------------------------------------------------------- info
def test_info():
    done = run("info")
    assert done.returncode == 0, done.stderr
    assert "scikit-learn" in done.stdout
    facts = json.loads(run("info", "--json").stdout)
    assert facts["paretomkl"] == paretomkl.__version__
    assert "landmine" in facts["data"]


@pytest.mark.slow
def test_a_machine_is_warmed_up_once(folder, tmp_path):
    """After ``info --warm-up`` no command compiles anything."""
    command = (COMMAND, "info", "--warm-up")
    code, written = run_on_a_terminal(*command, cache=tmp_path)
    assert code == 0, written
    assert re.search(r"Compiled \d+ functions in \d+ s", written)
    assert written.count(ANNOUNCEMENT) == 1
    fit = ("fit", folder / "patients.csv", "-y", "outcome", "-t", "hospital", "-o", tmp_path / "m.skops")
    path = ("path", folder / "patients.csv", "-y", "outcome", "--out", tmp_path / "out", "--points", "15")
    predict = ("predict", tmp_path / "m.skops", folder / "new.csv")
    for words in (fit, path, predict, ("demo", "--no-page")):
        code, written = run_on_a_terminal(COMMAND, *words, cache=tmp_path)
        assert code == 0, written
        assert ANNOUNCEMENT not in written, words
    code, written = run_on_a_terminal(*command, cache=tmp_path)
    assert code == 0, written
    assert "Already compiled" in written
    assert ANNOUNCEMENT not in written


def test_compiling_is_announced_once_and_not_next_to_a_progress_line(tmp_path):
    code = """
import numba
import paretomkl.path
from paretomkl._tools.running import Progress

def compile():
    function = numba.njit(lambda x: x + 1)
    function.py_func.__module__ = "paretomkl.somewhere"
    function(1)

with Progress(2, 1e-3, verbose=1) as progress:
    progress.report(1.0, 1, 0.5)
    compile()
    compile()
"""
    status, written = run_on_a_terminal("-c", code, cache=tmp_path)
    assert status == 0, written
    assert "0/2 points" in written
    seen = [line.rpartition("\r\x1b[K")[2] for line in written.split("\r\n")]
    assert seen.count(ANNOUNCEMENT) == 1, "the progress line has made room for it"


def test_kernels_from_text():
    made = parse_kernels("rbf:0.5, linear@a+b ,poly:3", ["a", "b", "b_size"])
    assert made == [("rbf", {"sigma": 0.5}), ("linear", {"columns": ["a", "b"]}), ("poly", {"degree": 3})]
    assert parse_kernels("default", []) == "default"
    assert parse_kernels("paper", []) == "paper"


# ------------------------------------------------------------------------------------------------- regression
def costs(n: int = 120, seed: int = 0) -> pd.DataFrame:
    """The patients and their costs, which also depend on the hospital."""
    frame = patients(n, seed).drop(columns="outcome")
    slope = np.where(frame["hospital"] == "St. Bo", 1.0, 3.0)
    noise = 5 * np.random.default_rng(seed).standard_normal(n)
    return frame.assign(cost=(100 + slope * frame["age"] + 40 * (frame["ward"] == "east") + noise).round(2))


@pytest.fixture(scope="module")
def priced(folder) -> Path:
    costs().to_csv(folder / "costs.csv", index=False)
    costs(40, seed=1).to_csv(folder / "new_costs.csv", index=False)
    return folder / "costs.csv"


@pytest.fixture(scope="module")
def regressor(priced, folder) -> tuple[Path, Done]:
    words = ("fit", priced, "-y", "cost", "-t", "hospital", "-o", folder / "cost.skops", "--Cs", "1,10", "--cv", "3")
    done = run(*words, "--ps", "1,10")
    assert done.returncode == 0, done.stderr
    return folder / "cost.skops", done


def test_options_override_the_kind_of_target(tmp_path):
    file = tmp_path / "t.parquet"
    pd.DataFrame({"x": np.arange(60) % 7, "y": [1, 2, 3] * 20, "z": [0.5, 1.0] * 30}).to_parquet(file)
    numbers = load_table(file, "y", regression=True, drop=["z"])
    assert numbers.regression
    assert numbers.y.dtype == float
    classes = load_table(file, "z", regression=False, drop=["y"])
    assert set(classes.y) == {"0.5", "1"}
    words = ("fit", file, "--drop", "z", "-o", tmp_path / "m.skops", "--p", "1", "--C", "1", "-y", "y")
    assert "3 different numbers, treated as classes; --regression predicts numbers" in run(*words).stderr
    done = run(*words, "--regression", "--json")
    assert done.stderr == ""
    assert json.loads(done.stdout)["scoring"] == "r2"


def test_regression_fit_says_how_good_it_is(regressor):
    _, done = regressor
    assert "'cost' has 120 different numbers, so this is a regression; --classification treats them" in done.stderr
    assert re.search(r"Chosen by 3-fold cross-validation: .*, C = .*; R² 0\.\d{3}\.", done.stdout)
    for name in ("one kernel ridge on all tasks together", "one kernel ridge per task", "the mean of each task"):
        assert name in done.stdout
    interval, others = r" +\d\.\d{3} +−?\d\.\d{3} to \d\.\d{3}", r"( +−?\d\.\d{3}){2} +\d+\.\d+ +$"
    assert re.search(rf"^ +St\. Bo +60{interval}{others}", done.stdout, re.MULTILINE)
    assert re.search(rf"^ +all rows +120{interval}{others}", done.stdout, re.MULTILINE)
    assert all(len(line) <= 80 for line in done.stdout.splitlines() if line.startswith("  "))
    assert "accuracy" not in done.stdout


def test_regression_fit_prints_json(priced, tmp_path):
    words = (
        "fit",
        priced,
        "-y",
        "cost",
        "-t",
        "hospital",
        "-o",
        tmp_path / "m.skops",
        "--ps",
        "1",
        "--cv",
        "3",
        "--json",
    )
    given = (
        "--Cs",
        "1,10",
        "--loss",
        "epsilon_insensitive",
        "--epsilon",
        "0.2",
        "--scoring",
        "neg_mean_absolute_error",
    )
    facts = json.loads(run(*words, *given).stdout)
    assert (facts["scoring"], facts["epsilon"]) == ("neg_mean_absolute_error", 0.2)
    assert facts["cv_score"] < 0
    ours = facts["comparison"]["scores"]["paretomkl"]
    assert ours["tasks"].keys() == {"St. Anna", "St. Bo"}
    assert ours["tasks"]["St. Bo"]["rows"] == 60
    mean = facts["comparison"]["scores"]["the mean of each task"]
    frame = costs()
    for task, spread in frame.groupby("hospital")["cost"].std(ddof=0).items():
        assert ours["tasks"][task]["rmse"] < 0.5 * spread
        assert mean["tasks"][task]["rmse"] == pytest.approx(spread, rel=0.05)
        assert mean["tasks"][task]["r2"] < 0
    assert paretomkl.load_model(tmp_path / "m.skops").model.loss == "epsilon_insensitive"


def test_a_saved_regressor_predicts_numbers(regressor, folder, tmp_path):
    model, _ = regressor
    done = run("predict", model, folder / "new_costs.csv", "--out", tmp_path / "p.csv")
    assert done.returncode == 0, done.stderr
    predicted, truth = pd.read_csv(tmp_path / "p.csv")["predicted_cost"], costs(40, seed=1)
    assert np.corrcoef(predicted, truth["cost"])[0, 1] > 0.9
    facts = json.loads(run("predict", model, folder / "new_costs.csv", "--json").stdout)
    assert_allclose(facts["predictions"], predicted)
    for task, rows in truth.groupby("hospital").groups.items():
        error = predicted[rows] - truth["cost"][rows]
        r2 = 1 - (error**2).sum() / ((truth["cost"][rows] - truth["cost"][rows].mean()) ** 2).sum()
        assert facts["score"]["tasks"][task]["score"] == pytest.approx(r2)
        assert facts["errors"]["tasks"][task]["rmse"] == pytest.approx(np.sqrt((error**2).mean()))
        assert re.search(rf"{re.escape(task)} +20 +{r2:.3f}", done.stdout)
    costs(40, seed=1).drop(columns="cost").to_csv(tmp_path / "blind.csv", index=False)
    blind = run("predict", model, tmp_path / "blind.csv")
    assert blind.stderr == ""
    assert_allclose([float(line.rpartition(",")[2]) for line in blind.stdout.splitlines()[1:]], predicted)
    assert "--scores adds" in run("predict", model, tmp_path / "blind.csv", "--scores").stderr


def test_predictions_are_judged_by_the_score_of_the_model(folder, tmp_path):
    """The area under the curve of the decisions in each hospital, and its interval; accuracy for older files."""
    words = (folder / "patients.csv", "-y", "outcome", "-t", "hospital", "--p", "1", "--C", "1", "--balanced")
    truth, new = patients(seed=1), tmp_path / "known.csv"
    truth.to_csv(new, index=False)
    for scoring, name in (("roc_auc", "ROC AUC"), ("worst_roc_auc", "ROC AUC"), (None, "Balanced accuracy")):
        given = [] if scoring is None else ["--scoring", scoring]
        assert run("fit", *words, *given, "-o", tmp_path / "m.skops").returncode == 0
        done = run("predict", tmp_path / "m.skops", new, "-o", tmp_path / "p.csv")
        assert f"{name} by task" in done.stdout
    assert run("fit", *words, "--scoring", "roc_auc", "-o", tmp_path / "m.skops").returncode == 0
    facts = json.loads(run("predict", tmp_path / "m.skops", new, "--json").stdout)
    (decisions,) = facts["scores"].values()
    assert facts["score"]["scoring"] == "roc_auc"
    for hospital, found in facts["score"]["tasks"].items():
        mine = (truth["hospital"] == hospital).to_numpy()
        assert found["score"] == pytest.approx(roc_auc_score(truth["outcome"][mine], np.array(decisions)[mine]))
        assert found["low"] < found["score"] < found["high"]
    quiet = json.loads(run("predict", tmp_path / "m.skops", new, "--json", "--no-scores").stdout)
    assert "scores" not in quiet
    assert quiet["score"] == facts["score"]


def test_groups_of_rows_stay_together(tmp_path):
    """Three rows of each patient, nearly the same: folds that keep them together tell what a new patient is like."""
    rng = np.random.default_rng(0)
    own = rng.normal(size=(40, 4)).repeat(3, axis=0) + 0.01 * rng.normal(size=(120, 4))
    frame = pd.DataFrame(own, columns=list("abcd")).assign(patient=[f"p{k // 3}" for k in range(120)])
    frame["ill"] = np.where(rng.permutation(np.arange(40) % 2).repeat(3), "yes", "no")
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = (tmp_path / "t.csv", "-y", "ill", "--s", "1.1", "--capacity", "0.5")
    fit = ("fit", *words, "--ps", "1", "--Cs", "1,10", "-o", tmp_path / "m.skops", "--no-baselines", "--json")
    apart = json.loads(run(*fit, "--group", "patient").stdout)
    divided = json.loads(run(*fit, "--drop", "patient").stdout)
    assert apart["cv_score"] < 0.65 < 0.9 < divided["cv_score"]
    assert apart["by_task"]["all_rows"]["high"] - apart["by_task"]["all_rows"]["low"] > 0.2
    assert "--group has no effect" in run(*fit[:-1], "--C", "1", "--group", "patient").stderr
    done = run("path", *words, "--C", "1", "--group", "patient", "--points", "15", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    frame.assign(patient=frame["patient"].where(frame.index > 3)).to_csv(tmp_path / "t.csv", index=False)
    assert "Column 'patient' (--group) has no value in 4 rows" in run(*fit[:-1], "--group", "patient").stderr
    assert "cannot be both the target and the group" in run(*fit[:-1], "--group", "ill").stderr


def test_path_of_a_regression(priced, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = (
        "path",
        priced,
        "-y",
        "cost",
        "-t",
        "hospital",
        "--C",
        "10",
        "--s",
        "1.1",
        "--points",
        "15",
        "--out",
        "out",
    )
    done = run(*words, "--loss", "epsilon_insensitive", "--epsilon", "0.05", "--capacity", "1")
    assert done.returncode == 0, done.stderr
    table = pd.read_csv(tmp_path / "out" / "path.csv")
    assert table["r2"].gt(0.5).all()
    assert {"r2: St. Bo", "objective: St. Bo"} <= set(table.columns)
    page = (tmp_path / "out" / "page.html").read_text(encoding="utf-8")
    assert "Predicted vs. observed" in page
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page)[1])
    names: dict[str, object] = {}
    exec(data["code"].replace("{p}", "1.0"), names)
    command = re.search(r"`(paretomkl fit .*?)`", data["codeNote"])[1].replace("{p}", "1")
    assert "--loss epsilon_insensitive" in command
    assert "--epsilon 0.05" in command
    facts = json.loads(run(*shlex.split(command)[1:], "--json").stdout)
    assert_allclose(list(facts["theta"].values()), names["reg"].theta_, atol=1e-9)


def test_wide_tables_are_fitted_and_predicted(tmp_path):
    names, rng = [f"{k:0500d}" for k in range(300)], np.random.default_rng(0)
    outcome = rng.integers(0, 2, 24)
    frame = pd.DataFrame(rng.normal(size=(24, 300)) + outcome[:, None], columns=names)
    frame.assign(outcome=outcome).to_csv(tmp_path / "wide.csv", index=False)
    words = ("fit", tmp_path / "wide.csv", "-y", "outcome", "--out", tmp_path / "m.skops", "--p", 1, "--C", 1)
    fit = run(*words, "--no-baselines")
    assert fit.returncode == 0, fit.stderr
    done = run("predict", tmp_path / "m.skops", tmp_path / "wide.csv", "--out", tmp_path / "p.csv")
    assert done.returncode == 0, done.stderr
    assert (pd.read_csv(tmp_path / "p.csv")["predicted_outcome"] == outcome).all()


def test_a_damaged_model_is_refused_in_one_sentence(regressor, folder, tmp_path):
    saved = paretomkl.load_model(regressor[0])
    saved.model.model_.theta[:] = np.nan
    paretomkl.save_model(saved, tmp_path / "m.skops")
    done = run("predict", tmp_path / "m.skops", folder / "new_costs.csv", "--out", tmp_path / "p.csv")
    assert done.returncode == 2
    assert "theta of its" in " ".join(done.stderr.split())
    assert not (tmp_path / "p.csv").exists()
