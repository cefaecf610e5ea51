"""The protocol: attributes in [0, 1], a balanced pool, a part of it for training, folds within that part."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from .._kernels import Gaussian
from .._typing import AnyArray, Array, IntArray
from ..datasets import fetch, make_multitask
from ..model_selection import MultiTaskStratifiedKFold
from .plan import STUDIES, Cell, Settings, Study


@dataclass(frozen=True)
class Part:
    """Samples with their labels, and their tasks where the classes are not the tasks."""

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
    """What a method is given, and what it is judged by.

    folds: rows of the training part to learn from and to score candidates on; n_tasks: pairs of classes, or tasks;
    kernels: for the methods of the paper that use any.
    """

    train: Part
    test: Part
    folds: list[tuple[IntArray, IntArray]]
    n_tasks: int
    kernels: Any = "paper"


@cache
def load(study: Study, data_home: str | os.PathLike[str] | None = None) -> Part:
    """The samples of a study, of the classes it uses, scaled if it asks for that.

    As in the paper the range of an attribute is that over the whole set, test samples included; no label is looked at.
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
    """Eight tasks, four of them with 40 % wrong labels, to which the same two of six sources matter; and kernels."""
    made = make_multitask(n_tasks=8, n_samples=200, noise=[0.0, 0.4] * 4, random_state=seed)
    kernels = [Gaussian(sigma, columns=columns) for columns in made.columns for sigma in (0.5, 1.0, 2.0)]
    return Part(made.data, made.target, made.tasks), kernels


def draw_parts(data: Part, fraction: int, seed: int, per_class: int = 0) -> tuple[IntArray, IntArray]:
    """Rows for training and for testing: of a balanced pool a percentage of each class, and the rest.

    Every class of a task gives the pool as many samples as the rarest class of that task has (``per_class`` where that
    is given). The order is drawn first, so that a larger fraction contains a smaller one.
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
    """Folds of the training part, or of ``most_in_folds`` samples of a larger one, stratified by task and class."""
    rows = np.arange(len(train))
    if len(train) > settings.most_in_folds:
        rng = np.random.default_rng(seed)
        keep = settings.most_in_folds / len(train)
        some = [rng.permutation(own)[: max(2, int(keep * len(own)))] for own in train.groups]  # folds need two of each
        rows = np.sort(np.concatenate(some))
    used = train[rows]
    splitter = MultiTaskStratifiedKFold(settings.n_folds, shuffle=True, random_state=seed % 2**32)
    with warnings.catch_warnings():  # of a task with three positive samples two folds have none
        warnings.filterwarnings("ignore", message=".*fewer than n_splits")
        parts = list(splitter.split(used.X, used.y, tasks=used.tasks))
    return [(rows[fit], rows[held_out]) for fit, held_out in parts]


def make_split(cell: Cell, settings: Settings, data_home: Any = None) -> Split:
    """The split of a cell: the same for all its methods."""
    study = STUDIES[cell.dataset]
    kernels: Any = "paper"
    if study.source == "synthetic":
        data, kernels = make_noisy_tasks(cell.seed)
    else:
        data = load(study, data_home)
    train_rows, test_rows = draw_parts(data, cell.fraction, cell.seed, study.per_class)
    train = data[train_rows]
    return Split(train, data[test_rows], make_folds(train, cell.seed, settings), study.n_tasks, kernels)
