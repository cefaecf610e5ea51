"""The usual alternative: scikit-learn's SVC on standardised columns, with one width and one C for all tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from .._data.labels import Labelling
from .._data.reading import Training
from .._fitting.models import FittedTasks
from .._learn.classifier import MultiTaskClassifier
from .._tools.typing import AnyArray, Array, IntArray


@dataclass(frozen=True)
class SVCModel(FittedTasks):
    """A scaler of the columns and a fitted SVC for each task."""

    tasks: Labelling
    scaler: Any
    machines: list[Any]

    def _values(self, data: AnyArray, rows: IntArray, tasks: IntArray) -> Array:
        scaled = self.scaler.transform(data[rows])
        return np.column_stack([self.machines[t].decision_function(scaled) for t in tasks])


class SharedWidthSVC(MultiTaskClassifier):
    """One SVC with the kernel exp(−γ‖x − z‖²) per task, with the same C and γ for all tasks.

    Columns are standardised over the training samples of all tasks, since the width is the same for all. If the tasks
    are pairs of classes this is ``make_pipeline(StandardScaler(), SVC(C=C, gamma=gamma))``, which solves the same
    pairs; confidence breaks ties between votes, as for all methods.
    """

    task_column = class_weight = random_state = None

    def __init__(self, C: float = 1.0, gamma: float = 1.0, tol: float = 1e-3):
        self.C = C
        self.gamma = gamma
        self.tol = tol

    def _learn(self, training: Training) -> SVCModel:
        scaler = StandardScaler().fit(training.samples.data)
        X = scaler.transform(training.samples.data)
        machines = [
            SVC(C=self.C, gamma=self.gamma, tol=self.tol).fit(X[task.rows], task.targets) for task in training.tasks
        ]
        return SVCModel(training.labelling, scaler, machines)
