"""What one fold loses without a source, a kernel or the order of a column."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .._data.labels import Decided, Samples
from .._data.reading import Examples, Training, apart
from .._data.tasks import rows_by_label
from .._fitting.exchange import exchanged
from .._fitting.models import SeparateModel, SharedModel, decide_all
from .._fitting.tracing import Grid, models_of, trace_without
from .._select.folds import Fold, foreign_score, own_score
from .._tools.running import Progress
from .._tools.typing import AnyArray, Array, IntArray
from ..exceptions import NewTaskWarning
from ._gains import Gains


@dataclass(frozen=True)
class Units:
    """What the importances are of: names, and the columns of each, or how to find its kernels by name."""

    by: str
    names: list[str]
    columns: list[IntArray]

    def kernels_of(self, bank: Any) -> list[AnyArray]:
        """Which kernels of a bank belong to each unit, (n_kernels,) each."""
        if self.by == "source":
            known = bank.by_name()
            return [known.get(name, np.zeros(bank.n_kernels, dtype=bool)) for name in self.names]
        own = np.array(bank.names)
        return [own == name for name in self.names]


@dataclass(frozen=True)
class Job:
    """A fold to fit again: the estimator at the chosen point, and the samples to learn from and those held out.

    n_permutations: how often to permute, 0 to leave out instead; seed: of the permutations; known: the tasks, if there
    are several; asked: X and tasks as the scorer of the user wants them, None for the default score.
    """

    estimator: Any
    learned: Examples
    held_out: Examples
    units: Units
    n_permutations: int
    seed: int
    known: Sequence[Hashable]
    scorer: Any
    asked: dict[str, Any]


class Losses(NamedTuple):
    """The score of one fold with all units, and what it loses without each of them.

    overall: (n_units,); by_task: (n_units, n_tasks) for the score of each task alone, NaN for a task without held-out
    samples, or None if the scorer is the user's own.
    """

    score: float
    overall: Array
    by_task: Array | None


def losses_of(job: Job) -> Losses:
    """Fit one fold, and compare its held-out decisions with those without each unit, or with it permuted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NewTaskWarning)  # folds may leave tasks out on purpose
        training = job.learned.training(job.estimator.reading, strict=False)
        tasks = training.together or training.labelling
        decided = (_permuted if job.n_permutations else _without)(job, training)
        return _compared(job, tasks, next(decided), decided)


def _compared(job: Job, tasks: Any, whole: Decided, others: Iterator[Decided]) -> Losses:
    def means(of: Callable[[Decided], Any]) -> list[Any]:
        """For each unit, the mean over its permutations."""
        each = range(max(1, job.n_permutations))
        return [np.mean([of(next(others)) for _ in each], axis=0) for _ in job.units.names]

    if job.scorer is not own_score:
        fold = Fold(0, "kernel", Grid([], [], []), job.estimator, job.learned, job.held_out, job.scorer, job.asked)
        point: Any = job.estimator  # whose p and C the scorer may see
        score = foreign_score(fold, tasks, point, whole, np.nan)
        return Losses(score, score - np.array(means(lambda one: foreign_score(fold, tasks, point, one, np.nan))), None)
    gains = Gains.make(tasks, job.held_out, job.known)
    at_first, n_tasks = gains.of(whole), len(job.known)
    lost = [at_first - of_unit for of_unit in means(gains.of)]
    overall = np.array([(gains.weight * of_unit).sum() for of_unit in lost])
    score = float((gains.weight * at_first).sum()) + bool(tasks.chosen_by_loss)
    return Losses(score, overall, np.array([gains.by_task(of_unit, n_tasks) for of_unit in lost]))


# ------------------------------------------------------------------------------------------------- leaving out
def _without(job: Job, training: Training) -> Iterator[Decided]:
    """Decisions with all kernels, then of models learned without those of each unit."""
    estimator, held_out = job.estimator, job.held_out.samples
    if training.share != "nothing":
        yield from _learned_without(job, training, held_out)
        return
    tasks = training.labelling
    groups = tasks.groups(held_out)
    missing = Decided.missing(groups, len(held_out))
    rows_of = {t: rows for rows, asked in groups for t in asked.tolist()}
    values = np.repeat(missing.values[None], 1 + len(job.units.names), axis=0)
    for mine, own in zip(tasks.tasks_by_source.values(), apart(training), strict=True):
        rows = rows_of.get(mine[0], np.arange(0))
        slots = mine if tasks.kind == "matrix" else range(len(mine))
        alone = replace(job, estimator=copy(estimator))
        for k, found in enumerate(_learned_without(alone, own, Samples(held_out.data[rows]))):
            values[k][np.ix_(rows, slots)] = found.values
    for of_unit in values:
        yield replace(missing, values=of_unit)


def _learned_without(job: Job, training: Training, held_out: Samples) -> Iterator[Decided]:
    estimator = job.estimator
    exponents = estimator.exponents()
    parts = estimator.parts(exponents)
    if parts.solver is not estimator.solver:
        parts = replace(parts, solver=parts.solver.for_scores())
    posed = estimator.posed(training, training.bounds(estimator.C), parts)
    left_out = job.units.kernels_of(posed.bank)
    banks, points = zip(*trace_without(posed, left_out, exponents, parts, Progress(1, estimator.tol, 0)), strict=True)
    models = models_of(training, points, *banks)
    shared = training.together
    seen = held_out if shared is None else shared.coded_samples(held_out)
    for decided in decide_all(models, seen):
        yield decided if shared is None else shared.shaped(decided)


# -------------------------------------------------------------------------------------------------- permuting
def _permuted(job: Job, training: Training) -> Iterator[Decided]:
    """Decisions of the learned model, then with the columns of each unit permuted among the held-out samples."""
    estimator, held_out = copy(job.estimator), job.held_out.samples
    model = _alone(estimator.learned(training).model_)
    yield model.decided(held_out)
    rng = np.random.default_rng(job.seed)
    yield from exchanged(
        model, held_out, job.units.columns, [donors_of(held_out, rng) for _ in range(job.n_permutations)]
    )


def _alone(model: Any) -> Any:
    """The model without those that stand in for it where samples lack sources: searches score it without them too."""
    if isinstance(model, SharedModel):
        return replace(model, whole=_alone(model.whole))
    if isinstance(model, SeparateModel):
        return replace(model, models=[_alone(one) for one in model.models])
    return replace(model, stand_ins=())


def donors_of(samples: Samples, rng: np.random.Generator) -> IntArray:
    """The sample whose columns each sample gets: another one of its task, at random."""
    donors = np.arange(len(samples))
    groups = [donors.copy()] if samples.sources is None else list(rows_by_label(samples.sources).values())
    for rows in groups:
        order = rng.permutation(rows)
        donors[order] = np.roll(order, 1)  # one cycle, so that no sample keeps its own columns
    return donors
