"""Tables in the terminal: paths, ways to share, simpler models, errors by task, and the parts of a function."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table as RichTable
from rich.text import Text

from .._show.words import shorten
from .._tools.shares import CALLED
from .._tools.wording import ACCURACY, R2, counted, in_digits, percent, short_kernel
from ._running import Output

if TYPE_CHECKING:
    from .._learn.estimators import ParetoMKLClassifier, ParetoMKLRegressor
    from .._learn.path import ParetoPath
    from .._select.results import Comparison, Sharing, TaskErrors

MOST_TASKS = 12  # that a table lists at most
LIGHT = 0.02  # kernels with a smaller share are not listed by name
WIDE = 110  # columns of a terminal from which two kernels fit into a line


def _grid(first: str, *others: str, title: str | None = None) -> RichTable:
    """A table whose first column is text and whose other columns are numbers."""
    grid = RichTable(title=title, title_style="bold", title_justify="left", header_style="bold", box=SIMPLE_HEAD)
    grid.add_column(first)
    for name in others:
        grid.add_column(name, justify="right", no_wrap=True)
    return grid


def _listed(names: Sequence[int] | Sequence[str]) -> int:
    """How many tasks a table lists: all, or if there are many, the first ones."""
    return len(names) if len(names) <= MOST_TASKS + 1 else MOST_TASKS


def path_table(path: ParetoPath, title: str, rows: Sequence[int] | None = None) -> RichTable:
    """The path, or some of its points: how p affects the objectives, the task weights and the kernels.

    The smallest and the largest objective are labelled "easiest" and "hardest" unless a larger task is easier. The
    weight belongs to the task with the largest objective. The kernels are the heaviest, one or two of them.
    """
    extremes = ("easiest", "hardest") if path.large_is_hard else ("smallest J", "largest J")
    n_kernels = 2 if shutil.get_terminal_size().columns >= WIDE else 1
    grid = _grid("p", "M_p", *extremes, "weight", title=title)
    grid.columns[0].justify = "right"
    grid.add_column("heaviest kernels" if n_kernels > 1 else "heaviest kernel")
    grid.add_column("gap", justify="right", no_wrap=True)
    for i in range(len(path)) if rows is None else rows:
        objectives, share = path.objectives[i], path.kernel_shares[i]
        heavy = [m for m in np.argsort(-share)[:n_kernels] if share[m] >= 0.05]
        kernels = ", ".join(f"{share[m]:.0%} {short_kernel(path.kernel_names[m])}" for m in heavy)
        grid.add_row(
            "∞" if np.isinf(path.ps[i]) else f"{path.ps[i]:g}",
            f"{path.objective[i]:.4f}",
            f"{objectives.min():.3f}",
            f"{objectives.max():.3f}",
            f"{path.task_weights[i, objectives.argmax()]:.1%}",
            Text(kernels, no_wrap=True, overflow="ellipsis"),  # one line per exponent
            f"{path.gap[i]:.0e}",
        )
    return grid


def say_sharing(sharing: Sharing | None, output: Output) -> None:
    """Print the scores of the ways to share, and the conclusion."""
    if sharing is None:
        return
    grid = _grid("What tasks share", "", f"{sharing.n_splits} folds")
    grid.columns[1].justify = "left"
    for way in sharing.scores:
        grid.add_row(way, CALLED[way], sharing.text(way), style="bold" if way == sharing.best else None)
    output.say(grid)
    output.say(sharing.in_words)


def say_comparison(comparison: Comparison | None, output: Output) -> None:
    """Print a small table of our model and the simpler ones, and the conclusion."""
    if comparison is None:
        return
    measure, held_out = comparison.measure, comparison.ours.held_out is not None
    errors = {one.name: one.errors for one in comparison.contenders if one.errors is not None}
    all_have = len(errors) == len(comparison.contenders)
    columns = [f"{len(comparison.ours.folds)} folds"] + ["held out"] * held_out + ["RMSE"] * all_have
    grid = _grid(measure.name[0].upper() + measure.name[1:], *columns)
    for one in comparison.contenders:
        further = [] if one.held_out is None else [measure.with_error(one.held_out, one.held_out_error)]
        further += [in_digits(errors[one.name].overall_rmse)] if all_have else []
        grid.add_row(one.name, comparison.text(one), *further)
    output.say(grid)
    output.say(comparison.verdict)
    output.say(comparison.how)
    if all_have and len(errors[comparison.ours.name].tasks) > 1:
        say_errors(errors, output)


def say_errors(errors: Mapping[str, TaskErrors], output: Output) -> None:
    """Print R² of each task and method, and the root mean squared error of the first method."""
    ours, *others = errors.values()
    short = {"one kernel ridge on all tasks together": "one for all", "one kernel ridge per task": "one each"}
    names = [short.get(name, name.removesuffix(" of each task")) for name in errors]
    grid = _grid("R² by task", "rows", *names, "RMSE")
    order = np.argsort(ours.r2, kind="stable").tolist()  # worst first, NaN last
    for t in order[: _listed(order)]:
        values = [R2.text(one.r2[t]) for one in (ours, *others)]
        grid.add_row(shorten(ours.tasks[t]), str(ours.rows[t]), *values, in_digits(ours.rmse[t]))
    if _listed(order) < len(order):
        grid.add_row(f"and {len(order) - _listed(order)} more, no worse")
    overall = [R2.text(one.overall_r2) for one in (ours, *others)]
    grid.add_row("all", str(ours.rows.sum()), *overall, in_digits(ours.overall_rmse), style="bold")
    output.say(grid)
    whose = "ours, " if others else ""
    output.say(
        f"RMSE is {whose}in units of the target. In the last line, R² is the mean over all rows of that of their task."
    )


def say_parts(model: ParetoMKLClassifier | ParetoMKLRegressor, output: Output) -> None:
    """Print which kernels make up the common part of the function and the parts of the tasks."""
    if model.share != "function" or not hasattr(model, "common_share_"):
        return
    bank: Any = model.model_.bank
    base = bank.base  # the kernels of the common part, which tasks have again
    common, own = model.kernel_shares_[: base.n_kernels], model.kernel_shares_[base.n_kernels :]
    grid = _grid("Share of the function", "common", "own")
    both = common + own[:-1]
    heavy = [m for m in np.argsort(-both, kind="stable") if both[m] >= LIGHT]
    for m in heavy:
        grid.add_row(short_kernel(base.names[m]), percent(common[m]), percent(own[m]))
    if len(heavy) < len(both):
        light = np.setdiff1d(np.arange(len(both)), heavy)
        grid.add_row(counted(len(light), "lighter kernel"), percent(common[light].sum()), percent(own[light].sum()))
    grid.add_row("level of each task", "", percent(own[-1]))
    grid.add_row("all", percent(common.sum()), percent(own.sum()), style="bold")
    output.say(grid)
    output.say(f"{percent(model.common_share_)} of the function is common to the tasks.")


def say_accuracy(share: Mapping[str, float], rows: Mapping[str, int], output: Output) -> None:
    """Print the share of correct predictions of each task, worst first, and of all rows."""
    n_rows = sum(rows.values())
    overall = sum(share[name] * rows[name] for name in share) / n_rows
    if len(share) == 1:
        right = f"{ACCURACY.text(overall)} of {counted(n_rows, 'row')}"
        output.say(f"Accuracy against the target in the table: {right}.")
        return
    grid = _grid("Accuracy by task", "rows", "right")
    order = sorted(share, key=lambda name: share[name])
    for name in order[: _listed(order)]:
        grid.add_row(shorten(name), f"{rows[name]:,}", ACCURACY.text(share[name]))
    if _listed(order) < len(order):
        grid.add_row(f"and {len(order) - _listed(order)} more, no worse")
    grid.add_row("mean over the tasks", "", ACCURACY.text(float(np.mean(list(share.values())))), style="bold")
    grid.add_row("all rows", f"{n_rows:,}", ACCURACY.text(overall), style="bold")
    output.say(grid)
