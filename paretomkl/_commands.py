"""The command line: one function per command.

Exit codes: 0 done; 1 something went wrong that is not the caller's doing; 2 wrong options or wrong data, with one
sentence that says what to do; 130 interrupted. Nothing half-written is left behind.
"""

import inspect
import json
import os
import shlex
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import wraps
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from typer import Argument, Option

from . import __version__
from ._experiments.cli import reproduce
from ._files import check_writable, write_whole
from ._kernel_options import OTHERS, listed_columns, parse_kernels, parse_sources, split_names
from ._kernels import as_bank
from ._parallel import effective_jobs
from ._tables import MAX_ROWS, Columns, Frame, Table, TableError, load_table, read_table
from ._together import CALLED, SHARES, Share
from .path import PAPER_PS

if TYPE_CHECKING:
    from ._judging import Judge

MODEL_KIND = "paretomkl model"
NEW_TASK = "new_task"  # column that marks predictions for tasks a model has not seen
PACKAGES = (
    *("numpy", "scipy", "scikit-learn", "numba", "joblib", "pandas", "pyarrow"),
    *("matplotlib", "skops", "cvxpy", "distributed"),
)
PAGE_TOL = 1e-6  # the curves of a page are smooth then
ABOUT_KERNELS = (
    "`--kernels` takes `default` (made from the table: linear, quadratic, Gaussians and Laplacians of widths around "
    "the typical distance, on standardised columns), `paper` (linear, quadratic, nine Gaussians), or a list with "
    "parameters after a colon and columns after an @: `linear,rbf:0.5,laplacian:2@age+bmi`.\n\n"
    "`--source 'genes=g_*' --source clinic=age+ward` gives each group of columns default kernels of its own, and shows "
    "what it contributes to predictions."
)
DEFAULT_NORM = 1.1  # s of a model that is fitted without folds

ABOUT_SCORES = (
    "`--scoring` takes `accuracy` (the default), `balanced_accuracy` (the default with `--balanced`), `roc_auc`, "
    "`average_precision`, `f1`, `precision`, `recall`, `f1_macro` or `matthews_corrcoef`; for regression `r2` (the "
    "default), `neg_mean_squared_error`, `neg_root_mean_squared_error`, `neg_mean_absolute_error` or "
    "`explained_variance`: the mean over the tasks, or with `worst_` before the name the lowest score of a task.\n\n"
    "A target with decimals, or with more than 20 different whole numbers, is predicted as a number; "
    "`--classification` takes its values for classes, `--regression` insists on numbers."
)
ABOUT_SHARING = (
    "`--share` says what tasks have in common: `nothing`, the `kernel` (the only way for which p matters), part of "
    "their `function`, or `everything`. Of several, with commas between them, the folds choose; `auto` is all four."
)
MOST_TASKS = 12  # that a table of errors lists
LIGHT = 0.02  # share of a kernel below which it is not listed by name
RARE = 0.1  # share of a class below which accuracy hardly sees it

app = typer.Typer(
    help="Multi-task multiple kernel learning along the Pareto front.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: `paretomkl demo`, then `paretomkl path data.csv --target y`.",
)

# ------------------------------------------------------------------------------------------------ options
TableFile = Annotated[Path, Argument(help="CSV, Parquet, Arrow or NumPy file.")]
Target = Annotated[str, Option("--target", "-y", help="Column that holds the classes, or numbers to predict.")]
Tolerance = Annotated[float, Option(min=1e-8, max=0.5, help="Relative gap to certify at every p.")]
Delimiter = Annotated[str | None, Option(help="Between the columns of a text file; default a comma, in .tsv a tab.")]
Decimal = Annotated[str, Option(help="Decimal point of a text file: a point or a comma.")]
AsJson = Annotated[bool, Option("--json", help="Print one JSON object instead of words.")]


@dataclass(frozen=True)
class Options:
    """What the commands that learn from a table have in common, as typed."""

    task: Annotated[str | None, Option("--task", "-t", help="Column that names the task of each row.")] = None
    kernels: Annotated[str, Option(help="Base kernels, see below.")] = "default"
    source: Annotated[
        list[str] | None, Option(metavar="NAME=PATTERN", help="Group of columns, see below; can be repeated.")
    ] = None
    s: Annotated[float | None, Option("--s", min=1.0, help="Norm of the kernel weights; default: by folds.")] = None
    capacity: Annotated[float | None, Option(min=0.0, help="How much flexible kernels pay; default: by folds.")] = None
    C: Annotated[float | None, Option("--C", min=1e-9, help="Cost of an error; default: by folds.")] = None
    Cs: Annotated[
        str | None, Option("--Cs", help="Values of C to choose from; default: 0.1,1,10,100, for regression 0.01 too.")
    ] = None
    regression: Annotated[
        bool | None,
        Option("--regression/--classification", help="Predict numbers, or classes; default: what the target holds."),
    ] = None
    loss: Annotated[str | None, Option(help="Of a regression: `squared` (the default) or `epsilon_insensitive`.")] = (
        None
    )
    epsilon: Annotated[
        float | None, Option(min=0.0, help="Errors that cost nothing, in standard deviations; default: by folds.")
    ] = None
    categorical: Annotated[str, Option(help="Columns of categories, if they look otherwise; with commas.")] = ""
    drop: Annotated[str, Option(help="Columns to leave out, separated by commas.")] = ""
    scoring: Annotated[str | None, Option(help="Score to choose by and to show, see below.")] = None
    balanced: Annotated[bool, Option("--balanced", help="Weigh the classes of a task alike, however rare.")] = False
    share: Annotated[
        str | None,
        Option(help="What tasks share: `nothing`, `kernel`, `function`, `everything`, several, or `auto`; see below."),
    ] = None
    no_rivals: Annotated[bool, Option("--no-rivals", help="Do not compare with simpler models.")] = False
    impute: Annotated[bool, Option("--impute", help="Fill in what is missing: median or commonest value.")] = False
    delimiter: Delimiter = None
    decimal: Decimal = "."
    max_rows: Annotated[int, Option(min=1, help="Refuse tables of more rows.")] = MAX_ROWS
    sample: Annotated[int | None, Option(min=4, help="Draw this many rows at random.")] = None
    seed: Annotated[int, Option(min=0, help="Seed of --sample and of the split.")] = 0
    jobs: Annotated[int | None, Option(help="Folds at a time and threads; -1 is all cores.")] = None
    as_json: AsJson = False

    def given(self) -> dict[str, Any]:
        """The options that are not the default."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name)) != field.default}

    def bank(self, table: Table) -> Any:
        """The kernels for a table; columns that are in no source are noted."""
        if not self.source:
            return parse_kernels(self.kernels, table.features)
        if self.kernels != "default":
            raise TableError("--source gives each source the default kernels; leave out --kernels.")
        made, rest = parse_sources(self.source, table)
        if rest:
            named = listed_columns(rest)
            note(f"what no --source names is one of its own, {OTHERS!r}: {named}; --drop leaves columns out.")
        return made

    def ways(self, table: Table, default: Sequence[Share]) -> list[Share]:
        """What the tasks of a table may share; a note says so where there are none."""
        if len(set(table.tasks)) > 1:
            return list(default) if self.share is None else parse_ways(self.share)
        if self.share is not None:
            note("--share changes nothing: it takes several tasks (--task) to share something.")
        return ["kernel"]

    @property
    def pays(self) -> bool:
        """Whether kernels pay for their capacity."""
        return self.kernels == "default" or self.capacity is not None

    def searched(self) -> dict[str, Any]:
        """Norm and capacity as a search takes them, those that are given."""
        return {name: value for name in ("s", "capacity") if (value := getattr(self, name)) is not None}

    @property
    def machine(self) -> Any:
        """Of a regression."""
        from .estimators import machine_of_loss

        if self.loss not in (None, "squared", "epsilon_insensitive"):
            raise TableError(f"--loss is squared or epsilon_insensitive, got {self.loss!r}.")
        if self.epsilon is not None and self.loss != "epsilon_insensitive":
            raise TableError("--epsilon is for --loss epsilon_insensitive.")
        return machine_of_loss(self.loss or "squared")

    def load(self, file: Path, target: str) -> Table:
        """The table, if its target and these options go together."""
        self.machine  # noqa: B018  # refuses what is wrong before the file is read
        parse_ways(self.share or "auto")
        table = load_table(file, target, **self.table_keywords())
        insisted = "--classification" if table.regression else "--regression"
        if table.regression and self.balanced:
            raise TableError(
                f"--balanced weighs classes, and {target!r} holds numbers; leave it out, or use {insisted}."
            )
        if not table.regression and (self.loss is not None or self.epsilon is not None):
            advice = f"leave them out, or use {insisted}"
            raise TableError(f"--loss and --epsilon are for numbers, and {target!r} holds classes; {advice}.")
        return table

    def judge(self, regression: bool) -> "Judge":
        """What models are judged by; accuracy would choose the models that leave rare classes alone."""
        from ._judging import make_judge

        scoring = self.scoring or ("balanced_accuracy" if self.balanced else None)
        return make_judge(scoring, "--scoring", regression)

    def costs(self) -> list[float] | None:
        """Values of C to choose from; None is the default."""
        if self.C is not None:
            return [self.C]
        return None if self.Cs is None else parse_numbers(self.Cs, "--Cs")

    @property
    def class_weight(self) -> str | None:
        """As the estimators take it."""
        return "balanced" if self.balanced else None

    def table_keywords(self) -> dict[str, Any]:
        """The same as :func:`load_table` takes them."""
        parse = {"categorical": split_names, "drop": split_names, "delimiter": parse_delimiter}
        known = inspect.signature(load_table).parameters
        return {name: parse.get(name, lambda v: v)(value) for name, value in self.given().items() if name in known}


def parse_delimiter(text: str | None) -> str | None:
    """The shell has no easy way to type a tab."""
    return "\t" if text in ("\\t", "tab") else text


def parse_numbers(text: str, option: str) -> list[float]:
    """Numbers separated by commas; ``inf`` and ``∞`` are infinity."""
    try:
        numbers = [float(part.strip().replace("∞", "inf")) for part in text.split(",") if part.strip()]
    except ValueError:
        raise TableError(f"{option} takes numbers separated by commas, got {text!r}.") from None
    if not numbers:
        raise TableError(f"{option} names no number.")
    return numbers


def parse_ways(text: str) -> list[Share]:
    """Ways to share separated by commas; ``auto`` is all of them."""
    found: list[Share] = []
    for part in text.split(","):
        ways = SHARES if part.strip() == "auto" else [way for way in SHARES if way == part.strip()]
        if not ways:
            raise TableError(f"--share takes {', '.join(SHARES)} or auto, got {text!r}.")
        found += ways
    return [way for way in SHARES if way in found]


# --------------------------------------------------------------------------------------- how a command runs
Function = Callable[..., None]


def command(epilog: str | None = None, resumable: bool = False) -> Callable[[Function], Function]:
    """Make a function a command: guarded, and with the fields of its :class:`Options` as options."""

    def register(function: Function) -> Function:
        app.command(epilog=epilog)(_guarded(_spelt_out(function), resumable))
        return function

    return register


def _spelt_out(function: Function) -> Function:
    """A function whose parameter ``options`` is an option for each of its fields: typer has no groups of options."""
    own = dict(inspect.signature(function).parameters)
    if own.pop("options", None) is None:
        return function
    shared = inspect.signature(Options).parameters

    @wraps(function)
    def run(**given: Any) -> None:
        function(options=Options(**{name: given.pop(name) for name in shared}), **given)

    both = [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in (own | dict(shared)).values()]
    vars(run)["__signature__"] = inspect.Signature(both)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in both}
    return run


def _guarded(function: Function, resumable: bool) -> Function:
    """Wrong data end in one sentence and exit code 2, an interrupt in 130; warnings are notes.

    What is resumable keeps its finished parts, so an interrupt says how to go on, and the failure of a process or of a
    cluster (RuntimeError) is no reason for a traceback.
    """
    expected = (ValueError, OSError, ImportError) + (RuntimeError,) * resumable

    @wraps(function)
    def run(**given: Any) -> None:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = Notes()
                function(**given)
        except BrokenPipeError:  # the reader of a pipe has gone, as head does
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except KeyboardInterrupt:
            rest = "the same command goes on from here" if resumable else "nothing was written"
            typer.echo(f"Interrupted; {rest}.", err=True)
            raise typer.Exit(130) from None
        except expected as error:
            words = " ".join(str(error).split())
            Output(given.get("as_json", False)).finish({"error": words})
            typer.echo(f"Error: {words}", err=True)
            raise typer.Exit(1 if isinstance(error, RuntimeError) else 2) from None

    return run


class Notes:
    """Warnings meant for users as one sentence each, once; those meant for programmers are not shown."""

    def __init__(self) -> None:
        self.written: set[str] = set()

    def __call__(self, message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        words = " ".join(str(message).split())
        if issubclass(category, UserWarning) and words not in self.written:  # each fold may give the same
            self.written.add(words)
            note(words)


def note(words: str) -> None:
    """A remark beside the output."""
    sys.stderr.write(f"Note: {words}\n")


class Output:
    """Where a command writes: words for people on standard output, or one JSON object for programs."""

    def __init__(self, as_json: bool):
        self.as_json = as_json

    def say(self, words: Any) -> None:
        if not self.as_json:
            from rich.console import Console

            text = isinstance(words, str)
            Console(highlight=False).print(words, markup=not text, soft_wrap=text)

    def finish(self, facts: dict[str, Any]) -> None:
        if self.as_json:
            sys.stdout.write(json.dumps(facts, default=_plain, ensure_ascii=False) + "\n")


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else str(value)


def _finite(value: float) -> float | str:
    """Infinity by name: JSON has no number for it."""
    return value if np.isfinite(value) else ("inf" if value > 0 else "-inf")


# --------------------------------------------------------------------------------------------------- demo
def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, Option("--version", is_eager=True, callback=_print_version, help="Print the version and stop.")
    ] = False,
) -> None:
    """Multi-task multiple kernel learning along the Pareto front."""


@command("Example: `paretomkl demo --samples 500 --page digits.html`, then open `digits.html`.")
def demo(
    samples: Annotated[int, Option(min=20, max=1797, help="How many digits to learn from.")] = 200,
    C: Annotated[float, Option("--C", min=1e-6, help="Cost of a margin violation.")] = 10.0,
    s: Annotated[float, Option("--s", min=1.0, help="Norm of the kernel weights; 1 is sparse.")] = 1.1,
    tol: Tolerance = 1e-3,
    page: Annotated[Path, Option(help="Where to write the page with the slider.")] = Path("paretomkl-demo.html"),
    no_page: Annotated[bool, Option("--no-page", help="Print the table only.")] = False,
) -> None:
    """Trace the Pareto path on scikit-learn's digits: 45 one-vs-one tasks, 13 kernels, 13 exponents."""
    from ._demo import run_demo

    run_demo(samples, C, s, tol, None if no_page else page)


# --------------------------------------------------------------------------------------------------- path
@command(
    "Example: `paretomkl path patients.csv --target outcome --task hospital --out patients` and open "
    f"`patients/page.html`.\n\n{ABOUT_KERNELS}\n\n{ABOUT_SCORES}\n\n{ABOUT_SHARING} The page is about the kernel; "
    "the others are set beside it."
)
def path(
    file: TableFile,
    target: Target,
    options: Options,
    out: Annotated[Path | None, Option(help="Folder for page.html and path.csv; default: by the table's name.")] = None,
    points: Annotated[int, Option(min=15, max=1000, help="Exponents on the slider.")] = 121,
    test_size: Annotated[float, Option(min=0.1, max=0.9, help="Share of the rows to judge by.")] = 0.25,
) -> None:
    """Show the trade-off between tasks: a page with a slider over p, and the numbers behind it."""
    from .report import trade_off_page

    folder = _check_folder(out or Path(f"{Path(file.name.removesuffix('.gz')).stem}-path"))
    table = options.load(file, target)
    judge = options.judge(table.regression)
    _check_rare(table, 1 - test_size, "path holds some rows out and divides the others into folds")
    _note_target(table, options)
    again = _fitting_command(file, target, options).replace("`", "``")
    ways: list[Share] = sorted({"kernel", *options.ways(table, ["kernel"])}, key=SHARES.index)
    found = trade_off_page(
        table.X,
        table.y,
        task_column=table.columns.task,
        kernels=options.bank(table),
        **options.searched(),
        C=options.C,
        Cs=options.costs(),
        machine=options.machine if table.regression else "svc",
        epsilon=options.epsilon,
        class_weight=options.class_weight,
        scoring=judge.scoring,
        rivals=not options.no_rivals,
        share=ways if len(ways) > 1 else None,
        cv=_folds(table, 5, judge, 1 - test_size),
        test_size=test_size,
        random_state=options.seed,
        n_points=points,
        tol=PAGE_TOL,
        n_jobs=options.jobs,
        title=f"{target} in {file.name}",
        loading=_loading_code(file, target, options),
        refit_note=f"Or in the shell: `{again}`. Both learn from all rows, as for use; the models of this page have "
        f"seen {100 * (1 - test_size):.0f} % of them.",
        verbose=None,
    )
    _report_path(found, *_write_path(folder, found), Output(options.as_json))


def _check_folder(out: Path) -> Path:
    if out.exists() and not out.is_dir():
        raise TableError(f"{str(out)!r} is a file; --out names a folder.")
    if not out.parent.is_dir():
        raise TableError(f"There is no folder {str(out.parent)!r} to make {out.name!r} in.")
    for name in ("page.html", "path.csv"):
        check_writable(out / name if out.exists() else out)
    return out


def _check_rare(table: Table, share: float, why: str) -> None:
    """Refuse classes, or tasks of a regression, with too few rows to be divided; ``share`` of them are left for folds.

    Two of a class are needed there, and three of a task, so that two are left to learn from.
    """
    needed = ceil((3 if table.regression else 2) / share)
    cells = table.tasks if table.regression else zip(table.y.tolist(), table.tasks, strict=True)
    for cell, n in Counter(cells).items():
        if n >= needed:
            continue
        label, task = (None, cell) if table.regression else cell
        whose = " of ".join([f"class {label!r}"] * (label is not None) + [f"task {task!r}"] * bool(task)) or "the table"
        advice = "" if not task and label is None else "Leave it out, or merge it with another."
        rows = f"{n} row{'s' * (n > 1)}"
        raise TableError(f"{whose[0].upper()}{whose[1:]} has {rows}, and {needed} are needed: {why}. {advice}".strip())


def _note_target(table: Table, options: Options) -> None:
    """Say whether a target of numbers was taken for classes; and which options there are for rare classes."""
    distinct, target = len(set(table.y.tolist())), table.columns.target
    if options.regression is None and table.regression:
        note(f"{target!r} holds {distinct} different numbers, so this is a regression; --classification takes classes.")
    elif options.regression is None and table.y.dtype.kind in "iuf" and distinct > 2:
        note(f"{target!r} holds {distinct} different numbers, taken for classes; --regression predicts numbers.")
    if table.regression or options.balanced or options.scoring is not None:
        return
    tasks = table.tasks
    cells, sizes = Counter(zip(tasks, table.y.tolist(), strict=True)), Counter(tasks)
    n_classes = Counter(task for task, _ in cells)
    # of many classes each has a small share
    shares = {
        cell: n / sizes[cell[0]] for cell, n in cells.items() if n / sizes[cell[0]] < RARE * 2 / n_classes[cell[0]]
    }
    if not shares:
        return
    (task, label), share = min(shares.items(), key=lambda item: item[1])
    of_task = f" of task {task!r}" if task != "" else ""
    note(
        f"class {label!r} has {100 * share:.1f} % of the rows{of_task}, and accuracy hardly sees it; --balanced "
        "weighs the classes alike, --scoring balanced_accuracy judges by both."
    )


def _folds(table: Table, folds: int, judge: "Judge", share: float = 1.0) -> int:
    """No more folds than leave each of them two classes of some task, where the score compares classes.

    ``share`` of the rows are divided into folds.
    """
    if table.regression or not judge.metric.compares_classes:
        return folds
    rarest: dict[Any, int] = {}
    for (task, _), n in Counter(zip(table.tasks, table.y.tolist(), strict=True)).items():
        rarest[task] = min(rarest.get(task, n), n)
    most = max(2, int(share * max(rarest.values())))
    if most < folds:
        note(f"{most} folds instead of {folds}: {judge.measure.name} needs rows of two classes in each.")
    return min(folds, most)


def _loading_code(file: Path, target: str, options: Options) -> str:
    """Python that reads a table as a command did."""
    parameters = "".join(f", {name}={value!r}" for name, value in options.table_keywords().items())
    return (
        "from paretomkl.tables import load_table\n\n"
        f"table = load_table({str(file)!r}, {target!r}{parameters})\n"
        "X, y = table.X, table.y"
    )


def _fitting_command(file: Path, target: str, options: Options) -> str:
    """The command that fits a model again, with places for {p}, {C}, {s} and {capacity}."""
    words = ["paretomkl", "fit", str(file), "--target", target]
    found = replace(options, C=None, Cs=None, s=None, capacity=None, epsilon=None, share=None)
    for name, value in replace(found, scoring=None, no_rivals=False, jobs=None, as_json=False).given().items():
        option = "--classification" if name == "regression" and not value else "--" + name.replace("_", "-")
        for one in value if isinstance(value, list) else [value]:
            words += [option] if isinstance(one, bool) else [option, str(one)]
    chosen = "--p {p} --C {C} --s {s}" + " --capacity {capacity}" * options.pays
    chosen += " --epsilon {epsilon}" * (options.loss == "epsilon_insensitive")
    return f"{shlex.join(words)} --tol {PAGE_TOL:g} --out model.skops {chosen}"


def _write_path(folder: Path, found: Any) -> tuple[Path, Path]:
    """The page and the numbers; a folder made for them is removed if they cannot be written."""
    made = not folder.exists()
    folder.mkdir(exist_ok=True)
    try:
        page = write_whole(folder / "page.html", found.html)
        return page, write_whole(folder / "path.csv", _path_frame(found).to_csv(index=False))
    except BaseException:
        if made and not any(folder.iterdir()):
            folder.rmdir()
        raise


def _path_frame(found: Any) -> Frame:
    """One row for each p: certificate, score, kernels, sources, and objective, weight and score of each task."""
    import pandas as pd

    path, score = found.path, found.measure.key
    columns: dict[str, Any] = {"p": path.ps, "M_p": path.objective, "gap": path.gap, score: found.scores_overall}
    columns |= {f"share of source: {name}": share for name, share in path.source_shares.items()}
    columns |= {f"share: {name}": share for name, share in zip(path.kernel_names, path.kernel_shares.T, strict=True)}
    columns |= {f"theta: {name}": theta for name, theta in zip(path.kernel_names, path.theta.T, strict=True)}
    for t, name in enumerate(path.task_names):
        columns[f"objective: {name}"] = path.objectives[:, t]
        columns[f"weight: {name}"] = path.task_weights[:, t]
        columns[f"{score}: {name}"] = found.scores[:, t]
    return pd.DataFrame(columns)


def _report_path(found: Any, page: Path, numbers: Path, output: Output) -> None:
    from ._demo import path_table
    from ._page.words import choice, parameters, source_shares

    path, here = found.path, _at_choice(found)
    n_tasks = len(path.task_names)
    chosen = parameters({name: getattr(found, name) for name in ("C", "capacity", "s", "epsilon")})
    title = f"Pareto path of {n_tasks} task{'s' * (n_tasks > 1)}, {chosen}"
    output.say(path_table(path, title, rows=[k for k, p in enumerate(path.ps) if p in PAPER_PS]))
    if found.cv is not None:
        output.say(choice(found.cv))
    by_source = {name: float(share[here]) for name, share in path.source_shares.items()}
    if by_source:
        output.say(source_shares(by_source))
    _say_sharing(found.sharing, output)
    _say_comparison(found.comparison, output)
    output.say(f"Written: {page} (open it in a browser) and {numbers}.")
    output.finish(
        {
            "page": str(page),
            "numbers": str(numbers),
            "tasks": path.task_names,
            "kernels": path.kernel_names,
            "shares": _named(path.kernel_names, path.kernel_shares[here]),
            "sources": by_source,
            "points": len(path),
            "C": found.C,
            "s": _finite(found.s),
            "capacity": found.capacity,
            "epsilon": found.epsilon,
            "best_p": None if found.cv is None else _finite(float(found.cv.best_p)),
            "scoring": found.measure.key,
            "score_name": found.measure.name,
            "held_out_score": _held_out_score(found),
            "task_scores": _task_scores(found),
            "comparison": None if found.comparison is None else found.comparison.facts(),
            "sharing": None if found.sharing is None else found.sharing.facts(),
            "largest_gap": float(path.gap.max()),
            "rows": {"train": len(found.train), "held_out": len(found.test)},
        }
    )


def _at_choice(found: Any) -> int:
    """The point of a path that cross-validation picks, or the average."""
    p = 1.0 if found.cv is None else found.cv.best_p
    return int(np.flatnonzero(found.path.ps == p)[0])


def _number(value: float) -> float | None:
    """JSON has no number for what is not defined."""
    return float(value) if np.isfinite(value) else None


def _named(names: Sequence[str], values: Any) -> dict[str, float]:
    return dict(zip(names, values.tolist(), strict=True))


def _held_out_score(found: Any) -> float | None:
    return _number(found.scores_overall[_at_choice(found)])


def _task_scores(found: Any) -> dict[str, float | None]:
    scores = found.scores[_at_choice(found)]
    return {name: _number(score) for name, score in zip(found.path.task_names, scores, strict=True)}


def _say_sharing(sharing: Any, output: Output) -> None:
    """The ways to share side by side, and what follows."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    if sharing is None:
        return
    table = Table(header_style="bold", box=SIMPLE_HEAD)
    table.add_column("What tasks share")
    table.add_column("")
    table.add_column(f"{sharing.n_splits} folds", justify="right", no_wrap=True)
    for way in sharing.scores:
        table.add_row(way, CALLED[way], sharing.text(way), style="bold" if way == sharing.best else None)
    output.say(table)
    output.say(sharing.in_words)


def _say_comparison(comparison: Any, output: Output) -> None:
    """A small table of the simpler models beside ours, and what follows."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from ._page.comparison import HOW
    from ._page.words import in_digits

    if comparison is None:
        return
    measure, held_out = comparison.measure, comparison.ours.held_out is not None
    errors = all(one.errors is not None for one in comparison.contenders)
    table = Table(header_style="bold", box=SIMPLE_HEAD)
    table.add_column(measure.name[0].upper() + measure.name[1:])
    for name in [f"{len(comparison.ours.folds)} folds"] + ["held out"] * held_out + ["RMSE"] * errors:
        table.add_column(name, justify="right", no_wrap=True)
    for one in comparison.contenders:
        further = [measure.text(one.held_out)] if held_out else []
        further += [in_digits(one.errors.overall_rmse)] if errors else []
        table.add_row(one.name, comparison.text(one), *further)
    output.say(table)
    output.say(comparison.verdict)
    output.say(HOW)
    if errors and len(comparison.ours.errors.tasks) > 1:
        _say_errors({one.name: one.errors for one in comparison.contenders}, output)


def _say_errors(errors: dict[str, Any], output: Output) -> None:
    """R² of each task by the name of the method, and the root mean squared error of the first."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from ._drawing import shorten
    from ._page.words import R2, in_digits

    ours, *others = errors.values()
    table = Table(header_style="bold", box=SIMPLE_HEAD)
    table.add_column("R² by task", no_wrap=True)
    short = {"one kernel ridge on all tasks together": "one for all", "one kernel ridge per task": "one each"}
    for name in ("rows", *(short.get(name, name.removesuffix(" of each task")) for name in errors), "RMSE"):
        table.add_column(name, justify="right")
    order = np.argsort(ours.r2, kind="stable")  # the worst first, NaN last
    for t in order[: MOST_TASKS if len(order) > MOST_TASKS + 1 else None]:
        values = [R2.text(one.r2[t]) for one in (ours, *others)]
        table.add_row(shorten(ours.tasks[t]), str(ours.rows[t]), *values, in_digits(ours.rmse[t]))
    if len(order) > MOST_TASKS + 1:
        table.add_row(f"and {len(order) - MOST_TASKS} more, all better")
    mean = [R2.text(one.mean_r2) for one in (ours, *others)]
    table.add_row("mean", str(ours.rows.sum()), *mean, in_digits(ours.overall_rmse), style="bold")
    output.say(table)
    whose = "ours, " if others else ""
    output.say(f"The mean of R² is over the tasks; RMSE is {whose}in units of the target, below that of all rows.")


# ---------------------------------------------------------------------------------------------------- fit
@command(
    f"Example: `paretomkl fit patients.csv --target outcome --task hospital --out model.skops`.\n\n{ABOUT_KERNELS}\n\n"
    f"{ABOUT_SCORES}\n\n{ABOUT_SHARING} Unless given it is `auto` where there are tasks, and `kernel` with `--p`."
)
def fit(
    file: TableFile,
    target: Target,
    options: Options,
    out: Annotated[Path, Option("--out", "-o", help="Where to write the model, usually `….skops`.")],
    p: Annotated[str | None, Option("--p", help="Exponent; `inf` protects the worst task; default: by folds.")] = None,
    ps: Annotated[
        str, Option(help="Exponents to choose from; of equals the nearest to 1.")
    ] = "1,0.5,2,0.1,10,0.01,inf",
    cv: Annotated[int, Option(min=2, help="Folds of the cross-validation.")] = 5,
    tol: Tolerance = 1e-3,
) -> None:
    """Fit a model, with p, C, s and capacity by cross-validation unless they are given, and save it.

    With p and C given there is no cross-validation: s is 1.1 then, and capacity 0.5, unless they are given too.
    """
    from sklearn.pipeline import make_pipeline

    from ._persistence import save_model

    check_writable(out)
    if out.resolve() == file.resolve():
        raise TableError(f"The model would overwrite its table {str(file)!r}; name another file (--out).")
    effective_jobs(options.jobs)
    exponents = parse_numbers(ps, "--ps") if p is None else parse_numbers(p, "--p")
    if p is not None and len(exponents) > 1:
        raise TableError(f"--p takes one exponent, got {p!r}; to choose among several use --ps {p}.")
    table = options.load(file, target)
    ways = options.ways(table, SHARES if p is None else ["kernel"])  # to ask for p is to ask for a shared kernel
    judge = options.judge(table.regression)
    parameters = {"kernels": options.bank(table), "task_column": table.columns.task, "tol": tol, "verbose": None}
    if not table.regression:
        parameters["class_weight"] = options.class_weight
    elif options.loss is not None:
        parameters["loss"] = options.loss
    fitted = _fit_table(table, exponents, options.costs(), ways, cv, judge, options, parameters)
    # the model behind its encoder, and the columns it needs
    pipeline = make_pipeline(table.encoder, fitted.model)
    save_model({"kind": MODEL_KIND, "version": __version__, **vars(table.columns), "model": pipeline}, out)
    _report_fit(table, fitted, out, Output(options.as_json))


@dataclass(frozen=True)
class Fitted:
    """A model, the judge of it, the search that chose it (None where nothing was to choose), and its rivals."""

    model: Any
    judge: "Judge"
    search: Any = None
    comparison: Any = None

    @property
    def capacity(self) -> float | None:
        """κ of the kernels; None where they do not pay for their capacity."""
        model = self.model.model_
        bank = getattr(model, "models", [model])[0].bank  # tasks that share nothing have models of their own
        return float(bank.capacity) if bank.normalize == "capacity" else None

    @property
    def epsilon(self) -> float | None:
        """ε of the model; None where it has none."""
        return float(self.model.epsilon) if getattr(self.model, "loss", "") == "epsilon_insensitive" else None


def _fit_table(
    table: Table,
    ps: list[float],
    Cs: list[float] | None,
    ways: list[Share],
    cv: int,
    judge: "Judge",
    options: Options,
    parameters: dict[str, Any],
) -> Fitted:
    """Fit one model, or search for the best by cross-validation and set it beside simpler ones."""
    from ._rivals import compare
    from .estimators import ParetoMKLClassifier, ParetoMKLRegressor
    from .search import ParetoMKLClassifierCV, ParetoMKLRegressorCV

    judge = judge.of_samples(table.X, table.y, task_column=table.columns.task)
    if options.epsilon is not None:
        parameters["epsilon"] = options.epsilon
    exponents = len(ps) if "kernel" in ways else 1
    if Cs is not None and exponents * len(Cs) * len(ways) == 1:
        _note_target(table, options)
        if options.capacity is not None:
            parameters["kernels"] = replace(
                as_bank(parameters["kernels"]), normalize="capacity", capacity=options.capacity
            )
        plain = ParetoMKLRegressor if table.regression else ParetoMKLClassifier
        p = ps[0] if len(ps) == 1 else 1.0
        model = plain(p=p, C=Cs[0], s=options.s or DEFAULT_NORM, share=ways[0], **parameters)
        return Fitted(model.fit(table.X, table.y), judge)
    _check_rare(table, 1.0, "cross-validation divides the rows into folds; with --p and --C there is none")
    _note_target(table, options)
    cv = _folds(table, cv, judge)
    parameters |= options.searched() | {"cv": cv, "scoring": judge.scoring, "n_jobs": options.jobs}
    parameters |= {} if Cs is None else {"Cs": Cs}
    searching = ParetoMKLRegressorCV if table.regression else ParetoMKLClassifierCV
    search = searching(ps=ps, share=ways if len(ways) > 1 else ways[0], **parameters)
    model = search.fit(table.X, table.y).best_estimator_
    comparison = None
    if not options.no_rivals:
        comparison = compare(search, table.X, table.y, n_jobs=options.jobs, verbose=None)
    return Fitted(model, judge, search, comparison)


def _report_fit(table: Table, fitted: Fitted, out: Path, output: Output) -> None:
    from ._page.sharing import Sharing
    from ._page.words import parameters, source_shares

    model, measure, search = fitted.model, fitted.judge.measure, fitted.search
    train = fitted.judge.score_model(model, table.X, table.y)
    p = model.p if model.share == "kernel" else None  # the others are not balanced by it
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
    _say_sharing(sharing, output)
    _say_parts(model, output)
    if by_source:
        output.say(source_shares({name: float(np.mean(share)) for name, share in by_source.items()}))
    _say_comparison(fitted.comparison, output)
    on_training = f"{measure.name} on the rows it was fitted to {measure.text(train)}"
    output.say(f"Certified gap {model.gap_:.1e}; {on_training}. Written: {out}.")
    output.finish(
        {
            "model": str(out),
            "share": model.share,
            "common_share": getattr(model, "common_share_", None),
            "sharing": None if sharing is None else sharing.facts(),
            "p": None if p is None else _finite(p),
            "C": model.C,
            "s": _finite(model.s),
            "capacity": fitted.capacity,
            "epsilon": fitted.epsilon,
            "scoring": measure.key,
            "score_name": measure.name,
            "cv_score": None if search is None else search.best_score_,
            "train_score": _number(train),
            "comparison": None if fitted.comparison is None else fitted.comparison.facts(),
            "gap": model.gap_,
            "tasks": model.task_names_,
            "theta": _by_kernel(model, model.theta_),
            "shares": _by_kernel(model, model.kernel_shares_),
            "sources": by_source,
            "rows": len(table.y),
        }
    )


def _by_kernel(model: Any, values: Any) -> dict[str, Any]:
    """Values by the name of the kernel; where each task has kernels of its own, by the name of the task before that."""
    if values.ndim == 1:
        return _named(model.kernel_names_, values)
    return {name: _named(model.kernel_names_, own) for name, own in zip(model.task_names_, values, strict=True)}


def _say_parts(model: Any, output: Output) -> None:
    """Which kernels the common part of the function and the parts of the tasks are made of."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from ._page.words import percent

    if model.share != "function" or not hasattr(model, "common_share_"):
        return
    bank, shares = model.model_.bank, model.kernel_shares_
    common, own = shares[: bank.base.n_kernels], shares[bank.base.n_kernels :]
    table = Table(header_style="bold", box=SIMPLE_HEAD)
    for name in ("Share of the function", "common", "own"):
        table.add_column(name, justify="left" if name[0] == "S" else "right")
    both = common + own[:-1]
    heavy = [m for m in np.argsort(-both, kind="stable") if both[m] >= LIGHT]
    for m in heavy:
        table.add_row(bank.base.names[m], percent(common[m]), percent(own[m]))
    if len(heavy) < len(both):
        light = np.setdiff1d(np.arange(len(both)), heavy)
        table.add_row(f"{len(light)} lighter kernels", percent(common[light].sum()), percent(own[light].sum()))
    table.add_row("level of each task", "", percent(own[-1]))
    table.add_row("all", percent(common.sum()), percent(own.sum()), style="bold")
    output.say(table)
    output.say(f"{percent(model.common_share_)} of the function is common to the tasks.")


# ------------------------------------------------------------------------------------------------ predict
@command("Example: `paretomkl predict model.skops new.csv --out predictions.csv`.")
def predict(
    model: Annotated[Path, Argument(help="Model that `paretomkl fit` wrote.")],
    file: TableFile,
    out: Annotated[Path | None, Option("--out", "-o", help="CSV file to write; default: print them.")] = None,
    scores: Annotated[bool, Option("--scores", help="Add the decision scores.")] = False,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    as_json: AsJson = False,
) -> None:
    """Predict the rows of a table with a saved model."""
    if out is not None:
        check_writable(out)
        if out.resolve() in (model.resolve(), file.resolve()):
            raise TableError(f"The predictions would overwrite {str(out)!r}; name another file (--out).")
    pipeline, columns = _load_model_file(model)
    frame = read_table(file, delimiter=parse_delimiter(delimiter), decimal=decimal, max_rows=sys.maxsize - 1)
    inputs = _read_inputs(frame, columns, pipeline, file)
    new = _new_tasks(pipeline[-1], inputs, columns.task)
    if not _predicts_numbers(pipeline):
        _report_predictions(_predictions(pipeline, inputs, columns.target, scores, new), out, Output(as_json))
        return
    if scores:
        raise TableError("--scores adds the decision scores of classes, and this model predicts numbers; leave it out.")
    table = _predictions(pipeline, inputs, columns.target, scores=False, new=new)
    _report_numbers(table, _errors_of(table, frame, columns), out, Output(as_json))


def _load_model_file(file: Path) -> tuple[Any, Columns]:
    from ._persistence import load_model

    saved = load_model(file)
    if not (isinstance(saved, dict) and saved.get("kind") == MODEL_KIND):
        raise TableError(f"{file.name} is a saved model, but not one of `paretomkl fit`.")
    return saved["model"], Columns(*(saved[field.name] for field in fields(Columns)))


def _read_inputs(frame: Frame, columns: Columns, pipeline: Any, file: Path) -> Frame:
    """The inputs of a model from a table; words it has not seen are noted."""
    for name in columns.inputs:
        if name not in frame.columns:
            raise TableError(f"{file.name} has no column {name!r}, which the model was fitted with.")
    inputs = columns.read(frame)
    imputes = "simpleimputer" in repr(pipeline).lower()
    for name in columns.inputs:
        missing = int(inputs[name].isna().sum())
        if missing and (name == columns.task or not imputes):
            advice = "remove those rows" if name == columns.task else "fill it, or fit with --impute"
            raise TableError(f"Column {name!r} is missing in {missing} rows; {advice}.")
    known = pipeline[0].named_transformers_["words"][-1].categories_ if columns.words else []
    for name, words in zip(columns.words, known, strict=True):
        new = sorted(set(inputs[name].dropna()) - set(words))
        if new:
            some = ", ".join(map(repr, new[:5])) + " …" * (len(new) > 5)
            note(f"column {name!r} has words the model has not seen, which count as none: {some}.")
    return inputs


def _new_tasks(model: Any, inputs: Frame, task: str | None) -> Any:
    """Which rows are of tasks that a model has not seen and predicts all the same, (n_rows,); they are noted."""
    known = hasattr(model, "common_share_") and task is not None
    new = ~inputs[task].isin(model.sources_).to_numpy() if known else np.zeros(len(inputs), dtype=bool)
    if new.any():
        names = list(dict.fromkeys(inputs[task][new]))
        some = ", ".join(map(repr, names[:5])) + " …" * (len(names) > 5)
        part = "what the tasks have in common" if model.share == "function" else "the model of all tasks"
        which = f"{new.sum()} of {len(new)} rows are of tasks the model has not seen, {some}"
        note(f"{which}: {part} predicts them, and the column {NEW_TASK!r} marks them.")
    return new


def _predictions(pipeline: Any, inputs: Frame, target: str, scores: bool, new: Any) -> Frame:
    """Predictions, scores on request, and a column that marks rows of new tasks where there are any."""
    import pandas as pd

    table = pd.DataFrame({target: pipeline.predict(inputs)})
    if scores:
        decided = np.asarray(pipeline.decision_function(inputs)).reshape(len(inputs), -1)
        classes = [str(label) for label in pipeline[-1].classes_]
        for k, name in enumerate(classes[1:] if decided.shape[1] == 1 else classes):
            table[f"score: {name}"] = decided[:, k]
    if new.any():
        table[NEW_TASK] = new
    return table


def _facts_of_new(table: Frame) -> dict[str, Any]:
    return {NEW_TASK: table[NEW_TASK].tolist()} if NEW_TASK in table.columns else {}


def _report_predictions(table: Frame, out: Path | None, output: Output) -> None:
    target, scores = table.columns[0], [name for name in table.columns[1:] if name != NEW_TASK]
    counts = {str(label): int(n) for label, n in table[target].value_counts().items()}
    facts: dict[str, Any] = {"rows": len(table), "counts": counts} | _facts_of_new(table)
    if out is not None:
        write_whole(out, table.to_csv(index=False))
        output.say(f"{len(table)} rows: {', '.join(f'{n} {label}' for label, n in counts.items())}. Written: {out}.")
        facts["predictions"] = str(out)
    else:
        if not output.as_json:
            table.to_csv(sys.stdout, index=False)
        facts["predictions"] = table[target].tolist()
        if scores:
            facts["scores"] = {name: table[name].tolist() for name in scores}
    output.finish(facts)


def _predicts_numbers(pipeline: Any) -> bool:
    from sklearn.base import is_regressor

    return bool(is_regressor(pipeline[-1]))


def _errors_of(predicted: Frame, frame: Frame, columns: Columns) -> Any:
    """How far predictions are off, task by task, where the table has the target too; else None."""
    import pandas as pd

    from ._page.comparison import TaskErrors
    from ._targets import r_squared

    if columns.target not in frame.columns:
        return None
    truth = pd.to_numeric(frame[columns.target], errors="coerce").to_numpy(dtype=float)
    known = np.isfinite(truth)
    if not known.any():
        return None
    tasks = np.full(len(truth), "all rows") if columns.task is None else columns.read(frame)[columns.task].to_numpy()
    numbers = predicted[columns.target].to_numpy()
    names = list(dict.fromkeys(tasks[known].tolist()))
    parts = [(truth[mine], numbers[mine]) for mine in (known & (tasks == name) for name in names)]
    r2 = [r_squared(own, answer, np.ones(len(own))) if len(own) > 1 else np.nan for own, answer in parts]
    rmse = [np.sqrt(np.mean((own - answer) ** 2)) for own, answer in parts]
    return TaskErrors(names, np.array([len(own) for own, _ in parts]), np.array(r2), np.array(rmse))


def _report_numbers(table: Frame, errors: Any, out: Path | None, output: Output) -> None:
    from ._page.words import R2, in_digits

    numbers = table[table.columns[0]]
    facts: dict[str, Any] = {"rows": len(table)} | _facts_of_new(table)
    if out is not None:
        write_whole(out, table.to_csv(index=False))
        low, middle, high = (in_digits(float(v)) for v in (numbers.min(), numbers.mean(), numbers.max()))
        output.say(f"{len(table)} rows: predictions from {low} to {high}, mean {middle}. Written: {out}.")
        facts["predictions"] = str(out)
    else:
        if not output.as_json:
            table.to_csv(sys.stdout, index=False)
        facts["predictions"] = numbers.tolist()
    if errors is not None:
        facts |= errors.facts()
        if out is not None and len(errors.tasks) > 1:
            _say_errors({"R²": errors}, output)
        else:
            said = (
                f"R² {R2.text(errors.mean_r2)}, RMSE {in_digits(errors.overall_rmse)} against the target in the table."
            )
            if out is not None:
                output.say(said)
            elif not output.as_json:
                note(said)  # standard output holds the predictions
    output.finish(facts)


# --------------------------------------------------------------------------------------------------- info
@command()
def info(
    warm_up: Annotated[bool, Option("--warm-up", help="Compile now, once per machine, and not at first use.")] = False,
    as_json: AsJson = False,
) -> None:
    """Versions, threads, and which data sets of the paper are at hand."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from .datasets import data_found

    output = Output(as_json)
    if warm_up:
        _warm_up(output)
        return
    packages = dict.fromkeys(PACKAGES)
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            packages[name] = version(name)
    data = data_found()
    facts = {
        "paretomkl": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "threads": {name: os.environ[name] for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS") if name in os.environ},
        "packages": packages,
        "data": data,
    }
    rows = {"paretomkl": __version__, "Python": f"{facts['python']} on {facts['system']}, {facts['cores']} cores"}
    rows |= {name: installed or "not installed" for name, installed in packages.items()}
    rows |= {f"data: {name}": str(folder or "not here; downloaded when needed") for name, folder in data.items()}
    table = Table(box=SIMPLE_HEAD, show_header=False)
    for row in rows.items():
        table.add_row(*row)
    output.say(table)
    output.finish(facts)


def _warm_up(output: Output) -> None:
    from ._warm_up import warm_up

    compiled, seconds = warm_up()
    fresh = f"Compiled {compiled} functions in {seconds:.0f} s; from now on they are loaded."
    output.say(fresh if compiled else f"Already compiled; loading took {seconds:.1f} s.")
    output.finish({"compiled": compiled, "seconds": seconds})


EXAMPLE = "Example: `paretomkl reproduce --quick --jobs 2`, then open `experiments/tables.md`."
command(EXAMPLE, resumable=True)(reproduce)
