"""Parse kernels and sources from the command line."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from .._tools.wording import hint, split_names
from ..tables._tables import Table, TableError

# kernels are imported where they are used: they load the compiler, and most commands have no kernels to parse
if TYPE_CHECKING:
    from ..kernels._kernels import KernelBank

FIRST_PARAMETER = {"rbf": "sigma", "gaussian": "sigma", "laplacian": "gamma", "poly": "degree", "polynomial": "degree"}
OTHERS = "other columns"  # the source of the columns that are in no other source


def parse_kernels(text: str, names: Sequence[str]) -> Any:
    """Kernels from text: ``default``, ``paper``, or ``rbf:0.5,linear,laplacian:2@age+bmi`` with columns after the @.

    ``names`` are the columns after encoding; the name of a text column selects all its indicators.
    """
    if text in ("default", "paper"):
        return text
    from ..kernels._kernels import NAMED_KERNELS

    kernels: list[tuple[str, dict[str, Any]]] = []
    for item in split_names(text):
        spec, at, chosen = item.partition("@")
        name, _, value = spec.partition(":")
        if name not in NAMED_KERNELS:
            known = hint([name], sorted(NAMED_KERNELS), "kernel")
            raise TableError(f"There is no kernel {name!r} (--kernels); {known}")
        parameters = _kernel_parameter(name, value, item) if value else {}
        if at and not chosen:
            raise TableError(f"No column follows the @ in {item!r} (--kernels).")
        if chosen:
            columns = [chosen] if chosen in names else chosen.split("+")
            parameters["columns"] = [found for column in columns for found in _encoded(column, names)]
        # compare classes, since a kernel can have several names
        if any(NAMED_KERNELS[name] is NAMED_KERNELS[other] and parameters == its for other, its in kernels):
            raise TableError(f"--kernels names {item!r} twice.")
        kernels.append((name, parameters))
    if not kernels:
        raise TableError("--kernels names no kernel.")
    return kernels


def _kernel_parameter(name: str, value: str, item: str) -> dict[str, Any]:
    if name not in FIRST_PARAMETER:
        raise TableError(f"Kernel {name!r} has no parameter, got {item!r} (--kernels).")
    try:
        number = float(value)
    except ValueError:
        raise TableError(f"{value!r} in {item!r} (--kernels) is not a number.") from None
    if FIRST_PARAMETER[name] != "degree":
        return {FIRST_PARAMETER[name]: number}
    if not number.is_integer():
        raise TableError(f"The degree in {item!r} (--kernels) must be a whole number.")
    return {"degree": int(number)}


def _encoded(column: str, names: Sequence[str]) -> list[str]:
    found = [name for name in names if name == column] or [name for name in names if name.startswith(f"{column}=")]
    if not found:
        raise TableError(f"There is no column {column!r} (--kernels); {hint([column], names, 'column')}")
    return found


def parse_sources(given: Sequence[str], table: Table) -> tuple[KernelBank, list[str]]:
    """Sources from texts such as ``genes=g_*`` and ``clinic=age+ward``, and the columns of the file in none of them.

    A pattern can match columns of the file and indicators; the name of a text column selects all its indicators.
    The remaining columns form one more source.
    """
    from ..kernels._kernels import sources

    owner = table.origins
    blocks: dict[str, list[str]] = {}
    taken: set[str] = set()
    for item in given:
        name, _, typed = (part.strip() for part in item.partition("="))
        if not name or not typed:
            raise TableError(f"--source takes a name and columns, such as genes=g_* or clinic=age+bmi; got {item!r}.")
        if name in blocks:
            raise TableError(f"--source {name!r} is given twice; join the columns with a +.")
        patterns = [typed] if typed in owner.values() else [part.strip() for part in typed.split("+")]
        found = {pattern: _fitting(pattern, name, owner) for pattern in patterns}
        # keep a pattern if it selects the same columns in a bank: it is shorter than the list of names
        blocks[name] = [
            column
            for pattern, columns in found.items()
            for column in ([pattern] if columns == _matches(pattern, {c: c for c in owner}) else columns)
        ]
        taken.update(*found.values())
    rest = [column for column in owner if column not in taken]
    if rest:
        blocks[OTHERS] = blocks.get(OTHERS, []) + rest
    short = {name: columns[0] if len(columns) == 1 else columns for name, columns in blocks.items()}
    return sources(short), list(dict.fromkeys(owner[column] for column in rest))


def _matches(pattern: str, owner: dict[str, str]) -> list[str]:
    """Encoded columns whose name or owner equals the pattern; if there are none, those whose name or owner matches."""
    exact = [column for column, of_file in owner.items() if pattern in (column, of_file)]
    return exact or [c for c, of_file in owner.items() if fnmatchcase(c, pattern) or fnmatchcase(of_file, pattern)]


def _fitting(pattern: str, source: str, owner: dict[str, str]) -> list[str]:
    found = _matches(pattern, owner)
    if not found:
        names = list(dict.fromkeys(owner.values()))
        known = hint([pattern.strip("*?")], names, "column")
        raise TableError(f"No feature column matches {pattern!r} (--source {source}); {known}")
    return found
