"""Tasks that share more than a kernel: combine their samples into one problem, and split its functions by task."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._data.labels import Decided, Samples
from .._data.tasks import (
    unique_labels,
)
from .._data.together import Together
from .._tools.typing import Array, IntArray
from .._tools.wording import counted, literal
from ..exceptions import NewTaskWarning
from .models import FittedTasks, TaskModel, as_samples


@dataclass(frozen=True)
class SharedModel(FittedTasks):
    """The functions of tasks that form one problem: ``whole`` is its model, ``tasks`` maps it back to the tasks."""

    whole: TaskModel
    tasks: Together

    def decided(self, samples: Samples) -> Decided:
        self._note_new_tasks(samples)
        return self.tasks.shaped(self.whole.decided(self.tasks.coded_samples(samples)))

    def decisions(self, samples: Any, tasks: Any = None) -> Array:
        """f(x) of the one problem for every sample, or for a matrix y of every task."""
        return self.decided(as_samples(samples, tasks)).values

    def _note_new_tasks(self, samples: Samples) -> None:
        rows = self.tasks.unknown(samples)
        if len(rows):
            assert samples.sources is not None
            new = unique_labels(samples.sources[rows])
            named = (
                f"Task {literal(new[0])} was"
                if len(new) == 1
                else f"Tasks {literal(new[:5])}{' …' * (len(new) > 5)} were"
            )
            said = f"{named} not seen in training; the common function predicts {counted(len(rows), 'row')}."
            warnings.warn(NewTaskWarning(said, new, len(rows)), stacklevel=4)

    def contributions(self, samples: Any, tasks: Any = None) -> Array:
        """What each kernel adds to each decision, (n_samples, n_columns, n_kernels)."""
        return self.parts(as_samples(samples, tasks))[0]

    def parts(self, samples: Samples) -> tuple[Array, IntArray, int]:
        """The contributions, the number of each column, and how many there are."""
        parts, *_ = self.whole.parts(self.tasks.coded_samples(samples))
        if self.tasks.kind == "matrix":
            parts = parts[:, 0].reshape(self.tasks.n_tasks, len(samples), -1).transpose(1, 0, 2)
        return parts, np.arange(parts.shape[1])[None], parts.shape[1]

    def trimmed(self) -> SharedModel:
        return replace(self, whole=self.whole.trimmed())

    @property
    def bank(self) -> Any:
        return self.whole.bank

    @property
    def theta(self) -> Array:
        return self.whole.theta

    @property
    def support(self) -> Any:
        return self.whole.support

    @property
    def dual(self) -> Any:
        return self.whole.dual

    @property
    def intercepts(self) -> Array:
        return self.whole.intercepts

    @property
    def common_share(self) -> float:
        """Share of the common part in the variance of the functions: one if the tasks share everything."""
        return self.bank.common_share(self.theta) if self.tasks.coded else 1.0


@dataclass(frozen=True)
class SeparateModel(FittedTasks):
    """Models of tasks that share nothing, in the order of ``tasks.distinct_sources``, and the tasks."""

    models: list[TaskModel]
    tasks: Any

    def decided(self, samples: Samples) -> Decided:
        """The decisions of each model for the samples of its tasks."""
        groups = self.tasks.groups(samples)
        decided = Decided.missing(groups, len(samples))
        place = {source: k for k, source in enumerate(self.tasks.distinct_sources)}
        for rows, asked in groups:
            slots: dict[int, list[int]] = {}
            for slot, t in enumerate(asked.tolist()):
                slots.setdefault(place[self.tasks.sources[t]], []).append(slot)
            for k, mine in slots.items():
                decided.values[np.ix_(rows, mine)] = self.models[k].decided(Samples(samples.data[rows])).values
        return decided

    def parts(self, samples: Samples) -> tuple[Array, IntArray, int]:
        raise AttributeError("Tasks that share nothing have separate kernels, so there are no common contributions.")

    def trimmed(self) -> SeparateModel:
        return replace(self, models=[model.trimmed() for model in self.models])

    @property
    def bank(self) -> SeparateModel:
        return self  # each task has its own bank; this class answers for all of them

    @property
    def names(self) -> list[str]:
        return self.models[0].bank.names

    @property
    def theta(self) -> Array:
        """Kernel weights, (n_tasks, n_kernels)."""
        return np.concatenate([np.tile(model.theta, (model.tasks.n_tasks, 1)) for model in self.models])

    def variance_share(self, theta: Array) -> Array:
        """Share of each kernel in the variance of the functions of each task, (n_tasks, n_kernels)."""
        shares = [model.bank.variance_share(np.tile(model.theta, (model.tasks.n_tasks, 1))) for model in self.models]
        return np.concatenate(shares)

    def by_source(self, share: Array) -> dict[str, Array]:
        return self.models[0].bank.by_source(share)

    @property
    def support(self) -> Any:
        raise AttributeError("Tasks that share nothing have separate support vectors; see model_.models.")

    dual = support

    @property
    def intercepts(self) -> Array:
        return np.concatenate([model.intercepts for model in self.models])
