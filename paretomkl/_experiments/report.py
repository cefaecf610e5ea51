"""Tables and figures from the records of a run, compared with the numbers printed in the paper."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..plotting import AccuracyDisplay, ObjectivesDisplay
from ..scalarizations import PowerMean
from .analysis import PAPER_SETS, PRINTED, Findings, PathScores, Scores, compare, difference, mean
from .plan import METHODS, STUDIES
from .results import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLES = {
    "p=1": "p = 1",
    "p<1": "best p < 1",
    "p=0.01": "p = 0.01",
    "p=inf": "p = ∞",
    "cv": "p by CV",
    "sparse": "Sparse MTL",
    "tang": "Tang et al.",
    "mm-aep": "MM-AEP",
    "mm-ep": "MM-EP",
    "independent": "Independent MKL",
    "independent-svc": "Independent SVC",
    "uniform": "Uniform kernel",
    "svc": "GridSearchCV(SVC)",
    "default": "Our default",
}
BEYOND = ("svc", "default")  # not in the paper
MULTI_CLASS, TASK_SETS = PAPER_SETS[:6], PAPER_SETS[6:]
INF = float("inf")
SHOWN_PS = (0.01, 0.1, 0.5, 1.0, 2.0, 10.0, INF)
MARKS = {-1: " ▾", 0: "", 1: " ▴"}
AGAINST_SVC = {-1: " ▽", 0: "", 1: " △"}  # second mark of our default, if the first compares with something else


# ------------------------------------------------------------------------------------------------- formatting
def percent(scores: Scores, reference: Scores | None = None) -> str:
    """Mean accuracy, with a mark if it differs significantly from the reference."""
    return f"{100 * mean(scores):.2f}{MARKS[compare(scores, reference) if reference else 0]}"


def printed(dataset: str, fraction: int, row: str) -> str:
    """The number in the paper, in brackets; empty if there is none."""
    found = PRINTED.get((dataset, fraction, row))
    return "" if found is None else f" ({found.value:.2f}{' ▾' if found.worse else ''})"


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" + "---:|" * (len(header) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def exponent(p: float) -> str:
    return "∞" if np.isinf(p) else f"{p:g}"


Column = tuple[str, int]  # a data set and a fraction


def accuracy(found: Findings, column: Column, what: str, reference: str, in_paper: bool = False) -> str:
    """Mean accuracy with a mark that compares it with the reference, and perhaps the paper's number; – if not run.

    If the reference is another one, a second mark compares our default with GridSearchCV(SVC).
    """
    scores = found.scores(*column, what)
    if not scores:
        return "–"
    second = what == "default" and reference != "svc"
    mark = AGAINST_SVC[compare(scores, found.scores(*column, "svc"))] if second else ""
    return percent(scores, found.scores(*column, reference)) + mark + (printed(*column, what) if in_paper else "")


def _columns(found: Findings, datasets: Iterable[str] = STUDIES) -> list[Column]:
    """The data sets and fractions with a path."""
    return [(name, n) for name in datasets for n in found.fractions(name) if found.has(name, n, "pareto")]


def _smallest(found: Findings) -> dict[str, Column]:
    """The smallest fraction with a path of each data set of the paper, by title."""
    smallest = {dataset: (dataset, fraction) for dataset, fraction in reversed(_columns(found, PAPER_SETS))}
    return {f"{name} {fraction} %": (name, fraction) for name, fraction in reversed(smallest.values())}


def _table(
    found: Findings,
    header: Sequence[str],
    row: Callable[[str, int], Iterable[str]],
    datasets: Iterable[str] = STUDIES,
) -> str:
    """A table with a row for each data set and fraction."""
    rows = [[f"{dataset} {fraction} %", *row(dataset, fraction)] for dataset, fraction in _columns(found, datasets)]
    return markdown(("", *header), rows)


# ------------------------------------------------------------------------------------------- the paper's tables
PATH_ROWS = ("p < 1", "p = 1", "p = ∞", "best p < 1", "tasks that rise as p falls", "tasks better at best p than at 1")


def path_column(found: Findings, dataset: str, fraction: int) -> list[str]:
    """p < 1, p = 1, p → ∞, the best p, and the number of tasks that gain, with the paper's number in brackets."""
    path = found.path(dataset, fraction)
    best, rising = path.best_below_one, PRINTED.get((dataset, fraction, "rising"))
    return [
        *(accuracy(found, (dataset, fraction), what, "p<1", in_paper=True) for what in ("p<1", "p=1", "p=inf")),
        exponent(best),
        f"{path.n_rising()} of {len(path.tasks)}" + ("" if rising is None else f" ({rising.value:.0f})"),
        f"{path.n_better(best, 1.0)} of {len(path.tasks)}",
    ]


def path_table(found: Findings, columns: Sequence[Column], names: Sequence[str]) -> str:
    cells = [path_column(found, *column) for column in columns]
    return markdown(("", *names), zip(PATH_ROWS, *cells, strict=True))


def methods_table(found: Findings, columns: Sequence[Column], names: Sequence[str]) -> str:
    """Accuracies of the methods; marks compare with p < 1, a second mark our default with GridSearchCV(SVC)."""
    rows = [
        ["Pareto, p < 1" if what == "p<1" else TITLES[what]]
        + [accuracy(found, column, what, "p<1", in_paper=True) for column in columns]
        for what in ("p<1", "sparse", "tang", "mm-aep", "mm-ep", "independent", *BEYOND)
    ]
    return markdown(("", *names), rows)


def _blocks(make: Callable[[Findings, list[Column], list[str]], str], by_fraction: bool, found: Findings) -> str:
    """A table of the multi-class sets for each fraction, or of the fractions for each set with tasks."""
    columns = _columns(found, MULTI_CLASS if by_fraction else TASK_SETS)
    blocks: dict[str, dict[str, Column]] = {}
    for name, n in sorted(columns, key=lambda column: column[1] if by_fraction else 0):
        title, head = (f"{n} % for training", name) if by_fraction else (name, f"{n} %")
        blocks.setdefault(title, {})[head] = (name, n)
    tables = [f"**{title}**\n\n{make(found, list(own.values()), list(own))}" for title, own in blocks.items()]
    return "\n\n".join(tables)


# ------------------------------------------------------------------------------------------------ further tables
def honest_table(found: Findings) -> str:
    """Accuracy without looking at the test set; marks compare with p = 1, and second marks are as in methods_table."""
    shown = ("p=1", "cv", "p=0.01", "p=inf", "independent", "independent-svc", "uniform", *BEYOND)

    def row(*column: *Column) -> list[str]:
        return [accuracy(found, column, what, "p=1") for what in shown]

    return _table(found, [TITLES[what] for what in shown], row)


def default_table(found: Findings) -> str:
    """The library with its defaults, the paper's methods and GridSearchCV(SVC), which the marks compare with.

    The last row has the means over the complete rows.
    """
    rows, complete, shown = [], [], ("p=1", "p<1", "uniform", *BEYOND)
    for column in _columns(found, PAPER_SETS):
        columns = [found.scores(*column, what) for what in shown]
        *_, theirs, ours = columns
        cells = [accuracy(found, column, what, "svc") for what in shown]
        gain = f"{100 * difference(ours, theirs):+.2f}{MARKS[compare(ours, theirs)]}" if ours and theirs else "–"
        rows.append([f"{column[0]} {column[1]} %", *cells, gain])
        if all(columns):
            complete.append([*map(mean, columns), difference(ours, theirs)])
    if len(complete) > 1:
        *means, gain_of_all = 100 * np.mean(complete, axis=0)
        rows.append([f"mean of {len(complete)}", *(f"{value:.2f}" for value in means), f"{gain_of_all:+.2f}"])
    titles = (*(TITLES[what] for what in shown), "difference of the last two")
    return markdown(("", *titles), rows)


def gains_table(found: Findings) -> str:
    """Gains and losses compared with p = 1, in points; the paper's numbers are in brackets."""
    shown = ("p=0.01", "p<1", "cv", "p=inf")

    def row(*column: *Column) -> Iterator[str]:
        one, average = found.scores(*column, "p=1"), PRINTED.get((*column, "p=1"))
        for what in shown:
            scores, there = found.scores(*column, what), PRINTED.get((*column, what))
            in_paper = "" if there is None or average is None else f" ({there.value - average.value:+.2f})"
            yield f"{100 * (mean(scores) - mean(one)):+.2f}{MARKS[compare(scores, one)]}{in_paper}"

    return _table(found, [TITLES[what] for what in shown], row, PAPER_SETS)


def seconds_table(found: Findings) -> str:
    """Seconds on one core for one run of a method, including cross-validation."""

    def row(*column: *Column) -> Iterator[str]:
        for method in METHODS:
            yield f"{found.seconds(*column, method):.1f}" if found.has(*column, method) else "–"

    return _table(found, [TITLES.get(name, "Pareto, all p") for name in METHODS], row)


def _along_p(paths: dict[str, PathScores], ps: Sequence[float] = SHOWN_PS, corner: str = "") -> str:
    """A row for each path and a column for each p; marks compare with p = 1."""
    shown = [p for p in ps if all(p in path.ps for path in paths.values())]
    rows = [[name, *(percent(path.at(p), path.at(1.0)) for p in shown)] for name, path in paths.items()]
    return markdown((corner, *(f"p = {exponent(p)}" for p in shown)), rows)


def cost_tables(found: Findings) -> str:
    """The effect of p at each fixed C, on the smallest training set of each data set; marks compare with p = 1."""
    tables = []
    for title, column in _smallest(found).items():
        first = next(iter(found.outcomes(*column, "pareto").values()))
        paths = {f"C = {C:g}": found.path(*column, C) for C in sorted({point.params["C"] for point in first.points})}
        tables.append(f"**{title}**\n\n{_along_p(paths | {'C by CV': found.path(*column)})}")
    return "\n\n".join(tables)


def _variants_table(titles: dict[str, str], found: Findings) -> str:
    """A data set (the first title), its variants, and the numbers in the paper."""
    first, *others = titles
    rows, shown = [], ("p<1", "p=1", "p=inf", "independent")
    for fraction in sorted({fraction for name in others for fraction in found.fractions(name)}):
        for dataset, title in titles.items():
            if found.has(dataset, fraction, "pareto"):
                cells = [accuracy(found, (dataset, fraction), what, "p<1") for what in shown]
                rows.append([f"{fraction} %, {title}", *cells])
        rows.append([f"{fraction} %, printed", *(printed(first, fraction, what).strip() or "–" for what in shown)])
    return markdown(("", "p < 1", "p = 1", "p = ∞", "Independent MKL"), rows)


def synthetic_table(found: Findings) -> str:
    """Accuracy of the clean and of the noisy tasks along p."""
    paths = {}
    for dataset, fraction in _columns(found, ["synthetic"]):
        path = found.path(dataset, fraction)
        for name, tasks in (("clean", slice(0, None, 2)), ("noisy", slice(1, None, 2))):
            part = path.by_task[:, :, tasks].mean(axis=2)
            paths[f"{fraction} %, {name} tasks"] = replace(path, overall=part)
    return _along_p(paths)


def robot_tasks_table(found: Findings) -> str:
    """Figure 2 in numbers: each task at p = 0.01 and at p = 1."""
    path = found.path("robot-figures", 5)
    by_task = {name: replace(path, overall=path.by_task[:, :, t]) for t, name in enumerate(path.tasks)}
    return _along_p(by_task | {"overall": path}, (0.01, 1.0, INF), "task")


def choices_table(found: Findings) -> str:
    """How often cross-validation chose each C at p = 1, and each p."""

    def row(dataset: str, fraction: int) -> Iterator[str]:
        path = found.path(dataset, fraction)
        costs = Counter(path.C[:, path.index(1.0)].tolist())
        yield ", ".join(f"{C:g}: {n}" for C, n in sorted(costs.items()))
        chosen = [outcome.chosen.params["p"] for outcome in found.outcomes(dataset, fraction, "pareto").values()]
        sides = np.sign(np.array(chosen) - 1)
        yield " / ".join(str((sides == side).sum()) for side in (-1, 0, 1))

    return _table(found, ("C at p = 1", "p < 1 / 1 / > 1"), row)


def coverage(found: Findings) -> str:
    """The number of runs, the certified gaps, and the versions used."""
    counts = {
        name: sorted({len(found.outcomes(*column, name)) for column in _columns(found) if found.has(*column, name)})
        for name in METHODS
    }
    runs = ", ".join(f"{name} {'–'.join(map(str, dict.fromkeys((n[0], n[-1]))))}" for name, n in counts.items() if n)
    certified = [name for name, n in counts.items() if n and not name.endswith("svc")]  # LIBSVM gives no certificate
    gaps = ", ".join(f"{name} {found.largest_gap(name):.1e}" for name in certified)
    text = f"Runs of each data set and fraction, by method: {runs}.\nLargest certified gap of a tested model: {gaps}."
    made = [", ".join(f"{name} {v}" for name, v in each.items() if name != "source") for each in found.versions]
    return "\n".join([text, *(f"Made with {versions}." for versions in dict.fromkeys(made))])


ROWS = {"segment": "all rows", "segment-distinct": "distinct rows"}
SCALES = {"landmine": "as distributed", "landmine-scaled": "scaled to [0, 1]"}
SENSORS = {"robot": "4 distances", "robot-24": "24 sensors", "robot-2": "2 distances"}
TABLES: dict[str, tuple[str, Callable[[Findings], str], str]] = {
    "default": ("The library's default", default_table, ""),
    "table-1": ("Table I: p < 1, p = 1 and p = ∞, multi-class", partial(_blocks, path_table, True), "robot"),
    "table-2": ("Table II: other methods, multi-class", partial(_blocks, methods_table, True), "robot"),
    "table-3": ("Table III: p < 1, p = 1 and p = ∞, multi-task", partial(_blocks, path_table, False), "letter"),
    "table-4": ("Table IV: other methods, multi-task", partial(_blocks, methods_table, False), "letter"),
    "robot-tasks": ("Robot, 5 % for training, by task", robot_tasks_table, "robot-figures"),
    "gains": ("Gains over p = 1, in points", gains_table, ""),
    "honest": ("Without looking at the test set", honest_table, ""),
    "choices": ("What cross-validation chooses", choices_table, ""),
    "costs": ("The role of C", cost_tables, ""),
    "duplicates": ("Segment without duplicates", partial(_variants_table, ROWS), "segment-distinct"),
    "scaling": ("Landmine, scaled or not", partial(_variants_table, SCALES), "landmine-scaled"),
    "sensors": ("Robot, by the sensors used", partial(_variants_table, SENSORS), "robot-24"),
    "synthetic": ("Tasks with different noise", synthetic_table, "synthetic"),
    "seconds": ("Seconds on one core", seconds_table, ""),
    "coverage": ("Runs and versions", coverage, ""),
}
"""Name → title, function, and the data set whose path it needs; "" means any."""


# ------------------------------------------------------------------------------------------------------- figures
def draw_figures(found: Findings, folder: Path) -> list[str]:
    """Draw Figures 1 to 3 of the paper and the effect of p on all data sets; return the file names."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    drawings: dict[str, Callable[[Axes], str]] = {}
    if found.has("robot-figures", 5, "pareto"):
        path = found.path("robot-figures", 5)
        drawings["figure-1"] = partial(_objectives, found, path)
        drawings["figure-2"] = partial(_differences, path)
        drawings["figure-3"] = partial(_overall, path)
    if _columns(found, PAPER_SETS):
        drawings["all-sets"] = partial(_all_sets, found)
    for name, draw in drawings.items():
        figure, ax = plt.subplots(figsize=(8.0, 4.8) if name == "all-sets" else (7.0, 4.2), layout="constrained")
        ax.set_title(draw(ax))
        figure.savefig(folder / f"{name}.png", dpi=150, metadata={"Software": None})
        plt.close(figure)
    return [f"{name}.png" for name in drawings]


def _short(names: Sequence[str]) -> list[str]:
    """Shorten the names of the robot's turns, so that both classes of a pair fit next to a line."""
    return [name.replace("Move-", "").replace("-Turn", "").replace("-", " ").lower() for name in names]


def _objectives(found: Findings, path: PathScores, ax: Axes) -> str:
    """Figure 1: J_t against p, mean over the runs, at the C that cross-validation chooses most often at p = 1."""
    C = Counter(path.C[:, path.index(1.0)].tolist()).most_common(1)[0][0]
    by_run = [
        [point.objectives for p in path.ps for point in outcome.points if point.params == {"C": C, "p": p}]
        for outcome in found.outcomes("robot-figures", 5, "pareto").values()
    ]
    objectives = np.array(by_run, dtype=float).mean(axis=0)
    means = [PowerMean(p).value(row) for p, row in zip(path.ps, objectives, strict=True)]
    ObjectivesDisplay(ps=path.ps, objectives=objectives, objective=means, task_names=_short(path.tasks)).plot(ax)
    return f"robot, 5 %: task objectives at C = {C:g}, mean of {len(path.runs)} runs"


def _differences(path: PathScores, ax: Axes) -> str:
    """Figure 2: task accuracies against p, minus those at p = 1."""
    scores, names = path.by_task.mean(axis=0), _short(path.tasks)
    AccuracyDisplay(ps=path.ps, scores=scores, names=names, mean=scores.mean(axis=1)).plot(ax, relative_to=1.0)
    return f"robot, 5 %: task accuracies, mean of {len(path.runs)} runs"


def _overall(path: PathScores, ax: Axes) -> str:
    """Figure 3: accuracy of the votes against p."""
    n_runs = len(path.runs)
    error = path.overall.std(axis=0, ddof=min(1, n_runs - 1)) / np.sqrt(n_runs)
    scores = path.overall.mean(axis=0)
    AccuracyDisplay(ps=path.ps, scores=scores[:, None], names=["overall"], std=error[:, None]).plot(ax)
    ax.axhline(scores[path.index(1.0)], color="tab:red", linestyle="--", linewidth=1)
    return f"robot, 5 %: overall accuracy, mean and standard error of {n_runs} runs"


def _all_sets(found: Findings, ax: Axes) -> str:
    """Overall accuracy against p on the smallest training set of each data set, minus that at p = 1."""
    paths = {title: found.path(*which) for title, which in _smallest(found).items()}
    scores = np.column_stack([path.overall.mean(axis=0) for path in paths.values()])
    AccuracyDisplay(ps=next(iter(paths.values())).ps, scores=scores, names=list(paths)).plot(ax, relative_to=1.0)
    return "overall accuracy, smallest training set of each data set"


# --------------------------------------------------------------------------------------------------------- all
def make_tables(found: Findings) -> dict[str, str]:
    """Markdown of every table that has data, by name."""
    usable = {dataset for dataset, _ in _columns(found)}
    return {name: make(found) for name, (_, make, needs) in TABLES.items() if needs in usable or (usable and not needs)}


def write_report(
    records: Iterable[Record], folder: str | os.PathLike[str], page: str | os.PathLike[str] | None = None
) -> None:
    """Write figures to a folder, and the tables to ``tables.md`` there or to a page with places for them.

    A place is the text between ``<!-- begin NAME -->`` and ``<!-- end NAME -->``; everything else stays.
    """
    found, folder = Findings(records), Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tables, figures = make_tables(found), draw_figures(found, folder)
    if page is not None:
        text = Path(page).read_text(encoding="utf-8")
        Path(page).write_text(fill_places(text, tables), encoding="utf-8")
        return
    parts = [f"## {TABLES[name][0]}\n\n{text}\n" for name, text in tables.items()]
    pictures = [f"![{name}]({name})\n" for name in figures]
    legend = (
        "Accuracies are in per cent, means over the runs; the paper's numbers are in brackets. ▾ and ▴ mean "
        "significantly worse or better (paired t-test over the runs, 5 %) than p < 1; in the tables about C, p by "
        "cross-validation and single tasks, than p = 1; in the table of the library's default, than GridSearchCV(SVC). "
        "In the other tables ▽ and △ compare our default with GridSearchCV(SVC).\n"
    )
    (folder / "tables.md").write_text("\n".join(["# Results\n", legend, *parts, *pictures]), encoding="utf-8")


def fill_places(text: str, tables: dict[str, str]) -> str:
    """Put each table into its place on a page."""
    for name, table in tables.items():
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        head, mark, rest = text.partition(begin)
        if mark and end not in rest:
            raise ValueError(f"The page has {begin!r} but no {end!r} after it.")
        if mark:
            text = f"{head}{begin}\n\n{table}\n\n{end}{rest.partition(end)[2]}"
    return text
