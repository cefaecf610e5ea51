"""What the decisions of tasks mean for regression and outlier detection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._tools.typing import AnyArray, Array, IntArray
from .labels import Decided, Decisions, Kind, Samples, TaskSet, mean_score
from .tasks import Task, labels_by_task


@dataclass(frozen=True)
class Targets(TaskSet):
    """Regression tasks: y = centre_t + spread_t · f_t(x).

    Arrays of shape (n_tasks,); level and deviation are mean and standard deviation of the training targets.
    """

    centre: Array
    spread: Array
    level: Array
    deviation: Array

    @classmethod
    def of(
        cls, tasks: Sequence[Task], kind: Kind, centre: Array, spread: Array, level: Array, deviation: Array
    ) -> Targets:
        names, sources = [task.name for task in tasks], [task.source for task in tasks]
        return cls(kind, names, sources, centre, spread, level, deviation)

    @property
    def chosen_by_loss(self) -> bool:
        return True

    @property
    def units(self) -> Array:
        return self.spread

    def predictions(self, decisions: Decisions) -> Array:
        """Predicted numbers, (n_samples,), or (n_samples, n_tasks) for a matrix."""
        decided = Decided.of(decisions)
        values = self.centre[decided.tasks] + self.spread[decided.tasks] * decided.values
        return values if self.kind == "matrix" else np.nansum(values, axis=1)  # each sample has a single task

    def truth(self, y: Any) -> Array:
        """Numbers to compare predictions with, (n_samples,), or (n_samples, n_tasks) in the order of the tasks."""
        if self.kind == "matrix":
            return np.asarray(labels_by_task(y, list(self.sources)), dtype=float)
        truth = np.asarray(y, dtype=float)
        return truth[:, 0] if truth.ndim == 2 and truth.shape[1] == 1 else truth

    def by_task(self, decisions: Decisions, y: Any) -> list[tuple[Array, Array, IntArray]]:
        """Truth, prediction and rows of every task, for its samples with a known y."""
        decided = Decided.of(decisions)
        truth, predicted = self.truth(y), self.predictions(decided)
        if truth.shape != predicted.shape:
            raise ValueError(f"y must have the shape {predicted.shape} of the predictions, got shape {truth.shape}.")
        truth, predicted = (
            np.broadcast_to(v if v.ndim == 2 else v[:, None], decided.values.shape) for v in (truth, predicted)
        )
        places = decided.rows_by_task(~np.isnan(truth), self.n_tasks)
        return [(truth[rows, slots], predicted[rows, slots], rows) for rows, slots in places]

    def score(self, decisions: Decisions, samples: Samples, y: Any, weight: Array | None = None) -> float:
        """Mean over the tasks of R² = 1 − Σ (y − ŷ)² / Σ (y − ȳ)².

        The mean skips tasks with fewer than two samples of positive weight, for which R² is undefined.
        """
        own = np.ones(len(samples)) if weight is None else np.asarray(weight, dtype=float)
        parts = self.by_task(decisions, y)
        return mean_score(
            (self.agreement(truth, predicted, own[rows]) for truth, predicted, rows in parts),
            "R² needs a task with two samples of positive weight",
        )

    def agreement(self, truth: AnyArray, predicted: Array, weight: Array) -> float:
        """R²."""
        return r_squared(truth.astype(float), predicted, weight) if (weight > 0).sum() >= 2 else np.nan

    def loss(self, samples: Samples, y: Any, weight: Array | None = None) -> Callable[[Decided], float]:
        """The share of the variance within tasks that is left unexplained, see :func:`unexplained`."""
        truth = self.truth(y)
        truth = truth if truth.ndim == 2 else truth[:, None]
        known = ~np.isnan(truth)
        own = np.ones(len(truth)) if weight is None else np.asarray(weight, dtype=float)
        wanted = np.where(known, truth, 0.0)

        def loss(decided: Decided) -> float:
            of_slots = self.centre, self.spread, self.level, self.deviation
            centre, spread, level, deviation = (of[decided.tasks] for of in of_slots)
            counts = (known & ~np.isnan(decided.values)) * own[:, None]
            errors = np.where(counts > 0, spread * np.nan_to_num(decided.values) - (wanted - centre), 0.0)
            return unexplained(errors / deviation, (wanted - level) / deviation, counts)

        return loss

    def loss_by_source(
        self, samples: Samples, y: Any, weight: Array | None, level: Array, deviation: Array
    ) -> Callable[[Decided], float]:
        truth, own = self.truth(y), np.ones(len(samples)) if weight is None else np.asarray(weight, dtype=float)
        varied = (truth - level) / deviation
        return lambda decided: unexplained((truth - self.predictions(decided)) / deviation, varied, own)

    def alone(self, tasks: Sequence[Task], mine: list[int]) -> Targets:
        return Targets.of(tasks, "single", self.centre[mine], self.spread[mine], self.level[mine], self.deviation[mine])

    def joined(self, tasks: Sequence[Task], others: Sequence[Targets]) -> Targets:
        parts = [(one.centre, one.spread, one.level, one.deviation) for one in (self, *others)]
        return Targets.of(tasks, "tasks", *(np.concatenate(columns) for columns in zip(*parts, strict=True)))


@dataclass(frozen=True)
class Regions(TaskSet):
    """Tasks that separate typical samples (+1) from outliers (−1): x is typical if f_t(x) ≥ threshold_t, (n_tasks,)."""

    threshold: Array

    new_tasks: ClassVar[str] = "For samples of new tasks, fit a detector without tasks."

    @classmethod
    def of(cls, tasks: Sequence[Task], kind: Kind) -> Regions:
        return cls(kind, [task.name for task in tasks], [task.source for task in tasks], np.zeros(len(tasks)))

    def scores(self, decisions: Decisions) -> Array:
        """f_t(x) − threshold_t of the task of each sample, (n_samples,)."""
        decided = Decided.of(decisions)
        return np.nansum(decided.values - self.threshold[decided.tasks], axis=1)

    def predictions(self, decisions: Decisions) -> AnyArray:
        """+1 or −1 for each sample."""
        return np.where(self.scores(decisions) >= 0, 1, -1)


def unexplained(errors: Array, varied: Array, weight: Array) -> float:
    """Σ w e² / Σ w d² over the samples of all tasks; NaN if all weights are zero.

    Errors e and differences d from the mean of the task's training targets are in units of their standard deviation, so
    that tasks count alike whatever their units; and summed before the division, so that a task with few samples, or
    with hardly any variance among them, cannot outweigh the others as it does in a mean of R².
    """
    total = float(np.sum(weight))
    if total <= 0:
        return np.nan
    spread = float(np.sum(weight * varied**2))
    # samples that all lie at the mean have no variance to explain; the variance of the training samples stands in
    return float(np.sum(weight * errors**2)) / (spread if spread > 0 else total)


def levels(groups: Sequence[tuple[Array, Array]]) -> Array:
    """The mean of each group of (values, weights)."""
    return np.array([centre_and_spread(values, weight)[0] for values, weight in groups])


def deviations(groups: Sequence[tuple[Array, Array]]) -> Array:
    """The standard deviation of each group of (values, weights); constant groups get the mean of the others."""
    found = np.array([centre_and_spread(v, w)[1] for v, w in groups])
    constant = found <= np.array([1e-12 * np.abs(v).max() for v, _ in groups])
    if constant.any():
        everyone = np.concatenate([v for v, _ in groups])
        found[constant] = found[~constant].mean() if not constant.all() else everyone.std() or 1.0
    return found


def centre_and_spread(values: Array, weight: Array) -> tuple[float, float]:
    """Mean and standard deviation."""
    (small,), power = _in_range(values)
    mean = np.average(small, weights=weight)
    spread = np.sqrt(np.average((small - mean) ** 2, weights=weight))
    return float(np.ldexp(mean, power)), float(np.ldexp(spread, power))


def _in_range(values: Array, *others: Array) -> tuple[list[Array], int]:
    """Arrays divided by a power of two, which rounds nothing, and its exponent: squares of 1e200 would overflow."""
    power = int(np.frexp(np.abs(values).max())[1])
    return [np.ldexp(v, -power) for v in (values, *others)], power


def r_squared(truth: Array, predicted: Array, weight: Array) -> float:
    """1 − Σ w (y − ŷ)² / Σ w (y − ȳ)²; for constant y, 1 if predicted exactly and 0 otherwise, as in scikit-learn."""
    (truth, predicted), _ = _in_range(truth, predicted)
    missed = weight @ (truth - predicted) ** 2
    varied = weight @ (truth - np.average(truth, weights=weight)) ** 2
    if varied == 0:
        return 1.0 if missed == 0 else 0.0
    return float(1 - missed / varied)
