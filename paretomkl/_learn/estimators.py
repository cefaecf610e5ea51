"""The scikit-learn estimators: one learned kernel for all classes, or for all tasks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._data.labels import as_blocks
from .._data.reading import Examples, Reading, Training, is_remote, read_data, read_samples
from .._data.tasks import as_labels
from .._fitting.tracing import Parts, Posed, check_parts, fit_and_pose, learn, solve
from .._tools.checks import check_exponent, check_number, check_task_weight, shown
from .._tools.shares import Share
from .._tools.typing import AnyArray, Array, ClassWeight, MultiClass, SolverLike, TaskScale
from ..exceptions import SourceWarning
from ..kernels._fitted import FittedBank
from ..kernels._kernels import KernelLike, as_bank, is_precomputed
from ..machines import MACHINES, MachineKind
from ..machines._base import find_kind
from ..protocols import Scalarization, WeightSet
from .base import (
    KernelFit,
    KernelTaskClassifier,
    KernelTaskRegressor,
    MultiTaskEstimator,
    OutlierKind,
    keep_solution,
    read_anywhere,
    what_continued,
)
from .calibration import Calibration
from .probabilities import calibrated, of_searches, predict_log_proba, predict_proba

__all__ = ["ParetoMKLClassifier", "ParetoMKLOutlierDetector", "ParetoMKLRegressor"]


class ParetoLearner:
    """The fit of an estimator with p, C and s: it reads the data, and learns one point of a path."""

    p: float
    s: float
    kernels: KernelLike
    task_weight: Any
    solver: SolverLike
    tol: float
    n_jobs: int | None
    verbose: int | None
    max_iter: int | None
    task_scale: TaskScale
    share: Share
    scalarization: Scalarization | None = None
    weight_set: WeightSet | None = None
    task_weights_: Array
    common_share_: float
    continued_: str
    _cost: Callable[[], float]  # of KernelFit

    @property
    def machine_kind(self) -> MachineKind:
        """The kind of machine that solves the tasks."""
        raise NotImplementedError

    @property
    def reading(self) -> Reading:
        """How to read X and y, which depends on the machine."""
        return Reading.of(self, machine=self.machine_kind)

    def read_data(
        self, X: Any, y: Any, *, tasks: Any = None, sample_weight: Any = None, strict: bool = True
    ) -> Training:
        """Check and arrange the training data as ``share`` requires; ``strict=False`` is for a part of checked data."""
        owner: Any = self
        return read_anywhere(owner, X, y, tasks=tasks, sample_weight=sample_weight, strict=strict)

    def exponents(self) -> list[float]:
        """The exponent, checked; NaN if a scalarization of the user takes its place."""
        p = check_exponent(self.p)
        return [p if self.scalarization is None else np.nan]

    def parts(self, exponents: Sequence[float], n_jobs: int | None = None) -> Parts:
        """The checked parameters that do not depend on the data, such as solver and machine."""
        given = self.s, self.tol, self.solver, self.max_iter, n_jobs, self.task_scale, self.machine_kind
        epsilon = getattr(self, "epsilon", None)  # only regressors have it
        return check_parts(exponents, *given, self.scalarization, self.weight_set, epsilon=epsilon)

    def posed(self, training: Training, bounds: list[Array], parts: Parts) -> Posed:
        """The problem of these data at p = 1."""
        omega = check_task_weight(self.task_weight, training.tasks)
        return fit_and_pose(training, bounds, self.kernels, parts, omega)

    def _learn(self, training: Training) -> Any:
        exponents = self.exponents()
        parts, C = self.parts(exponents, self.n_jobs), self._cost()
        omega = check_task_weight(self.task_weight, training.tasks)
        run, (point,), (model,), n_kept = learn(training, exponents, C, self.kernels, parts, omega, self.verbose)
        keep_solution(self, point, run.n_sweeps)
        if training.earlier is not None:
            self.continued_ = what_continued(training, n_kept)
        if training.together is not None:
            self.common_share_ = model.common_share
        return model


class ContinuingLearner(ParetoLearner):
    """A learner that can continue from a fit to fewer rows."""

    _forget: Callable[[], None]  # of MultiTaskEstimator
    learned: Callable[..., Any]

    def fit(
        self, X: Any, y: Any = None, *, tasks: Any = None, sample_weight: Any = None, warm_from: Any = None
    ) -> Self:
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
        warm_from : fitted estimator, default=None
            A model of the first rows of X, from which to continue now that there are more rows. Its kernels are kept as
            they are, with their scaling and widths. So are its duals, which are zero for new rows, and its cuts, for
            tasks whose targets and costs are the same on the earlier rows. The certificate is that of a fit from the
            start with these kernels. ``continued_`` says what was kept.

        Returns
        -------
        self : object
        """
        earlier = None if warm_from is None else _model_of(warm_from)
        if earlier is not None and is_remote(X):
            raise ValueError("warm_from needs all samples in one place, not on a cluster; use X.compute().")
        codings = getattr(warm_from, "codings_", None)
        if earlier is not None:
            check_same_kernels(self, warm_from)
        self._forget()
        owner, given = cast(Any, self), {"tasks": tasks, "sample_weight": sample_weight}
        if earlier is None:
            self.learned(self.read_data(X, y, **given))
        else:
            self.learned(replace(read_data(owner, X, y, **given, codings=codings), earlier=earlier))
        self._calibrate(X, y, tasks, sample_weight)
        return self

    def _calibrate(self, X: Any, y: Any, tasks: Any, sample_weight: Any) -> None:
        """Calibrate probabilities, if there are any to calibrate."""


class ParetoMKLClassifier(ContinuingLearner, KernelTaskClassifier):
    """Support vector classifiers that share one learned kernel, balanced by the power mean of their objectives.

        minimise over θ ≥ 0, ‖θ‖_s ≤ 1     M_p(J_1(θ), …, J_T(θ)),      M_p(g) = (Σ_t ω_t g_t^p)^(1/p)

    where J_t(θ) is the optimum of SVM task t under the kernel Σ_m θ_m K_m. Two classes make one task; more classes make
    one task per pair (prediction by votes) or per class, see ``multi_class``. To define the tasks yourself, pass a
    column of X, ``tasks=`` or a matrix y.

    Parameters
    ----------
    p : float, default=1.0
        Exponent of the mean: 1 averages the tasks, p < 1 gives more weight to tasks with small objectives, p > 1 to
        tasks with large ones, and ``inf`` minimises the largest training objective.
    s : float, default=1.1
        Norm of the kernel weights, at least 1; s = 1 gives sparse weights.
    C : float, default=1.0
        Cost of a margin violation.
    kernels : "default", "paper", "precomputed", sequence or KernelBank, default="default"
        Base kernels, see :class:`KernelBank`. The default bank standardises the features itself.
    task_column : int or str, default=None
        The column of X that names the task of each row. It is not used as a feature.
    task_weight : mapping or array-like of shape (n_tasks,), default=None
        Preferences ω among the tasks.
    solver : {"auto", "bcd", "tseng"} or solver object, default="auto"
        "auto" is the cut pool.
    tol : float, default=1e-3
        Relative gap at which to stop.
    class_weight : dict or "balanced", default=None
        Multiplies C by class; "balanced" weights the two classes of each task (or of each pair, if there are more than
        two) inversely to their frequency in that task, counting each sample with its weight.
    n_jobs : int, default=None
        Threads; -1 is all cores.
    verbose : int, default=0
        1 shows progress.
    random_state : int, RandomState or None, default=None
        Unused, since the method is deterministic; present for API consistency.
    max_iter : int, default=None
        Maximum number of sweeps (steps for "tseng"); None uses the solver's default.
    task_scale : {"none", "samples"}, default="none"
        "none" uses J_t itself, as in the paper. J_t grows with the number of samples, so p ≠ 1 cannot distinguish a
        large task from a hard one. "samples" uses J_t / n_t instead, where n_t is the total sample weight of task t
        (the number of samples if all weights are one). If all tasks have the same size, both learn the same kernel.
    loss : {"hinge", "squared", "logistic"} or MachineKind, default="hinge"
        What a task minimises beside ½ ‖f‖²: the hinge loss C Σ_i max(0, 1 − y_i f(x_i)) of a support vector machine,
        the squared loss (C/2) Σ_i (1 − y_i f(x_i))² on labels ±1, or the logistic loss
        C Σ_i log(1 + exp(−y_i f(x_i))), whose decisions are log-odds.
    share : {"nothing", "kernel", "function", "everything"}, default="kernel"
        What the tasks (from ``tasks=``, ``task_column`` or a matrix y) have in common. "nothing": each task has its own
        kernel weights and its own function. "kernel": the tasks share the weights. "function": f_t = f_0 + g_t; the
        kernel weights of the common part and of the task-specific parts are learned together, and task intercepts are
        penalised. "everything": one function for all tasks, with a penalised intercept (level) for each. p matters only
        for "kernel". With "function" and "everything", a task may contain a single class, and predictions for a task
        not seen in training use f_0, with a level of zero.
    multi_class : {"one-vs-one", "one-vs-rest"}, default="one-vs-one"
        How more than two classes (in y, or in a task) become tasks. "one-vs-one": one task per pair of classes, trained
        on their samples only; the pairs vote. "one-vs-rest": one task per class, trained on all samples; the largest
        decision wins. With few samples per class, "one-vs-rest" learns more, and with the squared loss its tasks share
        one factorisation.
    scalarization : Scalarization, default=None
        A scalarization of your own in place of the power mean; then ``p`` does not apply.
    weight_set : WeightSet, default=None
        Allowed kernel weights of your own in place of the ball ‖θ‖_s ≤ 1; then ``s`` does not apply.
    probability : bool, default=False
        Whether to calibrate probabilities for ``predict_proba``. The same parameters learn again in five folds, so a
        fit takes up to six times as long. Without it, ``loss="logistic"`` gives those of its log-odds.

    Attributes
    ----------
    theta_ : array of shape (n_kernels,)
        Learned kernel weights.
    kernel_shares_ : array of shape (n_kernels,)
        θ_m v_m / Σ θ v, where v_m is the variance of kernel m within a task: weights on a common scale.
    source_shares_ : dict
        ``kernel_shares_`` summed over the kernels of each named source.
    scaling_ : dict
        What is done to the columns of each named source ("X" without sources): "standardize", "root" or "none".
    objectives_ : array of shape (n_tasks,)
        J_t at ``theta_``; J_t / n_t with ``task_scale="samples"``.
    task_weights_ : array of shape (n_tasks,)
        Task weights η, which sum to one.
    objective_ : float
        M_p of ``objectives_``.
    gap_ : float
        Certified relative gap, an upper bound on the true one.
    n_sweeps_ : int
        Passes over the tasks.
    common_share_ : float
        With ``share="function"``, the share of f_0 in the variance of the functions.
    classes_ : array of shape (n_classes,), or list of arrays
    task_names_, kernel_names_ : lists of str
    support_ : array of shape (n_support,)
        Indices of the training samples that support at least one task.
    support_vectors_ : array of shape (n_support, n_features)
    dual_coef_ : array of shape (n_tasks, n_support)
    intercept_ : array of shape (n_tasks,)
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,)
    calibration_ : Calibration
        With ``probability=True``, how decisions become probabilities.
    model_ : TaskModel
        The fitted functions, their kernels and the names of the tasks.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl import ParetoMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = ParetoMKLClassifier(p=0.5, C=10).fit(X, y)
    >>> clf.theta_.shape, clf.objectives_.shape
    ((13,), (3,))
    """

    calibration_: Calibration
    predict_proba, predict_log_proba = predict_proba, predict_log_proba
    predict_set = of_searches("ParetoMKLClassifierCV")

    __metadata_request__predict_proba: ClassVar = {"tasks": True}
    __metadata_request__predict_log_proba: ClassVar = {"tasks": True}

    def __init__(
        self,
        p: float = 1.0,
        s: float = 1.1,
        C: float = 1.0,
        kernels: KernelLike = "default",
        task_column: int | str | None = None,
        task_weight: Mapping[Any, float] | Sequence[float] | Array | None = None,
        solver: SolverLike = "auto",
        tol: float = 1e-3,
        class_weight: ClassWeight = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
        max_iter: int | None = None,
        task_scale: TaskScale = "none",
        loss: str | MachineKind = "hinge",
        share: Share = "kernel",
        multi_class: MultiClass = "one-vs-one",
        scalarization: Scalarization | None = None,
        weight_set: WeightSet | None = None,
        probability: bool = False,
    ):
        super().__init__(C, kernels, task_column, tol, class_weight, n_jobs, verbose, random_state)
        self.p = p
        self.s = s
        self.task_weight = task_weight
        self.solver = solver
        self.max_iter = max_iter
        self.task_scale = task_scale
        self.loss = loss
        self.share = share
        self.multi_class = multi_class
        self.scalarization = scalarization
        self.weight_set = weight_set
        self.probability = probability

    def _calibrate(self, X: Any, y: Any, tasks: Any, sample_weight: Any) -> None:
        if not getattr(self, "probability", False):  # baselines do not have it
            return
        if is_remote(X):
            raise ValueError("probability=True needs all samples in one place, to hold some out; use X.compute().")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SourceWarning)  # the first reading has said so
            samples = read_samples(copy(self), as_blocks(X), tasks=tasks, reset=True)
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        given = y if hasattr(y, "columns") else as_labels(y, "y")
        self.calibration_ = calibrated(self, Examples(samples, given, weight))

    @property
    def gives_probabilities(self) -> bool:
        """Whether there are probabilities, once it is fitted."""
        if "model_" not in vars(self) and getattr(self, "probability", False):
            return True
        return "calibration_" in vars(self) or self.machine_kind.decisions == "log-odds"

    @property
    def machine_kind(self) -> MachineKind:
        """The kind of machine of the loss."""
        return find_kind(MACHINES, self.loss, "loss", reads="labels")


class ParetoMKLRegressor(ContinuingLearner, KernelTaskRegressor):
    """Kernel regressions that share one learned kernel, balanced by the power mean of their objectives.

        minimise over θ ≥ 0, ‖θ‖_s ≤ 1     M_p(J_1(θ), …, J_T(θ))

        squared:                J_t(θ) = min over f, b of  ½ ‖f‖² + (C/2) Σ_i (y_i − f(x_i) − b)²
        epsilon_insensitive:    J_t(θ) = min over f, b of  ½ ‖f‖² + C Σ_i max(0, abs(y_i − f(x_i) − b) − ε)

    with f in the space of the kernel Σ_m θ_m K_m. A vector y makes one task; for several, pass a column of X,
    ``tasks=`` or a matrix y.

    Parameters
    ----------
    loss : {"squared", "epsilon_insensitive"} or MachineKind, default="squared"
        Kernel ridge regression, or support vector regression. With the squared loss, all outputs on the same samples
        share one factorisation: ten cost little more than one.
    epsilon : float, default=0.1
        Errors below ε cost nothing. With ``normalize_y``, ε is in units of the task's standard deviation.
    C : float, default=1.0
        Cost of an error.
    p : float, default=1.0
        Exponent of the mean: 1 averages the tasks, p < 1 gives more weight to tasks with small objectives, p > 1 to
        tasks with large ones, and ``inf`` minimises the largest training objective.
    s : float, default=1.1
        Norm of the kernel weights, at least 1; s = 1 gives sparse weights.
    kernels : "default", "paper", "precomputed", sequence or KernelBank, default="default"
        Base kernels, see :class:`KernelBank`. The default bank standardises the features itself.
    task_column : int or str, default=None
        The column of X that names the task of each row. It is not used as a feature.
    normalize_y : bool, default=True
        Whether to centre and scale the targets to standard deviation one within each task, so that task objectives are
        comparable. Predictions are in the units of y either way.
    task_weight : mapping or array-like of shape (n_tasks,), default=None
        Preferences ω among the tasks.
    solver : {"auto", "bcd"} or solver object, default="auto"
        "auto" is the cut pool.
    tol : float, default=1e-3
        Relative gap at which to stop.
    n_jobs : int, default=None
        Threads; -1 is all cores.
    verbose : int, default=0
        1 shows progress.
    random_state : int, RandomState or None, default=None
        Unused, since the method is deterministic; present for API consistency.
    max_iter : int, default=None
        Maximum number of sweeps; None uses the solver's default.
    task_scale : {"none", "samples"}, default="none"
        "samples" uses J_t / n_t instead of J_t, where n_t is the total sample weight of task t.
    share : {"nothing", "kernel", "function", "everything"}, default="kernel"
        What the tasks (from ``tasks=``, ``task_column`` or a matrix y) have in common. "nothing": each task has its own
        kernel weights and its own function. "kernel": the tasks share the weights. "function": f_t = f_0 + g_t; the
        kernel weights of the common part and of the task-specific parts are learned together, and task intercepts are
        penalised. "everything": one function for all tasks, with a penalised intercept (level) for each. p matters only
        for "kernel". With "function" and "everything", targets are standardised over all tasks together, and
        predictions for a task not seen in training use f_0, with a level of zero.
    scalarization : Scalarization, default=None
        A scalarization of your own in place of the power mean; then ``p`` does not apply.
    weight_set : WeightSet, default=None
        Allowed kernel weights of your own in place of the ball ‖θ‖_s ≤ 1; then ``s`` does not apply.

    Attributes
    ----------
    theta_ : array of shape (n_kernels,)
        Learned kernel weights.
    kernel_shares_ : array of shape (n_kernels,)
        θ_m v_m / Σ θ v, where v_m is the variance of kernel m within a task: weights on a common scale.
    source_shares_ : dict
        ``kernel_shares_`` summed over the kernels of each named source.
    scaling_ : dict
        What is done to the columns of each named source ("X" without sources): "standardize", "root" or "none".
    common_share_ : float
        With ``share="function"``, the share of f_0 in the variance of the functions.
    objectives_, task_weights_ : arrays of shape (n_tasks,)
        J_t at ``theta_``, and the task weights η, which sum to one.
    objective_, gap_ : float
        M_p of ``objectives_``, and its certified relative gap, an upper bound on the true one.
    n_sweeps_ : int
        Passes over the tasks.
    model_ : TaskModel
        The fitted functions, their kernels and the names of the tasks.
    task_names_, kernel_names_ : lists of str
    support_, support_vectors_, dual_coef_, intercept_
        The task functions, which predict the targets on the scale that ``normalize_y`` gives them.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,)

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from paretomkl import ParetoMKLRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> reg = ParetoMKLRegressor(C=0.3).fit(X, y)
    >>> bool(reg.score(X, y) > 0.5)
    True
    >>> reg.contributions(X[:2]).shape
    (2, 13)
    """

    predict_interval = of_searches("ParetoMKLRegressorCV")

    def __init__(
        self,
        loss: str | MachineKind = "squared",
        epsilon: float = 0.1,
        C: float = 1.0,
        p: float = 1.0,
        s: float = 1.1,
        kernels: KernelLike = "default",
        task_column: int | str | None = None,
        normalize_y: bool = True,
        task_weight: Mapping[Any, float] | Sequence[float] | Array | None = None,
        solver: SolverLike = "auto",
        tol: float = 1e-3,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
        max_iter: int | None = None,
        task_scale: TaskScale = "none",
        share: Share = "kernel",
        scalarization: Scalarization | None = None,
        weight_set: WeightSet | None = None,
    ):
        self.loss = loss
        self.epsilon = epsilon
        self.C = C
        self.p = p
        self.s = s
        self.kernels = kernels
        self.task_column = task_column
        self.normalize_y = normalize_y
        self.task_weight = task_weight
        self.solver = solver
        self.tol = tol
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.task_scale = task_scale
        self.share = share
        self.scalarization = scalarization
        self.weight_set = weight_set

    @property
    def machine_kind(self) -> MachineKind:
        """The kind of machine of the loss."""
        return find_kind(MACHINES, self.loss, "loss", reads="numbers")


class ParetoMKLOutlierDetector(ParetoLearner, KernelFit, OutlierKind, MultiTaskEstimator):
    """Find samples unlike the rest of their task, with kernels that all tasks share.

        one-class:    J_t(θ) = min over f of  ½ ‖f‖² + C_t Σ_i max(0, 1 − f(x_i))
        svdd:         J_t(θ) = min over a, R of  R² + C_t Σ_i max(0, ‖φ(x_i) − a‖² − R²),   Σ_m θ_m = 1

    with C_t = 1 / (ν n_t). A sample is an outlier if f_t(x) − 1, or R² − ‖φ(x) − a‖², is below the threshold of its
    task. The threshold puts the fraction ``contamination`` of the training samples outside.

    Parameters
    ----------
    method : {"one-class", "svdd"}, default="one-class"
        "one-class" separates the samples from the origin with a hyperplane, "svdd" encloses them in the smallest ball.
    contamination : float, default=0.1
        Fraction of outliers among the training samples, in (0, 0.5].
    nu : float, default=0.5
        ν, in (0, 1]: a larger ν lets more samples fall outside while the function is learned.
    p : float, default=1.0
        Exponent of the mean of the tasks.
    s : float, default=2.0
        Norm of the kernel weights for "one-class"; SVDD uses Σθ = 1.
    kernels : "default", "precomputed", sequence or KernelBank, default="default"
        "default" is one Gaussian whose width is the typical distance, or one per source if you pass several
        :func:`~paretomkl.kernels.sources`. Widths cannot be learned without labels: the widest Gaussian of a source
        always wins, whatever the data. A bank with several kernels on the same columns triggers a warning.
    task_column, task_weight, solver, tol, n_jobs, verbose, random_state, max_iter, task_scale
        As in :class:`ParetoMKLRegressor`.
    scalarization : Scalarization, default=None
        A scalarization of your own in place of the power mean; then ``p`` does not apply.
    weight_set : WeightSet, default=None
        Allowed kernel weights of your own in place of the ball ‖θ‖_s ≤ 1; then ``s`` does not apply.

    Attributes
    ----------
    offset_ : array of shape (n_tasks,)
        The threshold of each task: ``decision_function`` is ``score_samples`` minus the task's threshold.
    theta_, kernel_shares_, source_shares_, objectives_, task_weights_, objective_, gap_, n_sweeps_, task_names_, …
        As in :class:`ParetoMKLRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from paretomkl import ParetoMKLOutlierDetector
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> X[0] = 8.0
    >>> detector = ParetoMKLOutlierDetector(contamination=0.05).fit(X)
    >>> int(detector.predict(X)[0]), int((detector.predict(X) < 0).sum())
    (-1, 5)
    """

    __metadata_request__decision_function: ClassVar = {"tasks": True}
    __metadata_request__score_samples: ClassVar = {"tasks": True}

    _internal = ("share",)
    model_: Any
    offset_: Array
    share = "kernel"

    def __init__(
        self,
        method: str | MachineKind = "one-class",
        contamination: float = 0.1,
        nu: float = 0.5,
        p: float = 1.0,
        s: float = 2.0,
        kernels: KernelLike = "default",
        task_column: int | str | None = None,
        task_weight: Mapping[Any, float] | Sequence[float] | Array | None = None,
        solver: SolverLike = "auto",
        tol: float = 1e-3,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
        max_iter: int | None = None,
        task_scale: TaskScale = "none",
        scalarization: Scalarization | None = None,
        weight_set: WeightSet | None = None,
    ):
        self.method = method
        self.contamination = contamination
        self.nu = nu
        self.p = p
        self.s = s
        self.kernels = kernels
        self.task_column = task_column
        self.task_weight = task_weight
        self.solver = solver
        self.tol = tol
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.task_scale = task_scale
        self.scalarization = scalarization
        self.weight_set = weight_set

    @property
    def machine_kind(self) -> MachineKind:
        """The kind of machine of the method."""
        return find_kind(MACHINES, self.method, "method", reads="nothing")

    def fit(self, X: Any, y: Any = None, *, tasks: Any = None, sample_weight: Any = None) -> Self:
        """Learn the shared kernel and the region of each task.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            With ``task_column``, one of the columns names the task of each row. With ``kernels="precomputed"``, a stack
            of shape (n_samples, n_samples, n_kernels).
        y : ignored
            Present for API consistency.
        tasks : array-like of shape (n_samples,), default=None
            The task of each row, if no column of X names it.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies C for each sample.

        Returns
        -------
        self : object
        """
        self._forget()
        if is_remote(X):
            raise ValueError("Outlier detection needs all samples in one place; on a cluster, use X.compute().")
        check_number("contamination", self.contamination, lambda v: 0 < v <= 0.5, "in (0, 0.5]")
        check_number("nu", self.nu, lambda v: 0 < v <= 1, "in (0, 1]")
        exponents = self.exponents()
        parts = self.parts(exponents, self.n_jobs)
        training = self.read_data(X, None, tasks=tasks, sample_weight=sample_weight)
        kernels = as_bank(self.kernels).with_one_width()
        if not parts.machine.diagonal and kernels.made_from_data and kernels.normalize == "auto":
            # ν has its documented meaning only if k(x, x) is about one; dividing by the variance would shrink it
            kernels = replace(kernels, normalize="trace")
        if parts.machine.diagonal and is_precomputed(kernels):
            raise ValueError(
                f"method={parts.machine.name!r} needs k(x, x) of new samples, which a precomputed stack does not "
                "contain; use method='one-class'."
            )
        bounds = [weight / (self.nu * weight.sum()) for weight in training.weights]
        omega = check_task_weight(self.task_weight, training.tasks)
        posed = fit_and_pose(training, bounds, kernels, parts, omega)
        _warn_of_widths(posed.bank)
        run, (point,), (model,), _ = solve(training, posed, exponents, parts, self.verbose)
        keep_solution(self, point, run.n_sweeps)
        values = model.decided(training.samples).values[:, 0]  # each sample has a single task
        own = [(values[task.rows], weight) for task, weight in zip(training.tasks, training.weights, strict=True)]
        threshold = np.array([_threshold(values, weight, self.contamination) for values, weight in own])
        self.model_ = replace(model, tasks=replace(model.tasks, threshold=threshold))
        self.offset_ = threshold
        return self

    def score_samples(self, X: Any, *, tasks: Any = None) -> Array:
        """How typical samples are for their task, (n_samples,): f_t(x) − 1, or R² − ‖φ(x) − a‖²."""
        samples = self._samples(X, tasks)
        return np.nansum(self.model_.decided(samples).values, axis=1)

    def decision_function(self, X: Any, *, tasks: Any = None) -> Array:
        """``score_samples`` minus the threshold of the task, (n_samples,); negative for outliers."""
        samples = self._samples(X, tasks)
        return self.model_.tasks.scores(self.model_.decided(samples))

    @property
    def score(self) -> Any:
        """Not available: without y there is nothing to score against."""
        raise AttributeError("Outlier detection learns without y, so there is nothing to score against.")

    def predict(self, X: Any, *, tasks: Any = None) -> AnyArray:
        """1 for samples like the rest of their task, −1 for outliers, (n_samples,)."""
        samples = self._samples(X, tasks)
        return self.model_.predict(samples)

    def fit_predict(self, X: Any, y: Any = None, *, tasks: Any = None, sample_weight: Any = None) -> AnyArray:
        """``fit`` and then ``predict`` on the same samples."""
        return self.fit(X, tasks=tasks, sample_weight=sample_weight).predict(X, tasks=tasks)


def check_same_kernels(estimator: Any, earlier: Any) -> None:
    """Raise if an estimator is to continue a model whose kernels it was not asked for."""
    if repr(as_bank(estimator.kernels).kernels) != repr(as_bank(earlier.kernels).kernels):
        raise ValueError(
            "warm_from keeps the kernels of the earlier model, but kernels= is different here; pass the same, or fit "
            "without warm_from."
        )


def _model_of(estimator: Any) -> Any:
    """The model of a fitted estimator to continue from."""
    if not isinstance(estimator, KernelFit):
        raise ValueError(f"warm_from must be a fitted model of this library, got {shown(estimator)}.")
    check_is_fitted(estimator)
    return estimator.model_


def _threshold(values: Array, weight: Array, share: float) -> float:
    """The smallest value with more than ``share`` of the weight at or below it.

    A small margin is subtracted so that this sample stays inside if rounding changes its value next time.
    """
    order = np.argsort(values, kind="stable")
    order = order[weight[order] > 0]
    k = int((np.cumsum(weight[order]) <= share * weight.sum() * (1 + 1e-12)).sum())
    return float(values[order[k]] - 1e-13 * np.abs(values[order]).max())


def _warn_of_widths(bank: FittedBank) -> None:
    """Warn that the choice among kernels of the same columns cannot be learned without labels."""
    seen = (
        [tuple(bank.evaluator.bases.columns[b]) for b in bank.evaluator.bases.of_kernel] if not bank.precomputed else []
    )
    if len(set(seen)) < len(seen):
        warnings.warn(
            "Several kernels use the same columns, and the choice among them cannot be learned without labels: the "
            "widest Gaussian gets the weight, whatever the data. Pass one kernel per source.",
            UserWarning,
            stacklevel=3,
        )
