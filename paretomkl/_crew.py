"""Work for the workers of a Dask cluster: where shards are, what they are asked, what to do when a worker is gone."""

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

from ._reading import PathReader
from ._shard import NotHere, answer, load, occupy, reply, stop
from ._validation import shown

POLL = 0.5  # seconds of silence after which the client looks whether a worker is gone
SHOWN = 2.0  # seconds after which the scheduler is shown that workers are busy with a question
MOST_LOSSES = 3  # of the worker of one batch while it works on one question
GIVE_UP = 1.0  # seconds that the client waits for workers to hear that it has been interrupted
_NO_CLIENT = "There is no Dask client: make one with `client = distributed.Client(…)`, or pass client=."


def current_client(client: Any = None) -> Any:
    """The client given, or the one that is there."""
    try:
        from distributed import Client, get_client
    except ImportError as error:
        raise ImportError("Work on a cluster needs dask: pip install 'paretomkl[dask]'.") from error
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
    """The samples of one task, or of one place that has several classes to tell apart, and where they are.

    Parameters
    ----------
    name : hashable
        What the task is called.
    data : tuple, Future or None, default=None
        ``(X, y)`` or ``(X, y, sample_weight)``, in memory or as a future of the cluster.
    load : callable, default=None
        Returns such a tuple. It runs at a worker, and its samples never leave it.
    worker : str or int, default=None
        The name (or the address) of the only worker that may hold the samples; any worker, unless given.

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
            raise ValueError(f"Site {self.name!r} needs data= or load=, one of them.")
        if self.load is not None and not callable(self.load):
            raise ValueError(f"The loader of site {self.name!r} must be a function, got {shown(self.load)}.")

    @property
    def size(self) -> float:
        """How many samples there are, where that is known."""
        return float(len(self.data[0])) if isinstance(self.data, tuple | list) and len(self.data) else np.nan


@dataclass
class Batch:
    """Sites that are at one worker: ``worker`` is its name where it may be no other."""

    names: list[Hashable]
    cost: float
    worker: Any = None
    address: str = ""
    shard: Any = field(default=None, repr=False)
    ready: bool = False  # the shard is there, and has gone through all changes

    @property
    def label(self) -> str:
        """What the dashboard calls it."""
        more = len(self.names) - 1
        return f"{self.names[0]}" + (f"+{more}" if more else "")


class Supply(Protocol):
    """Where the samples of the sites come from."""

    private: bool  # whether samples must not leave their workers
    places_rows: bool  # whether the rows of the sites are numbered in the order of the sites
    order: list[Any]  # of the sites

    def batches(self, client: Any) -> list[Batch]:
        """Which sites go together; at most one batch for each worker."""

    def load(self, client: Any, batch: Batch, request: str, key: str) -> Any:
        """The future of a shard with the sites of the batch, at its address."""

    def loaded(self) -> None:
        """All shards are there."""


class SiteSupply:
    """Sites that are given one by one."""

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
        # one message for all samples of the batch, straight to its worker
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
        raise ValueError("There is no site: give at least one.")
    for site in sites:
        if not isinstance(site, Site):
            raise TypeError(f"sites must be a list of Site objects, got {shown(site)} in it.")
    names = [site.name for site in sites]
    if len(set(names)) < len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise ValueError(f"Two sites are called {twice!r}; each needs a name of its own.")


def divide(costs: dict[Hashable, float], n_parts: int) -> list[Batch]:
    """Parts of about the same cost, the names in each in the order given."""
    total, names = np.zeros(max(1, n_parts)), [[] for _ in range(max(1, n_parts))]  # type: ignore[var-annotated]
    place: dict[Hashable, int] = {}
    for name in sorted(costs, key=lambda name: -costs[name]):
        place[name] = int(total.argmin())
        total[place[name]] += costs[name]
    for name in costs:
        names[place[name]].append(name)
    return [Batch(part, cost) for part, cost in zip(names, total.tolist(), strict=True) if part]


class Crew:
    """Shards at the workers of a cluster. Each question goes to every worker in one message, and so do the answers.

    Parameters
    ----------
    client : distributed.Client
    supply : Supply
    patience : float
        Seconds to wait for a worker that is gone and that no other can replace.
    """

    def __init__(self, client: Any, supply: Supply, patience: float = 60.0):
        self.client, self.supply, self.patience = client, supply, patience
        self._session = uuid.uuid4().hex[:8]
        self._number = count()
        self._active: list[str] = []  # requests that are not answered yet
        self._waiting: list[Any] = []  # for the answers to the last question
        self._shown: list[Any] = []  # futures that show workers as busy
        self._history: list[tuple[str, tuple[Any, ...]]] = []  # how shards came to be what they are
        self._wait_for_workers()
        self.batches = supply.batches(client)
        free = list(self._workers())
        for batch in self.batches:
            taken = [other.address for other in self.batches]
            batch.address = self._place_for(batch, [address for address in free if address not in taken] or free)

    # ------------------------------------------------------------------------------------------------- questions
    def load(self) -> None:
        """Begin to make the shards."""
        try:
            for batch in self.batches:
                batch.shard = self._load(batch)
        except BaseException:
            self._give_up()
            raise

    def ask(
        self, question: str, *details: Any, each: Sequence[tuple[Any, ...]] | None = None, futures: bool = False
    ) -> list[Any]:
        """The answers of all shards; ``each`` has details for one shard each.

        A question does not pass through the graph of the scheduler, which would take longer than the answer where tasks
        are small; it must where there are ``futures`` among the details.
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

    def advance(self, question: str, *details: Any) -> None:
        """Change all shards; a shard that is made again goes through the same changes."""
        self.ask(question, *details)
        self._history.append((question, details))

    async def _wait_for(self, to_ask: list[int], request: str, question: str, own: list[Any], futures: bool) -> bool:
        """Ask some shards; whether the answers of all are there after a moment."""
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
        if errors:  # a connection broke: let others notice it too
            await asyncio.sleep(POLL)
        return not (errors or others)

    async def _answer(self, batch: Batch, request: str, question: str, details: tuple[Any, ...], futures: bool) -> Any:
        """The answer of one shard; a shard that is new goes through the changes of the others before."""
        found, there = None, batch.ready
        try:
            for asked, more in [*([] if batch.ready else self._history), (question, details)]:
                if futures or not there:  # the scheduler knows when a shard is there
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
        # a key of its own each time: the scheduler may still know what was asked of a worker that is gone
        key = f"{name}-{batch.label}-{self._session}-{next(self._number)}"
        where = {"workers": [batch.address], "pure": False, "key": key}
        return self.client.submit(function, batch.shard, *details, **where)

    def _give_up(self) -> None:
        """Let no worker go on with what nobody waits for."""
        with suppress(Exception):
            self.client.sync(_stop_all, self.client, self._shown, self._active, self._waiting)
        self._active, self._waiting, self._shown = [], [], []

    # --------------------------------------------------------------------------------------------------- workers
    def _workers(self) -> dict[str, Any]:
        """The name of each worker by its address."""
        # some versions tell of five workers only, unless asked for all
        many = "n_workers" in signature(self.client.scheduler_info).parameters
        info = self.client.scheduler_info(**({"n_workers": -1} if many else {}))
        return {address: worker["name"] for address, worker in info["workers"].items()}

    def _lost(self) -> list[int]:
        """The batches without an answer whose worker, or whose shard, or the connection to them, is gone."""
        there = self.client.nthreads()
        return [
            k
            for k, (batch, waiting) in enumerate(zip(self.batches, self._waiting, strict=True))
            if (waiting.exception() is not None if waiting.done() else _is_gone(batch, there))
        ]

    def _recover(self, batch: Batch, waiting: Any, n_losses: int) -> None:
        """Make a shard again if it is gone; where no more than a connection broke, there is nothing to do."""
        error = waiting.exception() if waiting.done() else None
        if n_losses > MOST_LOSSES:
            raise RuntimeError(
                f"The worker of {batch.label!r} was lost {n_losses} times in one round: its tasks may need more memory "
                "than a worker has."
            ) from error
        if isinstance(error, NotHere) or _is_gone(batch, self.client.nthreads()):
            self._restore(batch)

    def _restore(self, batch: Batch) -> None:
        """Make the shard again: at the worker that must have it, or else at the one with least to do."""
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
        """The address of the worker that the batch must have, or the first free one; wait for it where it is gone."""
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
            raise TimeoutError(f"No worker has been there for {self.patience:g} seconds; start one.")
        raise TimeoutError(
            f"Worker {batch.worker!r}, which alone has the samples of {batch.label!r}, has been gone for "
            f"{self.patience:g} seconds; start it again under that name, or wait longer with patience=."
        )

    def _wait_for_workers(self) -> None:
        deadline = time.monotonic() + self.patience
        while not self.client.nthreads():
            if time.monotonic() > deadline:
                raise TimeoutError(f"No worker has been there for {self.patience:g} seconds; start one.")
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
