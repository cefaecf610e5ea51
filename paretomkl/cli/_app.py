"""The command line: one module per command.

Exit codes: 0, done; 1, a failure that is not the caller's fault; 2, wrong options or wrong data, with one sentence that
says what to do; 130, interrupted. No command leaves a half-written file behind.

These modules import nothing slow until a command runs, so help and errors about options appear at once.
"""

from importlib import import_module

from ._running import app

__all__ = ["app"]

for _name in ("_demo", "_path", "_fit", "_predict", "_info"):  # in the order of the help
    import_module(f".{_name}", __package__)
