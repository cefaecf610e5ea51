"""The public files of the data sets: their content, whatever its line ends and compression, and where to find them.

``registry.txt`` lists the files. For most of them the exact bytes are known: they come from a repository at a fixed
commit, and MNIST from a mirror of the original files, with the SHA-256 of each file. For the others only the content is
checked: mfeat comes from a repository at a fixed commit whose line ends are unknown, computer from one that packs it
into an archive, and letter from its original page, where the rows may be in another order.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib
import os
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from pathlib import Path
from types import ModuleType

import numpy as np

from .._tools.typing import AnyArray

FOLDER_VARIABLE = "PARETOMKL_DATA"
URL_VARIABLE = "PARETOMKL_DATA_URL"


# ----------------------------------------------------------------------------------------------- content of a file
@dataclass(frozen=True)
class FileContent:
    """What a file holds: data (n_rows, n_columns), target (n_rows,), and further arrays of n_rows entries by name."""

    data: AnyArray
    target: AnyArray
    more: Mapping[str, AnyArray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, rows: AnyArray) -> FileContent:
        more = {name: vector[rows] for name, vector in self.more.items()}
        return FileContent(self.data[rows], self.target[rows], more)

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


# A reader does not check what it reads, since the checksum does: it may raise anything if the file is damaged.
def read_columns(
    raw: bytes, label: int = -1, delimiter: str | None = None, skip: tuple[str, ...] = (), label_type: type = str
) -> FileContent:
    """Read a table of numbers with one column of labels.

    delimiter: None means spaces and tabs; skip: how lines without data start.
    """
    rows = _split(raw, delimiter, skip)
    labels = np.array([label_type(row.pop(label).strip()) for row in rows])
    return FileContent(np.array(rows, dtype=np.float64), labels)


def read_indicators(raw: bytes, classes: Sequence[str]) -> FileContent:
    """Read a table whose last columns, one per class, hold a single 1 in each row."""
    data, indicators = np.split(np.array(_split(raw), dtype=np.float64), [-len(classes)], axis=1)
    return FileContent(data, np.array(classes)[np.nonzero(indicators == 1)[1]])


def read_letters(raw: bytes) -> FileContent:
    """Read Taskar's letters: id, letter, next_id, word_id, position, fold, then 16 x 8 pixels that are 0 or 1."""
    # 7 pieces, not 134: NumPy reads the pixels faster as one string of digits
    pieces = [line.split(None, 6) for line in _unpacked(raw).decode().splitlines()]
    digits = "".join("".join(row[6].split()) for row in pieces).encode()
    folds = np.array([int(row[5]) for row in pieces])
    pixels = np.frombuffer(digits, dtype=np.uint8).reshape(len(pieces), 128) - ord("0")
    return FileContent(pixels, np.array([row[1] for row in pieces]), {"folds": folds})


def read_fields(
    raw: bytes, features: str = "feature", labels: str = "label", label_type: type[np.generic] = np.int64
) -> FileContent:
    """Read tasks from MATLAB cells: ``features`` (each n x d) and ``labels`` (each n x 1), one pair per task."""
    blocks, columns = (list(cells.ravel()) for cells in _matlab(raw, features, labels))
    target = np.concatenate([column.ravel() for column in columns]).astype(label_type)
    tasks = np.repeat(np.arange(1, len(blocks) + 1), [len(block) for block in blocks])
    return FileContent(np.vstack(blocks).astype(np.float64), target, {"tasks": tasks})


def read_survey(raw: bytes) -> FileContent:
    """Read the computer buyers: every respondent's ratings of every product, one respondent after the other.

    ``designMarix`` (n_products, 1 + n_attributes) starts with a column of ones, which is dropped; ``likeBuy``
    (n_respondents, n_products) has the ratings; ``computerDataZ`` (n_respondents, 7) has facts about the respondents.
    """
    design, ratings, known = (part.astype(float) for part in _matlab(raw, "designMarix", "likeBuy", "computerDataZ"))
    n_respondents, n_products = ratings.shape
    more = {
        "tasks": np.repeat(np.arange(1, n_respondents + 1), n_products),
        "respondents": np.repeat(known, n_products, axis=0),
    }
    return FileContent(np.tile(design[:, 1:], (n_respondents, 1)), ratings.ravel(), more)


def read_idx(raw: bytes) -> FileContent:
    """Read an idx file of bytes: labels (n,) as a table without columns, or images (n, height, width) with target 0."""
    raw = _unpacked(raw)
    head = 4 + 4 * raw[3]  # the fourth byte is the number of dimensions
    n, *shape = np.frombuffer(raw[4:head], dtype=">u4").tolist()
    values = np.frombuffer(raw[head:], dtype=np.uint8).reshape(n, -1)
    if not shape:
        return FileContent(np.empty((n, 0)), values[:, 0].astype(np.int64))
    return FileContent(values, np.zeros(n, dtype=np.int64))


def _matlab(raw: bytes, *names: str) -> list[AnyArray]:
    """Variables of a MATLAB file."""
    from scipy.io import loadmat

    cells = loadmat(BytesIO(_unpacked(raw)), variable_names=names)
    return [cells[name] for name in names]


def _unpacked(raw: bytes) -> bytes:
    """The content of a .gz file, or the only MATLAB file in a .zip archive, or the bytes themselves.

    Some servers unpack files in transit, and a copy of a set may be packed or not.
    """
    if raw.startswith(b"\x1f\x8b"):
        return gzip.decompress(raw)
    if raw.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(BytesIO(raw)) as archive:
            (name,) = [name for name in archive.namelist() if name.endswith(".mat")]
            return archive.read(name)
    return raw


def _split(raw: bytes, delimiter: str | None = None, skip: tuple[str, ...] = ()) -> list[list[str]]:
    """Split lines into columns; drop quotation marks, which one copy has around each line."""
    lines = _unpacked(raw).decode("latin-1").replace('"', "").splitlines()
    return [line.split(delimiter) for line in lines if line.strip() and not line.startswith(skip)]


# --------------------------------------------------------------------------------------------- the known files
@dataclass(frozen=True)
class DataFile:
    """One public file.

    path: its place in the data folder; url: where to download it; read: turns its bytes into content; checksum: of that
    content, so that any copy of it is fine; any_order: whether the checksum ignores the order of the rows; sha256: of
    the bytes at the url (``None`` if unknown).
    """

    path: str
    url: str
    read: Callable[[bytes], FileContent]
    sha256: str | None
    checksum: str
    any_order: bool = False


STEEL_CLASSES = ("Pastry", "Z_Scratch", "K_Scatch", "Stains", "Dirtiness", "Bumps", "Other_Faults")
READERS: dict[str, Callable[[bytes], FileContent]] = {  # by folder
    "robot": partial(read_columns, delimiter=","),
    "segment": partial(read_columns, label=0, delimiter=",", skip=(";", "REGION-")),
    "satellite": partial(read_columns, label_type=int),
    "shuttle": partial(read_columns, label_type=int),
    "vehicle": read_columns,
    "steel": partial(read_indicators, classes=STEEL_CLASSES),
    "letter": read_letters,
    "landmine": read_fields,
    # the first line numbers the columns; no row of data starts like this
    "mfeat": partial(read_columns, delimiter=",", skip=("0,1,2,3,4,5,",), label_type=int),
    "school": partial(read_fields, features="X", labels="Y", label_type=np.float64),
    "parkinsons": partial(read_columns, label=0, skip=("subject#",), label_type=int),
    "computer": read_survey,
    "mnist": read_idx,
}


def _listed(line: str) -> DataFile:
    path, sha256, checksum, url = line.split()
    known = None if sha256 == "-" else sha256
    return DataFile(path, url, READERS[path.partition("/")[0]], known, checksum, any_order=path.startswith("letter/"))


_LINES = Path(__file__).with_name("registry.txt").read_text(encoding="utf-8").splitlines()
FILES = {file.path: file for file in (_listed(line) for line in _LINES if not line.startswith("#"))}


# -------------------------------------------------------------------------------------------- find and download
def optional(module: str, purpose: str, install: str) -> ModuleType:
    """Import an optional library, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{purpose} needs {module}; install it with: pip install {install}") from error


def given_folder(data_home: str | os.PathLike[str] | None) -> tuple[Path, str] | None:
    """The folder that the user named, and where they named it; ``None`` if there is only the cache."""
    if data_home is not None:
        return Path(data_home).expanduser(), "data_home"
    variable = os.environ.get(FOLDER_VARIABLE)
    return (Path(variable).expanduser(), FOLDER_VARIABLE) if variable else None


def cache_folder() -> Path:
    """The folder for downloads: ``paretomkl`` in the operating system's cache folder."""
    pooch = optional(
        "pooch", f"Without data_home or {FOLDER_VARIABLE} the data must be downloaded, which", "'paretomkl[data]'"
    )
    return Path(pooch.os_cache("paretomkl"))


def read_file(file: DataFile, data_home: str | os.PathLike[str] | None, download: bool) -> FileContent:
    """Read the content of a file from the named folder or from the cache, and download it first if allowed."""
    given = given_folder(data_home)
    folder = cache_folder() if given is None else given[0]
    path = folder / file.path
    if path.is_file():
        advice = "Delete it and fetch it again" if given is None else "Replace it with a good copy"
        return _checked(file, path, f"{advice}.")
    if given is not None:
        raise FileNotFoundError(
            f"{file.path} is not in {folder}, the folder given by {given[1]}; set data_home or {FOLDER_VARIABLE} to a "
            "folder that holds it, or use neither to download it."
        )
    if not download:
        raise FileNotFoundError(
            f"{file.path} is not in {folder}, the folder for downloads; use download=True, or set "
            f"{FOLDER_VARIABLE} to a folder that holds it."
        )
    _download(file, folder)
    try:
        return _checked(file, path, "It was just downloaded and has been removed; fetch it again.")
    except ValueError:
        path.unlink()
        raise


def _download(file: DataFile, folder: Path) -> None:
    """Download a file into the folder, via a temporary file, so that no partial file remains."""
    pooch = optional("pooch", "Downloading data", "'paretomkl[data]'")
    url, sha256 = file.url, file.sha256
    if base := os.environ.get(URL_VARIABLE):
        # a mirror may hold another copy of the same content, so only the checksum of the content counts
        url, sha256 = f"{base.rstrip('/')}/{file.path}", None
    try:
        pooch.create(
            path=folder, base_url="", registry={file.path: sha256}, urls={file.path: url}, retry_if_failed=1
        ).fetch(file.path)
    except Exception as error:  # network, checksum or disk: the advice is the same
        raise OSError(
            f"Could not download {file.path} from {url} ({error}). Try again, or get the file in another way and set "
            f"{FOLDER_VARIABLE} to the folder that holds {file.path}."
        ) from error


def _checked(file: DataFile, path: Path, advice: str) -> FileContent:
    try:
        content = file.read(path.read_bytes())
        found = content.checksum(file.any_order)
    except Exception as error:  # whatever a reader stumbles over
        raise ValueError(f"{path} is damaged: it cannot be read ({error}). {advice}") from error
    if found != file.checksum:
        raise ValueError(
            f"{path} is damaged: the checksum of its content is {found[:12]} instead of {file.checksum[:12]}. {advice}"
        )
    return content
