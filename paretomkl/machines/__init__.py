"""Task machines: they solve all tasks under a given kernel."""

from ._base import KernelTasks
from ._ls_svc import LeastSquaresSVCTasks
from ._one_class import OneClassTasks
from ._ridge import RidgeTasks
from ._svc import SVCTasks
from ._svdd import SVDDTasks
from ._svr import SVRTasks

__all__ = [
    "MACHINES",
    "KernelTasks",
    "LeastSquaresSVCTasks",
    "OneClassTasks",
    "RidgeTasks",
    "SVCTasks",
    "SVDDTasks",
    "SVRTasks",
]

MACHINES: dict[str, type[KernelTasks]] = {
    "svc": SVCTasks,
    "ls-svc": LeastSquaresSVCTasks,
    "ridge": RidgeTasks,
    "svr": SVRTasks,
    "one-class": OneClassTasks,
    "svdd": SVDDTasks,
}
"""The machines by the names that users pass."""
