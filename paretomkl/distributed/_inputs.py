"""Samples for the workers of a cluster: from sites, or from Dask arrays and frames, whose rows are grouped by task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from .._data.reading import NO_Y, Reading, take_rows
from .._data.tasks import as_sources, rows_by_label, task_column_of
from .._tools.checks import shown
from .._tools.typing import IntArray
from ._shard import ByName, Request, Shard, load

if TYPE_CHECKING:
    from distributed import Client, Future

WorkerName: TypeAlias = str | int


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
    load: Callable[[], tuple[Any, ...]] | None = None
    worker: WorkerName | None = None

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


@dataclass(frozen=True)
class Batch:
    """Sites for one worker; ``worker`` is its name if no other worker may have them."""

    names: list[Hashable]
    cost: float
    worker: WorkerName | None = None

    @property
    def label(self) -> str:
        """Name on the dashboard."""
        more = len(self.names) - 1
        return f"{self.names[0]}" + (f"+{more}" if more else "")


@dataclass(frozen=True)
class Supply:
    """The source of the samples of sites.

    costs: of solving the tasks of each site, in the order of the sites; bound: the only worker that may have a site, if
    there is one; load: makes a shard of some sites at an address under a key; loaded: called when all shards are
    loaded; private: whether samples must not leave their workers; numbered: whether rows have numbers when they are
    loaded, else they are numbered in the order of the sites.
    """

    reading: Reading
    costs: dict[Hashable, float]
    bound: dict[Hashable, WorkerName]
    load: Callable[[list[Hashable], Request, str, str], Future]
    loaded: Callable[[], None]
    private: bool
    numbered: bool

    def batches(self, n_workers: int) -> list[Batch]:
        """Batches of about equal cost, at most one per worker, and one for each worker to which sites are bound."""
        total = np.zeros(max(1, n_workers))
        names: dict[tuple[WorkerName | None, int], list[Hashable]] = {}
        place: dict[Hashable, tuple[WorkerName | None, int]] = {
            name: (worker, 0) for name, worker in self.bound.items()
        }
        free = [name for name in self.costs if name not in self.bound]
        for name in sorted(free, key=lambda name: -self.costs[name]):
            k = int(total.argmin())
            place[name], total[k] = (None, k), total[k] + self.costs[name]
        for name in self.costs:  # those of a batch keep their order
            names.setdefault(place[name], []).append(name)
        return [Batch(own, sum(self.costs[name] for name in own), worker) for (worker, _), own in names.items()]


def supply_of_sites(client: Client, reading: Reading, sites: Sequence[Site]) -> Supply:
    """Sites given as a list."""
    sizes = np.array([site.size for site in sites])
    known = sizes[~np.isnan(sizes)]
    costs = np.where(np.isnan(sizes), known.mean() if len(known) else 1.0, sizes) ** 2
    bound = {site.name: site.worker for site in sites if site.worker is not None}
    of_name = {site.name: site for site in sites}

    def load_some(names: list[Hashable], request: Request, address: str, key: str) -> Future:
        some = [of_name[name] for name in names]
        here = {site.name: tuple(site.data) for site in some if isinstance(site.data, tuple | list)}
        # one message for all samples of the batch, directly to its worker
        sent = client.scatter([here], workers=[address], hash=False)[0] if here else {}
        others = {site.name: site.load or site.data for site in some if site.name not in here}
        return client.submit(_load_sites, request, reading, names, sent, others, workers=[address], pure=False, key=key)

    private = any(site.load is not None for site in sites)
    return Supply(
        reading, dict(zip(of_name, costs.tolist(), strict=True)), bound, load_some, lambda: None, private, False
    )


def _load_sites(request: Request, reading: Reading, names: list[Hashable], sent: ByName, others: ByName) -> Shard:
    return load(request, reading, [(name, sent[name] if name in sent else others[name], None) for name in names])


# ------------------------------------------------------------------------------------------------ Dask collections
class TaskRows(NamedTuple):
    """The rows of one task in a block: their numbers, and what the block has there."""

    rows: IntArray
    X: Any
    y: Any
    weight: Any


def supply_of_collection(client: Client, reading: Reading, X: Any, y: Any, tasks: Any, sample_weight: Any) -> Supply:
    """The tasks of a Dask array or frame, named by its ``task_column`` or by ``tasks``."""
    from dask import delayed

    if (tasks is None) == (reading.task_column is None):
        if tasks is not None:
            raise ValueError("Pass task_column or tasks=, not both.")
        raise ValueError(
            "A Dask collection needs tasks to distribute over the workers: pass task_column or tasks=, or use "
            "X.compute() for a single task."
        )
    if y is None:
        raise ValueError(NO_Y)
    split = delayed(_by_task, pure=False)
    lazy = [
        split(reading.task_column, **parts) for parts in _aligned(X=X, y=y, tasks=tasks, sample_weight=sample_weight)
    ]
    blocks = client.compute(lazy)
    try:
        found: list[dict[Hashable, int]] = client.gather(client.map(_counts, blocks, pure=False))
        if not any(found):
            raise ValueError("X has no rows: all of its partitions are empty.")
    except BaseException:
        client.cancel(blocks)  # no one needs them any more
        raise
    counts = sum(map(Counter, found), Counter())
    first = np.cumsum([0, *(sum(of_block.values()) for of_block in found)]).tolist()

    def load_some(names: list[Hashable], request: Request, address: str, key: str) -> Future:
        pieces = [
            client.submit(_pick, block, names, start, pure=False)
            for block, start in zip(blocks or client.compute(lazy), first, strict=False)
        ]
        return client.submit(_load_pieces, request, reading, names, pieces, workers=[address], pure=False, key=key)

    # when the rows are in the shards, the blocks are released; if a worker is lost, they are computed again
    return Supply(
        reading, {name: float(n) ** 2 for name, n in counts.items()}, {}, load_some, blocks.clear, False, True
    )


def _aligned(X: Any, **others: Any) -> list[dict[str, Any]]:
    """Blocks of X, each with the same rows of the others, unless these are None."""
    sizes = X.chunks[0] if hasattr(X, "chunks") and not np.isnan(X.chunks[0]).any() else None
    given = {name: values for name, values in {"X": X, **others}.items() if values is not None}
    columns = {name: _blocks(values, name, sizes) for name, values in given.items()}
    for name, column in columns.items():
        if len(column) != len(columns["X"]):
            raise ValueError(f"{name} must have as many partitions as X ({len(columns['X'])}), got {len(column)}.")
    return [dict(zip(columns, parts, strict=True)) for parts in zip(*columns.values(), strict=True)]


def _blocks(values: Any, name: str, sizes: tuple[int, ...] | None) -> list[Any]:
    """The blocks of rows of a collection, or of an array in memory if the block sizes of X are known."""
    if hasattr(values, "__dask_graph__"):
        if hasattr(values, "chunks"):
            values = values.rechunk(({} if sizes is None else {0: sizes}) | ({1: -1} if values.ndim == 2 else {}))
        return list(np.ravel(values.to_delayed()))
    if sizes is None:
        raise ValueError(f"{name} must be a Dask collection with the partitions of X, got {type(values).__name__}.")
    values = np.asarray(values)
    if len(values) != sum(sizes):
        raise ValueError(f"X and {name} must have one row per sample: X has {sum(sizes)}, {name} has {len(values)}.")
    return np.split(values, np.cumsum(sizes)[:-1])


def _by_task(column: Any, X: Any, y: Any, tasks: Any = None, sample_weight: Any = None) -> dict[Hashable, TaskRows]:
    """The part of each task in a block; a filter may have left the block empty."""
    for name, values in (("y", y), ("tasks", tasks), ("sample_weight", sample_weight)):
        if values is not None and len(values) != len(X):
            raise ValueError(f"A partition of X has {len(X)} rows, but the partition of {name} has {len(values)}.")
    if len(X) == 0:
        return {}
    sources = task_column_of(X, column) if tasks is None else as_sources(tasks, len(X))
    assert sources is not None
    return {
        source: TaskRows(rows, *(take_rows(values, rows) for values in (X, y, sample_weight)))
        for source, rows in rows_by_label(sources).items()
    }


def _counts(block: dict[Hashable, TaskRows]) -> dict[Hashable, int]:
    return {source: len(part.rows) for source, part in block.items()}


def _pick(block: dict[Hashable, TaskRows], names: list[Hashable], first: int) -> dict[Hashable, TaskRows]:
    """The parts of the given tasks, with the numbers of their rows in the collection."""
    return {name: part._replace(rows=first + part.rows) for name in names if (part := block.get(name)) is not None}


def _stack(parts: tuple[Any, ...]) -> Any:
    if hasattr(parts[0], "iloc"):
        import pandas as pd

        return pd.concat(parts, ignore_index=True)
    return np.concatenate([np.asarray(part) for part in parts])


def _load_pieces(
    request: Request, reading: Reading, names: list[Hashable], pieces: list[dict[Hashable, TaskRows]]
) -> Shard:
    given = []
    for name in names:
        rows, *columns = zip(*(piece[name] for piece in pieces if name in piece), strict=True)
        data = tuple(_stack(parts) for parts in columns if parts[0] is not None)
        given.append((name, data, np.concatenate(rows)))
    return load(request, reading, given)
