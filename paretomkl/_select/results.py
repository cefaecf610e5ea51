"""What searches and comparisons find: scores on the same folds, and what they mean in plain words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .._data.together import CALLED, Share, sharing_in_words
from .._tools.public import PublicNames
from .._tools.typing import Array, IntArray
from .._tools.wording import ACCURACY, Measure, in_digits
from .intervals import Estimate, of_folds, wilson

if TYPE_CHECKING:
    from .task_scores import ScoresByTask

OURS = "paretomkl"
HOW = "In each fold every method uses parameters chosen on the other folds; ± is the standard error over the folds."


@dataclass(frozen=True)
class TaskErrors:
    """How far predicted numbers are off, over the samples of all folds; each sample is predicted while held out.

    Parameters
    ----------
    tasks : list of n_tasks str
    rows : array of shape (n_tasks,)
        Number of samples of each task.
    r2, rmse : arrays of shape (n_tasks,)
        R² (NaN where undefined) and root mean squared error in units of the target.
    """

    tasks: list[str]
    rows: IntArray
    r2: Array
    rmse: Array

    @property
    def overall_r2(self) -> float:
        """Mean R² over the samples of the tasks for which it is defined: tasks with few samples count less."""
        known = ~np.isnan(self.r2)
        return float(np.average(self.r2[known], weights=self.rows[known])) if known.any() else math.nan

    @property
    def overall_rmse(self) -> float:
        """Root mean squared error over all samples."""
        known = self.rows > 0
        return float(np.sqrt(np.average(self.rmse[known] ** 2, weights=self.rows[known])))

    def facts(self) -> dict[str, Any]:
        """Numbers by name, for JSON."""
        rows = zip(self.tasks, self.rows.tolist(), self.r2.tolist(), self.rmse.tolist(), strict=True)
        by_task = {name: {"rows": n, "r2": _number(r2), "rmse": _number(rmse)} for name, n, r2, rmse in rows}
        return {"r2": _number(self.overall_r2), "rmse": _number(self.overall_rmse), "tasks": by_task}


@dataclass(frozen=True)
class Contender:
    """The scores of one method.

    Parameters
    ----------
    name : str
    folds : array of shape (n_folds,)
        Score of each fold; NaN where undefined.
    held_out : float, default=None
        Score on samples that are in no fold.
    errors : TaskErrors, default=None
        Errors of predicted numbers.
    held_out_interval : pair of float, default=NaN
        The 95 % interval of ``held_out``; NaN if unknown.
    """

    name: str
    folds: Array
    held_out: float | None = None
    errors: TaskErrors | None = None
    held_out_interval: tuple[float, float] = (math.nan, math.nan)

    @property
    def mean(self) -> float:
        """Mean over the folds that have a score."""
        return float(np.mean(self._known)) if len(self._known) else math.nan

    @property
    def standard_error(self) -> float:
        """Standard error of the mean; NaN for a single fold."""
        return _standard_error(self._known)

    @property
    def _known(self) -> Array:
        return self.folds[~np.isnan(self.folds)]


@dataclass(frozen=True)
class Comparison(PublicNames):
    """A model and its baselines on the same folds.

    Parameters
    ----------
    ours : Contender
    baselines : sequence of Contender
    measure : Measure
        What the scores are.
    about : str, default=""
        Which samples the methods learn from, in a sentence, where these are not all.
    n_rows : int, default=0
        Number of rows in the folds; 0 if unknown.
    by_task : ScoresByTask, default=None
        For regression, our scores of each task over the rows of all folds.
    """

    _internal = ("page_data",)

    ours: Contender
    baselines: Sequence[Contender]
    measure: Measure = ACCURACY
    about: str = ""
    n_rows: int = 0
    by_task: ScoresByTask | None = None

    def __str__(self) -> str:
        return "\n".join([*(f"{c.name}: {self.text(c)}" for c in self.contenders), self.verdict])

    @property
    def contenders(self) -> list[Contender]:
        """The model first, then the baselines."""
        return [self.ours, *self.baselines]

    @property
    def best_baseline(self) -> Contender:
        """The baseline with the highest mean."""
        return max(self.baselines, key=lambda baseline: -math.inf if math.isnan(baseline.mean) else baseline.mean)

    def lead(self, baseline: Contender) -> tuple[float, float]:
        """Our score minus a baseline's: the mean over the folds, and the standard error of the differences per fold."""
        difference = self.ours.folds - baseline.folds
        difference = difference[~np.isnan(difference)]
        return (float(difference.mean()), _standard_error(difference)) if len(difference) else (math.nan, math.nan)

    def lead_interval(self, baseline: Contender) -> Estimate:
        """Our score minus a baseline's: the mean over the folds, and Student's 95 % interval of the differences."""
        return of_folds(self.ours.folds - baseline.folds)

    def text(self, contender: Contender) -> str:
        """Mean and standard error: "91.2 % ± 1.1" or "0.912 ± 0.011"."""
        return with_error(self.measure, contender.mean, contender.standard_error, self.n_rows)

    def held_out_text(self, contender: Contender) -> str | None:
        """Score on samples that are in no fold, and its interval: "91.2 % (88.1 to 94.0)"."""
        if contender.held_out is None:
            return None
        return self.measure.with_interval(contender.held_out, *contender.held_out_interval)

    @property
    def verdict(self) -> str:
        """One sentence that says whether our model beats the best baseline by more than the scatter of the folds."""
        baseline, measure = self.best_baseline, self.measure
        lead, error = self.lead(baseline)
        if math.isnan(lead):
            return "The folds do not show which is better."
        name = baseline.name[0].upper() + baseline.name[1:]
        both = f"{measure.text(baseline.mean)} against {measure.text(self.ours.mean)}"
        # if all folds but one are equal, the difference equals its standard error up to rounding
        if abs(lead) <= max(1e-12, 0.0 if math.isnan(error) else error * (1 + 1e-9)):
            return f"{name} does as well: {both}, within the error of the folds."
        if lead < 0:
            return f"{name} is better by {measure.size(lead)}: {both}; consider it, or other kernels."
        return f"The best simpler model, {baseline.name}, is {measure.size(lead)} behind: {both}."

    @property
    def how(self) -> str:
        """How the methods were compared, in a sentence or two."""
        return f"{HOW} {self.about}".rstrip()

    def facts(self) -> dict[str, Any]:
        """Numbers by name, for JSON; None where undefined."""
        return {
            "folds": len(self.ours.folds),
            "scores": {
                c.name: {"mean": _number(c.mean), "standard_error": _number(c.standard_error)}
                | ({} if c.held_out is None else {"held_out": _number(c.held_out)})
                | ({} if math.isnan(c.held_out_interval[0]) else {"held_out_interval": list(c.held_out_interval)})
                | ({} if c.errors is None else c.errors.facts())
                for c in self.contenders
            },
            "verdict": self.verdict,
            "about": self.about or None,
        }

    def page_data(self) -> dict[str, Any]:
        """What the page shows."""
        means = [c.mean for c in self.contenders if not math.isnan(c.mean)]
        low = min([0.0, *means])
        width = (max(means, default=0.0) - low) or 1.0
        rows = [
            {
                "name": c.name,
                "text": self.text(c),
                "bar": None if math.isnan(c.mean) else round((c.mean - low) / width, 4),
                "heldOut": self.held_out_text(c),
            }
            | ({} if c.errors is None else {"rmse": in_digits(c.errors.overall_rmse)})
            for c in self.contenders
        ]
        return {"rows": rows, "verdict": self.verdict, "how": self.how, "folds": len(self.ours.folds)}


@dataclass(frozen=True)
class CrossValidation:
    """What a search found for each p, with the other parameters as chosen.

    Parameters
    ----------
    ps, mean, std : sequences of float
        The exponents tried, in increasing order, and for each the mean score over the folds and its standard deviation.
    best_p, best_C : float
        The chosen values.
    n_splits : int
        Number of folds.
    measure : Measure
        What the scores are.
    best_s, best_capacity, best_epsilon : float or None
        The other chosen values; None if there was nothing to choose.
    n_rows : int, default=None
        Number of rows in the folds.
    kernel_spread, source_spread : mapping of str to float, default={}
        The standard deviation over the folds of the share of each kernel and source, at the chosen point.
    """

    ps: Sequence[float]
    mean: Sequence[float]
    std: Sequence[float]
    best_p: float
    best_C: float
    n_splits: int
    measure: Measure = ACCURACY
    best_s: float | None = None
    best_capacity: float | None = None
    best_epsilon: float | None = None
    n_rows: int | None = None
    kernel_spread: Mapping[str, float] = field(default_factory=dict, compare=False)
    source_spread: Mapping[str, float] = field(default_factory=dict, compare=False)

    @classmethod
    def from_search(cls, search: Any, measure: Measure = ACCURACY) -> CrossValidation:
        """The results of a fitted search, such as :class:`~paretomkl.ParetoMKLClassifierCV`.

        If it tried several ways to share, these are the results for tasks that share their kernel.
        """
        results = search.cv_results_
        best = search.best_params_
        if "share" in best:
            best = results["params"][search.best_indices_["kernel"]]
        others = [name for name in best if name != "p"]
        along = [all(params[name] == best[name] for name in others) for params in results["params"]]
        rows = np.flatnonzero(along)
        rows = rows[np.argsort(results["param_p"][rows], kind="stable")]
        ps, mean, std = (results[name][rows].tolist() for name in ("param_p", "mean_test_score", "std_test_score"))
        chosen = float(best["p"]), float(best["C"])
        others_chosen = {f"best_{name}": best.get(name) for name in ("s", "capacity", "epsilon")}
        spread: dict[str, Any] = {}
        if search.best_share_ == "kernel" and getattr(search, "kernel_shares_by_fold_", None) is not None:
            kernels = dict(zip(search.kernel_names_, search.kernel_shares_std_.tolist(), strict=True))
            spread = {"kernel_spread": kernels, "source_spread": getattr(search, "source_shares_std_", {})}
        others_chosen |= {"n_rows": search.n_search_rows_, **spread}
        return cls(ps, mean, std, *chosen, search.n_splits_, measure, **others_chosen)

    @property
    def best_score(self) -> float:
        """The mean score at the chosen point."""
        return self.mean[list(self.ps).index(self.best_p)]

    @property
    def standard_error(self) -> float:
        """Standard error of the best mean score."""
        return self.std[list(self.ps).index(self.best_p)] / math.sqrt(self.n_splits)

    @property
    def near(self) -> list[float]:
        """The exponents whose mean is within the standard error of the best."""
        least = self.best_score - self.standard_error - 1e-12
        return [p for p, mean in zip(self.ps, self.mean, strict=True) if mean >= least]


@dataclass(frozen=True)
class Sharing(PublicNames):
    """The scores of the ways to share on the same folds.

    Parameters
    ----------
    scores : mapping of "nothing", "kernel", "function", "everything" to pairs of float
        Mean score over the folds and its standard error, each way with its own best parameters.
    best : str
        The chosen way.
    n_splits, n_rows : int
        The number of folds, and of the rows in them.
    measure : Measure
        What the scores are.
    common : float, default=None
        Share of the common part in the functions, if "function" was chosen.
    """

    _internal = ("page_data",)

    scores: Mapping[Share, tuple[float, float]]
    best: Share
    n_splits: int
    n_rows: int
    measure: Measure = ACCURACY
    common: float | None = None

    @classmethod
    def from_search(cls, search: Any, measure: Measure = ACCURACY) -> Sharing | None:
        """The scores of a fitted search; None if it tried only one way."""
        if len(search.sharing_) < 2:
            return None
        common = getattr(search, "common_share_", None)
        return cls(search.sharing_, search.best_share_, search.n_splits_, search.n_search_rows_, measure, common)

    @property
    def in_words(self) -> str:
        """The result in one sentence."""
        return sharing_in_words(self.scores, self.best, self.common, self.measure.size)

    def text(self, way: Share) -> str:
        """Mean and standard error: "91.2 % ± 1.1"."""
        return with_error(self.measure, *self.scores[way], self.n_rows)

    def facts(self) -> dict[str, Any]:
        """Numbers by name, for JSON."""
        by_way = {
            way: {"mean": mean, "standard_error": None if math.isnan(error) else error}
            for way, (mean, error) in self.scores.items()
        }
        found = {"best": self.best, "common_share": self.common, "in_words": self.in_words}
        return {"folds": self.n_splits, "rows": self.n_rows, "scores": by_way, **found}

    def page_data(self) -> dict[str, Any]:
        """What the page shows: bars from below the lowest score to the highest, with their errors."""
        spans = [(mean, 0.0 if math.isnan(error) else error) for mean, error in self.scores.values()]
        top, low = max(mean + error for mean, error in spans), min(mean - error for mean, error in spans)
        start = low - (top - low) / 2  # bars from zero would hide the differences, which are small
        width = (top - start) or 1.0
        rows = [
            {
                "name": way,
                "called": CALLED[way],
                "text": self.text(way),
                "bar": round((mean - start) / width, 4),
                "error": round(error / width, 4),
                "best": way == self.best,
            }
            for way, (mean, error) in zip(self.scores, spans, strict=True)
        ]
        ends = {"start": self.measure.text(start), "end": self.measure.text(top)}
        return {"rows": rows, "words": self.in_words, "folds": self.n_splits, "rowsOfFolds": self.n_rows, **ends}


def with_error(measure: Measure, mean: float, error: float, n_rows: int) -> str:
    """A mean over folds and its standard error; for a share of (nearly) 0 or 1, the interval of ``n_rows`` rows.

    Folds without any error say nothing about how rare errors are.
    """
    if n_rows and measure.at_end(mean):
        return measure.with_interval(mean, *wilson(mean, n_rows))
    return measure.with_error(mean, error)


def _standard_error(values: Array) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
