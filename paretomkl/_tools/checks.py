"""Check user input early; each error is one clear sentence that names the culprit."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol, cast, get_args

import numpy as np

from .shares import SHARES, Share
from .typing import Array, MultiClass, TaskScale
from .wording import literal, quoted

if TYPE_CHECKING:
    from .._data.tasks import Task


def check_exponents(ps: Any) -> list[float]:
    if isinstance(ps, numbers.Real):
        ps = [ps]
    if isinstance(ps, str) or not isinstance(ps, Iterable):
        raise ValueError(f"ps must be a sequence of exponents, got {shown(ps)}.")
    exponents = [check_exponent(p) for p in ps]
    if not exponents:
        raise ValueError("ps is empty; pass at least one exponent.")
    return exponents


def check_exponent(p: Any) -> float:
    check_number("p", p, lambda v: not np.isnan(float(v)), "or ±inf")
    # beyond 1e9, the mean equals the extreme to all relevant digits
    return float(p) if abs(p) <= 1e9 else math.copysign(math.inf, p)


def check_number(name: str, value: Any, valid: Any, wanted: str) -> None:
    if not isinstance(value, numbers.Real) or isinstance(value, bool) or not valid(value):
        raise ValueError(f"{name} must be a number {wanted}, got {name}={shown(value)}.")


def shown(value: Any) -> str:
    """A value for display in a message; only the type if it is long."""
    text = literal(value)
    return text if len(text) <= 60 and "\n" not in text else f"<{type(value).__name__}>"


def check_grid(
    name: str, values: Any, wanted: str = "greater than 0", valid: Any = lambda v: 0 < v < np.inf
) -> list[float]:
    """Check a nonempty list of numbers to choose from; positive unless ``wanted`` and ``valid`` say otherwise."""
    grid = list(values) if isinstance(values, Iterable) and not isinstance(values, str) else [values]
    if not grid:
        raise ValueError(f"{name} is empty; pass at least one number.")
    for value in grid:
        if not isinstance(value, numbers.Real) or isinstance(value, bool) or not valid(float(value)):
            raise ValueError(f"every entry of {name} must be a number {wanted}, got {shown(value)}.")
    return [float(value) for value in grid]


def check_count(name: str, value: Any) -> None:
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or int(value) < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {name}={shown(value)}.")


@contextmanager
def numbers_only(X: Any = None, names: Sequence[object] | None = None, called: str = "X") -> Iterator[None]:
    """Turn scikit-learn's errors about X into messages that name columns and say what to do."""
    try:
        yield
    except ValueError as error:
        message = str(error)
        if "could not convert" in message:
            message = (
                f"{called} must contain only numbers: {message}. Encode that column, or, if it names the tasks, use "
                "task_column= or tasks=. In a frame, text and categories may stay."
            )
        elif "Reshape your data" in message:
            message = "X must have two dimensions, (n_samples, n_features). Reshape your data."
        elif "does not accept missing values" in message:  # scikit-learn's advice is a whole paragraph
            message = f"{message.splitlines()[0]} Impute or remove missing values first{_where(X, names, np.isnan)}."
        elif "contains infinity" in message:
            where = _where(X, names, np.isinf)
            message = f"{message.splitlines()[0].rstrip('.')}{where}; replace it with a number."
        raise ValueError(message) from error


def _where(X: Any, names: Sequence[object] | None, bad: Any) -> str:
    """The columns of a dense X with such values, for the end of a sentence."""
    try:
        found = np.flatnonzero(bad(np.asarray(X, dtype=np.float64)).any(axis=0))
    except (TypeError, ValueError):
        return ""
    columns = [k if names is None else names[k] for k in found.tolist()]
    return f" (column{'s' * (len(columns) > 1)} {quoted(columns, 5)})" if columns else ""


def check_task_scale(task_scale: Any) -> TaskScale:
    if not isinstance(task_scale, str) or task_scale not in get_args(TaskScale):
        raise ValueError(f"task_scale must be 'none' or 'samples', got {shown(task_scale)}.")
    return cast(TaskScale, task_scale)


def check_share(share: Any) -> Share:
    if not isinstance(share, str) or share not in SHARES:
        raise ValueError(f"share must be 'nothing', 'kernel', 'function' or 'everything', got {shown(share)}.")
    return share


def check_multi_class(multi_class: Any) -> MultiClass:
    if not isinstance(multi_class, str) or multi_class not in get_args(MultiClass):
        raise ValueError(f"multi_class must be 'one-vs-one' or 'one-vs-rest', got {shown(multi_class)}.")
    return cast(MultiClass, multi_class)


def check_stack(X: Any, square: bool = True) -> Array:
    """Check a precomputed stack of kernels: (n, n, n_kernels) and symmetric, or (n_test, n_train, n_kernels)."""
    stack = np.asarray(X)
    if stack.ndim != 3 or (square and stack.shape[0] != stack.shape[1]) or stack.shape[2] == 0:
        wanted = "(n_samples, n_samples, n_kernels)" if square else "(n_test, n_train, n_kernels)"
        raise ValueError(f"kernels='precomputed' needs X of shape {wanted}, got shape {stack.shape}.")
    stack = np.asarray(stack, dtype=np.float64)
    for m in range(stack.shape[2]):
        K = stack[:, :, m]
        if not np.isfinite(K).all():
            raise ValueError(f"Kernel {m} of the precomputed stack has NaN or infinite entries.")
        if square and not np.allclose(K, K.T, rtol=1e-6, atol=1e-8 * np.abs(K).max(initial=0.0)):
            raise ValueError(f"Kernel {m} of the precomputed stack is not symmetric.")
    return stack


def check_bounds(C: Any, n_samples: int, tasks: list[Task]) -> Array:
    if np.ndim(C) == 0:
        check_number("C", C, lambda v: 0 < v < np.inf, "greater than 0 and finite")
        return np.full(n_samples, float(C))
    bound = np.asarray(C, dtype=np.float64)
    if bound.shape != (n_samples,):
        raise ValueError(f"C must be a number or have one entry per sample ({n_samples}), got shape {bound.shape}.")
    if not (np.isfinite(bound).all() and (bound >= 0).all()):
        raise ValueError("C must not have negative, infinite or missing entries.")
    for task in tasks:
        if not (bound[task.rows] > 0).any():
            raise ValueError(f"Task {task.name!r} has no sample with C > 0.")
        for sign in task.sides:
            if not (bound[task.rows[task.targets == sign]] > 0).any():
                raise ValueError(f"Task {task.name!r} has no sample {task.samples_of(sign)} with C > 0.")
    return bound


def check_task_weight(task_weight: Any, tasks: list[Task]) -> Array | None:
    if task_weight is None:
        return None
    names = [task.name for task in tasks]
    if isinstance(task_weight, Mapping):
        known = {key for task in tasks for key in (task.name, task.source) if key is not None}
        unknown = [key for key in task_weight if key not in known]
        if unknown:
            raise ValueError(f"task_weight names the unknown task {literal(unknown[0])}; the tasks are {names[:10]}.")
        values = [task_weight.get(task.name, task_weight.get(task.source, 1.0)) for task in tasks]
    else:
        values = task_weight
        if np.shape(values) != (len(tasks),):
            raise ValueError(f"task_weight must have one entry per task ({len(tasks)}), got shape {np.shape(values)}.")
    for name, weight in zip(names, values, strict=True):
        if not (isinstance(weight, numbers.Real) and 0 < float(weight) < np.inf):
            raise ValueError(f"task_weight of task {name!r} must be a positive number, got {shown(weight)}.")
    omega = np.array(values, dtype=np.float64)
    return omega / omega.sum()


def check_members(declared: Mapping[type, Sequence[tuple[str, object, type]]], part: object, protocol: type) -> None:
    """Raise an error that names the members a part lacks, those of wider protocols that it declares included."""
    wanted, kind_of_part = _members(protocol), type(part)
    # first on the type, where looking up a property does not compute it
    missing = [name for name in wanted if not (hasattr(kind_of_part, name) or hasattr(part, name))]
    if missing or isinstance(part, type):
        kind = re.sub(r"(?<=.)([A-Z])", r" \1", protocol.__name__).lower()
        what = "is a class; pass an instance" if isinstance(part, type) else f"lacks {', '.join(missing)}"
        name = part.__name__ if isinstance(part, type) else kind_of_part.__name__
        raise TypeError(f"{name} cannot be used as a {kind}: it {what}. A {kind} has {', '.join(wanted)}.")
    for path, value, wider in declared.get(protocol, ()):
        with suppress(AttributeError):  # promises that are none are for the problem to refuse
            if attrgetter(path)(part) is value:
                check_members({}, part, wider)


@cache
def _members(protocol: type) -> list[str]:
    """The names that a part must have."""
    bases = [base for base in reversed(protocol.__mro__) if base.__dict__.get("_is_protocol") and base is not Protocol]
    names = dict.fromkeys(name for base in bases for name in {**vars(base), **base.__annotations__})
    return [name for name in names if not name.startswith("_")]
