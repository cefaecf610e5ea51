"""Tasks that share more than a kernel: combine their samples into one problem, and split its functions by task."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._tools.shares import CALLED, Share
from .._tools.typing import AnyArray, Array, IntArray
from .._tools.wording import literal
from ..gram._coupled import UNKNOWN
from ..kernels._evaluation import side_by_side
from .labels import Decided, Decisions, Samples, TaskSet, mean_score
from .tasks import codes_of, labels_by_task, missing_labels, rows_by_label, unique_labels


@dataclass(frozen=True)
class Together(TaskSet):
    """Tasks whose samples form one problem.

    whole: what the decisions of that problem mean, whose samples carry the code of their task; level, deviation
    (n_tasks + 1,): mean and standard deviation of the training targets of each task, or zero and one for classes; the
    last entries stand for tasks not seen in training, whose code is −1.
    """

    whole: Any  # a Labelling or Targets
    level: Array
    deviation: Array

    @property
    def chosen_by_loss(self) -> bool:
        return self.whole.chosen_by_loss

    @property
    def classes(self) -> Any:
        """All labels; one array per column of a matrix y."""
        known = self.whole.classes
        return [known] * self.n_tasks if self.kind == "matrix" else known

    @property
    def units(self) -> Array:
        return self.whole.units

    def coded_samples(self, samples: Samples) -> Samples:
        """The samples as the problem needs them; for a matrix y, all samples repeated for each task."""
        if self.kind == "matrix":
            codes = np.repeat(np.arange(self.n_tasks, dtype=float), len(samples))
            data = samples.data[np.tile(np.arange(len(samples)), self.n_tasks)]
        else:
            codes, data = self.codes(samples), samples.data
        return Samples(side_by_side([data, codes[:, None]]))

    def codes(self, samples: Samples) -> Array:
        """The number of the task of each sample, −1 for a task not seen in training."""
        if samples.sources is None:
            raise ValueError(
                f"The model was fitted with tasks ({literal(self.sources[:5])} …); pass the task of each row as tasks=."
            )
        return codes_of(samples.sources, self.sources).astype(float)

    def unknown(self, samples: Samples) -> IntArray:
        """Rows of tasks not seen in training, which only the common part predicts."""
        return np.flatnonzero(self.codes(samples) == UNKNOWN) if self.kind != "matrix" else np.empty(0, dtype=np.int64)

    def shaped(self, decided: Decided) -> Decided:
        """Decisions for samples from decisions for coded samples; for a matrix y, with one column per task."""
        return Decided.of(decided.values.reshape(self.n_tasks, -1).T) if self.kind == "matrix" else decided

    def predictions(self, decisions: Decisions) -> AnyArray:
        if self.kind != "matrix":
            return self.whole.predictions(decisions)
        columns = Decided.of(decisions).values.T
        return np.stack([self.whole.predictions(column[:, None]) for column in columns], axis=1)

    def scores(self, decisions: Decisions) -> Array:
        """What ``decision_function`` returns."""
        return Decided.of(decisions).values if self.kind == "matrix" else self.whole.scores(decisions)

    def by_task(self, samples: Samples, y: Any, predicted: AnyArray) -> list[tuple[AnyArray, AnyArray, IntArray]]:
        """Truth, prediction and rows of each task that has a sample with a known y."""
        if self.kind == "matrix":
            truth = labels_by_task(y, list(self.sources))
            columns = [np.flatnonzero(~missing_labels(truth[:, t])) for t in range(self.n_tasks)]
            return [(truth[rows, t], predicted[rows, t], rows) for t, rows in enumerate(columns) if len(rows)]
        truth = self.whole.truth(y)
        assert samples.sources is not None
        return [(truth[rows], predicted[rows], rows) for rows in rows_by_label(samples.sources).values()]

    def score(self, decisions: Decisions, samples: Samples, y: Any, weight: Array | None = None) -> float:
        """Mean accuracy, or R², over the tasks."""
        own = np.ones(len(samples)) if weight is None else np.asarray(weight, dtype=float)
        parts = self.by_task(samples, y, self.predictions(decisions))
        return mean_score(
            (self.whole.agreement(truth, predicted, own[rows]) for truth, predicted, rows in parts),
            "y has no entry with positive weight",
        )

    def loss(self, samples: Samples, y: Any, weight: Array | None = None) -> Callable[[Decided], float]:
        if self.kind != "matrix":
            codes = self.codes(samples).astype(np.int64)
            return self.whole.loss_by_source(samples, y, weight, self.level[codes], self.deviation[codes])
        own = np.ones(len(samples)) if weight is None else np.asarray(weight, dtype=float)
        truth = labels_by_task(y, list(self.sources))
        rows, column = long_form(truth)
        given = samples[rows], truth[rows, column], own[rows], self.level[column], self.deviation[column]
        of_entries = self.whole.loss_by_source(*given)
        return lambda decided: of_entries(Decided.of(decided.values[rows, column][:, None]))


def sharing_in_words(
    scores: Mapping[Share, tuple[float, float]], best: Share, common: float | None, size: Callable[[float], str]
) -> str:
    """Describe the result of a search over ways to share, from the mean score and standard error of each.

    ``size`` formats a difference of scores without its sign.
    """
    found = {
        "nothing": "The tasks share nothing",
        "kernel": "The tasks share their kernel, not their functions",
        "function": "The tasks share part of their function",
        "everything": "One function serves all tasks",
    }[best]
    if best == "function" and common is not None:
        found += f": {common:.0%} of it is common"
    others = []
    for way, (mean, _) in scores.items():
        if way == best:
            continue
        lost = scores[best][0] - mean
        difference = f"{'lose' if lost >= 0 else 'gain'} {size(lost)}"
        others.append(f"{CALLED[way]} would {'do as well' if size(lost) == size(0.0) else difference}")
    return found + (f"; {', '.join(others)}" if others else "") + "."


def long_form(labels: AnyArray) -> tuple[IntArray, IntArray]:
    """Row and column of every known entry of a matrix, column by column."""
    column, row = np.nonzero(~missing_labels(labels).T)
    return row, column


def numbered(sources: AnyArray) -> tuple[list[Hashable], Array]:
    """The distinct tasks, and the number of the task of each sample."""
    known = unique_labels(sources)
    return known, codes_of(sources, known).astype(float)
