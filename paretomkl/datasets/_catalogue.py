"""The data sets, eight from the paper and others: their facts, from ``catalogue.toml``, and their form."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from ._files import DataFile
from ._registry import FILES, MFEAT_SOURCES, files_of
from ._tables import Table, stack

Read = Callable[[DataFile], Table]
Contents = tuple[Table, Sequence[str]]  # the table, whose further arrays may include "tasks", and the feature names


class DatasetInfo(NamedTuple):
    """A summary of a data set; ``n_tasks`` is the number of pairs of classes if the set has no tasks.

    ``n_classes`` is 0 for regression; ``kind`` says so in words.
    """

    name: str
    title: str
    n_samples: int
    n_features: int
    n_classes: int
    n_tasks: int

    @property
    def kind(self) -> Literal["classification", "regression"]:
        """Whether the target is for classification or regression."""
        return "classification" if self.n_classes else "regression"


def _all_rows(data_set: DataSet, read: Read) -> Contents:
    return stack([read(file) for file in data_set.files]), data_set.feature_names


@dataclass(frozen=True)
class DataSet:
    """A data set of the catalogue.

    files, feature_names: of its default form, without options; notes, source, reference: for DESCR; class_names: names
    of classes that the files code as numbers; build(data_set, read, **options): makes the contents from the files;
    sources: the columns of each named source, if the features come from several.
    """

    info: DatasetInfo
    files: Sequence[DataFile]
    feature_names: Sequence[str]
    notes: str
    source: str
    reference: str
    class_names: Mapping[int, str] | None = None
    build: Callable[..., Contents] = _all_rows
    sources: Mapping[str, Sequence[int]] | None = None


def _robot(data_set: DataSet, read: Read, n_sensors: int = 4) -> Contents:
    if n_sensors == 24:
        return read(FILES["robot/sensor_readings_24.data"]), [f"US{i}" for i in range(1, 25)]
    if n_sensors not in (2, 4):
        raise ValueError(f"n_sensors of robot must be 2, 4 or 24, got {n_sensors!r}.")
    # the archive's file with two distances has the first two columns of the file with four
    table, names = _all_rows(data_set, read)
    return replace(table, data=table.data[:, :n_sensors]), names[:n_sensors]


def _segment(data_set: DataSet, read: Read, drop_duplicates: bool = False) -> Contents:
    table, names = _all_rows(data_set, read)
    if drop_duplicates:  # no feature vector has two labels, so it is enough to compare the features
        table = table[np.sort(np.unique(table.data, axis=0, return_index=True)[1])]
    return table, names


LETTER_PAIRS = ("ce", "gy", "mn", "ag", "ij", "ao", "ft", "hn")


def _letter(data_set: DataSet, read: Read, raw: bool = False) -> Contents:
    table, names = _all_rows(data_set, read)
    rows, more = np.arange(len(table)), {}
    if not raw:
        of_pair = [np.flatnonzero(np.isin(table.target, list(pair))) for pair in LETTER_PAIRS]
        rows = np.concatenate(of_pair)
        more["tasks"] = np.repeat(["/".join(pair) for pair in LETTER_PAIRS], [len(part) for part in of_pair])
    table = table[rows]
    return Table(table.data.astype(np.float64), table.target, {"groups": rows, **table.more, **more}), names


def _mfeat(data_set: DataSet, read: Read) -> Contents:
    """Join the sources as columns: all files have the same samples in the same order."""
    tables = [read(file) for file in data_set.files]
    return Table(np.hstack([table.data for table in tables]), tables[0].target), data_set.feature_names


UPDRS = ("total_UPDRS", "motor_UPDRS")


def _parkinsons(data_set: DataSet, read: Read, target: str = "total_UPDRS") -> Contents:
    """The columns after the person are age, sex, test_time, motor_UPDRS, total_UPDRS and 16 voice measures."""
    if target not in UPDRS:
        raise ValueError(f"target of parkinsons must be {' or '.join(map(repr, UPDRS))}, got {target!r}.")
    table, names = _all_rows(data_set, read)
    persons, values = table.target, table.data
    score = values[:, 4] if target == "total_UPDRS" else values[:, 3]
    return Table(np.delete(values, [2, 3, 4], axis=1), score, {"tasks": persons, "time": values[:, 2]}), names


def _mnist(data_set: DataSet, read: Read) -> Contents:
    """Images and labels are in separate files, which alternate."""
    tables = [read(file) for file in data_set.files]
    images, labels = tables[::2], tables[1::2]
    pixels = np.concatenate([table.data for table in images], dtype=np.float64)
    return Table(pixels, np.concatenate([table.target for table in labels])), data_set.feature_names


def _side_by_side(widths: Mapping[str, int]) -> dict[str, list[int]]:
    """The columns of each source, in consecutive blocks."""
    ends = np.cumsum(list(widths.values())).tolist()
    return {name: list(range(end - width, end)) for (name, width), end in zip(widths.items(), ends, strict=True)}


BUILD = {
    "robot": _robot,
    "segment": _segment,
    "letter": _letter,
    "mfeat": _mfeat,
    "parkinsons": _parkinsons,
    "mnist": _mnist,
}
SCHOOL_COLUMNS = {  # number of columns of each feature: first of the pupil, then of the school
    "year": 3,
    "percent_free_meals": 1,
    "percent_band_1": 1,
    "gender": 2,
    "band": 3,
    "ethnic_group": 11,
    "school_gender": 3,
    "school_denomination": 3,
    "constant": 1,
}
SOURCES = {"mfeat": _side_by_side(MFEAT_SOURCES)}
NUMBERED = {  # names for features that have none in the files
    "satellite": [f"pixel {pixel} band {band}" for pixel in range(1, 10) for band in range(1, 5)],
    "letter": [f"p_{row}_{column}" for row in range(16) for column in range(8)],
    "landmine": [f"feature {i}" for i in range(1, 10)],
    "mfeat": [f"{source}_{i}" for source, width in MFEAT_SOURCES.items() for i in range(width)],
    "school": [
        name if width == 1 else f"{name}_{i}" for name, width in SCHOOL_COLUMNS.items() for i in range(1, width + 1)
    ],
    "mnist": [f"p_{row}_{column}" for row in range(28) for column in range(28)],
}


def _data_set(name: str, facts: dict[str, Any]) -> DataSet:
    classes = facts.get("class_names")
    return DataSet(
        DatasetInfo(name, *(facts[field] for field in DatasetInfo._fields[1:])),
        files=[FILES["robot/sensor_readings_4.data"]] if name == "robot" else files_of(name),
        feature_names=facts.get("feature_names") or NUMBERED[name],
        notes=facts["notes"],
        source=facts["source"],
        reference=facts["reference"],
        class_names=None if classes is None else {int(code): label for code, label in classes.items()},
        build=BUILD.get(name, _all_rows),
        sources=SOURCES.get(name),
    )


_FACTS = tomllib.loads(Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8"))
DATA_SETS = {name: _data_set(name, facts) for name, facts in _FACTS.items()}
