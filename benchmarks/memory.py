"""Trace one path in a fresh process; print seconds and peak memory as JSON, and progress on standard error.

    python benchmarks/memory.py N_SAMPLES N_CLASSES

With two classes there is one task, at p = 1. With more there are one-vs-one tasks and the whole path.
"""

import json
import resource
import sys
from pathlib import Path


def memory(name: str) -> float:
    """MB used by this process according to the operating system: VmRSS is now, VmHWM the peak.

    Without such a record, use ``ru_maxrss``, which a child process inherits from its parent on Linux.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    lines = status.read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))


AT_START = memory("VmRSS")  # before anything is imported


def main(n_samples: int, n_classes: int) -> None:
    from time import perf_counter

    from data import blobs

    from paretomkl import PAPER_PS, pareto_path

    X, y = blobs(n_samples, n_classes)
    imported = memory("VmHWM")
    began = perf_counter()
    path = pareto_path(X, y, ps=[1.0] if n_classes == 2 else PAPER_PS, kernels="paper", verbose=1)
    measured = {
        "seconds": perf_counter() - began,
        "tasks": len(path.task_names),
        "points": len(path),
        "sweeps": path.n_sweeps,
        "gap": float(path.gap.max()),
        "imports_mb": imported - AT_START,
        "peak_mb": memory("VmHWM") - AT_START,
    }
    print(json.dumps(measured))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
