"""Manage shards on the workers of a Dask cluster: place them, send them requests, and replace lost workers."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Hashable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, field
from inspect import signature
from itertools import count
from typing import Any, Protocol

import numpy as np

from ._reading import PathReader
from ._shard import advance, answer, load, stop
from ._validation import shown

POLL = 0.5  # seconds of silence after which the client checks whether a worker is gone
MOST_LOSSES = 3  # limit on lost workers per batch during one request
GIVE_UP = 1.0  # seconds that the client waits to tell workers about an interrupt
_NO_CLIENT = "There is no Dask client: create one with `client = distributed.Client(…)`, or pass client=."


def current_client(client: Any = None) -> Any:
    """The given client, or the current one."""
    try:
        from distributed import Client, get_client
    except ImportError as error:
        raise ImportError("Computing on a cluster needs dask: pip install 'paretomkl[dask]'.") from error
    if client is None:
        try:
            client = get_client()
        except ValueError as error:
            raise ValueError(_NO_CLIENT) from error
    if not isinstance(client, Client):
        raise TypeError(f"client must be a distributed.Client, got {shown(client)}.")
    return client


@dataclass(frozen=True)
class Site:
    """The samples of one task (possibly with several classes), and where they are.

    Parameters
    ----------
    name : hashable
        Name of the task.
    data : tuple, Future or None, default=None
        ``(X, y)`` or ``(X, y, sample_weight)``, in memory or as a future of the cluster.
    load : callable, default=None
        Returns such a tuple. It runs on a worker, and its samples never leave that worker.
    worker : str or int, default=None
        Name (or address) of the only worker that may hold the samples; None allows any worker.

    Examples
    --------
    >>> import numpy as np
    >>> from paretomkl.distributed import Site
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> Site("north", data=(X, np.sign(X[:, 0]))).size
    20.0
    """

    name: Hashable
    data: Any = None
    load: Any = None
    worker: Any = None

    def __post_init__(self) -> None:
        if (self.data is None) == (self.load is None):
            raise ValueError(f"Site {self.name!r} needs either data= or load=.")
        if self.load is not None and not callable(self.load):
            raise ValueError(f"The loader of site {self.name!r} must be a function, got {shown(self.load)}.")

    @property
    def size(self) -> float:
        """Number of samples; NaN if unknown."""
        return float(len(self.data[0])) if isinstance(self.data, tuple | list) and len(self.data) else np.nan


@dataclass
class Batch:
    """Sites on one worker; ``worker`` is its name if no other worker may have them."""

    names: list[Hashable]
    cost: float
    worker: Any = None
    address: str = ""
    shard: Any = field(default=None, repr=False)

    @property
    def label(self) -> str:
        """Name on the dashboard."""
        more = len(self.names) - 1
        return f"{self.names[0]}" + (f"+{more}" if more else "")


class Supply(Protocol):
    """The source of the samples of the sites."""

    private: bool  # whether samples must not leave their workers
    places_rows: bool  # whether the rows of the sites are numbered in the order of the sites
    order: list[Any]  # the order of the sites

    def batches(self, client: Any) -> list[Batch]:
        """Group the sites into batches, at most one per worker (unless sites are bound to workers)."""

    def load(self, client: Any, batch: Batch, request: str, key: str) -> Any:
        """The future of a shard with the sites of the batch, on its worker."""

    def loaded(self) -> None:
        """Called when all shards are loaded."""


class SiteSupply:
    """Sites given as a list."""

    places_rows = True

    def __init__(self, reader: PathReader, sites: Sequence[Site]):
        check_sites(sites)
        self.reader = reader
        self.sites = {site.name: site for site in sites}
        self.order: list[Any] = list(self.sites)
        self.private = any(site.load is not None for site in sites)

    def batches(self, client: Any) -> list[Batch]:
        known = [site.size for site in self.sites.values() if site.size == site.size]
        usual = float(np.mean(known)) if known else 1.0
        costs = {name: (site.size if site.size == site.size else usual) ** 2 for name, site in self.sites.items()}
        bound: dict[Any, list[Hashable]] = {}
        for name, site in self.sites.items():
            if site.worker is not None:
                bound.setdefault(site.worker, []).append(name)
        made = [Batch(names, sum(costs[n] for n in names), worker) for worker, names in bound.items()]
        free = {name: costs[name] for name, site in self.sites.items() if site.worker is None}
        return made + divide(free, len(client.nthreads()))

    def load(self, client: Any, batch: Batch, request: str, key: str) -> Any:
        sites = [self.sites[name] for name in batch.names]
        here = {site.name: tuple(site.data) for site in sites if isinstance(site.data, tuple | list)}
        # one message for all samples of the batch, directly to its worker
        sent = client.scatter([here], workers=[batch.address], hash=False)[0] if here else {}
        others = [(site.name, site.load or site.data) for site in sites if site.name not in here]
        where = {"workers": [batch.address], "pure": False, "key": key}
        return client.submit(_load_sites, request, self.reader, batch.names, sent, dict(others), **where)

    def loaded(self) -> None:
        pass


def _load_sites(request: str, reader: PathReader, names: list[Hashable], sent: dict, others: dict) -> Any:
    return load(request, reader, [(name, sent[name] if name in sent else others[name], None) for name in names])


def check_sites(sites: Sequence[Site]) -> None:
    if not sites:
        raise ValueError("sites is empty; pass at least one Site.")
    for site in sites:
        if not isinstance(site, Site):
            raise TypeError(f"sites must be a list of Site objects, got {shown(site)} in it.")
    names = [site.name for site in sites]
    if len(set(names)) < len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise ValueError(f"Two sites are called {twice!r}; each needs a unique name.")


def divide(costs: dict[Hashable, float], n_parts: int) -> list[Batch]:
    """Parts of about equal cost; the names in each part keep their order."""
    total, names = np.zeros(max(1, n_parts)), [[] for _ in range(max(1, n_parts))]  # type: ignore[var-annotated]
    place: dict[Hashable, int] = {}
    for name in sorted(costs, key=lambda name: -costs[name]):
        place[name] = int(total.argmin())
        total[place[name]] += costs[name]
    for name in costs:
        names[place[name]].append(name)
    return [Batch(part, cost) for part, cost in zip(names, total.tolist(), strict=True) if part]


class Crew:
    """Shards on the workers of a cluster. Each request goes to every worker in one message, and so does each answer.

    Parameters
    ----------
    client : distributed.Client
    supply : Supply
    patience : float
        Seconds to wait for a lost worker that no other worker can replace.
    """

    def __init__(self, client: Any, supply: Supply, patience: float = 60.0):
        self.client, self.supply, self.patience = client, supply, patience
        self._session = uuid.uuid4().hex[:8]
        self._number = count()
        self._active: list[str] = []  # unanswered requests
        self._waiting: list[Any] = []  # waits for the answers to the last request
        self._history: list[tuple[str, list[tuple[Any, ...]]]] = []  # all changes of the shards, to rebuild them
        self._wait_for_workers()
        self.batches = supply.batches(client)
        free = list(self._workers())
        for batch in self.batches:
            taken = [other.address for other in self.batches]
            batch.address = self._place_for(batch, [address for address in free if address not in taken] or free)

    # ------------------------------------------------------------------------------------------------- questions
    def load(self) -> None:
        """Start loading the shards."""
        try:
            for batch in self.batches:
                batch.shard = self._load(batch)
        except BaseException:
            self._give_up([])
            raise

    def ask(self, question: str, *details: Any, each: Sequence[tuple[Any, ...]] | None = None) -> list[Any]:
        """The answers of all shards; ``each`` has separate details for each shard."""
        own = [(*details, *more) for more in each] if each is not None else [details] * len(self.batches)
        request = self._request()
        losses, futures = [0] * len(self.batches), []
        try:
            for batch, more in zip(self.batches, own, strict=True):
                futures.append(self._submit(answer, batch, request, question, more))
            self._waiting = self.client.sync(_begin, self.client, futures)
            while (answers := self._collected()) is None:
                lost = self._lost(futures)
                for k in lost:
                    losses[k] += 1
                    if losses[k] > MOST_LOSSES:
                        raise RuntimeError(
                            f"The worker of {self.batches[k].label!r} was lost {losses[k]} times in one request; its "
                            "tasks may need more memory than a worker has."
                        )
                    self._restore(self.batches[k])
                    futures[k] = self._submit(answer, self.batches[k], request, question, own[k])
                if lost:
                    self._waiting = self.client.sync(_begin, self.client, futures, self._waiting)
        except BaseException:
            self._give_up(futures)
            raise
        self._active = []
        return answers

    def advance(self, question: str, *details: Any, each: Sequence[tuple[Any, ...]] | None = None) -> None:
        """Change all shards; a rebuilt shard repeats the changes."""
        own = [(*details, *more) for more in each] if each is not None else [details] * len(self.batches)
        self._history.append((question, own))
        try:
            for batch, more in zip(self.batches, own, strict=True):
                batch.shard = self._submit(advance, batch, self._request(), question, more)
        except BaseException:
            self._give_up([])
            raise
        self.ask("ready")

    def _request(self) -> str:
        self._active.append(f"{self._session}-{next(self._number)}")
        return self._active[-1]

    def _submit(self, function: Any, batch: Batch, request: str, question: str, details: tuple[Any, ...]) -> Any:
        # a new key each time, because the scheduler may still know the request to a lost worker
        key = f"{question}-{batch.label}-{self._session}-{next(self._number)}"
        where = {"workers": [batch.address], "pure": False, "key": key}
        return self.client.submit(function, batch.shard, request, question, *details, **where)

    def _collected(self) -> list[Any] | None:
        """The results, or None if some are missing after a moment."""
        with suppress(CancelledError):  # the samples got lost on the way to a worker
            return self.client.sync(_look, self._waiting)
        time.sleep(POLL)
        return None

    def _give_up(self, futures: list[Any]) -> None:
        """Stop all work that no one waits for."""
        with suppress(Exception):
            self.client.sync(_stop_all, self.client, futures, self._active, self._waiting)
        self._active, self._waiting = [], []

    # --------------------------------------------------------------------------------------------------- workers
    def _workers(self) -> dict[str, Any]:
        """The name of each worker by its address."""
        # some versions list only five workers by default
        many = "n_workers" in signature(self.client.scheduler_info).parameters
        info = self.client.scheduler_info(**({"n_workers": -1} if many else {}))
        return {address: worker["name"] for address, worker in info["workers"].items()}

    def _lost(self, futures: list[Any]) -> list[int]:
        """The batches whose worker, shard or answer is lost."""
        there, gone = self.client.nthreads(), ("lost", "cancelled")
        return [
            k
            for k, (batch, future) in enumerate(zip(self.batches, futures, strict=True))
            if batch.address not in there or batch.shard.status in gone or future.status in gone
        ]

    def _restore(self, batch: Batch) -> None:
        """Rebuild the shard on the worker it is bound to, or else on the one with the least work."""
        work = dict.fromkeys(self._workers(), 0.0)
        for other in self.batches:
            if other is not batch and other.address in work:
                work[other.address] += other.cost
        batch.shard = None
        batch.address = self._place_for(batch, sorted(work, key=lambda address: work[address]))
        batch.shard = self._load(batch)
        k = self.batches.index(batch)
        for question, own in self._history:
            batch.shard = self._submit(advance, batch, self._request(), question, own[k])

    def _load(self, batch: Batch) -> Any:
        request = self._request()
        return self.supply.load(self.client, batch, request, f"load-{batch.label}-{request}")

    def _place_for(self, batch: Batch, free: Sequence[str]) -> str:
        """The address of the worker that the batch is bound to, or of the first free one; wait for it if it is gone."""
        deadline = time.monotonic() + self.patience
        while True:
            workers = self._workers()
            for address in free if batch.worker is None else workers:
                names = address, workers.get(address), str(workers.get(address))
                if address in workers and (batch.worker is None or batch.worker in names):
                    return address
            if time.monotonic() > deadline:
                break
            time.sleep(POLL)
            if batch.worker is None:
                free = list(self._workers())
        if batch.worker is None:
            raise TimeoutError(f"No worker appeared within {self.patience:g} seconds; start one.")
        raise TimeoutError(
            f"Worker {batch.worker!r}, the only one with the samples of {batch.label!r}, has been gone for "
            f"{self.patience:g} seconds; restart it under that name, or wait longer with patience=."
        )

    def _wait_for_workers(self) -> None:
        deadline = time.monotonic() + self.patience
        while not self.client.nthreads():
            if time.monotonic() > deadline:
                raise TimeoutError(f"No worker appeared within {self.patience:g} seconds; start one.")
            time.sleep(POLL)


async def _begin(client: Any, futures: list[Any], old: Sequence[Any] = ()) -> list[Any]:
    """Start fetching results; the task is wrapped in a list because a bare one would be awaited here."""
    for fetching in old:
        fetching.cancel()
    return [asyncio.ensure_future(client.gather(futures, asynchronous=True))]


async def _look(waiting: list[Any]) -> list[Any] | None:
    done, _ = await asyncio.wait(waiting, timeout=POLL)
    if not done:
        return None
    if waiting[0].cancelled():
        raise CancelledError
    return list(waiting[0].result())


async def _stop_all(client: Any, futures: list[Any], requests: list[str], waiting: list[Any]) -> None:
    for fetching in waiting:
        fetching.cancel()

    async def all_of_it() -> None:
        await client.run(stop, *requests, on_error="ignore", asynchronous=True)
        await client.cancel(futures, asynchronous=True)

    await asyncio.wait_for(all_of_it(), GIVE_UP)
