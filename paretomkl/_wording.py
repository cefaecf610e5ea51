"""Numbers and lists in messages as people write them, and what a mistyped name was meant to be."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher, get_close_matches

MOST_LISTED = 30  # names in a message; of more, those most like the one that was asked for
LIKELY = 0.75  # similarity from which on a name is worth a guess; …
SHORT_NAME, SHORT_LIKELY = 4, 0.6  # … two letters swapped in one of four or less cost more
KERNEL = re.compile(r"\b(gaussian|laplacian|polynomial)(?:\(\w+=([^,)]+)(?:, ([^)]*))?\))?")
SHORT = {"gaussian": "rbf", "laplacian": "laplacian", "polynomial": "poly"}


def split_names(text: str) -> list[str]:
    """Names separated by commas, those that hold a comma in quotation marks; blanks around them do not count."""
    return [name.strip() for row in csv.reader([text], skipinitialspace=True) for name in row if name.strip()]


def counted(n: int, what: str) -> str:
    """``1 row``, ``2 rows``, ``1,200 rows``."""
    return f"{n:,} {what if n == 1 else f'{what}s'}"


def joined(words: Iterable[str], word: str = "and") -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    *first, last = words
    return f"{', '.join(first)} {word} {last}" if first else last


def quoted(names: Iterable[object], most: int | None = None) -> str:
    """Names in quotation marks, of many the first."""
    words = [repr(str(name)) for name in names]
    rest = 0 if most is None else len(words) - most
    return f"{', '.join(words[:most])} and {rest:,} more" if rest > 0 else joined(words)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name that was probably meant: the same but for case, blanks and dashes, misspelt, or begun; else None."""
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


def _likeness(name: str, other: str) -> float:
    return SequenceMatcher(None, _plain(name), _plain(other)).ratio()


def hint(names: Sequence[str], known: Sequence[str], what: str) -> str:
    """What names that do not exist could have been: ``did you mean 'age'?``; or what there is, nearest first."""
    guesses = list(dict.fromkeys(guess for name in names if (guess := nearest(name, known)) is not None))
    if len(guesses) == len(names):
        return f"did you mean {joined([repr(guess) for guess in guesses])}?"
    shown = known
    if len(known) > MOST_LISTED:
        shown = sorted(known, key=lambda one: -max(_likeness(name, one) for name in names))[:MOST_LISTED]
    first = f"did you mean {joined([repr(guess) for guess in guesses])}? The" if guesses else "the"
    listed = joined([str(name) for name in shown])
    if len(shown) < len(known):
        return f"{first} {len(shown)} of {len(known):,} {what}s most like it are {listed}."
    return f"{first} {what}s are {listed}."


def short_kernel(name: str) -> str:
    """The name of a kernel as the shell takes it, short: ``rbf 0.0078`` for ``gaussian(sigma=0.0078125)``."""

    def shortened(found: re.Match[str]) -> str:
        kind, value, rest = found.groups()
        return SHORT[kind] + (f" {float(value):.3g}" if value else "") + (f" ({rest})" if rest else "")

    return KERNEL.sub(shortened, name)
