"""The program on the page, run as printed in a process of its own."""

from __future__ import annotations

import html
import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import Ridge

from paretomkl import ParetoMKLClassifier, load_model, save_model

from .test_cli import patients, run


def classes() -> pd.DataFrame:
    return patients(60)


def numbers() -> pd.DataFrame:
    """Columns of very different scale, and a target far from zero."""
    frame = patients(60).assign(dose=np.random.default_rng(3).normal(5e4, 1e4, 60))
    return frame.assign(outcome=100 + 3 * frame["bmi"] + frame["dose"] / 1e4)


def gaps() -> pd.DataFrame:
    """Text and numbers with gaps, a semicolon between columns, and codes that are categories."""
    frame = patients(60).assign(ward_code=np.arange(60) % 3)
    for seed, name in enumerate(["age", "ward"]):
        frame.loc[np.random.default_rng(seed).random(60) < 0.2, name] = None
    return frame


GAPS = ("--impute", "--delimiter", ";", "--categorical", "ward_code", "--source", "body=age+bmi")


@pytest.mark.parametrize(("make", "words"), [(classes, ()), (numbers, ()), (gaps, GAPS)])
def test_program_on_the_page_predicts_raw_rows(make, words, tmp_path, monkeypatch):
    """It runs as printed, and predicts what the model of the command beside it predicts."""
    monkeypatch.chdir(tmp_path)
    make().to_csv("rows.csv", index=False, sep=";" if words else ",")
    given = ("--share", "kernel", "--s", 2, "--C", 10, "--capacity", 0.5, "--cv", 2, "--no-baselines", "--points", 15)
    done = run("path", "rows.csv", "-y", "outcome", "-t", "hospital", *given, *words, "--out", "page")
    assert done.returncode == 0, done.stderr
    page = Path("page/page.html").read_text(encoding="utf-8")
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    data = json.loads(text)
    program = data["code"].replace("{p}", data["codeP"][0])
    printed = subprocess.run(
        [sys.executable, "-c", f"import numpy\nnumpy.set_printoptions(threshold=1000, precision=17)\n{program}"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    ).stdout
    found = re.sub(r"[\[\]'\s]+", " ", printed).split()

    (top,) = re.findall('<ul class="verdict">(.*?)</ul>', page)
    next_command = html.unescape(re.findall("<code>(.*?)</code>", top)[-1])
    assert done.stdout.endswith(f"Next: `{next_command}`.\n")
    assert "--p" in next_command

    (command,) = re.findall("`(.*?)`", data["codeNote"])
    assert run(*shlex.split(command.replace("{p}", data["codeP"][0]))[1:]).stdout.endswith(
        "Next: `paretomkl predict model.skops new.csv`.\n"
    )
    done = run("predict", "model.skops", "rows.csv", *words[1:3])
    assert done.returncode == 0, done.stderr
    expected = pd.read_csv(io.StringIO(done.stdout))["predicted_outcome"]
    assert len(set(expected)) > 1
    if make is numbers:
        assert_allclose([float(one) for one in found], expected, rtol=1e-7)
    else:
        assert found == expected.tolist()


def test_one_format_for_the_command_line_and_python(tmp_path):
    """load_model on a file of `fit` predicts raw rows, and `predict` reads what save_model wrote."""
    frame = gaps().assign(site=np.arange(60) % 2 + 7).drop(columns="hospital")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame = pd.read_csv(tmp_path / "rows.csv")
    words = ("-y", "outcome", "-t", "site", "--impute", "--p", 1, "--C", 1, "-o", tmp_path / "fit.skops")
    assert run("fit", tmp_path / "rows.csv", *words).returncode == 0
    inputs = frame.drop(columns="outcome")
    clf = ParetoMKLClassifier(C=1.0, task_column="site").fit(inputs, frame["outcome"])
    save_model(clf, tmp_path / "python.skops")
    assert (tmp_path / "python.skops").stat().st_size < 100_000

    def predicted(name: str) -> pd.DataFrame:
        done = run("predict", tmp_path / name, tmp_path / "rows.csv", "--scores")
        assert done.returncode == 0, done.stderr
        return pd.read_csv(io.StringIO(done.stdout))

    of_fit, of_python, loaded = predicted("fit.skops"), predicted("python.skops"), load_model(tmp_path / "fit.skops")
    assert_allclose(loaded.decision_function(frame), of_fit["margin: well"], atol=1e-12)
    assert list(loaded.predict(frame)) == list(of_fit["predicted_outcome"])
    assert_allclose(clf.decision_function(inputs), of_python["margin: well"], atol=1e-12)
    assert list(of_python) == ["site", "prediction", "margin: well"]
    assert_allclose(loaded.decision_function(pl.from_pandas(frame)), of_fit["margin: well"], atol=1e-12)
    card = loaded.card()
    assert "| 7 | 30 |\n| 8 | 30 |" in card
    assert "It predicts `outcome`, one of ill and well, from 4 columns: age, bmi, ward_code and ward." in card
    with pytest.raises(ValueError, match="The table has no column 'bmi', which the model needs"):
        loaded.predict(frame.drop(columns="bmi"))


def test_models_that_no_table_fits_are_refused(tmp_path):
    frame = classes()
    numbers = frame[["age", "bmi"]]
    frame.to_csv(tmp_path / "rows.csv", index=False)
    made = {
        "was fitted to an array": ParetoMKLClassifier().fit(numbers.to_numpy(), frame["outcome"]),
        "was fitted with tasks=": ParetoMKLClassifier().fit(numbers, frame["outcome"], tasks=frame["hospital"]),
        "holds a Ridge": Ridge().fit(numbers, frame["age"]),
    }
    for message, model in made.items():
        save_model(model, tmp_path / "m.skops")
        done = run("predict", tmp_path / "m.skops", tmp_path / "rows.csv")
        assert done.returncode == 2
        assert message in " ".join(done.stderr.split())
