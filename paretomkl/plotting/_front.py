"""The trade-off between two tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._learn.path import ParetoPath
from .._show.words import exponent_label, exponent_ranks, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike


class FrontDisplay:
    """The objectives of two tasks against each other, with a point for each p.

    With only two tasks, the line through the points is the Pareto front itself, which is convex: no kernel weights give
    a point below it. With more tasks the points are a projection, and other weights may improve both of these tasks at
    the expense of a third.

    Parameters
    ----------
    ps : array-like of shape (n_points,)
        Exponents, in any order.
    objectives : array-like of shape (n_points, 2)
        J of the two tasks.
    task_names : list of two str
        Labels of the axes.
    n_tasks : int
        Number of tasks of the whole problem.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    line_ : Line2D
        The line through the points, in increasing p.
    points_ : PathCollection
        The points, coloured by p.
    labels_ : list of Annotation
        The p of some points.
    colorbar_ : Colorbar or None

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl import pareto_path, plotting
    >>> path = pareto_path(*load_iris(return_X_y=True))
    >>> display = plotting.FrontDisplay.from_path(path, tasks=("0 vs 2", "1 vs 2"))
    >>> display.ax_.get_title()
    'projection of the front of 3 tasks'
    """

    def __init__(self, *, ps: ArrayLike, objectives: ArrayLike, task_names: list[str], n_tasks: int = 2):
        self.ps = np.asarray(ps, dtype=float)
        self.objectives = np.asarray(objectives, dtype=float)
        self.task_names = list(task_names)
        self.n_tasks = n_tasks

    @classmethod
    def from_path(
        cls, path: ParetoPath, *, tasks: Sequence[int | str] = (0, 1), colorbar: bool = True, ax: Axes | None = None
    ) -> FrontDisplay:
        """Draw the path, of a search too, on the front of two of its tasks.

        ``tasks`` gives the names or indices of the tasks on the horizontal and the vertical axis; see ``plot`` for the
        other parameters.
        """
        from . import _style

        path = _style.path_of(path)
        if len(path.task_names) < 2:
            raise ValueError("FrontDisplay needs two tasks to trade off, but the path has only one.")
        chosen = _style.indices(tasks, path.task_names, "task")
        if len(chosen) != 2 or chosen[0] == chosen[1]:
            raise ValueError(f"tasks must be two different tasks, got {tasks!r}.")
        names, n_tasks = [path.task_names[t] for t in chosen], len(path.task_names)
        display = cls(ps=path.ps, objectives=path.objectives[:, chosen], task_names=names, n_tasks=n_tasks)
        return display.plot(ax, colorbar=colorbar)

    def plot(self, ax: Axes | None = None, *, colorbar: bool = True) -> FrontDisplay:
        """Draw on the given axes, or in a new figure, with or without a colour bar for p."""
        from . import _style

        ax = _style.axes_or_new(ax)
        exponents = _style.Exponents(self.ps)
        order = np.argsort(self.ps, kind="stable")
        ps, (x, y) = self.ps[order], self.objectives[order].T
        (self.line_,) = ax.plot(x, y, color=_style.rcParams["text.color"], linewidth=1.0, alpha=0.6, zorder=1)
        size, places = 36 if len(ps) <= _style.MARKED else 14, exponents.places(ps)
        self.points_ = ax.scatter(x, y, s=size, c=places, cmap=_style.ramp(ax), norm=exponents.norm(), zorder=2)
        ax.margins(0.12)
        across, up = (f"← better      objective of {shorten(name, _style.LONGEST)}" for name in self.task_names)
        ax.set_xlabel(across, parse_math=False)
        ax.set_ylabel(up, parse_math=False)  # the label is rotated, so its arrow points down
        if self.n_tasks > 2:
            ax.set_title(f"projection of the front of {self.n_tasks} tasks", fontsize="medium")
        self.colorbar_ = None
        if colorbar and len(exponents.ps) > 1:
            self.colorbar_ = exponents.colorbar(ax, self.points_)
        ranks = exponent_ranks(ps)
        if len(ps) > _style.TICKED:  # name only the ends and p = 1
            ranks = np.where(ranks <= 1, ranks, -1)
        self.labels_ = _style.label_points(ax, x, y, [f"p = {exponent_label(p)}" for p in ps], ranks)
        self.ax_, self.figure_ = ax, ax.figure
        return self
