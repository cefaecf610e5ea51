"""``paretomkl reproduce``: run the missing experiments, then write tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

RESULTS = Path("experiments/results.jsonl")
QUICK_RESULTS = Path("experiments/quick.jsonl")


def reproduce(
    quick: Annotated[bool, Option("--quick", help="Run a small part of each table, in about a minute.")] = False,
    datasets: Annotated[str, Option(help="Data sets, separated by commas; default: all.")] = "",
    methods: Annotated[str, Option(help="Methods, separated by commas; default: all.")] = "",
    runs: Annotated[int, Option(min=0, help="Random splits of each data set; default: 20, or 2 with --quick.")] = 0,
    jobs: Annotated[int, Option(min=1, help="Processes to use, with one thread each.")] = 1,
    scheduler: Annotated[str, Option(help="Address of a Dask scheduler to use instead of local processes.")] = "",
    results: Annotated[
        Path | None, Option(help="Results file; cells in it are not run again. A compressed file (.gz) is only read.")
    ] = None,
    out: Annotated[Path | None, Option(help="Folder for tables and figures; default: next to the results.")] = None,
    data_home: Annotated[Path | None, Option(help="Folder with the data files; default: see datasets.fetch.")] = None,
    page: Annotated[
        Path | None,
        Option(help="A Markdown page to put the tables into, between `<!-- begin NAME -->` and `<!-- end NAME -->`."),
    ] = None,
    run: Annotated[bool, Option(help="Run the missing cells.")] = True,
    report: Annotated[bool, Option(help="Write tables and figures when the cells are done.")] = True,
) -> None:
    """Run the paper's experiments that have not been run yet, and write its tables and figures.

    Each finished cell is saved at once. If you interrupt the command or the computer crashes, run it again to continue.
    """
    from rich.console import Console

    from .._tools.wording import counted
    from .plan import FULL, N_RUNS, QUICK, make_plan
    from .report import write_report
    from .results import Results, read_records
    from .runner import run_plan

    console = Console(highlight=False)
    path = results or (QUICK_RESULTS if quick else RESULTS)
    folder, settings = out or path.parent, QUICK if quick else FULL
    if run and path.suffix != ".gz":
        plan = make_plan(_listed(datasets), _listed(methods), runs or (2 if quick else N_RUNS), quick)
        n_failed = run_plan(plan, Results(path, settings), settings, jobs, scheduler or None, data_home, console)
        if n_failed:
            console.print(f"{counted(n_failed, 'cell')} failed; run the same command again to retry.", style="red")
    records = read_records(path)
    if report:
        write_report(records, folder, page)
        console.print(f"Tables and figures of {len(records)} cells are in {folder}.")


def _listed(text: str) -> list[str] | None:
    """Parse names separated by commas; None if there are none."""
    return [name.strip() for name in text.split(",") if name.strip()] or None
