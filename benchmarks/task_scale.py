"""Accuracy with M_p of J_t and of J_t / n_t: ``python benchmarks/task_scale.py``; about a minute.

The tasks are synthetic, with different sizes and noise, plus Landmine if the folder ``PARETOMKL_DATA`` has it. C is the
same for both forms, because they only differ in the kernel weights.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from data import HOME

from paretomkl import Gaussian, pareto_path
from paretomkl._experiments.plan import STUDIES, draw_parts, load
from paretomkl.datasets import data_found, make_multitask

PS = [0.1, 1.0, 10.0, np.inf]
RUNS = 10
NEW = 400  # test samples per task, with correct labels

Parts = tuple[tuple, tuple, dict]  # training and test set as (X, y, tasks), options of the path


def synthetic(seed: int, sizes: list[int], noise: list[float], relatedness: float = 1.0) -> Parts:
    """Six tasks on ten sources, two of which matter to all; wrong labels in the training set only."""
    made = make_multitask(
        len(sizes), np.array(sizes) + NEW, n_sources=10, relatedness=relatedness, sigma=2.0, random_state=seed
    )
    rng = np.random.default_rng(seed)
    y, train = made.target.copy(), np.zeros(len(made.target), dtype=bool)
    for t, (size, rate) in enumerate(zip(sizes, noise, strict=True)):
        rows = rng.permutation(np.flatnonzero(made.tasks == t))[:size]
        train[rows] = True
        y[rows[: round(rate * size)]] ^= 1
    kernels = [Gaussian(2.0, columns=columns) for columns in made.columns]
    parts = [(made.data[rows], y[rows], made.tasks[rows]) for rows in (train, ~train)]
    return parts[0], parts[1], {"kernels": kernels, "C": 3.0}


def landmine(seed: int, fraction: int) -> Parts:
    """Part of the paper's balanced pool for training; the pool's tasks have 30 to 96 samples."""
    part = load(STUDIES["landmine"], HOME)
    train, test = (part[rows] for rows in draw_parts(part, fraction, seed))
    return (train.X, train.y, train.tasks), (test.X, test.y, test.tasks), {"kernels": "paper", "C": 1.0}


CASES: dict[str, Callable[[int], Parts]] = {
    "3 of 20, 3 of 200": partial(synthetic, sizes=[20] * 3 + [200] * 3, noise=[0.0] * 6),
    "3 of 20 with 30 % wrong, 3 of 200": partial(synthetic, sizes=[20] * 3 + [200] * 3, noise=[0.3] * 3 + [0.0] * 3),
    "3 of 20, 3 of 200 with 30 % wrong": partial(synthetic, sizes=[20] * 3 + [200] * 3, noise=[0.0] * 3 + [0.3] * 3),
    "5 of 40, 1 of 400 with 40 % wrong": partial(synthetic, sizes=[40] * 5 + [400], noise=[0.0] * 5 + [0.4]),
    "3 of 20, 3 of 200, less in common": partial(
        synthetic, sizes=[20] * 3 + [200] * 3, noise=[0.0] * 6, relatedness=0.6
    ),
}
if data_found(HOME)["landmine"] is not None:
    CASES |= {f"Landmine, {fraction} %": partial(landmine, fraction=fraction) for fraction in (20, 50)}


def accuracies(parts: Parts, task_scale: str) -> np.ndarray:
    """Mean over the tasks and worst task at every p, of shape (n_ps, 2)."""
    (X, y, tasks), (X_new, y_new, tasks_new), options = parts
    path = pareto_path(X, y, tasks=tasks, ps=PS, task_scale=task_scale, verbose=0, **options)
    by_task = [model.task_accuracy(X_new, y_new, tasks_new) for model in path.models]
    return np.array([[one.mean(), one.min()] for one in by_task])


def main() -> None:
    print("| tasks | p | J_t: mean | worst | J_t / n_t: mean | worst | difference of means | of worst |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name, make in CASES.items():
        runs = np.array([[accuracies(make(seed), scale) for scale in ("none", "samples")] for seed in range(RUNS)])
        plain, scaled = 100 * runs.mean(axis=0)
        paired = 100 * (runs[:, 1] - runs[:, 0])
        error = paired.std(axis=0, ddof=1) / np.sqrt(RUNS)
        for k, p in enumerate(PS):
            said = [f"{mean:+.1f} ± {err:.1f}" for mean, err in zip(paired.mean(axis=0)[k], error[k], strict=True)]
            numbers = [f"{value:.1f}" for value in (*plain[k], *scaled[k])]
            print(
                f"| {name} | {'∞' if np.isinf(p) else format(p, 'g')} | " + " | ".join(numbers + said) + " |",
                flush=True,
            )


if __name__ == "__main__":
    main()
