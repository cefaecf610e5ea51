"""What most people would do: an SVM for each task, with one kernel that cross-validation chooses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from .._data.labels import Labelling
from .._data.reading import Training
from .._fitting.models import FittedTasks, TaskModel
from .._fitting.tracing import TaskData, fit_bank, make_gram, make_model
from .._learn.base import KernelTaskClassifier, MultiTaskClassifier
from .._tools.running import effective_jobs
from .._tools.typing import AnyArray, Array, IntArray
from ..gram._blocks import GramBlocks, TaskLayout
from ..kernels import KernelLike
from ..kernels._kernels import PAPER_SIGMAS, Gaussian
from ..machines import SVCTasks
from ..machines._smo import classifier_box, solve_tasks
from ..solvers._base import TASK_SHARE, Run

WIDTHS = tuple(Gaussian(sigma) for sigma in PAPER_SIGMAS)


# -------------------------------------------------------------------------------------- each task chooses its own
class IndependentSVC(KernelTaskClassifier):
    """One SVM with one kernel per task; cross-validation within the task chooses C and the kernel.

    For each task this does what ``GridSearchCV(SVC())`` does: it takes the pair of C and kernel with the highest mean
    accuracy over stratified folds, at most as many as the rarer class has samples. On a tie it takes the smallest C,
    then the kernel listed first. ``C_`` has the chosen costs, ``theta_`` a one for the chosen kernel of each task, and
    ``cv_scores_`` (n_tasks, n_Cs, n_kernels) the mean accuracies in increasing C.
    """

    C_: Array
    cv_scores_: Array

    def __init__(
        self,
        Cs: Sequence[float] = (0.1, 1.0, 10.0, 100.0),
        kernels: KernelLike = WIDTHS,
        n_folds: int = 5,
        tol: float = 1e-3,
    ):
        super().__init__(kernels=kernels, tol=tol)
        self.Cs = Cs
        self.n_folds = n_folds

    def _learn(self, training: Training) -> TaskModel:
        tasks, bank = training.tasks, fit_bank(self.kernels, training)
        costs, rtol = np.unique(self.Cs), TASK_SHARE * self.tol
        gram = make_gram(bank, training.samples.data, tasks, effective_jobs(self.n_jobs), shared=False)
        folds = []
        for t, task in enumerate(tasks):
            rarer = min((task.targets < 0).sum(), (task.targets > 0).sum())
            splits = StratifiedKFold(min(self.n_folds, rarer)).split(task.rows, task.targets)
            folds += [InnerFold(t, task.targets, train, test) for train, test in splits]
        accuracy = held_out_accuracy(gram, folds, costs, rtol)
        scores = [accuracy[[fold.task == t for fold in folds]].mean(axis=0) for t in range(len(tasks))]
        self.cv_scores_ = np.array(scores)
        # rounded, so that sums of the same accuracies in another order tie
        best = np.round(self.cv_scores_, 12).reshape(len(tasks), -1).argmax(axis=1)
        cost, kernel = np.unravel_index(best, self.cv_scores_.shape[1:])
        self.C_ = costs[cost]
        bounds = [C * weight for C, weight in zip(self.C_, training.weights, strict=True)]
        chosen = TaskData.of(gram, tasks, bounds, None, SVCTasks).machine()
        sweep = Run().sweep(chosen, np.eye(bank.n_kernels)[kernel], None, rtol)
        self._keep(sweep.lower, sweep.gaps.max(), self.cv_scores_[0].size + 1)
        return make_model(bank, training, sweep.theta, chosen.decisions(sweep))


class InnerFold(NamedTuple):
    """A task, the signs of its samples, and its training and held-out samples as indices within the task."""

    task: int
    signs: Array
    train: IntArray
    test: IntArray


def held_out_accuracy(gram: GramBlocks, folds: list[InnerFold], costs: Array, rtol: float) -> Array:
    """The accuracy of each fold, (n_folds, n_costs, n_kernels), for increasing ``costs``.

    Each fold is solved as a task on the Gram matrix of the whole task, and starts from the dual of the last C.
    """
    block = np.array([fold.task for fold in folds])
    layout = TaskLayout(
        ptr=np.concatenate([[0], np.cumsum([len(fold.train) for fold in folds])]),
        idx=np.concatenate([fold.train for fold in folds]),
        start=gram.layout.start[block],
        size=gram.layout.size[block],
    )
    signs = np.concatenate([fold.signs[fold.train] for fold in folds])
    accuracy = np.empty((len(folds), len(costs), gram.n_kernels))
    for m, theta in enumerate(np.eye(gram.n_kernels)):
        dual = np.zeros(len(signs))
        with gram.combined(theta) as K:
            held_out = [K.of_task(fold.task, fold.test, fold.train) for fold in folds]
            for k, C in enumerate(costs):
                box = classifier_box(signs, np.full(len(signs), C), len(folds))
                solved = solve_tasks(K.flat, layout, signs, box, dual, rtol, gram.n_jobs)
                for f, fold in enumerate(folds):
                    decisions = held_out[f] @ dual[layout.ptr[f] : layout.ptr[f + 1]] + solved.intercept[f]
                    accuracy[f, k, m] = np.mean((decisions > 0) == (fold.signs[fold.test] > 0))
    return accuracy


# ---------------------------------------------------------------------------------- one width and one C for all tasks
@dataclass(frozen=True)
class SVCModel(FittedTasks):
    """A scaler of the columns and a fitted SVC for each task."""

    tasks: Labelling
    scaler: StandardScaler
    machines: list[SVC]

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
