"""Task machines: they solve all tasks under a given kernel."""

from __future__ import annotations

from ._base import KernelTasks, MachineKind, Parameter
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
]

MACHINES: dict[str, MachineKind] = {kind.name: kind for kind in (SVC, LS_SVC, LOGISTIC, RIDGE, SVR, ONE_CLASS, SVDD)}
"""The kinds of machines by the names that users pass."""
