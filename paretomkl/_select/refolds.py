"""The folds of a search at the chosen point: fitted again for sets, intervals and importances, and calibrated."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from joblib import hash as digest_of
from scipy.sparse import issparse

from .._data.labels import as_blocks
from .._data.reading import Examples, read_samples
from .._data.tasks import as_labels
from .._learn.calibration import Calibration, HeldOut
from .._learn.fold_models import FoldModel, fit_folds
from .._learn.probabilities import held_out
from .._tools.typing import IntArray
from .folds import FoldScores
from .splits import TrainTest, make_splits


@dataclass(frozen=True)
class SearchFolds:
    """The folds of a fitted search, as rows of its training data.

    searched: the folds on which the parameters were chosen; rows: the rows that the search saw, None for all; again:
    the arguments of :func:`make_splits` that make folds of all rows; fingerprint: of the training data; examples: the
    training data, which pickles and saved models leave out; conformal: what sets and intervals need, from their first
    use on, by whether it is for tasks not seen in training ("new" or "known").
    """

    searched: list[TrainTest]
    rows: IntArray | None
    again: dict[str, Any]
    fingerprint: str
    examples: Examples | None = field(default=None, repr=False)
    conformal: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "examples": None}

    @classmethod
    def of(cls, splits: list[TrainTest], rows: IntArray | None, examples: Examples, **again: Any) -> SearchFolds:
        searched = splits if rows is None else [(rows[train], rows[test]) for train, test in splits]
        return cls(searched, rows, again, fingerprint_of(examples), examples)

    @cached_property
    def splits(self) -> list[TrainTest]:
        """Folds of all rows: those of the search, unless it saw only some rows; then new ones of the same kind."""
        if self.rows is None:
            return self.searched
        seen = self.given
        return make_splits(y=seen.y, X=seen.samples.data, tasks=seen.samples.sources, **self.again)

    @property
    def given(self) -> Examples:
        """The training data; raise if they are not kept, or have changed."""
        if self.examples is None:
            raise ValueError(
                "The search was pickled or saved, which leaves its training data out; fit it again. For sets and "
                "intervals, call predict_set or predict_interval once before saving."
            )
        if fingerprint_of(self.examples) != self.fingerprint:
            raise ValueError("The arrays of the training data have changed since the search was fitted; fit it again.")
        return self.examples

    def checked(self, search: Any, X: Any, y: Any, tasks: Any = None, sample_weight: Any = None) -> SearchFolds:
        """The same folds with these data, after checking that they are the training data of the search."""
        given = Examples(read_samples(copy(search), as_blocks(X), tasks=tasks, reset=True), y, sample_weight)
        if fingerprint_of(given) != self.fingerprint:
            raise ValueError(
                "X and y, with tasks and sample_weight, are not the training data of the search; pass those given to "
                "fit, in full."
            )
        return replace(self, examples=given)

    def fitted(
        self, estimator: Any, n_jobs: int | None = None, splits: list[TrainTest] | None = None
    ) -> list[FoldModel]:
        """The estimator fitted to the training set of each fold, with its held-out decisions; default: ``splits``."""
        return fit_folds(estimator, self.given, self.splits if splits is None else splits, n_jobs)


def fingerprint_of(examples: Examples) -> str:
    """A digest of X, y, the tasks and the weights."""
    samples = examples.samples
    data: Any = samples.data
    # a sparse array also notes what it has found out about itself
    parts = [data.indptr, data.indices, data.data] if issparse(data) else [np.ascontiguousarray(data)]
    for labels in (examples.y, samples.sources, examples.sample_weight):
        if labels is not None:
            values = as_labels(labels, "y").reshape(len(samples), -1)
            parts.append(values.astype(float if values.dtype.kind in "biuf" else str))
    return str(digest_of(parts))


def calibration_at(
    best: Any, point: int, scored: Sequence[FoldScores], searched: Examples, splits: Sequence[TrainTest]
) -> Calibration:
    """The calibration of the best estimator at a point of the grid of its way to share.

    The decisions are those of the search; where it has not kept them, the folds are fitted again at this point.
    """
    kept = [(one.number, one.held_out) for one in scored if one.way == best.share and one.error is None]
    if all(decisions is not None for _, decisions in kept):
        parts = [
            held_out_part(decisions.tasks, decisions.decided[point], searched.take(splits[number][1]))
            for number, decisions in sorted(kept, key=lambda pair: pair[0])
            if decisions is not None
        ]
    else:
        parts = held_out(fit_folds(best, searched, splits), searched)
    return Calibration.of(best.model_.tasks, best.machine_kind.decisions, parts, best.class_weight)


def held_out_part(tasks: Any, decided: Any, test: Examples) -> HeldOut:
    return HeldOut(tasks, decided, test.samples, test.y, test.sample_weight)
