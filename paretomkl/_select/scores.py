"""Scores for judging models, per task and over all tasks, with the words to display them."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import accuracy_score, mean_absolute_error, mean_squared_error, r2_score

from .._data.labels import Decided, Labelling, Samples, TaskSet
from .._data.numbers import Targets, r_squared
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
from .scorers import Metric, MultiTaskScorer, Part, make_multitask_scorer, metric_of, plain_labels

Labels = list[Any]  # all labels of a task
Answers = tuple[AnyArray, AnyArray, Labels | None]  # truth, response and labels of a task


class TaskScores(NamedTuple):
    """Scores of each task, their standard errors (NaN if there is no formula) and sample counts; and of all tasks."""

    scores: Array
    errors: Array
    counts: IntArray
    overall: float


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

    def standard_error(self, truth: AnyArray, response: AnyArray, classes: Labels | None = None) -> float:
        """Standard error of :meth:`score` over samples: of a mean, or of R², which is a mean to first order; or NaN."""
        if self.of_shares and len(truth):
            return float(standard_error_of_share(self.score(truth, response, classes), len(truth)))
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

    def overall_error(self, scores: Sequence[float] | Array, errors: Sequence[float] | Array) -> float:
        """Standard error of :meth:`overall`, from task scores and their standard errors."""
        known = ~np.isnan(np.asarray(scores, dtype=float))
        if not known.any():
            return np.nan
        values, spread = np.asarray(scores)[known], np.asarray(errors)[known]
        if self.scorer.average == "worst":
            return float(spread[values.argmin()])
        return float(np.sqrt(np.sum(spread**2)) / len(spread))

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
            errors = standard_error_of_share(scores, counts)
        else:
            parts = self._parts(tasks, decisions, y)
            counts = np.array([len(part[0]) for part in parts])
            scores = np.array([self.score(*part) for part in parts])
            errors = np.array([self.standard_error(*part) for part in parts])
        overall = self.overall(scores)
        if self.of_variance_within_tasks:
            overall = explained(tasks, Decided.of(decisions), samples, y)
        elif self.measure == ACCURACY:
            overall = tasks.score(decisions, samples, y)
        elif len(tasks.distinct_sources) < tasks.n_tasks:  # the pairs of classes vote
            truth, labels = tasks.truth(y), tasks.predictions(decisions)
            groups = [(plain_labels(truth[rows]), plain_labels(labels[rows])) for rows, _ in tasks.groups(samples)]
            overall = self.overall([self.score(*group) for group in groups])
        return TaskScores(scores, errors, counts, overall)

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
    measure = measure_of(metric, regression)
    if scorer.average == "worst":
        measure = replace(measure, name=f"{measure.name} of the worst task", key=WORST + measure.key)
    return Judge(measure, scorer, metric, regression)


def measure_of(metric: Metric, regression: bool) -> Measure:
    """What a metric is called and how it is shown."""
    unknown = Measure(metric.name.replace("_", " "), metric.name, metric.function is accuracy_score, regression)
    return (REGRESSION_MEASURES if regression else CLASS_MEASURES).get(metric.name, unknown)
