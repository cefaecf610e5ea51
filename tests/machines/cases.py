"""Small problems for the tests of the machines, and how to make a machine from them."""

import numpy as np

from paretomkl import KernelBank
from paretomkl.gram import GramBlocks
from paretomkl.machines import MACHINES

KINDS = ("ridge", "svr", "one-class", "svdd", "logistic")
EPSILON = 0.1


def gaussian(X, sigma=0.5):
    return np.exp(-np.sum((X[:, None] - X) ** 2, axis=2) / (2 * sigma**2))


def make_machine(kind, Ks, tasks, C, epsilon=EPSILON, n_jobs=1, scale=None):
    """Ks (M, N, N); tasks: pairs (rows, targets); C: a number, or the costs of every task."""
    stack = np.ascontiguousarray(np.moveaxis(np.asarray(Ks), 0, 2))
    gram = GramBlocks(KernelBank("precomputed").fit(stack), stack, [rows for rows, _ in tasks], n_jobs)
    per_task = [C] * len(tasks) if np.isscalar(C) else C
    costs = [np.broadcast_to(c, len(rows)) for c, (rows, _) in zip(per_task, tasks, strict=True)]
    options = {"epsilon": epsilon} if kind == "svr" else {}
    targets = np.concatenate([y for _, y in tasks])
    return MACHINES[kind].make(gram, targets, np.concatenate(costs), scale, **options)


def one_task(kind, K, y, C, epsilon=EPSILON):
    """One task with one kernel."""
    return make_machine(kind, K[None], [(np.arange(len(y)), y)], [np.asarray(C, dtype=float)], epsilon)


def some_tasks(kind, seed=0, sizes=(14, 10, 12)):
    """Four kernels with different diagonals and three tasks, two of which share samples; Ks, tasks, C."""
    rng = np.random.default_rng(seed)
    n = sum(sizes) - 4
    X = rng.uniform(-1, 1, size=(n, 3))
    Ks = np.stack([X @ X.T + 0.2, gaussian(X, 0.4), gaussian(X[:, :1], 0.5), (X[:, 1:] @ X[:, 1:].T + 0.5) ** 2])
    starts = (0, sizes[0] - 4, sizes[0] + sizes[1] - 4)
    tasks = []
    for t, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        rows = np.arange(start, start + size)
        y = np.sin(2 * X[rows, 0]) + (t - 1) * X[rows, 1] * X[rows, 2] + 0.1 * rng.standard_normal(size)
        tasks.append((rows, targets_of(kind, (1 + t) * (y - y.mean()) / y.std())))
    return Ks, tasks, {"one-class": 0.3, "svdd": 0.2}.get(kind, 2.0)


def targets_of(kind, numbers):
    """Targets that the machine reads: these numbers, their signs, or ones."""
    reads = MACHINES[kind].reads
    return np.sign(numbers) if reads == "labels" else numbers if reads == "numbers" else np.ones(len(numbers))


def some_theta(seed, n_kernels=4):
    theta = np.random.default_rng(seed).exponential(size=n_kernels)
    return theta / theta.sum()


def rounding_of(sweep, expected):
    """What rounding adds to the bounds of the first task, which is at most a few times ``expected``, as sums add up."""
    rounding = float(sweep.rounding[0] @ sweep.theta)
    assert rounding <= 4 * (len(sweep.warm.dual) + 40) * expected + 1e-13 * sweep.upper[0]
    return rounding


def steps_of(sweep):
    return int(np.sum(sweep.warm.steps))
