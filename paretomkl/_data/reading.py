"""Read X, y, tasks and weights, for paths and estimators."""

from __future__ import annotations

import numbers
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_array, column_or_1d, validate_data

from .._tools.checks import check_bounds, check_multi_class, check_share, check_stack, numbers_only, shown
from .._tools.shares import Share
from .._tools.typing import AnyArray, Array, IntArray, MultiClass
from .._tools.wording import literal, quoted
from ..exceptions import SourceWarning
from ..kernels._evaluation import as_matrix, dense, gaps_in, is_constant, side_by_side
from ..kernels._kernels import Block, KernelBank, as_bank, is_precomputed
from ..machines import MACHINES, MachineKind
from ..tables._coding import Coding, is_coded, is_frame
from .gaps import nearly_empty, note_gaps
from .labels import Blocks, Kind, Labelling, Samples, as_blocks, check_same_blocks, flat_stack
from .numbers import Regions, Targets, centre_and_spread, deviations, levels
from .tasks import (
    Task,
    as_labels,
    as_numbers,
    as_sources,
    column_names,
    find_task_column,
    is_matrix,
    labels_of,
    listed,
    make_number_tasks,
    make_sample_tasks,
    make_tasks,
    name_of,
    names_of_columns,
    refuse_missing,
    rows_by_code,
    task_column_of,
    unique_labels,
)
from .together import Together, long_form, numbered

# their squares times the square of any realistic number of samples neither underflow nor overflow
SMALLEST_COST, LARGEST_COST = 1e-100, 1e100
NO_Y = "y is missing: learning requires y to be passed, but the target y is None."
OTHER_TABLES = {"LazyFrame": "X.collect()", "Table": "X.to_pandas()", "RecordBatch": "X.to_pandas()"}
NEGLIGIBLE = 1e-25  # a cost this much smaller than the largest of its task has no effect, but its reciprocal would


@dataclass(frozen=True)
class Training:
    """Training data, read and checked.

    ``weights`` holds, for each task, sample weight times class weight of its samples; ``labelling`` holds what
    prediction needs to know about the tasks.
    """

    samples: Samples
    tasks: list[Task]
    weights: list[Array]
    labelling: Any  # a Labelling, Targets or Regions
    together: Together | None = None  # the tasks, if their samples form one problem
    share: Share = "kernel"  # what the tasks have in common; with a single task all ways are the same
    earlier: Any = None  # a model of the first samples to continue from

    def bounds(self, C: Any) -> list[Array]:
        """C times weight for each sample of each task; C is one number, or one per sample of X.

        Negligible costs count as zero: the sample has no effect, as if it were absent.
        """
        bound = check_bounds(C, len(self.samples), self.tasks)
        bounds = [bound[task.rows] * weight for task, weight in zip(self.tasks, self.weights, strict=True)]
        for t, (task, costs) in enumerate(zip(self.tasks, bounds, strict=True)):
            largest = costs.max()
            if not SMALLEST_COST <= largest <= LARGEST_COST:
                raise ValueError(
                    f"C times sample_weight and class_weight must be between {SMALLEST_COST:g} and {LARGEST_COST:g}, "
                    f"got {largest:.2g} in task {task.name!r}; multiply them by a common factor."
                )
            if costs.min() < NEGLIGIBLE * largest:
                bounds[t] = _without_negligible(task, costs, largest)
        return bounds

    @property
    def task_sizes(self) -> Array:
        """n_t, (n_tasks,): the total sample weight of each task; the number of samples if all weights are one."""
        return np.array([weight.sum() for weight in self.weights])

    @property
    def sample_weight(self) -> Array:
        """The total weight of each sample of X over all tasks."""
        total = np.zeros(len(self.samples))
        for task, weight in zip(self.tasks, self.weights, strict=True):
            np.add.at(total, task.rows, weight)
        return total


def _without_negligible(task: Task, costs: Array, largest: float) -> Array:
    kept = np.where(costs < NEGLIGIBLE * largest, 0.0, costs)
    for sign in task.sides:
        if not (kept[task.targets == sign] > 0).any():
            raise ValueError(
                f"The samples {task.samples_of(sign)} in task {task.name!r} have costs below {NEGLIGIBLE:g} times the "
                "largest of the task, and would have no effect; choose weights that differ less."
            )
    return kept


@dataclass(frozen=True)
class Reading:
    """How X and y become tasks: the parameters of a path or an estimator that decide what is learned from.

    Readers in memory and on the workers of a cluster take the same object, so that both make the same tasks.
    """

    kernels: Any = "default"
    task_column: Any = None
    class_weight: Any = None
    machine: MachineKind = MACHINES["svc"]
    normalize_y: bool = True
    share: Any = "kernel"
    multi_class: MultiClass = "one-vs-one"
    mixed_names: bool = True  # whether X may have column names of several types, which estimators refuse

    @classmethod
    def of(cls, estimator: Any, **known: Any) -> Reading:
        """The parameters of an estimator, and those ``known`` by another name."""
        # not get_params, which inspects the signature every time
        given = vars(estimator) | {"mixed_names": estimator.mixed_names} | known
        return cls(**{field.name: given[field.name] for field in fields(cls) if field.name in given})

    def check(self, y: Any) -> None:
        """Raise if the parameters contradict each other, or the kind of y."""
        share, machine = check_share(self.share), self.machine
        if machine.reads != "labels" and self.class_weight is not None:
            raise ValueError(f"class_weight needs classes, but machine={machine.name!r} has none; use sample_weight.")
        if machine.reads == "nothing":
            if y is not None:
                raise ValueError(f"machine={machine.name!r} learns without labels; pass y=None.")
            if share != "kernel":
                raise ValueError(f"share={share!r} needs y, but machine={machine.name!r} has none; use 'kernel'.")
        if share in ("function", "everything") and is_precomputed(self.kernels):
            raise ValueError(f"share={share!r} needs features; with precomputed kernels use 'kernel' or 'nothing'.")


def is_remote(X: Any) -> bool:
    """Whether the samples are, or will be, on the workers of a cluster."""
    return hasattr(X, "__dask_graph__") or getattr(X, "on_workers", False) is True


class Reader(Protocol):
    """An estimator, or the reader of a path: knows how to read, and keeps scikit-learn's notes about the features."""

    n_features_in_: int
    n_kernels_in_: int  # of a stack of kernels
    blocks_in_: Mapping[str, tuple[int, ...]]  # the shape of each block besides rows; not set if X had none
    feature_names_in_: AnyArray  # not set if X has no names
    codings_: dict[str, Coding]  # of X or of its blocks; not set if X had only numbers
    ranges_in_: Array | None  # of the values of each column; None for a stack of kernels
    rows_in_: dict[str, int]  # of each task

    @property
    def mixed_names(self) -> bool:
        """Whether X may have column names of several types."""

    @property
    def reading(self) -> Reading:
        """How to read X and y."""

    @property
    def kernels(self) -> Any:
        """The kernels; a stack of them is read differently."""

    @property
    def task_column(self) -> Any:
        """The column of X that names the tasks."""


class PathReader(BaseEstimator):
    """Reads training data, and later new samples, for ``pareto_path``, which is not an estimator."""

    n_features_in_: int
    n_kernels_in_: int
    blocks_in_: Mapping[str, tuple[int, ...]]
    feature_names_in_: AnyArray
    codings_: dict[str, Coding]
    ranges_in_: Array | None
    rows_in_: dict[str, int]

    def __init__(self, reading: Reading = Reading()):
        self.reading = reading

    @property
    def kernels(self) -> Any:
        return self.reading.kernels

    @property
    def task_column(self) -> Any:
        return self.reading.task_column

    @property
    def mixed_names(self) -> bool:
        return self.reading.mixed_names

    def read_data(
        self, X: Any, y: Any, *, tasks: Any = None, sample_weight: Any = None, part: bool = False
    ) -> Training:
        return read_data(self, X, y, tasks=tasks, sample_weight=sample_weight, part=part)


def read_data(
    owner: Reader,
    X: Any,
    y: Any,
    *,
    tasks: Any = None,
    sample_weight: Any = None,
    strict: bool = True,
    part: bool = False,
    codings: Mapping[str, Coding] | None = None,
) -> Training:
    """Read training data as the machine and ``share`` require: with labels, with numbers, or without y.

    ``owner`` keeps the number and the names of the features for :func:`read_samples`. ``strict`` is as in
    :func:`~paretomkl._data.tasks.make_number_tasks`. If X is ``part`` of the samples, ``class_weight`` may name labels
    that are elsewhere. ``codings`` are as in :func:`read_samples`.
    """
    reading = owner.reading
    reading.check(y)
    samples = read_samples(owner, X, tasks=tasks, reset=True, codings=codings)
    return Examples(samples, y, sample_weight).training(reading, strict=strict, part=part)


@dataclass(frozen=True)
class Examples:
    """Samples with their y and weights as the user passed them: what a model learns from, or is scored on."""

    samples: Samples
    y: Any
    sample_weight: Any = None

    def take(self, rows: IntArray, columns: IntArray | None = None) -> Examples:
        """The given rows, and the given columns of a stack of kernels."""
        samples, data = self.samples[rows], self.samples.data
        if columns is not None and data.ndim == 3:
            samples = replace(samples, data=data[np.ix_(rows, columns)])
        return Examples(samples, take_rows(self.y, rows), take_rows(self.sample_weight, rows))

    def training(self, reading: Reading, *, strict: bool = True, part: bool = False) -> Training:
        """Make the tasks as the machine and ``share`` require; the arguments are those of :func:`read_data`."""
        share, reads, samples, weight = reading.share, reading.machine.reads, self.samples, self.sample_weight
        if reads == "nothing":
            return _samples_only(samples, weight)
        if share in ("function", "everything") and (samples.sources is not None or is_matrix(self.y)):
            training = _as_one_problem(reading, samples, self.y, weight)
            # a fold may learn from a single task and be tested on others
            if training.together is not None and (training.together.n_tasks > 1 or not strict):
                return replace(training, share=share)
        if reads == "numbers":
            training = _with_targets(reading, samples, self.y, weight, strict)
        else:
            training = _with_labels(reading, samples, self.y, weight, part)
        several = len(training.labelling.distinct_sources) > 1
        if share != "kernel" and not several:
            message = f"There is only one task, so share={share!r} is the same as 'kernel'."
            warnings.warn(message, UserWarning, stacklevel=5)
        return replace(training, share="nothing") if share == "nothing" and several else training


def _with_labels(reading: Reading, samples: Samples, y: Any, sample_weight: Any, part: bool) -> Training:
    """The tasks of labels."""
    multi_class = check_multi_class(reading.multi_class)
    labels = _read_labels(y)
    _check_lengths(samples, labels)
    # pass a frame of labels as it is, since its column names are the task names
    made = make_tasks(y if labels.ndim == 2 and hasattr(y, "columns") else labels, samples.sources, multi_class)
    weight = None if sample_weight is None else _check_sample_weight(sample_weight, samples.data)
    kind: Kind = "matrix" if labels.ndim == 2 else "classes" if samples.sources is None else "tasks"
    known = [] if kind == "matrix" else unique_labels(labels)
    if not part:
        check_class_weight(reading.class_weight, made)
    weights = _task_weights(made, weight, reading.class_weight)
    return Training(samples, made, weights, labelling_of(reading, made, kind, known))


def _check_lengths(samples: Samples, y: AnyArray) -> None:
    if len(y) != len(samples):
        raise ValueError(f"X and y must have one row per sample: X has {len(samples)}, y has {len(y)}.")


def _with_targets(reading: Reading, samples: Samples, y: Any, sample_weight: Any, strict: bool) -> Training:
    """The tasks of a regression, with targets standardised within tasks if ``normalize_y``."""
    if y is None:
        raise ValueError(NO_Y)
    targets = as_numbers(y)
    _check_lengths(samples, targets)
    of_frame = targets.ndim == 2 and hasattr(y, "columns")
    made = make_number_tasks(y if of_frame else targets, samples.sources, strict, name_of(y))
    weights = _sample_weights(made, samples, sample_weight)
    centre, spread = np.zeros(len(made)), np.ones(len(made))
    groups = [(task.targets, weight) for task, weight in zip(made, weights, strict=True)]
    level, deviation = levels(groups), deviations(groups)
    if reading.normalize_y:
        centre, spread = level, deviation
        made = [
            replace(task, targets=(task.targets - mean) / unit)
            for task, mean, unit in zip(made, centre, spread, strict=True)
        ]
    kind: Kind = "matrix" if targets.ndim == 2 else "single" if samples.sources is None else "tasks"
    return Training(samples, made, weights, Targets.of(made, kind, centre, spread, level, deviation))


def _as_one_problem(reading: Reading, samples: Samples, y: Any, sample_weight: Any) -> Training:
    """Tasks whose samples form one problem, or one per pair of classes or per class.

    If they share part of their function, the last column of the samples is the code of their task. A task may have a
    single class.
    """
    numbers = reading.machine.reads == "numbers"
    values: AnyArray = as_numbers(y) if numbers else _read_labels(y)
    _check_lengths(samples, values)
    weight = None if sample_weight is None else _check_sample_weight(sample_weight, samples.data)
    matrix = values.ndim == 2
    codes: AnyArray
    if matrix:
        rows, codes = long_form(values)
        sources = names_of_columns(y, values.shape[1])
        values, data = values[rows, codes], samples.data[rows]
        weight = None if weight is None else weight[rows]
    else:
        assert samples.sources is not None
        sources, codes = numbered(samples.sources)
        data = samples.data
    one = replace(samples, data=side_by_side([data, codes[:, None]]), sources=None)
    if numbers:
        training = _one_regression(reading, one, values, weight)
    else:
        known = unique_labels(values)
        if matrix and len(known) > 2:
            raise ValueError(
                f"share={reading.share!r} makes one problem of all columns of y, which need the same two labels, but "
                f"they have {literal(known[:6])}. Recode them, or use share='kernel'."
            )
        made = make_tasks(values, None, check_multi_class(reading.multi_class))
        check_class_weight(reading.class_weight, made)
        weights = _task_weights(made, weight, reading.class_weight)
        training = Training(one, made, weights, labelling_of(reading, made, "classes", known))
    kind: Kind = "matrix" if matrix else "tasks"
    level, deviation = np.zeros(len(sources) + 1), np.ones(len(sources) + 1)
    if numbers:
        own = np.ones(len(values)) if weight is None else weight
        parts = [(values[rows], own[rows]) for rows in rows_by_code(codes, len(sources))]
        parts = [(v, w if w.sum() > 0 else np.ones(len(v))) for v, w in parts]
        of_tasks = deviations(parts)
        level, deviation = np.append(levels(parts), levels([(values, own)])), np.append(of_tasks, of_tasks.mean())
    names = [str(source) for source in sources]
    together = Together(kind, names, sources, training.labelling, level, deviation)
    return replace(training, together=together)


def labelling_of(reading: Reading, tasks: list[Task], kind: Kind, known: list[Any]) -> Labelling:
    """What the decisions of these tasks mean; ``known`` are all labels."""
    return Labelling.of(tasks, kind, known, estimates=reading.machine.estimates)


def _one_regression(reading: Reading, samples: Samples, values: Array, weight: Array | None) -> Training:
    made = make_number_tasks(values)
    weights = _sample_weights(made, samples, weight)
    centre, spread = np.zeros(1), np.ones(1)
    if reading.normalize_y:  # over all tasks together, because the differences between tasks are to be learned
        centre[0], spread[0] = centre_and_spread(values, weights[0])
        made = [replace(made[0], targets=(values - centre[0]) / spread[0])]
    everyone = [(values, weights[0])]
    targets = Targets.of(made, "single", centre, spread, levels(everyone), deviations(everyone))
    return Training(samples, made, weights, targets)


def _samples_only(samples: Samples, sample_weight: Any) -> Training:
    """Tasks without targets."""
    made = make_sample_tasks(len(samples), samples.sources)
    kind: Kind = "single" if samples.sources is None else "tasks"
    return Training(samples, made, _sample_weights(made, samples, sample_weight), Regions.of(made, kind))


def _sample_weights(tasks: list[Task], samples: Samples, sample_weight: Any) -> list[Array]:
    """The weight of each sample of each task; every task needs a positive weight."""
    if sample_weight is None:
        return [np.ones(len(task.rows)) for task in tasks]
    weight = _check_sample_weight(sample_weight, samples.data, ensure_non_negative=True)
    for task in tasks:
        if not weight[task.rows].sum() > 0:
            raise ValueError(f"Task {task.name!r} has no sample with a positive weight.")
    return [weight[task.rows].astype(float) for task in tasks]


def read_samples(
    owner: Reader, X: Any, *, tasks: Any = None, reset: bool = False, codings: Mapping[str, Coding] | None = None
) -> Samples:
    """Split X into features and task labels and check both, against the fitted data unless ``reset``.

    ``codings`` are those of an earlier model to keep, so that new levels do not move the codes of the known ones.
    """
    if reset:
        vars(owner).pop("codings_", None)
        if codings:
            owner.codings_ = dict(codings)
    samples = _checked_samples(owner, X, tasks, reset)
    if reset:
        owner.ranges_in_, owner.rows_in_ = _ranges_of(samples), _rows_of(samples)
    return samples


def _rows_of(samples: Samples) -> dict[str, int]:
    """The number of rows of each task; without a task for each row, of all of them."""
    if samples.sources is None:
        return {"all rows": len(samples)}
    return {str(source): n for source, n in Counter(listed(samples.sources)).items()}


def _ranges_of(samples: Samples) -> Array | None:
    """What :func:`far_outside` needs to know of each column.

    Codes and stacks of kernels have infinite ranges, and nearly empty columns, which are left out, have none.
    """
    X: Any = samples.data
    if X.ndim != 2 or not X.shape[0]:
        return None
    if issparse(X):
        low, high = (dense(end).ravel() for end in (X.nanmin(axis=0), X.nanmax(axis=0)))
        same = 1 - np.bincount(X.indices, minlength=X.shape[1]) / X.shape[0]
    else:
        low, high = np.fmin.reduce(X), np.fmax.reduce(X)
        same = np.maximum(np.equal(X, low).mean(axis=0), np.equal(X, high).mean(axis=0))
    found = np.array([low, high, same])
    codes: list[Any] = [list(samples.n_levels)]
    for columns in codes + [block.columns for block in samples.blocks.values() if block.n_kernels]:
        found[:2, columns] = [[-np.inf], [np.inf]]
    if gaps_in(X):
        found[:2, nearly_empty(X)] = np.nan
    return found


def _checked_samples(owner: Reader, X: Any, tasks: Any, reset: bool) -> Samples:
    if advice := OTHER_TABLES.get(type(X).__name__):
        raise TypeError(f"X is a {type(X).__name__}, which cannot be read; pass {advice}.")
    X = as_blocks(X)
    if isinstance(X, Blocks):
        return _read_blocks(owner, X, tasks, reset)
    if not reset and getattr(owner, "blocks_in_", None):
        raise ValueError(f"The model was fitted with the blocks {quoted(owner.blocks_in_)}; pass X in the same blocks.")
    if is_precomputed(owner.kernels):
        return _read_stack(owner, X, tasks, reset)
    return _noted(owner, _read_features(owner, X, tasks, reset), reset)


def _noted(owner: Reader, samples: Samples, reset: bool) -> Samples:
    """The samples, with warnings about their sources and gaps."""
    if reset:
        note_sources(owner.kernels, samples)
    if owner.kernels is not None and gaps_in(samples.data):
        ranges = None if reset else owner.ranges_in_
        note_gaps(owner.kernels, samples, reset, nearly_empty(samples.data) if ranges is None else np.isnan(ranges[0]))
    return samples


def _coding(owner: Reader, X: Any, reset: bool, called: str = "X") -> Coding | None:
    """How a frame with text or categories becomes numbers; None if X has only numbers."""
    coding = getattr(owner, "codings_", {}).get(called)
    if coding is None:
        if owner.kernels is None or not (hasattr(X, "columns") and is_coded(X)):
            return None
        coding = Coding.of(X) if reset else Coding.of_numbers(X.columns)
        if reset:
            owner.codings_ = {**getattr(owner, "codings_", {}), called: coding}
    elif not is_frame(X):
        raise ValueError(
            f"{called} has text or categories in the columns {quoted(coding.levels, 5)}, so the model needs a frame "
            "with the columns of training."
        )
    return coding


def _checked_numbers(owner: Reader, X: Any, called: str, names: Sequence[object] | None = None) -> AnyArray:
    """X as a matrix of numbers without infinity; NaN is a gap if the owner has kernels."""
    dense, sparse = owner.kernels is not None and not issparse(X), _accepted(owner)
    finite: Any = "allow-nan" if dense else True
    with numbers_only(X, names, called):
        return as_matrix(
            check_array(
                X,
                accept_sparse=sparse,
                dtype=np.float64,
                input_name=called,
                estimator=owner,
                ensure_all_finite=finite,
            )
        )


def _read_blocks(owner: Reader, X: Blocks, tasks: Any, reset: bool) -> Samples:
    """Put the blocks of X side by side; the columns get the names of their block and their own."""
    if owner.task_column is not None or is_precomputed(owner.kernels):
        given = "task_column" if owner.task_column is not None else "kernels='precomputed'"
        raise ValueError(f"{given} needs one X, not blocks; with blocks, pass the tasks as tasks=.")
    given_parts, n_levels = dict(X.parts), dict[int, int]()
    if reset:
        if X.absent:
            raise ValueError(f"Block {X.absent[0]!r} is None; training needs all blocks, with NaN for what is missing.")
    else:
        known = getattr(owner, "blocks_in_", None)
        for name in X.absent:
            shape = (known or {}).get(name, ())
            if len(shape) == 1:
                given_parts[name] = np.full((len(X), *shape), np.nan)
        check_same_blocks(given_parts, known)
        given_parts = {name: given_parts[name] for name in owner.blocks_in_}
    found: dict[str, AnyArray] = {}
    for name, part in given_parts.items():
        if len(part.shape) == 3:
            if reset and part.shape[0] != part.shape[1]:
                raise ValueError(f"Block {name!r} must be a stack of kernels (n, n, n_kernels), got {part.shape}.")
            found[name] = flat_stack(check_stack(part, square=reset), training=reset)
            continue
        first = sum(other.shape[1] for other in found.values())
        coding = None if name in X.absent else _coding(owner, part, reset, name)
        numbers = part if coding is None else coding(part)
        found[name] = _checked_numbers(owner, numbers, f"Block {name!r}", column_names(part))
        if coding is not None:
            n_levels |= {first + column: n for column, n in coding.n_levels.items()}
    own = {name: column_names(part) or range(found[name].shape[1]) for name, part in given_parts.items()}
    names = [f"{block}: {column}" for block, columns in own.items() for column in columns]
    data = side_by_side(list(found.values()))
    if reset:
        owner.blocks_in_ = {name: tuple(part.shape[1:]) for name, part in given_parts.items()}
        owner.n_features_in_, owner.feature_names_in_ = data.shape[1], np.array(names, dtype=object)
    else:
        other = [name for name, known in zip(names, owner.feature_names_in_, strict=True) if name != known]
        if other and any(hasattr(part, "columns") for part in X.parts.values()):
            raise ValueError(f"The column {other[0]!r} is at another place than in training; use the same columns.")
    ends = np.cumsum([part.shape[1] for part in found.values()]).tolist()
    kernels = [part.shape[2] if len(part.shape) == 3 else 0 for part in given_parts.values()]
    blocks = {
        name: Block(slice(end - part.shape[1], end), n_kernels)
        for (name, part), end, n_kernels in zip(found.items(), ends, kernels, strict=True)
    }
    return _noted(owner, Samples(data, as_sources(tasks, data.shape[0]), names, blocks, n_levels), reset)


def _accepted(owner: Reader) -> str | bool:
    """The sparse format that the owner takes; methods without kernels take none."""
    return "csr" if owner.kernels is not None else False


def note_sources(kernels: Any, samples: Samples) -> None:
    """Warn of unused columns, of sources that are the same for all samples, and of distances between sparse samples."""
    bank = kernels if isinstance(kernels, KernelBank) else as_bank("default" if kernels is None else kernels)
    bank, names, X = bank.for_blocks(samples.blocks), samples.names, samples.data
    if issparse(X):
        for name, kernel, seen in bank.kernels_with_distances(X.shape[1], names):
            part: Any = X[:, seen]
            if part.nnz < 0.4 * len(seen) * X.shape[0]:
                message = (
                    f"Kernel {kernel} needs distances between sparse samples, computed block by block; linear, "
                    "polynomial and cosine kernels are quicker."
                )
                warnings.warn(SourceWarning(message, name), stacklevel=5)
    if not bank.n_sources:
        return
    unused = np.ones(X.shape[1], dtype=bool)
    for name, _, seen in bank.columns_by_source(X.shape[1], names):
        unused[seen] = False
        if is_constant(X[:, seen]):
            message = f"Source {name!r} has the same values in all samples, so nothing can be learned from it."
            warnings.warn(SourceWarning(message, name), stacklevel=5)
    if unused.any():
        columns = [int(k) if names is None else names[k] for k in np.flatnonzero(unused)]
        s, are = ("s", "they are") if len(columns) > 1 else ("", "it is")
        message = f"No source names the column{s} {quoted(columns, 5)}, so {are} not used."
        warnings.warn(SourceWarning(message, columns=columns), stacklevel=5)


def _read_features(owner: Reader, X: Any, tasks: Any, reset: bool) -> Samples:
    if owner.task_column is None:
        X = _named(owner, X)
        coding = _coding(owner, X, reset)
        names, values = column_names(X), _values(X)
        if coding is None and values is X:
            finite: Any = "allow-nan" if owner.kernels is not None and not issparse(X) else True
            with numbers_only(X, names):
                data = validate_data(
                    owner,
                    X,
                    dtype=np.float64,
                    reset=reset,
                    accept_sparse=_accepted(owner),
                    ensure_all_finite=finite,
                )
            data = as_matrix(data)
        else:
            _check_names(owner, X, reset)
            data = _checked_numbers(owner, values if coding is None else coding(X), "X", names)
        named = names if names and isinstance(names[0], str) else None
        n_levels = {} if coding is None else coding.n_levels
        return Samples(data, as_sources(tasks, data.shape[0]), named, n_levels=n_levels)
    if tasks is not None:
        raise ValueError("Pass task_column or tasks=, not both.")
    if column_names(X) is not None:
        find_task_column(X, owner.task_column)  # first, so that an error names the task column, not the features
    _check_names(owner, _named(owner, X), reset)
    return _split_task_column(owner, X, owner.task_column, reset)


def _check_names(owner: Reader, X: Any, reset: bool) -> None:
    """Check, or note, the names and the number of columns; what scikit-learn does takes milliseconds."""
    known = getattr(owner, "feature_names_in_", None)
    if reset or known is None or column_names(X) != known.tolist():
        validate_data(owner, X, reset=reset, skip_check_array=True)


def _values(X: Any) -> Any:
    """The values of a frame of pandas with NumPy's numbers, which scikit-learn looks at one by one; or X itself."""
    if hasattr(X, "iloc") and all(isinstance(kind, np.dtype) and kind.kind in "biuf" for kind in X.dtypes):
        return X.to_numpy(dtype=np.float64)
    return X


def _named(owner: Reader, X: Any) -> Any:
    """X, with column names of mixed types converted to text for a path; estimators refuse them."""
    names = column_names(X) or []
    if len(set(names)) < len(names):
        twice = [name for name, n in Counter(names).items() if n > 1]
        raise ValueError(f"X has several columns named {quoted(twice, 5)}; rename them.")
    mixed = owner.mixed_names and hasattr(X, "iloc") and len({type(name) for name in X.columns}) > 1
    return X.set_axis([str(name) for name in X.columns], axis=1) if mixed else X


def _read_stack(owner: Reader, X: Any, tasks: Any, reset: bool) -> Samples:
    if owner.task_column is not None:
        raise ValueError("task_column cannot be used with precomputed kernels; pass tasks= instead.")
    stack = check_stack(X, square=reset)
    if reset:
        owner.n_features_in_, owner.n_kernels_in_ = stack.shape[1:]
    elif stack.shape[1:] != (owner.n_features_in_, owner.n_kernels_in_):
        raise ValueError(
            f"X must have shape (n_samples, {owner.n_features_in_}, {owner.n_kernels_in_}), the kernel values between "
            f"the given and the training samples; got shape {stack.shape}."
        )
    return Samples(stack, as_sources(tasks, len(stack)))


def _split_task_column(owner: Reader, X: Any, column: Any, reset: bool) -> Samples:
    sources = task_column_of(X, column)
    if np.shape(X)[1] < 2:
        raise ValueError(f"X has no column besides task_column={column!r}; add feature columns.")
    position = find_task_column(X, column)
    others = [k for k in range(np.shape(X)[1]) if k != position]
    names = column_names(X)
    if names is None:
        features = X[:, others] if isinstance(X, np.ndarray) else [[row[k] for k in others] for row in X]
    elif hasattr(X, "iloc"):
        features = X.iloc[:, others]
    else:  # polars and similar
        features = X[[names[k] for k in others]]
    coding = _coding(owner, features, reset)
    named = None if names is None else [str(names[k]) for k in others]
    numbers, n_levels = (_values(features), {}) if coding is None else (coding(features), coding.n_levels)
    return Samples(_checked_numbers(owner, numbers, "X", named), sources, named, n_levels=n_levels)


def _read_labels(y: Any) -> AnyArray:
    if y is None:
        raise ValueError(NO_Y)
    labels = as_labels(y, "y")
    if labels.ndim > 2:
        raise ValueError(f"y must have one or two dimensions, got {labels.ndim}.")
    if labels.ndim == 2 and labels.shape[1] != 1:
        return labels
    refuse_missing(labels.ravel(), "y")
    labels = column_or_1d(labels, warn=True)
    if labels.dtype.kind == "f":  # continuous targets are not class labels; any other hashable value can be
        check_classification_targets(labels)
    return labels


def _task_weights(tasks: list[Task], sample_weight: Array | None, class_weight: Any) -> list[Array]:
    """Sample weight times class weight for each sample of each task; every class of every task needs some weight."""
    balanced = isinstance(class_weight, str) and class_weight == "balanced"
    if not (class_weight is None or balanced or isinstance(class_weight, Mapping)):
        raise ValueError(f"class_weight must be None, 'balanced' or a dict, got {shown(class_weight)}.")
    weights = []
    for task in tasks:
        weight = np.ones(len(task.rows)) if sample_weight is None else sample_weight[task.rows].astype(float)
        if (weight < 0).any():
            raise ValueError(f"sample_weight must not be negative (task {task.name!r}).")
        factor = (
            _class_weights(class_weight, task, tasks) if isinstance(class_weight, Mapping) else np.ones(len(weight))
        )
        for sign in task.sides:
            on_side = task.targets == sign
            total = weight[on_side].sum()
            if not total > 0:
                raise ValueError(f"Task {task.name!r} has no sample {task.samples_of(sign)} with a positive weight.")
            if balanced:
                factor[on_side] = weight.sum() / (2 * total)
        weights.append(weight * factor)
    return weights


def _class_weights(class_weight: Mapping[Any, Any], task: Task, tasks: list[Task]) -> Array:
    """The weight of the class of each sample of a task."""
    first, last = (_class_weight(class_weight, label) for label in (task.classes[0], task.classes[-1]))
    weights = np.where(task.targets > 0, last, first)
    if len(task.classes) == 1:  # the rest are the classes of the other tasks of its source, on the same samples
        for other in tasks:
            if other.source == task.source:
                weights[other.targets > 0] = _class_weight(class_weight, other.classes[0])
    return weights


def check_class_weight(class_weight: Any, tasks: list[Task]) -> None:
    """Raise if a label in ``class_weight`` is unknown, unless all labels have weights: it may occur in other data."""
    if not isinstance(class_weight, Mapping):
        return
    labels = labels_of(tasks)
    unknown = [label for label in class_weight if label not in labels]
    if unknown and any(label not in class_weight for label in labels):
        raise ValueError(
            f"class_weight names the label {literal(unknown[0])}, which y does not have; it has {literal(labels[:10])}."
        )


def _class_weight(class_weight: Mapping[Any, Any], label: Any) -> float:
    weight = class_weight.get(label, 1.0)
    if not (isinstance(weight, numbers.Real) and 0 < float(weight) < np.inf):
        raise ValueError(f"class_weight of class {literal(label)} must be positive, got {shown(weight)}.")
    return float(weight)


def apart(training: Training) -> list[Training]:
    """The training data of each task separately, in the order of the distinct sources."""
    labelling, data = training.labelling, training.samples.data
    alone = []
    for mine in labelling.tasks_by_source.values():
        rows = np.unique(np.concatenate([training.tasks[t].rows for t in mine]))
        tasks = [
            replace(training.tasks[t], rows=np.searchsorted(rows, training.tasks[t].rows), source=None) for t in mine
        ]
        own = data[rows] if data.ndim == 2 else data[np.ix_(rows, rows)]
        weights = [training.weights[t] for t in mine]
        samples = replace(training.samples, data=own, sources=None)
        alone.append(Training(samples, tasks, weights, labelling.alone(tasks, mine)))
    return alone


def take_rows(values: Any, rows: IntArray, columns: IntArray | None = None, kernels: Any = None) -> Any:
    """The given rows of an array or frame (None stays None), and the given columns of a stack of kernels."""
    if values is None:
        return None
    values = as_blocks(values)
    if isinstance(values, Blocks):
        return values[rows]
    if columns is not None and is_precomputed(kernels):
        return np.asarray(values)[np.ix_(rows, columns)]
    return _safe_indexing(values, rows)
