"""Test accuracy with several sources: the default search compared with what people use instead, on fresh splits.

    python benchmarks/views.py run RESULTS.json --runs 10 --jobs 2             # resumable, kept after every cell
    python benchmarks/views.py report RESULTS.json                             # the table of doc/accuracy.md
    python benchmarks/views.py run LOSSES.json --first 0 --runs 5 --methods losses    # each loss, on other splits

The data are read from the folder that PARETOMKL_DATA names. Every method chooses its parameters by cross-validation on
the training set. Word counts are compared as they are and as tf-idf, always the same on both sides.
"""

from __future__ import annotations

import zlib
from functools import partial
from itertools import product

import numpy as np
from accuracy import raw_split
from comparison import BASELINES, Method, Split, asked_for, cell, options, ours, read, run_missing, table
from data import HOME
from sklearn.feature_extraction.text import TfidfTransformer

from paretomkl.datasets import fetch

PER_CLASS = {"tcga3": 20, "msrcv1": 5, "bbcsport": 10, "3sources": 5, "scene15": 10, "mfeat": 10}  # training samples
NEWS = ("bbcsport", "3sources")  # word counts
VIEWS = (*PER_CLASS, *(f"{name} tf-idf" for name in NEWS), "stemcells")
TABLES = ("wine", "breast cancer", "digits", "vehicle, raw", "segment, raw", "steel, raw")  # without sources
N_TEST = 1500
HOW = {"pairs": "one-vs-one", "rest": "one-vs-rest"}
LOSSES: dict[str, Method] = {
    f"{loss} {how}": partial(ours, loss=loss, multi_class=HOW[how])
    for loss, how in product(("hinge", "logistic", "squared"), HOW)
}
METHODS: dict[str, Method] = {**BASELINES, "ours": ours}


def draw(name: str, run: int) -> Split:
    """A fresh split: as many of each class as PER_CLASS says, or two fifths of each class of each task."""
    if name in TABLES:
        train, test = raw_split(name, run)
        return Split(train.X, train.y, test.X, test.y, {})
    plain = name.removesuffix(" tf-idf")
    if plain == "mfeat":
        bunch = fetch("mfeat", data_home=HOME)
        X, y, tasks, blocks = bunch.data, bunch.target, None, dict(bunch.sources)
    else:
        stored = np.load(HOME / "views" / f"{plain}.npz")
        X, y, ends = stored["X"].astype(float), stored["y"], np.cumsum(stored["widths"])
        tasks = stored.get("tasks")
        starts = ends - stored["widths"]
        blocks = {str(n): slice(int(a), int(b)) for n, a, b in zip(stored["names"], starts, ends, strict=True)}
    rng = np.random.default_rng(zlib.crc32(f"views {plain} {run}".encode()))
    groups = [rng.permutation(np.flatnonzero(y == label)) for label in np.unique(y)]
    takes = [PER_CLASS.get(plain, 0)] * len(groups)
    if tasks is not None:
        cells = product(np.unique(tasks), np.unique(y))
        groups = [rng.permutation(np.flatnonzero((tasks == task) & (y == label))) for task, label in cells]
        takes = [max(2, round(0.4 * len(group))) for group in groups]
    train = np.concatenate([group[:take] for group, take in zip(groups, takes, strict=True)])
    test = rng.permutation(np.setdiff1d(np.arange(len(y)), train))[:N_TEST]
    first, rest = X[train], X[test]
    if name != plain:
        for columns in blocks.values():
            weights = TfidfTransformer().fit(first[:, columns])
            for part in (first, rest):
                part[:, columns] = weights.transform(part[:, columns]).toarray()
    own = (None, None) if tasks is None else (tasks[train], tasks[test])
    return Split(first, y[train], rest, y[test], blocks, plain in NEWS, *own)


def one(asked: tuple[str, str, int]) -> dict[str, object]:
    """One row of the results."""
    return cell(draw, (METHODS | LOSSES)[asked[1]], asked)


def main() -> None:
    parser = options(__doc__, 10, METHODS)
    parser.add_argument("--tables", action="store_true", help="public data sets without sources instead")
    given = parser.parse_args()
    if given.what == "report":
        print(table(read(given.file), [*BASELINES, *LOSSES, "ours"], VIEWS + TABLES))
        return
    if given.methods == "losses":
        given.methods = ",".join(LOSSES)
    run_missing(given.file, asked_for(given, TABLES if given.tables else VIEWS), one, given.jobs)


if __name__ == "__main__":
    main()
