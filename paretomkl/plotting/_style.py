"""What the displays share: the axis of p, colours, and labels that do not overlap.

Only this module imports matplotlib; the displays import it when they draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

try:
    import matplotlib.pyplot as plt
except ImportError as error:
    raise ImportError("Drawing needs matplotlib; install it with: pip install 'paretomkl[plot]'") from error

from matplotlib import colors, patheffects, rcParams, ticker
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colorbar import Colorbar
from matplotlib.font_manager import FontProperties
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.text import Annotation
from matplotlib.transforms import ScaledTranslation
from numpy.typing import ArrayLike

from .._learn.path import ParetoPath
from .._show.words import ExponentScale, exponent_label, exponent_ranks, shorten
from .._tools.typing import Array

if TYPE_CHECKING:
    from matplotlib.typing import ColorType

# Okabe and Ito's colours, which colour-blind people can tell apart; lines use grey instead of their pale yellow
HUES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
LINE_COLORS = HUES + ("#8C8C8C",)
AREA_COLORS = HUES + ("#F0E442", "#8C8C8C")
POOL_COLOR = "#C8C8C8"
MARKERS = "osD^vPX"
FEW = len(LINE_COLORS)  # up to this many lines get their own colours
NAMED = 12  # up to this many lines all get a name
N_EXTREMES = 3  # with more lines, this many at the top and at the bottom get a name
MARKED = 25  # lines with up to this many points get markers
TICKED = 16  # up to this many exponents can all be ticks; with more, only round numbers are
LONGEST = 32  # characters of a name
LABEL_OFFSET = 16  # points between the axes and the names next to them
GUIDE: dict[str, Any] = {"color": "0.5", "linewidth": 0.8, "zorder": 0.9}


def path_of(source: Any) -> ParetoPath:
    """The path itself, or the path of a fitted search."""
    return getattr(source, "path_", source).along_p()


def axes_or_new(ax: Axes | None) -> Axes:
    return plt.subplots(layout="constrained")[1] if ax is None else ax


def background(ax: Axes) -> tuple[float, float, float]:
    """The colour behind the lines: that of the axes, or of the figure if the axes are transparent."""
    own = colors.to_rgba(ax.get_facecolor())
    return own[:3] if own[3] else colors.to_rgba(ax.figure.get_facecolor())[:3]


def ramp(ax: Axes) -> colors.Colormap:
    """The viridis colours without the end that is hard to see on the background."""
    dark = np.dot(background(ax), (0.299, 0.587, 0.114)) < 0.5
    return colors.ListedColormap(plt.get_cmap("viridis")(np.linspace(*((0.35, 1.0) if dark else (0.0, 0.9)), 256)))


def band_colors(ax: Axes, n_bands: int, pooled: bool) -> list[ColorType]:
    """Colours of stacked bands; the last one is grey if it pools others."""
    n_own = n_bands - pooled
    own = list(AREA_COLORS[:n_own]) if n_own <= len(AREA_COLORS) else list(ramp(ax)(np.linspace(0, 1, n_own)))
    return own + [POOL_COLOR] * pooled


def text_width(text: str) -> float:
    """The approximate width of a text, in units of its font size."""
    return 0.64 * len(text) - 0.32 * sum(map(text.count, ".,:il1 ()"))


def points_of(size: str | float) -> float:
    """Convert a font size such as "small" to points."""
    return FontProperties(size=size).get_size_in_points()


def size_in_points(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes in points."""
    return ax.bbox.width * 72 / ax.figure.dpi, ax.bbox.height * 72 / ax.figure.dpi


def indices(chosen: int | str | Sequence[int | str] | None, names: Sequence[str], what: str) -> list[int]:
    """Positions of things given by index or name; None means all of them."""
    if chosen is None:
        return list(range(len(names)))
    found = []
    for one in [chosen] if isinstance(chosen, str | int | np.integer) else chosen:
        if isinstance(one, int | np.integer) and not isinstance(one, bool):
            if not -len(names) <= int(one) < len(names):
                raise ValueError(f"There is no {what} {one}; {what}s are numbered from 0 to {len(names) - 1}.")
            found.append(int(one) % len(names))
        elif one in names:
            found.append(list(names).index(str(one)))
        else:
            known = ", ".join(map(repr, names[:10])) + (" …" if len(names) > 10 else "")
            raise ValueError(f"There is no {what} {one!r}; choose from {known}.")
    return found


def baseline(ps: Array, relative_to: float | None) -> int | None:
    """The index of the exponent to compare with."""
    if relative_to is None:
        return None
    rows = np.flatnonzero(ps == relative_to)
    if not len(rows):
        known = ", ".join(map(exponent_label, ps[:20])) + (" …" if len(ps) > 20 else "")
        raise ValueError(f"relative_to={relative_to!r} is not among the exponents: {known}.")
    return int(rows[0])


# --------------------------------------------------------------------------------------------- the axis of p
def at_exponent(p: float | None) -> str:
    return "" if p is None else f"$p$ = {exponent_label(p)}"


class Exponents(ExponentScale):
    """The scale of p as a matplotlib axis.

    A finite p is drawn at p itself, so ``ax.axvline(1)`` marks p = 1; ±∞ are one step beyond the last finite p.
    """

    def places(self, ps: ArrayLike) -> Array:
        ps = np.asarray(ps, dtype=float)
        return np.where(np.isinf(ps), self.inverse(self.heights(ps)), ps)

    def around(self, place: float | Array) -> Array:
        """A place on either side of this one."""
        return self.inverse(self.forward(place) + np.array([-0.5, 0.5]))

    def ticks(self) -> SparseTicks:
        ps = self.ps if len(self.ps) <= TICKED else self.round_ps()
        return SparseTicks(self.places(ps), ps)

    def norm(self) -> colors.Normalize:
        """Maps places to [0, 1] with the scale of the axis."""
        places = self.places(self.ps)
        low, high = places.min(), places.max()
        if low == high:
            low, high = self.around(low)
        return colors.FuncNorm((self.forward, self.inverse), vmin=low, vmax=high)

    def colorbar(self, ax: Axes, mappable: ScalarMappable) -> Colorbar:
        ticks = self.ticks()
        bar = colorbar_beside(ax, mappable, ticks=ticks, format=ticker.FuncFormatter(ticks.label))
        bar.set_label("exponent $p$")
        return bar

    def put_on(self, ax: Axes, mark_one: bool = True) -> None:
        """Turn the x axis of ``ax`` into an axis of p, with a dotted line at p = 1."""
        ax.set_xscale("function", functions=(self.forward, self.inverse))
        self.ticks().put_on(ax.xaxis)
        if len(self.ps) <= TICKED:
            ax.xaxis.set_minor_locator(ticker.FixedLocator(list(self.places(self.ps))))
        ax.fmt_xdata = exponent_label
        ax.set_xlabel("exponent $p$ of the power mean")
        if mark_one and self.finite[0] < 1 < self.finite[-1]:
            ax.axvline(1.0, linestyle=":", **GUIDE)


class SparseTicks(ticker.Locator):
    """Ticks for exponents; only those whose labels fit are drawn, the lowest ranks first."""

    def __init__(self, places: Array, ps: Array):
        self.places, self.ranks = places, exponent_ranks(ps)
        self.labels = [exponent_label(p) for p in ps]

    def put_on(self, axis: Axis) -> None:
        axis.set_major_locator(self)
        axis.set_major_formatter(ticker.FuncFormatter(self.label))

    def label(self, place: float, position: int | None = None) -> str:
        return self.labels[int(np.abs(self.places - place).argmin())]

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        axis: Any = self.axis
        transform = axis.get_transform().transform
        low, high = transform(np.array([vmin, vmax], dtype=float))
        horizontal = axis.axis_name == "x"
        length = size_in_points(axis.axes)[0 if horizontal else 1]
        at = (transform(self.places) - low) / ((high - low) or 1.0) * length
        font = points_of(rcParams["xtick.labelsize"])
        sizes = font * np.array([text_width(label) + 0.5 if horizontal else 1.3 for label in self.labels])
        inside = (at > -1e-6 * length) & (at < (1 + 1e-6) * length)
        kept: list[int] = []
        for k in np.lexsort((at, self.ranks)):
            if inside[k] and all(abs(at[k] - at[j]) >= (sizes[k] + sizes[j]) / 2 for j in kept):
                kept.append(k)
        return sorted(self.places[kept])

    def __call__(self) -> list[float]:
        axis: Any = self.axis
        return self.tick_values(*sorted(axis.get_view_interval()))


# --------------------------------------------------------------------------------------------- lines and their names
@dataclass
class DrawnLines:
    """What ``draw_lines`` drew: a line for each name, the bold line, bands, names at the ends, and the colour bar."""

    lines: list[Line2D] = field(default_factory=list)
    bold: Line2D | None = None
    bands: list[PolyCollection] = field(default_factory=list)
    labels: list[Annotation] = field(default_factory=list)
    colorbar: Colorbar | None = None


def line_colors(ax: Axes, order: Array) -> list[ColorType]:
    """A colour for each line: few lines have their own colours, many are coloured by ``order``."""
    if len(order) <= FEW:
        return list(LINE_COLORS[: len(order)])
    return list(ramp(ax)(_order_norm(ax, order)(order)))


def draw_lines(
    ax: Axes,
    ps: Array,
    values: Array,
    names: Sequence[str],
    bold: tuple[Array, str] | None,
    order: tuple[Array, str],
    std: Array | None = None,
    least_range: float = 0.0,
) -> DrawnLines:
    """Draw one line per column of values (n_points, n_lines) against p, with a band of ``std``, and a bold line.

    If there are few lines, each has its own colour, marker and name. Many lines are thin and coloured by ``order``
    (n_lines,), with a colour bar; if there are very many, only those at the top and at the bottom have a name. ``bold``
    and ``order`` come with their names. The axis spans at least ``least_range``, so that noise does not look like a
    trend.
    """
    exponents = Exponents(ps)
    exponents.put_on(ax)
    rising = np.argsort(ps, kind="stable")
    x, values = exponents.places(ps[rising]), values[rising]
    few = len(names) <= FEW
    with_markers = len(x) <= MARKED
    drawn = DrawnLines()
    for k, (name, color) in enumerate(zip(names, line_colors(ax, order[0]), strict=True)):
        if std is not None and np.isfinite(std[:, k]).any():
            half = std[rising, k]
            around: dict[str, Any] = {"color": color, "alpha": 0.15, "linewidth": 0}
            drawn.bands.append(ax.fill_between(x, values[:, k] - half, values[:, k] + half, **around))
        look: dict[str, Any] = {"label": name, "color": color}
        if few:
            look |= {"marker": MARKERS[k] if with_markers else None, "markersize": 4}
        else:
            look |= {"linewidth": 1.0, "alpha": 0.7, "marker": "." if len(x) == 1 else None}
        drawn.lines += ax.plot(x, values[:, k], **look)
    if bold is not None:
        drawn.bold = _draw_bold(ax, x, bold[0][rising], bold[1])
    low, high = ax.get_ylim()
    if high - low < least_range:
        ax.set_ylim((low + high - least_range) / 2, (low + high + least_range) / 2)
    ranked = np.argsort(np.nanmean(values, axis=0), kind="stable")
    if len(names) > NAMED:
        ranked = np.concatenate([ranked[:N_EXTREMES], ranked[-N_EXTREMES:]])
    named = np.sort(ranked)
    texts = [names[k] for k in named] + ([] if bold is None else [bold[1]])
    drawn.labels = label_ends(ax, [*(drawn.lines[k] for k in named), *filter(None, [drawn.bold])], texts)
    for label in drawn.labels[: len(named)]:
        label.set_parse_math(False)  # show a dollar sign in a name as it is
    for label in drawn.labels[len(named) :]:
        label.set_fontweight("bold")
    if not few:
        drawn.colorbar = colorbar_beside(ax, ScalarMappable(_order_norm(ax, order[0]), ramp(ax)), texts)
        drawn.colorbar.set_label(order[1])
    return drawn


def _draw_bold(ax: Axes, x: Array, values: Array, name: str) -> Line2D:
    halo = patheffects.withStroke(linewidth=5, foreground=background(ax))
    dash = {"marker": "_", "markersize": 18, "markeredgewidth": 2.5} if len(x) == 1 else {}
    look: dict[str, Any] = {"color": rcParams["text.color"], "linewidth": 2.5, "path_effects": [halo], "zorder": 3}
    return ax.plot(x, values, label=name, **(look | dash))[0]


def _order_norm(ax: Axes, order: Array) -> colors.Normalize:
    """Maps the order of lines to [0, 1], logarithmically if the axis is logarithmic."""
    low, high = float(np.nanmin(order)), float(np.nanmax(order))
    if low == high:
        low, high = 0.9 * low - 1e-3, 1.1 * high + 1e-3
    return (colors.LogNorm if ax.get_yscale() == "log" and low > 0 else colors.Normalize)(low, high)


def colorbar_beside(ax: Axes, mappable: ScalarMappable, labels: Sequence[str] = (), **kwargs: Any) -> Colorbar:
    """A colour bar to the right of the axes and their labels."""
    figure: Any = ax.figure
    if figure.get_layout_engine() is None:  # then we must make room for the labels
        widest = max((text_width(shorten(label, LONGEST)) for label in labels), default=0.0)
        kwargs["pad"] = 0.05 + (LABEL_OFFSET * bool(labels) + widest * points_of("small")) / size_in_points(ax)[0]
    return figure.colorbar(mappable, ax=ax, aspect=30, **kwargs)


def legend_beside(ax: Axes, handles: Sequence[Artist], names: Sequence[str]) -> Legend:
    """A legend to the right of the axes that shows names literally."""
    numbered = [str(k) for k in range(len(names))]  # a legend skips names that start with an underscore
    legend = ax.legend(handles, numbered, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize="small")
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text(shorten(name, LONGEST))
        text.set_parse_math(False)
    return legend


def small_text(ax: Axes, text: str, point: tuple[float, float], **place: Any) -> Annotation:
    return ax.annotate(text, (point[0], point[1]), fontsize="small", color=rcParams["text.color"], **place)


def label_ends(ax: Axes, lines: Sequence[Line2D], labels: Sequence[str]) -> list[Annotation]:
    """Names to the right of the axes, each as near to the end of its line as possible without overlap."""
    if not lines:
        return []
    ax.get_ylim()  # updates the limits to include the lines
    ends = np.array([_last_point(line) for line in lines])
    heights = ax.transAxes.inverted().transform(ax.transData.transform(ends))[:, 1]
    line_height = 1.3 * points_of("small") / size_in_points(ax)[1]
    beside = ax.transAxes + ScaledTranslation(LABEL_OFFSET / 72, 0, ax.figure.dpi_scale_trans)
    place: dict[str, Any] = {"textcoords": beside, "va": "center", "annotation_clip": False}
    made = []
    for line, label, end, height in zip(lines, labels, ends, spread(heights, line_height), strict=True):
        arrow = {"arrowstyle": "-", "color": line.get_color(), "shrinkA": 1, "shrinkB": 3, "relpos": (0, 0.5)}
        made.append(small_text(ax, shorten(label, LONGEST), end, xytext=(1.0, height), arrowprops=arrow, **place))
    return made


def _last_point(line: Line2D) -> tuple[float, float]:
    x, y = np.asarray(line.get_xdata(), dtype=float), np.asarray(line.get_ydata(), dtype=float)
    known = np.flatnonzero(np.isfinite(y))
    return (x[known[-1]], y[known[-1]]) if len(known) else (x[-1], 0.0)


def spread(wanted: Array, distance: float) -> Array:
    """Heights nearest to the wanted ones with ``distance`` between neighbours, within [0, 1] if there is room.

    z_i − i d is the isotonic regression of y_i − i d, in the order of y.
    """
    from sklearn.isotonic import isotonic_regression

    n = len(wanted)
    distance = min(distance, 1.1 / max(n - 1, 1))
    order = np.argsort(wanted, kind="stable")
    steps = distance * np.arange(n)
    top = max(1.0 - steps[-1], 0.0)
    out = np.empty(n)
    out[order] = np.clip(isotonic_regression(wanted[order] - steps), 0.0, top) + steps
    return out


# --------------------------------------------------------------------------------------------- points and their names
def label_points(ax: Axes, x: Array, y: Array, labels: Sequence[str], ranks: Array) -> list[Annotation]:
    """Names next to the points of a line, lowest ranks first; a name that would cover something is not drawn.

    Points of rank −1 get no name.
    """
    ax.get_ylim()
    at = ax.transData.transform(np.column_stack([x, y])) * 72 / ax.figure.dpi
    frame = ax.bbox.get_points() * 72 / ax.figure.dpi
    steps = np.linspace(0, 1, 50)[:, None, None]
    along = (at[:-1] + steps * (at[1:] - at[:-1])).reshape(-1, 2)  # no name may cover the line
    covered = np.vstack([along, at])
    font = points_of("small")
    made, boxes = [], np.empty((0, 2, 2))
    for k in (k for k in np.argsort(ranks, kind="stable") if ranks[k] >= 0):
        size = np.array([text_width(labels[k]), 1.1]) * font
        for corner in np.array([(1, 1), (-1, 1), (1, -1), (-1, -1)]):  # upper right first: a front leaves it free
            middle = at[k] + corner * (6 + size / 2)
            box = np.array([middle - size / 2, middle + size / 2])
            on_paper = (box[0] >= frame[0]).all() and (box[1] <= frame[1]).all()
            over_line = ((covered > box[0]) & (covered < box[1])).all(axis=1).any()
            over_text = ((boxes[:, 0] < box[1]) & (boxes[:, 1] > box[0])).all(axis=1).any()
            if on_paper and not over_line and not over_text:
                boxes = np.append(boxes, box[None], axis=0)
                aligned = {"ha": "left" if corner[0] > 0 else "right", "va": "bottom" if corner[1] > 0 else "top"}
                place = {"xytext": tuple(5 * corner), "textcoords": "offset points"}
                made.append(small_text(ax, labels[k], (x[k], y[k]), **place, **aligned))
                break
    return made
