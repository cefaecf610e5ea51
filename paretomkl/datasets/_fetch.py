"""The function fetch, and the list of data sets."""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np

from .._tools.typing import AnyArray
from ._catalogue import DATA_SETS, DataSet, DatasetInfo
from ._files import cache_folder, given_folder, optional, read_file
from ._tables import Table


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
    close = get_close_matches(str(name).lower(), DATA_SETS, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    raise ValueError(f"There is no data set {name!r}{hint} The data sets are {', '.join(DATA_SETS)}.")


def _bunch(data_set: DataSet, table: Table, feature_names: Sequence[str]) -> Any:
    from sklearn.utils import Bunch  # imported here because scikit-learn takes a second

    names, of_target = _described_target(data_set, table.target)
    more = {"tasks": None} | dict(table.more)
    task_names = None if more["tasks"] is None else list(dict.fromkeys(more["tasks"].tolist()))
    of_tasks = "" if task_names is None else f", {len(task_names)} tasks"
    facts = f"{len(table)} samples, {table.data.shape[1]} features{of_tasks}"
    facts += f". {of_target}"
    title = data_set.info.title
    paragraphs = (data_set.notes, facts, f"Reference: {data_set.reference}", f"Source: {data_set.source}")
    described = [f"{title}\n{'=' * len(title)}", *(fill(paragraph, 100) for paragraph in paragraphs)]
    return Bunch(
        data=table.data,
        target=table.target,
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
