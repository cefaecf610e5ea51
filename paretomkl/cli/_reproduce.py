"""``paretomkl reproduce``."""

from .._experiments.cli import reproduce
from ._running import command

EXAMPLE = "Example: `paretomkl reproduce --quick --jobs 2`, then open `experiments/tables.md`."
command(EXAMPLE, resumable=True)(reproduce)
