"""Runs the missing cells, locally or on a cluster, and saves each one as soon as it is finished."""

from __future__ import annotations

import hashlib
import os
import platform
import traceback
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from operator import attrgetter
from pathlib import Path
from statistics import mean
from time import perf_counter, thread_time
from typing import Any

from .plan import Cell, Settings
from .results import Record, Results

SHOW_EVERY = 60.0  # seconds between two progress lines without a terminal


# ------------------------------------------------------------------------------------------------- one cell
def run_cell(cell: Cell, settings: Settings, data_home: str | None = None) -> Record:
    """Run one cell on one thread; an error becomes a record, so that the other cells still run."""
    from threadpoolctl import threadpool_limits

    from .methods import run_method
    from .plan import make_split

    began = thread_time()  # CPU time of this thread, which does all the work; other programs do not count
    with threadpool_limits(1):
        try:
            outcome = run_method(cell.method, make_split(cell, settings, data_home), settings)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            message = f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
            return Record(cell, thread_time() - began, versions(), message=message)
    return Record(cell, thread_time() - began, versions(), outcome)


@cache
def versions() -> dict[str, str]:
    """Versions of everything that affects the numbers; ``source`` is a checksum of the package's own code."""
    package = Path(__file__).resolve().parents[1]
    code = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        code.update(path.relative_to(package).as_posix().encode() + path.read_bytes())
    found = {name: version(name) for name in ("paretomkl", "numpy", "scipy", "scikit-learn", "numba")}
    return found | {"python": platform.python_version(), "source": code.hexdigest()[:12]}


# ------------------------------------------------------------------------------------------------ all of them
def run_plan(
    plan: Sequence[Cell],
    results: Results,
    settings: Settings,
    jobs: int = 1,
    scheduler: str | None = None,
    data_home: str | os.PathLike[str] | None = None,
    console: Any = None,
) -> int:
    """Run the cells missing from the results file, in the order of the plan, and return how many failed.

    jobs: processes, with one thread each; scheduler: address of a Dask scheduler to use instead, whose workers must be
    able to read ``data_home``; console: where to show progress.
    """
    from joblib import Parallel, delayed

    finished = results.finished()
    missing = [cell for cell in plan if cell not in finished]
    if not missing:
        return 0
    home = None if data_home is None else os.fspath(Path(data_home).resolve())
    with _backend(jobs, scheduler) as n_workers, Watch(missing, finished, n_workers, console) as watch:
        # dispatch few cells ahead, so that they start in order; each returns as soon as it is finished
        parallel = Parallel(n_jobs=n_workers, batch_size=1, pre_dispatch=n_workers + 1, return_as="generator_unordered")
        for record in parallel(delayed(run_cell)(cell, settings, home) for cell in missing):
            results.save(record)
            watch.add(record)
    return watch.n_failed


@contextmanager
def _backend(jobs: int, scheduler: str | None) -> Iterator[int]:
    """Choose where the cells run, and yield how many run at a time."""
    if scheduler is None:
        yield jobs
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError("A scheduler needs Dask; install it with: pip install 'paretomkl[dask]'") from error
    from joblib import parallel_config

    with Client(scheduler) as client:
        n_workers = sum(client.nthreads().values())
        if n_workers == 0:
            raise RuntimeError(f"The scheduler at {scheduler} has no workers.")
        with parallel_config("dask"):
            yield n_workers


# ------------------------------------------------------------------------------------------------- how long
class Watch:
    """Shows progress and the time left: a bar on a terminal, otherwise one line per minute."""

    def __init__(self, cells: Sequence[Cell], seconds: dict[Cell, float], n_workers: int, console: Any = None):
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self.console = Console(quiet=True) if console is None else console
        self.forecast = Forecast(seconds)
        self.left = dict.fromkeys(cells)
        self.n_workers = n_workers
        self.n_cells, self.n_failed = len(cells), 0
        self.shown = self.began = perf_counter()
        self.worked = 0.0  # seconds of the cells that have returned
        columns = BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}")
        self.bar = Progress(*columns, console=self.console, disable=not self.console.is_terminal)
        self.row = self.bar.add_task("", total=self.n_cells)

    def __enter__(self) -> Watch:
        self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.stop()

    def add(self, record: Record) -> None:
        """Record a cell that has returned."""
        del self.left[record.cell]
        self.worked += record.seconds
        if record.outcome is not None:
            self.forecast.learn(record.cell, record.seconds)
        else:
            self.n_failed += 1
            self.console.print(f"failed: {record.cell}: {record.message}", style="red", markup=False)
        now = perf_counter()
        if not self.bar.disable:
            self.bar.update(self.row, advance=1, description=f"{self._rest()} · {record.cell}")
        elif now - self.shown >= SHOW_EVERY or not self.left:
            self.shown = now
            done = f"{self.n_cells - len(self.left)}/{self.n_cells} cells"
            line = f"{duration(now - self.began)}: {done} · {self._rest()} · {record.cell}"
            self.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _rest(self) -> str:
        # on a busy machine a second of work takes longer than a second
        pace = max(1.0, (perf_counter() - self.began) * self.n_workers / max(self.worked, 1e-9))
        rest = pace * sum(self.forecast(cell) for cell in self.left) / self.n_workers
        failed = f" · {self.n_failed} failed" if self.n_failed else ""
        return f"about {duration(rest)} left{failed}"


class Forecast:
    """Predicts the seconds of a cell: the mean of the same cell in other runs, else the plan's rough estimate."""

    def __init__(self, seconds: dict[Cell, float]):
        self.seen: dict[Cell, list[float]] = defaultdict(list)  # keyed by the cell with run=0
        for cell, taken in seconds.items():
            self.learn(cell, taken)

    def learn(self, cell: Cell, seconds: float) -> None:
        self.seen[replace(cell, run=0)].append(seconds)

    def __call__(self, cell: Cell) -> float:
        return mean(self.seen.get(replace(cell, run=0), [cell.cost]))


def forecast_table(plan: Sequence[Cell], seconds: dict[Cell, float]) -> Any:
    """The cells that are not finished (not in ``seconds``), and how long they will take on one core."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Column, Table

    forecast = Forecast(seconds)
    table = Table("left to do", *(Column(name, justify="right") for name in ("cells", "on one core")), box=SIMPLE_HEAD)
    for name_of in (attrgetter("dataset"), attrgetter("method"), lambda cell: "all"):
        for name in dict.fromkeys(map(name_of, plan)):
            left = [cell for cell in plan if cell not in seconds and name_of(cell) == name]
            table.add_row(name, str(len(left)), duration(sum(map(forecast, left))))
        table.add_section()
    return table


def duration(seconds: float) -> str:
    """A duration in seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
