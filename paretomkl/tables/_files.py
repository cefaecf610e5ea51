"""Read tables from files and pipes into a frame, with clear errors if one cannot be read."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

from .._tools.wording import nearest

Frame: TypeAlias = Any  # a pandas frame; pandas is imported where it is used

MAX_ROWS = 20_000  # a kernel compares all pairs of rows
CHUNK = 200_000  # rows read at a time for sampling
LONGEST_HEADER = 2**28  # characters; a longer first line is not one of a table
DELIMITERS = {",": "a comma", ";": "';'", "\t": "a tab", "|": "'|'", " ": "a space"}
TEXT_FILES = (".csv", ".tsv", ".txt", ".data", ".dat")
ARROW_FILES = (".arrow", ".feather", ".ipc")
NUMPY_FILES = (".npy", ".npz")
BEGINNINGS = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"\x93NUMPY": ".npy", b"PK\x03\x04": ".npz"}
STANDARD_INPUT = ("-", "/dev/stdin")
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
ENCODINGS = (
    *("utf-8", "utf-16", "latin-1", "iso-8859-1", "iso-8859-15", "cp1252", "windows-1252", "cp1251", "cp437"),
    *("mac-roman", "shift-jis", "gb18030", "big5", "euc-kr", "koi8-r", "ascii"),
)


class TableError(ValueError):
    """A problem with a file or its columns that the user can fix; the message says how."""


@dataclass(frozen=True)
class TableFile:
    """A table before it is read: its name in messages, its type (as a suffix), and where its bytes are."""

    name: str
    kind: str
    place: Path | io.BytesIO

    @classmethod
    def at(cls, file: str | Path) -> TableFile:
        """A file or a pipe, which has no suffix and is recognised by its first bytes."""
        path = Path(file)
        if str(file) in STANDARD_INPUT:
            return cls.of_bytes(sys.stdin.buffer.read(), "standard input")
        if not path.exists():
            folder = path.parent
            near = nearest(path.name, [one.name for one in folder.iterdir()]) if folder.is_dir() else None
            meant = "" if near is None else f"; did you mean {str(folder / near)!r}?"
            raise TableError(f"There is no file {str(file)!r}{meant or '.'}")
        if path.is_dir():
            raise TableError(f"{str(file)!r} is a folder; name a file in it.")
        if not path.is_file():
            return cls.of_bytes(path.read_bytes(), str(path))
        if path.stat().st_size == 0:
            raise TableError(f"{path.name} is empty.")
        suffixes = [suffix.lower() for suffix in path.suffixes]
        kind = suffixes[-2] if suffixes[-1:] == [".gz"] and len(suffixes) > 1 else (suffixes or [""])[-1]
        if kind not in (*TEXT_FILES, ".parquet", *ARROW_FILES, *NUMPY_FILES):
            known = ", ".join((*TEXT_FILES, ".parquet", *ARROW_FILES, *NUMPY_FILES))
            raise TableError(f"{path.name}: unsupported file type; supported are {known}.")
        return cls(path.name, kind, path)

    @classmethod
    def of_bytes(cls, content: bytes, name: str) -> TableFile:
        if not content:
            raise TableError(f"{name[0].upper()}{name[1:]} is empty; the pipe delivered no table.")
        if content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
        kind = next((kind for beginning, kind in BEGINNINGS.items() if content.startswith(beginning)), ".csv")
        return cls(name, kind, io.BytesIO(content))

    def open(self) -> IO[bytes]:
        """The bytes from the start, decompressed."""
        if isinstance(self.place, io.BytesIO):
            return io.BytesIO(self.place.getbuffer())
        packed = self.place.suffix.lower() == ".gz"
        return gzip.open(self.place, "rb") if packed else open(self.place, "rb")  # type: ignore[return-value]


def check_encoding(encoding: str | None) -> str:
    """Check that Python knows the encoding; None is UTF-8."""
    try:
        codecs.lookup(encoding or "utf-8")
    except LookupError:
        near = nearest(encoding or "", ENCODINGS)
        meant = f"did you mean {near!r}?" if near else "common ones are utf-8, utf-16, latin-1 and cp1252."
        raise TableError(f"There is no encoding {encoding!r} (--encoding); {meant}") from None
    return encoding or "utf-8"


def read_table(
    file: str | Path,
    *,
    delimiter: str | None = None,
    decimal: str = ".",
    encoding: str | None = None,
    max_rows: int = MAX_ROWS,
    sample: int | None = None,
    seed: int = 0,
) -> Frame:
    """Read a CSV, Parquet, Arrow or NumPy file into a frame whose column names are text.

    Parameters
    ----------
    file : path
        ``.csv``, ``.tsv``, ``.txt``, ``.data``, ``.dat`` (also ``.gz``); ``.parquet``; ``.arrow``, ``.feather``,
        ``.ipc``; ``.npy`` or ``.npz`` (two-dimensional, or structured with names). ``"-"`` is standard input.
    delimiter : str, default=None
        Separator of the columns in a text file; None is a tab for ``.tsv`` and a comma otherwise.
    decimal : str, default="."
        Decimal point of the numbers in a text file; some countries use a comma.
    encoding : str, default=None
        Encoding of a text file, such as ``"latin-1"``; None is UTF-8.
    max_rows : int
        More rows are an error, unless ``sample`` is given.
    sample : int, default=None
        Number of rows to draw at random.
    seed : int
        Seed for the sample.

    Returns
    -------
    pandas.DataFrame
        The columns as in the file.

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
    if decimal not in (".", ","):
        raise TableError(f"--decimal must be a point or a comma, got {decimal!r}.")
    if delimiter is not None and len(delimiter) != 1:
        raise TableError(f"--delimiter must be a single character, got {delimiter!r}.")
    encoding = check_encoding(encoding)
    source = TableFile.at(file)
    form = TextForm(delimiter or ("\t" if source.kind == ".tsv" else ","), decimal, encoding)
    try:
        chunks = _chunks(source, form, CHUNK if sample else max_rows + 1)
        frame = _draw(chunks, sample, seed) if sample else _take(chunks, max_rows)
    except TableError:
        raise
    except UnicodeError:
        raise TableError(_about_encoding(source, encoding)) from None
    except ImportError as error:
        raise TableError(f"Reading {source.name} needs {error.name}: pip install 'paretomkl[cli]'.") from error
    except Exception as error:  # every parser has its own error types
        words = str(error).strip() or type(error).__name__
        raise TableError(f"{source.name} cannot be read: {words.splitlines()[0].rstrip('.')}.") from error
    if frame is None or len(frame) == 0:
        raise TableError(f"{source.name} has no rows.")
    if len(frame) > max_rows and not sample:
        raise TableError(
            f"{source.name} has more than {max_rows:,} rows, and kernels compare all pairs of them; draw a random "
            "sample with --sample 5000, or raise --max-rows."
        )
    frame.columns = [str(name).strip() for name in frame.columns]
    _refuse_doubles(source, list(frame.columns))
    return frame.reset_index(drop=True)


def _about_encoding(source: TableFile, encoding: str) -> str:
    with source.open() as file:
        beginning = file.read(2)
    likely = ["utf-16"] if beginning in UTF_16 else [one for one in ("latin-1", "cp1252") if one != encoding]
    name = "UTF-8" if codecs.lookup(encoding).name == "utf-8" else encoding
    tried = " or ".join(f"--encoding {one}" for one in likely)
    return f"{source.name} is not encoded in {name}; pass its encoding, such as {tried}, or save it as UTF-8."


@dataclass(frozen=True)
class TextForm:
    """How to read a text file."""

    delimiter: str
    decimal: str
    encoding: str


def _chunks(source: TableFile, form: TextForm, n_rows: int) -> Iterator[Frame]:
    """The rows of a file, about n_rows at a time."""
    if source.kind in TEXT_FILES:
        yield from _text_chunks(source, form, n_rows)
    elif source.kind in NUMPY_FILES:
        yield _from_numpy(source)
    else:
        for batch in _arrow_batches(source, n_rows):
            frame = batch.to_pandas(ignore_metadata=True)
            # a named index that pandas stored is a column too; drop an unnamed one
            yield frame.drop(columns=[name for name in frame.columns if str(name).startswith("__index_level_")])


def _text_chunks(source: TableFile, form: TextForm, n_rows: int) -> Iterator[Frame]:
    import pandas as pd

    _check_header(source, form)
    # low_memory could guess a different type in the middle of a column
    options = {"sep": form.delimiter, "decimal": form.decimal, "encoding": form.encoding}
    with pd.read_csv(source.place, chunksize=n_rows, skipinitialspace=True, low_memory=False, **options) as reader:
        for chunk in reader:
            if not isinstance(chunk.index, pd.RangeIndex):  # pandas treats extra values as row labels
                raise TableError(
                    f"The rows of {source.name} have more values than its first line has names; name all columns."
                )
            yield chunk


def _arrow_batches(source: TableFile, n_rows: int) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.ipc
    import pyarrow.parquet

    if source.kind == ".parquet":
        yield from pyarrow.parquet.ParquetFile(source.place).iter_batches(batch_size=n_rows)
        return
    piped = isinstance(source.place, io.BytesIO)
    with pa.BufferReader(source.open().read()) if piped else pa.memory_map(str(source.place)) as stream:
        try:
            table = pyarrow.ipc.open_file(stream).read_all()
        except pa.ArrowInvalid:
            stream.seek(0)
            table = pyarrow.ipc.open_stream(stream).read_all()
        for first in range(0, max(table.num_rows, 1), n_rows):
            yield table.slice(first, n_rows)


def _check_header(source: TableFile, form: TextForm) -> None:
    """Raise if the header is empty, a comment, or split by another delimiter but not by this one."""
    encoding = "utf-8-sig" if codecs.lookup(form.encoding).name == "utf-8" else form.encoding
    with io.TextIOWrapper(source.open(), encoding=encoding, errors="replace", newline="") as file:
        header = file.readline(LONGEST_HEADER)
    if not header.strip():
        raise TableError(f"{source.name} begins with an empty line; its first line must name the columns.")
    if "\0" in header:  # two bytes per character
        raise TableError(_about_encoding(source, form.encoding))
    delimiter = form.delimiter
    split = {other: _split_header(header.strip("\r\n"), other) for other in (*DELIMITERS, delimiter)}
    names = [name.strip() for name in split[delimiter]]
    best = max(DELIMITERS, key=lambda other: len(split[other]))
    if len(names) == 1 and header.startswith("#"):
        raise TableError(f"{source.name} begins with a comment; its first line must name the columns.")
    if len(names) == 1 and len(split[best]) > 1:
        raise TableError(
            f"{source.name} has a single column when read with {DELIMITERS.get(delimiter, repr(delimiter))} between "
            f"columns, but {len(split[best])} with {DELIMITERS[best]}; use --delimiter {best!r}."
        )
    _refuse_doubles(source, names)


def _split_header(header: str, delimiter: str) -> list[str]:
    limit = csv.field_size_limit(len(header) + 1)  # with another delimiter, thousands of names are one long field
    try:
        return next(csv.reader([header], delimiter=delimiter))
    finally:
        csv.field_size_limit(limit)


def _refuse_doubles(source: TableFile, names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise TableError(f"{source.name} has two columns called {name!r}; rename one.")
        seen.add(name)


def _from_numpy(source: TableFile) -> Frame:
    import numpy as np
    import pandas as pd

    loaded = np.load(source.place, allow_pickle=False)
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
            raise TableError(f"{source.name} has an array of shape {array.shape}; a table has two dimensions.")
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise TableError(f"The arrays of {source.name} have different lengths: {sorted(lengths)}.")
    return pd.DataFrame(columns)


def _take(chunks: Iterator[Frame], max_rows: int) -> Frame:
    """All rows, or a few more than max_rows; chunks may be smaller than requested."""
    import pandas as pd

    taken: list[Frame] = []
    for chunk in chunks:
        taken.append(chunk)
        if sum(map(len, taken)) > max_rows:
            break
    return pd.concat(taken, ignore_index=True) if taken else None


def _draw(chunks: Iterator[Frame], n: int, seed: int) -> Frame:
    """n random rows in the order of the file: those with the n smallest random keys."""
    import numpy as np
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
