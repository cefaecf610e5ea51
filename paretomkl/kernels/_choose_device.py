"""Whether a bank of kernels can be evaluated on the chosen device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scipy.sparse import issparse

from .._tools.config import get_config
from .._tools.devices import chosen_device

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._tools.typing import AnyArray
    from ._fitted import Evaluator


def device_for(evaluator: Evaluator, samples: Sequence[AnyArray], pays: bool) -> Any:
    """The device for these kernels and matrices of samples, or None for the CPU; see :func:`chosen_device`."""
    return None if get_config()["device"] == "cpu" else chosen_device(pays, obstacle(evaluator, samples))


def obstacle(evaluator: Evaluator, samples: Sequence[AnyArray]) -> str:
    """Why these kernels cannot be evaluated on a device; empty if they can."""
    if evaluator.precomputed:
        return "precomputed kernels stay in host memory"
    for name, kernel in zip(evaluator.names, evaluator.kernels, strict=True):
        if kernel.metric not in ("sqeuclidean", "cityblock"):
            return f"kernel {name} is a function that a device cannot evaluate"
    if evaluator.bases.terms is not None:
        return f"a device cannot evaluate as many as {evaluator.n_kernels:,} kernels"
    if any(map(issparse, samples)):
        return "sparse samples stay sparse, and devices need dense ones"
    return ""
