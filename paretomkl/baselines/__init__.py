"""The methods the paper compares with, under the same interface."""

from .independent import IndependentMKL, IndependentSVC, UniformKernelSVC
from .minimax import MinimaxMTL
from .partially_shared import PartiallySharedMKL
from .sparse_mtl import SparseMTL

__all__ = ["IndependentMKL", "IndependentSVC", "MinimaxMTL", "PartiallySharedMKL", "SparseMTL", "UniformKernelSVC"]
