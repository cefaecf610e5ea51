"""The interval of one score of some rows, whatever the metric.

A share of right answers, recall, precision, balanced accuracy and AUC have a variance: the sum over groups of the
squared sum of the influences of their rows (for AUC, this is DeLong's). Without groups, each row is one. All other
metrics are evaluated under random weights of the groups, from the exponential distribution (the Bayesian bootstrap):
unlike resampling, it never loses a class or the variance of a short task.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    explained_variance_score,
    f1_score,
    matthews_corrcoef,
    mean_absolute_error,
    mean_squared_error,
    precision_score,
    r2_score,
    recall_score,
    roc_auc_score,
    root_mean_squared_error,
)

from .._tools.typing import AnyArray, Array, IntArray
from .intervals import CONFIDENCE, Estimate, of_variance
from .scorers import WITHIN_UNIT, Metric, Part

DRAWS, SLOW_DRAWS = 1000, 400  # of weights, for formulas and for functions that are called once per draw
CELLS = 4_000_000  # limit on the weights in memory

Ready = tuple[AnyArray, AnyArray, dict[str, Any]]  # truth, response and arguments of a metric
Influences = tuple[Array, float]  # how much each row moves the score, and the most rows that count


def estimate(
    metric: Metric,
    part: Part,
    method: str,
    weight: Array | None = None,
    groups: IntArray | None = None,
    confidence: float = CONFIDENCE,
    quick: bool = False,
) -> Estimate:
    """The score of the samples of a task, with its interval; NaN where undefined.

    weight, groups (n,): of these samples; quick: leave out intervals by bootstrap.
    """
    ready = metric.prepared(part, method) if len(part.rows) else None
    if ready is None:
        return Estimate(math.nan)
    truth, response, arguments = ready
    weighted = arguments if weight is None else arguments | {"sample_weight": weight}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)  # the result says so
        score = metric.value(truth, response, weighted)
    if math.isnan(score):
        return Estimate(score)
    own = np.ones(len(truth)) if weight is None else weight
    closed = CLOSED_FORMS.get(metric.function)
    found = None if closed is None or metric.sign < 0 else closed(truth, response, own, arguments)
    if found is not None:
        influence, most = found
        return of_variance(score, *_clustered(influence, most, groups), confidence)
    if quick:
        return Estimate(score)
    formula = _formula(metric, truth, response, arguments)
    if formula is None:
        draws = _evaluated(metric, ready, own, groups)
    else:
        draws = metric.sign * drawn(formula, own, groups)
    return of_draws(score, draws, confidence, _unit_rows(metric, truth, groups))


def of_draws(score: float, draws: Array, confidence: float, most: float | None = None) -> Estimate:
    """The interval of a score from scores under random weights.

    ``most``: if they are all the same, the score is one of ``most`` rows in the range from 0 to 1; None: unknown.
    """
    known = draws[np.isfinite(draws)]
    if len(known) < DRAWS // 10:
        return Estimate(score)
    if np.ptp(known) <= 1e-12 * max(1.0, abs(score)):
        return Estimate(score) if most is None else of_variance(score, 0.0, most, confidence)
    low, high = np.quantile(known, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Estimate(score, min(float(low), score), max(float(high), score))


def drawn(function: Callable[[Array], Array], weight: Array, groups: IntArray | None, n: int = DRAWS) -> Array:
    """A function of weights (n_draws, n_samples), under random weights of the groups that multiply those given."""
    codes = None if groups is None else np.unique(groups, return_inverse=True)[1]
    size = len(weight) if codes is None else int(codes.max()) + 1
    if size < 2:
        return np.empty(0)
    rng, found, step = np.random.default_rng(0), [], max(1, CELLS // len(weight))
    for first in range(0, n, step):
        random = rng.exponential(size=(min(step, n - first), size))
        found.append(function(weight * (random if codes is None else random[:, codes])))
    return np.concatenate(found)


def _evaluated(metric: Metric, ready: Ready, weight: Array, groups: IntArray | None) -> Array:
    """A metric under random weights; under resampled rows if it takes no weights."""
    truth, response, arguments = ready
    if metric.takes("sample_weight"):

        def one(weights: Array) -> float:
            return metric.value(truth, response, arguments | {"sample_weight": weights})
    else:
        rng = np.random.default_rng(1)

        def one(weights: Array) -> float:  # the exponential weights become expected numbers of copies
            rows = rng.choice(len(truth), len(truth), p=weights / weights.sum())
            return metric.value(truth[rows], response[rows], arguments)

    def safe(weights: Array) -> float:
        try:
            return one(weights)
        except ValueError:  # such as a resample of one class
            return math.nan

    return drawn(lambda some: np.array([safe(weights) for weights in some]), weight, groups, SLOW_DRAWS)


def _clustered(influence: Array, most: float, groups: IntArray | None) -> tuple[float, float]:
    """The variance of a score from the influences of its rows, and the most rows that count: no more than groups."""
    if groups is None:
        return float(np.sum(influence**2)), most
    of_groups = np.bincount(np.unique(groups, return_inverse=True)[1], influence)
    n = len(of_groups)
    variance = float(np.sum(of_groups**2)) * n / max(1, n - 1)
    return variance, (most if variance > 0 else min(most, n))


def _unit_rows(metric: Metric, truth: AnyArray, groups: IntArray | None) -> float | None:
    """For a score of classes between 0 and 1, the rows that count at its ends: those of the rarest class, twice."""
    if metric.function not in WITHIN_UNIT or metric.sign < 0:
        return None
    most = 2.0 * float(np.unique(truth, return_counts=True)[1].min())
    return most if groups is None else min(most, len(np.unique(groups)))


def _effective(weight: Array) -> float:
    """The number of rows of equal weight that say as much."""
    return float(weight.sum() ** 2 / np.sum(weight**2))


# ------------------------------------------------------------------------------------- scores with a variance
def _share(right: AnyArray, weight: Array) -> Influences | None:
    """Of the rows with positive weight, the share that is right."""
    total = weight.sum()
    if total <= 0:
        return None
    return weight * (right - weight @ right / total) / total, _effective(weight[weight > 0])


def _accuracy(truth: AnyArray, response: AnyArray, weight: Array, arguments: dict[str, Any]) -> Influences | None:
    return None if arguments or np.ndim(response) != 1 else _share(truth == response, weight)


def _recall(truth: AnyArray, response: AnyArray, weight: Array, arguments: dict[str, Any]) -> Influences | None:
    return _of_class(truth, truth == response, weight, arguments)


def _precision(truth: AnyArray, response: AnyArray, weight: Array, arguments: dict[str, Any]) -> Influences | None:
    return _of_class(response, truth == response, weight, arguments)


def _of_class(labels: AnyArray, right: AnyArray, weight: Array, arguments: dict[str, Any]) -> Influences | None:
    """The share that is right among the rows of the positive class."""
    if arguments.get("average", "binary") != "binary" or arguments.keys() - {"average", "pos_label", "zero_division"}:
        return None
    return _share(right, weight * (labels == arguments.get("pos_label", 1)))


def _balanced(truth: AnyArray, response: AnyArray, weight: Array, arguments: dict[str, Any]) -> Influences | None:
    """The mean over the classes of the share that is right."""
    if arguments:
        return None
    parts = [_share(truth == response, weight * (truth == label)) for label in np.unique(truth)]
    if any(part is None for part in parts):
        return None
    influences, sizes = zip(*[part for part in parts if part is not None], strict=True)
    return np.sum(influences, axis=0) / len(parts), len(parts) * min(sizes)


def _area(truth: AnyArray, response: AnyArray, weight: Array, arguments: dict[str, Any]) -> Influences | None:
    """The share of pairs of a positive and a negative row in the right order, ties counting half (DeLong)."""
    labels = np.unique(truth)
    if arguments or len(labels) != 2 or np.ndim(response) != 1:
        return None
    sides = [np.flatnonzero((truth == label) & (weight > 0)) for label in (labels[1], labels[0])]
    if not all(map(len, sides)):
        return None
    influence, sizes = np.zeros(len(truth)), [_effective(weight[rows]) for rows in sides]
    placements = [_placed(response, rows, others, weight) for rows, others in (sides, sides[::-1])]
    placements[1] = 1 - placements[1]  # a negative row should be below the positive ones
    for rows, placed, size in zip(sides, placements, sizes, strict=True):
        own = weight[rows] / weight[rows].sum()
        influence[rows] = own * (placed - own @ placed) * math.sqrt(size / (size - 1) if size > 1 else 1.0)
    return influence, 2 * min(sizes)


def _placed(response: AnyArray, rows: IntArray, others: IntArray, weight: Array) -> Array:
    """For each row, the share of the others that are below it; those at the same place count half."""
    order = np.argsort(response[others], kind="stable")
    values, sums = response[others][order], np.append(0.0, np.cumsum(weight[others][order]))
    below, up_to = (sums[np.searchsorted(values, response[rows], side=side)] for side in ("left", "right"))
    return (below + up_to) / 2 / sums[-1]


CLOSED_FORMS: dict[Any, Callable[..., Influences | None]] = {
    accuracy_score: _accuracy,
    balanced_accuracy_score: _balanced,
    precision_score: _precision,
    recall_score: _recall,
    roc_auc_score: _area,
}


# ------------------------------------------------------------------------------- formulas for many weights at once
Formula = Callable[[Array], Array]  # from weights (n_draws, n_samples) to scores (n_draws,)


def _formula(metric: Metric, truth: AnyArray, response: AnyArray, arguments: dict[str, Any]) -> Formula | None:
    """A metric as a function of many weights, if it is a common one."""
    function = metric.function
    if function in OF_NUMBERS and not arguments:
        return lambda weights: OF_NUMBERS[function](truth, response, weights)
    if function is average_precision_score and not arguments.keys() - {"pos_label"}:
        positive = truth == arguments.get("pos_label", 1)
        return lambda weights: _average_precision(positive, response, weights)
    known = arguments.keys() <= {"average", "pos_label", "zero_division"} and np.ndim(truth) == np.ndim(response) == 1
    if function not in OF_CLASSES or not known:
        return None
    labels, codes = np.unique(np.concatenate([truth, response]), return_inverse=True)
    n, k = len(truth), len(labels)
    cell = csr_array((np.ones(n), (np.arange(n), codes[:n] * k + codes[n:])), shape=(n, k * k))
    average = arguments.get("average", "binary")
    positive = np.flatnonzero(labels == arguments.get("pos_label", 1))

    def of_weights(weights: Array) -> Array:
        table = (weights @ cell).reshape(-1, k, k)
        hits, true, predicted = np.diagonal(table, axis1=1, axis2=2), table.sum(axis=2), table.sum(axis=1)
        if function is matthews_corrcoef:
            return _correlation(hits, true, predicted)
        above, below = OF_CLASSES[function](hits, true, predicted)
        if average == "binary":
            above, below = above[:, positive], below[:, positive]
        elif average == "micro":
            above, below = above.sum(axis=1, keepdims=True), below.sum(axis=1, keepdims=True)
        share = true / true.sum(axis=1, keepdims=True) if average == "weighted" else 1 / above.shape[1]
        return np.sum(share * above / np.where(below > 0, below, 1.0), axis=1)

    return of_weights


def _correlation(hits: Array, true: Array, predicted: Array) -> Array:
    """Matthews' correlation, 0 if one side has a single class."""
    total = true.sum(axis=1)
    above = hits.sum(axis=1) * total - np.sum(true * predicted, axis=1)
    below = np.sqrt((total**2 - np.sum(true**2, axis=1)) * (total**2 - np.sum(predicted**2, axis=1)))
    return above / np.where(below > 0, below, 1.0)


OF_CLASSES: dict[Any, Any] = {  # numerator and denominator per class, (n_draws, n_classes)
    f1_score: lambda hits, true, predicted: (2 * hits, true + predicted),
    matthews_corrcoef: None,
    precision_score: lambda hits, true, predicted: (hits, predicted),
    recall_score: lambda hits, true, predicted: (hits, true),
}


def _average_precision(positive: AnyArray, response: AnyArray, weights: Array) -> Array:
    """The precision at each threshold, weighted by the gain in recall there."""
    order = np.argsort(-response, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(response[order])), len(order) - 1)  # rows of one value come together
    found = np.cumsum(weights[:, order] * positive[order], axis=1)[:, ends]
    precision = found / np.cumsum(weights[:, order], axis=1)[:, ends]
    return np.sum(np.diff(found, axis=1, prepend=0.0) * precision, axis=1) / found[:, -1]


def _r2(truth: Array, response: Array, weights: Array) -> Array:
    return 1 - weights @ (truth - response) ** 2 / _varied(truth, weights)


def _explained_variance(truth: Array, response: Array, weights: Array) -> Array:
    return 1 - _varied(truth - response, weights) / _varied(truth, weights)


def _varied(values: Array, weights: Array) -> Array:
    """Σ w (v − v̄)²; NaN if zero."""
    centred = values - values.mean()
    varied = weights @ centred**2 - (weights @ centred) ** 2 / weights.sum(axis=1)
    return np.where(varied > 0, varied, np.nan)


def _mean_square(truth: Array, response: Array, weights: Array) -> Array:
    return weights @ (truth - response) ** 2 / weights.sum(axis=1)


def _mean_absolute(truth: Array, response: Array, weights: Array) -> Array:
    return weights @ np.abs(truth - response) / weights.sum(axis=1)


OF_NUMBERS: dict[Any, Callable[..., Array]] = {
    explained_variance_score: _explained_variance,
    mean_absolute_error: _mean_absolute,
    mean_squared_error: _mean_square,
    r2_score: _r2,
    root_mean_squared_error: lambda *given: np.sqrt(_mean_square(*given)),
}
