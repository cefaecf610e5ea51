"""A scalarization: the shifted geometric mean, S(g) = exp(mean of log(g_t + c)) − c.

It is concave and lies between the geometric mean (c = 0) and the average (c → ∞): tasks whose objectives are small
compared with c count the same. A concave scalarization only needs its value and its gradient: the cut pool minimises
it by re-weighting, and the certificate is that of the weighted sum.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_iris

from paretomkl import ParetoMKLClassifier
from paretomkl.gram import GramBlocks
from paretomkl.kernels import KernelBank
from paretomkl.machines import SVCTasks
from paretomkl.problem import MultiTaskProblem
from paretomkl.solvers import CutPool
from paretomkl.weight_sets import LsBall


@dataclass(frozen=True)
class ShiftedGeometricMean:
    shift: float
    p: float = float("nan")  # it has no exponent
    convex: bool = False
    homogeneous: bool = False

    def log_value(self, objectives):
        """log S along the last axis; log1p and expm1 stay accurate for large c."""
        return np.log(self.shift * np.expm1(np.log1p(objectives / self.shift).mean(axis=-1)))

    def value(self, objectives):
        return float(np.exp(self.log_value(objectives)))

    def gradient(self, objectives):
        """∂S/∂g_t = (S + c) / (T (g_t + c))."""
        return (self.value(objectives) + self.shift) / (len(objectives) * (objectives + self.shift))

    def task_weights(self, objectives):
        gradient = self.gradient(objectives)
        return gradient / gradient.sum()


def make_machine(C=10.0):
    """Three classes of iris as three one-vs-one SVM tasks."""
    X, y = load_iris(return_X_y=True)
    rows = [np.flatnonzero(y != left_out) for left_out in (2, 1, 0)]
    signs = [np.where(y[r] == y[r].max(), 1.0, -1.0) for r in rows]
    gram = GramBlocks(KernelBank("paper").fit(X), X, rows)
    return SVCTasks(gram, np.concatenate(signs), np.full(sum(map(len, rows)), C))


def main():
    machine = make_machine()
    for shift in (0.01, 1.0, 100.0):
        problem = MultiTaskProblem(machine, ShiftedGeometricMean(shift), LsBall(1.1))
        solution = CutPool(tol=1e-4).solve(problem)
        print(f"shift {shift:g}: weights of the tasks {solution.task_weights.round(3)}, gap {solution.gap:.0e}")
    X, y = load_iris(return_X_y=True)  # the same without parts; searches and pareto_path take a scalarization too
    clf = ParetoMKLClassifier(scalarization=ShiftedGeometricMean(100.0), C=10, kernels="paper", tol=1e-4).fit(X, y)
    print(f"an estimator: {clf.task_weights_.round(3)}")
    return solution, clf


if __name__ == "__main__":
    main()
