"""How much work goes into a page: fewer points for large tables, and fewer rows if all would take too long."""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ._options import SEARCH_ROWS, Options, is_large

if TYPE_CHECKING:
    from ..tables._tables import Table

PAGE_TOL, POINTS = 1e-6, 121  # enough for smooth curves on the page
LARGE_TOL, FEWER_POINTS = 1e-3, 31  # for large tables
FEWER_SEARCH_ROWS, OF_REGRESSION = 2000, 1500  # rows that parameters are chosen on in large tables
RIDGE_WORK = 6e10  # limit on the sum of rows³ over the tasks, for the linear systems of a regression


@dataclass(frozen=True)
class Effort:
    """Number of points on the slider and their tolerance; the most rows that a task learns from (None: all); the rows
    that parameters are chosen and simpler models compared on; the share of all rows that the models learn from.
    """

    points: int
    tol: float
    task_rows: int | None
    search_rows: int
    seen: float

    @classmethod
    def of(cls, table: "Table", options: Options, points: int | None, share: float) -> "Effort":
        """The effort for a table if ``share`` of its rows are for learning; ``points`` is what the user asked for."""
        sizes = [share * n for n in Counter(table.tasks).values()]
        most = None if options.loss == "epsilon_insensitive" or not table.regression else rows_of_a_task(sizes)
        seen = sum(sizes if most is None else [min(n, most) for n in sizes]) / len(table.y)
        if is_large(table):
            search_rows = OF_REGRESSION if table.regression else FEWER_SEARCH_ROWS
            return cls(points or FEWER_POINTS, LARGE_TOL, most, search_rows, seen)
        return cls(points or POINTS, PAGE_TOL, most, SEARCH_ROWS, seen)


def rows_of_a_task(sizes: list[float]) -> int | None:
    """The most rows per task for which the linear systems take seconds; None if no task has too many."""
    if sum(n**3 for n in sizes) <= RIDGE_WORK:
        return None
    left, waiting = RIDGE_WORK, sorted(sizes, reverse=True)
    while waiting and waiting[-1] ** 3 * len(waiting) <= left:  # small tasks keep their rows
        left -= waiting.pop() ** 3
    return int((left / len(waiting)) ** (1 / 3))
