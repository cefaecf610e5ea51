"""Frames of numbers, booleans, text and categories as numbers: one column of numbers for each column of the frame.

A :class:`Coding` looks at no statistics: numbers and booleans stay as they are, ordered categories become their ranks,
and other categories and texts become the codes 0, 1, … of their levels. Gaps become NaN. What is learned from the
numbers, such as fills for gaps, belongs to the bank of kernels (:mod:`paretomkl.kernels._preparing`).
"""

from __future__ import annotations

import datetime
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Number
from typing import Any

import numpy as np

from .._tools.typing import AnyArray, Array
from .._tools.wording import counted, quoted
from ..exceptions import UnseenLevelWarning

UNSEEN = -1.0  # code of a level that training did not have
MOST_CATEGORIES = 50  # a text column with more distinct values looks like names
MOST_OWN, OF_ROWS = 20, 0.5  # … and so does one with more than this if they are so large a share of the rows
MOSTLY_NUMBERS = 0.5  # share of numbers in a column above which text looks like a mistake
DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}([ T]\d.*)?")
DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")
TIMES = (datetime.date, datetime.time, datetime.timedelta)
NESTED = (list, dict, set, tuple, np.ndarray)
LONGEST = 40  # characters of a value in a message
MOST_LEVELS = 4  # levels that a warning names at most
MOST_ROWS = 1000  # rows that a warning lists at most


def is_frame(X: object) -> bool:
    """Whether X is a frame of pandas, polars or the like: a table with named columns."""
    return hasattr(X, "columns") and hasattr(X, "shape") and hasattr(X, "__getitem__")


def is_coded(X: Any) -> bool:
    """Whether a frame has columns besides numbers and booleans."""
    if not is_frame(X):
        return False
    if hasattr(X, "iloc"):
        return any(getattr(dtype, "kind", "O") not in "biuf" for dtype in X.dtypes)
    return any(not (dtype.is_numeric() or str(dtype) == "Boolean") for dtype in X.dtypes)


def text_of(value: object) -> str:
    """A value as text: 1, 1.0 and "1" are the same level, whatever type a file gave them."""
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    elif isinstance(value, (float, np.floating)) and float(value).is_integer():
        value = int(value)
    elif isinstance(value, datetime.datetime) and value.time() == datetime.time():
        value = value.date()
    return str(value).strip()


@dataclass(frozen=True)
class ColumnCoding:
    """How one column becomes numbers.

    levels: the texts of its categories, or None for a column of numbers; ranked: whether their order counts.
    """

    name: str
    levels: tuple[str, ...] | None = None
    ranked: bool = False

    @property
    def is_category(self) -> bool:
        """Whether the numbers are codes of categories without an order."""
        return self.levels is not None and not self.ranked

    def numbers(self, values: Values) -> Array:
        """The column as numbers, NaN for gaps; warn of levels that are not known."""
        if self.levels is None:
            return values.numbers()
        place = {level: float(k) for k, level in enumerate(self.levels)}
        unseen = np.nan if self.ranked else UNSEEN  # there is no rank between ranks; the typical one stands for it
        codes = {value: place.get(text_of(value), unseen) for value in values.distinct()}
        new = sorted({text_of(value) for value in codes if text_of(value) not in place})
        made = np.array([np.nan if value is None else codes[value] for value in values.cells], dtype=np.float64)
        if new:
            rows = [row for row, value in enumerate(values.cells) if value is not None and text_of(value) in new]
            which, levels = quoted(map(short, new), MOST_LEVELS), "a level" if len(new) == 1 else "levels"
            message = (
                f"Column {short(self.name)!r} has {levels} that training did not have, in {counted(len(rows), 'row')}: "
                f"{which}; predictions there use the other columns."
            )
            warnings.warn(UnseenLevelWarning(message, self.name, new, rows[:MOST_ROWS]), stacklevel=6)
        return made


@dataclass(frozen=True)
class Values:
    """The cells of a column of a frame, None for gaps, and what its type says about them."""

    name: str
    cells: Sequence[Any]
    categories: tuple[Any, ...] | None = None  # of a categorical column
    ranked: bool = False
    temporal: bool = False

    @classmethod
    def of(cls, column: Any) -> Values:
        """A column of a frame of pandas or polars."""
        if not hasattr(column, "iloc"):  # polars
            kind = str(column.dtype)
            categories = None
            cells = [None if value != value else value for value in column.to_list()]
            if kind.startswith("Enum"):
                categories = tuple(column.dtype.categories)
            elif kind.startswith("Categorical"):  # which also knows categories of other columns
                categories = tuple(sorted({value for value in cells if value is not None}))
            return cls(str(column.name), cells, categories, temporal=column.dtype.is_temporal())
        import pandas as pd

        dtype, values = column.dtype, column.to_numpy(dtype=object, copy=True)
        temporal = dtype.kind in "mM" or isinstance(dtype, pd.PeriodDtype)
        values[pd.isna(values)] = None
        cells = values.tolist()
        if isinstance(dtype, pd.CategoricalDtype):
            return cls(str(column.name), cells, tuple(dtype.categories), bool(dtype.ordered), temporal)
        return cls(str(column.name), cells, temporal=temporal)

    def present(self) -> list[Any]:
        return [value for value in self.cells if value is not None]

    def distinct(self) -> Iterable[Any]:
        return dict.fromkeys(self.present())

    def coding(self) -> ColumnCoding:
        """How to turn the column into numbers, or an error that names it."""
        name, leave = self.name, f"leave it out, such as with X.drop(columns=[{self.name!r}])"
        if self.categories is not None:
            levels = [text_of(value) for value in self.categories]
            if len(set(levels)) < len(levels):
                raise ValueError(f"Column {name!r} has categories that are the same as text; rename one of them.")
            return ColumnCoding(name, tuple(levels), self.ranked)
        present = self.present()
        for value in present:
            if isinstance(value, NESTED):
                raise ValueError(f"Column {name!r} contains lists or records; expand them into columns, or {leave}.")
            if isinstance(value, complex):
                raise ValueError(f"Column {name!r} contains complex numbers; turn them into real numbers, or {leave}.")
        dates = sum(isinstance(value, TIMES) or _matches(value, DATE) for value in present)
        if self.temporal or dates > 0.5 * len(present):
            such = f", such as {shown(present[0])}" if present else ""
            raise ValueError(
                f"Column {name!r} contains dates or times{such}; turn them into numbers, such as days since a date, "
                f"or {leave}."
            )
        texts = [value for value in present if not is_number(value)]
        if not texts:
            return ColumnCoding(name)
        if all(_matches(value, DECIMAL_COMMA) for value in texts):
            raise ValueError(
                f"Column {name!r} contains numbers with a comma, such as {shown(texts[0])}; turn them into numbers."
            )
        if len(texts) <= (1 - MOSTLY_NUMBERS) * len(present):
            row = next(k for k, value in enumerate(self.cells) if value is not None and not is_number(value))
            raise ValueError(
                f"Column {name!r} contains numbers and text, such as {shown(texts[0])} in row {row}; correct it, or "
                "turn it into a category, with astype('category')."
            )
        levels = sorted({text_of(value) for value in present})
        if len(levels) > MOST_CATEGORIES or (len(levels) > MOST_OWN and len(levels) > OF_ROWS * len(present)):
            raise ValueError(
                f"Column {name!r} contains {len(levels)} different texts in {counted(len(present), 'row')}, such as "
                f"{shown(texts[0])}, and looks like names or free text; {leave}, or if it holds groups, turn it into "
                "a category, with astype('category')."
            )
        return ColumnCoding(name, tuple(levels))

    def numbers(self) -> Array:
        """The cells as floats; an error names the first one that is no number."""
        made = np.empty(len(self.cells))
        for row, value in enumerate(self.cells):
            if value is None:
                made[row] = np.nan
            elif is_number(value):
                made[row] = float(value)
            else:
                raise ValueError(
                    f"Column {self.name!r} must contain numbers, as in training; row {row} has {shown(value)}."
                )
        return made


@dataclass(frozen=True)
class Coding:
    """How the columns of a frame become numbers."""

    columns: tuple[ColumnCoding, ...]

    @classmethod
    def of(cls, frame: Any) -> Coding:
        """The coding of a frame, from its types, and for texts from their levels in all rows."""
        columns = [ColumnCoding(str(name)) for name in np.asarray(frame.columns, dtype=object)]
        others = np.flatnonzero(~np.array(_plain_kinds(frame), dtype=bool)).tolist()
        for k, column in zip(others, _columns(frame, others), strict=True):
            columns[k] = Values.of(column).coding()
        return cls(tuple(columns))

    @classmethod
    def of_numbers(cls, names: Iterable[object]) -> Coding:
        """The coding of a frame that had only numbers in training."""
        return cls(tuple(ColumnCoding(str(name)) for name in names))

    def __call__(self, frame: Any) -> Array:
        """The columns as numbers, (n, n_columns); NaN for gaps."""
        n, width = frame.shape
        if width != len(self.columns):
            raise ValueError(f"X has {counted(width, 'column')}, and training had {len(self.columns):,}.")
        for name, coding in zip(np.asarray(frame.columns, dtype=object), self.columns, strict=True):
            if str(name) != coding.name:  # before text in the wrong place is read as numbers
                raise ValueError(
                    f"The column {str(name)!r} is at another place than in training; use the same columns."
                )
        made, kinds = np.empty((n, width)), _plain_kinds(frame)
        plain = [k for k, coding in enumerate(self.columns) if kinds[k] and coding.levels is None]
        made[:, plain] = _as_floats(frame, plain)
        others = sorted({*range(width)} - {*plain})
        for k, column in zip(others, _columns(frame, others), strict=True):
            made[:, k] = self.columns[k].numbers(Values.of(column))
        return made

    @property
    def n_levels(self) -> Mapping[int, int]:
        """The number of levels of each column of categories, by its position."""
        return {k: len(coding.levels) for k, coding in enumerate(self.columns) if coding.levels and coding.is_category}

    @property
    def levels(self) -> Mapping[str, tuple[str, ...]]:
        """The levels of each column of categories, those with an order included, by its name."""
        return {coding.name: coding.levels for coding in self.columns if coding.levels is not None}


def _plain_kinds(frame: Any) -> list[bool]:
    """Which columns hold only numbers or booleans by their type."""
    if hasattr(frame, "iloc"):
        return [getattr(dtype, "kind", "O") in "biuf" for dtype in frame.dtypes]
    return [dtype.is_numeric() or str(dtype) == "Boolean" for dtype in frame.dtypes]


def _columns(frame: Any, positions: list[int]) -> list[Any]:
    if hasattr(frame, "iloc"):  # one by one takes pandas three times as long
        return [column for _, column in frame.iloc[:, positions].items()]
    return [frame[frame.columns[k]] for k in positions]


def _as_floats(frame: Any, positions: list[int]) -> AnyArray:
    if hasattr(frame, "iloc"):
        return frame.iloc[:, positions].to_numpy(dtype=np.float64, na_value=np.nan)
    names = [frame.columns[k] for k in positions]
    return frame[names].cast(dict.fromkeys(names, float)).to_numpy()


def is_number(value: object) -> bool:
    """Whether a value is a number, also as text."""
    if isinstance(value, Number | Decimal | np.bool_):
        return not isinstance(value, complex)
    try:
        return isinstance(value, str) and np.isfinite(float(value))
    except ValueError:
        return False


def _matches(value: object, pattern: re.Pattern[str]) -> bool:
    return isinstance(value, str) and bool(pattern.fullmatch(value.strip()))


def short(text: str) -> str:
    """A text cut to a length that messages can hold."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def shown(value: object) -> str:
    return short(repr(value))
