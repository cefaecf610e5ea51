"""The data sets, eight from the paper and others: their facts, from ``catalogue.toml``, their form, and fetch."""

from __future__ import annotations

import inspect
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import Any, Literal, NamedTuple

import numpy as np

from .._tools.typing import AnyArray
from .._tools.wording import did_you_mean
from ._files import FILES, DataFile, FileContent, cache_folder, given_folder, optional, read_file

Read = Callable[[DataFile], FileContent]
Contents = tuple[FileContent, Sequence[str]]  # with the feature names; further arrays may include "tasks"


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
    """The rows of all files, one file after the other."""
    parts = [read(file) for file in data_set.files]
    more = {name: np.concatenate([part.more[name] for part in parts]) for name in parts[0].more}
    data, target = (np.concatenate([getattr(part, name) for part in parts]) for name in ("data", "target"))
    return FileContent(data, target, more), data_set.feature_names


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
    content, names = _all_rows(data_set, read)
    return replace(content, data=content.data[:, :n_sensors]), names[:n_sensors]


def _segment(data_set: DataSet, read: Read, drop_duplicates: bool = False) -> Contents:
    content, names = _all_rows(data_set, read)
    if drop_duplicates:  # no feature vector has two labels, so it is enough to compare the features
        content = content[np.sort(np.unique(content.data, axis=0, return_index=True)[1])]
    return content, names


LETTER_PAIRS = ("ce", "gy", "mn", "ag", "ij", "ao", "ft", "hn")


def _letter(data_set: DataSet, read: Read, raw: bool = False) -> Contents:
    content, names = _all_rows(data_set, read)
    rows, more = np.arange(len(content)), {}
    if not raw:
        of_pair = [np.flatnonzero(np.isin(content.target, list(pair))) for pair in LETTER_PAIRS]
        rows = np.concatenate(of_pair)
        more["tasks"] = np.repeat(["/".join(pair) for pair in LETTER_PAIRS], [len(part) for part in of_pair])
    content = content[rows]
    more = {"groups": rows, **content.more, **more}
    return FileContent(content.data.astype(np.float64), content.target, more), names


def _mfeat(data_set: DataSet, read: Read) -> Contents:
    """Join the sources as columns: all files have the same samples in the same order."""
    parts = [read(file) for file in data_set.files]
    return FileContent(np.hstack([part.data for part in parts]), parts[0].target), data_set.feature_names


UPDRS = ("total_UPDRS", "motor_UPDRS")


def _parkinsons(data_set: DataSet, read: Read, target: str = "total_UPDRS") -> Contents:
    """The columns after the person are age, sex, test_time, motor_UPDRS, total_UPDRS and 16 voice measures."""
    if target not in UPDRS:
        raise ValueError(f"target of parkinsons must be {' or '.join(map(repr, UPDRS))}, got {target!r}.")
    content, names = _all_rows(data_set, read)
    persons, values = content.target, content.data
    score = values[:, 4] if target == "total_UPDRS" else values[:, 3]
    return FileContent(np.delete(values, [2, 3, 4], axis=1), score, {"tasks": persons, "time": values[:, 2]}), names


def _mnist(data_set: DataSet, read: Read) -> Contents:
    """Images and labels are in separate files, which alternate."""
    parts = [read(file) for file in data_set.files]
    pixels = np.concatenate([part.data for part in parts[::2]], dtype=np.float64)
    return FileContent(pixels, np.concatenate([part.target for part in parts[1::2]])), data_set.feature_names


BUILD: dict[str, Callable[..., Contents]] = {
    "robot": _robot,
    "segment": _segment,
    "letter": _letter,
    "mfeat": _mfeat,
    "parkinsons": _parkinsons,
    "mnist": _mnist,
}
MFEAT_SOURCES = {"fou": 76, "fac": 216, "kar": 64, "pix": 240, "zer": 47, "mor": 6}
"""Columns of each source, in the order of the archive."""
NUMBERED = {  # names for features that have none in the files
    "satellite": [f"pixel {pixel} band {band}" for pixel in range(1, 10) for band in range(1, 5)],
    "letter": [f"p_{row}_{column}" for row in range(16) for column in range(8)],
    "landmine": [f"feature {i}" for i in range(1, 10)],
    "mfeat": [f"{source}_{i}" for source, width in MFEAT_SOURCES.items() for i in range(width)],
    "mnist": [f"p_{row}_{column}" for row in range(28) for column in range(28)],
}


def _data_set(name: str, facts: dict[str, Any]) -> DataSet:
    classes, features = facts.get("class_names"), facts.get("feature_names") or NUMBERED[name]
    parts = MFEAT_SOURCES if name == "mfeat" else ()
    folder = "robot/sensor_readings_4" if name == "robot" else f"{name}/"
    return DataSet(
        DatasetInfo(name, *(facts[field] for field in DatasetInfo._fields[1:])),
        [file for path, file in FILES.items() if path.startswith(folder)],
        features,
        facts["notes"],
        facts["source"],
        facts["reference"],
        class_names=None if classes is None else {int(code): label for code, label in classes.items()},
        build=BUILD.get(name, _all_rows),
        sources={part: [k for k, own in enumerate(features) if own.startswith(part)] for part in parts} or None,
    )


_FACTS = tomllib.loads(Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8"))
DATA_SETS = {name: _data_set(name, facts) for name, facts in _FACTS.items()}


def list_datasets() -> list[DatasetInfo]:
    """List the names and sizes of the data sets that `fetch` knows, in their default form.

    Returns
    -------
    list of DatasetInfo
        Named tuples ``(name, title, n_samples, n_features, n_classes, n_tasks)``. If a set has no tasks, ``n_tasks``
        counts the pairs of its classes. ``n_classes`` is 0 for regression; the attribute ``kind`` is
        ``"classification"`` or ``"regression"``.

    Examples
    --------
    >>> [info.name for info in list_datasets() if info.kind == "classification"]
    ['robot', 'segment', 'satellite', 'shuttle', 'vehicle', 'steel', 'letter', 'landmine', 'mfeat', 'mnist']
    >>> [(info.name, info.n_samples, info.n_tasks) for info in list_datasets() if info.kind == "regression"]
    [('school', 15362, 139), ('parkinsons', 5875, 42), ('computer', 3800, 190)]
    """
    return [data_set.info for data_set in DATA_SETS.values()]


def data_found(data_home: str | os.PathLike[str] | None = None) -> dict[str, Path | None]:
    """Find the data sets that you can read without a download.

    Parameters
    ----------
    data_home : path-like, default=None
        As for `fetch`.

    Returns
    -------
    dict of str to Path or None
        The folder that holds all files of the set's default form, or None if a file is missing. No file is opened.

    Examples
    --------
    >>> from paretomkl.datasets import data_found
    >>> data_found("no such folder")["vehicle"] is None
    True
    """
    given = given_folder(data_home)
    try:
        folder = cache_folder() if given is None else given[0]
    except ImportError:  # without pooch nothing can have been downloaded
        return dict.fromkeys(DATA_SETS)
    return {
        name: folder if all((folder / file.path).is_file() for file in data_set.files) else None
        for name, data_set in DATA_SETS.items()
    }


def fetch(
    name: str,
    *,
    data_home: str | os.PathLike[str] | None = None,
    return_X_y: bool = False,
    as_frame: bool = False,
    download: bool = True,
    **options: Any,
) -> Any:
    """Load a data set of the paper, or one of several others, with the unscaled values of its public files.

    The function looks for the files in ``data_home``; without it, in the folder that the environment variable
    ``PARETOMKL_DATA`` names; without that, in the cache of the operating system. It downloads missing files into the
    cache (with pooch, the extra ``paretomkl[data]``): most from public copies at a fixed commit, letter from its own
    page, mnist from a mirror. It only reads from a folder that you name and never writes to it; the layout is
    ``robot/sensor_readings_4.data`` and so on, one folder per set.

    A checksum covers the content of every file, not its bytes. Line ends and compression do not matter, so you can use
    another copy of the same data. The environment variable ``PARETOMKL_DATA_URL`` replaces the public hosts with a
    mirror that has the same layout.

    Parameters
    ----------
    name : str
        ``"robot"``, ``"segment"``, ``"satellite"``, ``"shuttle"``, ``"vehicle"``, ``"steel"``, ``"letter"``,
        ``"landmine"``, ``"mfeat"`` or ``"mnist"`` for classification; ``"school"``, ``"parkinsons"`` or ``"computer"``
        for regression; see `list_datasets`.
    data_home : path-like, default=None
        Folder that holds the files.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch; for a set with tasks, whose targets mean nothing without them,
        ``(data, target, tasks)``.
    as_frame : bool, default=False
        Make ``data`` a pandas DataFrame, ``target`` and ``tasks`` Series, and add ``frame``, which holds all of them.
    download : bool, default=True
        Whether to download files that are not in the cache; with False a missing file is an error.
    **options
        Options of single sets: ``n_sensors`` of robot (4, 2 or 24), ``drop_duplicates`` of segment (False or True),
        ``raw`` of letter (True: all 26 letters, no tasks), ``target`` of parkinsons (``"total_UPDRS"`` or
        ``"motor_UPDRS"``; the other one is not a feature).

    Returns
    -------
    Bunch
        data : array of shape (n_samples, n_features)
            Feature values as in the files.
        target : array of shape (n_samples,)
            Class names, or class numbers if the files use numbers (satellite, shuttle, landmine, mfeat, mnist); for
            regression the numbers to predict.
        tasks : array of shape (n_samples,) or None
            The task of each row: pairs of letters; the landmine fields 1 to 29; the schools, persons or respondents of
            the regression sets, numbered from 1. None for the other sets, whose tasks are the pairs of classes.
        kind : str
            ``"classification"`` or ``"regression"``.
        feature_names, target_names, task_names : lists
            One name per column of data; one per class, in sorted order (None for regression); one per task, in the
            order of the rows (None without tasks).
        sources : dict of str to list of int, or None
            The columns of each source, if the features come from several sources (mfeat); None for the others.
        DESCR : str
            A description of the set, with its source and reference.

        Letter also has ``groups`` (equal for the same image) and ``folds``. Parkinsons has ``time`` (n_samples,), the
        days since a person's first visit, for `paretomkl.model_selection.split_by_time`. Computer has ``respondents``
        (n_samples, 7), what is known about the respondent of each row.

    Notes
    -----
    Reading and checking takes 10 to 100 ms, for shuttle, letter and mfeat 0.3 to 0.5 s, for mnist 1 s. Letter as eight
    tasks is an array of 47 MB, mnist one of 439 MB.

    Examples
    --------
    >>> from paretomkl.datasets import fetch
    >>> landmine = fetch("landmine")  # doctest: +SKIP
    >>> clf = ParetoMKLClassifier().fit(landmine.data, landmine.target, tasks=landmine.tasks)  # doctest: +SKIP
    """
    data_set = _known(name)
    known = list(inspect.signature(data_set.build).parameters)[2:]  # after the data set and the reader
    unknown = [option for option in options if option not in known]
    if unknown:
        takes = f"its options are {', '.join(known)}" if known else "it has no options"
        raise TypeError(f"The data set {name!r} has no option {unknown[0]!r}; {takes}.")
    read = partial(read_file, data_home=data_home, download=download)
    bunch = _bunch(data_set, *data_set.build(data_set, read, **options))
    if as_frame:
        _make_frames(bunch)
    if return_X_y:
        return (bunch.data, bunch.target) if bunch.tasks is None else (bunch.data, bunch.target, bunch.tasks)
    return bunch


def _known(name: str) -> DataSet:
    if isinstance(name, str) and name in DATA_SETS:
        return DATA_SETS[name]
    meant = did_you_mean(str(name), DATA_SETS)
    raise ValueError(f"There is no data set {name!r}{meant} The data sets are {', '.join(DATA_SETS)}.")


def _bunch(data_set: DataSet, content: FileContent, feature_names: Sequence[str]) -> Any:
    from sklearn.utils import Bunch  # imported here because scikit-learn takes a second

    names, of_target = _described_target(data_set, content.target)
    more = {"tasks": None} | dict(content.more)
    task_names = None if more["tasks"] is None else list(dict.fromkeys(more["tasks"].tolist()))
    of_tasks = "" if task_names is None else f", {len(task_names)} tasks"
    facts = f"{len(content)} samples, {content.data.shape[1]} features{of_tasks}"
    facts += f". {of_target}"
    title = data_set.info.title
    paragraphs = (data_set.notes, facts, f"Reference: {data_set.reference}", f"Source: {data_set.source}")
    described = [f"{title}\n{'=' * len(title)}", *(fill(paragraph, 100) for paragraph in paragraphs)]
    return Bunch(
        data=content.data,
        target=content.target,
        feature_names=list(feature_names),
        target_names=names,
        task_names=task_names,
        kind=data_set.info.kind,
        sources=None if data_set.sources is None else {name: list(own) for name, own in data_set.sources.items()},
        DESCR="\n\n".join(described) + "\n",
        **more,
    )


def _described_target(data_set: DataSet, target: AnyArray) -> tuple[list[str] | None, str]:
    """The class names (None for regression), and a sentence for DESCR."""
    if data_set.info.kind == "regression":
        span = f"from {target.min():.4g} to {target.max():.4g}"
        return None, f"Target {span}, mean {target.mean():.4g}, standard deviation {target.std():.4g}."
    classes, counts = np.unique(target, return_counts=True)
    names = [str(label) if data_set.class_names is None else data_set.class_names[label] for label in classes.tolist()]
    sizes = ", ".join(f"{label} {count}" for label, count in zip(names, counts.tolist(), strict=True))
    return names, f"Samples per class: {sizes}."


def _make_frames(bunch: Any) -> None:
    pandas = optional("pandas", "as_frame=True", "pandas")
    bunch.data = pandas.DataFrame(bunch.data, columns=bunch.feature_names)
    bunch.target = pandas.Series(bunch.target, name="target")
    parts = [bunch.data, bunch.target]
    if bunch.tasks is not None:
        bunch.tasks = pandas.Series(bunch.tasks, name="task")
        parts.insert(1, bunch.tasks)
    bunch.frame = pandas.concat(parts, axis=1)
