"""What a model needs beside what it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._show.words import shorten
from .._tools.checks import check_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from ..inspection import Importances


class ImportanceDisplay:
    """Importances with their intervals, beside the shares of the same sources or kernels in the learned kernel.

    A share says what the kernel is made of, an importance what the model needs: the two can differ a lot.

    Parameters
    ----------
    names : list of n_units str
    mean, low, high : array-like of shape (n_units,)
        Importances, and the ends of their intervals.
    shares, shares_std : array-like of shape (n_units,), default=None
        Shares in the learned kernel, and their standard deviations over folds.
    label : str, default="loss in score"
        Label of the importances.
    percent : bool, default=False
        Whether importances are differences of shares, to be shown in percentage points.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        ``ax_`` has the importances.
    share_ax_ : matplotlib Axes or None
        The axes of the shares.
    order_ : array of int
        The units from the top down, the largest importance first.

    Examples
    --------
    >>> from paretomkl.plotting import ImportanceDisplay
    >>> display = ImportanceDisplay(names=["genes", "noise"], mean=[0.2, 0.0], low=[0.1, -0.02], high=[0.3, 0.02],
    ...                             shares=[0.5, 0.5]).plot()
    >>> [text.get_text() for text in display.share_ax_.get_yticklabels()]
    ['genes', 'noise']
    """

    def __init__(
        self,
        *,
        names: Sequence[str],
        mean: ArrayLike,
        low: ArrayLike,
        high: ArrayLike,
        shares: ArrayLike | None = None,
        shares_std: ArrayLike | None = None,
        label: str = "loss in score",
        percent: bool = False,
    ):
        self.names = list(names)
        self.mean, self.low, self.high = (np.asarray(part, dtype=float) for part in (mean, low, high))
        self.shares = None if shares is None else np.asarray(shares, dtype=float)
        self.shares_std = None if shares_std is None else np.asarray(shares_std, dtype=float)
        self.label, self.percent = label, percent

    @classmethod
    def from_importances(
        cls, importances: Importances, *, most: int = 12, ax: Axes | Sequence[Axes] | None = None
    ) -> ImportanceDisplay:
        """Draw what :func:`paretomkl.inspection.importance` found; see ``plot`` for the other parameters."""
        how = "left out" if importances.measure == "leave-out" else "permuted"
        display = cls(
            names=importances.names,
            mean=importances.mean,
            low=importances.low,
            high=importances.high,
            shares=importances.shares,
            shares_std=importances.shares_std,
            label=f"loss in {importances.score_measure.name} if {how}",
            percent=importances.score_measure.percent,
        )
        return display.plot(ax, most=most)

    def plot(self, ax: Axes | Sequence[Axes] | None = None, *, most: int = 12) -> ImportanceDisplay:
        """Draw at most ``most`` units, those with the largest importances.

        Parameters
        ----------
        ax : matplotlib Axes or pair of them, default=None
            The axes of the shares and of the importances; one alone gets the importances only. None makes a new figure
            with as many as are needed.
        most : int, default=12
        """
        from . import _style

        check_count("most", most)
        if ax is None:
            ax = _style.plt.subplots(1, 1 + (self.shares is not None), sharey=True, layout="constrained")[1]
        given: list[Any] = list(np.ravel(np.array(ax, dtype=object)))
        self.share_ax_, self.ax_ = (given[0] if len(given) > 1 else None), given[-1]
        self.order_ = np.argsort(-self.mean, kind="stable")[:most]
        places = np.arange(len(self.order_))
        scale = 100 if self.percent else 1
        mean, low, high = (scale * part[self.order_] for part in (self.mean, self.low, self.high))
        self.ax_.axvline(0.0, **_style.GUIDE)
        reach = np.nan_to_num(np.array([mean - low, high - mean]))
        self.ax_.errorbar(mean, places, xerr=reach, fmt="o", color=_style.HUES[0], capsize=3)
        self.ax_.set_xlabel(self.label + ", in points" * self.percent)
        if self.share_ax_ is not None and self.shares is not None:
            spread = None if self.shares_std is None else self.shares_std[self.order_]
            self.share_ax_.barh(places, self.shares[self.order_], xerr=spread, color=_style.POOL_COLOR, capsize=3)
            self.share_ax_.xaxis.set_major_formatter(_style.ticker.PercentFormatter(1.0, decimals=0))
            self.share_ax_.set_xlim(left=0)
            self.share_ax_.set_xlabel("share of the learned kernel")
        first = given[0]
        first.set_yticks(places, [shorten(self.names[k]) for k in self.order_])
        for one in given:
            one.set_ylim(len(places) - 0.5, -0.5)
        self.figure_ = self.ax_.figure
        return self
