"""What a search predicts for rows that are held out, each fold at the point that the other folds choose."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._data.reading import Examples, read_samples, take_rows
from .._tools.shares import Share
from ..exceptions import MissingValueWarning, SourceWarning, UnlikeTrainingWarning
from .folds import noted
from .honest import honest_points, of_splits, splits_of
from .intervals import CONFIDENCE
from .scorers import MultiTaskScorer, Part, make_multitask_scorer, metric_of
from .task_scores import ScoresByTask, judged, scorer_of, training_levels

# what folds cause on purpose, or repeat after the table as a whole
OF_FOLDS = MissingValueWarning, SourceWarning, UnlikeTrainingWarning


def held_out_parts(
    search: Any,
    X: Any,
    y: Any,
    tasks: Any = None,
    scorer: MultiTaskScorer | None = None,
    n_jobs: int | None = None,
    share: Share | None = None,
) -> tuple[list[list[Part]], str, Any]:
    """The samples of each task in each fold, with the response of the model that learns from the other folds.

    Also the method that gave it, and a model. Each fold is fitted once more, at its point; folds that failed in the
    search are left out.
    """
    scorer = make_multitask_scorer("accuracy" if search.stratify else "r2") if scorer is None else scorer
    metric = metric_of(scorer)
    assert metric is not None
    folds, method, fitted = [], "predict", None
    points, scores = honest_points(search, share), of_splits(search, "score")
    reader = search.plain_estimator()
    examples = Examples(read_samples(reader, X, tasks=tasks, reset=True), y)
    for (train, test), point, of_points in zip(splits_of(search, len(examples.samples)), points, scores.T, strict=True):
        if np.isnan(of_points).all():
            continue
        plain = search.estimator_at(point).set_params(n_jobs=n_jobs, verbose=0)
        noted(plain, reader)
        if examples.samples.data.ndim == 3:  # the features of a stack of kernels are its training samples
            plain.n_features_in_ = len(train)
        asked = take_rows(X, test, train, search.kernels), take_rows(y, test), None, take_rows(tasks, test)
        with warnings.catch_warnings():
            for known in OF_FOLDS:
                warnings.simplefilter("ignore", known)
            fitted = plain.learned(examples.take(train, train).training(plain.reading, strict=False))
            parts, method, _ = scorer.parts(metric, fitted, *asked)
        folds.append([part._replace(rows=test[part.rows]) for part in parts])
    return folds, method, fitted


def joined_folds(folds: Sequence[Sequence[Part]]) -> list[Part]:
    """The samples of each task over all folds."""
    of_task: dict[str, list[Part]] = {}
    for parts in folds:
        for part in parts:
            of_task.setdefault(part.name, []).append(part)
    return [_joined(own) for own in of_task.values()]


def _joined(parts: Sequence[Part]) -> Part:
    filled = [part for part in parts if len(part.rows)] or parts[:1]
    rows, truth, response = (np.concatenate([part[k] for part in filled]) for k in (1, 2, 3))
    return Part(parts[0].name, rows, truth, response, parts[0].classes)


def held_out_by_task(
    search: Any,
    X: Any,
    y: Any,
    *,
    tasks: Any = None,
    scorer: MultiTaskScorer | None = None,
    n_jobs: int | None = None,
    quick: bool = False,
) -> ScoresByTask:
    """The scores of a search by task, over the rows of all folds, each predicted while held out.

    ``scorer`` is by default that of the search; ``quick`` leaves out slow intervals.
    """
    scorer = scorer_of(search) if scorer is None else scorer
    metric = metric_of(scorer)
    assert metric is not None
    folds, method, fitted = held_out_parts(search, X, y, tasks, scorer, n_jobs)
    known = folds if method != "predict" else [joined_folds(folds)]  # decisions of two models are not comparable
    return judged(metric, known, method, None, search.groups_, CONFIDENCE, training_levels(fitted), quick)
