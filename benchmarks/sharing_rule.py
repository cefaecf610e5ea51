"""By which rule should a search choose what tasks share?  Fold scores and test accuracies of all four ways.

    python benchmarks/sharing_rule.py run RULES.json --runs 10 --jobs 2     # resumable, kept after every cell
    python benchmarks/sharing_rule.py report RULES.json                     # the table of doc/sharing_results.md

Small tables are public sets cut into three tasks by the terciles of a column, another column in each run, with at most
40 training rows per task. The data are read from the folder that PARETOMKL_DATA names. For every way, C, s and κ are
chosen by the same five folds of the training set, at p = 1.
"""

from __future__ import annotations

import argparse
import gzip
import json
import warnings
import zlib
from collections.abc import Callable
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from data import HOME
from joblib import Parallel, delayed
from sharing import WAYS, Part, _of_paper
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from threadpoolctl import threadpool_limits
from views import Split, draw

from paretomkl import ParetoMKLClassifierCV
from paretomkl.datasets import fetch

MOST, ENOUGH = 40, 4  # training rows of a task, at most; rows of a class in a task, at least


def _diabetes() -> tuple[Any, Any]:
    X, y = load_diabetes(return_X_y=True)
    return X, y > np.median(y)


def _of(name: str) -> Callable[[], tuple[Any, Any]]:
    return lambda: fetch(name, data_home=HOME, return_X_y=True)


TABLES: dict[str, Callable[[], tuple[Any, Any]]] = {
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "iris": lambda: load_iris(return_X_y=True),
    "diabetes": _diabetes,
    "digits": lambda: load_digits(return_X_y=True),
    **{name: _of(name) for name in ("vehicle", "segment", "steel", "satellite", "robot")},
}
SETS = ("stemcells", "landmine 20", "letter 10", *TABLES)


# ---------------------------------------------------------------------------------------------------- the sets
def parts(name: str, run: int) -> tuple[Part, Part]:
    """A training set and a test set."""
    if name in TABLES:
        return _cut(name, run)
    if name == "stemcells":
        split: Split = draw(name, run)
        return Part(split.X, split.y, split.tasks), Part(split.X_test, split.y_test, split.tasks_test)
    study, fraction = name.split()
    return _of_paper(study, int(fraction), run)


def _cut(name: str, run: int) -> tuple[Part, Part]:
    """Three tasks by the terciles of a column, without classes of which a task has too few rows."""
    X, y = (np.asarray(values) for values in TABLES[name]())
    rng = np.random.default_rng(zlib.crc32(f"rule {name} {run}".encode()))
    tasks, cells = next(
        found for column in rng.permutation(X.T) if min(map(len, (found := _terciles(column, y))[1])) >= 2
    )
    train, test = [], []
    for own in cells:
        share = min(0.6, MOST / sum(map(len, own)))
        for cell in map(rng.permutation, own):
            n = max(ENOUGH, round(share * len(cell)))
            train.append(cell[:n])
            test.append(cell[n:])
    first, rest = np.concatenate(train), rng.permutation(np.concatenate(test))[:1500]
    return Part(X[first], y[first], tasks[first]), Part(X[rest], y[rest], tasks[rest])


def _terciles(column: Any, y: Any) -> tuple[Any, list[list[Any]]]:
    """The task of each row, and for each task the rows of each class that has enough of them."""
    tasks = np.searchsorted(np.quantile(column, [1 / 3, 2 / 3]), column)
    cells = [[np.flatnonzero((tasks == task) & (y == label)) for label in np.unique(y)] for task in range(3)]
    return tasks, [[cell for cell in own if len(cell) > ENOUGH] for own in cells]


# ------------------------------------------------------------------------------------------------------ the models
def cell(name: str, run: int) -> dict[str, Any]:
    """All four ways on one split."""
    train, test = parts(name, run)
    found: dict[str, Any] = {"set": name, "run": run, "rows": len(train.y), "tasks": len(np.unique(train.tasks))}
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        for way in WAYS:
            began = process_time()
            search = ParetoMKLClassifierCV(share=[way], ps=1.0).fit(train.X, train.y, tasks=train.tasks)
            k, n = search.best_index_, search.n_splits_
            found[way] = {
                "folds": [round(float(search.cv_results_[f"split{f}_test_score"][k]), 5) for f in range(n)],
                "loss": round(float(search.cv_results_[f"mean_test_{search.loss_name}"][k]), 5),
                "test": round(_accuracy(search.predict(test.X, tasks=test.tasks), test), 5),
                "s": round(process_time() - began, 2),
            }
    return found


def _accuracy(predicted: Any, test: Part) -> float:
    """Mean over the tasks."""
    return float(np.mean([np.mean((predicted == test.y)[test.tasks == task]) for task in np.unique(test.tasks)]))


# ----------------------------------------------------------------------------------------------------- the rules
def _within(factor: float) -> Callable[[dict[str, Any]], str]:
    """The way that shares most among those behind the best mean by at most ``factor`` standard errors."""

    def rule(row: dict[str, Any]) -> str:
        folds = {way: np.array(row[way]["folds"]) for way in WAYS}
        best = max(WAYS, key=lambda way: folds[way].mean())
        for way in WAYS[::-1]:
            behind = folds[best] - folds[way]
            if (
                WAYS.index(way) >= WAYS.index(best)
                and behind.mean() <= factor * behind.std(ddof=1) / len(behind) ** 0.5
            ):
                return way
        return best

    return rule


def _smallest_loss_within(factor: float) -> Callable[[dict[str, Any]], str]:
    """The smallest loss among the ways behind the best mean by at most ``factor`` standard errors."""

    def rule(row: dict[str, Any]) -> str:
        folds = {way: np.array(row[way]["folds"]) for way in WAYS}
        best = max(WAYS, key=lambda way: folds[way].mean())
        behind = {way: folds[best] - folds[way] for way in WAYS}
        close = [w for w in WAYS if behind[w].mean() <= factor * behind[w].std(ddof=1) / len(behind[w]) ** 0.5 + 1e-12]
        return min(close, key=lambda way: row[way]["loss"])

    return rule


RULES: dict[str, Callable[[dict[str, Any]], str]] = {
    "highest mean": lambda row: max(WAYS, key=lambda way: np.mean(row[way]["folds"])),
    "most within ½ SE": _within(0.5),
    "most within 1 SE": _within(1.0),
    "smallest loss": lambda row: min(WAYS, key=lambda way: row[way]["loss"]),
    "smallest loss within 1 SE": _smallest_loss_within(1.0),
    "in hindsight": lambda row: max(WAYS, key=lambda way: row[way]["test"]),
}


def report(file: Path) -> str:
    """Test accuracy in per cent of each way, and of the way that each rule chooses."""
    rows = json.loads(gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_text())
    columns: dict[str, Callable[[dict[str, Any]], float]] = {way: lambda row, way=way: row[way]["test"] for way in WAYS}
    columns |= {name: lambda row, rule=rule: row[rule(row)]["test"] for name, rule in RULES.items()}
    lines = [f"| set | splits | {' | '.join(columns)} |", "|---" * (len(columns) + 2) + "|"]
    means = {}
    for name in SETS:
        own = [row for row in rows if row["set"] == name]
        if own:
            means[name] = [100 * np.mean([value(row) for row in own]) for value in columns.values()]
            lines.append(f"| {name} | {len(own)} | {' | '.join(f'{mean:.1f}' for mean in means[name])} |")
    for title, names in {"small tables": [n for n in means if n in TABLES], "all sets": list(means)}.items():
        lines.append(f"| {title} | | {' | '.join(f'{m:.2f}' for m in np.mean([means[n] for n in names], axis=0))} |")
    return "\n".join(lines)


def run_all(file: Path, runs: range, jobs: int, only: str) -> None:
    """Run what is missing; after every cell, the file is written completely or not at all."""
    rows = json.loads(file.read_text()) if file.exists() else []
    done = {(row["set"], row["run"]) for row in rows}
    todo = [(name, run) for run, name in product(runs, SETS) if (name, run) not in done and only in name]
    for row in Parallel(n_jobs=jobs, return_as="generator_unordered")(delayed(cell)(*asked) for asked in todo):
        rows = sorted([*rows, row], key=lambda one: (SETS.index(one["set"]), one["run"]))
        kept = file.with_suffix(".part")
        kept.write_text("[\n" + ",\n".join(json.dumps(one) for one in rows) + "\n]\n")
        kept.replace(file)
        print(row["set"], row["run"], *(row[way]["test"] for way in WAYS), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "report"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="data sets whose name contains this")
    given = parser.parse_args()
    if given.what == "run":
        run_all(given.file, range(given.first, given.first + given.runs), given.jobs, given.only)
    else:
        print(report(given.file))


if __name__ == "__main__":
    main()
