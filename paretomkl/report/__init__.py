"""The page that shows the trade-off: one HTML file with linked pictures, certified numbers and plain words."""

from .._page.page import build_page, dense_ps, write_page
from .._page.words import CrossValidation
from ._trade_off import TradeOff, held_out_split, trade_off_page

__all__ = ["CrossValidation", "TradeOff", "build_page", "dense_ps", "held_out_split", "trade_off_page", "write_page"]
