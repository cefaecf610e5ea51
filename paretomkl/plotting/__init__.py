"""Pictures of a Pareto path, in the manner of scikit-learn's displays.

A display keeps arrays; its class methods compute them and draw at once; ``plot`` draws again, on any axes. Drawing
needs matplotlib: ``pip install 'paretomkl[plot]'``.
"""

from .accuracy import AccuracyDisplay
from .convergence import ConvergenceDisplay
from .front import FrontDisplay
from .kernel_weights import KernelWeightsDisplay
from .objectives import ObjectivesDisplay

__all__ = [
    "AccuracyDisplay",
    "ConvergenceDisplay",
    "FrontDisplay",
    "KernelWeightsDisplay",
    "ObjectivesDisplay",
]
