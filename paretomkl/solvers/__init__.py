"""Solvers: how a MultiTaskProblem is brought to its certified solution."""

from __future__ import annotations

from typing import Any

from .base import Solver
from .block_coordinate import BlockCoordinateDescent
from .cut_pool import CutPool
from .tseng import Tseng

SOLVERS: dict[str, type[Solver]] = {
    "auto": CutPool,
    "cut-pool": CutPool,
    "bcd": BlockCoordinateDescent,
    "tseng": Tseng,
}


def make_solver(solver: str | Solver, ps: Any, **parameters: Any) -> Solver:
    """A solver from its name, after checking that it can do all of the exponents."""
    if isinstance(solver, Solver):
        made = solver
    elif isinstance(solver, str) and solver in SOLVERS:
        made = SOLVERS[solver](**parameters)
    else:
        raise ValueError(f"solver must be one of {sorted(SOLVERS)}, got {solver!r}.")
    for p in ps:
        if not made.lowest_p <= p <= made.highest_p:
            where = f"p <= {made.highest_p:g}" if p > made.highest_p else f"p >= {made.lowest_p:g}"
            raise ValueError(f"solver={made.name!r} handles {where} only, got p={p:g}; use solver='auto'.")
    return made


__all__ = ["SOLVERS", "BlockCoordinateDescent", "CutPool", "Solver", "Tseng", "make_solver"]
