"""Accuracy, or R², of the tasks along the path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._fitting.models import decide_all
from .._learn.path import ParetoPath
from .._tools.typing import AnyArray
from .._tools.wording import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike


class AccuracyDisplay:
    """Accuracy of each task against p, or its difference from the accuracy at one p, with the mean in bold.

    For regression tasks the score is R².

    Up to seven lines have their own colours; more lines are coloured by their score. If there are more than twelve
    lines, only the three at the top and the three at the bottom have a name.

    Parameters
    ----------
    ps : array-like of shape (n_points,)
        Exponents, in any order.
    scores : array-like of shape (n_points, n_lines)
        One column for each task (or setting).
    names : list of n_lines str
        Names shown next to the lines.
    mean : array-like of shape (n_points,), default=None
        The bold line.
    std : array-like of shape (n_points, n_lines), default=None
        Half the height of a band around each line, NaN for none; plots of differences have no bands.
    score_name : str, default="accuracy"
        Label of the vertical axis.
    mean_name : str, default="mean"
        Name shown next to the bold line.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : list of Line2D
    mean_line_ : Line2D or None
    bands_ : list of PolyCollection
    labels_ : list of Annotation
        The names next to the lines.
    colorbar_ : Colorbar or None

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl import pareto_path, plotting
    >>> X, y = load_iris(return_X_y=True)
    >>> path = pareto_path(X[::2], y[::2])
    >>> display = plotting.AccuracyDisplay.from_path(path, X[1::2], y[1::2], relative_to=1.0)
    >>> display.scores.shape
    (13, 3)
    """

    def __init__(
        self,
        *,
        ps: ArrayLike,
        scores: ArrayLike,
        names: Sequence[str],
        mean: ArrayLike | None = None,
        std: ArrayLike | None = None,
        score_name: str = "accuracy",
        mean_name: str = "mean",
    ):
        self.ps = np.asarray(ps, dtype=float)
        self.scores = np.asarray(scores, dtype=float)
        self.names = [str(name) for name in names]
        if self.scores.shape != (len(self.ps), len(self.names)) or self.scores.size == 0:
            raise ValueError(
                f"scores must have one row for each of the {len(self.ps)} exponents and one column for each of the "
                f"{len(self.names)} names, got shape {self.scores.shape}."
            )
        self.mean = None if mean is None else np.asarray(mean, dtype=float)
        self.std = None if std is None else np.asarray(std, dtype=float)
        self.score_name = score_name
        self.mean_name = mean_name

    # -------------------------------------------------------------------------------------------- computing
    @classmethod
    def from_path(
        cls,
        path: ParetoPath,
        X_test: Any,
        y_test: Any,
        *,
        tasks_test: Any = None,
        relative_to: float | None = None,
        ax: Axes | None = None,
    ) -> AccuracyDisplay:
        """Draw the accuracies of the classifiers on a path, or R² of the regressors, and in bold that of all tasks.

        For accuracies this is their mean; for R², the share of the variance within tasks that is explained.

        Parameters
        ----------
        path : ParetoPath, or a fitted search, which has one
        X_test : array-like of shape (n_test, n_features)
            Test samples; with precomputed kernels, of shape (n_test, n_train, n_kernels).
        y_test : array-like of shape (n_test,) or (n_test, n_tasks)
            Labels or numbers in the same form as for ``pareto_path``. If a task is a pair of classes, only samples of
            these classes count.
        tasks_test : array-like of shape (n_test,), default=None
            The task of each sample, if you gave ``tasks`` to ``pareto_path``.
        relative_to, ax
            As in ``plot``.
        """
        from .._data.reading import read_samples
        from .._select.scores import make_judge
        from . import _style  # asks for matplotlib before any work

        path = _style.path_of(path)
        _style.baseline(path.ps, relative_to)
        reads = path.reader.reading.machine.reads
        if reads == "nothing":
            raise ValueError("A path of outlier detectors has no score to draw, because there are no labels.")
        samples = read_samples(path.reader, X_test, tasks=tasks_test)
        tasks: Any = path.models[0].tasks
        judge, found = make_judge(regression=reads == "numbers"), decide_all(path.models, samples)
        judged = [judge.judge(tasks, decided.matrix(tasks.n_tasks), samples, y_test) for decided in found]
        scores = np.array([each.scores for each in judged])
        label, needed = ("R²", 2) if reads == "numbers" else ("accuracy", 1)
        for name, n in zip(path.task_names, judged[0].counts.tolist(), strict=True):
            if n < needed:
                few = counted(n, "sample")
                raise ValueError(f"Task {name!r} has {few} in the test data; {label} needs {needed} or more.")
        mean, mean_name = None, "mean"
        if len(path.task_names) > 1:
            mean = scores.mean(axis=1)
            if reads == "numbers":  # the variance within all tasks, which short tasks cannot spoil
                mean, mean_name = np.array([each.overall.score for each in judged]), "all tasks"
        display = cls(
            ps=path.ps, scores=scores, names=path.task_names, mean=mean, score_name=label, mean_name=mean_name
        )
        return display.plot(ax, relative_to=relative_to)

    @classmethod
    def from_cv_results(
        cls,
        search: object,
        *,
        by: str | None = None,
        relative_to: float | None = None,
        ax: Axes | None = None,
    ) -> AccuracyDisplay:
        """Draw mean cross-validated scores against p, with a band of one standard error around the best line.

        The standard error is that of a mean over the folds. A point whose score lies within the band at its peak is as
        good as the best one, as far as the folds can tell.

        Parameters
        ----------
        search : fitted ParetoMKLClassifierCV, ParetoMKLRegressorCV or GridSearchCV, or its ``cv_results_``
            With p among the parameters searched.
        by : str, default=None
            A parameter with one line for each of its values, such as "C". None draws one line. Each point is the best
            score over all parameters that are not shown; if tasks share in several ways, of those that share a kernel.
        relative_to, ax
            See ``plot``.
        """
        results = search if isinstance(search, Mapping) else getattr(search, "cv_results_", None)
        if results is None:
            raise ValueError(f"from_cv_results needs a fitted search with cv_results_, got {type(search).__name__}.")
        exponents = np.array([float(p) for p in _parameter(results, "p")])
        series = [None] * len(exponents) if by is None else list(_parameter(results, by))
        score = np.asarray(results["mean_test_score"], dtype=float)
        n_folds = sum(key.startswith("split") and key.endswith("_test_score") for key in results)
        error = np.asarray(results["std_test_score"], dtype=float) / np.sqrt(max(n_folds - 1, 1))
        worked = [k for k in np.argsort(score) if np.isfinite(score[k])]  # best last, so that it overwrites the others
        ways = results.get("param_share", ["kernel"] * len(score))
        if by != "share" and "kernel" in ways:  # p has no effect on the other ways
            worked = [k for k in worked if ways[k] == "kernel"]
        if not worked:
            raise ValueError("No setting of the search has a score: all its fits failed.")
        ps = np.unique(exponents[worked])
        groups = [group for group in dict.fromkeys(series) if any(series[k] == group for k in worked)]
        scores, std = np.full((2, len(ps), len(groups)), np.nan)
        for k in worked:
            cell = np.searchsorted(ps, exponents[k]), groups.index(series[k])
            scores[cell], std[cell] = score[k], error[k]
        best = cell[1]  # of all lines; bands around the others would hide each other
        std[:, np.arange(len(groups)) != best] = np.nan
        names = [_best_of(results) if by is None else f"{by} = {_brief(group)}" for group in groups]
        display = cls(ps=ps, scores=scores, names=names, std=std, score_name="cross-validated score")
        return display.plot(ax, relative_to=relative_to)

    # -------------------------------------------------------------------------------------------- drawing
    def plot(
        self,
        ax: Axes | None = None,
        *,
        tasks: Sequence[int | str] | None = None,
        relative_to: float | None = None,
    ) -> AccuracyDisplay:
        """Draw the lines.

        Parameters
        ----------
        ax, tasks
            As in :meth:`ObjectivesDisplay.plot`.
        relative_to : float, default=None
            Draw the difference from the score at this p; the names show the score there in brackets. 1.0 gives the
            "difference in classification rate" of the paper.
        """
        from . import _style

        shown = _style.indices(tasks, self.names, "task")
        start = _style.baseline(self.ps, relative_to)
        ax = _style.axes_or_new(ax)
        values, names = self.scores[:, shown], [self.names[t] for t in shown]
        order, order_name = np.nanmean(values, axis=0), f"mean {self.score_name} along the path"
        mean, mean_name, label = self.mean, self.mean_name, self.score_name
        if start is not None:
            at = _style.at_exponent(relative_to)
            order, order_name = values[start], f"{self.score_name} at {at}"
            names = [f"{name} ({score:.3f})" for name, score in zip(names, order, strict=True)]
            values, label = values - order, f"{self.score_name}, difference from {at}"
            if mean is not None:
                mean, mean_name = mean - mean[start], f"{mean_name} ({mean[start]:.3f})"
            ax.axhline(0.0, **_style.GUIDE)
        bold = None if mean is None else (mean, mean_name)
        std = None if self.std is None or start is not None else self.std[:, shown]
        drawn = _style.draw_lines(ax, self.ps, values, names, bold, (order, order_name), std, least_range=0.01)
        ax.set_ylabel(label)
        self.lines_, self.mean_line_, self.labels_ = drawn.lines, drawn.bold, drawn.labels
        self.bands_, self.colorbar_ = drawn.bands, drawn.colorbar
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _parameter(results: Mapping[str, Any], name: str) -> AnyArray:
    """The values of a parameter of the estimator or of a pipeline step."""
    searched = _searched(results)
    found = [key for key in searched if key == name or key.endswith(f"__{name}")]
    if len(found) != 1:
        raise ValueError(f"cv_results_ must have one parameter {name!r}; the search has {searched}.")
    return results[f"param_{found[0]}"]


def _searched(results: Mapping[str, Any]) -> list[str]:
    return [key.removeprefix("param_") for key in results if key.startswith("param_")]


def _best_of(results: Mapping[str, Any]) -> str:
    others = [name.split("__")[-1] for name in _searched(results)]
    return ", ".join(f"best {name}" for name in others if name != "p") or "mean of the folds"


def _brief(value: object) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)
