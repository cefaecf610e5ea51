"""The scikit-learn estimator: one learned kernel for all classes, or for all tasks."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_array, check_is_fitted, column_or_1d, validate_data

from ._parallel import effective_jobs
from ._typing import AnyArray, Array, IntArray
from ._validation import check_exponents, check_number, check_stack, check_task_weight
from .kernels import FittedBank, as_bank
from .path import make_problem, trace
from .progress import Progress
from .solution import Solution
from .solvers import make_solver
from .tasks import Task, equal_labels, make_tasks, missing_labels, unique_labels

PREDICT_BYTES = 64 * 2**20  # of one batch of test-time kernel values


@dataclass(frozen=True)
class Samples:
    """What was read from X: features (or a stack of kernels) and the task label of each row, if there is one."""

    data: AnyArray
    sources: AnyArray | None
    names: list[str] | None = None


class MultiTaskClassifier(ClassifierMixin, BaseEstimator):
    """What all multi-task classifiers share: the ways to say the tasks, the checks, and prediction.

    A subclass has the parameters ``kernels``, ``task_column`` and ``class_weight`` and a method ``_learn`` that sets
    ``theta_`` and returns the dual variables and intercepts of all tasks.
    """

    kernels: Any
    task_column: Any
    class_weight: Any
    C: float
    classes_: Any

    # so that tasks= is routed without set_fit_request and its like, where routing is on
    __metadata_request__fit: ClassVar = {"tasks": True}
    __metadata_request__predict: ClassVar = {"tasks": True}
    __metadata_request__decision_function: ClassVar = {"tasks": True}
    __metadata_request__score: ClassVar = {"tasks": True}

    def _learn(self, bank: FittedBank, data: AnyArray, tasks: list[Task], bounds: list[Array]) -> tuple[Array, Array]:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed()
        tags.input_tags.three_d_array = self._is_precomputed()
        return tags

    def _is_precomputed(self) -> bool:
        kernels = as_bank(self.kernels).kernels
        return isinstance(kernels, str) and kernels == "precomputed"

    # ------------------------------------------------------------------------------------------------ fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None, tasks: Any = None) -> MultiTaskClassifier:
        """Learn the shared kernel and all tasks.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            With ``task_column`` one of the columns names the task of each row. With ``kernels="precomputed"`` a stack
            of shape (n_samples, n_samples, n_kernels).
        y : array-like of shape (n_samples,) or (n_samples, n_tasks)
            Labels; a matrix has one task per column, two values in each, NaN for "not labelled".
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies C, sample by sample.
        tasks : array-like of shape (n_samples,), default=None
            The task of each row, where no column of X says it.
        """
        samples = self._read(X, tasks, reset=True)
        labels = self._read_labels(y)
        if len(labels) != len(samples.data):
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: X has {len(samples.data)}, "
                f"y has {len(labels)}."
            )
        made = make_tasks(_with_columns(labels, y), samples.sources)
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, samples.data)
        check_number("C", self.C, lambda v: 0 < v < np.inf, "greater than 0")
        bounds = task_bounds(made, float(self.C), weight, self.class_weight)
        bank = as_bank(self.kernels).fit(samples.data, samples.names)
        dual, intercepts = self._learn(bank, samples.data, made, bounds)

        self._bank = bank
        self.n_tasks_ = len(made)
        self.task_names_ = [task.name for task in made]
        self._classes_of_task = [task.classes for task in made]
        self._source_of_task = [task.source for task in made]
        self._kind = "matrix" if labels.ndim == 2 else "classes" if samples.sources is None else "tasks"
        self.sources_ = list(dict.fromkeys(task.source for task in made))
        if self._kind == "matrix":
            self.classes_ = [np.array(task.classes) for task in made]
        else:
            self.classes_ = _as_array(unique_labels(labels))
        coefficients = np.zeros((len(made), len(samples.data)))
        at = 0
        for t, task in enumerate(made):
            coefficients[t, task.rows] = dual[at : at + len(task.rows)]
            at += len(task.rows)
        self.support_ = np.flatnonzero((coefficients != 0).any(axis=0))
        self.dual_coef_ = coefficients[:, self.support_]
        self.intercept_ = intercepts
        self.kernel_names_ = bank.names
        if not bank.precomputed:
            self.support_vectors_ = samples.data[self.support_]
        return self

    def _read(self, X: Any, tasks: Any, reset: bool) -> Samples:
        """Split X into features and task labels, and check both."""
        if self._is_precomputed():
            if self.task_column is not None:
                raise ValueError("task_column cannot be used with precomputed kernels; pass tasks= instead.")
            stack = check_stack(X, square=reset)
            if reset:
                self.n_features_in_ = stack.shape[1]
                self._n_kernels_in = stack.shape[2]
            elif stack.shape[1:] != (self.n_features_in_, self._n_kernels_in):
                raise ValueError(
                    f"X must have shape (n_samples, {self.n_features_in_}, {self._n_kernels_in}), the kernel values "
                    f"between the given and the training samples; got shape {stack.shape}."
                )
            return Samples(stack, None if tasks is None else column_or_1d(tasks))
        if self.task_column is None:
            data = validate_data(self, X, dtype=np.float64, reset=reset)
            names = getattr(self, "feature_names_in_", None)
            sources = None if tasks is None else column_or_1d(tasks)
            return Samples(data, sources, None if names is None else list(names))
        if tasks is not None:
            raise ValueError("The tasks are said twice: by task_column and by tasks=; leave one out.")
        validate_data(self, X, reset=reset, skip_check_array=True)
        return self._split_task_column(X)

    def _split_task_column(self, X: Any) -> Samples:
        column = self.task_column
        names = list(X.columns) if hasattr(X, "columns") else None
        n_columns = np.shape(X)[1] if np.ndim(X) == 2 else 0
        if n_columns < 2:
            raise ValueError(f"task_column={column!r} needs X of at least two columns, got shape {np.shape(X)}.")
        if isinstance(column, numbers.Integral) and (names is None or column not in names):
            if not -n_columns <= int(column) < n_columns:
                raise ValueError(f"task_column={column} is out of range: X has {n_columns} columns.")
            position = int(column) % n_columns
        elif names is None:
            raise ValueError(f"task_column={column!r} is a name, but X has no column names; give the index.")
        elif column not in names:
            raise ValueError(f"X has no column {column!r} (task_column); its columns are {names[:10]}.")
        else:
            position = names.index(column)
        others = [k for k in range(n_columns) if k != position]
        if names is None:
            array = np.asarray(X)
            sources, features = array[:, position], array[:, others]
        elif hasattr(X, "iloc"):
            sources, features = X.iloc[:, position].to_numpy(), X.iloc[:, others]
        else:  # polars and its like
            sources, features = X[names[position]].to_numpy(), X[[names[k] for k in others]]
        data = check_array(features, dtype=np.float64, input_name="X", estimator=self)
        kept = None if names is None else [str(names[k]) for k in others]
        return Samples(data, sources, kept)

    def _read_labels(self, y: Any) -> AnyArray:
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        labels = np.asarray(y)
        if labels.ndim == 2 and labels.shape[1] > 1:
            return labels
        labels = column_or_1d(labels, warn=True)
        if labels.dtype.kind == "f":  # numbers that measure are no labels; everything else that can be hashed is
            check_classification_targets(labels)
        return labels

    # -------------------------------------------------------------------------------------------- predict
    def decision_function(self, X: Any, tasks: Any = None) -> Array:
        """Signed distances, up to scale.

        Returns
        -------
        scores : array of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_tasks)
            With two classes in all, one number per sample, positive for ``classes_[1]``. With more classes one column
            per class, votes of the pairs refined by their confidences; a class that the task of a sample does not
            have is scored below all that it has. After a fit on a matrix y one column per task.
        """
        check_is_fitted(self)
        samples = self._read(X, tasks, reset=False)
        decisions = self._pair_decisions(samples)
        if self._kind == "matrix":
            return decisions
        if len(self.classes_) == 2:
            return np.nansum(decisions, axis=1)  # each sample has the decision of its own task only
        return self._scores_of_classes(decisions)

    def predict(self, X: Any, tasks: Any = None) -> AnyArray:
        """Labels of shape (n_samples,), or (n_samples, n_tasks) after a fit on a matrix y."""
        scores = self.decision_function(X, tasks)
        if self._kind == "matrix":
            pairs = zip(scores.T, self.classes_, strict=True)
            return np.stack([classes[(score > 0).astype(int)] for score, classes in pairs], axis=1)
        if scores.ndim == 1:
            return self.classes_[(scores > 0).astype(int)]
        return self.classes_[scores.argmax(axis=1)]

    def score(self, X: Any, y: Any, sample_weight: Any = None, tasks: Any = None) -> float:
        """Mean over the tasks of the task accuracy; plain accuracy where the classes are the tasks."""
        predicted = self.predict(X, tasks)
        if self._kind == "classes":
            return float(accuracy_score(y, predicted, sample_weight=sample_weight))
        truth = np.asarray(y)
        weight = np.ones(len(truth)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        if self._kind == "matrix":
            labelled = ~missing_labels(truth)
            right = truth == predicted
            return float(
                np.mean([np.average(right[k, t], weights=weight[k]) for t, k in enumerate(labelled.T) if k.any()])
            )
        sources = self._sources(X, tasks)
        groups = [equal_labels(sources, source) for source in unique_labels(sources)]
        return float(np.mean([np.average(truth[k] == predicted[k], weights=weight[k]) for k in groups]))

    def _sources(self, X: Any, tasks: Any) -> AnyArray:
        sources = self._read(X, tasks, reset=False).sources
        assert sources is not None
        return sources

    def _pair_decisions(self, samples: Samples) -> Array:
        """f_t(x) of every task for the samples it is asked about, (n_samples, n_tasks); NaN elsewhere."""
        decisions = np.full((len(samples.data), self.n_tasks_), np.nan)
        for source, rows in self._rows_of_sources(samples):
            mine = [self._kind == "matrix" or known == source for known in self._source_of_task]
            of_source = np.flatnonzero(mine)
            decisions[np.ix_(rows, of_source)] = self._decide(samples.data, rows, of_source)
        return decisions

    def _rows_of_sources(self, samples: Samples) -> list[tuple[Any, IntArray]]:
        everyone = np.arange(len(samples.data))
        if self._kind != "tasks":
            if samples.sources is not None:
                raise ValueError(f"{type(self).__name__} was fitted without tasks; leave tasks= out here too.")
            return [(None, everyone)]
        if samples.sources is None:
            raise ValueError(
                f"{type(self).__name__} was fitted with tasks ({self.sources_[:5]} …); say the task of each sample "
                "with tasks=."
            )
        if len(samples.sources) != len(everyone):
            raise ValueError(f"tasks must have one entry per sample ({len(everyone)}), got {len(samples.sources)}.")
        groups = []
        for source in unique_labels(samples.sources):
            if source not in self.sources_:
                raise ValueError(f"Unknown task {source!r}; known are {self.sources_[:20]}.")
            groups.append((source, everyone[equal_labels(samples.sources, source)]))
        return groups

    def _decide(self, data: AnyArray, rows: IntArray, tasks: IntArray) -> Array:
        """Decisions of some tasks for some rows: kernels with the support vectors of these tasks only, in batches."""
        used = np.flatnonzero((self.dual_coef_[tasks] != 0).any(axis=0))
        coefficients = self.dual_coef_[np.ix_(tasks, used)]
        out = np.empty((len(rows), len(tasks)))
        if len(used) == 0:
            out[:] = self.intercept_[tasks]
            return out
        bank = self._bank
        right = bank.side_of_columns(len(used)) if bank.precomputed else bank.side(self.support_vectors_[used])
        step = max(1, int(PREDICT_BYTES // (8 * len(used) * max(1, len(bank.base_metric)))))
        for first in range(0, len(rows), step):
            batch = rows[first : first + step]
            part = data[np.ix_(batch, self.support_[used])] if bank.precomputed else data[batch]
            left = bank.side(part)
            for theta, columns in self._kernel_weights(tasks):
                values = bank.cross(left, right, theta) @ coefficients[columns].T
                out[first : first + step, columns] = values + self.intercept_[tasks[columns]]
        return out

    def _kernel_weights(self, tasks: IntArray) -> list[tuple[Array, IntArray]]:
        """θ and the positions in ``tasks`` it serves: one θ for all, or one for each."""
        if self.theta_.ndim == 1:
            return [(self.theta_, np.arange(len(tasks)))]
        return [(self.theta_[t], np.array([k])) for k, t in enumerate(tasks)]

    def _scores_of_classes(self, decisions: Array) -> Array:
        """Votes of the pairs, with ties broken by the sum of their confidences squeezed into (−⅓, ⅓)."""
        index = {label: k for k, label in enumerate(self.classes_.tolist())}
        votes = np.zeros((len(decisions), len(self.classes_)))
        confidence = np.zeros_like(votes)
        asked = np.zeros_like(votes, dtype=bool)
        for t, (negative, positive) in enumerate(self._classes_of_task):
            here = ~np.isnan(decisions[:, t])
            f = decisions[here, t]
            for label, towards in ((negative, -f), (positive, f)):
                k = index[label]
                votes[here, k] += towards > 0
                confidence[here, k] += towards
                asked[here, k] = True
        scores = votes + confidence / (3 * (np.abs(confidence) + 1))
        scores[~asked] = -1.0
        return scores


class ParetoMKLClassifier(MultiTaskClassifier):
    """Support vector classifiers that share one learned kernel, balanced by the power mean of their objectives.

        minimise over θ ≥ 0, ‖θ‖_s ≤ 1     M_p(J_1(θ), …, J_T(θ)),      M_p(g) = (Σ_t ω_t g_t^p)^(1/p)

    where J_t(θ) is the optimum of SVM task t under the kernel Σ_m θ_m K_m. Two classes are one task, more classes one
    task per pair (prediction by votes); or the tasks are said by a column of X, by ``tasks=``, or by a matrix y.

    Parameters
    ----------
    p : float, default=1.0
        Exponent of the mean: 1 is the average of the tasks, p < 1 lets easy tasks speak, ``inf`` protects the worst.
    s : float, default=1.1
        Norm of the kernel weights, at least 1; 1 is sparse.
    C : float, default=1.0
        Cost of a margin violation.
    kernels : "default", "precomputed", sequence or KernelBank, default="default"
        Base kernels, see :class:`KernelBank`. The default bank suits features scaled to [0, 1].
    task_column : int or str, default=None
        The column of X that names the task of each row. It is not used as a feature.
    task_weight : mapping or array-like of shape (n_tasks,), default=None
        Preferences ω among the tasks.
    solver : {"auto", "bcd", "tseng"}, default="auto"
        "auto" is the cut pool.
    tol : float, default=1e-3
        Relative gap at which to stop.
    class_weight : dict or "balanced", default=None
        Multiplies C by class; "balanced" weighs the two classes of each task inversely to their frequency there.
    n_jobs : int, default=None
        Threads; -1 is all cores.
    verbose : int, default=0
        1 shows progress.
    random_state : int, RandomState or None, default=None
        Not used: the method is deterministic. Present for a common interface.

    Attributes
    ----------
    theta_ : array of shape (n_kernels,)
        Learned kernel weights.
    objectives_ : array of shape (n_tasks,)
        J_t at ``theta_``.
    task_weights_ : array of shape (n_tasks,)
        η, summing to one.
    objective_ : float
        M_p(objectives_).
    gap_ : float
        Relative certificate, never below the truth.
    n_sweeps_ : int
        Passes over the tasks.
    classes_ : array of shape (n_classes,), or list of arrays
    task_names_, kernel_names_ : lists of str
    support_ : array of shape (n_support,)
        Training samples that support some task.
    support_vectors_ : array of shape (n_support, n_features)
    dual_coef_ : array of shape (n_tasks, n_support)
    intercept_ : array of shape (n_tasks,)
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl import ParetoMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = ParetoMKLClassifier(p=0.5, C=10).fit(X, y)
    >>> clf.theta_.shape, clf.objectives_.shape
    ((11,), (3,))
    """

    def __init__(
        self,
        p: float = 1.0,
        s: float = 1.1,
        C: float = 1.0,
        kernels: Any = "default",
        task_column: Any = None,
        task_weight: Any = None,
        solver: Any = "auto",
        tol: float = 1e-3,
        class_weight: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.p = p
        self.s = s
        self.C = C
        self.kernels = kernels
        self.task_column = task_column
        self.task_weight = task_weight
        self.solver = solver
        self.tol = tol
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def _learn(self, bank: FittedBank, data: AnyArray, tasks: list[Task], bounds: list[Array]) -> tuple[Array, Array]:
        exponents = check_exponents(self.p)
        check_number("s", self.s, lambda v: v >= 1, "at least 1")
        check_number("tol", self.tol, lambda v: 0 < v < 1, "between 0 and 1")
        solver = make_solver(self.solver, exponents, tol=self.tol)
        omega = check_task_weight(self.task_weight, tasks)
        problem = make_problem(bank, data, tasks, bounds, self.s, omega, effective_jobs(self.n_jobs))
        with Progress(1, self.tol, self.verbose) as progress:
            (solution,) = trace(problem, exponents, solver, progress)
        self._keep(solution, problem.tasks.n_sweeps)
        return solution.sweep.dual, solution.sweep.intercepts

    def _keep(self, solution: Solution, n_sweeps: int) -> None:
        self.theta_ = solution.theta
        self.objectives_ = solution.objectives
        self.task_weights_ = solution.task_weights
        self.objective_ = solution.objective
        self.gap_ = solution.gap
        self.n_sweeps_ = n_sweeps


def task_bounds(tasks: list[Task], C: float, sample_weight: Array | None, class_weight: Any) -> list[Array]:
    """C of each sample of each task: C · sample weight · class weight, with every class of every task left some."""
    if not (class_weight is None or class_weight == "balanced" or isinstance(class_weight, Mapping)):
        raise ValueError(f"class_weight must be None, 'balanced' or a dict, got {class_weight!r}.")
    bounds = []
    for task in tasks:
        weight = np.ones(len(task.rows)) if sample_weight is None else sample_weight[task.rows].astype(float)
        if (weight < 0).any():
            raise ValueError(f"sample_weight must not be negative (task {task.name!r}).")
        factor = np.ones(len(weight))
        for sign, label in ((-1, task.classes[0]), (1, task.classes[1])):
            of_class = task.signs == sign
            total = weight[of_class].sum()
            if not total > 0:
                raise ValueError(f"Task {task.name!r} has no sample of class {label!r} with a positive weight.")
            if class_weight == "balanced":
                factor[of_class] = weight.sum() / (2 * total)
            elif class_weight is not None:
                factor[of_class] = _class_weight(class_weight, label)
        bounds.append(C * weight * factor)
    return bounds


def _class_weight(class_weight: Mapping[Any, Any], label: Any) -> float:
    weight = class_weight.get(label, 1.0)
    if not (isinstance(weight, numbers.Real) and 0 < float(weight) < np.inf):
        raise ValueError(f"class_weight of class {label!r} must be positive, got {weight!r}.")
    return float(weight)


def _with_columns(labels: AnyArray, y: Any) -> Any:
    """A matrix of labels keeps the column names of the frame it came from: they name the tasks."""
    return y if labels.ndim == 2 and hasattr(y, "columns") else labels


def _as_array(labels: list[Any]) -> AnyArray:
    array = np.array(labels)
    if array.ndim == 1 and array.tolist() == labels:
        return array
    mixed = np.empty(len(labels), dtype=object)  # labels of several types: numpy would turn them into strings
    mixed[:] = labels
    return mixed
