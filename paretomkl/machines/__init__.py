"""Task machines: they solve all tasks under a given kernel."""

from __future__ import annotations

from typing import Any

from .._tools.checks import shown
from ._base import KernelTasks
from ._kinds import MachineKind, Parameter, Reads
from ._logistic import LOGISTIC, LogisticTasks
from ._ls_svc import LS_SVC, LeastSquaresSVCTasks
from ._one_class import ONE_CLASS, OneClassTasks
from ._ridge import RIDGE, RidgeTasks
from ._svc import SVC, SVCTasks
from ._svdd import SVDD, SVDDTasks
from ._svr import SVR, SVRTasks

__all__ = [
    "MACHINES",
    "KernelTasks",
    "LeastSquaresSVCTasks",
    "LogisticTasks",
    "MachineKind",
    "OneClassTasks",
    "Parameter",
    "RidgeTasks",
    "SVCTasks",
    "SVDDTasks",
    "SVRTasks",
    "find_kind",
]

MACHINES: dict[str, MachineKind] = {kind.name: kind for kind in (SVC, LS_SVC, LOGISTIC, RIDGE, SVR, ONE_CLASS, SVDD)}
"""The kinds of machines by the names that users pass."""


def find_kind(given: Any, parameter: str = "machine", reads: Reads | None = None) -> MachineKind:
    """The kind that users mean: one of ``MACHINES`` by name, or a kind of their own.

    Parameters
    ----------
    given : str or MachineKind
        The name of a machine; with ``reads``, the name of a loss.
    parameter : str, default="machine"
        What the message calls it if there is no such machine.
    reads : {"labels", "numbers", "nothing"}, default=None
        What the machine must learn from; None is anything.

    Returns
    -------
    kind : MachineKind
        The kind of that name, or the given one.

    Examples
    --------
    >>> from paretomkl.machines import find_kind
    >>> find_kind("svc").name, find_kind("squared", "loss", reads="numbers").name
    ('svc', 'ridge')
    """
    offered = MACHINES if reads is None else {kind.loss: kind for kind in MACHINES.values() if kind.reads == reads}
    if isinstance(given, str) and given in offered:
        return offered[given]
    if not isinstance(given, MachineKind):
        names = ", ".join(map(repr, offered))
        raise ValueError(f"{parameter} must be one of {names} or a MachineKind, got {shown(given)}.")
    if reads is not None and given.reads != reads:
        raise ValueError(f"{parameter}={given.name!r} learns from {given.reads}, but this estimator from {reads}.")
    return given
