"""Drop rows of a table on request, and report them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .._tools.wording import counted, joined
from ._files import Frame, TableError

MOST_TASKS = 12  # maximum number of tasks listed in a report


@dataclass(frozen=True)
class LeftOut:
    """Number of rows dropped for one reason, by task (an empty name if there are no tasks)."""

    why: str
    rows: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.rows.values())

    def __str__(self) -> str:
        said = f"{counted(self.total, 'row')} {self.why}"
        tasks = [f"{n:,} of {f'task {task!r}' if task else 'no task'}" for task, n in self.rows.items()]
        rest = len(tasks) - MOST_TASKS
        listed = joined(tasks[:MOST_TASKS] + [f"those of {counted(rest, 'more task')}"] * (rest > 0))
        return f"{said} ({listed})" if any(self.rows) else said

    def facts(self) -> dict[str, Any]:
        """The same as a dict for JSON."""
        by_task = {"tasks": self.rows} if any(self.rows) else {}
        return {"why": self.why, "rows": self.total, **by_task}


def in_words(left_out: Sequence[LeftOut], n_rows: int) -> str:
    """A sentence about the rows left out of a table of which n_rows are kept."""
    total = sum(part.total for part in left_out)
    return f"left out {total:,} of {counted(total + n_rows, 'row')}: {'; '.join(map(str, left_out))}."


class Selection:
    """The remaining rows of a table; ``tasks`` names the task of each row and may have gaps."""

    def __init__(self, frame: Frame, tasks: Any):
        self.frame, self.tasks = frame, tasks
        self.left_out: list[LeftOut] = []

    def keep(self, kept: Any, why: str) -> None:
        """Keep the marked rows, and record the others."""
        if kept.all():
            return
        gone = [""] * int((~kept).sum()) if self.tasks is None else self.tasks[~kept].fillna("").tolist()
        self.left_out.append(LeftOut(why, dict(sorted(Counter(gone).items()))))
        self.frame, self.tasks = self.frame[kept], None if self.tasks is None else self.tasks[kept]
        if not len(self.frame):
            raise TableError(f"No rows are left to learn from: {in_words(self.left_out, 0)}")

    def drop_missing(self, columns: Sequence[str]) -> None:
        """Drop rows with a missing value in one of these columns."""
        gaps = self.frame[list(columns)].isna()
        # columns that are entirely empty raise an error later
        named = [name for name in columns if gaps[name].any() and not gaps[name].all()]
        self.keep(~gaps[named].any(axis=1), f"with nothing in {joined(map(repr, named), 'or')}" if named else "")

    def drop_rare_classes(self, target: str, least: int) -> None:
        """Drop the classes of a task with fewer rows than ``least``, and tasks that keep a single class."""
        classes = self.frame[target]
        cells = [classes] if self.tasks is None else [self.tasks, classes]
        sizes = classes.groupby(cells, observed=True).transform("size")
        whose = "in their task" if self.tasks is not None else "in the table"
        self.keep(sizes >= least, f"of classes with fewer than {counted(least, 'row')} {whose}")
        if self.tasks is not None:
            left = self.frame[target].groupby(self.tasks, observed=True).transform("nunique")
            self.keep(left > 1, "of tasks with one class only")

    def drop_small_tasks(self, least: int) -> None:
        """Drop tasks with fewer rows than ``least``."""
        if self.tasks is None:
            raise TableError("--min-task-rows needs tasks; name the task column with --task.")
        sizes = self.tasks.groupby(self.tasks, observed=True).transform("size")
        self.keep(sizes >= least, f"of tasks with fewer than {counted(least, 'row')}")
