"""A table of the scores of each task, with intervals, and of all tasks."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_consistent_length

from .._data.numbers import Targets, deviations, levels, unexplained
from .._data.tasks import array_of, listed
from .._data.together import Together
from .._tools.checks import check_number
from .._tools.public import PublicNames
from .._tools.typing import Array, IntArray
from .._tools.wording import ACCURACY, REGRESSION_MEASURES, WORST, Measure
from .intervals import CONFIDENCE, Estimate, combined
from .metric_intervals import drawn, estimate, of_draws
from .scorers import Metric, MultiTaskScorer, Part, last_step, make_multitask_scorer, metric_of
from .scores import measure_of
from .splits import group_codes

if TYPE_CHECKING:
    from pandas import DataFrame as Frame

MEAN, POOLED = "mean over the tasks", "all rows"
MOST_ROWS = 40  # tasks that are printed


@dataclass(frozen=True)
class ScoresByTask(PublicNames):
    """The scores of a model on the rows of each task, with intervals.

    Attributes
    ----------
    tasks : list of n_tasks str
    rows : array of int of shape (n_tasks,)
        Number of rows of each task.
    scores, low, high : arrays of shape (n_tasks,)
        Score of each task, and the ends of its interval; NaN where undefined.
    pooled : Estimate
        Score, low and high end over the rows of all tasks. For R², this is the variance within tasks that is explained:
        each task is divided by the standard deviation of its training targets first. Scores that need decisions, such
        as AUC, do not compare those of different tasks: they are means over the tasks, weighted by rows.
    mean : Estimate
        Mean over the tasks.
    confidence : float
        How often such intervals contain the score of a large sample.
    measure : Measure
        What the scores are.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl import ParetoMKLClassifier
    >>> from paretomkl.model_selection import score_by_task
    >>> X, y = load_iris(return_X_y=True)
    >>> half = np.arange(150) % 2
    >>> model = ParetoMKLClassifier(share="everything").fit(X, y, tasks=half)
    >>> found = score_by_task(model, X, y, tasks=half)
    >>> found.tasks, found.rows.tolist(), bool((found.low <= found.scores).all())
    (['0', '1'], [75, 75], True)
    """

    _internal = ("of",)

    tasks: list[str]
    rows: IntArray
    scores: Array
    low: Array
    high: Array
    pooled: Estimate
    mean: Estimate
    confidence: float = CONFIDENCE
    measure: Measure = ACCURACY

    @classmethod
    def of(
        cls,
        tasks: Sequence[Any],
        rows: Sequence[int],
        found: Sequence[Estimate],
        pooled: Estimate,
        mean: Estimate,
        confidence: float,
        measure: Measure,
    ) -> ScoresByTask:
        """The table from one estimate per task."""
        scores, low, high = np.array(found, dtype=float).reshape(-1, 3).T
        return cls([str(task) for task in tasks], np.array(rows), scores, low, high, pooled, mean, confidence, measure)

    def lines(self) -> list[tuple[str, int, Estimate]]:
        """Name, rows and estimate of each line of the table: the tasks, and if there are several, all of them."""
        rows = [int(n) for n in self.rows]
        ends = zip(self.scores.tolist(), self.low.tolist(), self.high.tolist(), strict=True)
        lines = [(name, n, Estimate(*one)) for name, n, one in zip(self.tasks, rows, ends, strict=True)]
        if len(lines) == 1:
            return lines
        return [*lines, (MEAN, sum(rows), self.mean), (POOLED, sum(rows), self.pooled)]

    def to_frame(self) -> Frame:
        """One row per task, and the last two for the mean over the tasks and for all rows.

        Returns
        -------
        frame : pandas.DataFrame
            With the columns ``task``, ``rows``, ``score``, ``low`` and ``high``.
        """
        import pandas as pd

        made = [(name, n, *one) for name, n, one in self.lines()]
        return pd.DataFrame(made, columns=["task", "rows", "score", "low", "high"])

    def facts(self) -> dict[str, Any]:
        """Numbers by name, for JSON; None where undefined."""

        def facts(one: Estimate) -> dict[str, float | None]:
            return {name: None if math.isnan(v) else v for name, v in one._asdict().items()}

        by_task = {name: {"rows": n} | facts(one) for name, n, one in self.lines()[: len(self.tasks)]}
        found = {"mean": facts(self.mean), "all_rows": facts(self.pooled), "tasks": by_task}
        return {"scoring": self.measure.key, "confidence": self.confidence} | found

    @property
    def header(self) -> list[str]:
        """The headings of the columns."""
        name = self.measure.name[0].upper() + self.measure.name[1:]
        return ["task" if len(self.tasks) > 1 else "", "rows", name, f"{100 * self.confidence:g} % interval"]

    def cells(self) -> list[list[str]]:
        """The table as text, without the headings."""
        return [
            [name, f"{n:,}", self.measure.text(one.score), self.measure.interval(one.low, one.high)]
            for name, n, one in self.lines()
        ]

    def __str__(self) -> str:
        cells, rest = self.cells(), len(self.tasks) - MOST_ROWS
        if rest > 0:
            cells = [*cells[:MOST_ROWS], [f"{rest} more", "", "", ""], *cells[len(self.tasks) :]]
        table = [self.header, *cells]
        widths = [max(len(row[k]) for row in table) for k in range(4)]
        first, *others = widths
        return "\n".join(
            "  ".join([row[0].ljust(first), *(cell.rjust(w) for cell, w in zip(row[1:], others, strict=True))]).rstrip()
            for row in table
        )

    def _repr_html_(self) -> str:
        def line(cells: Sequence[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        lines = [line(cells, "td") for cells in self.cells()]
        if len(self.tasks) > 1 and np.isfinite(self.scores).any():
            worst = int(np.nanargmin(self.scores))
            bold = lines[worst].replace("<tr>", '<tr style="font-weight:bold">', 1)
            lines[worst] = bold.replace("</td>", " (lowest)</td>", 1)
        body = "".join(lines)
        return f"<table><thead>{line(self.header, 'th')}</thead><tbody>{body}</tbody></table>"


def score_by_task(
    model: Any,
    X: Any,
    y: Any,
    *,
    tasks: Any = None,
    scoring: Any = None,
    confidence: float = CONFIDENCE,
    sample_weight: Any = None,
    groups: Any = None,
) -> ScoresByTask:
    """Score a fitted model on the rows of each task, with intervals.

    Parameters
    ----------
    model : fitted estimator
        A model or a search of this package, a pipeline or a search of scikit-learn around it, or any other classifier
        or regressor.
    X, y
        Rows that the model has not learned from. A matrix y has one task per column, with NaN for missing values.
    tasks : array-like of shape (n_samples,), default=None
        The task of each row, if no column of X names it.
    scoring : str or scorer, default=None
        The name of a scikit-learn scorer, or a scorer from :func:`~paretomkl.model_selection.make_multitask_scorer`.
        None is the ``scoring`` of a search, and otherwise accuracy or R².
    confidence : float, default=0.95
        How often the intervals should contain the score of a large sample.
    sample_weight : array-like of shape (n_samples,), default=None
    groups : array-like of shape (n_samples,), default=None
        The group of each row, such as the patient that it is from; rows of a group are not counted as independent.

    Returns
    -------
    table : ScoresByTask
        ``print(table)``, ``table.to_frame()``, and arrays.

    Notes
    -----
    Shares of right answers, recall, precision and balanced accuracy have Wilson's interval, and AUC has DeLong's
    variance on the same scale, so that no end leaves the range and a score of 100 % has a lower end. All other scores
    have a bootstrap (with random weights, so that no task loses a class). Of the mean over the tasks, the errors of the
    tasks are independent, unless tasks share rows or groups. The intervals say how far the score of this model may be
    off because the rows are few, not how much another training set would change the model.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl import ParetoMKLClassifier
    >>> from paretomkl.model_selection import score_by_task
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ParetoMKLClassifier().fit(X[::2], y[::2])
    >>> print(score_by_task(model, X[1::2], y[1::2]))
              rows  Accuracy  95 % interval
    all rows    75    97.3 %   90.8 to 99.3
    """
    check_number("confidence", confidence, lambda v: 0 < v < 1, "between 0 and 1")
    scorer = scorer_of(model, scoring)
    metric = metric_of(scorer)
    assert metric is not None
    parts, method, weight = scorer.parts(metric, model, X, y, sample_weight, tasks)
    check_consistent_length(X, groups)
    codes = None if groups is None else group_codes(groups, len(np.asarray(y)))
    return judged(metric, [parts], method, weight, codes, confidence, training_levels(model))


def scorer_of(model: Any, scoring: Any = None) -> MultiTaskScorer:
    """The scorer of a model, or the one that was asked for."""
    if scoring is None:
        own = getattr(model, "scoring", None)
        usable = isinstance(own, str | MultiTaskScorer) or hasattr(own, "_score_func")
        scoring = own if usable else "r2" if is_regressor(model) else "accuracy"
    if isinstance(scoring, str):
        scoring = scoring.removeprefix(WORST)
    if isinstance(scoring, MultiTaskScorer):
        return scoring
    if not (isinstance(scoring, str) or hasattr(scoring, "_score_func")):
        raise ValueError(
            f"scoring must be the name of a score, a scikit-learn scorer, or a make_multitask_scorer, got {scoring!r}."
        )
    return make_multitask_scorer(scoring)


Levels = Callable[[str], tuple[float, float] | None]  # mean and standard deviation of the training targets of a task


def training_levels(model: Any) -> Levels:
    """What the model has learned of the level of each task by name, for R² over all tasks; None if it does not say."""
    tasks = getattr(getattr(last_step(model), "model_", None), "tasks", None)
    if not isinstance(tasks, Targets | Together) or not hasattr(tasks, "level"):
        return lambda name: None
    scales = list(zip(tasks.level.tolist(), tasks.deviation.tolist(), strict=True))
    known = {str(source): scale for source, scale in zip(tasks.sources, scales, strict=False)}
    new = (float(np.mean(tasks.level)), float(np.mean(tasks.deviation)))
    only = next(iter(known.values())) if len(known) == 1 else None
    return lambda name: only or known.get(name, new)


def judged(
    metric: Metric,
    folds: Sequence[Sequence[Part]],
    method: str,
    weight: Array | None = None,
    groups: IntArray | None = None,
    confidence: float = CONFIDENCE,
    levels_of: Levels = lambda name: None,
    quick: bool = False,
) -> ScoresByTask:
    """The table of some parts; weight, groups (n_samples,): of all samples; ``quick`` leaves out slow intervals.

    If there are several folds, the score of a task is the mean over its folds, weighted by rows.
    """
    of_task: dict[str, list[Part]] = {}
    for part in (part for parts in folds for part in parts):
        of_task.setdefault("" if part.name == "score" else part.name, []).append(part)

    def of_fold(part: Part) -> Estimate:
        return estimate(metric, part, method, *_of(part.rows, weight, groups), confidence, quick)

    sizes = {name: [float(len(part.rows)) for part in own] for name, own in of_task.items()}
    found = [combined([of_fold(part) for part in own], np.array(sizes[name])) for name, own in of_task.items()]
    rows, parts = [int(sum(own)) for own in sizes.values()], [part for own in of_task.values() for part in own]
    everyone = np.concatenate([part.rows for part in parts])
    unit = np.arange(everyone.max(initial=-1) + 1) if groups is None else groups
    units = np.concatenate([np.unique(unit[part.rows]) for part in parts])
    dependent = len(of_task) > 1 and len(np.unique(units)) < len(units)  # rows or groups that are in several tasks
    weights, codes = _of(everyone, weight, unit if dependent else groups)
    if len(found) == 1:
        pooled = found[0]
    elif metric.function is r2_score and not metric.arguments:
        pooled = _explained(parts, weights, codes, confidence, levels_of, quick)
    elif method != "predict":
        pooled = combined(found, np.array(rows, dtype=float), dependent)
    else:
        pooled = estimate(metric, _joined(parts), method, weights, codes, confidence, quick)
    mean = combined(found, np.ones(len(found)), dependent)
    measure = measure_of(metric, metric.name in REGRESSION_MEASURES)
    names = [name or POOLED for name in of_task]
    return ScoresByTask.of(names, rows, found, pooled, mean, confidence, measure)


def _of(rows: IntArray, weight: Array | None, groups: IntArray | None) -> tuple[Array | None, IntArray | None]:
    """The weights and groups of some rows."""
    return None if weight is None else weight[rows], None if groups is None else groups[rows]


def _joined(parts: Sequence[Part]) -> Part:
    """The samples of all tasks as one."""
    truth = array_of([label for part in parts for label in listed(part.truth)])
    response = array_of([label for part in parts for label in listed(part.response)])
    return Part(POOLED, np.arange(len(truth)), truth, response, None)


def _explained(
    parts: Sequence[Part],
    weights: Array | None,
    groups: IntArray | None,
    confidence: float,
    levels_of: Levels,
    quick: bool,
) -> Estimate:
    """The share of the variance within tasks that is explained; one weight per row of all parts."""
    some = [part for part in parts if len(part.rows)]
    if not some:
        return Estimate(math.nan)
    own = [(part.truth.astype(float), np.ones(len(part.rows))) for part in some]
    here = zip(levels(own).tolist(), deviations(own).tolist(), strict=True)
    scales = [levels_of(part.name) or instead for part, instead in zip(some, here, strict=True)]
    errors = np.concatenate([(part.truth - part.response) / unit for part, (_, unit) in zip(some, scales, strict=True)])
    varied = np.concatenate([(part.truth - level) / unit for part, (level, unit) in zip(some, scales, strict=True)])
    weights = np.ones(len(errors)) if weights is None else weights
    score = 1 - unexplained(errors, varied, weights)
    if quick:
        return Estimate(score)
    draws = drawn(lambda w: 1 - (w @ errors**2) / np.maximum(w @ varied**2, 1e-300), weights, groups)
    return of_draws(score, draws, confidence)
