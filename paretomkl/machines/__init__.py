"""Machines: how good each task can get under a kernel."""

from ._svc import SVCTasks

__all__ = ["SVCTasks"]
