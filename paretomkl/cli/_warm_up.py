"""Compile everything that paths, fits, searches, predictions and baselines need, on a tiny problem."""

from __future__ import annotations

import warnings
from time import perf_counter

import numpy as np
from numba.core import event

from .. import baselines
from .._learn.estimators import ParetoMKLClassifier
from .._learn.path import pareto_path
from .._select.search import ParetoMKLClassifierCV
from ..kernels._kernels import Cosine, Gaussian, Laplacian, Linear, Polynomial

PS = (0.5, 1.0, 2.0, np.inf)


def warm_up() -> tuple[int, float]:
    """Number of functions compiled (without those from the cache), and the total time in seconds."""
    began = perf_counter()
    with event.install_recorder("numba:compile") as recorder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the problems are too small for warnings to mean anything
        _run_everything()
    return sum(happened.is_start for _, happened in recorder.buffer), perf_counter() - began


def _run_everything() -> None:
    rng = np.random.default_rng(0)
    X, y, tasks = rng.random((24, 3)), np.tile([0, 1], 12), np.repeat([0, 1], 12)
    kernels = [Linear(), Polynomial(2), Gaussian(1.0), Laplacian(1.0), Cosine()]
    for s in (1.0, 1.1, np.inf):
        pareto_path(X, y, tasks=tasks, ps=PS, s=s, kernels=kernels, verbose=0)
    pareto_path(X, (X[:, 0] > 0.5) ^ (y == 1), ps=[1.0], kernels=[Linear()], C=1e6, verbose=0)  # takes Newton steps
    for solver in ("bcd", "tseng"):
        pareto_path(X, y, tasks=tasks, ps=[1.0], kernels=kernels, solver=solver, max_iter=3, verbose=0)
    stack = np.stack([X @ X.T, (X @ X.T) ** 2], axis=2)
    for samples, bank in ((X, kernels), (stack, "precomputed")):
        ParetoMKLClassifier(kernels=bank).fit(samples, y, tasks=tasks).predict(samples, tasks=tasks)
        search = ParetoMKLClassifierCV(PS, Cs=[1.0, 10.0], cv=2, kernels=bank).fit(samples, y, tasks=tasks)
        search.predict(samples, tasks=tasks)
    for name in baselines.__all__:
        getattr(baselines, name)().fit(X, y, tasks=tasks).predict(X, tasks=tasks)
