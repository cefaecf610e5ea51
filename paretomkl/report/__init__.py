"""The page that shows the trade-off: one HTML file with linked charts, certified numbers and plain words."""

from .._select.baselines import compare
from .._select.results import Comparison, Contender, CrossValidation, Sharing, TaskErrors
from .._show.page import build_page, dense_ps, write_page
from .._tools.wording import Measure
from ._trade_off import Confusion, Predictions, TradeOff, held_out_split, trade_off_page

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
