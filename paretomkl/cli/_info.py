"""``paretomkl info``, and ``paretomkl reproduce``, which belongs to the experiments."""

import os
from contextlib import suppress
from typing import Annotated

from typer import Option

from .. import __version__
from .._experiments.cli import reproduce
from .._tools.wording import counted
from ._options import AsJson
from ._running import Output, command

PACKAGES = (
    *("numpy", "scipy", "scikit-learn", "numba", "joblib", "pandas", "pyarrow"),
    *("matplotlib", "skops", "cvxpy", "distributed"),
)
EXAMPLE = "Example: `paretomkl reproduce --quick --jobs 2`, then open `experiments/tables.md`."
command(EXAMPLE, resumable=True, summary="Run the paper's experiments.")(reproduce)


@command(summary="Show versions, threads and data sets on this computer.")
def info(
    warm_up: Annotated[bool, Option("--warm-up", help="Compile now, once per machine, not at first use.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show versions, threads, and which data sets of the paper are on this computer."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from ..datasets import data_found

    output = Output(as_json)
    if warm_up:
        _warm_up(output)
        return
    packages, data = dict.fromkeys(PACKAGES, ""), data_found()
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            packages[name] = version(name)
    facts = {
        "paretomkl": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "threads": {name: os.environ[name] for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS") if name in os.environ},
        "packages": {name: installed or None for name, installed in packages.items()},
        "data": data,
    }
    rows = {"paretomkl": __version__, "Python": f"{facts['python']} on {facts['system']}, {facts['cores']} cores"}
    rows |= {name: installed or "not installed" for name, installed in packages.items()}
    rows |= {f"data: {name}": str(folder or "not here yet; downloaded when needed") for name, folder in data.items()}
    table = Table(box=SIMPLE_HEAD, show_header=False)
    for row in rows.items():
        table.add_row(*row)
    output.say(table)
    output.finish(facts)


def _warm_up(output: Output) -> None:
    """Compile everything; say how many functions were compiled, without those from the cache, and how long it took."""
    import warnings
    from time import perf_counter

    from numba.core import event

    began = perf_counter()
    with event.install_recorder("numba:compile") as recorder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the problems are too small for warnings to mean anything
        _run_everything()
    compiled, seconds = sum(happened.is_start for _, happened in recorder.buffer), perf_counter() - began
    fresh = f"Compiled {counted(compiled, 'function')} in {seconds:.0f} s; from now on they load from the cache."
    output.say(fresh if compiled else f"Already compiled; loading took {seconds:.1f} s.")
    output.finish({"compiled": compiled, "seconds": seconds})


def _run_everything() -> None:
    """Run paths, fits, searches, predictions and baselines on a tiny problem."""
    import numpy as np

    from .. import baselines
    from .._learn.estimators import ParetoMKLClassifier
    from .._learn.path import pareto_path
    from .._select.search import ParetoMKLClassifierCV
    from ..kernels._kernels import Cosine, Gaussian, Laplacian, Linear, Polynomial

    ps = (0.5, 1.0, 2.0, np.inf)
    rng = np.random.default_rng(0)
    X, y, tasks = rng.random((24, 3)), np.tile([0, 1], 12), np.repeat([0, 1], 12)
    kernels = [Linear(), Polynomial(2), Gaussian(1.0), Laplacian(1.0), Cosine()]
    for s in (1.0, 1.1, np.inf):
        pareto_path(X, y, tasks=tasks, ps=ps, s=s, kernels=kernels, verbose=0)
    pareto_path(X, (X[:, 0] > 0.5) ^ (y == 1), ps=[1.0], kernels=[Linear()], C=1e6, verbose=0)  # takes Newton steps
    for solver in ("bcd", "tseng"):
        pareto_path(X, y, tasks=tasks, ps=[1.0], kernels=kernels, solver=solver, max_iter=3, verbose=0)
    stack = np.stack([X @ X.T, (X @ X.T) ** 2], axis=2)
    for samples, bank in ((X, kernels), (stack, "precomputed")):
        ParetoMKLClassifier(kernels=bank).fit(samples, y, tasks=tasks).predict(samples, tasks=tasks)
        search = ParetoMKLClassifierCV(ps, Cs=[1.0, 10.0], cv=2, kernels=bank).fit(samples, y, tasks=tasks)
        search.predict(samples, tasks=tasks)
    for name in baselines.__all__:
        getattr(baselines, name)().fit(X, y, tasks=tasks).predict(X, tasks=tasks)
