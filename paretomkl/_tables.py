"""Tables in files: read them, say clearly what is wrong with them, and remember how they were encoded."""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal as DecimalNumber
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ._typing import AnyArray

__all__ = ["Columns", "Table", "TableError", "load_table", "read_table"]

Frame: TypeAlias = Any  # of pandas, which is imported where it is used

MAX_ROWS = 20_000  # a kernel compares all pairs of rows
MAX_LABELS = 20  # different values in a target that names classes; more whole numbers are measurements …
FEW_LABELS = 10  # … and so are more than these …
FEW_ROWS = 10  # … where each has fewer rows
CHUNK = 200_000  # rows read at a time when some are to be sampled
MOST_CATEGORIES = 50  # different texts in a column; more look like names
MOSTLY_NUMBERS = 0.5  # share of numbers from which on texts in a column look like mistakes
DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}([ T]\d.*)?")
DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")
DELIMITERS = {",": "a comma", ";": "';'", "\t": "a tab", "|": "'|'", " ": "a blank"}
NAMELESS = re.compile(r"Unnamed: \d+")  # what pandas calls a column without a name
NESTED = (list, dict, set, tuple, np.ndarray)
TEXT_FILES = (".csv", ".tsv", ".txt", ".data", ".dat")
ARROW_FILES = (".arrow", ".feather", ".ipc")
NUMPY_FILES = (".npy", ".npz")


class TableError(ValueError):
    """Something about a file or its columns that its owner can correct; the message says how."""


# ------------------------------------------------------------------------------------------------ reading
def read_table(
    file: str | Path,
    *,
    delimiter: str | None = None,
    decimal: str = ".",
    max_rows: int = MAX_ROWS,
    sample: int | None = None,
    seed: int = 0,
) -> Frame:
    """Read a CSV, Parquet, Arrow or NumPy file into a frame whose column names are text.

    Parameters
    ----------
    file : path
        ``.csv``, ``.tsv``, ``.txt``, ``.data``, ``.dat`` (also ``.gz``); ``.parquet``; ``.arrow``, ``.feather``,
        ``.ipc``; ``.npy`` or ``.npz`` (two-dimensional, or structured with names).
    delimiter : str, default=None
        What separates the columns of a text file; None is a tab for ``.tsv`` and a comma otherwise.
    decimal : str, default="."
        Decimal point of the numbers in a text file; some countries write a comma.
    max_rows : int
        More rows are an error, unless ``sample`` says how many to draw.
    sample : int, default=None
        Number of rows to draw at random.
    seed : int
        Seed of the draw.

    Returns
    -------
    pandas.DataFrame
        The columns as they come.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "t.csv"
    ...     _ = file.write_text("size,kind\\n1,a\\n2,b\\n")
    ...     frame = read_table(file)
    >>> frame.shape, list(frame)
    ((2, 2), ['size', 'kind'])
    """
    path = Path(file)
    if decimal not in (".", ","):
        raise TableError(f"Decimals follow a point or a comma, got --decimal {decimal!r}.")
    if delimiter is not None and len(delimiter) != 1:
        raise TableError(f"A single character separates columns, got --delimiter {delimiter!r}.")
    if not path.exists():
        raise TableError(f"There is no file {str(file)!r}.")
    if path.is_dir():
        raise TableError(f"{str(file)!r} is a folder; name a file in it.")
    if path.stat().st_size == 0:
        raise TableError(f"{path.name} is empty.")
    try:
        chunks = _chunks(path, delimiter, decimal, CHUNK if sample else max_rows + 1)
        frame = _draw(chunks, sample, seed) if sample else _take(chunks, max_rows)
    except TableError:
        raise
    except UnicodeError:
        raise TableError(f"{path.name} is not written in UTF-8; save it in that encoding.") from None
    except ImportError as error:
        raise TableError(f"Reading {path.name} needs {error.name}: pip install 'paretomkl[cli]'.") from error
    except Exception as error:  # parsers raise errors of their own kinds
        words = str(error).strip() or type(error).__name__
        raise TableError(f"{path.name} cannot be read: {words.splitlines()[0].rstrip('.')}.") from error
    if frame is None or len(frame) == 0:
        raise TableError(f"{path.name} has no rows.")
    if len(frame) > max_rows and not sample:
        raise TableError(
            f"{path.name} has more than {max_rows:,} rows, and kernels compare all pairs of them; draw some at random "
            "with --sample 5000, or raise --max-rows."
        )
    frame.columns = [str(name).strip() for name in frame.columns]
    _refuse_doubles(path, list(frame.columns))
    return frame.reset_index(drop=True)


def _chunks(path: Path, delimiter: str | None, decimal: str, n_rows: int) -> Iterator[Frame]:
    """The rows of a file, about n_rows at a time."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    kind = suffixes[-2] if suffixes[-1:] == [".gz"] and len(suffixes) > 1 else (suffixes or [""])[-1]
    if kind in TEXT_FILES:
        yield from _text_chunks(path, delimiter or ("\t" if kind == ".tsv" else ","), decimal, n_rows)
    elif kind == ".parquet" or kind in ARROW_FILES:
        for batch in _arrow_batches(path, kind, n_rows):
            frame = batch.to_pandas(ignore_metadata=True)
            # what pandas kept as the index is a column too, unless it had no name
            yield frame.drop(columns=[name for name in frame.columns if str(name).startswith("__index_level_")])
    elif kind in NUMPY_FILES:
        yield _from_numpy(path)
    else:
        known = ", ".join((*TEXT_FILES, ".parquet", *ARROW_FILES, *NUMPY_FILES))
        raise TableError(f"{path.name}: unsupported file type; supported are {known}.")


def _text_chunks(path: Path, delimiter: str, decimal: str, n_rows: int) -> Iterator[Frame]:
    import pandas as pd

    _check_header(path, delimiter)
    # low_memory would guess the type of a column again in the middle of it
    options = {"sep": delimiter, "decimal": decimal, "skipinitialspace": True, "low_memory": False}
    with pd.read_csv(path, chunksize=n_rows, **options) as reader:
        for chunk in reader:
            if not isinstance(chunk.index, pd.RangeIndex):  # pandas takes extra values for row labels
                raise TableError(
                    f"The rows of {path.name} hold more values than its first line names columns; name them all."
                )
            yield chunk


def _arrow_batches(path: Path, kind: str, n_rows: int) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.ipc
    import pyarrow.parquet

    if kind == ".parquet":
        yield from pyarrow.parquet.ParquetFile(path).iter_batches(batch_size=n_rows)
        return
    with pa.memory_map(str(path)) as source:
        try:
            table = pyarrow.ipc.open_file(source).read_all()
        except pa.ArrowInvalid:
            source.seek(0)
            table = pyarrow.ipc.open_stream(source).read_all()
        for first in range(0, max(table.num_rows, 1), n_rows):
            yield table.slice(first, n_rows)


def _check_header(path: Path, delimiter: str) -> None:
    """A header that holds another delimiter, and not this one, is an error rather than a single column."""
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    with opener(path, "rt", encoding="utf-8-sig", errors="replace", newline="") as file:
        header = file.readline(1_000_000)
    if not header.strip():
        raise TableError(f"{path.name} begins with an empty line; its first line must name the columns.")
    split = {other: next(csv.reader([header.strip("\r\n")], delimiter=other)) for other in (*DELIMITERS, delimiter)}
    names = [name.strip() for name in split[delimiter]]
    best = max(DELIMITERS, key=lambda other: len(split[other]))
    if len(names) == 1 and header.startswith("#"):
        raise TableError(f"{path.name} begins with a comment; its first line must name the columns.")
    if len(names) == 1 and len(split[best]) > 1:
        raise TableError(
            f"{path.name} has a single column when read with {DELIMITERS.get(delimiter, repr(delimiter))} between "
            f"columns, and {len(split[best])} with {DELIMITERS[best]}; use --delimiter {best!r}."
        )
    _refuse_doubles(path, names)


def _refuse_doubles(path: Path, names: Sequence[str]) -> None:
    doubled = [name for k, name in enumerate(names) if name in names[:k]]
    if doubled:
        raise TableError(f"{path.name} has two columns called {doubled[0]!r}; rename one.")


def _from_numpy(path: Path) -> Frame:
    import pandas as pd

    loaded = np.load(path, allow_pickle=False)
    arrays = {"": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    columns: dict[str, Any] = {}
    for name, array in arrays.items():
        if array.dtype.names:
            columns.update({field: array[field] for field in array.dtype.names})
        elif array.ndim == 1 and name:
            columns[name] = array
        elif array.ndim == 2:
            columns.update({f"{name}{k}": array[:, k] for k in range(array.shape[1])})
        else:
            raise TableError(f"{path.name} holds an array of shape {array.shape}; a table has two dimensions.")
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise TableError(f"The arrays of {path.name} have different lengths: {sorted(lengths)}.")
    return pd.DataFrame(columns)


def _take(chunks: Iterator[Frame], max_rows: int) -> Frame:
    """All rows, or a few more than max_rows; a file may come in smaller pieces than asked for."""
    import pandas as pd

    taken: list[Frame] = []
    for chunk in chunks:
        taken.append(chunk)
        if sum(map(len, taken)) > max_rows:
            break
    return pd.concat(taken, ignore_index=True) if taken else None


def _draw(chunks: Iterator[Frame], n: int, seed: int) -> Frame:
    """n rows at random, in the order of the file: those of the n smallest random keys."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    kept: Frame = None
    keys = np.empty(0)
    for chunk in chunks:
        keys = np.concatenate([keys, rng.random(len(chunk))])
        kept = chunk if kept is None else pd.concat([kept, chunk], ignore_index=True)
        if len(kept) > n:
            best = np.sort(np.argpartition(keys, n - 1)[:n])
            kept, keys = kept.iloc[best].reset_index(drop=True), keys[best]
    return kept


# ------------------------------------------------------------------------------------------------ columns
@dataclass(frozen=True)
class Columns:
    """What the columns of a table are for.

    Attributes
    ----------
    target : str
        The column to predict.
    task : str or None
        The column that names the task of each row.
    numbers, words : lists of str
        Inputs that hold numbers, and those that hold categories.
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
        """The inputs, with numbers as floats and words and tasks as text, so that they are encoded alike in every file.

        Missing values stay missing; text and infinity in a column of numbers are errors.
        """
        inputs = frame[self.inputs].copy()
        for name in inputs.columns:
            inputs[name] = (_as_numbers if name in self.numbers else _as_text)(inputs[name])
        return inputs


def _choose_columns(
    frame: Frame, target: str, task: str | None, categorical: Sequence[str], drop: Sequence[str], impute: bool
) -> Columns:
    """Find the target, the task, and which columns are numbers and which words; refuse what cannot be learned from."""
    _check_roles(frame, target, task, categorical, drop)
    numbers: list[str] = []
    words: list[str] = []
    for name in frame.columns:
        if name in drop:
            continue
        column = frame[name]
        leave = f"leave it out with --drop {_quoted(name)}"
        if column.dtype == object and any(isinstance(value, NESTED) for value in column):
            raise TableError(f"Column {name!r} holds lists or records; make columns of what is in them, or {leave}.")
        if NAMELESS.fullmatch(name) and name not in (target, task, *categorical):
            place = frame.columns.get_loc(name) + 1
            raise TableError(f"Column {place} has no name, like row numbers; {leave}, or name it in the file.")
        _check_missing(column, name in (target, task), impute)
        if name not in (target, task):
            is_word = name in categorical or _holds_words(column, name)
            (words if is_word else numbers).append(name)
    if not numbers and not words:
        raise TableError("No column is left to learn from.")
    for word in words:
        for taken in {name_of_indicator(word, text) for text in _as_text(frame[word]).dropna()}.intersection(numbers):
            raise TableError(f"Column {taken!r} has the name of an indicator of column {word!r}; rename one of them.")
    return Columns(target, task, numbers, words)


def _check_roles(frame: Frame, target: str, task: str | None, categorical: Sequence[str], drop: Sequence[str]) -> None:
    """Every column that is named exists, and has one role."""
    tasks = [] if task is None else [task]
    named = {"--target": [target], "--task": tasks, "--categorical": categorical, "--drop": drop}
    for option, names in named.items():
        for name in names:
            if name not in frame.columns:
                rest = len(frame.columns) - 12
                some = ", ".join(frame.columns[:12]) + f" and {rest} more" * (rest > 0)
                raise TableError(f"There is no column {name!r} ({option}); the columns are {some}.")
    if task == target:
        raise TableError(f"Column {target!r} cannot be both the target and the task.")
    for role in ("--target", "--task"):
        for option in ("--drop", "--categorical"):
            for name in set(named[role]).intersection(named[option]):
                raise TableError(f"Column {name!r} is the {role[2:]} ({role}), not an input; take it out of {option}.")
    for name in set(categorical).intersection(drop):
        raise TableError(f"Column {name!r} is both in --categorical and in --drop.")


def _check_missing(column: Any, needed: bool, impute: bool) -> None:
    missing = int(column.isna().sum())
    what = f"is missing in {missing} of {len(column)} rows (NA, None and the like count as missing)"
    leave = f"leave it out with --drop {_quoted(column.name)}"
    if missing and needed:
        raise TableError(f"Column {column.name!r} {what}; remove those rows.")
    if missing == len(column):
        raise TableError(f"Column {column.name!r} is empty; {leave}.")
    if missing and not impute:
        advice = f"fill it, {leave}, or let --impute fill in the median or the commonest value"
        raise TableError(f"Column {column.name!r} {what}; {advice}.")


def _holds_words(column: Any, name: str) -> bool:
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        return False
    present = column.dropna()
    leave, words = f"leave it out with --drop {_quoted(name)}", f"use --categorical {_quoted(name)}"
    if _holds_dates(present):
        date = str(present.iloc[0])
        raise TableError(f"Column {name!r} holds dates, such as {date!r}; turn them into numbers, {leave}, or {words}.")
    if pd.api.types.is_timedelta64_dtype(column):
        raise TableError(f"Column {name!r} holds durations; turn them into numbers, of days for instance.")
    text = pd.to_numeric(present, errors="coerce").isna()
    if not text.any() and not isinstance(column.dtype, pd.CategoricalDtype):
        return False  # numbers that the file holds as text, or with a fixed number of decimals
    if text.any() and (~text | _matches(present, DECIMAL_COMMA)).all():
        raise TableError(
            f"Column {name!r} holds numbers with a comma, such as {present[text].iloc[0]!r}; if it is the "
            "decimal point of a text file, use --decimal , and otherwise remove it."
        )
    if text.any() and (~text).mean() >= MOSTLY_NUMBERS:
        row = int(present.index[text.to_numpy().argmax()])
        what = f"numbers and text, such as {present[row]!r} in row {row + 1}"
        raise TableError(f"Column {name!r} holds {what}; correct it, or {words}.")
    n = present.nunique()
    if n > MOST_CATEGORIES:
        raise TableError(f"Column {name!r} holds {n} different texts and looks like a name; {leave}, or {words}.")
    return True


def _holds_dates(present: Any) -> bool:
    """Whether all values are dates, or texts that look like dates."""
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(present) or isinstance(present.dtype, pd.PeriodDtype):
        return True
    return all(isinstance(value, datetime.date) for value in present) or bool(_matches(present, DATE).all())


def _matches(present: Any, pattern: re.Pattern[str]) -> Any:
    """Which values are texts of this form."""
    return present.map(lambda value: isinstance(value, str) and bool(pattern.fullmatch(value.strip()))).astype(bool)


def _quoted(name: str) -> str:
    """A column as an option of the shell takes it: options are lists separated by commas."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow([name])
    return shlex.quote(text.getvalue())


# ----------------------------------------------------------------------------------------------- encoding
def _make_encoder(columns: Columns, impute: bool) -> Any:
    """A transformer that scales numbers to [0, 1], turns words into indicators, and passes the task on."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

    parts: list[tuple[str, Any, list[str]]] = []
    if columns.numbers:
        fill = [SimpleImputer(strategy="median")] * impute
        parts.append(("numbers", make_pipeline(*fill, MinMaxScaler()), columns.numbers))
    if columns.words:
        fill = [SimpleImputer(strategy="most_frequent")] * impute
        encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False, feature_name_combiner=name_of_indicator)
        parts.append(("words", make_pipeline(*fill, encoder), columns.words))
    if columns.task is not None:
        parts.append(("task", "passthrough", [columns.task]))
    encoder = ColumnTransformer(parts, verbose_feature_names_out=False)
    return encoder.set_output(transform="pandas")


def name_of_indicator(column: str, word: Any) -> str:
    """The name of the indicator of a word; saved models refer to this function by name."""
    return f"{column}={word}"


def _as_text(column: Any) -> Any:
    """Words as text: 1, 1.0 and "1" are the same word, whatever type a file gave it."""
    return column.map({value: _text(value) for value in column.dropna().unique()}).astype(object)


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    elif isinstance(value, (float, np.floating)) and float(value).is_integer():
        value = int(value)
    elif isinstance(value, datetime.datetime) and value.time() == datetime.time():
        value = value.date()
    return str(value).strip()


def _as_numbers(column: Any, purpose: str = "") -> Any:
    """Numbers as floats, whatever type a file gave them; messages name the purpose."""
    import pandas as pd

    numbers = pd.to_numeric(column, errors="coerce").astype(float)
    wrong = (numbers.isna() & column.notna()).to_numpy()
    if wrong.any():
        row = int(wrong.argmax())
        value = column.iloc[row]
        comma = isinstance(value, str) and DECIMAL_COMMA.fullmatch(value.strip())
        advice = "; if the comma is a decimal point, use --decimal ," if comma else ""
        raise TableError(f"Column {column.name!r} must hold numbers{purpose}; row {row + 1} has {value!r}{advice}.")
    infinite = np.isinf(numbers.to_numpy())
    if infinite.any():
        raise TableError(f"Column {column.name!r} holds an infinite number in row {int(infinite.argmax()) + 1}.")
    return numbers


# ------------------------------------------------------------------------------------------ ready to learn
@dataclass(frozen=True)
class Table:
    """A table that is ready to learn from.

    Attributes
    ----------
    X : frame of shape (n_samples, n_columns)
        Numbers scaled to [0, 1], an indicator for each word, and the task column, if there is one, as text.
    y : array of shape (n_samples,)
        The classes, or the numbers to predict.
    columns : Columns
        What the columns of the file are for.
    encoder : ColumnTransformer
        Makes X of the inputs, and of those of new rows.
    regression : bool
        Whether y are numbers to predict.
    """

    X: Frame
    y: AnyArray
    columns: Columns
    encoder: Any
    regression: bool = False

    @property
    def features(self) -> list[str]:
        """Columns of X that kernels see."""
        return [name for name in self.X.columns if name != self.columns.task]

    @property
    def tasks(self) -> list[str]:
        """The task of each row; empty text where there are none."""
        return [""] * len(self.y) if self.columns.task is None else self.X[self.columns.task].tolist()


def load_table(
    file: str | Path,
    target: str,
    task: str | None = None,
    *,
    categorical: Sequence[str] = (),
    drop: Sequence[str] = (),
    impute: bool = False,
    regression: bool | None = None,
    delimiter: str | None = None,
    decimal: str = ".",
    max_rows: int = MAX_ROWS,
    sample: int | None = None,
    seed: int = 0,
) -> Table:
    """Read a file and make it ready to learn from, as the commands ``path`` and ``fit`` do.

    Parameters
    ----------
    file, delimiter, decimal, max_rows, sample, seed
        As in :func:`read_table`.
    target, task : str
        Columns that hold the classes or numbers to predict, and the task of each row (None: there are no tasks).
    categorical, drop : sequences of str
        Columns of categories that look like numbers or names, and columns to leave out.
    impute : bool
        Fill in missing values with the median or the commonest category; else they are refused.
    regression : bool, default=None
        Whether the target holds numbers to predict, or names classes. None decides: numbers with decimals are to be
        predicted, and so are whole numbers with more than 20 different values, or with more than 10 where each has
        fewer than 10 rows on average; all else are classes.

    Returns
    -------
    Table
        Inputs, classes or numbers, and how they were made.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "t.csv"
    ...     _ = file.write_text("size,colour,kind\\n1,red,a\\n2,blue,b\\n3,red,a\\n")
    ...     table = load_table(file, "kind")
    >>> table.X.columns.tolist(), table.y.tolist()
    (['size', 'colour=blue', 'colour=red'], ['a', 'b', 'a'])
    """

    frame = read_table(file, delimiter=delimiter, decimal=decimal, max_rows=max_rows, sample=sample, seed=seed)
    columns = _choose_columns(frame, target, task, categorical, drop, impute)
    regression = _measures(frame[target]) if regression is None else regression
    tasks = None if task is None else _as_text(frame[task])
    y = _numbers_of(frame[target], tasks) if regression else _classes_of(frame[target], tasks)
    encoder = _make_encoder(columns, impute)
    X = encoder.fit_transform(columns.read(frame))
    return Table(X, y.to_numpy(), columns, encoder, regression)


def _measures(target: Any) -> bool:
    """Whether a target looks like measurements: few whole numbers are the codes of classes."""
    import pandas as pd

    numeric = pd.api.types.is_numeric_dtype(target) or target.map(lambda value: isinstance(value, DecimalNumber)).all()
    if not numeric or pd.api.types.is_bool_dtype(target):
        return False
    values = target.astype(float)
    if (values % 1 != 0).any():  # infinite ones too, which are refused later
        return True
    distinct = values.nunique()
    return distinct > MAX_LABELS or (distinct > FEW_LABELS and len(values) < FEW_ROWS * distinct)


def _numbers_of(target: Any, tasks: Any) -> Any:
    """The numbers to predict, checked."""
    import pandas as pd

    column = target.astype(object) if isinstance(target.dtype, pd.CategoricalDtype) else target
    values = _as_numbers(column, " to predict (--regression)")
    groups = [("", values)] if tasks is None else values.groupby(tasks, observed=True)
    for task, own in groups:
        whose = f"Task {task!r}" if tasks is not None else f"Column {target.name!r} (--target)"
        advice = ": leave its rows out" if tasks is not None else ""
        if len(own) < 2:
            raise TableError(f"{whose} has one row only; regression needs two or more{advice}.")
        if own.nunique() < 2:
            raise TableError(f"{whose} has the same target, {own.iloc[0]:g}, in all rows, so nothing to learn{advice}.")
    return values


def _classes_of(target: Any, tasks: Any) -> Any:
    """The classes, checked; numbers with decimals are taken for their text."""
    import pandas as pd

    text = target.dtype == object or isinstance(target.dtype, pd.StringDtype)
    _check_classes(_as_text(target) if text else target, tasks)
    decimals = pd.api.types.is_float_dtype(target) and (target % 1 != 0).any()
    return _as_text(target) if text or decimals else target


def _check_classes(labels: Any, tasks: Any) -> None:
    distinct = labels.nunique()
    measured = labels.dtype.kind == "f" or len(labels) < FEW_ROWS * distinct
    if distinct > MAX_LABELS and measured:
        raise TableError(
            f"Column {labels.name!r} (--target) holds {distinct} different values in {len(labels)} rows; a target "
            "names classes, so group the values first, or let --regression predict numbers."
        )
    if distinct < 2:
        raise TableError(f"Column {labels.name!r} (--target) holds one class only, {labels.iloc[0]!r}.")
    if tasks is not None:
        classes = labels.groupby(tasks, observed=True).nunique()
        if (classes < 2).any():
            task = str(classes.idxmin())
            raise TableError(f"Task {task!r} has one class only; a task needs two or more: leave its rows out.")
