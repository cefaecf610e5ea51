"""Python code that refits a model of the page."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from ..kernels._kernels import Kernel, KernelBank, Source, Sources

P = "{p}"  # placeholder for the exponent
LONGEST = 400  # characters of a parameter in the line that fits; longer ones get a line of their own
MOST_ENTRIES = 50_000  # of a parameter that is written out
DEFAULTS = {  # of the estimators, in the order in which the code has them
    "class_weight": None,
    "multi_class": "one-vs-one",
    "normalize_y": True,
    "loss": None,  # depends on the estimator
    "epsilon": 0.1,
    "kernels": "default",
    "task_column": None,
    "task_scale": "none",
    "task_weight": None,
    "share": "kernel",
    "solver": "auto",
    "scalarization": None,
    "weight_set": None,
}


def refit_code(
    estimator: str = "ParetoMKLClassifier",
    *,
    s: float = 1.1,
    C: Any = 1.0,
    tol: float = 1e-3,
    tasks: bool = False,
    sample_weight: bool = False,
    **others: Any,
) -> str:
    """Python code with ``{p}`` for the exponent, which :func:`exponent_code` formats.

    An array C becomes ``sample_weight``. ``tasks`` and ``sample_weight`` tell whether the samples have any; ``others``
    are more parameters of the estimator; those in ``DEFAULTS`` matter. A long value is assigned to a variable of the
    same name first, and a value without code, such as a function, is a variable that is not assigned.

    Examples
    --------
    >>> print(refit_code(s=1.1, C=10.0))
    from paretomkl import ParetoMKLClassifier
    <BLANKLINE>
    clf = ParetoMKLClassifier(p={p}, s=1.1, C=10.0).fit(X, y)
    """
    each = np.ndim(C) > 0
    classifies = estimator.endswith("Classifier")
    usual = DEFAULTS | {"loss": "hinge" if classifies else "squared"}
    parameters = [] if others.get("scalarization") is not None else [f"p={P}"]
    parameters += [] if others.get("weight_set") is not None else [f"s={exponent_code(s)}"]
    parameters.append(f"C={1.0 if each else float(C)!r}")
    needed: set[str] = set()
    assigned: list[str] = []
    for name in [name for name in usual if name in others]:
        names: set[str] = set()
        text = _code(others[name], names)
        if text == repr(usual[name]):
            continue
        long = text is None or len(text) > LONGEST
        parameters.append(f"{name}={name if long else text}")
        if text is not None:
            needed |= names
            assigned += [f"{name} = {text}"] * long
    if tol != 1e-3:
        parameters.append(f"tol={float(tol)!r}".replace("e-0", "e-"))
    weight = " * ".join(["C"] * each + ["sample_weight"] * sample_weight)
    given = ["X", "y"] + [f"sample_weight={weight}"] * bool(weight) + ["tasks=tasks"] * tasks
    name = "clf" if classifies else "reg"
    line = f"{name} = {estimator}({', '.join(parameters)}).fit({', '.join(given)})"
    imports = [f"from paretomkl import {estimator}"]
    if needed:
        imports.append(f"from paretomkl.kernels import {', '.join(sorted(needed))}")
    return "\n".join([*imports, "", *assigned, line])


def with_loading(code: str, loading: str, predicting: str = "") -> str:
    """The code with lines that create X, y and tasks, imports first, before those that fit, and lines that predict.

    Lines that predict have ``{model}`` for the name of the model.
    """
    imports, _, lines = code.rpartition("\n\n")
    if not imports:
        return code
    name = lines.rpartition("\n")[2].partition(" = ")[0]
    return "\n".join(part for part in (imports, loading, lines, predicting.replace("{model}", name)) if part)


def exponent_code(p: float) -> str:
    """A float as Python code."""
    return f'float("{p}")' if math.isinf(p) else repr(float(p))


def _code(value: Any, names: set[str]) -> str | None:
    """Python code for the value, or None; adds the names it needs from ``paretomkl.kernels`` to ``names``."""
    if isinstance(value, KernelBank):
        return _bank(value, names)
    if isinstance(value, Source):
        only_columns = value == Source(value.columns) and value.columns is not None
        return _code(value.columns, names) if only_columns else _call(value, names)
    if isinstance(value, Kernel):
        return _call(value, names)
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple | Mapping) and len(value) > MOST_ENTRIES:
        return None
    if isinstance(value, Mapping):
        pairs = [(_code(key, names), _code(item, names)) for key, item in value.items()]
        written = [f"{key}: {item}" for key, item in pairs if key is not None and item is not None]
        return f"{{{', '.join(written)}}}" if len(written) == len(pairs) else None
    if isinstance(value, list | tuple):
        items = [text for item in value if (text := _code(item, names)) is not None]
        if len(items) < len(value):
            return None
        inside = ", ".join(items)
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' * (len(items) == 1)})"
    return repr(value) if isinstance(value, slice | range) else _literal(value)


def _bank(bank: KernelBank, names: set[str]) -> str | None:
    """The shortest code for a bank: ``'default'`` for KernelBank(), ``sources({…})`` for sources."""
    given = _given(bank)
    if bank.made_from_data and given.get("normalize") == "capacity":  # same as the default
        del given["normalize"]
    kernels = given.pop("kernels", bank.kernels)
    if isinstance(kernels, Sources):
        blocks, rest = _code(kernels.blocks, names), _arguments(given, names)
        names.add("sources")
        return None if blocks is None else f"sources({blocks})" + (f".set_params({rest})" if rest else "")
    first = _code(kernels, names)
    if not given or first is None:
        return first
    names.add("KernelBank")
    return f"KernelBank({first}, {_arguments(given, names)})"


def _call(kernel: Kernel | Source, names: set[str]) -> str | None:
    """A kernel or a source as the call that creates it; None for a class that other code cannot import."""
    kind, arguments = type(kernel), _arguments(_given(kernel), names)
    names.add(kind.__name__)
    return None if arguments is None or kind.__module__ != Kernel.__module__ else f"{kind.__name__}({arguments})"


def _given(made: Kernel | KernelBank | Source) -> dict[str, Any]:
    """The fields that differ from the default."""
    values = {field.name: (getattr(made, field.name), field.default) for field in fields(made)}
    return {name: value for name, (value, default) in values.items() if value is not default and value != default}


def _arguments(given: dict[str, Any], names: set[str]) -> str | None:
    written = {name: _code(value, names) for name, value in given.items()}
    return None if None in written.values() else ", ".join(f"{name}={text}" for name, text in written.items())


def _literal(value: Any) -> str | None:
    """The Python literal of the value, or None if it has none."""
    text = repr(value)
    try:
        same = bool(ast.literal_eval(text) == value)
    except (ValueError, SyntaxError, TypeError):
        return None
    return text if same else None
