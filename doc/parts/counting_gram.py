"""A Gram store that wraps the library's own store and counts the calls.

A store answers four questions: how the tasks are laid out in memory (``layout``), what the combined matrices are
(``combined``), what each kernel contributes to a task (``quadratic_forms``), and how large each sample is under each
kernel (``diagonals``). It also says whether it can do without full matrices (``streams``) or with fewer kernels
(``can_choose``); this one says no, so it is asked for no more than that.
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
    streams = can_choose = False

    def __init__(self, store):
        self.store = store
        self.calls = Counter()

    @property
    def layout(self):
        return self.store.layout

    @property
    def n_kernels(self):
        return self.store.n_kernels

    @property
    def names(self):
        return self.store.names

    @property
    def n_jobs(self):
        return self.store.n_jobs

    @property
    def rounding(self):
        return self.store.rounding

    def combined(self, theta):
        self.calls["combined"] += 1
        return self.store.combined(theta)

    def quadratic_forms(self, v):
        self.calls["quadratic_forms"] += 1
        return self.store.quadratic_forms(v)

    def diagonals(self):
        self.calls["diagonals"] += 1
        return self.store.diagonals()


def main():
    X, y = load_iris(return_X_y=True)
    rows = np.flatnonzero(y != 0)
    gram = CountingGram(GramBlocks(KernelBank("paper").fit(X), X, [rows]))
    machine = SVCTasks(gram, np.where(y[rows] == 2, 1.0, -1.0), np.full(len(rows), 10.0))
    solution = CutPool().solve(MultiTaskProblem(machine, PowerMean(1.0), LsBall(1.1)))
    function = machine.decisions(solution.sweep)
    with gram.combined(solution.theta) as K:
        scores = K.of_task(0) @ function.dual[0] + function.intercepts[0]
    print(f"{solution.n_sweeps} sweeps: {dict(gram.calls)}; accuracy {np.mean((scores > 0) == (y[rows] == 2)):.2f}")
    return gram, solution


if __name__ == "__main__":
    main()
