"""A permutation test of a whole search: would it score as well if the labels had nothing to do with the samples?

The labels are exchanged within tasks, the search chooses again, and its honest score is compared with that of the true
labels. If labels and samples are unrelated, all these scores come from the same distribution, so that the share of
those at least as large as the true one, itself included, is a p-value: P(p ≤ a) ≤ a.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from .._data.labels import as_blocks
from .._data.reading import read_samples, take_rows
from .._data.tasks import as_labels, listed, missing_labels, unique_labels
from .._tools.running import Progress
from .._tools.typing import AnyArray, Array, IntArray
from .held_out import held_out_by_task

SAME = 1e-12  # a difference of scores that may be rounding


@dataclass(frozen=True)
class PermutationTest:
    """The scores under permuted labels, (n_permutations,), and the p-values of the search and of each task."""

    scores: Array
    p_value: float
    by_task: dict[str, float]


def permutation_test(search: Any, given: Mapping[str, Any], groups: Any, n: int) -> PermutationTest:
    """Test a fitted search with its training data X, y, tasks and sample_weight; ``n`` permutations.

    Labels are permuted within tasks. With groups that have one label each in every task, groups exchange their labels;
    otherwise groups with as many rows in every task exchange them, and the rows of a group among themselves. The rows
    of a matrix y are exchanged as a whole, among those with the same columns known.
    """
    X = as_blocks(given["X"])
    samples = read_samples(search.plain_estimator(), X, tasks=given["tasks"], reset=True)
    shuffle = shuffler(given["y"], samples.sources, search.groups_)
    seed = search.random_state
    if not isinstance(seed, int | np.integer | None):
        seed = int(seed.randint(2**31))
    quiet = clone(search).set_params(n_permutations=0, n_jobs=None, verbose=0)
    several = samples.sources is not None or as_labels(given["y"], "y").ndim > 1

    def found(k: int) -> tuple[float, dict[str, float]]:
        y = take_rows(given["y"], shuffle(np.random.default_rng([0 if seed is None else int(seed), k])))
        permuted = clone(quiet)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                permuted.choose({**given, "y": y}, groups, refit=())
                return permuted.honest_score_, _by_task(permuted, given, y) if several else {}
            except ValueError:  # no score can be told from a better one
                return math.inf, {}

    scores, of_tasks = [], []
    with Progress(n, math.nan, search.verbose, unit="permutations") as progress:
        jobs = (delayed(found)(k) for k in range(n))
        for overall, by_task in Parallel(n_jobs=search.n_jobs, prefer="threads", return_as="generator")(jobs):
            scores.append(overall)
            of_tasks.append(by_task)
            progress.done()
            progress.show("permuted labels")
    truth = _by_task(search, given, given["y"]) if several else {}
    names = [name for name in search.task_names_ if name in truth] if len(truth) > 1 else []
    by_task = {name: p_value(truth[name], [one.get(name, math.inf) for one in of_tasks]) for name in names}
    return PermutationTest(np.array(scores), p_value(search.honest_score_, scores), by_task)


def p_value(score: float, permuted: Any) -> float:
    """(1 + the number of permuted scores at least as large) / (1 + their number); an unknown one counts as larger."""
    if math.isnan(score):
        return math.nan
    values = np.asarray(permuted, dtype=float)
    larger = np.isnan(values) | (values >= score - SAME * max(1.0, abs(score)))
    return float((1 + larger.sum()) / (1 + len(values)))


def _by_task(search: Any, given: Mapping[str, Any], y: Any) -> dict[str, float]:
    """The score of each task over the folds, each at the point that the other folds choose."""
    table = held_out_by_task(search, given["X"], y, tasks=given["tasks"], quick=True)
    return dict(zip(table.tasks, table.scores.tolist(), strict=True))


def shuffler(y: Any, sources: AnyArray | None, groups: IntArray | None) -> Callable[[np.random.Generator], IntArray]:
    """A function that draws, for each row, the row whose label it gets; groups (n_samples,) are numbers from 0."""
    labels = as_labels(y, "y")
    strata = _strata(labels, sources)
    if groups is None:
        parts = [np.flatnonzero(strata == stratum) for stratum in np.unique(strata)]

        def among_rows(rng: np.random.Generator) -> IntArray:
            order = np.arange(len(labels))
            for rows in parts:
                order[rows] = rng.permutation(rows)
            return order

        return among_rows

    units = [_by_stratum(np.flatnonzero(groups == group), strata) for group in range(int(groups.max()) + 1)]
    text = [repr(label) for label in listed(labels)]
    constant = all(len({text[row] for row in rows}) == 1 for unit in units for rows in unit.values())
    alike: dict[Any, list[int]] = {}
    for number, unit in enumerate(units):
        key = tuple(unit) if constant else tuple((stratum, len(rows)) for stratum, rows in unit.items())
        alike.setdefault(key, []).append(number)

    def among_groups(rng: np.random.Generator) -> IntArray:
        order = np.arange(len(labels))
        for numbers in alike.values():
            for own, other in zip(numbers, rng.permutation(numbers).tolist(), strict=True):
                for stratum, rows in units[own].items():
                    theirs = units[other][stratum]
                    order[rows] = theirs[0] if constant else rng.permutation(theirs)
        return order

    return among_groups


def _strata(labels: AnyArray, sources: AnyArray | None) -> IntArray:
    """Numbers of the sets of rows that may exchange their labels: tasks, or rows with the same known columns."""
    if labels.ndim == 2 and labels.shape[1] > 1:
        return np.unique(~missing_labels(labels), axis=0, return_inverse=True)[1].ravel()
    if sources is None:
        return np.zeros(len(labels), dtype=int)
    known = {source: code for code, source in enumerate(unique_labels(sources))}
    return np.array([known[source] for source in listed(sources)])


def _by_stratum(rows: IntArray, strata: IntArray) -> dict[int, IntArray]:
    return {int(stratum): rows[strata[rows] == stratum] for stratum in np.unique(strata[rows])}
