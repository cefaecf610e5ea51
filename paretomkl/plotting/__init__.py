"""Plots of a Pareto path, built like scikit-learn's displays.

A display holds arrays. Its class methods compute them, draw them and return the display; ``plot`` draws them again, on
any axes. Drawing needs matplotlib: ``pip install 'paretomkl[plot]'``.
"""

from ._accuracy import AccuracyDisplay
from ._convergence import ConvergenceDisplay
from ._front import FrontDisplay
from ._importance import ImportanceDisplay
from ._kernel_weights import KernelWeightsDisplay
from ._objectives import ObjectivesDisplay

__all__ = [
    "AccuracyDisplay",
    "ConvergenceDisplay",
    "FrontDisplay",
    "ImportanceDisplay",
    "KernelWeightsDisplay",
    "ObjectivesDisplay",
]
