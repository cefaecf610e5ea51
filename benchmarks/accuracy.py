"""Test accuracy of the default compared with the usual alternatives, on fresh splits of real data sets.

    python benchmarks/accuracy.py run RESULTS.json --runs 20 --jobs 2     # resumable
    python benchmarks/accuracy.py report RESULTS.json                     # the tables of doc/accuracy.md

There are three collections: seven of the paper's data sets with their smallest training sets; raw public data sets,
from scikit-learn and from the paper, with columns multiplied by random powers of ten; and the six sources of mfeat.
Each method chooses its parameters by cross-validation on the training set. Where a data set has tasks, the baselines
get a model for each task.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from comparison import (
    COSTS,
    STEPS,
    Matrix,
    Method,
    Row,
    Split,
    asked_for,
    boosted,
    cell,
    difference,
    folds,
    fusion,
    gaussian_sum,
    linear_sum,
    logistic,
    options,
    ours,
    per_task,
    read,
    run_missing,
    trees,
)
from sklearn import datasets as public
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from paretomkl._experiments.plan import STUDIES, LabelledSamples, draw_parts, load
from paretomkl.datasets import fetch
from paretomkl.model_selection import MultiTaskStratifiedKFold

SEVEN = ("segment", "vehicle", "landmine", "robot", "steel", "satellite", "letter")
RAW = {
    "wine": (public.load_wine, 100),
    "breast cancer": (public.load_breast_cancer, 200),
    "iris": (public.load_iris, 75),
    "digits": (public.load_digits, 250),
    "vehicle, raw": (lambda **_: fetch("vehicle", return_X_y=True), 250),
    "segment, raw": (lambda **_: fetch("segment", return_X_y=True), 250),
    "satellite, raw": (lambda **_: fetch("satellite", return_X_y=True), 250),
    "steel, raw": (lambda **_: fetch("steel", return_X_y=True), 250),
    "robot 24, raw": (lambda **_: fetch("robot", n_sensors=24, return_X_y=True), 250),
    "shuttle, raw": (lambda **_: _large_classes(*fetch("shuttle", return_X_y=True)), 250),
}
MFEAT = (5, 10, 20, 30)
SETS = (*SEVEN, *RAW, *(f"mfeat {each}" for each in MFEAT))


def _large_classes(X: Any, y: Any) -> tuple[Any, Any]:
    keep = np.isin(y, (1, 4, 5))
    return X[keep], y[keep]


# ---------------------------------------------------------------------------------------------------- the sets
def draw(name: str, run: int) -> Split:
    """The training set and the test set of a set."""
    if name in SEVEN:
        return _split(*_of_paper(name, run))
    if name in RAW:
        return _split(*raw_split(name, run))
    return _mfeat(int(name.removeprefix("mfeat ")), run)


def _split(train: LabelledSamples, test: LabelledSamples, blocks: Mapping[str, Any] | None = None) -> Split:
    return Split(train.X, train.y, test.X, test.y, dict(blocks or {}), False, train.tasks, test.tasks)


def _seed(name: str, run: int) -> int:
    return zlib.crc32(f"accuracy {name} {run}".encode())


def _of_paper(name: str, run: int) -> tuple[LabelledSamples, LabelledSamples]:
    study = STUDIES[name]
    data = load(study)
    train, test = draw_parts(data, study.fractions[0], _seed(name, run), study.per_class)
    return data[train], data[test]


def raw_split(name: str, run: int) -> tuple[LabelledSamples, LabelledSamples]:
    """A training and a test set of a raw public data set."""
    loader, size = RAW[name]
    X, y = loader(return_X_y=True)
    units = 10.0 ** np.random.default_rng(_seed(name, 0)).integers(-3, 4, size=np.shape(X)[1])  # as if in other units
    rows = np.arange(len(y))
    train, test = train_test_split(rows, train_size=size, stratify=y, random_state=_seed(name, run) % 2**31)
    whole = LabelledSamples(np.asarray(X, dtype=float) * units, np.asarray(y), None)
    return whole[train], whole[test[:3000]]


def _mfeat(each: int, run: int) -> Split:
    bunch = fetch("mfeat")
    rng = np.random.default_rng(_seed(f"mfeat {each}", run))
    order = [rng.permutation(np.flatnonzero(bunch.target == digit)) for digit in range(10)]
    data = LabelledSamples(bunch.data, bunch.target, None)
    train, test = (np.concatenate([rows[part] for rows in order]) for part in (slice(each), slice(each, None)))
    return _split(data[train], data[test], bunch.sources)


# -------------------------------------------------------------------------------------------------- the methods
def _separately(method: Callable[[Split], Matrix]) -> Method:
    """The method, for each task if there are tasks."""
    return partial(_by_task, method)


def _by_task(method: Callable[[Split], Matrix], split: Split) -> Matrix:
    return method(split) if split.tasks is None else per_task(method, split)


def _svc(split: Split) -> tuple[Matrix, dict[str, float]]:
    """GridSearchCV(StandardScaler + SVC); tasks share one C and one width."""
    grid = {"svc__C": COSTS[2:], "svc__gamma": [2.0**k / split.X.shape[1] for k in STEPS]}
    if split.tasks is None:
        search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid, cv=folds(split.y))
        return search.fit(split.X, split.y).predict(split.X_test), search.best_params_

    def fitted(point: tuple[float, float]) -> Method:
        C, gamma = point
        return lambda part: (
            make_pipeline(StandardScaler(), SVC(C=C, gamma=gamma)).fit(part.X, part.y).predict(part.X_test)
        )

    splitter = MultiTaskStratifiedKFold(5, shuffle=True, random_state=0)
    whole = LabelledSamples(split.X, split.y, split.tasks)
    parts = [
        _split(whole[fit], whole[held_out]) for fit, held_out in splitter.split(split.X, split.y, tasks=split.tasks)
    ]

    def score(point: tuple[float, float]) -> float:
        return float(np.mean([part.accuracy(per_task(fitted(point), part)) for part in parts]))

    best = max(product(*grid.values()), key=score)
    return per_task(fitted(best), split), dict(zip(grid, best, strict=True))


METHODS: dict[str, Method] = {
    "svc": _svc,
    "logistic": _separately(logistic),
    "extra trees": _separately(trees),
    "boosted": _separately(boosted),
    "uniform": partial(ours, ps=1.0, s=np.inf),
    "linear sum": linear_sum,
    "Gaussian sum": gaussian_sum,
    "late fusion": fusion,
    "pairs": partial(ours, multi_class="one-vs-one", loss="hinge"),
    "rest": partial(ours, multi_class="one-vs-rest", loss="squared"),
    "paper": partial(ours, kernels="paper", s=1.1, ps=1.0),
    "default": ours,
}
OURS = ("uniform", "pairs", "rest", "paper", "default")  # with our search
FEWEST = 5  # a method is shown once it has so many runs; a table is over the runs that all of its methods have
NEED_SOURCES = ("linear sum", "Gaussian sum", "late fusion")


def one(asked: tuple[str, str, int]) -> Row:
    """One row of the results."""
    return cell(draw, METHODS[asked[1]], asked)


# ---------------------------------------------------------------------------------------------------- reporting
def report(rows: list[Row]) -> str:
    """Mean accuracy in per cent, and the difference between the default and SVC with its standard error."""
    value = {(row["set"], row["method"], row["run"]): 100 * row["accuracy"] for row in rows}
    lines = []
    for title, names in {
        "Seven of the paper's sets": SEVEN,
        "Raw public sets": tuple(RAW),
        "mfeat, samples per class": tuple(f"mfeat {each}" for each in MFEAT),
    }.items():
        runs_of = {m: {run for run in range(1000) if all((name, m, run) in value for name in names)} for m in METHODS}
        methods = [m for m, found in runs_of.items() if len(found) >= FEWEST]
        if not {"svc", "default"} <= set(methods):
            continue
        runs = sorted(set.intersection(*(runs_of[m] for m in methods)))
        lines += [
            f"\n### {title}\n",
            f"| | {' | '.join(methods)} | default − svc | runs |",
            "|---" * (len(methods) + 3) + "|",
        ]
        means, gains = [], []
        for name in names:
            found = {method: [value[name, method, run] for run in runs] for method in methods}
            mean = np.array([np.mean(of_method) for of_method in found.values()])
            best = max(mean[k] for k, method in enumerate(methods) if method not in OURS)
            shown = " | ".join(
                f"**{m:.1f}**" if m == best and method not in OURS else f"{m:.1f}"
                for m, method in zip(mean, methods, strict=True)
            )
            lines.append(f"| {name} | {shown} | {difference(found['default'], found['svc'])} | {len(runs)} |")
            means.append(mean)
            gains.append(mean[-1] - mean[0])
        shown = " | ".join(f"{mean:.2f}" for mean in np.mean(means, axis=0))
        lines.append(f"| **mean** | {shown} | {np.mean(gains):+.2f} | |")
    return "\n".join(lines)


def main() -> None:
    given = options(__doc__, 20, METHODS, first=0).parse_args()
    if given.what == "report":
        print(report(read(given.file)))
        return
    asked = [
        (name, method, run)
        for name, method, run in asked_for(given, SETS)
        if method not in NEED_SOURCES or name.startswith("mfeat")
    ]
    run_missing(given.file, asked, one, given.jobs)


if __name__ == "__main__":
    main()
