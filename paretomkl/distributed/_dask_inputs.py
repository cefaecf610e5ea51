"""Dask arrays and frames as the samples of sites: rows are grouped by task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._data.reading import NO_Y, Reading, take_rows
from .._data.tasks import as_sources, rows_by_label, task_column_of
from .._tools.typing import IntArray
from ._shard import Request, Shard, load
from ._workers import Batch, Supply

if TYPE_CHECKING:
    from distributed import Client, Future


class Part(NamedTuple):
    """The rows of one task in a block: their numbers, and what the block has there."""

    rows: IntArray
    X: Any
    y: Any
    weight: Any


class CollectionSupply(Supply):
    """The tasks of a Dask array or frame, named by its ``task_column`` or by ``tasks``."""

    private = False
    places_rows = False  # rows keep their numbers in the collection

    def __init__(self, client: Client, reading: Reading, X: Any, y: Any, tasks: Any, sample_weight: Any):
        if (tasks is None) == (reading.task_column is None):
            if tasks is not None:
                raise ValueError("Pass task_column or tasks=, not both.")
            raise ValueError(
                "A Dask collection needs tasks to distribute over the workers: pass task_column or tasks=, or use "
                "X.compute() for a single task."
            )
        if y is None:
            raise ValueError(NO_Y)
        self.reading = reading
        given = {"X": X, "y": y, "tasks": tasks, "sample_weight": sample_weight}
        columns = {name: _blocks(values, name, X) for name, values in given.items() if values is not None}
        n_blocks = len(columns["X"])
        for name, column in columns.items():
            if len(column) != n_blocks:
                raise ValueError(f"{name} must have as many partitions as X ({n_blocks}), got {len(column)}.")
        self._lazy = [{name: column[k] for name, column in columns.items()} for k in range(n_blocks)]
        self._blocks = self._computed(client)
        try:
            found: list[dict[Hashable, int]] = client.gather(client.map(_counts, self._blocks, pure=False))
            if not any(found):
                raise ValueError("X has no rows: all of its partitions are empty.")
        except BaseException:
            client.cancel(self._blocks)  # no one needs them any more
            raise
        self._first = np.cumsum([0, *(sum(counts.values()) for counts in found)]).tolist()
        self.counts: Counter[Hashable] = Counter()
        for counts in found:
            self.counts.update(counts)
        self.order = list(self.counts)

    def _computed(self, client: Client) -> list[Future]:
        from dask import delayed

        split = delayed(_by_task, pure=False)
        return client.compute([split(self.reading.task_column, **parts) for parts in self._lazy])

    def batches(self, n_workers: int) -> list[Batch]:
        return Batch.divide({source: float(n) ** 2 for source, n in self.counts.items()}, n_workers)

    def load(self, client: Client, batch: Batch, request: Request, **where: Any) -> Future:
        blocks = self._blocks or self._computed(client)
        pieces = [
            client.submit(_pick, block, batch.names, first, pure=False)
            for block, first in zip(blocks, self._first, strict=False)
        ]
        return client.submit(_load_pieces, request, self.reading, batch.names, pieces, **where)

    def loaded(self) -> None:
        """Release the blocks: the rows are in the shards now; if a worker is lost, they are computed again."""
        self._blocks = []


def _blocks(values: Any, name: str, X: Any) -> list[Any]:
    """The blocks of rows of a collection, or of an array in memory if the block sizes of X are known."""
    sizes = X.chunks[0] if hasattr(X, "chunks") else None
    if sizes is not None and any(n != n for n in sizes):
        sizes = None
    if hasattr(values, "__dask_graph__"):
        if hasattr(values, "chunks"):
            values = values.rechunk({1: -1}) if values.ndim == 2 else values
            values = values if sizes is None or values.chunks[0] == sizes else values.rechunk({0: sizes})
            return list(values.to_delayed().ravel())
        return list(values.to_delayed())
    if sizes is None:
        raise ValueError(f"{name} must be a Dask collection with the partitions of X, got {type(values).__name__}.")
    values = np.asarray(values)
    if len(values) != sum(sizes):
        raise ValueError(f"X and {name} must have one row per sample: X has {sum(sizes)}, {name} has {len(values)}.")
    return np.split(values, np.cumsum(sizes)[:-1])


def _by_task(column: Any, X: Any, y: Any, tasks: Any = None, sample_weight: Any = None) -> dict[Hashable, Part]:
    """The part of each task in a block; a filter may have left the block empty."""
    for name, values in (("y", y), ("tasks", tasks), ("sample_weight", sample_weight)):
        if values is not None and len(values) != len(X):
            raise ValueError(f"A partition of X has {len(X)} rows, but the partition of {name} has {len(values)}.")
    if len(X) == 0:
        return {}
    sources = task_column_of(X, column) if tasks is None else as_sources(tasks, len(X))
    assert sources is not None
    return {
        source: Part(rows, *(take_rows(values, rows) for values in (X, y, sample_weight)))
        for source, rows in rows_by_label(sources).items()
    }


def _counts(block: dict[Hashable, Part]) -> dict[Hashable, int]:
    return {source: len(part.rows) for source, part in block.items()}


def _pick(block: dict[Hashable, Part], names: list[Hashable], first: int) -> dict[Hashable, Part]:
    """The parts of the given tasks, with the numbers of their rows in the collection."""
    return {name: part._replace(rows=first + part.rows) for name in names if (part := block.get(name)) is not None}


def _stack(parts: tuple[Any, ...]) -> Any:
    if hasattr(parts[0], "iloc"):
        import pandas as pd

        return pd.concat(parts, ignore_index=True)
    return np.concatenate([np.asarray(part) for part in parts])


def _load_pieces(
    request: Request, reading: Reading, names: list[Hashable], pieces: list[dict[Hashable, Part]]
) -> Shard:
    given = []
    for name in names:
        rows, *columns = zip(*(piece[name] for piece in pieces if name in piece), strict=True)
        data = tuple(_stack(parts) for parts in columns if parts[0] is not None)
        given.append((name, data, np.concatenate(rows)))
    return load(request, reading, given)
