"""numba's njit as this library uses it: cached where there is a place to write, announced where someone is waiting."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numba
from numba.core import event

ANNOUNCEMENT = "paretomkl: compiling, once per machine …"


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function at its first call; it releases the interpreter lock and divides as NumPy does."""
    options = {"nogil": True, "error_model": "numpy", **options}

    def compile_lazily(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError:  # neither the package's folder nor the user's cache can be written
            return numba.njit(**options)(function)

    return compile_lazily


class _Announcer(event.Listener):
    """Says on a terminal, once per process, that one of our functions is being compiled and not read from the cache."""

    silent = False

    def on_start(self, happened: event.Event) -> None:
        module = happened.data["dispatcher"].py_func.__module__ or ""
        if self.silent or not module.startswith("paretomkl."):
            return
        self.silent = True
        if sys.stderr.isatty():
            print(f"\r\x1b[K{ANNOUNCEMENT}", file=sys.stderr, flush=True)  # in place of a progress line

    def on_end(self, happened: event.Event) -> None:
        pass


event.register("numba:compile", _Announcer())
