"""How T task objectives become one number: the weighted power mean and its gradient."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ._tools.typing import AnyArray, Array

__all__ = ["PAPER_PS", "PowerMean"]

PAPER_PS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, np.inf)
"""The exponents of the paper's experiments."""

_LEAST = np.minimum.reduce  # the minimum, with a fraction of its overhead
_NEARLY_GEOMETRIC = 1e-2  # |p| below which M_p is computed from deviations from the geometric mean
_GEOMETRIC = 1e-300  # |p| below which M_p is the geometric mean to all digits, while p log g_t may be denormal


@dataclass(frozen=True)
class PowerMean:
    """Weighted power mean of task objectives, for every real p and ±∞.

        M_p(g) = (Σ_t ω_t g_t^p)^(1/p),    Σ_t ω_t = 1

    p = 1 is the average, p = ∞ the largest, p = 0 the geometric mean, p = -∞ the smallest objective. M_p is convex for
    p ≥ 1. It has the same minimiser as the paper's ν_p(g) = T^(1/p) M_p(g), but stays within the range of the
    objectives, while T^(1/p) can overflow. All computations use logarithms.

    An objective of zero belongs to a task that costs nothing under any kernel. For p ≥ 1 it enters the mean as it is.
    For p < 1, where it would make the gradient infinite or the mean zero, it is left out. Either way it has no task
    weight.

    Parameters
    ----------
    p : float
        Exponent of the mean.
    weights : array of shape (n_tasks,), default=None
        Preference weights ω of the tasks, positive and summing to one; ``None`` means equal weights. At p = ±∞ they
        have no effect, as the limit of the formula shows.

    Examples
    --------
    >>> import numpy as np
    >>> from paretomkl.scalarizations import PowerMean
    >>> [round(PowerMean(p).value(np.array([1.0, 4.0])), 3) for p in (0, 1, 2, np.inf)]
    [2.0, 2.5, 2.915, 4.0]
    """

    p: float
    weights: Array | None = None

    homogeneous: ClassVar[bool] = True

    @property
    def convex(self) -> bool:
        """Whether M_p is convex: p ≥ 1."""
        return self.p >= 1

    def _log_weights(self, n_tasks: int) -> Array | float:
        return -math.log(n_tasks) if self.weights is None else np.log(self.weights)

    def _log_terms(self, logs: Array) -> Array:
        """log(ω_t g_t^p), whose log-sum-exp is p log M_p."""
        return self._log_weights(logs.shape[-1]) + self.p * logs

    def _without_zeros(self, objectives: Array) -> tuple[AnyArray, PowerMean, float]:
        """Which objectives are positive, the mean of these alone, and the logarithm of M_p relative to that mean."""
        positive = objectives > 0
        weights = np.exp(np.broadcast_to(self._log_weights(len(objectives)), objectives.shape))[positive]
        total = weights.sum() if len(weights) else 1.0
        ratio = np.log(total) / self.p if 1 <= self.p < np.inf else 0.0
        return positive, replace(self, weights=weights / total), ratio

    def log_value(self, objectives: Array) -> Array:
        """log M_p along the last axis of objectives of shape (..., n_tasks)."""
        if objectives.ndim == 1 and not _LEAST(objectives) > 0:
            positive, mean, ratio = self._without_zeros(objectives)
            return ratio + mean.log_value(objectives[positive]) if positive.any() else np.array(-np.inf)
        if not _LEAST(objectives, axis=None, initial=np.inf) > 0:
            return np.array([self.log_value(row) for row in objectives])
        logs = np.log(objectives)
        if np.isinf(self.p):
            return logs.max(axis=-1) if self.p > 0 else logs.min(axis=-1)
        return _log_mean(self.p, self._log_weights(logs.shape[-1]), logs, _log_sum_exp(self._log_terms(logs)))

    def value(self, objectives: Array) -> float:
        """M_p(g) for objectives g of shape (n_tasks,)."""
        return float(np.exp(self.log_value(objectives)))

    def gradient(self, objectives: Array) -> Array:
        """∂M_p/∂g_t = ω_t (g_t / M_p)^(p-1), shape (n_tasks,). Its inner product with g is M_p(g).

        At p = ±∞ it is the subgradient that splits the weight equally among the tasks that attain the extreme.
        """
        if not _LEAST(objectives) > 0:
            positive, mean, ratio = self._without_zeros(objectives)
            gradient = np.zeros(len(objectives))
            if positive.any():
                gradient[positive] = np.exp(ratio) * mean.gradient(objectives[positive])
            return gradient
        logs = np.log(objectives)
        if np.isinf(self.p):
            extreme = logs == (logs.max() if self.p > 0 else logs.min())
            return extreme / extreme.sum()
        terms = self._log_terms(logs)
        log_sum = _log_sum_exp(terms)
        log_mean = _log_mean(self.p, self._log_weights(len(logs)), logs, log_sum)
        return _gradient(terms, log_sum, log_mean, logs)

    def means_and_gradients(self, ps: Sequence[float], objectives: Array) -> tuple[Array, Array]:
        """M_p (n_ps,) and its gradient (n_ps, n_tasks) for several other finite p at the same objectives."""
        if not _LEAST(objectives) > 0:
            means = [replace(self, p=p) for p in ps]
            return np.array([m.value(objectives) for m in means]), np.array([m.gradient(objectives) for m in means])
        logs = np.log(objectives)
        p, log_weights = np.array(ps, dtype=float), self._log_weights(len(logs))
        terms = log_weights + np.multiply.outer(p, logs)
        log_sum = _log_sum_exp(terms)
        nearly = np.abs(p) < _NEARLY_GEOMETRIC
        log_mean = log_sum / np.where(nearly, 1.0, p)
        for k in np.flatnonzero(nearly):
            log_mean[k] = _log_mean(p[k], log_weights, logs, log_sum[k])
        return np.exp(log_mean), _gradient(terms, log_sum[:, None], log_mean[:, None], logs)

    def task_weights(self, objectives: Array) -> Array:
        """η_t ∝ ω_t g_t^(p-1), summing to one: the weights of the equivalent weighted sum."""
        if np.isinf(self.p) or not _LEAST(objectives) > 0:
            gradient = self.gradient(objectives)
            return gradient / gradient.sum() if gradient.any() else np.full(len(gradient), 1 / len(gradient))
        exponents = self._log_weights(len(objectives)) + (self.p - 1) * np.log(objectives)
        return np.exp(exponents - _log_sum_exp(exponents))


def _log_mean(p: float, log_weights: Array | float, logs: Array, log_sum: Array) -> Array:
    """log M_p from the logarithms of the objectives and of the sum Σ_t ω_t g_t^p."""
    if abs(p) >= _NEARLY_GEOMETRIC:
        return log_sum / p
    # The quotient loses all digits as p → 0; deviations from the geometric mean, with expm1 and log1p, keep them.
    weights = np.full(logs.shape[-1], np.exp(log_weights))
    centre = logs @ weights
    if abs(p) < _GEOMETRIC:
        return centre
    deviations = p * (logs - centre[..., None])
    return centre + np.log1p(np.expm1(deviations) @ weights) / p


def _gradient(terms: Array, log_sum: Array, log_mean: Array, logs: Array) -> Array:
    # ∂M_p/∂g_t is the share ω_t g_t^p / Σ, which sums to one exactly, divided by g_t / M_p. Cap the exponent: a
    # derivative that overflows a double belongs to a task whose share underflows.
    return np.exp(np.minimum(terms - log_sum + log_mean - logs, 700.0))


def _log_sum_exp(x: Array) -> Array:
    """log Σ exp(x) along the last axis, the largest term factored out."""
    top = np.maximum.reduce(x, axis=-1)  # reduce has less overhead than max and sum
    return top + np.log(np.add.reduce(np.exp(x - top[..., None]), axis=-1))
