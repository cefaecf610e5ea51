"""How far samples are from everything a model has seen, in its learned kernel."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from .._data.labels import Samples
from .._data.ranges import MOST_ROWS
from .._tools.typing import AnyArray, Array, IntArray
from .._tools.wording import counted
from ..exceptions import UnlikeTrainingWarning
from ..kernels._fitted import draw
from .models import BATCH_BYTES, SeparateModel, SharedModel, TaskModel

MOST_DRAWN = 256  # support vectors whose distances from each other are the measure of all others
FAR = 2.0  # novelty above which predictions are guesses
USUAL = 0.99  # share of them that are nearer to another one than one unit


def novelty(model: Any, samples: Samples) -> Array:
    """The distance of each sample from the nearest support vector, in units of the usual one, (n_samples,)."""
    if isinstance(model, SharedModel):
        found = novelty(model.whole, model.tasks.coded_samples(samples))
        return found.reshape(-1, len(samples)).min(axis=0)  # a matrix y repeats the samples for each task
    if isinstance(model, SeparateModel):
        values = np.full(len(samples), np.inf)
        place = {source: k for k, source in enumerate(model.tasks.distinct_sources)}
        for rows, tasks in model.tasks.groups(samples):
            for k in dict.fromkeys(place[model.tasks.sources[t]] for t in tasks.tolist()):
                values[rows] = np.minimum(values[rows], novelty(model.models[k], Samples(samples.data[rows])))
        return values
    _check(model)
    return nearest(model, samples.data) / (_unit(model) or 1.0)


def _unit(model: TaskModel) -> float:
    """The usual distance of a support vector from the nearest other one, and at least half of a typical distance.

    Where values repeat, as in categories, most samples have others beside them, and a rare one would seem far.
    """
    vectors: Any = model.support.vectors
    drawn = vectors[draw(vectors.shape[0], MOST_DRAWN)]
    apart = np.concatenate(list(_distances(model, drawn, drawn)))
    apart = apart[~np.eye(len(apart), dtype=bool)].reshape(len(apart), -1)
    return max(float(np.quantile(apart.min(axis=1), USUAL)), float(np.median(apart)) / 2) if apart.size else 0.0


def warn_if_novel(values: Array, stacklevel: int) -> None:
    """Warn of samples far from all training samples, once for all of them."""
    rows = np.flatnonzero(values > FAR)
    if len(rows):
        warnings.warn(UnlikeTrainingWarning(in_words(values, rows), rows[:MOST_ROWS].tolist()), stacklevel=stacklevel)


def in_words(values: Array, rows: IntArray, first: int = 0) -> str:
    """How far the given rows are, in a sentence; ``first`` is the number of the first row."""
    k = int(rows[values[rows].argmax()])
    are = "is" if len(rows) == 1 else "are"
    return (
        f"{counted(len(rows), 'row')} {are} far from all training samples in the learned kernel, such as row "
        f"{k + first}, whose novelty is {values[k]:.3g}. Predictions there are guesses."
    )


def nearest(model: TaskModel, data: AnyArray) -> Array:
    """The distance of each sample from the nearest support vector in the learned kernel, (n_samples,)."""
    found = [apart.min(axis=1, initial=np.inf) for apart in _distances(model, data, model.support.vectors)]
    return np.concatenate([np.empty(0), *found])


def _distances(model: TaskModel, data: AnyArray, vectors: Any) -> Iterator[Array]:
    """Distances in the learned kernel, (n_samples, n_vectors), for batches of samples."""
    bank, theta = model.bank, model.theta
    right, squares = bank.side(vectors), theta @ bank.diagonals(vectors)
    step = max(1, int(BATCH_BYTES // (8 * max(1, len(squares)) * max(1, bank.n_bases))))
    for first in range(0, data.shape[0], step):
        part = data[first : first + step]
        apart = (theta @ bank.diagonals(part))[:, None] + squares - 2 * bank.cross(bank.side(part), right, theta)
        yield np.sqrt(np.maximum(apart, 0.0))


def _check(model: Any) -> None:
    """Raise unless the model has one kernel, with a value k(x, x) of every sample."""
    known = isinstance(model, TaskModel) and model.theta.ndim == 1 and model.support.vectors is not None
    if known:
        one: Any = model.bank.base if model.bank.coupled else model.bank
        known = all(kernel.measures_itself for kernel in one.kernels)
    if not known:
        raise AttributeError("There is no novelty: the model has precomputed kernels, or a kernel for each task.")
