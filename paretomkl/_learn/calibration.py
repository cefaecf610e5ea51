"""Probabilities from decisions: a softmax, fitted to decisions on held-out samples.

    P(class k | x, task t) ∝ exp( Σ_d a_td u_kd(x) + b_tk )

The evidence u_k for class k is half the decision, ±f/2, for two classes, and the decision of class k for one class
against the rest. For pairs of classes there are two kinds of evidence: the mean decision of the pairs of class k, and
the sum, over these pairs, of the logarithms of their probabilities σ(±c f), divided by a power of their number. Slopes
a and offsets b of a task start from those of all tasks together, and move away from them as far as the samples of the
task justify.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from scipy.special import log_expit, logsumexp, softmax

from .._data.labels import Decided, Labelling, Samples
from .._data.tasks import codes_of, labels_by_task, listed, rows_by_code
from .._data.together import Together
from .._tools.typing import AnyArray, Array, ClassWeight, IntArray

# precisions of the priors, in units of one sample; those of all tasks keep the fit of separable decisions finite
SLOPE, OFFSET = 0.3, 1.0
OWN_SLOPE, OWN_OFFSET = 10.0, 5.0  # of the differences between a task and all tasks
STEEPNESS = {"margins": 2.0, "log-odds": 1.0}  # c, the log-odds of a typical decision; estimates of ±1 have none
REPEATED = 0.25  # 0 if pairs were independent evidence, whose logarithms add up; 1 if all said the same
STEPS, SMALL_STEP, DONE = 50, 1e-6, 1e-9

Tasks = Labelling | Together


@dataclass(frozen=True)
class HeldOut:
    """Decisions on samples that the model has not seen, with the labels and weights of these."""

    tasks: Tasks
    decided: Decided
    samples: Samples
    y: Any
    weight: Array | None = None


@dataclass(frozen=True)
class Cases:
    """Samples in their tasks: for a matrix y, one case per entry, column by column.

    evidence: (n_cases, n_classes, n_kinds); possible: (n_cases, n_classes), the classes that the task of a case has;
    source: (n_cases,), the position of its task among ``distinct_sources``, −1 for a task not seen in training.
    """

    evidence: Array
    possible: AnyArray
    source: IntArray

    @classmethod
    def of(cls, tasks: Tasks, decided: Decided, samples: Samples, steepness: float | None, n_kinds: int) -> Cases:
        if tasks.kind == "matrix":
            half = decided.values.T.ravel() / 2
            source = np.repeat(np.arange(tasks.n_tasks), len(samples))
            return cls(np.stack([-half, half], axis=1)[..., None], np.ones((len(half), 2), dtype=bool), source)
        evidence, possible = _by_class(
            tasks.whole if isinstance(tasks, Together) else tasks, decided, steepness, n_kinds
        )
        return cls(evidence, possible, _source(tasks, samples))

    def take(self, rows: IntArray) -> Cases:
        return Cases(self.evidence[rows], self.possible[rows], self.source[rows])

    def log_odds(self, slopes: Array, offsets: Array) -> Array:
        """Logarithms of the probabilities up to a constant of each case; −inf for classes that are not possible."""
        return np.where(self.possible, (self.evidence * slopes[..., None, :]).sum(axis=-1) + offsets, -np.inf)


def _by_class(labelling: Labelling, decided: Decided, steepness: float | None, n_kinds: int) -> tuple[Array, AnyArray]:
    """The evidence for each class, and which classes the tasks of each sample have."""
    negative, positive = labelling.sides_of_classes
    known = ~np.isnan(decided.values)
    f = np.where(known, decided.values, 0.0)
    possible = decided.times(known, positive + negative) > 0
    sums = decided.times(f, positive - negative)
    if labelling.one_vs_rest:
        return sums[..., None], possible
    n_classes = possible.sum(axis=1, keepdims=True)
    kinds = [sums / n_classes]
    if n_kinds > 1 and steepness is not None:
        of_plus, of_minus = (known * log_expit(sign * steepness * f) for sign in (1, -1))
        logs = decided.times(of_plus, positive) + decided.times(of_minus, negative)
        kinds.append(logs * (2 / np.maximum(n_classes, 2)) ** REPEATED)
    return np.stack(kinds, axis=-1), possible


def _source(tasks: Tasks, samples: Samples) -> IntArray:
    if samples.sources is None:
        return np.zeros(len(samples), dtype=np.int64)
    return codes_of(samples.sources, tasks.distinct_sources)


@dataclass(frozen=True)
class Labelled:
    """Cases whose class is known, (n_cases,), and their weights."""

    cases: Cases
    labels: IntArray
    weight: Array

    @classmethod
    def of(cls, part: HeldOut, tasks: Tasks, start: Calibration, class_weight: ClassWeight) -> Labelled:
        """The cases of one fold, with the classes and tasks of the model of all samples."""
        own = part.tasks
        cases = start.cases(own, part.decided, part.samples, tasks)
        weight = np.ones(len(part.samples)) if part.weight is None else np.asarray(part.weight, dtype=float)
        if own.kind == "matrix":
            columns = list(labels_by_task(part.y, list(own.sources)).T)
            known, weight = own.classes, np.tile(weight, own.n_tasks)
        else:
            columns, known = [np.asarray(part.y).ravel()], [tasks.classes]
        labels = np.concatenate([codes_of(one, listed(those)) for one, those in zip(columns, known, strict=True)])
        if isinstance(class_weight, Mapping):
            given = [class_weight.get(label, 1.0) for one in columns for label in listed(one)]
            weight = weight * np.asarray(given, dtype=float)
        used = np.flatnonzero((labels >= 0) & (weight > 0))
        used = used[cases.possible[used, labels[used]]]
        return cls(cases.take(used), labels[used], weight[used])

    @classmethod
    def joined(cls, parts: Sequence[Labelled]) -> Labelled:
        cases = Cases(*(np.concatenate([getattr(part.cases, f.name) for part in parts]) for f in fields(Cases)))
        return cls(cases, *(np.concatenate([getattr(part, name) for part in parts]) for name in ("labels", "weight")))

    def take(self, rows: IntArray) -> Labelled:
        return Labelled(self.cases.take(rows), self.labels[rows], self.weight[rows])

    def balanced(self) -> Labelled:
        """With weights that give all classes of a task the same total."""
        n_classes = self.cases.possible.shape[1]
        cells, cell = np.unique(self.cases.source * n_classes + self.labels, return_inverse=True)
        total = np.bincount(cell, self.weight)
        _, task = np.unique(cells // n_classes, return_inverse=True)
        factor = (np.bincount(task, total) / np.bincount(task))[task] / total
        return Labelled(self.cases, self.labels, self.weight * factor[cell])


@dataclass(frozen=True)
class Calibration:
    """Slopes and offsets of each task (a task label, or a column of y), and in the last row those for new tasks.

    slopes: (n_sources + 1, n_kinds); offsets: (n_sources + 1, n_classes); steepness: c, None if decisions estimate ±1;
    scale: by which decisions are divided, their root mean square on held-out samples.
    """

    slopes: Array
    offsets: Array
    steepness: float | None
    scale: float = 1.0

    @classmethod
    def plain(cls, tasks: Tasks, decisions: str, scale: float = 1.0) -> Calibration:
        """The start of a fit: with log-odds, the probabilities that decisions promise."""
        steepness, matrix, natural = STEEPNESS.get(decisions), tasks.kind == "matrix", decisions == "log-odds"
        labelling = tasks.whole if isinstance(tasks, Together) else tasks
        n_kinds = 1 + (steepness is not None and not matrix and len(tasks.classes) > 2 and not labelling.one_vs_rest)
        slopes = np.zeros((len(tasks.distinct_sources) + 1, n_kinds))
        slopes[:, -1] = scale if natural and n_kinds == 1 else 1.0
        offsets = np.zeros((len(slopes), 2 if matrix else len(tasks.classes)))
        return cls(slopes, offsets, scale if natural else steepness, scale)

    @classmethod
    def of(
        cls, tasks: Tasks, decisions: str, parts: Sequence[HeldOut], class_weight: ClassWeight = None
    ) -> Calibration:
        """Fit to the held-out decisions of folds; ``tasks`` are those of the model of all samples."""
        start = cls.plain(tasks, decisions, _root_mean_square(parts))
        known = Labelled.joined([Labelled.of(part, tasks, start, class_weight) for part in parts])
        if not len(known.labels):
            return start
        if class_weight == "balanced":
            known = known.balanced()
        slopes, offsets = start.slopes, start.offsets
        slope, offset = _fit(known, slopes[-1], offsets[-1], SLOPE, OFFSET)
        slopes, offsets = np.tile(slope, (len(slopes), 1)), np.tile(offset, (len(offsets), 1))
        if len(slopes) > 2:
            seen = np.flatnonzero(known.cases.source >= 0)
            for t, rows in enumerate(rows_by_code(known.cases.source[seen], len(slopes) - 1)):
                if len(rows):
                    own = known.take(seen[rows])
                    slopes[t], offsets[t] = _fit(own, slope, offset, OWN_SLOPE, OWN_OFFSET)
        return cls(slopes, offsets, start.steepness, start.scale)

    def cases(self, tasks: Tasks, decided: Decided, samples: Samples, whole: Tasks) -> Cases:
        """The evidence in decisions of the ``whole`` tasks, or of a fold, which may lack some of their classes."""
        scaled, n_kinds = replace(decided, values=decided.values / self.scale), self.slopes.shape[1]
        cases = Cases.of(tasks, scaled, samples, self.steepness, n_kinds)
        if tasks is whole or tasks.kind == "matrix":
            return cases
        place = codes_of(np.asarray(tasks.classes), listed(whole.classes))
        evidence = np.zeros((len(samples), len(whole.classes), cases.evidence.shape[2]))
        possible = np.zeros(evidence.shape[:2], dtype=bool)
        evidence[:, place], possible[:, place] = cases.evidence, cases.possible
        return Cases(evidence, possible, _source(whole, samples))

    def probabilities(self, tasks: Tasks, decided: Decided, samples: Samples, whole: Tasks | None = None) -> Any:
        """Probabilities of the classes, (n_samples, n_classes); for a matrix y a list with (n_samples, 2) per task.

        The classes are those of the ``whole``, if ``tasks`` are those of a fold. The predicted class gets the largest
        probability: where the softmax favours others, they share theirs with it.
        """
        whole = whole or tasks
        cases = self.cases(tasks, decided, samples, whole)
        found = softmax(cases.log_odds(self.slopes[cases.source], self.offsets[cases.source]), axis=1)
        if tasks.kind == "matrix":
            predicted = (decided.values.T.ravel() > 0).astype(np.int64)
            return list(led_by(found, predicted).reshape(tasks.n_tasks, len(samples), 2))
        return led_by(found, codes_of(tasks.predictions(decided), listed(whole.classes)))


def _root_mean_square(parts: Sequence[HeldOut]) -> float:
    """Of the decisions, by the weights of their samples; one if all are zero."""
    total = count = 0.0
    for part in parts:
        known = ~np.isnan(part.decided.values)
        weight = known * (1.0 if part.weight is None else np.asarray(part.weight, dtype=float)[:, None])
        total += float(np.sum(weight * np.where(known, part.decided.values, 0.0) ** 2))
        count += float(weight.sum())
    return float(np.sqrt(total / count)) if total > 0 else 1.0


def led_by(found: Array, chosen: IntArray) -> Array:
    """The nearest probabilities among those in which the chosen class (n_cases,) has the largest."""
    rows = np.flatnonzero(found.argmax(axis=1) != chosen)
    for i, k in zip(rows.tolist(), chosen[rows].tolist(), strict=True):
        others = np.argsort(-found[i], kind="stable")
        others = others[others != k]
        # the chosen class and the largest others share their sum, as many of them as are above the mean
        means = (found[i, k] + np.cumsum(found[i, others])) / np.arange(2, len(others) + 2)
        n = int(np.argmax(means)) + 1
        found[i, others[:n]] = means[n - 1] * (1 - 1e-9)
        found[i, k] = means[n - 1] * (1 + n * 1e-9)
    return found


def _fit(known: Labelled, slope: Array, offset: Array, slope_precision: float, offset_precision: float) -> Any:
    """Slopes (n_kinds,) and offsets (n_classes,) of the largest posterior, with a Gaussian prior around the given ones.

    Newton's method with halved steps, on the negative logarithm of the posterior, which is convex.
    """
    u, labels, weight = known.cases.evidence, known.labels, known.weight
    n, n_kinds = len(labels), len(slope)
    start = np.concatenate([slope, offset])
    precision = np.repeat([slope_precision, offset_precision], [n_kinds, len(offset)])

    def value(v: Array) -> tuple[float, Array]:
        z = known.cases.log_odds(v[:n_kinds], v[n_kinds:])
        total = logsumexp(z, axis=1)
        return float(weight @ (total - z[np.arange(n), labels]) + precision @ (v - start) ** 2 / 2), z - total[:, None]

    v = start
    reached, z = value(v)
    for _ in range(STEPS):
        q = np.exp(z)
        excess = weight[:, None] * q
        mean = (q[..., None] * u).sum(axis=1)
        centred = u - mean[:, None]
        hessian = np.diag(precision)
        hessian[:n_kinds, :n_kinds] += np.einsum("nk,nkd,nke->de", excess, centred, centred)
        cross = (excess[..., None] * centred).sum(axis=0).T
        hessian[:n_kinds, n_kinds:] += cross
        hessian[n_kinds:, :n_kinds] += cross.T
        hessian[n_kinds:, n_kinds:] += np.diag(excess.sum(axis=0)) - excess.T @ q
        excess[np.arange(n), labels] -= weight
        gradient = np.concatenate([np.einsum("nk,nkd->d", excess, u), excess.sum(axis=0)]) + precision * (v - start)
        step, size = np.linalg.solve(hessian, gradient), 1.0
        while True:
            found, z = value(v - size * step)
            if found <= reached or size < SMALL_STEP:
                break
            size /= 2
        v, change, reached = v - size * step, reached - found, found
        if change <= DONE * (1 + abs(reached)):
            break
    return v[:n_kinds], v[n_kinds:]
