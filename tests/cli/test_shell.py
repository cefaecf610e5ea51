"""The command line in everyday use: gaps, small tasks, typos, pipes, full disks."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import re
import resource
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from typer.testing import CliRunner

import paretomkl
from paretomkl._tools.running import Progress
from paretomkl._tools.wording import counted, hint, joined, nearest, quoted, short_kernel
from paretomkl.cli._app import app
from paretomkl.cli._running import note, on_the_command_line
from paretomkl.exceptions import TaskDataError
from paretomkl.tables._tables import LeftOut, TableError, load_table
from tests.cli.test_cli import COMMAND, costs, patients, run, run_process

TABLE = ("-y", "outcome", "-t", "hospital")
ONE_FIT = ("--p", "1", "--C", "1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("shell")
    patients().to_csv(folder / "good.csv", index=False)
    patients(seed=1).assign(id=np.arange(120) + 7000).to_csv(folder / "new.csv", index=False)
    frame = patients(160)
    frame.loc[:5, "hospital"] = "tiny"
    frame.loc[140:, ["hospital", "outcome"]] = ["mono", "well"]
    frame.to_csv(folder / "mono.csv", index=False)
    frame.loc[[10, 21], "outcome"] = np.nan
    frame.loc[30, "hospital"] = np.nan
    frame.loc[40, "bmi"] = np.nan
    frame.to_csv(folder / "gaps.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def model(folder) -> Path:
    done = run("fit", folder / "good.csv", *TABLE, *ONE_FIT, "-o", folder / "m.skops")
    assert done.returncode == 0, done.stderr
    return folder / "m.skops"


# ------------------------------------------------------------------------------------ what is left out
def test_all_gaps_are_named_with_the_option_that_skips_them(folder, tmp_path):
    done = run("fit", folder / "gaps.csv", *TABLE, "-o", tmp_path / "m.skops")
    assert done.returncode == 2
    assert "'bmi' in 1 row, 'hospital' in 1 row and 'outcome' in 2 rows" in done.stderr
    assert "leave those rows out with --drop-missing" in done.stderr
    assert "--drop bmi" in done.stderr


def test_skipped_rows_are_listed(folder, tmp_path):
    words = ("fit", folder / "gaps.csv", *TABLE, "-o", tmp_path / "m.skops", "--C", "1", "--ps", "1", "--no-baselines")
    words += ("--share", "kernel", "--drop-missing", "--min-class-rows", "2", "--min-task-rows", "10", "--cv", "3")
    done = run(*words, "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["rows"] == 130
    assert [(part["rows"], part["tasks"]) for part in facts["left_out"]] == [
        (4, {"": 1, "St. Anna": 1, "St. Bo": 2}),
        (20, {"mono": 20}),
        (6, {"tiny": 6}),
    ]
    assert "left out 30 of 160 rows: 4 rows with nothing in 'bmi', 'hospital' or 'outcome' (1 of no task" in done.stderr
    assert "20 rows of tasks with one class only (20 of task 'mono')" in done.stderr
    assert "6 rows of tasks with fewer than 10 rows (6 of task 'tiny')" in done.stderr
    assert facts["tasks"] == ["St. Anna", "St. Bo"]


def test_imputed_inputs_are_kept_and_rows_without_a_target_are_not(folder):
    kept = load_table(folder / "gaps.csv", "outcome", "hospital", drop_missing=True, impute=True, any_tasks=True)
    assert (len(kept.y), kept.left_out[0].total) == (157, 3)
    assert kept.X["bmi"].isna().any(), "the model fills gaps in, from the rows that it learns from"
    whole = load_table(folder / "gaps.csv", "outcome", "hospital", drop_missing=True, any_tasks=True)
    assert len(whole.y) == 156


def test_rows_keep_their_numbers_when_others_are_skipped(tmp_path):
    frame = patients().astype({"age": float})
    frame.loc[:9, "outcome"] = np.nan
    frame.loc[50, "age"] = np.inf
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(TableError, match="infinite number in row 51"):
        load_table(tmp_path / "t.csv", "outcome", drop_missing=True)


def test_a_table_with_no_rows_left_is_refused(folder):
    with pytest.raises(
        TableError, match=r"No rows are left to learn from: left out 120 of 120 rows: 120 rows of tasks"
    ):
        load_table(folder / "good.csv", "outcome", "hospital", min_task_rows=1000)
    with pytest.raises(TableError, match="name the task column with --task"):
        load_table(folder / "good.csv", "outcome", drop=["hospital"], min_task_rows=2)
    with pytest.raises(TableError, match="--min-class-rows needs classes, but 'age' is numeric"):
        load_table(folder / "good.csv", "age", min_class_rows=2)


def test_path_says_how_to_continue_without_a_task_of_one_class(folder, tmp_path):
    words = (
        "path",
        folder / "mono.csv",
        *TABLE,
        "--out",
        tmp_path / "out",
        "--C",
        "1",
        "--points",
        "15",
        "--no-baselines",
    )
    done = run(*words)
    assert done.returncode == 2
    assert "leave such tasks out with --min-class-rows 1" in done.stderr
    done = run(*words, "--min-class-rows", "1", "--min-task-rows", "9", "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert [part["tasks"] for part in facts["left_out"]] == [{"mono": 20}, {"tiny": 6}]


# ----------------------------------------------------------------------- tasks that a shared function learns from
def test_fit_learns_from_tasks_of_one_class_if_functions_are_shared(folder, tmp_path):
    words = ("fit", folder / "mono.csv", *TABLE, "-o", tmp_path / "m.skops", "--C", "1", "--cv", "3", "--json")
    done = run(*words)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["share"] in ("function", "everything")
    assert (facts["ways_left_out"], facts["rows"]) == (["nothing", "kernel"], 160)
    assert set(facts["tasks"]) == {"St. Anna", "St. Bo", "mono", "tiny"}
    assert "skipped --share nothing and kernel, because task 'mono' has only one class" in done.stderr
    assert "To compare all ways without these tasks, use --min-class-rows 2" in done.stderr
    done = run("predict", tmp_path / "m.skops", folder / "mono.csv", "--json")
    assert json.loads(done.stdout)["score"]["tasks"]["mono"]["rows"] == 20
    for way in ("nothing", "kernel"):
        assert "Task 'mono' has only one class" in run(*words, "--share", way).stderr
    facts = json.loads(run(*words, "--share", "function").stdout)
    assert (facts["share"], facts["ways_left_out"]) == ("function", [])


@pytest.mark.parametrize("target", ["outcome", "cost"])
def test_fit_learns_from_tasks_of_one_row(tmp_path, target):
    frame = (patients() if target == "outcome" else costs()).copy()
    frame.loc[0, "hospital"] = "single"
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ("fit", tmp_path / "t.csv", "-y", target, "-t", "hospital", "-o", tmp_path / "m.skops", "--C", "1")
    done = run(*words, "--cv", "3", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ways_left_out"] == ["nothing", "kernel"]


def test_a_rare_class_of_a_task_leaves_the_ways_that_can_learn_from_it(tmp_path):
    frame = patients()
    ill = frame.index[(frame["hospital"] == "St. Bo") & (frame["outcome"] == "ill")]
    frame.drop(index=ill[1:]).to_csv(tmp_path / "t.csv", index=False)
    words = ("fit", tmp_path / "t.csv", *TABLE, "-o", tmp_path / "m.skops", "--C", "1", "--cv", "3")
    done = run(*words, "--json")
    assert done.returncode == 0, done.stderr
    assert "because class 'ill' of task 'St. Bo' has only 1 row" in done.stderr
    facts = json.loads(done.stdout)
    assert facts["ways_left_out"] == ["nothing", "kernel"]
    assert facts["comparison"] is not None
    done = run(*words, "--share", "kernel")
    assert done.returncode == 2
    assert "to skip small classes, use --min-class-rows 2" in done.stderr


# ------------------------------------------------------------------------------------------------- predict
@pytest.fixture(scope="module")
def strangers(folder) -> Path:
    """Two rows of a hospital that no model knows, and a patient who is 1990 years old."""
    frame = pd.read_csv(folder / "new.csv")
    frame.loc[[1, 5], "hospital"] = "St Clara"
    frame.loc[3, "age"] = 1990
    frame.to_csv(folder / "strangers.csv", index=False)
    return folder / "strangers.csv"


def test_only_rows_of_unknown_tasks_are_refused(model, strangers, tmp_path):
    done = run("predict", model, strangers, "-o", tmp_path / "p.csv", "--keep", "id")
    assert done.returncode == 2
    assert "2 rows of the unknown task 'St Clara' have no prediction" in done.stderr
    assert "the known tasks are St. Anna and St. Bo" in done.stderr
    assert "--unknown-tasks mean" in done.stderr
    assert "; 2 rows without a prediction. Written" in done.stdout
    table = pd.read_csv(tmp_path / "p.csv")
    assert list(table.columns) == ["id", "hospital", "predicted_outcome", "margin: well", "new_task"]
    assert table["id"].tolist() == list(range(7000, 7120))
    assert np.flatnonzero(table["predicted_outcome"].isna()).tolist() == [1, 5]
    assert np.flatnonzero(table["new_task"]).tolist() == [1, 5]
    facts = json.loads(run("predict", model, strangers, "--json").stdout)
    assert (facts["new_tasks"], facts["predictions"][1], facts["scores"]["margin: well"][5]) == (
        {"St Clara": 2},
        None,
        None,
    )
    assert "2 rows of the unknown task" in facts["error"]


@pytest.mark.parametrize("target", ["outcome", "age", "ward"])
def test_the_mean_of_known_tasks_is_a_fallback(folder, strangers, tmp_path, target):
    """For two classes, for numbers, and for three classes."""
    words = ("fit", folder / "good.csv", "-y", target, "-t", "hospital", "-o", tmp_path / "m.skops", *ONE_FIT)
    assert run(*words).returncode == 0
    done = run("predict", tmp_path / "m.skops", strangers, "--unknown-tasks", "mean", "-o", tmp_path / "p.csv")
    assert done.returncode == 0, done.stderr
    assert "the mean decision of the known tasks predicts them, and the column 'new_task' marks them" in done.stderr
    found = pd.read_csv(tmp_path / "p.csv").loc[[1, 5]].drop(columns=["hospital", "new_task"])
    of_tasks = []
    for task in ("St. Anna", "St. Bo"):
        pd.read_csv(strangers).assign(hospital=task).to_csv(tmp_path / "as.csv", index=False)
        assert run("predict", tmp_path / "m.skops", tmp_path / "as.csv", "-o", tmp_path / "as_p.csv").returncode == 0
        of_tasks.append(pd.read_csv(tmp_path / "as_p.csv").loc[[1, 5]])
    for name in found.columns if target == "age" else [name for name in found.columns if name.startswith("score")]:
        np.testing.assert_allclose(found[name], (of_tasks[0][name] + of_tasks[1][name]) / 2)
    if target == "outcome":
        assert ((found["margin: well"] > 0) == (found["predicted_outcome"] == "well")).all()


def test_the_common_part_is_for_models_that_have_one(folder, model, strangers, tmp_path):
    done = run("predict", model, strangers, "--unknown-tasks", "common")
    assert done.returncode == 2
    assert "needs a model with a common part" in done.stderr
    words = ("fit", folder / "good.csv", *TABLE, "--C", "1", "--share", "function", "-o", tmp_path / "f.skops")
    assert run(*words).returncode == 0
    assert run("predict", tmp_path / "f.skops", strangers).returncode == 0
    done = run("predict", tmp_path / "f.skops", strangers, "--unknown-tasks", "refuse")
    assert done.returncode == 2
    assert "2 rows of the unknown task" in done.stderr
    assert "did you mean 'common'?" in run("predict", model, strangers, "--unknown-tasks", "comon").stderr
    none = ("fit", folder / "good.csv", "-y", "outcome", *ONE_FIT, "-o", tmp_path / "n.skops")
    assert run(*none).returncode == 0
    assert "this one has none" in run("predict", tmp_path / "n.skops", strangers, "--unknown-tasks", "mean").stderr


def test_all_columns_can_be_kept_and_the_truth_is_compared(folder, model, tmp_path):
    done = run("predict", model, folder / "new.csv", "-o", tmp_path / "p.csv", "--keep", "all")
    assert done.returncode == 0, done.stderr
    table, given = pd.read_csv(tmp_path / "p.csv"), pd.read_csv(folder / "new.csv")
    pd.testing.assert_frame_equal(table[list(given.columns)], given)
    right = table["predicted_outcome"] == table["outcome"]
    for task, share in right.groupby(table["hospital"]).mean().items():
        assert f"{task}" in done.stdout
        assert f"{100 * share:.1f} %" in done.stdout
    facts = json.loads(run("predict", model, folder / "new.csv", "--keep", "id,age", "--json").stdout)
    assert facts["score"]["all_rows"]["score"] == pytest.approx(right.mean())
    assert list(facts["columns"]) == ["id", "age", "hospital"]
    beside = run("predict", model, folder / "new.csv", "--keep", "id")
    assert beside.stdout.splitlines()[0] == "id,hospital,predicted_outcome,margin: well"
    assert len(beside.stdout.splitlines()) == 121
    assert "Accuracy by task" in beside.stderr, "what is printed stays a table"
    again = run("predict", model, tmp_path / "p.csv", "--keep", "all")
    assert "already has a column 'predicted_outcome'" in again.stderr


def test_counts_read_as_english(folder, tmp_path):
    frame = patients().assign(kind=lambda f: f["ward"].map({"east": 0, "west": 1, "north": 2})).drop(columns="ward")
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert run("fit", tmp_path / "t.csv", "-y", "kind", *ONE_FIT, "-o", tmp_path / "m.skops").returncode == 0
    done = run("predict", tmp_path / "m.skops", tmp_path / "t.csv", "-o", tmp_path / "p.csv")
    counts = pd.read_csv(tmp_path / "p.csv")["predicted_kind"].value_counts()
    first, *others = [f"{n} of class {label}" for label, n in counts.items()]
    for part in (first.replace(" of", " rows of"), *others):
        assert part in done.stdout


def test_numbers_far_outside_training_are_noted(model, strangers, folder):
    done = run("predict", model, strangers)
    assert (
        "column 'age' is far outside what the model has seen (20 to 89) in 1 row, such as 1990 in row 4" in done.stderr
    )
    assert json.loads(run("predict", model, strangers, "--json").stdout)["far_outside"] == {"age": 1}
    assert "far outside" not in run("predict", model, folder / "new.csv").stderr


def test_all_missing_columns_of_a_model_are_named(model, folder, tmp_path):
    pd.read_csv(folder / "new.csv").rename(columns={"age": "Age", "bmi": "BMI"}).to_csv(tmp_path / "t.csv", index=False)
    done = run("predict", model, tmp_path / "t.csv")
    assert "has no column 'age' or 'bmi', which the model needs; did you mean 'Age' and 'BMI'?" in done.stderr


def test_messages_about_many_columns_are_short_and_say_what_to_do(tmp_path):
    """When hardly any row is complete, --impute is the way out; hundreds of long names hide that."""
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 300))).add_prefix("a long name of a column, number ")
    X.mask(np.eye(30, 300) > 0).assign(outcome=["ill", "well"] * 15).to_csv(tmp_path / "t.csv", index=False)
    options = "fit", tmp_path / "t.csv", "-y", "outcome", "--out", tmp_path / "m.skops"
    done = run(*options, "--drop-missing")
    assert "No rows are left" in done.stderr
    assert "Let --impute fill the gaps in instead" in done.stderr
    assert len(done.stderr) < 400
    done = run(*options, "--impute", "--p", 1, "--C", 1, "--source", "some=* 1?")
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stderr.splitlines())) <= 400
    done = run("predict", tmp_path / "m.skops", tmp_path / "t.csv", "--out", tmp_path / "p.csv")
    assert max(map(len, done.stderr.splitlines())) <= 400
    pd.DataFrame({"other": [1.0]}).to_csv(tmp_path / "other.csv", index=False)
    done = run("predict", tmp_path / "m.skops", tmp_path / "other.csv")
    assert "and 297 more" in done.stderr or "or 297 more" in done.stderr
    assert len(done.stderr) <= 420


def test_a_refused_model_says_why_and_never_advises_trusting_it(folder, tmp_path):
    mark = tmp_path / "run"
    skops.io.dump({"kind": "paretomkl model", "x": partial(os.system, f"touch {mark}")}, tmp_path / "evil.skops")
    done = run("predict", tmp_path / "evil.skops", folder / "new.csv")
    assert done.returncode == 2
    assert "evil.skops is refused: it holds 'functools.partial' and '" in done.stderr
    assert "None of it was run" in done.stderr
    assert "trust" not in done.stderr
    assert not mark.exists()


@pytest.mark.parametrize("name", ["model", "strangers", "new"])
def test_messages_name_no_class_of_python(model, strangers, folder, tmp_path, name):
    pd.read_csv(folder / "new.csv").drop(columns="hospital").to_csv(tmp_path / "t.csv", index=False)
    pd.read_csv(folder / "new.csv").assign(age=np.nan).to_csv(tmp_path / "nan.csv", index=False)
    for file in (tmp_path / "t.csv", tmp_path / "nan.csv", strangers):
        done = run("predict", model, file)
        assert done.returncode == 2
        assert not [word for word in ("MKL", "Scaler", "Encoder", "SVC", "Model(") if word in done.stderr]


# ------------------------------------------------------------------------------------------------ mistypings
def test_typos_get_a_suggestion(folder, tmp_path):
    fit = ("fit", folder / "good.csv", "-o", tmp_path / "m.skops")
    cases = {
        ("-y", "Outcom", "-t", "hospitl", "--drop", "agee"): (
            "There is no column 'Outcom' (--target), 'hospitl' (--task) or 'agee' (--drop); "
            "did you mean 'outcome', 'hospital' and 'age'?"
        ),
        ("-y", "zzz"): "the columns are age, bmi, ward, hospital and outcome.",
        ("-y", "outcome", "--kernels", "rfb:1"): "There is no kernel 'rfb' (--kernels); did you mean 'rbf'?",
        ("-y", "outcome", "--kernels", "rbf:1@agge"): "did you mean 'age'?",
        ("-y", "outcome", "--share", "kernl"): "did you mean 'kernel'?",
        ("-y", "outcome", "--loss", "squard"): "did you mean 'squared'?",
        ("-y", "outcome", "--encoding", "latn-1"): "did you mean 'latin-1'?",
        ("-y", "outcome", "--cv", "500"): "--cv 500 asks for more folds than there are rows (120)",
        ("--taget", "outcome"): "; did you mean --target?",  # what is before it is in the words of click
    }
    for words, message in cases.items():
        done = run(*fit, *words)
        assert done.returncode == 2, words
        assert message in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
    assert f"did you mean {str(folder / 'good.csv')!r}?" in run("fit", folder / "god.csv", *fit[2:], "-y", "y").stderr
    assert "Did you mean 'fit'?" in run("fitt").stderr


def test_a_shortened_list_always_has_the_right_name():
    names = [f"gene_{k}" for k in range(400)] + ["site", "age at diagnosis"]
    assert nearest("age_at_diagnosis", names) == "age at diagnosis"
    assert nearest("AGE AT DIAG", names) == "age at diagnosis"
    assert hint(["site_"], names, "column") == "did you mean 'site'?"
    listed = hint(["diagnosed when"], names, "column")
    assert "30 most similar of 402 columns are" in listed
    assert "age at diagnosis" in listed
    assert hint(["qqq"], ["a", "b", "c"], "column") == "the columns are a, b and c."


def test_numbers_and_lists_read_as_english():
    assert [counted(n, "row") for n in (0, 1, 2, 1200)] == ["0 rows", "1 row", "2 rows", "1,200 rows"]
    assert [joined("abc"[:n]) for n in (1, 2, 3)] == ["a", "a and b", "a, b and c"]
    assert quoted(["a", "b", "c"], 2) == "'a', 'b' and 1 more"
    assert str(LeftOut("of a kind", {"a": 1, "b": 2})) == "3 rows of a kind (1 of task 'a' and 2 of task 'b')"
    assert str(LeftOut("of a kind", {"": 1})) == "1 row of a kind"


def test_notes_mention_folds_and_options(tmp_path):
    few = patients(80)
    few.loc[few.index[few["outcome"] == "ill"][3:], "outcome"] = "well"
    few.to_csv(tmp_path / "few.csv", index=False)
    done = run("fit", tmp_path / "few.csv", "-y", "outcome", "-o", tmp_path / "m.skops", "--ps", "1", "--Cs", "1,10")
    assert done.returncode == 0
    assert "class 'ill' has only 3 rows for 5 folds" in done.stderr
    assert "n_splits" not in done.stderr


# ------------------------------------------------------------------------------- encodings, pipes, JSON, full disks
@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "cp1252"])
def test_encodings(tmp_path, encoding):
    file = tmp_path / "t.csv"
    file.write_bytes(patients().to_csv(index=False).replace("east", "östlich").encode(encoding))
    with pytest.raises(TableError, match=rf"is not encoded in UTF-8; pass .* --encoding {encoding}"):
        load_table(file, "outcome")
    table = load_table(file, "outcome", encoding=encoding)
    assert "östlich" in set(table.X["ward"])
    with gzip.open(tmp_path / "t.csv.gz", "wb") as packed:
        packed.write(file.read_bytes())
    pd.testing.assert_frame_equal(load_table(tmp_path / "t.csv.gz", "outcome", encoding=encoding).X, table.X)
    done = run("fit", file, "-y", "outcome", *ONE_FIT, "--encoding", encoding, "-o", tmp_path / "m.skops")
    assert done.returncode == 0, done.stderr
    assert run("predict", tmp_path / "m.skops", file, "--encoding", encoding).returncode == 0


@pytest.mark.parametrize("kind", ["csv", "gz", "parquet", "feather", "npy"])
def test_a_table_through_a_pipe(folder, tmp_path, kind):
    frame = patients().drop(columns=["ward", "hospital"])
    file = tmp_path / f"t.{kind}"
    if kind == "gz":
        file.write_bytes(gzip.compress(frame.to_csv(index=False).encode()))
    elif kind == "npy":
        np.save(
            file,
            np.array(list(frame.itertuples(index=False)), dtype=[("age", float), ("bmi", float), ("outcome", "U4")]),
        )
    else:
        frame.to_csv(file, index=False) if kind == "csv" else getattr(frame, f"to_{kind}")(file)
    words = ["fit", "-", "-y", "outcome", *ONE_FIT, "--json", "-o", str(tmp_path / "m.skops")]
    done = CliRunner().invoke(app, words, input=file.read_bytes())
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == 120
    frame.to_csv(tmp_path / "same.csv", index=False)
    words[1] = str(tmp_path / "same.csv")
    assert json.loads(run(*words).stdout)["theta"] == pytest.approx(json.loads(done.stdout)["theta"])


def test_standard_input_has_another_name_and_may_not_be_empty(folder, tmp_path, model):
    words = [str(COMMAND), "predict", str(model), "/dev/stdin", "--no-scores"]
    with open(folder / "new.csv", "rb") as file:
        piped = subprocess.run(words, stdin=file, capture_output=True, text=True)
    assert piped.returncode == 0, piped.stderr
    assert piped.stdout == run("predict", model, folder / "new.csv", "--no-scores").stdout
    words[3] = "-"
    empty = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert empty.returncode == 2
    assert "Standard input is empty" in empty.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("fit", "x.csv", "--taget", "y", "--json"),
        ("fit", "x.csv", "--json"),
        ("path", "x.csv", "-y", "y", "--points", "3", "--json"),
        ("predict", "m.skops", "--json"),
        ("nothing", "--json"),
    ],
)
def test_wrong_options_are_json_too(words):
    done = run(*words)
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    assert done.stderr == f"Error: {error}\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
def test_a_full_disk_names_the_file_and_is_not_your_fault(folder, model):
    done = run("predict", model, folder / "new.csv", "-o", "/dev/full")
    assert done.returncode == 1
    assert "Error: '/dev/full' cannot be written: the disk is full.\n" in done.stderr
    for words in (("predict", model, folder / "new.csv"), ("info", "--json"), ("--help",)):
        with open("/dev/full", "w") as full:
            printed = subprocess.run([COMMAND, *map(str, words)], stdout=full, stderr=subprocess.PIPE, text=True)
        assert printed.returncode == 1, words
        assert printed.stderr.endswith("Error: Standard output cannot be written: the disk is full.\n")
        assert "Traceback" not in printed.stderr


def test_a_disk_that_fills_up_leaves_nothing_behind(folder, tmp_path):
    """A limit on file sizes stands in for a full disk."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    out = tmp_path / "m.skops"
    words = [COMMAND, "fit", folder / "good.csv", *TABLE, *ONE_FIT, "-o", out]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "0"}
    done = subprocess.run([str(w) for w in words], preexec_fn=limit, capture_output=True, text=True, env=environment)
    assert done.returncode == 1, done.stderr
    assert f"Error: {str(out)!r} cannot be written: the disk is full." in done.stderr
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------ names, ids, start-up
def test_short_names_of_kernels():
    names = {
        "gaussian(sigma=0.0078125)": "rbf 0.00781",
        "laplacian(gamma=2)": "laplacian 2",
        "polynomial(degree=2, gamma=0.5)": "poly 2 (gamma=0.5)",
        "gaussian ×0.25": "rbf ×0.25",
        "genes: gaussian(sigma=0.5)": "genes: rbf 0.5",
        "linear": "linear",
    }
    assert {name: short_kernel(name) for name in names} == names


def test_narrow_gaussians_differ_in_80_columns(folder, tmp_path):
    kernels = "rbf:0.0078125,rbf:0.015625,rbf:0.03125"
    words = (
        "path",
        folder / "good.csv",
        "-y",
        "outcome",
        "--C",
        "1",
        "--kernels",
        kernels,
        "--no-baselines",
        "--points",
        "15",
    )
    done = run(*words, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "rbf 0.0" in done.stdout
    assert "…" not in done.stdout


@pytest.mark.parametrize(
    ("column", "noted"),
    [
        (np.arange(120) + 5000, True),
        (np.random.default_rng(0).permutation(120), True),
        (np.random.default_rng(0).integers(0, 90, 120), False),
        (np.random.default_rng(0).permutation(10**6)[:120], False),  # an income, say
    ],
)
def test_columns_that_look_like_ids_are_noted(tmp_path, column, noted):
    patients().assign(amount=column, patient_id=np.random.default_rng(1).permutation(10**6)[:120]).to_csv(
        tmp_path / "t.csv", index=False
    )
    table = load_table(tmp_path / "t.csv", "outcome")
    assert table.look_like_ids == (("amount", "patient_id") if noted else ("patient_id",))
    done = run("fit", tmp_path / "t.csv", "-y", "outcome", *ONE_FIT, "-o", tmp_path / "m.skops")
    assert "use --drop " + ",".join(table.look_like_ids) in done.stderr


def test_help_and_option_errors_load_no_library():
    code = (
        "import sys; sys.argv = ['paretomkl', *{}]\n"
        "from paretomkl.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print({{'numpy', 'pandas', 'scipy', 'sklearn', 'numba', 'typer'}} & set(sys.modules), file=sys.stderr)"
    )
    for words, loaded in (
        (["--version"], set()),
        (["--help"], {"typer"}),
        (["fit", "--help"], {"typer"}),
        (["fit", "absent.csv", "-y", "y", "-o", "m.skops"], {"typer", "numpy"}),
        (["fit", "tests/test_shell.py", "-y", "y", "-o", "m.skops"], {"typer", "numpy"}),
    ):
        done = subprocess.run([sys.executable, "-c", code.format(words)], capture_output=True, text=True)
        assert eval(done.stderr.splitlines()[-1]) == loaded, words


UNTIL_THE_FIRST_LINE = """
import os, sys
class First:  # prints what the command says first, and the packages that are loaded by then
    encoding, errors = "utf-8", None
    def isatty(self): return False
    def flush(self): pass
    def write(self, text):
        if isinstance(text, bytes): raise TypeError("text only")
        if not text.strip(): return
        loaded = {{name.partition(".")[0] for name in sys.modules}}
        print(text.strip(), loaded, sep="\\n", file=sys.__stdout__, flush=True)
        raise SystemExit
sys.stdout = sys.stderr = First()
os.chdir({folder!r})
sys.argv = ["paretomkl", *{words}]
from paretomkl.cli import main
main()
"""
SLOW_TO_IMPORT = {"scipy", "sklearn", "numba", "llvmlite", "skops", "joblib", "threadpoolctl", "matplotlib", "dask"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "fit good.csv -y outcome -t hospital -o m2.skops",
            "Read good.csv: 120 rows, 2 tasks, 3 columns to learn from",
        ),
        ("fit mono.csv -y outcome -t hospital -o m2.skops", "Note: skipped --share"),
        ("path good.csv -y age", "Read good.csv: 120 rows, 4 columns to learn from; 'age' is numeric."),
        ("predict m.skops new.csv -o p.csv", "Read new.csv: 120 rows to predict with m.skops."),
        ("demo --no-page", "1. Learn handwritten digits from three sources"),
        ("fit good.csv -y outcom -o m2.skops", "Error: There is no column 'outcom'"),
        ("fit good.csv -y outcome -o m2.skops --scoring acuracy", "Error: 'acuracy' is not a score for classes"),
        ("path mono.csv -y outcome -t hospital --min-class-rows 2 --test-size 0.9", "Note: left out 20 of 160 rows"),
        ("predict m.skops bad.csv", "Error: bad.csv has no column 'bmi', which the model needs"),
        ("predict m.skops text.csv", "Error: Column 'bmi' must contain numbers; row 1 has 'high'"),
    ],
)
def test_the_first_line_comes_before_the_libraries_that_learn(words, said, folder, model):
    """These libraries take two seconds; a table is read, checked and described before, in half a second."""
    patients().drop(columns="bmi").to_csv(folder / "bad.csv", index=False)
    patients().assign(bmi="high").to_csv(folder / "text.csv", index=False)
    code = UNTIL_THE_FIRST_LINE.format(folder=str(folder), words=words.split())
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    line, loaded = done.stdout.splitlines()
    assert line.startswith(said)
    assert eval(loaded) & SLOW_TO_IMPORT == set()


def test_names_of_the_package_are_there_when_asked_for():
    code = (
        "import sys, paretomkl; assert 'numpy' not in sys.modules; paretomkl.Gaussian(1.0); paretomkl.path.PAPER_PS; "
    )
    code += "paretomkl.kernels.sources; print(len(dir(paretomkl)) > 20)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "True\n"
    with pytest.raises(AttributeError, match="has no attribute 'absent'"):
        paretomkl.absent  # noqa: B018


@pytest.mark.parametrize("delay", [0.15, 0.3, 0.6, 1.2])
def test_an_interrupt_while_starting_prints_no_traceback(folder, tmp_path, delay):
    words = [COMMAND, "fit", folder / "good.csv", *TABLE, "-o", tmp_path / "m.skops"]
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(200):  # Python itself prints one while it starts; wait until the command's modules are loaded
        if (
            Path(f"/proc/{process.pid}/maps").exists()
            and "site-packages" in Path(f"/proc/{process.pid}/maps").read_text()
        ):
            break
        time.sleep(0.01)
    time.sleep(delay)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert not (tmp_path / "m.skops").exists()


LOSES_INTERRUPTS = """
import ctypes, os, signal, time
from paretomkl.cli._interrupts import interrupts
interrupts.watch()
lost = ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), signal.SIGINT))
try:
    lost()  # Python drops whatever a callback from C raises
    print("lost")
    time.sleep(20)
except KeyboardInterrupt:
    time.sleep(0.5)  # what cleans up is left in peace
    print("raised again")
interrupts.handled()
time.sleep(0.5)
"""


def test_an_interrupt_that_others_lose_is_raised_again():
    done = subprocess.run([sys.executable, "-c", LOSES_INTERRUPTS], capture_output=True, text=True, timeout=60)
    assert done.stdout.split("\n") == ["lost", "raised again", ""], done.stderr
    assert done.stderr == ""


def test_wrong_options_in_a_separate_process(folder):
    done = run_process("fit", folder / "good.csv", "--targt", "outcome")
    assert done.returncode == 2
    assert re.fullmatch(r"Error: No such option:? '?--targt'?; did you mean --target\?\n", done.stderr)  # click's words


def test_large_tables_say_that_they_take_long(tmp_path, monkeypatch):
    patients(300).to_csv(tmp_path / "t.csv", index=False)
    words = ("fit", tmp_path / "t.csv", *TABLE, *ONE_FIT, "-o", tmp_path / "m.skops")
    assert "minutes" not in run(*words).stderr
    monkeypatch.setattr("paretomkl.cli._options.LARGE", 200)
    assert "may take minutes; --sample" in run(*words).stderr
    assert "minutes" not in run(*words, "--sample", "100").stderr


def test_many_rows_are_predicted_in_blocks(model, folder, monkeypatch):
    whole = json.loads(run("predict", model, folder / "new.csv", "--json").stdout)
    monkeypatch.setattr("paretomkl.cli._saved_model.BLOCK", 7)
    blocks = json.loads(run("predict", model, folder / "new.csv", "--json").stdout)
    assert blocks["predictions"] == whole["predictions"]
    np.testing.assert_allclose(blocks["scores"]["margin: well"], whole["scores"]["margin: well"], atol=1e-9)


def test_a_progress_line_fits_the_terminal(monkeypatch):
    written = io.StringIO()
    written.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setenv("COLUMNS", "40")
    with Progress(100, 1e-3, verbose=1) as progress:
        progress.report(0.5, 12, 1e-2)
        note("a remark of many words, which a terminal of forty columns breaks between two of them")
    lines = written.getvalue().replace("\x1b[K", "").replace("\r", "\n").splitlines()
    assert "░" in lines[1]
    assert max(map(len, lines)) <= 40
    assert " ".join(" ".join(line for line in lines[1:] if line.strip()).split()).endswith("between two of them")


def test_advice_for_programmers_is_left_out():
    alone = TaskDataError("Task 'a' has only one class.", "Split with MultiTaskStratifiedKFold.")
    failed = ValueError(f"The fit failed in 3 folds: {alone}")
    failed.__cause__ = pickle.loads(pickle.dumps(alone))  # as it arrives from another process
    assert on_the_command_line(alone) == "Task 'a' has only one class."
    assert on_the_command_line(failed) == "The fit failed in 3 folds: Task 'a' has only one class."


def test_predictions_are_printed_for_a_dash_and_written_as_csv_only(model, strangers, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed = run("predict", model, strangers)
    assert run("predict", model, strangers, "--out", "-").stdout == printed.stdout
    assert not (tmp_path / "-").exists()
    done = run("predict", model, strangers, "--out", tmp_path / "p.xlsx")
    assert done.returncode == 2
    assert "written as CSV" in done.stderr


def test_classes_that_the_model_has_not_seen_are_named(model, folder, tmp_path):
    table = pd.read_csv(folder / "good.csv").assign(outcome="asleep")
    table.to_csv(tmp_path / "other.csv", index=False)
    done = run("predict", model, tmp_path / "other.csv")
    n_rows = f"{len(table):,} rows of a class that the model has not seen count as wrong: 'asleep'."
    assert n_rows in " ".join(done.stderr.split())


def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "paretomkl", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == paretomkl.__version__


@pytest.mark.parametrize("share", ["kernel", "function"])
def test_an_exponent_without_effect_is_noted(folder, tmp_path, share):
    words = ("fit", folder / "good.csv", *TABLE, "--p", "0.5", "--C", "1", "--share", share, "-o", tmp_path / "m.skops")
    assert ("--p has no effect with --share function" in run(*words).stderr) == (share == "function")
