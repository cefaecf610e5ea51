"""A headless browser, and pages of small problems."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

import paretomkl
from paretomkl import ParetoMKLClassifierCV
from paretomkl.kernels import sources
from paretomkl.report import TradeOff, trade_off_page

UGLY = '<b>x</b>"&</script>'  # a task name that must be shown literally
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=1280,900",
)


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory, only_here: Callable[[str], None]) -> Iterator:
    only_here("browser")
    binary = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    service = shutil.which("chromedriver")
    if binary is None or service is None:
        reason = "the page is tested in Chromium, which is not here (Debian: apt-get install chromium chromium-driver)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    os.environ["SE_OFFLINE"] = "true"  # selenium must not look for a driver elsewhere
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(service))
    yield browser
    browser.quit()


def digits(n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """A balanced sample of scikit-learn's handwritten digits, pixels scaled to [0, 1]."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    shuffled = [rng.permutation(np.flatnonzero(y == digit)) for digit in range(10)]
    # take one of each digit in turn, until there are enough
    rows = [same[turn] for turn in range(max(map(len, shuffled))) for same in shuffled if turn < len(same)]
    chosen = np.sort(rows[:n_samples])
    return X[chosen] / 16, y[chosen]


def two_machines(n: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two tasks that need different kernels: a smooth border with little noise, and a wavy one with a lot of noise."""
    rng = np.random.default_rng(0)
    Xs = [rng.random((n, 4)) for _ in range(2)]
    scores = [
        Xs[0][:, 0] - 0.5 + 0.05 * rng.standard_normal(n),
        np.sin(8 * Xs[1][:, 1]) + 0.9 * rng.standard_normal(n),
    ]
    return paretomkl.stack_tasks(Xs, [np.where(score > 0, "yes", "no") for score in scores], names=["pump", UGLY])


@pytest.fixture(scope="session")
def many(tmp_path_factory: pytest.TempPathFactory) -> TradeOff:
    """The 45 pairs of digits."""
    file = tmp_path_factory.mktemp("pages") / "many.html"
    return trade_off_page(ParetoMKLClassifierCV(Cs=[1.0, 10.0], cv=3), *digits(300), file=file, title="Digits")


@pytest.fixture(scope="session")
def two(tmp_path_factory: pytest.TempPathFactory) -> TradeOff:
    X, y, tasks = two_machines()
    file = tmp_path_factory.mktemp("pages") / "two.html"
    search = ParetoMKLClassifierCV(Cs=[1.0, 10.0], share="kernel")
    return trade_off_page(search, X, y, tasks=tasks, file=file, title="Two <machines> & more")


@pytest.fixture(scope="session")
def sourced(tmp_path_factory: pytest.TempPathFactory) -> TradeOff:
    """Two tasks and two sources, the first of which is more informative."""
    X, y, tasks = two_machines(40)
    file = tmp_path_factory.mktemp("pages") / "sourced.html"
    kernels = sources({"A & B": [0, 1], "</script>": slice(2, 4)})
    search = ParetoMKLClassifierCV(kernels=kernels, Cs=[1.0, 10.0], cv=3, share="kernel")
    return trade_off_page(search, X, y, tasks=tasks, n_points=20, file=file)


@pytest.fixture(scope="session")
def one(tmp_path_factory: pytest.TempPathFactory) -> tuple[paretomkl.ParetoPath, Path]:
    """A single task, without held-out samples."""
    X, y = digits(300)
    pair = np.isin(y, (3, 8))
    path = paretomkl.pareto_path(X[pair], y[pair], ps=[0.1, 1.0, np.inf], verbose=0)
    return path, path.to_html(tmp_path_factory.mktemp("pages") / "one.html")
