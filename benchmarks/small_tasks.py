"""Test accuracy on small tables with tasks: the search over all ways to share, and what people use instead.

    python benchmarks/small_tasks.py run RESULTS.json --runs 10 --jobs 2       # resumable, kept after every cell
    python benchmarks/small_tasks.py report RESULTS.json                       # the table of doc/sharing_results.md

Public tables are cut into three tasks by the terciles of a column, another column in each split, with about 40 training
rows per task. The data are read from scikit-learn and from the folder that PARETOMKL_DATA names. Every method chooses
its parameters by cross-validation on the training set; accuracies are means over the tasks.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from comparison import (
    Matrix,
    Method,
    Split,
    asked_for,
    cell,
    logistic,
    options,
    ours,
    per_task,
    read,
    run_missing,
    svc,
    table,
    trees,
)
from data import HOME
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier

from paretomkl.datasets import fetch

ROWS = 40  # training rows per task
FEWEST = 4  # training rows of a class in a task; a task leaves out classes with fewer, and one for testing
N_TEST = 1500


# ---------------------------------------------------------------------------------------------------- the sets
def _halved(load: Callable[[], tuple[Any, Any]]) -> tuple[Any, Any]:
    """Whether the target is above its median."""
    X, y, *_ = load()
    return X, y > np.median(y)


def _fetched(name: str) -> tuple[Any, Any]:
    return fetch(name, data_home=HOME, return_X_y=True)


TABLES: dict[str, Callable[[], tuple[Any, Any]]] = {
    "breast cancer": partial(load_breast_cancer, return_X_y=True),
    "wine": partial(load_wine, return_X_y=True),
    "iris": partial(load_iris, return_X_y=True),
    "diabetes": partial(_halved, partial(load_diabetes, return_X_y=True)),
    "digits": partial(load_digits, return_X_y=True),
    **{name: partial(_fetched, name) for name in ("vehicle", "segment", "steel", "satellite", "robot")},
    "parkinsons": partial(_halved, partial(_fetched, "parkinsons")),
}


def draw(name: str, run: int) -> Split:
    """Three tasks by the terciles of a column, and a training set of each with at least two classes."""
    X, y = (np.asarray(values) for values in TABLES[name]())
    X = X.astype(float)
    rng = np.random.default_rng(zlib.crc32(f"small tasks {name} {run}".encode()))
    for column in rng.permutation(X.T):
        tasks = np.searchsorted(np.quantile(column, [1 / 3, 2 / 3]), column)
        cells = [_classes(tasks == task, y) for task in range(3)]
        if min(map(len, cells)) > 1:
            break
    train, test = [], []
    for of_task in cells:
        share = min(0.6, ROWS / sum(map(len, of_task)))
        for rows in map(rng.permutation, of_task):
            take = max(FEWEST, round(share * len(rows)))
            train.append(rows[:take])
            test.append(rows[take:])
    first, rest = np.concatenate(train), rng.permutation(np.concatenate(test))[:N_TEST]
    return Split(X[first], y[first], X[rest], y[rest], {}, tasks=tasks[first], tasks_test=tasks[rest])


def _classes(mine: Matrix, y: Matrix) -> list[Matrix]:
    """The rows of each class of a task, without those that are too rare."""
    found = [np.flatnonzero(mine & (y == label)) for label in np.unique(y)]
    return [rows for rows in found if len(rows) > FEWEST]


# -------------------------------------------------------------------------------------------------- the methods
def boosted(split: Split) -> Matrix:
    """Boosted trees with their usual settings."""
    X, X_test = split.scaled
    return HistGradientBoostingClassifier(random_state=0).fit(X, split.y).predict(X_test)


WAYS = ("nothing", "kernel", "function", "everything")
METHODS: dict[str, Method] = {
    "one SVC for all": svc,
    "SVC per task": partial(per_task, svc),
    "logistic": logistic,
    "extra trees": trees,
    "boosted": boosted,
    "ours": partial(ours, share=WAYS),
}
EACH: dict[str, Method] = {f"share {way}": partial(ours, share=way) for way in WAYS}


def one(asked: tuple[str, str, int]) -> dict[str, object]:
    """One row of the results."""
    return cell(draw, (METHODS | EACH)[asked[1]], asked)


def main() -> None:
    given = options(__doc__, 10, METHODS).parse_args()
    if given.what == "report":
        print(table(read(given.file), [*METHODS], tuple(TABLES)))
        return
    if given.methods == "ways":
        given.methods = ",".join(EACH)
    run_missing(given.file, asked_for(given, TABLES), one, given.jobs)


if __name__ == "__main__":
    main()
