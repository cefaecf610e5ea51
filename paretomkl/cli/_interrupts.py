"""Interrupts that do not get lost."""

from __future__ import annotations

import signal
import sys
from types import FrameType

_AGAIN_AFTER = 0.2  # seconds


class Interrupts:
    """Ctrl-C, raised again until somebody handles it.

    Code of other libraries loses a KeyboardInterrupt now and then: callbacks from C print it and go on, and imports
    and NumPy replace it by an error of their own. A lost one is raised again by a timer, and ``pending`` tells an error
    that replaced one from an error of the user's data.
    """

    def __init__(self) -> None:
        self.pending = False

    def watch(self) -> None:
        signal.signal(signal.SIGINT, self._raise)
        sys.unraisablehook = _unless_interrupted
        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, self._raise)

    def handled(self) -> None:
        if self.pending:
            self.pending = False
            self._arm(0)

    def _raise(self, number: int, frame: FrameType | None) -> None:
        if number != signal.SIGINT and _being_handled():  # do not disturb what cleans up
            return
        self.pending = True
        self._arm(_AGAIN_AFTER)
        raise KeyboardInterrupt

    @staticmethod
    def _arm(seconds: float) -> None:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, seconds, seconds)


def _unless_interrupted(lost: sys.UnraisableHookArgs) -> None:
    """Print an error that Python cannot raise, unless it is one that is raised again."""
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)


def _being_handled() -> bool:
    error = sys.exc_info()[1]
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


interrupts = Interrupts()
