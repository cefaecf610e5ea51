"""What the commands ``path``, ``fit``, ``predict`` and ``info`` do."""

from __future__ import annotations

import inspect
import json
import os
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from . import __version__
from ._files import check_writable, write_whole
from ._parallel import effective_jobs
from .kernels import NAMED_KERNELS
from .path import PAPER_PS, ParetoPath
from .tables import (
    Columns,
    Frame,
    Table,
    TableError,
    as_inputs,
    join_names,
    load_table,
    read_table,
    split_names,
    unseen_words,
)

MODEL_KIND = "paretomkl model"
FIRST_PARAMETER = {"rbf": "sigma", "gaussian": "sigma", "laplacian": "gamma", "poly": "degree", "polynomial": "degree"}


# ------------------------------------------------------------------------------------------------ options
def parse_kernels(text: str, names: Sequence[str]) -> Any:
    """Kernels from text: ``default``, or ``rbf:0.5,linear,laplacian:2@age+bmi`` with columns after the @.

    ``names`` are the columns after encoding; a column of words stands for all its indicators.
    """
    if text == "default":
        return "default"
    kernels: list[tuple[str, dict[str, Any]]] = []
    seen: list[tuple[Any, dict[str, Any]]] = []  # a kernel has several names
    for item in split_names(text):
        spec, at, chosen = item.partition("@")
        name, _, value = spec.partition(":")
        if name not in NAMED_KERNELS:
            raise TableError(f"There is no kernel {name!r} (--kernels); known are {', '.join(sorted(NAMED_KERNELS))}.")
        parameters: dict[str, Any] = {}
        if value:
            if name not in FIRST_PARAMETER:
                raise TableError(f"Kernel {name!r} has no parameter, got {item!r} (--kernels).")
            try:
                number = float(value)
            except ValueError:
                raise TableError(f"{value!r} in {item!r} (--kernels) is not a number.") from None
            degree = FIRST_PARAMETER[name] == "degree"
            if degree and not number.is_integer():
                raise TableError(f"The degree in {item!r} (--kernels) must be a whole number.")
            parameters[FIRST_PARAMETER[name]] = int(number) if degree else number
        if at and not chosen:
            raise TableError(f"No column follows the @ in {item!r} (--kernels).")
        if chosen:
            columns = [chosen] if chosen in names else chosen.split("+")
            parameters["columns"] = [found for column in columns for found in _encoded(column, names)]
        if (NAMED_KERNELS[name], parameters) in seen:
            raise TableError(f"--kernels names {item!r} twice.")
        seen.append((NAMED_KERNELS[name], parameters))
        kernels.append((name, parameters))
    if not kernels:
        raise TableError("--kernels names no kernel.")
    return kernels


def _encoded(column: str, names: Sequence[str]) -> list[str]:
    found = [name for name in names if name == column] or [name for name in names if name.startswith(f"{column}=")]
    if not found:
        raise TableError(f"There is no column {column!r} (--kernels); the columns are {', '.join(names)}.")
    return found


def parse_numbers(text: str, option: str) -> list[float]:
    """Numbers separated by commas; ``inf`` and ``∞`` are infinity."""
    try:
        numbers = [float(part.strip().replace("∞", "inf")) for part in text.split(",") if part.strip()]
    except ValueError:
        raise TableError(f"{option} takes numbers separated by commas, got {text!r}.") from None
    if not numbers:
        raise TableError(f"{option} names no number.")
    return numbers


def table_options(
    task: str | None,
    categorical: str,
    drop: str,
    impute: bool,
    delimiter: str | None,
    decimal: str,
    max_rows: int,
    sample: int | None,
    seed: int,
) -> dict[str, Any]:
    """What the options of a command are to :func:`load_table`."""
    return {
        "task": task,
        "categorical": split_names(categorical),
        "drop": split_names(drop),
        "impute": impute,
        "delimiter": parse_delimiter(delimiter),
        "decimal": decimal,
        "max_rows": max_rows,
        "sample": sample,
        "seed": seed,
    }


def parse_delimiter(text: str | None) -> str | None:
    """The shell has no easy way to type a tab."""
    return "\t" if text in ("\\t", "tab") else text


# ---------------------------------------------------------------------------------------------- fit it again
def _given(options: dict[str, Any]) -> dict[str, Any]:
    """The options that are not as by default."""
    usual = inspect.signature(load_table).parameters
    return {name: value for name, value in options.items() if value and value != usual[name].default}


def loading_code(file: Path, target: str, options: dict[str, Any]) -> str:
    """Python that reads a table as a command did."""
    parameters = "".join(f", {name}={value!r}" for name, value in _given(options).items())
    return (
        "from paretomkl.tables import load_table\n\n"
        f"table = load_table({str(file)!r}, {target!r}{parameters})\n"
        "X, y = table.X, table.y"
    )


def fitting_command(file: Path, target: str, options: dict[str, Any], kernels: str, s: float, tol: float) -> str:
    """The command that fits a model again; {p} and {C} are to be filled in."""
    words = ["paretomkl", "fit", str(file), "--target", target]
    for name, value in _given(options).items():
        option = "--" + name.replace("_", "-")
        words += [option] if value is True else [option, join_names(value) if isinstance(value, list) else str(value)]
    if kernels != "default":
        words += ["--kernels", kernels]
    words += ["--s", repr(s), "--tol", f"{tol:g}", "--out", "model.skops"]
    return f"{shlex.join(words)} --p {{p}} --C {{C}}"


# ------------------------------------------------------------------------------------------------- output
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


# ----------------------------------------------------------------------------------------------- commands
def run_path(
    file: Path,
    target: str,
    options: dict[str, Any],
    out: Path,
    kernels: str,
    s: float,
    C: float | None,
    Cs: str,
    points: int,
    test_size: float,
    seed: int,
    jobs: int | None,
    output: Output,
) -> None:
    """Trace the path, judge it on rows held out, and write the page and the numbers."""
    from ._demo import path_table
    from .report import trade_off_page
    from .report.words import choice

    if out.exists() and not out.is_dir():
        raise TableError(f"{str(out)!r} is a file; --out names a folder.")
    if not out.parent.is_dir():
        raise TableError(f"There is no folder {str(out.parent)!r} to make {out.name!r} in.")
    for name in ("page.html", "path.csv"):
        check_writable(out / name if out.exists() else out)
    table = load_table(file, target, **options)
    needed = ceil(2 / (1 - test_size))  # two are left for folds
    _check_rare_classes(table, needed, "path holds some rows out and divides the others into folds")
    tol = 1e-5  # the curves are smooth then
    again = fitting_command(file, target, options, kernels, s, tol).replace("`", "``")
    found = trade_off_page(
        table.X,
        table.y,
        task_column=table.columns.task,
        kernels=parse_kernels(kernels, table.features),
        s=s,
        C=C,
        Cs=parse_numbers(Cs, "--Cs"),
        test_size=test_size,
        random_state=seed,
        n_points=points,
        tol=tol,
        n_jobs=jobs,
        title=f"{target} in {file.name}",
        loading=loading_code(file, target, options),
        refit_note=f"Or in the shell: `{again}`. Both learn from all rows, as for use; the models of this page have "
        f"seen {100 * (1 - test_size):.0f} % of them.",
        verbose=None,
    )
    made = not out.exists()
    out.mkdir(exist_ok=True)
    try:
        page = write_whole(out / "page.html", found.html)
        frame = path_frame(found.path, found.accuracy, found.accuracy_overall)
        numbers = write_whole(out / "path.csv", frame.to_csv(index=False))
    except BaseException:
        if made and not any(out.iterdir()):
            out.rmdir()
        raise
    path = found.path
    shown = [k for k, p in enumerate(path.ps) if p in PAPER_PS]
    n_tasks = len(path.task_names)
    output.say(path_table(_some(path, shown), f"Pareto path of {n_tasks} task{'s' * (n_tasks > 1)}, C = {found.C:g}"))
    best = None if found.cv is None else found.cv.best_p
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
            "best_p": None if best is None else _finite(float(best)),
            "largest_gap": float(path.gap.max()),
            "rows": {"train": len(found.train), "held_out": len(found.test)},
        }
    )


def _check_rare_classes(table: Table, needed: int, why: str) -> None:
    """Refuse classes with too few rows to be divided."""
    tasks = [""] * len(table.y) if table.columns.task is None else table.X[table.columns.task]
    for (label, task), n in Counter(zip(table.y.tolist(), tasks, strict=True)).items():
        if n < needed:
            whose = f"Class {label!r}" + f" of task {task!r}" * bool(task)
            raise TableError(
                f"{whose} has {n} row{'s' * (n > 1)}, and {needed} are needed: {why}. Leave it out, or put it together "
                "with another."
            )


def _some(path: ParetoPath, rows: list[int]) -> ParetoPath:
    from dataclasses import replace

    return replace(
        path,
        ps=path.ps[rows],
        theta=path.theta[rows],
        objectives=path.objectives[rows],
        task_weights=path.task_weights[rows],
        objective=path.objective[rows],
        gap=path.gap[rows],
        solutions=[path.solutions[k] for k in rows],
    )


def path_frame(path: ParetoPath, accuracy: Any = None, overall: Any = None) -> Frame:
    """One row for each p: certificate, kernel weights, and objective, weight and accuracy of each task."""
    import pandas as pd

    columns: dict[str, Any] = {"p": path.ps, "M_p": path.objective, "gap": path.gap}
    if overall is not None:
        columns["accuracy"] = overall
    for m, name in enumerate(path.kernel_names):
        columns[f"theta: {name}"] = path.theta[:, m]
    for t, name in enumerate(path.task_names):
        columns[f"objective: {name}"] = path.objectives[:, t]
        columns[f"weight: {name}"] = path.task_weights[:, t]
        if accuracy is not None:
            columns[f"accuracy: {name}"] = accuracy[:, t]
    return pd.DataFrame(columns)


def run_fit(
    file: Path,
    target: str,
    options: dict[str, Any],
    out: Path,
    kernels: str,
    s: float,
    p: str | None,
    C: float | None,
    ps: str,
    Cs: str,
    cv: int,
    balanced: bool,
    tol: float,
    jobs: int | None,
    output: Output,
) -> None:
    """Fit a model, p and C by cross-validation unless given, and save it with its encoder."""
    from sklearn.pipeline import make_pipeline

    from .estimators import ParetoMKLClassifier
    from .persistence import save_model
    from .search import ParetoMKLClassifierCV

    check_writable(out)
    if out.resolve() == file.resolve():
        raise TableError(f"The model would overwrite its table {str(file)!r}; name another file (--out).")
    effective_jobs(jobs)
    exponents = parse_numbers(ps, "--ps") if p is None else parse_numbers(p, "--p")
    if p is not None and len(exponents) > 1:
        raise TableError(f"--p takes one exponent, got {p!r}; to choose among several say --ps {p}.")
    table = load_table(file, target, **options)
    common = {
        "s": s,
        "kernels": parse_kernels(kernels, table.features),
        "task_column": table.columns.task,
        "class_weight": "balanced" if balanced else None,
        "tol": tol,
    }
    costs = [C] if C is not None else parse_numbers(Cs, "--Cs")
    score = None
    if len(exponents) * len(costs) > 1:
        _check_rare_classes(table, 2, "cross-validation divides the rows into folds; with --p and --C there is none")
        search = ParetoMKLClassifierCV(ps=exponents, Cs=costs, cv=cv, n_jobs=jobs, verbose=None, **common)  # type: ignore[arg-type]
        model = search.fit(table.X, table.y).best_estimator_
        score = search.best_score_
    else:
        model = ParetoMKLClassifier(p=exponents[0], C=costs[0], verbose=None, **common)  # type: ignore[arg-type]
        model.fit(table.X, table.y)
    columns = table.columns
    saved = {
        "kind": MODEL_KIND,
        "version": __version__,
        "target": columns.target,
        "task": columns.task,
        "numbers": columns.numbers,
        "words": columns.words,
        "model": make_pipeline(table.encoder, model),
    }
    save_model(saved, out)
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


def run_predict(
    model_file: Path,
    file: Path,
    out: Path | None,
    delimiter: str | None,
    decimal: str,
    scores: bool,
    output: Output,
) -> None:
    """Predict the rows of a table with a saved model."""
    import pandas as pd

    from .persistence import load_model

    if out is not None:
        check_writable(out)
        if out.resolve() in (model_file.resolve(), file.resolve()):
            raise TableError(f"The predictions would overwrite {str(out)!r}; name another file (--out).")
    try:
        saved = load_model(model_file)
    except (ValueError, OSError, ImportError) as error:
        raise TableError(str(error)) from error
    if not (isinstance(saved, dict) and saved.get("kind") == MODEL_KIND):
        raise TableError(f"{model_file.name} is a saved model, but not one of `paretomkl fit`.")
    columns = Columns(saved["target"], saved["task"], saved["numbers"], saved["words"])
    frame = read_table(file, delimiter=parse_delimiter(delimiter), decimal=decimal, max_rows=np.iinfo(np.int64).max - 1)
    for name in columns.inputs:
        if name not in frame.columns:
            raise TableError(f"{file.name} has no column {name!r}, which the model was fitted with.")
    pipeline = saved["model"]
    imputes = "simpleimputer" in repr(pipeline).lower()
    inputs = as_inputs(frame, columns)
    for name in columns.inputs:
        missing = int(inputs[name].isna().sum())
        if missing and (name == columns.task or not imputes):
            advice = "remove those rows" if name == columns.task else "fill it, or fit with --impute"
            raise TableError(f"Column {name!r} is missing in {missing} rows; {advice}.")
    for name, words in unseen_words(inputs, columns, pipeline[0]).items():
        some = ", ".join(map(repr, words[:5])) + (" …" if len(words) > 5 else "")
        sys.stderr.write(f"Note: column {name!r} has words the model has not seen, which count as none: {some}.\n")
    try:
        predicted = pipeline.predict(inputs)
    except ValueError as error:
        raise TableError(str(error)) from error
    table = pd.DataFrame({columns.target: predicted})
    if scores:
        decided = np.asarray(pipeline.decision_function(inputs))
        classes = [str(label) for label in pipeline[-1].classes_]
        decided = decided[:, None] if decided.ndim == 1 else decided
        for k, name in enumerate(classes[1:] if decided.shape[1] == 1 else classes):
            table[f"score: {name}"] = decided[:, k]
    counts = {str(label): int(n) for label, n in table[columns.target].value_counts().items()}
    if out is not None:
        write_whole(out, table.to_csv(index=False))
        output.say(
            f"{len(table)} rows: " + ", ".join(f"{n} {label}" for label, n in counts.items()) + f". Written: {out}."
        )
    elif not output.as_json:
        table.to_csv(sys.stdout, index=False)
    facts: dict[str, Any] = {"rows": len(table), "counts": counts}
    facts["predictions"] = str(out) if out else table.iloc[:, 0].tolist()
    if scores and not out:
        facts["scores"] = {name: table[name].tolist() for name in table.columns[1:]}
    output.finish(facts)


def run_info(output: Output) -> None:
    """Versions, threads and data at hand."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from .datasets import data_found

    packages: dict[str, str | None] = {}
    for name in (
        *("numpy", "scipy", "scikit-learn", "numba", "joblib", "pandas", "pyarrow"),
        *("matplotlib", "skops", "cvxpy", "distributed"),
    ):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = None
    found = {name: None if folder is None else str(folder) for name, folder in data_found().items()}
    facts = {
        "paretomkl": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "threads": {name: os.environ[name] for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS") if name in os.environ},
        "packages": packages,
        "data": found,
    }
    table = Table(box=SIMPLE_HEAD, show_header=False)
    table.add_row("paretomkl", __version__)
    table.add_row("Python", f"{facts['python']} on {facts['system']}, {facts['cores']} cores")
    for name, installed in packages.items():
        table.add_row(name, installed or "not installed")
    for name, folder in found.items():
        table.add_row(f"data: {name}", folder or "not here; fetched when asked for")
    output.say(table)
    output.finish(facts)
