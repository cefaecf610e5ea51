"""Long work: threads for compiled code and for linear algebra, and one line of progress on a terminal."""

from __future__ import annotations

import numbers
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from threading import Lock
from time import perf_counter
from types import TracebackType
from typing import Any

from . import config
from .wording import literal

SHOW_AFTER = 2.0  # seconds until work that takes longer shows its progress
REFRESH = 0.2
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
    function = carrying(function)
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


def carrying(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with the present configuration, for a thread or a process that would have its own."""
    return partial(_call_with, config.everywhere | (config.here.get() or {}), function)


def _call_with(chosen: dict[str, str], function: Callable[..., Any], *arguments: Any) -> Any:
    token = config.here.set(chosen)
    try:
        return function(*arguments)
    finally:
        config.here.reset(token)


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


class Progress:
    """Shows the progress of a path of ``n_points``: points done, the current p, sweeps, gap (and tol) and seconds.

    verbose: 0 is silent; 1 writes from the start; None writes only on a terminal, after two seconds. unit: the name of
    what is counted.
    """

    def __init__(self, n_points: int, tol: float, verbose: int | None = None, unit: str = "points"):
        self.n_points = n_points
        self.tol = tol
        self.unit = unit
        self.terminal = sys.stderr.isatty()
        self.silent = verbose == 0 or (verbose is None and not self.terminal)
        self.delay = SHOW_AFTER if verbose is None else 0.0
        self.began = perf_counter()
        self.shown_at = -float("inf")
        self.n_done = 0
        self.width = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.width and self.terminal:
            sys.stderr.write("\r" + " " * self.width + "\r")
            sys.stderr.flush()
        elif kind is None and not self.terminal:  # in a log, the last line reports completion
            self.n_done, self.shown_at = self.n_points, -float("inf")
            self.show("done")

    def report(self, p: float, n_sweeps: int, gap: float) -> None:
        if not self.silent:
            at = "" if p != p else f"p={p:g} · "  # a scalarization without exponent has p = NaN
            self.show(f"{at}sweep {n_sweeps} · gap {gap:.1e} → {self.tol:.0e}")

    def show(self, text: str) -> None:
        now = perf_counter() - self.began
        if self.silent or now < self.delay or now - self.shown_at < REFRESH:
            return
        self.shown_at = now
        filled = round(20 * self.n_done / self.n_points)
        bar = "█" * filled + "░" * (20 - filled)
        line = f"{bar} {self.n_done}/{self.n_points} {self.unit} · {text} · {now:.0f} s"
        if self.terminal:
            line = line[: shutil.get_terminal_size().columns - 1]  # a longer line would wrap and stay on the screen
            sys.stderr.write("\r" + line.ljust(self.width))
            self.width = len(line)
        else:
            sys.stderr.write(line + "\n")
        sys.stderr.flush()

    def done(self, n_points: int = 1) -> None:
        self.n_done += n_points
