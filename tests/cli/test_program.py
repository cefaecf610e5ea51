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
import pytest
from numpy.testing import assert_allclose

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
    given = ("--share", "kernel", "--s", 2, "--C", 10, "--capacity", 0.5, "--cv", 2, "--no-rivals", "--points", 15)
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
