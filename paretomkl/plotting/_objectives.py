"""Task objectives along the path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._learn.path import ParetoPath

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike


class ObjectivesDisplay:
    """Task objectives J_t against p with their power mean M_p in bold, or their change from one p.

    Up to seven tasks have their own colours; more tasks are coloured by their mean objective along the path. If there
    are more than twelve, only the three lines at the top and the three at the bottom have a name.

    Parameters
    ----------
    ps : array-like of shape (n_points,)
        Exponents, in any order.
    objectives : array-like of shape (n_points, n_tasks)
        J_t, or J_t / n_t.
    objective : array-like of shape (n_points,)
        M_p.
    task_names : list of n_tasks str
        Names shown next to the lines.
    symbol : str, default="$J_t$"
        Symbol of the objectives in the axis label.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : list of Line2D
        One for each task drawn.
    mean_line_ : Line2D or None
        M_p; None if there is one task, because M_p is then its objective, or if changes are drawn.
    labels_ : list of Annotation
        The names next to the lines.
    colorbar_ : Colorbar or None

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl import pareto_path, plotting
    >>> display = plotting.ObjectivesDisplay.from_path(pareto_path(*load_iris(return_X_y=True)))
    >>> [line.get_label() for line in display.lines_]
    ['0 vs 1', '0 vs 2', '1 vs 2']
    """

    def __init__(
        self,
        *,
        ps: ArrayLike,
        objectives: ArrayLike,
        objective: ArrayLike,
        task_names: list[str],
        symbol: str = "$J_t$",
    ):
        self.ps = np.asarray(ps, dtype=float)
        self.objectives = np.asarray(objectives, dtype=float)
        self.objective = np.asarray(objective, dtype=float)
        self.task_names = list(task_names)
        self.symbol = symbol

    @classmethod
    def from_path(
        cls,
        path: ParetoPath,
        *,
        tasks: Sequence[int | str] | None = None,
        relative_to: float | None = None,
        ax: Axes | None = None,
    ) -> ObjectivesDisplay:
        """Draw the objectives of a path or fitted search; see ``plot`` for the other parameters."""
        from . import _style

        path = _style.path_of(path)
        symbol = "$J_t / n_t$" if path.task_scale == "samples" else "$J_t$"
        values, means, names = path.objectives, path.objective, path.task_names
        display = cls(ps=path.ps, objectives=values, objective=means, task_names=names, symbol=symbol)
        return display.plot(ax, tasks=tasks, relative_to=relative_to)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        tasks: Sequence[int | str] | None = None,
        relative_to: float | None = None,
    ) -> ObjectivesDisplay:
        """Draw the lines, on a logarithmic axis if the largest objective is more than twenty times the smallest.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            The axes to draw on; None makes a new figure. Names are to the right of the axes; if you make the figure
            yourself, ``layout="constrained"`` leaves room for them.
        tasks : sequence of indices or names, default=None
            The tasks to draw; None means all. The bold line is always the mean of all tasks.
        relative_to : float, default=None
            Draw J_t(p) / J_t(this p) − 1, which shows who gains and who loses even if objectives differ more between
            tasks than along the path. The names show the objective at this p in brackets.
        """
        from . import _style

        shown = _style.indices(tasks, self.task_names, "task")
        start = _style.baseline(self.ps, relative_to)
        ax = _style.axes_or_new(ax)
        values, names = self.objectives[:, shown], [self.task_names[t] for t in shown]
        order, order_name = values.mean(axis=0), "mean objective along the path"
        level = float(values.mean())
        if start is not None:
            order, order_name = values[start], f"objective at {_style.at_exponent(relative_to)}"
            names = [f"{name} ({one:.3g})" for name, one in zip(names, order, strict=True)]
            values, level = values / order - 1, 1.0
            ax.axhline(0.0, **_style.GUIDE)
            ax.yaxis.set_major_formatter(_style.ticker.PercentFormatter(1.0))
            ax.set_ylabel(f"change of the task objective {self.symbol} from {_style.at_exponent(relative_to)}")
        else:
            ax.set_yscale("log" if values.max() > 20 * values.min() else "linear")
            ax.set_ylabel(f"task objective {self.symbol}")
        bold = (self.objective, "$M_p$") if start is None and len(self.task_names) > 1 else None
        drawn = _style.draw_lines(ax, self.ps, values, names, bold, (order, order_name), least_range=0.02 * level)
        self.lines_, self.mean_line_, self.labels_ = drawn.lines, drawn.bold, drawn.labels
        self.colorbar_ = drawn.colorbar
        self.ax_, self.figure_ = ax, ax.figure
        return self
