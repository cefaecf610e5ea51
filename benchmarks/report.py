"""What the benchmark commands share: timing, tables that grow as results arrive, and the pages built from them."""

from __future__ import annotations

import json
import os
import platform
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
QUICK = Path(__file__).resolve().parent / "quick"  # where trial runs write; git ignores it
TRIAL_NOTE = "\n\n**This is a small trial. The text gives the sizes of the full run; ignore the figures.**"
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
PACKAGES = ("paretomkl", "numpy", "scipy", "scikit-learn", "numba", "cvxpy", "clarabel")

Result = TypeVar("Result")
console = Console(highlight=False, soft_wrap=True)


# -------------------------------------------------------------------------------------------------- timing
def timed(
    function: Callable[[], Result], repeats: int = 1, clock: Callable[[], float] = perf_counter
) -> tuple[float, Result]:
    """Shortest time of several calls in seconds, and the last result."""
    seconds = np.inf
    for _ in range(repeats):
        began = clock()
        result = function()
        seconds = min(seconds, clock() - began)
    return seconds, result


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the block when its time is up (after any compiled call in progress)."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"stopped after {seconds:g} seconds")

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


@contextmanager
def single_thread() -> Iterator[None]:
    """One thread for every library already loaded, and for child processes."""
    from threadpoolctl import threadpool_limits

    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    with threadpool_limits(1):
        yield


def machine() -> str:
    """One line with the facts that the figures depend on."""
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    cpus = f"{os.cpu_count()} CPUs ({platform.machine()}, {platform.system()})"
    return f"{cpus}; Python {platform.python_version()}, {versions}"


# ------------------------------------------------------------------------------------------------ sections
@dataclass
class Table:
    """Rows of raw numbers; ``columns`` maps each heading to the format of its numbers."""

    columns: dict[str, str]
    title: str = ""
    rows: list[list[Any]] = field(default_factory=list)

    def cells(self, row: list[Any]) -> list[str]:
        return [_cell(value, spec) for value, spec in zip(row, self.columns.values(), strict=True)]

    def line(self, cells: list[str]) -> str:
        """Cells in columns as wide as their headings; text on the left, numbers on the right."""
        placed = []
        for cell, (name, spec) in zip(cells, self.columns.items(), strict=True):
            placed.append(cell.ljust(22) if spec == "s" else cell.rjust(max(len(name), 6)))
        return "  ".join(placed)

    def markdown(self) -> list[str]:
        heading = "| " + " | ".join(self.columns) + " |"
        rule = "|---|" + "---:|" * (len(self.columns) - 1)
        body = ["| " + " | ".join(self.cells(row)) + " |" for row in self.rows]
        return [*([f"{self.title}:", ""] if self.title else []), heading, rule, *body, ""]


def _cell(value: Any, spec: str) -> str:
    if value is None:
        return "–"
    return value if isinstance(value, str) else format(value, spec)


@dataclass
class Section:
    """One section of a page: what was measured, the claims and the tables; saved after every change."""

    title: str
    text: str
    save: Callable[[], None] = field(repr=False)
    command: str = ""
    machine: str = ""
    claims: list[dict[str, Any]] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: float | None = None  # None: interrupted

    def table(self, columns: dict[str, str], title: str = "") -> Table:
        table = Table(columns, title)
        self.tables.append(table)
        console.print(Text(f"\n{title}", style="bold"))
        console.print(Text(table.line(list(columns)), style="underline"))
        return table

    def add(self, table: Table, *row: Any) -> None:
        table.rows.append([_plain(value) for value in row])
        console.print(Text(table.line(table.cells(table.rows[-1]))))
        self.save()

    def claim(self, target: str, measured: str, holds: bool) -> None:
        self.claims.append({"target": target, "measured": measured, "holds": bool(holds)})
        verdict, style = ("holds", "bold green") if holds else ("DOES NOT HOLD", "bold red")
        console.print(Text(f"\n{target}: {measured} → "), Text(verdict, style=style))
        self.save()

    def note(self, sentence: str) -> None:
        self.notes.append(sentence)
        console.print(Text(sentence, style="italic"))
        self.save()

    def as_dict(self) -> dict[str, Any]:
        return {
            name: [vars(table) for table in value] if name == "tables" else value
            for name, value in vars(self).items()
            if name != "save"
        }

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Section:
        tables = [Table(**table) for table in stored["tables"]]
        return cls(**(stored | {"tables": tables, "save": lambda: None}))

    def markdown(self) -> list[str]:
        lines = [f"## {self.title}", "", self.text, ""]
        if self.seconds is None:
            lines += ["*This section was interrupted; what follows is what it had.*", ""]
        if self.claims:
            lines += ["| target | measured | holds |", "|---|---|---|"]
            lines += [f"| {c['target']} | {c['measured']} | {'yes' if c['holds'] else '**no**'} |" for c in self.claims]
            lines += [""]
        for table in self.tables:
            lines += table.markdown()
        lines += [line for note in self.notes for line in (note, "")]
        took = "" if self.seconds is None else f", which took {self.seconds:.0f} s"
        return [*lines, f"Made by `{self.command}`{took}.", ""]


def _plain(value: Any) -> Any:
    """A value that JSON can represent."""
    value = value.item() if isinstance(value, np.generic) else value
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


# ---------------------------------------------------------------------------------------------------- pages
def in_order(key: str) -> tuple[int, str]:
    """Sort numbers by size, before words.

    >>> sorted(["2", "10", "kernels", "1"], key=in_order)
    ['1', '2', '10', 'kernels']
    """
    return (int(key), "") if key.isdigit() else (sys.maxsize, key)


class Page:
    """Sections by key in a JSON file, and the Markdown page built from them; earlier sections are kept."""

    def __init__(self, title: str, introduction: str, results: Path, page: Path):
        self.title, self.introduction = title, introduction
        self.results, self.page = results, page
        stored = json.loads(results.read_text()) if results.exists() else {}
        self.sections = {key: Section.from_dict(stored[key]) for key in sorted(stored, key=in_order)}

    @contextmanager
    def section(self, key: str, title: str, text: str, command: str) -> Iterator[Section]:
        """A section to fill; it replaces the one with the same key once it has something to show."""
        began = perf_counter()
        section = Section(title, text, lambda: self._put(key, section), command, machine())
        console.rule(f"[bold]{title}")
        console.print(text)
        yield section
        section.seconds = perf_counter() - began
        section.save()

    def _put(self, key: str, section: Section) -> None:
        self.sections = dict(sorted((self.sections | {key: section}).items(), key=lambda item: in_order(item[0])))
        self.write()

    def write(self) -> None:
        contents = {key: section.as_dict() for key, section in self.sections.items()}
        _replace(self.results, json.dumps(contents, indent=1, ensure_ascii=False) + "\n")
        _replace(self.page, self.markdown())

    def markdown(self) -> str:
        lines = [f"# {self.title}", "", self.introduction, ""]
        machines: dict[str, list[str]] = {}
        for section in self.sections.values():
            machines.setdefault(section.machine, []).append(section.title.split(".")[0])
        for facts, numbers in machines.items():
            lines += [f"Machine{'' if len(machines) == 1 else ' of ' + ', '.join(numbers)}: {facts}.", ""]
        for section in self.sections.values():
            lines += section.markdown()
        return "\n".join(lines)


def _replace(path: Path, text: str) -> None:
    """Write a file in one step, so that nobody sees half of it, even after an interrupt."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(text)
    fresh.replace(path)


def quick_folder() -> Path:
    """The folder for trial runs, which git ignores."""
    QUICK.mkdir(exist_ok=True)
    (QUICK / ".gitignore").write_text("*\n")
    return QUICK
