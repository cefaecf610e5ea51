"""Numbers and lists for messages, guesses for mistyped names, and the names of scores."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

LONGEST_MESSAGE = 400  # characters
MOST_LISTED = 30  # maximum number of names in a message: those most similar to the requested one
LIKELY = 0.75  # similarity above which a name is worth a guess; …
SHORT_NAME, SHORT_LIKELY = 4, 0.6  # … lower for names of up to four letters, where two swapped letters cost more
KERNEL = re.compile(r"\b(gaussian|laplacian|polynomial)(?:\(\w+=([^,)]+)(?:, ([^)]*))?\))?")
SHORT = {"gaussian": "rbf", "laplacian": "laplacian", "polynomial": "poly"}
SAME = 5e-4  # readers do not notice a smaller relative change


def split_names(text: str) -> list[str]:
    """Split names at commas; names with a comma are quoted, and surrounding spaces are ignored."""
    return [name.strip() for row in csv.reader([text], skipinitialspace=True) for name in row if name.strip()]


def literal(value: Any) -> str:
    """A value as Python code; NumPy scalars, also inside lists, tuples and dicts, look like Python's own."""
    kind = type(value)
    if kind.__module__ == "numpy" and kind.__name__ != "ndarray" and hasattr(value, "item"):
        return repr(str(value) if value.dtype.kind in "mM" else value.item())
    if kind is dict:
        return f"{{{', '.join(f'{literal(key)}: {literal(item)}' for key, item in value.items())}}}"
    if kind is list:
        return f"[{', '.join(map(literal, value))}]"
    if kind is tuple:
        return f"({', '.join(map(literal, value))}{',' * (len(value) == 1)})"
    return repr(value)


def counted(n: int, what: str) -> str:
    """``1 row``, ``2 rows``, ``1,200 rows``."""
    return f"{n:,} {what if n == 1 else f'{what}s'}"


def joined(words: Iterable[str], word: str = "and") -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    *first, last = words
    return f"{', '.join(first)} {word} {last}" if first else last


def bounded(message: str, most: int = LONGEST_MESSAGE) -> str:
    """A message cut to a length that people read."""
    return message if len(message) <= most else f"{message[: most - 1]}…"


def quoted(names: Iterable[object], most: int | None = None) -> str:
    """Quoted names, at most the first ``most``."""
    words = [repr(str(name)) for name in names]
    rest = 0 if most is None else len(words) - most
    return f"{', '.join(words[:most])} and {rest:,} more" if rest > 0 else joined(words)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The most likely intended name: equal up to case, spaces and dashes, misspelt, or abbreviated; else None."""
    known: dict[str, str] = {}
    for one in names:
        known.setdefault(_plain(one), one)
    asked = _plain(name)
    if not asked:
        return None
    found = (
        [asked]
        if asked in known
        else get_close_matches(asked, known, n=1, cutoff=SHORT_LIKELY if len(asked) <= SHORT_NAME else LIKELY)
    )
    found = found or [one for one in known if one.startswith(asked) or (one and asked.startswith(one))][:1]
    return known[found[0]] if found else None


def did_you_mean(name: str, names: Iterable[str], otherwise: str = ".") -> str:
    """The end of a sentence about a name that does not exist: ``; did you mean 'age'?``, or ``otherwise``."""
    near = nearest(name, names)
    return otherwise if near is None else f"; did you mean {near!r}?"


def hint(names: Sequence[str], known: Sequence[str], what: str) -> str:
    """A hint for names that do not exist: ``did you mean 'age'?``, or the existing names, most similar first."""
    guesses = list(dict.fromkeys(guess for name in names if (guess := nearest(name, known)) is not None))
    if len(guesses) == len(names):
        return f"did you mean {joined([repr(guess) for guess in guesses])}?"
    shown = known
    if len(known) > MOST_LISTED:
        plain = {_plain(one): one for one in known}
        shown = [plain[one] for one in get_close_matches(_plain(names[0]), plain, MOST_LISTED, cutoff=0.0)]
    first = f"did you mean {joined([repr(guess) for guess in guesses])}? The" if guesses else "the"
    listed = joined([str(name) for name in shown])
    if len(shown) < len(known):
        return f"{first} {len(shown)} most similar of {len(known):,} {what}s are {listed}."
    return f"{first} {what}s are {listed}."


def short_kernel(name: str) -> str:
    """A short name of a kernel in the style of the command line: ``rbf 0.0078`` for ``gaussian(sigma=0.0078125)``."""

    def shortened(found: re.Match[str]) -> str:
        kind, value, rest = found.groups()
        return SHORT[kind] + (f" {float(value):.3g}" if value else "") + (f" ({rest})" if rest else "")

    return KERNEL.sub(shortened, name)


# ----------------------------------------------------------------------------------------------- scores
def percent(share: float) -> str:
    """A share in per cent with two significant digits; nearly all and nearly nothing are not rounded to 100 and 0."""
    value = 100 * abs(share)
    if 99.5 <= value < 100 * (1 - 1e-9):
        return "more than 99 %"
    if value >= 9.95:
        return f"{value:.0f} %"
    if value >= 0.095:
        return f"{value:.1f}".removesuffix(".0") + " %"
    return "less than 0.1 %" if value > 1e-9 else "0 %"


def in_digits(value: float, digits: int = 4) -> str:
    """A number with this many significant digits, without an exponent unless it is tiny or huge."""
    if value == 0 or not 1e-4 <= abs(value) < 1e7:
        return re.sub(r"e([+-])0?", r"e\1", f"{value:.{digits}g}").replace("e+", "e")
    return f"{value:.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"


def points(difference: float) -> str:
    """A difference of shares in percentage points."""
    value = f"{100 * abs(difference):.1f}"
    return f"{value} point" + ("" if value == "1.0" else "s")


@dataclass(frozen=True)
class Measure:
    """A score, and how to show it.

    Parameters
    ----------
    name : str
        Its name in sentences: "balanced accuracy".
    key : str
        Its name in files: "balanced_accuracy".
    percent : bool
        Whether to show it in per cent, and its differences in percentage points.
    in_units : bool, default=False
        Whether it is in units of the target. It can then have any size, and is shown with four digits.
    """

    name: str = "accuracy"
    key: str = "accuracy"
    percent: bool = True
    in_units: bool = False

    @property
    def of_worst(self) -> bool:
        """Whether it is the score of the worst task, not a mean over tasks."""
        return self.key.startswith(WORST)

    def text(self, value: float) -> str:
        """A value as text: "91.2 %", "0.912", "−104.2" or "not defined"."""
        if not math.isfinite(value):
            return "not defined"
        return f"{100 * value:.1f} %" if self.percent else self._number(value)

    def size(self, difference: float) -> str:
        """A difference without its sign: "2.1 points" or "0.021"."""
        return points(difference) if self.percent else self._number(abs(difference))

    def error(self, value: float) -> str:
        """A standard error as text to follow a value, without a per cent sign."""
        return f"{100 * value:.1f}" if self.percent else self._number(value, 2)

    def interval(self, low: float, high: float) -> str:
        """The ends of an interval as text: "88.1 to 96.4", or "" if unknown."""
        if not (math.isfinite(low) and math.isfinite(high)):
            return ""
        return (
            f"{100 * low:.1f} to {100 * high:.1f}" if self.percent else f"{self._number(low)} to {self._number(high)}"
        )

    def with_interval(self, value: float, low: float, high: float) -> str:
        """A value and its interval if known: "91.2 % (88.1 to 96.4)"."""
        interval = self.interval(low, high)
        return self.text(value) + f" ({interval})" * bool(interval)

    def with_error(self, value: float, error: float) -> str:
        """A value and its standard error if known: "91.2 % ± 1.1"; not "100.0 % ± 0.2", which no score can have."""
        shown = math.isfinite(value + error) and not self.at_end(value)
        return self.text(value) + f" ± {self.error(error)}" * shown

    def at_end(self, value: float) -> bool:
        """Whether it is a share that is shown as 0 or 100 %."""
        return self.percent and self.text(value) in ("0.0 %", "100.0 %")

    def same(self, difference: float, value: float) -> bool:
        """Whether a difference from a value is too small to notice."""
        return abs(difference) < SAME * (abs(value) if self.in_units else 1.0)

    def _number(self, value: float, digits: int = 4) -> str:
        return (in_digits(value, digits) if self.in_units else f"{value:.3f}").replace("-", "−")


ACCURACY = Measure()
R2 = Measure("R²", "r2", percent=False)
# scores of scikit-learn by name, here so that checking a name does not load scikit-learn
CLASS_MEASURES = {
    measure.key: measure
    for measure in (
        ACCURACY,
        Measure("balanced accuracy", "balanced_accuracy"),
        Measure("F1", "f1", percent=False),
        Measure("macro F1", "f1_macro", percent=False),
        Measure("weighted F1", "f1_weighted", percent=False),
        Measure("precision", "precision"),
        Measure("macro precision", "precision_macro"),
        Measure("recall", "recall"),
        Measure("macro recall", "recall_macro"),
        Measure("ROC AUC", "roc_auc", percent=False),
        Measure("average precision", "average_precision", percent=False),
        Measure("Matthews correlation", "matthews_corrcoef", percent=False),
    )
}
REGRESSION_MEASURES = {
    measure.key: measure
    for measure in (
        R2,
        Measure("explained variance", "explained_variance", percent=False),
        Measure("negative mean squared error", "neg_mean_squared_error", percent=False, in_units=True),
        Measure("negative root mean squared error", "neg_root_mean_squared_error", percent=False, in_units=True),
        Measure("negative mean absolute error", "neg_mean_absolute_error", percent=False, in_units=True),
        Measure("negative median absolute error", "neg_median_absolute_error", percent=False, in_units=True),
        Measure("negative largest error", "neg_max_error", percent=False, in_units=True),
    )
}
OF_TWO_CLASSES = ("f1", "jaccard", "precision", "recall", "roc_auc")
OF_PROBABILITIES = ("log_loss", "brier", "roc_auc_ov")  # parts of the names of scorers that need probabilities
WORST = "worst_"  # prefix for the lowest task score instead of the mean over tasks


def check_score_name(name: str, option: str, regression: bool) -> None:
    """Raise unless it is the name of a score, without ``worst_``, for classes or for numbers."""
    names = REGRESSION_MEASURES if regression else CLASS_MEASURES
    if name in names:
        return
    if not regression and any(part in name for part in OF_PROBABILITIES):
        raise ValueError(needs_probabilities(name, option))
    meant = did_you_mean(name, names, f"; use one of {', '.join(names)}.")
    raise ValueError(f"{name!r} is not a score for {'numbers' if regression else 'classes'} ({option}){meant}")


def check_score_fits(name: str, regression: bool, n_classes: int | None) -> None:
    """Raise if a score is for numbers but y has classes, or the reverse, or if it compares two of several classes."""
    if name in (CLASS_MEASURES if regression else REGRESSION_MEASURES):
        held, other, instead = ("is numeric", "classes", "r2") if regression else ("has classes", "numbers", "accuracy")
        raise ValueError(f"scoring={name!r} is for {other}, but y {held}; use {instead!r}.")
    if n_classes is not None and n_classes > 2 and name in OF_TWO_CLASSES:
        raise ValueError(
            f"scoring={name!r} compares two classes, but y has {n_classes}; use 'balanced_accuracy' or 'f1_macro'."
        )


def needs_probabilities(name: str, option: str) -> str:
    """A message about a score that needs probabilities."""
    return f"The score {name} needs probabilities ({option}), which the baselines do not have; try roc_auc."
