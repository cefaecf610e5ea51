"""Manage shards on the workers of a Dask cluster: place them, send them requests, and replace lost workers."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Container, Hashable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, field
from inspect import signature
from itertools import count
from typing import Any, Protocol

import numpy as np

from .._data.reading import Reading
from .._tools.checks import shown
from ._shard import NotHere, answer, load, occupy, reply, stop

POLL = 0.5  # seconds of silence after which the client checks whether a worker is gone
SHOWN = 2.0  # seconds after which the scheduler learns that workers are busy with a request
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
        if isinstance(self.name, np.number | np.str_):  # messages show names as Python writes them
            object.__setattr__(self, "name", self.name.item())
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
    ready: bool = False  # the shard is there, and has gone through all changes

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
    reading: Reading  # how the workers read the samples

    def batches(self, client: Any) -> list[Batch]:
        """Group the sites into batches, at most one per worker (unless sites are bound to workers)."""

    def load(self, client: Any, batch: Batch, request: str, key: str) -> Any:
        """The future of a shard with the sites of the batch, on its worker."""

    def loaded(self) -> None:
        """Called when all shards are loaded."""


class SiteSupply:
    """Sites given as a list."""

    places_rows = True

    def __init__(self, reading: Reading, sites: Sequence[Site]):
        check_sites(sites)
        self.reading = reading
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
        return client.submit(_load_sites, request, self.reading, batch.names, sent, dict(others), **where)

    def loaded(self) -> None:
        pass


def _load_sites(request: str, reading: Reading, names: list[Hashable], sent: dict, others: dict) -> Any:
    return load(request, reading, [(name, sent[name] if name in sent else others[name], None) for name in names])


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
        self._shown: list[Any] = []  # futures that mark workers as busy
        self._history: list[tuple[str, tuple[Any, ...]]] = []  # all changes of the shards, to rebuild them
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
            self._give_up()
            raise

    def ask(
        self, question: str, *details: Any, each: Sequence[tuple[Any, ...]] | None = None, futures: bool = False
    ) -> list[Any]:
        """The answers of all shards; ``each`` has separate details for each shard.

        Requests bypass the scheduler's task graph, which would take longer than the answer if tasks are small. With
        ``futures`` among the details they must go through it.
        """
        own = [(*details, *more) for more in each] if each is not None else [details] * len(self.batches)
        request, began = self._request(), time.monotonic()
        losses, to_ask = [0] * len(self.batches), list(range(len(self.batches)))
        try:
            while not self.client.sync(self._wait_for, to_ask, request, question, own, futures):
                to_ask = self._lost()
                for k in to_ask:
                    losses[k] += 1
                    self._recover(self.batches[k], self._waiting[k], losses[k])
                if time.monotonic() - began > SHOWN and not (to_ask or self._shown or futures):
                    self._shown = [self._submit(occupy, batch, question) for batch in self.batches]
            answers = [waiting.result() for waiting in self._waiting]
        except BaseException:
            self._give_up()
            raise
        self._active, self._waiting, self._shown = [], [], []
        return answers

    def advance(self, question: str, *details: Any) -> list[Any]:
        """Change all shards, and return their answers; a rebuilt shard repeats the changes."""
        answers = self.ask(question, *details)
        self._history.append((question, details))
        return answers

    async def _wait_for(self, to_ask: list[int], request: str, question: str, own: list[Any], futures: bool) -> bool:
        """Ask some shards; return whether all have answered after a moment."""
        for k in to_ask:
            waiting = asyncio.ensure_future(self._answer(self.batches[k], request, question, own[k], futures))
            if k < len(self._waiting):
                self._waiting[k].cancel()
                self._waiting[k] = waiting
            else:
                self._waiting.append(waiting)
        done, others = await asyncio.wait(self._waiting, timeout=POLL, return_when=asyncio.FIRST_EXCEPTION)
        errors = [error for one in done if (error := one.exception()) is not None]
        for error in errors:
            if not isinstance(error, OSError):
                raise error
        if errors:  # a connection broke; give the other waits time to notice
            await asyncio.sleep(POLL)
        return not (errors or others)

    async def _answer(self, batch: Batch, request: str, question: str, details: tuple[Any, ...], futures: bool) -> Any:
        """The answer of one shard; a rebuilt shard first repeats the changes of the others."""
        found, there = None, batch.ready
        try:
            for asked, more in [*([] if batch.ready else self._history), (question, details)]:
                if futures or not there:  # only the scheduler knows when the shard is loaded
                    found = await self._submit(answer, batch, asked, request, asked, *more)
                    there = True
                else:
                    where, key = batch.address, batch.shard.key
                    replies = self.client.run(reply, key, request, asked, more, workers=[where], asynchronous=True)
                    found = (await replies)[where]
        except (CancelledError, asyncio.CancelledError) as error:
            if asyncio.current_task().cancelling():  # type: ignore[union-attr]
                raise
            raise NotHere("The samples were lost on their way to a worker.") from error
        batch.ready = True
        return found

    def _request(self) -> str:
        self._active.append(f"{self._session}-{next(self._number)}")
        return self._active[-1]

    def _submit(self, function: Any, batch: Batch, name: str, *details: Any) -> Any:
        # a new key each time, because the scheduler may still know the request to a lost worker
        key = f"{name}-{batch.label}-{self._session}-{next(self._number)}"
        where = {"workers": [batch.address], "pure": False, "key": key}
        return self.client.submit(function, batch.shard, *details, **where)

    def _give_up(self) -> None:
        """Stop all work that no one waits for."""
        with suppress(Exception):
            self.client.sync(_stop_all, self.client, self._shown, self._active, self._waiting)
        self._active, self._waiting, self._shown = [], [], []

    # --------------------------------------------------------------------------------------------------- workers
    def _workers(self) -> dict[str, Any]:
        """The name of each worker by its address."""
        # some versions list only five workers by default
        many = "n_workers" in signature(self.client.scheduler_info).parameters
        info = self.client.scheduler_info(**({"n_workers": -1} if many else {}))
        return {address: worker["name"] for address, worker in info["workers"].items()}

    def _lost(self) -> list[int]:
        """The batches without an answer whose worker, shard or connection is lost."""
        there = self.client.nthreads()
        return [
            k
            for k, (batch, waiting) in enumerate(zip(self.batches, self._waiting, strict=True))
            if (waiting.exception() is not None if waiting.done() else _is_gone(batch, there))
        ]

    def _recover(self, batch: Batch, waiting: Any, n_losses: int) -> None:
        """Rebuild a shard if it is gone; if only the connection broke, there is nothing to do."""
        error = waiting.exception() if waiting.done() else None
        if n_losses > MOST_LOSSES:
            raise RuntimeError(
                f"The worker of {batch.label!r} was lost {n_losses} times in one request; its tasks may need more "
                "memory than a worker has."
            ) from error
        if isinstance(error, NotHere) or _is_gone(batch, self.client.nthreads()):
            self._restore(batch)

    def _restore(self, batch: Batch) -> None:
        """Rebuild the shard on the worker it is bound to, or else on the one with the least work."""
        work = dict.fromkeys(self._workers(), 0.0)
        for other in self.batches:
            if other is not batch and other.address in work:
                work[other.address] += other.cost
        batch.shard, batch.ready = None, False
        batch.address = self._place_for(batch, sorted(work, key=lambda address: work[address]))
        batch.shard = self._load(batch)

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


def _is_gone(batch: Batch, there: Container[str]) -> bool:
    return batch.address not in there or batch.shard.status in ("lost", "cancelled")


async def _stop_all(client: Any, futures: list[Any], requests: list[str], waiting: list[Any]) -> None:
    for fetching in waiting:
        fetching.cancel()

    async def all_of_it() -> None:
        await client.run(stop, *requests, on_error="ignore", asynchronous=True)
        await client.cancel(futures, asynchronous=True)

    await asyncio.wait_for(all_of_it(), GIVE_UP)
