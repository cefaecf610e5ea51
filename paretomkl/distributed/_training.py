"""Training data, tasks and models whose samples are on the workers of a cluster."""

from __future__ import annotations

import math
import weakref
from collections import ChainMap, Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_diag, csr_matrix

from .._data.labels import Samples, TaskSet
from .._data.reading import PathReader, Reader, Reading, Training, check_class_weight
from .._data.tasks import array_of, unique_labels
from .._fitting.models import Support, TaskModel
from .._fitting.tracing import Parts, Posed, check_parts, fit_and_measure, models_of, pose
from .._tools.checks import check_number, check_share, shown
from .._tools.public import PublicNames
from .._tools.typing import AnyArray, Array, IntArray
from ..kernels._fitted import (
    Evaluator,
    FittedBank,
    Function,
    Scale,
    SpreadSums,
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
from ._inputs import Site, supply_of_collection, supply_of_sites
from ._shard import ByName, Handle, ShardFunctions, SiteInfo, Use, check_alike
from ._workers import Workers, current_client

if TYPE_CHECKING:
    from distributed import Client

_SECTIONS = 16  # sections into which each round of counting divides the range of a quantile


class RemoteStatistics:
    """The interface of :class:`~paretomkl.kernels._fitted.Statistics` for samples on workers.

    The workers return counts, sums and maxima over all their samples. If samples may leave their workers, the typical
    distances are those between 500 samples, as in memory; otherwise they are the geometric mean of the typical
    distances within each site.
    """

    def __init__(self, workers: Workers, index: list[IntArray], n_counting: list[int]):
        self.workers, self.index, self.n_counting = workers, index, n_counting
        found = workers.ask("weights")
        self.n_samples, self.heaviest = sum(n for n, _ in found), max(weight for _, weight in found)
        self.total = float(self._sums(_one, np.ones(1))[0])

    def _sums(self, function: Function, bound: Array | float) -> Array:
        bound = self.heaviest * np.asarray(bound, dtype=float)
        return np.sum(self.workers.ask("statistics.sums", function, bound, self.n_samples), axis=0).sum(axis=0)

    def largest(self, function: Function) -> Array:
        return np.max(self.workers.ask("statistics.largest", function), axis=0)

    def mean(self, function: Function, bound: Array | float | None = None) -> Array:
        if bound is None:
            bound = np.maximum(self.largest(function), self.largest(negative(function)))
        return self._sums(function, bound) / self.total

    def quantiles(self, shares: tuple[float, ...]) -> Array:
        def weight_up_to(values: Array) -> Array:
            return np.sum(self.workers.ask("weight_up_to", values), axis=0)

        low, high = -self.largest(np.negative), self.largest(np.positive)
        found = quantiles_by_counting(weight_up_to, low, high, self.total, shares)
        self.workers.ask("forget_columns")
        return found

    def scale(self, scaler: Function | None, columns: IntArray) -> Scale:
        """Typical distances in the given columns, and the number of columns that vary."""
        see = partial(seen, scaler, columns)
        n_varying = max(1, int((self.largest(see) > -self.largest(negative(see))).sum()))
        if self.workers.supply.private:
            n, log_2, log_1 = np.sum(self.workers.ask("distances_within", scaler, columns), axis=0)
            return Scale(math.exp(log_2 / n), math.exp(log_1 / n), n_varying)
        rows = np.sort(np.concatenate(self.workers.ask("counting_rows")))
        found = self.workers.ask("samples_at", rows[draw(len(rows))])
        places, data, weight = (np.concatenate(parts) for parts in zip(*found, strict=True))
        order = np.argsort(places)
        return Scale.of(see(data[order]), weight[order])._replace(n_varying=n_varying)

    def spread(self, evaluator: Evaluator, most: int) -> tuple[Array, Array]:
        """Variance and effective rank of every kernel, averaged over tasks (a random subset if there are many)."""
        drawn = dict(draw_groups(self.n_counting, most))
        each = [({k: drawn[t] for k, t in enumerate(index.tolist()) if t in drawn},) for index in self.index]
        found = self.workers.ask("measure", evaluator, each=each)
        of_task: dict[int, Array] = {}
        for index, (asked,), values in zip(self.index, each, found, strict=True):
            of_task |= {int(index[k]): value for k, value in zip(asked, values, strict=True)}
        sums = SpreadSums.empty(evaluator.n_kernels)
        for t in sorted(of_task):
            variance, rank = of_task[t]
            sums.add(variance, rank, len(of_task))
        return sums.means()


def _one(X: Array) -> Array:
    """Sums of it are total weights."""
    return np.ones((len(X), 1))


def quantiles_by_counting(
    weight_up_to: Callable[[Array], Array], low: Array, high: Array, total: float, shares: tuple[float, ...]
) -> Array:
    """The quantiles of :func:`weighted_quantiles`, using only the weight at or below given values.

    ``weight_up_to`` maps values (n_values, n_columns) to as many weights; all samples lie between ``low`` and ``high``.
    The doubles between them are numbered, and the range of each quantile is divided until one is left.
    """
    wanted = np.array(shares)[:, None] * total * (1 - 1e-12)
    first, last = (np.tile(_number_of(edge), (len(shares), 1)) for edge in (low, high))
    steps = np.arange(_SECTIONS, dtype=np.uint64)[:, None, None]
    while (first < last).any():
        tried = np.minimum(first + steps * ((last - first) // np.uint64(_SECTIONS) + np.uint64(1)), last)
        enough = weight_up_to(_double_of(tried).reshape(-1, tried.shape[2])).reshape(tried.shape) >= wanted
        n_low = (~enough).sum(axis=0)[None]  # of increasing values
        before, after = (np.take_along_axis(tried, k.clip(0, _SECTIONS - 1), axis=0)[0] for k in (n_low - 1, n_low))
        first = np.where(n_low[0] > 0, before + np.uint64(1), first)
        last = np.where(n_low[0] < _SECTIONS, after, last)
    return _double_of(first)


_NEGATIVE = np.uint64(1 << 63)


def _number_of(values: Array) -> NDArray[np.uint64]:
    """Map doubles to integers in the same order."""
    bits = np.ascontiguousarray(values + 0.0, dtype=np.float64).view(np.uint64)  # + 0.0 turns −0.0 into 0.0
    return np.where(bits < _NEGATIVE, bits + _NEGATIVE, ~bits)


def _double_of(numbers: NDArray[np.uint64]) -> Array:
    return np.where(numbers < _NEGATIVE, ~numbers, numbers - _NEGATIVE).view(np.float64)


class RemoteTasks:
    """A machine that solves its tasks on the workers of a cluster.

    Each round sends θ and a handle of earlier duals to every worker, which returns a cut and two bounds per task:
    n_kernels + 3 numbers. Duals stay on the workers. :meth:`Sites.machine` creates one.

    Parameters
    ----------
    workers : Workers
        The shards of the tasks.
    index : list of arrays of int
        The tasks of each worker.
    bank : FittedBank
        The base kernels.
    C : float
        Cost of an error.
    parts : Parts
        The machine that solves a task, and its parameters.
    """

    def __init__(self, workers: Workers, index: list[IntArray], bank: FittedBank, C: float, parts: Parts):
        self.workers, self._index, self.bank = workers, index, bank
        self.n_tasks, self.n_kernels = sum(len(part) for part in index), bank.n_kernels
        self._n_sweeps = 0
        self._dropped: list[int] = []
        promised = workers.advance("prepare", bank, C, parts)
        # kernels and duals are at the workers, so nothing can be chosen or grown here
        kept = "nonnegative", "shrinks", "scales"
        self.promises = Promises(**{name: all(getattr(own, name) for own in promised) for name in kept})

    def sweep(self, theta: Array, warm: Handle | None = None, rtol: float = 1e-6) -> Sweep:
        """Solve every task at θ to a relative duality gap of rtol, starting from the duals of an earlier sweep."""
        theta = np.ascontiguousarray(theta, dtype=np.float64)
        if theta.shape != (self.n_kernels,):
            raise ValueError(f"theta must have one entry per kernel ({self.n_kernels}), got shape {theta.shape}.")
        self._n_sweeps += 1
        handle = Handle(self._n_sweeps, theta, rtol)
        dropped, self._dropped[:] = self._dropped[:], []
        found = self.workers.ask("sweep", handle, None if warm is None else warm.number, dropped)
        weakref.finalize(handle, self._dropped.append, handle.number)
        rows = np.empty((self.n_tasks, self.n_kernels + 3))
        for index, part in zip(self._index, found, strict=True):
            rows[index] = part
        linear, forms, lower, upper = (rows[:, part].copy() for part in (0, slice(1, -2), -2, -1))
        return Sweep(theta, linear, forms, lower, upper, handle)

    def decisions(self, sweep: Sweep) -> Decisions:
        """The task functions that result from a sweep of this machine; fetches all duals from the workers."""
        found = self.workers.ask("decisions", sweep.warm)
        by_task = np.argsort(np.concatenate(self._index))
        dual = [own for part in found for own in part.dual]
        intercepts = np.concatenate([part.intercepts for part in found])[by_task]
        return Decisions([dual[k] for k in by_task], intercepts, found[0].diagonal)


@dataclass(frozen=True, eq=False)
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
    workers, handle : objects
        The samples at the sites, and the sweep that solved the tasks.
    """

    bank: FittedBank
    theta: Array
    tasks: TaskSet
    workers: Workers
    handle: Handle

    def predict(self, samples: ByName) -> dict[Hashable, AnyArray]:
        """Predict samples of some sites.

        Parameters
        ----------
        samples : mapping from the name of a site to X, a Future of it, or a function that returns it at the site

        Returns
        -------
        predictions : dict of arrays of shape (n_samples,)
        """
        return self._applied("predict", samples)

    def decision_function(self, samples: ByName) -> dict[Hashable, AnyArray]:
        """Like ``predict``, but returns decisions."""
        return self._applied("decide", samples)

    def score(self, samples: ByName) -> dict[Hashable, float]:
        """The accuracy, or R², at some sites; pass (X, y) instead of X. Only the scores leave the sites."""
        return self._applied("score", samples)

    def _applied(self, use: Use, samples: ByName) -> dict[Hashable, Any]:
        names = [shard.batch.names for shard in self.workers.shards]
        known = set(chain.from_iterable(names))
        unknown = [name for name in samples if name not in known]
        if unknown:
            raise ValueError(f"Unknown site {unknown[0]!r}; the sites are {sorted(map(str, known))[:20]}.")
        each = [({name: samples[name] for name in own if name in samples},) for own in names]
        found = ChainMap(*self.workers.ask("apply", self.handle, use, each=each, futures=True))
        return {name: found[name] for name in samples}


@dataclass(frozen=True, kw_only=True)
class RemoteTraining(Training):
    """Training data on the workers of a cluster; the tasks have names and classes here, but no samples.

    index: the numbers of the tasks of each worker; n_counting: number of samples with positive weight of each task;
    site: a site, whose features are those of all; gather: whether to fetch the support vectors of models, or to keep
    the models at the sites.
    """

    workers: Workers
    index: list[IntArray]
    n_counting: list[int]
    sizes: Array
    site: SiteInfo
    gather: bool

    @classmethod
    def of(cls, workers: Workers, gather: bool) -> RemoteTraining:
        """Read the samples of all sites."""
        supply, described = workers.supply, workers.ask("describe")
        supply.loaded()
        sites = {info.name: info for part in described for info in part}
        check_alike(list(sites.values()))
        given = [name for name in supply.costs]
        if not supply.numbered:
            workers.advance("place", _beginnings([sites[name] for name in given], "n_samples"))
        ordered = [sites[name] for name in unique_labels(array_of(given))]
        first = _beginnings(ordered, "n_tasks")
        tasks = [task for info in ordered for task in info.tasks]
        check_class_weight(supply.reading.class_weight, tasks)  # a site need not have all labels
        one, *others = ordered
        return cls(
            Samples(np.empty((sum(info.n_samples for info in ordered), 0)), None, one.feature_names),
            tasks,
            [np.empty(0)] * len(tasks),
            one.labelling.joined(tasks, [info.labelling for info in others]),
            workers=workers,
            index=[np.concatenate([first[i.name] + np.arange(i.n_tasks) for i in part]) for part in described],
            n_counting=[n for info in ordered for n in info.n_counting],
            sizes=np.concatenate([info.task_sizes for info in ordered]),
            site=one,
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

    def gathered(self, bank: FittedBank, points: Sequence[Solution]) -> list[TaskModel]:
        """Models with the support vectors of all sites."""
        found: list[ShardFunctions] = self.workers.ask("functions", [point.sweep.warm for point in points])
        rows = np.concatenate([part.support.rows for part in found])
        by_row, by_task = np.argsort(rows), np.argsort(np.concatenate(self.index))
        support = Support(rows[by_row], np.concatenate([part.support.vectors for part in found])[by_row])
        models = []
        for k, point in enumerate(points):
            dual = csr_matrix(block_diag([part.duals[k] for part in found], format="csr"))[by_task][:, by_row]
            intercepts = np.concatenate([part.intercepts[k] for part in found])[by_task]
            diagonal = found[0].diagonals[k]
            models.append(TaskModel(bank, self.labelling, support, point.theta, dual, intercepts, diagonal))
        return models


def _beginnings(sites: list[SiteInfo], size: str) -> dict[Hashable, int]:
    """Where the part of each site begins if their samples, or tasks, are put one after the other."""
    lengths = [getattr(info, size) for info in sites]
    return dict(zip((info.name for info in sites), np.cumsum([0, *lengths]).tolist(), strict=False))


@fit_and_measure.register(RemoteTraining)
def _(training: RemoteTraining, kernels: KernelLike, centred: bool) -> tuple[FittedBank, None]:
    """Fit the bank to statistics from all workers."""
    statistics = RemoteStatistics(training.workers, training.index, training.n_counting)
    bank = as_bank(kernels).fit_remote(statistics, training.site.n_features, training.samples.names)
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
    machine = RemoteTasks(training.workers, training.index, bank, bounds, parts)
    return Posed(parts.problem(machine, omega), bank, None)


@models_of.register(RemoteTraining)
def _(training: RemoteTraining, points: Sequence[Solution], bank: FittedBank) -> Sequence[TaskModel | SiteModel]:
    """One model per solution; solutions with the same sweep share one."""
    distinct = {id(point.sweep): point for point in points}
    made: Sequence[TaskModel | SiteModel]
    if training.gather:
        made = training.gathered(bank, list(distinct.values()))
    else:
        given = training.labelling, training.workers
        made = [SiteModel(bank, point.theta, *given, point.sweep.warm) for point in distinct.values()]
    model_of = dict(zip(distinct, made, strict=True))
    return [model_of[id(point.sweep)] for point in points]


@dataclass(frozen=True)
class Sites(PublicNames):
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

    _internal = ("on_workers",)

    sites: Sequence[Site]
    client: Client | None = None
    gather: bool = True
    patience: float = 60.0
    on_workers: ClassVar[bool] = True  # read by is_remote

    def __post_init__(self) -> None:
        object.__setattr__(self, "sites", list(self.sites))
        if not self.sites:
            raise ValueError("sites is empty; pass at least one Site.")
        for site in self.sites:
            if not isinstance(site, Site):
                raise TypeError(f"sites must be a list of Site objects, got {shown(site)} in it.")
        name, n_times = Counter(site.name for site in self.sites).most_common(1)[0]
        if n_times > 1:
            raise ValueError(f"Two sites are called {name!r}; each needs a unique name.")
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
        return RemoteTasks(training.workers, training.index, bank, C, parts)


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
        client = current_client(X.client)
        workers = Workers(client, supply_of_sites(client, reading, X.sites), X.patience)
    else:
        client = current_client()
        workers = Workers(client, supply_of_collection(client, reading, X, y, tasks, sample_weight))
    training = RemoteTraining.of(workers, gather=X.gather if isinstance(X, Sites) else True)
    owner.n_features_in_, names = training.site.features_in
    if names is not None:
        owner.feature_names_in_ = names
    return training
