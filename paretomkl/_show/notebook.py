"""How paths and fitted estimators appear in a notebook: tables and a small chart, without scripts."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._tools.typing import Array, IntArray
from ..scalarizations import PAPER_PS
from .drawing import ExponentAxis, exponent_label, shorten, shorten_all
from .words import listing

if TYPE_CHECKING:
    from .._learn.path import ParetoPath

MOST_ROWS = 13
HEAVIEST = 6  # tasks and kernels of an estimator to list
STYLE = 'cellpadding="4" style="border-collapse:collapse;font-size:90%;text-align:right"'


def path_html(path: ParetoPath) -> str:
    """A path as a table of some points and a chart of the objectives; only a line of text if p has no effect."""
    title = f"<p><b>{html.escape(repr(path))}</b></p>"
    if path.share != "kernel":
        return f"<div>{title}</div>"
    return (
        f"<div>{title}"
        f'<div style="display:flex;flex-wrap:wrap;gap:1.5em;align-items:center">{summary_table(path)}{_picture(path)}'
        "</div></div>"
    )


def summary_table(path: ParetoPath, overall: Sequence[str] | None = None, overall_name: str = "") -> str:
    """Objectives, task weights and kernels at up to 13 points of the path.

    overall (n_points,): held-out scores of all tasks together, as text; overall_name: their name.
    """
    J = "J / n" if path.task_scale == "samples" else "J"
    header = ["p", "M_p", f"smallest {J}", f"largest {J}", "of task", "its weight", "heaviest kernel", "gap"]
    if overall is not None:
        header.insert(-1, overall_name)
    lines, shares = [], path.kernel_shares
    tasks, kernels = shorten_all(path.task_names), shorten_all(path.kernel_names)
    for i in _some_points(path.ps):
        objectives, share = path.objectives[i], shares[i]
        worst, heaviest = int(objectives.argmax()), int(share.argmax())
        line = [
            exponent_label(path.ps[i]),
            f"{path.objective[i]:#.5g}",
            f"{objectives.min():#.5g}",
            f"{objectives[worst]:#.5g}",
            tasks[worst],
            f"{path.task_weights[i, worst]:.1%}",
            f"{kernels[heaviest]} {share[heaviest]:.0%}",
            f"{path.gap[i]:.0e}",
        ]
        if overall is not None:
            line.insert(-1, overall[i])
        lines.append(line)
    return _table(header, lines)


def estimator_html(estimator: Any) -> str:
    """Objectives of the tasks, and shares of sources and kernels, of a fitted estimator whose tasks share a kernel."""
    if not (hasattr(estimator, "theta_") and hasattr(estimator, "task_weights_") and estimator.theta_.ndim == 1):
        return ""
    share, objectives, weights = estimator.kernel_shares_, estimator.objectives_, estimator.task_weights_
    tasks = np.argsort(-objectives, kind="stable")
    common = getattr(estimator, "common_share_", None)
    names = (
        shorten_all(estimator.task_names_) if common is None else []
    )  # tasks with a common part are solved as one problem, with a single objective
    of_tasks = [[names[t], f"{objectives[t]:#.5g}", f"{weights[t]:.1%}"] for t in tasks if names]
    kernels = np.argsort(-share, kind="stable")
    kernel_names = shorten_all(estimator.kernel_names_)
    of_kernels = [[kernel_names[m], f"{share[m]:.1%}"] for m in kernels]
    of_sources = [[shorten(name), f"{part:.1%}"] for name, part in getattr(estimator, "source_shares_", {}).items()]
    sweeps = f"{estimator.n_sweeps_} sweep" + "s" * (estimator.n_sweeps_ != 1)
    said = f"M_p = {estimator.objective_:#.5g}, certified gap {estimator.gap_:.0e}, {sweeps}"
    if common is not None:
        said += f"; {common:.0%} of the functions is common to the tasks"
    return (
        f"<div><p>{html.escape(said)}</p>"
        '<div style="display:flex;flex-wrap:wrap;gap:1.5em;align-items:flex-start">'
        f"{_table(['task', 'objective', 'weight'], _first(of_tasks)) if of_tasks else ''}"
        f"{_table(['source', 'share'], _first(of_sources)) if of_sources else ''}"
        f"{_table(['kernel', 'share'], _first(of_kernels))}</div></div>"
    )


class FittedTables:
    """Adds the tables of :func:`estimator_html` to scikit-learn's diagram of an estimator."""

    @property
    def _repr_html_(self) -> Any:
        diagram = super()._repr_html_  # type: ignore[misc]  # raises AttributeError if display is "text"
        return lambda: diagram() + estimator_html(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        return bundle | {kind: text + estimator_html(self) for kind, text in bundle.items() if kind == "text/html"}


def _first(lines: list[list[str]]) -> list[list[str]]:
    """The first few lines, and how many more there are."""
    if len(lines) <= HEAVIEST + 1:
        return lines
    return lines[:HEAVIEST] + [[f"{len(lines) - HEAVIEST} more", *[""] * (len(lines[0]) - 1)]]


def _some_points(ps: Array) -> IntArray:
    """Indices of at most 13 points in increasing p: the exponents of the paper, or evenly spread ones."""
    rows = np.unique(ps, return_index=True)[1]
    if len(rows) <= MOST_ROWS:
        return rows
    known = rows[np.isin(ps[rows], PAPER_PS)]
    return known if len(known) >= 5 else rows[np.linspace(0, len(rows) - 1, MOST_ROWS).round().astype(int)]


def _table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line(cells, "td") for cells in lines)
    return f"<table {STYLE}><thead>{line(header, 'th')}</thead><tbody>{body}</tbody></table>"


def _picture(path: ParetoPath, width: int = 320, height: int = 190) -> str:
    """The change of every objective from p = 1 as an SVG chart in the text colour."""
    rows = np.unique(path.ps, return_index=True)[1]
    if len(rows) < 2 or len(path.task_names) < 2:
        return ""
    axis = ExponentAxis(path.ps[rows])
    reference = axis.nearest(1.0)
    change = 100 * (path.objectives[rows] / path.objectives[rows[reference]] - 1)
    low, high = min(change.min(), -0.5), max(change.max(), 0.5)
    left, top, bottom = 44, 22, 24
    x = left + (width - left - 12) * axis.places(axis.ps)
    y = top + (height - top - bottom) * (high - change) / (high - low)
    zero = top + (height - top - bottom) * high / (high - low)
    lines = "".join(
        f'<polyline points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, of_task, strict=True))}"/>'
        for of_task in y.T
    )
    names = [path.task_names[int(change[-1].argmax())], path.task_names[int(change[-1].argmin())]]
    ends = [(0, "start"), (reference, "middle"), (len(rows) - 1, "end")]
    ticks = "".join(
        f'<text x="{x[i]:.0f}" y="{height - 8}" text-anchor="{anchor}">{exponent_label(axis.ps[i])}</text>'
        for i, anchor in ends
    )
    label = html.escape(
        f"Change of the task objectives from p = {exponent_label(axis.ps[reference])}; {listing(names)}"
    )
    return (
        f'<svg role="img" aria-label="{label}" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'fill="currentColor" font-size="11" font-family="sans-serif">'
        f'<text x="0" y="12">objectives against p = {exponent_label(axis.ps[reference])}, in %</text>'
        f'<text x="{left - 6}" y="{top + 8}" text-anchor="end">{high:+.3g}</text>'
        f'<text x="{left - 6}" y="{height - bottom}" text-anchor="end">{low:+.3g}</text>'
        f'<path d="M{left} {zero:.1f}H{width - 12}" stroke="currentColor" stroke-dasharray="2 3"/>'
        f'<g fill="none" stroke="currentColor" stroke-opacity="0.55">{lines}</g>{ticks}</svg>'
    )
