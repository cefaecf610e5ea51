"""The methods the paper compares with, under the same interface."""

from ._independent import IndependentMKL, IndependentSVC, UniformKernelSVC
from ._minimax import MinimaxMTL
from ._partially_shared import PartiallySharedMKL
from ._sparse_mtl import SparseMTL

__all__ = ["IndependentMKL", "IndependentSVC", "MinimaxMTL", "PartiallySharedMKL", "SparseMTL", "UniformKernelSVC"]
