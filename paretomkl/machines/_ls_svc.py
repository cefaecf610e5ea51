"""Least squares on the labels, for classification."""

from __future__ import annotations

from ._base import MachineKind
from ._ridge import RidgeTasks


class LeastSquaresSVCTasks(RidgeTasks):
    """T least-squares support vector machines: kernel ridge regression on labels ±1.

        J_t(θ) = scale_t · min over f, b of  ½ ‖f‖² + ½ Σ_i C_i (1 − y_i (f(x_i) + b))²

    Parameters
    ----------
    gram : Gram
        The kernel values of the samples of all tasks.
    targets : array of shape (n_entries,)
        Labels ±1 of the samples of all tasks, concatenated by task.
    C : array of shape (n_entries,)
        Cost of a squared error, for each sample of each task; samples of cost zero are ignored.
    scale : array of shape (n_tasks,), default=None
        Factor of the objectives, cuts and bounds; None is 1.
    """


# the squared loss already penalises fitting noise, so there is no need to search for the price of capacity
LS_SVC = MachineKind(
    "ls-svc",
    LeastSquaresSVCTasks,
    "labels",
    "squared",
    decisions="estimates",
    promises=LeastSquaresSVCTasks.promises,
    capacities=(0.5,),
)
