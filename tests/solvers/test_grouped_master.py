"""The master of very many tasks, whose cuts are those of groups."""

from __future__ import annotations

import numpy as np
import pytest

from paretomkl import pareto_path
from paretomkl.solvers import _cut_pool, _grouped_master
from paretomkl.weight_sets import LsBall


@pytest.fixture
def pairs(monkeypatch):
    """Two samples each of 14 classes, in 91 tasks, and a master of ten groups once ``group`` is called."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(14), 2)
    X = rng.normal(size=(14, 4))[y] + 0.5 * rng.normal(size=(28, 4))

    def group():
        monkeypatch.setattr(_cut_pool, "MANY_TASKS", 50)
        monkeypatch.setattr(_grouped_master, "GROUPS", 10)

    return X, y, group


@pytest.mark.parametrize("p", [0.5, 1.0, 3.0, np.inf])
def test_groups_of_tasks_lead_to_the_same_optimum(pairs, p):
    X, y, group = pairs
    exact = pareto_path(X, y, ps=[p], C=10.0, tol=1e-6)
    group()
    path = pareto_path(X, y, ps=[p], C=10.0, tol=1e-4)
    assert path.gap[0] <= 1e-4
    # for p < 1 the gap is that of a weighted sum
    assert path.objective[0] == pytest.approx(exact.objective[0], rel=2e-4)
    if p >= 1:
        assert path.gap[0] >= 1 - exact.objective[0] / path.objective[0] - 1e-6


def test_groups_prove_bounds_on_every_sum_of_the_tasks(pairs):
    """The multipliers of a grouped master, expanded to tasks, bound the optimum of the master of all tasks."""
    rng = np.random.default_rng(1)
    n_rows, n_tasks, n_kernels = 4, 91, 3
    _, _, group = pairs
    group()
    slopes = rng.random((n_rows, n_tasks, n_kernels))
    slopes[0] = 0.0
    linear = 1.0 + slopes.sum(axis=2) * rng.uniform(0.2, 0.5, (n_rows, 1))
    linear[0] = 0.1
    scale, omega = rng.uniform(0.5, 2.0, n_tasks), np.full(n_tasks, 1 / n_tasks)
    present = np.ones((n_rows, n_tasks), dtype=bool)
    weight_set = LsBall(1.5)
    for p in (1.0, 4.0):
        master = _cut_pool.MasterProblem(linear, slopes, present, scale, omega, p, weight_set)
        whole = _cut_pool.minimize_over_cuts(master, weight_set.start(n_kernels), 1e-6)
        found = _grouped_master.TaskGroups.of(n_tasks).minimize(master, weight_set.start(n_kernels), 1e-6)
        proved = (found.multipliers / scale * linear).sum() - weight_set.support(master.slope(found.multipliers))
        assert proved == pytest.approx(found.lower, rel=1e-6)
        assert found.lower <= whole.upper * (1 + 1e-6)
