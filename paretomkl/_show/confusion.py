"""Which classes the models confuse, on held-out samples, for the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._data.labels import Labelling, Samples
from .._data.tasks import listed, missing_labels
from .._tools.typing import AnyArray, Array, IntArray


@dataclass(frozen=True)
class Confusion:
    """How many held-out samples of each class are predicted as each class, in each group.

    A group is a task, or all samples if the tasks are pairs of classes.

    Parameters
    ----------
    groups : list of n_groups str
    classes : list of n_groups lists of str
        The classes of each group, in the order of rows and columns.
    rows, truth : lists of n_groups arrays of int
        The samples of each group, and the index of their true class among its classes.
    labels : list of n_groups lists
        The classes as they appear in y.
    counts : list of n_groups int arrays of shape (n_points, n_classes, n_classes)
        Counts at each exponent of the path: rows are true classes, columns predicted ones.
    """

    groups: list[str]
    classes: list[list[str]]
    rows: list[IntArray]
    truth: list[IntArray]
    labels: list[list[Any]]
    counts: list[IntArray]

    @classmethod
    def drawn_from(cls, labelling: Labelling, samples: Samples, y: Any) -> Confusion:
        """The held-out samples of each group, without predictions yet."""
        truth = labelling.truth(y)
        found = cls([], [], [], [], [], [])
        for rows, tasks in labelling.groups(samples):
            # each column of a label matrix is a task on the same rows
            parts = [(rows, [t]) for t in tasks] if truth.ndim == 2 else [(rows, list(tasks))]
            for mine, own in parts:
                true = truth[mine, own[0]] if truth.ndim == 2 else truth[mine]
                known = ~missing_labels(true)
                mine, true = mine[known], true[known]
                labels = _ordered([label for t in own for label in labelling.pairs[t]] + listed(true), labelling)
                several = labelling.kind in ("tasks", "matrix")
                found.groups.append(str(labelling.sources[own[0]]) if several else "")
                found.classes.append([_shown(label) for label in labels])
                found.rows.append(mine)
                found.truth.append(_codes(true, labels))
                found.labels.append(labels)
        return found

    @property
    def n_rows(self) -> int:
        """The number of labels to compare: one for each sample and task."""
        return sum(map(len, self.rows))

    @property
    def right(self) -> tuple[Array, Array]:
        """Share of correct predictions, (n_points, n_groups), NaN without samples; and sample counts, (n_groups,)."""
        sizes = np.array([len(rows) for rows in self.rows], dtype=float)
        hits = np.stack([np.trace(counts, axis1=1, axis2=2) for counts in self.counts], axis=1)
        return np.where(sizes > 0, hits / np.maximum(sizes, 1), np.nan), sizes

    def count(self, labelling: Labelling, decisions: Array) -> list[IntArray]:
        """The counts of one model, (n_classes, n_classes) for each group, from its decisions (n_samples, n_tasks)."""
        predicted = labelling.predictions(decisions)
        matrix = predicted.ndim == 2
        counts = []
        for g, (rows, truth, labels) in enumerate(zip(self.rows, self.truth, self.labels, strict=True)):
            answers = _codes(predicted[rows, g] if matrix else predicted[rows], labels)
            table = np.zeros((len(labels), len(labels)), dtype=int)
            np.add.at(table, (truth, answers), 1)
            counts.append(table)
        return counts

    def with_counts(self, of_points: Sequence[list[IntArray]]) -> Confusion:
        """A copy with the counts of every point of a path."""
        return replace(self, counts=[np.stack(of_group) for of_group in zip(*of_points, strict=True)])

    def page_data(self, points: IntArray) -> dict[str, Any]:
        """What the page shows: the nonzero cells of each distinct table of a group, and which table each point has.

        This is short: neighbouring points mostly make the same predictions, and with many classes most cells are zero.
        """
        groups = []
        for name, classes, counts in zip(self.groups, self.classes, self.counts, strict=True):
            flat = counts[points].reshape(len(points), -1)
            states, at = np.unique(flat, axis=0, return_inverse=True)
            filled = [np.flatnonzero(state) for state in states]
            groups.append(
                {
                    "name": name,
                    "classes": classes,
                    "places": [places.tolist() for places in filled],
                    "counts": [state[places].tolist() for state, places in zip(states, filled, strict=True)],
                    "at": at.ravel().tolist(),
                }
            )
        return {"groups": groups}


def _ordered(labels: list[Any], labelling: Labelling) -> list[Any]:
    """Each label once, in the order of the tasks' classes; unknown labels come last."""
    known = labelling.pairs if labelling.kind == "matrix" else [listed(labelling.classes)]
    order = {label: k for k, label in enumerate(label for some in known for label in some)}
    return sorted(dict.fromkeys(labels), key=lambda label: order.get(label, len(order)))


def _codes(values: AnyArray, labels: list[Any]) -> IntArray:
    """The index of each value among the labels."""
    place = {label: k for k, label in enumerate(labels)}
    return np.array([place[value] for value in listed(values)], dtype=int)


def _shown(label: Any) -> str:
    """A label as text; a label matrix with gaps holds floats, and 1.0 is shown as 1."""
    return f"{label:g}" if isinstance(label, float) else str(label)
