"""The page that shows the trade-off: one HTML file with linked pictures, certified numbers and plain words."""

from .page import build_page, dense_ps, write_page
from .trade_off import TradeOff, held_out_split, trade_off_page
from .words import CrossValidation

__all__ = ["CrossValidation", "TradeOff", "build_page", "dense_ps", "held_out_split", "trade_off_page", "write_page"]
