"""The part of a cluster's data on one worker: samples of some sites, their tasks, and the duals of earlier sweeps.

A :class:`Shard` is created on a worker and stays there. The client requests statistics, sweeps and, at the end, support
vectors or predictions; :meth:`Shard.answer` runs on the worker and returns what the client may see.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from operator import attrgetter
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, TypeAlias

import numpy as np
from scipy.sparse import csr_matrix

from .._data.labels import TaskSet
from .._data.reading import PathReader, Reading, Training
from .._data.tasks import Task, array_of
from .._fitting.models import Fit, Support, TaskModel, as_samples, make_models
from .._fitting.tracing import Parts, TaskData, make_gram
from .._tools.typing import AnyArray, Array, IntArray
from ..kernels._fitted import Evaluator, FittedBank, Function, Statistics, measure, typical_distances
from ..protocols import Machine, Promises
from ..sweep import Decisions, Sweep

if TYPE_CHECKING:
    from distributed import Worker

PAIRS_AT_A_TIME = 4e6  # pairs of samples to process between two checks whether the client still wants the answer
MOST_CLIENTS = 100  # clients whose cancelled requests a worker remembers: those of the others ended long ago

Given: TypeAlias = tuple[Hashable, Any, IntArray | None]  # a site, its data or loader, and the numbers of its rows
ByName: TypeAlias = Mapping[Hashable, Any]  # samples of sites, or functions that load them
Details: TypeAlias = tuple[Any, ...]  # the arguments of a question
Use: TypeAlias = Literal["predict", "decide", "score"]


class Request(NamedTuple):
    """A request of a client, which numbers them in order."""

    client: str
    number: int


class Cancelled(RuntimeError):
    """The client has cancelled the request."""


class NotHere(OSError):
    """The worker does not have the shard, or no longer."""


def cancelled_on(worker: Worker) -> dict[str, int]:
    """The last cancelled request of each client; the worker keeps this, because it may not have a shard yet."""
    return vars(worker).setdefault("paretomkl_cancelled", {})


def cancel(request: Request, dask_worker: Worker) -> None:
    """Stop a request, and all earlier ones of its client, at the next task."""
    cancelled = cancelled_on(dask_worker)
    cancelled.pop(request.client, None)  # the latest come last
    cancelled[request.client] = request.number
    while len(cancelled) > MOST_CLIENTS:
        del cancelled[next(iter(cancelled))]


async def reply(key: str, request: Request, question: str, details: Details, dask_worker: Worker) -> Any:
    """The answer of the shard with that key, from a thread of the worker, without a scheduler task."""
    shard = dask_worker.data.get(key)
    if not isinstance(shard, Shard):
        raise NotHere("The worker no longer has these samples.")
    work = partial(shard.answer, request, question, *details)
    try:
        return await asyncio.get_running_loop().run_in_executor(dask_worker.executor, work)
    except OSError as error:  # the client would read these as a broken connection
        raise RuntimeError(f"{type(error).__name__}: {error}") from error


def occupy(shard: Shard) -> None:
    """Wait until the shard has answered: a task that tells the scheduler that the worker is busy."""
    with shard.lock:
        pass


def load(request: Request, reading: Reading, given: Sequence[Given]) -> Shard:
    """A shard with the data of the given sites, on the worker that runs this task."""
    from distributed import get_worker

    return Shard(reading, given, request, cancelled_on(get_worker()))


@dataclass(frozen=True, eq=False)
class Handle:
    """A sweep, whose duals stay on the workers until the client drops the handle; lost duals are computed again."""

    number: int
    theta: Array
    rtol: float


class SiteInfo(NamedTuple):
    """What the client learns about a site after its samples are read.

    features_in: the number of columns of X, task column included, and their names; tasks: without samples; n_counting:
    number of samples with positive weight of each task.
    """

    name: Hashable
    n_samples: int
    n_features: int
    feature_names: list[str] | None
    features_in: tuple[int, AnyArray | None]
    tasks: list[Task]
    task_sizes: Array
    n_counting: list[int]
    labelling: TaskSet

    @property
    def n_tasks(self) -> int:
        return len(self.tasks)


class ShardFunctions(NamedTuple):
    """Support vectors of the tasks of a shard, and the duals (n_tasks, n_support) and intercepts at several points."""

    support: Support
    duals: list[csr_matrix]
    intercepts: list[Array]
    diagonals: list[float]


class _SiteTasks(NamedTuple):
    """The tasks of a site, and where its rows and tasks are among those of the shard."""

    training: Training
    info: SiteInfo
    rows: slice
    tasks: slice


class Shard:
    """The samples of some sites, read and checked.

    given: their names and samples: (X, y), (X, y, sample_weight) or a function that loads them; request:
    that to load them; cancelled: the last cancelled request of each client.
    """

    def __init__(self, reading: Reading, given: Sequence[Given], request: Request, cancelled: Mapping[str, int]):
        self.lock, self._request, self._cancelled = Lock(), request, cancelled
        read = [self._read(reading, name, data) for name, data, _ in given]
        check_alike([info for _, info in read])
        self.data = np.concatenate([training.samples.data for training, _ in read])
        row = np.cumsum([0, *(info.n_samples for _, info in read)]).tolist()
        task = np.cumsum([0, *(info.n_tasks for _, info in read)]).tolist()
        self.sites: dict[Hashable, _SiteTasks] = {}
        for k, (training, info) in enumerate(read):
            rows, tasks = slice(row[k], row[k + 1]), slice(task[k], task[k + 1])
            own = replace(training, samples=replace(training.samples, data=self.data[rows]))  # a view, not a copy
            self.sites[info.name] = _SiteTasks(own, info, rows, tasks)
        self.sample_weight = np.concatenate([training.sample_weight for training, _ in read])
        self.statistics = Statistics(self.data, self.sample_weight)
        known = [rows for _, _, rows in given if rows is not None]
        self.rows = np.concatenate(known) if known else np.arange(len(self.data))
        self._columns: tuple[Array, Array] | None = None
        self.machines: list[Machine] = []
        self.sweeps: dict[int, list[Sweep]] = {}

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"The samples of {next(iter(self.sites))!r} stay on their worker; a shard cannot be sent or stored."
        )

    def answer(self, request: Request, question: str, *details: Any) -> Any:
        """The answer to a question, which is the name of a method, such as "sweep" or "statistics.sums"."""
        with self.lock:  # a cancelled request may still be busy with its last task
            self._request = request
            self._check()
            return attrgetter(question)(self)(*details)

    def _check(self) -> None:
        """Raise if the client no longer wants the answer."""
        if self._request.number <= self._cancelled.get(self._request.client, -1):
            raise Cancelled(self._request)

    def _read(self, reading: Reading, name: Hashable, data: Any) -> tuple[Training, SiteInfo]:
        self._check()
        if callable(data):
            try:
                data = data()
            except Exception as error:
                raise RuntimeError(f"The loader of site {name!r} failed: {type(error).__name__}: {error}") from error
        if not (isinstance(data, tuple | list) and len(data) in (2, 3)):
            kind = type(data).__name__
            raise ValueError(f"Site {name!r} must have (X, y) or (X, y, sample_weight), got {kind}.")
        X, y, *rest = data
        if len(X) == 0:
            raise ValueError(f"Site {name!r} has no samples; leave it out.")
        tasks = array_of([name] * len(X)) if reading.task_column is None else None
        reader = PathReader(reading)
        try:
            training = reader.read_data(X, y, tasks=tasks, sample_weight=rest[0] if rest else None, part=True)
        except ValueError as error:
            raise ValueError(f"Site {name!r}: {error}") from error
        return training, _info(name, training, reader)

    @property
    def _trainings(self) -> list[Training]:
        return [site.training for site in self.sites.values()]

    def describe(self) -> list[SiteInfo]:
        return [site.info for site in self.sites.values()]

    def place(self, first: Mapping[Hashable, int]) -> None:
        """Set the position of the rows of each site among those of all sites."""
        for name, site in self.sites.items():
            self.rows[site.rows] = first[name] + np.arange(site.info.n_samples)

    # -------------------------------------------------------------------------------------------- statistics
    def weights(self) -> tuple[int, float]:
        """Number of samples with positive weight, and the largest weight."""
        return len(self.statistics.X), float(self.statistics.weight.max())

    def weight_up_to(self, values: Array) -> Array:
        """The weight of the samples at or below the given values of each column, (n_values, n_columns)."""
        if self._columns is None:
            order = np.argsort(self.statistics.X, axis=0, kind="stable")
            below = np.cumsum(self.statistics.weight[order], axis=0)
            zeros = np.zeros((1, below.shape[1]))
            self._columns = np.take_along_axis(self.statistics.X, order, axis=0), np.concatenate([zeros, below])
        columns, below = self._columns
        at = [np.searchsorted(column, value, side="right") for column, value in zip(columns.T, values.T, strict=True)]
        return np.take_along_axis(below, np.stack(at, axis=1), axis=0)

    def forget_columns(self) -> None:
        self._columns = None

    def samples_at(self, rows: IntArray) -> tuple[IntArray, Array, Array]:
        """The given samples (numbered over all sites) that are on this worker: numbers, features and weights."""
        here = np.flatnonzero(np.isin(self.rows, rows))
        return self.rows[here], self.data[here], self.sample_weight[here]

    def counting_rows(self) -> IntArray:
        """The numbers, over all sites, of the samples with positive weight."""
        return self.rows[self.sample_weight > 0]

    def distances_within(self, scaler: Function | None, columns: IntArray) -> Array:
        """Σ n, Σ n log d_2 and Σ n log d_1 over the sites, where d are the typical distances within a site."""
        total = np.zeros(3)
        for training in self._trainings:
            self._check()
            X = training.samples.data if scaler is None else scaler(training.samples.data)
            n = float(training.sample_weight.sum())
            distances = typical_distances(np.ascontiguousarray(X[:, columns]), training.sample_weight)
            total += n * np.array([1.0, *np.log(distances)])
        return total

    def measure(self, evaluator: Evaluator, drawn: Mapping[int, IntArray]) -> Array:
        """Variance and effective rank of every kernel on the drawn samples of each task, (n_tasks, 2, n_kernels)."""
        out = np.empty((len(drawn), 2, evaluator.n_kernels))
        tasks = [(training, t) for training in self._trainings for t in range(len(training.tasks))]
        for k, (t, some) in enumerate(drawn.items()):
            self._check()
            training, own = tasks[t]
            rows, weight = training.tasks[own].rows, training.weights[own]
            there = np.flatnonzero(weight > 0)[some]
            variance, rank, _ = measure(evaluator, training.samples.data, [(rows[there], weight[there])], len(there))
            out[k] = variance, rank
        return out

    # ------------------------------------------------------------------------------------------------- tasks
    def prepare(self, bank: FittedBank, C: float, parts: Parts) -> Promises:
        """Create the machines of the tasks, each with so few sites that a sweep does not take long; what they promise.

        All are made in the same way, so the first promises what the others do.
        """
        sizes = np.array([float(site.info.n_samples) ** 2 for site in self.sites.values()])
        chunk = np.cumsum(sizes) // PAIRS_AT_A_TIME
        edges = [0, *(np.flatnonzero(np.diff(chunk)) + 1).tolist(), len(sizes)]
        self.bank, self.machines, self.sweeps = bank, [], {}
        for a, b in pairwise(edges):
            self._check()
            own = replace(bank, cache_bytes=bank.cache_bytes * sizes[a:b].sum() / sizes.sum())
            self.machines.append(self._machine(own, list(self.sites.values())[a:b], C, parts))
        return self.machines[0].promises

    def _machine(self, bank: FittedBank, sites: list[_SiteTasks], C: float, parts: Parts) -> Machine:
        start, stop = sites[0].rows.start, sites[-1].rows.stop
        tasks = _tasks_from(sites, start)
        bounds = [bound for site in sites for bound in site.training.bounds(C)]
        sizes = np.concatenate([site.info.task_sizes for site in sites])
        gram = make_gram(bank, self.data[start:stop], tasks, parts.n_jobs)
        scale = 1 / sizes if parts.task_scale == "samples" else None
        return TaskData.of(gram, tasks, bounds, scale, parts.make).machine()

    def sweep(self, handle: Handle, warm: int | None, dropped: Sequence[int]) -> Array:
        """Linear parts, forms, lower and upper bounds of all tasks, one row each: (n_tasks, n_kernels + 3)."""
        for number in dropped:
            self.sweeps.pop(number, None)
        # after the loss of a worker there is no warm start, and the tasks start cold
        starts = [sweep.warm for sweep in self.sweeps[warm]] if warm in self.sweeps else [None] * len(self.machines)
        made = []
        for machine, start in zip(self.machines, starts, strict=True):
            self._check()
            made.append(machine.sweep(handle.theta, start, handle.rtol))
        self.sweeps[handle.number] = made
        return np.concatenate([np.column_stack([one.linear, one.forms, one.lower, one.upper]) for one in made])

    def decisions(self, handle: Handle) -> Decisions:
        """The functions of all tasks that result from a sweep."""
        if handle.number not in self.sweeps:
            self.sweep(handle, None, [])
        found = [machine.decisions(s) for machine, s in zip(self.machines, self.sweeps[handle.number], strict=True)]
        duals = [dual for decisions in found for dual in decisions.dual]
        return Decisions(duals, np.concatenate([one.intercepts for one in found]), found[0].diagonal)

    # ------------------------------------------------------------------------------------------------ models
    def functions(self, handles: Sequence[Handle]) -> ShardFunctions:
        """The functions of all tasks that result from several sweeps, and their support vectors."""
        fits = [Fit(self.bank, handle.theta, self.decisions(handle)) for handle in handles]
        tasks = _tasks_from(list(self.sites.values()), 0)
        models = make_models(self.data, tasks, self._trainings[0].labelling, fits)
        support = replace(models[0].support, rows=self.rows[models[0].support.rows])
        columns = zip(*((model.dual, model.intercepts, model.diagonal) for model in models), strict=True)
        return ShardFunctions(support, *map(list, columns))

    def apply(self, handle: Handle, use: Use, samples: ByName) -> dict[Hashable, AnyArray | float]:
        """Predictions, decisions or scores of the models of some sites for samples at these sites."""
        everyone = self.decisions(handle)
        out = {}
        for name, given in samples.items():
            self._check()
            training, info, _, mine = self.sites[name]
            own = Decisions(everyone.dual[mine], everyone.intercepts[mine], everyone.diagonal)
            fit = Fit(self.bank, handle.theta, own)
            model = make_models(training.samples.data, training.tasks, training.labelling, [fit])[0]
            out[name] = _applied(model, use, info, given)
        return out


def _info(name: Hashable, training: Training, reader: PathReader) -> SiteInfo:
    none = np.empty(0, dtype=np.int64), np.empty(0)
    return SiteInfo(
        name,
        len(training.samples),
        training.samples.data.shape[1],
        training.samples.names,
        (reader.n_features_in_, getattr(reader, "feature_names_in_", None)),
        [Task(task.name, *none, task.classes, name) for task in training.tasks],
        training.task_sizes,
        [int((weight > 0).sum()) for weight in training.weights],
        training.labelling,
    )


def check_alike(sites: Sequence[SiteInfo]) -> None:
    """Raise if the sites do not have the same features."""
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


def _tasks_from(sites: Sequence[_SiteTasks], start: int) -> list[Task]:
    """The tasks of some sites, with rows numbered from ``start`` of the shard."""
    return [replace(task, rows=task.rows + site.rows.start - start) for site in sites for task in site.training.tasks]


def _applied(model: TaskModel, use: Use, site: SiteInfo, given: Any) -> AnyArray | float:
    """Apply a model to samples: X, or (X, y) for a score, or a function that loads them."""
    given = given() if callable(given) else given
    X, y = given if use == "score" else (given, None)
    features = np.asarray(X[site.feature_names] if hasattr(X, "columns") else X, dtype=np.float64)
    if features.ndim != 2 or features.shape[1] != site.n_features:
        raise ValueError(
            f"Site {site.name!r} must have samples with {site.n_features} features, got shape {features.shape}."
        )
    samples = as_samples(features, array_of([site.name] * len(features)))
    if use == "score":
        return model.score(samples, y)
    return model.predict(samples) if use == "predict" else model.tasks.scores(model.decided(samples))
