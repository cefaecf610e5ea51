"""Multi-task multiple kernel learning along the Pareto front.

T tasks share one learned kernel, a weighted sum of M base kernels; the library minimises the power mean of the task
objectives, and so traces a path on their Pareto front.
"""

# Import nothing here, not even typing: Ctrl-C during the start of a command then has no traceback to print.
TYPE_CHECKING = False

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import baselines, datasets, distributed, inspection, model_selection, plotting, report, tables
    from ._data.tasks import stack_tasks
    from ._fitting.models import TaskModel
    from ._learn.encoder import TableEncoder
    from ._learn.estimators import ParetoMKLClassifier, ParetoMKLOutlierDetector, ParetoMKLRegressor
    from ._learn.path import PAPER_PS, ParetoPath, pareto_path
    from ._learn.saving import load_model, save_model
    from ._select.search import ParetoMKLClassifierCV, ParetoMKLRegressorCV
    from ._tools.config import config_context, get_config, set_config
    from .kernels import Cosine, Custom, Gaussian, KernelBank, Laplacian, Linear, Polynomial, Source, sources

_NAMES = {
    "._fitting.models": "TaskModel",
    "._learn.encoder": "TableEncoder",
    "._learn.saving": "load_model save_model",
    "._data.tasks": "stack_tasks",
    "._tools.config": "config_context get_config set_config",
    ".estimators": "ParetoMKLClassifier ParetoMKLOutlierDetector ParetoMKLRegressor",
    ".kernels": "Cosine Custom Gaussian KernelBank Laplacian Linear Polynomial Source sources",
    ".path": "PAPER_PS ParetoPath pareto_path",
    ".search": "ParetoMKLClassifierCV ParetoMKLRegressorCV",
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}

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
    "Source",
    "TableEncoder",
    "TaskModel",
    "baselines",
    "config_context",
    "datasets",
    "distributed",
    "get_config",
    "inspection",
    "load_model",
    "model_selection",
    "pareto_path",
    "plotting",
    "report",
    "save_model",
    "set_config",
    "sources",
    "stack_tasks",
    "tables",
]

if not TYPE_CHECKING:  # with __getattr__ in sight, type checkers would accept any name

    def __getattr__(name):
        """Import names and submodules on first use: their dependencies take seconds to import."""
        from importlib import import_module
        from importlib.util import find_spec

        if name in _MODULE_OF:
            found = getattr(import_module(_MODULE_OF[name], __name__), name)
        elif not name.startswith("_") and find_spec(f"{__name__}.{name}"):
            found = import_module(f".{name}", __name__)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - {"TYPE_CHECKING"})
