"""Intervals for scores: how far a score may be off because it was measured on some rows only.

Scores between 0 and 1 whose variance is known have Wilson's interval, of a share of n rows: n is the number of rows
that would make the variance of a share as large, and no more than the number of rows that count. So the interval of a
score of 1 has a lower end below it, and no end leaves the range. All other scores have a Bayesian bootstrap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from .._tools.typing import Array

CONFIDENCE = 0.95


class Estimate(NamedTuple):
    """A score and its interval; NaN where unknown."""

    score: float
    low: float = math.nan
    high: float = math.nan


def wilson(share: Any, n: Any, confidence: float = CONFIDENCE) -> tuple[Any, Any]:
    """Wilson's interval of a share of n rows: all true shares from which it is within z standard errors; NaN if n = 0.

    Arrays of shares and numbers of rows give arrays of ends; n need not be whole.
    """
    share, n, z = np.asarray(share, dtype=float), np.asarray(n, dtype=float), norm.ppf((1 + confidence) / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    known = (n > 0) & ~np.isnan(share)
    low = np.where(known, np.where(share <= 0, 0.0, middle - half), np.nan)  # the ends of the range are exact
    high = np.where(known, np.where(share >= 1, 1.0, middle + half), np.nan)
    return low[()], high[()]


def of_variance(score: float, variance: float, most: float, confidence: float = CONFIDENCE) -> Estimate:
    """The interval of a score in [0, 1] with a known variance, of at most as many rows as ``most``."""
    score, spread = min(1.0, max(0.0, score)), score * (1 - score)  # which may be off by a rounding error
    n = min(most, spread / variance) if min(spread, variance) > 1e-12 else most
    low, high = wilson(score, n, confidence)
    return Estimate(score, float(low), float(high))


def of_folds(scores: Array, confidence: float = CONFIDENCE, n_rows: float | None = None) -> Estimate:
    """The mean over the folds that have a score, with Student's interval; NaN for a single fold.

    Scores between 0 and 1 have Wilson's interval, with as many rows as explain the scatter of the folds, and at most
    ``n_rows``, the number of rows in them.
    """
    known = scores[~np.isnan(scores)]
    if len(known) < 2:
        return Estimate(float(known.mean()) if len(known) else math.nan)
    mean, error = float(known.mean()), float(known.std(ddof=1)) / math.sqrt(len(known))
    reach = float(student.ppf((1 + confidence) / 2, len(known) - 1))
    if n_rows is None:
        return Estimate(mean, mean - reach * error, mean + reach * error)
    return of_variance(mean, (error * reach / norm.ppf((1 + confidence) / 2)) ** 2, n_rows, confidence)


def combined(parts: Sequence[Estimate], weights: Array, dependent: bool = False) -> Estimate:
    """The weighted mean of scores, with the interval that follows from theirs.

    The ends are as far from the mean as independent errors of the parts carry it (the method of variance estimates
    recovery), or if they are ``dependent``, as far as errors that are all alike. An end that is unknown for a part is
    unknown for the mean.
    """
    scores, low, high = np.array(parts, dtype=float).reshape(-1, 3).T
    known = ~np.isnan(scores) & (weights > 0)
    if not known.any():
        return Estimate(math.nan)
    share = weights[known] / weights[known].sum()
    mean = float(share @ scores[known])
    below, above = (
        float(np.sum(part) if dependent else math.sqrt(np.sum(part**2)))
        for part in (share * (scores - low)[known], share * (high - scores)[known])
    )
    return Estimate(mean, mean - below, mean + above)
