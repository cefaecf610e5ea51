"""The entry point of the ``paretomkl`` command; every command is a module of its own."""

from __future__ import annotations

import gc
import sys

from ._interrupts import interrupts

__all__ = ["main"]

# Imports create many objects and no garbage: Python's default of looking for some after every few hundred new objects
# takes a tenth of the time of a short command.
_COLLECT_AFTER = 50_000


def main() -> None:
    """Run the command line."""
    interrupts.watch()
    try:
        if sys.argv[1:] == ["--version"]:
            from .. import __version__

            print(__version__)
            return
        _run()
    except Exception:
        if interrupts.pending:  # the error took its place
            sys.exit(130)
        raise
    except KeyboardInterrupt:  # nothing to clean up yet
        sys.exit(130)


def _run() -> None:
    gc.set_threshold(_COLLECT_AFTER)
    try:
        from ._app import app
    except ImportError as error:
        sys.exit(_missing(error))
    app()


def _missing(error: ImportError) -> str:
    return f"The command line needs {error.name}; install it with: pip install 'paretomkl[cli]'"
