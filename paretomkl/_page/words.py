"""What a point of the path means, in plain words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._drawing import exponent_label, shorten
from .._typing import Array

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
SAME = 5e-4  # a relative change below this is none to a reader
HEADLINES = {
    0: "the geometric mean: equal relative gains count the same",
    1: "the plain average: every task counts the same",
    math.inf: "only the worst task counts",
    -math.inf: "only the easiest task counts",
}
NAMED = 3  # tasks that a sentence names at most


@dataclass(frozen=True)
class CrossValidation:
    """What a search over p and C found, at the C it chose.

    Parameters
    ----------
    ps, mean, std : sequences of float
        Exponents that were tried, rising; mean score over the folds, and its standard deviation, for each of them.
    best_p, best_C : float
        The pair with the best mean score.
    n_splits : int
        Folds.
    """

    ps: Sequence[float]
    mean: Sequence[float]
    std: Sequence[float]
    best_p: float
    best_C: float
    n_splits: int

    @classmethod
    def from_search(cls, search: Any) -> CrossValidation:
        """From a fitted :class:`~paretomkl.ParetoMKLClassifierCV`."""
        results = search.cv_results_
        best_p, best_C = search.best_params_["p"], search.best_params_["C"]
        rows = np.flatnonzero(results["param_C"] == best_C)
        rows = rows[np.argsort(results["param_p"][rows], kind="stable")]
        ps, mean, std = (results[name][rows].tolist() for name in ("param_p", "mean_test_score", "std_test_score"))
        return cls(ps, mean, std, float(best_p), float(best_C), search.n_splits_)

    @property
    def best_score(self) -> float:
        return self.mean[list(self.ps).index(self.best_p)]

    @property
    def standard_error(self) -> float:
        """Of the best mean score."""
        return self.std[list(self.ps).index(self.best_p)] / math.sqrt(self.n_splits)


# --------------------------------------------------------------------------------------------- numbers and names
def percent(share: float) -> str:
    """Two digits that count; what is nearly all or nearly nothing is not rounded to it."""
    value = 100 * abs(share)
    if 99.5 <= value < 100 * (1 - 1e-9):
        return "more than 99 %"
    if value >= 9.95:
        return f"{value:.0f} %"
    if value >= 0.095:
        return f"{value:.1f}".removesuffix(".0") + " %"
    return "less than 0.1 %" if value > 1e-9 else "0 %"


def percent_above(share: float) -> str:
    """A bound: one digit, rounded up."""
    value = 100 * share
    if value < 1e-4:
        return "0.0001 %"
    scale = 10.0 ** math.floor(math.log10(value))
    return f"{math.ceil(value / scale * (1 - 1e-12)) * scale:.4f}".rstrip("0").rstrip(".") + " %"


def points(difference: float) -> str:
    """A difference of accuracies in percentage points."""
    value = f"{100 * abs(difference):.1f}"
    return f"{value} point" + ("" if value == "1.0" else "s")


def number_word(count: int) -> str:
    return NUMBERS[count] if count < len(NUMBERS) else str(count)


def listing(names: Sequence[str]) -> str:
    """a, b and c; of many the first few."""
    shown = [shorten(name) for name in names[:NAMED]]
    if len(names) > NAMED:
        return f"{', '.join(shown)} and {len(names) - NAMED} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


# ------------------------------------------------------------------------------------------------- sentences
def headline(p: float, n_tasks: int = 2, preferences: bool = False) -> str:
    """Whom the mean listens to, in half a sentence."""
    if n_tasks == 1:
        return "one task: p changes nothing"
    if p == 1 and preferences:
        return "the average, weighted by your preferences"
    return HEADLINES.get(p, "hard tasks get more weight" if p > 1 else "easy tasks get more weight")


def who_carries(
    p: float, weights: Array, objectives: Array, names: Sequence[str], reference: Array | None = None
) -> str:
    """Which tasks have most of the weight, and what they have at p = 1 (``reference``: the weights there)."""
    n_tasks = len(weights)
    if n_tasks == 1:
        return "There is one task only, and its objective is the mean at every p."
    if np.allclose(weights, weights[0], rtol=1e-6):
        return f"Every task carries {percent(1 / n_tasks)} of the weight."
    if p == 1:
        low, high = percent(float(weights.min())), percent(float(weights.max()))
        return f"Every task carries the weight you gave it, from {low} to {high}."
    if math.isinf(p):
        chosen = np.argsort(-weights, kind="stable")[: max(1, int((weights > 0.005).sum()))]
        which = listing([names[t] for t in chosen])
        degree = "largest" if p > 0 else "smallest"
        if len(chosen) == 1:
            return f"The task with the {degree} objective, {which}, carries all the weight."
        many = number_word(len(chosen)).capitalize()
        return f"{many} tasks share the {degree} objective and all the weight: {which}."
    hard = p > 1
    order = np.argsort(-objectives if hard else objectives, kind="stable")
    degree = "hardest" if hard else "easiest"
    count = 1 + int(np.searchsorted(np.cumsum(weights[order]), 0.5))
    third = n_tasks >= 3 and 3 * count > n_tasks
    count = max(1, round(n_tasks / 3)) if third else min(count, n_tasks - 1)
    chosen = order[:count]
    share = percent(float(weights[chosen].sum()))
    before = "" if reference is None else f" ({percent(float(reference[chosen].sum()))} at p = 1)"
    if count == 1:
        degree = {"hardest": "harder", "easiest": "easier"}[degree] if n_tasks == 2 else degree
        return f"The {degree} task, {shorten(names[chosen[0]])}, carries {share} of the weight{before}."
    which = listing([names[t] for t in chosen])
    if third and n_tasks > 6:
        return f"The {degree} third of the tasks carries {share} of the weight{before}: {which}."
    return f"The {number_word(count)} {degree} tasks carry {share} of the weight{before}: {which}."


def change_of_objectives(reference_p: float, objectives: Array, reference: Array, names: Sequence[str]) -> list[str]:
    """What the objectives do against those at another p: the hardest, the easiest, and how many gain and lose."""
    n_tasks = len(objectives)
    change = objectives / reference - 1
    if n_tasks == 1 or not (np.abs(change) >= SAME).any():
        return []
    hardest, easiest = int(reference.argmax()), int(reference.argmin())
    degrees = ("harder", "easier") if n_tasks == 2 else ("hardest", "easiest")
    first = (
        f"Against p = {exponent_label(reference_p)} the {degrees[0]} task's objective ({shorten(names[hardest])}) "
        f"{_moves(change[hardest])}, the {degrees[1]}'s ({shorten(names[easiest])}) {_moves(change[easiest])}."
    )
    if n_tasks == 2:
        return [first]
    gains, losses = int((change <= -SAME).sum()), int((change >= SAME).sum())
    best, worst = int(change.argmin()), int(change.argmax())
    extremes = []
    if gains:
        extremes.append(f"{shorten(names[best])} gains most (−{percent(change[best])})")
    if losses:
        extremes.append(f"{shorten(names[worst])} loses most (+{percent(change[worst])})")
    return [
        first,
        f"Lower is better: {number_word(gains)} of {n_tasks} tasks {'gains' if gains == 1 else 'gain'} and "
        f"{number_word(losses)} {'loses' if losses == 1 else 'lose'}; "
        f"{', '.join(extremes)}.",
    ]


def _moves(change: float) -> str:
    if abs(change) < SAME:
        return "stays as it is"
    return f"{'falls' if change < 0 else 'rises'} by {percent(change)}"


def change_of_accuracy(
    reference_p: float, overall: float, overall_there: float | None, accuracy: Array, accuracy_there: Array | None
) -> str:
    """Held-out accuracy, and its difference to that at another p (None at that p itself)."""
    sentence = f"Held-out accuracy is {100 * overall:.1f} %"
    if overall_there is None or accuracy_there is None:
        return sentence + "."
    at = f"at p = {exponent_label(reference_p)}"
    difference = overall - overall_there
    if abs(difference) < SAME:
        sentence += f", as {at}"
    else:
        sentence += f", {points(difference)} {'more' if difference > 0 else 'less'} than {at}"
    if len(accuracy) > 1:
        better = int((accuracy > accuracy_there + 1e-9).sum())
        worse = int((accuracy < accuracy_there - 1e-9).sum())
        same = int(np.isfinite(accuracy).sum()) - better - worse
        sentence += (
            f": {number_word(better)} task{' is' if better == 1 else 's are'} better, {number_word(worse)} worse, "
            f"{number_word(same)} as before"
            if better or worse
            else ", task by task"
        )
    return sentence + "."


def heaviest_kernel(theta: Array, names: Sequence[str]) -> str:
    """Which kernel carries most, and how many hardly any of the weight."""
    if len(theta) == 1:
        return ""
    share = theta / theta.sum()
    m = int(share.argmax())
    light = int((share < 0.01).sum())
    rest = f"; {number_word(light)} of {len(theta)} kernels carry less than 1 % each" if light > 1 else ""
    return f"Of the kernel weights {shorten(names[m])} has {percent(float(share[m]))}{rest}."


def certificate(p: float, gap: float) -> str:
    """What the gap guarantees."""
    bound = percent_above(gap)
    if p < 1:
        return (
            f"Certified: no kernel weights lower the sum of the objectives, weighted as here, by more than {bound}, "
            "so no other choice is better for every task by more than that."
        )
    if math.isinf(p):
        return f"Certified: no kernel weights lower the largest objective by more than {bound}."
    what = "average" if p == 1 else "mean M_p"
    return f"Certified: no kernel weights lower the {what} of the objectives by more than {bound}."


def choice(cv: CrossValidation) -> str:
    """Which p cross-validation would pick, and whether that matters."""
    sentence = (
        f"Cross-validation ({cv.n_splits} folds of the training part) would pick p = {exponent_label(cv.best_p)} with "
        f"C = {cv.best_C:g}: {100 * cv.best_score:.1f} %, standard error {points(cv.standard_error)}."
    )
    if len(cv.ps) == 1:
        return sentence
    near = [p for p, mean in zip(cv.ps, cv.mean, strict=True) if mean >= cv.best_score - cv.standard_error - 1e-12]
    if 1.0 in cv.ps and cv.best_p != 1.0:
        behind = cv.best_score - cv.mean[list(cv.ps).index(1.0)]
        sentence += f" The average, p = 1, is {'as good' if behind < SAME else points(behind) + ' behind'}."
    if len(near) == len(cv.ps):
        return sentence + f" All {len(near)} exponents tried are within that error: the choice matters little."
    are = "is" if len(near) == 1 else "are"
    return sentence + f" {number_word(len(near)).capitalize()} of {len(cv.ps)} exponents tried {are} within that error."
