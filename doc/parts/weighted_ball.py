"""A weight set: the weighted ball {θ ≥ 0, Σ_m w_m θ_m^s ≤ 1}, in which kernels with larger w cost more.

In terms of φ_m = w_m^(1/s) θ_m it is the plain ball, so all it has to provide follows from ‖φ‖_s.
"""

from dataclasses import dataclass

import numpy as np

from paretomkl.weight_sets import CONSTRAINT, GAUGE, LsBall, barrier_function


@barrier_function
def weighted_powers(question, x, parameters, gradient, curvature):
    """Answer the compiled master for x ≥ 0: c(x) with its derivatives, the scaling to the boundary, or max of θ'x."""
    s = parameters[0]  # the w_m follow
    total = 0.0
    for m in range(len(x)):
        w = parameters[1 + m]
        if question == CONSTRAINT:
            gradient[m] = w * s * x[m] ** (s - 1)
            curvature[m] = w * s * (s - 1) * x[m] ** (s - 2)
        if question in (CONSTRAINT, GAUGE):
            total += w * x[m] ** s
        else:
            total += (x[m] / w ** (1 / s)) ** (s / (s - 1))
    if question == CONSTRAINT:
        return total
    return total ** (1 / s) if question == GAUGE else total ** (1 - 1 / s)


@dataclass(frozen=True)
class WeightedBall:
    s: float
    costs: tuple  # w, one for each kernel
    norm: float = float("nan")  # it is no L_s ball
    sparse: bool = False
    roots = property(lambda self: np.array(self.costs) ** (1 / self.s))

    def start(self, n_kernels):
        return self.scale_to_boundary(np.ones(n_kernels))

    def support(self, direction):
        return LsBall(self.s).support(direction / self.roots)

    def scale_to_boundary(self, theta):
        return LsBall(self.s).scale_to_boundary(theta * self.roots) / self.roots

    def minimize_ratio(self, w):
        """Σ w_m/θ_m = Σ w_m w'_m^(1/s) / φ_m."""
        return LsBall(self.s).minimize_ratio(w * self.roots) / self.roots

    def greatest(self, n_kernels):
        return None  # no weights are the largest for every kernel

    @property
    def barrier(self):
        return weighted_powers, np.array([self.s, *self.costs])


def main():
    from shifted_geometric_mean import load_iris, make_machine  # three tasks from iris

    from paretomkl import ParetoMKLClassifier
    from paretomkl.problem import MultiTaskProblem
    from paretomkl.scalarizations import PowerMean
    from paretomkl.solvers import CutPool

    for cost in (1.0, 20.0):  # of the four narrowest Gaussians; the others cost 1
        ball = WeightedBall(1.1, (1.0,) * 2 + (cost,) * 4 + (1.0,) * 5)
        solution = CutPool(tol=1e-4).solve(MultiTaskProblem(make_machine(), PowerMean(1.0), ball))
        print(f"narrow kernels {solution.theta[2:6].sum() / solution.theta.sum():.0%}, gap {solution.gap:.0e}")
    # the same without parts; searches and pareto_path take a weight set too
    clf = ParetoMKLClassifier(weight_set=ball, C=10, kernels="paper", tol=1e-4).fit(*load_iris(return_X_y=True))
    print(f"an estimator: {clf.theta_[2:6].sum() / clf.theta_.sum():.0%}, gap {clf.gap_:.0e}")
    return solution, clf


if __name__ == "__main__":
    main()
