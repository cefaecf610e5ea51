"""``paretomkl path``."""

import shlex
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from .._tools.files import check_writable, write_whole
from .._tools.shares import SHARES, Share
from .._tools.wording import counted
from ..tables._files import STANDARD_INPUT, TableError
from ._checks import check_named_folds, check_rare, folds_for, note_target
from ._options import (
    ABOUT_KERNELS,
    ABOUT_SCORES,
    ABOUT_SHARING,
    SEARCH_ROWS,
    Options,
    TableArgument,
    Target,
    called,
    is_large,
)
from ._running import Output, command, named, one_blas_thread

if TYPE_CHECKING:
    from pandas import DataFrame as Frame

    from .._select.scores import Judge
    from ..machines import MachineKind
    from ..report import TradeOff
    from ..tables._tables import Table

PAGE_TOL, POINTS = 1e-6, 121  # enough for smooth curves on the page
LARGE_TOL, FEWER_POINTS = 1e-3, 31  # for large tables
FEWER_SEARCH_ROWS, OF_REGRESSION = 2000, 1500  # rows that parameters are chosen on in large tables
FORM = ("delimiter", "decimal", "encoding", "max_rows")  # how a file is read, whichever rows it has
DENSE_WORK = 6e10  # limit on the sum of rows³ over the tasks, for machines whose duals have no zeros


@command(
    "Example: `paretomkl path patients.csv --target outcome --task hospital --out patients`, then open "
    f"`patients/page.html`.\n\n{ABOUT_KERNELS}\n\n{ABOUT_SCORES}\n\n{ABOUT_SHARING} The default is `auto` if there "
    "are tasks. The page shows the trade-off of a shared kernel, and says which way to share is best.",
    options=Options,
    summary="Write a page that shows the trade-off between tasks.",
)
def path(
    file: TableArgument,
    target: Target,
    options: Options,
    out: Annotated[Path | None, Option(help="Folder for page.html and path.csv; default: TABLE-path.")] = None,
    points: Annotated[
        int | None,
        Option(min=15, max=1000, help=f"Exponents on the slider; default: {POINTS}, for large tables {FEWER_POINTS}."),
    ] = None,
    test_size: Annotated[float, Option(min=0.1, max=0.9, help="Share of the rows to hold out.")] = 0.25,
) -> None:
    """Write a page with a slider over p that shows the trade-off between tasks, and the numbers behind it."""
    name = called(file)
    stem = "table" if str(file) in STANDARD_INPUT else Path(name.removesuffix(".gz")).stem
    folder = _check_folder(out or Path(f"{stem}-path"))
    table = options.load(file, target)
    check_rare(table, 1 - test_size, "path, unlike fit, holds some rows out and divides the others into folds")
    kernels = options.bank(table)
    options.say_read(file, table)
    from ..report import trade_off_page  # imported after the first line is printed: it takes a second

    judge = options.judge(table.regression)
    note_target(table, options)
    kind, large = options.kind(table), is_large(table)
    tol = LARGE_TOL if large else PAGE_TOL
    task_rows, seen = _rows_to_learn_from(table, kind, 1 - test_size)
    ways: list[Share] = sorted({"kernel", *options.ways(table, SHARES)}, key=SHARES.index)
    few = OF_REGRESSION if table.regression else FEWER_SEARCH_ROWS
    search = options.search(
        table,
        kernels=kernels,
        loss=kind.loss,
        scoring=judge.scoring,
        share=options.share_among(ways),
        cv=_folds(table, options, judge, 1 - test_size),
        max_search_rows=few if large else SEARCH_ROWS,
    )
    with one_blas_thread():
        found = trade_off_page(
            search,
            table.X,
            _named(table, target),
            groups=table.groups,
            test_size=test_size,
            random_state=options.seed,
            n_points=points or (FEWER_POINTS if large else POINTS),
            tol=tol,
            baselines=not options.no_baselines,
            max_task_rows=task_rows,
            title=f"{target} in {name}",
        )
    again = _fitting_command(file, target, options, found, tol)
    noted = again.replace("`", "``")  # as the page needs it
    next_step = f"Next: `{_next_command(file, target, options, found, again)}`."
    page = found.page(
        next_step=next_step,
        **_reading_code(file, target, options),
        refit_note=f"Or on the command line: `{noted}`. Both learn from all rows; the models on this page learned from "
        f"{100 * seen:.0f} % of them.",
    )
    _report_path(table, found, *_write_path(folder, found, page), next_step, Output(options.as_json))


def _named(table: "Table", target: str) -> Any:
    """What to predict; a single task of numbers is named by its column."""
    from pandas import Series

    return Series(table.y, name=target) if table.regression else table.y


def _folds(table: "Table", options: Options, judge: "Judge", share: float) -> Any:
    """``cv`` of a search on this share of the rows."""
    cv = options.folds()
    if cv == "new tasks":
        raise TableError(
            "--cv new-tasks cannot judge a shared kernel, which the page is about: it has no function for tasks that "
            "were left out; use fit."
        )
    if not isinstance(cv, str):
        return folds_for(table, cv, judge, share)
    check_named_folds(table, cv, share)
    return cv


def _rows_to_learn_from(table: "Table", kind: "MachineKind", share: float) -> tuple[int | None, float]:
    """The most rows that a task learns from, None for all, and the share of all rows that are learned from.

    Duals have zeros only if C bounds them; otherwise there are linear systems as large as the tasks.
    """
    sizes = [share * n for n in Counter(table.tasks).values()]
    most = int((DENSE_WORK / len(sizes)) ** (1 / 3))
    if kind.promises.homogeneous or max(sizes) <= most:
        return None, share
    return most, sum(min(n, most) for n in sizes) / len(table.y)


def _check_folder(out: Path) -> Path:
    if out.exists() and not out.is_dir():
        raise TableError(f"{str(out)!r} is a file; --out needs a folder.")
    if not out.parent.is_dir():
        raise TableError(f"There is no folder {str(out.parent)!r} to create {out.name!r} in.")
    for name in ("page.html", "path.csv"):
        check_writable(out / name if out.exists() else out)
    return out


def _reading_code(file: Path, target: str, options: Options) -> dict[str, str]:
    """Python code that reads the table as the command did, and code that predicts the rows of a file."""
    given = options.table_keywords()
    parameters = "".join(f", {name}={value!r}" for name, value in given.items())
    how = "".join(f", {name}={given[name]!r}" for name in FORM if name in given)
    return {
        "loading": "from paretomkl.tables import load_table, read_table\n\n"
        f"table = load_table({str(file)!r}, {target!r}{parameters})\n"
        "X, y = table.X, table.y",
        "predicting": f"\nnew = read_table({str(file)!r}{how})  # or another file with these columns\n"
        "print({model}.predict(table.columns.read(new)))",
    }


def _fitting_command(file: Path, target: str, options: Options, chosen: "TradeOff", tol: float) -> str:
    """The command that fits the model again, with the placeholder {p}."""
    found = replace(options, C=None, Cs=None, s=None, capacity=None, epsilon=None, share=None)
    words = _fit_words(file, target, replace(found, scoring=None, cv="5"))
    values = {name: getattr(chosen, name) for name in ("C", "s", "capacity", "epsilon")}
    said = "".join(f" --{name} {value!r}" for name, value in values.items() if value is not None)
    return f"{shlex.join(words)} --tol {tol:g} --out model.skops --p {{p}}{said}"


def _next_command(file: Path, target: str, options: Options, found: "TradeOff", again: str) -> str:
    """The command that fits the chosen model: at the best p if the tasks share their kernel."""
    if found.sharing is None or found.sharing.best == "kernel":
        return again.replace("{p}", f"{1.0 if found.cv is None else found.cv.best_p:g}")
    words = _fit_words(file, target, replace(options, share=found.sharing.best))
    return shlex.join([*words, "--out", "model.skops"])


def _fit_words(file: Path, target: str, options: Options) -> list[str]:
    """The words of a command that fits the table with these options, without its output."""
    words = ["paretomkl", "fit", str(file), "--target", target]
    for name, value in replace(options, no_baselines=False, jobs=None, as_json=False).given().items():
        option = "--classification" if name == "regression" and not value else "--" + name.replace("_", "-")
        for one in value if isinstance(value, list) else [value]:
            words += [option] if isinstance(one, bool) else [option, str(one)]
    return words


def _write_path(folder: Path, found: "TradeOff", html: str) -> tuple[Path, Path]:
    """Write the page and the numbers; if that fails, remove a folder created for them."""
    made = not folder.exists()
    folder.mkdir(exist_ok=True)
    try:
        page = write_whole(folder / "page.html", html)
        return page, write_whole(folder / "path.csv", _path_frame(found).to_csv(index=False))
    except BaseException:
        if made and not any(folder.iterdir()):
            folder.rmdir()
        raise


def _path_frame(found: "TradeOff") -> "Frame":
    """One row per p: gap, score, sources, kernels, and the objective, weight and score of each task."""
    path, score = found.path, found.measure.key
    frame = path.to_frame()
    frame.insert(3, score, found.scores_overall)
    return frame.assign(**{f"{score}: {name}": own for name, own in zip(path.task_names, found.scores.T, strict=True)})


def _report_path(table: "Table", found: "TradeOff", page: Path, numbers: Path, next_step: str, output: Output) -> None:
    from .._learn.path import PAPER_PS
    from .._show.words import choice, parameters, source_shares
    from ._showing import path_table, say_comparison, say_scores, say_sharing, say_verdict

    assert found.train is not None  # neither is None after a search
    assert found.s is not None
    path = found.path
    here = list(path.ps).index(1.0 if found.cv is None else found.cv.best_p)
    chosen = parameters({name: getattr(found, name) for name in ("C", "capacity", "s", "epsilon")})
    title = f"Pareto path of {counted(len(path.task_names), 'task')}, {chosen}"
    output.say(path_table(path, title, rows=[k for k, p in enumerate(path.ps) if p in PAPER_PS]))
    if found.cv is not None:
        output.say(choice(found.cv))
    by_source = {name: float(share[here]) for name, share in path.source_shares.items()}
    if by_source:
        output.say(source_shares(by_source))
    say_sharing(found.sharing, output)
    say_comparison(found.comparison, output)
    if found.by_task is not None:
        say_scores(found.by_task, f"of the chosen model on the {counted(len(found.test), 'row')} held out", output)
    output.say(f"Written: {page} (open it in a browser) and {numbers}.")
    say_verdict(found.verdict, next_step, output)
    output.finish(
        {
            "page": str(page),
            "numbers": str(numbers),
            "tasks": path.task_names,
            "kernels": path.kernel_names,
            "shares": named(path.kernel_names, path.kernel_shares[here]),
            "sources": by_source,
            "points": len(path),
            "C": found.C,
            "s": found.s,
            "capacity": found.capacity,
            "epsilon": found.epsilon,
            "best_p": None if found.cv is None else found.cv.best_p,
            "scoring": found.measure.key,
            "score_name": found.measure.name,
            "held_out_score": found.scores_overall[here],
            "task_scores": named(path.task_names, found.scores[here]),
            "by_task": None if found.by_task is None else found.by_task.facts(),
            "comparison": None if found.comparison is None else found.comparison.facts(),
            "sharing": None if found.sharing is None else found.sharing.facts(),
            "verdict": list(found.verdict),
            "largest_gap": float(path.gap.max()),
            "rows": {"train": len(found.train), "held_out": len(found.test)},
            "left_out": [part.facts() for part in table.left_out],
        }
    )
