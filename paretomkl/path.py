"""The Pareto path: one solution per exponent p, all from one pool of cuts."""

from ._learn.path import PAPER_PS, ParetoPath, pareto_path

__all__ = ["PAPER_PS", "ParetoPath", "pareto_path"]
