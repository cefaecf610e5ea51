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
from .._tools.wording import R2, counted, in_digits, percent, short_kernel
from ._running import Output

if TYPE_CHECKING:
    from .._learn.estimators import ParetoMKLClassifier, ParetoMKLRegressor
    from .._learn.path import ParetoPath
    from .._select.intervals import Estimate
    from .._select.results import Comparison, Sharing, TaskErrors
    from .._select.task_scores import ScoresByTask

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
        further = [text] if (text := comparison.held_out_text(one)) is not None else []
        further += [in_digits(errors[one.name].overall_rmse)] if all_have else []
        grid.add_row(one.name, comparison.text(one), *further)
    output.say(grid)
    output.say(comparison.verdict)
    output.say(comparison.how)


def say_scores(
    table: ScoresByTask,
    where: str,
    output: Output,
    errors: TaskErrors | None = None,
    others: Mapping[str, TaskErrors] | None = None,
) -> None:
    """Print the score of each task, worst first, and of all, with intervals; a sentence if there is only one.

    errors: how far numbers are off; others: the same of simpler models.
    """
    measure, others = table.measure, others or {}
    heading, certain = measure.name[0].upper() + measure.name[1:], f"{100 * table.confidence:g} % interval"
    if len(table.tasks) == 1:
        _, rows, one = table.lines()[0]
        ends = measure.interval(one.low, one.high)
        said = f"{counted(rows, 'row')}, {certain} {ends}" if ends else counted(rows, "row")
        also = "" if errors is None else f"; RMSE {in_digits(errors.overall_rmse)}"
        output.say(f"{heading} {where}: {measure.text(one.score)} ({said}){also}.")
        return
    place = {} if errors is None else {task: t for t, task in enumerate(errors.tasks)}
    grid = _grid(f"{heading} by task", "rows", "score", certain, *others, *["RMSE"] * (errors is not None))

    def row(name: str, rows: int, one: Estimate, further: Sequence[float], style: str | None = None) -> None:
        *of_others, rmse = further
        cells = [f"{rows:,}", measure.text(one.score), measure.interval(one.low, one.high)]
        cells += [measure.text(value) for value in of_others] + [in_digits(rmse)] * (errors is not None)
        grid.add_row(name, *cells, style=style)

    order = np.argsort(table.scores, kind="stable").tolist()  # worst first, NaN last
    lines = table.lines()
    for t in order[: _listed(order)]:
        k = place.get(table.tasks[t], 0)
        far = [own.r2[k] for own in others.values()] + [np.nan if errors is None else errors.rmse[k]]
        name, n, one = lines[t]
        row(shorten(name), n, one, far)
    if _listed(order) < len(order):
        grid.add_row(f"and {len(order) - _listed(order)} more, no worse")
    overall = [own.overall_r2 for own in others.values()] + [np.nan if errors is None else errors.overall_rmse]
    for name, n, one in lines[len(order) :]:
        row(name, n, one, overall, style="bold")
    output.say(grid)
    output.say(f"Scores {where}." + " RMSE is in units of the target." * (errors is not None))


def say_task_scores(table: ScoresByTask | None, comparison: Comparison | None, output: Output) -> None:
    """Print the scores of a search over the rows of its folds, and for numbers the errors, also of simpler models."""
    if table is None:
        return
    errors: dict[str, TaskErrors] = {}
    if comparison is not None:
        errors = {one.name: one.errors for one in comparison.contenders if one.errors is not None}
    short = {"one kernel ridge on all tasks together": "one for all", "one kernel ridge per task": "one each"}
    comparable = {short[name]: own for name, own in errors.items() if name in short and table.measure == R2}
    ours = None if comparison is None else comparison.ours.errors
    where = "on the rows of the folds, each predicted by a model that did not see it"
    say_scores(table, where, output, ours, comparable)


def say_verdict(verdict: Sequence[str], next_step: str, output: Output) -> None:
    """Print what to take home: a line for each sentence, and what to do next."""
    output.say("\n".join(["", *verdict, next_step]))


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
