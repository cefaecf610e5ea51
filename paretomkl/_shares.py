"""What tasks may have in common, by name: importing these names must not load the library behind them."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

Share: TypeAlias = Literal["nothing", "kernel", "function", "everything"]
SHARES: tuple[Share, ...] = get_args(Share)
"""From nothing to everything."""
CALLED = {
    "nothing": "separate models",
    "kernel": "a shared kernel alone",
    "function": "a common and a separate part",
    "everything": "one model for all",
}
