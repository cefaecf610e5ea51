"""Probabilities in searches: calibrated on the held-out decisions of folds, and scored on folds left out of that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._data.reading import Examples
from .._learn.calibration import Calibration, HeldOut
from .._learn.fold_models import fit_folds
from .._learn.probabilities import held_out
from .folds import Fold, FoldScores, scored_by_user
from .splits import TrainTest


def calibration_at(
    best: Any, point: int, scored: Sequence[FoldScores], searched: Examples, splits: Sequence[TrainTest]
) -> Calibration:
    """The calibration of the best estimator at a point of the grid of its way to share.

    The decisions are those of the search; where it has not kept them, the folds are fitted again at this point.
    """
    kept = [(one.number, one.held_out) for one in scored if one.way == best.share and one.error is None]
    if all(decisions is not None for _, decisions in kept):
        parts = [
            _part(decisions.tasks, decisions.decided[point], searched.take(splits[number][1]))
            for number, decisions in sorted(kept, key=lambda pair: pair[0])
            if decisions is not None
        ]
    else:
        parts = held_out(fit_folds(best, searched, splits), searched)
    return Calibration.of(best.model_.tasks, best.machine_kind.decisions, parts, best.class_weight)


def _part(tasks: Any, decided: Any, test: Examples) -> HeldOut:
    return HeldOut(tasks, decided, test.samples, test.y, test.sample_weight)


def score_probabilities(
    scored: Sequence[FoldScores], folds: Sequence[Fold], error_score: float | str
) -> list[FoldScores]:
    """The scores of a scorer that needs probabilities, calibrated for each fold on the decisions of the others.

    A single fold is calibrated on itself.
    """
    of_fold = {(one.number, one.way): one for one in scored}
    return [_scored(fold, of_fold, {(one.number, one.way): one for one in folds}, error_score) for fold in folds]


def _scored(fold: Fold, found: dict[Any, FoldScores], folds: dict[Any, Fold], error_score: float | str) -> FoldScores:
    mine = found[fold.number, fold.way]
    if mine.held_out is None:
        return mine
    same = [one for (_, way), one in found.items() if way == fold.way and one.held_out is not None]
    others = [one for one in same if one.number != fold.number] or same
    tasks: Any = mine.held_out.tasks
    plain: Any = fold.estimator
    scores, known = np.empty(fold.grid.size), dict[int, float]()
    try:
        for k, (point, decided) in enumerate(zip(fold.grid.points, mine.held_out.decided, strict=True)):
            if id(decided) not in known:
                parts = [
                    _part(one.held_out.tasks, one.held_out.decided[k], folds[one.number, one.way].test)
                    for one in others
                    if one.held_out is not None
                ]
                calibration = Calibration.of(tasks, plain.machine_kind.decisions, parts, plain.class_weight)
                known[id(decided)] = scored_by_user(fold, tasks, point, decided, calibration_=calibration)
            scores[k] = known[id(decided)]
    except Exception as error:
        if isinstance(error_score, str):
            raise
        return replace(mine, scores=np.full(fold.grid.size, error_score), error=error)
    return replace(mine, scores=scores)
