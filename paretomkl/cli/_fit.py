"""``paretomkl fit``."""

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from .._tools.files import check_writable
from .._tools.shares import SHARES, TOGETHER, Share
from .._tools.wording import counted, joined, quoted
from ..tables._files import TableError
from ._checks import check_named_folds, check_rare, folds_for, lone_tasks, note_target, rows_needed, skipping, too_small
from ._options import (
    ABOUT_KERNELS,
    ABOUT_SCORES,
    ABOUT_SHARING,
    Options,
    TableArgument,
    Target,
    Tolerance,
    parse_numbers,
    parse_ways,
)
from ._running import Output, command, named, note, one_blas_thread

if TYPE_CHECKING:
    from .._learn.estimators import ParetoMKLClassifier, ParetoMKLRegressor
    from .._select.results import Comparison
    from .._select.scores import Judge
    from .._select.search import ParetoMKLClassifierCV, ParetoMKLRegressorCV
    from .._select.task_scores import ScoresByTask
    from .._tools.typing import Array
    from ..kernels._kernels import KernelLike
    from ..tables._tables import Table

DEFAULT_NORM = 1.1  # s of a model fitted without cross-validation


@command(
    f"Example: `paretomkl fit patients.csv --target outcome --task hospital --out model.skops`.\n\n{ABOUT_KERNELS}\n\n"
    f"{ABOUT_SCORES}\n\n{ABOUT_SHARING} The default is `auto` if there are tasks, and `kernel` with `--p`.",
    options=Options,
    summary="Fit a model and save it.",
)
def fit(
    file: TableArgument,
    target: Target,
    options: Options,
    out: Annotated[Path, Option("--out", "-o", help="File to write the model to, usually `….skops`.")],
    p: Annotated[
        str | None, Option("--p", help="Exponent; `inf` minimises the largest objective; default: cross-validated.")
    ] = None,
    ps: Annotated[
        str, Option(help="Exponents to choose from; if several tie, the one nearest to 1.")
    ] = "1,0.5,2,0.1,10,0.01,inf",
    tol: Tolerance = 1e-3,
) -> None:
    """Fit a model and save it; cross-validation chooses p, C, s and capacity unless you give them.

    If you give p and C there is no cross-validation: s is then 1.1 and capacity 0.5, unless you give them too.
    """
    check_writable(out)
    if out.resolve() == file.resolve():
        raise TableError(f"The model would overwrite its table {str(file)!r}; choose another file (--out).")
    if find_spec("skops") is None:  # fail now, not after fitting
        raise ImportError("Saving models needs skops: pip install 'paretomkl[cli]'.")
    exponents = parse_numbers(ps, "--ps") if p is None else parse_numbers(p, "--p")
    if p is not None and len(exponents) > 1:
        raise TableError(f"--p takes one exponent, got {p!r}; to choose among several use --ps {p}.")
    asked: Sequence[Share] = SHARES if p is None else ["kernel"]  # p matters only for a shared kernel
    ways = parse_ways(options.share) if options.share else asked
    table = options.load(file, target, any_tasks=options.task is not None and not TOGETHER.isdisjoint(ways))
    plan = plan_search(table, options, options.ways(table, asked), exponents)
    if p is not None and "kernel" not in plan.ways:
        note(f"--p has no effect with --share {joined(plan.ways)}; it matters only if tasks share just their kernel.")
    kernels = options.bank(table)
    options.say_read(file, table)
    judge = options.judge(table.regression)
    with one_blas_thread():
        fitted = _fit_table(table, plan, judge, options, kernels, tol)
    from ._saved_model import save_fitted

    save_fitted(table, fitted.model, judge.measure.key, fitted.by_task, out)
    _report_fit(table, plan, fitted, out, Output(options.as_json))


# ---------------------------------------------------------------------------------------- what to try
@dataclass(frozen=True)
class SearchPlan:
    """What to choose from, and how.

    ways: what tasks may share; without: requested ways that cannot learn from this table; folds: their number or name,
    or None if there is nothing to choose; lone: tasks with a single class or number; apart: whether each task is
    divided into folds, or all rows together, because some tasks are too small to have rows in every fold.
    """

    ps: list[float]
    Cs: list[float] | None
    ways: list[Share]
    without: list[Share]
    folds: int | str | None
    lone: list[str]
    apart: bool = True


def plan_search(table: "Table", options: Options, ways: list[Share], ps: list[float]) -> SearchPlan:
    """Drop the ways to share that cannot learn from small tasks, with a note, and divide the rows into folds."""
    lone, Cs, cv = lone_tasks(table), options.costs(), options.folds()
    together = [way for way in ways if way in TOGETHER]
    small = None if isinstance(cv, str) else too_small(table, rows_needed(table))

    def searching(ways: list[Share]) -> bool:
        return Cs is None or (len(ps) if "kernel" in ways else 1) * len(Cs) * len(ways) > 1

    kept = together if lone and together else ways
    if searching(kept) and small and together:
        kept = together
    without = [way for way in ways if way not in kept]
    if without:
        _note_without(table, without, lone, small)
    if not searching(kept):
        return SearchPlan(ps, Cs, kept, without, None, lone)
    if isinstance(cv, str):
        check_named_folds(table, cv)
        return SearchPlan(ps, Cs, kept, without, cv, lone)
    if not TOGETHER.issuperset(kept):
        check_rare(table, 1.0, "cross-validation divides the rows into folds; --p with --C needs no cross-validation")
    if cv > len(table.y):
        raise TableError(f"--cv {cv} asks for more folds than there are rows ({len(table.y):,}); use fewer.")
    return SearchPlan(ps, Cs, kept, without, _folds_of_all(table, cv) if small else cv, lone, apart=not small)


def _note_without(table: "Table", without: list[Share], lone: list[str], small: str | None) -> None:
    """Print a note that says which ways to share are skipped, and why."""
    if lone:
        tasks = f"task {lone[0]!r} has" if len(lone) == 1 else f"{counted(len(lone), 'task')} ({quoted(lone, 5)}) have"
        small = f"{tasks} only {'one number' if table.regression else 'one class'}"
    note(
        f"skipped --share {joined(without)}, because {small}; models whose tasks share a function still learn from "
        f"such tasks. To compare all ways without these tasks, use {skipping(table, rows_needed(table))}."
    )


def _folds_of_all(table: "Table", cv: int) -> int:
    """The number of folds of all rows together: no more than there are rows of the rarest class."""
    if table.regression:
        return cv
    rarest, n = Counter(table.y.tolist()).most_common()[-1]
    if n < 2:
        raise TableError(
            f"Class {rarest!r} has {counted(n, 'row')} but needs 2: cross-validation divides the rows into folds; "
            "skip such classes with --min-class-rows 2."
        )
    return min(cv, n)


def _divide(table: "Table", folds: int) -> list[Any]:
    """Folds of all rows together: a list of (train, test)."""
    from .._select.splits import make_splits

    return make_splits(folds, table.X, table.y, None, table.groups, stratify=not table.regression)


# ------------------------------------------------------------------------------------------------ fitting
@dataclass(frozen=True)
class FittedTable:
    """A model, its judge, the search that chose it (None if nothing was chosen), its baselines and its scores."""

    model: "ParetoMKLClassifier | ParetoMKLRegressor"
    judge: "Judge"
    search: "ParetoMKLClassifierCV | ParetoMKLRegressorCV | None" = None
    comparison: "Comparison | None" = None
    by_task: "ScoresByTask | None" = None

    @property
    def capacity(self) -> float | None:
        """κ of the kernels; None if capacity is not penalised."""
        model = self.model.model_
        bank = getattr(model, "models", [model])[0].bank  # tasks that share nothing have one model each
        return float(bank.capacity) if bank.normalize == "capacity" else None

    @property
    def epsilon(self) -> float | None:
        """ε of the model, or None."""
        found = getattr(self.model, "epsilon", None)  # only regressors have one, and not all of them use it
        return found if "epsilon" in self.model.machine_kind.parameters else None


def _fit_table(
    table: "Table", plan: SearchPlan, judge: "Judge", options: Options, kernels: "KernelLike", tol: float
) -> FittedTable:
    """Fit one model, or search for the best by cross-validation and compare it with simpler ones."""
    from .._select.baselines import compare
    from .._select.held_out import held_out_by_task

    if plan.lone:  # scores that compare classes are undefined for a task with one class
        judge = judge.of_samples(table.X[table.features], table.y)
    else:
        judge = judge.of_samples(table.X, table.y, task_column=table.columns.task)
    note_target(table, options)
    if plan.folds is None:
        if table.groups is not None:
            note("--group has no effect: there is nothing to choose by folds.")
        return FittedTable(_fit_one(table, plan, options, kernels, tol), judge)
    cv: Any = plan.folds
    if not isinstance(cv, str):
        cv = folds_for(table, cv, judge) if plan.apart else _divide(table, cv)
    share = options.share_among(plan.ways)
    search = options.search(table, kernels=kernels, ps=plan.ps, share=share, cv=cv, scoring=judge.scoring, tol=tol)
    model = search.fit(table.X, table.y, groups=table.groups).best_estimator_
    comparison = None
    if plan.folds == "new tasks" and not options.no_baselines:
        note("simpler models are not compared: most of them cannot predict tasks that they have not seen.")
    elif plan.lone and not options.no_baselines:
        note("simpler models are not compared: they cannot learn a task on its own from one class or one number.")
    elif not options.no_baselines:
        comparison = compare(search, table.X, table.y, n_jobs=options.jobs_for(table), verbose=None)
    by_task = None if comparison is None else comparison.by_task
    if by_task is None:
        by_task = held_out_by_task(search, table.X, table.y, scorer=judge.scorer, n_jobs=options.jobs_for(table))
    return FittedTable(model, judge, search, comparison, by_task)


def _fit_one(
    table: "Table", plan: SearchPlan, options: Options, kernels: "KernelLike", tol: float
) -> "ParetoMKLClassifier | ParetoMKLRegressor":
    """Fit a model whose parameters are given."""
    from .._learn.estimators import ParetoMKLClassifier, ParetoMKLRegressor
    from ..kernels._kernels import as_bank

    assert plan.Cs is not None
    if options.capacity is not None:
        kernels = replace(as_bank(kernels), normalize="capacity", capacity=options.capacity)
    p, s = plan.ps[0] if len(plan.ps) == 1 else 1.0, options.s or DEFAULT_NORM
    given = options.parameters(table) | {"p": p, "C": plan.Cs[0], "s": s, "share": plan.ways[0], "tol": tol}
    model = (ParetoMKLRegressor if table.regression else ParetoMKLClassifier)(kernels=kernels, **given)
    return model.fit(table.X, table.y)


def _report_fit(table: "Table", plan: SearchPlan, fitted: FittedTable, out: Path, output: Output) -> None:
    import numpy as np

    from .._select.results import Sharing
    from .._show.words import parameters, source_shares
    from ._showing import say_comparison, say_parts, say_sharing, say_task_scores, say_verdict

    model, measure, search = fitted.model, fitted.judge.measure, fitted.search
    train = fitted.judge.score_model(model, table.X, table.y)
    p = model.p if model.share == "kernel" else None  # p has no effect on the other ways to share
    used = {"p": p, "C": model.C, "capacity": fitted.capacity, "s": model.s, "epsilon": fitted.epsilon}
    chosen = used if search is None else {name: search.best_params_.get(name) for name in used} | {"p": p}
    named = parameters(chosen) if model.share == "kernel" else f"share = {model.share}, {parameters(chosen)}"
    by_source = getattr(model, "source_shares_", {})
    sharing = None if search is None else Sharing.from_search(search, measure)
    if search is None:
        output.say(f"Fitted with {named}.")
    else:
        score = f"{measure.name} {measure.text(search.best_score_)}"
        some = f" on {search.n_search_rows_} of {len(table.y)} rows" * (search.search_rows_ is not None)
        output.say(f"Chosen by {search.n_splits_}-fold cross-validation{some}: {named}; {score}.")
    say_sharing(sharing, output)
    say_parts(model, output)
    if by_source:
        output.say(source_shares({name: float(np.mean(share)) for name, share in by_source.items()}))
    say_comparison(fitted.comparison, output)
    say_task_scores(fitted.by_task, fitted.comparison, output)
    on_training = f"{measure.name} on the training rows {measure.text(train)}"
    output.say(f"Certified gap {model.gap_:.1e}; {on_training}. Written: {out}.")
    conclusion = _conclusion(fitted, used, sharing is not None)
    say_verdict(conclusion, f"Next: `{shlex.join(['paretomkl', 'predict', str(out), 'new.csv'])}`.", output)
    output.finish(
        {
            "model": str(out),
            "share": model.share,
            "common_share": getattr(model, "common_share_", None),
            "sharing": None if sharing is None else sharing.facts(),
            **used,
            "scoring": measure.key,
            "score_name": measure.name,
            "cv_score": None if search is None else search.best_score_,
            "train_score": train,
            "by_task": None if fitted.by_task is None else fitted.by_task.facts(),
            "honest_score": None if search is None else search.honest_score_,
            "honest_interval": None if search is None else list(search.honest_interval_),
            "comparison": None if fitted.comparison is None else fitted.comparison.facts(),
            "verdict": conclusion,
            "gap": model.gap_,
            "tasks": model.task_names_,
            "theta": _by_kernel(model, model.theta_),
            "shares": _by_kernel(model, model.kernel_shares_),
            "sources": by_source,
            "rows": len(table.y),
            "left_out": [part.facts() for part in table.left_out],
            "ways_left_out": plan.without,
        }
    )


def _conclusion(fitted: FittedTable, used: dict[str, Any], several: bool) -> list[str]:
    """The verdict on a model that a search chose, perhaps among several ways to share."""
    from .._select.results import CrossValidation
    from .._show.words import verdict

    model, search = fitted.model, fitted.search
    if search is None:
        return []
    along = CrossValidation.from_search(search, fitted.judge.measure) if model.share == "kernel" else None
    return verdict(model.share, used, along, fitted.comparison, len(model.task_names_), several)


def _by_kernel(model: "ParetoMKLClassifier | ParetoMKLRegressor", values: "Array") -> dict[str, Any]:
    """Values by kernel name; if each task has its own kernel weights, by task name and then by kernel name."""
    if values.ndim == 1:
        return named(model.kernel_names_, values)
    return {name: named(model.kernel_names_, own) for name, own in zip(model.task_names_, values, strict=True)}
