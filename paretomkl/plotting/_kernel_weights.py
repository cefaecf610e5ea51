"""Kernels and sources along the path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._learn.path import ParetoPath
from .._show.words import pool_shares
from .._tools.checks import check_count
from .._tools.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

NEGLIGIBLE = 1e-2  # a kernel that stays below this part of the largest share is not named


class KernelWeightsDisplay:
    """The share of each kernel in the variance of predictions against p; the stacked shares add up to one.

    The share is θ_m v_m / Σ θ v, where v_m is the variance of kernel m within a task. The weights θ themselves cannot
    be compared if kernels have different scales. Each kernel that is among the heaviest somewhere on the path has its
    own band, in the order of the bank; one band at the top pools all the others.

    Parameters
    ----------
    ps : array-like of shape (n_points,)
        Exponents, in any order.
    shares : array-like of shape (n_points, n_kernels)
        θ_m v_m / Σ θ v.
    kernel_names : list of n_kernels str
        Names in the legend.
    spread : array-like of shape (n_kernels,), default=None
        Standard deviations of the shares over the folds of a search, drawn as bars at ``at``.
    at : float, default=None
        The exponent that the search has chosen.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    bands_ : list of PolyCollection, from the bottom up
    band_names_ : list of str
    band_weights_ : array of shape (n_points, n_bands)
        The heights of the bands, in increasing p.
    legend_ : Legend
    errors_ : ErrorbarContainer or None
        The bars: each has the length of two standard deviations and the height of the middle of its band.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl import pareto_path, plotting
    >>> path = pareto_path(*load_iris(return_X_y=True), C=100.0)
    >>> display = plotting.KernelWeightsDisplay.from_path(path, max_kernels=3)
    >>> len(display.bands_), display.band_names_[-1]
    (4, '10 others')
    """

    def __init__(
        self,
        *,
        ps: ArrayLike,
        shares: ArrayLike,
        kernel_names: list[str],
        spread: ArrayLike | None = None,
        at: float | None = None,
    ):
        self.spread, self.at = None if spread is None else np.asarray(spread, dtype=float), at
        self.ps = np.asarray(ps, dtype=float)
        self.shares = np.asarray(shares, dtype=float)
        self.kernel_names = list(kernel_names)

    @classmethod
    def from_path(
        cls,
        path: ParetoPath,
        *,
        by: Literal["kernel", "source"] = "kernel",
        max_kernels: int = 7,
        ax: Axes | None = None,
    ) -> KernelWeightsDisplay:
        """Draw the kernels or sources of a path or fitted search; see ``plot`` for the other parameters."""
        from . import _style

        search: Any = path
        path = _style.path_of(path)
        if by not in ("kernel", "source"):
            raise ValueError(f"by must be 'kernel' or 'source', got {by!r}.")
        known: dict[str, Any] = {}
        if getattr(search, "kernel_shares_by_fold_", None) is not None and "p" in search.best_params_:
            known = {"spread": search.kernel_shares_std_, "at": search.best_params_["p"]}
        shares, names = path.kernel_shares, path.kernel_names
        if by == "source":
            if not path.source_shares:
                raise ValueError("The kernels of this path have no named sources; make them with kernels=sources({…}).")
            shares, names = np.column_stack(list(path.source_shares.values())), list(path.source_shares)
            known |= {"spread": list(search.source_shares_std_.values())} if known else {}
        return cls(ps=path.ps, shares=shares, kernel_names=names, **known).plot(ax, max_kernels=max_kernels)

    def plot(self, ax: Axes | None = None, *, max_kernels: int = 7) -> KernelWeightsDisplay:
        """Draw on the given axes, or in a new figure, and name at most ``max_kernels`` kernels.

        The legend is to the right of the axes; if you make the figure yourself, ``layout="constrained"`` leaves room
        for it.
        """
        from . import _style

        check_count("max_kernels", max_kernels)
        ax = _style.axes_or_new(ax)
        exponents = _style.Exponents(self.ps)
        order = np.argsort(self.ps, kind="stable")
        heaviest = self.shares.max(axis=0)
        count = max(1, int((heaviest > NEGLIGIBLE * heaviest.max()).sum()))
        weights, names = pool_shares(self.shares[order], self.kernel_names, min(max_kernels, count))
        x, heights = exponents.places(self.ps[order]), weights
        if len(x) == 1:  # a single point has no area, so widen it
            x, heights = exponents.around(x), np.repeat(heights, 2, axis=0)
        exponents.put_on(ax, mark_one=False)
        fill = _style.band_colors(ax, len(names), pooled=len(names) < len(self.kernel_names))
        edge: dict[str, Any] = {"edgecolor": _style.background(ax), "linewidth": 0.6}
        self.bands_ = ax.stackplot(x, heights.T, colors=fill, labels=names, **edge)
        ax.margins(0)
        self.errors_ = None if self.spread is None else self._errors(ax, x, weights, names, self.ps[order])
        ax.set_ylabel("share of the variance, stacked")
        self.legend_ = _style.legend_beside(ax, self.bands_[::-1], names[::-1])  # top band first, as drawn
        self.band_names_, self.band_weights_ = names, weights
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _errors(self, ax: Axes, x: Array, weights: Array, names: list[str], ps: Array) -> Any:
        """Bars over the bands at the chosen p."""
        from . import _style

        assert self.spread is not None
        k = int(np.flatnonzero(ps == self.at)[0])
        places = {name: m for m, name in enumerate(self.kernel_names)}
        middle = np.cumsum(weights[k]) - weights[k] / 2
        drawn = [(middle[band], self.spread[places[name]]) for band, name in enumerate(names) if name in places]
        height, length = np.array(drawn).T
        where = np.full(len(height), x[k] if len(x) == len(ps) else x.mean())
        color = _style.rcParams["text.color"]
        return ax.errorbar(where, height, yerr=length, fmt="none", ecolor=color, elinewidth=1, capsize=3)
