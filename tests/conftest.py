"""Small multi-task problems, in the form for the library and in the plain form for the oracles."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

from paretomkl._data.tasks import make_tasks
from paretomkl.kernels._kernels import as_bank

# Two test processes of two BLAS threads each mostly wait for each other: a ridge regression of 200 samples then takes
# thirty times as long. So one thread per process, and the same for processes that tests start.
threadpool_limits(1)
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"

# a shell that starts tests in the background makes them ignore interrupts, which some tests send to themselves
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

collect_ignore_glob = ["typing/*"]  # scripts for type checkers, not tests

# a change is judged by the same examples each time; elsewhere new ones are tried
settings.register_profile("ci", derandomize=True, deadline=None)
if os.environ.get("CI"):
    settings.load_profile("ci")

SHARED_DATA = Path(os.environ.get("PARETOMKL_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


# Tests that run in one process, because they share something that takes seconds to start: a browser, a cluster, models.
# (Marks of xdist_group would not do: pytest 9.2 has moved the name of a test, to which xdist 3.8 adds the group.)
GROUPS = {
    "tests/report/": "pages",
    "tests/distributed/": "cluster",
    "tests/experiments/test_runner.py::test_a_dask_cluster": "cluster",
    "tests/select/test_search.py::test_a_dask_cluster": "cluster",
    "tests/cli/test_cli.py": "commands",
    "tests/cli/test_shell.py": "shell",
}


@pytest.hookimpl(optionalhook=True)  # there is no such hook without xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling

    class Groups(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return next((group for place, group in GROUPS.items() if nodeid.startswith(place)), nodeid)

    return Groups(config, log)


@pytest.fixture(scope="session")
def only_here(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], None]:
    """A function that fails if another process of this run has called it with the same name."""

    def check(what: str) -> None:
        if not hasattr(request.config, "workerinput") or request.config.getoption("dist") != "loadgroup":
            return
        try:
            (tmp_path_factory.getbasetemp().parent / f"started-{what}").touch(exist_ok=False)
        except FileExistsError:
            pytest.fail(f"two processes start a {what}; see GROUPS in tests/conftest.py")

    return check


@dataclass(frozen=True)
class Toy:
    """T tasks of different difficulty on separate samples: X, y, tasks; and Ks (M, N, N) with pairs (rows, signs)."""

    X: np.ndarray
    y: np.ndarray
    tasks: np.ndarray
    kernels: list
    Ks: np.ndarray
    pairs: list[tuple[np.ndarray, np.ndarray]]


def make_toy(seed: int = 0, n_tasks: int = 3, n: int = 18, n_features: int = 3) -> Toy:
    """Tasks with increasing label noise, and five kernels, none of which is best for all tasks."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_tasks * n, n_features))
    tasks = np.repeat([f"task {t}" for t in range(n_tasks)], n)
    direction = rng.standard_normal((n_tasks, n_features))
    score = np.einsum("tij,tj->ti", (X - 0.5).reshape(n_tasks, n, n_features), direction)
    score += (0.1 + 0.3 * np.arange(n_tasks))[:, None] * rng.standard_normal((n_tasks, n))
    score -= np.median(score, axis=1, keepdims=True)  # both classes in every task
    y = np.where(score > 0, "yes", "no").ravel()
    kernels = ["linear", "poly", ("rbf", {"sigma": 0.3}), ("rbf", {"sigma": 1.0}), ("laplacian", {"gamma": 2.0})]
    bank = as_bank(kernels).fit(X)
    side = bank.side(X)
    Ks = np.array([bank.cross(side, side, row) for row in np.eye(len(kernels))])
    pairs = [(task.rows, task.targets) for task in make_tasks(y, tasks)]
    return Toy(X, y, tasks, kernels, Ks, pairs)


@pytest.fixture(scope="session")
def toy() -> Toy:
    return make_toy()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    if not SHARED_DATA.is_dir():
        pytest.skip("the real data sets are not here; set PARETOMKL_DATA to a folder that holds them")
    return SHARED_DATA


@pytest.fixture(scope="session")
def cluster(only_here: Callable[[str], None]) -> Iterator:
    """A Dask cluster of two processes, which take seconds to start."""
    only_here("cluster")
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", host="127.0.0.1"
    ) as made:
        yield made
