"""Counters, timings and the history of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from .._tools.typing import Array
from ..protocols import Machine
from ..sweep import Sweep, check_sweep

Report = Callable[[float, int, float], None]  # called with p, the sweeps of the run so far, and the gap


@dataclass
class Run:
    """Counters of one run over one machine.

    n_sweeps: passes over the tasks; seconds: where they went; history: (p, n_sweeps, gap) after each sweep.
    """

    report: Report | None = None
    n_sweeps: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: {"tasks": 0.0, "master": 0.0})
    history: list[tuple[float, int, float]] = field(default_factory=list)

    def sweep(self, machine: Machine, theta: Array, warm: Any, rtol: float) -> Sweep:
        """Let the machine solve its tasks, and check what it returns."""
        with self.timed("tasks"):
            sweep = machine.sweep(theta, warm, rtol)
        self.n_sweeps += 1
        return check_sweep(sweep, machine)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        began = perf_counter()
        yield
        self.seconds[name] += perf_counter() - began

    def note(self, p: float, gap: float) -> None:
        self.history.append((p, self.n_sweeps, gap))
        if self.report is not None:
            self.report(p, self.n_sweeps, gap)
