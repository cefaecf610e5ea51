"""Synthetic tasks of which it is known which kernels matter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._typing import AnyArray, Array
from .._validation import check_count, check_number

N_WAVES = 200  # of a random function: enough for it to look like a draw from the Gaussian process


def make_multitask(
    n_tasks: int = 4,
    n_samples: Any = 100,
    n_features: int = 2,
    n_sources: int = 6,
    n_relevant: int = 2,
    relatedness: float = 1.0,
    noise: Any = 0.0,
    sigma: float = 1.0,
    random_state: Any = None,
    common: float = 0.0,
) -> Any:
    """Binary tasks on several data sources, of which a few matter to all tasks.

    The features of each source are independent standard normal. The score of a sample x in task t is

        f_t(x) = √(ρ/R) Σ_{m relevant} h_tm(x_m) + √(1 − ρ) h_t,own(x_own),      ρ = relatedness, R = n_relevant

    and its label says whether the score lies above the median of the task; then a share ``noise`` of the labels of
    each class is flipped. Every h is a function of its own, drawn from the Gaussian process whose covariance is
    the kernel ``Gaussian(sigma)`` on the columns of one source. So tasks with ρ = 1 have in common which sources
    matter, not how: what a shared kernel can learn, and no more. With ρ < 1 each task listens to a further source of
    its own, one of the others in turn. With ``common`` > 0 tasks have in common how the shared sources matter, too:

        h_tm = √c h_m + √(1 − c) h'_tm,      c = common

    Parameters
    ----------
    n_tasks : int, default=4
        Binary tasks.
    n_samples : int or array-like of shape (n_tasks,), default=100
        Samples of each task, at least 4.
    n_features : int, default=2
        Columns of each source.
    n_sources : int, default=6
        Blocks of columns; X has n_sources · n_features columns.
    n_relevant : int, default=2
        How many sources matter to all tasks.
    relatedness : float, default=1.0
        Between 0 (each task has its own source only) and 1 (the shared sources only).
    noise : float or array-like of shape (n_tasks,), default=0.0
        Share of wrong labels, at least 0 and less than 0.5.
    sigma : float, default=1.0
        Width of the Gaussian kernel from which the functions come; a larger one makes smoother, easier tasks.
    random_state : int, RandomState or None, default=None
        Seed of samples, functions and labels.
    common : float, default=0.0
        Between 0 (every task has functions of its own) and 1 (all tasks have the same functions of the shared sources).

    Returns
    -------
    Bunch
        data : array of shape (n_samples of all tasks, n_sources · n_features)
            In random order of the tasks.
        target : array of shape (n_samples of all tasks,)
            Labels, 0 and 1.
        tasks : array of shape (n_samples of all tasks,)
            Task numbers, from 0.
        relevant : array of shape (n_relevant,)
            The sources that matter to all tasks, rising.
        own : array of shape (n_tasks,) or None
            The further source of each task; None for relatedness 1.
        columns : list of n_sources lists
            The columns of each source.
        DESCR : str
            What was made.

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
    from sklearn.utils import Bunch, check_random_state  # here: scikit-learn takes a second to import

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
    tasks = rng.permutation(np.repeat(np.arange(n_tasks), sizes.astype(int)))  # folds of consecutive rows hold them all
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


def _random_function(n_features: int, sigma: float, rng: Any) -> Callable[[Array], Array]:
    """A function of the rows of an array, from the Gaussian process with covariance exp(−‖x − z‖² / 2σ²).

    A sum of waves with normal frequencies has that covariance, and tends to the process as their number grows.
    """
    frequencies = rng.standard_normal((n_features, N_WAVES)) / sigma
    phases = rng.uniform(0, 2 * np.pi, N_WAVES)
    heights = np.sqrt(2 / N_WAVES) * rng.standard_normal(N_WAVES)
    return lambda X: np.asarray(np.cos(X @ frequencies + phases) @ heights)


def _with_wrong_labels(labels: AnyArray, rate: float, rng: Any) -> AnyArray:
    """Turn round the same share of each class, so that both remain."""
    wrong = [rng.permutation(np.flatnonzero(labels == c))[: int(rate * np.sum(labels == c))] for c in (0, 1)]
    turned = labels.copy()
    turned[np.concatenate(wrong)] ^= 1
    return turned


def _per_task(name: str, value: Any, n_tasks: int, valid: Any, wanted: str) -> Array:
    values = np.full(n_tasks, value) if np.ndim(value) == 0 else np.asarray(value)
    if values.shape != (n_tasks,):
        raise ValueError(f"{name} must be one number or {n_tasks}, one per task; got shape {values.shape}.")
    for t, entry in enumerate(values.tolist()):
        if isinstance(entry, bool) or not isinstance(entry, int | float) or not valid(entry):
            raise ValueError(f"{name} of task {t} must be {wanted}, got {entry!r}.")
    return values.astype(np.float64)
