"""Solvers that bring a MultiTaskProblem to a certified solution."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from ..protocols import PathSolver, Solver, check_part
from ._base import BaseSolver, ColdStarts
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


def make_solver(solver: str | Solver, ps: Iterable[float], **parameters: Any) -> PathSolver:
    """A solver of paths from its name or from a solver object, after checking that it handles all exponents.

    A parameter that is None keeps the solver's default.
    """
    made: PathSolver
    if isinstance(solver, str) and solver in SOLVERS:
        made = SOLVERS[solver](**{name: value for name, value in parameters.items() if value is not None})
    elif isinstance(solver, PathSolver):
        made = solver
    elif hasattr(solver, "solve"):
        check_part(solver, Solver)
        plain = cast(Solver, solver)
        made = ColdStarts(tol=plain.tol, solver=plain)
    else:
        raise ValueError(f"solver must be one of {sorted(SOLVERS)} or a solver object, got {solver!r}.")
    for p in ps:
        if not made.lowest_p <= p <= made.highest_p:
            where = f"p <= {made.highest_p:g}" if p > made.highest_p else f"p >= {made.lowest_p:g}"
            raise ValueError(f"solver={made.name!r} handles only {where}, got p={p:g}; use solver='auto'.")
    return made
