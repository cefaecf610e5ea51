"""How the gap falls with each sweep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._learn.path import ParetoPath
from .._tools.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axes._secondary_axes import SecondaryAxis
    from numpy.typing import ArrayLike


class ConvergenceDisplay:
    """Relative gap against sweeps over the tasks, for one path or several.

    A dot marks the last gap at each exponent. With a single path, the axis at the top shows where the solver started
    each exponent. Gaps of zero are drawn at the lower edge.

    Parameters
    ----------
    histories : mapping from name to array-like of shape (n_rows, 3)
        Rows (p, n_sweeps, gap), as in ``path.history`` or as a solver passes them to its ``report``, in that order;
        n_sweeps counts from the start of the path.
    tol : float, default=None
        The tolerance, drawn as a dashed line.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : list of Line2D
        One for each history.
    tol_line_ : Line2D or None
    top_axis_ : SecondaryAxis or None
        The exponents of a single path.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl import pareto_path, plotting
    >>> X, y = load_iris(return_X_y=True)
    >>> paths = {solver: pareto_path(X, y, ps=[1.0], solver=solver) for solver in ("cut-pool", "bcd", "tseng")}
    >>> display = plotting.ConvergenceDisplay.from_path(paths)
    >>> [line.get_label() for line in display.lines_]
    ['cut-pool', 'bcd', 'tseng']
    """

    def __init__(self, histories: Mapping[str, ArrayLike], *, tol: float | None = None):
        self.histories = {name: _as_rows(name, history) for name, history in histories.items()}
        if not self.histories:
            raise ValueError("There is no history to draw: histories is empty.")
        self.tol = tol

    @classmethod
    def from_path(cls, path: ParetoPath | Mapping[str, ParetoPath], *, ax: Axes | None = None) -> ConvergenceDisplay:
        """Draw the history of a path or fitted search; to compare several, pass a mapping from names to paths.

        The dashed line is the tolerance, the smallest one if they differ.
        """
        from . import _style

        given = path if isinstance(path, Mapping) else {"gap": path}
        paths = {name: _style.path_of(one) for name, one in given.items()}
        tol = min((one.tol for one in paths.values()), default=None)
        return cls({name: one.history for name, one in paths.items()}, tol=tol).plot(ax)

    def plot(self, ax: Axes | None = None) -> ConvergenceDisplay:
        """Draw on the given axes, or in a new figure."""
        from . import _style

        ax = _style.axes_or_new(ax)
        ax.set_yscale("log")
        gaps = np.concatenate([rows[:, 2] for rows in self.histories.values()] + [np.atleast_1d(self.tol or 1e-3)])
        floor = 0.3 * gaps[gaps > 0].min()
        self.lines_ = []
        for k, (name, rows) in enumerate(self.histories.items()):
            left = np.flatnonzero(np.append(rows[1:, 0] != rows[:-1, 0], True))  # last row of each p
            of_line: dict[str, Any] = {"color": _style.LINE_COLORS[k % _style.FEW], "label": name, "linewidth": 1.3}
            dots: dict[str, Any] = {"marker": _style.MARKERS[k % _style.FEW], "markersize": 4, "markevery": list(left)}
            self.lines_ += ax.plot(rows[:, 1], np.maximum(rows[:, 2], floor), **of_line, **dots)
        self.tol_line_ = None
        if self.tol is not None:
            self.tol_line_ = ax.axhline(self.tol, linestyle="--", label=f"tol = {self.tol:g}", **_style.GUIDE)
        ax.xaxis.set_major_locator(_style.ticker.MaxNLocator("auto", integer=True))
        ax.set_xlabel("sweeps over the tasks")
        ax.set_ylabel("relative gap")
        self.top_axis_ = None
        if len(self.histories) == 1:
            (rows,) = self.histories.values()
            self.top_axis_ = _top_axis(ax, rows)
        if len(self.lines_) > 1 or self.tol_line_ is not None:
            ax.legend(handles=[*(self.lines_ if len(self.lines_) > 1 else []), *filter(None, [self.tol_line_])])
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _top_axis(ax: Axes, rows: Array) -> SecondaryAxis:
    """An axis at the top that shows where the solver started each exponent, without those that took no sweep."""
    from . import _style

    first = np.flatnonzero(np.append(True, rows[1:, 0] != rows[:-1, 0]))
    sweeps = rows[first, 1]
    kept = np.append(np.diff(sweeps) > 0, True)
    ps, sweeps = rows[first, 0][kept], sweeps[kept]
    top = ax.secondary_xaxis("top")
    _style.SparseTicks(sweeps, ps).put_on(top.xaxis)
    top.set_xlabel("start of exponent $p$")
    return top


def _as_rows(name: str, history: ArrayLike) -> Array:
    rows = np.asarray(history, dtype=float)
    if rows.ndim != 2 or rows.shape[1] != 3 or len(rows) == 0:
        raise ValueError(f"The history {name!r} must have rows (p, n_sweeps, gap), got shape {rows.shape}.")
    return rows
