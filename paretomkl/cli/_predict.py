"""``paretomkl predict``."""

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from .._tools.files import check_writable, write_whole
from .._tools.wording import counted, did_you_mean, hint, joined, quoted, split_names
from ..tables._files import TableError, read_table
from ._options import (
    NEW_TASK,
    AsJson,
    Decimal,
    Delimiter,
    Device,
    Encoding,
    TableArgument,
    called,
    parse_delimiter,
    use_device,
)
from ._running import Facts, Output, command, fail, note

if TYPE_CHECKING:
    from pandas import DataFrame as Frame
    from pandas import Series

    from .._select.scorers import Part
    from .._tools.typing import AnyArray
    from ._saved_model import Answers

UNKNOWN = ("refuse", "common", "mean")
OTHER_FORMATS = (".parquet", ".arrow", ".feather", ".ipc", ".npy", ".npz", ".xlsx", ".xls", ".json")
MOST_NAMED = 5  # tasks and classes that a note lists at most
MARGIN, PROBABILITY = "margin", "probability"  # begin the names of the columns with decisions and with probabilities


@command(
    "Example: `paretomkl predict model.skops new.csv --keep id --out predictions.csv`.\n\n"
    "`--unknown-tasks` says what to do with rows of tasks that the model has not seen: `refuse` leaves them without a "
    "prediction, `common` predicts with the part that all tasks share, `mean` takes the mean decision of all known "
    f"tasks. The column `{NEW_TASK}` marks these rows. The default is `common` if the model has a common part, "
    "otherwise `refuse`.",
    summary="Predict the rows of a table with a saved model.",
)
def predict(
    model: Annotated[Path, Argument(help="Model that `paretomkl fit` or `save_model` wrote.")],
    file: TableArgument,
    out: Annotated[Path | None, Option("--out", "-o", help="CSV file to write; default, or -: print.")] = None,
    keep: Annotated[str, Option(help="Table columns to copy to the output, separated by commas; or `all`.")] = "",
    unknown_tasks: Annotated[str | None, Option(help="`refuse`, `common` or `mean`; see below.")] = None,
    scores: Annotated[bool | None, Option("--scores/--no-scores", help="With or without margins (decisions).")] = None,
    proba: Annotated[bool, Option("--proba", help="Add the probabilities of the classes.")] = False,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = None,
    device: Device = None,
    as_json: AsJson = False,
) -> None:
    """Predict the rows of a table with a saved model; if the table has the target, show how good they are."""
    out = None if out == Path("-") else out
    if out is not None:
        _check_out(out, model, file)
    if unknown_tasks not in (None, *UNKNOWN):
        meant = did_you_mean(unknown_tasks, UNKNOWN)
        raise TableError(f"--unknown-tasks takes {joined(UNKNOWN, 'or')}, got {unknown_tasks!r}{meant}")
    use_device(device)
    if not model.is_file():
        raise TableError(f"There is no file {str(model)!r}.")
    form: dict[str, Any] = {"delimiter": parse_delimiter(delimiter), "decimal": decimal, "encoding": encoding}
    frame = read_table(file, **form, max_rows=sys.maxsize - 1)
    kept = _kept_columns(keep, frame)
    from .._learn.table_model import check_columns
    from ._saved_model import SavedModel, columns_of  # imported here because it needs NumPy

    needed = columns_of(model)
    if needed is not None:
        check_columns(needed, frame, file.name)
        needed.read(frame)
    output = Output(as_json, beside=out is None)
    if out is not None or sys.stderr.isatty():  # a pipe that takes predictions from standard output gets nothing else
        output.say(f"Read {called(file)}: {counted(len(frame), 'row')} to predict with {model.name}.")
    saved = SavedModel.load(model)
    if scores and saved.regression:
        raise TableError("--scores adds the margins of classes, but this model predicts numbers; remove it.")
    if proba and (saved.regression or not hasattr(saved.model, "predict_proba")):
        why = "predicts numbers" if saved.regression else "has none; fit it again with this version"
        raise TableError(f"--proba adds the probabilities of classes, but this model {why}; remove it.")
    inputs = saved.inputs(frame, file.name)
    far = saved.note_far_outside(inputs)
    judges = saved.columns.target in frame.columns and not saved.judge.metric.of_labels  # which needs the margins
    answers = saved.answer(inputs, unknown_tasks, judges or scores is not False, proba)
    table = _beside(frame[kept], answers, scores is not False)
    facts: Facts = {"rows": len(table)} | ({"far_outside": far} if far else {})
    facts |= _report(table, kept, answers, out, output)
    if saved.columns.target in frame.columns:
        facts |= _report_scores(frame[saved.columns.target], answers, output)
    if answers.given.all():
        output.finish(facts)
        return
    refused = answers.refusal()
    output.finish(facts | {"error": refused})
    fail(refused, as_json=False)
    raise typer.Exit(2)


def _check_out(out: Path, model: Path, file: Path) -> None:
    """Raise unless predictions can be written there."""
    if out.suffix.lower() in OTHER_FORMATS:
        raise TableError(f"Predictions are written as CSV, but {out.name!r} names another format; end it in .csv.")
    check_writable(out)
    if out.resolve() in (model.resolve(), file.resolve()):
        raise TableError(f"The predictions would overwrite {str(out)!r}; choose another file (--out).")


def _kept_columns(keep: str, frame: "Frame") -> list[str]:
    """The columns that --keep names; ``all`` means every column, unless one has that name."""
    names = split_names(keep)
    if names == ["all"] and "all" not in frame.columns:
        return list(frame.columns)
    absent = [name for name in names if name not in frame.columns]
    if absent:
        said = joined(map(repr, absent), "or")
        raise TableError(f"There is no column {said} (--keep); {hint(absent, list(frame.columns), 'column')}")
    return list(dict.fromkeys(names))


def _beside(kept: "Frame", answers: "Answers", with_scores: bool) -> "Frame":
    """Kept columns, task, prediction and scores, and a column that marks rows of new tasks if there are any."""
    import pandas as pd

    saved, task = answers.saved, answers.saved.columns.task
    made: dict[str, AnyArray] = {} if task is None or task in kept.columns else {task: answers.tasks}
    made[answers.name] = answers.labels
    if answers.scores is not None and with_scores:
        names = saved.model.classes_[1:] if saved.two_classes else saved.model.classes_
        made |= {f"{MARGIN}: {name}": column for name, column in zip(names, answers.scores.T, strict=True)}
    if answers.probabilities is not None:
        columns = zip(saved.model.classes_, answers.probabilities.T, strict=True)
        made |= {f"{PROBABILITY}: {name}": column for name, column in columns}
    if answers.new_tasks:
        made[NEW_TASK] = answers.new
        if answers.handling != "refuse":
            _note_new(answers)
    taken = [name for name in made if name in kept.columns]
    if taken:
        raise TableError(
            f"The table already has a column {taken[0]!r}, which the predictions of {saved.columns.target!r} need; "
            "rename it."
        )
    return pd.concat([kept.reset_index(drop=True), pd.DataFrame(made)], axis=1)


def _note_new(answers: "Answers") -> None:
    by = {
        "mean": "the mean decision of the known tasks predicts them",
        "everything": "the model of all tasks predicts them",
        "function": "what the tasks have in common predicts them",
    }["mean" if answers.handling == "mean" else answers.saved.model.share]
    n = int(answers.new.sum())
    which = f"{n:,} of {counted(len(answers.new), 'row')} {'belongs' if n == 1 else 'belong'} to tasks"
    names = quoted(answers.new_tasks, MOST_NAMED)
    note(f"{which} the model has not seen, {names}: {by}, and the column {NEW_TASK!r} marks them.")


# ---------------------------------------------------------------------------------------------- reports
def _report(table: "Frame", kept: list[str], answers: "Answers", out: Path | None, output: Output) -> Facts:
    """Write or print the predictions, and return the facts for JSON."""
    counts = None if answers.saved.regression else _counts(answers)
    facts: Facts = {} if counts is None else {"counts": counts}
    if answers.new_tasks:
        facts |= {NEW_TASK: answers.new.tolist(), "new_tasks": answers.new_tasks}
    if out is not None:
        write_whole(out, table.to_csv(index=False))
        Output(output.as_json).say(f"{_summary(answers, counts)}. Written: {out}.")
        return facts | {"predictions": str(out)}
    if not output.as_json:
        table.to_csv(sys.stdout, index=False)
    facts["predictions"] = table[answers.name]
    with_scores = {name: table[name] for name in table.columns if name.startswith(f"{MARGIN}: ")}
    if with_scores and answers.scores is not None:
        facts["scores"] = with_scores
    if answers.probabilities is not None:
        facts["probabilities"] = {name: table[name] for name in table.columns if name.startswith(f"{PROBABILITY}: ")}
    copied = dict.fromkeys([*kept, answers.saved.columns.task])
    return facts | {"columns": {name: table[name] for name in copied if name in table.columns}}


def _counts(answers: "Answers") -> dict[str, int]:
    """The number of rows of each predicted class, the most frequent first."""
    return {str(label): n for label, n in Counter(answers.labels[answers.given]).most_common()}


def _summary(answers: "Answers", counts: dict[str, int] | None) -> str:
    """``22 rows of class 1, 17 of class 0``, or the range of predicted numbers."""
    from .._tools.wording import in_digits

    refused = int((~answers.given).sum())
    without = f"; {counted(refused, 'row')} without a prediction" * bool(refused)
    if counts is None:
        known = answers.labels[answers.given]
        low, middle, high = (in_digits(float(v)) for v in (known.min(), known.mean(), known.max()))
        return f"{counted(len(known), 'row')}: predictions from {low} to {high}, mean {middle}{without}"
    (label, n), *rest = counts.items()
    return ", ".join([f"{counted(n, 'row')} of class {label}", *(f"{m:,} of class {one}" for one, m in rest)]) + without


def _report_scores(target: "Series", answers: "Answers", output: Output) -> Facts:
    """If the table has the target, report the score of each task, new tasks included, and errors of numbers."""
    from .._select.baselines import task_errors
    from .._select.task_scores import judged, training_levels
    from ._showing import say_scores

    saved = answers.saved
    parts, method = (_numbers if saved.regression else _classes)(target, answers)
    if not parts:
        return {}
    table = judged(saved.judge.metric, [parts], method, levels_of=training_levels(saved.model))
    errors = None
    if saved.regression:
        names = table.tasks
        errors = task_errors(names, [[(part.truth, part.response, None) for part in parts]])
    say_scores(table, "against the target in the table", output, errors)
    return {"score": table.facts()} | ({} if errors is None else {"errors": errors.facts()})


def _classes(target: "Series", answers: "Answers") -> tuple[list["Part"], str]:
    """The true classes of each task, with the predictions or decisions that the score needs, and which of these."""
    from types import SimpleNamespace

    import pandas as pd

    from .._select.scorers import parts_by_task
    from ..tables._tables import as_text

    truth, model = as_text(target).to_numpy(), answers.saved.model
    counts = pd.notna(truth) & answers.given
    known = as_text(pd.Series(model.classes_)).to_numpy()
    unknown = counts & ~pd.Series(truth).isin(known).to_numpy()
    of_labels = answers.saved.judge.metric.of_labels
    if unknown.any():
        names, rows_are = quoted(sorted(set(truth[unknown])), MOST_NAMED), counted(int(unknown.sum()), "row")
        classes = "a class" if len(set(truth[unknown])) == 1 else "classes"
        how = "count as wrong" if of_labels else "are left out of the score"
        note(f"{rows_are} of {classes} that the model has not seen {how}: {names}.")
    if not of_labels:
        counts &= ~unknown
    if not counts.any():
        return [], "predict"
    if of_labels:
        response = as_text(pd.Series(answers.labels)).to_numpy()
    else:
        assert answers.scores is not None
        response = answers.scores[:, 0] if answers.saved.two_classes else answers.scores
    tasks = None if answers.saved.columns.task is None else answers.tasks
    method = "predict" if of_labels else "decision_function"
    parts = parts_by_task(truth, tasks, counts, response, method, SimpleNamespace(classes_=known))
    return [part for part in parts if len(part.rows)], method


def _numbers(target: "Series", answers: "Answers") -> tuple[list["Part"], str]:
    """The true numbers of each task, with the predictions."""
    import numpy as np
    import pandas as pd

    from .._select.scorers import Part

    truth = pd.to_numeric(target, errors="coerce").to_numpy(dtype=float)
    counts, parts = np.isfinite(truth) & answers.given, []
    for name in dict.fromkeys(answers.tasks[counts].tolist()):
        rows = np.flatnonzero(counts & (answers.tasks == name))
        parts.append(Part(str(name), rows, truth[rows], answers.labels[rows], None))
    return parts, "predict"
