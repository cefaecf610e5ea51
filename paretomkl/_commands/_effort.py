"""How much work goes into a page: of large tables fewer points, and some of the rows where all would take too long."""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ._options import LARGE, SEARCH_ROWS, Options

if TYPE_CHECKING:
    from .._tables import Table

PAGE_TOL, POINTS = 1e-6, 121  # the curves of a page are smooth then
LARGE_TOL, FEWER_POINTS, FEWER_SEARCH_ROWS = 1e-3, 31, 2000  # for tables so large that it would take too long
RIDGE_WORK = 6e10  # the linear systems of a regression: at most so much is the sum of rows³ over the tasks


@dataclass(frozen=True)
class Effort:
    """Exponents on the slider and their tolerance; rows that a task learns from at most (None: all), rows that
    parameters are chosen on, and that simpler models are compared on; the share of all rows that are learned from.
    """

    points: int
    tol: float
    task_rows: int | None
    search_rows: int
    seen: float

    @classmethod
    def of(cls, table: "Table", options: Options, points: int | None, share: float) -> "Effort":
        """For a table of which ``share`` is learned from and the rest held out; ``points`` as the user wants them."""
        large = len(table.y) > LARGE
        sizes = [share * n for n in Counter(table.tasks).values()]
        most = None if options.loss == "epsilon_insensitive" or not table.regression else rows_of_a_task(sizes)
        seen = sum(sizes if most is None else [min(n, most) for n in sizes]) / len(table.y)
        if large:
            return cls(points or FEWER_POINTS, LARGE_TOL, most, FEWER_SEARCH_ROWS, seen)
        return cls(points or POINTS, PAGE_TOL, most, SEARCH_ROWS, seen)


def rows_of_a_task(sizes: list[float]) -> int | None:
    """Rows that a task may have for the linear systems of all tasks to take seconds; None: no task has too many."""
    if sum(n**3 for n in sizes) <= RIDGE_WORK:
        return None
    left, waiting = RIDGE_WORK, sorted(sizes, reverse=True)
    while waiting and waiting[-1] ** 3 * len(waiting) <= left:  # small tasks keep their rows
        left -= waiting.pop() ** 3
    return int((left / len(waiting)) ** (1 / 3))
