"""What a table allows: classes and tasks that are too small to be learned or divided into folds, and rare classes."""

from collections import Counter
from collections.abc import Hashable
from math import ceil
from typing import TYPE_CHECKING

from .._tools.wording import counted
from ..tables._files import TableError
from ._options import Options
from ._running import note

if TYPE_CHECKING:
    from .._select.scores import Judge
    from ..tables._tables import Table

ROWS_IN_TIME = 10  # rows that a task needs for folds in time
RARE = 0.1  # a class with a smaller share hardly changes the accuracy


def cells(table: "Table") -> Counter[tuple[str, Hashable]]:
    """The number of rows of each class of a task; in a regression, of each task, with None for the class."""
    labels = [None] * len(table.y) if table.regression else table.y.tolist()
    return Counter(zip(table.tasks, labels, strict=True))


def rows_needed(table: "Table", share: float = 1.0) -> int:
    """How many rows each class of a task needs, or each task of a regression, if ``share`` of them go into folds.

    The folds need two rows of a class, and three of a regression task so that two remain to learn from.
    """
    return ceil((3 if table.regression else 2) / share)


def too_small(table: "Table", needed: int) -> str | None:
    """A sentence without its end about classes of tasks, or regression tasks, with too few rows; None without any."""
    small = {cell: n for cell, n in cells(table).items() if n < needed}
    if not small:
        return None
    (task, label), n = next(iter(small.items()))
    parts = [f"class {label!r}"] * (label is not None) + [f"task {task!r}"] * bool(task)
    rest = len(small) - 1
    others = f" ({rest:,} more {'has' if rest == 1 else 'have'} too few)" * (rest > 0)
    return f"{' of '.join(parts) or 'the table'} has only {counted(n, 'row')}{others}"


def skipping(table: "Table", needed: int) -> str:
    """The option that skips tasks, or classes, with fewer rows."""
    return f"--min-task-rows {needed}" if table.regression else f"--min-class-rows {needed}"


def check_rare(table: "Table", share: float, why: str) -> None:
    """Refuse classes, or regression tasks, with too few rows for the folds, which get ``share`` of the rows."""
    needed = rows_needed(table, share)
    small = too_small(table, needed)
    if small is not None:
        skip = f"; to skip small {'tasks' if table.regression else 'classes'}, use {skipping(table, needed)}"
        advice = skip if table.columns.task is not None or not table.regression else ""
        raise TableError(f"{small[0].upper()}{small[1:]} but needs {needed}: {why}{advice}.")


def check_named_folds(table: "Table", cv: str, share: float = 1.0) -> None:
    """Refuse folds that leave tasks out without tasks, and folds in time with tasks that are too short.

    The folds get ``share`` of the rows.
    """
    needed = ceil(ROWS_IN_TIME / share)
    sizes = Counter(table.tasks)
    if cv == "new tasks" and len(sizes) < 2:
        raise TableError("--cv new-tasks leaves tasks out, and needs several (--task).")
    short = [(task, n) for task, n in sizes.items() if n < needed]
    if cv == "time" and short:
        task, n = short[0]
        where = f"task {task!r} has" if task else "the table has"
        skip = f"; to skip short tasks, use --min-task-rows {needed}" if task else ""
        raise TableError(
            f"--cv time cuts each task into five parts and needs {needed} rows, but {where} only {n}{skip}."
        )


def lone_tasks(table: "Table") -> list[str]:
    """Tasks with a single class or number: only models whose tasks share a function can learn from them."""
    pairs = set(zip(table.tasks, table.y.tolist(), strict=True))
    return [task for task, n in Counter(task for task, _ in pairs).items() if n < 2]


def note_target(table: "Table", options: Options) -> None:
    """Print notes: whether numbers in the target count as classes, and which options help with rare classes."""
    distinct, target = len(set(table.y.tolist())), table.columns.target
    if options.regression is None and table.regression:
        note(
            f"{target!r} has {distinct} different numbers, so this is a regression; "
            "--classification treats them as classes."
        )
    elif options.regression is None and table.y.dtype.kind in "iuf" and distinct > 2:
        note(f"{target!r} has {distinct} different numbers, treated as classes; --regression predicts numbers.")
    if table.regression or options.balanced or options.scoring is not None:
        return
    n_rows, n_classes = Counter(table.tasks), Counter(task for task, _ in cells(table))
    shares = {cell: n / n_rows[cell[0]] for cell, n in cells(table).items()}
    # with many classes every share is small, so the limit depends on their number
    (task, label), share = min(shares.items(), key=lambda item: item[1] * n_classes[item[0][0]])
    if share * n_classes[task] < 2 * RARE:
        of_task = f" of task {task!r}" if task else ""
        note(
            f"class {label!r} has only {100 * share:.1f} % of the rows{of_task}, so accuracy hardly depends on it; "
            "--balanced gives the classes equal weight, --scoring balanced_accuracy judges models by all classes "
            "equally."
        )


def folds_for(table: "Table", folds: int, judge: "Judge", share: float = 1.0) -> int:
    """The number of folds, reduced if there are fewer groups, or two classes of no task for each fold to compare.

    The folds get ``share`` of the rows.
    """
    n_groups = folds if table.groups is None else max(2, int(share * len(set(table.groups.tolist()))))
    if n_groups < folds:
        note(f"{n_groups} folds instead of {folds}: there are no more groups.")
        folds = n_groups
    if table.regression or not judge.metric.compares_classes:
        return folds
    rarest: dict[str, int] = {}
    for (task, _), n in cells(table).items():
        rarest[task] = min(rarest.get(task, n), n)
    most = max(2, int(share * max(rarest.values())))
    if most < folds:
        note(f"{most} folds instead of {folds}: {judge.measure.name} needs rows of two classes in each.")
    return min(folds, most)
