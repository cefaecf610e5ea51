"""The command line: one module per command.

Exit codes: 0 done; 1 something went wrong that is not the caller's doing; 2 wrong options or wrong data, with one
sentence that says what to do; 130 interrupted. Nothing half-written is left behind.

These modules import nothing that takes time before a command runs: help and complaints about options come at once.
"""

from importlib import import_module

from ._running import app

__all__ = ["app"]

for _name in ("_demo", "_path", "_fit", "_predict", "_reproduce", "_info"):  # in the order of the help
    import_module(f".{_name}", __name__)
