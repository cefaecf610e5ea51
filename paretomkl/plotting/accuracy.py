"""Accuracy of the tasks along the path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._typing import AnyArray, Array
from .._validation import check_exponents
from ..path import PAPER_PS
from ..tasks import equal_labels, missing_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..path import ParetoPath

BATCH = 2000  # test samples at a time


class AccuracyDisplay:
    """Accuracy of each task against p, or its difference to that at one p, and the mean over the tasks in bold.

    Up to seven lines have a colour each, more are coloured by their score. Of more than twelve the three uppermost and
    the three lowermost are named.

    Parameters
    ----------
    ps : array-like of shape (n_points,)
        Exponents, in any order.
    scores : array-like of shape (n_points, n_lines)
        One column for each task (or setting).
    names : list of n_lines str
    mean : array-like of shape (n_points,), default=None
        The bold line.
    std : array-like of shape (n_points, n_lines), default=None
        Half the height of a band around each line; left out where differences are drawn.
    score_name : str, default="accuracy"

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : list of Line2D
    mean_line_ : Line2D or None
    bands_ : list of PolyCollection
    labels_ : list of Annotation
        The names beside the lines.
    colorbar_ : Colorbar or None

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl import pareto_path
    >>> from paretomkl.plotting import AccuracyDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> path = pareto_path(X[::2], y[::2])
    >>> display = AccuracyDisplay.from_path(path, X[::2], X[1::2], y[1::2], relative_to=1.0)
    >>> display.scores.shape
    (13, 3)
    """

    def __init__(
        self,
        *,
        ps: Any,
        scores: Any,
        names: Sequence[str],
        mean: Any = None,
        std: Any = None,
        score_name: str = "accuracy",
    ):
        self.ps = np.asarray(ps, dtype=float)
        self.scores = np.asarray(scores, dtype=float)
        self.names = [str(name) for name in names]
        self.mean = None if mean is None else np.asarray(mean, dtype=float)
        self.std = None if std is None else np.asarray(std, dtype=float)
        self.score_name = score_name

    # -------------------------------------------------------------------------------------------- computing
    @classmethod
    def from_scores(
        cls,
        ps: Any,
        scores: Any,
        task_names: Sequence[str] | None = None,
        *,
        score_name: str = "accuracy",
        relative_to: float | None = None,
        ax: Axes | None = None,
        line_kw: dict[str, Any] | None = None,
    ) -> AccuracyDisplay:
        """Draw scores that are known already.

        Parameters
        ----------
        ps : array-like of shape (n_points,)
            Exponents.
        scores : array-like of shape (n_points, n_tasks)
        task_names : list of n_tasks str, default=None
            None numbers them.
        score_name : str, default="accuracy"
            What the vertical axis is called.
        relative_to, ax, line_kw
            See ``plot``.

        Returns
        -------
        display : AccuracyDisplay
        """
        values, exponents = np.asarray(scores, dtype=float), np.asarray(ps, dtype=float)
        if values.ndim != 2 or exponents.ndim != 1 or len(values) != len(exponents) or values.size == 0:
            raise ValueError(
                f"scores must have one row for each of the {exponents.size} exponents and one column per task, got "
                f"shape {values.shape}."
            )
        names = [f"task {t}" for t in range(values.shape[1])] if task_names is None else list(task_names)
        if len(names) != values.shape[1]:
            raise ValueError(f"task_names has {len(names)} entries, but scores has {values.shape[1]} columns.")
        mean = np.nanmean(values, axis=1) if values.shape[1] > 1 else None
        display = cls(ps=exponents, scores=values, names=names, mean=mean, score_name=score_name)
        return display.plot(ax, relative_to=relative_to, line_kw=line_kw)

    @classmethod
    def from_path(
        cls,
        path: ParetoPath,
        X_train: Any,
        X_test: Any,
        y_test: Any,
        *,
        tasks_test: Any = None,
        relative_to: float | None = None,
        ax: Axes | None = None,
        line_kw: dict[str, Any] | None = None,
    ) -> AccuracyDisplay:
        """Draw the accuracies of the classifiers that a path holds.

        Parameters
        ----------
        path : ParetoPath, or a fitted search, which has one
        X_train : array-like of shape (n_train, n_features)
            The samples that the path was traced on; not used with precomputed kernels.
        X_test : array-like of shape (n_test, n_features)
            With precomputed kernels of shape (n_test, n_train, n_kernels).
        y_test : array-like of shape (n_test,) or (n_test, n_tasks)
            Labels in the form that ``pareto_path`` was given. A task that is a pair of classes is judged by the samples
            of these classes.
        tasks_test : array-like of shape (n_test,), default=None
            The task of each sample, if ``pareto_path`` was given ``tasks``.
        relative_to, ax, line_kw
            See ``plot``.

        Returns
        -------
        display : AccuracyDisplay
        """
        from . import _style  # asks for matplotlib before any work

        path = _style.path_of(path)
        _style.baseline(path.ps, relative_to)
        labels = _test_labels(X_test, y_test)
        asked = _asked(path, labels, tasks_test)
        classes = [task.classes for task in path.tasks]
        scores = [
            accuracies(np.where(asked, decisions, np.nan), labels, classes, path.task_names)
            for decisions in _decisions(path, X_train, X_test)
        ]
        return cls.from_scores(path.ps, scores, path.task_names, relative_to=relative_to, ax=ax, line_kw=line_kw)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X_train: Any,
        y_train: Any,
        X_test: Any,
        y_test: Any,
        *,
        ps: Sequence[float] = PAPER_PS,
        tasks_train: Any = None,
        tasks_test: Any = None,
        relative_to: float | None = None,
        ax: Axes | None = None,
        line_kw: dict[str, Any] | None = None,
    ) -> AccuracyDisplay:
        """Fit a clone for each p and draw its accuracies on test samples.

        Parameters
        ----------
        estimator : multi-task classifier with a parameter p, or a Pipeline that ends in one
            Not changed. It may have its tasks from classes, ``task_column``, ``tasks=`` or a matrix y. A task that is a
            pair of classes is judged by the samples of these classes.
        X_train, y_train, X_test, y_test
            What ``fit`` and ``predict`` of the estimator take.
        ps : sequence of float, default=PAPER_PS
        tasks_train, tasks_test : array-like of shape (n_samples,), default=None
            For ``tasks=``.
        relative_to, ax, line_kw
            See ``plot``.

        Returns
        -------
        display : AccuracyDisplay
        """
        from . import _style  # asks for matplotlib before any work

        exponents = check_exponents(ps)
        _style.baseline(np.array(exponents), relative_to)
        labels = _test_labels(X_test, y_test)
        steps = getattr(estimator, "steps", None)
        prefix = "" if steps is None else f"{steps[-1][0]}__"
        final = estimator if steps is None else steps[-1][1]
        if not hasattr(final, "_pair_decisions") or f"{prefix}p" not in estimator.get_params():
            raise ValueError(
                "from_estimator needs a multi-task classifier with a parameter p, or a Pipeline that ends in one; got "
                f"{type(final).__name__}."
            )
        from sklearn.base import clone

        given = {} if tasks_train is None else {f"{prefix}tasks": tasks_train}
        scores = []
        for p in exponents:
            fitted = clone(estimator).set_params(**{f"{prefix}p": p}).fit(X_train, y_train, **given)
            model = fitted if steps is None else fitted[-1]
            data = X_test if steps is None or len(steps) == 1 else fitted[:-1].transform(X_test)
            decisions = model._pair_decisions(model._read(data, tasks_test, reset=False))
            scores.append(accuracies(decisions, labels, model._classes_of_task, model.task_names_))
        return cls.from_scores(exponents, scores, model.task_names_, relative_to=relative_to, ax=ax, line_kw=line_kw)

    @classmethod
    def from_cv_results(
        cls,
        search: Any,
        *,
        by: str | None = None,
        relative_to: float | None = None,
        ax: Axes | None = None,
        line_kw: dict[str, Any] | None = None,
    ) -> AccuracyDisplay:
        """Draw mean cross-validated scores against p, with a band of one standard deviation between the folds.

        Parameters
        ----------
        search : fitted ParetoMKLClassifierCV or GridSearchCV, or its ``cv_results_``
            With p among the parameters searched.
        by : str, default=None
            A parameter that has a line for each of its values, such as "C". None draws one line. At each point it is
            the best score over all parameters that are not shown.
        relative_to, ax, line_kw
            See ``plot``.

        Returns
        -------
        display : AccuracyDisplay
        """
        results = search if isinstance(search, Mapping) else getattr(search, "cv_results_", None)
        if results is None:
            raise ValueError(f"from_cv_results needs a fitted search with cv_results_, got {type(search).__name__}.")
        exponents = np.array([float(p) for p in _parameter(results, "p")])
        series = [None] * len(exponents) if by is None else list(_parameter(results, by))
        score = np.asarray(results["mean_test_score"], dtype=float)
        spread = np.asarray(results["std_test_score"], dtype=float)
        worked = [k for k in np.argsort(score) if np.isfinite(score[k])]  # the best last
        if not worked:
            raise ValueError("No setting of the search has a score: all its fits failed.")
        ps = np.unique(exponents[worked])
        groups = [group for group in dict.fromkeys(series) if any(series[k] == group for k in worked)]
        scores, std = np.full((2, len(ps), len(groups)), np.nan)
        for k in worked:
            cell = np.searchsorted(ps, exponents[k]), groups.index(series[k])
            scores[cell], std[cell] = score[k], spread[k]
        names = [_best_of(results) if by is None else f"{by} = {_brief(group)}" for group in groups]
        display = cls(ps=ps, scores=scores, names=names, std=std, score_name="cross-validated score")
        return display.plot(ax, relative_to=relative_to, line_kw=line_kw)

    # -------------------------------------------------------------------------------------------- drawing
    def plot(
        self,
        ax: Axes | None = None,
        *,
        tasks: Any = None,
        relative_to: float | None = None,
        line_kw: dict[str, Any] | None = None,
    ) -> AccuracyDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure. Names stand to the right of the axes: a figure of your own has room
            for them with ``layout="constrained"``.
        tasks : sequence of indices or names, default=None
            The lines to draw; None is all. The mean is that of all tasks in any case.
        relative_to : float, default=None
            Draw the difference to the score at this p; the score there stands in brackets behind the names. 1.0 gives
            the "difference in classification rate" of the paper.
        line_kw : dict, default=None
            Given to ``ax.plot`` for the lines of the tasks.

        Returns
        -------
        display : AccuracyDisplay
        """
        from . import _style

        shown = _style.indices(tasks, self.names, "task")
        start = _style.baseline(self.ps, relative_to)
        ax = _style.axes_or_new(ax)
        values, names = self.scores[:, shown], [self.names[t] for t in shown]
        order, order_name = np.nanmean(values, axis=0), f"mean {self.score_name} along the path"
        mean, mean_name, label = self.mean, "mean", self.score_name
        if start is not None:
            at = _style.at_exponent(relative_to)
            order, order_name = values[start], f"{self.score_name} at {at}"
            names = [f"{name} ({score:.3f})" for name, score in zip(names, order, strict=True)]
            values, label = values - order, f"{self.score_name}, difference to {at}"
            if mean is not None:
                mean, mean_name = mean - mean[start], f"mean ({mean[start]:.3f})"
            ax.axhline(0.0, **_style.GUIDE)
        drawn = _style.draw_lines(
            ax,
            self.ps,
            values,
            names,
            bold=mean,
            bold_name=mean_name,
            order=order,
            order_name=order_name,
            std=None if self.std is None or start is not None else self.std[:, shown],
            least_range=0.01,
            line_kw=line_kw,
        )
        ax.set_ylabel(label)
        self.lines_, self.mean_line_, self.labels_ = drawn.lines, drawn.bold, drawn.labels
        self.bands_, self.colorbar_ = drawn.bands, drawn.colorbar
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _test_labels(X: Any, y: Any) -> AnyArray:
    labels = np.asarray(y)
    if labels.ndim not in (1, 2) or len(labels) != np.shape(X)[0]:
        raise ValueError(
            f"X_test and y_test must have one row per sample, got shapes {np.shape(X)} and {labels.shape}."
        )
    return labels


def accuracies(decisions: Array, y: AnyArray, classes: Sequence[tuple[Any, Any]], names: Sequence[str]) -> Array:
    """Share of samples on the right side of each task, (n_tasks,).

    decisions (n_samples, n_tasks): f_t(x), NaN where a task is not asked; y (n_samples,) or (n_samples, n_tasks);
    classes: the labels of −1 and +1 of each task.
    """
    if y.ndim == 2 and y.shape[1] != len(names):
        raise ValueError(f"y_test must have a column for each of the {len(names)} tasks, got {y.shape[1]}.")
    scores = np.empty(len(names))
    for t, (negative, positive) in enumerate(classes):
        labels = y if y.ndim == 1 else y[:, t]
        is_positive = equal_labels(labels, positive)
        judged = ~np.isnan(decisions[:, t]) & ~missing_labels(labels) & (is_positive | equal_labels(labels, negative))
        if not judged.any():
            raise ValueError(f"Task {names[t]!r} has no sample in the test data.")
        scores[t] = np.mean((decisions[judged, t] > 0) == is_positive[judged])
    return scores


def _decisions(path: ParetoPath, X_train: Any, X_test: Any) -> list[Array]:
    """f_t(x) of every task for every test sample, (n_test, n_tasks), for each point of the path."""
    bank = path.bank
    test = np.asarray(X_test, dtype=float)
    train = np.asarray(X_train, dtype=float) if not bank.precomputed else np.empty((test.shape[1], 0))
    n_used = 1 + max(int(task.rows[-1]) for task in path.tasks)
    if len(train) < n_used:
        raise ValueError(
            f"X_train must hold the samples that the path was traced on, at least {n_used}; got {len(train)}."
        )
    right = bank.side_of_columns(len(train)) if bank.precomputed else bank.side(train)
    ends = np.cumsum([len(task.rows) for task in path.tasks])
    out = [np.empty((len(test), len(path.tasks))) for _ in path.solutions]
    coefficients = np.zeros((len(path.tasks), len(train)))
    for first in range(0, len(test), BATCH):
        left = bank.side(test[first : first + BATCH])
        for decisions, solution in zip(out, path.solutions, strict=True):
            for row, task, dual in zip(coefficients, path.tasks, np.split(solution.sweep.dual, ends[:-1]), strict=True):
                row[task.rows] = dual
            kernel = bank.cross(left, right, solution.theta)
            decisions[first : first + BATCH] = kernel @ coefficients.T + solution.sweep.intercepts
    return out


def _asked(path: ParetoPath, y: AnyArray, tasks: Any) -> AnyArray:
    """Which samples belong to which task by what ``tasks`` says, (n_test, n_tasks)."""
    everyone = np.ones((len(y), len(path.tasks)), dtype=bool)
    if y.ndim == 2 or all(task.source is None for task in path.tasks):
        if tasks is not None:
            raise ValueError("The path was traced without tasks; leave tasks_test out here too.")
        return everyone
    if tasks is None:
        raise ValueError("The path was traced with tasks; say the task of each test sample with tasks_test.")
    sources = np.asarray(tasks)
    if sources.shape != y.shape:
        raise ValueError(f"tasks_test must have one entry per sample ({len(y)}), got shape {sources.shape}.")
    return np.stack([equal_labels(sources, task.source) for task in path.tasks], axis=1)


def _parameter(results: Mapping[str, Any], name: str) -> Any:
    """The values of a parameter, of the estimator itself or of a step of a pipeline."""
    searched = _searched(results)
    found = [key for key in searched if key == name or key.endswith(f"__{name}")]
    if len(found) != 1:
        raise ValueError(f"cv_results_ must have one parameter {name!r}; searched were {searched}.")
    return results[f"param_{found[0]}"]


def _searched(results: Mapping[str, Any]) -> list[str]:
    return [key.removeprefix("param_") for key in results if key.startswith("param_")]


def _best_of(results: Mapping[str, Any]) -> str:
    others = [name.split("__")[-1] for name in _searched(results)]
    return ", ".join(f"best {name}" for name in others if name != "p") or "mean of the folds"


def _brief(value: Any) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)
