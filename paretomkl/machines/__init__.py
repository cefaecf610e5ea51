"""Task machines: how good each task can get under a kernel."""

from ._base import KernelTasks
from ._ls_svc import LeastSquaresSVCTasks
from ._ridge import RidgeTasks
from ._svc import SVCTasks

__all__ = ["MACHINES", "KernelTasks", "LeastSquaresSVCTasks", "RidgeTasks", "SVCTasks"]

MACHINES: dict[str, type[KernelTasks]] = {
    "svc": SVCTasks,
    "ls-svc": LeastSquaresSVCTasks,
    "ridge": RidgeTasks,
}
