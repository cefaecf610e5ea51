"""Manage shards on the workers of a Dask cluster: place them, send them requests, and replace lost workers."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Container, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass
from inspect import signature
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

from .._tools.checks import shown
from ._inputs import Batch, Supply, WorkerName
from ._shard import Details, NotHere, Request, Shard, cancel, occupy, reply

if TYPE_CHECKING:
    from distributed import Client, Future

POLL = 0.5  # seconds of silence after which the client checks whether a worker is gone
SHOWN = 2.0  # seconds after which the scheduler learns that workers are busy with a request
MOST_LOSSES = 3  # limit on lost workers per batch during one request
GIVE_UP = 1.0  # seconds that the client waits to tell workers about an interrupt
_NO_CLIENT = "There is no Dask client: create one with `client = distributed.Client(…)`, or pass client=."

Waiting: TypeAlias = dict[int, asyncio.Future[Any]]  # for the answer of each shard


def current_client(client: Client | None = None) -> Client:
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


@dataclass
class PlacedShard:
    """A batch on a worker: where it is, the future of its shard, and whether that has gone through all changes."""

    batch: Batch
    address: str
    future: Future
    ready: bool = False

    def is_gone(self, there: Container[str]) -> bool:
        return self.address not in there or self.future.status in ("lost", "cancelled")


class Workers:
    """Shards on the workers of a cluster. Each request goes to every worker in one message, and so does each answer.

    The workers start to load the samples of the supply at once; patience: seconds to wait for a lost worker that no
    other worker can replace.
    """

    def __init__(self, client: Client, supply: Supply, patience: float = 60.0):
        self.client, self.supply, self.patience = client, supply, patience
        self._name, self._number = uuid.uuid4().hex[:8], count()
        self._history: list[tuple[str, Details]] = []  # all changes of the shards, to rebuild them
        self.shards: list[PlacedShard] = []
        everyone = self._awaited(list, f"No worker appeared within {patience:g} seconds; start one.")
        try:
            for batch in supply.batches(len(everyone)):
                taken = {shard.address for shard in self.shards}
                self.shards.append(self._load(batch, sorted(everyone, key=lambda address: address in taken)))
        except BaseException:
            self._cancel()
            raise

    # ------------------------------------------------------------------------------------------------- questions
    def ask(
        self, question: str, *details: Any, each: Sequence[Details] | None = None, futures: bool = False
    ) -> list[Any]:
        """The answers of all shards; ``each`` has separate details for each shard.

        Requests bypass the scheduler's task graph, which would take longer than the answer if tasks are small. With
        ``futures`` among the details they must go through it.
        """
        own = [(*details, *more) for more in each] if each is not None else [details] * len(self.shards)
        request, began = Request(self._name, next(self._number)), time.monotonic()
        waiting: Waiting = {}
        busy: list[Future] = []  # they tell the scheduler that workers are busy
        losses: Counter[int] = Counter()

        def asking(k: int) -> Awaitable[Any]:
            return self._answer(self.shards[k], request, question, own[k], futures)

        to_ask = list(range(len(self.shards)))
        try:
            while not self.client.sync(_wait_a_moment, waiting, to_ask, asking):
                to_ask = [k for k, answer in waiting.items() if self._recover(k, answer, losses)]
                if time.monotonic() - began > SHOWN and not (to_ask or busy or futures):
                    busy = [self._submit(occupy, shard, question) for shard in self.shards]
        except BaseException:
            self._cancel(waiting, busy)
            raise
        return [waiting[k].result() for k in range(len(self.shards))]

    def advance(self, question: str, *details: Any) -> list[Any]:
        """Change all shards, and return their answers; a rebuilt shard repeats the changes."""
        answers = self.ask(question, *details)
        self._history.append((question, details))
        return answers

    async def _answer(
        self, shard: PlacedShard, request: Request, question: str, details: Details, futures: bool
    ) -> Any:
        """The answer of one shard; a rebuilt shard first repeats the changes of the others."""
        found, there = None, shard.ready
        try:
            for asked, more in [*([] if shard.ready else self._history), (question, details)]:
                if futures or not there:  # only the scheduler knows when the shard is loaded
                    found = await self._submit(Shard.answer, shard, asked, request, asked, *more)
                    there = True
                else:
                    where, key = shard.address, shard.future.key
                    replies = self.client.run(reply, key, request, asked, more, workers=[where], asynchronous=True)
                    found = (await replies)[where]
        except (CancelledError, asyncio.CancelledError) as error:
            if asyncio.current_task().cancelling():  # type: ignore[union-attr]
                raise
            raise NotHere("The samples were lost on their way to a worker.") from error
        shard.ready = True
        return found

    def _submit(self, function: Callable[..., Any], shard: PlacedShard, name: str, *details: Any) -> Future:
        # a new key each time, because the scheduler may still know the request to a lost worker
        key = f"{name}-{shard.batch.label}-{self._name}-{next(self._number)}"
        return self.client.submit(function, shard.future, *details, workers=[shard.address], pure=False, key=key)

    def _cancel(self, waiting: Waiting | None = None, busy: Sequence[Future] = ()) -> None:
        """Stop all work that no one waits for."""
        with suppress(Exception):
            last = Request(self._name, next(self._number))
            self.client.sync(_cancel_all, self.client, waiting or {}, busy, last)

    # --------------------------------------------------------------------------------------------------- workers
    def _recover(self, k: int, answer: asyncio.Future[Any], losses: Counter[int]) -> bool:
        """Whether a shard without an answer is lost, or its connection; a shard that is gone is built again.

        It moves to the worker with the least work, unless it is bound to one.
        """
        shard, error = self.shards[k], answer.exception() if answer.done() else None
        gone = isinstance(error, NotHere) or shard.is_gone(self.client.nthreads())
        if error is None and (answer.done() or not gone):
            return False
        losses[k] += 1
        if losses[k] > MOST_LOSSES:
            raise RuntimeError(
                f"The worker of {shard.batch.label!r} was lost {losses[k]} times in one request; its tasks may need "
                "more memory than a worker has."
            ) from error
        if gone:
            work = dict.fromkeys(self._names(), 0.0)
            for other in self.shards:
                if other is not shard and other.address in work:
                    work[other.address] += other.batch.cost
            self.shards[k] = self._load(shard.batch, sorted(work, key=lambda address: work[address]))
        return True

    def _load(self, batch: Batch, preferred: Sequence[str]) -> PlacedShard:
        """Load a batch on the worker that it is bound to, or else on the first of the preferred ones."""

        def suitable(workers: dict[str, WorkerName]) -> list[str]:
            if batch.worker is None:
                return [address for address in preferred if address in workers] or list(workers)
            return [address for address, name in workers.items() if batch.worker in (address, name, str(name))]

        missing = f"No worker appeared within {self.patience:g} seconds; start one."
        if batch.worker is not None:
            missing = (
                f"Worker {batch.worker!r}, the only one with the samples of {batch.label!r}, has been gone for "
                f"{self.patience:g} seconds; restart it under that name, or wait longer with patience=."
            )
        address = self._awaited(suitable, missing)[0]
        request = Request(self._name, next(self._number))
        key = f"load-{batch.label}-{self._name}-{request.number}"
        return PlacedShard(batch, address, self.supply.load(batch.names, request, address, key))

    def _names(self) -> dict[str, WorkerName]:
        """The name of each worker by its address."""
        # some versions list only five workers by default
        many = "n_workers" in signature(self.client.scheduler_info).parameters
        info = self.client.scheduler_info(**({"n_workers": -1} if many else {}))
        return {address: worker["name"] for address, worker in info["workers"].items()}

    def _awaited(self, suitable: Callable[[dict[str, WorkerName]], list[str]], missing: str) -> list[str]:
        """The addresses of suitable workers, as soon as there is one; raise if none appears in time."""
        deadline = time.monotonic() + self.patience
        while not (found := suitable(self._names())):
            if time.monotonic() > deadline:
                raise TimeoutError(missing)
            time.sleep(POLL)
        return found


async def _wait_a_moment(waiting: Waiting, to_ask: list[int], asking: Callable[[int], Awaitable[Any]]) -> bool:
    """Ask some shards; return whether all have answered after a moment."""
    for k in to_ask:
        if k in waiting:
            waiting[k].cancel()
        waiting[k] = asyncio.ensure_future(asking(k))
    done, others = await asyncio.wait(waiting.values(), timeout=POLL, return_when=asyncio.FIRST_EXCEPTION)
    errors = [error for one in done if (error := one.exception()) is not None]
    for error in errors:
        if not isinstance(error, OSError):
            raise error
    if errors:  # a connection broke; give the other waits time to notice
        await asyncio.sleep(POLL)
    return not (errors or others)


async def _cancel_all(client: Client, waiting: Waiting, busy: Sequence[Future], last: Request) -> None:
    for fetching in waiting.values():
        fetching.cancel()

    async def all_of_it() -> None:
        await client.run(cancel, last, on_error="ignore", asynchronous=True)
        await client.cancel(busy, asynchronous=True)

    await asyncio.wait_for(all_of_it(), GIVE_UP)
