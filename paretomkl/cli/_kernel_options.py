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

    ``names`` are the columns of the file.
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
            for column in columns:
                if column not in names:
                    known = hint([column], names, "column")
                    raise TableError(f"There is no column {column!r} (--kernels); {known}")
            parameters["columns"] = columns
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


def parse_sources(given: Sequence[str], table: Table) -> tuple[KernelBank, list[str]]:
    """Sources from texts such as ``genes=g_*`` and ``clinic=age+ward``, and the columns of the file in none of them.

    The remaining columns form one more source.
    """
    from ..kernels._kernels import sources

    features = table.features
    blocks: dict[str, list[str]] = {}
    taken: set[str] = set()
    for item in given:
        name, _, typed = (part.strip() for part in item.partition("="))
        if not name or not typed:
            raise TableError(f"--source takes a name and columns, such as genes=g_* or clinic=age+bmi; got {item!r}.")
        if name in blocks:
            raise TableError(f"--source {name!r} is given twice; join the columns with a +.")
        patterns = [typed] if typed in features else [part.strip() for part in typed.split("+")]
        found = {pattern: _fitting(pattern, name, features) for pattern in patterns}
        blocks[name] = list(found)  # a bank selects the same columns, and a pattern is shorter than a list of names
        taken.update(*found.values())
    rest = [column for column in features if column not in taken]
    if rest:
        blocks[OTHERS] = blocks.get(OTHERS, []) + rest
    short = {name: columns[0] if len(columns) == 1 else columns for name, columns in blocks.items()}
    return sources(short), rest


def _fitting(pattern: str, source: str, features: Sequence[str]) -> list[str]:
    """The column with this name, or those that match the pattern."""
    found = [name for name in features if name == pattern] or [n for n in features if fnmatchcase(n, pattern)]
    if not found:
        known = hint([pattern.strip("*?")], features, "column")
        raise TableError(f"No feature column matches {pattern!r} (--source {source}); {known}")
    return found
