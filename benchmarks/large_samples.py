"""Many samples: run one case and print seconds and peak memory as JSON; large.py runs all cases.

    python benchmarks/large_samples.py mnist 10000 ours       traces a whole path
    python benchmarks/large_samples.py mnist 10000 svc        fits one SVC at half the median distance

The kernels are linear, quadratic and six Gaussians around the median distance, with unit diagonal. ``default`` in place
of ``ours`` uses the default bank, with its Laplacians.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
from data import blobs
from memory import AT_START, memory

# times the median distance, half an octave apart where most of the weight goes; ⅛ is near the identity
WIDTHS = tuple(2.0**k for k in (-2, -1.5, -1, -0.5, 0, 1))
CACHE_MB = 5000  # distances of 60 000 samples
C = 10.0


def make(name: str, n: int) -> dict[str, Any]:
    """Training samples as the arguments X, y and maybe tasks, plus ``test`` if the data set has a test set."""
    from paretomkl.datasets import fetch

    if name == "blobs":
        X, y = blobs(n, 2)
        return {"X": X, "y": y}
    digits = fetch(name)
    X, y = np.asarray(digits.data, dtype=np.float64), np.asarray(digits.target)
    if name == "mnist":
        X /= 255.0
        some = np.random.default_rng(0).permutation(60_000)[:n]
        return {"X": X[some], "y": y[some], "test": (X[60_000:], y[60_000:])}
    some = np.sort(np.random.default_rng(0).permutation(len(X))[:n])
    tasks = {"tasks": np.asarray(digits.tasks)[some]} if digits.get("tasks") is not None else {}
    X = X[some]
    return {"X": (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12), "y": y[some], **tasks}


def median_distance(X: np.ndarray) -> float:
    from scipy.spatial.distance import pdist

    some = X[np.random.default_rng(0).permutation(len(X))[:1000]]
    return float(np.median(pdist(some)))


def bank_of(X: np.ndarray) -> Any:
    from paretomkl.kernels import Gaussian, KernelBank, Linear, Polynomial

    median = median_distance(X)
    widths = [Gaussian(sigma=factor * median) for factor in WIDTHS]
    return KernelBank([Linear(), Polynomial(2), *widths], normalize="unit", cache_mb=CACHE_MB)


def trace_path(arguments: dict[str, Any], kernels: str, n_jobs: int) -> dict[str, Any]:
    """Seconds, sweeps, certified gap and test error of a path over the paper's exponents; one task has p = 1 only."""
    from paretomkl import PAPER_PS, pareto_path

    test = arguments.pop("test", None)
    one = "tasks" not in arguments and len(np.unique(arguments["y"])) == 2
    bank = "default" if kernels == "default" else bank_of(arguments["X"])
    some = np.random.default_rng(0).permutation(len(arguments["y"]))[:400]
    small = {name: values[some] for name, values in arguments.items()}
    pareto_path(**small, kernels=bank, ps=[1.0], verbose=0)  # compiles
    wall, cpu = time.perf_counter(), time.process_time()
    ps = [1.0] if one else PAPER_PS
    path = pareto_path(**arguments, kernels=bank, ps=ps, C=C, n_jobs=n_jobs, verbose=1)
    found = {
        "seconds": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "tasks": len(path.task_names),
        "sweeps": path.n_sweeps,
        "gap": float(path.gap.max()),
        "master": path.seconds["master"],
    }
    if test is not None:
        model = path.models[list(path.ps).index(1.0)]
        found["error"] = float(np.mean(model.predict(test[0]) != test[1]))
    return found


def fit_svc(arguments: dict[str, Any]) -> dict[str, Any]:
    """Fit one SVC on all samples, or one per task, with the same cache as ours."""
    from sklearn.svm import SVC

    X, y = arguments["X"], arguments["y"]
    tasks = arguments.get("tasks", np.zeros(len(y)))
    gamma = 1 / (2 * median_distance(X) ** 2)
    wall, cpu = time.perf_counter(), time.process_time()
    models = [
        SVC(C=C, gamma=4 * gamma, cache_size=CACHE_MB).fit(X[tasks == t], y[tasks == t]) for t in np.unique(tasks)
    ]
    found = {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "tasks": len(models)}
    if "test" in arguments and len(X) <= 20_000:
        found["error"] = float(np.mean(models[0].predict(arguments["test"][0]) != arguments["test"][1]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=("mnist", "letter", "shuttle", "blobs"))
    parser.add_argument("n", type=int)
    parser.add_argument("method", choices=("ours", "default", "svc"))
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    arguments = make(options.name, options.n)
    n = len(arguments["X"])
    found = fit_svc(arguments) if options.method == "svc" else trace_path(arguments, options.method, options.jobs)
    print(json.dumps({"n": n, **found, "peak_mb": memory("VmHWM") - AT_START}))


if __name__ == "__main__":
    main()
