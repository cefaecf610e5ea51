"""Solvers that bring a MultiTaskProblem to a certified solution."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..protocols import Solver, check_part
from ._base import BaseSolver
from ._block_coordinate import BlockCoordinateDescent
from ._cut_pool import CutPool
from ._tseng import Tseng

__all__ = ["SOLVERS", "BaseSolver", "BlockCoordinateDescent", "CutPool", "Tseng", "make_solver"]

SOLVERS: dict[str, type[BaseSolver]] = {
    "auto": CutPool,
    "cut-pool": CutPool,
    "bcd": BlockCoordinateDescent,
    "tseng": Tseng,
}


def make_solver(solver: str | Solver, ps: Iterable[float], **parameters: Any) -> Solver:
    """A solver from its name, or the object itself, after checking that it handles all exponents.

    A parameter that is None keeps the solver's default.
    """
    made: Solver
    if isinstance(solver, str) and solver in SOLVERS:
        made = SOLVERS[solver](**{name: value for name, value in parameters.items() if value is not None})
    elif hasattr(solver, "solve"):
        check_part(solver, Solver)
        made = solver  # type: ignore[assignment]
    else:
        raise ValueError(f"solver must be one of {sorted(SOLVERS)} or a solver object, got {solver!r}.")
    lowest, highest = getattr(made, "lowest_p", -float("inf")), getattr(made, "highest_p", float("inf"))
    for p in ps:
        if not lowest <= p <= highest:
            name = getattr(made, "name", type(made).__name__)
            where = f"p <= {highest:g}" if p > highest else f"p >= {lowest:g}"
            raise ValueError(f"solver={name!r} handles only {where}, got p={p:g}; use solver='auto'.")
    return made
