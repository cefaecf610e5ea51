"""Durable results: one SQLite file, with one transaction for each finished cell, and a compact CSV copy."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import asdict, astuple, dataclass, field
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any

from .._tools.files import write_whole
from .methods import Candidate, Outcome
from .plan import Cell, Settings

SCHEMA = """
PRAGMA journal_mode=WAL;
PRAGMA synchronous=FULL;
CREATE TABLE IF NOT EXISTS settings (value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS cells (
    dataset TEXT NOT NULL, fraction INTEGER NOT NULL, method TEXT NOT NULL, run INTEGER NOT NULL, seed INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('done', 'failed')), seconds REAL NOT NULL, n_sweeps INTEGER, gap REAL,
    versions TEXT NOT NULL, created TEXT NOT NULL, message TEXT, outcome TEXT,
    PRIMARY KEY (dataset, fraction, method, run)
) WITHOUT ROWID;
"""
DIGITS = 6  # significant digits of saved numbers


@dataclass
class Record:
    """A cell that was run: seconds on one core, and its outcome or its error message."""

    cell: Cell
    seconds: float
    versions: dict[str, str] = field(default_factory=dict)
    outcome: Outcome | None = None
    message: str | None = None


class Results:
    """The results file; ``settings`` are those of the cells to run, None means read only.

    A finished cell is written in one transaction, so a crash loses only the cells in progress. A failed cell is saved
    with its error message and runs again next time.
    """

    def __init__(self, path: str | os.PathLike[str], settings: Settings | None = None):
        self.path = Path(path)
        if settings is None and not self.path.is_file():
            raise FileNotFoundError(f"There is no results file {self.path}.")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._base = sqlite3.connect(self.path, timeout=60)
        try:
            self._base.executescript(SCHEMA)
            if settings is not None:
                self._keep(settings.as_dict())
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{self.path} is not a results file ({error}).") from error

    def _keep(self, settings: dict[str, Any]) -> None:
        with self._base:
            found = self._base.execute("SELECT value FROM settings").fetchone()
            if found is None:
                self._base.execute("INSERT INTO settings VALUES (?)", (json.dumps(settings, sort_keys=True),))
                return
        old = json.loads(found[0])
        changed = [name for name in settings.keys() | old.keys() if settings.get(name) != old.get(name)]
        if changed:
            differ = ", ".join(sorted(changed))
            raise ValueError(f"{self.path} has results with other settings ({differ}); choose another file.")

    def __enter__(self) -> Results:
        return self

    def __exit__(self, *error: object) -> None:
        self._base.close()

    def save(self, record: Record) -> None:
        """Write a cell; it replaces an earlier failure, but never a finished cell."""
        done = record.outcome
        row = (
            *astuple(record.cell),
            record.cell.seed,
            "done" if done else "failed",
            round(record.seconds, 3),
            *((done.n_sweeps, done.gap) if done else (None, None)),
            json.dumps(record.versions, sort_keys=True),
            datetime.now(UTC).isoformat(timespec="seconds"),
            record.message,
            _to_json(done) if done else None,
        )
        with self._base:
            self._base.execute(f"DELETE FROM cells WHERE ({KEY}) = (?, ?, ?, ?) AND status = 'failed'", row[:4])
            self._base.execute(f"INSERT OR IGNORE INTO cells VALUES ({', '.join('?' * len(row))})", row)

    def finished(self) -> dict[Cell, float]:
        """How long each finished cell took."""
        rows = self._base.execute(f"SELECT {KEY}, seconds FROM cells WHERE status = 'done'")
        return {Cell(*row[:4]): row[4] for row in rows}

    def records(self) -> Iterator[Record]:
        """All finished cells with their outcomes, in order."""
        rows = self._base.execute(
            f"SELECT {KEY}, seconds, versions, outcome FROM cells WHERE status = 'done' ORDER BY {KEY}"
        )
        for row in rows:
            yield Record(Cell(*row[:4]), row[4], json.loads(row[5]), _from_json(row[6]))


KEY = "dataset, fraction, method, run"


def _to_json(outcome: Outcome) -> str:
    points = [{name: value for name, value in asdict(point).items() if value is not None} for point in outcome.points]
    exact = json.dumps(vars(outcome) | {"points": points})
    rounded = json.loads(exact, parse_float=lambda digits: float(f"{float(digits):.{DIGITS}g}"))
    return json.dumps(rounded, separators=(",", ":"))


def _from_json(text: str) -> Outcome:
    kept = json.loads(text)
    return Outcome(**kept | {"points": [Candidate(**{"cv": float("nan"), **point}) for point in kept["points"]]})


# ------------------------------------------------------------------------------------------------ compact copy
COLUMNS = (
    *("dataset", "fraction", "method", "run", "seed", "seconds", "n_sweeps", "versions", "p", "C", "other", "cv"),
    *("accuracy", "gap", "right", "n_test", "tasks", "objectives"),
)


def export(records: Iterable[Record], path: str | os.PathLike[str]) -> None:
    """Write the tested points to a compressed CSV file, one per row; spaces separate lists, ``|`` separates tasks."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for record in records:
        writer.writerows(_rows(record))
    write_whole(path, gzip.compress(text.getvalue().encode(), mtime=0))  # mtime=0: the same results give the same bytes


def _rows(record: Record) -> Iterator[list[Any]]:
    outcome = record.outcome
    with_objectives = record.cell.dataset == "robot-figures"  # the only data set whose objectives are drawn
    assert outcome is not None
    versions = json.dumps(record.versions, sort_keys=True)
    for point in filter(attrgetter("tested"), outcome.points):
        rest = {name: value for name, value in point.params.items() if name not in ("p", "C")}
        yield [
            *(*astuple(record.cell), record.cell.seed, round(record.seconds, 3), outcome.n_sweeps, versions),
            point.params.get("p", ""),
            point.params.get("C", ""),
            json.dumps(rest) if rest else "",
            f"{point.cv:.5g}",
            f"{point.accuracy:.6g}",
            "" if point.gap is None else f"{point.gap:.1e}",
            " ".join(map(str, point.right or [])),
            " ".join(map(str, outcome.n_test)),
            "|".join(outcome.tasks),
            " ".join(f"{value:.5g}" for value in point.objectives or [] if with_objectives),
        ]


def read_export(path: str | os.PathLike[str]) -> list[Record]:
    """The records of a file that ``export`` wrote."""
    records: dict[Cell, Record] = {}
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as text:
            for row in csv.DictReader(text):
                cell = Cell(row["dataset"], int(row["fraction"]), row["method"], int(row["run"]))
                versions = json.loads(row.get("versions") or "{}")
                record = records.setdefault(cell, Record(cell, float(row["seconds"]), versions))
                if record.outcome is None:
                    n_test = [int(n) for n in row["n_test"].split()]
                    record.outcome = Outcome([], row["tasks"].split("|"), n_test, int(row["n_sweeps"]))
                record.outcome.points.append(_point(row))
    except (KeyError, ValueError, OSError, EOFError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise ValueError(f"{path} is not an exported results file ({error}).") from error
    return list(records.values())


def _point(row: dict[str, str]) -> Candidate:
    params = {name: float(row[name]) for name in ("C", "p") if row[name]}
    params |= json.loads(row["other"]) if row["other"] else {}
    right = [int(n) for n in row["right"].split()]
    gap = float(row["gap"]) if row["gap"] else None
    objectives = [float(value) for value in row["objectives"].split()] or None
    return Candidate(params, float(row["cv"]), float(row["accuracy"]), right, gap, objectives)


def read_records(path: str | os.PathLike[str]) -> list[Record]:
    """All finished cells of a results file or of its compact copy (``….csv.gz``)."""
    if str(path).endswith(".csv.gz"):
        return read_export(path)
    with Results(path) as results:
        return list(results.records())
