"""Training data, tasks and models whose samples are on the workers of a cluster."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import block_diag, csr_matrix

from .._data.labels import Samples
from .._data.numbers import Targets
from .._data.reading import PathReader, Reader, Reading, Training, check_class_weight, labelling_of
from .._data.tasks import Task, array_of, labels_of, unique_labels
from .._fitting.models import Support, TaskModel
from .._fitting.tracing import Parts, Posed, check_parts, fit_and_measure, models_of, pose
from .._tools.checks import check_number, check_share
from .._tools.typing import Array, IntArray
from ..kernels._fitted import (
    Evaluator,
    FittedBank,
    Function,
    Scale,
    SpreadSums,
    Standardizer,
    draw,
    draw_groups,
    negative,
    seen,
)
from ..kernels._kernels import KernelLike, as_bank, is_precomputed
from ..machines import MACHINES, MachineKind
from ..machines._base import find_kind
from ..protocols import Promises
from ..solution import Solution
from ..sweep import Decisions, Sweep
from ._dask_inputs import CollectionSupply
from ._shard import Point, SiteInfo
from ._workers import Crew, Site, SiteSupply, check_sites, current_client

_SECTIONS = 16  # sections into which each round of counting divides the range of a quantile


class RemoteStatistics:
    """The interface of :class:`~paretomkl.kernels._fitted.Statistics` for samples on workers.

    The workers return counts, sums and maxima over all their samples. If samples may leave their workers, the typical
    distances are those between 500 samples, as in memory; otherwise they are the geometric mean of the typical
    distances within each site.
    """

    def __init__(self, crew: Crew, index: list[IntArray], n_counting: list[int]):
        self.crew, self.index, self.n_counting = crew, index, n_counting
        found = crew.ask("weights")
        self.n_samples, self.heaviest = sum(n for n, _ in found), max(weight for _, weight in found)
        self.total = float(np.sum(crew.ask("total_weight", self.heaviest, self.n_samples)))

    def largest(self, function: Function) -> Array:
        return np.max(self.crew.ask("largest", function), axis=0)

    def mean(self, function: Function, bound: Array | float | None = None) -> Array:
        if bound is None:
            bound = np.maximum(self.largest(function), self.largest(negative(function)))
        bound = self.heaviest * np.asarray(bound, dtype=float)
        return np.sum(self.crew.ask("sums", function, bound, self.n_samples), axis=0).sum(axis=0) / self.total

    def quantiles(self, shares: tuple[float, ...]) -> Array:
        def weight_up_to(values: Array) -> Array:
            return np.sum(self.crew.ask("weight_up_to", values), axis=0)

        low, high = -self.largest(np.negative), self.largest(np.positive)
        found = quantiles_by_counting(weight_up_to, low, high, self.total, shares)
        self.crew.ask("forget_columns")
        return found

    def scale(self, standardizer: Standardizer | None, columns: IntArray) -> Scale:
        """Typical distances in the given columns, and the number of columns that vary."""
        see = partial(seen, standardizer, columns)
        n_varying = max(1, int((self.largest(see) > -self.largest(negative(see))).sum()))
        if self.crew.supply.private:
            n, log_2, log_1 = np.sum(self.crew.ask("distances_within", standardizer, columns), axis=0)
            return Scale(math.exp(log_2 / n), math.exp(log_1 / n), n_varying)
        rows = np.sort(np.concatenate(self.crew.ask("counting_rows")))
        found = self.crew.ask("samples_at", rows[draw(len(rows))])
        places, data, weight = (np.concatenate(parts) for parts in zip(*found, strict=True))
        order = np.argsort(places)
        return Scale.of(see(data[order]), weight[order])._replace(n_varying=n_varying)

    def spread(self, evaluator: Evaluator, most: int) -> tuple[Array, Array]:
        """Variance and effective rank of every kernel, averaged over tasks (a random subset if there are many)."""
        drawn = dict(draw_groups(self.n_counting, most))
        each = [({k: drawn[t] for k, t in enumerate(index.tolist()) if t in drawn},) for index in self.index]
        found = self.crew.ask("measure", evaluator, each=each)
        of_task: dict[int, Array] = {}
        for index, (asked,), values in zip(self.index, each, found, strict=True):
            of_task |= {int(index[k]): value for k, value in zip(asked, values, strict=True)}
        sums = SpreadSums.empty(evaluator.n_kernels)
        for t in sorted(of_task):
            variance, rank = of_task[t]
            sums.add(variance, rank, len(of_task))
        return sums.means()


def quantiles_by_counting(
    weight_up_to: Callable[[Array], Array], low: Array, high: Array, total: float, shares: tuple[float, ...]
) -> Array:
    """The quantiles of :func:`weighted_quantiles`, using only the weight at or below given values.

    ``weight_up_to`` maps values (n_values, n_columns) to as many weights; all samples lie between ``low`` and ``high``.
    The doubles between them are numbered, and the range of each quantile is divided until one is left.
    """
    wanted = np.array(shares)[:, None] * total * (1 - 1e-12)
    first, last = (np.tile(_number_of(edge), (len(shares), 1)) for edge in (low, high))
    while (first < last).any():
        # the number of doubles in between may exceed a signed 64-bit integer
        distance = last.view(np.uint64) - first.view(np.uint64)
        steps = [
            np.minimum(np.uint64(k) * (distance // np.uint64(_SECTIONS) + np.uint64(1)), distance)
            for k in range(_SECTIONS)
        ]
        tried = np.array([*((first.view(np.uint64) + step).view(np.int64) for step in steps), last])
        enough = weight_up_to(_double_of(tried).reshape(-1, tried.shape[2])).reshape(tried.shape) >= wanted
        enough[-1] = True
        at = enough.argmax(axis=0)[None]
        before = np.take_along_axis(tried, np.maximum(at - 1, 0), axis=0)[0]
        last = np.take_along_axis(tried, at, axis=0)[0]
        first = np.where((at[0] == 0) | (before >= last), last, np.minimum(before + 1, last))
    return _double_of(first)


def _number_of(values: Array) -> IntArray:
    """Map doubles to integers in the same order."""
    bits = np.ascontiguousarray(values + 0.0, dtype=np.float64).view(np.int64)  # + 0.0 turns −0.0 into 0.0
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)


def _double_of(numbers: IntArray) -> Array:
    bits = np.where(numbers < 0, np.int64(-(2**63)) - numbers, numbers)
    return np.ascontiguousarray(bits).view(np.float64)


class Handle:
    """A reference to the duals of one sweep, which stay on the workers until the handle is garbage-collected."""

    def __init__(self, number: int, rtol: float):
        self.number, self.rtol = number, rtol


class RemoteTasks:
    """A machine that solves its tasks on the workers of a cluster.

    Each round sends θ and a handle of earlier duals to every worker, which returns a cut and two bounds per task:
    n_kernels + 3 numbers. Duals stay on the workers. :meth:`Sites.machine` creates one.

    Parameters
    ----------
    crew : Crew
        The workers.
    index : list of arrays of int
        The tasks of each worker.
    bank : FittedBank
        The base kernels.
    C : float
        Cost of an error.
    parts : Parts
        The machine that solves a task, and its parameters.
    """

    def __init__(self, crew: Crew, index: list[IntArray], bank: FittedBank, C: float, parts: Parts):
        self.crew, self._index, self.bank = crew, index, bank
        self.n_tasks, self.n_kernels = sum(len(part) for part in index), bank.n_kernels
        self._n_sweeps = 0
        self._dropped: list[int] = []
        promised = crew.advance("prepare", bank, C, parts)
        # kernels and duals are at the workers, so nothing can be chosen or grown here
        self.promises = Promises(
            nonnegative=all(own.nonnegative for own in promised),
            shrinks=all(own.shrinks for own in promised),
            scales=all(own.scales for own in promised),
        )

    def sweep(self, theta: Array, warm: Handle | None = None, rtol: float = 1e-6) -> Sweep:
        """Solve every task at θ to a relative duality gap of rtol, starting from the duals of an earlier sweep."""
        theta = np.ascontiguousarray(theta, dtype=np.float64)
        if theta.shape != (self.n_kernels,):
            raise ValueError(f"theta must have one entry per kernel ({self.n_kernels}), got shape {theta.shape}.")
        self._n_sweeps += 1
        handle = Handle(self._n_sweeps, rtol)
        dropped, self._dropped[:] = self._dropped[:], []
        found = self.crew.ask("sweep", theta, None if warm is None else warm.number, rtol, handle.number, dropped)
        weakref.finalize(handle, self._dropped.append, handle.number)
        rows = np.empty((self.n_tasks, self.n_kernels + 3))
        for index, part in zip(self._index, found, strict=True):
            rows[index] = part
        linear, forms, lower, upper = rows[:, 0].copy(), rows[:, 1:-2].copy(), rows[:, -2].copy(), rows[:, -1].copy()
        return Sweep(theta, linear, forms, lower, upper, handle)

    def decisions(self, sweep: Sweep) -> Decisions:
        """The task functions that result from a sweep of this machine; fetches all duals from the workers."""
        found = self.crew.ask("decisions", point_of(sweep))
        dual: list[Any] = [None] * self.n_tasks
        intercepts = np.empty(self.n_tasks)
        for index, part in zip(self._index, found, strict=True):
            intercepts[index] = part.intercepts
            for t, own in zip(index.tolist(), part.dual, strict=True):
                dual[t] = own
        return Decisions(dual, intercepts, found[0].diagonal)


def point_of(sweep: Sweep) -> Point:
    return Point(sweep.warm.number, sweep.theta, sweep.warm.rtol)


class SiteModel:
    """The functions of all tasks at one θ, kept at the sites, which predict their own samples.

    Attributes
    ----------
    bank : FittedBank
        The base kernels.
    theta : array of shape (n_kernels,)
        Kernel weights.
    tasks : Labelling or Targets
        The tasks.
    training, solution : objects
        The samples at the sites, and the point of a path.
    """

    def __init__(self, training: RemoteTraining, bank: FittedBank, solution: Solution):
        self._training, self._sweep = training, solution.sweep
        self.bank, self.theta, self.tasks = bank, solution.theta, training.labelling

    def predict(self, samples: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
        """Predict samples of some sites.

        Parameters
        ----------
        samples : mapping from the name of a site to X, a Future of it, or a function that returns it at the site

        Returns
        -------
        predictions : dict of arrays of shape (n_samples,)
        """
        return self._applied("predict", samples)

    def decision_function(self, samples: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
        """Like ``predict``, but returns decisions."""
        return self._applied("decide", samples)

    def score(self, samples: Mapping[Hashable, Any]) -> dict[Hashable, float]:
        """The accuracy, or R², at some sites; pass (X, y) instead of X. Only the scores leave the sites."""
        return self._applied("score", samples)

    def _applied(self, what: str, samples: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
        crew = self._training.crew
        known = {name for batch in crew.batches for name in batch.names}
        unknown = [name for name in samples if name not in known]
        if unknown:
            raise ValueError(f"Unknown site {unknown[0]!r}; the sites are {sorted(map(str, known))[:20]}.")
        each = [({name: samples[name] for name in batch.names if name in samples},) for batch in crew.batches]
        found: dict[Hashable, Any] = {}
        for part in crew.ask("apply", point_of(self._sweep), what, each=each, futures=True):
            found |= part
        return {name: found[name] for name in samples}


@dataclass(frozen=True)
class RemoteTraining(Training):
    """Training data on the workers of a cluster; the tasks have names and classes here, but no samples.

    index: the numbers of the tasks of each worker; n_counting: number of samples with positive weight of each task;
    gather: whether to fetch the support vectors of models, or to keep the models at the sites.
    """

    crew: Any = None
    index: Any = ()
    n_counting: Any = ()
    sizes: Any = None
    seen: Any = None
    gather: bool = True

    @classmethod
    def of(cls, crew: Crew, gather: bool = True) -> RemoteTraining:
        """Read the samples of all sites."""
        crew.load()
        described = crew.ask("describe")
        crew.supply.loaded()
        sites = {info.name: info for part in described for info in part}
        _check_alike(list(sites.values()))
        given = [name for name in crew.supply.order if name in sites]
        order = unique_labels(array_of(given))
        tasks, labelling = _join(crew.supply.reading, [sites[name] for name in order])
        first_task = _beginnings(order, [len(sites[name].tasks) for name in order])
        index = [
            np.concatenate([first_task[i.name] + np.arange(len(i.tasks)) for i in part]).astype(np.int64)
            for part in described
        ]
        if crew.supply.places_rows:
            crew.advance("place", _beginnings(given, [sites[name].n_samples for name in given]))
        info = sites[order[0]]
        return cls(
            Samples(np.empty((sum(i.n_samples for i in sites.values()), 0)), None, info.feature_names),
            tasks,
            [np.empty(0)] * len(tasks),
            labelling,
            crew=crew,
            index=index,
            n_counting=[n for name in order for n in sites[name].n_counting],
            sizes=np.concatenate([sites[name].task_sizes for name in order]),
            seen=(info.n_features, info.features_seen),
            gather=gather,
        )

    def bounds(self, C: Any) -> Any:
        """C itself, which the workers multiply by their weights."""
        if np.ndim(C):
            raise ValueError("C must be one number on a cluster; pass sample_weight to multiply C for each sample.")
        return float(C)

    @property
    def task_sizes(self) -> Array:
        return self.sizes

    def gathered(self, bank: FittedBank, points: list[Solution]) -> list[TaskModel]:
        """Models with the support vectors of all sites."""
        found = self.crew.ask("support", [point_of(point.sweep) for point in points])
        rows = np.concatenate([part.rows for part in found])
        by_row, by_task = np.argsort(rows), np.argsort(np.concatenate(self.index))
        support = Support(rows[by_row], np.concatenate([part.vectors for part in found])[by_row])
        models = []
        for k, point in enumerate(points):
            dual = csr_matrix(block_diag([part.duals[k] for part in found], format="csr"))[by_task][:, by_row]
            intercepts = np.concatenate([part.intercepts[k] for part in found])[by_task]
            models.append(
                TaskModel(bank, self.labelling, support, point.theta, dual, intercepts, found[0].diagonals[k])
            )
        return models


@fit_and_measure.register(RemoteTraining)
def _(training: RemoteTraining, kernels: KernelLike, centred: bool) -> tuple[FittedBank, None]:
    """Fit the bank to statistics from all workers."""
    statistics = RemoteStatistics(training.crew, training.index, training.n_counting)
    bank = as_bank(kernels).fit_remote(statistics, training.seen[0], training.samples.names)
    return (bank.for_shift_invariant() if centred else bank), None


@pose.register(RemoteTraining)
def _(
    training: RemoteTraining,
    bounds: float,
    bank: FittedBank,
    parts: Parts,
    omega: Array | None = None,
    known: None = None,
) -> Posed:
    """The problem of the tasks on all workers; ``bounds`` is C, which the workers multiply by their weights."""
    if parts.solver.name == "tseng":
        raise ValueError("solver='tseng' needs the kernel matrices of all tasks in one place; use 'auto' or 'bcd'.")
    machine = RemoteTasks(training.crew, training.index, bank, bounds, parts)
    return Posed(parts.problem(machine, omega), bank, None)


@models_of.register(RemoteTraining)
def _(training: RemoteTraining, points: Sequence[Solution], bank: FittedBank) -> list[Any]:
    """One model per solution; solutions with the same sweep share one."""
    distinct = {id(point.sweep): point for point in points}
    if training.gather:
        made: list[Any] = training.gathered(bank, list(distinct.values()))
    else:
        made = [SiteModel(training, bank, point) for point in distinct.values()]
    model_of = dict(zip(distinct, made, strict=True))
    return [model_of[id(point.sweep)] for point in points]


def _beginnings(names: list[Any], lengths: list[int]) -> dict[Hashable, int]:
    """Start of the part of each name in their concatenation."""
    return dict(zip(names, np.cumsum([0, *lengths]).tolist(), strict=False))


def _check_alike(sites: list[SiteInfo]) -> None:
    one = sites[0]
    for info in sites[1:]:
        if info.n_features != one.n_features:
            raise ValueError(
                f"Site {info.name!r} has {info.n_features} features, but site {one.name!r} has {one.n_features}."
            )
        if info.feature_names != one.feature_names:
            raise ValueError(
                f"Site {info.name!r} has the columns {(info.feature_names or ['without names'])[:10]}, but site "
                f"{one.name!r} has {(one.feature_names or ['columns without names'])[:10]}, in that order."
            )


def _join(reading: Reading, sites: list[SiteInfo]) -> tuple[list[Task], Any]:
    """The tasks of all sites, without samples, and what their decisions mean."""
    none = np.empty(0, dtype=np.int64)
    tasks = [Task(name, none, np.empty(0), classes, info.name) for info in sites for name, classes in info.tasks]
    numbers = [info.targets for info in sites if info.targets is not None]
    if numbers:
        centre, spread, deviation = (np.concatenate(parts) for parts in zip(*numbers, strict=True))
        return tasks, Targets.of(tasks, "tasks", centre, spread, deviation)
    check_class_weight(reading.class_weight, tasks)  # a site need not have all labels
    return tasks, labelling_of(reading, tasks, "tasks", unique_labels(array_of(labels_of(tasks))))


@dataclass(frozen=True)
class Sites:
    """Sites of a cluster; pass them instead of X.

    Parameters
    ----------
    sites : sequence of Site
        Each is a task, or several tasks if it has more than two classes.
    client : distributed.Client, default=None
        The Dask client; None uses the current one.
    gather : bool, default=True
        Whether to fetch the support vectors of the fitted models. If False, the models stay at the sites, see
        :class:`SiteModel`.
    patience : float, default=60
        Seconds to wait for a lost worker that no other worker can replace.

    Examples
    --------
    >>> import numpy as np
    >>> from paretomkl.distributed import Site, Sites
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> halves = {"north": slice(0, 20), "south": slice(20, 40)}
    >>> sites = Sites([Site(name, data=(X[rows], np.sign(X[rows, 0]))) for name, rows in halves.items()])
    >>> len(sites.sites)  # with a client: pareto_path(sites)
    2
    """

    sites: Sequence[Site]
    client: Any = None
    gather: bool = True
    patience: float = 60.0
    on_workers: ClassVar[bool] = True  # read by is_remote

    def __post_init__(self) -> None:
        object.__setattr__(self, "sites", list(self.sites))
        check_sites(self.sites)
        check_number("patience", self.patience, lambda v: v >= 0, "of at least 0")

    def machine(
        self,
        kernels: KernelLike = "default",
        C: float = 1.0,
        machine: str | MachineKind = "svc",
        epsilon: float = 0.1,
    ) -> RemoteTasks:
        """The tasks as a machine, for a :class:`~paretomkl.problem.MultiTaskProblem`."""
        kind = find_kind(MACHINES, machine)
        training = read_remote(PathReader(Reading(kernels, machine=kind)), self)
        parts = check_parts([1.0], 1.1, 1e-3, "auto", None, None, "none", kind, epsilon=epsilon)
        bank, _ = fit_and_measure(training, kernels, kind.promises.shifts)
        return RemoteTasks(training.crew, training.index, bank, C, parts)


def read_remote(
    owner: Reader, X: Any, y: Any = None, *, tasks: Any = None, sample_weight: Any = None
) -> RemoteTraining:
    """Read samples on their workers, as ``owner.reading`` says; ``owner`` keeps the notes about the features."""
    reading = owner.reading
    if reading.machine.reads == "nothing":
        raise ValueError(f"On a cluster, tasks need labels or targets, but machine={reading.machine.name!r} has none.")
    if is_precomputed(reading.kernels):
        raise ValueError("kernels='precomputed' needs all samples in one place; on a cluster, pass features.")
    share = check_share(reading.share)
    if share != "kernel":
        raise ValueError(f"share={share!r} needs the samples of all tasks in one place; on a cluster, use 'kernel'.")
    if isinstance(X, Sites):
        extra = {"y": y, "tasks": tasks, "sample_weight": sample_weight, "task_column": reading.task_column}
        named = [name for name, value in extra.items() if value is not None]
        if named:
            raise ValueError(f"Sites have their own targets and task names; do not pass {named[0]}.")
        training = RemoteTraining.of(Crew(current_client(X.client), SiteSupply(reading, X.sites), X.patience), X.gather)
    else:
        client = current_client()
        training = RemoteTraining.of(Crew(client, CollectionSupply(client, reading, X, y, tasks, sample_weight)))
    owner.n_features_in_, names = training.seen[1]
    if names is not None:
        owner.feature_names_in_ = names
    return training
