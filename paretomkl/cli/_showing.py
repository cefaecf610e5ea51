"""Tables in the terminal: ways to share, simpler models, errors by task, and the parts of a function."""

from typing import Any

import numpy as np

from .._tools.shares import CALLED
from .._tools.wording import counted, short_kernel
from ._running import Output

MOST_TASKS = 12  # that a table lists at most
LIGHT = 0.02  # kernels with a smaller share are not listed by name


def say_sharing(sharing: Any, output: Output) -> None:
    """Print the scores of the ways to share, and the conclusion."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    if sharing is None:
        return
    table = Table(header_style="bold", box=SIMPLE_HEAD)
    table.add_column("What tasks share")
    table.add_column("")
    table.add_column(f"{sharing.n_splits} folds", justify="right", no_wrap=True)
    for way in sharing.scores:
        table.add_row(way, CALLED[way], sharing.text(way), style="bold" if way == sharing.best else None)
    output.say(table)
    output.say(sharing.in_words)


def say_comparison(comparison: Any, output: Output) -> None:
    """Print a small table of our model and the simpler ones, and the conclusion."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from .._show.words import in_digits

    if comparison is None:
        return
    measure, held_out = comparison.measure, comparison.ours.held_out is not None
    errors = all(one.errors is not None for one in comparison.contenders)
    table = Table(header_style="bold", box=SIMPLE_HEAD)
    table.add_column(measure.name[0].upper() + measure.name[1:])
    for name in [f"{len(comparison.ours.folds)} folds"] + ["held out"] * held_out + ["RMSE"] * errors:
        table.add_column(name, justify="right", no_wrap=True)
    for one in comparison.contenders:
        further = [measure.with_error(one.held_out, one.held_out_error)] if held_out else []
        further += [in_digits(one.errors.overall_rmse)] if errors else []
        table.add_row(one.name, comparison.text(one), *further)
    output.say(table)
    output.say(comparison.verdict)
    output.say(comparison.how)
    if errors and len(comparison.ours.errors.tasks) > 1:
        say_errors({one.name: one.errors for one in comparison.contenders}, output)


def say_errors(errors: dict[str, Any], output: Output) -> None:
    """Print R² of each task and method, and the root mean squared error of the first method."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from .._show.drawing import shorten
    from .._show.words import R2, in_digits

    ours, *others = errors.values()
    table = Table(header_style="bold", box=SIMPLE_HEAD)
    table.add_column("R² by task", no_wrap=True)
    short = {"one kernel ridge on all tasks together": "one for all", "one kernel ridge per task": "one each"}
    for name in ("rows", *(short.get(name, name.removesuffix(" of each task")) for name in errors), "RMSE"):
        table.add_column(name, justify="right")
    order = np.argsort(ours.r2, kind="stable")  # worst first, NaN last
    for t in order[: MOST_TASKS if len(order) > MOST_TASKS + 1 else None]:
        values = [R2.text(one.r2[t]) for one in (ours, *others)]
        table.add_row(shorten(ours.tasks[t]), str(ours.rows[t]), *values, in_digits(ours.rmse[t]))
    if len(order) > MOST_TASKS + 1:
        table.add_row(f"and {len(order) - MOST_TASKS} more, no worse")
    mean = [R2.text(one.mean_r2) for one in (ours, *others)]
    table.add_row("mean", str(ours.rows.sum()), *mean, in_digits(ours.overall_rmse), style="bold")
    output.say(table)
    whose = "ours, " if others else ""
    output.say(f"The mean R² is over the tasks; RMSE is {whose}in units of the target, in the last line over all rows.")


def say_parts(model: Any, output: Output) -> None:
    """Print which kernels make up the common part of the function and the parts of the tasks."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from .._show.words import percent

    if model.share != "function" or not hasattr(model, "common_share_"):
        return
    bank, shares = model.model_.bank, model.kernel_shares_
    common, own = shares[: bank.base.n_kernels], shares[bank.base.n_kernels :]
    table = Table(header_style="bold", box=SIMPLE_HEAD)
    for name in ("Share of the function", "common", "own"):
        table.add_column(name, justify="left" if name[0] == "S" else "right")
    both = common + own[:-1]
    heavy = [m for m in np.argsort(-both, kind="stable") if both[m] >= LIGHT]
    for m in heavy:
        table.add_row(short_kernel(bank.base.names[m]), percent(common[m]), percent(own[m]))
    if len(heavy) < len(both):
        light = np.setdiff1d(np.arange(len(both)), heavy)
        table.add_row(counted(len(light), "lighter kernel"), percent(common[light].sum()), percent(own[light].sum()))
    table.add_row("level of each task", "", percent(own[-1]))
    table.add_row("all", percent(common.sum()), percent(own.sum()), style="bold")
    output.say(table)
    output.say(f"{percent(model.common_share_)} of the function is common to the tasks.")


def say_accuracy(share: dict[str, float], rows: dict[str, int], output: Output) -> None:
    """Print the share of correct predictions of each task, worst first, and of all rows."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from .._show.drawing import shorten
    from .._show.words import ACCURACY

    percent = ACCURACY.text
    overall = sum(share[name] * rows[name] for name in share) / sum(rows.values())
    if len(share) == 1:
        said = f"{percent(overall)} of {counted(sum(rows.values()), 'row')}"
        output.say(f"Accuracy against the target in the table: {said}.")
        return
    table = Table(header_style="bold", box=SIMPLE_HEAD)
    table.add_column("Accuracy by task", no_wrap=True)
    table.add_column("rows", justify="right")
    table.add_column("right", justify="right")
    order = sorted(share, key=lambda name: share[name])
    listed = order[: MOST_TASKS if len(order) > MOST_TASKS + 1 else None]
    for name in listed:
        table.add_row(shorten(name), f"{rows[name]:,}", percent(share[name]))
    if len(listed) < len(order):
        table.add_row(f"and {len(order) - len(listed)} more, no worse")
    table.add_row("mean over the tasks", "", percent(float(np.mean(list(share.values())))), style="bold")
    table.add_row("all rows", f"{sum(rows.values()):,}", percent(overall), style="bold")
    output.say(table)
