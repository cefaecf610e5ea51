"""The base classes of all multi-task estimators: reading, prediction and scores, and what follows from their models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .._data.labels import Samples
from .._data.ranges import warn_if_far
from .._data.reading import Reader, Reading, Training, is_remote, read_data, read_samples
from .._fitting.models import FittedTasks, TaskModel, by_columns
from .._tools.checks import check_number
from .._tools.public import PublicNames
from .._tools.typing import AnyArray, Array, ClassWeight, IntArray
from .._tools.wording import counted
from ..kernels import KernelLike
from ..kernels._kernels import as_bank, is_precomputed
from ..machines import MACHINES
from ..solution import Solution
from ..tables._coding import Coding

if TYPE_CHECKING:

    class _Estimator:
        """Typed stand-in for scikit-learn's untyped base classes, where Any would hide misspelt names."""

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def __sklearn_tags__(self) -> Any: ...
        def _repr_html_(self) -> str: ...
        def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]: ...

    class ClassifierKind: ...

    class RegressorKind: ...

    class OutlierKind: ...
else:
    _Estimator = BaseEstimator
    ClassifierKind, RegressorKind, OutlierKind = ClassifierMixin, RegressorMixin, OutlierMixin

E = TypeVar("E")


class MultiTaskEstimator(PublicNames, _Estimator):
    """An estimator that wraps one fitted model of several tasks.

    Subclasses provide the parameters ``task_column`` and ``random_state``, and a method ``_learn`` that solves the
    tasks and returns their model.
    """

    task_column: int | str | None
    random_state: int | np.random.RandomState | None
    kernels: Any = None  # not all methods have kernels
    _internal: ClassVar[tuple[str, ...]] = (
        *("exponents", "gives_probabilities", "learned", "machine_kind", "mixed_names", "parts", "posed", "read_data"),
        *("reading", "codings_", "ranges_in_", "rows_in_"),
    )
    mixed_names = False  # estimators refuse column names of several types, as scikit-learn does

    model_: Any  # FittedTasks
    n_features_in_: int
    n_kernels_in_: int
    blocks_in_: Mapping[str, tuple[int, ...]]
    feature_names_in_: AnyArray
    codings_: dict[str, Coding]
    ranges_in_: Array | None
    rows_in_: dict[str, int]

    # With metadata routing on, tasks= is routed without set_fit_request and the like.
    __metadata_request__fit: ClassVar = {"tasks": True}
    __metadata_request__predict: ClassVar = {"tasks": True}
    __metadata_request__score: ClassVar = {"tasks": True}

    # ------------------------------------------------------------------------------------------------ fit
    def fit(self, X: Any, y: Any = None, *, tasks: Any = None, sample_weight: Any = None) -> Self:
        """Learn the shared kernel and all tasks.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features), or a dict or list of these
            Several blocks with the same rows are one source each. With ``task_column``, one of the columns names the
            task of each row. With ``kernels="precomputed"``, a stack of shape (n_samples, n_samples, n_kernels). A
            Dask array or frame with tasks, or :class:`~paretomkl.distributed.Sites` (without y), is solved on a
            cluster.
        y : array-like of shape (n_samples,) or (n_samples, n_tasks)
            Labels, or numbers for regression; a matrix has one task per column, with NaN for missing values, and two
            values in each column of labels.
        tasks : array-like of shape (n_samples,), default=None
            The task of each row, if no column of X names it.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies C for each sample.

        Returns
        -------
        self : object
        """
        self._forget()
        return self.learned(self.read_data(X, y, tasks=tasks, sample_weight=sample_weight))

    @property
    def reading(self) -> Reading:
        """How to read X and y."""
        return Reading.of(self)

    def read_data(
        self, X: Any, y: Any, *, tasks: Any = None, sample_weight: Any = None, strict: bool = True
    ) -> Training:
        """Read and check the training data; ``strict=False`` is for a part of checked data."""
        if is_remote(X):
            raise ValueError(f"{type(self).__name__} needs all samples in one place; it does not learn on a cluster.")
        return read_data(self, X, y, tasks=tasks, sample_weight=sample_weight, strict=strict)

    def _learn(self, training: Training) -> FittedTasks:
        """Solve the tasks and return their model."""
        raise NotImplementedError

    def learned(self, training: Training) -> Self:
        """Fit to training data that are already read."""
        self.model_ = self._learn(training)
        return self

    def _forget(self) -> None:
        """Drop all fitted attributes, since the next fit may not set each of them; check ``random_state``."""
        check_random_state(self.random_state)
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        stack = is_precomputed(self.kernels)
        tags.input_tags.pairwise = tags.input_tags.three_d_array = stack
        tags.input_tags.sparse = tags.input_tags.allow_nan = self.kernels is not None and not stack
        return tags

    # -------------------------------------------------------------------------------------------- predict
    def predict(self, X: Any, *, tasks: Any = None) -> AnyArray:
        """Predict labels, or numbers for regression.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features), or blocks of them as in ``fit``
            With ``kernels="precomputed"``, shape (n_samples, n_train, n_kernels).
        tasks : array-like of shape (n_samples,), default=None
            The task of each row, if you passed ``tasks=`` to ``fit``.

        Returns
        -------
        y : array of shape (n_samples,), or (n_samples, n_tasks) after a fit on a matrix y
        """
        samples = self._samples(X, tasks)
        return self.model_.predict(samples)

    def score(self, X: Any, y: Any, *, tasks: Any = None, sample_weight: Any = None) -> float:
        """Mean over the tasks of their accuracy, or of R² for regression.

        If the tasks are made from the classes of y, this is the plain accuracy.

        Parameters
        ----------
        X, tasks
            As in ``predict``.
        y : array-like of shape (n_samples,) or (n_samples, n_tasks)
            True labels or numbers. The columns of a frame are matched to the tasks by name; missing values are skipped.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        score : float
            The mean skips tasks without a label of positive weight, or for R² with fewer than two samples.
        """
        samples = self._samples(X, tasks)
        check_consistent_length(samples.data, y, sample_weight)
        return self.model_.score(samples, y, weight=sample_weight)

    def _samples(self, X: Any, tasks: Any) -> Samples:
        check_is_fitted(self)
        samples = read_samples(self, X, tasks=tasks)
        ranges = getattr(self, "ranges_in_", None)
        if ranges is not None:
            warn_if_far(samples, ranges, samples.names, stacklevel=4)
        return samples

    @property
    def n_tasks_(self) -> int:
        """Number of tasks."""
        return self.model_.tasks.n_tasks

    @property
    def task_names_(self) -> list[str]:
        """Names of the tasks in messages and tables."""
        return self.model_.tasks.names

    @property
    def sources_(self) -> list[Any]:
        """The labels of ``tasks=``, or the columns of y, that the tasks come from."""
        return self.model_.tasks.distinct_sources


class MultiTaskClassifier(ClassifierKind, MultiTaskEstimator):
    """A classifier that wraps one fitted model of several tasks, with the extra parameter ``class_weight``."""

    class_weight: ClassWeight
    model_: FittedTasks
    score = MultiTaskEstimator.score  # not that of scikit-learn's mixin, which comes first

    __metadata_request__decision_function: ClassVar = {"tasks": True}

    @property
    def classes_(self) -> Any:
        """All labels, (n_classes,); after a fit on a matrix y, one array per task."""
        return self.model_.tasks.classes

    def decision_function(self, X: Any, *, tasks: Any = None) -> Array:
        """Signed distances, up to scale; log-odds for ``loss="logistic"``.

        Parameters
        ----------
        X, tasks
            As in ``predict``.

        Returns
        -------
        scores : array of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_tasks)
            With two classes in total, one number per sample, positive for ``classes_[1]``. With more classes, one
            column per class: the votes of the pairs, refined by their confidences. A class that the sample's task does
            not have scores below all classes that it has. After a fit on a matrix y, one column per task.
        """
        samples = self._samples(X, tasks)
        return self.model_.tasks.scores(self.model_.decided(samples))


class MultiTaskRegressor(RegressorKind, MultiTaskEstimator):
    """A regressor that wraps one fitted model of several tasks, with the extra parameter ``normalize_y``."""

    normalize_y: bool
    model_: FittedTasks
    score = MultiTaskEstimator.score  # not that of scikit-learn's mixin, which comes first

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @property
    def reading(self) -> Reading:
        """How to read X and y: as numbers, whatever the loss."""
        return Reading.of(self, machine=MACHINES["ridge"])


class KernelFit(_Estimator):
    """The fitted attributes that follow from the :class:`TaskModel` of an estimator and its optimum."""

    C: float
    kernels: KernelLike
    verbose: int | None
    model_: TaskModel
    objectives_: Array
    objective_: float
    gap_: float
    n_sweeps_: int

    def set_params(self, **params: Any) -> Self:
        """Set parameters as scikit-learn does; ``kernels__capacity`` works for kernels of any form, names included."""
        if any(name.startswith("kernels__") for name in params):
            params = {**params, "kernels": as_bank(params.get("kernels", self.kernels))}
        return super().set_params(**params)

    def _cost(self) -> float:
        """C, checked."""
        C: Any = self.C
        if isinstance(C, Sequence | np.ndarray) and not isinstance(C, str):
            raise ValueError("C must be one number; pass sample_weight to fit to multiply C for each sample.")
        check_number("C", C, lambda v: 0 < v < np.inf, "greater than 0")
        return float(C)

    def _keep(self, objectives: Array, gap: float, n_sweeps: int, objective: float | None = None) -> None:
        """Set the fitted attributes of the optimum; ``objective`` defaults to the mean."""
        self.objectives_ = objectives
        self.objective_ = float(objectives.mean()) if objective is None else objective
        self.gap_ = float(gap)
        self.n_sweeps_ = n_sweeps

    @property
    def n_iter_(self) -> int:
        """``n_sweeps_`` under scikit-learn's name."""
        return self.n_sweeps_

    @property
    def theta_(self) -> Array:
        """Kernel weights, (n_kernels,), or (n_tasks, n_kernels) if each task has its own."""
        return self.model_.theta

    @property
    def kernel_names_(self) -> list[str]:
        """Names of the base kernels."""
        return self.model_.bank.names

    @property
    def kernel_shares_(self) -> Array:
        """Share of each kernel in the variance within tasks, θ_m v_m / Σ θ v, with the shape of ``theta_``."""
        return self.model_.bank.variance_share(self.theta_)

    @property
    def source_shares_(self) -> dict[str, Any]:
        """``kernel_shares_`` summed over the kernels of each source: one number per source, or one per task."""
        shares = self.model_.bank.by_source(self.kernel_shares_)
        if not shares:
            raise AttributeError("The kernels have no named sources; make them with kernels=sources({…}).")
        return {name: share.item() if share.ndim == 0 else share for name, share in shares.items()}

    @property
    def scaling_(self) -> Mapping[str, str]:
        """What is done to the columns of each source: ``"standardize"``, ``"root"`` or ``"none"``.

        Without sources, the only key is ``"X"``.
        """
        return self.model_.bank.scaling

    @property
    def support_(self) -> IntArray:
        """Indices of the training samples that support at least one task, (n_support,)."""
        return self.model_.support.rows

    @property
    def support_vectors_(self) -> Array:
        """Features of the samples in ``support_``, (n_support, n_features)."""
        vectors = self.model_.support.vectors
        if vectors is None:
            raise AttributeError("Precomputed kernels have no support vectors; use support_.")
        return vectors

    @property
    def dual_coef_(self) -> Array:
        """Signed dual variables, (n_tasks, n_support)."""
        return self.model_.dual.toarray()

    @property
    def intercept_(self) -> Array:
        """Intercept of each task, (n_tasks,)."""
        return self.model_.intercepts

    def contributions(self, X: Any, *, tasks: Any = None, by: Literal["kernel", "source"] = "kernel") -> Array:
        """What each kernel adds to the decision (in regression: the prediction) of each sample.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
        tasks : array-like of shape (n_samples,), default=None
            The task of each row, if you passed ``tasks=`` to ``fit``.
        by : {"kernel", "source"}, default="kernel"
            "source" adds up the kernels of each named source, in the order of ``source_shares_``.

        Returns
        -------
        parts : array of shape (n_samples, n_kernels), or (n_samples, n_tasks, n_kernels)
            The second shape applies if a sample has several tasks: for a matrix y and for pairs of classes. The sum
            over the last axis is the decision minus ``intercept_`` (in regression: the prediction minus its constant
            part).
        """
        if by not in ("kernel", "source"):
            raise ValueError(f"by must be 'kernel' or 'source', got {by!r}.")
        samples = self._samples(X, tasks)  # type: ignore[attr-defined]
        model = self.model_
        parts, asked, n_columns = model.parts(samples)
        parts = parts * np.broadcast_to(model.tasks.units, n_columns)[asked][..., None]
        if by == "source":
            sums = model.bank.by_source(parts)
            if not sums:
                raise ValueError("The kernels have no named sources; make them with kernels=sources({…}).")
            parts = np.stack(list(sums.values()), axis=-1)
        several = (~np.isnan(parts[:, :, 0])).sum(axis=1).max(initial=0) > 1
        return by_columns(parts, asked, n_columns) if several else np.nansum(parts, axis=1)

    def kernel(self, X: Any, Z: Any = None, *, tasks: Any = None, Z_tasks: Any = None) -> Array:
        """The learned kernel Σ_m θ_m K_m between two sets of samples, for other methods: ``SVC(kernel=clf.kernel)``.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features), or blocks of them as in ``predict``
            With ``kernels="precomputed"``, the stack (n_samples, n_train, n_kernels), whose columns take the place of
            Z.
        Z : like X, default=None
            None is the same as X.
        tasks, Z_tasks : array-like of shape (n_samples,), default=None
            The task of each row of X and of Z, if you passed ``tasks=`` to ``fit``. They matter only for
            ``share="function"`` and ``"everything"``, where samples of one task have more in common; without them, you
            get the kernel of what the tasks have in common.

        Returns
        -------
        kernel : array of shape (n_samples, n_samples of Z)
        """
        samples = self._samples(X, tasks)  # type: ignore[attr-defined]
        return self.model_.kernel(samples, None if Z is None else self._samples(Z, Z_tasks))  # type: ignore[attr-defined]

    def novelty(self, X: Any, *, tasks: Any = None) -> Array:
        """How far each sample is from everything the model has seen, in its learned kernel.

        The distance is √(k(x, x) + k(z, z) − 2 k(x, z)) under the learned kernel k, to the nearest support vector z:
        the other training samples are not kept. It is divided by the 99th percentile of the distances of support
        vectors from the nearest other one, or by half of their median distance if that is larger. So samples like those
        in training rarely have a novelty above 1, and predictions far above 1 are guesses.

        Parameters
        ----------
        X, tasks
            As in ``predict``.

        Returns
        -------
        novelty : array of shape (n_samples,)
            Values above 2 get an :class:`~paretomkl.exceptions.UnlikeTrainingWarning`.
        """
        from .._fitting.novelty import novelty, warn_if_novel

        found = novelty(self.model_, self._samples(X, tasks))  # type: ignore[attr-defined]
        warn_if_novel(found, stacklevel=3)
        return found

    def card(self, importances: Any = None) -> str:
        """A model card in Markdown: rows per task, parameters, held-out scores with intervals, and what to know.

        Parameters
        ----------
        importances : Importances, default=None
            What :func:`~paretomkl.inspection.importance` found, for a section of its own; it needs the training data.

        Returns
        -------
        card : str
        """
        from .card import model_card

        return model_card(self, importances=importances)

    # ------------------------------------------------------------------------------------------- notebooks
    @property
    def _repr_html_(self) -> Any:
        diagram = super()._repr_html_  # raises AttributeError if display is "text"
        return lambda: diagram() + self._tables()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)
        return bundle | {kind: text + self._tables() for kind, text in bundle.items() if kind == "text/html"}

    def _tables(self) -> str:
        from .._show.page import estimator_html

        return estimator_html(self)


class KernelTaskClassifier(KernelFit, MultiTaskClassifier):
    """A multi-task classifier whose model is a :class:`TaskModel`."""

    model_: TaskModel

    def __init__(
        self,
        C: float = 1.0,
        kernels: KernelLike = "default",
        task_column: int | str | None = None,
        tol: float = 1e-3,
        class_weight: ClassWeight = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.C = C
        self.kernels = kernels
        self.task_column = task_column
        self.tol = tol
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state


class KernelTaskRegressor(KernelFit, MultiTaskRegressor):
    """A multi-task regressor whose model is a :class:`TaskModel`."""

    model_: Any


def read_anywhere(
    owner: Reader, X: Any, y: Any, *, tasks: Any = None, sample_weight: Any = None, strict: bool = True
) -> Training:
    """Read training data, here or on the workers of a cluster; ``strict`` is as in :func:`read_data`."""
    if is_remote(X):
        from ..distributed._training import read_remote  # needs Dask

        return read_remote(owner, X, y, tasks=tasks, sample_weight=sample_weight)
    return read_data(owner, X, y, tasks=tasks, sample_weight=sample_weight, strict=strict)


def keep_solution(estimator: Any, solution: Solution, n_sweeps: int) -> None:
    """Copy the values of a solution into fitted attributes."""
    estimator.task_weights_, estimator.objectives_ = solution.task_weights, solution.sweep.lower
    estimator.objective_, estimator.gap_, estimator.n_sweeps_ = solution.objective, solution.gap, n_sweeps


def what_continued(training: Training, n_kept: int) -> str:
    """What a fit took over from an earlier one, in words."""
    return (
        "The kernels are those of the earlier fit, with their scaling and widths. "
        f"{n_kept} of {counted(len(training.tasks), 'task')} took over their duals and cuts."
    )


def fitted_at(plain: E, solution: Solution, model: TaskModel, C: float, n_sweeps: int) -> E:
    """Copy an estimator that has read the training data, and fit it with the given solution and C."""
    point: Any = copy(plain)
    point.p, point.C, point.model_ = solution.p, C, model
    keep_solution(point, solution, n_sweeps)
    return point
