"""Least squares on the labels, for classification."""

from __future__ import annotations

from ._ridge import RidgeTasks


class LeastSquaresSVCTasks(RidgeTasks):
    """T least-squares support vector machines: kernel ridge regression on labels ±1.

        J_t(θ) = scale_t · min over f, b of  ½ ‖f‖² + ½ Σ_i C_i (1 − y_i (f(x_i) + b))²

    Parameters
    ----------
    gram : Gram
        The kernel values of the samples of all tasks.
    targets : array of shape (n_entries,)
        Labels ±1 over the samples of all tasks, one task after the other.
    C : array of shape (n_entries,)
        What the square of an error costs, for each sample of each task; a sample of cost zero is left out.
    scale : array of shape (n_tasks,), default=None
        Factor of the objectives, and with them of cuts and bounds; None is 1.
    """
