"""How cost grows with the number of samples, kernels and tasks; writes doc/scaling.md.

python benchmarks/scaling.py            everything, in minutes
python benchmarks/scaling.py --quick    a small trial, written to benchmarks/quick
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import data
import numpy as np
from report import ROOT, TRIAL_NOTE, Page, Section, quick_folder, single_thread, time_limit

from paretomkl import PAPER_PS, pareto_path
from paretomkl.kernels import Gaussian
from paretomkl.path import ParetoPath

INTRODUCTION = """This page shows how the cost of a path grows, with one thread, relative gap 1e-3, s = 1.1 and C = 1.
Each figure is the fastest of up to three runs of compiled code. Seconds are given in total (including kernels), in the
tasks (Gram matrices, SVMs, cuts) and in the master. The exponent is the slope of the logarithm of the total seconds,
over the larger half of the sizes."""
COLUMNS = {"sweeps": "d", "largest gap": ".1e", "total s": ".3f", "tasks s": ".3f", "master s": ".3f"}

Arguments = dict[str, Any]  # of pareto_path
Make = Callable[[int], Arguments]


@dataclass(frozen=True)
class Settings:
    """The sizes, and how long one of them can take."""

    samples: tuple[int, ...] = (200, 400, 800, 1600, 3200, 6000)
    kernels: tuple[int, ...] = (2, 5, 10, 20, 50, 100, 200)
    tasks: tuple[int, ...] = (1, 2, 5, 10, 20, 50, 100, 200)
    classes: tuple[int, ...] = (2, 3, 5, 7, 10, 14, 20)
    limit: float = 40.0  # seconds for one point
    enough: float = 2.0  # runs that take longer than this many seconds are not repeated


TRIAL = Settings((100, 200, 400), (2, 5, 10), (1, 5, 10), (2, 3, 5), limit=10.0, enough=0.2)


# ------------------------------------------------------------------------------------------------ problems
def one_task(n: int) -> Arguments:
    X, y = data.blobs(n, 2)
    return {"X": X, "y": y, "ps": [1.0], "kernels": "paper"}


def six_classes(n: int) -> Arguments:
    X, y = data.blobs(n, 6)
    return {"X": X, "y": y, "ps": PAPER_PS, "kernels": "paper"}


def widths(n_kernels: int) -> Arguments:
    """Gaussians of many widths on all columns: one distance matrix, and an exponential per kernel."""
    return six_classes(300) | {"kernels": [Gaussian(sigma=sigma) for sigma in np.geomspace(0.03, 30, n_kernels)]}


def sources(n_kernels: int) -> Arguments:
    """Gaussians on three random columns each: one distance matrix per kernel."""
    rng = np.random.default_rng(0)
    columns = [tuple(int(c) for c in rng.choice(20, 3, replace=False)) for _ in range(n_kernels)]
    return six_classes(300) | {"kernels": [Gaussian(sigma=0.5, columns=chosen) for chosen in columns]}


def disjoint_tasks(n_tasks: int) -> Arguments:
    """Tasks of 50 samples each, with related directions and different noise."""
    rng = np.random.default_rng(0)
    tasks = np.repeat(np.arange(n_tasks), 50)
    X = rng.uniform(size=(len(tasks), 10))
    directions = rng.standard_normal(10) + 0.7 * rng.standard_normal((n_tasks, 10))
    noise = rng.uniform(0.1, 1.0, n_tasks)[tasks] * rng.standard_normal(len(tasks))
    score = (np.einsum("ij,ij->i", X - 0.5, directions[tasks]) + noise).reshape(n_tasks, 50)
    y = np.where(score > np.median(score, axis=1, keepdims=True), 1, -1).reshape(-1)
    return {"X": X, "y": y, "tasks": tasks, "ps": PAPER_PS}


def one_vs_one(n_classes: int) -> Arguments:
    X, y = data.blobs(20 * n_classes, n_classes)
    return {"X": X, "y": y, "ps": PAPER_PS, "kernels": "paper"}


# ----------------------------------------------------------------------------------------------- measuring
def quickest(run: Callable[[], ParetoPath], enough: float) -> ParetoPath:
    """The fastest path of three runs, or of one run if it took long."""
    paths = [run()]
    while len(paths) < 3 and paths[-1].seconds["total"] < enough:
        paths.append(run())
    return min(paths, key=lambda path: path.seconds["total"])


def series(section: Section, title: str, name: str, sizes: Sequence[int], make: Make, settings: Settings) -> None:
    """One table: the cost at each size until one takes too long, and the measured exponent."""
    table = section.table(dict.fromkeys((name, "N", "M", "T"), "d") | COLUMNS, title)
    for size in sizes:
        arguments = make(size)
        try:
            with time_limit(settings.limit):
                path = quickest(partial(pareto_path, **arguments, verbose=0), settings.enough)
        except TimeoutError as stopped:
            section.note(f"{title}: {name} = {size} was {stopped}.")
            break
        seen = {"N": len(arguments["X"]), "M": len(path.kernel_names), "T": len(path.task_names), name: size}
        seen |= {"sweeps": path.n_sweeps, "largest gap": path.gap.max()}
        seen |= {f"{part} s": seconds for part, seconds in path.seconds.items()}
        section.add(table, *(seen[column] for column in table.columns))
    rows = table.rows[len(table.rows) // 2 :] if len(table.rows) > 3 else table.rows
    if len(rows) >= 2:
        sweeps, seconds = (slope(rows, list(table.columns).index(column)) for column in ("sweeps", "total s"))
        section.note(f"{title}: seconds grow as {name}^{seconds:.1f}, the sweeps as {name}^{sweeps:.1f}.")


def slope(rows: list[list[Any]], column: int) -> float:
    """Exponent of a column as a function of the size, by least squares on the logarithms."""
    sizes, values = np.log([[row[0], row[column]] for row in rows]).T
    return float(np.polyfit(sizes, values, 1)[0])


def of_samples(section: Section, settings: Settings) -> None:
    series(section, "One task, p = 1", "N", settings.samples, one_task, settings)
    series(section, "Six classes, 13 points", "N", settings.samples, six_classes, settings)


def of_kernels(section: Section, settings: Settings) -> None:
    series(section, "Gaussians of many widths", "M", settings.kernels, widths, settings)
    series(section, "Gaussians on three columns each", "M", settings.kernels, sources, settings)


def of_tasks(section: Section, settings: Settings) -> None:
    series(section, "Separate tasks of 50 samples", "T", settings.tasks, disjoint_tasks, settings)
    series(section, "Classes of 20 samples, one task for each pair", "classes", settings.classes, one_vs_one, settings)


SECTIONS = {
    "1": ("1. Samples", "Point clouds in 20 dimensions, with the paper's 11 kernels.", of_samples),
    "2": ("2. Kernels", "300 samples in six classes, which make 15 tasks; 13 points of the path.", of_kernels),
    "3": ("3. Tasks", "The paper's 11 kernels and 13 points of the path.", of_tasks),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="numbers of the sections to run, such as 1,3")
    parser.add_argument("--quick", action="store_true", help="a small trial of everything, within a minute")
    options = parser.parse_args()
    chosen = options.only.split(",") if options.only else list(SECTIONS)
    unknown = [key for key in chosen if key not in SECTIONS]
    if unknown:
        parser.error(f"there is no section {unknown[0]!r}; the sections are {', '.join(SECTIONS)}")

    settings = TRIAL if options.quick else Settings()
    folder = quick_folder() if options.quick else None
    results = (folder or ROOT / "benchmarks") / "scaling.json"
    page = Page("Scaling", INTRODUCTION + TRIAL_NOTE * options.quick, results, (folder or ROOT / "doc") / "scaling.md")
    with single_thread():
        pareto_path(**one_task(100), verbose=0)  # compiles
        for key in chosen:
            title, text, measure = SECTIONS[key]
            command = f"python benchmarks/scaling.py{' --quick' if options.quick else ''} --only {key}"
            with page.section(key, title, text, command) as section:
                measure(section, settings)


if __name__ == "__main__":
    main()
