"""Decisions with exchanged columns are those for samples whose columns were exchanged."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import chi2_kernel

from paretomkl import (
    Cosine,
    Gaussian,
    KernelBank,
    Laplacian,
    Linear,
    ParetoMKLClassifier,
    ParetoMKLRegressor,
    Polynomial,
    sources,
)
from paretomkl._data.reading import read_samples
from paretomkl._fitting import exchange
from paretomkl._fitting.exchange import exchanged
from paretomkl._fitting.models import as_samples
from paretomkl.exceptions import MissingValueWarning, SourceWarning

RNG = np.random.default_rng(0)
N, D = 60, 5
X = RNG.standard_normal((N, D))
COUNTS = RNG.poisson(0.5, (N, D)).astype(float)
Y = X[:, 0] + X[:, 1] ** 2 + 0.3 * COUNTS[:, 2]
LABELS = np.digitize(Y, [0.5, 1.5])
TASKS = np.where(np.arange(N) % 3, "a", "b")
FEW = [Gaussian(1.0), Laplacian(2.0), Linear(), Polynomial(degree=2)]

BANKS = {
    "default": ("default", X),
    "unit diagonal": ("paper", X),
    "sources that overlap": (sources({"left": [0, 1, 2], "right": [2, 3, 4]}), X),
    "as they are": (KernelBank([*FEW, Cosine()], normalize="none"), X),
    "far from the origin": (FEW, X + 1e4),
    "any function": ([chi2_kernel, Gaussian(1.0), Linear(columns=[0, 2])], np.abs(X)),
    "square roots": ("default", COUNTS),
    "sparse": ("default", csr_array(COUNTS)),
    "many": ([Gaussian(w, columns=[c]) for c in range(D) for w in np.geomspace(0.1, 10, 60)], X),
}


def check(model, samples, tasks=None):
    groups = [np.arange(N)] if tasks is None else [np.flatnonzero(tasks == task) for task in np.unique(tasks)]
    donors = np.arange(N)
    for rows in groups:
        donors[rows] = RNG.permutation(rows)
    columns = [np.array([0]), np.array([2]), np.arange(D)]
    for some, found in zip(columns, exchanged(model, samples, columns, [donors]), strict=True):
        given = samples.data.toarray() if hasattr(samples.data, "toarray") else samples.data.copy()
        given[:, some] = given[np.ix_(donors, some)]
        data = csr_array(given) if hasattr(samples.data, "toarray") else given
        expected = model.decided(replace(samples, data=data))
        assert_array_equal(found.tasks, expected.tasks)
        assert_allclose(found.values, expected.values, rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings(f"ignore::{SourceWarning.__module__}.SourceWarning")
@pytest.mark.parametrize("name", BANKS)
def test_every_kind_of_kernel(name):
    kernels, data = BANKS[name]
    clf = ParetoMKLClassifier(C=10.0, kernels=kernels).fit(data, LABELS)
    check(clf.model_, as_samples(data, None))


@pytest.mark.parametrize("share", ["nothing", "kernel", "function", "everything"])
def test_every_way_to_share(share, monkeypatch):
    monkeypatch.setattr(exchange, "PANEL_BYTES", 2000)  # several batches of rows
    clf = ParetoMKLClassifier(share=share, multi_class="one-vs-rest").fit(X, LABELS, tasks=TASKS)
    check(clf.model_, as_samples(X, TASKS), TASKS)
    reg = ParetoMKLRegressor(share=share).fit(X, np.column_stack([Y, np.where(Y > 1, np.nan, Y**2)]))
    check(reg.model_, as_samples(X, None))


def test_gaps_and_categories():
    """A column of categories is exchanged with its indicators, and a gap as a gap."""
    frame = pd.DataFrame(X, columns=list("abcde")).assign(kind=np.array(["x", "y", "z"])[np.arange(N) % 3])
    frame.loc[::7, "b"] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingValueWarning)
        clf = ParetoMKLClassifier().fit(frame, LABELS)
        samples = read_samples(clf, frame)
    columns, donors = [np.array([1]), np.array([5]), np.array([0, 5])], RNG.permutation(N)
    for some, found in zip(columns, exchanged(clf.model_, samples, columns, [donors]), strict=True):
        given = samples.data.copy()
        given[:, some] = given[np.ix_(donors, some)]
        assert_allclose(found.values, clf.model_.decided(replace(samples, data=given)).values, atol=1e-9)


def test_distances_keep_their_digits_when_an_outlier_moves_away():
    far = X.copy()
    far[3, 1] = 1e6
    model = ParetoMKLRegressor(kernels=KernelBank([Gaussian(3.0)], normalize="none"), normalize_y=False).fit(far, Y)
    check(model.model_, as_samples(far, None))
