"""Scores for judging models, per task and over all tasks, with the words to display them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, mean_absolute_error, mean_squared_error, r2_score

from .._data.labels import Labelling, Samples
from .._data.numbers import r_squared
from .._data.reading import PathReader, Reading
from .._data.tasks import array_of, equal_labels
from .._fitting.models import share
from .._tools.typing import AnyArray, Array, IntArray
from .._tools.wording import ACCURACY, R2, Measure, literal
from ..machines import MACHINES
from .score_names import NAMES, NUMBER_NAMES, WORST, check_score_name, needs_probabilities
from .scorers import Metric, MultiTaskScorer, Part, make_multitask_scorer, metric_of


@dataclass(frozen=True)
class Judge:
    """A score, per task and over all tasks.

    measure: its name and how it is shown; scorer: the scorer for searches; metric: its function.
    """

    measure: Measure
    scorer: MultiTaskScorer
    metric: Metric

    @property
    def scoring(self) -> MultiTaskScorer | None:
        """The ``scoring=`` of a search; None is the mean accuracy, or R², over tasks."""
        return None if self.measure in (ACCURACY, R2) else self.scorer

    @property
    def of_shares(self) -> bool:
        """Whether the score is a share of correct answers."""
        return self.metric.function is accuracy_score

    def of_samples(
        self, X: object, y: object, *, tasks: object = None, kernels: object = "default", task_column: object = None
    ) -> Judge:
        """The judge for the tasks of these samples, see :meth:`of_tasks`."""
        return self.of_tasks(PathReader(Reading(kernels, task_column)).read_data(X, y, tasks=tasks).labelling)

    def of_tasks(self, labelling: Labelling) -> Judge:
        """The judge for these tasks: two-class scores raise for more classes, and one-class scores name the class."""
        for source, tasks in labelling.tasks_by_source.items():
            pairs = [labelling.pairs[t] for t in tasks]
            if len(pairs) > 1 and self.metric.of_two_classes:
                classes = len({label for pair in pairs for label in pair})
                whose = "y" if source is None else f"task {literal(source)}"
                raise ValueError(
                    f"The score {self.measure.key} compares two classes, but {whose} has {classes}; use "
                    "balanced_accuracy or f1_macro."
                )
        positive = {self._positive(pair) for pair in labelling.pairs}
        if len(positive) > 1 or None in positive:
            return self
        return replace(
            self, measure=replace(self.measure, name=f"{self.measure.name} of class {literal(positive.pop())}")
        )

    def _positive(self, pair: tuple[Any, ...]) -> Any:
        """The positive class of the score; None if it treats both classes alike."""
        if not (self.metric.of_two_classes and self.metric.takes("pos_label")):
            return None
        if "pos_label" in self.metric.arguments:
            return self.metric.arguments["pos_label"]
        return 1 if 1 in pair else pair[-1]

    def score(self, truth: AnyArray, response: AnyArray, classes: list[Any] | None) -> float:
        """Score of some samples; NaN if there are none, or too few classes among them.

        truth (n,): labels; response (n,): predicted labels, or scores that favour the second of two ``classes``.
        """
        if not len(truth):
            return np.nan
        part = Part("", np.arange(len(truth)), truth, response, classes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # labels that are predicted but absent, or never predicted
            return self.metric.score(part, "predict" if self.metric.of_labels else "decision_function", None)

    def standard_error(self, truth: AnyArray, response: AnyArray, classes: list[Any] | None = None) -> float:
        """Standard error of :meth:`score` over samples; NaN if there is no formula for it."""
        if not self.of_shares or not len(truth):
            return np.nan
        return float(standard_error_of_share(self.score(truth, response, classes), len(truth)))

    def overall_error(self, scores: Sequence[float] | Array, errors: Sequence[float] | Array) -> float:
        """Standard error of :meth:`overall`, from task scores and their standard errors."""
        known = ~np.isnan(np.asarray(scores, dtype=float))
        if not known.any():
            return np.nan
        values, spread = np.asarray(scores)[known], np.asarray(errors)[known]
        if self.scorer.average == "worst":
            return float(spread[values.argmin()])
        return float(np.sqrt(np.sum(spread**2)) / len(spread))

    def overall(self, scores: Sequence[float] | Array) -> float:
        """Mean over the tasks that have a score, or the lowest of them."""
        known = [float(value) for value in scores if not np.isnan(value)]
        if not known:
            return np.nan
        return min(known) if self.scorer.average == "worst" else float(np.mean(known))

    def score_model(self, model: Any, X: object, y: object, tasks: object = None) -> float:
        """Score of a fitted estimator; NaN if undefined. Pass ``tasks`` unless X has a task column."""
        if self.scoring is None:
            return float(model.score(X, y, tasks=tasks))
        found = self.scorer.score(model, X, y, tasks=tasks)
        assert isinstance(found, float)
        return found

    def errors(self, labelling: Labelling, decisions: Array, y: object) -> Array:
        """Standard error of the score of each binary task, (n_tasks,); NaN if there is no formula for it."""
        if not self.of_shares:
            return np.full(labelling.n_tasks, np.nan)
        right, belongs = labelling.right(decisions, y)
        return np.asarray(standard_error_of_share(share(right, belongs), belongs.sum(axis=0)))

    def counts(self, labelling: Labelling, decisions: Array, y: object) -> IntArray:
        """Number of samples of each binary task, (n_tasks,)."""
        return np.asarray(labelling.right(decisions, y)[1].sum(axis=0))

    def judge(self, labelling: Labelling, decisions: Array, samples: Samples, y: object) -> tuple[Array, float]:
        """Score of each binary task, (n_tasks,), and overall score, from decisions (n_samples, n_tasks)."""
        right, belongs = labelling.right(decisions, y)
        if self.measure == ACCURACY:
            return share(right, belongs), labelling.score(decisions, samples, y)
        truth = labelling.truth(y)
        scores = np.array([self._task_score(labelling, t, truth, decisions, belongs) for t in range(labelling.n_tasks)])
        if len(labelling.distinct_sources) == labelling.n_tasks:
            return scores, self.overall(scores)
        labels = labelling.predictions(decisions)  # by the votes of the pairs of classes
        groups = [(plain_labels(truth[rows]), plain_labels(labels[rows])) for rows, _ in labelling.groups(samples)]
        return scores, self.overall([self.score(labels, answers, None) for labels, answers in groups])

    def _task_score(self, labelling: Labelling, t: int, truth: AnyArray, decisions: Array, belongs: AnyArray) -> float:
        rows = np.flatnonzero(belongs[:, t])
        labels = (truth if truth.ndim == 1 else truth[:, t])[rows]
        pair = list(labelling.pairs[t])
        if len(pair) == 1:  # one class against the rest
            labels, pair = equal_labels(labels, pair[0]), [False, True]
        answer = decisions[rows, t]
        if self.metric.of_labels:
            answer = array_of(pair)[(answer > 0).astype(int)]
        return self.score(plain_labels(labels), answer, pair)


class NumberJudge(Judge):
    """A judge for regression tasks."""

    def of_samples(
        self, X: object, y: object, *, tasks: object = None, kernels: object = "default", task_column: object = None
    ) -> Judge:
        reader = PathReader(Reading(kernels, task_column, machine=MACHINES["ridge"]))
        reader.read_data(X, y, tasks=tasks)  # raises if invalid
        return self

    def of_tasks(self, labelling: Any) -> Judge:
        return self

    def score(self, truth: AnyArray, response: AnyArray, classes: list[Any] | None = None) -> float:
        """Score of some samples; NaN if undefined. truth, response (n,): numbers."""
        if self.metric.function is r2_score and not self.metric.arguments:  # much faster than scikit-learn's
            return r_squared(truth, response, np.ones(len(truth))) if len(truth) > 1 else np.nan
        return super().score(truth, response, classes)

    def standard_error(self, truth: AnyArray, response: AnyArray, classes: list[Any] | None = None) -> float:
        """Standard error of a mean over samples, or of R², which is a mean to first order."""
        if len(truth) < 2:
            return np.nan
        residuals = truth - response
        if self.metric.function is mean_absolute_error:
            of_samples = np.abs(residuals)
        elif self.metric.function is mean_squared_error:
            of_samples = residuals**2
        elif self.metric.function is r2_score and not self.metric.arguments and np.ptp(truth) > 0:
            varied = (truth - truth.mean()) ** 2
            of_samples = (residuals**2 - varied * np.mean(residuals**2) / varied.mean()) / varied.mean()
        else:
            return np.nan
        return float(np.std(of_samples, ddof=1) / np.sqrt(len(truth)))

    def errors(self, targets: Any, decisions: Array, y: object) -> Array:
        """Standard error of the score of each task, (n_tasks,)."""
        return np.array([self.standard_error(truth, own) for truth, own, _ in targets.by_task(decisions, y)])

    def counts(self, targets: Any, decisions: Array, y: object) -> IntArray:
        return np.array([len(rows) for _, _, rows in targets.by_task(decisions, y)])

    def judge(self, targets: Any, decisions: Array, samples: Samples, y: object) -> tuple[Array, float]:
        scores = [self.score(truth, predicted) for truth, predicted, _ in targets.by_task(decisions, y)]
        return np.array(scores), self.overall(scores)


def standard_error_of_share(share: Any, n: Any) -> Any:
    """Standard error of a share of n samples, √(q (1 − q) / (n + 1)) with q = (n share + ½) / (n + 1); NaN if n = 0.

    The extra half sample on either side keeps the error of a share of 0 or 1 positive.
    """
    share, n = np.asarray(share, dtype=float), np.asarray(n, dtype=float)
    inner = (n * share + 0.5) / (n + 1)
    return np.where(n > 0, np.sqrt(inner * (1 - inner) / (n + 1)), np.nan)


def make_judge(scoring: Any = None, option: str = "scoring", regression: bool = False) -> Judge:
    """A judge from the name of a score or a scorer of scikit-learn or :func:`make_multitask_scorer`.

    None is accuracy or R². The prefix ``worst_`` selects the lowest task score. ``option`` is the name of the argument
    in messages.
    """
    if scoring is None:
        scoring = "r2" if regression else "accuracy"
    if isinstance(scoring, str):
        plain = scoring.removeprefix(WORST)
        check_score_name(plain, option, regression)
        scorer = make_multitask_scorer(plain, average="macro" if plain == scoring else "worst")
    elif isinstance(scoring, MultiTaskScorer) and scoring.average is not None:
        scorer = scoring
    elif hasattr(scoring, "_score_func"):
        scorer = make_multitask_scorer(scoring)
    else:
        raise ValueError(
            f"{option} must be the name of a score, a scikit-learn scorer, or a make_multitask_scorer that returns one "
            f"number, got {scoring!r}."
        )
    metric = metric_of(scorer)
    assert metric is not None
    if "predict_proba" in metric.responses and "decision_function" not in metric.responses:
        raise ValueError(needs_probabilities(metric.name, option))
    plainly = metric.name.replace("_", " ")
    if regression:
        words, in_units = NUMBER_NAMES.get(metric.name, (plainly, True))
        shown = {"percent": False, "in_units": in_units}
    else:
        words, percent = NAMES.get(metric.name, (plainly, metric.function is accuracy_score))
        shown = {"percent": percent}
    worst = scorer.average == "worst"
    key = WORST * worst + metric.name
    measure = Measure(f"{words} of the worst task" if worst else words, key, **shown)
    return (NumberJudge if regression else Judge)(measure, scorer, metric)


def plain_labels(labels: AnyArray) -> AnyArray:
    """Labels as a typed array if possible: one task often has one type of labels, even if all tasks do not."""
    return array_of(labels.tolist()) if labels.dtype.kind == "O" else labels
