"""The public files of the data sets, as listed in ``registry.txt``, and how to read them.

For most files the exact bytes are known: they come from a repository at a fixed commit, and MNIST from a mirror of the
original files, with the SHA-256 of each file. For the others only the content is checked: mfeat comes from a repository
at a fixed commit whose line ends are unknown, computer from one that packs it into an archive, and letter from its
original page, where the rows may be in another order.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from ._files import DataFile
from ._tables import Table, read_columns, read_fields, read_idx, read_indicators, read_letters, read_survey

STEEL_CLASSES = ("Pastry", "Z_Scratch", "K_Scatch", "Stains", "Dirtiness", "Bumps", "Other_Faults")
MFEAT_SOURCES = {"fou": 76, "fac": 216, "kar": 64, "pix": 240, "zer": 47, "mor": 6}
"""Columns of each source, in the order of the archive."""
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
    # the first line numbers the columns; no row of data starts like this
    **{
        f"mfeat/mfeat-{name}.csv.gz": partial(
            read_columns, n_columns=width + 1, delimiter=",", skip=("0,1,2,3,4,5,",), label_type=int
        )
        for name, width in MFEAT_SOURCES.items()
    },
    "school": partial(read_fields, features="X", labels="Y", label_type=np.float64),
    "parkinsons": partial(read_columns, n_columns=22, label=0, skip=("subject#",), label_type=int),
    "computer": read_survey,
    "mnist": read_idx,
}
"""Readers by path, or by folder if all its files have the same form."""


def _listed(line: str) -> DataFile:
    path, n_rows, sha256, checksum, url = line.split()
    read = READERS.get(path) or READERS[path.partition("/")[0]]
    known = None if sha256 == "-" else sha256
    return DataFile(path, url, read, int(n_rows), known, checksum, any_order=path.startswith("letter/"))


_LINES = Path(__file__).with_name("registry.txt").read_text(encoding="utf-8").splitlines()
FILES = {file.path: file for file in (_listed(line) for line in _LINES if not line.startswith("#"))}


def files_of(name: str) -> list[DataFile]:
    """The files of a data set, in the order of their rows."""
    return [file for path, file in FILES.items() if path.startswith(f"{name}/")]
