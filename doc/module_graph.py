"""Draw the folders of the package in their layers, and how X and y pass them: ``python doc/module_graph.py``.

Writes doc/_static/rooms.svg, with the colours of the page that includes it. The layers are those of pyproject.toml:
each folder may import what is below it.
"""

from __future__ import annotations

import tomllib
from itertools import pairwise
from pathlib import Path

DOC = Path(__file__).resolve().parent
PICTURE = DOC / "_static" / "rooms.svg"
# the folders that X and y pass, and the column of each
WAY = {"_data": 0, "kernels": 0, "gram": 1, "machines": 1, "problem": 2, "solvers": 2}
WAY |= {"_fitting": 2, "_learn": 2, "_select": 2, "report": 2}
CAPTIONS = {
    "cli": "commands and public names",
    "_experiments": "the paper's experiments",
    "report": "what people look at",
    "_select": "searches",
    "_learn": "estimators and paths",
    "distributed": "on a cluster; as HTML",
    "_fitting": "tasks → solutions → models",
    "_data": "X, y → tasks; solving",
    "machines": "the formula",
    "gram": "kernel matrices",
    "_tools": "what all may import",
}  # by a folder of the layer
N_COLUMNS, WIDTH, HEIGHT = 7, 113, 40  # of a column and of a layer
BOX = 103, 24
STYLE = """
  .rooms { margin-bottom: 1rem; }
  .rooms .room { fill: var(--pst-color-surface, #f3f4f5); stroke: var(--pst-color-border, #c9c9c9); }
  .rooms .way { stroke: var(--pst-color-primary, #0a7d91); stroke-width: 2; fill: var(--pst-color-background, #fff); }
  .rooms .step { stroke: var(--pst-color-primary, #0a7d91); stroke-width: 2; fill: none; marker-end: url(#tip); }
  .rooms .tip { fill: var(--pst-color-primary, #0a7d91); }
  .rooms text { fill: var(--pst-color-text-base, #323232); font: 13px sans-serif; text-anchor: middle; }
  .rooms .caption { font: 13px sans-serif; text-anchor: end; fill: var(--pst-color-text-muted, #48566b); }
  .rooms .end { fill: var(--pst-color-primary, #0a7d91); font: bold 14px sans-serif; }
"""


def layers() -> list[list[str]]:
    """The folders of each layer, from top to bottom."""
    project = tomllib.loads((DOC.parent / "pyproject.toml").read_text("utf-8"))
    return [layer.split(" : ") for layer in project["tool"]["importlinter"]["contracts"][0]["layers"]]


def place(rooms: list[list[str]]) -> dict[str, tuple[int, int]]:
    """The middle of each folder."""
    row_of = {name: row for row, names in enumerate(rooms) for name in names}
    spots = {}
    for row, names in enumerate(rooms):
        crossed = row_of["report"] - 1 <= row < row_of["kernels"]  # the way passes through the first three columns
        columns = {name: WAY[name] for name in names if name in WAY}
        others = [name for name in names if name not in WAY]
        columns |= {name: (3 if crossed else len(columns)) + k for k, name in enumerate(others)}
        for name, column in columns.items():
            spots[name] = column * WIDTH + WIDTH // 2 + 4, row * HEIGHT + HEIGHT // 2
    return spots


def draw() -> str:
    """The picture."""
    rooms = layers()
    spots, (w, h) = place(rooms), BOX
    lines = []
    for (x0, y0), (x1, y1) in pairwise(spots[name] for name in WAY):
        dx, dy = (x1 > x0) - (x1 < x0), (y1 > y0) - (y1 < y0)
        x0 += dx * (w // 4)  # where no other arrow arrives
        start = (x0 + dx * (w // 4), y0) if y0 == y1 else (x0, y0 + dy * h // 2)
        end = (x1 - dx * (w // 2 + 6), y1) if dx else (x1, y1 - dy * (h // 2 + 6))
        bend = f"Q{x0} {y1} {end[0]} {end[1]}" if dx and dy else f"L{end[0]} {end[1]}"
        lines.append(f'<path class="step" d="M{start[0]} {start[1]} {bend}"/>')
    for name, (x, y) in spots.items():
        kind = "room way" if name in WAY else "room"
        lines.append(f'<rect class="{kind}" x="{x - w // 2}" y="{y - h // 2}" width="{w}" height="{h}" rx="5"/>')
        lines.append(f'<text x="{x}" y="{y + 4}">{name}</text>')
    for name, caption in CAPTIONS.items():
        lines.append(f'<text class="caption" x="{N_COLUMNS * WIDTH + 4}" y="{spots[name][1] + 4}">{caption}</text>')
    (x, y), (right, top) = spots["_data"], spots["report"]
    lines.append(f'<text class="end" x="{x}" y="{y - 44}">X, y</text>')
    lines.append(f'<path class="step" d="M{x} {y - 38} L{x} {y - h // 2 - 6}"/>')
    lines.append(f'<text class="end" x="{right}" y="{top - 36}">a page</text>')
    lines.append(f'<path class="step" d="M{right} {top - h // 2} L{right} {top - 28}"/>')
    size = f"{N_COLUMNS * WIDTH + 8} {len(rooms) * HEIGHT}"
    tip = '<marker id="tip" viewBox="0 0 8 8" refX="3" refY="4" markerWidth="5" markerHeight="5" orient="auto">'
    head = f'<svg class="rooms" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" role="img">'
    title = "<title>The rooms of the package in layers, and the way of X and y through them</title>"
    tip += '<path class="tip" d="M0 0 L8 4 L0 8 Z"/></marker>'
    return "\n".join([head, title, f"<style>{STYLE}</style>", f"<defs>{tip}</defs>", *lines, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(draw(), "utf-8")
