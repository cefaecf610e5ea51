"""Dask arrays and frames as the samples of sites: rows are grouped by task."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from .._data.reading import Reading
from .._data.tasks import as_sources, listed, task_column_of
from .._tools.typing import IntArray
from ._shard import load
from ._workers import Batch, divide


class CollectionSupply:
    """The tasks of a Dask array or frame, named by its ``task_column`` or by ``tasks``."""

    private = False
    places_rows = False  # rows keep their numbers in the collection

    def __init__(self, client: Any, reading: Reading, X: Any, y: Any, tasks: Any, sample_weight: Any):
        if (tasks is None) == (reading.task_column is None):
            if tasks is not None:
                raise ValueError("Pass task_column or tasks=, not both.")
            raise ValueError(
                "A Dask collection needs tasks to distribute over the workers: pass task_column or tasks=, or use "
                "X.compute() for a single task."
            )
        if y is None:
            raise ValueError("y is missing: learning requires y to be passed, but the target y is None.")
        self.reading = reading
        given = {"y": y, "tasks": tasks, "sample_weight": sample_weight}
        columns = [_blocks(X, "X", None), *(_blocks(value, name, X) for name, value in given.items())]
        n_blocks = len(columns[0] or ())
        for name, column in zip(["X", *given], columns, strict=True):
            if column is not None and len(column) != n_blocks:
                raise ValueError(f"{name} must have as many partitions as X ({n_blocks}), got {len(column)}.")
        self._lazy = [[None if column is None else column[k] for column in columns] for k in range(n_blocks)]
        self._blocks = self._computed(client)
        try:
            looks = client.gather(client.map(_look, self._blocks, column=reading.task_column, pure=False))
            if not any(n for n, _ in looks):
                raise ValueError("X has no rows: all of its partitions are empty.")
        except BaseException:
            client.cancel(self._blocks)  # no one needs them any more
            raise
        self._first = np.concatenate([[0], np.cumsum([n for n, _ in looks])])
        self.counts: dict[Hashable, int] = {}
        for _, found in looks:
            for source, n in found.items():
                self.counts[source] = self.counts.get(source, 0) + n
        self.order: list[Any] = list(self.counts)

    def _computed(self, client: Any) -> list[Any]:
        from dask import delayed

        return client.compute([delayed(_block)(*parts, pure=False) for parts in self._lazy])

    def batches(self, client: Any) -> list[Batch]:
        return divide({source: float(n) ** 2 for source, n in self.counts.items()}, len(client.nthreads()))

    def load(self, client: Any, batch: Batch, request: str, key: str) -> Any:
        blocks = self._blocks or self._computed(client)
        pieces = [
            client.submit(_pick, block, self.reading.task_column, batch.names, int(first), pure=False)
            for block, first in zip(blocks, self._first, strict=False)
        ]
        where = {"workers": [batch.address], "pure": False, "key": key}
        return client.submit(_load_pieces, request, self.reading, batch.names, pieces, **where)

    def loaded(self) -> None:
        """Release the blocks: the rows are in the shards now; if a worker is lost, they are computed again."""
        self._blocks = []


def _blocks(values: Any, name: str, X: Any) -> list[Any] | None:
    """The blocks of rows of a collection, or of an array in memory if the block sizes of X are known."""
    if values is None:
        return None
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


def _block(X: Any, y: Any, tasks: Any, weight: Any) -> tuple[Any, ...]:
    for name, part in (("y", y), ("tasks", tasks), ("sample_weight", weight)):
        if part is not None and len(part) != len(X):
            raise ValueError(f"A partition of X has {len(X)} rows, but the partition of {name} has {len(part)}.")
    return X, y, tasks, weight


def _rows_of(block: tuple[Any, ...], column: Any) -> dict[Hashable, IntArray]:
    """The rows of each source in a block, in increasing order; a filter may have left the block empty."""
    X, _, tasks, _ = block
    if len(X) == 0:
        return {}
    sources = task_column_of(X, column) if tasks is None else as_sources(tasks, len(X))
    assert sources is not None
    numbers: dict[Hashable, int] = {}
    codes = np.array([numbers.setdefault(source, len(numbers)) for source in listed(sources)], dtype=np.int64)
    order = np.argsort(codes, kind="stable")
    edges = np.searchsorted(codes[order], np.arange(1, len(numbers)))
    return dict(zip(numbers, np.split(order, edges), strict=True))


def _look(block: tuple[Any, ...], column: Any) -> tuple[int, dict[Hashable, int]]:
    """Number of rows in a block, and number of rows of each source."""
    return len(block[0]), {source: len(rows) for source, rows in _rows_of(block, column).items()}


def _pick(block: tuple[Any, ...], column: Any, names: Sequence[Hashable], first: int) -> dict[Hashable, Any]:
    """The rows of the given sources, with their numbers in the collection."""
    rows_of = _rows_of(block, column)
    X, y, _, weight = block
    return {
        name: (first + rows, _take(X, rows), _take(y, rows), None if weight is None else _take(weight, rows))
        for name in names
        if (rows := rows_of.get(name)) is not None
    }


def _take(values: Any, rows: IntArray) -> Any:
    return values.iloc[rows] if hasattr(values, "iloc") else values[rows]


def _stack(parts: list[Any]) -> Any:
    if hasattr(parts[0], "iloc"):
        import pandas as pd

        return pd.concat(parts, ignore_index=True)
    return np.concatenate([np.asarray(part) for part in parts])


def _load_pieces(request: str, reading: Reading, names: list[Hashable], pieces: list[dict]) -> Any:
    given = []
    for name in names:
        rows, X, y, weight = zip(*(piece[name] for piece in pieces if name in piece), strict=True)
        data = (_stack(list(X)), _stack(list(y)))
        data = data if weight[0] is None else (*data, _stack(list(weight)))  # type: ignore[assignment]
        given.append((name, data, np.concatenate(rows)))
    return load(request, reading, given)
