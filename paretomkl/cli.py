"""The entry point of the ``paretomkl`` command; the commands are in the package ``_commands``."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    try:
        if sys.argv[1:] == ["--version"]:
            from . import __version__

            print(__version__)
            return
        _run()
    except KeyboardInterrupt:  # nothing to clean up yet
        sys.exit(130)


def _run() -> None:
    try:
        from ._commands import app
    except ImportError as error:
        sys.exit(_missing(error))
    app()


def _missing(error: ImportError) -> str:
    return f"The command line needs {error.name}; install it with: pip install 'paretomkl[cli]'"
