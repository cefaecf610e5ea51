"""Task machines: how good each task can get under a kernel."""

from ._base import KernelTasks
from ._ls_svc import LeastSquaresSVCTasks
from ._ridge import RidgeTasks
from ._svc import SVCTasks

__all__ = ["KernelTasks", "LeastSquaresSVCTasks", "RidgeTasks", "SVCTasks"]
