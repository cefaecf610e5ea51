"""Fitted models: the functions of all tasks."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, vstack
from threadpoolctl import threadpool_limits

from .._data.labels import Blocks, Decided, Groups, Labelling, Samples, TaskSet, as_blocks, flat_stack
from .._data.tasks import Task, as_sources, codes_of, listed, unique_labels
from .._data.together import Together
from .._tools.public import PublicNames
from .._tools.running import blas_threads
from .._tools.typing import AnyArray, Array, IntArray
from .._tools.wording import counted, literal
from ..exceptions import NewTaskWarning
from ..kernels._evaluation import as_matrix, gaps_in, side_by_side
from ..kernels._fitted import FittedBank
from ..sweep import Decisions
from .continuing import Continuation

BATCH_BYTES = 64 * 2**20  # size of the kernel values of one batch of samples
DEVICE_ROWS = 20_000  # samples whose decisions a device evaluates at a time
TOGETHER = 8  # number of models whose kernels are combined in one product
JOINED = 4096  # pairs of samples up to which small groups are evaluated together
MANY_ROWS = 1000  # samples from which limiting the threads of their products pays
LARGE = 1_000_000  # pairs of samples above which limiting the threads of a product pays


class Joint(NamedTuple):
    """Rows and tasks of several groups, and the rows and tasks of each group as slices of these."""

    rows: IntArray
    tasks: IntArray
    parts: list[tuple[slice, slice]]

    @classmethod
    def of(cls, groups: Groups) -> Joint:
        if len(groups) == 1:
            return cls(*groups[0], [(slice(None), slice(None))])
        of_rows, of_tasks = zip(*groups, strict=True)
        edges = (np.cumsum([0, *map(len, lists)]).tolist() for lists in (of_rows, of_tasks))
        parts = zip(*([slice(a, b) for a, b in pairwise(ends)] for ends in edges), strict=True)
        return cls(np.concatenate(of_rows), np.concatenate(of_tasks), list(parts))

    def place(self, values: Array, rows: IntArray, out: Array) -> None:
        """Copy values (…, n_rows, n_tasks) to the first slots of rows of ``out`` (…, n_samples, n_slots)."""
        for mine, columns in self.parts:
            own = values[..., mine, columns]
            out[..., rows[mine], : own.shape[-1]] = own


class FittedTasks:
    """Base class of fitted models, for subclasses with ``tasks`` and a method that evaluates tasks at some rows."""

    tasks: Any  # a Labelling, Targets or Regions

    def _values(self, data: AnyArray, rows: IntArray, tasks: IntArray) -> Array:
        """f_t(x) of the given tasks for the given rows of the data, (n_rows, len(tasks))."""
        raise NotImplementedError

    def decided(self, samples: Samples) -> Decided:
        """f_t(x) of the tasks of each sample."""
        groups = self.tasks.groups(samples)
        decided = Decided.missing(groups, len(samples))
        # products with duals and of features are thin: several threads mostly wait for each other
        with blas_threads(1) if len(samples) > MANY_ROWS else nullcontext():
            for joint in self.joined(groups):
                joint.place(self._values(samples.data, joint.rows, joint.tasks), joint.rows, decided.values)
        return decided

    def joined(self, groups: Groups) -> Iterator[Joint]:
        """The groups in batches that are evaluated at once."""
        return (Joint.of([group]) for group in groups)

    def decisions(self, samples: Any, tasks: Any = None) -> Array:
        """f_t(x) of every task for its samples, (n_samples, n_tasks); NaN elsewhere.

        ``samples`` is the result of a reader, or an array of features, with the task of each row in ``tasks``.
        """
        return self.decided(as_samples(samples, tasks)).matrix(self.tasks.n_tasks)

    def predict(self, samples: Any, tasks: Any = None) -> AnyArray:
        """Labels or numbers of shape (n_samples,), or (n_samples, n_tasks) if y was a matrix."""
        return self.tasks.predictions(self.decided(as_samples(samples, tasks)))

    def score(self, samples: Any, y: Any, tasks: Any = None, weight: Array | None = None) -> float:
        """Mean accuracy or R² over the tasks; plain accuracy if the tasks are made from the classes."""
        samples = as_samples(samples, tasks)
        return self.tasks.score(self.decided(samples), samples, y, weight)

    def task_accuracy(self, samples: Any, y: Any, tasks: Any = None) -> Array:
        """Share of samples on the correct side of each task, (n_tasks,); NaN for a task without samples."""
        decided = self.decided(as_samples(samples, tasks))
        n_right, n_samples = (decided.sums(found, self.tasks.n_tasks) for found in self.tasks.right(decided, y))
        return _ratio(n_right, n_samples)


@dataclass(frozen=True)
class Support:
    """The training samples that the functions use: their rows, and their features unless kernels are precomputed."""

    rows: IntArray
    vectors: Array | None

    def side(self, bank: FittedBank, used: IntArray) -> Any:
        """The ``used`` ones as columns of cross kernels."""
        return bank.side_of_columns(len(used)) if self.vectors is None else bank.side(self.vectors[used])


@dataclass(frozen=True)
class StandIn:
    """The tasks solved with the kernels of some sources only, for samples that lack the others.

    there (n_sources,): the sources it uses; theta, dual, intercepts: as in :class:`TaskModel`.
    """

    there: tuple[bool, ...]
    theta: Array
    dual: csr_matrix
    intercepts: Array


@dataclass(frozen=True)
class TaskModel(PublicNames, FittedTasks):
    """The functions f_t(x) = Σ_i dual_ti k_θ(x_i, x) + d k_θ(x, x) + b_t of all tasks.

    Attributes
    ----------
    bank : FittedBank
        The base kernels.
    tasks : TaskSet
        The tasks, and what their decisions mean.
    support : Support
        The training samples x_i of all tasks.
    theta : array of shape (n_kernels,), or (n_tasks, n_kernels)
        Kernel weights.
    dual : sparse matrix of shape (n_tasks, n_support)
    intercepts : array of shape (n_tasks,)
    diagonal : float
        d, which is zero for all machines except SVDD.
    continuation : Continuation, default=None
        What a later fit with more rows can take over.
    stand_ins : sequence of StandIn
        If some training samples lack sources: a model for each source alone, and one for each set of sources that
        training samples have. A sample that lacks sources gets the mean of the decisions by each of its sources alone,
        averaged with the decision by its set of sources if there is one.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl import pareto_path
    >>> X, y = load_iris(return_X_y=True)
    >>> model = pareto_path(X, y, ps=[1]).models[0]
    >>> model.predict(X[:2]).tolist(), model.decisions(X).shape
    ([0, 0], (150, 3))
    """

    _internal = ("decided", "joined", "parts", "trimmed")

    bank: FittedBank
    tasks: Any
    support: Support
    theta: Array
    dual: csr_matrix
    intercepts: Array
    diagonal: float = 0.0
    continuation: Continuation | None = None
    stand_ins: Sequence[StandIn] = ()

    def trimmed(self) -> TaskModel:
        """A copy with only the support vectors it needs; the models of a path share theirs."""
        duals = [self.dual, *(own.dual for own in self.stand_ins)]
        used = np.unique(np.concatenate([dual.indices for dual in duals]))
        vectors = None if self.support.vectors is None else self.support.vectors[used]
        stand_ins = [replace(own, dual=own.dual[:, used]) for own in self.stand_ins]
        support = Support(self.support.rows[used], vectors)
        return replace(self, support=support, dual=self.dual[:, used], stand_ins=stand_ins)

    def decided(self, samples: Samples) -> Decided:
        decided = super().decided(samples)
        for rows, models, weights in self._standing_in(samples):
            values = np.tensordot(weights, [model.decided(samples[rows]).values for model in models], axes=1)
            decided.values[rows[:, None], np.arange(values.shape[1])] = values
        return decided

    def _standing_in(self, samples: Samples) -> Iterator[tuple[IntArray, list[TaskModel], Array]]:
        """For each set of sources that some samples lack: their rows, the models that decide, and their weights."""
        if not self.stand_ins or not gaps_in(samples.data):
            return
        assert self.bank.preparation is not None
        known = {own.there: own for own in self.stand_ins}
        lacks = self.bank.preparation.lacking(samples.data)
        some = lacks.any(axis=1) & ~lacks.all(axis=1)
        for pattern in np.unique(lacks[some], axis=0):
            rows = np.flatnonzero((lacks == pattern).all(axis=1))
            there = [tuple(one.tolist()) for one in np.eye(len(pattern), dtype=bool)[~pattern]]
            weights = np.full(len(there), 1 / len(there))
            whole = tuple((~pattern).tolist())
            if whole in known and len(there) > 1:
                there, weights = [*there, whole], np.append(weights / 2, 0.5)
            own = [known[one] for one in there]
            models = [
                replace(self, theta=one.theta, dual=one.dual, intercepts=one.intercepts, stand_ins=()) for one in own
            ]
            yield rows, models, weights

    def kernel(self, samples: Samples, others: Samples | None = None) -> Array:
        """Σ_m θ_m K_m between samples and others, by default themselves, (n_samples, n_others)."""
        if self.theta.ndim > 1:
            raise AttributeError("Each task has a kernel of its own, so there is no kernel of all samples.")
        bank: Any = self.bank
        if bank.precomputed:
            if others is not None:
                raise ValueError("The columns of a precomputed stack are the training samples; leave out Z.")
            return np.asarray(samples.data @ (self.theta * bank.factor))
        if not all(kernel.measures_itself for kernel in (bank.base if bank.coupled else bank).kernels):
            raise AttributeError("A precomputed block has no values between new samples, so there is no kernel.")
        left = bank.side(samples.data)
        return np.asarray(bank.cross(left, left if others is None else bank.side(others.data), self.theta))

    def joined(self, groups: Groups) -> Iterator[Joint]:
        """Join consecutive small groups: evaluating a few pairs too many costs less than another call."""
        most = min(JOINED, BATCH_BYTES // (8 * (self.bank.n_kernels + TOGETHER))) if self.theta.ndim == 1 else 0
        n_support = np.diff(self.dual.indptr)
        some: Groups = []
        n_rows = n_columns = 0
        for rows, tasks in groups:
            n_rows, n_columns = n_rows + len(rows), n_columns + int(n_support[tasks].sum())
            if some and n_rows * n_columns > most:
                yield Joint.of(some)
                some, n_rows, n_columns = [], len(rows), int(n_support[tasks].sum())
            some.append((rows, tasks))
        if some:
            yield Joint.of(some)

    def _values(self, data: AnyArray, rows: IntArray, tasks: IntArray) -> Array:
        if self.theta.ndim == 1:
            return self._values_at(self.theta, data, rows, tasks)
        out = np.empty((len(rows), len(tasks)))
        thetas, which = np.unique(self.theta[tasks], axis=0, return_inverse=True)  # group tasks with equal weights
        for k, theta in enumerate(thetas):
            mine = np.flatnonzero(which.ravel() == k)
            out[:, mine] = self._values_at(theta, data, rows, tasks[mine])
        return out

    def _values_at(self, theta: Array, data: AnyArray, rows: IntArray, tasks: IntArray) -> Array:
        """Values in batches, with kernels only to the support vectors of these tasks."""
        # slices of sparse matrices take as long as the kernel values of a row
        dual = self.dual if np.array_equal(tasks, np.arange(self.dual.shape[0])) else self.dual[tasks]
        used = np.unique(dual.indices)
        out = np.tile(self.intercepts[tasks], (len(rows), 1))
        if len(used) == 0:
            return out
        bank, dual = self.bank, dual if len(used) == dual.shape[1] else dual[:, used]
        coefficients = dual.T.toarray()
        right = self.support.side(bank, used)
        device = bank.device_for(right, len(rows) * len(used))
        step = DEVICE_ROWS if device else max(1, int(BATCH_BYTES // (8 * len(used) * max(1, bank.n_bases))))
        for first in range(0, len(rows), step):
            part = _part(bank, data, rows[first : first + step], self.support.rows[used])
            out[first : first + step] += bank.sums(bank.side(part), right, theta, coefficients, device)
            if self.diagonal:
                out[first : first + step] += self.diagonal * (theta @ bank.diagonals(part))[:, None]
        return out

    def contributions(self, samples: Any, tasks: Any = None) -> Array:
        """What each kernel adds to each decision, (n_samples, n_tasks, n_kernels); NaN for samples of other tasks.

        Their sum is f_t(x) − b_t.
        """
        return by_columns(*self.parts(as_samples(samples, tasks)))

    def parts(self, samples: Samples) -> tuple[Array, IntArray, int]:
        """What each kernel adds to each decision, (n_samples, n_slots, n_kernels), the tasks of the slots, and n_tasks.

        Slots and their tasks are those of ``decided``.
        """
        bank, groups = self.bank, self.tasks.groups(samples)
        slots = Decided.missing(groups, len(samples))
        parts = np.full((*slots.values.shape, bank.n_kernels), np.nan)
        for rows, asked in groups:
            dual = self.dual[asked]
            used = np.unique(dual.indices)
            coefficients, right = dual[:, used].T.toarray(), self.support.side(bank, used)
            weights = np.broadcast_to(self.theta, (self.tasks.n_tasks, bank.n_kernels))[asked] * bank.factor
            step = max(1, int(BATCH_BYTES // (8 * max(1, len(used)) * bank.n_kernels)))
            for first in range(0, len(rows), step):
                batch = rows[first : first + step]
                part = _part(bank, samples.data, batch, self.support.rows[used])
                values = (bank.stack(bank.side(part), right) @ coefficients).transpose(1, 2, 0)
                if self.diagonal:
                    values = values + self.diagonal * (bank.diagonals(part) / bank.factor[:, None]).T[:, None]
                parts[batch, : len(asked)] = values * weights
        for rows, models, weights in self._standing_in(samples):
            values = np.tensordot(weights, [model.parts(samples[rows])[0] for model in models], axes=1)
            parts[rows[:, None], np.arange(values.shape[1])] = values
        return parts, slots.tasks, self.tasks.n_tasks


@dataclass(frozen=True)
class SharedModel(FittedTasks):
    """The functions of tasks that form one problem: ``whole`` is its model, ``tasks`` maps it back to the tasks."""

    whole: TaskModel
    tasks: Together

    def decided(self, samples: Samples) -> Decided:
        self.note_new_tasks(samples)
        return self.tasks.shaped(self.whole.decided(self.tasks.coded_samples(samples)))

    def decisions(self, samples: Any, tasks: Any = None) -> Array:
        """f(x) of the one problem for every sample, or for a matrix y of every task."""
        return self.decided(as_samples(samples, tasks)).values

    def note_new_tasks(self, samples: Samples) -> None:
        """Warn of samples of tasks not seen in training."""
        rows = self.tasks.unknown(samples)
        if len(rows):
            assert samples.sources is not None
            new = unique_labels(samples.sources[rows])
            named = (
                f"Task {literal(new[0])} was"
                if len(new) == 1
                else f"Tasks {literal(new[:5])}{' …' * (len(new) > 5)} were"
            )
            rest = f"the common function predicts {counted(len(rows), 'row')}, with a level of zero."
            said = f"{named} not seen in training; {rest}"
            warnings.warn(NewTaskWarning(said, new, len(rows), rows[:1000].tolist()), stacklevel=4)

    def contributions(self, samples: Any, tasks: Any = None) -> Array:
        """What each kernel adds to each decision, (n_samples, n_columns, n_kernels)."""
        return self.parts(as_samples(samples, tasks))[0]

    def parts(self, samples: Samples) -> tuple[Array, IntArray, int]:
        """The contributions, the number of each column, and how many there are."""
        parts, *_ = self.whole.parts(self.tasks.coded_samples(samples))
        if self.tasks.kind == "matrix":
            parts = parts[:, 0].reshape(self.tasks.n_tasks, len(samples), -1).transpose(1, 0, 2)
        return parts, np.arange(parts.shape[1])[None], parts.shape[1]

    def kernel(self, samples: Samples, others: Samples | None = None) -> Array:
        """The kernel of the one problem, or of its common part if the samples come without tasks."""
        both = [samples] if others is None else [samples, others]
        tasks = [one.sources for one in both if one.sources is not None]
        if tasks and len(tasks) < len(both):
            raise ValueError("Pass the tasks of X and of Z, or neither for the kernel of what tasks have in common.")
        theta, codes = self.theta, [np.zeros(len(one)) for one in both]
        if tasks:  # samples of the same new task have a part of their own in common
            known = dict.fromkeys([*self.tasks.sources, *(label for own in tasks for label in listed(own))])
            codes = [codes_of(own, known).astype(float) for own in tasks]
        else:
            n_common = self.bank.base.n_kernels if self.bank.coupled else len(theta) - 1  # the last is the level
            theta = np.where(np.arange(len(theta)) < n_common, theta, 0.0)
        coded = [Samples(side_by_side([one.data, code[:, None]])) for one, code in zip(both, codes, strict=True)]
        return replace(self.whole, theta=theta).kernel(*coded)

    def trimmed(self) -> SharedModel:
        return replace(self, whole=self.whole.trimmed())

    @property
    def bank(self) -> Any:
        return self.whole.bank

    @property
    def continuation(self) -> Continuation | None:
        return self.whole.continuation

    @property
    def theta(self) -> Array:
        return self.whole.theta

    @property
    def support(self) -> Any:
        return self.whole.support

    @property
    def dual(self) -> Any:
        return self.whole.dual

    @property
    def intercepts(self) -> Array:
        return self.whole.intercepts

    @property
    def common_share(self) -> float:
        """Share of the common part in the variance of the functions: one if the tasks share everything."""
        return self.bank.common_share(self.theta) if self.bank.coupled else 1.0


@dataclass(frozen=True)
class SeparateModel(FittedTasks):
    """Models of tasks that share nothing, in the order of ``tasks.distinct_sources``, and the tasks."""

    models: list[TaskModel]
    tasks: Any

    def decided(self, samples: Samples) -> Decided:
        """The decisions of each model for the samples of its tasks."""
        groups = self.tasks.groups(samples)
        decided = Decided.missing(groups, len(samples))
        place = {source: k for k, source in enumerate(self.tasks.distinct_sources)}
        for rows, asked in groups:
            slots: dict[int, list[int]] = {}
            for slot, t in enumerate(asked.tolist()):
                slots.setdefault(place[self.tasks.sources[t]], []).append(slot)
            for k, mine in slots.items():
                decided.values[np.ix_(rows, mine)] = self.models[k].decided(Samples(samples.data[rows])).values
        return decided

    def parts(self, samples: Samples) -> tuple[Array, IntArray, int]:
        raise AttributeError("Tasks that share nothing have separate kernels, so there are no common contributions.")

    def kernel(self, samples: Samples, others: Samples | None = None) -> Array:
        raise AttributeError("Tasks that share nothing have separate kernels, so there is no kernel of all samples.")

    def trimmed(self) -> SeparateModel:
        return replace(self, models=[model.trimmed() for model in self.models])

    @property
    def continuation(self) -> Continuation | None:
        first = self.models[0].continuation
        return None if first is None else replace(first, share="nothing")

    @property
    def bank(self) -> SeparateModel:
        return self  # each task has its own bank; this class answers for all of them

    @property
    def names(self) -> list[str]:
        return self.models[0].bank.names

    @property
    def theta(self) -> Array:
        """Kernel weights, (n_tasks, n_kernels)."""
        return np.concatenate([np.tile(model.theta, (model.tasks.n_tasks, 1)) for model in self.models])

    def variance_share(self, theta: Array) -> Array:
        """Share of each kernel in the variance of the functions of each task, (n_tasks, n_kernels)."""
        shares = [model.bank.variance_share(np.tile(model.theta, (model.tasks.n_tasks, 1))) for model in self.models]
        return np.concatenate(shares)

    def by_source(self, share: Array) -> dict[str, Array]:
        return self.models[0].bank.by_source(share)

    @property
    def support(self) -> Any:
        raise AttributeError("Tasks that share nothing have separate support vectors; see model_.models.")

    dual = support

    @property
    def intercepts(self) -> Array:
        return np.concatenate([model.intercepts for model in self.models])


@dataclass(frozen=True)
class LinearModel(FittedTasks):
    """f_t(x) = w_t'x + b_t: coefficients (n_tasks, n_features) and intercepts (n_tasks,)."""

    tasks: Labelling
    coefficients: Array
    intercepts: Array

    def _values(self, data: AnyArray, rows: IntArray, tasks: IntArray) -> Array:
        return data[rows] @ self.coefficients[tasks].T + self.intercepts[tasks]


def as_samples(samples: Any, tasks: Any = None) -> Samples:
    """Samples unchanged, or from an array of features and the task of each row."""
    if isinstance(samples, Samples):
        return samples
    given = as_blocks(samples)
    if isinstance(given, Blocks):
        parts = given.parts.values()
        given = side_by_side([flat_stack(part) if len(part.shape) == 3 else part for part in parts])
    data = as_matrix(given)
    return Samples(data, as_sources(tasks, data.shape[0]))


def by_columns(parts: Array, tasks: IntArray, n_tasks: int) -> Array:
    """Parts (n_samples, n_slots, n_kernels) of decisions with one column for each task."""
    return np.stack([Decided(part, tasks).matrix(n_tasks) for part in np.moveaxis(parts, -1, 0)], axis=-1)


def share(right: AnyArray, belongs: AnyArray) -> Array:
    """The share of correct samples of each task; NaN for a task without samples."""
    return _ratio(right.sum(axis=0), belongs.sum(axis=0))


def _ratio(n_right: AnyArray, n_samples: AnyArray) -> Array:
    return np.divide(n_right, n_samples, out=np.full(len(n_samples), np.nan), where=n_samples > 0)


class Fit(NamedTuple):
    """Kernels, their weights, and the resulting duals and intercepts of the tasks."""

    bank: FittedBank
    theta: Array
    decisions: Decisions


def make_models(data: AnyArray, tasks: Sequence[Task], labelling: TaskSet, fits: Sequence[Fit]) -> list[TaskModel]:
    """One model per fit to the same data; they share the union of their support vectors.

    Their banks may differ only in the factors of the kernels.
    """
    rows = np.concatenate([task.rows for task in tasks])
    starts = np.concatenate([[0], np.cumsum([len(task.rows) for task in tasks])])
    duals = [np.concatenate(fit.decisions.dual) for fit in fits]
    used = np.unique(np.concatenate([rows[dual != 0] for dual in duals]))
    support = Support(used, None if fits[0].bank.precomputed else data[used])
    column = np.searchsorted(used, rows).astype(np.int32)
    models = []
    for fit, dual in zip(fits, duals, strict=True):
        nonzero = np.flatnonzero(dual)
        parts = dual[nonzero], column[nonzero], np.searchsorted(nonzero, starts).astype(np.int32)
        matrix = csr_matrix(parts, shape=(len(tasks), len(used)))
        _, intercepts, diagonal = fit.decisions
        models.append(TaskModel(fit.bank, labelling, support, fit.theta, matrix, intercepts, diagonal))
    return models


def decide_all(models: Sequence[TaskModel], samples: Samples) -> list[Decided]:
    """Decisions of several models on the same samples; base kernels are computed once for all of them."""
    one = models[0]
    if len(models) == 1 or one.diagonal or one.theta.ndim == 2 or any(model.stand_ins for model in models):
        return [model.decided(samples) for model in models]
    large = len(samples) * one.dual.shape[1] > LARGE
    # the products are thin, so threads would mostly wait for each other
    with threadpool_limits(1, user_api="blas") if large else nullcontext():
        return _decide_together(models, samples)


def _decide_together(models: Sequence[TaskModel], samples: Samples) -> list[Decided]:
    one = models[0]
    groups = one.tasks.groups(samples)
    missing = Decided.missing(groups, len(samples))
    bank, data, n_tasks = one.bank, samples.data, one.tasks.n_tasks
    weights = np.array([model.theta * model.bank.factor for model in models])
    duals = vstack([model.dual for model in models], format="csr")
    intercepts = np.array([model.intercepts for model in models])
    decisions = np.repeat(missing.values[None], len(models), axis=0)
    for joint in one.joined(groups):
        rows, tasks, _ = joint
        dual = duals[(n_tasks * np.arange(len(models))[:, None] + tasks).ravel()]
        used, at = np.unique(dual.indices, return_inverse=True)
        dual = csr_matrix((dual.data, at.ravel(), dual.indptr), shape=(dual.shape[0], len(used)))
        right = one.support.side(bank, used)
        step = max(1, int(BATCH_BYTES // (8 * max(1, len(used)) * (bank.n_kernels + TOGETHER))))
        for first in range(0, len(rows), step):
            batch = rows[first : first + step]
            stack = bank.stack(bank.side(_part(bank, data, batch, one.support.rows[used])), right)
            for k in range(0, len(models), TOGETHER):
                some = slice(k, k + TOGETHER)
                K = np.tensordot(weights[some], stack, axes=1)
                coefficients = dual[k * len(tasks) : (k + len(K)) * len(tasks)].toarray()
                values = K @ coefficients.reshape(len(K), len(tasks), len(used)).transpose(0, 2, 1)
                joint.place(values + intercepts[some, None, tasks], batch, decisions[some])
    return [replace(missing, values=values) for values in decisions]


def _part(bank: FittedBank, data: AnyArray, rows: IntArray, columns: IntArray) -> AnyArray:
    """The given rows of the data, and for a stack of kernels only the given columns."""
    return data[np.ix_(rows, columns)] if bank.precomputed else data[rows]
