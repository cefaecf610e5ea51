"""Checks of a table before learning starts: classes and tasks that are too small, and rare classes."""

from collections import Counter
from math import ceil
from typing import TYPE_CHECKING, Any

from .._tools.wording import counted
from ._options import Options
from ._running import TableError, note

if TYPE_CHECKING:
    from .._select.scores import Judge
    from ..tables._tables import Table

RARE = 0.1  # a class with a smaller share hardly changes the accuracy


def rows_needed(table: "Table", share: float = 1.0) -> int:
    """How many rows each class of a task needs, or each task of a regression, if ``share`` of them go into folds.

    The folds need two rows of a class, and three of a regression task so that two remain to learn from.
    """
    return ceil((3 if table.regression else 2) / share)


def too_small(table: "Table", needed: int) -> dict[str, int]:
    """Classes of tasks, or regression tasks, with too few rows: the name to show in a message, and the row count."""
    cells = (
        [(None, task) for task in table.tasks] if table.regression else zip(table.y.tolist(), table.tasks, strict=True)
    )
    found = {}
    for (label, task), n in Counter(cells).items():
        parts = [f"class {label!r}"] * (label is not None) + [f"task {task!r}"] * bool(task)
        if n < needed:
            found[" of ".join(parts) or "the table"] = n
    return found


def check_rare(table: "Table", share: float, why: str) -> None:
    """Refuse classes, or regression tasks, with too few rows for the folds, which get ``share`` of the rows."""
    needed = rows_needed(table, share)
    small = too_small(table, needed)
    if not small:
        return
    whose, n = next(iter(small.items()))
    rest = len(small) - 1
    others = f" ({rest:,} more {'has' if rest == 1 else 'have'} too few)" * (rest > 0)
    skip = "tasks, use --min-task-rows" if table.regression else "classes, use --min-class-rows"
    advice = f"; to skip small {skip} {needed}" * (whose != "the table")
    raise TableError(
        f"{whose[0].upper()}{whose[1:]} has {counted(n, 'row')} but needs {needed}{others}: {why}{advice}."
    )


def lone_tasks(table: "Table") -> list[str]:
    """Tasks with a single class or number: only models whose tasks share a function can learn from them."""
    values: dict[str, set[Any]] = {}
    for task, value in zip(table.tasks, table.y.tolist(), strict=True):
        values.setdefault(task, set()).add(value)
    return [task for task, found in values.items() if len(found) < 2]


def note_target(table: "Table", options: Options) -> None:
    """Print notes: whether numbers in the target count as classes, and which options help with rare classes."""
    distinct, target = len(set(table.y.tolist())), table.columns.target
    if options.regression is None and table.regression:
        note(
            f"{target!r} holds {distinct} different numbers, so this is a regression; "
            "--classification treats them as classes."
        )
    elif options.regression is None and table.y.dtype.kind in "iuf" and distinct > 2:
        note(f"{target!r} holds {distinct} different numbers, treated as classes; --regression predicts numbers.")
    if table.regression or options.balanced or options.scoring is not None:
        return
    tasks = table.tasks
    cells, sizes = Counter(zip(tasks, table.y.tolist(), strict=True)), Counter(tasks)
    n_classes = Counter(task for task, _ in cells)
    # with many classes every share is small, so the limit depends on their number
    shares = {
        cell: n / sizes[cell[0]] for cell, n in cells.items() if n / sizes[cell[0]] < RARE * 2 / n_classes[cell[0]]
    }
    if not shares:
        return
    (task, label), share = min(shares.items(), key=lambda item: item[1])
    of_task = f" of task {task!r}" if task != "" else ""
    note(
        f"class {label!r} has only {100 * share:.1f} % of the rows{of_task}, so accuracy hardly depends on it; "
        "--balanced gives the classes equal weight, --scoring balanced_accuracy judges models by all classes equally."
    )


def folds_for(table: "Table", folds: int, judge: "Judge", share: float = 1.0) -> int:
    """The number of folds, reduced if the score compares classes and a fold would not get two classes of any task.

    The folds get ``share`` of the rows.
    """
    if table.regression or not judge.metric.compares_classes:
        return folds
    rarest: dict[Any, int] = {}
    for (task, _), n in Counter(zip(table.tasks, table.y.tolist(), strict=True)).items():
        rarest[task] = min(rarest.get(task, n), n)
    most = max(2, int(share * max(rarest.values())))
    if most < folds:
        note(f"{most} folds instead of {folds}: {judge.measure.name} needs rows of two classes in each.")
    return min(folds, most)
