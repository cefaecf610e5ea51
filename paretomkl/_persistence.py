"""Save models to files that contain data, not code, and load them without running anything in them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from ._files import check_writable, write_whole


class UntrustedError(ValueError):
    """A file contains types that a model does not need; ``types`` are their names."""

    def __init__(self, file: str | os.PathLike[str], types: Sequence[str]):
        self.types = list(types)
        super().__init__(
            f"{os.fspath(file)!r} contains untrusted types: {', '.join(types)}. If you trust the source of the file, "
            "pass them as trusted=."
        )


def _types(names: dict[str, str]) -> tuple[str, ...]:
    return tuple(f"{module}.{name}" for module, together in names.items() for name in together.split())


OWN_TYPES = _types(
    {
        "numpy": "dtype",
        "paretomkl._bank": "FittedBank",
        "paretomkl._kernels": "Cosine Custom Gaussian KernelBank Laplacian Linear Polynomial Sources _Precomputed",
        "paretomkl._labelling": "Labelling",
        "paretomkl._path_search": "own_score",
        "paretomkl._coupled": "CoupledBank",
        "paretomkl._targets": "Regions Targets",
        "paretomkl._together": "SeparateModel SharedModel Together",
        "paretomkl._model": "LinearModel Support TaskModel",
        "paretomkl._reading": "PathReader Reading",
        "paretomkl._standardizer": "Standardizer",
        "paretomkl._tables": "name_of_indicator",
        "paretomkl._tasks": "Task",
        "paretomkl.baselines._independent": "IndependentMKL IndependentSVC UniformKernelSVC",
        "paretomkl.baselines._minimax": "MinimaxMTL",
        "paretomkl.baselines._partially_shared": "PartiallySharedMKL",
        "paretomkl.baselines._sparse_mtl": "SparseMTL",
        "paretomkl.estimators": "ParetoMKLClassifier ParetoMKLOutlierDetector ParetoMKLRegressor",
        "paretomkl.model_selection": "MultiTaskKFold MultiTaskScorer MultiTaskShuffleSplit MultiTaskStratifiedKFold",
        "paretomkl.path": "ParetoPath",
        "paretomkl.search": "ParetoMKLClassifierCV ParetoMKLRegressorCV",
        "paretomkl.solution": "Solution",
        "paretomkl.solvers._block_coordinate": "BlockCoordinateDescent",
        "paretomkl.solvers._cut_pool": "CutPool",
        "paretomkl.solvers._tseng": "Tseng",
        "paretomkl.sweep": "Sweep",
        "scipy.sparse._csr": "csr_matrix",
    }
)
"""Types that a saved model may contain besides those of NumPy, SciPy and scikit-learn that skops trusts."""

SKLEARN_TYPES = _types(
    {
        "sklearn.gaussian_process.kernels": (
            "ConstantKernel DotProduct ExpSineSquared Exponentiation Matern Product RBF RationalQuadratic Sum "
            "WhiteKernel"
        ),
        "sklearn.metrics._classification": (
            "accuracy_score balanced_accuracy_score f1_score jaccard_score matthews_corrcoef precision_score "
            "recall_score"
        ),
        "sklearn.metrics._regression": (
            "explained_variance_score max_error mean_absolute_error mean_squared_error median_absolute_error r2_score "
            "root_mean_squared_error"
        ),
        "sklearn.metrics._ranking": "average_precision_score roc_auc_score",
        "sklearn.metrics._scorer": "_PassthroughScorer _Scorer",
        "sklearn.model_selection._split": (
            "GroupKFold KFold LeaveOneGroupOut ShuffleSplit StratifiedGroupKFold StratifiedKFold StratifiedShuffleSplit"
        ),
        "sklearn.utils._metadata_requests": "MetadataRequest MethodMetadataRequest",
    }
)
"""Harmless types of scikit-learn that skops does not trust: kernels, folds, scorers and metrics."""

OLD_SKLEARN_TYPES = _types({"sklearn.compose._column_transformer": "_RemainderColsList"})
"""A harmless type of scikit-learn 1.6 that later versions do not have: a list of columns."""


def save_model(model: Any, file: str | os.PathLike[str]) -> None:
    """Save a fitted model, or a pipeline that contains one, to a file.

    The file is a skops archive: JSON and arrays. It contains support vectors, not training kernels. It is moved into
    place once it is complete.

    Parameters
    ----------
    model : estimator
        A fitted estimator.
    file : path
        The file to write; its name usually ends in ``.skops``.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> import paretomkl
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = paretomkl.ParetoMKLClassifier(C=10).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paretomkl.save_model(clf, pathlib.Path(folder) / "iris.skops")
    ...     same = paretomkl.load_model(pathlib.Path(folder) / "iris.skops")
    >>> bool((same.predict(X) == clf.predict(X)).all())
    True
    """
    skops, target = _skops(), check_writable(file)
    write_whole(target, skops.dumps(model))


def load_model(file: str | os.PathLike[str], trusted: Sequence[str] = ()) -> Any:
    """Load a model that :func:`save_model` wrote.

    It creates only types of this library, types that skops trusts (NumPy, SciPy, scikit-learn), and the common kernels,
    folds and scorers of scikit-learn. It rejects a file with any other type, so loading a file from someone else runs
    none of their code.

    Parameters
    ----------
    file : path
        A file that :func:`save_model` wrote.
    trusted : sequence of str, default=()
        More types to allow, as named in the error message, such as the function of a custom kernel.

    Returns
    -------
    estimator
        The model as it was saved, fitted.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> import paretomkl
    >>> clf = paretomkl.ParetoMKLClassifier().fit(*load_iris(return_X_y=True))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paretomkl.save_model(clf, pathlib.Path(folder) / "iris.skops")
    ...     type(paretomkl.load_model(pathlib.Path(folder) / "iris.skops")).__name__
    'ParetoMKLClassifier'
    """
    skops = _skops()
    if not Path(file).is_file():
        raise FileNotFoundError(f"There is no file {os.fspath(file)!r}.")
    try:
        needed = skops.get_untrusted_types(file=file)
    except Exception as error:  # many kinds: not an archive, truncated, without a schema
        raise ValueError(f"{os.fspath(file)!r} is not a saved model, or is damaged ({error}).") from error
    foreign = sorted(set(needed) - {*OWN_TYPES, *SKLEARN_TYPES, *OLD_SKLEARN_TYPES, *trusted})
    if foreign:
        raise UntrustedError(file, foreign)
    return skops.load(file, trusted=needed)


def _skops() -> ModuleType:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError("Saving and loading models needs skops: pip install 'paretomkl[save]'.") from error
    return skops.io
