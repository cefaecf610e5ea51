"""The protocol: scale attributes to [0, 1], draw a balanced pool, take a part for training, make folds within it."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from .._select.splits import MultiTaskStratifiedKFold
from .._tools.typing import AnyArray, Array, IntArray
from ..datasets import fetch, make_multitask
from ..exceptions import RareLabelWarning
from ..kernels._kernels import Gaussian
from .plan import STUDIES, Cell, Settings, Study


@dataclass(frozen=True)
class Part:
    """Samples with their labels, and their tasks unless the tasks are pairs of classes."""

    X: Array
    y: AnyArray
    tasks: AnyArray | None

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows: IntArray) -> Part:
        return Part(self.X[rows], self.y[rows], None if self.tasks is None else self.tasks[rows])

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

    folds: rows of the training part to learn from and to score candidates on; n_tasks: number of tasks or pairs of
    classes; kernels: for the methods of the paper that use kernels.
    """

    train: Part
    test: Part
    folds: list[tuple[IntArray, IntArray]]
    n_tasks: int
    kernels: Any = "paper"


@cache
def load(study: Study, data_home: str | os.PathLike[str] | None = None) -> Part:
    """Load the samples of a study, restricted to its classes and scaled if the study says so.

    As in the paper, the range of an attribute covers the whole set, test samples included; labels are not used.
    """
    bunch = fetch(study.source, data_home=data_home, **dict(study.options))
    part = Part(np.asarray(bunch.data, dtype=float), bunch.target, bunch.tasks)
    if study.classes is not None:
        part = part[np.flatnonzero(np.isin(part.y, study.classes))]
    if not study.scaled:
        return part
    low, span = part.X.min(axis=0), np.ptp(part.X, axis=0)
    return Part((part.X - low) / np.where(span > 0, span, 1.0), part.y, part.tasks)


def make_noisy_tasks(seed: int) -> tuple[Part, list[Gaussian]]:
    """Eight tasks that depend on the same two of six sources, four of them with 40 % wrong labels; and kernels."""
    made = make_multitask(n_tasks=8, n_samples=200, noise=[0.0, 0.4] * 4, random_state=seed)
    kernels = [Gaussian(sigma, columns=columns) for columns in made.columns for sigma in (0.5, 1.0, 2.0)]
    return Part(made.data, made.target, made.tasks), kernels


def draw_parts(data: Part, fraction: int, seed: int, per_class: int = 0) -> tuple[IntArray, IntArray]:
    """Rows for training and testing: a percentage of each class of a balanced pool, and the rest of the pool.

    The pool has the same number of samples from every class of a task: the size of its rarest class, or ``per_class``
    if given. The order is drawn first, so that a larger fraction contains a smaller one.
    """
    rng = np.random.default_rng(seed)
    groups = data.groups
    sizes = [len(rows) for rows in groups]
    if data.tasks is None:
        size = [per_class or min(sizes)] * len(groups)
    else:
        owner = [data.tasks[rows[0]] for rows in groups]
        size = [per_class or min(n for n, o in zip(sizes, owner, strict=True) if o == mine) for mine in owner]
    train, test = [], []
    for rows, n in zip(groups, size, strict=True):
        pool = rng.permutation(rows)[:n]
        n_train = round(n * fraction / 100)
        train.append(pool[:n_train])
        test.append(pool[n_train:])
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(test))


def make_folds(train: Part, seed: int, settings: Settings) -> list[tuple[IntArray, IntArray]]:
    """Folds of the training part, or of ``most_in_folds`` of its samples if it is larger, by task and class."""
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


def make_split(cell: Cell, settings: Settings, data_home: Any = None) -> Split:
    """The split of a cell; it is the same for all methods."""
    study = STUDIES[cell.dataset]
    kernels: Any = "paper"
    if study.source == "synthetic":
        data, kernels = make_noisy_tasks(cell.seed)
    else:
        data = load(study, data_home)
    train_rows, test_rows = draw_parts(data, cell.fraction, cell.seed, study.per_class)
    train = data[train_rows]
    return Split(train, data[test_rows], make_folds(train, cell.seed, settings), study.n_tasks, kernels)
