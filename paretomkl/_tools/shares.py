"""Names of what tasks may have in common; a separate module, so that importing them does not load the library."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

Share: TypeAlias = Literal["nothing", "kernel", "function", "everything"]
SHARES: tuple[Share, ...] = get_args(Share)
"""From nothing to everything."""
TOGETHER: frozenset[Share] = frozenset({"function", "everything"})
"""These make one problem of the samples of all tasks: they learn even from tiny tasks, and predict for new ones."""
CALLED = {
    "nothing": "separate models",
    "kernel": "a shared kernel alone",
    "function": "a common and a separate part",
    "everything": "one model for all",
}
