"""``paretomkl reproduce``: run the missing experiments, then write tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Option

RESULTS = Path("experiments/results.sqlite")
QUICK_RESULTS = Path("experiments/quick.sqlite")


def reproduce(
    quick: Annotated[bool, Option("--quick", help="Run a small part of each table, in about a minute.")] = False,
    datasets: Annotated[str, Option(help="Data sets, separated by commas; default: all.")] = "",
    methods: Annotated[str, Option(help="Methods, separated by commas; default: all.")] = "",
    runs: Annotated[int, Option(min=0, help="Random splits of each data set; default: 20, or 2 with --quick.")] = 0,
    jobs: Annotated[int, Option(min=1, help="Processes to use, with one thread each.")] = 1,
    scheduler: Annotated[str, Option(help="Address of a Dask scheduler to use instead of local processes.")] = "",
    results: Annotated[
        Path | None,
        Option(help="Results file; cells in it are not run again. A .csv.gz file from --export is only read."),
    ] = None,
    resume: Annotated[
        Path | None, Option(help="A compact copy from --export; its cells count as done in a new results file.")
    ] = None,
    out: Annotated[Path | None, Option(help="Folder for tables and figures; default: next to the results.")] = None,
    data_home: Annotated[Path | None, Option(help="Folder with the data files; default: see datasets.fetch.")] = None,
    page: Annotated[
        Path | None,
        Option(help="A Markdown page to put the tables into, between `<!-- begin NAME -->` and `<!-- end NAME -->`."),
    ] = None,
    export: Annotated[bool, Option("--export", help="Also write a compact copy of the results.")] = False,
    estimate: Annotated[bool, Option("--estimate", help="Only show how long the missing cells will take.")] = False,
    run: Annotated[bool, Option(help="Run the missing cells.")] = True,
    report: Annotated[bool, Option(help="Write tables and figures when the cells are done.")] = True,
) -> None:
    """Run the paper's experiments that have not been run yet, and write its tables and figures.

    Each finished cell is saved at once. If you interrupt the command or the machine crashes, run it again to continue.
    """
    from rich.console import Console

    from .plan import FULL, N_RUNS, QUICK, Cell, make_plan
    from .results import Results, read_records
    from .runner import forecast_table, run_plan

    console = Console(highlight=False)
    path = results or (QUICK_RESULTS if quick else RESULTS)
    folder = out or path.parent
    settings = QUICK if quick else FULL
    plan: list[Cell] = []
    if estimate or (run and not path.name.endswith(".csv.gz")):
        plan = make_plan(_listed(datasets), _listed(methods), runs or (2 if quick else N_RUNS), quick)
        known = read_records(resume) if resume else []
        if estimate:
            known += read_records(path) if path.exists() else []
            console.print(forecast_table(plan, {record.cell: record.seconds for record in known}))
            return
        with Results(path, settings) as file:
            for record in known:
                file.save(record)
            n_failed = run_plan(plan, file, settings, jobs, scheduler or None, data_home, Console())
        if n_failed:
            cells, them = ("cell", "it") if n_failed == 1 else ("cells", "them")
            console.print(f"{n_failed} {cells} failed; run the same command again to retry {them}.", style="red")
    _write_results(path, folder, page, export, report, console)
    if plan and report:
        from .report import write_slider

        found = write_slider(plan, settings, folder, data_home)
        console.print(f"{found.file}: a page with a slider over {len(found.path)} points; open it in a browser.")


def _write_results(path: Path, folder: Path, page: Path | None, export: bool, report: bool, console: Any) -> None:
    """Write the compact copy and the report of a results file."""
    from .results import export as write_export
    from .results import read_records
    from .runner import duration

    records = read_records(path)
    if export:
        write_export(records, folder / "results.csv.gz")
    if report:
        from .report import write_report

        write_report(records, folder, page)
        console.print(f"Tables and figures of {len(records)} cells are in {folder}.")
    console.print(f"The cells took {duration(sum(record.seconds for record in records))} on one core.")


def _listed(text: str) -> list[str] | None:
    """Parse names separated by commas; None if there are none."""
    return [name.strip() for name in text.split(",") if name.strip()] or None
