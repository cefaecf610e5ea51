"""From data to the page: hold out samples, choose C, s and κ, trace a dense path, and score every model on it."""

from __future__ import annotations

import html
import numbers
import os
import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._data.numbers import Targets
from .._data.together import Share, check_share
from .._fitting.models import decide_all
from .._learn.path import PAPER_PS, ParetoPath, pareto_path
from .._select.results import Comparison, CrossValidation, Sharing
from .._show.code import path_refit_code
from .._show.confusion import Confusion
from .._show.numbers import Predictions
from .._show.page import TITLE, build_page, dense_ps
from .._show.words import parameters
from .._tools.checks import check_count, check_number, shown
from .._tools.files import check_writable, write_whole
from .._tools.shares import SHARES
from .._tools.typing import Array, IntArray, TaskScale
from .._tools.wording import Measure
from ..exceptions import RareLabelWarning
from ..kernels._kernels import as_bank
from ..machines import MACHINES
from ..solvers import CutPool
from ._rows import draw_rows, of_known_tasks

if TYPE_CHECKING:
    from .._select.scores import Judge

# functions import scikit-learn and what needs it themselves, since importing it takes a second

MOST_PARTS = 10  # the held-out share is a fraction with at most this denominator
LAPS = ("cross-validation", "path", "scores", "rivals", "page")
DECISION_BYTES = 256 * 2**20  # limit on the decisions in memory, which sets how many models are judged at a time
DEFAULT_NORM = 1.1  # s if nothing chooses it, as in pareto_path
EPSILON = 0.1  # ε if nothing chooses it
ROUGH = 1e-3  # from this tol on, neighbouring points of the path may share a model
CLASSIFYING, PREDICTING = ("svc", "ls-svc"), ("ridge", "svr")  # machines


@dataclass(frozen=True)
class TradeOff:
    """What :func:`trade_off_page` found.

    Attributes
    ----------
    path : ParetoPath
        The dense path on the training part.
    scores : array of shape (n_points, n_tasks)
        Score on the held-out samples of each task; NaN where undefined. If a task is a pair of classes, only samples of
        these classes count. Accuracy, or R² for regression, unless ``scoring`` was given.
    scores_overall : array of shape (n_points,)
        Score of all tasks together: of the votes if the tasks are pairs of classes, else the mean over the tasks.
    measure : Measure
        What the scores are.
    n_held_out : array of shape (n_tasks,)
    train, test : arrays of int
        The samples that the models learned from, and the held-out ones.
    C, s, capacity, epsilon : floats
        Parameters of the path; capacity is None if kernels do not pay for theirs, epsilon if the machine has none.
    cv : CrossValidation or None
    comparison : Comparison or None
        The scores of simpler models.
    sharing : Sharing or None
        The scores of the ways to share; None if they were not compared.
    seconds : dict
        Where the time went: ``"cross-validation"``, ``"path"``, ``"scores"``, ``"rivals"`` and ``"page"``.
    html, file : str, and pathlib.Path or None
        The page, and the file it was written to.
    predictions : Predictions or None
        Predicted and true numbers of held-out samples; None for classification.
    confusion : Confusion or None
        Which classes the models confuse; None for regression.
    errors, errors_overall : arrays of the shapes of ``scores`` and ``scores_overall``
        Standard errors over the held-out samples; NaN for scores without a formula for it.
    """

    path: ParetoPath
    scores: Array
    scores_overall: Array
    measure: Measure
    n_held_out: IntArray
    train: IntArray
    test: IntArray
    C: float
    s: float
    capacity: float | None
    cv: CrossValidation | None
    comparison: Comparison | None
    seconds: dict[str, float]
    html: str
    file: Path | None
    epsilon: float | None = None
    predictions: Predictions | None = None
    sharing: Sharing | None = None
    confusion: Confusion | None = None
    errors: Array | None = None
    errors_overall: Array | None = None

    def __repr__(self) -> str:
        size = len(self.html.encode()) / 1e6
        chosen = f"C={self.C:g}, s={self.s:g}"
        return f"TradeOff({self.path!r}, {chosen}, {len(self.test)} held-out samples, page of {size:.2f} MB)"

    def _repr_html_(self) -> str:
        """The page in a frame."""
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" sandbox="allow-scripts allow-downloads" '
            f'title="{html.escape(TITLE)}" style="width:100%;height:820px;border:1px solid #8884"></iframe>'
        )


def trade_off_page(
    X: Any,
    y: Any,
    *,
    tasks: Any = None,
    task_column: Any = None,
    kernels: Any = "default",
    s: float | Sequence[float] | None = None,
    capacity: float | Sequence[float] | Literal["auto"] = "auto",
    C: float | None = None,
    Cs: Sequence[float] | None = None,
    task_weight: Any = None,
    class_weight: Any = None,
    task_scale: TaskScale = "none",
    test_size: float = 0.25,
    cv: Any = 5,
    scoring: Any = None,
    rivals: bool = True,
    random_state: Any = 0,
    n_points: int = 121,
    tol: float = 1e-6,
    file: str | os.PathLike[str] | None = None,
    title: str = TITLE,
    loading: str = "",
    refit_note: str | None = None,
    n_jobs: int | None = None,
    verbose: int | None = None,
    machine: str = "svc",
    epsilon: float | Sequence[float] | None = None,
    normalize_y: bool = True,
    share: Sequence[Share] | None = None,
    max_task_rows: int | None = None,
    max_search_rows: int | None = 3000,
) -> TradeOff:
    """Show what p does to your tasks: one HTML file with a slider over a dense, certified path.

    The function first holds out some samples, stratified by task and label (by task only for regression). On the
    others, cross-validation chooses C, s and the capacity of kernels, and says which p it would pick. With these values
    the function traces a path of ``n_points`` exponents and scores every model on the held-out samples. It also
    compares the chosen model with simpler ones on the same folds and the same held-out samples.

    Parameters
    ----------
    X, y, tasks, task_column, kernels, task_weight, class_weight, task_scale
        As in :class:`~paretomkl.ParetoMKLClassifier` and its ``fit``.
    s : float, or sequence of float, default=None
        Norm of the kernel weights, or several values to choose from. If None, cross-validation chooses it, as in
        :class:`~paretomkl.ParetoMKLClassifierCV`; with ``cv=None`` it is 1.1.
    capacity : float, sequence of float, or "auto", default="auto"
        Exponent κ of the kernels' capacity, or several values to choose from, as in
        :class:`~paretomkl.ParetoMKLClassifierCV`; with ``cv=None`` "auto" keeps the κ of ``kernels``.
    C : float, default=None
        Cost of a margin violation, or of an error; if None, cross-validation chooses it.
    Cs : sequence of float, default=None
        Values of C to choose from; by default 0.1, 1, 10 and 100, and also 0.01 for regression.
    test_size : float, default=0.25
        Share of the samples to hold out, rounded to a fraction with a denominator of at most ten.
    cv : int, splitter or None, default=5
        Folds of the training part. None means no cross-validation: you must give C, nothing is chosen, and the page
        shows no simpler models.
    scoring : str or scorer, default=None
        The score that chooses the parameters and judges the held-out samples, for each task and as the mean over the
        tasks: accuracy, or the name of another score of scikit-learn ("balanced_accuracy", "roc_auc", "f1", …;
        "worst_accuracy" and the like are the score of the worst task), or a scorer of scikit-learn or of
        :func:`~paretomkl.model_selection.make_multitask_scorer`. For regression R², or
        "neg_mean_squared_error", "neg_mean_absolute_error", ….
    rivals : bool, default=True
        Whether to compare with simpler models, see :func:`compare`.
    random_state : int, RandomState or None, default=0
        Seed of the split.
    n_points : int, default=121
        Number of exponents, see :func:`dense_ps`.
    tol : float, default=1e-6
        Relative gap at every exponent. Each exponent is solved on its own, to a smaller gap than one model needs, so
        that the curves are smooth.
    file : path, default=None
        The file to write the page to; it is written completely or not at all.
    title : str
        Title of the page.
    loading : str
        Lines of Python that create X, y and tasks, shown before the line that fits the model again.
    refit_note : str, default=None
        Shown below that line, see :func:`build_page`; ``{C}``, ``{s}`` and ``{capacity}`` are replaced by their values.
        None says how the samples were split.
    n_jobs : int, default=None
        Folds to run at a time, and threads of the path; -1 means all cores.
    verbose : int, default=None
        0 is silent, 1 shows progress; None shows progress on a terminal after two seconds.
    machine : {"svc", "ls-svc", "ridge", "svr"}, default="svc"
        As in :func:`~paretomkl.pareto_path`. The last two predict numbers, and the page shows R², predictions against
        the truth, and the residuals of each task.
    epsilon : float, or sequence of float, default=None
        ε of "svr", or several values to choose from. If None, cross-validation chooses it; with ``cv=None`` it is 0.1.
    normalize_y : bool, default=True
        As in :func:`~paretomkl.pareto_path`.
    share : sequence of "nothing", "kernel", "function", "everything", default=None
        Ways to share to compare with the shared kernel, which the page is about, on the same folds; see
        :class:`~paretomkl.ParetoMKLClassifierCV`. This needs tasks and ``cv``.
    max_task_rows : int, default=None
        Learn from at most this many training samples of a task, drawn at random within classes; the page says so. None
        uses all.
    max_search_rows : int, default=3000
        As in :class:`~paretomkl.ParetoMKLClassifierCV`. With more samples, parameters are chosen and methods compared
        on this many. None always uses all.

    Returns
    -------
    result : TradeOff
        The path, the scores of its models, and the page.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl.report import trade_off_page
    >>> result = trade_off_page(*load_iris(return_X_y=True), C=10.0, cv=None, n_points=20)
    >>> result.scores.shape, len(result.test)
    ((20, 3), 38)
    """
    from .._select.scores import make_judge

    ps, regression = dense_ps(n_points), machine in PREDICTING
    _check(C, s, capacity, cv, n_points, file, machine, class_weight, max_task_rows)
    by: dict[str, Any] = {"task_column": task_column, "test_size": test_size, "random_state": random_state}
    train, test = held_out_split(X, y, tasks=tasks, **by, stratify=not regression)
    n_train, train = len(train), draw_rows(train, X, y, tasks, task_column, max_task_rows, not regression)
    fit_on, judge_on = (_part(X, y, tasks, rows, train, kernels) for rows in (train, test))
    judge = make_judge(scoring, regression=regression).of_samples(**fit_on, kernels=kernels, task_column=task_column)
    weights = {"task_scale": task_scale, "task_weight": task_weight}
    given: dict[str, Any] = {"kernels": kernels, "task_column": task_column, **weights}
    of_machine = _Machine(machine, class_weight, normalize_y)
    study = _Study(fit_on, judge_on, judge, of_machine, given, {"n_jobs": n_jobs, "verbose": verbose}, max_search_rows)
    grid = Cs if C is None else [C], s, capacity, epsilon, cv, _ways(share, tasks, task_column, y)
    search = None if cv is None else study.search(*grid)
    setting = study.setting(search, kernels, C, s, capacity, epsilon)
    found, path, judged, comparison = study.run(ps, tol, setting, search, rivals)
    code = of_machine.refit_code(tol=tol, tasks=tasks is not None, loading=loading, **given | setting.keywords())
    path = replace(path, refit=code)
    how = _how_to_split(tasks is not None, **by, stratify=not regression) if refit_note is None else refit_note
    facts = [setting.words(), _sizes_in_words(n_train, len(train), len(test))]
    shown_facts: dict[str, Any] = {"title": title, "facts": facts, "refit_note": setting.filled_in(how)}
    page = build_page(path, **judged, cv=found, comparison=comparison, **shown_facts)
    written = None if file is None else write_whole(file, page)
    chosen = setting.values() | {"cv": found, "comparison": comparison, "train": train, "test": test}
    return TradeOff(path, **judged, **chosen, seconds=study.seconds(), html=page, file=written)


def _sizes_in_words(n_all: int, n_train: int, n_test: int) -> str:
    drawn = f" drawn from {n_all:,}" * (n_train < n_all)
    return f"learned from {n_train:,} samples{drawn}, tested on {n_test:,} others"


@dataclass(frozen=True)
class _Machine:
    """The machine of the tasks, with the parameters that only some machines have."""

    name: str
    class_weight: Any
    normalize_y: bool

    @property
    def predicts(self) -> bool:
        """Whether it predicts numbers."""
        return self.name in PREDICTING

    def epsilon(self, given: Any) -> float | None:
        """ε if nothing chooses it; None for machines without one."""
        return None if self.name != "svr" else EPSILON if given is None else float(_only(given))

    def keywords(self) -> dict[str, Any]:
        """Keywords of :func:`pareto_path`."""
        return {"machine": self.name, "class_weight": self.class_weight, "normalize_y": self.normalize_y}

    def search(self, epsilon: Any, **given: Any) -> Any:
        """A search that is not fitted yet; None means the default of the search."""
        from .._select.search import ParetoMKLClassifierCV, ParetoMKLRegressorCV

        known = {name: value for name, value in given.items() if value is not None}
        if not self.predicts:
            known |= {"class_weight": self.class_weight, "loss": MACHINES[self.name].loss}
            return ParetoMKLClassifierCV(**known)
        if self.name == "svr":
            known |= {"loss": "epsilon_insensitive"} | ({} if epsilon is None else {"epsilon": epsilon})
        return ParetoMKLRegressorCV(**known, normalize_y=self.normalize_y)

    def refit_code(self, epsilon: float | None = None, **given: Any) -> str:
        own = {} if epsilon is None else {"epsilon": epsilon}
        return path_refit_code(MACHINES[self.name], own, self.normalize_y, self.class_weight, **given)


@dataclass(frozen=True)
class _Setting:
    """The parameters of a path besides its exponents."""

    kernels: Any
    C: float
    s: float
    epsilon: float | None = None

    @classmethod
    def fixed(cls, kernels: Any, C: Any, s: Any, capacity: Any, epsilon: float | None) -> _Setting:
        """The given values, when there is no cross-validation."""
        if not isinstance(capacity, str):
            kernels = replace(as_bank(kernels), normalize="capacity", capacity=_only(capacity))
        return cls(kernels, float(C), DEFAULT_NORM if s is None else _only(s), epsilon)

    @classmethod
    def chosen(cls, search: Any, machine: _Machine) -> _Setting:
        """The values that a search chose for tasks that share their kernel, whatever else it tried."""
        best = search.estimator_at(search.best_indices_["kernel"])
        epsilon = None if machine.name != "svr" else float(best.epsilon)
        return cls(best.kernels, float(best.C), float(best.s), epsilon)

    @property
    def capacity(self) -> float | None:
        """κ, or None if kernels do not pay for their capacity."""
        bank = as_bank(self.kernels)
        return float(bank.capacity) if bank.normalization == "capacity" else None

    def keywords(self) -> dict[str, Any]:
        """Keywords of :func:`pareto_path`."""
        epsilon = {} if self.epsilon is None else {"epsilon": self.epsilon}
        return {"kernels": self.kernels, "C": self.C, "s": self.s, **epsilon}

    def values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("C", "capacity", "s", "epsilon")}

    def words(self) -> str:
        return parameters(self.values())

    def filled_in(self, note: str) -> str:
        """Replace {C}, {s}, {capacity} and {epsilon} in a text by their values."""
        for name, value in self.values().items():
            note = note.replace(f"{{{name}}}", repr(value))
        return note


class _Study:
    """Learns from one part of the samples, judges models on the other, and measures the time."""

    def __init__(
        self,
        fit_on: dict[str, Any],
        judge_on: dict[str, Any],
        judge: Judge,
        machine: _Machine,
        given: dict[str, Any],
        running: dict[str, Any],
        max_search_rows: int | None,
    ):
        self.fit_on, self.judge_on, self.judge, self.max_search_rows = fit_on, judge_on, judge, max_search_rows
        self.machine, self.given, self.running = machine, given, running
        self.times = [perf_counter()]

    def run(
        self, ps: Sequence[float], tol: float, setting: _Setting, search: Any, rivals: bool
    ) -> tuple[CrossValidation | None, ParetoPath, dict[str, Any], Comparison | None]:
        """What the search found (or None), the path, the scores of its models and the ways to share, and the rivals."""
        found = None if search is None else CrossValidation.from_search(search, self.judge.measure)
        self.lap()
        given = self.given | setting.keywords() | self.machine.keywords() | self.running
        # a fine page needs a separate solution for every step of the slider
        solver = CutPool(tol=tol, borrow=0.0 if tol < ROUGH else 0.1)
        path = pareto_path(**self.fit_on, ps=ps, tol=tol, solver=solver, **given)
        self.lap()
        judged = _judge(path, self.judge, **self.judge_on)
        self.lap()
        comparison = None
        if rivals and found is not None:
            at = list(path.ps).index(found.best_p)
            known = float(judged["scores_overall"][at]), float(judged["errors_overall"][at])
            comparison = self.compare(search, setting, known, tol, found.best_p)
        self.lap()
        judged["sharing"] = None if search is None else Sharing.from_search(search, self.judge.measure)
        return found, path, judged, comparison

    def search(
        self, Cs: Sequence[float] | None, s: Any, capacity: Any, epsilon: Any, cv: Any, share: list[Share] | None
    ) -> Any:
        """A search over p, C, s, capacity, ε and ways to share; the page itself traces the path of a shared kernel."""
        grid = {"ps": PAPER_PS, "Cs": Cs, "s": s, "capacity": capacity, "cv": cv, "scoring": self.judge.scoring}
        grid["share"] = share
        search = self.machine.search(epsilon, **grid, **self.given, **self.running)
        search.set_params(max_search_rows=self.max_search_rows)  # None means all rows
        others: list[Share] = [way for way in SHARES if way != "kernel"]  # the page has no path for these
        return search.choose(self.fit_on, refit=others)

    def setting(self, search: Any, kernels: Any, C: Any, s: Any, capacity: Any, epsilon: Any) -> _Setting:
        """The values that a search chose, or the given ones if there is no search."""
        if search is not None:
            return _Setting.chosen(search, self.machine)
        return _Setting.fixed(kernels, C, s, capacity, self.machine.epsilon(epsilon))

    def compare(self, search: Any, setting: _Setting, known: tuple[float, float], tol: float, p: float) -> Comparison:
        """Our model and the rivals; ``known`` are the held-out score and error that the page shows at the chosen p.

        If parameters were chosen on some of the samples, all methods learn from these only.
        """
        from .._select.baselines import compare

        fit_on, judge_on, rows, about = self.fit_on, self.judge_on, search.search_rows_, ""
        if rows is not None:
            n_all, kernels = len(self.fit_on["y"]), self.given["kernels"]
            fit_on = _part(**self.fit_on, rows=rows, train=rows, kernels=kernels)
            judge_on = of_known_tasks(judge_on, fit_on, self.given["task_column"])
            given = self.given | setting.keywords() | self.machine.keywords() | self.running
            judged = _judge(pareto_path(**fit_on, ps=[p], tol=tol, **given), self.judge, **judge_on)
            known = float(judged["scores_overall"][0]), float(judged["errors_overall"][0])
            search = copy(search)
            search.search_rows_ = None
            about = (
                f"To save time, all methods here learn from the same {len(rows):,} of {n_all:,} samples; the models on "
                "the page learn from all of them."
            )
        held_out = judge_on["X"], judge_on["y"], judge_on["tasks"]
        found = compare(search, **fit_on, held_out=held_out, **self.running, share="kernel")
        ours = replace(found.ours, held_out=known[0], held_out_error=known[1])
        return replace(found, ours=ours, about=about)

    def lap(self) -> None:
        """Record the end of a stage."""
        self.times.append(perf_counter())

    def seconds(self) -> dict[str, float]:
        """The time of each stage; the last one ends now."""
        return dict(zip(LAPS, np.diff([*self.times, perf_counter()]).tolist(), strict=True))


def _check(
    C: float | None,
    s: Any,
    capacity: Any,
    cv: Any,
    n_points: int,
    file: str | os.PathLike[str] | None,
    machine: Any,
    class_weight: Any,
    max_task_rows: Any,
) -> None:
    if machine not in (*CLASSIFYING, *PREDICTING):
        raise ValueError(f"machine must be one of {[*CLASSIFYING, *PREDICTING]}, got {shown(machine)}.")
    if machine in PREDICTING and class_weight is not None:
        raise ValueError(f"class_weight needs classes, but machine={machine!r} has none; pass None.")
    if C is not None:
        check_number("C", C, lambda v: 0 < v < np.inf, "greater than 0")
    elif cv is None:
        raise ValueError("cv=None cannot choose C; give C.")
    for name, value in (("s", s), ("capacity", capacity)):
        if cv is None and np.size(value) != 1:
            raise ValueError(f"cv=None cannot choose {name}; give a single {name}.")
    check_count("n_points", n_points)
    if max_task_rows is not None:
        check_count("max_task_rows", max_task_rows)
    if file is not None:
        check_writable(file)


def _ways(share: Sequence[Share] | None, tasks: Any, task_column: Any, y: Any) -> list[Share] | None:
    """The ways to share to compare, always including the kernel; None if there are no tasks."""
    if share is None:
        return None
    if isinstance(share, str):
        raise ValueError(f"share takes a list of ways to compare, got {share!r}; the page itself is about 'kernel'.")
    ways = [check_share(way) for way in share]
    return [*ways, "kernel"] if tasks is not None or task_column is not None or np.ndim(y) == 2 else None


def _only(value: Any) -> Any:
    """A number, or the only element of a sequence."""
    return np.asarray(value).item()


def _part(X: Any, y: Any, tasks: Any, rows: IntArray, train: IntArray, kernels: Any) -> dict[str, Any]:
    """Some samples with their labels and tasks."""
    from .._data.reading import take_rows

    return {"X": take_rows(X, rows, train, kernels), "y": take_rows(y, rows), "tasks": take_rows(tasks, rows)}


def held_out_split(
    X: Any,
    y: Any,
    *,
    tasks: Any = None,
    task_column: Any = None,
    test_size: float = 0.25,
    random_state: Any = 0,
    stratify: bool = True,
) -> tuple[IntArray, IntArray]:
    """Split samples into a training and a held-out part exactly as :func:`trade_off_page` does.

    Parameters
    ----------
    X, y, tasks, task_column : as in :func:`trade_off_page`
        The samples and their tasks.
    test_size : float, default=0.25
        Share of the samples to hold out, rounded to a fraction with a denominator of at most ten.
    random_state : int, RandomState or None, default=0
        Seed of the split.
    stratify : bool, default=True
        Whether to stratify by task and label; False, for regression, stratifies by task only.

    Returns
    -------
    train, test : arrays of int
        Indices of the samples in increasing order.

    Examples
    --------
    >>> import numpy as np
    >>> train, test = held_out_split(np.zeros((8, 1)), ["no", "yes"] * 4)
    >>> len(train), len(test)
    (6, 2)
    """
    from .._data.tasks import task_column_of
    from .._select.splits import MultiTaskKFold, MultiTaskStratifiedKFold, make_splits

    check_number("test_size", test_size, lambda v: 0 < v < 1, "between 0 and 1")
    share = Fraction(float(test_size)).limit_denominator(MOST_PARTS)
    if not 0 < share < 1:
        raise ValueError(f"test_size must be from 0.1 to 0.9, got {test_size}.")
    if task_column is not None:
        tasks = task_column_of(X, task_column)
    kind = MultiTaskStratifiedKFold if stratify else MultiTaskKFold
    folds = kind(share.denominator, shuffle=True, random_state=random_state)
    with warnings.catch_warnings():
        # a label with fewer samples than parts is missing from some parts; for a single split that does no harm
        warnings.simplefilter("ignore", RareLabelWarning)
        parts = make_splits(folds, X, y, tasks, stratify=stratify)
    test = np.sort(np.concatenate([held_out for _, held_out in parts[: share.numerator]]))
    return np.setdiff1d(np.concatenate(parts[0]), test), test


def _judge(path: ParetoPath, judge: Judge, X: Any, y: Any, tasks: Any) -> dict[str, Any]:
    """Scores of every model with standard errors, sample counts and predictions, as the fields of a TradeOff."""
    from .._data.reading import read_samples
    from .._select.scores import standard_error_of_share

    samples = read_samples(path.reader, X, tasks=tasks)
    models = {id(model): model for model in path.models}  # neighbouring points may share a model
    labelling = path.models[0].tasks
    numbers = Predictions.drawn_from(labelling, samples, y, len(path)) if isinstance(labelling, Targets) else None
    confusion = None if numbers is not None else Confusion.drawn_from(labelling, samples, y)
    step = max(1, int(DECISION_BYTES // (8 * len(samples) * labelling.n_tasks)))
    judged: dict[int, tuple[Array, float]] = {}
    errors: dict[int, Array] = {}
    drawn: dict[int, Any] = {}
    for first in range(0, len(models), step):
        some = list(models.values())[first : first + step]
        for model, decided in zip(some, decide_all(some, samples), strict=True):
            decisions = decided.matrix(labelling.n_tasks)
            judged[id(model)] = judge.judge(labelling, decisions, samples, y)
            errors[id(model)] = judge.errors(labelling, decisions, y)
            if numbers is not None:
                drawn[id(model)] = numbers.of_decisions(labelling, decided)
            elif confusion is not None:
                drawn[id(model)] = confusion.count(labelling, decisions)
    found: dict[str, Any] = {"n_held_out": judge.counts(labelling, decisions, y), "measure": judge.measure}
    found["scores"] = np.array([judged[id(model)][0] for model in path.models])
    found["scores_overall"] = np.array([judged[id(model)][1] for model in path.models])
    found["errors"] = np.array([errors[id(model)] for model in path.models])
    of_points = [drawn[id(model)] for model in path.models]
    if numbers is not None:
        found["errors_overall"] = _errors_overall(judge, found["scores"], found["errors"])
        return found | {"predictions": replace(numbers, predicted=np.array(of_points)), "confusion": None}
    assert confusion is not None
    confusion = confusion.with_counts(of_points)
    shares, sizes = confusion.right  # counts labels; votes decide if the tasks are pairs of classes
    unknown = np.full(shares.shape, np.nan)
    of_groups = standard_error_of_share(shares, sizes) if judge.of_shares else unknown
    found["errors_overall"] = _errors_overall(judge, shares, of_groups)
    return found | {"predictions": None, "confusion": confusion}


def _errors_overall(judge: Judge, scores: Array, errors: Array) -> Array:
    """Standard errors of the overall score, (n_points,), from those of the tasks, (n_points, n_tasks)."""
    return np.array([judge.overall_error(*of_point) for of_point in zip(scores, errors, strict=True)])


def _how_to_split(tasks: bool, task_column: Any, test_size: float, random_state: Any, stratify: bool) -> str:
    given = ["X", "y"] + ["tasks=tasks"] * tasks + [f"task_column={task_column!r}"] * (task_column is not None)
    seed = random_state if isinstance(random_state, numbers.Integral) or random_state is None else "random_state"
    given += [f"test_size={test_size!r}", f"random_state={seed}"] + ["stratify=False"] * (not stratify)
    return (
        "This code learns from all samples. The models on this page learned only from the training part: "
        f"`train, test = paretomkl.report.held_out_split({', '.join(given)})`."
    )
