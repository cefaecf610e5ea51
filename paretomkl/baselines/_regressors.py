"""Baselines for regression with kernels: a learned kernel for each task, or the mean of all kernels."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from .._learn.regressor import KernelTaskRegressor, machine_of_loss
from ..kernels._kernels import KernelLike
from ._independent import SeparateKernels, UniformKernel


class MachineOfLoss:
    """Adds the losses of :class:`~paretomkl.ParetoMKLRegressor`."""

    loss: Any
    epsilon: float

    def _machine(self) -> dict[str, Any]:
        return {"machine": machine_of_loss(self.loss), "epsilon": self.epsilon}


class IndependentMKLRegressor(MachineOfLoss, SeparateKernels, KernelTaskRegressor):
    """Multiple kernel learning for each regression task on its own.

        for each task t     minimise over θ^t ≥ 0, ‖θ^t‖_s ≤ 1     J_t(θ^t)

    where J_t(θ) is the optimum of task t under the kernel Σ_m θ_m K_m, as in
    :class:`~paretomkl.ParetoMKLRegressor`. With one task the two are the same.

    Parameters
    ----------
    loss, epsilon, C, s, kernels, task_column, normalize_y, tol, n_jobs, verbose, random_state
        As in :class:`~paretomkl.ParetoMKLRegressor`; each task stops at ``tol``, and each thread solves one task.
    max_iter : int, default=None
        Maximum number of sweeps for one task; None means 200.

    Attributes
    ----------
    theta_ : array of shape (n_tasks, n_kernels)
        Learned kernel weights of each task.
    objectives_, objective_
        J_t at θ^t (n_tasks,), and their mean.
    gaps_ : array of shape (n_tasks,)
        Certified relative gap of each task, never below the true gap.
    gap_ : float
        The largest of them, which also bounds the gap of the mean.
    n_sweeps_ : int
        Passes over the tasks: the largest number of times that any task was solved.

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
    """Kernel regression with the mean of all kernels, k = Σ_m K_m / M; the kernel is not learned.

    Parameters
    ----------
    loss, epsilon, C, kernels, task_column, normalize_y, tol, n_jobs, verbose, random_state
        As in :class:`~paretomkl.ParetoMKLRegressor`, with the same accuracy of the tasks.

    Attributes
    ----------
    theta_ : array of shape (n_kernels,)
        1/M for each kernel.
    objectives_, objective_
        J_t at ``theta_`` (n_tasks,), and their mean.
    gap_ : float
        Largest relative duality gap of a task.
    n_sweeps_ : int
        Always 1.

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
