"""The part of a cluster's data on one worker: samples of some sites, their tasks, and the duals of earlier sweeps.

A :class:`Shard` is created on a worker and stays there. The client requests statistics, sweeps and, at the end, support
vectors or predictions; :func:`answer` runs on the worker and returns what the client may see.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from threading import Lock
from typing import Any, NamedTuple, NoReturn

import numpy as np

from .._data.labels import Samples
from .._data.numbers import Targets
from .._data.reading import PathReader, Reading, Training
from .._data.tasks import array_of
from .._fitting.models import Fit, TaskModel, as_samples, make_models
from .._fitting.tracing import Parts, TaskData, make_gram
from .._tools.typing import AnyArray, Array, IntArray
from ..kernels._fitted import (
    Evaluator,
    FittedBank,
    Function,
    Standardizer,
    Statistics,
    exact_sums,
    measure,
    typical_distances,
)
from ..protocols import Promises
from ..sweep import Decisions, Sweep

PAIRS_AT_A_TIME = 4e6  # pairs of samples to process between two checks whether the client still wants the answer

_stopped: set[str] = set()  # requests of this process that the client has cancelled


class Stopped(RuntimeError):
    """The client has cancelled the request."""


class NotHere(OSError):
    """The worker does not have the shard, or no longer."""


def stop(*requests: str) -> None:
    """Stop the requests at the next task."""
    _stopped.update(requests)


def answer(shard: Shard, request: str, question: str, *details: Any) -> Any:
    """The answer of a shard: calls the method ``question`` with a check that raises if the request is cancelled."""
    check = partial(_check, request)
    with shard.lock:  # a cancelled request may still be busy with its last task
        check()
        return getattr(shard, question)(check, *details)


async def reply(key: str, request: str, question: str, details: tuple[Any, ...], dask_worker: Any) -> Any:
    """The answer of the shard with that key, from a thread of the worker, without a scheduler task."""
    shard = dask_worker.data.get(key)
    if shard is None:
        raise NotHere("The worker no longer has these samples.")
    work = partial(answer, shard, request, question, *details)
    try:
        return await asyncio.get_running_loop().run_in_executor(dask_worker.executor, work)
    except OSError as error:  # the client would read these as a broken connection
        raise RuntimeError(f"{type(error).__name__}: {error}") from error


def occupy(shard: Shard) -> None:
    """Wait until the shard has answered: a task that tells the scheduler that the worker is busy."""
    with shard.lock:
        pass


def load(request: str, reading: Reading, given: Sequence[tuple[Hashable, Any, IntArray | None]]) -> Shard:
    """A shard with the data of the given sites."""
    return Shard(reading, given, partial(_check, request))


def _check(request: str) -> None:
    if request in _stopped:
        raise Stopped(request)


class SiteInfo(NamedTuple):
    """What the client learns about a site after its samples are read.

    tasks: name and classes of each task; n_counting: number of samples with positive weight of each task; targets:
    centre, spread and deviation of each task for regression.
    """

    name: Hashable
    n_samples: int
    n_features: int
    feature_names: list[str] | None
    features_seen: tuple[int, AnyArray | None]
    tasks: list[tuple[str, tuple[Any, ...]]]
    task_sizes: Array
    n_counting: list[int]
    targets: tuple[Array, Array, Array] | None


class Support(NamedTuple):
    """Support vectors of the tasks of a shard, and the duals (n_tasks, n_support) and intercepts at several points."""

    rows: IntArray
    vectors: Array
    duals: list[Any]
    intercepts: list[Array]
    diagonals: list[float]


class Point(NamedTuple):
    """The client's handle of a sweep, and what is needed to repeat it if its duals are lost."""

    handle: int
    theta: Array
    rtol: float


@dataclass(frozen=True)
class _SiteData:
    training: Training
    reader: PathReader
    rows: slice  # in the shard
    tasks: slice


class Shard:
    """The samples of some sites, read and checked.

    Parameters
    ----------
    reading : Reading
        How to read the data of the sites.
    given : list of (name, data, rows)
        The name of a site, its samples (X, y) or (X, y, sample_weight) or a function that loads them, and the numbers
        of its rows among those of all sites (None if not known yet).
    """

    def __init__(
        self,
        reading: Reading,
        given: Sequence[tuple[Hashable, Any, IntArray | None]],
        check: Callable[[], None],
    ):
        self.lock = Lock()
        read = []
        for name, data, _ in given:
            check()
            read.append((name, *_read(reading, name, data)))
        self.names = [name for name, _, _ in read]
        sizes = [len(training.samples) for _, training, _ in read]
        first = np.concatenate([[0], np.cumsum(sizes)]).tolist()
        task = np.concatenate([[0], np.cumsum([len(training.tasks) for _, training, _ in read])]).tolist()
        if len({training.samples.data.shape[1] for _, training, _ in read}) == 1:
            data = np.concatenate([training.samples.data for _, training, _ in read])
        else:  # the client raises an error about it
            data = np.empty((first[-1], 0))
        self.data = data
        self.sites: dict[Hashable, _SiteData] = {}
        for k, (name, training, own) in enumerate(read):
            rows = slice(first[k], first[k + 1])
            samples = replace(training.samples, data=data[rows]) if data.size else training.samples
            site = _SiteData(replace(training, samples=samples), own, rows, slice(task[k], task[k + 1]))
            self.sites[name] = site
        self.statistics = Statistics(data, np.concatenate([training.sample_weight for _, training, _ in read]))
        places = [np.arange(n) if rows is None else rows for (_, _, rows), n in zip(given, sizes, strict=True)]
        self.rows = np.concatenate(places)
        self._columns: tuple[Array, Array] | None = None
        self.machines: list[Any] = []
        self.sweeps: dict[int, list[Sweep]] = {}

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"The samples of {self.names[0]!r} stay on their worker; a shard cannot be sent or stored.")

    @property
    def _trainings(self) -> list[Training]:
        return [site.training for site in self.sites.values()]

    def place(self, check: Callable[[], None], first: Mapping[Hashable, int]) -> None:
        """Set the position of the rows of each site among those of all sites."""
        for name, site in self.sites.items():
            self.rows[site.rows] = first[name] + np.arange(len(site.training.samples))

    # -------------------------------------------------------------------------------------------- statistics
    def describe(self, check: Callable[[], None]) -> list[SiteInfo]:
        return [_describe(name, site) for name, site in self.sites.items()]

    def weights(self, check: Callable[[], None]) -> tuple[int, float]:
        """Number of samples with positive weight, and the largest weight."""
        return len(self.statistics.X), float(self.statistics.weight.max())

    def total_weight(self, check: Callable[[], None], heaviest: float, n_samples: int) -> Array:
        return exact_sums(self.statistics.weight[:, None], np.array([heaviest]), n_samples)

    def largest(self, check: Callable[[], None], function: Function) -> Array:
        return self.statistics.largest(function)

    def sums(self, check: Callable[[], None], function: Function, bound: Array, n_samples: int) -> Array:
        return self.statistics.sums(function, bound, n_samples)

    def weight_up_to(self, check: Callable[[], None], values: Array) -> Array:
        """The weight of the samples at or below the given values of each column, (n_values, n_columns)."""
        if self._columns is None:
            order = np.argsort(self.statistics.X, axis=0, kind="stable")
            below = np.cumsum(self.statistics.weight[order], axis=0)
            zeros = np.zeros((1, below.shape[1]))
            self._columns = np.take_along_axis(self.statistics.X, order, axis=0), np.concatenate([zeros, below])
        columns, below = self._columns
        return np.stack(
            [below[np.searchsorted(columns[:, k], values[:, k], side="right"), k] for k in range(values.shape[1])],
            axis=1,
        )

    def forget_columns(self, check: Callable[[], None]) -> None:
        self._columns = None

    def samples_at(self, check: Callable[[], None], rows: IntArray) -> tuple[IntArray, Array, Array]:
        """The given samples (numbered over all sites) that are on this worker: numbers, features and weights."""
        weight = np.concatenate([training.sample_weight for training in self._trainings])
        here = np.flatnonzero(np.isin(self.rows, rows))
        return self.rows[here], self.data[here], weight[here]

    def counting_rows(self, check: Callable[[], None]) -> IntArray:
        """The numbers, over all sites, of the samples with positive weight."""
        return self.rows[np.concatenate([training.sample_weight for training in self._trainings]) > 0]

    def distances_within(
        self, check: Callable[[], None], standardizer: Standardizer | None, columns: IntArray
    ) -> Array:
        """Σ n, Σ n log d_2 and Σ n log d_1 over the sites, where d are the typical distances within a site."""
        total = np.zeros(3)
        for training in self._trainings:
            check()
            X = training.samples.data if standardizer is None else standardizer(training.samples.data)
            n = float(training.sample_weight.sum())
            distances = typical_distances(np.ascontiguousarray(X[:, columns]), training.sample_weight)
            total += n * np.array([1.0, *np.log(distances)])
        return total

    def measure(self, check: Callable[[], None], evaluator: Evaluator, drawn: Mapping[int, IntArray]) -> Array:
        """Variance and effective rank of every kernel on the drawn samples of each task, (n_tasks, 2, n_kernels)."""
        out = np.empty((len(drawn), 2, evaluator.n_kernels))
        tasks = [(training, t) for training in self._trainings for t in range(len(training.tasks))]
        for k, (t, some) in enumerate(drawn.items()):
            check()
            training, own = tasks[t]
            rows, weight = training.tasks[own].rows, training.weights[own]
            there = np.flatnonzero(weight > 0)[some]
            variance, rank, _ = measure(evaluator, training.samples.data, [(rows[there], weight[there])], len(there))
            out[k] = variance, rank
        return out

    # ------------------------------------------------------------------------------------------------- tasks
    def prepare(self, check: Callable[[], None], bank: FittedBank, C: float, parts: Parts) -> Promises:
        """Create the machines of the tasks, each with so few sites that a sweep does not take long; what they promise.

        All are made in the same way, so the first promises what the others do.
        """
        sizes = np.array([float(len(training.samples)) ** 2 for training in self._trainings])
        chunk = np.cumsum(sizes) // PAIRS_AT_A_TIME
        edges = [0, *(np.flatnonzero(np.diff(chunk)) + 1).tolist(), len(sizes)]
        self.bank, self.machines, self.sweeps = bank, [], {}
        for a, b in pairwise(edges):
            check()
            own = replace(bank, cache_bytes=bank.cache_bytes * sizes[a:b].sum() / sizes.sum())
            self.machines.append(self._machine(own, list(self.sites.values())[a:b], C, parts))
        return self.machines[0].promises

    def _machine(self, bank: FittedBank, sites: list[_SiteData], C: float, parts: Parts) -> Any:
        start = sites[0].rows.start
        tasks = [
            replace(task, rows=task.rows + site.rows.start - start) for site in sites for task in site.training.tasks
        ]
        bounds = [bound for site in sites for bound in site.training.bounds(C)]
        scale = None
        if parts.task_scale == "samples":
            scale = 1 / np.concatenate([site.training.task_sizes for site in sites])
        data = self.data[start : sites[-1].rows.stop]
        gram = make_gram(bank, data, tasks, parts.n_jobs)
        return TaskData.of(gram, tasks, bounds, scale, parts.make).machine()

    def sweep(
        self, check: Callable[[], None], theta: Array, warm: int | None, rtol: float, new: int, dropped: list[int]
    ) -> Array:
        """Linear parts, forms, lower and upper bounds of all tasks, one row each: (n_tasks, n_kernels + 3)."""
        for handle in dropped:
            self.sweeps.pop(handle, None)
        # after the loss of a worker there is no warm start, and the tasks start cold
        starts = [sweep.warm for sweep in self.sweeps[warm]] if warm in self.sweeps else [None] * len(self.machines)
        made = []
        for machine, start in zip(self.machines, starts, strict=True):
            check()
            made.append(machine.sweep(theta, start, rtol))
        self.sweeps[new] = made
        return np.concatenate(
            [np.column_stack([sweep.linear, sweep.forms, sweep.lower, sweep.upper]) for sweep in made]
        )

    def decisions(self, check: Callable[[], None], point: Point) -> Decisions:
        """The functions of all tasks that result from a sweep."""
        if point.handle not in self.sweeps:
            self.sweep(check, point.theta, None, point.rtol, point.handle, [])
        found = [machine.decisions(s) for machine, s in zip(self.machines, self.sweeps[point.handle], strict=True)]
        duals = [dual for decisions in found for dual in decisions.dual]
        return Decisions(duals, np.concatenate([one.intercepts for one in found]), found[0].diagonal)

    # ------------------------------------------------------------------------------------------------ models
    def support(self, check: Callable[[], None], points: Sequence[Point]) -> Support:
        """Support vectors, and the functions that use them, at several points."""
        fits = [Fit(self.bank, point.theta, self.decisions(check, point)) for point in points]
        tasks = [
            replace(task, rows=task.rows + site.rows.start)
            for site in self.sites.values()
            for task in site.training.tasks
        ]
        models = make_models(self.data, tasks, self._trainings[0].labelling, fits)
        support = models[0].support
        assert support.vectors is not None
        duals = [model.dual for model in models]
        rows = self.rows[support.rows]
        return Support(rows, support.vectors, duals, [m.intercepts for m in models], [m.diagonal for m in models])

    def apply(
        self, check: Callable[[], None], point: Point, what: str, samples: Mapping[Hashable, Any]
    ) -> dict[Hashable, Any]:
        """Predictions, decisions or scores of the models of some sites for samples at these sites."""
        everyone = self.decisions(check, point)
        out = {}
        for name, given in samples.items():
            check()
            site = self.sites[name]
            own = Decisions(everyone.dual[site.tasks], everyone.intercepts[site.tasks], everyone.diagonal)
            data = site.training.samples.data
            fit = Fit(self.bank, point.theta, own)
            model = make_models(data, site.training.tasks, site.training.labelling, [fit])[0]
            out[name] = _applied(model, what, name, given, site)
        return out


def _read(reading: Reading, name: Hashable, data: Any) -> tuple[Training, PathReader]:
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
        return reader.read_data(X, y, tasks=tasks, sample_weight=rest[0] if rest else None, part=True), reader
    except ValueError as error:
        raise ValueError(f"Site {name!r}: {error}") from error


def _describe(name: Hashable, site: _SiteData) -> SiteInfo:
    training, reader = site.training, site.reader
    labelling = training.labelling
    numbers = isinstance(labelling, Targets)
    return SiteInfo(
        name,
        len(training.samples),
        training.samples.data.shape[1],
        training.samples.names,
        (reader.n_features_in_, getattr(reader, "feature_names_in_", None)),
        [(task.name, task.classes) for task in training.tasks],
        training.task_sizes,
        [int((weight > 0).sum()) for weight in training.weights],
        (labelling.centre, labelling.spread, labelling.deviation) if numbers else None,
    )


def _applied(model: TaskModel, what: str, name: Hashable, given: Any, site: _SiteData) -> Any:
    """Apply a model to samples: X, or (X, y) for a score, or a function that loads them."""
    given = given() if callable(given) else given
    X, y = given if what == "score" else (given, None)
    features = np.asarray(X[site.training.samples.names] if hasattr(X, "columns") else X, dtype=np.float64)
    n_features = site.training.samples.data.shape[1]
    if features.ndim != 2 or features.shape[1] != n_features:
        raise ValueError(f"Site {name!r} must have samples with {n_features} features, got shape {features.shape}.")
    samples: Samples = as_samples(features, array_of([name] * len(features)))
    if what == "score":
        return model.score(samples, y)
    if what == "predict":
        return model.predict(samples)
    decisions = model.decided(samples)
    return model.tasks.scores(decisions)
