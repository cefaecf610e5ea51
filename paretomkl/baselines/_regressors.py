"""Baselines for regression with kernels: a learned one for each task, or the mean of all."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from .._kernels import KernelLike
from .._regressor import KernelTaskRegressor, machine_of_loss
from ._independent import SeparateKernels, UniformKernel


class MachineOfLoss:
    """The losses of :class:`~paretomkl.ParetoMKLRegressor`."""

    loss: Any
    epsilon: float

    def _machine(self) -> dict[str, Any]:
        return {"machine": machine_of_loss(self.loss), "epsilon": self.epsilon}


class IndependentMKLRegressor(MachineOfLoss, SeparateKernels, KernelTaskRegressor):
    """Multiple kernel learning for each regression by itself.

        for each task t     minimise over θ^t ≥ 0, ‖θ^t‖_s ≤ 1     J_t(θ^t)

    where J_t(θ) is the optimum of task t under the kernel Σ_m θ_m K_m, as in
    :class:`~paretomkl.ParetoMKLRegressor`, which this is where there is one task.

    Parameters
    ----------
    loss, epsilon, C, s, kernels, task_column, normalize_y, tol, n_jobs, verbose, random_state
        As in :class:`~paretomkl.ParetoMKLRegressor`; each task stops at ``tol``, and threads take one task each.
    max_iter : int, default=None
        Sweeps allowed for one task; None is 200.

    Attributes
    ----------
    theta_ : array of shape (n_tasks, n_kernels)
        Learned kernel weights of each task.
    objectives_, objective_
        J_t at θ^t (n_tasks,), and their mean.
    gaps_ : array of shape (n_tasks,)
        Relative certificate of each task, never below the truth.
    gap_ : float
        The largest of them, which bounds that of the mean as well.
    n_sweeps_ : int
        How often the task that took longest was solved.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from paretomkl.baselines import IndependentMKLRegressor
    >>> IndependentMKLRegressor().fit(*load_linnerud(return_X_y=True)).theta_.shape
    (3, 13)
    """

    def __init__(
        self,
        loss: Literal["squared", "epsilon_insensitive"] = "squared",
        epsilon: float = 0.1,
        C: float = 1.0,
        s: float = 1.1,
        kernels: KernelLike = "default",
        task_column: int | str | None = None,
        normalize_y: bool = True,
        tol: float = 1e-3,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
        max_iter: int | None = None,
    ):
        self.loss = loss
        self.epsilon = epsilon
        self.C = C
        self.s = s
        self.kernels = kernels
        self.task_column = task_column
        self.normalize_y = normalize_y
        self.tol = tol
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter


class UniformKernelRegressor(MachineOfLoss, UniformKernel, KernelTaskRegressor):
    """Kernel regressions under the mean of all kernels, k = Σ_m K_m / M: nothing about the kernel is learned.

    Parameters
    ----------
    loss, epsilon, C, kernels, task_column, normalize_y, tol, n_jobs, verbose, random_state
        As in :class:`~paretomkl.ParetoMKLRegressor`, and the tasks are solved as accurately as there.

    Attributes
    ----------
    theta_ : array of shape (n_kernels,)
        1/M each.
    objectives_, objective_
        J_t at ``theta_`` (n_tasks,), and their mean.
    gap_ : float
        Largest relative duality gap of a task.
    n_sweeps_ : int
        One.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from paretomkl.baselines import UniformKernelRegressor
    >>> UniformKernelRegressor().fit(*load_linnerud(return_X_y=True)).objectives_.shape
    (3,)
    """

    def __init__(
        self,
        loss: Literal["squared", "epsilon_insensitive"] = "squared",
        epsilon: float = 0.1,
        C: float = 1.0,
        kernels: KernelLike = "default",
        task_column: int | str | None = None,
        normalize_y: bool = True,
        tol: float = 1e-3,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.loss = loss
        self.epsilon = epsilon
        self.C = C
        self.kernels = kernels
        self.task_column = task_column
        self.normalize_y = normalize_y
        self.tol = tol
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
