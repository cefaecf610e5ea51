"""Multi-task multiple kernel learning along the Pareto front.

T tasks share one learned kernel, a weighted sum of M base kernels; the library minimises the power mean of the task
objectives, and so traces a path on their Pareto front.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._model import TaskModel
from ._persistence import load_model, save_model
from ._tasks import stack_tasks
from .kernels import Cosine, Custom, Gaussian, KernelBank, Laplacian, Linear, Polynomial, sources
from .path import PAPER_PS, ParetoPath, pareto_path

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from . import baselines, datasets, distributed, model_selection, plotting, report, tables
    from .estimators import ParetoMKLClassifier, ParetoMKLOutlierDetector, ParetoMKLRegressor
    from .search import ParetoMKLClassifierCV, ParetoMKLRegressorCV

_ESTIMATORS = {
    "ParetoMKLClassifier": ".estimators",
    "ParetoMKLClassifierCV": ".search",
    "ParetoMKLOutlierDetector": ".estimators",
    "ParetoMKLRegressor": ".estimators",
    "ParetoMKLRegressorCV": ".search",
}
_MODULES = {"baselines", "datasets", "distributed", "model_selection", "plotting", "report", "tables"}

__all__ = [
    "PAPER_PS",
    "Cosine",
    "Custom",
    "Gaussian",
    "KernelBank",
    "Laplacian",
    "Linear",
    "ParetoMKLClassifier",
    "ParetoMKLClassifierCV",
    "ParetoMKLOutlierDetector",
    "ParetoMKLRegressor",
    "ParetoMKLRegressorCV",
    "ParetoPath",
    "Polynomial",
    "TaskModel",
    "baselines",
    "datasets",
    "distributed",
    "load_model",
    "model_selection",
    "pareto_path",
    "plotting",
    "report",
    "save_model",
    "sources",
    "stack_tasks",
    "tables",
]

if not TYPE_CHECKING:  # type checkers would take every name for one that exists

    def __getattr__(name: str) -> Any:
        """Estimators and submodules are imported when first asked for: scikit-learn takes a second to import."""
        if name in _ESTIMATORS:
            return getattr(import_module(_ESTIMATORS[name], __name__), name)
        if name in _MODULES:
            return import_module(f".{name}", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
