"""Test error of multi-task regression on School, Parkinsons and Computer, compared with the usual alternatives.

    python benchmarks/regression.py run RESULTS.json --runs 10 --jobs 2     # resumable
    python benchmarks/regression.py report RESULTS.json                     # the tables of doc/regression.md

Each method chooses its parameters by cross-validation on the training set, with the same folds for all.
"""

from __future__ import annotations

import argparse
import gzip
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import sklearn
from joblib import Parallel, delayed
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import MultiTaskLasso, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVR
from taskwise import TaskwiseRegressor
from threadpoolctl import threadpool_limits

from paretomkl import KernelBank, ParetoMKLRegressorCV
from paretomkl.baselines import IndependentMKLRegressor, UniformKernelRegressor
from paretomkl.datasets import fetch
from paretomkl.model_selection import MultiTaskKFold, MultiTaskShuffleSplit, split_by_time

SETS = {
    "school 90": "School, 90 % for training",
    "school 75": "School, 75 % for training",
    "parkinsons time": "Parkinsons, the last quarter of each person's time for testing",
    "parkinsons random": "Parkinsons, a random quarter of each person's recordings for testing",
    "computer": "Computer, 8 products for training and 12 for testing",
}
METHODS = {
    "mean": "mean of the task",
    "ridge": "`Ridge` per task",
    "ridge pooled": "`Ridge` pooled, a term per task",
    "krr": "`KernelRidge` per task, one choice for all",
    "krr each": "`KernelRidge` per task, each its own choice",
    "krr pooled": "`KernelRidge` pooled",
    "svr": "`SVR` per task, one choice for all",
    "svr pooled": "`SVR` pooled",
    "lasso": "`MultiTaskLasso`",
    "extra trees": "extremely randomised trees, pooled",
    "boosted": "boosted trees, pooled",
    "uniform": "uniform kernels",
    "independent": "independent MKL",
    "ours": "**paretomkl**, the default search",
    "ours svr": "paretomkl, ε-insensitive (ε = 0.1)",
}
COSTS = (0.01, 0.1, 1.0, 10.0, 100.0)  # those of ParetoMKLRegressorCV, for all methods with our kernels
STEPS = (-6, -4, -2, 0, 2)
MOST_POOLED = 3000  # samples for the search over pooled kernels; the final fit uses all


class Part(NamedTuple):
    X: np.ndarray
    y: np.ndarray  # a vector, or a matrix with a column for each task
    tasks: np.ndarray | None

    def __getitem__(self, rows: Any) -> Part:  # type: ignore[override]
        return Part(self.X[rows], self.y[rows], None if self.tasks is None else self.tasks[rows])


Folds = list[tuple[np.ndarray, np.ndarray]]


# ---------------------------------------------------------------------------------------------------- the sets
def draw(name: str, run: int) -> tuple[Part, Part, Folds]:
    """Draw the training set, the test set and the folds of the training set."""
    kind, _, how = name.partition(" ")
    if kind == "computer":
        return _computer(run)
    bunch = fetch(kind)
    whole = Part(bunch.data.astype(float), bunch.target.astype(float), bunch.tasks)
    if how == "time":
        train, test = split_by_time(whole.tasks, bunch.time, train_size=0.75)
        early = [split_by_time(whole.tasks[train], bunch.time[train], train_size=size) for size in (0.5, 0.65, 0.8)]
        return whole[train], whole[test], early
    share = 0.75 if how == "random" else int(how) / 100
    splitter = MultiTaskShuffleSplit(1, train_size=share, random_state=run)
    train, test = next(splitter.split(whole.X, whole.y, tasks=whole.tasks))
    return whole[train], whole[test], _folds(whole[train])


def _computer(run: int) -> tuple[Part, Part, Folds]:
    """The same products for everyone, so y is a matrix; people with constant training ratings are left out."""
    bunch = fetch("computer")
    first = bunch.tasks == bunch.tasks[0]
    ratings = np.stack([bunch.target[bunch.tasks == person] for person in np.unique(bunch.tasks)], axis=1)
    order = np.random.default_rng(run).permutation(int(first.sum()))
    whole = Part(bunch.data[first].astype(float), ratings[:, np.ptp(ratings[order[:8]], axis=0) > 0], None)
    return whole[order[:8]], whole[order[8:]], _folds(whole[order[:8]])


def _folds(train: Part) -> Folds:
    splitter = MultiTaskKFold(5, shuffle=True, random_state=0)
    return list(splitter.split(train.X, train.y, tasks=train.tasks))


# -------------------------------------------------------------------------------------------------- the methods
def make(method: str, train: Part, folds: Folds) -> Any:
    """The method, not yet fitted."""
    n_features = train.X.shape[1]
    gammas = [2.0**k / n_features for k in STEPS]
    rbf, grid = KernelRidge(kernel="rbf"), {"alpha": [0.01, 0.1, 1.0, 10.0, 100.0], "gamma": gammas}
    tubes = {"C": [0.1, 1.0, 10.0], "gamma": gammas, "epsilon": [0.1]}
    banks = {"kernels": [KernelBank("default", normalize="capacity", capacity=capacity) for capacity in (0.5, 1.0)]}
    few = _fewer(folds) if method in ("krr pooled", "svr pooled") else folds
    own: dict[str, Any] = {"cv": few, "scoring": "neg_mean_squared_error"}
    leaves: dict[str, Any] = {"max_features": 1 / 3, "min_samples_leaf": 5}  # usual for noisy numbers
    ridge = {"alpha": [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]}
    made = {
        "mean": lambda: TaskwiseRegressor(DummyRegressor()),
        "ridge": lambda: TaskwiseRegressor(Ridge(), ridge, **own),
        "ridge pooled": lambda: TaskwiseRegressor(Ridge(), ridge, form="pooled", **own),
        "krr": lambda: TaskwiseRegressor(rbf, grid, **own),
        "krr each": lambda: TaskwiseRegressor(rbf, grid, each=True, **own),
        "krr pooled": lambda: TaskwiseRegressor(rbf, grid, form="pooled", **own),
        "svr": lambda: TaskwiseRegressor(SVR(), tubes, **own),
        "svr pooled": lambda: TaskwiseRegressor(SVR(), tubes, form="pooled", **own),
        "lasso": lambda: TaskwiseRegressor(MultiTaskLasso(), {"alpha": np.logspace(-2, 1, 10)}, form="joint", **own),
        "extra trees": lambda: TaskwiseRegressor(ExtraTreesRegressor(300, **leaves, random_state=0), form="pooled"),
        "boosted": lambda: TaskwiseRegressor(HistGradientBoostingRegressor(random_state=0), form="pooled"),
        "uniform": lambda: GridSearchCV(UniformKernelRegressor(), {"C": COSTS, **banks}, cv=folds),
        "independent": lambda: GridSearchCV(IndependentMKLRegressor(), {"C": COSTS, **banks}, cv=folds),
        "ours": lambda: ParetoMKLRegressorCV(cv=folds),
        "ours svr": lambda: ParetoMKLRegressorCV(loss="epsilon_insensitive", epsilon=0.1, cv=folds),
    }
    return made[method]()


def _fewer(folds: Folds) -> Folds:
    """One split with at most ``MOST_POOLED`` samples on each side, because pooled kernels grow quadratically."""
    train, test = (np.random.default_rng(0).permutation(part)[:MOST_POOLED] for part in folds[0])
    return folds if len(train) < MOST_POOLED else [(train, test)]


def applies(method: str, name: str) -> bool:
    """MultiTaskLasso needs every output for every sample, which only Computer has."""
    return method != "lasso" or name == "computer"


# ------------------------------------------------------------------------------------------------------ running
def errors(predicted: np.ndarray, test: Part) -> dict[str, Any]:
    """Mean squared error over all test rows and by task, and the mean R² over the tasks."""
    squares = (predicted - test.y) ** 2
    if test.tasks is None:
        groups = list(zip(squares.T, test.y.T, strict=True))
    else:
        groups = [(squares[test.tasks == task], test.y[test.tasks == task]) for task in np.unique(test.tasks)]
    r2 = [1 - of_task.sum() / (len(y) * y.var()) for of_task, y in groups if y.var() > 0]
    by_task = [round(float(of_task.mean()), 4) for of_task, _ in groups]
    return {"mse": float(squares.mean()), "r2": float(np.mean(r2)), "worst r2": float(np.min(r2)), "by task": by_task}


def cell(name: str, method: str, run: int) -> dict[str, Any]:
    train, test, folds = draw(name, run)
    fit = {} if train.tasks is None else {"tasks": train.tasks}
    ask = {} if train.tasks is None else {"tasks": test.tasks}
    with warnings.catch_warnings(), threadpool_limits(1), sklearn.config_context(enable_metadata_routing=True):
        warnings.simplefilter("ignore")
        began = process_time()
        model = make(method, train, folds).fit(train.X, train.y, **fit)
        seconds = process_time() - began
        best = getattr(model, "best_estimator_", model)  # GridSearchCV.predict does not take tasks
        found = errors(best.predict(test.X, **ask), test)
        path = {}
        if isinstance(model, ParetoMKLRegressorCV):
            models = zip(model.path_.ps, model.path_.models, strict=True)
            path = {str(p): errors(of_p.predict(test.X, test.tasks), test) for p, of_p in models}
    chosen = str(getattr(model, "best_params_", "")) if method != "krr each" else ""
    return {"set": name, "method": method, "run": run, "s": seconds, "chosen": chosen, "path": path, **found}


def read(file: Path) -> list[dict[str, Any]]:
    if not file.exists():
        return []
    return json.loads(gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_text())


def run_all(file: Path, runs: int, jobs: int, methods: list[str], only: str) -> None:
    """Run what is missing; after every cell, the file is written completely or not at all."""
    rows = read(file)
    done = {(row["set"], row["method"], row["run"]) for row in rows}
    todo = [
        delayed(cell)(name, method, run)
        for name in SETS
        for run in range(1 if name == "parkinsons time" else runs)  # that split is not random
        for method in methods
        if (name, method, run) not in done and applies(method, name) and only in name
    ]
    for k, row in enumerate(Parallel(n_jobs=jobs, return_as="generator_unordered")(todo)):
        rows.append(row)
        kept = file.with_suffix(".part")
        kept.write_text(json.dumps(rows))
        kept.replace(file)
        known = f"{row['set']}, {row['method']}, run {row['run']}"
        print(f"{k + 1} of {len(todo)}: {known}: {row['mse']:.2f} in {row['s']:.0f} s", flush=True)


# ------------------------------------------------------------------------------------------------------ the page
def report(file: Path) -> str:
    rows = read(file)
    lines: list[str] = []
    for name, title in SETS.items():
        lines += _table(title, [row for row in rows if row["set"] == name])
    return "\n".join([*lines, *_along_p(rows)])


def _table(title: str, rows: list[dict[str, Any]]) -> Iterator[str]:
    """One line per method, over the runs that all methods have finished; paired differences from paretomkl."""
    of = {(row["method"], row["run"]): row for row in rows}
    methods = [method for method in METHODS if any(row["method"] == method for row in rows)]
    runs = [run for run in range(1000) if all((method, run) in of for method in methods)]
    if not rows or not runs:
        return
    yield from (f"\n### {title}\n", f"{len(runs)} split{'s' if len(runs) > 1 else ''}.\n")
    yield "| | squared error | difference | tasks from … to | worst task | R² of tasks | s |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    ours = np.array([of["ours", run]["mse"] for run in runs]) if "ours" in methods else None
    for method in methods:
        mine = [of[method, run] for run in runs]
        mse = np.array([row["mse"] for row in mine])
        low, high, worst = np.mean([[*np.quantile(row["by task"], [0.1, 0.9]), max(row["by task"])] for row in mine], 0)
        r2, seconds = (np.mean([row[key] for row in mine]) for key in ("r2", "s"))
        versus = "" if ours is None or method == "ours" else _difference(mse - ours)
        yield (
            f"| {METHODS[method]} | {mse.mean():.2f} | {versus} | {low:.1f} … {high:.1f} | {worst:.0f} | {r2:.2f} | "
            f"{seconds:.1f} |"
        )


def _difference(values: np.ndarray) -> str:
    error = f" ± {values.std(ddof=1) / np.sqrt(len(values)):.2f}" if len(values) > 1 else ""
    return f"{values.mean():+.2f}{error}"


def _along_p(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Squared error, overall and for the worst task, at every p of our path."""
    mine = {name: [row for row in rows if row["set"] == name and row["method"] == "ours"] for name in SETS}
    mine = {name: found for name, found in mine.items() if found}
    yield from ("\n### At every p\n", f"| p | {' | '.join(mine)} |", "|---|" + "---:|" * len(mine))
    for p in next(iter(mine.values()))[0]["path"]:
        cells = []
        for found in mine.values():
            at = [row["path"][p] for row in found]
            cells.append(f"{np.mean([a['mse'] for a in at]):.2f} ({np.mean([max(a['by task']) for a in at]):.0f})")
        yield f"| {p} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "report"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--runs", type=int, default=10)
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
