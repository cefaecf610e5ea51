"""Scores for judging models, per task and over all tasks, with the words to display them."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm
from sklearn.metrics import accuracy_score, mean_absolute_error, mean_squared_error, r2_score

from .._data.labels import Decided, Labelling, Samples, TaskSet
from .._data.numbers import Targets, r_squared, unexplained
from .._data.reading import PathReader, Reading, read_samples
from .._data.tasks import array_of, equal_labels
from .._fitting.models import share
from .._tools.typing import AnyArray, Array, IntArray
from .._tools.wording import (
    ACCURACY,
    CLASS_MEASURES,
    R2,
    REGRESSION_MEASURES,
    WORST,
    Measure,
    check_score_name,
    literal,
    needs_probabilities,
)
from ..machines import MACHINES
from .intervals import CONFIDENCE, Estimate, combined, wilson
from .metric_intervals import estimate
from .scorers import Metric, MultiTaskScorer, Part, make_multitask_scorer, metric_of, plain_labels

TWO_SIDED = float(norm.ppf((1 + CONFIDENCE) / 2))  # standard errors between a score and the ends of its interval

Labels = list[Any]  # all labels of a task
Answers = tuple[AnyArray, AnyArray, Labels | None]  # truth, response and labels of a task


class TaskScores(NamedTuple):
    """Scores of each task, the ends of their intervals (NaN without a formula), sample counts; and of all tasks."""

    scores: Array
    low: Array
    high: Array
    counts: IntArray
    overall: Estimate


@dataclass(frozen=True)
class Judge:
    """A score, per task and over all tasks, for classes or for regression.

    measure: its name and how it is shown; scorer: the scorer for searches; metric: its function.
    """

    measure: Measure
    scorer: MultiTaskScorer
    metric: Metric
    regression: bool

    @property
    def scoring(self) -> MultiTaskScorer | None:
        """The ``scoring=`` of a search; None is the mean accuracy, or R², over tasks."""
        return None if self.measure in (ACCURACY, R2) else self.scorer

    @property
    def of_shares(self) -> bool:
        """Whether the score is a share of correct answers."""
        return self.metric.function is accuracy_score

    @property
    def of_variance(self) -> bool:
        """Whether the score is plain R²."""
        return self.metric.function is r2_score and not self.metric.arguments

    @property
    def of_variance_within_tasks(self) -> bool:
        """Whether the score over all tasks is the share of their variance that is explained, as in searches."""
        return self.measure == R2

    # -------------------------------------------------------------------------------------------- the tasks
    def of_samples(
        self, X: object, y: object, *, tasks: object = None, kernels: object = "default", task_column: object = None
    ) -> Judge:
        """The judge for the tasks of these samples, see :meth:`of_tasks`; raise if they are invalid."""
        reader = PathReader(Reading(kernels, task_column, machine=MACHINES["ridge" if self.regression else "svc"]))
        return self.of_tasks(reader.read_data(X, y, tasks=tasks).labelling)

    def of_tasks(self, tasks: Labelling | Targets) -> Judge:
        """The judge for these tasks: two-class scores raise for more classes, and one-class scores name the class."""
        if isinstance(tasks, Targets):
            return self
        for source, mine in tasks.tasks_by_source.items():
            if len(mine) > 1 and self.metric.of_two_classes:
                classes = len({label for t in mine for label in tasks.pairs[t]})
                whose = "y" if source is None else f"task {literal(source)}"
                raise ValueError(
                    f"The score {self.measure.key} compares two classes, but {whose} has {classes}; use "
                    "balanced_accuracy or f1_macro."
                )
        positive = {self._positive(pair) for pair in tasks.pairs}
        if len(positive) > 1 or None in positive:
            return self
        name = f"{self.measure.name} of class {literal(positive.pop())}"
        return replace(self, measure=replace(self.measure, name=name))

    def _positive(self, pair: tuple[Hashable, ...]) -> Hashable:
        """The positive class of the score; None if it treats both classes alike."""
        if not (self.metric.of_two_classes and self.metric.takes("pos_label")):
            return None
        return self.metric.arguments.get("pos_label", 1 if 1 in pair else pair[-1])

    # --------------------------------------------------------------------------------------- one set of samples
    def score(self, truth: AnyArray, response: AnyArray, classes: Labels | None = None) -> float:
        """Score of some samples; NaN if there are none, or too few classes among them.

        truth (n,): labels or numbers; response (n,): predictions, or scores that favour the second of two ``classes``.
        """
        if not len(truth):
            return np.nan
        if self.of_variance:  # much faster than scikit-learn's
            return r_squared(truth, response, np.ones(len(truth))) if len(truth) > 1 else np.nan
        part = Part("", np.arange(len(truth)), truth, response, classes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # labels that are predicted but absent, or never predicted
            return self.metric.score(part, "predict" if self.metric.of_labels else "decision_function", None)

    def estimate(self, truth: AnyArray, response: AnyArray, classes: Labels | None = None) -> Estimate:
        """The same with its interval, where there is a formula for it."""
        if self.regression or not len(truth):
            score, error = self.score(truth, response, classes), self.standard_error(truth, response)
            return self._around(score, error)
        part = Part("", np.arange(len(truth)), truth, response, classes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return estimate(self.metric, part, "predict" if self.metric.of_labels else "decision_function", quick=True)

    def _around(self, score: float, error: float) -> Estimate:
        """The interval of a score of numbers, which is below 1, or below 0 for errors."""
        most = 0.0 if self.measure.key.removeprefix(WORST).startswith("neg_") else 1.0
        return Estimate(score, score - TWO_SIDED * error, min(most, score + TWO_SIDED * error))

    def standard_error(self, truth: AnyArray, response: AnyArray) -> float:
        """Standard error of the score of numbers: of a mean, or of R², which is a mean to first order; or NaN."""
        if len(truth) < 2 or not self.regression:
            return np.nan
        errors = truth - response
        if self.metric.function is mean_absolute_error:
            of_samples = np.abs(errors)
        elif self.metric.function is mean_squared_error:
            of_samples = errors**2
        elif self.of_variance and np.ptp(truth) > 0:
            varied = (truth - truth.mean()) ** 2
            of_samples = (errors**2 - varied * np.mean(errors**2) / varied.mean()) / varied.mean()
        else:
            return np.nan
        return float(np.std(of_samples, ddof=1) / np.sqrt(len(truth)))

    # ---------------------------------------------------------------------------------------------- all tasks
    def overall(self, scores: Sequence[float] | Array) -> float:
        """Mean over the tasks that have a score, or the lowest of them."""
        known = [float(value) for value in scores if not np.isnan(value)]
        if not known:
            return np.nan
        return min(known) if self.scorer.average == "worst" else float(np.mean(known))

    def overall_estimate(self, found: Sequence[Estimate]) -> Estimate:
        """The same with its interval."""
        known = [one for one in found if not np.isnan(one.score)]
        if known and self.scorer.average == "worst":
            return min(known, key=lambda one: one.score)
        return combined(known, np.ones(len(known)))

    def score_model(self, model: Any, X: object, y: object, tasks: object = None) -> float:
        """Score of a fitted estimator; NaN if undefined. Pass ``tasks`` unless X has a task column."""
        if self.of_variance_within_tasks:
            samples = read_samples(model, X, tasks=tasks)
            return explained(model.model_.tasks, model.model_.decided(samples), samples, y)
        if self.scoring is None:
            return float(model.score(X, y, tasks=tasks))
        found = self.scorer.score(model, X, y, tasks=tasks)
        assert isinstance(found, float)
        return found

    def judge(self, tasks: Labelling | Targets, decisions: Array, samples: Samples, y: object) -> TaskScores:
        """Scores of each task and of all, from decisions (n_samples, n_tasks)."""
        if isinstance(tasks, Labelling) and self.of_shares and not self.metric.arguments:
            right, belongs = tasks.right(decisions, y)  # all tasks at once, much faster than scikit-learn's
            counts, scores = belongs.sum(axis=0), share(right, belongs)
            found = [Estimate(*one) for one in zip(scores.tolist(), *map(list, wilson(scores, counts)), strict=True)]
        else:
            parts = self._parts(tasks, decisions, y)
            counts = np.array([len(part[0]) for part in parts])
            found = [self.estimate(*part) for part in parts]
        if isinstance(tasks, Targets) and self.of_variance_within_tasks:
            overall = _explained_by(tasks, decisions, y)
        elif len(tasks.distinct_sources) < tasks.n_tasks:  # the pairs of classes vote
            truth, labels = tasks.truth(y), tasks.predictions(decisions)
            groups = [(plain_labels(truth[rows]), plain_labels(labels[rows])) for rows, _ in tasks.groups(samples)]
            overall = self.overall_estimate([self.estimate(*group) for group in groups])
        else:
            overall = self.overall_estimate(found)
        scores, low, high = np.array(found, dtype=float).reshape(-1, 3).T
        return TaskScores(scores, low, high, counts, overall)

    def _parts(self, tasks: Labelling | Targets, decisions: Array, y: object) -> Sequence[Answers]:
        """Truth, response and classes of each task."""
        if isinstance(tasks, Targets):
            return [(truth, predicted, None) for truth, predicted, _ in tasks.by_task(decisions, y)]
        truth, (_, belongs), parts = tasks.truth(y), tasks.right(decisions, y), []
        for t, classes in enumerate(tasks.pairs):
            rows, pair = np.flatnonzero(belongs[:, t]), list(classes)
            labels = (truth if truth.ndim == 1 else truth[:, t])[rows]
            if len(pair) == 1:  # one class against the rest
                labels, pair = equal_labels(labels, pair[0]), [False, True]
            answer = decisions[rows, t]
            if self.metric.of_labels:
                answer = array_of(pair)[(answer > 0).astype(int)]
            parts.append((plain_labels(labels), answer, pair))
        return parts


def explained(tasks: TaskSet, decided: Decided, samples: Samples, y: object) -> float:
    """The share of the variance within regression tasks that decisions explain, see :func:`unexplained`."""
    return 1 - tasks.loss(samples, y)(decided)


def _explained_by(targets: Targets, decisions: Array, y: object) -> Estimate:
    """The same, with its interval, from decisions (n_samples, n_tasks)."""
    parts = list(zip(targets.by_task(decisions, y), targets.level, targets.deviation, strict=True))
    errors = np.concatenate([(truth - predicted) / unit for (truth, predicted, _), _, unit in parts])
    varied = np.concatenate([(truth - level) / unit for (truth, _, _), level, unit in parts])
    return explained_estimate(errors, varied)


def explained_estimate(errors: Array, varied: Array) -> Estimate:
    """The share of the variance within tasks that is explained, with the interval of a ratio of sums."""
    score = 1 - unexplained(errors, varied, np.ones(len(errors)))
    of_samples = errors**2 - (1 - score) * varied**2
    spread = float(np.sum(varied**2))
    error = np.sqrt(len(errors)) * np.std(of_samples, ddof=1) / spread if len(errors) > 1 and spread > 0 else np.nan
    return Estimate(score, score - TWO_SIDED * error, min(1.0, score + TWO_SIDED * error))


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
    measure = measure_of(metric, regression)
    if scorer.average == "worst":
        measure = replace(measure, name=f"{measure.name} of the worst task", key=WORST + measure.key)
    return Judge(measure, scorer, metric, regression)


def measure_of(metric: Metric, regression: bool) -> Measure:
    """What a metric is called and how it is shown."""
    unknown = Measure(metric.name.replace("_", " "), metric.name, metric.function is accuracy_score, regression)
    return (REGRESSION_MEASURES if regression else CLASS_MEASURES).get(metric.name, unknown)
