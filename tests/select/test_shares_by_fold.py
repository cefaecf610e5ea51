"""How steady shares of kernels and sources are over the folds of a search."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_wine

from paretomkl import ParetoMKLClassifierCV, sources

X, Y = load_wine(return_X_y=True)
TASKS = np.arange(len(Y)) % 2
GRID = {"ps": [1.0, 5.0], "Cs": [1.0, 10.0], "s": [1.1, 2.0], "capacity": [0.5, 1.0], "cv": 3}
TWO = sources({"left": slice(0, 6), "right": slice(6, 13)})


@pytest.mark.parametrize("share", ["kernel", "function", "everything"])
def test_shares_of_the_folds_are_those_of_their_models(share):
    search = ParetoMKLClassifierCV(**GRID, kernels=TWO, share=share).fit(X, Y, tasks=TASKS)
    models = [fold.model for fold in search.folds_.fitted(search.best_estimator_)]
    expected = np.array([model.bank.variance_share(model.theta) for model in models])
    assert_allclose(search.kernel_shares_by_fold_, expected, atol=0.03)  # each within tol of the optimum
    assert_allclose(search.kernel_shares_by_fold_.sum(axis=1), 1.0)
    assert_allclose(search.kernel_shares_std_, search.kernel_shares_by_fold_.std(axis=0))
    left = search.kernel_shares_by_fold_[:, [name.split(": ")[-2] == "left" for name in named(search)]].sum(axis=1)
    assert search.source_shares_std_["left"] == pytest.approx(left.std())
    assert list(search.source_shares_std_) == ["left", "right"]


def named(search):
    """Kernel names with a source each, also for the level of a task."""
    return [name if name.count(": ") and "level" not in name else f"none: {name}" for name in search.kernel_names_]


def test_tasks_with_kernels_of_their_own_have_no_common_shares():
    search = ParetoMKLClassifierCV(**GRID, kernels=TWO, share="nothing").fit(X, Y, tasks=TASKS)
    assert search.kernel_shares_by_fold_ is None
    with pytest.raises(AttributeError, match="own kernels"):
        _ = search.kernel_shares_std_
    plain = ParetoMKLClassifierCV(**GRID).fit(X, Y)
    assert plain.kernel_shares_std_.shape == plain.kernel_shares_.shape
    with pytest.raises(AttributeError, match="no named sources"):
        _ = plain.source_shares_std_
