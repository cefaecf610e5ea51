"""numba's njit as this library uses it: cached on disk if possible, and announced on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numba
from numba.core import event
from numba.extending import intrinsic

ANNOUNCEMENT = "paretomkl: compiling, once per machine …"


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function at its first call; it releases the interpreter lock and divides by zero as NumPy does."""
    options = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, **options}

    def compile_lazily(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError:  # neither the package folder nor the user's cache is writable
            return numba.njit(**options)(function)

    return compile_lazily


def inner_njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """njit for functions that only compiled code calls; never call them from Python.

    It omits what such functions do not need and what takes longer to compile than they do: wrappers, cache, and
    reference counts (pass ``_nrt=True`` for functions that slice arrays).
    """
    lean = {"nogil": True, "error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}
    return lambda function: numba.njit(**{**lean, **options})(function)


_ARRAY = numba.float64[::1]
_SIGNATURE = numba.float64(numba.int64, _ARRAY, _ARRAY, _ARRAY, _ARRAY)


class barrier_function:
    """A function that compiled code calls through a pointer; it is compiled at its first use, never at import.

    Pass ``handle`` to compiled code, which calls ``call_handle``. (numba accepts such functions as arguments, but looks
    up their type and address at every call, which takes a quarter of the time of a small master problem.)
    """

    def __init__(self, function: Callable[..., float]) -> None:
        self.function = function

    def __reduce__(self) -> Any:
        return barrier_function, (self.function,)  # an address is meaningless in another process

    @cached_property
    def handle(self) -> Any:
        if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
            return self.function
        try:
            self._compiled = numba.cfunc(_SIGNATURE, cache=True, error_model="numpy")(self.function)
        except RuntimeError:  # as in njit
            self._compiled = numba.cfunc(_SIGNATURE, error_model="numpy")(self.function)
        return self._compiled.address


def call_handle(handle: Any, *arguments: Any) -> Any:
    """Call the function of a handle if compilation is off."""
    return handle(*arguments)


if not numba.config.DISABLE_JIT:  # type: ignore[attr-defined]

    @intrinsic
    def call_handle(_: Any, handle: Any, question: Any, x: Any, parameters: Any, gradient: Any, curvature: Any) -> Any:
        prototype = numba.types.FunctionType(_SIGNATURE).ftype

        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.call(builder.inttoptr(arguments[0], context.get_value_type(prototype)), arguments[1:])

        return numba.float64(numba.intp, *_SIGNATURE.args), lower


class _Announcer(event.Listener):
    """Announces on a terminal, once per process, that a function of this package is being compiled."""

    silent = False

    def on_start(self, happened: event.Event) -> None:
        module = happened.data["dispatcher"].py_func.__module__ or ""
        if self.silent or not module.startswith("paretomkl."):
            return
        self.silent = True
        if sys.stderr.isatty():
            print(f"\r\x1b[K{ANNOUNCEMENT}", file=sys.stderr, flush=True)  # overwrites a progress line

    def on_end(self, happened: event.Event) -> None:
        pass


event.register("numba:compile", _Announcer())
