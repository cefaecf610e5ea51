"""Choose p, C, s, capacity and ε by cross-validation: the base of the classifier and regressor searches."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, ClassVar, NamedTuple, Self
from uuid import uuid4

import numpy as np
from scipy.stats import rankdata
from sklearn.exceptions import FitFailedWarning
from sklearn.utils import indexable
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from .._data.labels import Decided, Samples
from .._data.reading import Training, apart, read_samples, take_rows
from .._data.tasks import as_labels, equal_labels, is_matrix, rows_by_code, unique_labels
from .._data.together import SHARES, Share, check_share, numbered, sharing_in_words
from .._fitting.models import FittedTasks, decide_all
from .._fitting.tracing import Grid, Parts, Point, models_of, trace, trace_grid
from .._learn.kernel_estimators import fitted_at
from .._learn.path import ParetoPath
from .._show.code import refit_code
from .._tools.checks import check_count, check_exponents, check_grid, check_task_scale, shown
from .._tools.parallel import effective_jobs
from .._tools.progress import Progress
from .._tools.typing import Array, IntArray
from ..distributed._training import is_remote
from ..exceptions import GridEdgeWarning
from ..kernels._kernels import as_bank
from ..machines import MachineKind
from ..solvers._base import Run
from .choice import best_of_ways, choose_way, edge_of
from .score_names import check_score_fits
from .scorers import check_scorer, scorer_takes
from .splits import make_splits

NORMS = (1.1, 2.0)
FEWEST_TASKS = 10  # minimum number of tasks if parameters are chosen on some tasks only
FEWEST_OF_CLASS = 10  # minimum rows per class, without tasks, if parameters are chosen on some rows only
SEPARATELY = 4  # the limits on search rows and pairs of rows are this many times higher for separate tasks
SMALL_TASK = 100  # mean samples per task below which the search prefers to share more, if the folds allow

_live: dict[str, Progress] = {}  # progress bars by token, which only folds run in this process can find


def searches_all(sizes: Any, most: int, pooled: bool) -> bool:
    """Whether tasks of these sizes are searched on all rows; ``pooled`` means that all tasks are one problem."""
    n, n_pairs = sum(sizes), sum(float(size) ** 2 for size in sizes)
    return bool(n <= most or (not pooled and n <= SEPARATELY * most and n_pairs <= SEPARATELY * most**2))


class PathSearch:
    """A search for the best point of a path; once fitted, it behaves like the best estimator.

    A subclass has the parameters of its plain estimator, with ``ps``, ``Cs``, ``s`` and ``capacity`` instead of p, C
    and s, plus ``cv``, ``scoring`` and ``error_score``. It sets ``plain_type`` and ``held_out_type``.
    """

    model_: Any
    best_share_: Share
    sharing_: dict[Share, tuple[float, float]]
    plain_type: ClassVar[Any]
    held_out_type: ClassVar[Any]
    stratify: ClassVar[bool] = True

    best_params_: dict[str, float]
    best_score_: float
    best_index_: int
    best_indices_: dict[Share, int]
    best_estimator_: Any
    cv_results_: dict[str, Any]
    path_: ParetoPath
    scorer_: Callable[..., Any]
    n_splits_: int
    n_search_rows_: int
    search_rows_: IntArray | None
    small_tasks_: bool
    refit_time_: float
    task_weights_: Array

    ps: Any
    Cs: Any
    s: Any
    capacity: Any
    cv: Any
    scoring: Any
    kernels: Any
    task_column: Any
    task_weight: Any
    solver: Any
    tol: float
    n_jobs: int | None
    verbose: int | None
    random_state: Any
    error_score: Any
    max_iter: int | None
    task_scale: Any
    share: Any
    max_search_rows: int | None
    epsilon: Any

    get_params: Callable[..., dict[str, Any]]
    _forget: Callable[[], None]

    def fit(self, X: Any, y: Any = None, *, tasks: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose the parameters, then learn the path on all samples with the chosen C, s and capacity.

        Parameters
        ----------
        X, y, tasks
            As in the ``fit`` of the plain estimator.
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies C for each sample, and weights the held-out samples if the scorer takes ``sample_weight``.
        groups : array-like of shape (n_samples,), default=None
            Groups for a ``cv`` splitter that keeps groups together.
        """
        return self.choose({"X": X, "y": y, "tasks": tasks, "sample_weight": sample_weight}, groups)

    def choose(self, given: dict[str, Any], groups: Any = None, refit: Sequence[Share] = SHARES) -> Self:
        """Choose the parameters by folds; fit a model to all samples only if ``refit`` has the chosen way to share."""
        self._forget()
        X, y, tasks, sample_weight = (given.get(name) for name in ("X", "y", "tasks", "sample_weight"))
        if is_remote(X):
            raise ValueError("A search splits the samples into folds and needs them in one place; use X.compute().")
        grids = {way: self._grid(way) for way in self._ways()}
        effective_jobs(self.n_jobs)
        check_task_scale(self.task_scale)
        as_bank(self.kernels).check()
        plain = self.plain_estimator()
        plain.parts(next(iter(grids.values())).ps)
        samples = read_samples(plain, X, tasks=tasks, reset=True)
        several = is_matrix(y) or (samples.sources is not None and len(numbered(samples.sources)[0]) > 1)
        grids, size = self._possible(grids, several, given)
        self._settle(samples, y)
        grids = {way: self._grid(way) for way in grids}  # what "auto" stands for is known now
        tasks = None if tasks is None else samples.sources
        X, y, sample_weight, tasks, groups = indexable(X, y, sample_weight, tasks, groups)
        self.scorer_ = own_score if self.scoring is None else check_scorer(self.scoring, plain)
        if isinstance(self.scoring, str):
            one_problem = self.stratify and samples.sources is None and not is_matrix(y)
            n_classes = len(unique_labels(as_labels(y, "y").ravel())) if one_problem else None
            check_score_fits(self.scoring, not self.stratify, n_classes)
        rows = self._search_rows(samples, y, grids)
        seen, sources = samples.data, samples.sources
        if rows is not None:
            seen, sources = seen[rows], None if sources is None else sources[rows]
        some = [
            take_rows(values, rows) if rows is not None else values for values in (X, y, sample_weight, tasks, groups)
        ]
        splits = make_splits(self.cv, seen, some[1], sources, some[4], self.random_state, stratify=self.stratify)
        n_points = sum(grid.size for grid in grids.values())
        with Progress(len(splits) * n_points + len(self._exponents()), self.tol, self.verbose) as progress:
            folds = self._run_folds(some[0], some[1], some[2], some[3], splits, grids, progress)
            self._tabulate(folds, grids, size)
            if self.best_share_ in refit:
                self._refit({"X": X, "y": y, "tasks": tasks, "sample_weight": sample_weight}, grids, progress)
        self.n_splits_, self.n_search_rows_, self.search_rows_ = len(splits), len(seen), rows
        return self

    def _search_rows(self, samples: Samples, y: Any, grids: dict[Share, Grid]) -> IntArray | None:
        """The rows used to choose parameters; None means all.

        If there are many rows, take whole tasks, so that each keeps its size and what it can learn by itself. If fewer
        than ten tasks would be left, draw rows from every task instead, and from every class of a task, as folds need.
        """
        most, n = self.max_search_rows, len(samples)
        if most is not None:
            check_count("max_search_rows", most)
        given = np.iterable(self.cv) and not isinstance(self.cv, str)  # folds whose indices refer to all rows
        if most is None or given or samples.data.ndim != 2:
            return None
        sizes = np.array([n]) if samples.sources is None else np.bincount(numbered(samples.sources)[1].astype(int))
        if searches_all(sizes, most, bool(grids.keys() & {"function", "everything"})):
            return None
        rng = np.random.default_rng(0)
        if samples.sources is not None:
            codes = numbered(samples.sources)[1]
            order = rng.permutation(len(sizes))
            kept = order[np.cumsum(sizes[order]) <= most]
            if len(kept) >= FEWEST_TASKS:
                return np.flatnonzero(np.isin(codes, kept))
            parts = rows_by_code(codes, len(sizes))
            fewest = 4
            if self.stratify:
                labels, fewest = as_labels(y, "y").ravel(), 2
                parts = [p[equal_labels(labels[p], one)] for p in parts for one in unique_labels(labels[p])]
            drawn = [rng.permutation(part)[: max(fewest, round(len(part) * most / n))] for part in parts]
            return np.sort(np.concatenate(drawn))
        if self.stratify and not is_matrix(y):
            labels = as_labels(y, "y").ravel()
            parts = [np.flatnonzero(equal_labels(labels, one)) for one in unique_labels(labels)]
            drawn = [rng.permutation(part)[: max(FEWEST_OF_CLASS, round(len(part) * most / n))] for part in parts]
            return np.sort(np.concatenate(drawn))
        return np.sort(rng.choice(n, most, replace=False))

    def _ways(self) -> list[Share]:
        """What the tasks may share, from nothing to everything."""
        given = [self.share] if isinstance(self.share, str) or not np.iterable(self.share) else list(self.share)
        if not given:
            raise ValueError("share is empty; pass at least one of 'nothing', 'kernel', 'function', 'everything'.")
        return sorted({check_share(way) for way in given}, key=SHARES.index)

    @property
    def machine_kind(self) -> MachineKind:
        """The kind of machine of the plain estimator, as far as it is known."""
        raise NotImplementedError

    @property
    def by_loss(self) -> bool:
        """Whether the smallest loss decides among the points within one standard error of the best score."""
        return self.machine_kind.estimates

    @property
    def loss_name(self) -> str:
        """Name of the loss of the held-out decisions in ``cv_results_``."""
        return "squared_error" if self.machine_kind.decisions in ("estimates", "numbers") else "log_loss"

    def _settle(self, samples: Samples, y: Any) -> None:
        """Resolve "auto" parameters from the data."""

    def _settled(self) -> dict[str, Any]:
        """The parameters of the plain estimator that :meth:`_settle` has resolved."""
        return {}

    def _exponents(self) -> list[float]:
        return check_exponents(self.ps)

    def _possible(
        self, grids: dict[Share, Grid], several: bool, given: dict[str, Any]
    ) -> tuple[dict[Share, Grid], float]:
        """The ways to share that these data allow, and the mean size of a task.

        With a single task, all ways are the same. A task with a single class cannot have its own function.
        """
        if len(grids) > 1 and not several:
            only: Share = "kernel" if "kernel" in grids else next(iter(grids))
            grids = {only: grids[only]}
        size, refused = 0.0, {}
        for way in list(grids):
            try:
                training = self.plain_estimator(share=way).read_data(**given)
            except ValueError as error:
                refused[way] = error
            else:
                pooled = training.together.n_tasks if training.together else 1
                size = size or float(training.task_sizes.mean()) / pooled
        if len(refused) == len(grids):
            raise next(iter(refused.values()))
        if refused:
            first = next(iter(refused.values()))
            warnings.warn(
                f"The search skips share={' and '.join(map(repr, refused))}: {first}", UserWarning, stacklevel=4
            )
        return {way: grid for way, grid in grids.items() if way not in refused}, size

    def score(self, X: Any, y: Any, *, tasks: Any = None, sample_weight: Any = None) -> float:
        """Score these samples with ``scoring``, or like the plain estimator if ``scoring`` is None."""
        check_is_fitted(self)
        given = _routed(self.scorer_, {"tasks": tasks, "sample_weight": sample_weight})
        return _one_number(self.scorer_(self.best_estimator_, X, y, **given))

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
        exponents = self._exponents()
        return Grid(
            exponents if way == "kernel" else [1.0],
            check_grid("Cs", self.Cs),
            check_grid("s", self.s, "of at least 1", lambda v: 1 <= v <= np.inf),
            None if capacity is None else check_grid("capacity", capacity, "of at least 0", lambda v: 0 <= v < np.inf),
            self._epsilons(),
        )

    def _epsilons(self) -> list[float] | None:
        """Values of ε to choose from, if the machine has it."""
        if "epsilon" not in self.machine_kind.parameters:
            return None
        return check_grid("epsilon", self.epsilon, "of at least 0", lambda v: 0 <= v < np.inf)

    def plain_estimator(self, kind: Any = None, share: Share = "kernel") -> Any:
        """The unfitted estimator whose parameters are chosen; folds run in parallel, each on one thread."""
        own = self.get_params(deep=False) | self._settled()
        chosen = {"n_jobs", "verbose", "s", "epsilon", "share"}
        shared = own.keys() & self.plain_type().get_params(deep=False).keys() - chosen
        plain = (kind or self.plain_type)(**{name: own[name] for name in shared}, share=share)
        if not isinstance(self.capacity, str):  # explicit capacities switch the penalty on
            plain.kernels = replace(as_bank(self.kernels), normalize="capacity")
        return plain

    def estimator_at(self, row: int) -> Any:
        """The unfitted estimator for a row of ``cv_results_``."""
        single = ["s", "capacity"] + ["epsilon"] * (self._epsilons() is not None)
        fixed = {name: getattr(self, name) for name in single}
        point: dict[str, Any] = {name: float(v) for name, v in fixed.items() if isinstance(v, numbers.Real)}
        point |= {"share": self.best_share_} | self.cv_results_["params"][row]
        plain = self.plain_estimator()
        capacity = point.pop("capacity", None)
        if capacity is not None:
            plain.kernels = replace(as_bank(plain.kernels), normalize="capacity", capacity=capacity)
        return plain.set_params(**point)

    def _run_folds(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        tasks: Any,
        splits: list[tuple[IntArray, IntArray]],
        grids: dict[Share, Grid],
        progress: Progress,
    ) -> dict[Share, list[_Fold]]:
        token = uuid4().hex
        _live[token] = progress

        def part(rows: IntArray, train: IntArray) -> dict[str, Any]:
            given = {"y": y, "tasks": tasks, "sample_weight": sample_weight}
            return {"X": take_rows(X, rows, train, self.kernels)} | {k: take_rows(v, rows) for k, v in given.items()}

        try:
            jobs = (
                delayed(_run_fold)(
                    self.error_score,
                    _Fold(k, way, grid),
                    self.plain_estimator(self.held_out_type, way),
                    part(train, train),
                    part(test, train),
                    self.scorer_,
                    token,
                )
                for k, (train, test) in enumerate(splits)
                for way, grid in grids.items()
            )
            folds: dict[Share, list[_Fold]] = {way: [] for way in grids}
            several = effective_jobs(self.n_jobs) > 1  # then each fold has its thread, and BLAS should not add more
            with threadpool_limits(1 if several else None, user_api="blas"):
                # threads suit compiled loops; a backend that the user has configured takes precedence
                for fold in Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator_unordered")(jobs):
                    folds[fold.way].append(fold)
                    if not fold.shown:
                        progress.done(fold.grid.size)
                        progress.show(f"fold {len(folds[fold.way])} of {len(splits)}")
            return {way: sorted(done, key=lambda fold: fold.number) for way, done in folds.items()}
        finally:
            del _live[token]

    def _tabulate(self, folds: dict[Share, list[_Fold]], grids: dict[Share, Grid], size: float) -> None:
        by_fold = list(zip(*folds.values(), strict=True))
        scores, losses, gaps, seconds = (
            np.array([np.concatenate([getattr(fold, name) for fold in together]) for together in by_fold])
            for name in ("scores", "losses", "gaps", "seconds")
        )
        counted = _counted([fold for together in by_fold for fold in together], self.error_score)
        counted = [all(counted[k : k + len(grids)]) for k in range(0, len(counted), len(grids))]
        mean = scores[counted].mean(axis=0)
        if np.isnan(mean).all():
            raise ValueError("No point of the grid has a score in every fold; check scoring and cv.")
        values: dict[str, Any] = {}
        for name in next(iter(grids.values())).columns():
            values[name] = np.concatenate([grid.columns()[name] for grid in grids.values()])
        share = np.concatenate([np.full(grid.size, way, dtype=object) for way, grid in grids.items()])
        single = ("s", "capacity", "epsilon")
        fixed = {name for name in single if isinstance(getattr(self, name, None), numbers.Real)}
        columns = values | ({} if isinstance(self.share, str) else {"share": share})
        searched = [name for name in sorted(columns) if name not in fixed]
        rows = zip(*(columns[name].tolist() for name in searched), strict=True)
        points = [dict(zip(searched, row, strict=True)) for row in rows]
        results: dict[str, Any] = {"mean_fit_time": seconds.mean(axis=0), "std_fit_time": seconds.std(axis=0)}
        results |= {f"param_{name}": columns[name] for name in searched}
        results["params"] = points
        for k, of_fold in enumerate(scores):
            results[f"split{k}_test_score"] = of_fold
        results["mean_test_score"] = mean
        results["std_test_score"] = scores[counted].std(axis=0)
        worst_of_all = np.nanmin(mean) - 1
        filled = np.where(np.isnan(mean), worst_of_all, mean).round(9)  # rounding errors must not break ties
        results["rank_test_score"] = rankdata(-filled, method="min").astype(np.int32)
        loss = results[f"mean_test_{self.loss_name}"] = losses[counted].mean(axis=0)
        results["max_gap"] = gaps.max(axis=0)
        self.cv_results_ = results
        self.best_indices_ = best_of_ways(scores[counted], loss, values | {"share": share}, self.by_loss)
        way = self._choose_way({way: scores[counted][:, k] for way, k in self.best_indices_.items()}, size)
        self.best_index_ = self.best_indices_[way]
        self.best_params_ = points[self.best_index_]
        self.best_score_ = float(mean[self.best_index_])
        own = share == way
        self._warn_of_edge(values["C"][own], mean[own])

    def _choose_way(self, scores: dict[Share, Array], size: float) -> Share:
        """Choose what to share from the fold scores of the best point of each way, and store the comparison."""
        self.small_tasks_ = size < SMALL_TASK
        self.best_share_ = choose_way(scores, self.small_tasks_)
        self.sharing_ = {way: (float(s.mean()), _standard_error(s)) for way, s in scores.items()}
        return self.best_share_

    def _warn_of_edge(self, Cs: Array, mean: Array) -> None:
        C = self.best_params_["C"]
        edge = edge_of(C, mean, Cs)
        if edge is not None:
            beyond = C * 10 if edge == "largest" else C / 10
            message = f"The chosen C={C:g} is the {edge} of Cs and scores better than all others; add {beyond:g} to Cs."
            warnings.warn(GridEdgeWarning(message, "C", C, beyond, edge), stacklevel=5)

    def _refit(self, given: dict[str, Any], grids: dict[Share, Grid], progress: Progress) -> None:
        began = perf_counter()
        grid, plain = grids[self.best_share_], self.estimator_at(self.best_index_)
        if self.best_share_ == "kernel":
            self.best_estimator_ = self._refit_path(plain, plain.read_data(**given), list(grid.ps), progress, began)
        else:
            self.best_estimator_ = plain.set_params(n_jobs=self.n_jobs).fit(**given)
        self.refit_time_ = perf_counter() - began
        best = self.best_estimator_
        for name in vars(best).keys() - best.get_params(deep=False).keys():
            setattr(self, name, getattr(best, name))

    def _refit_path(self, plain: Any, training: Training, ps: list[float], progress: Progress, began: float) -> Any:
        """Trace the whole path at the chosen C, s and capacity, and return the estimator at the chosen p."""
        C, p = plain.C, plain.p
        parts = plain.parts(ps)
        problem, bank, _ = plain.posed(training, training.bounds(C), parts)
        run = Run(progress.report)
        points = trace(problem, ps, parts.solver, progress, run=run)
        by_argument = self.task_column is None and training.samples.sources is not None
        skipped = {"p", "s", "C", "tol", "solver", "n_jobs", "verbose", "random_state", "max_iter"}
        named = {name: value for name, value in plain.get_params(deep=False).items() if name not in skipped}
        code = refit_code(self.plain_type.__name__, s=plain.s, C=C, tol=self.tol, tasks=by_argument, **named)
        spent = perf_counter() - began
        models = models_of(points, training, bank)
        given = training, plain, run, self.tol, spent, code, self.task_scale
        self.path_ = ParetoPath.from_solutions(points, models, *given)
        k = ps.index(p)
        return fitted_at(plain, points[k], self.path_.models[k].trimmed(), C, run.n_sweeps)

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


def _standard_error(scores: Array) -> float:
    """Standard error of the mean; NaN for a single fold."""
    return float(scores.std(ddof=1) / np.sqrt(len(scores))) if len(scores) > 1 else np.nan


class HeldOut:
    """Mixin for an estimator that has already read the held-out samples."""

    known: tuple[Any, Samples]

    def _samples(self, X: Any, tasks: Any) -> Samples:
        return self.known[1] if X is self.known[0] else super()._samples(X, tasks)  # type: ignore[misc]


@dataclass(frozen=True)
class _Decided(FittedTasks):
    """A model with precomputed decisions on the held-out samples."""

    tasks: Any
    held_out: Samples
    found: Decided

    def decided(self, samples: Samples) -> Decided:
        if samples is not self.held_out:
            raise ValueError("During the search, models can predict only the held-out samples.")
        return self.found


class _Fold:
    """Scores, losses, gaps and seconds of all points of one fold, in the order of the grid; or the error."""

    def __init__(self, number: int, way: Share, grid: Grid):
        self.number, self.way, self.grid = number, way, grid
        self.scores, self.losses, self.gaps, self.seconds = np.full((4, grid.size), np.nan)
        self.shown = False
        self.error: Exception | None = None

    def fill(self, found: Mapping[Point, tuple[float, ...]]) -> None:
        """Set score, loss, gap and seconds of every point of the grid."""
        self.scores, self.losses, self.gaps, self.seconds = np.array([found[point] for point in self.grid.points]).T


def _run_fold(error_score: float | str, fold: _Fold, *others: Any) -> _Fold:
    """Score one fold; a failure is kept unless ``error_score`` is "raise"."""
    try:
        _score_fold(fold, *others)
    except Exception as error:
        if isinstance(error_score, str):
            raise
        fold.error = error
        fold.scores[:] = error_score
    return fold


class _Judged(NamedTuple):
    """A point of the grid: its gap, its share of the seconds, and its decisions on the held-out samples."""

    point: Point
    gap: float
    seconds: float
    decided: Decided


def _score_fold(
    fold: _Fold, estimator: Any, train: dict[str, Any], test: dict[str, Any], scorer: Any, token: str
) -> None:
    """Fit one fold at all points of the grid, and score each on the held-out samples."""
    progress = _live.get(token)
    fold.shown = progress is not None
    grid = fold.grid
    training = estimator.read_data(**train, strict=False)
    parts = estimator.parts(grid.ps)
    solver = parts.solver
    if solver is not estimator.solver:
        parts = replace(parts, solver=solver.for_scores())
    for C in (min(grid.Cs), max(grid.Cs)):
        training.bounds(C)
    held_out = read_samples(estimator, test["X"], tasks=test["tasks"])
    estimator.known = (test["X"], held_out)
    given = _routed(scorer, {"tasks": test["tasks"], "sample_weight": test["sample_weight"]})
    tasks = training.together or training.labelling
    loss = tasks.loss(held_out, test["y"], test["sample_weight"])

    def score(point: Point, decided: Decided, lost: float) -> float:
        if scorer is own_score:
            return (
                1 - lost if tasks.chosen_by_loss else tasks.score(decided, held_out, test["y"], test["sample_weight"])
            )
        fitted = copy(estimator)
        fitted.model_, fitted.p, fitted.C = _Decided(tasks, held_out, decided), point.p, point.C
        return _one_number(scorer(fitted, test["X"], test["y"], **given))

    judge = _judge_apart if fold.way == "nothing" else _judge_together
    verdicts: dict[int, tuple[float, float]] = {}
    found = {}
    judged = judge(estimator, training, grid, parts, progress or Progress(1, estimator.tol, 0), held_out)
    for point, gap, seconds, decided in judged:  # points with the same sweep share their decisions
        if id(decided) not in verdicts:
            lost = loss(decided)
            verdicts[id(decided)] = score(point, decided, lost), lost
        found[point] = *verdicts[id(decided)], gap, seconds
    fold.fill(found)


def _judge_together(
    estimator: Any, training: Training, grid: Grid, parts: Parts, progress: Progress, held_out: Samples
) -> list[_Judged]:
    """Tasks that form one problem: one pool of cuts, and all models in one pass over the held-out samples."""
    problem, _, data = estimator.posed(training, training.bounds(1.0), parts)
    stretches = list(trace_grid(problem, data, grid, parts, progress))
    of_all = [(point, stretch.bank) for stretch in stretches for point in stretch.points]
    models = models_of([point for point, _ in of_all], training, *(bank for _, bank in of_all))
    distinct = {id(model): model for model in models}
    shared = training.together
    seen = held_out if shared is None else shared.coded_samples(held_out)
    values = decide_all(list(distinct.values()), seen)
    decided = dict(
        zip(distinct, values if shared is None else [shared.shaped(of_model) for of_model in values], strict=True)
    )
    of_point = iter(models)
    return [
        _Judged(stretch.at(p), point.gap, seconds, decided[id(model)])
        for stretch in stretches
        for seconds in [sum(stretch.run.seconds.values()) / len(grid.ps)]
        for p, point, model in zip(grid.ps, stretch.points, of_point, strict=False)
    ]


def _judge_apart(
    estimator: Any, training: Training, grid: Grid, parts: Parts, progress: Progress, held_out: Samples
) -> list[_Judged]:
    """Tasks that share nothing: one search per task, at the same points."""
    tasks = training.labelling
    groups = tasks.groups(held_out)
    missing = Decided.missing(groups, len(held_out))
    decided = {point: replace(missing, values=missing.values.copy()) for point in grid.points}
    gaps, seconds = dict.fromkeys(grid.points, 0.0), dict.fromkeys(grid.points, 0.0)
    rows_of = {t: rows for rows, asked in groups for t in asked.tolist()}
    quiet = Progress(1, estimator.tol, 0)
    for mine, own in zip(tasks.tasks_by_source.values(), apart(training), strict=True):
        rows = rows_of.get(mine[0], np.arange(0))
        slots = mine if tasks.kind == "matrix" else range(len(mine))
        for point, gap, spent, found in _judge_together(
            estimator, own, grid, parts, quiet, Samples(held_out.data[rows])
        ):
            gaps[point], seconds[point] = max(gaps[point], gap), seconds[point] + spent
            decided[point].values[np.ix_(rows, slots)] = found.values
    progress.done(grid.size)
    return [_Judged(point, gaps[point], seconds[point], decided[point]) for point in grid.points]


def _counted(folds: list[_Fold], error_score: float | str) -> list[bool]:
    """Which folds enter the mean: all, or with error_score=nan only those whose fit succeeded."""
    failed = [fold for fold in folds if fold.error is not None]
    if not failed:
        return [True] * len(folds)
    first = failed[0].error
    if len(failed) == len(folds):
        raise ValueError(f"The fit failed in all {len(folds)} folds; the first error was: {first}") from first
    warnings.warn(
        f"The fit failed in {len(failed)} of {len(folds)} folds (error_score={error_score}); the first error was: "
        f"{first}",
        FitFailedWarning,
        stacklevel=5,
    )
    return [fold.error is None or not np.isnan(float(error_score)) for fold in folds]


def own_score(estimator: Any, X: Any, y: Any, sample_weight: Any = None, tasks: Any = None) -> float:
    return estimator.score(X, y, tasks=tasks, sample_weight=sample_weight)


def _routed(scorer: Any, given: dict[str, Any]) -> dict[str, Any]:
    """The given arguments that are not None and that the scorer takes."""
    return {name: value for name, value in given.items() if value is not None and scorer_takes(scorer, name)}


def _one_number(score: Any) -> float:
    if not isinstance(score, numbers.Real):
        raise ValueError(f"scoring must return one number, got {shown(score)}.")
    return float(score)
