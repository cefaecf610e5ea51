"""Threads: for independent pieces of compiled code that release the interpreter lock, and for linear algebra."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from .wording import literal

SMALL_SYSTEM = 500  # unknowns up to which one thread is best: several mostly wait for each other on a busy machine


def effective_jobs(n_jobs: int | None) -> int:
    """Number of threads for ``n_jobs``: None is one, -1 all cores, -2 all but one."""
    if n_jobs is None:
        return 1
    if not isinstance(n_jobs, numbers.Integral) or n_jobs == 0:
        raise ValueError(
            f"n_jobs must be None (one thread), a positive number, or -1 (all cores), got {literal(n_jobs)}."
        )
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


@cache
def _libraries() -> Any:
    """The libraries of linear algebra; found once, because looking for them takes a millisecond."""
    from threadpoolctl import ThreadpoolController  # imported here because commands need effective_jobs at once

    return ThreadpoolController()


class _Limits:
    """The limits that are set now, on the threads of linear algebra.

    A limit holds for the thread that sets it or for the whole process, depending on the library. So each thread sets
    its limit, and restores what was there before the first of those that overlap: if it restored what it found itself,
    the limit of another thread could stay forever.
    """

    def __init__(self) -> None:
        self.lock, self.holders = Lock(), 0
        self.first: Any = None

    def enter(self, threads: int) -> None:
        with self.lock:
            limit = _libraries().limit(limits=threads, user_api="blas")
            self.first = self.first if self.holders else limit
            self.holders += 1

    def leave(self) -> None:
        with self.lock:
            self.holders -= 1
            self.first.restore_original_limits()


_limits = _Limits()


@contextmanager
def blas_threads(threads: int | None) -> Iterator[None]:
    """Within it linear algebra uses this many threads (None: as many as before). Do not nest it."""
    if threads is None:
        yield
        return
    _limits.enter(threads)
    try:
        yield
    finally:
        _limits.leave()
