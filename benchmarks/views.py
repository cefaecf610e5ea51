"""Test accuracy with several sources: the default search compared with what people use instead, on fresh splits.

    python benchmarks/views.py run RESULTS.json --runs 10 --jobs 2             # resumable, kept after every cell
    python benchmarks/views.py report RESULTS.json                             # the table of doc/accuracy.md
    python benchmarks/views.py run LOSSES.json --first 0 --runs 5 --methods losses    # each loss, on other splits

The data are read from the folder that PARETOMKL_DATA names. Every method chooses its parameters by cross-validation on
the training part. Word counts are compared as they are and as tf-idf, always the same on both sides.
"""

from __future__ import annotations

import argparse
import json
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from accuracy import raw_split
from data import HOME
from joblib import Parallel, delayed
from scipy.spatial.distance import cdist
from scipy.stats import ttest_rel
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from paretomkl import ParetoMKLClassifierCV
from paretomkl.datasets import fetch
from paretomkl.kernels import sources

PER_CLASS = {"tcga3": 20, "msrcv1": 5, "bbcsport": 10, "3sources": 5, "scene15": 10, "mfeat": 10}  # training samples
NEWS = ("bbcsport", "3sources")  # word counts
VIEWS = (*PER_CLASS, *(f"{name} tf-idf" for name in NEWS), "stemcells")
TABLES = ("wine", "breast cancer", "digits", "vehicle, raw", "segment, raw", "steel, raw")  # without sources
N_TEST = 1500
COSTS, STEPS = tuple(10.0**k for k in range(-3, 4)), (-6, -4, -2, 0, 2, 4, 6)

Matrix = np.ndarray[Any, np.dtype[Any]]


# ---------------------------------------------------------------------------------------------------- the sets
@dataclass(frozen=True)
class Split:
    """A training part and a test part of the same columns."""

    X: Matrix
    y: Matrix
    X_test: Matrix
    y_test: Matrix
    blocks: dict[str, slice]
    counts: bool = False  # word counts or tf-idf, which the baselines do not standardise
    tasks: Matrix | None = None
    tasks_test: Matrix | None = None

    @property
    def scaled(self) -> tuple[Matrix, Matrix]:
        """The columns as the baselines get them: standardised, and with an indicator for each task."""
        X, X_test = self.X, self.X_test
        if not self.counts:
            scaler = StandardScaler().fit(X)
            X, X_test = scaler.transform(X), scaler.transform(X_test)
        if self.tasks is not None:
            X, X_test = (
                np.hstack([part, tasks[:, None] == np.unique(self.tasks)])
                for part, tasks in ((X, self.tasks), (X_test, self.tasks_test))
            )
        return X, X_test

    def accuracy(self, predicted: Matrix) -> float:
        """Mean over the tasks, or over all samples."""
        right = predicted == self.y_test
        if self.tasks_test is None:
            return float(np.mean(right))
        return float(np.mean([right[self.tasks_test == task].mean() for task in np.unique(self.tasks_test)]))


def draw(name: str, run: int) -> Split:
    """A fresh split: as many of each class as PER_CLASS says, or two fifths of each class of each task."""
    if name in TABLES:
        train, test = raw_split(name, run)
        return Split(train.X, train.y, test.X, test.y, {})
    plain = name.removesuffix(" tf-idf")
    if plain == "mfeat":
        bunch = fetch("mfeat", data_home=HOME)
        X, y, tasks, blocks = bunch.data, bunch.target, None, dict(bunch.sources)
    else:
        stored = np.load(HOME / "views" / f"{plain}.npz")
        X, y, ends = stored["X"].astype(float), stored["y"], np.cumsum(stored["widths"])
        tasks = stored.get("tasks")
        starts = ends - stored["widths"]
        blocks = {str(n): slice(int(a), int(b)) for n, a, b in zip(stored["names"], starts, ends, strict=True)}
    rng = np.random.default_rng(zlib.crc32(f"views {plain} {run}".encode()))
    groups = [rng.permutation(np.flatnonzero(y == label)) for label in np.unique(y)]
    takes = [PER_CLASS.get(plain, 0)] * len(groups)
    if tasks is not None:
        cells = product(np.unique(tasks), np.unique(y))
        groups = [rng.permutation(np.flatnonzero((tasks == task) & (y == label))) for task, label in cells]
        takes = [max(2, round(0.4 * len(group))) for group in groups]
    train = np.concatenate([group[:take] for group, take in zip(groups, takes, strict=True)])
    test = rng.permutation(np.setdiff1d(np.arange(len(y)), train))[:N_TEST]
    first, rest = X[train], X[test]
    if name != plain:
        for columns in blocks.values():
            weights = TfidfTransformer().fit(first[:, columns])
            for part in (first, rest):
                part[:, columns] = weights.transform(part[:, columns]).toarray()
    own = (None, None) if tasks is None else (tasks[train], tasks[test])
    return Split(first, y[train], rest, y[test], blocks, plain in NEWS, *own)


# -------------------------------------------------------------------------------------------------- the baselines
def _folds() -> StratifiedKFold:
    return StratifiedKFold(5, shuffle=True, random_state=0)


def _logistic(X: Matrix, y: Matrix, X_test: Matrix) -> tuple[Matrix, Matrix]:
    """Classes and probabilities of the test samples; C by folds.

    With more columns than samples, the columns are rotated into the span of the samples, which changes no prediction.
    """
    if X.shape[1] > len(X):
        _, _, span = np.linalg.svd(X, full_matrices=False)
        X, X_test = X @ span.T, X_test @ span.T
    search = GridSearchCV(LogisticRegression(max_iter=2000), {"C": COSTS}, cv=_folds()).fit(X, y)
    return search.classes_, search.predict_proba(X_test)


def logistic(split: Split) -> Matrix:
    """Logistic regression on all columns."""
    X, X_test = split.scaled
    classes, chances = _logistic(X, split.y, X_test)
    return classes[chances.argmax(axis=1)]


def fusion(split: Split) -> Matrix:
    """Late fusion: the mean probability of one logistic regression per source."""
    X, X_test = split.scaled
    found = [_logistic(X[:, columns], split.y, X_test[:, columns]) for columns in _blocks(split, X)]
    return found[0][0][np.mean([chances for _, chances in found], axis=0).argmax(axis=1)]


def _blocks(split: Split, X: Matrix) -> list[slice]:
    """The columns of each source; the indicators of the tasks are one more block."""
    given = list(split.blocks.values())
    return given if split.tasks is None else [*given, slice(split.X.shape[1], X.shape[1])]


def _uniform(split: Split, kernel: Callable[[Matrix, Matrix], tuple[Matrix, Matrix]]) -> Matrix:
    """SVC under the sum of one kernel per source, each of mean variance 1; C by folds."""
    X, X_test = split.scaled
    K, K_test = 0.0, 0.0
    for columns in _blocks(split, X):
        own, across = kernel(X[:, columns], X_test[:, columns])
        size = np.trace(own) / len(own) - own.mean()
        K, K_test = K + own / size, K_test + across / size
    costs = {"C": [10.0**k for k in range(-3, 5)]}
    return GridSearchCV(SVC(kernel="precomputed"), costs, cv=_folds()).fit(K, split.y).predict(K_test)


def linear_sum(split: Split) -> Matrix:
    """Uniform sum of linear kernels."""
    return _uniform(split, lambda X, Z: (X @ X.T, Z @ X.T))


def gaussian_sum(split: Split) -> Matrix:
    """Uniform sum of Gaussians, each as wide as the median distance in its source."""

    def gaussians(X: Matrix, Z: Matrix) -> tuple[Matrix, Matrix]:
        own, across = cdist(X, X, "sqeuclidean"), cdist(Z, X, "sqeuclidean")
        width = np.median(own[own > 0])
        return np.exp(-own / width), np.exp(-across / width)

    return _uniform(split, gaussians)


def trees(split: Split) -> Matrix:
    """Extremely randomised trees."""
    X, X_test = split.scaled
    return ExtraTreesClassifier(300, random_state=0).fit(X, split.y).predict(X_test)


def boosted(split: Split) -> Matrix:
    """Boosted trees; each split sees the square root of the number of columns."""
    X, X_test = split.scaled
    return GradientBoostingClassifier(max_features="sqrt", random_state=0).fit(X, split.y).predict(X_test)


def svc(split: Split) -> Matrix:
    """A grid search over the width and the C of an SVC on all standardised columns."""
    X, X_test = split.scaled if split.tasks is not None else (split.X, split.X_test)
    grid = {"svc__C": COSTS[2:], "svc__gamma": [2.0**k / X.shape[1] for k in STEPS]}
    return GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid, cv=_folds()).fit(X, split.y).predict(X_test)


def ours(split: Split, **given: Any) -> Matrix:
    """The default search, with the sources if there are several."""
    kernels = sources(split.blocks) if len(split.blocks) > 1 else "default"
    search = ParetoMKLClassifierCV(kernels=kernels, **given).fit(split.X, split.y, tasks=split.tasks)
    return search.predict(split.X_test, tasks=split.tasks_test)


BASELINES: dict[str, Callable[[Split], Matrix]] = {
    "logistic": logistic,
    "linear sum": linear_sum,
    "Gaussian sum": gaussian_sum,
    "late fusion": fusion,
    "extra trees": trees,
    "boosted": boosted,
    "svc": svc,
}
HOW = {"pairs": "one-vs-one", "rest": "one-vs-rest"}
LOSSES = tuple(f"{loss} {how}" for loss, how in product(("hinge", "logistic", "squared"), HOW))
METHODS = (*BASELINES, "ours")


# ------------------------------------------------------------------------------------------------------- running
def cell(name: str, method: str, run: int) -> dict[str, Any]:
    """One row of the results."""
    split, began = draw(name, run), process_time()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        if method in LOSSES:
            loss, how = method.split()
            predicted = ours(split, loss=loss, multi_class=HOW[how])
        else:
            predicted = BASELINES.get(method, ours)(split)
    return {
        "set": name,
        "method": method,
        "run": run,
        "accuracy": round(split.accuracy(predicted), 5),
        "s": round(process_time() - began, 2),
    }


def run_all(file: Path, runs: range, jobs: int, methods: list[str], sets: list[str]) -> None:
    """Run what is missing; after every cell, the file is written completely or not at all."""
    rows = json.loads(file.read_text()) if file.exists() else []
    done = {(row["set"], row["method"], row["run"]) for row in rows}
    todo = [(name, method, run) for run, name, method in product(runs, sets, methods)]
    work = [delayed(cell)(*asked) for asked in todo if asked not in done]
    for row in Parallel(n_jobs=jobs, return_as="generator_unordered")(work):
        rows.append(row)
        kept = file.with_suffix(".part")
        kept.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
        kept.replace(file)
        print(*row.values(), flush=True)


# ----------------------------------------------------------------------------------------------------- reporting
def report(file: Path) -> str:
    """Mean accuracies in per cent, and how far the last method is ahead of the one with the best mean in each set."""
    rows = json.loads(file.read_text())
    value = {(row["set"], row["method"], row["run"]): 100 * row["accuracy"] for row in rows}
    methods = [m for m in (*BASELINES, *LOSSES, "ours") if any(key[1] == m for key in value)]
    lines = [f"| | {' | '.join(methods)} | {methods[-1]} − best other | splits |", "|---" * (len(methods) + 3) + "|"]
    means, gains = [], []
    for name in VIEWS + TABLES:
        runs = [run for run in range(1000) if all((name, method, run) in value for method in methods)]
        if len(runs) < 2:
            continue
        found = np.array([[value[name, method, run] for run in runs] for method in methods])
        mean = found.mean(axis=1)
        best = int(mean[:-1].argmax())
        gain = found[-1] - found[best]
        sure = gain.any() and ttest_rel(found[-1], found[best]).pvalue < 0.05
        mark = (" ▴" if gain.mean() > 0 else " ▾") if sure else ""
        error = gain.std(ddof=1) / np.sqrt(len(runs))
        shown = " | ".join(f"**{m:.1f}**" if k == best else f"{m:.1f}" for k, m in enumerate(mean))
        lines.append(f"| {name} | {shown} | {gain.mean():+.1f} ± {error:.1f}{mark} | {len(runs)} |")
        means.append(mean)
        gains.append(gain.mean())
    lines.append(f"| mean | {' | '.join(f'{m:.1f}' for m in np.mean(means, axis=0))} | {np.mean(gains):+.2f} | |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "report"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument(
        "--first", type=int, default=10, help="number of the first split; those below were used to choose"
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--methods", default=",".join(METHODS), help="separated by commas; 'losses' for all losses")
    parser.add_argument("--tables", action="store_true", help="public data sets without sources instead")
    parser.add_argument("--only", default="", help="data sets whose name contains this")
    given = parser.parse_args()
    if given.what == "report":
        print(report(given.file))
        return
    methods = list(LOSSES) if given.methods == "losses" else given.methods.split(",")
    sets = [name for name in (TABLES if given.tables else VIEWS) if given.only in name]
    run_all(given.file, range(given.first, given.first + given.runs), given.jobs, methods, sets)


if __name__ == "__main__":
    main()
