"""A weight set: the weighted ball {θ ≥ 0, Σ_m w_m θ_m^s ≤ 1}, in which kernels with larger w cost more.

In terms of φ_m = w_m^(1/s) θ_m it is the plain ball, so everything it has to provide follows from ‖φ‖_s.
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
    from shifted_geometric_mean import make_machine  # three tasks from iris

    from paretomkl.problem import MultiTaskProblem
    from paretomkl.scalarizations import PowerMean
    from paretomkl.solvers import CutPool

    machine = make_machine()
    narrow = [1.0] * 2 + [20.0] * 4 + [1.0] * 5  # the four narrowest Gaussians cost twenty times as much
    for costs in ([1.0] * 11, narrow):
        ball = WeightedBall(1.1, tuple(costs))
        solution = CutPool(tol=1e-4).solve(MultiTaskProblem(machine, PowerMean(1.0), ball))
        share = solution.theta[2:6].sum() / solution.theta.sum()
        print(f"share of the narrow kernels {share:.0%}, gap {solution.gap:.0e}")


if __name__ == "__main__":
    main()
