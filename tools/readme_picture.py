"""Draw the picture of README and landing page from the stored results of benchmarks/accuracy.py.

python tools/readme_picture.py
"""

import gzip
import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from paretomkl.plotting._style import HUES, MARKERS, label_ends

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "doc" / "experiments" / "accuracy.json.gz"
PICTURE = ROOT / "doc" / "_static" / "samples_per_class.svg"
NAMES = {  # of the methods in the results
    "default": "paretomkl",
    "Gaussian sum": "SVC, Gaussian kernel per source",
    "linear sum": "SVC, linear kernel per source",
    "extra trees": "extra trees, all columns",
    "svc": "SVC, all columns",
}
PER_CLASS = (5, 10, 20, 30)
SPLITS = range(10)
LOWEST = 90


def accuracies() -> dict[str, np.ndarray]:
    """Accuracy in per cent of each method, of shape (n_sizes, n_splits)."""
    rows = json.loads(gzip.decompress(RESULTS.read_bytes()))
    value = {(row["set"], row["method"], row["run"]): 100 * row["accuracy"] for row in rows}
    cells = {method: [[(f"mfeat {n}", method, run) for run in SPLITS] for n in PER_CLASS] for method in NAMES}
    return {method: np.array([[value[cell] for cell in row] for row in rows]) for method, rows in cells.items()}


def draw() -> Figure:
    """Draw the picture, on white: it must be readable on dark pages too."""
    found = accuracies()
    figure, ax = plt.subplots(figsize=(8.2, 3.9), facecolor="white")
    figure.subplots_adjust(left=0.09, right=0.64, bottom=0.14, top=0.89)  # the same with every font
    lines = []
    for k, color in enumerate([*HUES[:4], "#6E6E6E"]):
        method = list(NAMES)[k]
        mean, error = found[method].mean(axis=1), found[method].std(axis=1, ddof=1) / np.sqrt(len(SPLITS))
        look = {"marker": MARKERS[k], "markersize": 6, "linewidth": 1.5 if k else 3, "zorder": 2 if k else 3}
        drawn = ax.errorbar(PER_CLASS, mean, error, color=color, elinewidth=1, capsize=2, **look)
        lines.append(drawn.lines[0])
        lines[-1].set_gid(method)
    ax.set(xticks=PER_CLASS, xlim=(4, 31), ylim=(LOWEST, 100), yticks=range(LOWEST, 101, 2))
    ax.set(xlabel="samples per class to learn from", ylabel=f"accuracy in % (axis from {LOWEST})")
    ax.set_title("Handwritten digits from six sources: accuracy on new digits", loc="left", fontsize=12)
    ax.grid(axis="y", alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
    for label, name in zip(label_ends(ax, lines, list(NAMES.values())), NAMES.values(), strict=True):
        label.set(fontsize=11, fontweight="bold" if name == "paretomkl" else "normal")
    return figure


if __name__ == "__main__":
    plt.rcParams |= {"font.size": 11, "svg.hashsalt": "paretomkl"}  # the same picture gives the same file
    draw().savefig(PICTURE, metadata={"Date": None})
