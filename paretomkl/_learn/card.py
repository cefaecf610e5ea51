"""A card that tells people what a fitted model is, how good it is, and what to know before they use it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from .. import __version__
from .._fitting.models import Support
from .._tools.wording import counted, joined, percent
from ..kernels._kernels import as_bank
from .saving import _parts

NAMED = ("share", "p", "C", "s", "capacity", "epsilon", "loss", "class_weight")  # parameters in the order of the card
MOST_LISTED = 30  # tasks, classes and columns


def model_card(
    model: Any, *, by_task: Any = None, importances: Any = None, target: str = "", features: Sequence[str] = ()
) -> str:
    """Markdown about a fitted estimator or search.

    by_task: its scores on held-out rows, with intervals; importances: what
    :func:`~paretomkl.inspection.importance` found; target, features: names of columns, where they are known.
    """
    check_is_fitted(model, "model_")
    sections = {
        "Training rows": _table(["task", "rows"], model.rows_in_.items()),
        "Parameters": _table(["parameter", "value"], _parameters(model).items()),
        "Held-out scores": _scores(model, by_task),
    }
    if shares := getattr(model, "source_shares_", None):
        told = "Shares say what the model uses, not what it needs: `paretomkl.inspection.importance` measures that."
        rows = [(name, percent(float(np.mean(share)))) for name, share in shares.items()]
        sections["Sources"] = f"{_table(['source', 'share'], rows)}\n\n{told}"
    if importances is not None:
        sections["Importances"] = _importances(importances)
    sections["What to know"] = "\n".join(f"- {sentence}" for sentence in _to_know(model))
    text = "\n\n".join(f"## {title}\n\n{body}" for title, body in sections.items())
    return f"# Model card\n\n{_what(model, target, features)}\n\n{text}\n"


def _what(model: Any, target: str, features: Sequence[str]) -> str:
    """What the model predicts, and from what."""
    answer = f"`{target}`" if target else "the target"
    if is_classifier(model) and np.ndim(model.classes_) == 1 and not isinstance(model.classes_, list):
        answer += f", one of {_few([str(one) for one in model.classes_])},"
    elif not is_classifier(model):
        answer += ", a number," if hasattr(model, "predict") else ""
    known = [str(name) for name in getattr(model, "feature_names_in_", [])]
    names = list(features) or [name for name in known if name != str(model.task_column)]
    number = len(names) or int(getattr(model, "n_features_in_", 0))
    columns = f": {_few(names)}" if names else ""
    kind = type(model).__name__
    return f"A {kind} of paretomkl {__version__}. It predicts {answer} from {counted(number, 'column')}{columns}."


def _few(names: Sequence[str]) -> str:
    rest = len(names) - MOST_LISTED
    return joined([*names[:MOST_LISTED], *[f"{rest:,} more"] * (rest > 0)])


def _table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table in Markdown; a bar in a cell would end it."""
    lines = [[str(cell).replace("|", "\\|") for cell in row] for row in [header, ["---"] * len(header), *rows]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _parameters(model: Any) -> dict[str, Any]:
    """The parameters it was fitted with, those that were chosen included."""
    plain = getattr(model, "best_estimator_", model)
    given = plain.get_params(deep=False)
    bank = as_bank(given.get("kernels", "default"))
    given |= {"capacity": bank.capacity if bank.normalization == "capacity" else None} | getattr(
        model, "best_params_", {}
    )
    if given.get("share") != "kernel":
        given.pop("p", None)  # which has no effect
    return {name: f"{v:g}" if isinstance(v, float) else v for name in NAMED if (v := given.get(name)) is not None}


def _scores(model: Any, by_task: Any) -> str:
    if by_task is not None:
        told = "On rows that the models which predicted them had not seen."
        return f"{told}\n\n{_table(['task', *by_task.header[1:]], by_task.cells())}"
    if not hasattr(model, "honest_interval_"):
        return "None: the model was fitted without folds. Score it on rows that it has not seen."
    low, high = model.honest_interval_
    scoring = model.scoring or ("accuracy" if is_classifier(model) else "explained variance")
    between = "" if math.isnan(low) else f", 95 % interval {low:.3f} to {high:.3f}"
    return f"{scoring} {model.honest_score_:.3f}{between}; in each fold with parameters that the other folds choose."


def _importances(found: Any) -> str:
    """What each source, column or kernel is worth, the most important ones first."""
    way = "left out" if found.measure == "leave-out" else "permuted"
    told = f"Loss of score on held-out rows if a {found.by} is {way}; nothing is certain where the interval contains 0."
    rows = [
        (found.names[k], f"{found.mean[k]:.3f}", f"{found.low[k]:.3f} to {found.high[k]:.3f}")
        for k in np.argsort(-found.mean, kind="stable")[:MOST_LISTED]
    ]
    return f"{told}\n\n{_table([found.by, 'loss', f'{percent(found.confidence)} interval'], rows)}"


def _to_know(model: Any) -> list[str]:
    n_rows, n_kept = sum(model.rows_in_.values()), n_rows_in(model)
    said = [
        f"Its file contains {n_kept:,} of the {n_rows:,} training rows as they were given, without the target, because "
        "decisions compare new rows with them. They cannot be left out: do not pass the file to people who may not see "
        "these rows."
        if n_kept
        else "It contains no columns of training rows.",
        "Scores hold for rows like those of training; predictions for values far outside their range are guesses.",
    ]
    if len(model.sources_) > 1:
        common = hasattr(model, "common_share_") or getattr(model, "best_share_", model.share) == "everything"
        said.append(
            "It predicts rows of tasks that it has not seen with what the tasks have in common."
            if common
            else "It has no function for tasks that it has not seen, and refuses their rows."
        )
    if math.isfinite(gap := float(np.max(getattr(model, "gap_", math.nan)))):
        said.append(f"Its objective is certified to be within {100 * gap:.2g} % of the optimum.")
    return said


def n_rows_in(model: Any) -> int:
    """How many distinct training rows a model contains."""
    found: set[bytes] = set()
    for part in _parts(model):
        if isinstance(part, Support) and part.vectors is not None:
            vectors: Any = part.vectors
            rows = vectors.toarray() if issparse(vectors) else vectors
            found |= {row.tobytes() for row in np.ascontiguousarray(rows)}
    return len(found)
