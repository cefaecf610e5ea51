"""Very many kernels: 1000 to 100 000 Gaussians on single columns and on pairs of columns of a table of 208 × 60.

python benchmarks/large_kernels.py                              everything, in minutes; prints Markdown
python benchmarks/large_kernels.py --quick                      a trial in small
python benchmarks/large_kernels.py one single 100000 1.1 2      one case in this process, as JSON

Each case runs in a process of its own, so that its peak of memory is its own.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from itertools import combinations
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from report import ROOT, THREAD_VARIABLES, Table

TEXT = """Gaussians on single columns, and on all single columns and pairs of them, of a table of 208 samples and 60
columns: smooth spectra of overlapping classes, in [0, 1], made by `large_kernels.table` in the shape of the sonar data.
Widths are equally spaced in logarithm from 0.01 to 10. Two classes: one task, p = 1. Six classes: 15 tasks, 13 points
of the path. One thread, relative gap 1e-3, C = 1; CPU seconds, of a process that has its compiled code; the shares of
tasks and master are of the wall clock. Peak memory is that of the process, of which about 300 MB are imports."""
N_SAMPLES, N_COLUMNS = 208, 60
COLUMNS = {
    "kernels on": "s",
    "M": "d",
    "T": "d",
    "s": "g",
    "sweeps": "d",
    "largest gap": ".1e",
    "CPU s": ".1f",
    "tasks": ".0%",
    "master": ".0%",
    "peak MB": ".0f",
}


class Case(NamedTuple):
    """Which columns the kernels are on ("single" or "pairs"), how many, s, and the number of classes."""

    on: str
    n_kernels: int
    s: float
    classes: int


CASES = [
    *(Case("single", n, s, 2) for n in (1_000, 10_000, 100_000) for s in (1.1, 1.0)),
    *(Case("pairs", n, s, 2) for n in (10_000, 100_000) for s in (1.1, 1.0)),
    *(Case("single", n, 1.1, 6) for n in (1_000, 10_000)),
]
TRIAL = [Case("single", 3_000, 1.1, 2), Case("single", 3_000, 1.0, 2), Case("pairs", 2_000, 1.1, 2)]


def table(classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Spectra of 60 bands in [0, 1]: each class has three kinds, of eight bumps whose heights vary, and noise."""
    rng = np.random.default_rng(seed)
    y = np.arange(N_SAMPLES) % classes
    bands, bumps = np.linspace(0, 1, N_COLUMNS), np.linspace(0, 1, 8)
    shapes = np.exp(-0.5 * ((bands - bumps[:, None]) / 0.08) ** 2)
    heights = rng.standard_normal((3 * classes, len(bumps)))[y + classes * rng.integers(3, size=N_SAMPLES)]
    X = (heights + 1.2 * rng.standard_normal(heights.shape)) @ shapes + 0.3 * rng.standard_normal(
        (N_SAMPLES, N_COLUMNS)
    )
    return (X - X.min(axis=0)) / np.ptp(X, axis=0), y


def gaussians(on: str, n_kernels: int) -> list[Any]:
    """At least as many as asked for: the same widths on every set of columns."""
    from paretomkl.kernels import Gaussian

    sets: list[tuple[int, ...]] = [(j,) for j in range(N_COLUMNS)]
    if on == "pairs":
        sets += combinations(range(N_COLUMNS), 2)
    widths = np.geomspace(0.01, 10, -(-n_kernels // len(sets))) if n_kernels > len(sets) else [0.3]
    return [Gaussian(sigma, columns=columns) for columns in sets for sigma in widths]


def measure(case: Case) -> dict[str, Any]:
    """One case in this process."""
    from paretomkl import PAPER_PS, pareto_path

    X, y = table(case.classes)
    ps = [1.0] if case.classes == 2 else PAPER_PS
    kernels = gaussians(case.on, case.n_kernels)
    # compiles, or reads compiled code: some kernels in several parts
    pareto_path(X[:60], y[:60], ps=ps, kernels=kernels[:: max(1, len(kernels) // 1200)], s=case.s, verbose=0, tol=0.1)
    began = process_time()
    path = pareto_path(X, y, ps=ps, kernels=kernels, s=case.s, verbose=0)
    seconds = process_time() - began
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return {
        "kernels on": "single columns" if case.on == "single" else "columns and pairs",
        "M": len(kernels),
        "T": len(path.task_names),
        "s": case.s,
        "sweeps": path.n_sweeps,
        "largest gap": float(path.gap.max()),
        "CPU s": seconds,
        "tasks": path.seconds["tasks"] / path.seconds["total"],
        "master": path.seconds["master"] / path.seconds["total"],
        "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit,
    }


def in_process_of_its_own(case: Case) -> dict[str, Any]:
    environment = os.environ | dict.fromkeys(THREAD_VARIABLES, "1")
    command = [sys.executable, __file__, "one", *map(str, case)]
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main(cases: Sequence[Case] = CASES) -> str:
    """Measure all cases; the section of results in Markdown."""
    results = Table(COLUMNS)
    for case in cases:
        found = in_process_of_its_own(case)
        results.rows.append([found[column] for column in COLUMNS])
        print(results.line(results.cells(results.rows[-1])), file=sys.stderr, flush=True)
    return "\n".join(["## Many kernels", "", TEXT, "", *results.markdown()])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("one", nargs="*", help="one case: the word one, then single or pairs, M, s, classes")
    parser.add_argument("--quick", action="store_true", help="a trial in small")
    options = parser.parse_args()
    if options.one:
        _, on, n_kernels, s, classes = options.one
        print(json.dumps(measure(Case(on, int(n_kernels), float(s), int(classes)))))
    else:
        print(main(TRIAL if options.quick else CASES))
