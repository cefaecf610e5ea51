"""Draw the README picture: the first figure of examples/plot_trade_off.py, saved as doc/_static/trade_off.svg.

python tools/readme_picture.py
"""

import runpy
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

ROOT = Path(__file__).resolve().parents[1]

if __name__ == "__main__":
    plt.rcParams["svg.hashsalt"] = "paretomkl"  # the same picture gives the same file
    runpy.run_path(str(ROOT / "examples" / "plot_trade_off.py"))
    figure = plt.figure(1)
    figure.savefig(ROOT / "doc" / "_static" / "trade_off.svg", metadata={"Date": None})
