"""Classifiers that give probabilities, from a calibration of their own or from log-odds."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from types import MethodType
from typing import Any, Protocol

import numpy as np

from .._data.labels import Samples
from .._data.reading import Examples
from .._data.tasks import as_labels, codes_of, rows_by_code, unique_labels
from .._tools.typing import IntArray
from ..exceptions import TaskDataError
from ..machines import MachineKind
from .calibration import Calibration, HeldOut
from .fold_models import FoldModel, fit_folds

N_FOLDS = 5  # of the decisions that probability=True calibrates


class Probable(Protocol):
    """A classifier that may give probabilities: from its ``calibration_``, or from decisions that are log-odds."""

    calibration_: Calibration
    model_: Any
    loss: str | MachineKind
    _samples: Callable[..., Samples]

    @property
    def machine_kind(self) -> MachineKind:
        """The kind of machine of the loss."""

    @property
    def gives_probabilities(self) -> bool:
        """Whether there are probabilities, once it is fitted."""


class offered:
    """A method that only some estimators have; like ``available_if``, but the error says what to do."""

    def __init__(self, method: Callable[..., Any]):
        self.method = method
        update_wrapper(self, method)  # type: ignore[arg-type]

    def __get__(self, estimator: Any, owner: type) -> Callable[..., Any]:
        if estimator is None:
            return self.method
        if not estimator.gives_probabilities:
            raise AttributeError(
                f"{owner.__name__} with loss={estimator.loss!r} has no probabilities; set probability=True, or use "
                "ParetoMKLClassifierCV, which calibrates them on the folds of its search."
            )
        return MethodType(self.method, estimator)


class of_searches:
    """In place of a method that only a search has, since it needs folds: the error names the search."""

    def __init__(self, search: str):
        self.search = search

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, estimator: Any, owner: type) -> Any:
        raise AttributeError(
            f"{owner.__name__} has no {self.name}, which needs the folds of a search; use {self.search}."
        )


# methods of the classifiers, which share no base class of their own


@offered
def predict_proba(self: Probable, X: Any, *, tasks: Any = None) -> Any:
    """Probabilities of the classes.

    They are calibrated on decisions for samples held out in folds; with ``loss="logistic"`` and without folds, they are
    those of the log-odds. A class that the sample's task does not have gets zero, and samples of a new task the
    calibration of all tasks together. The class that ``predict`` returns always has the largest probability: if the
    calibration favours another one, the two share their probabilities. With ``class_weight``, the probabilities are
    those of samples with these weights.

    Parameters
    ----------
    X, tasks
        As in ``predict``.

    Returns
    -------
    probabilities : array of shape (n_samples, n_classes), or list of n_tasks arrays of shape (n_samples, 2)
        The columns are in the order of ``classes_``. The list is for a matrix y.
    """
    samples = self._samples(X, tasks)
    model = self.model_
    calibration = getattr(self, "calibration_", None) or Calibration.plain(model.tasks, self.machine_kind.decisions)
    return calibration.probabilities(model.tasks, model.decided(samples), samples)


@offered
def predict_log_proba(self: Any, X: Any, *, tasks: Any = None) -> Any:
    """Logarithms of ``predict_proba``; −inf for a class that the sample's task does not have.

    Parameters
    ----------
    X, tasks
        As in ``predict``.

    Returns
    -------
    logarithms : array of shape (n_samples, n_classes), or list of n_tasks arrays of shape (n_samples, 2)
    """
    found = self.predict_proba(X, tasks=tasks)
    with np.errstate(divide="ignore"):
        return [np.log(own) for own in found] if isinstance(found, list) else np.log(found)


def held_out(folds: list[FoldModel], examples: Examples) -> list[HeldOut]:
    """The decisions of the models of folds with what they are compared with."""
    tests = [(fold, examples.take(fold.test)) for fold in folds]
    return [HeldOut(fold.model.tasks, fold.decided, test.samples, test.y, test.sample_weight) for fold, test in tests]


def calibrated(estimator: Any, examples: Examples) -> Calibration:
    """The calibration of a fitted classifier, on decisions of folds in which the same parameters learn again."""
    try:
        folds = fit_folds(estimator, examples, _folds(examples))
    except TaskDataError as error:
        raise TaskDataError(
            f"probability=True fits {N_FOLDS} folds, and in one of them: {error.problem}",
            "Use two samples or more of each class, or probability=False.",
            error.task,
        ) from error
    kind, tasks = estimator.machine_kind, estimator.model_.tasks
    return Calibration.of(tasks, kind.decisions, held_out(folds, examples), estimator.class_weight)


def _folds(examples: Examples) -> list[tuple[IntArray, IntArray]]:
    """Folds that spread the samples of each task and label evenly, if they can."""
    samples, n = examples.samples, len(examples.samples)
    labels = as_labels(examples.y, "y").reshape(n, -1)
    columns = [*labels.T] if samples.sources is None else [samples.sources, *labels.T]
    cell = np.zeros(n, dtype=np.int64)
    for column in columns:
        names = unique_labels(column)
        cell = cell * (len(names) + 1) + codes_of(column, names)
        cell = np.unique(cell, return_inverse=True)[1]
    rng = np.random.default_rng(0)
    order = np.concatenate([rng.permutation(rows) for rows in rows_by_code(cell, int(cell.max()) + 1)])
    fold = np.empty(n, dtype=np.int64)
    fold[order] = np.arange(n) % N_FOLDS
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(min(N_FOLDS, n))]
