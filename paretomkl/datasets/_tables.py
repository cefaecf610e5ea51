"""Turns the bytes of a public data file into arrays, whatever its line ends and compression."""

from __future__ import annotations

import gzip
import hashlib
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import numpy as np

from .._tools.typing import AnyArray
from .._tools.wording import counted


@dataclass(frozen=True)
class Table:
    """What a file holds: data (n_rows, n_columns), target (n_rows,), and further arrays of n_rows entries by name."""

    data: AnyArray
    target: AnyArray
    more: Mapping[str, AnyArray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, rows: AnyArray) -> Table:
        return Table(self.data[rows], self.target[rows], {name: vector[rows] for name, vector in self.more.items()})

    def checksum(self, any_order: bool = False) -> str:
        """SHA-256 of the parsed rows, in their order or, with ``any_order``, in any order.

        Line ends, quotation marks, trailing zeros and compression do not matter; every value and label does.
        """
        data = np.ascontiguousarray(self.data, dtype=self.data.dtype.newbyteorder("<"))
        labels = zip(self.target.tolist(), *(vector.tolist() for vector in self.more.values()), strict=True)
        rows = [
            values.tobytes() + "\t".join(map(str, label)).encode() for values, label in zip(data, labels, strict=True)
        ]
        return hashlib.sha256(b"\n".join(sorted(rows) if any_order else rows)).hexdigest()


def stack(tables: Sequence[Table]) -> Table:
    """Join the rows of several tables, one after the other."""
    return Table(
        np.concatenate([table.data for table in tables]),
        np.concatenate([table.target for table in tables]),
        {name: np.concatenate([table.more[name] for table in tables]) for name in tables[0].more},
    )


def read_columns(
    raw: bytes,
    n_columns: int,
    label: int = -1,
    delimiter: str | None = None,
    skip: tuple[str, ...] = (),
    label_type: type = str,
) -> Table:
    """Read a table of numbers with one column of labels, which is one of the ``n_columns``.

    delimiter: None means spaces and tabs; skip: how lines without data start.
    """
    rows = _split(raw, n_columns, delimiter, skip)
    labels = [row.pop(label).strip() for row in rows]
    if label_type is int:
        labels = [_whole(text) for text in labels]
    return Table(_numbers(rows, n_columns - 1), np.array(labels))


def read_indicators(raw: bytes, n_columns: int, classes: Sequence[str]) -> Table:
    """Read a table whose last columns, one per class, hold a single 1 in each row."""
    values = _numbers(_split(raw, n_columns), n_columns)
    n_features = n_columns - len(classes)
    indicators = values[:, n_features:]
    wrong = np.flatnonzero(((indicators == 1).sum(axis=1) != 1) | ((indicators == 0).sum(axis=1) != len(classes) - 1))
    if len(wrong):
        raise ValueError(f"row {wrong[0] + 1} does not have exactly one of the {len(classes)} classes")
    return Table(values[:, :n_features], np.array(classes)[indicators.argmax(axis=1)])


def read_letters(raw: bytes) -> Table:
    """Read Taskar's letters: id, letter, next_id, word_id, position, fold, then 16 x 8 pixels that are 0 or 1."""
    text = _unpacked(raw).decode("latin-1")
    letters, folds, pixels = [], [], []
    for number, line in enumerate(text.splitlines(), start=1):
        # split into 7 pieces, not 134: NumPy reads the pixels faster as one string of digits
        pieces = line.split(None, 6)
        digits = "".join(pieces[6].split()) if len(pieces) == 7 else ""
        if len(digits) != 128:
            raise ValueError(f"line {number} has {len(digits)} pixels instead of 128")
        letters.append(pieces[1])
        folds.append(_whole(pieces[5]))
        pixels.append(digits)
    image = np.frombuffer("".join(pixels).encode("latin-1"), dtype=np.uint8).reshape(-1, 128) - ord("0")
    if image.max(initial=0) > 1:
        raise ValueError("a pixel is neither 0 nor 1")
    return Table(image, np.array(letters), {"folds": np.array(folds, dtype=np.int64)})


def read_fields(
    raw: bytes, features: str = "feature", labels: str = "label", label_type: type[np.generic] = np.int64
) -> Table:
    """Read tasks from MATLAB cells: ``features`` (each n x d) and ``labels`` (each n x 1), one pair per task."""
    cells = _matlab(raw, [features, labels])
    try:
        blocks, columns = list(cells[features].ravel()), list(cells[labels].ravel())
        data = np.vstack(blocks).astype(np.float64)
        target = np.concatenate([column.ravel() for column in columns]).astype(label_type)
    except ValueError as error:
        raise ValueError(f"its cells {features} and {labels} do not hold tables ({error})") from error
    sizes = [len(block) for block in blocks]
    if sizes != [column.size for column in columns]:
        raise ValueError("a task has features and labels of different lengths")
    return Table(data, target, {"tasks": np.repeat(np.arange(1, len(sizes) + 1), sizes)})


def read_survey(raw: bytes) -> Table:
    """Read the computer buyers: every respondent's ratings of every product, one respondent after the other.

    ``designMarix`` (n_products, 1 + n_attributes) starts with a column of ones, which is dropped; ``likeBuy``
    (n_respondents, n_products) has the ratings; ``computerDataZ`` (n_respondents, 7) has facts about the respondents.
    """
    cells = _matlab(raw, ["designMarix", "likeBuy", "computerDataZ"])
    design, ratings, known = (cells[name] for name in ("designMarix", "likeBuy", "computerDataZ"))
    if ratings.shape != (len(known), len(design)):
        raise ValueError(
            f"its ratings have shape {ratings.shape} for {len(known)} respondents and {len(design)} products"
        )
    n_respondents, n_products = ratings.shape
    return Table(
        np.tile(design[:, 1:].astype(np.float64), (n_respondents, 1)),
        ratings.ravel().astype(np.float64),
        {
            "tasks": np.repeat(np.arange(1, n_respondents + 1), n_products),
            "respondents": np.repeat(known.astype(np.float64), n_products, axis=0),
        },
    )


def read_idx(raw: bytes) -> Table:
    """Read an idx file of bytes: labels (n,) as a table without columns, or images (n, height, width) with target 0."""
    raw = _unpacked(raw)
    n_dims = raw[3] if raw[:3] == b"\x00\x00\x08" else 0  # after the code for unsigned bytes
    head = 4 + 4 * n_dims
    if n_dims not in (1, 3) or len(raw) < head:
        raise ValueError("it is not an idx file of labels or images")
    shape = np.frombuffer(raw[4:head], dtype=">u4").tolist()
    values = np.frombuffer(raw[head:], dtype=np.uint8)
    if values.size != np.prod(shape):
        raise ValueError(f"it has {values.size} values instead of {' x '.join(map(str, shape))}")
    n = shape[0]
    if n_dims == 1:
        return Table(np.empty((n, 0)), values.astype(np.int64))
    return Table(values.reshape(n, -1), np.zeros(n, dtype=np.int64))


def _matlab(raw: bytes, names: list[str]) -> dict[str, AnyArray]:
    """The variables of a MATLAB file, or of the only MATLAB file in a .zip archive."""
    from scipy.io import loadmat

    raw = _unpacked(raw)
    try:
        cells = loadmat(BytesIO(raw), variable_names=names)
        return {name: cells[name] for name in names}
    except Exception as error:  # the reader raises many kinds of errors for a damaged file
        raise ValueError(f"it is not a MATLAB file with {', '.join(names)} ({error})") from error


def _unpacked(raw: bytes) -> bytes:
    """The content of a .gz file, or the only MATLAB file in a .zip archive, or the bytes themselves.

    Some servers unpack files in transit, and a copy of a set may be packed or not.
    """
    try:
        if raw.startswith(b"\x1f\x8b"):
            return gzip.decompress(raw)
        if raw.startswith(b"PK\x03\x04"):
            with zipfile.ZipFile(BytesIO(raw)) as archive:
                (name,) = [name for name in archive.namelist() if name.endswith(".mat")]
                return archive.read(name)
    except (OSError, EOFError, ValueError, zlib.error, zipfile.BadZipFile) as error:
        raise ValueError(f"it cannot be unpacked ({error})") from error
    return raw


def _split(raw: bytes, n_columns: int, delimiter: str | None = None, skip: tuple[str, ...] = ()) -> list[list[str]]:
    """Split lines into columns; drop quotation marks, which one copy has around each line."""
    rows = []
    for number, line in enumerate(_unpacked(raw).decode("latin-1").replace('"', "").splitlines(), start=1):
        if not line.strip() or line.startswith(skip):
            continue
        row = line.split(delimiter)
        if len(row) != n_columns:
            raise ValueError(f"line {number} has {counted(len(row), 'column')} instead of {n_columns}")
        rows.append(row)
    return rows


def _numbers(rows: list[list[str]], n_columns: int) -> AnyArray:
    try:
        return np.array(rows, dtype=np.float64).reshape(-1, n_columns)
    except ValueError as error:
        raise ValueError(f"something in it is not a number ({error})") from error


def _whole(text: str) -> Any:
    try:
        return int(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a whole number") from error
