"""Scores of probabilities in searches: those of a fold are calibrated on the decisions of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._learn.calibration import Calibration
from .folds import Fold, FoldScores, scored_by_user
from .refolds import held_out_part


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
                    held_out_part(one.held_out.tasks, one.held_out.decided[k], folds[one.number, one.way].test)
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
