"""One line of progress on a terminal, for anything that takes longer than two seconds."""

from __future__ import annotations

import shutil
import sys
from time import perf_counter
from types import TracebackType

SHOW_AFTER = 2.0  # seconds
REFRESH = 0.2


class Progress:
    """Shows the progress of a path of ``n_points``: points done, the current p, sweeps, gap (and tol) and seconds.

    verbose: 0 is silent; 1 writes from the start; None writes only on a terminal, after two seconds. unit: the name of
    what is counted.
    """

    def __init__(self, n_points: int, tol: float, verbose: int | None = None, unit: str = "points"):
        self.n_points = n_points
        self.tol = tol
        self.unit = unit
        self.terminal = sys.stderr.isatty()
        self.silent = verbose == 0 or (verbose is None and not self.terminal)
        self.delay = SHOW_AFTER if verbose is None else 0.0
        self.began = perf_counter()
        self.shown_at = -float("inf")
        self.n_done = 0
        self.width = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.width and self.terminal:
            sys.stderr.write("\r" + " " * self.width + "\r")
            sys.stderr.flush()
        elif kind is None and not self.terminal:  # in a log, the last line reports completion
            self.n_done, self.shown_at = self.n_points, -float("inf")
            self.show("done")

    def report(self, p: float, n_sweeps: int, gap: float) -> None:
        if not self.silent:
            at = "" if p != p else f"p={p:g} · "  # a scalarization without exponent has p = NaN
            self.show(f"{at}sweep {n_sweeps} · gap {gap:.1e} → {self.tol:.0e}")

    def show(self, text: str) -> None:
        now = perf_counter() - self.began
        if self.silent or now < self.delay or now - self.shown_at < REFRESH:
            return
        self.shown_at = now
        filled = round(20 * self.n_done / self.n_points)
        bar = "█" * filled + "░" * (20 - filled)
        line = f"{bar} {self.n_done}/{self.n_points} {self.unit} · {text} · {now:.0f} s"
        if self.terminal:
            line = line[: shutil.get_terminal_size().columns - 1]  # a longer line would wrap and stay on the screen
            sys.stderr.write("\r" + line.ljust(self.width))
            self.width = len(line)
        else:
            sys.stderr.write(line + "\n")
        sys.stderr.flush()

    def done(self, n_points: int = 1) -> None:
        self.n_done += n_points
