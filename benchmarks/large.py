"""Large problems: many samples, many kernels, many tasks; writes doc/large.md. Uses real data if available.

python benchmarks/large.py                 everything, in an hour or so
python benchmarks/large.py --only 1        some sections; the others keep their results
python benchmarks/large.py --quick         a small trial, written to benchmarks/quick
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from report import ROOT, THREAD_VARIABLES, TRIAL_NOTE, Page, Section, quick_folder

from paretomkl import PAPER_PS

INTRODUCTION = """This page shows whole paths at a relative gap of 1e-3. Every case runs in its own process, and the
table gives its peak memory. Unless the table says otherwise, the kernels are linear, quadratic and six Gaussians at ¼ …
2 times the median distance, and C = 10. SVC is one fit of scikit-learn's `SVC` at half the median distance, with as
large a cache as ours. When we compare the two, both run on one thread. Compare CPU seconds, because other work on the
machine changes the elapsed time."""
HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Settings:
    """Sizes of the full run."""

    mnist: tuple[int, ...] = (5000, 10_000, 20_000, 60_000)
    with_laplacians: tuple[int, ...] = (5000, 10_000)
    two_classes: int = 20_000
    letter: int = 45_869
    shuttle: int = 58_000
    # kernels on single columns or pairs, number of kernels, s, classes
    kernels: tuple[tuple[str, int, float, int], ...] = (
        *(("single", 100_000, s, 2) for s in (1.1, 1.0)),
        *(("pairs", 100_000, s, 2) for s in (1.1, 1.0)),
        *(("single", n, 1.1, 6) for n in (1000, 10_000)),
    )
    # number of tasks, workers (0: no cluster), exponents
    tasks: tuple[tuple[int, int, tuple[float, ...]], ...] = (
        *((200, workers, PAPER_PS) for workers in (0, 1, 2)),
        *((1000, workers, PAPER_PS) for workers in (0, 1, 2)),
        *((10_000, workers, (1.0,)) for workers in (0, 2)),
    )


TRIAL = Settings(
    mnist=(500, 1000),
    with_laplacians=(500,),
    two_classes=1000,
    letter=1500,
    shuttle=1500,
    kernels=(("single", 1500, 1.0, 2), ("single", 300, 1.1, 6)),
    tasks=((20, 0, (1.0,)), (20, 1, (1.0,))),
)


def measured(name: str, n: int, method: str, jobs: int = 1) -> dict[str, Any]:
    """Run one case of large_samples.py in its own process."""
    command = [sys.executable, HERE / "large_samples.py", name, str(n), method, "--jobs", str(jobs)]
    environment = os.environ | dict.fromkeys(THREAD_VARIABLES, str(jobs))
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


COLUMNS = {"N": "d", "T": "d", "sweeps": "d", "gap": ".0e", "CPU s": ".1f", "s": ".1f", "peak GB": ".1f"}


def row(found: dict[str, Any]) -> list[Any]:
    names = ("n", "tasks", "sweeps", "gap", "cpu", "seconds")
    return [*(found.get(name) for name in names), found["peak_mb"] / 1024]


def digits(section: Section, settings: Settings) -> None:
    """Compare paths on MNIST with one SVC, and how both grow."""
    table = section.table({"method": "s", **COLUMNS, "test error %": ".2f", "times one SVC": ".2f"}, "MNIST, 45 tasks")
    ratios, seconds = {}, {}
    for n in settings.mnist:
        theirs, ours = measured("mnist", n, "svc"), measured("mnist", n, "ours")
        ratios[n], seconds[n] = ours["cpu"] / theirs["cpu"], ours["cpu"]
        for name, found, ratio in (("one SVC", theirs, None), ("path of 13 p", ours, ratios[n])):
            error = found.get("error")
            section.add(table, name, *row(found), None if error is None else 100 * error, ratio)
    for n in settings.with_laplacians:
        found = measured("mnist", n, "default")
        section.add(table, "default bank", *row(found), 100 * found["error"], None)
    most = settings.mnist[-1]
    error, peak = 100 * ours["error"], ours["peak_mb"] / 1024
    section.claim(f"MNIST, {most} samples: at most 3 times one SVC", f"{ratios[most]:.2f}", ratios[most] <= 3)
    section.claim("below 8 GB", f"{peak:.1f} GB", peak < 8)
    section.claim("test error at most 1.6 %", f"{error:.2f} %", error <= 1.6)
    larger = [n for n in settings.mnist if n >= 10_000] or list(settings.mnist)
    growth = float(np.polyfit(np.log(larger), np.log([seconds[n] for n in larger]), 1)[0])
    section.claim(f"growth from {larger[0]} samples on: exponent at most 1.7", f"{growth:.2f}", growth <= 1.7)


def tables(section: Section, settings: Settings) -> None:
    """Run all of Letter and Shuttle on two threads, and compare two classes with one SVC."""
    table = section.table({"set": "s", **COLUMNS, "times one SVC": ".2f"})
    letter = measured("letter", settings.letter, "ours", jobs=2)
    section.add(table, "Letter, 2 threads", *row(letter), None)
    section.add(table, "Letter, default bank", *row(measured("letter", settings.letter, "default", jobs=2)), None)
    section.add(table, "Shuttle, 2 threads", *row(measured("shuttle", settings.shuttle, "ours", jobs=2)), None)
    theirs, ours = (measured("blobs", settings.two_classes, method) for method in ("svc", "ours"))
    ratio = ours["cpu"] / theirs["cpu"]
    section.add(table, "two classes, one SVC", *row(theirs), None)
    section.add(table, "two classes", *row(ours), ratio)
    section.claim("all of Letter: below 120 CPU s on two threads", f"{letter['cpu']:.0f} CPU s", letter["cpu"] < 120)
    section.claim("two classes: at most 10 times one SVC", f"{ratio:.1f}", ratio <= 10)


def kernels(section: Section, settings: Settings) -> None:
    """Run up to 100 000 kernels for one task, and up to 10 000 for 15 tasks."""
    import large_kernels

    table = section.table(large_kernels.COLUMNS)
    found = []
    for case in settings.kernels:
        found.append(large_kernels.in_process_of_its_own(large_kernels.Case(*case)))
        section.add(table, *(found[-1][column] for column in large_kernels.COLUMNS))
    largest = max((row for row in found if row["T"] == 1), key=lambda row: (row["M"] > 50_000, row["CPU s"]))
    seconds, peak = largest["CPU s"], max(row["peak MB"] for row in found) / 1024
    section.claim(f"{largest['M']} kernels, one task: below 60 s of one core", f"{seconds:.0f} s", seconds < 60)
    section.claim("below 4 GB", f"{peak:.1f} GB", peak < 4)
    for row in found:
        if row["T"] > 1:
            share = row["master"]
            target = f"{row['M']} kernels, {row['T']} tasks: master at most a quarter"
            section.claim(target, f"{share:.0%}", share <= 0.25)


def tasks(section: Section, settings: Settings) -> None:
    """Run tasks in one process, and on the workers of a cluster."""
    import large_tasks

    names = ("T", "workers", "sweeps", "gap", "s", "client CPU s", "worker CPU s", "client MB", "worker MB")
    table = section.table(dict(zip(names, ("d", "d", "d", ".0e", ".1f", ".1f", ".1f", ".0f", ".0f"), strict=True)))
    for n_tasks, n_workers, ps in settings.tasks:
        given = {"ps": ps, "kernels": "paper", "verbose": 0}
        run = partial(large_tasks.on_a_cluster, n_workers=n_workers) if n_workers else large_tasks.in_one_process
        section.add(table, *astuple(run(n_tasks, **given)))


Measure = Callable[[Section, Settings], None]
SECTIONS: dict[str, tuple[str, str, Measure]] = {
    "1": ("1. Samples: MNIST", "Handwritten digits with 784 columns and ten classes.", digits),
    "2": (
        "2. Samples: Letter, Shuttle, two classes",
        "Standardised columns; the two classes are point clouds.",
        tables,
    ),
    "3": (
        "3. Kernels",
        "Gaussians on single columns and pairs of columns of synthetic spectra, 208 samples with 60 columns; C = 1.",
        kernels,
    ),
    "4": (
        "4. Tasks",
        "Tasks with 100 samples and 10 columns each, the paper's kernels, C = 1; workers are processes.",
        tasks,
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="numbers of the sections to run, such as 1,3")
    parser.add_argument("--quick", action="store_true", help="a small trial of everything")
    options = parser.parse_args()
    chosen = options.only.split(",") if options.only else list(SECTIONS)
    unknown = [key for key in chosen if key not in SECTIONS]
    if unknown:
        parser.error(f"there is no section {unknown[0]!r}; the sections are {', '.join(SECTIONS)}")
    settings = TRIAL if options.quick else Settings()
    folder = quick_folder() if options.quick else None
    results = (folder or ROOT / "benchmarks") / "large.json"
    page = Page(
        "Large problems", INTRODUCTION + TRIAL_NOTE * options.quick, results, (folder or ROOT / "doc") / "large.md"
    )
    for key in chosen:
        title, text, measure = SECTIONS[key]
        with page.section(key, title, text, f"python benchmarks/large.py --only {key}") as section:
            measure(section, settings)


if __name__ == "__main__":
    main()
