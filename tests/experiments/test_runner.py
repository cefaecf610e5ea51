"""The runner: nothing is lost and nothing runs twice, whatever happens."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from paretomkl._experiments import runner
from paretomkl._experiments.methods import Candidate, Outcome
from paretomkl._experiments.plan import FULL, METHODS, QUICK, STUDIES, Cell, make_plan
from paretomkl._experiments.results import Record, Results, read_records
from paretomkl._experiments.runner import run_cell, run_plan

COMMAND = Path(sys.executable).with_name("paretomkl")
FEW = ["uniform", "independent-svc"]


def point(C=1.0, p=0.5, cv=0.75, accuracy=0.5, **more) -> Candidate:
    return Candidate({"C": C, "p": p}, cv, accuracy, [3, 5], 1e-4, [1.25, 2.5], **more)


def record(cell=Cell("vehicle", 10, "pareto", 0), **more) -> Record:  # noqa: B008
    outcome = Outcome([point(), point(p=np.inf), Candidate({"C": 3.0, "p": 1.0}, 0.25)], ["a vs b", "c"], [6, 10], 7)
    return Record(cell, 1.5, {"numpy": "2"}, **({"outcome": outcome} | more))


# -------------------------------------------------------------------------------------------------- the file
def test_records_survive_saving_and_loading(tmp_path):
    results, given = Results(tmp_path / "r.jsonl", FULL), record()
    results.save(given)
    assert results.finished() == {given.cell}
    given.outcome.points.pop()  # only tested points are kept
    assert read_records(results.path) == [given]
    (tmp_path / "r.jsonl.gz").write_bytes(gzip.compress(results.path.read_bytes()))
    assert read_records(tmp_path / "r.jsonl.gz") == [given]


def failures(path: Path) -> dict[Cell, str]:
    """Messages of the cells that failed."""
    saved = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    return {Cell(*one["cell"]): one["message"] for one in saved if one["outcome"] is None}


def test_a_failure_is_saved_but_does_not_count_as_finished(tmp_path):
    results, cell = Results(tmp_path / "r.jsonl", FULL), record().cell
    results.save(record(outcome=None, message="ValueError: no"))
    assert failures(results.path) == {cell: "ValueError: no"}
    assert results.finished() == set()
    results.save(record())
    assert results.finished() == {cell}
    assert [one.message for one in read_records(results.path)] == [None]


def test_a_line_that_was_cut_short_is_ignored(tmp_path):
    results, other = Results(tmp_path / "r.jsonl", FULL), Cell("vehicle", 10, "pareto", 1)
    results.save(record())
    whole = results.path.read_bytes()
    results.save(record(other))
    for length in range(len(whole) + 1, results.path.stat().st_size - 1, 50):
        cut = tmp_path / f"{length}.jsonl"
        cut.write_bytes(results.path.read_bytes()[:length])
        again = Results(cut, FULL)
        assert again.finished() == {record().cell}
        again.save(record(other))
        assert again.finished() == {record().cell, other}


def test_results_of_other_settings_are_not_mixed(tmp_path):
    Results(tmp_path / "r.jsonl", FULL)
    with pytest.raises(ValueError, match="n_folds"):
        Results(tmp_path / "r.jsonl", QUICK)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("not a results file")
    with pytest.raises(ValueError, match=r"notes\.txt"):
        Results(tmp_path / "notes.txt", FULL)
    with pytest.raises(FileNotFoundError, match=r"none\.jsonl"):
        read_records(tmp_path / "none.jsonl")
    (tmp_path / "r.jsonl.gz").write_bytes(b"no gzip")
    with pytest.raises(ValueError, match=r"r\.jsonl\.gz"):
        read_records(tmp_path / "r.jsonl.gz")


# ------------------------------------------------------------------------------------------------- the runner
def plan_of(runs=3):
    return make_plan(["synthetic"], FEW, runs=runs, quick=True)


def test_only_missing_cells_are_run(tmp_path):
    plan = plan_of()
    results = Results(tmp_path / "r.jsonl", QUICK)
    assert run_plan(plan[:2], results, QUICK) == 0
    before = {one.cell: one for one in read_records(results.path)}
    assert run_plan(plan, results, QUICK) == 0
    after = {one.cell: one for one in read_records(results.path)}
    assert set(after) == set(plan)
    assert all(after[cell] == one for cell, one in before.items())


def test_processes_do_not_change_the_results(tmp_path):
    plan = plan_of(runs=2)
    found = []
    for jobs in (1, 2):
        results = Results(tmp_path / f"{jobs}.jsonl", QUICK)
        run_plan(plan, results, QUICK, jobs)
        found.append([(one.cell, one.outcome) for one in read_records(results.path)])
    assert found[0] == found[1]


def test_a_record_names_the_versions_used():
    made = run_cell(Cell("synthetic", 10, "uniform", 0), QUICK)
    assert made.outcome is not None
    assert made.seconds > 0
    assert set(made.versions) == {"paretomkl", "numpy", "scipy", "scikit-learn", "numba", "python"}
    assert made.versions["numpy"] == np.__version__


def test_a_failing_cell_does_not_stop_the_others_and_is_tried_again(tmp_path):
    """The files are missing at first: every vehicle cell fails, the synthetic ones do not."""
    plan = make_plan(["vehicle", "synthetic"], ["uniform"], runs=2, quick=True)
    results = Results(tmp_path / "r.jsonl", QUICK)
    assert run_plan(plan, results, QUICK, data_home=tmp_path / "nowhere") == 2
    failed = failures(tmp_path / "r.jsonl")
    assert {cell.dataset for cell in failed} == {"vehicle"}
    assert all("xaa.dat" in message for message in failed.values())
    assert {cell.dataset for cell in results.finished()} == {"synthetic"}
    assert run_plan(plan, results, QUICK, data_home=tmp_path / "nowhere") == 2, "the failed ones only"


def test_a_failed_cell_succeeds_once_the_cause_is_gone(tmp_path, shared_data):
    plan = make_plan(["vehicle"], ["uniform"], runs=1, quick=True)
    results = Results(tmp_path / "r.jsonl", QUICK)
    assert run_plan(plan, results, QUICK, data_home=tmp_path) == 1
    assert run_plan(plan, results, QUICK, data_home=shared_data) == 0
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
    return path.read_bytes().count(b"\n") - 1 if path.is_file() else 0


def wait_for_cells(path: Path, n: int, process: subprocess.Popen) -> None:
    """Wait until n cells are finished, however long that takes on a busy machine; fail if the process ends before."""
    while count(path) < n:
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.02)


def test_a_killed_run_continues_where_it_stopped(tmp_path):
    path = tmp_path / "r.jsonl"
    wanted = set(make_plan(["synthetic"], FEW, runs=12, quick=True))
    process = start_reproduce(path, 2)
    wait_for_cells(path, 5, process)
    os.killpg(process.pid, signal.SIGKILL)  # kill the workers too, as in a power failure
    process.communicate(timeout=900)
    results = Results(path, QUICK)
    before = {one.cell: one for one in read_records(results.path)}
    assert 5 <= len(before) < len(wanted)
    process = start_reproduce(path, 1)
    output, _ = process.communicate(timeout=900)
    assert process.returncode == 0, output
    assert f"/{len(wanted) - len(before)} cells" in output, "only those that were missing"
    results = Results(path, QUICK)
    after = {one.cell: one for one in read_records(results.path)}
    assert count(path) == len(wanted)
    assert set(after) == wanted
    assert all(after[cell] == one for cell, one in before.items())


def test_an_interrupted_run_says_how_to_continue(tmp_path):
    path = tmp_path / "r.jsonl"
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
    results = Results(tmp_path / "dask.jsonl", QUICK)
    assert run_plan(plan, results, QUICK, scheduler=cluster.scheduler_address) == 0
    there = [(one.cell, one.outcome) for one in read_records(results.path)]
    results = Results(tmp_path / "here.jsonl", QUICK)
    run_plan(plan, results, QUICK)
    assert there == [(one.cell, one.outcome) for one in read_records(results.path)]


# -------------------------------------------------------------------------------------------------- progress
def test_progress_is_printed_without_a_terminal(tmp_path, monkeypatch):
    from io import StringIO

    from rich.console import Console

    monkeypatch.setattr(runner, "SHOW_EVERY", 0.0)
    console = Console(file=StringIO(), width=60)
    plan = plan_of(runs=1)
    results = Results(tmp_path / "r.jsonl", QUICK)
    run_plan(plan, results, QUICK, console=console)
    lines = console.file.getvalue().splitlines()
    assert len(lines) == len(plan)
    assert "2/2 cells" in lines[-1]


# ------------------------------------------------------------------------------------------------ the command
def reproduce(*arguments: str):
    from paretomkl.cli._app import app

    return CliRunner().invoke(app, ["reproduce", *arguments])


def test_messages_quote_wrong_names(tmp_path):
    done = reproduce("--datasets", "iris", "--results", str(tmp_path / "r.jsonl"))
    assert done.exit_code == 2
    assert "no data set 'iris'" in done.output


def test_published_results_can_be_read_and_continued(tmp_path):
    published = Path(__file__).resolve().parents[2] / "doc" / "experiments" / "results.jsonl.gz"
    (tmp_path / "r.jsonl").write_bytes(gzip.decompress(published.read_bytes()))
    assert Results(tmp_path / "r.jsonl", FULL).finished() == set(make_plan())


def test_without_running_the_report_uses_existing_results(tmp_path):
    path = tmp_path / "r.jsonl"
    results = Results(path, QUICK)
    run_plan(make_plan(["synthetic"], ["pareto", "uniform"], runs=2, quick=True), results, QUICK)
    done = reproduce("--quick", "--no-run", "--results", str(path))
    assert done.exit_code == 0, done.output
    assert count(path) == 4
    first = (tmp_path / "tables.md").read_text(encoding="utf-8")
    assert "noisy tasks" in first
    (tmp_path / "r.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    again = reproduce("--results", str(tmp_path / "r.jsonl.gz"), "--out", str(tmp_path / "again"))
    assert again.exit_code == 0, again.output
    second = (tmp_path / "again" / "tables.md").read_text(encoding="utf-8")
    assert second == first


@pytest.mark.slow
def test_quick_runs_every_method_on_every_data_set_in_two_minutes(tmp_path, shared_data):
    began = time.monotonic()
    done = reproduce("--quick", "--jobs", "2", "--results", str(tmp_path / "q.jsonl"), "--data-home", str(shared_data))
    assert done.exit_code == 0, done.output
    records = read_records(tmp_path / "q.jsonl")
    assert {(one.cell.dataset, one.cell.method) for one in records} == {
        (name, method) for name, study in STUDIES.items() for method in METHODS if method in study.methods
    }
    assert "failed" not in done.output
    for one in records:
        assert one.outcome.chosen.accuracy > 0.4
    assert (tmp_path / "tables.md").is_file()
    assert time.monotonic() - began < 600, "two minutes on two idle cores; machines that test are not idle"
