"""What benchmarks of accuracy have in common: a split, the methods people use instead, a resumable run, a table."""

from __future__ import annotations

import argparse
import gzip
import json
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.spatial.distance import cdist
from scipy.stats import ttest_rel
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from paretomkl import ParetoMKLClassifierCV
from paretomkl.kernels import sources

COSTS, STEPS = tuple(10.0**k for k in range(-3, 4)), (-6, -4, -2, 0, 2, 4, 6)
FIRST = 10  # number of the first split to report; those below were used to choose

Matrix = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Split:
    """A training set and a test set of the same columns."""

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


# -------------------------------------------------------------------------------------------------- the baselines
def folds(y: Matrix) -> StratifiedKFold:
    """Five folds, or fewer if all classes are smaller."""
    return StratifiedKFold(min(5, int(np.unique(y, return_counts=True)[1].max())), shuffle=True, random_state=0)


def _logistic(X: Matrix, y: Matrix, X_test: Matrix) -> tuple[Matrix, Matrix]:
    """Classes and probabilities of the test samples; C by folds.

    With more columns than samples, the columns are rotated into the span of the samples, which changes no prediction.
    """
    if X.shape[1] > len(X):
        _, _, span = np.linalg.svd(X, full_matrices=False)
        X, X_test = X @ span.T, X_test @ span.T
    search = GridSearchCV(LogisticRegression(max_iter=2000), {"C": COSTS}, cv=folds(y)).fit(X, y)
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
    return GridSearchCV(SVC(kernel="precomputed"), costs, cv=folds(split.y)).fit(K, split.y).predict(K_test)


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
    return GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid, cv=folds(split.y)).fit(X, split.y).predict(X_test)


BASELINES: dict[str, Callable[[Split], Matrix]] = {
    "logistic": logistic,
    "linear sum": linear_sum,
    "Gaussian sum": gaussian_sum,
    "late fusion": fusion,
    "extra trees": trees,
    "boosted": boosted,
    "svc": svc,
}


def per_task(method: Callable[[Split], Matrix], split: Split) -> Matrix:
    """A model of its own for each task."""
    predicted = np.empty_like(split.y_test)
    for task in np.unique(split.tasks):
        own, asked = split.tasks == task, split.tasks_test == task
        X, y, X_test, y_test = split.X[own], split.y[own], split.X_test[asked], split.y_test[asked]
        alone = replace(split, X=X, y=y, X_test=X_test, y_test=y_test, tasks=None, tasks_test=None)
        predicted[asked] = method(alone) if len(np.unique(y)) > 1 else y[0]
    return predicted


def ours(split: Split, **given: Any) -> tuple[Matrix, dict[str, Any]]:
    """The default search, with the sources if there are several; and what it chose."""
    kernels: Any = sources(split.blocks) if len(split.blocks) > 1 else "default"
    search = ParetoMKLClassifierCV(**{"kernels": kernels} | given).fit(split.X, split.y, tasks=split.tasks)
    return search.predict(split.X_test, tasks=split.tasks_test), search.best_params_


# ------------------------------------------------------------------------------------------------------- running
Method = Callable[[Split], Any]  # the predictions, perhaps with what was chosen
Row = dict[str, Any]


def cell(draw: Callable[[str, int], Split], method: Method, asked: tuple[str, str, int]) -> Row:
    """One row of the results, for the asked set, method and run."""
    name, called, run = asked
    split, began = draw(name, run), process_time()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        found = method(split)
    predicted, chosen = found if isinstance(found, tuple) else (found, None)
    accuracy = round(split.accuracy(predicted), 5)
    row = {"set": name, "method": called, "run": run, "accuracy": accuracy, "s": round(process_time() - began, 2)}
    return row if chosen is None else row | {"chosen": chosen}


def read(file: Path) -> list[Row]:
    """The stored rows."""
    if not file.exists():
        return []
    return json.loads(gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_text())


def write(file: Path, rows: Iterable[Row]) -> None:
    """Store the rows, completely or not at all."""
    text = "[\n" + ",\n".join(json.dumps(row, default=float) for row in rows) + "\n]\n"
    kept = file.with_suffix(".part")
    kept.write_bytes(gzip.compress(text.encode(), mtime=0) if file.suffix == ".gz" else text.encode())
    kept.replace(file)


def run_missing(file: Path, asked: Iterable[tuple[str, str, int]], one: Callable[..., Row], jobs: int) -> None:
    """Run the cells (set, method, run) that the file does not have, and store each as soon as it is there."""
    rows = read(file)
    done = {(row["set"], row["method"], row["run"]) for row in rows}
    work = [delayed(one)(cell) for cell in asked if cell not in done]
    for row in Parallel(n_jobs=jobs, return_as="generator_unordered")(work):
        rows.append(row)
        write(file, rows)
        print(*(row[key] for key in ("set", "method", "run", "accuracy", "s")), flush=True)


# ----------------------------------------------------------------------------------------------------- reporting
def table(rows: Sequence[Row], methods: Sequence[str], sets: Sequence[str]) -> str:
    """Mean accuracies in per cent, and how far the last method is ahead of the one with the best mean in each set."""
    value = {(row["set"], row["method"], row["run"]): 100 * row["accuracy"] for row in rows}
    methods = [m for m in methods if any(key[1] == m for key in value)]
    lines = [f"| | {' | '.join(methods)} | {methods[-1]} − best other | splits |", "|---" * (len(methods) + 3) + "|"]
    means, gains = [], []
    for name in sets:
        runs = [run for run in range(1000) if all((name, method, run) in value for method in methods)]
        if len(runs) < 2:
            continue
        found = np.array([[value[name, method, run] for run in runs] for method in methods])
        mean = found.mean(axis=1)
        best = int(mean[:-1].argmax())
        shown = " | ".join(f"**{m:.1f}**" if k == best else f"{m:.1f}" for k, m in enumerate(mean))
        lines.append(f"| {name} | {shown} | {difference(found[-1], found[best])} | {len(runs)} |")
        means.append(mean)
        gains.append(np.mean(found[-1] - found[best]))
    lines.append(f"| mean | {' | '.join(f'{m:.1f}' for m in np.mean(means, axis=0))} | {np.mean(gains):+.2f} | |")
    return "\n".join(lines)


def difference(mine: Any, other: Any) -> str:
    """The mean of a paired difference with its standard error; ▴ and ▾ mark significance at 5 %."""
    gain = np.subtract(mine, other)
    if len(gain) < 2:
        return f"{gain.mean():+.1f}"
    sure = gain.any() and ttest_rel(mine, other).pvalue < 0.05
    mark = (" ▴" if gain.mean() > 0 else " ▾") if sure else ""
    return f"{gain.mean():+.1f} ± {gain.std(ddof=1) / np.sqrt(len(gain)):.1f}{mark}"


def options(doc: str | None, runs: int, methods: Iterable[str], first: int = FIRST) -> argparse.ArgumentParser:
    """What every benchmark of accuracy takes on the command line."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "report"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--runs", type=int, default=runs)
    parser.add_argument("--first", type=int, default=first, help="number of the first split")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--methods", default=",".join(methods), help="separated by commas")
    parser.add_argument("--only", default="", help="data sets whose name contains this")
    return parser


def asked_for(given: argparse.Namespace, sets: Iterable[str]) -> list[tuple[str, str, int]]:
    """The cells that the command line asks for, run by run."""
    runs = range(given.first, given.first + given.runs)
    names = [name for name in sets if given.only in name]
    return [(name, method, run) for run, name, method in product(runs, names, given.methods.split(","))]
