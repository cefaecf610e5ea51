"""Many tasks: 200 to 10 000 small tasks, in one process and on the workers of a Dask cluster.

python benchmarks/large_tasks.py                    all sizes
python benchmarks/large_tasks.py --tasks 200 1000   some of them
python benchmarks/large_tasks.py --workers 1 2      clusters of one and of two worker processes
python benchmarks/large_tasks.py --samples 300      larger tasks
python benchmarks/large_tasks.py --repeats 5        for each row, the path with the least CPU time of five
python benchmarks/large_tasks.py --repeats 5 --quickest seconds     the least elapsed time, if nothing else is running

``main`` returns the rows that it prints, so other benchmarks can show them.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from paretomkl import PAPER_PS, pareto_path
from paretomkl.distributed import Site, Sites

N_SAMPLES, N_FEATURES = 100, 10
SIZES = (200, 1000, 3000, 10_000)


@dataclass(frozen=True)
class Row:
    """One path. Client and workers take turns: ``cpu`` is what a path takes if each has its own core.

    The client's process has the scheduler too. Dask uses 3 to 5 % of a core in every process, even an idle one.
    That counts here: on a machine that is busy with other things, ``cpu`` is too large by this share of ``seconds``.
    """

    tasks: int
    workers: int  # 0: one process, no cluster
    sweeps: int
    gap: float
    seconds: float  # elapsed; depends on what else the machine is doing
    client_cpu: float  # seconds, including the master
    worker_cpu: float  # of the busiest worker
    client_mb: float  # peak memory
    worker_mb: float

    @property
    def cpu(self) -> float:
        return self.client_cpu + self.worker_cpu


def one_task(number: int, n_samples: int = N_SAMPLES) -> tuple[np.ndarray, np.ndarray]:
    """Samples of one task: related directions, and its own noise level."""
    common = np.random.default_rng(0).standard_normal(N_FEATURES)
    rng = np.random.default_rng(number + 1)
    X = rng.uniform(size=(n_samples, N_FEATURES))
    score = (X - 0.5) @ (common + 0.7 * rng.standard_normal(N_FEATURES))
    score += rng.uniform(0.1, 1.0) * rng.standard_normal(n_samples)
    return X, np.where(score > np.median(score), 1, -1)


def usage() -> tuple[float, float]:
    """CPU seconds and peak memory in MB of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def in_one_process(n_tasks: int, n_samples: int = N_SAMPLES, **options: Any) -> Row:
    drawn = [one_task(t, n_samples) for t in range(n_tasks)]
    X, y = np.concatenate([X for X, _ in drawn]), np.concatenate([y for _, y in drawn])
    began, (cpu, _) = time.perf_counter(), usage()
    path = pareto_path(X, y, tasks=np.repeat(np.arange(n_tasks), n_samples), **options)
    seconds, (used, peak) = time.perf_counter() - began, usage()
    return Row(n_tasks, 0, path.n_sweeps, float(path.gap.max()), seconds, used - cpu, 0.0, peak, 0.0)


def on_a_cluster(
    n_tasks: int, n_workers: int, repeats: int = 1, n_samples: int = N_SAMPLES, quickest: str = "cpu", **options: Any
) -> Row:
    """The same with a loader for each task; the models stay on the workers."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        few = Sites([Site(t, load=partial(one_task, t)) for t in range(2 * n_workers)])
        pareto_path(few, **options)  # load compiled code before the clock starts
        rows = [one_path(client, n_tasks, n_samples, **options) for _ in range(repeats)]
    return min(rows, key=attrgetter(quickest))


def one_path(client: Any, n_tasks: int, n_samples: int = N_SAMPLES, **options: Any) -> Row:
    sites = Sites([Site(t, load=partial(one_task, t, n_samples)) for t in range(n_tasks)], gather=False)
    before, began, (cpu, _) = client.run(usage), time.perf_counter(), usage()
    path = pareto_path(sites, **options)
    seconds, (used, peak), after = time.perf_counter() - began, usage(), client.run(usage)
    worker_cpu = max(after[address][0] - before[address][0] for address in after)
    worker_mb = max(peak_of_worker for _, peak_of_worker in after.values())
    result = path.n_sweeps, float(path.gap.max()), seconds, used - cpu, worker_cpu, peak, worker_mb
    return Row(n_tasks, len(after), *result)


def main(arguments: Sequence[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, nargs="+", default=SIZES)
    parser.add_argument("--workers", type=int, nargs="+", default=(0, 1, 2), help="0 is one process without a cluster")
    parser.add_argument("--repeats", type=int, default=1, help="paths on a cluster, of which the quickest counts")
    parser.add_argument("--samples", type=int, default=N_SAMPLES, help="samples of each task")
    parser.add_argument("--quickest", choices=["cpu", "seconds"], default="cpu", help="what to compare the repeats by")
    parser.add_argument("--ps", type=float, nargs="+", default=PAPER_PS)
    parser.add_argument("--kernels", choices=["default", "paper"], default="paper")
    given = parser.parse_args(arguments)
    options = {"ps": given.ps, "kernels": given.kernels, "verbose": 0}
    print(*(f"{field.name:>10}" for field in fields(Row)), f"{'cpu':>10}")
    rows = []
    for n_tasks in given.tasks:
        for n_workers in given.workers:
            if n_workers:
                row = on_a_cluster(n_tasks, n_workers, given.repeats, given.samples, given.quickest, **options)
            else:
                row = in_one_process(n_tasks, given.samples, **options)
            print(*(f"{value:>10.4g}" for value in (*astuple(row), row.cpu)), flush=True)
            rows.append(row)
    return rows


if __name__ == "__main__":
    main()
