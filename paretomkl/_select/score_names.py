"""Names of scores; a separate module, so that checking one does not load scikit-learn."""

from __future__ import annotations

from .._tools.wording import did_you_mean

# name of a scikit-learn scorer: its name in a sentence, and whether it is shown in per cent
NAMES = {
    "accuracy": ("accuracy", True),
    "balanced_accuracy": ("balanced accuracy", True),
    "f1": ("F1", False),
    "f1_macro": ("macro F1", False),
    "f1_weighted": ("weighted F1", False),
    "precision": ("precision", True),
    "precision_macro": ("macro precision", True),
    "recall": ("recall", True),
    "recall_macro": ("macro recall", True),
    "roc_auc": ("ROC AUC", False),
    "average_precision": ("average precision", False),
    "matthews_corrcoef": ("Matthews correlation", False),
}
# the same for numbers, and whether it is in units of the target
NUMBER_NAMES = {
    "r2": ("R²", False),
    "explained_variance": ("explained variance", False),
    "neg_mean_squared_error": ("negative mean squared error", True),
    "neg_root_mean_squared_error": ("negative root mean squared error", True),
    "neg_mean_absolute_error": ("negative mean absolute error", True),
    "neg_median_absolute_error": ("negative median absolute error", True),
    "neg_max_error": ("negative largest error", True),
}
OF_TWO_CLASSES = ("f1", "jaccard", "precision", "recall", "roc_auc")
WORST = "worst_"  # prefix for the lowest task score instead of the mean over tasks
OF_PROBABILITIES = ("log_loss", "brier", "roc_auc_ov")  # parts of the names of scorers that need probabilities


def check_score_name(name: str, option: str, regression: bool) -> None:
    """Raise unless it is the name of a score, without ``worst_``, for classes or for numbers."""
    names = NUMBER_NAMES if regression else NAMES
    if name in names:
        return
    if not regression and any(part in name for part in OF_PROBABILITIES):
        raise ValueError(needs_probabilities(name, option))
    meant = did_you_mean(name, names, f"; use one of {', '.join(names)}.")
    raise ValueError(f"{name!r} is not a score for {'numbers' if regression else 'classes'} ({option}){meant}")


def check_score_fits(name: str, regression: bool, n_classes: int | None) -> None:
    """Raise if a score is for numbers but y holds classes, or the reverse, or if it compares two of several classes."""
    if name in (NAMES if regression else NUMBER_NAMES):
        held, other, instead = ("numbers", "classes", "r2") if regression else ("classes", "numbers", "accuracy")
        raise ValueError(f"scoring={name!r} is for {other}, but y holds {held}; use {instead!r}.")
    if n_classes is not None and n_classes > 2 and name in OF_TWO_CLASSES:
        raise ValueError(
            f"scoring={name!r} compares two classes, but y has {n_classes}; use 'balanced_accuracy' or 'f1_macro'."
        )


def needs_probabilities(name: str, option: str) -> str:
    """A message about a score that needs probabilities."""
    return f"The score {name} needs probabilities ({option}), which support vector machines do not have; try roc_auc."
