"""Synthetic tasks for which the relevant kernels are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._tools.checks import check_count, check_number
from .._tools.typing import AnyArray, Array

N_WAVES = 200  # enough for a random function to look like a draw from the Gaussian process


def make_multitask(
    n_tasks: int = 4,
    n_samples: int | ArrayLike = 100,
    n_features: int = 2,
    n_sources: int = 6,
    n_relevant: int = 2,
    relatedness: float = 1.0,
    noise: float | ArrayLike = 0.0,
    sigma: float = 1.0,
    random_state: int | np.random.RandomState | None = None,
    common: float = 0.0,
) -> Any:
    """Make binary tasks on several data sources, a few of which matter to all tasks.

    The features of each source are independent and standard normal. The score of a sample x in task t is

        f_t(x) = √(ρ/R) Σ_{m relevant} h_tm(x_m) + √(1 − ρ) h_t,own(x_own),      ρ = relatedness, R = n_relevant

    and its label says whether the score is above the median of the task; then a share ``noise`` of the labels of each
    class is flipped. Every h is a separate function, drawn from the Gaussian process whose covariance is the kernel
    ``Gaussian(sigma)`` on the columns of one source. So with ρ = 1 the tasks agree on which sources matter, but not on
    how they matter; that is exactly what a shared kernel can learn. With ρ < 1 each task also depends on one more
    source, taken in turn from the others. With ``common`` > 0 the tasks also agree in part on how the shared sources
    matter:

        h_tm = √c h_m + √(1 − c) h'_tm,      c = common

    Parameters
    ----------
    n_tasks : int, default=4
        Number of binary tasks.
    n_samples : int or array-like of shape (n_tasks,), default=100
        Number of samples of each task, at least 4.
    n_features : int, default=2
        Number of columns of each source.
    n_sources : int, default=6
        Number of sources; X has n_sources · n_features columns.
    n_relevant : int, default=2
        Number of sources that matter to all tasks.
    relatedness : float, default=1.0
        Between 0 (each task depends only on its own source) and 1 (only on the shared sources).
    noise : float or array-like of shape (n_tasks,), default=0.0
        Share of wrong labels, at least 0 and less than 0.5.
    sigma : float, default=1.0
        Width of the Gaussian kernel of the random functions; a larger width makes smoother, easier tasks.
    random_state : int, RandomState or None, default=None
        Seed of samples, functions and labels.
    common : float, default=0.0
        Between 0 (every task has its own functions) and 1 (all tasks have the same functions of the shared sources).

    Returns
    -------
    Bunch
        data : array of shape (n_samples of all tasks, n_sources · n_features)
            The samples, with the tasks in random order.
        target : array of shape (n_samples of all tasks,)
            Labels, 0 and 1.
        tasks : array of shape (n_samples of all tasks,)
            Task numbers, from 0.
        relevant : array of shape (n_relevant,)
            The sources that matter to all tasks, in increasing order.
        own : array of shape (n_tasks,) or None
            The additional source of each task; None for relatedness 1.
        columns : list of n_sources lists
            The columns of each source.
        DESCR : str
            A description of the tasks.

    Examples
    --------
    >>> import paretomkl
    >>> from paretomkl.datasets import make_multitask
    >>> made = make_multitask(random_state=0)
    >>> kernels = [paretomkl.Gaussian(1.0, columns=columns) for columns in made.columns]
    >>> path = paretomkl.pareto_path(made.data, made.target, tasks=made.tasks, ps=[1], kernels=kernels)
    >>> sorted(path.theta[0].argsort()[-2:].tolist()) == made.relevant.tolist()
    True
    """
    from sklearn.utils import Bunch, check_random_state  # imported here because scikit-learn takes a second

    counts = {"n_tasks": n_tasks, "n_features": n_features, "n_sources": n_sources, "n_relevant": n_relevant}
    for name, value in counts.items():
        check_count(name, value)
    check_number("relatedness", relatedness, lambda v: 0 <= v <= 1, "between 0 and 1")
    check_number("common", common, lambda v: 0 <= v <= 1, "between 0 and 1")
    check_number("sigma", sigma, lambda v: 0 < v < np.inf, "greater than 0")
    needed = n_relevant + (relatedness < 1)
    if n_sources < needed:
        raise ValueError(f"n_sources must be at least {needed} for n_relevant={n_relevant}, got n_sources={n_sources}.")
    sizes = _per_task(
        "n_samples", n_samples, n_tasks, lambda v: float(v).is_integer() and v >= 4, "a whole number of at least 4"
    )
    rates = _per_task("noise", noise, n_tasks, lambda v: 0 <= v < 0.5, "at least 0 and less than 0.5")

    rng = check_random_state(random_state)
    shuffled = rng.permutation(n_sources)
    relevant = np.sort(shuffled[:n_relevant])
    own = np.resize(shuffled[n_relevant:], n_tasks) if relatedness < 1 else None
    shared = [_random_function(n_features, sigma, rng) for _ in relevant] if common else []
    data, target = [], []
    for t, (size, rate) in enumerate(zip(sizes.astype(int), rates, strict=True)):
        X = rng.standard_normal((size, n_sources, n_features))
        score = sum(_random_function(n_features, sigma, rng)(X[:, m]) for m in relevant)
        if common:
            together = sum(function(X[:, m]) for function, m in zip(shared, relevant, strict=True))
            score = np.sqrt(common) * together + np.sqrt(1 - common) * score
        score = np.sqrt(relatedness / n_relevant) * score
        if own is not None:
            score += np.sqrt(1 - relatedness) * _random_function(n_features, sigma, rng)(X[:, own[t]])
        data.append(X.reshape(size, -1))
        target.append(_with_wrong_labels((score > np.median(score)).astype(np.int64), rate, rng))
    # in random order, so that folds of consecutive rows contain all tasks
    tasks = rng.permutation(np.repeat(np.arange(n_tasks), sizes.astype(int)))
    place = np.argsort(np.argsort(tasks, kind="stable"))
    return Bunch(
        data=np.vstack(data)[place],
        target=np.concatenate(target)[place],
        tasks=tasks,
        relevant=relevant,
        own=own,
        columns=[list(range(m * n_features, (m + 1) * n_features)) for m in range(n_sources)],
        DESCR=(
            f"{n_tasks} synthetic binary tasks on {n_sources} sources of {n_features} standard normal features each; "
            f"the sources {relevant.tolist()} matter to all tasks (relatedness {relatedness:g})."
        ),
    )


def _random_function(n_features: int, sigma: float, rng: np.random.RandomState) -> Callable[[Array], Array]:
    """A random function of rows, from the Gaussian process with covariance exp(−‖x − z‖² / 2σ²).

    A sum of waves with normal frequencies has this covariance, and approaches the process as their number grows.
    """
    frequencies = rng.standard_normal((n_features, N_WAVES)) / sigma
    phases = rng.uniform(0, 2 * np.pi, N_WAVES)
    heights = np.sqrt(2 / N_WAVES) * rng.standard_normal(N_WAVES)
    return lambda X: np.asarray(np.cos(X @ frequencies + phases) @ heights)


def _with_wrong_labels(labels: AnyArray, rate: float, rng: np.random.RandomState) -> AnyArray:
    """Flip the same share of labels in each class, so that both classes remain."""
    wrong = [rng.permutation(np.flatnonzero(labels == c))[: int(rate * np.sum(labels == c))] for c in (0, 1)]
    turned = labels.copy()
    turned[np.concatenate(wrong)] ^= 1
    return turned


def _per_task(name: str, value: ArrayLike, n_tasks: int, valid: Callable[[float], bool], wanted: str) -> Array:
    values = np.full(n_tasks, value) if np.ndim(value) == 0 else np.asarray(value)
    if values.shape != (n_tasks,):
        raise ValueError(f"{name} must be one number, or {n_tasks} numbers, one per task; got shape {values.shape}.")
    for t, entry in enumerate(values.tolist()):
        if isinstance(entry, bool) or not isinstance(entry, int | float) or not valid(entry):
            raise ValueError(f"{name} of task {t} must be {wanted}, got {entry!r}.")
    return values.astype(np.float64)
