"""Cross-validation of several tasks: folds that hold every label of every task, and scores task by task."""

from ._scorers import MultiTaskScorer, make_multitask_scorer
from ._splits import MultiTaskStratifiedKFold

# for search.py and report/trade_off.py until they import from the private modules
from ._scorers import check_scorer as check_scorer, scorer_takes as scorer_takes  # isort: skip
from ._splits import make_splits as make_splits, task_column_of as task_column_of  # isort: skip

__all__ = ["MultiTaskScorer", "MultiTaskStratifiedKFold", "make_multitask_scorer"]
