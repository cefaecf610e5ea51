"""Test accuracy of the default compared with the usual alternatives, on fresh splits of real data sets.

    python benchmarks/accuracy.py run RESULTS.json --runs 20 --jobs 2     # resumable
    python benchmarks/accuracy.py report RESULTS.json                     # the tables of doc/accuracy.md

There are four collections: seven of the paper's data sets with their smallest training parts; raw public data sets,
from scikit-learn and from the paper, with columns multiplied by random powers of ten; the six sources of mfeat; and
some of the raw data sets with ten training samples per class. Each method chooses its parameters by cross-validation
on the training part.
"""

from __future__ import annotations

import argparse
import json
import warnings
import zlib
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import ttest_rel
from sklearn import datasets as public
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from paretomkl import ParetoMKLClassifierCV
from paretomkl._experiments.plan import STUDIES, LabelledSamples, draw_parts, load
from paretomkl.datasets import fetch
from paretomkl.kernels import sources
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
MFEAT = (5, 10, 30)
FEW = ("digits", "vehicle, raw", "segment, raw", "satellite, raw")
COSTS, STEPS = (0.1, 1.0, 10.0, 100.0, 1000.0), (-6, -4, -2, 0, 2, 4, 6)
METHODS = ("svc", "default", "pairs", "rest", "uniform", "paper", "trees")


def _large_classes(X: Any, y: Any) -> tuple[Any, Any]:
    keep = np.isin(y, (1, 4, 5))
    return X[keep], y[keep]


# ---------------------------------------------------------------------------------------------------- the sets
Draw = Callable[[], tuple[LabelledSamples, LabelledSamples, Any]]


def splits(run: int) -> Iterator[tuple[str, Draw]]:
    """Yield each data set's name and a function that draws its training and test part and returns suitable kernels."""
    for name in SEVEN:
        yield name, lambda name=name: (*_of_paper(name, run), "default")
    for name in RAW:
        yield name, lambda name=name: (*raw_split(name, run), "default")
    for each in MFEAT:
        yield f"mfeat {each}", lambda each=each: _mfeat(each, run)
    for name in FEW:
        yield f"{name}, ten", lambda name=name: (*_ten(name, run), "default")


def _seed(name: str, run: int) -> int:
    return zlib.crc32(f"accuracy {name} {run}".encode())


def _of_paper(name: str, run: int) -> tuple[LabelledSamples, LabelledSamples]:
    study = STUDIES[name]
    data = load(study)
    train, test = draw_parts(data, study.fractions[0], _seed(name, run), study.per_class)
    return data[train], data[test]


def raw_split(name: str, run: int) -> tuple[LabelledSamples, LabelledSamples]:
    """A training and a test part of a raw public data set."""
    loader, size = RAW[name]
    X, y = loader(return_X_y=True)
    units = 10.0 ** np.random.default_rng(_seed(name, 0)).integers(-3, 4, size=np.shape(X)[1])  # as if in other units
    rows = np.arange(len(y))
    train, test = train_test_split(rows, train_size=size, stratify=y, random_state=_seed(name, run) % 2**31)
    whole = LabelledSamples(np.asarray(X, dtype=float) * units, np.asarray(y), None)
    return whole[train], whole[test[:3000]]


def _ten(name: str, run: int) -> tuple[LabelledSamples, LabelledSamples]:
    X, y = RAW[name][0](return_X_y=True)
    rng = np.random.default_rng(_seed(f"{name}, ten", run))
    order = [rng.permutation(np.flatnonzero(y == label)) for label in np.unique(y)]
    train, test = (np.concatenate([rows[part] for rows in order]) for part in (slice(10), slice(10, None)))
    whole = LabelledSamples(np.asarray(X, dtype=float), np.asarray(y), None)
    return whole[train], whole[rng.permutation(test)[:3000]]


def _mfeat(each: int, run: int) -> tuple[LabelledSamples, LabelledSamples, Any]:
    bunch = fetch("mfeat")
    rng = np.random.default_rng(_seed(f"mfeat {each}", run))
    order = [rng.permutation(np.flatnonzero(bunch.target == digit)) for digit in range(10)]
    data = LabelledSamples(bunch.data, bunch.target, None)
    train, test = (np.concatenate([rows[part] for rows in order]) for part in (slice(each), slice(each, None)))
    return data[train], data[test], sources(bunch.sources)


# -------------------------------------------------------------------------------------------------- the methods
def accuracy(method: str, train: LabelledSamples, test: LabelledSamples, kernels: Any) -> tuple[float, Any]:
    """Accuracy over the classes, or mean over the tasks; and what was chosen."""
    if method == "svc":
        return _svc(train, test)
    if method == "trees":
        return _per_task(lambda: ExtraTreesClassifier(300, random_state=0), train, test), None
    given: dict[str, Any] = {
        "default": {"kernels": kernels},
        "pairs": {"kernels": kernels, "multi_class": "one-vs-one", "loss": "hinge"},
        "rest": {"kernels": kernels, "multi_class": "one-vs-rest", "loss": "squared"},
        "uniform": {"kernels": kernels, "ps": 1.0, "s": np.inf},
        "paper": {"kernels": "paper", "s": 1.1, "ps": 1.0},
    }[method]
    model = ParetoMKLClassifierCV(**given).fit(train.X, train.y, tasks=train.tasks)
    return model.score(test.X, test.y, tasks=test.tasks), model.best_params_


def _per_task(make: Callable[[], Any], train: LabelledSamples, test: LabelledSamples) -> float:
    """Fit a classifier for each task, or a single one if the classes are the tasks."""
    if train.tasks is None:
        return float(make().fit(train.X, train.y).score(test.X, test.y))
    scores = []
    for task in np.unique(test.tasks):
        mine, there = train[np.flatnonzero(train.tasks == task)], test[np.flatnonzero(test.tasks == task)]
        only = np.unique(mine.y)
        fitted = None if len(only) == 1 else make().fit(mine.X, mine.y)
        scores.append(np.mean(there.y == only[0]) if fitted is None else fitted.score(there.X, there.y))
    return float(np.mean(scores))


def _svc(train: LabelledSamples, test: LabelledSamples) -> tuple[float, Any]:
    """GridSearchCV(StandardScaler + SVC); tasks share one C and one width."""
    widths = [2.0**k / train.X.shape[1] for k in STEPS]

    def make(C: float, gamma: float) -> Any:
        return make_pipeline(StandardScaler(), SVC(C=C, gamma=gamma))

    if train.tasks is None:
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        search = GridSearchCV(make(1, 1), {"svc__C": COSTS, "svc__gamma": widths}, cv=folds).fit(train.X, train.y)
        return float(search.score(test.X, test.y)), search.best_params_
    folds = MultiTaskStratifiedKFold(5, shuffle=True, random_state=0).split(train.X, train.y, tasks=train.tasks)
    parts = [(train[fit], train[held_out]) for fit, held_out in folds]

    def score(point: tuple[float, float]) -> float:
        return float(np.mean([_per_task(lambda: make(*point), *part) for part in parts]))

    best = max(product(COSTS, widths), key=score)
    return _per_task(lambda: make(*best), train, test), dict(zip(("C", "gamma"), best, strict=True))


# ------------------------------------------------------------------------------------------------------ running
def cell(name: str, draw: Draw, method: str, run: int) -> dict[str, Any]:
    train, test, kernels = draw()
    began = process_time()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        found, chosen = accuracy(method, train, test, kernels)
    return {"set": name, "method": method, "run": run, "accuracy": found, "chosen": chosen, "s": process_time() - began}


def run_all(file: Path, runs: int, jobs: int, methods: list[str], only: str) -> None:
    """Run what is missing; after every run, the file is written completely or not at all."""
    rows = json.loads(file.read_text()) if file.exists() else []
    done = {(row["set"], row["method"], row["run"]) for row in rows}
    for run in range(runs):
        todo = [
            delayed(cell)(name, draw, method, run)
            for (name, draw), method in product(splits(run), methods)
            if (name, method, run) not in done and only in name
        ]
        if not todo:
            continue
        rows += Parallel(n_jobs=jobs)(todo)
        kept = file.with_suffix(".part")
        kept.write_text(json.dumps(rows, default=float))
        kept.replace(file)
        print(f"run {run + 1} of {runs}: {len(todo)} cells", flush=True)


def report(file: Path) -> str:
    """Mean accuracy in per cent, and the difference between the default and SVC with its standard error."""
    rows = json.loads(file.read_text())
    value = {(row["set"], row["method"], row["run"]): 100 * row["accuracy"] for row in rows}
    lines = []
    for title, names in {
        "Seven of the paper's sets": SEVEN,
        "Raw public sets": tuple(RAW),
        "mfeat, samples per class": tuple(f"mfeat {each}" for each in MFEAT),
        "Ten samples per class": tuple(f"{name}, ten" for name in FEW),
    }.items():
        count = {method: sum(key[0] in names and key[1] == method for key in value) for method in METHODS}
        if not count["default"]:
            continue
        shown = ("svc", "default")  # other methods once they are complete
        methods = [m for m in METHODS if m in shown or count[m] >= max(1, count["svc"])]
        lines += [
            f"\n### {title}\n",
            f"| | {' | '.join(methods)} | default − svc | runs |",
            "|---" * (len(methods) + 3) + "|",
        ]
        gains, columns = [], {method: [] for method in methods}
        for name in names:
            runs = [run for run in range(1000) if all((name, method, run) in value for method in ("default", "svc"))]
            if not runs:
                continue
            mine = {m: [value[name, m, run] for run in runs if (name, m, run) in value] for m in methods}
            means = {method: np.mean(found) if found else np.nan for method, found in mine.items()}
            ours, theirs = ([value[name, method, run] for run in runs] for method in ("default", "svc"))
            difference = np.subtract(ours, theirs)
            error = difference.std(ddof=1) / np.sqrt(len(runs)) if len(runs) > 1 else np.nan
            sure = len(runs) > 1 and difference.any() and ttest_rel(ours, theirs).pvalue < 0.05
            mark = (" ▴" if difference.mean() > 0 else " ▾") if sure else ""
            gains.append(difference.mean())
            for method in methods:
                columns[method].append(means[method])
            cells = " | ".join(f"{means[method]:.1f}" for method in methods)
            lines.append(f"| {name} | {cells} | {difference.mean():+.1f} ± {error:.1f}{mark} | {len(runs)} |")
        if gains:
            cells = " | ".join(f"{np.mean(columns[method]):.2f}" for method in methods)
            lines.append(f"| **mean** | {cells} | {np.mean(gains):+.2f} | |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "report"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--methods", default=",".join(METHODS), help="separated by commas")
    parser.add_argument("--only", default="", help="data sets whose name contains this")
    given = parser.parse_args()
    if given.what == "report":
        print(report(given.file))
        return
    run_all(given.file, given.runs, given.jobs, given.methods.split(","), given.only)


if __name__ == "__main__":
    main()
