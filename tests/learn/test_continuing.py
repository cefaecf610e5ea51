"""Fits that continue from a fit to fewer rows: the same certificate, less work."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris

from paretomkl import ParetoMKLClassifier, ParetoMKLClassifierCV, ParetoMKLRegressor, load_model, save_model
from paretomkl.datasets import make_multitask
from paretomkl.exceptions import UnseenLevelWarning
from paretomkl.kernels import Gaussian, KernelBank, Linear

FIXED = KernelBank([Linear(), Gaussian(1.0), Gaussian(3.0)], normalize="none", standardize=False)  # whatever the data
SHARES = ["nothing", "kernel", "function", "everything"]
LOSSES = {
    "hinge": ParetoMKLClassifier(loss="hinge"),
    "squared": ParetoMKLClassifier(loss="squared"),
    "logistic": ParetoMKLClassifier(loss="logistic"),
    "ridge": ParetoMKLRegressor(normalize_y=False),
    "tube": ParetoMKLRegressor(loss="epsilon_insensitive", normalize_y=False),
}


def shuffled(n_tasks=3, n_samples=40, seed=0):
    made = make_multitask(n_tasks=n_tasks, n_samples=n_samples, random_state=seed)
    order = np.random.default_rng(seed).permutation(len(made.data))
    return made.data[order], made.target[order], np.asarray(made.tasks)[order]


@pytest.fixture(scope="module")
def data():
    return shuffled()


def first(n, X, y, tasks):
    return X[:n], y[:n], tasks[:n]


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_certificate_is_that_of_a_cold_fit(data, loss, share):
    X, y, tasks = data
    y = y if loss in ("hinge", "squared", "logistic") else X[:, 0] + np.sin(X[:, 1])
    plain = clone(LOSSES[loss]).set_params(share=share, kernels=FIXED, C=3.0)
    old, new = clone(plain), clone(plain)
    old.fit(X[:100], y[:100], tasks=tasks[:100])
    new.fit(X, y, tasks=tasks, warm_from=old)
    best = clone(plain).set_params(tol=1e-7).fit(X, y, tasks=tasks).objective_
    assert new.gap_ <= 1e-3
    assert best * (1 - 1e-6) <= new.objective_ * (1 + 1e-6)
    # what is reported lies above the optimum by no more than the gap (objectives are reported from the dual)
    assert abs(new.objective_ / best - 1) <= 2e-3
    assert best >= (1 - new.gap_) * new.objective_ - 1e-6 * best


def test_kernels_stay_and_work_is_saved(data):
    X, y, tasks = data
    old = ParetoMKLClassifier().fit(X[:114], y[:114], tasks=tasks[:114])
    new = ParetoMKLClassifier().fit(X, y, tasks=tasks, warm_from=old)
    cold = ParetoMKLClassifier().fit(X, y, tasks=tasks)
    assert new.model_.bank is old.model_.bank
    assert new.n_sweeps_ < cold.n_sweeps_
    assert "3 of 3 tasks" in new.continued_
    assert not hasattr(cold, "continued_")


def test_the_same_rows_need_two_sweeps_at_most(data):
    X, y, tasks = data
    old = ParetoMKLClassifier().fit(X, y, tasks=tasks)
    assert ParetoMKLClassifier().fit(X, y, tasks=tasks, warm_from=old).n_sweeps_ <= 2


def test_tasks_with_other_labels_or_costs_start_afresh(data):
    X, y, tasks = data
    old = ParetoMKLClassifier(kernels=FIXED).fit(X[:100], y[:100], tasks=tasks[:100])
    names = np.unique(tasks)
    changed, weight = y.copy(), np.ones(len(y))
    row = np.flatnonzero(tasks[:100] == names[0])[0]
    changed[row] = np.setdiff1d(y, [y[row]])[0]
    weight[np.flatnonzero(tasks[:100] == names[1])[0]] = 0.5
    new = ParetoMKLClassifier(kernels=FIXED)
    new.fit(X, changed, tasks=tasks, sample_weight=weight, warm_from=old)
    assert "1 of 3 tasks" in new.continued_
    best = ParetoMKLClassifier(kernels=FIXED, tol=1e-7).fit(X, changed, tasks=tasks, sample_weight=weight).objective_
    assert abs(new.objective_ / best - 1) <= 2e-3
    more = ParetoMKLClassifier(kernels=FIXED, C=0.5).fit(X, y, tasks=tasks, warm_from=old)
    assert "0 of 3 tasks" in more.continued_


def test_new_tasks_and_new_classes_may_come():
    X, y = load_iris(return_X_y=True)  # sorted by class
    order = np.concatenate([np.arange(100), np.arange(100, 150)])
    old = ParetoMKLClassifier(kernels=FIXED).fit(X[:100], y[:100])
    new = ParetoMKLClassifier(kernels=FIXED).fit(X[order], y[order], warm_from=old)
    assert "1 of 3 tasks" in new.continued_
    assert new.predict(X).tolist() == ParetoMKLClassifier(kernels=FIXED).fit(X, y).predict(X).tolist()


def test_targets_in_other_units_keep_kernels_and_weights():
    X, y = load_diabetes(return_X_y=True)
    old = ParetoMKLRegressor().fit(X[:420], y[:420])
    new, cold = ParetoMKLRegressor().fit(X, y, warm_from=old), ParetoMKLRegressor().fit(X, y)
    assert "0 of 1 task" in new.continued_
    assert new.n_sweeps_ < cold.n_sweeps_
    assert np.abs(new.predict(X) - cold.predict(X)).max() < 0.02 * np.ptp(y)


@pytest.mark.parametrize("form", ["sparse", "stack", "saved", "pickled"])
def test_it_works_with_other_samples_and_models_from_files(data, form, tmp_path):
    X, y, tasks = data
    plain, part = ParetoMKLClassifier(kernels=FIXED), X[:100]
    if form == "sparse":
        X = csr_array(X)
        part = X[:100]
    elif form == "stack":
        plain.set_params(kernels="precomputed")
        X = np.stack([X @ X.T, (1 + X @ X.T) ** 2], axis=-1)
        part = X[:100, :100]
    old = clone(plain).fit(part, y[:100], tasks=tasks[:100])
    if form == "saved":
        save_model(old, tmp_path / "old.skops")
        old = load_model(tmp_path / "old.skops")
    elif form == "pickled":
        old = pickle.loads(pickle.dumps(old))
    new, cold = clone(plain).fit(X, y, tasks=tasks, warm_from=old), clone(plain).fit(X, y, tasks=tasks)
    assert "3 of 3 tasks" in new.continued_
    assert abs(new.objective_ / cold.objective_ - 1) <= 2e-3


def test_rows_that_changed_are_refused(data):
    X, y, tasks = data
    old = ParetoMKLClassifier().fit(X[:100], y[:100], tasks=tasks[:100])
    other = X.copy()
    other[7, 0] += 1e-9
    for given in ((other, y, tasks), (X[:90], y[:90], tasks[:90]), (X[::-1], y[::-1], tasks[::-1])):
        with pytest.raises(ValueError, match="warm_from learned from 100 rows"):
            ParetoMKLClassifier().fit(given[0], given[1], tasks=given[2], warm_from=old)


def test_models_that_learned_something_else_are_refused(data):
    X, y, tasks = data
    old = ParetoMKLClassifier().fit(X[:100], y[:100], tasks=tasks[:100])
    for other in (ParetoMKLClassifier(loss="squared"), ParetoMKLClassifier(share="everything")):
        with pytest.raises(ValueError, match="fitted with machine='svc' and share='kernel'"):
            other.fit(X, y, tasks=tasks, warm_from=old)
    with pytest.raises(ValueError, match="keeps the kernels of the earlier model, but kernels= is different"):
        ParetoMKLClassifier(kernels=["linear"]).fit(X, y, tasks=tasks, warm_from=old)
    search = ParetoMKLClassifierCV(ps=[1.0], Cs=[1.0], s=1.1, cv=2, share="kernel")
    search.fit(X[:100], y[:100], tasks=tasks[:100])
    with pytest.raises(ValueError, match="kernels= is different"):
        clone(search).set_params(kernels=["linear"]).fit(X, y, tasks=tasks, warm_from=search)
    with pytest.raises(ValueError, match="fitted model of this library, got 'old'"):
        ParetoMKLClassifier().fit(X, y, tasks=tasks, warm_from="old")


@pytest.mark.parametrize(
    "plain", [ParetoMKLClassifier(), ParetoMKLClassifierCV(ps=[1.0], Cs=[1.0], s=1.1, cv=2)], ids=["plain", "search"]
)
def test_new_rows_may_have_new_levels(data, plain):
    """The earlier rows keep their codes, although the new level comes before theirs in the alphabet."""
    X, y, _ = data
    frame = pd.DataFrame(X).add_prefix("x").assign(ward=np.where(X[:, 0] > 0, "east", "west"))
    frame.loc[110:, "ward"] = "a new one"
    old = clone(plain).fit(frame[:100], y[:100])
    with pytest.warns(UnseenLevelWarning, match="Column 'ward' has a level"):
        new = clone(plain).fit(frame, y, warm_from=old)
    assert new.codings_ == old.codings_
    assert new.gap_ <= 1e-3
    with pytest.raises(ValueError, match="at another place"):
        clone(plain).fit(frame[frame.columns[::-1]], y, warm_from=old)


@pytest.mark.parametrize("share", ["kernel", "everything", "nothing"])
def test_a_search_keeps_its_choice(data, share):
    X, y, tasks = data
    plain = ParetoMKLClassifierCV(ps=[0.5, 1.0, 2.0], Cs=[1.0, 10.0], s=2.0, capacity=0.5, cv=2, share=share)
    old = clone(plain).fit(X[:110], y[:110], tasks=tasks[:110])
    new = clone(plain).fit(X, y, tasks=tasks, warm_from=old)
    assert new.best_params_ == old.best_params_
    assert new.cv_results_ is old.cv_results_
    bank = (new.model_.models[0] if share == "nothing" else new.model_).bank
    assert bank is (old.model_.models[0] if share == "nothing" else old.model_).bank
    cold = clone(new.best_estimator_).fit(X, y, tasks=tasks)
    assert new.n_sweeps_ < cold.n_sweeps_
    assert "took over their duals" in new.continued_
    assert abs(new.objective_ / cold.objective_ - 1) < 0.05  # the kernels are scaled as before
    assert (new.predict(X, tasks=tasks) == cold.predict(X, tasks=tasks)).mean() > 0.95
    with pytest.raises(ValueError, match="must be a fitted ParetoMKLClassifierCV"):
        clone(plain).fit(X, y, tasks=tasks, warm_from=new.best_estimator_)
