"""Runs the missing cells, locally or on a cluster, and saves each one as soon as it is finished."""

from __future__ import annotations

import os
import platform
import traceback
from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache
from importlib.metadata import version
from pathlib import Path
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, Any

from .plan import Cell, Settings
from .results import Record, Results

if TYPE_CHECKING:
    from rich.console import Console

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
    """Versions of everything that affects the numbers."""
    found = {name: version(name) for name in ("paretomkl", "numpy", "scipy", "scikit-learn", "numba")}
    return found | {"python": platform.python_version()}


# ------------------------------------------------------------------------------------------------ all of them
def run_plan(
    plan: Sequence[Cell],
    results: Results,
    settings: Settings,
    jobs: int = 1,
    scheduler: str | None = None,
    data_home: str | os.PathLike[str] | None = None,
    console: Console | None = None,
) -> int:
    """Run the cells missing from the results file, in the order of the plan, and return how many failed.

    jobs: processes, with one thread each; scheduler: address of a Dask scheduler to use instead, whose workers must be
    able to read ``data_home``; console: where to show progress.
    """
    from joblib import Parallel, delayed, parallel_config
    from rich.console import Console

    finished = results.finished()
    missing = [cell for cell in plan if cell not in finished]
    if not missing:
        return 0
    home = None if data_home is None else os.fspath(Path(data_home).resolve())
    watch = Watch(missing, console or Console(quiet=True))
    # dispatch few cells ahead, so that they start in order; each returns as soon as it is finished
    how: dict[str, Any] = {"batch_size": 1, "pre_dispatch": "n_jobs + 1", "return_as": "generator_unordered"}
    with parallel_config("dask", scheduler_host=scheduler) if scheduler else nullcontext(), watch.bar:
        parallel = Parallel(n_jobs=-1 if scheduler else jobs, **how)
        for record in parallel(delayed(run_cell)(cell, settings, home) for cell in missing):
            results.save(record)
            watch.add(record)
    return watch.n_failed


class Watch:
    """Shows progress: a bar on a terminal, otherwise one line per minute."""

    def __init__(self, cells: Sequence[Cell], console: Console):
        from rich.progress import Progress

        self.n_cells, self.n_done, self.n_failed = len(cells), 0, 0
        self.console, self.shown = console, perf_counter()
        self.bar = Progress(console=console, disable=not console.is_terminal)
        # in the rough seconds of each cell, since the cheap ones run first
        self.row = self.bar.add_task("", total=sum(cell.cost for cell in cells))

    def add(self, record: Record) -> None:
        """Count a cell that has returned."""
        self.n_done += 1
        if record.outcome is None:
            self.n_failed += 1
            self.console.print(f"failed: {record.cell}: {record.message}", style="red", markup=False)
        line = f"{self.n_done}/{self.n_cells} cells · {record.cell}"
        self.bar.update(self.row, advance=record.cell.cost, description=line)
        if self.bar.disable and (perf_counter() - self.shown >= SHOW_EVERY or self.n_done == self.n_cells):
            self.shown = perf_counter()
            self.console.print(line, markup=False, highlight=False, soft_wrap=True)
