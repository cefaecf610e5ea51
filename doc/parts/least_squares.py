"""A machine: least squares (kernel ridge regression without an intercept), solved on its dual.

J_t(θ) = max over α of  α'y − ‖α‖²/2C − ½ α'K_θα  has the solution α = (K_θ + I/C)⁻¹ y. Any α gives the cut
J_t(θ') ≥ (α'y − ‖α‖²/2C) − ½ θ'·G(α), so the cut pool can trace a path of regressions just as it does for SVMs.
"""

import numpy as np

from paretomkl.gram import GramBlocks
from paretomkl.kernels import Gaussian, KernelBank, Linear
from paretomkl.problem import MultiTaskProblem
from paretomkl.protocols import Promises
from paretomkl.scalarizations import PowerMean
from paretomkl.solvers import CutPool
from paretomkl.sweep import Decisions, Sweep
from paretomkl.weight_sets import LsBall


class LeastSquares:
    """T least-squares tasks over one Gram store; ``targets`` has one array per task."""

    # J ≥ 0, duals may shrink, and forms follow the scale of a kernel; Promises() would do too, only slower
    promises = Promises(nonnegative=True, shrinks=True, scales=True)

    def __init__(self, gram, targets, C):
        self.gram, self.targets, self.C = gram, targets, C

    @property
    def n_tasks(self):
        return len(self.targets)

    @property
    def n_kernels(self):
        return self.gram.n_kernels

    def sweep(self, theta, warm=None, rtol=1e-6):
        """Direct solves need no warm start; ``warm`` keeps the duals for ``decisions``."""
        with self.gram.combined(theta) as K:
            dual = [np.linalg.solve(K.of_task(t) + np.eye(len(y)) / self.C, y) for t, y in enumerate(self.targets)]
        linear = np.array([a @ y - a @ a / (2 * self.C) for a, y in zip(dual, self.targets, strict=True)])
        forms = self.gram.quadratic_forms(np.concatenate(dual))
        lower = linear - 0.5 * forms @ theta
        return Sweep(theta, linear, forms, lower, lower * (1 + 1e-12), warm=dual)

    def decisions(self, sweep):
        return Decisions(sweep.warm, np.zeros(self.n_tasks))


def make_tasks(n_tasks=3, n=40, seed=0):
    """Noisy waves with different phases: the rows and targets of each task."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_tasks * n, 2))
    rows = np.split(np.arange(n_tasks * n), n_tasks)
    noise = 0.1 * (1 + np.arange(n_tasks))
    targets = [np.sin(3 * X[r, 0] + t) + noise[t] * rng.standard_normal(n) for t, r in enumerate(rows)]
    return X, rows, targets


def main():
    X, rows, targets = make_tasks()
    bank = KernelBank([Linear(), Gaussian(0.1), Gaussian(0.5), Gaussian(2.0)]).fit(X)
    machine = LeastSquares(GramBlocks(bank, X, rows), targets, C=10.0)
    solution = None
    for p in (1.0, 0.1, np.inf):  # all of them share one pool of cuts
        problem = MultiTaskProblem(machine, PowerMean(p), LsBall(1.1))
        solution = CutPool(tol=1e-4).solve(problem, init=solution)
        print(f"p = {p:g}: objectives {solution.objectives.round(3)}, gap {solution.gap:.0e}")
    return machine, solution


if __name__ == "__main__":
    main()
