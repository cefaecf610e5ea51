"""Threads for independent pieces of compiled code that release the interpreter lock."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def effective_jobs(n_jobs: int | None) -> int:
    """Number of threads for ``n_jobs``: None is one, -1 all cores, -2 all but one."""
    if n_jobs is None:
        return 1
    if not isinstance(n_jobs, numbers.Integral) or n_jobs == 0:
        raise ValueError(f"n_jobs must be None (one thread), a positive number, or -1 (all cores), got {n_jobs!r}.")
    return int(n_jobs) if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + n_jobs)


def run_chunks(function: Callable[..., Any], chunks: Sequence[tuple], n_jobs: int) -> list[Any]:
    """[function(*chunk) for chunk in chunks], in threads if there are several jobs and chunks."""
    if n_jobs == 1 or len(chunks) <= 1:
        return [function(*chunk) for chunk in chunks]
    with ThreadPoolExecutor(n_jobs) as pool:
        try:
            return list(pool.map(lambda chunk: function(*chunk), chunks))
        except BaseException:  # an interrupt waits only for the chunks that are running
            pool.shutdown(wait=False, cancel_futures=True)
            raise
