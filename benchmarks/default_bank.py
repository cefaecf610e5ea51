"""How we chose the default bank and the rule of the search: every candidate on the same splits.

    python benchmarks/default_bank.py run FOLDER --runs 20      # resumable: one file per bank, data set and split
    python benchmarks/default_bank.py report FOLDER             # the tables of doc/accuracy.md

We use seven of the paper's data sets with their smallest training set, at p = 1. For each bank and split, all points
C × κ × s are scored by five-fold cross-validation, fitted to the whole training set and tested. The rules are compared
on these numbers.
"""

from __future__ import annotations

import argparse
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from paretomkl import ParetoMKLClassifierCV
from paretomkl._data.reading import PathReader, read_samples
from paretomkl._experiments.plan import STUDIES, LabelledSamples, draw_parts, load
from paretomkl._fitting.models import decide_all
from paretomkl._fitting.tracing import Grid, check_parts, fit_bank, models_of, pose, trace_grid
from paretomkl._select.choice import choose
from paretomkl._tools.running import Progress
from paretomkl.kernels import Cosine, Gaussian, Laplacian, Linear, Polynomial, _kernels, default_kernels

SETS = ("segment", "vehicle", "landmine", "robot", "steel", "satellite", "letter")
GRID = Grid([1.0], [0.1, 1.0, 10.0, 100.0, 1000.0], [1.1, 2.0, np.inf], [0.0, 0.5, 1.0])
CHOSEN = {"capacity": (0.5, 1.0), "s": (1.1, 2.0)}  # what the default search covers


def without(*kinds: type) -> Callable[..., list[Any]]:
    return lambda *args, **where: [k for k in default_kernels(*args, **where) if not isinstance(k, kinds)]


def with_cosine(*args: Any, **where: Any) -> list[Any]:
    return [Cosine(**where) if isinstance(k, Linear) else k for k in default_kernels(*args, **where)]


def with_cubic(X: Any, *args: Any, **where: Any) -> list[Any]:
    return [*default_kernels(X, *args, **where), Polynomial(3, gamma=1 / X.shape[1], **where)]


def without_narrowest(*args: Any, **where: Any) -> list[Any]:
    narrowest = ("gaussian ×0.125", "laplacian ×0.25")
    return [k for k in default_kernels(*args, **where) if k.name not in narrowest]


BANKS: dict[str, tuple[Callable[..., list[Any]], int]] = {  # kernels and n: the bank gets 1 / n of the runs
    "default": (default_kernels, 1),
    "without Laplacians": (without(Laplacian), 2),
    "without Gaussians": (without(Gaussian), 2),
    "without linear and quadratic": (without(Linear, Polynomial), 2),
    "linear kernel of unit diagonal": (with_cosine, 2),
    "with a cubic kernel": (with_cubic, 2),
    "without the narrowest two": (without_narrowest, 2),
}


def evaluate(train: LabelledSamples, test: LabelledSamples) -> dict[str, Any]:
    """Fold scores of shape (n_folds, n_points), losses and test accuracies of shape (n_points,)."""
    search = ParetoMKLClassifierCV(GRID.ps, GRID.Cs, s=GRID.norms, capacity=GRID.capacities)
    results = search.fit(train.X, train.y, tasks=train.tasks).cv_results_
    scores = np.array([results[f"split{k}_test_score"] for k in range(search.n_splits_)])
    reader = PathReader()
    training = reader.read_data(train.X, train.y, tasks=train.tasks)
    samples = read_samples(reader, test.X, tasks=test.tasks)
    parts = check_parts(GRID.ps, 1.1, 1e-3, "auto", None, None)
    problem, _, data = pose(training, training.weights, fit_bank("default", training), parts)
    stretches = list(trace_grid(problem, data, GRID, parts.solver, Progress(1, 1e-3, 0)))
    models = models_of(training, [stretch.points[0] for stretch in stretches], *(stretch.bank for stretch in stretches))
    accuracy = {
        (stretch.C, stretch.capacity, 1.0, stretch.s): model.tasks.score(decided, samples, test.y)
        for stretch, model, decided in zip(stretches, models, decide_all(models, samples), strict=True)
    }
    found = np.array([accuracy[point] for point in GRID.points])
    return {"scores": scores, "losses": results["mean_test_log_loss"], "accuracy": found}


def run_all(folder: Path, runs: int) -> None:
    folder.mkdir(exist_ok=True)
    for bank, (kernels, part) in BANKS.items():
        _kernels.default_kernels = kernels
        for run in range(runs // part):
            for name in SETS:
                file = folder / f"{bank}-{name}-{run}.npz"
                if file.exists():
                    continue
                study = STUDIES[name]
                data = load(study)
                seed = zlib.crc32(f"default bank {name} {run}".encode())
                rows = draw_parts(data, study.fractions[0], seed, study.per_class)
                with warnings.catch_warnings(), threadpool_limits(1):
                    warnings.simplefilter("ignore")
                    np.savez_compressed(file, **evaluate(data[rows[0]], data[rows[1]]))
            print(f"{bank}: run {run + 1} of {runs // part}", flush=True)


# ------------------------------------------------------------------------------------------------------ tables
def highest(scores: Any, losses: Any, points: Any) -> int:
    return int((scores.mean(axis=0).round(9) - 1e-9 * np.arange(len(losses))).argmax())


def highest_then_loss(scores: Any, losses: Any, points: Any) -> int:
    return int((scores.mean(axis=0).round(9) - 1e-7 * losses).argmax())


def least_loss(scores: Any, losses: Any, points: Any) -> int:
    return int(losses.argmin())


RULES = {
    "highest accuracy, first of equals": highest,
    "highest accuracy, then least log-loss": highest_then_loss,
    "least log-loss": least_loss,
    "within one standard error, steadied along C": choose,
}


def means(folder: Path, bank: str, rule: Callable[..., int], only: dict[str, Any], runs: range) -> list[float]:
    points = GRID.columns()
    keep = np.all([np.isin(points[name], values) for name, values in only.items()], axis=0)
    some = {name: values[keep] for name, values in points.items()}
    out = []
    for name in SETS:
        files = [np.load(folder / f"{bank}-{name}-{run}.npz") for run in runs]
        chosen = [rule(f["scores"][:, keep], f["losses"][keep], some) for f in files]
        out.append(100 * float(np.mean([f["accuracy"][keep][k] for f, k in zip(files, chosen, strict=True)])))
    return out


def report(folder: Path) -> str:
    runs = range(len(list(folder.glob("default-segment-*.npz"))))
    header = f"| | {' | '.join(SETS)} | mean |\n" + "|---" * (len(SETS) + 2) + "|"

    def row(title: str, values: list[float]) -> str:
        return f"| {title} | {' | '.join(f'{v:.1f}' for v in values)} | {np.mean(values):.2f} |"

    lines = [f"\n### Which kernels ({len(runs) // 2} splits)\n", header]
    for bank in BANKS:
        lines.append(row(bank, means(folder, bank, choose, CHOSEN, range(len(runs) // 2))))
    lines += [f"\n### Which κ and s ({len(runs)} splits)\n", header]
    for s in GRID.norms:
        for capacity in GRID.capacities or ():
            only = {"capacity": [capacity], "s": [s]}
            lines.append(row(f"κ = {capacity:g}, s = {s:g}", means(folder, "default", choose, only, runs)))
    lines.append(row("κ = ½ and 1, s = 1.1 and 2", means(folder, "default", choose, CHOSEN, runs)))
    lines.append(row("all of these", means(folder, "default", choose, {"C": GRID.Cs}, runs)))
    lines += [f"\n### Which rule ({len(runs)} splits; κ = ½ and 1, s = 1.1 and 2)\n", header]
    for title, rule in RULES.items():
        lines.append(row(title, means(folder, "default", rule, CHOSEN, runs)))
    best = []
    for name in SETS:
        files = [np.load(folder / f"default-{name}-{run}.npz") for run in runs]
        best.append(100 * float(np.mean([f["accuracy"].max() for f in files])))
    lines.append(row("the best of all points in hindsight", best))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "report"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=20)
    given = parser.parse_args()
    if given.what == "run":
        run_all(given.folder, given.runs)
    else:
        print(report(given.folder))


if __name__ == "__main__":
    main()
