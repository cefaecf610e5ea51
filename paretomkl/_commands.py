"""The command line: one function per command.

Exit codes: 0 done; 1 something went wrong that is not the caller's doing; 2 wrong options or wrong data, with one
sentence that says what to do; 130 interrupted. Nothing half-written is left behind.
"""

import csv
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
from typing import Annotated, Any

import numpy as np
import typer
from typer import Argument, Option

from . import __version__
from ._experiments.cli import reproduce
from ._files import check_writable, write_whole
from ._kernels import NAMED_KERNELS
from ._parallel import effective_jobs
from ._tables import MAX_ROWS, Columns, Frame, Table, TableError, load_table, read_table
from .path import PAPER_PS

MODEL_KIND = "paretomkl model"
PACKAGES = (
    *("numpy", "scipy", "scikit-learn", "numba", "joblib", "pandas", "pyarrow"),
    *("matplotlib", "skops", "cvxpy", "distributed"),
)
FIRST_PARAMETER = {"rbf": "sigma", "gaussian": "sigma", "laplacian": "gamma", "poly": "degree", "polynomial": "degree"}
PAGE_TOL = 1e-5  # the curves of a page are smooth then
ABOUT_KERNELS = (
    "`--kernels` takes `default` (linear, quadratic, nine Gaussians) or a list with parameters after a colon and "
    "columns after an @: `linear,rbf:0.5,laplacian:2@age+bmi`."
)

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
Target = Annotated[str, Option("--target", "-y", help="Column that holds the classes.")]
Norm = Annotated[float, Option("--s", min=1.0, help="Norm of the kernel weights; 1 is sparse.")]
Tolerance = Annotated[float, Option(min=1e-8, max=0.5, help="Relative gap to certify at every p.")]
Delimiter = Annotated[str | None, Option(help="Between the columns of a text file; default a comma, in .tsv a tab.")]
Decimal = Annotated[str, Option(help="Decimal point of a text file: a point or a comma.")]
AsJson = Annotated[bool, Option("--json", help="Print one JSON object instead of words.")]


@dataclass(frozen=True)
class Options:
    """What the commands that learn from a table have in common, as typed."""

    task: Annotated[str | None, Option("--task", "-t", help="Column that names the task of each row.")] = None
    kernels: Annotated[str, Option(help="Base kernels, see below.")] = "default"
    s: Norm = 1.1
    C: Annotated[float | None, Option("--C", min=1e-9, help="Cost of a margin violation; default: by folds.")] = None
    Cs: Annotated[str, Option("--Cs", help="Values of C to choose from.")] = "0.1,1,10,100"
    categorical: Annotated[str, Option(help="Columns of categories, if they look otherwise; with commas.")] = ""
    drop: Annotated[str, Option(help="Columns to leave out, separated by commas.")] = ""
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

    def table_keywords(self) -> dict[str, Any]:
        """The same as :func:`load_table` takes them."""
        parse = {"categorical": split_names, "drop": split_names, "delimiter": parse_delimiter}
        known = inspect.signature(load_table).parameters
        return {name: parse.get(name, lambda v: v)(value) for name, value in self.given().items() if name in known}


def split_names(text: str) -> list[str]:
    """Names separated by commas, those that hold a comma in quotation marks; blanks around them do not count."""
    return [name.strip() for row in csv.reader([text], skipinitialspace=True) for name in row if name.strip()]


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


def parse_kernels(text: str, names: Sequence[str]) -> Any:
    """Kernels from text: ``default``, or ``rbf:0.5,linear,laplacian:2@age+bmi`` with columns after the @.

    ``names`` are the columns after encoding; a column of words stands for all its indicators.
    """
    if text == "default":
        return "default"
    kernels: list[tuple[str, dict[str, Any]]] = []
    for item in split_names(text):
        spec, at, chosen = item.partition("@")
        name, _, value = spec.partition(":")
        if name not in NAMED_KERNELS:
            raise TableError(f"There is no kernel {name!r} (--kernels); known are {', '.join(sorted(NAMED_KERNELS))}.")
        parameters = _kernel_parameter(name, value, item) if value else {}
        if at and not chosen:
            raise TableError(f"No column follows the @ in {item!r} (--kernels).")
        if chosen:
            columns = [chosen] if chosen in names else chosen.split("+")
            parameters["columns"] = [found for column in columns for found in _encoded(column, names)]
        # a kernel has several names
        if any(NAMED_KERNELS[name] is NAMED_KERNELS[other] and parameters == its for other, its in kernels):
            raise TableError(f"--kernels names {item!r} twice.")
        kernels.append((name, parameters))
    if not kernels:
        raise TableError("--kernels names no kernel.")
    return kernels


def _kernel_parameter(name: str, value: str, item: str) -> dict[str, Any]:
    if name not in FIRST_PARAMETER:
        raise TableError(f"Kernel {name!r} has no parameter, got {item!r} (--kernels).")
    try:
        number = float(value)
    except ValueError:
        raise TableError(f"{value!r} in {item!r} (--kernels) is not a number.") from None
    if FIRST_PARAMETER[name] != "degree":
        return {FIRST_PARAMETER[name]: number}
    if not number.is_integer():
        raise TableError(f"The degree in {item!r} (--kernels) must be a whole number.")
    return {"degree": int(number)}


def _encoded(column: str, names: Sequence[str]) -> list[str]:
    found = [name for name in names if name == column] or [name for name in names if name.startswith(f"{column}=")]
    if not found:
        raise TableError(f"There is no column {column!r} (--kernels); the columns are {', '.join(names)}.")
    return found


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
                warnings.showwarning = _note
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


def _note(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Warnings meant for users as one sentence; those meant for programmers are not shown."""
    if issubclass(category, UserWarning):
        sys.stderr.write(f"Note: {' '.join(str(message).split())}\n")


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
    C: Annotated[float, Option("--C", min=1e-6, help="Cost of a margin violation.")] = 1.0,
    s: Norm = 1.1,
    tol: Tolerance = 1e-3,
    page: Annotated[Path, Option(help="Where to write the page with the slider.")] = Path("paretomkl-demo.html"),
    no_page: Annotated[bool, Option("--no-page", help="Print the table only.")] = False,
) -> None:
    """Trace the Pareto path on scikit-learn's digits: 45 one-vs-one tasks, 11 kernels, 13 exponents."""
    from ._demo import run_demo

    run_demo(samples, C, s, tol, None if no_page else page)


# --------------------------------------------------------------------------------------------------- path
@command(
    "Example: `paretomkl path patients.csv --target outcome --task hospital --out patients` and open "
    f"`patients/page.html`.\n\n{ABOUT_KERNELS}"
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
    table = load_table(file, target, **options.table_keywords())
    needed = ceil(2 / (1 - test_size))  # two are left for folds
    _check_rare_classes(table, needed, "path holds some rows out and divides the others into folds")
    again = _fitting_command(file, target, options).replace("`", "``")
    found = trade_off_page(
        table.X,
        table.y,
        task_column=table.columns.task,
        kernels=parse_kernels(options.kernels, table.features),
        s=options.s,
        C=options.C,
        Cs=parse_numbers(options.Cs, "--Cs"),
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


def _check_rare_classes(table: Table, needed: int, why: str) -> None:
    """Refuse classes with too few rows to be divided."""
    tasks = [""] * len(table.y) if table.columns.task is None else table.X[table.columns.task]
    for (label, task), n in Counter(zip(table.y.tolist(), tasks, strict=True)).items():
        if n < needed:
            whose = f"Class {label!r}" + f" of task {task!r}" * bool(task)
            raise TableError(
                f"{whose} has {n} row{'s' * (n > 1)}, and {needed} are needed: {why}. Leave it out, or merge it with "
                "another."
            )


def _loading_code(file: Path, target: str, options: Options) -> str:
    """Python that reads a table as a command did."""
    parameters = "".join(f", {name}={value!r}" for name, value in options.table_keywords().items())
    return (
        "from paretomkl.tables import load_table\n\n"
        f"table = load_table({str(file)!r}, {target!r}{parameters})\n"
        "X, y = table.X, table.y"
    )


def _fitting_command(file: Path, target: str, options: Options) -> str:
    """The command that fits a model again, with places for {p} and {C}."""
    words = ["paretomkl", "fit", str(file), "--target", target]
    for name, value in replace(options, C=None, Cs=Options.Cs, jobs=None, as_json=False).given().items():
        option = "--" + name.replace("_", "-")
        words += [option] if value is True else [option, str(value)]
    return f"{shlex.join(words)} --tol {PAGE_TOL:g} --out model.skops --p {{p}} --C {{C}}"


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
    """One row for each p: certificate, accuracy, kernel weights, and objective, weight and accuracy of each task."""
    import pandas as pd

    path = found.path
    columns: dict[str, Any] = {"p": path.ps, "M_p": path.objective, "gap": path.gap, "accuracy": found.accuracy_overall}
    for m, name in enumerate(path.kernel_names):
        columns[f"theta: {name}"] = path.theta[:, m]
    for t, name in enumerate(path.task_names):
        columns[f"objective: {name}"] = path.objectives[:, t]
        columns[f"weight: {name}"] = path.task_weights[:, t]
        columns[f"accuracy: {name}"] = found.accuracy[:, t]
    return pd.DataFrame(columns)


def _report_path(found: Any, page: Path, numbers: Path, output: Output) -> None:
    from ._demo import path_table
    from ._page.words import choice

    path = found.path
    n_tasks = len(path.task_names)
    title = f"Pareto path of {n_tasks} task{'s' * (n_tasks > 1)}, C = {found.C:g}"
    output.say(path_table(path, title, rows=[k for k, p in enumerate(path.ps) if p in PAPER_PS]))
    if found.cv is not None:
        output.say(choice(found.cv))
    output.say(f"Written: {page} (open it in a browser) and {numbers}.")
    output.finish(
        {
            "page": str(page),
            "numbers": str(numbers),
            "tasks": path.task_names,
            "kernels": path.kernel_names,
            "points": len(path),
            "C": found.C,
            "best_p": None if found.cv is None else _finite(float(found.cv.best_p)),
            "largest_gap": float(path.gap.max()),
            "rows": {"train": len(found.train), "held_out": len(found.test)},
        }
    )


# ---------------------------------------------------------------------------------------------------- fit
@command(
    f"Example: `paretomkl fit patients.csv --target outcome --task hospital --out model.skops`.\n\n{ABOUT_KERNELS}"
)
def fit(
    file: TableFile,
    target: Target,
    options: Options,
    out: Annotated[Path, Option("--out", "-o", help="Where to write the model, usually `….skops`.")],
    p: Annotated[str | None, Option("--p", help="Exponent; `inf` protects the worst task; default: by folds.")] = None,
    ps: Annotated[str, Option(help="Exponents to choose from; of equals the first wins.")] = "1,0.5,2,0.1,10,0.01,inf",
    cv: Annotated[int, Option(min=2, help="Folds of the cross-validation.")] = 5,
    balanced: Annotated[bool, Option("--balanced", help="Weigh the classes of a task alike, however rare.")] = False,
    tol: Tolerance = 1e-3,
) -> None:
    """Fit a model, with p and C by cross-validation unless they are given, and save it."""
    from sklearn.pipeline import make_pipeline

    from ._persistence import save_model
    from .estimators import ParetoMKLClassifier
    from .search import ParetoMKLClassifierCV

    check_writable(out)
    if out.resolve() == file.resolve():
        raise TableError(f"The model would overwrite its table {str(file)!r}; name another file (--out).")
    effective_jobs(options.jobs)
    exponents = parse_numbers(ps, "--ps") if p is None else parse_numbers(p, "--p")
    if p is not None and len(exponents) > 1:
        raise TableError(f"--p takes one exponent, got {p!r}; to choose among several use --ps {p}.")
    table = load_table(file, target, **options.table_keywords())
    parameters = {
        "s": options.s,
        "kernels": parse_kernels(options.kernels, table.features),
        "task_column": table.columns.task,
        "class_weight": "balanced" if balanced else None,
        "tol": tol,
        "verbose": None,
    }
    Cs = [options.C] if options.C is not None else parse_numbers(options.Cs, "--Cs")
    if len(exponents) * len(Cs) == 1:
        model = ParetoMKLClassifier(p=exponents[0], C=Cs[0], **parameters).fit(table.X, table.y)
        score = None
    else:
        _check_rare_classes(table, 2, "cross-validation divides the rows into folds; with --p and --C there is none")
        search = ParetoMKLClassifierCV(ps=exponents, Cs=Cs, cv=cv, n_jobs=options.jobs, **parameters)
        model = search.fit(table.X, table.y).best_estimator_
        score = search.best_score_
    # the model behind its encoder, and the columns it needs
    pipeline = make_pipeline(table.encoder, model)
    save_model({"kind": MODEL_KIND, "version": __version__, **vars(table.columns), "model": pipeline}, out)
    _report_fit(table, model, score, cv, out, Output(options.as_json))


def _report_fit(table: Table, model: Any, score: float | None, cv: int, out: Path, output: Output) -> None:
    train = float(model.score(table.X, table.y))
    chosen = f"p = {model.p:g}, C = {model.C:g}"
    if score is not None:
        output.say(f"Chosen by {cv}-fold cross-validation: {chosen}, score {score:.4f}.")
    else:
        output.say(f"Fitted with {chosen}.")
    output.say(f"Certified gap {model.gap_:.1e}; score on the rows it was fitted to {train:.4f}. Written: {out}.")
    output.finish(
        {
            "model": str(out),
            "p": _finite(model.p),
            "C": model.C,
            "cv_score": score,
            "train_score": train,
            "gap": model.gap_,
            "tasks": model.task_names_,
            "theta": dict(zip(model.kernel_names_, model.theta_.tolist(), strict=True)),
            "rows": len(table.y),
        }
    )


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
    table = _predictions(pipeline, inputs, columns.target, scores)
    _report_predictions(table, out, Output(as_json))


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
            sys.stderr.write(f"Note: column {name!r} has words the model has not seen, which count as none: {some}.\n")
    return inputs


def _predictions(pipeline: Any, inputs: Frame, target: str, scores: bool) -> Frame:
    import pandas as pd

    table = pd.DataFrame({target: pipeline.predict(inputs)})
    if scores:
        decided = np.asarray(pipeline.decision_function(inputs)).reshape(len(inputs), -1)
        classes = [str(label) for label in pipeline[-1].classes_]
        for k, name in enumerate(classes[1:] if decided.shape[1] == 1 else classes):
            table[f"score: {name}"] = decided[:, k]
    return table


def _report_predictions(table: Frame, out: Path | None, output: Output) -> None:
    target, *scores = table.columns
    counts = {str(label): int(n) for label, n in table[target].value_counts().items()}
    facts: dict[str, Any] = {"rows": len(table), "counts": counts}
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
