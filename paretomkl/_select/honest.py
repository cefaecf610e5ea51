"""What a search reaches if each fold is scored at the point that the other folds choose.

The score of the chosen point is the best of many on the same folds, so it is too high; this one is not. It needs no
fit: the table of the search has the scores of all points in all folds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._tools.shares import Share
from .._tools.typing import Array, IntArray
from .._tools.wording import ACCURACY, R2
from .choice import best_of_ways, choose_way
from .intervals import Estimate, of_folds
from .scorers import within_unit
from .splits import TrainTest


def best(scores: Array) -> int:
    """The candidate with the highest mean over the folds that have a score; the first one in a tie."""
    known = ~np.isnan(scores)
    total = np.where(known, scores, 0.0).sum(axis=1)
    mean = np.divide(total, known.sum(axis=1), out=np.full(len(scores), -np.inf), where=known.any(axis=1))
    return int(np.argmax(mean.round(12)))  # rounding errors must not break ties


def choices(scores: Array, choice: Callable[[Array], int] = best) -> IntArray:
    """For each fold, the candidate that the other folds choose, (n_folds,); scores (n_candidates, n_folds)."""
    return np.array([choice(scores[:, kept]) for kept in others(scores.shape[1])])


def others(n_folds: int) -> list[IntArray]:
    """For each fold, the numbers of the other folds; of a single fold, itself."""
    return [np.array([k for k in range(n_folds) if k != fold] or [fold]) for fold in range(n_folds)]


def of_splits(search: Any, what: str) -> Array:
    """A column of ``cv_results_`` in each fold, (n_points, n_folds)."""
    return np.array([search.cv_results_[f"split{k}_test_{what}"] for k in range(search.n_splits_)]).T


def honest_points(search: Any, share: Share | None = None) -> IntArray:
    """For each fold, the row of ``cv_results_`` that the other folds choose, (n_folds,).

    ``share`` is the way to share; None leaves it to the other folds too.
    """
    results = search.cv_results_
    points = {name.removeprefix("param_"): results[name] for name in results if name.startswith("param_")}
    scores, losses = of_splits(search, "score"), of_splits(search, search.loss_name)
    points.setdefault("share", np.full(len(scores), search.best_share_, dtype=object))

    def chosen(kept: IntArray) -> int:
        known = kept[~np.isnan(scores[:, kept]).all(axis=0)]  # a fold may have failed
        if not known.size:
            return search.best_index_ if share is None else search.best_indices_[share]
        own = scores[:, known]
        found = best_of_ways(own.T, losses[:, known].mean(axis=1), points, search.by_loss)
        return int(found[share or choose_way({way: own[k] for way, k in found.items()}, search.small_tasks_)])

    return np.array([chosen(kept) for kept in others(search.n_splits_)])


def honest_scores(search: Any, share: Share | None = None) -> Array:
    """The score of each fold at its honest point, (n_folds,); NaN for a fold that failed."""
    check_is_fitted(search, "cv_results_")
    scores = of_splits(search, "score")
    return scores[honest_points(search, share), np.arange(scores.shape[1])]


def honest_estimate(search: Any) -> Estimate:
    """Their mean over the folds, and its interval."""
    bounded = search.stratify and within_unit(search.scoring)
    n_rows = sum(len(test) for _, test in search.splits_) if bounded else None
    found = of_folds(honest_scores(search), n_rows=n_rows)
    of_variance = not search.stratify and search.scoring in (None, "r2")  # which is at most 1
    return found._replace(high=float(np.minimum(found.high, 1.0))) if of_variance else found


def honest_words(search: Any, name: str) -> str:
    """The score of a fitted search with its interval, in a sentence."""
    measure = ACCURACY if name == ACCURACY.name else replace(R2, name=name)
    score, low, high = honest_estimate(search)
    ends = measure.interval(low, high)
    said = f"{name[0].upper()}{name[1:]} {measure.text(score)}" + f" (95 % interval {ends})" * bool(ends)
    said += f" over {search.n_splits_} folds, each with the parameters that the other folds choose"
    return said + (f"; permutation test: p = {search.p_value_:.3g}." if hasattr(search, "p_value_") else ".")


def splits_of(search: Any, n_samples: int) -> list[TrainTest]:
    """The folds of a fitted search; raise unless the samples are as many as it was fitted to."""
    if n_samples != search.n_samples_:
        raise ValueError(
            f"The search was fitted to {search.n_samples_} rows, but X has {n_samples}; pass its training data."
        )
    splits: list[TrainTest] = search.splits_
    return splits
