"""Which ways to share a search tries: those that its parameters, the data and the folds allow."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from .._data.reading import Examples
from .._data.tasks import as_labels, is_matrix, missing_labels
from .._data.together import numbered
from .._tools.checks import check_share
from .._tools.shares import SHARES, TOGETHER, Share
from ..exceptions import SharingWarning, TaskDataError
from ..kernels._kernels import is_precomputed
from .folds import FoldScores
from .splits import TrainTest, leave_tasks_out

if TYPE_CHECKING:
    from .search import PathSearch

AutoShare: TypeAlias = Literal["auto"]
MOST_APART, LEAST_APART = 20, 30  # tasks, and their mean rows, with which "auto" tries models that share nothing
MOST_THOROUGH = 400  # rows up to which "auto" tries every norm of the kernel weights for ways besides the kernel
MOST_TASKS = 1000  # tasks, or pairs of classes, up to which searches try every norm


def is_auto(share: Any) -> bool:
    """Whether the search finds out by itself which ways to try."""
    return isinstance(share, str) and share == "auto"


def ways_asked(search: PathSearch) -> list[Share]:
    """The ways that ``share`` names, from nothing to everything.

    "auto" names all that the other parameters leave a choice for: p, task weights and scalarizations balance tasks that
    share a kernel, own weight sets are made for the kernels as given, and kernel matrices cannot be combined.
    """
    given: Any = search.share
    if is_auto(given):
        if search.scalarization is not None or search.task_weight is not None:
            return ["kernel"]
        apart = search.weight_set is not None or is_precomputed(search.kernels)
        return [way for way in SHARES if not (apart and way in TOGETHER)]
    given = [given] if isinstance(given, str) or not np.iterable(given) else list(given)
    if not given:
        raise ValueError(
            "share is empty; pass 'auto', or at least one of 'nothing', 'kernel', 'function', 'everything'."
        )
    return sorted({check_share(way) for way in given}, key=SHARES.index)


def ways_possible(search: PathSearch, ways: Sequence[Share], examples: Examples) -> tuple[list[Share], float, int]:
    """The ways that these data allow, the mean size of a task, and the number of tasks, or pairs of classes.

    With a single task, all ways are the same. A task with a single class cannot have its own function. "auto" leaves
    out what takes long and hardly ever wins.
    """
    n_tasks, n_rows = _sizes(examples)
    if len(ways) > 1 and n_tasks < 2:
        ways = ["kernel"] if "kernel" in ways else ways[:1]
    size, n_problems, refused = 0.0, 0, dict[Share, Exception]()
    for way in ways:
        try:
            reading = search.plain_estimator(way).reading
            reading.check(examples.y)
            training = examples.training(reading)
        except ValueError as error:
            refused[way] = error
        else:
            pooled = training.together.n_tasks if training.together else 1
            size = size or float(training.task_sizes.mean()) / pooled
            n_problems = max(n_problems, len(training.task_sizes))
    ways = without(ways, refused)
    if is_auto(search.share) and n_tasks > 1:
        most, few = search.max_search_rows, n_tasks > MOST_APART or n_rows < LEAST_APART * n_tasks
        slow = {"nothing"} if few else set()
        slow |= TOGETHER if most is not None and n_rows > most else set()
        ways = [way for way in ways if way not in slow] or ways
    return ways, size, n_problems


def _sizes(examples: Examples) -> tuple[int, int]:
    """The number of tasks, and that of the rows that one problem of all tasks would have."""
    sources = examples.samples.sources
    if is_matrix(examples.y):
        known = ~missing_labels(as_labels(examples.y, "y"))
        return known.shape[1], int(known.sum())
    return 1 if sources is None else len(numbered(sources)[0]), len(examples.samples)


def without(ways: Sequence[Share], refused: Mapping[Share, Exception], stacklevel: int = 6) -> list[Share]:
    """The other ways, with a note that says why these are left out; raise the reason if no other way is left."""
    if len(refused) == len(ways):
        raise next(iter(refused.values()))
    if refused:
        names, why = " and ".join(map(repr, refused)), next(iter(refused.values()))
        message = f"The search skips share={names}: {why}"
        task = why.task if isinstance(why, TaskDataError) else None
        warnings.warn(SharingWarning(message, tuple(refused), task), stacklevel=stacklevel)
    return [way for way in ways if way not in refused]


def that_predict_new_tasks(ways: Sequence[Share], splits: Sequence[TrainTest], sources: Any) -> list[Share]:
    """The ways that can be judged on these folds: if they leave tasks out, the ways with a common function."""
    if not leave_tasks_out(splits, sources):
        return list(ways)
    why = "the folds leave tasks out, and only 'function' and 'everything' predict for tasks not seen in training."
    unable = [way for way in ways if way not in TOGETHER]
    if len(unable) == len(ways):
        raise ValueError(f"share={' and '.join(map(repr, ways))} cannot be searched: {why}")
    return without(ways, dict.fromkeys(unable, ValueError(why)))


def without_failures(
    scored: Sequence[FoldScores], ways: Sequence[Share], error_score: float | str
) -> tuple[list[FoldScores], list[Share]]:
    """The scores of the ways that learned in every fold, if others cannot because of what a fold has of a task.

    The same holds for ways that failed in every fold. Otherwise a failure concerns the fold, not the way.
    """
    refused: dict[Share, Exception] = {}
    scored = sorted(scored, key=lambda fold: fold.number)
    for way in ways:
        own = [fold for fold in scored if fold.way == way]
        errors = [fold.error for fold in own if fold.error is not None]
        decisive = [error for error in errors if isinstance(error, TaskDataError) or len(errors) == len(own)]
        if decisive:
            refused[way] = decisive[0]
    if len(refused) == len(ways):  # nothing else to take
        if isinstance(error_score, str):
            raise next(iter(refused.values()))
        return scored, list(ways)
    kept = without(ways, refused)
    return [fold for fold in scored if fold.way in kept], kept
