"""The methods that the paper compares with, and others for regression, with the same interface."""

from ._minimax import MinimaxMTL
from ._partially_shared import PartiallySharedMKL
from ._sparse_mtl import SparseMTL
from ._special_cases import IndependentMKL, IndependentMKLRegressor, UniformKernelRegressor, UniformKernelSVC

__all__ = [
    "IndependentMKL",
    "IndependentMKLRegressor",
    "MinimaxMTL",
    "PartiallySharedMKL",
    "SparseMTL",
    "UniformKernelRegressor",
    "UniformKernelSVC",
]
