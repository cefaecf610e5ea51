"""The linear systems of kernel ridge regression on a device of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .._tools.typing import Array
from ._ridge import REFINEMENTS


def solved(matrix: Any, y: Array, C: Array, rtol: float) -> tuple[Any, Any, Any]:
    """What ``_ridge.solved`` returns for a matrix on a device, there: α and b of each column of y, and what is left."""
    device = matrix.device
    targets, costs = (torch.from_numpy(values).to(device) for values in (y, C))
    solve, share = _solver(matrix, costs), (1 / costs)[:, None]
    alpha, b = torch.zeros_like(targets), torch.zeros(targets.shape[1], dtype=targets.dtype, device=device)
    ones = solve(torch.ones_like(share))
    values = alpha
    for _ in range(1 + REFINEMENTS):
        step = solve(targets - values - share * alpha - b)
        offset = step.sum(dim=0) / ones.sum()
        alpha, b = alpha + step - ones * offset, b + offset
        alpha -= alpha.mean(dim=0)
        values = matrix @ alpha
        left = targets - values - b - share * alpha
        value = (alpha * (targets - 0.5 * values - 0.5 * share * alpha)).sum(dim=0)
        if (0.5 * costs @ left**2 <= rtol * value).all():
            break
    return alpha, left, b


def solved_there(matrix: Any, y: Array, C: Array, rtol: float) -> tuple[Array, Array, Array]:
    """The same with results on the host."""
    alpha, left, b = solved(matrix, y, C, rtol)
    # transposed there: the numbers of a task lie together in the memory of the host
    return alpha.T.contiguous().cpu().numpy().T, left.T.contiguous().cpu().numpy().T, b.cpu().numpy()


def _solver(K: Any, C: Any) -> Callable[[Any], Any]:
    """A function that solves (K + diag(1/C)) x = r, approximately if rounding has made the matrix indefinite."""
    system = K.clone()
    system.diagonal().add_(1 / C)
    jitter = 1e-14 * float(system.diagonal().mean())
    while True:
        factor, failed = torch.linalg.cholesky_ex(system)
        if not failed:
            return lambda right: torch.cholesky_solve(right, factor)
        system.diagonal().add_(jitter)
        jitter *= 10
