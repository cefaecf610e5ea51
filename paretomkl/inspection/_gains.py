"""What each held-out sample adds to the score of a search."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._data.labels import Decided, TaskSet
from .._data.reading import Examples
from .._data.tasks import codes_of, missing_labels, same_labels
from .._data.together import Together
from .._tools.typing import AnyArray, Array, IntArray


@dataclass(frozen=True)
class Gains:
    """The default score of held-out samples as a sum over the samples and their tasks, all arrays (n_samples, n_slots).

    Parameters
    ----------
    of : callable
        Maps decisions to gains: whether a class is right, or minus the squared error of a number in units of the
        standard deviation of its task.
    weight : array
        The score is Σ weight · gain, plus a constant.
    alone : array
        The same for the score of each task alone.
    task : array of int
        The task of each gain, −1 if it is unknown.
    """

    of: Callable[[Decided], Array]
    weight: Array
    alone: Array
    task: IntArray

    @classmethod
    def make(cls, tasks: Any, held_out: Examples, known: Sequence[Hashable]) -> Gains:
        """The gains of held-out samples; ``known`` are the tasks, empty if there is only one."""
        truth = _truth(tasks, held_out.y)
        task = _tasks_of(held_out, truth.shape, known)
        given = held_out.sample_weight
        own = np.ones(len(truth)) if given is None else np.asarray(given, dtype=float)
        there = ~missing_labels(truth)
        weight = there * own[:, None]
        if not tasks.chosen_by_loss:
            # folds that leave tasks out: a mean over the tasks that are there, whatever was seen in training
            codes = np.unique(task, return_inverse=True)[1].reshape(task.shape)
            totals = np.bincount(codes.ravel(), weight.ravel())
            alone = np.divide(weight, totals[codes], out=np.zeros_like(weight), where=totals[codes] > 0)
            return cls(_right(tasks, truth, there), alone / max(1, int((totals > 0).sum())), alone, task)
        level, deviation = _levels(tasks, held_out, task)
        wanted = np.where(there, truth, 0.0).astype(float)
        varied = weight * ((wanted - level) / deviation) ** 2
        total, everyone = varied.sum(), weight.sum()
        codes = np.unique(task, return_inverse=True)[1].reshape(task.shape)
        of_task = np.bincount(codes.ravel(), varied.ravel())[codes]
        alone = np.divide(weight, of_task, out=np.zeros_like(weight), where=of_task > 0)
        return cls(_errors(tasks, wanted, deviation, there), weight / (total or everyone or 1.0), alone, task)

    def by_task(self, gains: Array, n_tasks: int) -> Array:
        """The score of each task alone, (n_tasks,), up to a constant; NaN for a task without samples."""
        mine = (self.task >= 0) & (self.alone > 0)
        scores = np.bincount(self.task[mine], (self.alone * gains)[mine], minlength=n_tasks)
        return np.where(np.bincount(self.task[mine], minlength=n_tasks) > 0, scores, np.nan)


def _truth(tasks: Any, y: Any) -> AnyArray:
    """y as a matrix (n_samples, n_slots)."""
    if isinstance(tasks, Together) and tasks.kind == "matrix":
        from .._data.tasks import labels_by_task

        return labels_by_task(y, list(tasks.sources))
    of: Any = tasks.whole if isinstance(tasks, Together) else tasks
    truth: AnyArray = of.truth(y)
    return truth if truth.ndim == 2 else truth[:, None]


def _tasks_of(held_out: Examples, shape: tuple[int, ...], known: Sequence[Hashable]) -> IntArray:
    sources = held_out.samples.sources
    if shape[1] > 1 or sources is None:
        return np.broadcast_to(np.arange(shape[1]), shape)
    return codes_of(sources, list(known))[:, None]


def _levels(tasks: Any, held_out: Examples, task: IntArray) -> tuple[Array, Array]:
    """Mean and standard deviation of the training targets of the task of each entry."""
    sources = held_out.samples.sources
    if sources is not None:
        task = codes_of(sources, list(tasks.distinct_sources))[:, None]
    return tasks.level[task], tasks.deviation[task]


def _right(tasks: TaskSet, truth: AnyArray, there: AnyArray) -> Callable[[Decided], Array]:
    def gain(decided: Decided) -> Array:
        predicted = tasks.predictions(decided).reshape(truth.shape)
        columns = [same_labels(truth[:, k], predicted[:, k]) for k in range(truth.shape[1])]
        return np.where(there, np.stack(columns, axis=1), 0.0)

    return gain


def _errors(tasks: TaskSet, wanted: Array, deviation: Array, there: AnyArray) -> Callable[[Decided], Array]:
    def gain(decided: Decided) -> Array:
        errors = (tasks.predictions(decided).reshape(wanted.shape) - wanted) / deviation
        return np.where(there, -(errors**2), 0.0)

    return gain
