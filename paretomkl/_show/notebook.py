"""What searches and importances show in notebooks: a score, a verdict, and a chart of intervals with labelled axes."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._tools.typing import Array
from .._tools.wording import ACCURACY
from . import words
from .words import exponent_label, shorten

if TYPE_CHECKING:
    from .._select.results import CrossValidation

ROW, WIDTH = 22, 460  # pixels
MOST_LINES = 13  # of a chart; more are left out


def search_html(search: Any, score: str, cv: CrossValidation | None) -> str:
    """The score of a fitted search, what it chose and why, and a chart of the ways to share, or of p.

    cv: the scores along p of tasks that share their kernel, if there are any.
    """
    said = [f"<b>{html.escape(score)}</b>"]
    if not hasattr(search, "model_"):  # it only chose
        return f"<p>{said[0]}</p>"
    way, n_tasks, several = search.best_share_, search.n_tasks_, len(search.sharing_) > 1
    said += map(html.escape, words.verdict(way, search.best_params_, cv, None, n_tasks, several))
    said += [html.escape(search.sharing_in_words_)] * several
    said += ["Better than a plain model? See <code>paretomkl.report.compare(search, X, y)</code>."]
    return f"<p>{'<br/>'.join(said)}</p>{_chart_of_search(search, cv)}"


def _chart_of_search(search: Any, cv: CrossValidation | None) -> str:
    """The mean score over the folds and its standard error, of each way to share or of each p."""
    if len(search.sharing_) > 1:
        names, found = list(search.sharing_), np.array(list(search.sharing_.values()))
        what = "each way to share"
    elif cv is not None and len(cv.ps) > 1 and search.n_tasks_ > 1:
        names = [f"p = {exponent_label(p)}" for p in cv.ps]
        found, what = np.transpose([cv.mean, np.asarray(cv.std) / np.sqrt(cv.n_splits)]), "each p"
    else:
        return ""
    name, (mean, error) = score_name(search), np.nan_to_num(found).T
    in_percent = name == ACCURACY.name
    label = f"{name} of {what}" + " in %" * in_percent + ", mean over the folds ± standard error"
    return interval_chart(names, np.array([mean, mean - error, mean + error]) * (100 if in_percent else 1), label)


def score_name(search: Any) -> str:
    """What the scores of a search are called."""
    usual = ACCURACY.name if search.stratify else "explained variance"
    return usual if search.scoring is None else str(search.scoring)


def which_matter(names: Sequence[str], low: Array, high: Array) -> str:
    """Which sources, columns or kernels matter according to the intervals of what is lost without them."""
    groups = {
        "Shown to matter": low > 0,
        "Better left out": high < 0,
        "Not shown to matter": ~((low > 0) | (high < 0)),
    }
    some = {said: [names[k] for k in np.flatnonzero(of).tolist()] for said, of in groups.items()}
    return " ".join(f"{said}: {words.listing(of)}." for said, of in some.items() if of)


def interval_chart(names: Sequence[str], numbers: Array, label: str) -> str:
    """A line for each name, with a dot and a bar, above a labelled axis; numbers (3, n_names): mean, low and high."""
    names, numbers = names[:MOST_LINES], numbers[:, :MOST_LINES]
    if not np.isfinite(numbers).any():
        return ""
    ticks = _ticks(float(np.nanmin(numbers)), float(np.nanmax(numbers)))
    first, last = ticks[0], ticks[-1]
    left = 12 + 6.5 * max(len(shorten(name, 24)) for name in names)
    base = 8 + ROW * len(names)

    def x(value: float) -> float:
        return left + (WIDTH - left - 16) * (value - first) / (last - first)

    dark = {0.0: 0.9}  # other lines are faint
    drawn = [
        f'<path d="M{x(v):.1f} 4V{base}" stroke="currentColor" stroke-opacity="{dark.get(v, 0.2)}"/>' for v in ticks
    ]
    drawn += [_text(x(v), base + 16, f"{v:g}".replace("-", "−"), "middle") for v in ticks]
    for k, (name, (mean, low, high)) in enumerate(zip(names, numbers.T.tolist(), strict=True)):
        y = 8 + ROW * (k + 0.5)
        drawn.append(_text(left - 8, y + 4, shorten(name, 24), "end"))
        if math.isfinite(low + high):
            drawn.append(f'<path d="M{x(low):.1f} {y}H{x(high):.1f}" stroke="currentColor" stroke-width="1.5"/>')
        if math.isfinite(mean):
            drawn.append(f'<circle cx="{x(mean):.1f}" cy="{y}" r="4"/>')
    drawn.append(_text(0, base + 34, label, "start"))
    size = f'width="{WIDTH}" height="{base + 42}" viewBox="0 0 {WIDTH} {base + 42}"'
    return (
        f'<svg role="img" aria-label="{html.escape(label)}" {size} fill="currentColor" font-size="11" '
        f'font-family="sans-serif" style="max-width:100%">{"".join(drawn)}</svg>'
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.0f}" text-anchor="{anchor}">{html.escape(text)}</text>'


def _ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers around a range, at most ``most`` + 1 steps."""
    raw = max((high - low) / most, 1e-9 * max(1.0, abs(low)))
    power = 10.0 ** math.floor(math.log10(raw))
    step = power * next(f for f in (1, 2, 5, 10) if f * power >= raw * (1 - 1e-9))
    return [float(f"{k * step:.10g}") for k in range(math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9) + 1)]
