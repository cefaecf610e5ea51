"""How a path is shown as HTML: a page with linked charts and a slider over p, and tables for notebooks."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .._tools.files import write_whole
from .._tools.typing import AnyArray, Array, IntArray
from .._tools.wording import Measure, counted
from ..scalarizations import PAPER_PS
from . import words
from .code import exponent_code
from .words import ExponentAxis, exponent_label, plain_kernel, pool_shares, shorten, shorten_all

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .._learn.path import ParetoPath
    from .._select.results import Comparison, CrossValidation, Sharing
    from ..machines import MachineKind
    from ..report import Confusion, Predictions

PageData: TypeAlias = dict[str, object]  # what the page knows, as JSON

ANCHORS = PAPER_PS[:-1] + (100.0, 200.0, np.inf)  # beyond 50 the weights still move, but the objectives hardly do
MOST_COLORS = 7  # of kernels or sources; if there are more, the last one pools the lightest
BRIEF = (16, 24, 40)  # letters of a task's name where space is short
DIGITS = 6  # significant digits of numbers in the file
TITLE = "The trade-off between the tasks"
MOST_ROWS = 13  # points of a path in a table
HEAVIEST = 6  # tasks and kernels of an estimator to list
STYLE = 'cellpadding="4" style="border-collapse:collapse;font-size:90%;text-align:right"'


def dense_ps(n: int = 121) -> tuple[float, ...]:
    """Exponents from 0.01 to 200, evenly spaced on a log scale, and ∞; they include all exponents of the paper.

    They have three digits each (four if there are many), so the p you see is exactly the p of the model.

    Parameters
    ----------
    n : int, default=121
        Number of exponents.

    Returns
    -------
    tuple of float
        The exponents in increasing order.

    Examples
    --------
    >>> from paretomkl import PAPER_PS
    >>> from paretomkl.report import dense_ps
    >>> len(dense_ps()), set(PAPER_PS) <= set(dense_ps())
    (121, True)
    """
    if not len(ANCHORS) <= n <= 1000:
        raise ValueError(f"A dense grid has {len(ANCHORS)} to 1000 exponents, got n={n}.")
    finite = np.array(ANCHORS[:-1])
    lengths = np.log(finite[1:] / finite[:-1])
    inside = np.floor((n - len(ANCHORS)) * lengths / lengths.sum()).astype(int)
    for _ in range(n - len(ANCHORS) - inside.sum()):  # the rest go where the steps are widest
        inside[np.argmax(lengths / (inside + 1))] += 1
    digits = 3 if n <= 300 else 4
    between = [
        float(f"{p:.{digits}g}")
        for low, high, count in zip(finite[:-1], finite[1:], inside, strict=True)
        for p in np.geomspace(low, high, count + 2)[1:-1]
    ]
    return tuple(sorted({*ANCHORS, *between}))


def write_page(file: str | os.PathLike[str], path: ParetoPath, **options: Any) -> Path:
    """Write the page of a path.

    The file is written completely or not at all: to a temporary file first, which is then moved into place.

    Parameters
    ----------
    file : path
        The file to write.
    path : ParetoPath
        The path to show.
    **options : dict
        The options of :func:`build_page`.

    Returns
    -------
    pathlib.Path
        The file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl import pareto_path
    >>> from paretomkl.report import write_page
    >>> path = pareto_path(*load_iris(return_X_y=True))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_page(pathlib.Path(folder) / "page.html", path).name
    'page.html'
    """
    return write_whole(file, build_page(path, **options))


def build_page(
    path: ParetoPath,
    *,
    scores: ArrayLike | None = None,
    scores_overall: ArrayLike | None = None,
    measure: Measure | None = None,
    n_held_out: ArrayLike | None = None,
    predictions: Predictions | None = None,
    confusion: Confusion | None = None,
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
    low_overall: ArrayLike | None = None,
    high_overall: ArrayLike | None = None,
    cv: CrossValidation | None = None,
    comparison: Comparison | None = None,
    sharing: Sharing | None = None,
    title: str = TITLE,
    facts: Sequence[str] = (),
    verdict: Sequence[str] = (),
    refit: str | None = None,
    refit_note: str = "",
) -> str:
    """Build the page of a path as text.

    Parameters
    ----------
    path : ParetoPath
        The path to show; use the exponents of :func:`dense_ps` if the charts should move smoothly.
    scores : array-like of shape (n_points, n_tasks), default=None
        Held-out score of each task at each exponent; NaN where undefined.
    scores_overall : array-like of shape (n_points,), default=None
        Held-out score of all tasks together; None means the mean over the tasks.
    measure : Measure
        What the scores are and how to show them; by default accuracy in per cent, or R² for regression.
    n_held_out : array-like of shape (n_tasks,), default=None
        Number of held-out samples of each task.
    predictions : Predictions, default=None
        Predicted and true numbers of held-out samples at each exponent.
    confusion : Confusion, default=None
        Which classes the models confuse, at each exponent.
    low, high, low_overall, high_overall : array-like of the shapes of ``scores`` and ``scores_overall``, default=None
        Ends of the 95 % intervals of the scores; NaN where unknown.
    cv : CrossValidation, default=None
        Which p and C cross-validation would pick.
    comparison : Comparison, default=None
        The scores of simpler models, see :func:`~paretomkl.report.compare`.
    sharing : Sharing, default=None
        The scores of the ways to share: nothing, a kernel, a function, everything.
    title : str
        Title of the page.
    facts : sequence of str
        Shown below the title, after the numbers of tasks, kernels and exponents.
    verdict : sequence of str, default=()
        Sentences at the top of the page: what to take home. Text between backticks is shown as code.
    refit : str, default=None
        Python code that fits the model, with ``{p}`` for the exponent; None means ``path.refit``.
    refit_note : str
        Shown below that code, with ``{p}`` for the exponent. Text between backticks is shown as code; write two
        backticks to show one.

    Returns
    -------
    page : str
        HTML that needs no other file.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl import pareto_path
    >>> from paretomkl.report import build_page
    >>> page = build_page(pareto_path(*load_iris(return_X_y=True)), title="Iris")
    >>> "<title>" in page
    True
    """
    rows = _shown_points(path)
    kind = path.reader.reading.machine
    measure = measure or words.MEASURES[kind.reads]
    n_rows = confusion.n_rows if confusion is not None else None if predictions is None else predictions.n_all
    held_out = None
    if scores is not None:
        ends = {"low": low, "high": high, "low_overall": low_overall, "high_overall": high_overall}
        held_out = HeldOutScores.of(path, scores, scores_overall, measure, n_held_out, ends, n_rows)
    data = _data(path, rows, held_out, cv)
    overall = _overall_name(path, measure) if held_out is None else held_out.name
    data["overallName"] = overall
    data["measure"] = {"name": measure.name, "percent": measure.percent, "inUnits": measure.in_units}
    if predictions is not None:
        data["numbers"] = predictions.page_data(rows)
    if confusion is not None:
        data["confusion"] = confusion.page_data(rows)
    compared = {"comparison": comparison, "sharing": sharing}
    data |= {name: found.page_data() for name, found in compared.items() if found is not None}
    data |= {"code": path.refit if refit is None else refit, "codeNote": refit_note}
    parts = {
        "title": html.escape(title),
        "noun": _noun(path),
        "pairs": _about_pairs(path),
        "facts": "".join(f"<li>{html.escape(fact)}</li>" for fact in _facts(path, facts, len(rows))),
        "verdict": _verdict(verdict, sharing),
        "fallback": summary_table(path, *(() if held_out is None else (held_out.texts(), f"held-out {held_out.name}"))),
        "measure": html.escape(measure.name),
        "overall": html.escape(overall),
        "machine": words.CALLED[kind.decisions],
        "sharing": "" if sharing is None else _template("sharing.html"),
        "numbers": "" if predictions is None else _template("numbers.html"),
        "confusion": "" if confusion is None else _template("confusion.html"),
        "without_scores": _without_scores(kind, measure),
        "data": _as_script(data),
        "css": _template("page.css"),
        "js": _template("page.js"),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], _template("page.html"))


def _verdict(sentences: Sequence[str], sharing: Sharing | None) -> str:
    """What to take home, and whether the page shows another model than the chosen one."""
    listed = f'<ul class="verdict">{"".join(map(_sentence, sentences))}</ul>' if sentences else ""
    return listed + ("" if sharing is None or sharing.best == "kernel" else _template("not_chosen.html"))


def _sentence(text: str) -> str:
    """A list item that starts in bold, with text between backticks as code."""
    marked = re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(text))
    return f"<li>{re.sub('^[^:,.<&]+', lambda start: f'<b>{start[0]}</b>', marked)}</li>"


def _facts(path: ParetoPath, facts: Sequence[str], n_points: int) -> list[str]:
    """How many tasks, kernels, exponents and sweeps there are, and these facts."""
    kernels, sources = len(path.kernel_names), len(path.source_shares)
    return [
        _tasks_in_words(path),
        *facts,
        f"{kernels} kernel" + "s" * (kernels != 1) + (f" of {sources} source" + "s" * (sources != 1)) * (sources > 0),
        *[f"{n_points} exponents, each solved and certified to {words.percent_above(float(path.gap.max()))}"]
        * (n_points > 1),
        f"{path.n_sweeps} sweep" + "s" * (path.n_sweeps != 1) + f" in {path.seconds['total']:.1f} s",
        *["objectives per sample"] * (path.task_scale == "samples"),
    ]


def _tasks_in_words(path: ParetoPath) -> str:
    """How many tasks there are, which column names them, and how many pairs of classes they have."""
    tasks, column, n = path.models[0].tasks, path.reader.task_column, len(path.task_names)
    said = counted(len(tasks.distinct_sources), "task") + f" (column {column})" * isinstance(column, str)
    if _noun(path) == "task":
        return said
    how = "one against the rest" if tasks.one_vs_rest else "two at a time"
    whose = "" if tasks.kind == "classes" else f"{said}, "
    return f"{whose}{len(tasks.classes)} classes compared {how}: {n} {_noun(path)}s"


def _noun(path: ParetoPath) -> str:
    """What the page calls its units: a task of the user with several classes is several comparisons of these."""
    tasks = path.models[0].tasks
    if len(tasks.names) == len(tasks.distinct_sources):
        return "task"
    return "comparison" if tasks.one_vs_rest else "pair"


def _about_pairs(path: ParetoPath) -> str:
    """What the pairs or comparisons of classes are, for the guide; empty without them."""
    noun = _noun(path)
    return "" if noun == "task" else _template("pairs.html").replace("{{noun}}", noun)


def _without_scores(kind: MachineKind, measure: Measure) -> str:
    """How to get a page with scores; empty if there can be none."""
    if kind.reads == "nothing":
        return ""
    search = "ParetoMKLClassifierCV" if kind.reads == "labels" else "ParetoMKLRegressorCV"
    text = _template("without_scores.html").replace("{{measure}}", html.escape(measure.name))
    return text.replace("{{search}}", search)


# ------------------------------------------------------------------------------------------- what the page knows
@dataclass(frozen=True)
class HeldOutScores:
    """Scores of the tasks (n_points, n_tasks) and overall (n_points,), with the ends of their intervals.

    Also the number of samples, per task and in all, if known; the measure; and the name of the overall score.
    """

    tasks: Array
    overall: Array
    ends: dict[str, Array]
    n_samples: list[int] | None
    n_rows: int | None
    measure: Measure
    name: str

    @classmethod
    def of(
        cls,
        path: ParetoPath,
        scores: ArrayLike,
        overall: ArrayLike | None,
        measure: Measure,
        n_held_out: ArrayLike | None,
        ends: dict[str, ArrayLike | None],
        n_rows: int | None,
    ) -> HeldOutScores:
        """Build the scores and check them against the path."""
        of_tasks, of_points = path.objectives.shape, path.ps.shape
        found = _of_shape("scores", scores, of_tasks)
        of_all = np.nanmean(found, axis=1) if overall is None else _of_shape("scores_overall", overall, of_points)
        counts = None if n_held_out is None else _of_shape("n_held_out", n_held_out, of_tasks[1:]).astype(int).tolist()
        shapes = {name: of_points if name.endswith("_overall") else of_tasks for name in ends}
        checked = {name: _of_shape(name, values, shapes[name]) for name, values in ends.items()}
        name = _overall_name(path, measure, by_votes=overall is not None)
        return cls(found, of_all, checked, counts, n_rows, measure, name)

    def overall_interval(self, row: int) -> tuple[float, float]:
        """The interval of the overall score at a point."""
        return float(self.ends["low_overall"][row]), float(self.ends["high_overall"][row])

    def texts(self) -> list[str]:
        """The overall score at each point, with its interval."""
        return [self.measure.with_interval(v, *self.overall_interval(row)) for row, v in enumerate(self.overall)]


def _of_shape(name: str, values: ArrayLike | None, shape: tuple[int, ...]) -> Array:
    """Scores, or ends of their intervals, as an array of this shape; NaN if they are not given."""
    array = np.full(shape, np.nan) if values is None else np.asarray(values, dtype=float)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape} to fit the path, got shape {array.shape}.")
    return array


def _overall_name(path: ParetoPath, measure: Measure, by_votes: bool = True) -> str:
    """The name of the overall score: from votes if the tasks are pairs of classes, else a mean over the tasks."""
    tasks = path.models[0].tasks
    if not by_votes:
        return words.overall_name(measure, len(path.task_names))
    n_classes = len(tasks.classes) if tasks.kind == "classes" else 2
    return words.overall_name(measure, len(tasks.distinct_sources), n_classes)


def _shown_points(path: ParetoPath) -> IntArray:
    """Indices of the points in increasing p, each exponent once; for one task only p nearest to 1: all are the same."""
    rows = np.unique(path.along_p().ps, return_index=True)[1]
    return rows if len(path.task_names) > 1 else rows[[ExponentAxis(path.ps[rows]).nearest(1.0)]]


def _data(path: ParetoPath, rows: IntArray, held_out: HeldOutScores | None, cv: CrossValidation | None) -> PageData:
    ps = path.ps[rows]
    axis = ExponentAxis(ps)
    reference = axis.nearest(1.0)
    shares, kernels = pool_shares(path.kernel_shares[rows], path.kernel_names, MOST_COLORS - 1)
    by_source = np.reshape([share[rows] for share in path.source_shares.values()], (-1, len(rows))).T
    source_shares, sources = pool_shares(by_source, list(path.source_shares), MOST_COLORS - 1)
    objectives = path.objectives[rows]
    data: PageData = {
        "p": [exponent_label(p) for p in ps],
        "codeP": [exponent_code(p) for p in ps],
        "x": _rounded(axis.places(ps)),
        "ticks": axis.ticks(),
        "broken": _rounded(axis.breaks()),
        "reference": reference,
        "start": reference if cv is None else axis.nearest(cv.best_p),
        "tasks": path.task_names,
        "brief": {length: shorten_all(path.task_names, length) for length in BRIEF},
        "noSlider": words.why_no_slider(len(path.task_names), float(ps[0])) if len(ps) == 1 else "",
        "noun": _noun(path),
        "kernels": [plain_kernel(name) for name in kernels],
        "objectives": _rounded(objectives.T),
        "weights": _rounded(path.task_weights[rows].T),
        "mean": _rounded(path.objective[rows]),
        "shares": _rounded(shares.T),
        "sources": [{"name": name, "share": _rounded(source_shares[:, k])} for k, name in enumerate(sources)],
        "spread": _spread(kernels, sources, cv),
        "gap": _rounded(path.gap[rows]),
        "tol": path.tol,
        "difficulty": _rounded(path.difficulty[rows].mean(axis=0)),
        "pair": _opposed_pair(objectives, reference),
        "words": _words(path, rows, reference, held_out),
    }
    if held_out is not None:
        data |= {
            "scores": _rounded(held_out.tasks[rows].T),
            "low": _rounded(held_out.ends["low"][rows].T),
            "high": _rounded(held_out.ends["high"][rows].T),
            "overall": _rounded(held_out.overall[rows]),
            "overallLow": _rounded(held_out.ends["low_overall"][rows]),
            "overallHigh": _rounded(held_out.ends["high_overall"][rows]),
            "heldOut": held_out.n_samples,
            "heldOutRows": held_out.n_rows,
        }
    if cv is not None:
        data["cv"] = {
            "x": _rounded(axis.places(np.asarray(cv.ps, dtype=float))),
            "mean": _rounded(np.asarray(cv.mean)),
            "error": _rounded(np.asarray(cv.std) / np.sqrt(cv.n_splits)),
            "p": exponent_label(cv.best_p),
            "rows": cv.n_rows,
            "index": axis.nearest(cv.best_p),
            "words": words.choice(cv, _overall_name(path, cv.measure), len(path.task_names)),
        }
    return data


def _spread(kernels: list[str], sources: list[str], cv: CrossValidation | None) -> dict[str, list[float | None]] | None:
    """The standard deviations over folds of the shares of kernels and sources, None where they are unknown."""
    if cv is None or not cv.kernel_spread:
        return None
    known = {"kernel": (cv.kernel_spread, kernels), "source": (cv.source_spread, sources)}
    return {kind: [spread.get(name) for name in names] for kind, (spread, names) in known.items()}


def _words(path: ParetoPath, rows: IntArray, reference: int, held_out: HeldOutScores | None) -> list[PageData]:
    """The headline and sentences of every point."""
    at = rows[reference]
    p_there, is_average = float(path.ps[at]), path.ps[at] == 1
    preferences = bool(is_average) and not np.allclose(path.task_weights[at], 1 / len(path.task_names))
    by_kernel, by_source = path.kernel_shares, path.source_shares
    names, kernels = shorten_all(path.task_names), shorten_all([plain_kernel(name) for name in path.kernel_names])
    noun = _noun(path)
    points: list[PageData] = []
    for row in rows:
        p, objectives = float(path.ps[row]), path.objectives[row]
        sentences = [
            words.who_carries(
                p,
                path.task_weights[row],
                objectives,
                names,
                path.task_weights[at] if is_average else None,
                path.difficulty[row],
                noun,
            ),
            *words.change_of_objectives(p_there, objectives, path.objectives[at], names, path.difficulty[at], noun),
        ]
        if held_out is not None:
            there = (None, None) if row == at else (float(held_out.overall[at]), held_out.tasks[at])
            here = float(held_out.overall[row]), there[0], held_out.tasks[row], there[1]
            about = held_out.name, held_out.overall_interval(row), held_out.n_rows
            sentences.append(words.change_of_score(p_there, *here, held_out.measure, *about, noun))
            of_tasks = held_out.tasks[row], held_out.ends["low"][row], held_out.ends["high"][row]
            sentences.append(words.lowest_score(names, *of_tasks, held_out.measure))
        sentences.append(words.source_shares({name: share[row] for name, share in by_source.items()}))
        sentences.append(words.heaviest_kernel(by_kernel[row], kernels))
        points.append(
            {
                "head": words.headline(p, len(path.task_names), preferences, path.large_is_hard, noun),
                "said": [sentence.replace("….", "…") for sentence in sentences if sentence],
                "certificate": words.certificate(p, float(path.gap[row]), len(names)),
            }
        )
    return points


def _opposed_pair(objectives: Array, reference: int) -> list[int]:
    """The task that gains most from the smallest to the largest p, and the one that loses most."""
    if objectives.shape[1] < 2:
        return []
    change = (objectives[-1] - objectives[0]) / objectives[reference]
    gains, loses = int(change.argmin()), int(change.argmax())
    return [loses, gains] if gains != loses else [0, 1]


# ------------------------------------------------------------------------------------------------- writing
def _rounded(values: AnyArray) -> list[object]:
    """Numbers with six significant digits; None for NaN and infinity."""
    if values.ndim > 1:
        return [_rounded(row) for row in values]
    return [float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None for value in values.tolist()]


def _as_script(data: PageData) -> str:
    """JSON in which no name can close the script element."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def _template(name: str) -> str:
    return files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


# --------------------------------------------------------------------------------------------- notebooks
def path_html(path: ParetoPath) -> str:
    """A path as a table of some points and a chart of the objectives; only a line of text if p has no effect."""
    title = f"<p><b>{html.escape(repr(path))}</b></p>"
    if path.share != "kernel":
        return f"<div>{title}</div>"
    return (
        f"<div>{title}{_what_p_does(path)}"
        f'<div style="display:flex;flex-wrap:wrap;gap:1.5em;align-items:center">{summary_table(path)}{_picture(path)}'
        "</div></div>"
    )


def _what_p_does(path: ParetoPath) -> str:
    """What the largest p does to the tasks, compared with p = 1, and where to see scores."""
    rows = np.unique(path.ps, return_index=True)[1]
    at, last = rows[ExponentAxis(path.ps[rows]).nearest(1.0)], rows[-1]
    names = path.ps[at], path.objectives[last], path.objectives[at], shorten_all(path.task_names), path.difficulty[at]
    changes = words.change_of_objectives(*names, _noun(path)) if last != at else []
    if changes:
        changes[0] = changes[0].replace("Compared with", f"With p = {exponent_label(path.ps[last])} instead of", 1)
    see = "Objectives are not scores; for these, see <code>paretomkl.report.trade_off_page(path, X_new, y_new)</code>."
    return f"<p>{'<br/>'.join([*map(html.escape, changes), see])}</p>"


def summary_table(path: ParetoPath, overall: Sequence[str] | None = None, overall_name: str = "") -> str:
    """Objectives, task weights and kernels at up to 13 points of the path.

    overall (n_points,): held-out scores of all tasks together, as text; overall_name: their name.
    """
    J = "J / n" if path.task_scale == "samples" else "J"
    header = ["p", "M_p", f"smallest {J}", f"largest {J}", "of task", "its weight", "heaviest kernel", "gap"]
    if overall is not None:
        header.insert(-1, overall_name)
    lines, shares = [], path.kernel_shares
    tasks, kernels = shorten_all(path.task_names), shorten_all(path.kernel_names)
    for i in _some_points(path.ps):
        objectives, share = path.objectives[i], shares[i]
        worst, heaviest = int(objectives.argmax()), int(share.argmax())
        line = [
            exponent_label(path.ps[i]),
            f"{path.objective[i]:#.5g}",
            f"{objectives.min():#.5g}",
            f"{objectives[worst]:#.5g}",
            tasks[worst],
            f"{path.task_weights[i, worst]:.1%}",
            f"{kernels[heaviest]} {share[heaviest]:.0%}",
            f"{path.gap[i]:.0e}",
        ]
        if overall is not None:
            line.insert(-1, overall[i])
        lines.append(line)
    return table(header, lines)


def estimator_html(estimator: Any) -> str:
    """Objectives of the tasks, and shares of sources and kernels, of a fitted estimator whose tasks share a kernel."""
    if not (hasattr(estimator, "theta_") and hasattr(estimator, "task_weights_") and estimator.theta_.ndim == 1):
        return ""
    share, objectives, weights = estimator.kernel_shares_, estimator.objectives_, estimator.task_weights_
    tasks = np.argsort(-objectives, kind="stable")
    common = getattr(estimator, "common_share_", None)
    names = (
        shorten_all(estimator.task_names_) if common is None else []
    )  # tasks with a common part are solved as one problem, with a single objective
    of_tasks = [[names[t], f"{objectives[t]:#.5g}", f"{weights[t]:.1%}"] for t in tasks if names]
    kernels = np.argsort(-share, kind="stable")
    kernel_names = shorten_all(estimator.kernel_names_)
    spread = getattr(estimator, "kernel_shares_std_", None)  # of searches
    of_kernels = [[kernel_names[m], _steady(share[m], None if spread is None else spread[m])] for m in kernels]
    spreads = getattr(estimator, "source_shares_std_", {})
    shares = getattr(estimator, "source_shares_", {}).items()
    of_sources = [[shorten(name), _steady(part, spreads.get(name))] for name, part in shares]
    sweeps = f"{estimator.n_sweeps_} sweep" + "s" * (estimator.n_sweeps_ != 1)
    said = f"M_p = {estimator.objective_:#.5g}, certified gap {estimator.gap_:.0e}, {sweeps}"
    if common is not None:
        said += f"; {common:.0%} of the functions is common to the tasks"
    rooted = [name for name, scaling in estimator.scaling_.items() if scaling == "root"]
    if rooted:
        said += f"; square roots of {', '.join(shorten_all(rooted))}, which is mostly zero, instead of standardising"
    return (
        f"<div><p>{html.escape(said)}</p>"
        '<div style="display:flex;flex-wrap:wrap;gap:1.5em;align-items:flex-start">'
        f"{table(['task', 'objective', 'weight'], _first(of_tasks)) if of_tasks else ''}"
        f"{table(['source', 'share'], _first(of_sources)) if of_sources else ''}"
        f"{table(['kernel', 'share'], _first(of_kernels))}</div></div>"
    )


def _steady(share: float, spread: float | None) -> str:
    """A share, and its standard deviation over folds if that is known."""
    return f"{share:.1%}" + ("" if spread is None else f" ± {100 * spread:.1f}")


def _first(lines: list[list[str]]) -> list[list[str]]:
    """The first few lines, and how many more there are."""
    if len(lines) <= HEAVIEST + 1:
        return lines
    return lines[:HEAVIEST] + [[f"{len(lines) - HEAVIEST} more", *[""] * (len(lines[0]) - 1)]]


def _some_points(ps: Array) -> IntArray:
    """Indices of at most 13 points in increasing p: the exponents of the paper, or evenly spread ones."""
    rows = np.unique(ps, return_index=True)[1]
    if len(rows) <= MOST_ROWS:
        return rows
    known = rows[np.isin(ps[rows], PAPER_PS)]
    return known if len(known) >= 5 else rows[np.linspace(0, len(rows) - 1, MOST_ROWS).round().astype(int)]


def table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Lines of text as an HTML table."""

    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line(cells, "td") for cells in lines)
    return f"<table {STYLE}><thead>{line(header, 'th')}</thead><tbody>{body}</tbody></table>"


def _picture(path: ParetoPath, width: int = 320, height: int = 190) -> str:
    """The change of every objective from p = 1 as an SVG chart in the text colour."""
    rows = np.unique(path.ps, return_index=True)[1]
    if len(rows) < 2 or len(path.task_names) < 2:
        return ""
    axis = ExponentAxis(path.ps[rows])
    reference = axis.nearest(1.0)
    change = 100 * (path.objectives[rows] / path.objectives[rows[reference]] - 1)
    low, high = min(change.min(), -0.5), max(change.max(), 0.5)
    left, top, bottom = 44, 22, 24
    x = left + (width - left - 12) * axis.places(axis.ps)
    y = top + (height - top - bottom) * (high - change) / (high - low)
    zero = top + (height - top - bottom) * high / (high - low)
    at_zero = "0" if min(high, -low) > (high - low) / 5 else ""  # where it covers no other label
    lines = "".join(
        f'<polyline points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, of_task, strict=True))}"/>'
        for of_task in y.T
    )
    names = [path.task_names[int(change[-1].argmax())], path.task_names[int(change[-1].argmin())]]
    ends = [(0, "start"), (reference, "middle"), (len(rows) - 1, "end")]
    ticks = "".join(
        f'<text x="{x[i]:.0f}" y="{height - 8}" text-anchor="{anchor}">{exponent_label(axis.ps[i])}</text>'
        for i, anchor in ends
    )
    label = html.escape(
        f"Change of the task objectives from p = {exponent_label(axis.ps[reference])}; {words.listing(names)}"
    )
    return (
        f'<svg role="img" aria-label="{label}" width="{width}" height="{height + 12}" '
        f'viewBox="0 0 {width} {height + 12}" '
        'fill="currentColor" font-size="11" font-family="sans-serif">'
        f'<text x="0" y="12">change of each objective from p = {exponent_label(axis.ps[reference])}, in %</text>'
        f'<text x="{left - 6}" y="{top + 8}" text-anchor="end">{high:+.3g}</text>'
        f'<text x="{left - 6}" y="{height - bottom}" text-anchor="end">{low:+.3g}</text>'
        f'<text x="{left - 6}" y="{zero + 4:.1f}" text-anchor="end">{at_zero}</text>'
        f'<text x="{(left + width) / 2:.0f}" y="{height - 8}" text-anchor="middle" dy="14">exponent p</text>'
        f'<path d="M{left} {zero:.1f}H{width - 12}" stroke="currentColor" stroke-dasharray="2 3"/>'
        f'<g fill="none" stroke="currentColor" stroke-opacity="0.55">{lines}</g>{ticks}</svg>'
    )
