"""The public files of the data sets, as listed in ``registry.txt``, and how they are read.

Each is downloaded from a copy whose bytes are known: a repository at one commit, with the SHA-256 of the file. Only
Letter comes from its original page, whose bytes are not known here: its content decides, in any order of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from ._files import DataFile
from ._tables import Table, read_columns, read_fields, read_indicators, read_letters

STEEL_CLASSES = ("Pastry", "Z_Scratch", "K_Scatch", "Stains", "Dirtiness", "Bumps", "Other_Faults")
READERS: dict[str, Callable[[bytes], Table]] = {
    "robot/sensor_readings_4.data": partial(read_columns, n_columns=5, delimiter=","),
    "robot/sensor_readings_24.data": partial(read_columns, n_columns=25, delimiter=","),
    "segment": partial(read_columns, n_columns=20, label=0, delimiter=",", skip=(";", "REGION-")),
    "satellite": partial(read_columns, n_columns=37, label_type=int),
    "shuttle": partial(read_columns, n_columns=10, label_type=int),
    "vehicle": partial(read_columns, n_columns=19),
    "steel": partial(read_indicators, n_columns=34, classes=STEEL_CLASSES),
    "letter": read_letters,
    "landmine": read_fields,
}
"""By path, or by folder where all its files are alike."""


def _listed(line: str) -> DataFile:
    path, n_rows, sha256, checksum, url = line.split()
    read = READERS.get(path) or READERS[path.partition("/")[0]]
    bytes_known = sha256 != "-"
    return DataFile(path, url, read, int(n_rows), sha256 if bytes_known else None, checksum, any_order=not bytes_known)


_LINES = Path(__file__).with_name("registry.txt").read_text(encoding="utf-8").splitlines()
FILES = {file.path: file for file in (_listed(line) for line in _LINES if not line.startswith("#"))}


def files_of(name: str) -> list[DataFile]:
    """The files of a data set, in the order of their rows."""
    return [file for path, file in FILES.items() if path.startswith(f"{name}/")]
