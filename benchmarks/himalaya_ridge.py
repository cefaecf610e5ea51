"""Ridge with 10 outputs, 1000 samples and 11 kernels: our whole path against himalaya's random search.

    python benchmarks/himalaya_ridge.py --python OTHER/bin/python     # an environment with himalaya; see neighbours/

The data are handwritten digits (mfeat). We predict the first ten Karhunen-Loève coefficients from the Fourier
coefficients, with the paper's kernels on standardised features. Both sides get centred targets and the same precomputed
kernels, centred (himalaya has no intercept by default) and with unit mean diagonal. Times are for the fit, without
kernels.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from neighbours import THREAD_VARIABLES

from paretomkl import KernelBank, ParetoMKLRegressor, ParetoMKLRegressorCV, pareto_path
from paretomkl.datasets import fetch

THEIRS = Path(__file__).parent / "neighbours" / "run_himalaya_ridge.py"
REPEATS = 3  # of our short runs; we take the best


def make_data(seed: int) -> dict[str, np.ndarray]:
    """Kernels (11, 1000, 1000), targets (1000, 10), and the same for another 1000 samples."""
    digits = fetch("mfeat")
    columns = {name: np.asarray(places) for name, places in digits.sources.items()}
    fourier, karhunen = (next(columns[name] for name in columns if name.lower().startswith(k)) for k in ("fou", "kar"))
    order = np.random.default_rng(seed).permutation(len(digits.data))
    train, test = order[:1000], order[1000:]
    X, Y = digits.data[:, fourier].astype(float), digits.data[:, karhunen[:10]].astype(float)
    X = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    Y = (Y - Y[train].mean(axis=0)) / Y[train].std(axis=0)
    bank = KernelBank("paper").fit(X[train])
    stacks = (bank.stack(bank.side(X[rows]), bank.side(X[train])) for rows in (train, test))
    Ks, Ks_test = (np.array(part) for part in zip(*map(_centred, *stacks), strict=True))
    return {"Ks": Ks, "Ks_test": Ks_test, "Y": Y[train], "Y_test": Y[test]}


def _centred(K: np.ndarray, K_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    columns, mean = K.mean(axis=0), K.mean()
    centred = K - columns - columns[:, None] + mean
    unit = np.trace(centred) / len(K)
    return centred / unit, (K_test - columns - K_test.mean(axis=1, keepdims=True) + mean) / unit


def ours(file: str) -> None:
    """Time the path at C = 1 and at the C from cross-validation; print one JSON line each."""
    with np.load(file) as data:
        Ks, Y, Ks_test, Y_test = (data[name] for name in ("Ks", "Y", "Ks_test", "Y_test"))
    X, X_test = (np.ascontiguousarray(np.moveaxis(part, 0, -1)) for part in (Ks, Ks_test))
    warnings.simplefilter("ignore")
    ParetoMKLRegressor(kernels="precomputed").fit(X[:50, :50], Y[:50])  # compiles

    def show(name, seconds, cpu, path):
        scores = [float(model.score(X_test, Y_test)) for model in path.models]
        r2 = {"r2": scores[list(path.ps).index(1.0)], "least": min(scores), "most": max(scores)}
        print(json.dumps({"name": name, "seconds": seconds, "cpu": cpu, **r2}))

    def timed(fit, repeats=REPEATS):
        best = np.inf, np.inf
        for _ in range(repeats):
            began, cpu = time.perf_counter(), time.process_time()
            found = fit()
            best = min(best, (time.perf_counter() - began, time.process_time() - cpu))
        return found, best

    path, (seconds, cpu) = timed(lambda: pareto_path(X, Y, machine="ridge", kernels="precomputed", verbose=0))
    show("paretomkl, path of 13 p at C = 1", seconds, cpu, path)
    # scale kernels by capacity, as the default bank does, and choose C and κ by cross-validation
    choice, (seconds, cpu) = timed(
        lambda: ParetoMKLRegressorCV(ps=1.0, s=1.1, capacity=(0.5, 1.0), kernels="precomputed").fit(X, Y), 1
    )
    C, capacity = choice.best_params_["C"], choice.best_params_["capacity"]
    bank = KernelBank("precomputed", normalize="capacity", capacity=capacity)
    path, own = timed(lambda: pareto_path(X, Y, machine="ridge", kernels=bank, C=C, verbose=0))
    show(f"paretomkl, path of 13 p at the C = {C:g} and κ = {capacity:g} that folds choose", *own, path)
    show("the same with the choice by folds, at p = 1", seconds + own[0], cpu + own[1], path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", help="interpreter of an environment with himalaya")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1], help="one split per seed")
    parser.add_argument("--ours", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.ours:
        ours(given.ours)
        return
    if not given.python:
        parser.error("--python is needed")
    for seed in given.seeds:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "kernels.npz"
            np.savez(file, **make_data(seed))
            for threads in given.threads:
                print(f"\nsplit {seed}, {threads} thread{'s' if threads > 1 else ''}\n", flush=True)
                compare(file, given.python, threads)


def compare(file: Path, python: str, threads: int) -> None:
    """One table: ours and theirs on the same kernels."""
    environment = os.environ | dict.fromkeys(THREAD_VARIABLES, str(threads))
    print("| | s | CPU s | R² |\n|---|---:|---:|---:|")
    for command in ([sys.executable, __file__, "--ours", file], [python, THEIRS, file]):
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
        for line in done.stdout.splitlines():
            row = json.loads(line)
            note = f" ({row['least']:.4f} … {row['most']:.4f} along p)" if "least" in row else ""
            cells = f"{row['seconds']:.2f} | {row['cpu']:.2f} | {row['r2']:.4f}{note}"
            print(f"| {row['name']} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
