"""The line of Python that fits a model of the page again."""

from __future__ import annotations

import ast
import math
from typing import Any

import numpy as np

P = "{p}"  # where the exponent goes
LONGEST = 400  # characters of a parameter that is written out
DEFAULTS = {"kernels": "default", "task_column": None, "task_weight": None, "solver": "auto", "class_weight": None}


def refit_code(
    *,
    s: float = 1.1,
    C: Any = 1.0,
    tol: float = 1e-3,
    tasks: bool = False,
    sample_weight: bool = False,
    loading: str = "",
    **others: Any,
) -> str:
    """Python code with ``{p}`` in the place of the exponent, to be replaced by :func:`exponent_code`.

    A C for each sample becomes ``sample_weight``; tasks and sample_weight say whether the samples have any; loading are
    lines that make X, y and tasks, imports first; others are more parameters of ``ParetoMKLClassifier``. What has no
    short literal is written as a variable of the same name.

    Examples
    --------
    >>> print(refit_code(s=1.1, C=10.0))
    from paretomkl import ParetoMKLClassifier
    <BLANKLINE>
    clf = ParetoMKLClassifier(p={p}, s=1.1, C=10.0).fit(X, y)
    """
    each = np.ndim(C) > 0
    parameters = [f"p={P}", f"s={exponent_code(s)}", f"C={1.0 if each else float(C)!r}"]
    for name, value in others.items():
        default = DEFAULTS[name]
        if type(value) is not type(default) or value != default:
            parameters.append(f"{name}={_literal(value) or name}")
    if tol != 1e-3:
        parameters.append(f"tol={float(tol)!r}".replace("e-0", "e-"))
    weight = " * ".join(["C"] * each + ["sample_weight"] * sample_weight)
    given = ["X", "y"] + [f"sample_weight={weight}"] * bool(weight) + ["tasks=tasks"] * tasks
    line = f"clf = ParetoMKLClassifier({', '.join(parameters)}).fit({', '.join(given)})"
    return "\n".join(["from paretomkl import ParetoMKLClassifier", loading, line])


def exponent_code(p: float) -> str:
    """A float as Python reads it."""
    return f'float("{p}")' if math.isinf(p) else repr(float(p))


def _literal(value: Any) -> str | None:
    """How Python writes the value, if it is short and a plain literal."""
    text = repr(value.item() if isinstance(value, np.generic) else value)
    try:
        same = len(text) <= LONGEST and bool(ast.literal_eval(text) == value)
    except (ValueError, SyntaxError, TypeError):
        return None
    return text if same else None
