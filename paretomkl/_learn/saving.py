"""Save models to files that contain data, not code, and load them without running anything in them."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.model_selection import BaseCrossValidator, BaseShuffleSplit

from .. import __version__
from .._fitting.models import FittedTasks, Support
from .._tools.files import Saved, check_writable, write_whole
from ..exceptions import UntrustedError
from ..kernels._fitted import Standardizer
from ..kernels._preparing import Preparation, SourceRidge
from ..machines import KernelTasks

VERSIONS_FILE = "versions.json"  # beside skops' own files in the archive
FORMAT = 1  # of the files; it grows when files of earlier versions can no longer be read


LEAVES = {"__main__", "_experiments", "_show", "cli", "datasets", "plotting", "report"}
"""Modules that read, write, draw or run things, and that no model needs."""

OWN_FUNCTIONS = {
    "paretomkl._select.folds.own_score",
    "paretomkl.machines._svdd.simplex",
}
"""The only functions of this library that a model refers to by name."""

PLAIN_TYPES = {
    "datetime.date",
    "datetime.datetime",
    "numpy.dtype",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.calibration._TemperatureScaling",
    "sklearn.compose._column_transformer._RemainderColsList",  # of scikit-learn 1.6: a list of columns
    "sklearn.metrics._scorer._CurveScorer",
    "sklearn.metrics._scorer._PassthroughScorer",
    "sklearn.metrics._scorer._Scorer",
    "sklearn.multiclass._ConstantPredictor",
    "sklearn.utils._bunch.Bunch",
    "sklearn.utils._metadata_requests.MetadataRequest",
    "sklearn.utils._metadata_requests.MethodMetadataRequest",
}
"""Types of other libraries that only hold data, and that skops does not trust."""


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
    skops, target, archive = _skops(), check_writable(file), io.BytesIO()
    skops.dump(model, archive, compression=ZIP_DEFLATED)
    try:
        skops.load(archive, trusted=skops.get_untrusted_types(file=archive))
    except Exception as error:  # such as a lambda, which has no name under which to find it
        raise ValueError(
            f"The model cannot be saved, since loading it would fail ({error}); define your functions and classes at "
            "the top level of a module."
        ) from error
    with ZipFile(archive, "a", compression=ZIP_DEFLATED) as added:
        added.writestr(VERSIONS_FILE, json.dumps({"format": FORMAT, **_versions()}, indent=2))
    write_whole(target, archive.getvalue())


def load_model(file: str | os.PathLike[str], trusted: Sequence[str] = ()) -> Any:
    """Load a model that :func:`save_model` or ``paretomkl fit`` wrote.

    What the command wrote predicts raw rows: ``load_model("model.skops").predict(pandas.read_csv("new.csv"))``.

    It creates only estimators and data types of this library, types that skops trusts (NumPy, SciPy, scikit-learn), and
    the kernels, folds, scorers and calibrators of scikit-learn. It rejects a file with any other type, so loading a
    file from someone else runs none of their code. It also rejects a file whose numbers are NaN or infinite, since such
    a model would predict something all the same.

    Parameters
    ----------
    file : path
        A file that :func:`save_model` or ``paretomkl fit`` wrote.
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
    foreign = sorted(name for name in needed if name not in trusted and not _is_trusted(name))
    if foreign:
        raise UntrustedError(
            f"{os.fspath(file)!r} contains untrusted types: {', '.join(foreign)}. If you trust the source of the file, "
            "pass them as trusted=.",
            foreign,
        )
    _check_format(file)
    try:
        model = skops.load(file, trusted=needed)
    except Exception as error:  # a type has other fields now, or the file was edited
        raise ValueError(
            f"{os.fspath(file)!r} cannot be loaded: {_writer(file)} wrote it, and this is {__version__} ({error})."
        ) from error
    _refuse_nonfinite(model, file)
    return model


def _is_trusted(name: str) -> bool:
    """Whether a type or function of this name can do no harm, whatever arguments a file passes to it."""
    if name.partition(".")[0] == "paretomkl":
        return name in OWN_FUNCTIONS or _is_own_data(name)
    return name in PLAIN_TYPES or name in _sklearn_types()


def _is_own_data(name: str) -> bool:
    """Whether this library defines a type of this name that only holds data: constructing one has no side effects."""
    module, _, kind = name.rpartition(".")
    if set(module.split(".")[:2]) & LEAVES:
        return False
    try:
        found = vars(import_module(module)).get(kind)
    except ImportError:
        return False
    if not isinstance(found, type) or (found.__module__, found.__qualname__) != (module, kind):
        return False
    record = is_dataclass(found) or (issubclass(found, tuple) and hasattr(found, "_fields"))
    return record or issubclass(found, (BaseEstimator, BaseCrossValidator, BaseShuffleSplit, Saved, KernelTasks))


@cache
def _sklearn_types() -> frozenset[str]:
    """Names of scikit-learn's kernels and folds, and of the functions behind its scorers and feature selectors."""
    from sklearn import feature_selection, metrics, model_selection
    from sklearn.gaussian_process import kernels

    types = [
        found for module in (kernels, model_selection) for found in vars(module).values() if isinstance(found, type)
    ]
    named: list[Any] = [found for found in types if issubclass(found, kernels.Kernel) or hasattr(found, "split")]
    named += [vars(metrics.get_scorer(name))["_score_func"] for name in metrics.get_scorer_names()]
    named += [found for found in vars(feature_selection).values() if isinstance(found, FunctionType)]
    return frozenset(f"{found.__module__}.{found.__name__}" for found in named)


def _versions() -> dict[str, str]:
    """Versions of the libraries whose types and numbers are in the file."""
    return {"paretomkl": __version__, **{name: version(name) for name in ("scikit-learn", "numpy", "scipy", "skops")}}


def _check_format(file: str | os.PathLike[str]) -> None:
    """Raise for a file in another format than that of this version."""
    try:
        with ZipFile(file) as archive:
            found = json.loads(archive.read(VERSIONS_FILE)).get("format", 0)
    except KeyError:
        raise ValueError(f"{os.fspath(file)!r} has no {VERSIONS_FILE}: save_model did not write it.") from None
    if found != FORMAT:
        do = "update paretomkl" if found > FORMAT else "fit the model again, and save it"
        raise ValueError(
            f"{os.fspath(file)!r} has format {found}, and {__version__} reads format {FORMAT}: {_writer(file)} wrote "
            f"it; {do}."
        )


def _writer(file: str | os.PathLike[str]) -> str:
    """The version that wrote a file."""
    try:
        with ZipFile(file) as archive:
            return f"paretomkl {json.loads(archive.read(VERSIONS_FILE))['paretomkl']}"
    except (KeyError, TypeError, ValueError):
        return "an older version of paretomkl"


def _refuse_nonfinite(model: Any, file: str | os.PathLike[str]) -> None:
    """Raise if θ, a dual variable, an intercept or another number that predictions use is NaN or infinite.

    Only the limits and scales of a standardizer may be infinite: they leave values alone and make constants zero.
    """
    fitted = list(_parts([part for part in _parts(model) if isinstance(part, FittedTasks)]))
    with_gaps = any(isinstance(part, Preparation) for part in fitted)  # then training samples may have some
    for part in fitted:
        if with_gaps and isinstance(part, Support):
            bad: Any = np.isinf
        else:
            bad = np.isnan if isinstance(part, Standardizer | SourceRidge) else lambda values: ~np.isfinite(values)
        for name, value in vars(part).items() if _is_own(part) else ():
            numbers = value.data if issparse(value) else value
            if isinstance(numbers, float | np.ndarray) and np.asarray(numbers).dtype.kind == "f" and bad(numbers).any():
                raise ValueError(
                    f"{os.fspath(file)!r} is damaged: {name} of its {type(part).__name__} has NaN or infinite entries; "
                    "save the model again."
                )


def _parts(model: Any) -> Iterator[Any]:
    """The objects of which a model consists, each once."""
    seen: set[int] = set()
    todo = [model]
    while todo:
        part = todo.pop()
        if id(part) in seen or isinstance(part, str | bytes | np.ndarray | np.generic | type | FunctionType):
            continue
        seen.add(id(part))
        if isinstance(part, dict):
            todo.extend(part.values())
        elif isinstance(part, list | tuple | set):
            todo.extend(part)
        elif hasattr(part, "__dict__"):
            yield part
            todo.extend(vars(part).values())


def _is_own(part: Any) -> bool:
    return type(part).__module__.startswith("paretomkl.") and not isinstance(part, BaseEstimator)


def _skops() -> ModuleType:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError("Saving and loading models needs skops: pip install 'paretomkl[save]'.") from error
    return skops.io
