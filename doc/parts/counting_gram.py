"""A Gram store that wraps the library's own store and counts the calls.

A store answers four questions: how the tasks are laid out in memory (``layout``), what the combined matrices are
(``combined``), what each kernel contributes to a task (``quadratic_forms``), and how other samples relate to these
(``cross``). A store that keeps its matrices on an accelerator, or computes them row by row, would answer the same
questions.
"""

from collections import Counter

import numpy as np
from sklearn.datasets import load_iris

from paretomkl.gram import GramBlocks
from paretomkl.kernels import KernelBank
from paretomkl.machines import SVCTasks
from paretomkl.problem import MultiTaskProblem
from paretomkl.scalarizations import PowerMean
from paretomkl.solvers import CutPool
from paretomkl.weight_sets import LsBall


class CountingGram:
    def __init__(self, store):
        self.store = store
        self.calls = Counter()

    @property
    def layout(self):
        return self.store.layout

    @property
    def bank(self):
        return self.store.bank

    @property
    def n_kernels(self):
        return self.store.n_kernels

    @property
    def n_jobs(self):
        return self.store.n_jobs

    def combined(self, theta):
        self.calls["combined"] += 1
        return self.store.combined(theta)

    def quadratic_forms(self, v):
        self.calls["quadratic_forms"] += 1
        return self.store.quadratic_forms(v)

    def cross(self, X, theta):
        self.calls["cross"] += 1
        return self.store.cross(X, theta)


def main():
    X, y = load_iris(return_X_y=True)
    rows = np.flatnonzero(y != 0)
    gram = CountingGram(GramBlocks(KernelBank("paper").fit(X), X, [rows]))
    machine = SVCTasks(gram, np.where(y[rows] == 2, 1.0, -1.0), np.full(len(rows), 10.0))
    solution = CutPool().solve(MultiTaskProblem(machine, PowerMean(1.0), LsBall(1.1)))
    function = machine.decisions(solution.sweep)
    scores = gram.cross(X, solution.theta)[:, rows] @ function.dual[0] + function.intercepts[0]
    print(
        f"{solution.n_sweeps} sweeps: {dict(gram.calls)}; accuracy {np.mean((scores > 0)[rows] == (y[rows] == 2)):.2f}"
    )
    return gram, solution


if __name__ == "__main__":
    main()
