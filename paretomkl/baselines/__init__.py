"""The methods that the paper compares with, and others for regression, with the same interface."""

from ._independent import IndependentMKL, IndependentSVC, UniformKernelSVC
from ._minimax import MinimaxMTL
from ._partially_shared import PartiallySharedMKL
from ._regressors import IndependentMKLRegressor, UniformKernelRegressor
from ._sparse_mtl import SparseMTL
from ._taskwise import TaskwiseRegressor

__all__ = [
    "IndependentMKL",
    "IndependentMKLRegressor",
    "IndependentSVC",
    "MinimaxMTL",
    "PartiallySharedMKL",
    "SparseMTL",
    "TaskwiseRegressor",
    "UniformKernelRegressor",
    "UniformKernelSVC",
]
