"""Read tables from files and pipes into a frame, with clear errors if one cannot be read."""

from __future__ import annotations

import codecs
import gzip
import io
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .._tools.wording import did_you_mean, nearest

if TYPE_CHECKING:  # pandas is imported where it is used
    from pandas import DataFrame as Frame

MAX_ROWS = 20_000  # a kernel compares all pairs of rows
CHUNK = 200_000  # rows read at a time for sampling
DELIMITERS = {",": "a comma", ";": "';'", "\t": "a tab", "|": "'|'", " ": "a space"}
TEXT_FILES = (".csv", ".tsv", ".txt", ".data", ".dat")
NUMPY_FILES = (".npy", ".npz")
FILES = (*TEXT_FILES, ".parquet", ".arrow", ".feather", ".ipc", *NUMPY_FILES)
BEGINNINGS = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"\x93NUMPY": ".npy", b"PK\x03\x04": ".npz"}
STANDARD_INPUT = ("-", "/dev/stdin")
ENCODINGS = (
    "utf-8",
    "utf-16",
    "latin-1",
    "cp1252",
    "cp1251",
    "cp437",
    "mac-roman",
    "shift-jis",
    "gb18030",
    "big5",
    "ascii",
)
KEY = "\0key"  # column of random numbers that decide which rows are drawn


class TableError(ValueError):
    """A problem with a file or its columns that the user can fix; the message says how."""


@dataclass(frozen=True)
class TableFile:
    """A table before it is read: its name in messages, its type (as a suffix), and its path or bytes."""

    name: str
    kind: str
    place: Path | bytes

    @classmethod
    def at(cls, file: str | Path) -> TableFile:
        """A file or a pipe, which has no suffix and is recognised by its first bytes."""
        path = Path(file)
        if str(file) in STANDARD_INPUT:
            return cls.of_bytes(sys.stdin.buffer.read(), "standard input")
        if not path.exists():
            near = nearest(path.name, [one.name for one in path.parent.iterdir()]) if path.parent.is_dir() else None
            meant = f"; did you mean {str(path.with_name(near))!r}?" if near else "."
            raise TableError(f"There is no file {str(file)!r}{meant}")
        if path.is_dir():
            raise TableError(f"{str(file)!r} is a folder; name a file in it.")
        if not path.is_file():
            return cls.of_bytes(path.read_bytes(), str(path))
        if path.stat().st_size == 0:
            raise TableError(f"{path.name} is empty.")
        kind = Path(path.name.lower().removesuffix(".gz")).suffix
        if kind not in FILES:
            raise TableError(f"{path.name}: unsupported file type; supported are {', '.join(FILES)}.")
        return cls(path.name, kind, path)

    @classmethod
    def of_bytes(cls, content: bytes, name: str) -> TableFile:
        if not content:
            raise TableError(f"{name[0].upper()}{name[1:]} is empty; the pipe delivered no table.")
        if content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
        kind = next((kind for beginning, kind in BEGINNINGS.items() if content.startswith(beginning)), ".csv")
        return cls(name, kind, content)

    def open(self) -> Path | io.BytesIO:
        """What parsers take, from the start."""
        return self.place if isinstance(self.place, Path) else io.BytesIO(self.place)


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
    encoding = encoding or "utf-8"
    try:
        codecs.lookup(encoding)
    except LookupError:
        meant = did_you_mean(encoding, ENCODINGS, "; common ones are utf-8, utf-16, latin-1 and cp1252.")
        raise TableError(f"There is no encoding {encoding!r} (--encoding){meant}") from None
    source = TableFile.at(file)
    form = {"sep": delimiter or ("\t" if source.kind == ".tsv" else ","), "decimal": decimal, "encoding": encoding}
    try:
        if source.kind in TEXT_FILES:
            chunks = _text_chunks(source, form, CHUNK if sample else max_rows + 1)
        else:
            chunks = iter([_from_numpy(source) if source.kind in NUMPY_FILES else _from_arrow(source)])
        frame = _drawn(chunks, sample, seed) if sample else next(chunks)
    except TableError:
        raise
    except UnicodeError:
        raise TableError(
            f"{source.name} is not encoded in {encoding.upper()}; pass its encoding, such as --encoding latin-1, "
            "--encoding cp1252 or --encoding utf-16, or save it as UTF-8."
        ) from None
    except ImportError as error:
        raise TableError(f"Reading {source.name} needs {error.name}: pip install 'paretomkl[cli]'.") from error
    except Exception as error:  # every parser has its own error types
        words = str(error).strip() or type(error).__name__
        raise TableError(f"{source.name} cannot be read: {words.splitlines()[0].rstrip('.')}.") from error
    if len(frame) == 0:
        raise TableError(f"{source.name} has no rows.")
    if len(frame) > max_rows and not sample:
        raise TableError(
            f"{source.name} has more than {max_rows:,} rows, and kernels compare all pairs of them; draw a random "
            "sample with --sample 5000, or raise --max-rows."
        )
    frame.columns = [str(name).strip() for name in frame.columns]
    _refuse_doubles(source, list(frame.columns))
    return frame.reset_index(drop=True)


# --------------------------------------------------------------------------------------------------- text
def _text_chunks(source: TableFile, form: dict[str, str], n_rows: int) -> Iterator[Frame]:
    """The rows of a text file, n_rows at a time."""
    import pandas as pd

    _check_header(source, form)
    # low_memory could guess a different type in the middle of a column
    with pd.read_csv(source.open(), chunksize=n_rows, skipinitialspace=True, low_memory=False, **form) as reader:
        for chunk in reader:
            if not isinstance(chunk.index, pd.RangeIndex):  # pandas treats extra values as row labels
                raise TableError(
                    f"The rows of {source.name} have more values than its first line has names; name all columns."
                )
            yield chunk


def _check_header(source: TableFile, form: dict[str, str]) -> None:
    """Raise if the header is empty, a comment, or split by another delimiter but not by this one."""
    names = _first_line(source, form)
    if any("\0" in name for name in names):  # two bytes per character
        raise UnicodeError
    if len(names) == 1:
        if not names[0] or names[0].startswith("#"):
            what = "a comment" if names[0] else "an empty line"
            raise TableError(f"{source.name} begins with {what}; its first line must name the columns.")
        n, best = max((len(_first_line(source, form | {"sep": other})), other) for other in DELIMITERS)
        if n > 1:
            read_with = DELIMITERS.get(form["sep"], repr(form["sep"]))
            raise TableError(
                f"{source.name} has a single column when read with {read_with} between columns, but {n} with "
                f"{DELIMITERS[best]}; use --delimiter {best!r}."
            )
    _refuse_doubles(source, names)  # pandas would rename the second


def _first_line(source: TableFile, form: dict[str, str]) -> list[str]:
    import pandas as pd

    alone = {"header": None, "nrows": 1, "dtype": str, "skip_blank_lines": False, "keep_default_na": False}
    try:
        return [name.strip() for name in pd.read_csv(source.open(), **alone, **form).iloc[0]]
    except pd.errors.EmptyDataError:
        return [""]


def _refuse_doubles(source: TableFile, names: Sequence[str]) -> None:
    name, n = Counter(names).most_common(1)[0]
    if n > 1:
        raise TableError(f"{source.name} has two columns called {name!r}; rename one.")


# ------------------------------------------------------------------------------------------ other formats
def _from_arrow(source: TableFile) -> Frame:
    import pyarrow.ipc
    import pyarrow.parquet

    if source.kind == ".parquet":
        table = pyarrow.parquet.ParquetFile(source.open()).read()
    else:
        content = source.place if isinstance(source.place, bytes) else source.place.read_bytes()
        try:
            table = pyarrow.ipc.open_file(content).read_all()
        except pyarrow.ArrowInvalid:
            table = pyarrow.ipc.open_stream(content).read_all()
    frame = table.to_pandas(ignore_metadata=True)
    # a named index that pandas stored is a column too; drop an unnamed one
    return frame.drop(columns=[name for name in frame.columns if str(name).startswith("__index_level_")])


def _from_numpy(source: TableFile) -> Frame:
    import numpy as np
    import pandas as pd

    loaded = np.load(source.open(), allow_pickle=False)
    parts = []
    for name, array in {"": loaded}.items() if isinstance(loaded, np.ndarray) else loaded.items():
        if array.ndim > 2 or (array.ndim < 2 and not name and not array.dtype.names):
            raise TableError(f"{source.name} has an array of shape {array.shape}; a table has two dimensions.")
        part = pd.DataFrame(array)
        named = array.dtype.names or [name] if array.ndim < 2 else [f"{name}{k}" for k in part.columns]
        parts.append(part.set_axis(named, axis=1))
    lengths = {len(part) for part in parts}
    if len(lengths) > 1:
        raise TableError(f"The arrays of {source.name} have different lengths: {sorted(lengths)}.")
    return pd.concat(parts, axis=1)


def _drawn(chunks: Iterable[Frame], n: int, seed: int) -> Frame:
    """n random rows in the order of the file: those with the n smallest random keys."""
    import numpy as np
    import pandas as pd

    rng, kept = np.random.default_rng(seed), pd.DataFrame()
    for chunk in chunks:
        chunk[KEY] = rng.random(len(chunk))
        kept = pd.concat([kept, chunk]).nsmallest(n, KEY)
    return kept.sort_index().drop(columns=KEY)
