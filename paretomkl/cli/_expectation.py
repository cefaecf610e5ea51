"""A rough estimate, before learning starts, of how long a large table will take."""

import os
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .._tools.parallel import effective_jobs
from .._tools.shares import Share
from .._tools.wording import counted
from ._options import Options
from ._running import note

if TYPE_CHECKING:
    from ..tables._tables import Table

# Measured on one core of a server, with 13 kernels, 10 columns, 4 and 20 tasks and 250 to 2500 rows: for every way to
# share, a kernel takes about this long to compare a pair of rows, per fold and grid point.
SECONDS_PER_PAIR = 4.5e-9
SECONDS_PER_TASK = 0.055  # and per fold, if tasks are learned one by one
RIVAL_PER_PAIR = 9e-8  # seconds per pair of rows and fold
PATH_TOO = 1.5  # search and path together: the path takes half as long as the search
WORTH_SAYING = 20.0  # seconds
EITHER_WAY = 2.0  # the estimate may be too high or too low by this factor
DEFAULT_COSTS = 4
DEFAULT_NORMS = DEFAULT_CAPACITIES = 2
SEARCH_ROWS = 3000  # a search uses at most these: always if tasks share a function, else from SEPARATELY times as many
SEPARATELY = 4


def expected_seconds(
    table: "Table", options: Options, ways: Sequence[Share], n_kernels: int, folds: int, share: float = 1.0
) -> float:
    """Seconds on one core, from the number of row pairs: within tasks, or among all rows if tasks share a function.

    The models learn from ``share`` of the rows.
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
    """Whether cross-validation chooses how much kernels pay for their capacity."""
    return options.pays and options.capacity is None


def number_of_kernels(kernels: Any) -> int:
    """How many kernels a bank from the command line has."""
    from ..kernels._fitted import Scale
    from ..kernels._kernels import Sources, as_bank, default_kernels, paper_kernels

    given, any_scale = as_bank(kernels).kernels, Scale(1.0, 1.0, 1)
    if isinstance(given, Sources):
        n_sources = len(given.blocks)
        return n_sources * len(default_kernels(any_scale, several_sources=n_sources > 1))
    if isinstance(given, str):
        return len(default_kernels(any_scale) if given == "default" else paper_kernels())
    return len(list(given))


def say_what_to_expect(table: "Table", options: Options, seconds: float, n_kernels: int) -> None:
    """Print a note if learning will take long enough to mention."""
    seconds /= min(effective_jobs(options.jobs_for(table)), os.cpu_count() or 1)
    if seconds < WORTH_SAYING:
        return
    n_tasks = len(set(table.tasks))
    size = f"{counted(len(table.y), 'row')}, {counted(n_kernels, 'kernel')} and {counted(n_tasks, 'task')}"
    low, high = in_time(seconds / EITHER_WAY), in_time(seconds * EITHER_WAY)
    number, _, unit = low.partition(" ")
    spread = f"{number if high.endswith(unit) else low} to {high}"
    note(f"{size} will take roughly {spread}; --sample uses a random part of the rows, --jobs more cores.")


def in_time(seconds: float) -> str:
    """``40 seconds``, ``6 minutes``, ``3 hours``."""
    for unit, length in (("hour", 3600), ("minute", 60)):
        if seconds >= 1.5 * length:
            return counted(round(seconds / length), unit)
    return counted(max(10, 10 * round(seconds / 10)), "second")
