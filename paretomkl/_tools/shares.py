"""Names of what tasks may have in common; a separate module, so that importing them does not load the library."""

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
