"""The page that shows the trade-off: one HTML file with linked charts, certified numbers and plain words."""

from typing import TYPE_CHECKING, Any

from .._select.results import Comparison, Contender, CrossValidation, Sharing, TaskErrors
from .._show.confusion import Confusion
from .._show.numbers import Predictions
from .._show.page import build_page, dense_ps, write_page
from .._tools.wording import Measure
from ._trade_off import TradeOff, held_out_split, trade_off_page

if TYPE_CHECKING:
    from .._select.baselines import compare

__all__ = [
    "Comparison",
    "Confusion",
    "Contender",
    "CrossValidation",
    "Measure",
    "Predictions",
    "Sharing",
    "TaskErrors",
    "TradeOff",
    "build_page",
    "compare",
    "dense_ps",
    "held_out_split",
    "trade_off_page",
    "write_page",
]

if not TYPE_CHECKING:  # otherwise type checkers would accept any name

    def __getattr__(name: str) -> Any:
        """Import names that need scikit-learn on first use, since importing it takes a second."""
        if name == "compare":
            from .._select.baselines import compare

            return compare
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
