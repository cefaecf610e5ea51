"""Large problems on a GPU, and on the cores of the same machine; results are kept in benchmarks/gpu.json.

python benchmarks/gpu.py                              every case that has no result on this machine yet
python benchmarks/gpu.py --only mnist-60000,ridge     some cases
python benchmarks/gpu.py --devices cuda --again       on the GPU only, also where there are results
python benchmarks/gpu.py --within 500                 stop cases that would take longer than this in total
python benchmarks/gpu.py --profile                    where the time goes, too; it makes runs slower

Every result is written as soon as it is there, so an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import json
import os
import platform
import pstats
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from data import blobs
from large_samples import C, bank_of, make
from memory import memory

import paretomkl
from paretomkl import PAPER_PS, ParetoMKLClassifierCV, ParetoMKLRegressorCV, pareto_path
from paretomkl.datasets import load_digit_views

RESULTS = Path(__file__).resolve().parent / "gpu.json"


@dataclass(frozen=True)
class Case:
    """Data, and what to do with them: trace a path, or ``search``.

    ``cores`` says whether the CPU runs it too, with all threads; if the case is ``small``, also with one, and the
    faster run counts. ``limit`` stops it (seconds).
    """

    title: str
    data: Callable[[], dict[str, Any]]
    kernels: str = "eight"
    ps: tuple[float, ...] = tuple(PAPER_PS)
    machine: str = "svc"
    search: type | None = None
    cores: bool = True
    small: bool = False
    limit: int = 300


def digits(n: int, shifts: bool = False) -> dict[str, Any]:
    """MNIST; ``shifts`` adds each training digit moved by one pixel in four directions."""
    found = make("mnist", n)
    if shifts:
        images = found["X"].reshape(-1, 28, 28)
        moved = [np.roll(images, step, axis=axis) for axis in (1, 2) for step in (1, -1)]  # the border is empty
        found["X"] = np.concatenate([images, *moved]).reshape(-1, 784)
        found["y"] = np.tile(found["y"], 5)
    return found


def two_classes(n: int) -> dict[str, Any]:
    X, y = blobs(n + 10_000, 2, features=50)
    return {"X": X[:n], "y": y[:n], "test": (X[n:], y[n:])}


def outputs(n: int, n_outputs: int) -> dict[str, Any]:
    """Smooth functions of 20 columns with noise, one per output."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 20))
    hidden = np.tanh(X @ rng.standard_normal((20, 50)) / 4)
    return {"X": X, "y": hidden @ rng.standard_normal((50, n_outputs)) + rng.standard_normal((n, n_outputs))}


def views() -> dict[str, Any]:
    """Digits measured in three ways."""
    X, y = load_digit_views()
    return {"X": X, "y": y}


CASES = {
    "mnist-20000": Case("MNIST, 20 000 digits", partial(digits, 20_000)),
    "mnist-60000": Case("MNIST, 60 000 digits", partial(digits, 60_000)),
    "mnist-60000-default": Case("MNIST, 60 000 digits, default bank", partial(digits, 60_000), "default"),
    "shifted": Case("MNIST and its shifts, 300 000 digits", partial(digits, 60_000, shifts=True), cores=False),
    "million": Case("two classes, 10⁶ rows of 50 columns", partial(two_classes, 1_000_000), ps=(1.0,), cores=False),
    "ridge": Case("ridge, 10 000 outputs, 5000 rows", partial(outputs, 5000, 10_000), ps=(1.0,), machine="ridge"),
    "search-views": Case("search, 1000 digits, 3 sources", views, search=ParetoMKLClassifierCV),
    "search-regression": Case("search, regression, 2500 rows", partial(outputs, 2500, 1), search=ParetoMKLRegressorCV),
    "two-classes-2500": Case("two classes, 2500 rows", partial(two_classes, 2500), ps=(1.0,), small=True),
    "two-classes-5000": Case("two classes, 5000 rows", partial(two_classes, 5000), ps=(1.0,), small=True),
    "mnist-2500": Case("MNIST, 2500 digits", partial(digits, 2500), small=True),
    "mnist-5000": Case("MNIST, 5000 digits", partial(digits, 5000), small=True),
}


def run(case: Case, device: str, n_jobs: int, profile: bool) -> dict[str, Any]:
    """Search, or trace the path and predict: seconds, certificate, test error and memory."""
    if case.search is not None:
        return run_search(case, device, n_jobs)
    given = case.data()
    test = given.pop("test", None)
    bank = "default" if case.kernels == "default" else bank_of(given["X"])
    reset_peak(device)
    with paretomkl.config_context(device=device), profiled(profile):
        began, cpu = time.perf_counter(), time.process_time()
        path = pareto_path(**given, kernels=bank, ps=case.ps, C=C, machine=case.machine, n_jobs=n_jobs, verbose=0)
        found = {
            "seconds": time.perf_counter() - began,
            "cpu": time.process_time() - cpu,
            "n": len(given["X"]),
            "tasks": len(path.task_names),
            "kernels": path.theta.shape[1],
            "sweeps": path.n_sweeps,
            "gap": float(path.gap.max()),
            "objectives": path.objective.tolist(),
            "parts": {name: float(value) for name, value in path.seconds.items()},
        }
        model = path.models[list(path.ps).index(1.0)]
        found["support"] = int(model.dual.shape[1])
        if test is not None:
            for turn in ("first", "again"):
                began = time.perf_counter()
                predicted = model.predict(test[0])
                found[f"predicting_{turn}"] = time.perf_counter() - began
            found["error"] = float(np.mean(predicted != test[1]))
    if test is not None and device != "cpu":
        some = test[0][:200]
        with paretomkl.config_context(device=device):
            there = model.decisions(some)
        with paretomkl.config_context(device="cpu"):
            here = model.decisions(some)
        found["decisions_off"] = float(np.nanmax(np.abs(there - here)) / np.nanstd(here))
    return found | {"peak_gb": memory("VmHWM") / 1024} | peak_of(device)


def run_search(case: Case, device: str, n_jobs: int) -> dict[str, Any]:
    given = case.data()
    X, y = given["X"], np.squeeze(given["y"])
    with paretomkl.config_context(device=device):
        began, cpu = time.perf_counter(), time.process_time()
        search = case.search(n_jobs=n_jobs).fit(X, y)  # type: ignore[misc]
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    return {"seconds": seconds, "cpu": cpu, "n": len(y), "best": search.best_params_, "gap": float(search.gap_)}


def reset_peak(device: str) -> None:
    if device == "cuda":
        import torch

        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def peak_of(device: str) -> dict[str, float]:
    if device != "cuda":
        return {}
    import torch

    return {
        "device_gb": torch.cuda.max_memory_allocated() / 2**30,
        "reserved_gb": torch.cuda.max_memory_reserved() / 2**30,
    }


class Clock:
    """Seconds and calls of some functions, which wait for the device."""

    def __init__(self) -> None:
        self.found: dict[str, list[float]] = {}
        self.replaced: list[tuple[Any, str, Any]] = []

    def watch(self, owner: Any, name: str) -> None:
        import torch

        function, label = getattr(owner, name), f"{getattr(owner, '__name__', owner)}.{name}"

        def timed(*given: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                return function(*given, **named)
            finally:
                torch.cuda.synchronize()
                total = self.found.setdefault(label, [0.0, 0])
                total[0] += time.perf_counter() - began
                total[1] += 1

        self.replaced.append((owner, name, function))
        setattr(owner, name, timed)

    def watch_fields(self) -> None:
        from paretomkl.gram._large import on_device
        from paretomkl.machines import _base, _working_sets_on_device

        for name in ("move_to", "matrices", "quadratic_forms", "single_errors", "exact_decisions"):
            self.watch(on_device.DeviceField, name)
        for name in ("look", "choose", "improve", "guess", "_steps_on_device", "_steps_on_host"):
            self.watch(_working_sets_on_device.WorkOnDevice, name)
        for name in ("solve_on_working_sets", "certified_by_field"):
            self.watch(_base, name)

    def show(self) -> None:
        for owner, name, function in self.replaced:
            setattr(owner, name, function)
        for label, (seconds, calls) in sorted(self.found.items(), key=lambda pair: -pair[1][0]):
            print(f"    {label:60} {seconds:8.2f} s {int(calls):7d} calls")


@contextmanager
def profiled(wanted: bool) -> Iterator[None]:
    if not wanted:
        yield
        return
    clock, profile = Clock(), cProfile.Profile()
    clock.watch_fields()
    profile.enable()
    try:
        yield
    finally:
        profile.disable()
        clock.show()
        text = io.StringIO()
        pstats.Stats(profile, stream=text).sort_stats("tottime").print_stats(28).sort_stats("cumtime").print_stats(60)
        print("\n".join(line[:150] for line in text.getvalue().splitlines() if line.strip()))


def machine(device: str) -> str:
    """What the results of a device belong to."""
    cores = f"{os.cpu_count()} cores of {processor()}"
    if device != "cuda":
        return cores
    import torch

    return f"{torch.cuda.get_device_name()}, {cores}"


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def warm_up(devices: list[str], n_jobs: int) -> float:
    """Compile everything; returns the seconds that took."""
    began, rng = time.perf_counter(), np.random.default_rng(0)
    X = rng.standard_normal((7000, 20))  # so many that tasks are solved on working sets
    y = (X[:, 0] > 0) * 1 + (X[:, 1] > 0.5)
    for device in devices:
        with paretomkl.config_context(device=device):
            for kernels in (bank_of(X), "default"):
                path = pareto_path(X, y, kernels=kernels, ps=[0.5, 1.0, 2.0], C=C, n_jobs=n_jobs, verbose=0)
                path.models[0].predict(X)
            for machine in ("svc", "ridge"):  # the code of the CPU for small problems, and of the device for systems
                pareto_path(
                    X[:600], y[:600], kernels=bank_of(X), ps=[1.0, 2.0], machine=machine, n_jobs=n_jobs, verbose=0
                )
            views, labels = load_digit_views()
            some = {name: view[:600] for name, view in views.items()}
            ParetoMKLClassifierCV(Cs=[1.0], n_jobs=n_jobs).fit(some, labels[:600])
    return time.perf_counter() - began


class TooLongError(Exception):
    pass


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise TooLongError after so many seconds."""

    def stop(*_: Any) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(max(1, int(seconds)))
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help=f"cases, separated by commas: {', '.join(CASES)}")
    parser.add_argument("--devices", default="cuda,cpu", help="devices, separated by commas")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="threads")
    parser.add_argument("--within", type=float, default=float("inf"), help="seconds for everything")
    parser.add_argument("--out", type=Path, default=RESULTS, help="file with the results")
    parser.add_argument("--again", action="store_true", help="also where there is a result")
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    options = parser.parse_args()
    began, devices = time.perf_counter(), options.devices.split(",")
    chosen = options.only.split(",") if options.only else list(CASES)
    unknown = [name for name in chosen if name not in CASES]
    if unknown:
        parser.error(f"there is no case {unknown[0]!r}; the cases are {', '.join(CASES)}")
    results = json.loads(options.out.read_text()) if options.out.exists() else {}
    print(f"compiled in {warm_up(devices, options.jobs):.1f} s", flush=True)
    for name in chosen:
        for device in devices:
            case, known = CASES[name], results.setdefault(machine(device), {})
            left = options.within - (time.perf_counter() - began)
            if (name in known and not options.again) or (device == "cpu" and not case.cores) or left < 20:
                continue
            limit = min(case.limit, left - 5)
            print(f"{case.title}, {device}:", flush=True)
            try:
                with at_most(limit):
                    jobs = [options.jobs, 1] if case.small and device == "cpu" else [options.jobs]
                    runs = [run(case, device, n, options.profile) | {"jobs": n} for n in jobs]
                found = min(runs, key=lambda one: one["seconds"])
            except TooLongError:
                found = {"stopped": limit}
            shown = {key: value for key, value in found.items() if key != "objectives"}
            print("   ", json.dumps(shown), flush=True)
            if not options.profile:
                known[name] = found | {"version": version()}
                options.out.write_text(json.dumps(results, indent=1) + "\n")
        compare(results, name)


def compare(results: dict[str, dict[str, Any]], name: str) -> None:
    """Print how far the objectives of the devices are apart."""
    there = [found[name]["objectives"] for found in results.values() if "objectives" in found.get(name, {})]
    if len(there) > 1:
        off = np.max(np.abs(np.array(there[1:]) / np.array(there[0]) - 1))
        print(f"    largest relative difference of objectives: {off:.1e}", flush=True)


def version() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=RESULTS.parent).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return paretomkl.__version__


if __name__ == "__main__":
    main()
