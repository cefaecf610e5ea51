"""What to run: data sets × fractions × methods × runs, how thoroughly, and on which samples.

The protocol: scale attributes to [0, 1], draw a balanced pool, take a part for training, make folds within it.
"""

from __future__ import annotations

import json
import warnings
import zlib
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from .._learn.path import PAPER_PS
from .._select.splits import MultiTaskStratifiedKFold
from .._tools.typing import AnyArray, Array, IntArray
from ..datasets import fetch, make_multitask
from ..exceptions import RareLabelWarning
from ..kernels._kernels import Gaussian

N_RUNS = 20
# rough seconds on one core for a cell with 1000 training samples
SECONDS = {"pareto": 12.0, "independent": 4.0, "sparse": 40.0, "tang": 16.0, "mm-aep": 15.0, "mm-ep": 10.0}
SECONDS |= {"independent-svc": 10.0, "uniform": 1.0, "svc": 3.0, "default": 6.0}
METHODS = tuple(SECONDS)
ON_VARIANTS = METHODS[:-2]  # variants of a data set skip "svc" (the usual alternative) and "default" (our defaults)


@dataclass(frozen=True)
class Study:
    """A data set as the paper uses it.

    name: of the study; source and options: what to fetch; pool: number of samples in the balanced pool from which the
    training and test sets are drawn; fractions: percentages of it used for training; methods: the methods to run;
    classes: the classes to use, None for all; scaled: whether to scale attributes to [0, 1]; per_class: samples of each
    class of each task, 0 for the size of the rarest class.
    """

    name: str
    source: str
    pool: int
    n_tasks: int
    fractions: tuple[int, ...] = (10, 20, 50)
    methods: tuple[str, ...] = METHODS
    options: tuple[tuple[str, Any], ...] = ()
    classes: tuple[str | int, ...] | None = None
    scaled: bool = True
    per_class: int = 0


STUDIES = {
    study.name: study
    for study in (
        Study("robot", "robot", 1312, 6),
        Study("satellite", "satellite", 3756, 15),
        Study("vehicle", "vehicle", 796, 6),
        Study("steel", "steel", 1173, 3, classes=("Other_Faults", "Bumps", "K_Scatch")),
        Study("segment", "segment", 2310, 21),
        Study("shuttle", "shuttle", 9801, 3, classes=(1, 4, 5)),
        Study("letter", "letter", 1600, 8, per_class=100),
        # already standardised; scaling to [0, 1] costs three points of accuracy
        Study("landmine", "landmine", 1808, 29, fractions=(20, 30, 50), scaled=False),
        # the paper's figures use 5 % of robot
        Study("robot-figures", "robot", 1312, 6, fractions=(5,), methods=("pareto",)),
        Study("segment-distinct", "segment", 2044, 21, methods=ON_VARIANTS, options=(("drop_duplicates", True),)),
        Study("landmine-scaled", "landmine", 1808, 29, (20, 30, 50), methods=("pareto", "independent", "uniform")),
        # other interpretations of "Robot": all sensors, or only two directions
        Study("robot-24", "robot", 1312, 6, methods=("pareto", "independent"), options=(("n_sensors", 24),)),
        Study("robot-2", "robot", 1312, 6, methods=("pareto", "independent"), options=(("n_sensors", 2),)),
        # half of the tasks have 40 % wrong labels; needs no files
        Study("synthetic", "synthetic", 1600, 8, methods=ON_VARIANTS, scaled=False),
    )
}


@dataclass(frozen=True)
class Settings:
    """How thoroughly to run each cell; results of different settings are never mixed.

    ps: exponents; Cs: costs of a margin violation, for all methods except "sparse", whose penalty is a norm and not its
    square; shares: β/T of "tang"; sparse_Cs, sparse_ps, sparse_qs: the grid of "sparse"; mus, lams: the grids of
    "mm-aep" and "mm-ep"; alphas: their α/T; n_folds: folds within the training set; most_in_folds: the most samples of
    the training set that go into folds; tol and final_tol: relative gaps of the models in cross-validation and of the
    tested models.
    """

    ps: tuple[float, ...] = PAPER_PS
    Cs: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
    shares: tuple[float, ...] = (0.0, 0.2, 0.5, 1.0)
    sparse_Cs: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0, 10.0)
    sparse_ps: tuple[float, ...] = (0.5, 1.0)
    sparse_qs: tuple[float, ...] = (1.0, 1.5, 2.0)
    mus: tuple[float, ...] = (0.1, 0.01, 1e-3, 1e-4, 1e-5)
    lams: tuple[float, ...] = (0.1, 1.0, 10.0)
    alphas: tuple[float, ...] = (0.1, 0.2)
    n_folds: int = 3
    most_in_folds: int = 1200
    tol: float = 1e-3
    final_tol: float = 1e-4

    def as_dict(self) -> dict[str, object]:
        """Plain values that JSON can hold; ∞ becomes text."""
        return json.loads(json.dumps(asdict(self)), parse_constant=lambda infinity: "inf")


FULL = Settings()
QUICK = Settings(
    ps=(0.01, 1.0, float("inf")),
    Cs=(1.0, 10.0),
    shares=(0.0, 0.5),
    sparse_Cs=(0.1, 1.0),
    sparse_ps=(1.0,),
    sparse_qs=(1.0, 2.0),
    mus=(0.01, 1e-3),
    lams=(1.0,),
    alphas=(0.2,),
    n_folds=2,
    most_in_folds=200,
    final_tol=1e-3,
)


@dataclass(frozen=True)
class Cell:
    """One method on one split of one data set: the unit that is run, saved or lost as a whole."""

    dataset: str
    fraction: int
    method: str
    run: int

    @property
    def seed(self) -> int:
        """The seed of the split: the same for all methods and fractions, so that runs are paired and parts nested."""
        return zlib.crc32(f"{STUDIES[self.dataset].source} {self.run}".encode())

    @property
    def cost(self) -> float:
        """Rough seconds on one core; cheap cells run first."""
        n = STUDIES[self.dataset].pool * self.fraction / 100
        return 0.2 + SECONDS[self.method] * (n / 1000) ** 1.5

    def __str__(self) -> str:
        return f"{self.dataset} {self.fraction} % {self.method} run {self.run}"


def make_plan(
    datasets: Sequence[str] | None = None, methods: Sequence[str] | None = None, runs: int = N_RUNS, quick: bool = False
) -> list[Cell]:
    """All cells, ordered by run and then by cost, cheap ones first.

    datasets and methods: names from ``STUDIES`` and ``METHODS``, None for all; runs: random splits of each data set and
    fraction; quick: use only the smallest fraction of each data set.
    """
    chosen = _known("data set", STUDIES if datasets is None else datasets, STUDIES)
    wanted = _known("method", METHODS if methods is None else methods, METHODS)
    if runs < 1:
        raise ValueError(f"runs must be at least 1, got {runs}.")
    cells = [
        Cell(name, fraction, method, run)
        for run in range(runs)
        for name in chosen
        for fraction in (STUDIES[name].fractions[:1] if quick else STUDIES[name].fractions)
        for method in wanted
        if method in STUDIES[name].methods
    ]
    return sorted(cells, key=lambda cell: (cell.run, cell.cost))


def _known(what: str, names: Collection[str], known: Collection[str]) -> list[str]:
    for name in names:
        if name not in known:
            raise ValueError(f"There is no {what} {name!r}; choose from {', '.join(known)}.")
    return list(dict.fromkeys(names))


# ------------------------------------------------------------------------------------------------- the samples
@dataclass(frozen=True)
class LabelledSamples:
    """Samples with their labels, and their tasks unless the tasks are pairs of classes."""

    X: Array
    y: AnyArray
    tasks: AnyArray | None

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows: IntArray) -> LabelledSamples:
        return LabelledSamples(self.X[rows], self.y[rows], None if self.tasks is None else self.tasks[rows])

    @property
    def groups(self) -> list[IntArray]:
        """The rows of each class of each task."""
        codes = np.unique(self.y, return_inverse=True)[1]
        if self.tasks is not None:
            codes = codes + len(self.y) * np.unique(self.tasks, return_inverse=True)[1]
        return [np.flatnonzero(codes == code) for code in np.unique(codes)]


@dataclass(frozen=True)
class Split:
    """What a method learns from, and what it is tested on.

    folds: rows of the training set to learn from and to score candidates on; n_tasks: number of tasks or pairs of
    classes; kernels: for the methods of the paper that use kernels.
    """

    train: LabelledSamples
    test: LabelledSamples
    folds: list[tuple[IntArray, IntArray]]
    n_tasks: int
    kernels: Literal["paper"] | Sequence[Gaussian] = "paper"


@cache
def load(study: Study, data_home: str | Path | None = None) -> LabelledSamples:
    """Load the samples of a study, restricted to its classes and scaled if the study says so.

    As in the paper, the range of an attribute covers the whole set, test samples included; labels are not used.
    """
    bunch = fetch(study.source, data_home=data_home, **dict(study.options))
    part = LabelledSamples(np.asarray(bunch.data, dtype=float), bunch.target, bunch.tasks)
    if study.classes is not None:
        part = part[np.flatnonzero(np.isin(part.y, study.classes))]
    if not study.scaled:
        return part
    low, span = part.X.min(axis=0), np.ptp(part.X, axis=0)
    return LabelledSamples((part.X - low) / np.where(span > 0, span, 1.0), part.y, part.tasks)


def make_noisy_tasks(seed: int) -> tuple[LabelledSamples, list[Gaussian]]:
    """Eight tasks that depend on the same two of six sources, four of them with 40 % wrong labels; and kernels."""
    made = make_multitask(n_tasks=8, n_samples=200, noise=[0.0, 0.4] * 4, random_state=seed)
    kernels = [Gaussian(sigma, columns=columns) for columns in made.columns for sigma in (0.5, 1.0, 2.0)]
    return LabelledSamples(made.data, made.target, made.tasks), kernels


def draw_parts(data: LabelledSamples, fraction: int, seed: int, per_class: int = 0) -> tuple[IntArray, IntArray]:
    """Rows for training and testing: a percentage of each class of a balanced pool, and the rest of the pool.

    The pool has the same number of samples from every class of a task: the size of its rarest class, or ``per_class``
    if given. The order is drawn first, so that a larger fraction contains a smaller one.
    """
    rng = np.random.default_rng(seed)
    owned = [(None if data.tasks is None else data.tasks[rows[0]], rows) for rows in data.groups]
    train, test = [], []
    for task, rows in owned:
        n = per_class or min(len(own) for other, own in owned if other == task)
        pool = rng.permutation(rows)[:n]
        n_train = round(n * fraction / 100)
        train.append(pool[:n_train])
        test.append(pool[n_train:])
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(test))


def make_folds(train: LabelledSamples, seed: int, settings: Settings) -> list[tuple[IntArray, IntArray]]:
    """Folds of the training set, or of ``most_in_folds`` of its samples if it is larger, by task and class."""
    rows = np.arange(len(train))
    if len(train) > settings.most_in_folds:
        rng = np.random.default_rng(seed)
        keep = settings.most_in_folds / len(train)
        some = [rng.permutation(own)[: max(2, int(keep * len(own)))] for own in train.groups]  # folds need two of each
        rows = np.sort(np.concatenate(some))
    used = train[rows]
    splitter = MultiTaskStratifiedKFold(settings.n_folds, shuffle=True, random_state=seed % 2**32)
    with warnings.catch_warnings():  # rare classes: a task with three positive samples has none in two folds
        warnings.simplefilter("ignore", RareLabelWarning)
        parts = list(splitter.split(used.X, used.y, tasks=used.tasks))
    return [(rows[fit], rows[held_out]) for fit, held_out in parts]


def make_split(cell: Cell, settings: Settings, data_home: str | Path | None = None) -> Split:
    """The split of a cell; it is the same for all methods."""
    study = STUDIES[cell.dataset]
    kernels: Literal["paper"] | Sequence[Gaussian] = "paper"
    if study.source == "synthetic":
        data, kernels = make_noisy_tasks(cell.seed)
    else:
        data = load(study, data_home)
    train, test = (data[rows] for rows in draw_parts(data, cell.fraction, cell.seed, study.per_class))
    return Split(train, test, make_folds(train, cell.seed, settings), study.n_tasks, kernels)
