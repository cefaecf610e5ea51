"""Draw some of the samples, for pages of large tables."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._data.tasks import as_labels, as_sources, is_matrix, listed, task_column_of
from .._tools.typing import AnyArray, IntArray


def draw_rows(
    rows: IntArray, X: Any, y: Any, tasks: Any, task_column: Any, most: int | None, stratify: bool
) -> IntArray:
    """At most ``most`` of these rows for each task, with ``stratify`` in the same class proportions; None: all."""
    if most is None:
        return rows
    sources = _sources(X, tasks, task_column, len(y))
    labels = as_labels(y, "y").ravel() if stratify and not is_matrix(y) else None
    rng, kept = np.random.default_rng(0), []
    for mine in _groups(rows, sources):
        share = min(1.0, most / len(mine))
        kept += [rng.permutation(cell)[: math.ceil(share * len(cell))] for cell in _groups(mine, labels)]
    return np.sort(np.concatenate(kept))


def of_known_tasks(held_out: dict[str, Any], fit_on: dict[str, Any], task_column: Any) -> dict[str, Any]:
    """X, y and tasks of the held-out samples whose task is among those of ``fit_on``."""
    from .._data.reading import take_rows

    there, known = (_sources(part["X"], part["tasks"], task_column, len(part["y"])) for part in (held_out, fit_on))
    if there is None or known is None:
        return held_out
    names = set(listed(known))
    rows = np.flatnonzero([name in names for name in listed(there)])
    return {name: take_rows(values, rows) for name, values in held_out.items()}


def _sources(X: Any, tasks: Any, task_column: Any, n_rows: int) -> AnyArray | None:
    """The task of each sample, or None without tasks."""
    return as_sources(tasks, n_rows) if task_column is None else task_column_of(X, task_column)


def _groups(rows: IntArray, labels: AnyArray | None) -> list[IntArray]:
    """The rows of each label."""
    if labels is None:
        return [rows]
    found: dict[Any, list[int]] = {}
    for row, label in zip(rows.tolist(), listed(labels[rows]), strict=True):
        found.setdefault(label, []).append(row)
    return [np.array(cell) for cell in found.values()]
