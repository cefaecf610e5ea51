"""From data to the page: hold some samples out, choose C, trace a dense path, judge every model of it."""

from __future__ import annotations

import html
import numbers
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from .._files import check_writable, write_whole
from .._model import decide_all, share
from .._page.page import TITLE, build_page, dense_ps
from .._page.words import CrossValidation
from .._refit import refit_code
from .._typing import Array, IntArray
from .._validation import check_count, check_number
from ..path import PAPER_PS, ParetoPath, pareto_path

# scikit-learn, which takes a second to import, and all that needs it are imported in the functions

MOST_PARTS = 10  # the held-out share is a fraction with at most this denominator
LAPS = ("cross-validation", "path", "accuracy", "page")
DECISION_BYTES = 256 * 2**20  # of the models judged at a time


@dataclass(frozen=True)
class TradeOff:
    """What :func:`trade_off_page` found.

    Attributes
    ----------
    path : ParetoPath
        The dense path on the training part.
    accuracy : array of shape (n_points, n_tasks)
        Share of the held-out samples on the right side of each task; of a pair of classes, those of these classes.
    accuracy_overall : array of shape (n_points,)
        What ``score`` says of the held-out samples: plain accuracy of the votes where classes are the tasks, else the
        mean over the tasks.
    n_held_out : array of shape (n_tasks,)
    train, test : arrays of int
        The samples of either part.
    C, cv : float, and CrossValidation or None
    seconds : dict
        Where the time went: ``"cross-validation"``, ``"path"``, ``"accuracy"`` and ``"page"``.
    html, file : str, and pathlib.Path or None
        The page, and where it was written.
    """

    path: ParetoPath
    accuracy: Array
    accuracy_overall: Array
    n_held_out: IntArray
    train: IntArray
    test: IntArray
    C: float
    cv: CrossValidation | None
    seconds: dict[str, float]
    html: str
    file: Path | None

    def __repr__(self) -> str:
        size = len(self.html.encode()) / 1e6
        return f"TradeOff({self.path!r}, C={self.C:g}, {len(self.test)} held-out samples, page of {size:.2f} MB)"

    def _repr_html_(self) -> str:
        """The page in a frame of its own."""
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" sandbox="allow-scripts" title="{html.escape(TITLE)}" '
            'style="width:100%;height:820px;border:1px solid #8884"></iframe>'
        )


def trade_off_page(
    X: Any,
    y: Any,
    *,
    tasks: Any = None,
    task_column: Any = None,
    kernels: Any = "default",
    s: float = 1.1,
    C: float | None = None,
    Cs: Sequence[float] = (0.1, 1.0, 10.0, 100.0),
    task_weight: Any = None,
    class_weight: Any = None,
    test_size: float = 0.25,
    cv: Any = 5,
    random_state: Any = 0,
    n_points: int = 121,
    tol: float = 1e-5,
    file: str | os.PathLike[str] | None = None,
    title: str = TITLE,
    loading: str = "",
    refit_note: str | None = None,
    n_jobs: int | None = None,
    verbose: int | None = None,
) -> TradeOff:
    """Show what p does to these tasks: one HTML file with a slider over a dense, certified path.

    Some samples are held out, by task and label alike. On the others cross-validation chooses C (and says which p it
    would pick), a path of ``n_points`` exponents is traced at that C, and every model of it is judged on the held-out
    samples.

    Parameters
    ----------
    X, y, tasks, task_column, kernels, s, task_weight, class_weight
        As in :class:`~paretomkl.ParetoMKLClassifier` and its ``fit``.
    C : float, default=None
        Cost of a margin violation; None leaves it to cross-validation.
    Cs : sequence of float
        To choose from.
    test_size : float, default=0.25
        Share of the samples to hold out; taken as a fraction of at most ten parts.
    cv : int, splitter or None, default=5
        Folds of the training part; None does without cross-validation, and needs C.
    random_state : int, RandomState or None, default=0
        Seed of the split.
    n_points : int, default=121
        Exponents, see :func:`dense_ps`.
    tol : float, default=1e-5
        Relative gap at every exponent: finer than to fit one model, so that the curves are smooth.
    file : path, default=None
        Where to write the page; it appears whole or not at all.
    title : str
    loading : str
        Lines of Python that make X, y and tasks, shown before the line that fits a model again.
    refit_note : str, default=None
        Shown below that line, see :func:`build_page`; ``{C}`` is C. None says how the samples were split.
    n_jobs : int, default=None
        Folds at a time, and threads of the path; -1 is all cores.
    verbose : int, default=None
        0 is silent, 1 shows progress; None shows progress on a terminal once two seconds have passed.

    Returns
    -------
    result : TradeOff

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl.report import trade_off_page
    >>> result = trade_off_page(*load_iris(return_X_y=True), C=10.0, cv=None, n_points=20)
    >>> result.accuracy.shape, len(result.test)
    ((20, 3), 38)
    """
    ps = dense_ps(n_points)
    _check(C, cv, n_points, file)
    train, test = held_out_split(
        X, y, tasks=tasks, task_column=task_column, test_size=test_size, random_state=random_state
    )
    fit_on, judge_on = (_part(X, y, tasks, rows, train, kernels) for rows in (train, test))
    weights = {"task_weight": task_weight, "class_weight": class_weight}
    given: dict[str, Any] = {"s": s, "kernels": kernels, "task_column": task_column, **weights}
    running: dict[str, Any] = {"n_jobs": n_jobs, "verbose": verbose}
    times = [perf_counter()]
    found = None if cv is None else _cross_validate(fit_on, Cs if C is None else [C], cv, given | running)
    C = C if found is None else found.best_C
    assert C is not None
    times.append(perf_counter())
    path = pareto_path(**fit_on, ps=ps, C=C, tol=tol, **given, **running)
    times.append(perf_counter())
    accuracy, overall, n_held_out = _judge(path, **judge_on)
    times.append(perf_counter())
    path = replace(path, refit=refit_code(C=C, tol=tol, tasks=tasks is not None, loading=loading, **given))
    if refit_note is None:
        refit_note = _how_to_split(tasks is not None, task_column, test_size, random_state)
    page = build_page(
        path,
        accuracy=accuracy,
        accuracy_overall=overall,
        n_held_out=n_held_out,
        cv=found,
        title=title,
        facts=[f"s = {s:g}, C = {C:g}", f"learned from {len(train)} samples, judged on {len(test)} others"],
        refit_note=refit_note.replace("{C}", repr(float(C))),
    )
    written = None if file is None else write_whole(file, page)
    times.append(perf_counter())
    seconds = dict(zip(LAPS, np.diff(times).tolist(), strict=True))
    return TradeOff(path, accuracy, overall, n_held_out, train, test, float(C), found, seconds, page, written)


def _check(C: float | None, cv: Any, n_points: int, file: str | os.PathLike[str] | None) -> None:
    if C is not None:
        check_number("C", C, lambda v: 0 < v < np.inf, "greater than 0")
    elif cv is None:
        raise ValueError("cv=None leaves nothing to choose C by; give C.")
    check_count("n_points", n_points)
    if file is not None:
        check_writable(file)


def _part(X: Any, y: Any, tasks: Any, rows: IntArray, train: IntArray, kernels: Any) -> dict[str, Any]:
    """Some samples with their labels and tasks."""
    from .._reading import take_rows

    return {"X": take_rows(X, rows, train, kernels), "y": take_rows(y, rows), "tasks": take_rows(tasks, rows)}


def _cross_validate(part: dict[str, Any], Cs: Sequence[float], cv: Any, given: dict[str, Any]) -> CrossValidation:
    from ..search import ParetoMKLClassifierCV

    central = sorted(PAPER_PS, key=lambda p: abs(np.log(p)))  # among equals the nearest to the average is chosen
    return CrossValidation.from_search(ParetoMKLClassifierCV(central, Cs, cv=cv, **given).fit(**part))


def held_out_split(
    X: Any, y: Any, *, tasks: Any = None, task_column: Any = None, test_size: float = 0.25, random_state: Any = 0
) -> tuple[IntArray, IntArray]:
    """Training and held-out samples as :func:`trade_off_page` takes them, by task and label alike; same parameters.

    Returns
    -------
    train, test : arrays of int
        Positions of the samples, rising.

    Examples
    --------
    >>> import numpy as np
    >>> train, test = held_out_split(np.zeros((8, 1)), ["no", "yes"] * 4)
    >>> len(train), len(test)
    (6, 2)
    """
    from .._splits import MultiTaskStratifiedKFold, make_splits
    from .._tasks import task_column_of

    check_number("test_size", test_size, lambda v: 0 < v < 1, "between 0 and 1")
    share = Fraction(float(test_size)).limit_denominator(MOST_PARTS)
    if not 0 < share < 1:
        raise ValueError(f"test_size must be from 0.1 to 0.9, got {test_size}.")
    if task_column is not None:
        tasks = task_column_of(X, task_column)
    folds = MultiTaskStratifiedKFold(share.denominator, shuffle=True, random_state=random_state)
    with warnings.catch_warnings():
        # a label with fewer samples than parts is missing from some of them, which one split does not mind
        warnings.filterwarnings("ignore", message=".*fewer than n_splits", category=UserWarning)
        parts = make_splits(folds, X, y, tasks)
    test = np.sort(np.concatenate([held_out for _, held_out in parts[: share.numerator]]))
    return np.setdiff1d(np.concatenate(parts[0]), test), test


def _judge(path: ParetoPath, X: Any, y: Any, tasks: Any) -> tuple[Array, Array, IntArray]:
    """Accuracy of every task and of all together for every model, and the number of samples of each task."""
    from .._reading import read_samples

    samples = read_samples(path.reader, X, tasks=tasks)
    models = {id(model): model for model in path.models}  # neighbours on the path may be the same
    labelling = path.models[0].tasks
    step = max(1, int(DECISION_BYTES // (8 * len(samples) * labelling.n_tasks)))
    judged: dict[int, tuple[Array, float]] = {}
    for first in range(0, len(models), step):
        some = list(models.values())[first : first + step]
        for model, decisions in zip(some, decide_all(some, samples), strict=True):
            right, belongs = labelling.right(decisions, y)
            judged[id(model)] = share(right, belongs), labelling.score(decisions, samples, y)
    accuracy = np.array([judged[id(model)][0] for model in path.models])
    overall = np.array([judged[id(model)][1] for model in path.models])
    return accuracy, overall, belongs.sum(axis=0)


def _how_to_split(tasks: bool, task_column: Any, test_size: float, random_state: Any) -> str:
    given = ["X", "y"] + ["tasks=tasks"] * tasks + [f"task_column={task_column!r}"] * (task_column is not None)
    seed = random_state if isinstance(random_state, numbers.Integral) or random_state is None else "random_state"
    given += [f"test_size={test_size!r}", f"random_state={seed}"]
    return (
        "This learns from all samples, as for use. The models of this page have seen the training part only: "
        f"`train, test = paretomkl.report.held_out_split({', '.join(given)})`."
    )
