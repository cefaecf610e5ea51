"""Cross-validation of several tasks: folds that hold every label of every task, and scores task by task."""

from ._scorers import MultiTaskScorer, make_multitask_scorer
from ._splits import MultiTaskStratifiedKFold

__all__ = ["MultiTaskScorer", "MultiTaskStratifiedKFold", "make_multitask_scorer"]
