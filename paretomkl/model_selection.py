"""Cross-validation of several tasks: folds and splits within tasks, and scores per task."""

from ._select.scorers import MultiTaskScorer, make_multitask_scorer
from ._select.splits import MultiTaskKFold, MultiTaskShuffleSplit, MultiTaskStratifiedKFold, split_by_time

__all__ = [
    "MultiTaskKFold",
    "MultiTaskScorer",
    "MultiTaskShuffleSplit",
    "MultiTaskStratifiedKFold",
    "make_multitask_scorer",
    "split_by_time",
]
