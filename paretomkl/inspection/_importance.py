"""Importances of sources, columns and kernels: what a search loses without them, with intervals."""

from __future__ import annotations

import copy
import html
import numbers
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.stats import t as student
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from .._data.labels import Samples
from .._data.reading import take_rows
from .._select.folds import own_score
from .._select.refolds import SearchFolds
from .._select.scores import make_judge
from .._select.search import PathSearch
from .._select.splits import TrainTest, make_splits
from .._show.notebook import interval_chart, which_matter
from .._show.page import table
from .._tools.checks import check_count, check_number, shown
from .._tools.typing import AnyArray, Array, IntArray
from .._tools.wording import Measure, counted, joined
from ..exceptions import SourceWarning
from ..kernels._kernels import is_precomputed
from ._folds import Job, Units, donors_of, losses_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

    from ..plotting import ImportanceDisplay

By = Literal["source", "column", "kernel"]
How = Literal["auto", "leave-out", "permute"]

REPEATS = 3
PERMUTATIONS = 5  # of a source in each fold: they cost little beside learning, and halve the noise of a single one
MOST_ALONE = 0.1  # share of held-out samples without another one of their task, which permuting cannot change
CORRELATED = (
    "Sources, columns or kernels that carry the same information stand in for each other: each can have a small "
    "importance although they matter together."
)


@dataclass(frozen=True, eq=False)
class Importances:
    """What a search loses in held-out score without each source, column or kernel; made by :func:`importance`.

    Parameters
    ----------
    names : list of n_units str
        The sources, columns or kernels.
    mean, low, high : arrays of shape (n_units,)
        The loss in score, and the ends of its interval. An importance whose interval is above zero is more than
        chance; one below zero says that the search does better without.
    shares : array of shape (n_units,), or None
        The share of each source or kernel in the learned kernel, for comparison; None for columns.
    shares_std : array of shape (n_units,), or None
        The standard deviation of the shares over the folds of the search.
    by_task : array of shape (3, n_units, n_tasks)
        The loss in score of each task alone, and the ends of its interval; n_tasks is zero if there is only one, or if
        the ``scoring`` of the search is not its default.
    task_names : list of n_tasks str
    by, measure : str
        What was measured, and how.
    score : float
        The held-out score of the search as it is, at its chosen point, over the same folds.
    score_measure : Measure
        The name of the score, and how it is shown.
    confidence : float
        The coverage that the intervals aim for.
    n_folds, n_repeats, n_samples : int
        The folds of each repeat, the repeats, and the held-out samples.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl import ParetoMKLClassifierCV
    >>> from paretomkl.inspection import importance
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> search = ParetoMKLClassifierCV(ps=1.0, Cs=[1.0, 10.0]).fit(X, y)
    >>> found = importance(search, X, y, by="column", n_repeats=1)
    >>> found.to_frame().shape
    (4, 4)
    """

    names: list[str]
    mean: Array
    low: Array
    high: Array
    shares: Array | None
    shares_std: Array | None
    by_task: Array = field(repr=False)
    task_names: list[str] = field(repr=False)
    by: str
    measure: str
    score: float
    score_measure: Measure = field(repr=False)
    confidence: float
    n_folds: int
    n_repeats: int
    n_samples: int

    def to_frame(self, *, by_task: bool = False) -> DataFrame:
        """A frame with the columns name, mean, low and high, the largest mean first.

        ``by_task`` makes one row for each task and name instead, with the task in a column of its own.
        """
        import pandas as pd

        order = np.argsort(-self.mean, kind="stable")
        names = [self.names[k] for k in order]
        if not by_task:
            return pd.DataFrame(
                {"name": names, "mean": self.mean[order], "low": self.low[order], "high": self.high[order]}
            )
        if not self.task_names:
            raise ValueError("There are no importances by task: one task, or a scoring that is not the default.")
        numbers = dict(zip(("mean", "low", "high"), self.by_task[:, order].transpose(0, 2, 1), strict=True))
        task = np.repeat(np.array(self.task_names, dtype=object), len(names))
        return pd.DataFrame(
            {"task": task, "name": names * len(self.task_names)} | {key: part.ravel() for key, part in numbers.items()}
        )

    def plot(self, ax: Axes | Sequence[Axes] | None = None, *, most: int = 12) -> ImportanceDisplay:
        """Draw the importances with their intervals, beside the shares if there are any.

        The parameters are those of :meth:`paretomkl.plotting.ImportanceDisplay.plot`.
        """
        from ..plotting import ImportanceDisplay

        return ImportanceDisplay.from_importances(self, most=most, ax=ax)

    @property
    def in_words(self) -> str:
        """What the numbers are, and what correlated sources mean for them."""
        lost = {
            "leave-out": f"when a {self.by} is left out of the learning",
            "permute": f"when a {self.by} of the held-out samples is permuted",
        }[self.measure]
        folds = f"{self.n_repeats} × {self.n_folds} folds" if self.n_repeats > 1 else counted(self.n_folds, "fold")
        score = self.score_measure
        return (
            f"Loss in {score.name} {lost}; {score.text(self.score)} with all of them. {folds}, "
            f"{counted(self.n_samples, 'held-out sample')}, {100 * self.confidence:g} % intervals. {CORRELATED}"
        )

    def __str__(self) -> str:
        header, *rows = self._table()
        width = max(len(row[0]) for row in (header, *rows))
        return "\n".join(
            [*(f"{name:{width}}  {mean:>10}  {span}" for name, mean, span in (header, *rows)), fill(self.in_words, 76)]
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        header, *rows = self._table()
        order, score = np.argsort(-self.mean, kind="stable"), self.score_measure
        names, scale = [self.names[k] for k in order], 100 if score.percent else 1
        numbers = scale * np.array([self.mean, self.low, self.high])[:, order]
        how = "left out" if self.measure == "leave-out" else "permuted"
        unit = ", in points" * score.percent
        label = f"loss in {score.name} if {how}{unit}, with {100 * self.confidence:g} % interval"
        return (
            f"<p><b>{html.escape(which_matter(names, *numbers[1:]))}</b></p>{interval_chart(names, numbers, label)}"
            f"{table(header, rows)}<p>{html.escape(self.in_words)}</p>"
        )

    def _table(self) -> list[list[str]]:
        """Header, names and numbers as text, the largest first; differences of shares in percentage points."""
        score = self.score_measure

        def text(value: float) -> str:
            return f"{100 * value:+.1f}".replace("-", "−") if score.percent else f"{value:+.3g}".replace("-", "−")

        order = np.argsort(-self.mean, kind="stable").tolist()
        rows = [[self.names[k], text(self.mean[k]), f"{text(self.low[k])} to {text(self.high[k])}"] for k in order]
        return [[self.by, "points lost" if score.percent else "lost", f"{100 * self.confidence:g} % interval"], *rows]


def importance(
    search: PathSearch,
    X: object,
    y: object,
    *,
    by: By = "source",
    measure: How = "auto",
    tasks: object = None,
    sample_weight: object = None,
    n_repeats: int | None = None,
    confidence: float = 0.95,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> Importances:
    """Measure what a fitted search needs: the loss in held-out score without each source, column or kernel.

    ``kernel_shares_`` and ``source_shares_`` say what the learned kernel is made of, not what it needs: a block of
    noise can have a large share. An importance is measured on samples that the models have not seen. The folds of the
    search are fitted again at its chosen point; its parameters and the factors of its kernels stay as they are.

    Parameters
    ----------
    search : fitted ParetoMKLClassifierCV or ParetoMKLRegressorCV
    X, y, tasks, sample_weight
        The training data of the search; other data raise an error.
    by : {"source", "column", "kernel"}, default="source"
        "source" takes the named sources of :func:`~paretomkl.kernels.sources`, or the blocks of X.
    measure : {"auto", "leave-out", "permute"}, default="auto"
        "leave-out" learns again without the kernels of a source, or without a kernel; what is learned with all of them
        makes that quick. "permute" learns once per fold, and exchanges the columns of a source, or one column, among
        the held-out samples of a task. "auto" permutes sources and columns, which finds weak ones more often, and
        leaves kernels out; sources too, if more than a tenth of the held-out samples are the only ones of their task.
        Columns can only be permuted, and kernels only be left out.
    n_repeats : int, default=None
        How often folds are drawn: first those of the search, then others with another seed. Every repeat draws new
        permutations too, five of a source and one of a column in each fold. None is 3; or 1 if the folds of ``cv`` are
        given, except for columns.
    confidence : float, default=0.95
        Coverage of the intervals.
    random_state : int, default=0
        Seed of further folds and of permutations.
    n_jobs : int, default=None
        Number of folds to fit in parallel; None takes that of the search.

    Returns
    -------
    importances : Importances
        names, mean, low, high, and :meth:`~Importances.to_frame` and :meth:`~Importances.plot`.

    Notes
    -----
    Every fold of every repeat gives one paired difference of scores, with and without the source. The interval is that
    of their corrected resampled t-test (Nadeau and Bengio, 2003): folds share training samples, and repeats share all
    of them, so the variance of the mean is taken as (1 / n_folds + n_test / n_train) times that of the differences. It
    serves any score, and folds that keep groups together. The parameters that the search has chosen are taken as given.

    Sources that carry the same information stand in for each other: leave one out, and the other takes its place.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from paretomkl import ParetoMKLClassifierCV, sources
    >>> from paretomkl.inspection import importance
    >>> X, y = load_wine(return_X_y=True)
    >>> kernels = sources({"acids": [0, 1, 2], "phenols": [5, 6, 7, 8], "colour": [9, 10, 11]})
    >>> search = ParetoMKLClassifierCV(ps=1.0, Cs=[1.0, 10.0], kernels=kernels).fit(X, y)
    >>> found = importance(search, X, y, n_repeats=1)
    >>> found.names
    ['acids', 'phenols', 'colour']
    """
    check_number("confidence", confidence, lambda v: 0 < v < 1, "between 0 and 1")
    kept = _folds_of(search)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SourceWarning)  # fit has said it
        folds = kept.checked(search, X, y, tasks, sample_weight)
    permute = _permutes(by, measure, folds)
    units = _units(search, folds.given.samples, by, permute)
    n_permutations = permute * (PERMUTATIONS if by == "source" else 1)
    repeats = _repeats(search, folds, n_repeats, n_permutations, random_state)
    jobs = list(_jobs(search, folds, X, tasks is not None, units, n_permutations, repeats, random_state))
    found = Parallel(n_jobs=search.n_jobs if n_jobs is None else n_jobs, prefer="threads")(
        delayed(losses_of)(job) for job in jobs
    )
    ratio = float(np.mean([len(test) / len(train) for splits in repeats for train, test in splits]))
    mean, error = mean_and_error(np.array([losses.overall for losses in found]), ratio, confidence)
    tasks_alone = np.empty((3, len(units.names), 0))
    if len(search.sources_) > 1 and found[0].by_task is not None:
        level, reach = mean_and_error(np.array([losses.by_task for losses in found]), ratio, confidence)
        tasks_alone = np.array([level, level - reach, level + reach])
    return Importances(
        units.names,
        mean,
        mean - error,
        mean + error,
        *_shares(search, by),
        tasks_alone,
        [str(source) for source in search.sources_] if tasks_alone.size else [],
        by,
        "permute" if permute else "leave-out",
        float(np.mean([losses.score for losses in found])),
        _measure_of(search),
        confidence,
        len(repeats[0]),
        len(repeats),
        len(np.unique(np.concatenate([test for _, test in repeats[0]]))),
    )


# ------------------------------------------------------------------------------------------------ what to measure
def _folds_of(search: Any) -> SearchFolds:
    if not isinstance(search, PathSearch):
        raise TypeError(
            f"importance needs a search such as ParetoMKLClassifierCV, whose folds it fits again, got "
            f"{type(search).__name__}."
        )
    check_is_fitted(search, "best_estimator_")
    return search.folds_


def _permutes(by: Any, measure: Any, folds: SearchFolds) -> bool:
    """Whether to permute, after checking what is asked for."""
    for name, given, known in (("by", by, By), ("measure", measure, How)):
        if given not in known.__args__:  # type: ignore[attr-defined]
            raise ValueError(f"{name} must be {joined(map(repr, known.__args__), 'or')}, got {shown(given)}.")  # type: ignore[attr-defined]
    if by == "column" and measure == "leave-out":
        raise ValueError(
            "Columns can only be permuted: leaving one out would change the kernels. Use measure='permute'."
        )
    if by == "kernel" and measure == "permute":
        raise ValueError("Kernels are left out, since they share their columns; use measure='leave-out'.")
    if measure == "auto" and by == "source":
        return not any(_alone(folds.given.samples[test]).mean() > MOST_ALONE for _, test in folds.searched)
    return by == "column" or measure == "permute"


def _alone(samples: Samples) -> AnyArray:
    """Which samples are the only one of their task."""
    return donors_of(samples, np.random.default_rng(0)) == np.arange(len(samples))


def _units(search: Any, samples: Samples, by: By, permute: bool) -> Units:
    """The names of what to measure, and their columns if those are permuted."""
    bank = search.model_.bank
    if by == "kernel":
        units = Units(by, list(bank.names), [])
        what = "kernel"
    elif by == "source":
        units = Units(by, *_sources(search, bank))
        what = "source"
    else:
        return Units(by, *_columns(search, samples))
    if not permute and len(units.names) < 2:
        raise ValueError(f"There is only one {what}, and nothing to learn from without it; use by='column'.")
    return units


def _sources(search: Any, bank: Any) -> tuple[list[str], list[IntArray]]:
    one = bank.models[0].bank if hasattr(bank, "models") else bank
    of_kernels = one.by_name()
    if not of_kernels:
        raise ValueError("The kernels have no named sources; make them with kernels=sources({…}), or use by='column'.")
    evaluator = (one.base if one.coupled else one).evaluator
    of_kernel = np.tile(evaluator.bases.of_kernel, 2) if one.coupled else evaluator.bases.of_kernel
    columns = []
    for own in of_kernels.values():
        used = [evaluator.bases.columns[b] for b in np.unique(of_kernel[own[: len(of_kernel)]])]
        prepared = np.unique(np.concatenate(used))
        columns.append(prepared if evaluator.preparation is None else evaluator.preparation.origins(prepared))
    return list(of_kernels), columns


def _columns(search: Any, samples: Samples) -> tuple[list[str], list[IntArray]]:
    """All columns of X besides that of the tasks and those of blocks that are stacks of kernels."""
    if is_precomputed(search.kernels):
        raise ValueError("Precomputed kernels have no columns; use by='kernel'.")
    n, task_column = samples.data.shape[1], search.task_column
    places = np.arange(n) if samples.names or task_column is None else np.delete(np.arange(n + 1), task_column)
    names = samples.names or [str(k) for k in places]
    kept = np.ones(n, dtype=bool)
    for block in samples.blocks.values():
        kept[block.columns] = not block.n_kernels
    return [names[k] for k in np.flatnonzero(kept)], list(np.flatnonzero(kept)[:, None])


# ---------------------------------------------------------------------------------------------- folds and jobs
def _repeats(
    search: PathSearch, folds: SearchFolds, n_repeats: int | None, n_permutations: int, seed: int
) -> list[list[TrainTest]]:
    """The folds of the search, then folds of the same kind and the same rows with other seeds."""
    if n_repeats is not None:
        check_count("n_repeats", n_repeats)
    cv: Any = search.cv
    by_number = cv is None or isinstance(cv, numbers.Integral)
    drawn = by_number or (hasattr(cv, "random_state") and getattr(cv, "shuffle", True))
    if not (drawn or n_permutations):
        if n_repeats not in (None, 1):
            raise ValueError(f"cv={shown(cv)} always gives the same folds; use n_repeats=1, or a cv that shuffles.")
        return [folds.searched]
    n = (REPEATS if drawn or n_permutations == 1 else 1) if n_repeats is None else n_repeats
    if not drawn:
        return [folds.searched] * n
    rows = np.arange(len(folds.given.samples)) if folds.rows is None else folds.rows
    some = folds.given.take(rows)
    groups = take_rows(folds.again["groups"], rows)
    repeats = [folds.searched]
    for k in range(1, n):
        again = cv
        if not by_number:
            again = copy.copy(cv)
            again.random_state = seed + k
        given = some.samples.data, some.y, some.samples.sources, groups
        splits = make_splits(again, *given, random_state=seed + k, stratify=search.stratify)
        repeats.append([(rows[train], rows[test]) for train, test in splits])
    return repeats


def _jobs(
    search: PathSearch,
    folds: SearchFolds,
    X: object,
    by_argument: bool,
    units: Units,
    n_permutations: int,
    repeats: list[list[TrainTest]],
    seed: int,
) -> Iterator[Job]:
    given, known = folds.given, list(search.sources_)
    own = search.scorer_ is own_score
    for r, splits in enumerate(repeats):
        for train, test in splits:
            learned, held_out = given.take(train, train), given.take(test, train)
            if n_permutations and _alone(held_out.samples).all():
                raise ValueError(
                    "measure='permute' needs two held-out samples of a task in every fold; use 'leave-out', or other "
                    "folds."
                )
            estimator = copy.copy(search.best_estimator_)
            if learned.samples.data.ndim == 3:  # the features of a stack of kernels are its training samples
                estimator.n_features_in_ = len(train)
            asked = {
                "X": None if own else take_rows(X, test, train, search.kernels),
                "tasks": held_out.samples.sources if by_argument else None,
            }
            yield Job(estimator, learned, held_out, units, n_permutations, seed + r, known, search.scorer_, asked)


# ---------------------------------------------------------------------------------------------------- intervals
def mean_and_error(losses: Array, ratio: float, confidence: float) -> tuple[Array, Array]:
    """The mean of losses (n_folds, …) over all folds of all repeats, and the half-width of its interval.

    Folds share training samples, and repeats share all samples, so their variance alone would be too small. The
    correction of Nadeau and Bengio adds ``ratio``, held-out samples over training samples, to 1 / n_folds. NaN marks
    folds without a score.
    """
    known = ~np.isnan(losses)
    n = known.sum(axis=0)
    mean = np.where(known, losses, 0.0).sum(axis=0) / np.maximum(n, 1)
    squares = np.where(known, (losses - mean) ** 2, 0.0).sum(axis=0) / np.maximum(n - 1, 1)
    error = student.ppf(0.5 + confidence / 2, np.maximum(n - 1, 1)) * np.sqrt((1 / np.maximum(n, 1) + ratio) * squares)
    return np.where(n > 0, mean, np.nan), np.where(n > 1, error, np.nan)


# ----------------------------------------------------------------------------------------------------- in words
def _shares(search: Any, by: By) -> tuple[Array | None, Array | None]:
    """The shares of the units, means over tasks that have their own, and their deviation over the folds."""
    if by == "column":
        return None, None
    shares = search.kernel_shares_ if by == "kernel" else np.stack(list(search.source_shares_.values()), axis=-1)
    spread = None
    if search.kernel_shares_by_fold_ is not None:
        spread = search.kernel_shares_std_ if by == "kernel" else np.array(list(search.source_shares_std_.values()))
    return shares.reshape(-1, shares.shape[-1]).mean(axis=0), spread


def _measure_of(search: PathSearch) -> Measure:
    """The score of the search; some functions of users have no name."""
    try:
        return make_judge(search.scoring, regression=not search.stratify).measure
    except ValueError:
        return Measure("score", "score", percent=False)
