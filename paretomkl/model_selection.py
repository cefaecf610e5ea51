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

__all__ = [
    "MultiTaskGroupKFold",
    "MultiTaskKFold",
    "MultiTaskScorer",
    "MultiTaskShuffleSplit",
    "MultiTaskStratifiedGroupKFold",
    "MultiTaskStratifiedKFold",
    "make_multitask_scorer",
    "split_by_time",
]
