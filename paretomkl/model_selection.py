"""Cross-validation of several tasks: folds and splits within tasks, and scores per task."""

from ._select.scorers import MultiTaskScorer, make_multitask_scorer
from ._select.splits import (
    MultiTaskGroupKFold,
    MultiTaskKFold,
    MultiTaskShuffleSplit,
    MultiTaskStratifiedGroupKFold,
    MultiTaskStratifiedKFold,
    split_by_time,
)
from ._select.task_scores import ScoresByTask, score_by_task

__all__ = [
    "MultiTaskGroupKFold",
    "MultiTaskKFold",
    "MultiTaskScorer",
    "MultiTaskShuffleSplit",
    "MultiTaskStratifiedGroupKFold",
    "MultiTaskStratifiedKFold",
    "ScoresByTask",
    "make_multitask_scorer",
    "score_by_task",
    "split_by_time",
]
