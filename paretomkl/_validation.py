"""Checks of what users hand in: one clear sentence that names the culprit, before any work is done."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._typing import AnyArray, Array
from .kernels import FittedBank, as_bank
from .tasks import Task


def check_exponents(ps: Any) -> list[float]:
    if isinstance(ps, numbers.Real):
        ps = [ps]
    exponents = []
    for p in ps:
        if not isinstance(p, numbers.Real) or np.isnan(float(p)):
            raise ValueError(f"p must be a real number or ±inf, got {p!r}.")
        exponents.append(float(p))
    if not exponents:
        raise ValueError("ps is empty; give at least one exponent.")
    return exponents


def check_number(name: str, value: Any, valid: Any, wanted: str) -> None:
    if not isinstance(value, numbers.Real) or isinstance(value, bool) or not valid(value):
        raise ValueError(f"{name} must be a number {wanted}, got {name}={value!r}.")


def check_data(X: Any, kernels: Any) -> tuple[FittedBank, AnyArray]:
    bank = as_bank(kernels)
    if isinstance(bank.kernels, str) and bank.kernels == "precomputed":
        stack = check_stack(X)
        return bank.fit(stack), stack
    from sklearn.utils.validation import check_array  # here: scikit-learn takes a second to import

    names = getattr(X, "columns", None)
    data = check_array(X, dtype=np.float64, input_name="X")
    return bank.fit(data, None if names is None else [str(name) for name in names]), data


def check_stack(X: Any, square: bool = True) -> Array:
    """A precomputed stack of kernels: (n, n, n_kernels) and symmetric, or (n_test, n_train, n_kernels)."""
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
    bound = np.asarray(C, dtype=np.float64)
    if bound.ndim == 0:
        check_number("C", float(bound), lambda v: 0 < v < np.inf, "greater than 0")
        return np.full(n_samples, float(bound))
    if bound.shape != (n_samples,):
        raise ValueError(f"C must be a number or have one entry per sample ({n_samples}), got shape {bound.shape}.")
    if not (np.isfinite(bound).all() and (bound >= 0).all()):
        raise ValueError("C must not have negative, infinite or missing entries.")
    for task in tasks:
        for sign, label in ((-1, task.classes[0]), (1, task.classes[1])):
            if not (bound[task.rows[task.signs == sign]] > 0).any():
                raise ValueError(f"Task {task.name!r} has no sample of class {label!r} with C > 0.")
    return bound


def check_task_weight(task_weight: Any, tasks: list[Task]) -> Array | None:
    if task_weight is None:
        return None
    names = [task.name for task in tasks]
    if isinstance(task_weight, Mapping):
        known = {key for task in tasks for key in (task.name, task.source) if key is not None}
        unknown = [key for key in task_weight if key not in known]
        if unknown:
            raise ValueError(f"task_weight names the unknown task {unknown[0]!r}; the tasks are {names[:10]}.")
        values = [task_weight.get(task.name, task_weight.get(task.source, 1.0)) for task in tasks]
    else:
        values = task_weight
    omega = np.asarray(values, dtype=np.float64)
    if omega.shape != (len(tasks),):
        raise ValueError(
            f"task_weight must have one entry for each of the {len(tasks)} tasks, got shape {omega.shape}."
        )
    for name, weight in zip(names, omega, strict=True):
        if not (np.isfinite(weight) and weight > 0):
            raise ValueError(f"task_weight of task {name!r} must be positive, got {weight!r}.")
    return omega / omega.sum()
