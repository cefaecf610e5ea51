"""Fit an estimator to the training set of each fold, and decide the samples held out."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

from joblib.parallel import get_active_backend
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from .._data.labels import Decided
from .._data.reading import Examples
from .._tools.running import effective_jobs
from .._tools.typing import IntArray
from ..exceptions import NewTaskWarning


@dataclass(frozen=True)
class FoldModel:
    """The model of one fold, and its decisions on the samples it has not seen.

    train, test: rows of the training data; model: a FittedTasks.
    """

    train: IntArray
    test: IntArray
    model: Any
    decided: Decided


def fit_folds(
    estimator: Any, examples: Examples, splits: Sequence[tuple[IntArray, IntArray]], n_jobs: int | None = None
) -> list[FoldModel]:
    """The models of all folds; raise if a fit fails.

    ``estimator`` has the parameters of the point, and stays as it is.
    """
    several = effective_jobs(n_jobs) > 1  # then each fold has its thread, and BLAS should not add more
    backend, _ = get_active_backend(prefer="threads")
    limited = several and getattr(backend, "supports_sharedmem", False)
    with warnings.catch_warnings(), threadpool_limits(1 if limited else None, user_api="blas"):
        warnings.simplefilter("ignore", NewTaskWarning)  # folds may leave tasks out on purpose
        return list(Parallel(n_jobs=n_jobs, prefer="threads")(_jobs(estimator, examples, splits)))


def _jobs(estimator: Any, examples: Examples, splits: Sequence[tuple[IntArray, IntArray]]) -> Iterator[Any]:
    for train, test in splits:
        learned, held_out = examples.take(train, train), examples.take(test, train)
        yield delayed(_fit_fold)(copy(estimator), learned, held_out, train, test)


def _fit_fold(estimator: Any, learned: Examples, held_out: Examples, train: IntArray, test: IntArray) -> FoldModel:
    estimator.learned(learned.training(estimator.reading, strict=False))
    model = estimator.model_.trimmed()
    return FoldModel(train, test, model, model.decided(held_out.samples))
