"""The entry point of the ``paretomkl`` command; the commands are in ``_commands.py``."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    try:
        import pandas  # noqa: F401
        import rich  # noqa: F401
        import typer  # noqa: F401

        from ._commands import app
    except ImportError as error:
        sys.exit(f"The command line needs {error.name}; install it with: pip install 'paretomkl[cli]'")
    except KeyboardInterrupt:  # this early there is nothing to undo
        sys.exit(130)
    app()
