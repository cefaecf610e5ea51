"""What tasks share, on real data sets: each of the four ways by itself, and the one that cross-validation chooses.

    python benchmarks/sharing.py run RESULTS.json --runs 20 --jobs 2     # resumable
    python benchmarks/sharing.py report RESULTS.json                     # the tables of doc/sharing_results.md

For every way, C, s and κ are chosen by the same five folds of the training set, at p = 1. "chosen" is the way that the
search's rule picks from the fold scores.
"""

from __future__ import annotations

import argparse
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from comparison import read, write
from joblib import Parallel, delayed
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from paretomkl import ParetoMKLClassifierCV, ParetoMKLRegressorCV
from paretomkl._experiments.plan import STUDIES, draw_parts, load
from paretomkl._select.choice import choose_way
from paretomkl._select.search import SMALL_TASK
from paretomkl.datasets import fetch
from paretomkl.model_selection import MultiTaskShuffleSplit, split_by_time

WAYS = ("nothing", "kernel", "function", "everything")
TITLES = {
    "accuracy": "**Accuracy in %**, mean over the tasks",
    "auc": "**AUC in %**, mean over the tasks",
    "worst": "**Accuracy of the worst task in %**",
    "mse": "**Mean squared error** over all test rows",
    "r2": "**R²**, mean over the tasks",
    "worst mse": "**Mean squared error of the worst task**",
}
RUNS = {"school 90": 3, "parkinsons time": 1, "computer": 5}  # at most; other data sets get as many as requested


class Part(NamedTuple):
    X: Any
    y: Any
    tasks: Any


def sets(run: int) -> Iterator[tuple[str, Callable[[], tuple[Part, Part]]]]:
    """Yield each data set's name and a function that draws its training and test set."""
    for name in ("landmine", "letter"):
        for fraction in STUDIES[name].fractions:
            yield f"{name} {fraction}", lambda name=name, fraction=fraction: _of_paper(name, fraction, run)
    for name in RUNS:
        if run < RUNS[name]:
            yield name, lambda name=name: _regression(name, run)


def _of_paper(name: str, fraction: int, run: int) -> tuple[Part, Part]:
    study = STUDIES[name]
    data = load(study)
    train, test = draw_parts(data, fraction, zlib.crc32(f"sharing {name} {run}".encode()), study.per_class)
    return tuple(Part(data[rows].X, data[rows].y, data[rows].tasks) for rows in (train, test))  # type: ignore[return-value]


def _regression(name: str, run: int) -> tuple[Part, Part]:
    bunch = fetch(name.split()[0])
    X, y, tasks = bunch.data, bunch.target, np.asarray(bunch.tasks)
    if name == "computer":  # one person gives every product the same rating
        varied = np.isin(tasks, [task for task in np.unique(tasks) if np.ptp(y[tasks == task]) > 0])
        X, y, tasks = X[varied], y[varied], tasks[varied]
    if name == "parkinsons time":
        train, test = split_by_time(tasks, bunch.time, train_size=0.75)
    else:
        size = 8 if name == "computer" else 0.9
        train, test = next(MultiTaskShuffleSplit(1, train_size=size, random_state=run).split(X, y, tasks=tasks))
    if name == "computer":  # and some give the same rating to the eight training products
        varied = [task for task in np.unique(tasks) if np.ptp(y[train][tasks[train] == task]) > 0]
        train, test = (rows[np.isin(tasks[rows], varied)] for rows in (train, test))
    return Part(X[train], y[train], tasks[train]), Part(X[test], y[test], tasks[test])


def cell(name: str, draw: Callable[[], tuple[Part, Part]], run: int, threads: int) -> dict[str, Any]:
    """Run all four ways on one split."""
    train, test = draw()
    numbers = name in RUNS
    make = ParetoMKLRegressorCV if numbers else ParetoMKLClassifierCV
    found: dict[str, Any] = {"set": name, "run": run, "rows": len(train.y), "ways": {}}
    scores = {}
    for way in WAYS:
        began = process_time()
        with warnings.catch_warnings(), threadpool_limits(threads):
            warnings.simplefilter("ignore")
            search = make(share=[way], ps=1.0, n_jobs=threads).fit(train.X, train.y, tasks=train.tasks)
            measured = _errors(search, test) if numbers else _accuracies(search, test)
        k = search.best_index_
        scores[way] = np.array([search.cv_results_[f"split{f}_test_score"][k] for f in range(search.n_splits_)])
        common = getattr(search, "common_share_", None) if way == "function" else None
        found["ways"][way] = measured | {"s": process_time() - began, "chosen": search.best_params_, "common": common}
    sizes = np.unique(train.tasks, return_counts=True)[1]
    found["chosen"] = choose_way(scores, bool(sizes.mean() < SMALL_TASK))
    return found


def _accuracies(search: Any, test: Part) -> dict[str, float]:
    predicted = search.predict(test.X, tasks=test.tasks)
    decided = search.decision_function(test.X, tasks=test.tasks)
    groups = [np.flatnonzero(test.tasks == task) for task in np.unique(test.tasks)]
    right = [float(np.mean(predicted[rows] == test.y[rows])) for rows in groups]
    found = {"accuracy": float(np.mean(right)), "worst": min(right)}
    if len(search.classes_) == 2:  # if tasks have their own classes, there is no single decision to rank by
        both = [rows for rows in groups if len(np.unique(test.y[rows])) == 2]
        aucs = [roc_auc_score(test.y[rows] == search.classes_[1], decided[rows]) for rows in both]
        found["auc"] = float(np.mean(aucs))
    return found


def _errors(search: Any, test: Part) -> dict[str, float]:
    errors = (search.predict(test.X, tasks=test.tasks) - test.y) ** 2
    by_task = [float(errors[test.tasks == task].mean()) for task in np.unique(test.tasks)]
    r2 = search.score(test.X, test.y, tasks=test.tasks)
    return {"mse": float(errors.mean()), "worst": max(by_task), "r2": float(r2)}


def run_all(file: Path, runs: int, jobs: int, only: str) -> None:
    """Run what is missing; after every run, the file is written completely or not at all."""
    rows = read(file)
    done = {(row["set"], row["run"]) for row in rows}
    for run in range(runs):
        todo = [(name, draw) for name, draw in sets(run) if (name, run) not in done and only in name]
        large = [pair for pair in todo if pair[0] in RUNS]
        small = [delayed(cell)(name, draw, run, 1) for name, draw in todo if name not in RUNS]
        if not todo:
            continue
        rows += Parallel(n_jobs=jobs)(small)
        rows += [cell(name, draw, run, jobs) for name, draw in large]
        write(file, rows)
        print(f"run {run + 1} of {runs}: {len(todo)} sets", flush=True)


def report(file: Path) -> str:
    """One table for accuracies, one for errors."""
    rows = read(file)
    lines = []
    for numbers in (False, True):
        names = [name for name in dict.fromkeys(row["set"] for row in rows) if (name in RUNS) == numbers]
        measures = ("mse", "r2", "worst") if numbers else ("accuracy", "auc", "worst")
        for measure in measures if names else ():
            title = TITLES["worst mse" if numbers and measure == "worst" else measure]
            lines += [title, "", "| set | runs | " + " | ".join((*WAYS, "chosen", "best")) + " |"]
            lines.append("|---|---|" + "---|" * (len(WAYS) + 2))
            for name in names:
                own = [row for row in rows if row["set"] == name]
                if measure not in own[0]["ways"]["kernel"]:
                    continue
                factor = 1 if numbers else 100
                of_way = [factor * np.mean([row["ways"][way][measure] for row in own]) for way in WAYS]
                chosen = factor * np.mean([row["ways"][row["chosen"]][measure] for row in own])
                least = numbers and measure != "r2"  # errors: smaller is better
                best = WAYS[int(np.argmin(of_way) if least else np.argmax(of_way))]
                lines.append(
                    f"| {name} | {len(own)} | " + " | ".join(f"{v:.2f}" for v in (*of_way, chosen)) + f" | {best} |"
                )
            lines.append("")
    lines += [
        "**CPU seconds of one search, and what was chosen**",
        "",
        "| set | rows | " + " | ".join(WAYS) + " | chosen |",
    ]
    lines.append("|---|---|" + "---|" * (len(WAYS) + 1))
    for name in dict.fromkeys(row["set"] for row in rows):
        own = [row for row in rows if row["set"] == name]
        seconds = [np.mean([row["ways"][way]["s"] for row in own]) for way in WAYS]
        counts = {way: sum(row["chosen"] == way for row in own) for way in WAYS}
        often = ", ".join(f"{way} {count}" for way, count in counts.items() if count)
        lines.append(f"| {name} | {own[0]['rows']} | " + " | ".join(f"{s:.1f}" for s in seconds) + f" | {often} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "report"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="data sets whose name contains this")
    given = parser.parse_args()
    if given.what == "run":
        run_all(given.file, given.runs, given.jobs, given.only)
    else:
        print(report(given.file))


if __name__ == "__main__":
    main()
