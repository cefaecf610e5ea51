"""Numbers and lists for messages, and guesses for mistyped names."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

MOST_LISTED = 30  # maximum number of names in a message: those most similar to the requested one
LIKELY = 0.75  # similarity above which a name is worth a guess; …
SHORT_NAME, SHORT_LIKELY = 4, 0.6  # … lower for names of up to four letters, where two swapped letters cost more
KERNEL = re.compile(r"\b(gaussian|laplacian|polynomial)(?:\(\w+=([^,)]+)(?:, ([^)]*))?\))?")
SHORT = {"gaussian": "rbf", "laplacian": "laplacian", "polynomial": "poly"}


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
