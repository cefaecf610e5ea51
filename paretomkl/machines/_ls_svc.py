"""Least squares on the labels, for classification."""

from __future__ import annotations

from ._ridge import RidgeTasks


class LeastSquaresSVCTasks(RidgeTasks):
    """T least-squares support vector machines: kernel ridge regression on labels ±1.

        J_t(θ) = scale_t · min over f, b of  ½ ‖f‖² + ½ Σ_i C_i (1 − y_i (f(x_i) + b))²

    Parameters
    ----------
    gram, C, scale
        As in :class:`RidgeTasks`.
    targets : flat array of ±1
    """
