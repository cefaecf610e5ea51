"""Solvers that bring a MultiTaskProblem to a certified solution."""

from functools import partial

from ._base import BaseSolver, choose_solver
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
make_solver = partial(choose_solver, SOLVERS)
