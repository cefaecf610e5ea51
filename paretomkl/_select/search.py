"""Choose p, C, s and the kernel capacity by cross-validation, for little more than one path per fold and C."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils import indexable
from sklearn.utils.validation import check_is_fitted

from .._data.labels import Samples, as_blocks
from .._data.reading import Examples, Reading, Training, is_remote, read_samples, take_rows
from .._data.tasks import as_labels, is_matrix, rows_by_label, unique_labels
from .._data.together import sharing_in_words
from .._fitting.tracing import Grid, pose_and_trace
from .._learn.base import ClassifierKind, KernelFit, MultiTaskEstimator, RegressorKind, fitted_at, what_continued
from .._learn.calibration import Calibration
from .._learn.estimators import ParetoMKLClassifier, ParetoMKLRegressor, check_same_kernels
from .._learn.path import PAPER_PS, ParetoPath, parameters_of
from .._learn.probabilities import predict_log_proba, predict_proba
from .._tools.checks import check_count, check_exponents, check_grid, check_task_scale, check_task_weight, shown
from .._tools.running import Progress, effective_jobs
from .._tools.shares import SHARES, TOGETHER, Share
from .._tools.typing import Array, ClassWeight, IntArray, MultiClass, SolverLike, TaskScale
from .._tools.wording import check_score_fits
from ..exceptions import GridEdgeWarning, TaskDataError
from ..kernels._kernels import KernelLike, as_bank
from ..machines import MACHINES, MachineKind
from ..machines._base import find_kind
from ..protocols import Scalarization, WeightSet
from ..solution import Solution
from ..solvers._base import Run
from .choice import Choice, ScoreTable, edge_of
from .conformal import predict_interval, predict_set
from .folds import Fold, FoldScores, PlainEstimator, noted, one_number, own_score, routed, run_folds, shares_by_fold
from .honest import honest_estimate, honest_scores, honest_words
from .permutation import permutation_test
from .probabilities import score_probabilities
from .refolds import SearchFolds, calibration_at
from .results import CrossValidation
from .scorers import check_scorer, wants_probabilities
from .splits import TrainTest, group_codes, make_splits, rows_to_search
from .ways import (
    MOST_TASKS,
    MOST_THOROUGH,
    AutoShare,
    is_auto,
    that_predict_new_tasks,
    ways_asked,
    ways_possible,
    without,
    without_failures,
)

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["ParetoMKLClassifierCV", "ParetoMKLRegressorCV"]

Grids = dict[Share, Grid]  # of each way to share
NORMS = (1.1, 2.0)
USUAL_CAPACITIES = 2  # capacities of a machine that "auto" tries with more than MOST_THOROUGH rows
SMALL_TASK = 100  # mean samples per task below which the search prefers to share more, if the folds allow
_MOST_SQUARED = 3000  # samples of a task up to which "auto" takes least squares, which factorise its whole matrix


class PathSearch(KernelFit, MultiTaskEstimator):
    """A search for the best point of a path; once fitted, it behaves like the best estimator.

    A subclass has the parameters of its plain estimator, with ``ps``, ``Cs``, ``s`` and ``capacity`` instead of p, C
    and s, plus ``cv``, ``scoring`` and ``error_score``.
    """

    _internal = (
        "by_loss",
        "choose",
        "estimator_at",
        "loss_name",
        "plain_estimator",
        "plain_type",
        "stratify",
        "n_samples_",
    )

    plain_type: ClassVar[type[PlainEstimator]]

    model_: Any
    best_share_: Share
    sharing_: dict[Share, tuple[float, float]]
    best_params_: dict[str, float]
    best_score_: float
    best_index_: int
    best_indices_: dict[Share, int]
    best_estimator_: Any
    cv_results_: dict[str, Any]
    scorer_: Callable[..., Any]
    n_splits_: int
    n_search_rows_: int
    search_rows_: IntArray | None
    folds_: SearchFolds
    small_tasks_: bool
    continued_: str
    kernel_shares_by_fold_: Array | None
    splits_: list[TrainTest]
    groups_: IntArray | None
    n_samples_: int
    p_value_: float
    p_values_by_task_: dict[str, float]
    permutation_scores_: Array
    refit_time_: float
    _path: ParetoPath | None = None
    _along_p: tuple[PlainEstimator, list[float]] | None = None  # what to trace the path with

    ps: float | Sequence[float]
    Cs: float | Sequence[float]
    s: float | Sequence[float]
    capacity: float | Sequence[float] | Literal["auto"]
    epsilon: float | Sequence[float]
    cv: Any
    scoring: str | Callable[..., Any] | None
    solver: SolverLike
    tol: float
    n_jobs: int | None
    error_score: float | Literal["raise"]
    task_scale: TaskScale
    share: AutoShare | Share | Sequence[Share]
    task_weight: Any
    max_search_rows: int | None
    scalarization: Scalarization | None
    weight_set: WeightSet | None
    n_permutations: int

    def fit(
        self,
        X: object,
        y: object = None,
        *,
        tasks: object = None,
        sample_weight: object = None,
        groups: object = None,
        warm_from: Any = None,
    ) -> Self:
        """Choose the parameters, then learn the path on all samples with the chosen C, s and capacity.

        Parameters
        ----------
        X, y, tasks
            As in the ``fit`` of the plain estimator.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies C for each sample, and weights the held-out samples if the scorer takes ``sample_weight``.
        groups : array-like of shape (n_samples,), default=None
            The group of each row, such as the patient it is from. Folds keep the rows of a group together; a ``cv``
            that does not is refused.
        warm_from : fitted search, default=None
            A search on the first rows of X, from which to continue now that there are more rows. What it chose stays,
            with its scores and folds; the model of the chosen point learns from all rows, as with ``warm_from`` of
            the plain estimator.
        """
        given = {"X": X, "y": y, "tasks": tasks, "sample_weight": sample_weight}
        if warm_from is not None:
            return self._continue(warm_from, given)
        if self.n_permutations != 0:
            check_count("n_permutations", self.n_permutations)
        self.choose(given, groups)
        if self.n_permutations:
            test = permutation_test(self, given, groups, self.n_permutations)
            self.p_value_, self.p_values_by_task_, self.permutation_scores_ = test.p_value, test.by_task, test.scores
        return self

    def _continue(self, earlier: Self, given: dict[str, Any]) -> Self:
        """Keep what an earlier search chose, and learn from all rows."""
        if type(earlier) is not type(self):
            raise ValueError(f"warm_from must be a fitted {type(self).__name__}, got {shown(earlier)}.")
        check_is_fitted(earlier)
        check_same_kernels(self, earlier)
        kept = {name: value for name, value in vars(earlier).items() if name.endswith("_")}
        self._forget()
        X = as_blocks(given["X"])
        reader = self._checked(X)
        examples = Examples(
            read_samples(reader, X, tasks=given["tasks"], reset=True, codings=kept.get("codings_")),
            given["y"],
            given["sample_weight"],
        )
        vars(self).update(kept | {"n_samples_": len(examples.samples)})
        with Progress(len(self._exponents()), self.tol, self.verbose) as progress:
            self._refit(examples, reader, progress, earlier.model_)
        return self

    def choose(self, given: dict[str, Any], groups: object = None, refit: Sequence[Share] = SHARES) -> Self:
        """Choose the parameters by folds; fit a model to all samples only if ``refit`` has the chosen way to share."""
        self._forget()
        X, y, tasks, weight = (given.get(name) for name in ("X", "y", "tasks", "sample_weight"))
        X = as_blocks(X)
        reader = self._checked(X)
        samples = read_samples(reader, X, tasks=tasks, reset=True)
        ways, task_size, n_problems = ways_possible(self, ways_asked(self), Examples(samples, y, weight))
        self._settle(samples, y)
        X, y, weight, groups = indexable(X, y, weight, groups)
        self.scorer_ = self._scorer(samples, y)
        self.n_samples_, self.groups_ = len(samples), None if groups is None else group_codes(groups, len(samples))
        examples = some = Examples(samples, y, weight)
        again = {"cv": self.cv, "groups": groups, "random_state": self.random_state, "stratify": self.stratify}
        pooled = not TOGETHER.isdisjoint(ways)
        rows = rows_to_search(samples, y, self.cv, self.max_search_rows, pooled, self.stratify)
        if rows is not None:
            some, X, groups = examples.take(rows), take_rows(X, rows), take_rows(groups, rows)
        ways, splits = self._splits(ways, some, groups)
        grids = self._grids(ways, len(some.samples), n_problems)  # what "auto" stands for is known now
        n_points = sum(grid.size for grid in grids.values())
        with Progress(len(splits) * n_points + len(self._exponents()), self.tol, self.verbose) as progress:
            folds = partial(self._folds, some, X, tasks is not None, splits, grids, reader)
            found = list(run_folds(folds(), len(splits) * len(grids), self.n_jobs, self.error_score, progress))
            scored, ways = without_failures(found, ways, self.error_score)
            grids = {way: grids[way] for way in ways}
            if self.scorer_ is not own_score and wants_probabilities(self.scorer_):
                scored = score_probabilities(scored, [fold for fold in folds() if fold.way in ways], self.error_score)
            table = ScoreTable.of(scored, grids, self.error_score)
            self.small_tasks_ = task_size < SMALL_TASK
            self._keep_choice(table, Choice.of(table, self.by_loss, self.small_tasks_))
            if self.best_share_ in refit:
                self._refit(examples, reader, progress)
                first = table.points["share"].tolist().index(self.best_share_)  # of the points of this way to share
                self._calibrate(scored, some, splits, self.best_index_ - first)
                names = self.best_estimator_.kernel_names_
                self.kernel_shares_by_fold_ = shares_by_fold(scored, self.best_share_, self.best_index_ - first, names)
        self.n_splits_, self.n_search_rows_, self.search_rows_ = len(splits), len(some.samples), rows
        again["together"] = TOGETHER.issuperset(ways)
        self.folds_ = SearchFolds.of(splits, rows, examples, **again)
        self.splits_ = self.folds_.searched
        return self

    def _calibrate(self, scored: list[FoldScores], searched: Examples, splits: list[TrainTest], point: int) -> None:
        """Calibrate probabilities, if there are any, on the held-out decisions of the chosen point."""

    # -------------------------------------------------------------------------------------------- parameters
    def _checked(self, X: object) -> PlainEstimator:
        """A plain estimator to read X with, after checking what can be checked before."""
        if is_remote(X):
            raise ValueError("A search splits the samples into folds and needs them in one place; use X.compute().")
        ways = ways_asked(self)
        first, *_ = [self._grid(way) for way in ways]
        if self.scalarization is not None and ways != ["kernel"]:
            raise ValueError("A scalarization combines objectives of tasks that share a kernel; use share='kernel'.")
        effective_jobs(self.n_jobs)
        check_task_scale(self.task_scale)
        as_bank(self.kernels).check()
        if self.max_search_rows is not None:
            check_count("max_search_rows", self.max_search_rows)
        plain = self.plain_estimator()
        plain.parts(first.ps)
        return plain

    def _settle(self, samples: Samples, y: object) -> None:
        """Resolve "auto" parameters from the data."""

    def _settled(self) -> dict[str, Any]:
        """The parameters of the plain estimator that :meth:`_settle` has resolved."""
        return {}

    @property
    def machine_kind(self) -> MachineKind:
        """The kind of machine of the loss, as far as it is known."""
        raise NotImplementedError

    @property
    def reading(self) -> Reading:
        """How to read X and y."""
        return Reading.of(self, machine=self.machine_kind)

    @property
    def stratify(self) -> bool:
        """Whether folds are stratified by label."""
        return self.machine_kind.reads == "labels"

    @property
    def by_loss(self) -> bool:
        """Whether the smallest loss decides among the points within one standard error of the best score."""
        return self.machine_kind.estimates

    @property
    def loss_name(self) -> str:
        """Name of the loss of the held-out decisions in ``cv_results_``."""
        return "squared_error" if self.machine_kind.decisions in ("estimates", "numbers") else "log_loss"

    def _grids(self, ways: Sequence[Share], n_rows: int, n_problems: int) -> Grids:
        """The grid of each way; with many rows or tasks, defaults leave out what brings little there."""
        grids, many = {way: self._grid(way) for way in ways}, n_problems > MOST_TASKS
        if n_rows <= MOST_THOROUGH and not many:
            return grids
        if is_auto(self.capacity):
            grids = {
                way: replace(grid, capacities=grid.capacities and grid.capacities[:USUAL_CAPACITIES])
                for way, grid in grids.items()
            }
        if (is_auto(self.share) or many) and self.s == NORMS:
            thorough = set() if many else {"kernel"}
            grids = {way: grid if way in thorough else replace(grid, norms=NORMS[:1]) for way, grid in grids.items()}
        if many and grids.get("kernel") and grids["kernel"].ps == list(PAPER_PS):
            grids["kernel"] = replace(grids["kernel"], ps=list(PAPER_PS[3:-1:3]))  # 0.1, 1, 10
        return grids

    def _grid(self, way: Share = "kernel") -> Grid:
        """The checked grid to choose from; p is searched only for tasks that share just their kernel."""
        for name in ("ps", "Cs", "s", "capacity", "epsilon"):
            if isinstance(getattr(self, name, None), Iterator):
                raise ValueError(f"{name} is an iterator, which can be read only once; pass a list.")
        bank = as_bank(self.kernels)
        capacity: Any = self.capacity
        if isinstance(capacity, str):
            if capacity != "auto":
                raise ValueError(f"capacity must be 'auto', a number or a sequence of numbers, got {shown(capacity)}.")
            capacity = self.machine_kind.capacities if bank.normalization == "capacity" else None
        elif bank.normalize not in ("auto", "capacity"):
            raise ValueError(f"capacity needs normalize='capacity', but the bank has normalize={bank.normalize!r}.")
        exponents, own = self._exponents(), self.machine_kind.parameters
        norms = check_grid("s", self.s, "of at least 1", lambda v: 1 <= v <= np.inf)
        at_least_0: Any = "of at least 0", lambda v: 0 <= v < np.inf
        return Grid(
            exponents if way == "kernel" else [1.0],
            check_grid("Cs", self.Cs),
            norms if self.weight_set is None else norms[:1],
            None if capacity is None else check_grid("capacity", capacity, *at_least_0),
            check_grid("epsilon", self.epsilon, *at_least_0) if "epsilon" in own else None,
        )

    def _exponents(self) -> list[float]:
        """The exponents to choose from; NaN if a scalarization of the user takes their place."""
        exponents = check_exponents(self.ps)
        return exponents if self.scalarization is None else [np.nan]

    def plain_estimator(self, share: Share = "kernel") -> PlainEstimator:
        """The unfitted estimator whose parameters are chosen; folds run in parallel, each on one thread."""
        own = self.get_params(deep=False) | self._settled()
        chosen = {"n_jobs", "verbose", "s", "epsilon", "share"}
        common = own.keys() & self.plain_type().get_params(deep=False).keys() - chosen
        plain = self.plain_type(**{name: own[name] for name in common}, share=share)
        if not isinstance(self.capacity, str):  # explicit capacities switch the penalty on
            plain.kernels = replace(as_bank(self.kernels), normalize="capacity")
        return plain

    def _fixed(self) -> dict[str, float]:
        """Parameters that are given as one number, and are not searched."""
        single = ["s", "capacity"] + ["epsilon"] * ("epsilon" in self.machine_kind.parameters)
        return {name: float(v) for name in single if isinstance(v := getattr(self, name), numbers.Real)}

    def estimator_at(self, row: int) -> PlainEstimator:
        """The unfitted estimator for a row of ``cv_results_``."""
        point: dict[str, Any] = self._fixed() | {"share": self.best_share_} | self.cv_results_["params"][row]
        plain = self.plain_estimator()
        capacity = point.pop("capacity", None)
        if capacity is not None:
            plain.kernels = replace(as_bank(plain.kernels), normalize="capacity", capacity=capacity)
        return plain.set_params(**point)

    def _scorer(self, samples: Samples, y: object) -> Callable[..., Any]:
        """The scorer of the held-out samples."""
        if self.scoring is None:
            return own_score
        scorer = check_scorer(self.scoring, self)
        if isinstance(self.scoring, str):
            one_problem = self.stratify and samples.sources is None and not is_matrix(y)
            n_classes = len(unique_labels(as_labels(y, "y").ravel())) if one_problem else None
            check_score_fits(self.scoring, not self.stratify, n_classes)
        return scorer

    # -------------------------------------------------------------------------------------- folds and choice
    def _splits(self, ways: list[Share], examples: Examples, groups: object) -> tuple[list[Share], list[TrainTest]]:
        """The folds, and the ways to share that can be judged on them."""
        samples, together = examples.samples, TOGETHER.issuperset(ways)
        given: Any = self.cv, samples.data, examples.y, samples.sources, groups, self.random_state
        try:
            splits = make_splits(*given, stratify=self.stratify, together=together)
        except TaskDataError as error:  # a label of a task, or a whole task, is too small to be divided
            ways = without(ways, {way: error for way in ways if together or way not in TOGETHER}, stacklevel=6)
            splits = make_splits(*given, stratify=self.stratify, together=True)
        return that_predict_new_tasks(ways, splits, samples.sources), splits

    def _folds(
        self,
        examples: Examples,
        X: object,
        by_argument: bool,
        splits: list[TrainTest],
        grids: Grids,
        reader: PlainEstimator,
    ) -> Iterator[Fold]:
        """One fold for each split and way to share; ``by_argument`` tells whether the tasks are not in X."""
        for k, (train, test) in enumerate(splits):
            learned, held_out = examples.take(train, train), examples.take(test, train)
            own = self.scorer_ is own_score  # which needs no X
            asked = {
                "X": None if own else take_rows(X, test, train, self.kernels),
                "tasks": held_out.samples.sources if by_argument else None,
            }
            for way, grid in grids.items():
                estimator = noted(self.plain_estimator(way), reader)
                if learned.samples.data.ndim == 3:  # the features of a stack of kernels are its training samples
                    estimator.n_features_in_ = len(train)
                yield Fold(k, way, grid, estimator, learned, held_out, self.scorer_, asked, keeps=self.stratify)

    def _keep_choice(self, table: ScoreTable, choice: Choice) -> None:
        """Set the fitted attributes of the search, and warn of a grid that ends too early."""
        one_way = isinstance(self.share, str) and not (is_auto(self.share) and len(choice.sharing) > 1)
        fixed = {*self._fixed(), *["share"] * one_way, *["s"] * (self.weight_set is not None)}
        searched = sorted(table.points.keys() - fixed)
        self.cv_results_ = table.cv_results(searched, self.loss_name)
        self.best_share_, self.best_indices_, self.sharing_ = choice.share, choice.rows, choice.sharing
        self.best_index_ = choice.row
        self.best_params_ = self.cv_results_["params"][choice.row]
        self.best_score_ = float(table.mean[choice.row])
        own, C = table.points["share"] == choice.share, self.best_params_["C"]
        edge = edge_of(C, table.mean[own], table.points["C"][own])
        if edge is not None:
            beyond = C * 10 if edge == "largest" else C / 10
            message = f"The chosen C={C:g} is the {edge} of Cs and scores better than all others; add {beyond:g} to Cs."
            warnings.warn(GridEdgeWarning(message, "C", C, beyond, edge), stacklevel=4)

    # ------------------------------------------------------------------------------------------- final model
    def _refit(self, examples: Examples, reader: PlainEstimator, progress: Progress, earlier: Any = None) -> None:
        """Learn from all samples at the chosen point, and take over the fitted attributes."""
        began = perf_counter()
        plain = noted(self.estimator_at(self.best_index_), reader)
        training = replace(examples.training(plain.reading), earlier=earlier)
        ps = self._exponents()
        if self.best_share_ == "kernel":
            points, self._path = self._traced(plain, training, ps, progress)
            k = ps.index(plain.p) if self.scalarization is None else 0
            fitted = fitted_at(plain, points[k], self._path.models[k].trimmed(), plain.C, self._path.n_sweeps)
            self.best_estimator_ = fitted.set_params(p=plain.p)
        else:
            self.best_estimator_ = plain.set_params(n_jobs=self.n_jobs).learned(training)
            at = self.estimator_at(self.best_indices_.get("kernel", self.best_index_)).set_params(share="kernel")
            self._along_p = noted(at, reader), ps
        self.refit_time_ = perf_counter() - began
        best = self.best_estimator_
        for name in vars(best).keys() - best.get_params(deep=False).keys():
            setattr(self, name, getattr(best, name))

    def _traced(
        self, plain: PlainEstimator, training: Training, ps: list[float], progress: Progress
    ) -> tuple[list[Solution], ParetoPath]:
        """The whole path on all samples at the C, s and capacity of an estimator."""
        began = perf_counter()
        run, omega = Run(progress.report), check_task_weight(plain.task_weight, training.tasks)
        given = training, plain.C, plain.kernels, plain.parts(ps), omega
        points, models, n_kept = pose_and_trace(*given, ps, progress, run)
        if training.earlier is not None:
            self.continued_ = what_continued(training, n_kept)
        by_argument = self.task_column is None and training.samples.sources is not None
        code = parameters_of(plain, self.tol, by_argument)
        spent = perf_counter() - began
        about = training, plain, run, self.tol, spent, code, self.task_scale
        return points, ParetoPath.from_solutions(points, models, *about)

    @property
    def path_(self) -> ParetoPath:
        """The path over p on all samples, for tasks that share their kernel; traced on first use if they share more."""
        check_is_fitted(self)
        if self._path is None:
            if self._along_p is None or self.folds_.examples is None:
                raise AttributeError(
                    "The path_ of this search was not traced before it was pickled or saved, which leaves its training "
                    "data out; use paretomkl.pareto_path(X, y, …), or fit it again."
                )
            plain, ps = self._along_p
            try:
                training = self.folds_.given.training(plain.reading)
            except ValueError as error:
                raise AttributeError(f"There is no path_ of a shared kernel: {error}") from error
            with Progress(len(ps), self.tol, self.verbose) as progress:
                _, self._path = self._traced(plain, training, ps, progress)
        return self._path

    def _forget(self) -> None:
        super()._forget()
        self._path, self._along_p = None, None

    def score(self, X: object, y: object, *, tasks: object = None, sample_weight: object = None) -> float:
        """Score these samples with ``scoring``, or like the plain estimator if ``scoring`` is None."""
        check_is_fitted(self)
        given = routed(self.scorer_, {"tasks": tasks, "sample_weight": sample_weight})
        return one_number(self.scorer_(self.best_estimator_, X, y, **given))

    @property
    def honest_scores_(self) -> Array:
        """The score of each fold with the parameters that the other folds choose, (n_folds,)."""
        return honest_scores(self)

    @property
    def honest_score_(self) -> float:
        """The mean of ``honest_scores_``: what the search reaches, and not the best of all that it tried."""
        return honest_estimate(self).score

    @property
    def honest_interval_(self) -> tuple[float, float]:
        """The 95 % interval of ``honest_score_`` over the folds; NaN for a single fold."""
        found = honest_estimate(self)
        return found.low, found.high

    def _tables(self) -> str:
        from .._show.notebook import score_name, search_html

        if not hasattr(self, "splits_"):  # before fit
            return ""
        cv = CrossValidation.from_search(self) if "kernel" in self.best_indices_ else None
        return search_html(self, honest_words(self, score_name(self)), cv) + super()._tables()

    def to_frame(self) -> DataFrame:
        """``cv_results_`` without the scores of single folds: one row per point of the grid, for pandas and LaTeX.

        Returns
        -------
        frame : pandas.DataFrame
            With a column for each parameter that was searched, such as ``C``; then ``score`` and ``score_std`` over the
            folds, ``rank``, ``log_loss`` (or ``squared_error``), ``max_gap`` and ``seconds`` (mean time of a fit).
        """
        import pandas as pd

        check_is_fitted(self)
        found = self.cv_results_
        names = [name for name in found if name.startswith("param_")]
        columns = {name.removeprefix("param_"): np.array(found[name].tolist()) for name in names}
        columns |= {"score": found["mean_test_score"], "score_std": found["std_test_score"]}
        columns |= {"rank": found["rank_test_score"], self.loss_name: found[f"mean_test_{self.loss_name}"]}
        return pd.DataFrame(columns | {"max_gap": found["max_gap"], "seconds": found["mean_fit_time"]})

    @property
    def kernel_shares_std_(self) -> Array:
        """The standard deviation of ``kernel_shares_`` over the folds, (n_kernels,): how steady they are."""
        check_is_fitted(self)
        if self.kernel_shares_by_fold_ is None:
            raise AttributeError("Folds keep no shares if each task has its own kernels, or with very many kernels.")
        return self.kernel_shares_by_fold_.std(axis=0)

    @property
    def source_shares_std_(self) -> dict[str, float]:
        """The standard deviation of ``source_shares_`` over the folds."""
        _ = self.source_shares_, self.kernel_shares_std_  # raise if there are none
        by_fold = self.model_.bank.by_source(self.kernel_shares_by_fold_)
        return {name: float(shares.std()) for name, shares in by_fold.items()}

    @property
    def sharing_in_words_(self) -> str:
        """What the search found about the ways to share, in a sentence or two."""
        check_is_fitted(self)
        if len(self.model_.tasks.distinct_sources) == 1:
            return "There is only one task, so all ways to share are the same."
        in_points = self.stratify and (self.scoring is None or "accuracy" in str(self.scoring))

        def size(lost: float) -> str:
            return f"{abs(100 * lost):.1f} points" if in_points else f"{abs(lost):.3g}"

        return sharing_in_words(self.sharing_, self.best_share_, getattr(self, "common_share_", None), size)


class ParetoMKLClassifierCV(ClassifierKind, PathSearch):
    """:class:`ParetoMKLClassifier` with p, C, s and the capacity κ of its kernels chosen by cross-validation.

    Each fold traces the path over all p for each C, κ and s, and computes its kernels once. A cut is valid for every p,
    s and kernel scale, so the search reuses cuts and dual variables across all of these and across C, and scores all
    models in one pass over the held-out samples. It costs little more than one path per fold and C. Folds share
    nothing: what a fold learns never depends on the samples it holds out.

    The highest mean score wins; scores that differ only by rounding are ties, which the smallest log-loss of the
    held-out decisions breaks. The folds cannot tell points within one standard error of that score apart, so the search
    keeps those with p nearest to 1. From these it drops the points that fall behind the best by more than one standard
    error of the difference, and takes the one with the best score averaged with the next smaller and larger C. The
    decisions of least squares (``loss="squared"``) estimate ±1: with it, the smallest squared error of the held-out
    decisions decides among the points with p nearest to 1.

    Parameters
    ----------
    ps : sequence of float, or float, default=PAPER_PS
        Exponents to choose from.
    Cs : sequence of float, or float, default=(0.1, 1.0, 10.0, 100.0)
        Costs of a margin violation to choose from. You get a warning if the smallest or the largest of them scores
        best.
    s : sequence of float, or float, default=(1.1, 2.0)
        Norms of the kernel weights to choose from, at least 1: 1 gives sparse weights, infinity equal weights. A single
        number is fixed and does not appear in ``best_params_``. With more than 1000 tasks or pairs of classes, the
        default is 1.1 alone, and only the exponents 0.1, 1 and 10 are tried.
    capacity : "auto", sequence of float, or float, default="auto"
        Exponents κ of the effective rank to choose from, see :class:`KernelBank`. "auto" is (0.5, 1.0, 1.5) for kernels
        with a capacity penalty, such as the default bank (without 1.5 for more than 400 rows, or 1000 tasks or pairs of
        classes), and no search for others. With the squared loss it is (0.5,), since that already penalises fitting
        noise, and with the logistic loss (0.5, 1.0). If you pass numbers, the penalty applies to kernels of any kind.
    cv : int, splitter, iterable, "new tasks" or "time", default=None
        Number of folds (None: 5), shuffled and stratified by task and label, which keep ``groups`` together if you pass
        them to ``fit``; or any scikit-learn splitter, or an iterable of (train, test) indices. "new tasks" leaves whole
        tasks out: the score is for unseen tasks. "time" holds out later rows of each task, whose rows must be in the
        order of time.
    scoring : str, callable or None, default=None
        A scikit-learn scorer, or one from :func:`~paretomkl.model_selection.make_multitask_scorer`. It must return one
        number. None is the mean accuracy over tasks (plain accuracy for multi-class).
    kernels, task_column, task_weight, solver, tol, class_weight, verbose, max_iter, task_scale
        As in :class:`ParetoMKLClassifier`.
    loss : {"auto", "hinge", "squared", "logistic"} or MachineKind, default="auto"
        As in :class:`ParetoMKLClassifier`. "auto" is "squared" if the kernels have several
        :func:`~paretomkl.kernels.sources` and no task has more than 3000 samples, else "hinge".
    share : "auto", str or sequence of str, default="auto"
        What tasks have in common: "nothing", "kernel", "function" or "everything", see :class:`ParetoMKLClassifier`.
        From a sequence, the search takes the way to share with the highest score on the same folds; if tasks have fewer
        than 100 samples on average, the way that shares most among those within half a standard error. "auto" tries
        all four if there are tasks, except what takes long and hardly ever wins: "nothing" with more than 20 tasks or
        fewer than 30 samples per task, and "function" and "everything" with more than ``max_search_rows`` rows. With
        more than 400 rows it tries only the first s for ways other than "kernel". With ``task_weight`` or a
        ``scalarization``, it is "kernel"; with a ``weight_set`` or precomputed kernels, "nothing" and "kernel".
    max_search_rows : int or None, default=3000
        With more rows than this, the parameters are chosen on folds of this many rows: the rows of some tasks, or a
        sample from each task and class if fewer than ten tasks would be left. If neither "function" nor "everything",
        which make one problem of all tasks, is among the ways to share, the search uses all rows up to four times this
        limit, or twice the limit for a single task. The final model is fitted on all rows. None always uses all rows.
    multi_class : {"auto", "one-vs-one", "one-vs-rest"}, default="auto"
        As in :class:`ParetoMKLClassifier`. "auto" is "one-vs-rest" where ``loss="auto"`` is "squared", else
        "one-vs-one".
    scalarization : Scalarization, default=None
        A scalarization of your own in place of the power means; then ``ps`` does not apply.
    weight_set : WeightSet, default=None
        Allowed kernel weights of your own in place of the balls ‖θ‖_s ≤ 1; then ``s`` does not apply.
    n_jobs : int, default=None
        Number of folds to run in parallel; -1 uses all cores. ``joblib.parallel_config`` sets the backend, which may be
        a cluster.
    random_state : int, RandomState or None, default=None
        Seed for shuffling the folds if ``cv`` is a number; None is the same as 0.
    error_score : "raise" or float, default=nan
        Score of a fold whose fit fails. With NaN, you get a warning and the other folds decide.
    n_permutations : int, default=0
        Number of permutations of the labels, within tasks (and groups), for a test whether the search is better than
        chance. Each one is a search of its own, without the final model. The smallest p-value possible is
        1 / (1 + n_permutations).

    Attributes
    ----------
    best_params_ : dict
        The chosen ``{"C": …, "capacity": …, "p": …, "s": …}``, without s and capacity if they were not searched.
    best_score_ : float
        Mean score of the chosen point over the folds.
    best_index_ : int
        Its row in ``cv_results_``.
    best_estimator_ : ParetoMKLClassifier
        Fitted with ``best_params_`` on all samples.
    cv_results_ : dict of arrays of shape (n_points,)
        One row per point of the grid, as in GridSearchCV, ready for ``pandas.DataFrame``: ``params``, ``param_C``,
        ``param_p`` …, ``split0_test_score`` …, ``mean_test_score``, ``std_test_score``, ``rank_test_score``, the same
        for ``test_log_loss`` (``test_squared_error`` for least squares), ``max_gap`` (the largest certified gap
        among the folds: at most 0.003, or ``tol`` if you ask for less than 0.001), and ``mean_fit_time`` and
        ``std_fit_time`` (the point's share of the time of its path).
    path_ : ParetoPath
        The whole path over p on all samples, for tasks that share their kernel, at the best C, s and capacity for that.
        If tasks share in another way, it is traced on first use, from the training data that the search keeps; pickles
        and saved models leave these out.
    best_share_ : str
        What the tasks share.
    sharing_ : dict
        For each way to share that was tried, the mean score of its best point and its standard error over the folds.
    sharing_in_words_ : str
        The same as a sentence.
    multi_class_, loss_ : str
        How several classes became tasks, and the model of a task.
    scorer_ : callable
        The scorer of the held-out samples, which ``score`` uses too.
    best_indices_ : dict
        For each way to share, the row of its best point in ``cv_results_``.
    small_tasks_ : bool
        Whether tasks have fewer than 100 samples on average, see ``share``.
    honest_score_, honest_interval_, honest_scores_ : float, pair of float, and array of shape (n_folds,)
        Each fold is scored with the parameters that the *other* folds choose: unlike ``best_score_``, this is not the
        best of many scores on the same rows. The mean, its 95 % interval over the folds, and the scores.
    p_value_, p_values_by_task_ : float, and dict from task name to float
        With ``n_permutations``: the share of ``permutation_scores_`` at least as large as ``honest_score_``, which
        itself counts as one of them; and the same for the held-out score of each task. If labels have nothing to do
        with X, a p-value is at most a with probability at most a.
    permutation_scores_ : array of shape (n_permutations,)
        The honest score with permuted labels.
    splits_ : list of (train, test)
        The rows of each fold.
    groups_ : array of int of shape (n_samples,), or None
        The number of the group of each row, if you passed ``groups``.
    n_splits_, n_search_rows_ : int
        Number of folds, and number of rows in the search.
    search_rows_ : array of int, or None
        The rows used in the search; None if it used all.
    refit_time_ : float
        Time in seconds to fit the final path on all samples.
    folds_ : SearchFolds
        The folds, to be fitted again at the chosen point. It refers to the training data, which pickles leave out.
    calibration_ : Calibration
        How decisions become probabilities: slopes and offsets, fitted to the held-out decisions of the chosen point.
    kernel_shares_by_fold_ : array of shape (n_folds, n_kernels), or None
        ``kernel_shares_`` of the chosen point in each fold; None if each task has its own kernels.
    kernel_shares_std_, source_shares_std_ : array of shape (n_kernels,), dict
        The standard deviation over the folds of ``kernel_shares_`` and ``source_shares_``. Steady shares are not
        important ones, see :func:`paretomkl.inspection.importance`.
    theta_, objectives_, task_weights_, objective_, gap_, n_sweeps_, classes_, …
        As in ``best_estimator_``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl import ParetoMKLClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> search = ParetoMKLClassifierCV(ps=[0.1, 1.0, 10.0], Cs=[1.0, 10.0], s=1.1).fit(X, y)
    >>> sorted(search.best_params_)
    ['C', 'capacity', 'p']
    >>> len(search.path_), len(search.cv_results_["mean_test_score"])
    (3, 18)
    """

    best_estimator_: ParetoMKLClassifier
    multi_class_: MultiClass
    loss_: str | MachineKind

    plain_type = ParetoMKLClassifier
    score = PathSearch.score  # before that of scikit-learn's mixin
    predict_proba, predict_log_proba = predict_proba, predict_log_proba
    predict_set = predict_set
    calibration_: Calibration

    __metadata_request__decision_function: ClassVar = {"tasks": True}
    __metadata_request__predict_proba: ClassVar = {"tasks": True}
    __metadata_request__predict_log_proba: ClassVar = {"tasks": True}
    __metadata_request__predict_set: ClassVar = {"tasks": True}

    def __init__(
        self,
        ps: float | Sequence[float] = PAPER_PS,
        Cs: float | Sequence[float] = (0.1, 1.0, 10.0, 100.0),
        s: float | Sequence[float] = NORMS,
        capacity: float | Sequence[float] | Literal["auto"] = "auto",
        cv: Any = None,
        scoring: str | Callable[..., Any] | None = None,
        kernels: KernelLike = "default",
        task_column: int | str | None = None,
        task_weight: Mapping[Any, float] | Sequence[float] | Array | None = None,
        solver: SolverLike = "auto",
        tol: float = 1e-3,
        class_weight: ClassWeight = None,
        n_jobs: int | None = None,
        verbose: int | None = 0,
        random_state: int | np.random.RandomState | None = None,
        error_score: float | Literal["raise"] = np.nan,
        max_iter: int | None = None,
        task_scale: TaskScale = "none",
        loss: str | MachineKind = "auto",
        share: AutoShare | Share | Sequence[Share] = "auto",
        max_search_rows: int | None = 3000,
        multi_class: MultiClass | Literal["auto"] = "auto",
        scalarization: Scalarization | None = None,
        weight_set: WeightSet | None = None,
        n_permutations: int = 0,
    ):
        self.ps = ps
        self.Cs = Cs
        self.s = s
        self.capacity = capacity
        self.cv = cv
        self.scoring = scoring
        self.kernels = kernels
        self.task_column = task_column
        self.task_weight = task_weight
        self.solver = solver
        self.tol = tol
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.error_score = error_score
        self.max_iter = max_iter
        self.task_scale = task_scale
        self.loss = loss
        self.share = share
        self.max_search_rows = max_search_rows
        self.multi_class = multi_class
        self.scalarization = scalarization
        self.weight_set = weight_set
        self.n_permutations = n_permutations

    def _settle(self, samples: Samples, y: object) -> None:
        """Resolve "auto": one-vs-rest least squares with several sources, else support vector machines for pairs."""
        tasks = samples.sources
        largest = len(samples) if tasks is None else max(map(len, rows_by_label(tasks).values()))
        several = as_bank(self.kernels).for_blocks(samples.blocks).n_sources > 1
        # Tseng's algorithm has no least squares
        squares = several and largest <= _MOST_SQUARED and self.solver != "tseng" and self.loss in ("auto", "squared")
        multi_class, loss = self.multi_class, self.loss
        if multi_class == "auto":
            multi_class = "one-vs-rest" if squares else "one-vs-one"
        if loss == "auto":
            loss = "squared" if squares else "hinge"
        self.multi_class_, self.loss_ = multi_class, loss

    @property
    def classes_(self) -> Any:
        """All labels, (n_classes,); after a fit on a matrix y, one array per task."""
        return self.model_.tasks.classes

    def decision_function(self, X: object, *, tasks: object = None) -> Array:
        """Signed distances of the best estimator, up to scale, as in :class:`ParetoMKLClassifier`."""
        samples = self._samples(X, tasks)
        return self.model_.tasks.scores(self.model_.decided(samples))

    @property
    def gives_probabilities(self) -> bool:
        """Whether there are probabilities, once it is fitted: always, since it has folds."""
        return True

    def _calibrate(self, scored: list[FoldScores], searched: Examples, splits: list[TrainTest], point: int) -> None:
        best = self.best_estimator_
        best.calibration_ = self.calibration_ = calibration_at(best, point, scored, searched, splits)

    def _settled(self) -> dict[str, Any]:
        usual = {"multi_class": "one-vs-one", "loss": "hinge"}  # until the data are known
        given = {name: getattr(self, f"{name}_", getattr(self, name)) for name in usual}
        return {name: usual[name] if value == "auto" else value for name, value in given.items()}

    @property
    def machine_kind(self) -> MachineKind:
        """The kind of machine of the loss, as far as it is known."""
        return find_kind(MACHINES, self._settled()["loss"], "loss", reads="labels")


class ParetoMKLRegressorCV(RegressorKind, PathSearch):
    """:class:`ParetoMKLRegressor` with p, C, s, the capacity κ of its kernels, and ε chosen by cross-validation.

    It works like :class:`ParetoMKLClassifierCV`: each fold traces the path over all p for each C, κ and s (and ε) from
    one pool of cuts. The highest mean score wins, by default the share of the variance within tasks that is explained;
    the smallest squared error breaks ties. The folds cannot tell points within one standard error of it apart, so the
    search keeps those with p nearest to 1, and among those that hardly differ takes the one whose neighbours in C score
    well too.

    Parameters
    ----------
    loss : {"squared", "epsilon_insensitive"}, default="squared"
        As in :class:`ParetoMKLRegressor`.
    epsilon : sequence of float, or float, default=(0.03, 0.1, 0.3)
        Values of ε to choose from, for ``loss="epsilon_insensitive"``.
    Cs : sequence of float, or float, default=(0.01, 0.1, 1.0, 10.0, 100.0)
        Costs of an error to choose from. You get a warning if the smallest or the largest of them scores best.
    capacity : "auto", sequence of float, or float, default="auto"
        Exponents κ of the effective rank to choose from, see :class:`KernelBank`; "auto" is (0.5, 1.0) for kernels with
        a capacity penalty.
    cv : int, splitter, iterable, "new tasks" or "time", default=None
        Number of folds (None: 5), shuffled within each task; or any scikit-learn splitter, or an iterable of
        (train, test) indices. "new tasks" leaves whole tasks out: the score is for unseen tasks. "time" holds
        out later rows of each task, whose rows must be in the order of time.
    scoring : str, callable or None, default=None
        A scikit-learn scorer, or one from :func:`~paretomkl.model_selection.make_multitask_scorer`. None is the
        share of the variance within tasks that is explained, 1 − Σ (y − ŷ)² / Σ (y − ȳ_t)², where ȳ_t is the mean of
        the task's training targets and each task is divided by their variance first. The sums run over all tasks, so
        that tasks with few rows cannot spoil it; for a task not seen in training, ȳ_t is the mean over all tasks.
        (``score`` is the mean R² over the tasks.)
    ps, s, share, max_search_rows, scalarization, weight_set, n_jobs, random_state, error_score, n_permutations
        As in :class:`ParetoMKLClassifierCV`.
    kernels, task_column, normalize_y, task_weight, solver, tol, verbose, max_iter, task_scale
        As in :class:`ParetoMKLRegressor`.

    Attributes
    ----------
    best_params_, best_score_, honest_score_, best_index_, best_estimator_, cv_results_, path_, scorer_, n_splits_, …
        As in :class:`ParetoMKLClassifierCV`; ``cv_results_`` has ``mean_test_squared_error`` (targets scaled by the
        spread of the task) instead of the log-loss.
    theta_, objectives_, task_weights_, objective_, gap_, n_sweeps_, …
        As in ``best_estimator_``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from paretomkl import ParetoMKLRegressorCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = ParetoMKLRegressorCV(ps=1.0, Cs=[0.1, 1.0, 10.0]).fit(X[:200], y[:200])
    >>> sorted(search.best_params_)
    ['C', 'capacity', 'p', 's']
    """

    best_estimator_: ParetoMKLRegressor

    plain_type = ParetoMKLRegressor
    score = PathSearch.score
    predict_interval = predict_interval

    __metadata_request__predict_interval: ClassVar = {"tasks": True}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def __init__(
        self,
        loss: str | MachineKind = "squared",
        epsilon: float | Sequence[float] = (0.03, 0.1, 0.3),
        ps: float | Sequence[float] = PAPER_PS,
        Cs: float | Sequence[float] = (0.01, 0.1, 1.0, 10.0, 100.0),
        s: float | Sequence[float] = NORMS,
        capacity: float | Sequence[float] | Literal["auto"] = "auto",
        cv: Any = None,
        scoring: str | Callable[..., Any] | None = None,
        kernels: KernelLike = "default",
        task_column: int | str | None = None,
        normalize_y: bool = True,
        task_weight: Mapping[Any, float] | Sequence[float] | Array | None = None,
        solver: SolverLike = "auto",
        tol: float = 1e-3,
        n_jobs: int | None = None,
        verbose: int | None = 0,
        random_state: int | np.random.RandomState | None = None,
        error_score: float | Literal["raise"] = np.nan,
        max_iter: int | None = None,
        task_scale: TaskScale = "none",
        share: AutoShare | Share | Sequence[Share] = "auto",
        max_search_rows: int | None = 3000,
        scalarization: Scalarization | None = None,
        weight_set: WeightSet | None = None,
        n_permutations: int = 0,
    ):
        self.loss = loss
        self.epsilon = epsilon
        self.ps = ps
        self.Cs = Cs
        self.s = s
        self.capacity = capacity
        self.cv = cv
        self.scoring = scoring
        self.kernels = kernels
        self.task_column = task_column
        self.normalize_y = normalize_y
        self.task_weight = task_weight
        self.solver = solver
        self.tol = tol
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.error_score = error_score
        self.max_iter = max_iter
        self.task_scale = task_scale
        self.share = share
        self.max_search_rows = max_search_rows
        self.scalarization = scalarization
        self.weight_set = weight_set
        self.n_permutations = n_permutations

    @property
    def machine_kind(self) -> MachineKind:
        """The kind of machine of the loss."""
        return find_kind(MACHINES, self.loss, "loss", reads="numbers")
