"""The page of error messages quotes what the library says."""

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from typer.testing import CliRunner

import paretomkl
from paretomkl import (
    Gaussian,
    ParetoMKLClassifier,
    ParetoMKLClassifierCV,
    ParetoMKLOutlierDetector,
    ParetoMKLRegressor,
    pareto_path,
)
from paretomkl._tools.files import WriteError
from paretomkl.cli._app import app
from paretomkl.model_selection import make_multitask_scorer
from paretomkl.solvers import CutPool

PAGE = Path(__file__).resolve().parents[1] / "doc" / "guide" / "errors.md"
QUOTES = re.findall(r"^\| (?!message )(.+?) \| .+ \|$", PAGE.read_text("utf-8"), re.M)
VALUES = r"…|'[^']*'|\[[^]]*\]|-?\d[\d.e-]*|(?<=Kernel )f|ConvergenceWarning: "

RNG = np.random.default_rng(0)
X, Y, AB = RNG.uniform(size=(40, 3)), np.arange(40) % 2, np.repeat(["a", "b"], 20)
STACK = np.stack([X @ X.T, np.eye(40)], axis=2)
FRAME = pd.DataFrame(X, columns=["age", "bmi", "dose"])
MODEL = ParetoMKLClassifier(kernels=["linear"])
PATIENTS = FRAME.assign(outcome=np.where(Y, "ill", "well"), hospital=AB)


def command(*words: object) -> None:
    raise RuntimeError(CliRunner().invoke(app, [str(word) for word in words]).stderr)


def fit(frame: pd.DataFrame, *words: object) -> None:
    frame.to_csv("data.csv", index=False, encoding="cp1252")
    command("fit", "data.csv", "-y", "outcome", "-o", "model.skops", "--p", 1, "--C", 1, "--share", "kernel", *words)


def tanh(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.tanh(3 * A @ B.T - 2)


def unknown_task() -> None:
    model = ParetoMKLClassifier(task_column="hospital").fit(PATIENTS.drop(columns="outcome"), Y)
    paretomkl.save_model(model, "m.skops")
    PATIENTS.replace({"hospital": {"b": "St Bo"}})[18:22].to_csv("new.csv", index=False)
    command("predict", "m.skops", "new.csv")


def not_a_model() -> None:
    skops = pytest.importorskip("skops.io")
    skops.dump({"kind": "paretomkl model", "x": os.system}, "model.skops")
    PATIENTS.to_csv("new.csv", index=False)
    command("predict", "model.skops", "new.csv")


def full_disk() -> None:
    raise WriteError.of("'model.skops'", OSError(errno.ENOSPC, "no space"))


# what leads to each message of the page, in its order
CAUSES: list[Callable[[], object]] = [
    lambda: MODEL.fit(X, np.where(AB == "b", 1, Y), tasks=AB),
    lambda: MODEL.fit(X, 0 * Y),
    lambda: MODEL.fit(X, np.where(np.arange(40) == 5, np.nan, Y)),
    lambda: MODEL.fit(X, np.c_[Y, np.arange(40) % 3]),
    lambda: MODEL.fit(X, Y, tasks=AB).predict(X[:1], tasks=["pump"]),
    lambda: MODEL.fit(X, pd.DataFrame({"b": Y, "c": Y})).score(X, pd.DataFrame({"a": Y, "b": Y})),
    lambda: ParetoMKLClassifierCV(scoring=make_multitask_scorer("accuracy", average=None)).fit(X, Y, tasks=AB),
    lambda: MODEL.fit(X, Y, tasks=AB).predict(X),
    lambda: clone(MODEL).set_params(task_column="site").fit(X, Y),
    lambda: pareto_path(X, Y, kernels=[tanh]),
    lambda: pareto_path(STACK + X[:, :1, None], Y, kernels="precomputed"),
    lambda: pareto_path(STACK.T, Y, kernels="precomputed"),
    lambda: ParetoMKLRegressor().fit(X, np.where(AB == "a", 1.0, X[:, 0]), tasks=AB),
    lambda: ParetoMKLOutlierDetector(kernels=[Gaussian(1.0), Gaussian(2.0)]).fit(X),
    lambda: pareto_path(X, X[:, 0], ps=[2.0], machine="ridge", solver="tseng"),
    lambda: fit(PATIENTS.assign(outcome=PATIENTS["outcome"].mask(AB == "b", "well")), "--task", "hospital"),
    lambda: MODEL.fit(FRAME.assign(visit=pd.Timestamp("2026-01-31")), Y),
    lambda: MODEL.fit(FRAME.assign(name=[f"name {k}" for k in range(40)]), Y),
    lambda: MODEL.fit(FRAME, Y).predict(FRAME.assign(age="old")),
    lambda: MODEL.fit(FRAME.assign(sex=AB, stage=AB), Y).predict(STACK[:, :5, 0]),
    lambda: fit(PATIENTS.assign(outcome=PATIENTS["outcome"].mask(np.arange(40) < 3))),
    unknown_task,
    lambda: fit(PATIENTS.assign(hospital="Borås")),
    not_a_model,
    full_disk,
    lambda: pareto_path(X, Y, ps=[0.5], solver=CutPool(tol=1e-6, max_iter=1)),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("quote", "cause"), [*zip(QUOTES, CAUSES, strict=True)])
def test_the_guide_quotes_messages(quote, cause, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, TypeError, OSError, RuntimeError, Warning)) as caught:
        cause()
    assert re.search(".*".join(map(re.escape, re.split(VALUES, quote))), str(caught.value))
