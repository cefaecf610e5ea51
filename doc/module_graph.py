"""Draw which module imports which, lazy imports included: ``python doc/module_graph.py [package] out.svg``.

Packages below the top level are one node each; small helpers that anything may import are left out. Every module stands
above what it imports; imports that close a circle are red. The way from X, y to a page is blue.
"""

from __future__ import annotations

import sys
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import grimp
import matplotlib.pyplot as plt

HELPERS = {"__init__", "_typing", "_compiled", "_files", "_parallel", "_norms", "_refit", "_drawing", "_progress"}
ROUTE = {
    *pairwise(["report", "path", "_tracing", "solvers", "problem"]),
    *pairwise(["_tracing", "gram", "_bank"]),
    ("_tracing", "machines"),
    *pairwise(["path", "_reading", "_tasks"]),
    ("path", "_model"),
    ("path", "_page"),
}


def read_graph(package: str) -> dict[str, set[str]]:
    """Imports between the modules and packages right below the package."""
    graph = grimp.build_graph(package, exclude_type_checking_imports=True, cache_dir=None)
    nodes: dict[str, set[str]] = {}
    for module in graph.modules:
        node = group(module)
        nodes.setdefault(node, set())
        for other in graph.find_modules_directly_imported_by(module):
            if group(other) != node:
                nodes[node].add(group(other))
    return {node: others - HELPERS for node, others in nodes.items() if node not in HELPERS}


def group(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def circles(graph: dict[str, set[str]]) -> set[tuple[str, str]]:
    """Imports between modules that reach each other."""

    def reach(start: str) -> set[str]:
        seen: set[str] = set()
        stack = [start]
        while stack:
            for other in graph.get(stack.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    stack.append(other)
        return seen

    reached = {node: reach(node) for node in graph}
    return {(a, b) for a in graph for b in graph[a] if b in graph and a in reached[b]}


def heights(graph: dict[str, set[str]]) -> dict[str, int]:
    """How many imports deep each module is, circles cut open."""
    graph = {node: {other for other in others if other in graph} for node, others in graph.items()}
    while True:
        try:
            order = list(TopologicalSorter(graph).static_order())
            break
        except CycleError as error:
            first, second = error.args[1][:2]
            graph[second].discard(first)
    height: dict[str, int] = {}
    for node in order:
        height[node] = 1 + max((height[other] for other in graph[node]), default=-1)
    return height


def place(graph: dict[str, set[str]], height: dict[str, int]) -> dict[str, tuple[float, float]]:
    """Rows by height; within a row, modules near those they import."""
    spot: dict[str, tuple[float, float]] = {}
    for level in range(max(height.values()) + 1):
        row = [node for node in sorted(height) if height[node] == level]
        below = {node: [spot[other][0] for other in graph[node] if other in spot] for node in row}
        row.sort(key=lambda node: (sum(below[node]) / len(below[node]) if below[node] else 0.5, node))
        for k, node in enumerate(row):
            spot[node] = ((k + 0.5) / len(row), float(level))
    return spot


def draw(graph: dict[str, set[str]], out: Path) -> None:
    height, red = heights(graph), circles(graph)
    spot = place(graph, height)
    figure, ax = plt.subplots(figsize=(10.5, 0.62 * max(height.values()) + 1))
    for node, others in graph.items():
        for other in others & spot.keys():
            color, width = ("#c0392b", 1.6) if (node, other) in red else ("#8a8f98", 0.5)
            if (node, other) in ROUTE and (node, other) not in red:
                color, width = "#2471a3", 2.0
            (x0, y0), (x1, y1) = spot[node], spot[other]
            ax.plot([x0, x1], [y0, y1], color=color, lw=width, alpha=0.9 if width > 1 else 0.45, zorder=width)
    for node, (x, y) in spot.items():
        box = {"boxstyle": "round,pad=0.3", "fc": "white", "ec": "#50555e"}
        ax.text(x, y, node, ha="center", va="center", fontsize=8.5, family="monospace", bbox=box, zorder=3)
    ax.set_axis_off()
    ax.set_position((0.0, 0.0, 1.0, 1.0))
    ax.set_xlim(-0.02, 1.02)
    figure.savefig(out, metadata={"Date": None})
    print(f"{out}: {len(graph)} nodes, {sum(map(len, graph.values()))} imports, {len(red)} in circles")


if __name__ == "__main__":
    plt.rcParams |= {"svg.hashsalt": "paretomkl", "svg.fonttype": "none"}
    *package, target = sys.argv[1:]
    draw(read_graph(package[0] if package else "paretomkl"), Path(target))
