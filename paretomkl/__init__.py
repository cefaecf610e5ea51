"""Multi-task multiple kernel learning along the Pareto front.

T binary SVM tasks share one learned kernel, a weighted sum of M base kernels; the library minimises the power mean of
the task objectives, and so traces a path on their Pareto front.
"""

from .kernels import Cosine, Custom, Gaussian, KernelBank, Laplacian, Linear, Polynomial
from .path import PAPER_PS, ParetoPath, pareto_path

__version__ = "0.1.0.dev0"

__all__ = [
    "PAPER_PS",
    "Cosine",
    "Custom",
    "Gaussian",
    "KernelBank",
    "Laplacian",
    "Linear",
    "ParetoPath",
    "Polynomial",
    "pareto_path",
]
