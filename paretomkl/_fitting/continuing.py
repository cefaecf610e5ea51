"""Continue from a fit to fewer rows: its kernels, its weights and duals, and its cuts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from zlib import crc32

import numpy as np
from scipy.sparse import issparse

from .._tools.typing import Array
from .._tools.wording import counted
from ..problem import MultiTaskProblem
from ..protocols import ExtendingMachine
from ..solution import Solution
from ..solvers._cut_pool import Pool
from ..sweep import Sweep

if TYPE_CHECKING:
    from .._data.reading import Training
    from .models import TaskModel
    from .tracing import Parts


class Continued(NamedTuple):
    """A start from an earlier fit, and how many tasks take over their duals and cuts."""

    start: Solution
    n_kept: int


@dataclass(frozen=True)
class Continuation:
    """What a fit leaves to a later one whose first rows are the same.

    n_rows, samples: the number of its samples and a digest of them; machine, share: what it learned; tasks: for each
    task by name, a digest of its rows, targets and costs; linear (n_cuts, n_tasks), slopes (n_cuts, n_tasks,
    n_kernels): cuts J_t(θ) ≥ linear − θ'slopes.

    Duals of zero for new samples are feasible, so a cut of some samples of a task holds for all of them, as long as
    their targets, their costs and the kernels stay the same.
    """

    n_rows: int
    samples: str
    machine: str
    share: str
    tasks: dict[str, str]
    linear: Array
    slopes: Array

    @classmethod
    def of(cls, training: Training, bounds: Sequence[Array], parts: Parts, point: Solution) -> Continuation:
        """What a solution leaves; ``bounds`` holds the cost of each sample of each task."""
        n_rows, (n_tasks, n_kernels) = len(training.samples), point.sweep.forms.shape
        linear, slopes = np.empty((0, n_tasks)), np.empty((0, n_tasks, n_kernels))
        if isinstance(point.state, Pool):
            linear, slopes = point.state.cuts.of_all_tasks()
        tasks = _digests_of_tasks(training, bounds, parts, n_rows)
        return cls(n_rows, _digest(training, n_rows), parts.machine.name, training.share, tasks, linear, slopes)

    def check_kind(self, training: Training, parts: Parts) -> None:
        """Raise if a fit learns something else than this one."""
        if (self.machine, self.share) != (parts.machine.name, training.share):
            raise ValueError(
                f"warm_from was fitted with machine={self.machine!r} and share={self.share!r}, but this fit has "
                f"{parts.machine.name!r} and {training.share!r}; fit without warm_from."
            )

    def check_rows(self, training: Training) -> None:
        """Raise unless the samples of this fit come first."""
        if len(training.samples) < self.n_rows or _digest(training, self.n_rows) != self.samples:
            raise ValueError(
                f"warm_from learned from {counted(self.n_rows, 'row')}: they must come first in X, unchanged and in "
                "the same order, and new rows after them. If any of them changed, fit without warm_from."
            )

    def start(
        self, model: TaskModel, training: Training, bounds: Sequence[Array], parts: Parts, problem: MultiTaskProblem
    ) -> Continued:
        """Start a fit with more rows from the model of this one.

        Tasks that are new, or whose targets or costs changed, start without duals and cuts.
        """
        machine, old = problem.machine, list(self.tasks)
        now = _digests_of_tasks(training, bounds, parts, self.n_rows)
        kept = [(t, old.index(name)) for t, (name, found) in enumerate(now.items()) if self.tasks.get(name) == found]
        if not machine.promises.extends:
            kept = []
        duals, intercepts = [np.zeros(len(task.rows)) for task in training.tasks], np.zeros(machine.n_tasks)
        linear, slopes = np.zeros((len(self.linear), machine.n_tasks)), np.zeros((len(self.slopes), *_shape(machine)))
        for t, before in kept:
            own = model.dual[[before]]
            duals[t][np.searchsorted(training.tasks[t].rows, model.support.rows[own.indices])] = own.data
            intercepts[t] = model.intercepts[before]
            linear[:, t], slopes[:, t] = self.linear[:, before], self.slopes[:, before]
        pool = Pool(machine, problem.weight_set)
        if kept and len(linear):
            pool.take_cuts(linear, slopes, [t for t, _ in kept])
        heights = np.maximum(pool.cuts.heights(model.theta).max(axis=0), 0.0)
        heights = np.where(heights > 0, heights, heights.mean() or 1.0)
        warm = cast(ExtendingMachine, machine).start_from(np.concatenate(duals), intercepts) if kept else None
        sweep = Sweep(model.theta, heights, np.zeros(_shape(machine)), heights, heights, warm)
        weights = problem.scalarization.task_weights(heights)
        p = problem.scalarization.p
        return Continued(Solution(p, sweep, weights, float(heights.mean()), 1.0, 0, False, machine, pool), len(kept))


def check_continuation(model: Any) -> Continuation:
    """What a model leaves to a later fit; raise if that is nothing."""
    if model.continuation is None:
        raise ValueError(
            "warm_from holds nothing to continue from, as with models fitted on a cluster; fit without it."
        )
    found: Continuation = model.continuation
    return found


def _shape(machine: Any) -> tuple[int, int]:
    return machine.n_tasks, machine.n_kernels


def _digest(training: Training, n_rows: int) -> str:
    """A checksum of the first samples: equal ones mean equal kernel values, but for one change in four billion."""
    data: Any = training.samples.data[:n_rows]
    if data.ndim == 3:  # a stack of kernels
        data = data[:, :n_rows]
    found = crc32(repr(data.shape).encode())
    for part in (data.indptr, data.indices, data.data) if issparse(data) else (data,):
        found = crc32(np.ascontiguousarray(part).data, found)
    return f"{found:08x}"


def _digests_of_tasks(training: Training, bounds: Sequence[Array], parts: Parts, n_rows: int) -> dict[str, str]:
    """By name, a digest of what each task learns from the first samples."""
    scale = training.task_sizes if parts.task_scale == "samples" else np.zeros(len(training.tasks))
    own = repr(sorted(parts.own.items())).encode()
    digests = {}
    for task, cost, size in zip(training.tasks, bounds, scale.tolist(), strict=True):
        first = int(np.searchsorted(task.rows, n_rows))
        found = blake2b(own + repr(size).encode(), digest_size=16)
        for values in (task.rows, task.targets, cost):
            found.update(values[:first].tobytes())
        digests[task.name] = found.hexdigest()
    return digests
