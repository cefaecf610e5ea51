"""Data sets for the benchmarks: scikit-learn's digits, and the paper's data sets if there is a local copy."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from paretomkl.datasets import data_found, fetch

HOME = Path(os.environ.get("PARETOMKL_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


READERS = {
    name: partial(fetch, name, data_home=HOME, return_X_y=True) for name in ("robot", "vehicle", "segment", "satellite")
}


def available() -> list[str]:
    """Names of the paper's data sets that are available."""
    found = data_found(HOME)
    return [name for name in READERS if found[name] is not None]


def load(name: str, fraction: float = 0.1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Attributes in [0, 1] and labels: a fraction of a pool with equally many samples per class."""
    X, y = READERS[name]()
    span = np.ptp(X, axis=0)
    X = (X - X.min(axis=0)) / np.where(span > 0, span, 1)
    classes, counts = np.unique(y, return_counts=True)
    take = round(fraction * counts.min())
    rng = np.random.default_rng(seed)
    rows = np.concatenate([rng.permutation(np.flatnonzero(y == label))[:take] for label in classes])
    return X[rows], y[rows]


def digits(per_class: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Digits with pixels in [0, 1], equally many of each."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    rows = np.concatenate([rng.permutation(np.flatnonzero(y == digit))[:per_class] for digit in range(10)])
    return X[rows] / 16, y[rows]


def digits_binary(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Digits below five against the others, n samples, labels ±1."""
    X, y = load_digits(return_X_y=True)
    rows = np.random.default_rng(seed).permutation(len(X))[:n]
    return X[rows] / 16, np.where(y[rows] < 5, -1, 1)


def blobs(n: int, classes: int, features: int = 20, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping Gaussian clouds in [0, 1]^features, three per class."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-1, 1, (3 * classes, features))
    cloud = np.arange(n) % (3 * classes)
    X = centres[cloud] + 0.9 * rng.standard_normal((n, features))
    return (X - X.min(axis=0)) / np.ptp(X, axis=0), cloud % classes
