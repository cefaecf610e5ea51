"""Durable results: a file with one line of JSON for the settings, and then one for each cell that was run."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path
from typing import Any

from .methods import Candidate, Outcome
from .plan import Cell, Settings

DIGITS = 6  # significant digits of saved numbers


@dataclass
class Record:
    """A cell that was run: seconds on one core, and its outcome or its error message."""

    cell: Cell
    seconds: float
    versions: dict[str, str] = field(default_factory=dict)
    outcome: Outcome | None = None
    message: str | None = None

    def to_json(self) -> str:
        """One line of text, with the tested points of the outcome."""
        points = [asdict(point) for point in self.outcome.points if point.tested] if self.outcome else []
        known = [{name: value for name, value in point.items() if value is not None} for point in points]
        outcome = vars(self.outcome) | {"points": known} if self.outcome else None
        exact = json.dumps(vars(self) | {"cell": astuple(self.cell), "outcome": outcome})
        rounded = json.loads(exact, parse_float=lambda digits: float(f"{float(digits):.{DIGITS}g}"))
        return json.dumps(rounded, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Record:
        kept = json.loads(text)
        cell, outcome = Cell(*kept["cell"]), None
        if kept["outcome"]:
            points = [Candidate(**point) for point in kept["outcome"]["points"]]
            outcome = Outcome(**kept["outcome"] | {"points": points})
        return cls(**kept | {"cell": cell, "outcome": outcome})


class Results:
    """The results file of cells run with these settings.

    A finished cell is appended at once, so a crash loses only the cells in progress. A failed cell is saved with its
    error message and runs again next time.
    """

    def __init__(self, path: str | os.PathLike[str], settings: Settings):
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = settings.as_dict()
        if not self.path.exists():
            self._append(json.dumps({"settings": new}))
        old, _ = _read(self.path)
        changed = [name for name in new.keys() | old.keys() if new.get(name) != old.get(name)]
        if changed:
            differ = ", ".join(sorted(changed))
            raise ValueError(f"{self.path} has results with other settings ({differ}); choose another file.")
        if not self.path.read_bytes().endswith(b"\n"):
            self._append("")  # ends a line that a crash cut short

    def save(self, record: Record) -> None:
        """Append a cell."""
        self._append(record.to_json())

    def _append(self, line: str) -> None:
        with open(self.path, "a", encoding="utf-8", newline="\n") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())

    def finished(self) -> set[Cell]:
        return {record.cell for record in read_records(self.path)}


def read_records(path: str | os.PathLike[str]) -> list[Record]:
    """All finished cells of a results file, which may be compressed (``….gz``), in order."""
    records = {record.cell: record for record in _read(path)[1] if record.outcome is not None}
    return [records[cell] for cell in sorted(records, key=astuple)]


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Iterator[Record]]:
    """The settings and the records of a file."""
    try:
        raw = Path(path).read_bytes()
        first, *lines = (gzip.decompress(raw) if str(path).endswith(".gz") else raw).decode().split("\n")
        settings = json.loads(first)["settings"]
    except FileNotFoundError as error:
        raise FileNotFoundError(f"There is no results file {path}.") from error
    except (ValueError, KeyError, TypeError, EOFError, OSError) as error:
        raise ValueError(f"{path} is not a results file ({error}).") from error
    return settings, _parsed(lines)


def _parsed(lines: list[str]) -> Iterator[Record]:
    for line in lines:
        with suppress(json.JSONDecodeError):  # a crash cut the line short
            yield Record.from_json(line)
