"""What the commands ``path``, ``fit``, ``predict`` and ``info`` do."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import __version__
from ._files import check_writable, write_whole
from .kernels import NAMED_KERNELS
from .path import PAPER_PS, ParetoPath
from .tables import (
    Columns,
    Frame,
    TableError,
    as_text,
    as_words,
    choose_columns,
    make_encoder,
    read_table,
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
    kernels = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        spec, _, chosen = item.partition("@")
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
        if chosen:
            parameters["columns"] = [found for column in chosen.split("+") for found in _encoded(column, names)]
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


# --------------------------------------------------------------------------------------------------- data
class Data:
    """A table read, with its columns told apart and an encoder for them."""

    def __init__(self, frame: Frame, columns: Columns, impute: bool):
        self.columns = columns
        self.inputs = as_words(frame, columns)
        self.encoder = make_encoder(columns, impute)
        self.encoded = self.encoder.fit_transform(self.inputs)
        target = frame[columns.target]
        self.y = (as_text(target) if target.dtype == object else target).to_numpy()
        self.features = [name for name in self.encoded.columns if name != columns.task]


def load(
    file: Path,
    target: str,
    task: str | None,
    categorical: str,
    drop: str,
    impute: bool,
    delimiter: str | None,
    max_rows: int,
    sample: int | None,
    seed: int,
) -> Data:
    separator = delimiter.replace("\\t", "\t") if delimiter else None
    frame = read_table(file, delimiter=separator, max_rows=max_rows, sample=sample, seed=seed)
    columns = choose_columns(frame, target, task, _names(categorical), _names(drop), impute)
    distinct = frame[target].nunique()
    if frame[target].dtype.kind == "f" and distinct > 20:
        raise TableError(
            f"Column {target!r} (--target) holds {distinct} different numbers; a target names classes, so put them "
            "into groups first."
        )
    if distinct < 2:
        raise TableError(f"Column {target!r} (--target) holds one class only, {frame[target].iloc[0]!r}.")
    if task is not None:
        classes = frame.groupby(as_text(frame[task]), observed=True)[target].nunique()
        if (classes < 2).any():
            raise TableError(
                f"Task {str(classes.idxmin())!r} has one class only; a task needs two or more: leave its rows out."
            )
    return Data(frame, columns, impute)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


# ----------------------------------------------------------------------------------------------- commands
def run_path(
    data: Data,
    out: Path,
    kernels: str,
    s: float,
    C: float | None,
    Cs: str,
    points: int,
    test_size: float,
    seed: int,
    jobs: int | None,
    title: str,
    output: Output,
) -> None:
    """Trace the path, judge it on rows held out, and write the page and the numbers."""
    from ._demo import path_table
    from .report import trade_off_page

    if out.exists() and not out.is_dir():
        raise TableError(f"{str(out)!r} is a file; --out names a folder.")
    if not out.parent.is_dir():
        raise TableError(f"There is no folder {str(out.parent)!r} to make {out.name!r} in.")
    found = trade_off_page(
        data.encoded,
        data.y,
        task_column=data.columns.task,
        kernels=parse_kernels(kernels, data.features),
        s=s,
        C=C,
        Cs=parse_numbers(Cs, "--Cs"),
        test_size=test_size,
        random_state=seed,
        n_points=points,
        n_jobs=jobs,
        title=title,
        verbose=None,
    )
    made = not out.exists()
    out.mkdir(exist_ok=True)
    try:
        page = write_whole(out / "page.html", found.html)
        table = path_frame(found.path, found.accuracy, found.accuracy_overall)
        numbers = write_whole(out / "path.csv", table.to_csv(index=False))
    except BaseException:
        if made and not any(out.iterdir()):
            out.rmdir()
        raise
    path = found.path
    shown = [k for k, p in enumerate(path.ps) if p in PAPER_PS]
    output.say(path_table(_some(path, shown), f"Pareto path of {len(path.task_names)} tasks, C = {found.C:g}"))
    best = None if found.cv is None else found.cv.best_p
    if best is not None:
        output.say(f"Cross-validation would pick p = {best:g}.")
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
    data: Data,
    out: Path,
    kernels: str,
    s: float,
    p: str | None,
    C: float | None,
    ps: str,
    Cs: str,
    cv: int,
    balanced: bool,
    jobs: int | None,
    output: Output,
) -> None:
    """Fit a model, p and C by cross-validation unless given, and save it with its encoder."""
    from sklearn.pipeline import make_pipeline

    from .estimators import ParetoMKLClassifier
    from .persistence import save_model
    from .search import ParetoMKLClassifierCV

    check_writable(out)
    common = {
        "s": s,
        "kernels": parse_kernels(kernels, data.features),
        "task_column": data.columns.task,
        "class_weight": "balanced" if balanced else None,
    }
    exponents = parse_numbers(p, "--p") if p is not None else parse_numbers(ps, "--ps")
    costs = [C] if C is not None else parse_numbers(Cs, "--Cs")
    score = None
    if len(exponents) * len(costs) > 1:
        search = ParetoMKLClassifierCV(ps=exponents, Cs=costs, cv=cv, n_jobs=jobs, verbose=None, **common)  # type: ignore[arg-type]
        model = search.fit(data.encoded, data.y).best_estimator_
        score = search.best_score_
    else:
        model = ParetoMKLClassifier(p=exponents[0], C=costs[0], verbose=None, **common)  # type: ignore[arg-type]
        model.fit(data.encoded, data.y)
    columns = data.columns
    saved = {
        "kind": MODEL_KIND,
        "version": __version__,
        "target": columns.target,
        "task": columns.task,
        "numbers": columns.numbers,
        "words": columns.words,
        "model": make_pipeline(data.encoder, model),
    }
    save_model(saved, out)
    train = float(model.score(data.encoded, data.y))
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
            "rows": len(data.y),
        }
    )


def run_predict(
    model_file: Path, file: Path, out: Path | None, delimiter: str | None, scores: bool, output: Output
) -> None:
    """Predict the rows of a table with a saved model."""
    import pandas as pd

    from .persistence import load_model

    if out is not None:
        check_writable(out)
    try:
        saved = load_model(model_file)
    except (ValueError, OSError, ImportError) as error:
        raise TableError(str(error)) from error
    if not (isinstance(saved, dict) and saved.get("kind") == MODEL_KIND):
        raise TableError(f"{model_file.name} is a saved model, but not one of `paretomkl fit`.")
    columns = Columns(saved["target"], saved["task"], saved["numbers"], saved["words"])
    frame = read_table(
        file, delimiter=delimiter.replace("\\t", "\t") if delimiter else None, max_rows=np.iinfo(np.int64).max - 1
    )
    for name in columns.inputs:
        if name not in frame.columns:
            raise TableError(f"{file.name} has no column {name!r}, which the model was fitted with.")
    pipeline = saved["model"]
    imputes = "simpleimputer" in repr(pipeline).lower()
    for name in columns.numbers:
        frame[name] = _numbers(frame[name], name, imputes)
    for name in (*columns.words, *filter(None, [columns.task])):
        if frame[name].isna().any() and (name == columns.task or not imputes):
            raise TableError(f"Column {name!r} is missing in {int(frame[name].isna().sum())} rows.")
    inputs = as_words(frame, columns)
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


def _numbers(column: Any, name: str, imputes: bool) -> Any:
    import pandas as pd

    numbers = pd.to_numeric(column, errors="coerce")
    wrong = numbers.isna() & column.notna()
    if wrong.any():
        row = int(wrong.to_numpy().argmax())
        raise TableError(f"Column {name!r} must hold numbers; row {row + 1} has {column[row]!r}.")
    infinite = np.isinf(numbers.to_numpy(dtype=float))
    if infinite.any():
        raise TableError(f"Column {name!r} holds an infinite number in row {int(infinite.argmax()) + 1}.")
    if numbers.isna().any() and not imputes:
        raise TableError(
            f"Column {name!r} is missing in {int(numbers.isna().sum())} rows; fit with --impute, or fill it."
        )
    return numbers


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
