"""Read tables from files, check them with clear errors, and remember how they were encoded."""

from __future__ import annotations

import csv
import datetime
import io
import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal as DecimalNumber
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._tools.typing import AnyArray
from .._tools.wording import counted, hint, joined, quoted
from ._coding import DATE, DECIMAL_COMMA, MOST_CATEGORIES, MOSTLY_NUMBERS, NESTED, short, text_of
from ._files import MAX_ROWS, TableError, read_table

if TYPE_CHECKING:  # pandas is imported where it is used
    from pandas import DataFrame as Frame
    from pandas import Series

__all__ = ["Columns", "Table", "TableError", "load_table", "read_table"]

MAX_LABELS = 20  # a target with more distinct whole numbers than this is numeric …
FEW_LABELS = 10  # … and so is one with more than this …
FEW_ROWS = 10  # … and fewer rows per value
MOST_NAMED = 12  # maximum number of tasks listed in a message
MOST_COLUMNS = 3  # that a message names at most
FEW_IDS = 20  # minimum number of rows for distinct whole numbers to look like ids
ID_NAME = re.compile(r"(^|.*[_\W])(id|ids|nr|no|num|number|index|idx|key|row|rownum)", re.IGNORECASE)
NAMELESS = re.compile(r"Unnamed: \d+")  # pandas' name for a column without a name


# ------------------------------------------------------------------------------------------------ columns
@dataclass(frozen=True)
class Columns:
    """The roles of the columns of a table.

    Attributes
    ----------
    target : str
        The column to predict.
    task : str or None
        The column that names the task of each row.
    numbers, words : lists of str
        Numeric and categorical input columns.
    """

    target: str
    task: str | None
    numbers: list[str]
    words: list[str]

    @property
    def inputs(self) -> list[str]:
        """The columns that a model needs to predict."""
        return self.numbers + self.words + ([] if self.task is None else [self.task])

    def read(self, frame: Frame) -> Frame:
        """The inputs, with numbers as floats and categories and tasks as text, so that all files are encoded alike.

        Missing values stay missing; text or infinity in a numeric column is an error.
        """
        import pandas as pd

        numbers = set(self.numbers)
        read = {name: (_as_numbers if name in numbers else as_text)(frame[name]) for name in self.inputs}
        return pd.DataFrame(read, index=frame.index)


ROLES = {"--target": "target", "--task": "task", "--time-column": "time", "--group": "group"}


def _choose_columns(
    frame: Frame, target: str, task: str | None, categorical: Sequence[str], drop: Sequence[str], impute: bool
) -> Columns:
    """Find the target, the task, and the numeric and categorical columns; raise if a column is unusable."""
    used = [name for name in frame.columns if name not in drop]
    for name in used:
        column, leave = frame[name], f"leave it out with --drop {_quoted(name)}"
        if column.dtype == object and any(isinstance(value, NESTED) for value in column):
            raise TableError(f"Column {name!r} contains lists or records; expand them into columns, or {leave}.")
        if NAMELESS.fullmatch(name) and name not in (target, task, *categorical):
            place = frame.columns.get_loc(name) + 1
            raise TableError(f"Column {place} has no name and may be row numbers; {leave}, or name it in the file.")
    _check_missing(frame[used], [target] if task is None else [target, task], impute)
    inputs = [name for name in used if name not in (target, task)]
    words = [name for name in inputs if name in categorical or _holds_words(frame[name], name)]
    numbers = [name for name in inputs if name not in words]
    if not numbers and not words:
        raise TableError("No column is left to learn from.")
    return Columns(target, task, numbers, words)


def _groups_of(column: Series) -> AnyArray:
    """The groups as text; every row needs one."""
    missing = int(column.isna().sum())
    if missing:
        raise TableError(
            f"Column {column.name!r} (--group) has no value in {counted(missing, 'row')}; leave those rows out with "
            "--drop-missing."
        )
    return as_text(column).to_numpy()


def _check_roles(
    frame: Frame,
    target: str,
    task: str | None,
    categorical: Sequence[str],
    drop: Sequence[str],
    time: str | None,
    group: str | None,
) -> None:
    """Check that every named column exists and has one role; the tasks may be the groups."""
    tasks, times, groups = ([] if name is None else [name] for name in (task, time, group))
    named = {
        "--target": [target],
        "--task": tasks,
        "--time-column": times,
        "--group": groups,
        "--categorical": categorical,
        "--drop": drop,
    }
    absent = {name: option for option, names in named.items() for name in names if name not in frame.columns}
    if absent:
        said = joined([f"{name!r} ({option})" for name, option in absent.items()], "or")
        known = hint(list(absent), list(frame.columns), "column")
        raise TableError(f"There is no column {said}; {known}")
    for name, role in ((task, "task"), (group, "group")):
        if name == target:
            raise TableError(f"Column {target!r} cannot be both the target and the {role}.")
    if time is not None and time in (target, *tasks, *groups):
        raise TableError(f"Column {time!r} (--time-column) cannot be the target, the task or the group too.")
    for role in ("--target", "--task", "--time-column", "--group"):
        for option in ("--drop", "--categorical"):
            for name in set(named[role]).intersection(named[option]):
                raise TableError(
                    f"Column {name!r} is the {ROLES[role]} ({role}), not an input; remove it from {option}."
                )
    for name in set(categorical).intersection(drop):
        raise TableError(f"Column {name!r} is both in --categorical and in --drop.")


def _check_missing(frame: Frame, needed: Sequence[str], impute: bool) -> None:
    """Raise for gaps in needed columns, and in others unless they are imputed; the message names all columns."""
    gaps = {name: n for name in frame.columns if (n := int(frame[name].isna().sum()))}
    for name, n in gaps.items():
        if n == len(frame):
            raise TableError(f"Column {name!r} is empty; leave it out with --drop {_quoted(name)}.")
    refused = {name: n for name, n in gaps.items() if name in needed or not impute}
    if not refused:
        return
    if len(refused) == 1:
        ((name, n),) = refused.items()
        said = f"Column {name!r} is missing in {n:,} of {counted(len(frame), 'row')}"
    else:
        listed = [f"{short(name)!r} in {counted(n, 'row')}" for name, n in refused.items()]
        rest = len(listed) - MOST_COLUMNS
        said = f"Values are missing: {joined(listed[:MOST_COLUMNS] + [f'{rest:,} more'] * (rest > 0))}"
    inputs = [_quoted(name) for name in refused if name not in needed]
    advice = "leave those rows out with --drop-missing"
    if inputs:
        which = f"the column out with --drop {inputs[0]}" if len(inputs) == 1 else "columns out with --drop"
        advice = f"let --impute fill the gaps in, {advice}, or leave {which}"
    raise TableError(f"{said} (NA, None and the like count as missing); {advice}.")


def _holds_words(column: Series, name: str) -> bool:
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        return False
    present = column.dropna()
    leave, words = f"leave it out with --drop {_quoted(name)}", f"use --categorical {_quoted(name)}"
    if _holds_dates(present):
        date = str(present.iloc[0])
        raise TableError(
            f"Column {name!r} contains dates, such as {date!r}; turn them into numbers, {leave}, or {words}."
        )
    if pd.api.types.is_timedelta64_dtype(column):
        raise TableError(f"Column {name!r} contains durations; turn them into numbers, such as days.")
    text = pd.to_numeric(present, errors="coerce").isna()
    if not text.any() and not isinstance(column.dtype, pd.CategoricalDtype):
        return False  # numbers stored as text, or with a fixed number of decimals
    if text.any() and (~text | _matches(present, DECIMAL_COMMA)).all():
        raise TableError(
            f"Column {name!r} contains numbers with a comma, such as {present[text].iloc[0]!r}; if the comma is the "
            "decimal point of a text file, use --decimal , and otherwise remove it."
        )
    if text.any() and (~text).mean() >= MOSTLY_NUMBERS:
        row = int(present.index[text.to_numpy().argmax()])
        what = f"numbers and text, such as {present[row]!r} in row {row + 1}"
        raise TableError(f"Column {name!r} contains {what}; correct it, or {words}.")
    n = present.nunique()
    if n > MOST_CATEGORIES:
        raise TableError(f"Column {name!r} contains {n} different texts and looks like names; {leave}, or {words}.")
    return True


def _holds_dates(present: Series) -> bool:
    """Whether all values are dates, or texts that look like dates."""
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(present) or isinstance(present.dtype, pd.PeriodDtype):
        return True
    return all(isinstance(value, datetime.date) for value in present) or bool(_matches(present, DATE).all())


def _matches(present: Series, pattern: re.Pattern[str]) -> Series:
    """Which values are text that matches the pattern."""
    return present.map(lambda value: isinstance(value, str) and bool(pattern.fullmatch(value.strip()))).astype(bool)


def _quoted(name: str) -> str:
    """A column name quoted for a command-line option, which takes a comma-separated list."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow([name])
    return shlex.quote(text.getvalue())


# ------------------------------------------------------------------------------------------------- cells
def as_text(column: Series) -> Series:
    """Categories as text: 1, 1.0 and "1" are the same category, whatever type a file gave it."""
    return column.map({value: text_of(value) for value in column.dropna().unique()}).astype(object)


def _as_numbers(column: Series, purpose: str = "") -> Series:
    """Numbers as floats, whatever type a file gave them; messages name the purpose."""
    import pandas as pd

    numbers = pd.to_numeric(column, errors="coerce").astype(float)
    wrong = (numbers.isna() & column.notna()).to_numpy()
    if wrong.any():
        value, row = column[wrong].iloc[0], int(column.index[wrong][0])
        comma = isinstance(value, str) and DECIMAL_COMMA.fullmatch(value.strip())
        advice = "; if the comma is a decimal point, use --decimal ," if comma else ""
        raise TableError(f"Column {column.name!r} must contain numbers{purpose}; row {row + 1} has {value!r}{advice}.")
    infinite = np.isinf(numbers.to_numpy())
    if infinite.any():
        row = int(column.index[infinite][0]) + 1
        raise TableError(f"Column {column.name!r} has an infinite number in row {row}.")
    return numbers


# -------------------------------------------------------------------------------------- rows left out
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
        rest = len(tasks) - MOST_NAMED
        listed = joined(tasks[:MOST_NAMED] + [f"those of {counted(rest, 'more task')}"] * (rest > 0))
        return f"{said} ({listed})" if any(self.rows) else said

    def facts(self) -> dict[str, object]:
        """The same as a dict for JSON."""
        by_task = {"tasks": self.rows} if any(self.rows) else {}
        return {"why": self.why, "rows": self.total, **by_task}


def few(names: Sequence[str], last: str = "and") -> str:
    """The first names, short enough for a message."""
    rest = len(names) - MOST_COLUMNS
    return joined([repr(short(name)) for name in names[:MOST_COLUMNS]] + [f"{rest:,} more"] * (rest > 0), last)


def in_words(left_out: Sequence[LeftOut], n_rows: int) -> str:
    """A sentence about the rows left out of a table of which n_rows are kept."""
    total = sum(part.total for part in left_out)
    return f"left out {total:,} of {counted(total + n_rows, 'row')}: {'; '.join(map(str, left_out))}."


class Selection:
    """The remaining rows of a table; ``tasks`` names the task of each row and may have gaps."""

    def __init__(self, frame: Frame, tasks: Series | None):
        self.frame, self.tasks = frame, tasks
        self.left_out: list[LeftOut] = []

    def keep(self, kept: Series, why: str, advice: str = "") -> None:
        """Keep the marked rows, and record the others; ``advice`` is for a table that keeps none."""
        if kept.all():
            return
        gone = [""] * int((~kept).sum()) if self.tasks is None else self.tasks[~kept].fillna("").tolist()
        self.left_out.append(LeftOut(why, dict(sorted(Counter(gone).items()))))
        self.frame, self.tasks = self.frame[kept], None if self.tasks is None else self.tasks[kept]
        if not len(self.frame):
            raise TableError(f"No rows are left to learn from: {in_words(self.left_out, 0)}{advice}")

    def drop_missing(self, columns: Sequence[str], advice: str = "") -> None:
        """Drop rows with a missing value in one of these columns."""
        gaps = self.frame[list(columns)].isna()
        # columns that are entirely empty raise an error later
        named = [name for name in columns if gaps[name].any() and not gaps[name].all()]
        self.keep(~gaps[named].any(axis=1), f"with nothing in {few(named, 'or')}" if named else "", advice)

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


# ------------------------------------------------------------------------------------------ ready to learn
@dataclass(frozen=True)
class Table:
    """A table that is ready to learn from.

    Attributes
    ----------
    inputs : frame of shape (n_samples, n_inputs)
        The input columns of the file: numbers as floats, categories and the task as text.
    y : array of shape (n_samples,)
        The classes, or the numbers to predict.
    columns : Columns
        The roles of the columns of the file.
    impute : bool
        Whether missing inputs are filled in; otherwise there are none.
    regression : bool
        Whether y contains numbers to predict.
    left_out : tuple of LeftOut
        Rows of the file that were left out on request, and why.
    look_like_ids : list of str
        Numeric columns with a different value in every row, such as row or patient numbers.
    groups : array of shape (n_samples,), or None
        The group of each row as text.
    """

    inputs: Frame
    y: AnyArray
    columns: Columns
    impute: bool = False
    regression: bool = False
    left_out: tuple[LeftOut, ...] = ()
    look_like_ids: tuple[str, ...] = ()
    groups: AnyArray | None = None

    @cached_property
    def X(self) -> Frame:
        """The inputs for estimators, which encode them; categories have a type that may have many levels."""
        return self.inputs.astype(dict.fromkeys(self.columns.words, "category"))

    @property
    def features(self) -> list[str]:
        """Columns of X that kernels use."""
        return self.columns.numbers + self.columns.words

    @property
    def tasks(self) -> list[str]:
        """The task of each row; empty strings without tasks."""
        return [""] * len(self.y) if self.columns.task is None else self.inputs[self.columns.task].tolist()


def load_table(
    file: str | Path,
    target: str,
    task: str | None = None,
    *,
    group: str | None = None,
    categorical: Sequence[str] = (),
    drop: Sequence[str] = (),
    impute: bool = False,
    drop_missing: bool = False,
    min_class_rows: int | None = None,
    min_task_rows: int | None = None,
    any_tasks: bool = False,
    regression: bool | None = None,
    delimiter: str | None = None,
    decimal: str = ".",
    encoding: str | None = None,
    max_rows: int = MAX_ROWS,
    sample: int | None = None,
    seed: int = 0,
    time_column: str | None = None,
) -> Table:
    """Read a file and prepare it for learning, as the commands ``path`` and ``fit`` do.

    Parameters
    ----------
    file, delimiter, decimal, encoding, max_rows, sample, seed
        As in :func:`read_table`.
    target, task : str
        The column to predict, and the column with the task of each row (None if there are no tasks).
    group : str, default=None
        The column with the group of each row, such as the patient that it is from; it is not an input.
    categorical, drop : sequences of str
        Categorical columns that look like numbers or names, and columns to leave out.
    impute : bool
        Whether to accept missing values, which estimators fill in; otherwise they are an error.
    drop_missing : bool, default=False
        Whether to leave out rows without a target or a task, and rows with other gaps unless they are imputed.
    min_class_rows : int, default=None
        Leave out the classes of a task with fewer rows, and then tasks that keep a single class.
    min_task_rows : int, default=None
        Leave out tasks with fewer rows.
    any_tasks : bool, default=False
        Whether to accept tasks with a single class or number; only ``share="function"`` and ``"everything"`` learn from
        them.
    regression : bool, default=None
        Whether the target contains numbers to predict, or classes. With None, these are numbers: values with decimals,
        whole numbers with more than 20 different values, and whole numbers with more than 10 different values and fewer
        than 10 rows per value on average. Everything else is classes.
    time_column : str, default=None
        A column of numbers or dates (2026-01-31) by which to sort the rows; it is not an input.

    Returns
    -------
    Table
        Inputs, and classes or numbers.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "t.csv"
    ...     _ = file.write_text("size,colour,kind\\n1,red,a\\n2,blue,b\\n3,red,a\\n")
    ...     table = load_table(file, "kind")
    >>> table.X.columns.tolist(), table.y.tolist()
    (['size', 'colour'], ['a', 'b', 'a'])
    """

    form: dict[str, Any] = {"delimiter": delimiter, "decimal": decimal, "encoding": encoding}
    frame = read_table(file, **form, max_rows=max_rows, sample=sample, seed=seed)
    _check_roles(frame, target, task, categorical, drop, time_column, group)
    if time_column is not None:
        frame, drop = frame.iloc[_order_of(frame[time_column])], [*drop, time_column]
    rows = Selection(frame, None if task is None else as_text(frame[task]))
    if drop_missing:
        needed = [name for name in (target, task, group) if name is not None]
        if impute:
            rows.drop_missing(needed)
        else:
            instead = " Let --impute fill the gaps in instead."
            rows.drop_missing([name for name in frame.columns if name not in drop], instead)
    regression = _measures(rows.frame[target]) if regression is None else regression
    if min_class_rows is not None:
        if regression:
            raise TableError(f"--min-class-rows needs classes, but {target!r} is numeric; remove the option.")
        rows.drop_rare_classes(target, min_class_rows)
    if min_task_rows is not None:
        rows.drop_small_tasks(min_task_rows)
    frame, tasks = rows.frame, rows.tasks
    groups = None if group is None else _groups_of(frame[group])
    no_inputs = [*drop, *([] if group is None or group == task else [group])]
    columns = _choose_columns(frame, target, task, categorical, no_inputs, impute)
    y = (_numbers_of if regression else _classes_of)(frame[target], None if any_tasks else tasks)
    inputs = columns.read(frame).reset_index(drop=True)
    ids = tuple(name for name in columns.numbers if _looks_like_ids(inputs[name]))
    return Table(inputs, y.to_numpy(), columns, impute, regression, tuple(rows.left_out), ids, groups)


def _order_of(time: Series) -> Any:
    """The order of the rows in time."""
    import pandas as pd

    name = f"Column {time.name!r} (--time-column)"
    if time.isna().any():
        raise TableError(f"{name} has gaps, in {int(time.isna().sum())} rows; leave those rows out.")
    if not (pd.api.types.is_numeric_dtype(time) or pd.api.types.is_datetime64_any_dtype(time)):
        try:
            time = pd.to_datetime(as_text(time), format="ISO8601")
        except ValueError as error:
            raise TableError(f"{name} needs numbers, or dates such as 2026-01-31, got {time.iloc[0]!r}.") from error
    return np.argsort(time.to_numpy(), kind="stable")


def _looks_like_ids(numbers: Series) -> bool:
    """Whether all numbers are whole and distinct, and are sorted, dense, or in a column named like an id."""
    if len(numbers) < FEW_IDS or not numbers.is_unique or (numbers % 1 != 0).any():
        return False
    in_order = numbers.is_monotonic_increasing or numbers.is_monotonic_decreasing
    dense = numbers.max() - numbers.min() < 2 * len(numbers)
    return bool(in_order or dense or ID_NAME.fullmatch(str(numbers.name)))


def _measures(target: Series) -> bool:
    """Whether a target looks numeric; a few distinct whole numbers count as class codes."""
    import pandas as pd

    numeric = pd.api.types.is_numeric_dtype(target) or target.map(lambda value: isinstance(value, DecimalNumber)).all()
    if not numeric or pd.api.types.is_bool_dtype(target):
        return False
    values = target.astype(float)
    if (values % 1 != 0).any():  # also true for infinite values, which raise an error later
        return True
    distinct = values.nunique()
    return distinct > MAX_LABELS or (distinct > FEW_LABELS and len(values) < FEW_ROWS * distinct)


def _numbers_of(target: Series, tasks: Series | None) -> Series:
    """Check and return the numbers to predict."""
    import pandas as pd

    column = target.astype(object) if isinstance(target.dtype, pd.CategoricalDtype) else target
    values = _as_numbers(column, " to predict (--regression)")
    groups = [("", values)] if tasks is None else values.groupby(tasks, observed=True)
    for task, own in groups:
        whose = f"Task {task!r}" if tasks is not None else f"Column {target.name!r} (--target)"
        advice = "; leave its rows out" if tasks is not None else ""
        if len(own) < 2:
            small = "; leave such tasks out with --min-task-rows 2" if tasks is not None else ""
            raise TableError(f"{whose} has only one row, but regression needs two or more{small}.")
        if own.nunique() < 2:
            raise TableError(f"{whose} has the same target, {own.iloc[0]:g}, in all rows; nothing to learn{advice}.")
    return values


def _classes_of(target: Series, tasks: Series | None) -> Series:
    """Check and return the classes; numbers with decimals become text."""
    import pandas as pd

    text = target.dtype == object or isinstance(target.dtype, pd.StringDtype)
    _check_classes(as_text(target) if text else target, tasks)
    decimals = pd.api.types.is_float_dtype(target) and (target % 1 != 0).any()
    return as_text(target) if text or decimals else target


def _check_classes(labels: Series, tasks: Series | None) -> None:
    distinct = labels.nunique()
    measured = labels.dtype.kind == "f" or len(labels) < FEW_ROWS * distinct
    if distinct > MAX_LABELS and measured:
        raise TableError(
            f"Column {labels.name!r} (--target) contains {distinct} different values in {len(labels)} rows, too many "
            "for classes; group the values first, or use --regression to predict numbers."
        )
    if distinct < 2:
        raise TableError(f"Column {labels.name!r} (--target) contains only one class, {labels.iloc[0]!r}.")
    if tasks is not None:
        classes = labels.groupby(tasks, observed=True).nunique()
        single = [str(task) for task in classes.index[classes < 2]]
        if single:
            whose = f"Task {quoted(single)} has" if len(single) == 1 else f"Tasks {quoted(single, MOST_NAMED)} have"
            raise TableError(
                f"{whose} only one class, but a task needs two or more; leave such tasks out with --min-class-rows 1, "
                "or let fit --share function learn from them."
            )
