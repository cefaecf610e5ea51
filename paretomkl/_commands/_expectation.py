"""How long learning from a large table will take, before it starts: rough, and honest about it."""

import os
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .._parallel import effective_jobs
from .._shares import Share
from .._wording import counted
from ._options import Options
from ._running import note

if TYPE_CHECKING:
    from .._tables import Table

# Measured on one core of a server, with 13 kernels, 10 columns, 4 and 20 tasks and 250 to 2500 rows: all ways spend
# about the same time on a pair of rows that a kernel compares, per fold and point of the grid.
SECONDS_PER_PAIR = 4.5e-9
SECONDS_PER_TASK = 0.055  # and per fold, for tasks that are learned one by one
RIVAL_PER_PAIR = 9e-8  # and per fold
PATH_TOO = 1.5  # a path takes half as long as the search before it
WORTH_SAYING = 20.0  # seconds
EITHER_WAY = 2.0  # the factor by which the estimate may be wrong
DEFAULT_COSTS = 4
DEFAULT_NORMS = DEFAULT_CAPACITIES = 2
SEARCH_ROWS = 3000  # at most, where tasks share a function; else where there are SEPARATELY times as many
SEPARATELY = 4


def expected_seconds(
    table: "Table", options: Options, ways: Sequence[Share], n_kernels: int, folds: int, share: float = 1.0
) -> float:
    """Seconds on one core: pairs of rows within tasks, or among all rows where tasks share a function.

    ``share`` of the rows are learned from.
    """
    n, sizes = share * len(table.y), [share * size for size in Counter(table.tasks).values()]
    within, searched = sum(size**2 for size in sizes), min(n, SEARCH_ROWS)
    if n > SEPARATELY * SEARCH_ROWS:
        within *= (SEARCH_ROWS / n) ** 2
    pairs = {"nothing": within, "kernel": within, "function": 2 * searched**2, "everything": searched**2}
    points = DEFAULT_COSTS if (costs := options.costs()) is None else len(costs)
    points *= (1 if options.s is not None else DEFAULT_NORMS) * (DEFAULT_CAPACITIES if _chooses(options) else 1)
    seconds = SECONDS_PER_PAIR * n_kernels * folds * points * sum(pairs[way] for way in ways)
    rivals = not options.no_rivals
    seconds += SECONDS_PER_TASK * folds * len(sizes) * (("nothing" in ways) + rivals)
    return seconds + rivals * RIVAL_PER_PAIR * folds * (searched if n > SEPARATELY * SEARCH_ROWS else n) ** 2


def _chooses(options: Options) -> bool:
    """Whether folds choose how much kernels pay for their capacity."""
    return options.pays and options.capacity is None


def number_of_kernels(kernels: Any) -> int:
    """Of a bank as the shell makes it."""
    from .._kernels import GAUSSIAN_WIDTHS, LAPLACIAN_WIDTHS, Sources, as_bank, paper_kernels

    default, given = 2 + len(GAUSSIAN_WIDTHS) + len(LAPLACIAN_WIDTHS), as_bank(kernels).kernels
    if isinstance(given, Sources):
        return default * len(given.blocks)
    if isinstance(given, str):
        return default if given == "default" else len(paper_kernels())
    return len(list(given))


def say_what_to_expect(table: "Table", options: Options, seconds: float, n_kernels: int) -> None:
    """A note, where it is worth one."""
    seconds /= min(effective_jobs(options.jobs_for(table)), os.cpu_count() or 1)
    if seconds < WORTH_SAYING:
        return
    n_tasks = len(set(table.tasks))
    size = f"{counted(len(table.y), 'row')}, {counted(n_kernels, 'kernel')} and {counted(n_tasks, 'task')}"
    low, high = in_time(seconds / EITHER_WAY), in_time(seconds * EITHER_WAY)
    number, _, unit = low.partition(" ")
    spread = f"{number if high.endswith(unit) else low} to {high}"
    note(f"{size} will take roughly {spread}; --sample draws some of the rows, --jobs uses more cores.")


def in_time(seconds: float) -> str:
    """``40 seconds``, ``6 minutes``, ``3 hours``."""
    for unit, length in (("hour", 3600), ("minute", 60)):
        if seconds >= 1.5 * length:
            return counted(round(seconds / length), unit)
    return counted(max(10, 10 * round(seconds / 10)), "second")
