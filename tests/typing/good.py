"""What a user writes, under strict type checks."""

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import paretomkl
from paretomkl import Gaussian, KernelBank, ParetoMKLClassifier, ParetoMKLClassifierCV, ParetoPath, pareto_path
from paretomkl.baselines import IndependentMKL
from paretomkl.gram import GramBlocks
from paretomkl.machines import SVCTasks
from paretomkl.problem import MultiTaskProblem
from paretomkl.scalarizations import PowerMean
from paretomkl.solution import Solution
from paretomkl.solvers import CutPool
from paretomkl.weight_sets import LsBall

X = np.random.default_rng(0).random((20, 3))
y = np.tile([0, 1], 10)
weight = np.ones(20)

clf = ParetoMKLClassifier(p=0.5, solver="bcd", class_weight="balanced", task_column=None, max_iter=50)
assert_type(clf.fit(X, y, sample_weight=weight), ParetoMKLClassifier)
theta: NDArray[np.float64] = clf.fit(X, y).theta_
assert_type(clf.gap_, float)
assert_type(clf.n_sweeps_, int)
assert_type(clf.task_names_, list[str])
assert_type(clf.score(X, y, tasks=None), float)
assert_type(clf.model_, paretomkl.TaskModel)
assert_type(clf.set_params(p=1.0), ParetoMKLClassifier)

search = ParetoMKLClassifierCV(ps=[0.5, 1.0], Cs=[1.0], error_score="raise").fit(X, y)
assert_type(search, ParetoMKLClassifierCV)
assert_type(search.best_params_, dict[str, float])
assert_type(search.best_estimator_, ParetoMKLClassifier)
assert_type(search.path_, ParetoPath)


def my_kernel(A: NDArray[np.float64], B: NDArray[np.float64]) -> NDArray[np.float64]:
    return A @ B.T


path = pareto_path(
    X,
    y,
    kernels=[Gaussian(2.0, columns=[0, 1]), "linear", ("rbf", {"gamma": 0.5}), my_kernel],
    ps=[1.0],
    solver=CutPool(tol=1e-4),
)
assert_type(path, ParetoPath)
assert_type(path.gap, NDArray[np.float64])
assert_type(path.models, list[paretomkl.TaskModel])
pareto_path(X, y, kernels=KernelBank("default", normalize="trace"), class_weight={0: 2.0})

gram = GramBlocks(KernelBank().fit(X), X, [np.arange(20)])
problem = MultiTaskProblem(SVCTasks(gram, np.where(y, 1.0, -1.0), weight), PowerMean(1.0), LsBall(1.1))
assert_type(CutPool().solve(problem), Solution)
assert_type(IndependentMKL().fit(X, y), IndependentMKL)
