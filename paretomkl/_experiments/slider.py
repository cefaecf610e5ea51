"""The page with the slider over p, for one split of the experiments."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..report import TradeOff, trade_off_page
from .plan import Cell, Settings
from .protocol import make_split

FAVOURITE = "vehicle"  # small, with six tasks of different difficulty
MOST = 400  # samples, so that the page is ready quickly


def write_slider(
    cells: Sequence[Cell], settings: Settings, folder: Path, data_home: str | os.PathLike[str] | None = None
) -> TradeOff:
    """Write the trade-off page of the first run of one data set: a dense path, tested on held-out samples.

    The models learn from the training part of the split, or a sample of it if it is large, and are tested on equally
    many test samples.
    """
    names = [cell.dataset for cell in cells]
    chosen = FAVOURITE if FAVOURITE in names else names[0]
    cell = min((cell for cell in cells if cell.dataset == chosen), key=lambda cell: (cell.run, cell.cost))
    split = make_split(replace(cell, method="pareto"), settings, data_home)
    each = min(MOST // 2, len(split.train), len(split.test))
    rng = np.random.default_rng(cell.seed)
    some: list[Any] = [part[np.sort(rng.permutation(len(part))[:each])] for part in (split.train, split.test)]
    X, y = np.concatenate([part.X for part in some]), np.concatenate([part.y for part in some])
    tasks = None if some[0].tasks is None else np.concatenate([part.tasks for part in some])
    shown = {"file": folder / f"trade-off-{chosen}.html", "title": f"{chosen.capitalize()}: the trade-off along p"}
    given: dict[str, Any] = {"kernels": split.kernels, "test_size": 0.5, "cv": 3, "random_state": 0, **shown}
    return trade_off_page(X, y, tasks=tasks, **given)
