"""A loss for users: the squared hinge, with an intercept that is penalised as in scikit-learn's LinearSVC.

J_t(θ) = min over f, b of  ½ ‖f‖² + ½ b² + ½ Σ C_i max(0, 1 − y_i (f(x_i) + b))²
       = max over α ≥ 0 of  Σα − ½ Σ α_i²/C_i − ½ (y'α)² − ½ (y∘α)'K_θ(y∘α)

θ occurs in the last term only, so every α ≥ 0 gives a cut. The dual is a non-negative least squares problem; SciPy
solves it for tasks of up to some hundred samples.
"""

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.svm import LinearSVC

from paretomkl import ParetoMKLClassifier, ParetoMKLClassifierCV, pareto_path
from paretomkl.machines import KernelTasks, MachineKind
from paretomkl.protocols import Promises
from paretomkl.sweep import Decisions, Sweep

DIGITS = 1e-12  # kernel values and sums are at least this accurate, relative to their terms


class SquaredHingeTasks(KernelTasks):
    # J ≥ 0; a is concave in α and zero at α = 0; a does not depend on the kernels, and grows with C.
    # It neither shifts (the intercept is penalised) nor is homogeneous (a contains α²/C).
    promises = Promises(nonnegative=True, shrinks=True, scales=True, grows=True)

    def sweep(self, theta, warm=None, rtol=1e-6):
        """Solve every task at θ, exactly but for rounding; ``warm`` is for ``decisions`` only."""
        v, ptr = np.zeros(len(self.targets)), self.gram.layout.ptr  # where the samples of each task begin
        linear, upper = np.zeros((2, self.n_tasks))
        with self.gram.combined(theta) as K:
            for t in range(self.n_tasks):
                own = np.arange(ptr[t], ptr[t + 1])
                own = own[self.C[own] > 0]  # samples of weight zero are ignored
                k = K.of_task(t, own - ptr[t], own - ptr[t])
                linear[t], upper[t], v[own] = solve(k, self.targets[own], self.C[own])
        linear, upper, forms = self.scale * linear, self.scale * upper, self.forms(v)  # rounded up
        return Sweep(theta, linear, forms, linear - 0.5 * forms @ theta, upper, warm=v)

    def decisions(self, sweep):
        return Decisions(np.split(sweep.warm, self.gram.layout.ptr[1:-1]), self.of_tasks(sweep.warm))  # b = y'α


def solve(K, y, C):
    """The linear part of the cut, rounded down, the primal objective, rounded up, and y∘α of one task."""
    factor = cholesky(np.outer(y, y) * (K + 1) + np.diag(1 / C), lower=True)
    alpha, _ = nnls(factor.T, solve_triangular(factor, np.ones(len(y)), lower=True))
    v, root = y * alpha, np.sqrt(np.diag(K))
    terms = alpha.sum(), 0.5 * alpha**2 @ (1 / C), 0.5 * v.sum() ** 2
    off = DIGITS * (1 + root * (root @ abs(v)) + abs(v).sum())  # of the decisions
    loss = np.maximum(0, 1 - y * (K @ v + v.sum()) + off)
    primal = 0.5 * v @ K @ v + terms[2] + 0.5 * C @ loss**2
    return terms[0] - terms[1] - terms[2] - DIGITS * sum(terms), primal + DIGITS * (root @ abs(v)) ** 2, v


SQUARED_HINGE = MachineKind("squared hinge", SquaredHingeTasks, reads="labels", promises=SquaredHingeTasks.promises)


def main():
    X, y = load_iris(return_X_y=True)
    path = pareto_path(X, y, machine=SQUARED_HINGE, ps=[0.1, 1, 10], tol=1e-4)
    search = ParetoMKLClassifierCV(loss=SQUARED_HINGE, Cs=[0.1, 1, 10], ps=1, cv=3).fit(X, y)
    print(f"largest gap of a path {path.gap.max():.0e}, accuracy of a search {search.best_score_:.2f}")
    X, y = X[50:] - X[50:].mean(axis=0), y[50:]  # one task, to be compared on features Z with ZZ' = K_θ
    stack = np.stack([linear_kernel(X), rbf_kernel(X, gamma=1), rbf_kernel(X, gamma=0.1)], axis=2)
    clf = ParetoMKLClassifier(loss=SQUARED_HINGE, C=2, kernels="precomputed", tol=1e-6).fit(stack, y)
    values, vectors = np.linalg.eigh(stack @ clf.theta_)
    Z = vectors * np.sqrt(np.maximum(values, 0))
    other = LinearSVC(C=1, tol=1e-10, max_iter=100_000).fit(Z, y)  # its loss has no factor ½
    difference = abs(clf.decision_function(stack) - other.decision_function(Z)).max()
    print(f"θ = {clf.theta_.round(2)}, largest difference from LinearSVC {difference:.0e}")
    return difference


if __name__ == "__main__":
    main()
