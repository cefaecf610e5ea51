"""The runner: nothing is lost and nothing runs twice, whatever happens."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from paretomkl._experiments import runner
from paretomkl._experiments.methods import Candidate, Outcome
from paretomkl._experiments.plan import FULL, METHODS, QUICK, STUDIES, Cell, make_plan
from paretomkl._experiments.results import Record, Results, export, read_export, read_records
from paretomkl._experiments.runner import Forecast, forecast_table, run_cell, run_plan

COMMAND = Path(sys.executable).with_name("paretomkl")
FEW = ["uniform", "independent-svc"]


def point(C=1.0, p=0.5, cv=0.75, accuracy=0.5, **more) -> Candidate:
    return Candidate({"C": C, "p": p}, cv, accuracy, [3, 5], 1e-4, [1.25, 2.5], [0.5, 0.25], **more)


def record(cell=Cell("vehicle", 10, "pareto", 0), **more) -> Record:  # noqa: B008
    outcome = Outcome([point(), point(p=np.inf), Candidate({"C": 3.0, "p": 1.0}, 0.25)], ["a vs b", "c"], [6, 10], 7)
    return Record(cell, 1.5, {"numpy": "2"}, **({"outcome": outcome} | more))


# -------------------------------------------------------------------------------------------------- the file
def test_records_survive_saving_and_loading(tmp_path):
    with Results(tmp_path / "r.sqlite", FULL) as results:
        results.save(record())
        assert results.finished() == {record().cell: 1.5}
    assert read_records(tmp_path / "r.sqlite") == [record()]


def failures(path: Path) -> dict[Cell, str]:
    """Messages of the cells that failed in their last run."""
    with closing(sqlite3.connect(path)) as base:
        rows = base.execute("SELECT dataset, fraction, method, run, message FROM cells WHERE status = 'failed'")
        return {Cell(*row[:4]): row[4] for row in rows}


def test_a_failure_is_saved_and_replaced_but_finished_cells_stay(tmp_path):
    with Results(tmp_path / "r.sqlite", FULL) as results:
        cell = record().cell
        results.save(record(outcome=None, message="ValueError: no"))
        assert failures(tmp_path / "r.sqlite") == {cell: "ValueError: no"}
        assert results.finished() == {}
        results.save(record())
        results.save(record(outcome=None, message="too late"))
        assert failures(tmp_path / "r.sqlite") == {}
        assert list(results.records()) == [record()]


def test_results_of_other_settings_are_not_mixed(tmp_path):
    with Results(tmp_path / "r.sqlite", FULL):
        pass
    with pytest.raises(ValueError, match="n_folds"):
        Results(tmp_path / "r.sqlite", QUICK)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("not a data base at all, but long enough to be looked at" * 50)
    with pytest.raises(ValueError, match=r"notes\.txt"):
        Results(tmp_path / "notes.txt", FULL)
    with pytest.raises(FileNotFoundError, match=r"none\.sqlite"):
        read_records(tmp_path / "none.sqlite")
    (tmp_path / "r.csv.gz").write_bytes(b"no gzip")
    with pytest.raises(ValueError, match=r"r\.csv\.gz"):
        read_records(tmp_path / "r.csv.gz")


def test_the_compact_copy_keeps_what_tables_and_figures_need(tmp_path):
    cells = [Cell("robot-figures", 5, "pareto", 0), Cell("letter", 10, "mm-ep", 3)]
    given = [record(cell) for cell in cells]
    given[1].outcome.points[0].params = {"alpha": 0.8, "mu": 0.01}
    export(given, tmp_path / "r.csv.gz")
    once = (tmp_path / "r.csv.gz").read_bytes()
    back = read_export(tmp_path / "r.csv.gz")
    for new, old in zip(back, given, strict=True):
        assert (new.cell, new.seconds) == (old.cell, old.seconds)
        assert (new.outcome.tasks, new.outcome.n_test) == (old.outcome.tasks, old.outcome.n_test)
        tested = [one for one in old.outcome.points if one.tested]
        for one, other in zip(new.outcome.points, tested, strict=True):
            for name in ("params", "cv", "accuracy", "right", "gap"):
                assert getattr(one, name) == getattr(other, name)
    assert back[0].outcome.points[0].objectives == [1.25, 2.5]
    assert back[1].outcome.points[0].objectives is None, "figures are drawn of the robot only"
    export(given, tmp_path / "r.csv.gz")
    assert (tmp_path / "r.csv.gz").read_bytes() == once


# ------------------------------------------------------------------------------------------------- the runner
def plan_of(runs=3):
    return make_plan(["synthetic"], FEW, runs=runs, quick=True)


def test_only_missing_cells_are_run(tmp_path):
    plan = plan_of()
    with Results(tmp_path / "r.sqlite", QUICK) as results:
        assert run_plan(plan[:2], results, QUICK) == 0
        before = {one.cell: one for one in results.records()}
        assert run_plan(plan, results, QUICK) == 0
        after = {one.cell: one for one in results.records()}
    assert set(after) == set(plan)
    assert all(after[cell] == one for cell, one in before.items())


def test_processes_do_not_change_the_results(tmp_path):
    plan = plan_of(runs=2)
    found = []
    for jobs in (1, 2):
        with Results(tmp_path / f"{jobs}.sqlite", QUICK) as results:
            run_plan(plan, results, QUICK, jobs)
            found.append([(one.cell, one.outcome) for one in results.records()])
    assert found[0] == found[1]


def test_a_record_names_the_versions_used():
    made = run_cell(Cell("synthetic", 10, "uniform", 0), QUICK)
    assert made.outcome is not None
    assert made.seconds > 0
    assert set(made.versions) == {"paretomkl", "numpy", "scipy", "scikit-learn", "numba", "python", "source"}
    assert made.versions["numpy"] == np.__version__


def test_a_failing_cell_does_not_stop_the_others_and_is_tried_again(tmp_path):
    """The files are missing at first: every vehicle cell fails, the synthetic ones do not."""
    plan = make_plan(["vehicle", "synthetic"], ["uniform"], runs=2, quick=True)
    with Results(tmp_path / "r.sqlite", QUICK) as results:
        assert run_plan(plan, results, QUICK, data_home=tmp_path / "nowhere") == 2
        failed = failures(tmp_path / "r.sqlite")
        assert {cell.dataset for cell in failed} == {"vehicle"}
        assert all("xaa.dat" in message for message in failed.values())
        assert {cell.dataset for cell in results.finished()} == {"synthetic"}
        assert run_plan(plan, results, QUICK, data_home=tmp_path / "nowhere") == 2, "the failed ones only"


def test_a_failed_cell_succeeds_once_the_cause_is_gone(tmp_path, shared_data):
    plan = make_plan(["vehicle"], ["uniform"], runs=1, quick=True)
    with Results(tmp_path / "r.sqlite", QUICK) as results:
        assert run_plan(plan, results, QUICK, data_home=tmp_path) == 1
        assert run_plan(plan, results, QUICK, data_home=shared_data) == 0
        assert failures(tmp_path / "r.sqlite") == {}
        assert set(results.finished()) == set(plan)


def start_reproduce(path: Path, jobs: int) -> subprocess.Popen:
    arguments = ["--quick", "--datasets", "synthetic", "--methods", ",".join(FEW), "--runs", "12", "--no-report"]
    return subprocess.Popen(
        [COMMAND, "reproduce", *arguments, "--jobs", str(jobs), "--results", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def count(path: Path) -> int:
    if not path.is_file():
        return 0
    base = sqlite3.connect(path)
    try:
        return base.execute("SELECT count(*) FROM cells").fetchone()[0]
    except sqlite3.OperationalError:  # the file does not exist yet
        return 0
    finally:
        base.close()


def wait_for_cells(path: Path, n: int, process: subprocess.Popen) -> None:
    """Wait until n cells are finished, however long that takes on a busy machine; fail if the process ends before."""
    while count(path) < n:
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.02)


def test_a_killed_run_continues_where_it_stopped(tmp_path):
    path = tmp_path / "r.sqlite"
    wanted = set(make_plan(["synthetic"], FEW, runs=12, quick=True))
    process = start_reproduce(path, 2)
    wait_for_cells(path, 5, process)
    os.killpg(process.pid, signal.SIGKILL)  # kill the workers too, as in a power failure
    process.communicate(timeout=900)
    with Results(path, QUICK) as results:
        before = {one.cell: one for one in results.records()}
        assert 5 <= len(before) < len(wanted)
    process = start_reproduce(path, 1)
    output, _ = process.communicate(timeout=900)
    assert process.returncode == 0, output
    assert f"/{len(wanted) - len(before)} cells" in output, "only those that were missing"
    with Results(path, QUICK) as results:
        after = {one.cell: one for one in results.records()}
    assert count(path) == len(wanted)
    assert set(after) == wanted
    assert all(after[cell] == one for cell, one in before.items())


def test_an_interrupted_run_says_how_to_continue(tmp_path):
    path = tmp_path / "r.sqlite"
    process = start_reproduce(path, 1)
    wait_for_cells(path, 2, process)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=900)
    assert process.returncode == 130
    assert "run the same command again to continue" in output
    assert "Traceback" not in output
    assert count(path) >= 2


def test_a_dask_cluster_runs_the_same_cells(tmp_path, cluster):
    plan = plan_of(runs=2)
    with Results(tmp_path / "dask.sqlite", QUICK) as results:
        assert run_plan(plan, results, QUICK, scheduler=cluster.scheduler_address) == 0
        there = [(one.cell, one.outcome) for one in results.records()]
    with Results(tmp_path / "here.sqlite", QUICK) as results:
        run_plan(plan, results, QUICK)
        assert there == [(one.cell, one.outcome) for one in results.records()]


# ---------------------------------------------------------------------------------------------- time and words
def test_the_forecast_learns_from_other_runs():
    cells = [Cell("vehicle", 10, "pareto", run) for run in range(3)]
    assert Forecast({})(cells[2]) == cells[2].cost
    assert Forecast({cells[0]: 4.0, cells[1]: 6.0})(cells[2]) == 5.0
    table = forecast_table(cells, {cells[0]: 3600.0})
    assert [list(column.cells) for column in table.columns] == [["vehicle", "pareto", "all"], ["2"] * 3, ["2.0 h"] * 3]


def test_progress_is_printed_without_a_terminal(tmp_path, monkeypatch):
    from io import StringIO

    from rich.console import Console

    monkeypatch.setattr(runner, "SHOW_EVERY", 0.0)
    console = Console(file=StringIO(), width=60)
    plan = plan_of(runs=1)
    with Results(tmp_path / "r.sqlite", QUICK) as results:
        run_plan(plan, results, QUICK, console=console)
    lines = console.file.getvalue().splitlines()
    assert len(lines) == len(plan)
    assert "2/2 cells" in lines[-1]


@pytest.mark.parametrize(("seconds", "text"), [(12.3, "12 s"), (600, "10 min"), (9000, "2.5 h")])
def test_durations_read_well(seconds, text):
    assert runner.duration(seconds) == text


# ------------------------------------------------------------------------------------------------ the command
def reproduce(*arguments: str):
    from paretomkl.cli._app import app

    return CliRunner().invoke(app, ["reproduce", *arguments])


def test_messages_quote_wrong_names(tmp_path):
    done = reproduce("--datasets", "iris", "--results", str(tmp_path / "r.sqlite"))
    assert done.exit_code == 2
    assert "no data set 'iris'" in done.output


def test_the_estimate_runs_nothing(tmp_path):
    done = reproduce("--estimate", "--results", str(tmp_path / "r.sqlite"))
    assert done.exit_code == 0
    assert "left to do" in done.output
    assert "…" not in done.output, "the table fits into 80 columns"
    assert list(tmp_path.iterdir()) == []


def test_published_results_count_as_done(tmp_path):
    published = Path(__file__).resolve().parents[2] / "doc" / "experiments" / "results.csv.gz"
    assert {one.cell for one in read_export(published)} <= set(make_plan())
    done = reproduce("--estimate", "--resume", str(published), "--results", str(tmp_path / "r.sqlite"), "--runs", "18")
    assert done.exit_code == 0, done.output
    left = {line.split()[0]: line.split()[1] for line in done.output.splitlines() if len(line.split()) > 2}
    assert {left[method] for method in METHODS if method not in ("svc", "default")} == {"0"}


def test_without_running_the_report_uses_existing_results(tmp_path):
    path = tmp_path / "r.sqlite"
    with Results(path, QUICK) as results:
        run_plan(make_plan(["synthetic"], ["pareto", "uniform"], runs=2, quick=True), results, QUICK)
    done = reproduce("--quick", "--no-run", "--results", str(path), "--export")
    assert done.exit_code == 0, done.output
    assert count(path) == 4
    first = (tmp_path / "tables.md").read_text(encoding="utf-8")
    assert "noisy tasks" in first
    again = reproduce("--results", str(tmp_path / "results.csv.gz"), "--out", str(tmp_path / "again"))
    assert again.exit_code == 0, again.output
    second = (tmp_path / "again" / "tables.md").read_text(encoding="utf-8")
    assert second.split("## Runs and versions")[0] == first.split("## Runs and versions")[0]


def test_a_compact_copy_can_be_continued(tmp_path):
    path = tmp_path / "r.sqlite"
    with Results(path, QUICK) as results:
        run_plan(make_plan(["synthetic"], ["uniform"], runs=1, quick=True), results, QUICK)
    assert reproduce("--quick", "--no-run", "--results", str(path), "--export").exit_code == 0
    (old,) = read_records(path)
    again = tmp_path / "again" / "r.sqlite"
    done = reproduce(
        *("--quick", "--datasets", "synthetic", "--methods", "uniform", "--runs", "2", "--no-report"),
        *("--results", str(again), "--resume", str(tmp_path / "results.csv.gz")),
    )
    assert done.exit_code == 0, done.output
    kept, new = read_records(again)
    assert (kept.cell, kept.versions) == (old.cell, old.versions)
    assert kept.seconds == pytest.approx(old.seconds, abs=0.006)  # the old result: it did not run again
    assert kept.outcome.chosen.accuracy == pytest.approx(old.outcome.chosen.accuracy, rel=1e-5)
    assert new.cell.run == 1


@pytest.mark.slow
def test_quick_runs_every_method_on_every_data_set_in_two_minutes(tmp_path, shared_data):
    began = time.monotonic()
    done = reproduce(
        "--quick", "--jobs", "2", "--results", str(tmp_path / "q.sqlite"), "--data-home", str(shared_data), "--export"
    )
    assert done.exit_code == 0, done.output
    records = read_records(tmp_path / "q.sqlite")
    assert {(one.cell.dataset, one.cell.method) for one in records} == {
        (name, method) for name, study in STUDIES.items() for method in METHODS if method in study.methods
    }
    assert "failed" not in done.output
    for one in records:
        assert one.outcome.chosen.accuracy > 0.4
    assert len(read_records(tmp_path / "results.csv.gz")) == len(records)
    assert (tmp_path / "tables.md").is_file()
    assert time.monotonic() - began < 600, "two minutes on two idle cores; machines that test are not idle"
