"""The generalisation bound of doc/theory.md: above the Rademacher average it bounds, and close to it.

Gram matrices are lists over the tasks of arrays of shape (M, n_t, n_t); n_t may differ between tasks.
"""

import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist
from scipy.stats import norm

from paretomkl import ParetoMKLClassifier
from paretomkl.weight_sets import LsBall, _power_norm

THEORY = Path(__file__).resolve().parents[1] / "doc" / "theory.md"
FITS = [(0, 0.2), (0.5, 0.5), (1, 1), (0, 0.5), (0.5, 2), (1, 5), (0, 1), (0.5, 9), (1, 80)]  # κ and C of the page
WIDTHS = (1 / 8, 1 / 4, 1 / 2, 1, 2, 4)  # of Gaussians, in median distances: from nearly the identity to nearly linear


# ---------------------------------------------------------------------------------------------------------------------
# The bound
# ---------------------------------------------------------------------------------------------------------------------


def traces(grams):
    """τ_m = (1/T) Σ_t tr(K_m^t) / n_t², the mean of q_m."""
    return np.mean([np.trace(Ks, axis1=1, axis2=2) / Ks.shape[-1] ** 2 for Ks in grams], axis=0)


def tops(grams):
    """λ_m = max_t ‖K_m^t‖ / (T n_t²), the largest eigenvalue of the form q_m."""
    return np.max([np.linalg.eigvalsh(Ks)[:, -1] / Ks.shape[-1] ** 2 for Ks in grams], axis=0) / len(grams)


def bound_of_the_norm(tau, lam, s):
    """min over 1 ≤ u ≤ s* of ‖τ + (⌈u⌉ − 1) λ‖_u: the norm falls with u, so only integers and s* can be best."""
    conjugate = LsBall(s).conjugate
    orders = [*range(1, int(min(conjugate, 1000)) + 1), *([conjugate] if np.isfinite(conjugate) else [])]
    return min(_power_norm(tau + (np.ceil(u) - 1) * lam, u) for u in orders)


def rademacher_bound(grams, s):
    """Bound of Rad(F) for R = 1."""
    return np.sqrt(bound_of_the_norm(traces(grams), tops(grams), s))


# ---------------------------------------------------------------------------------------------------------------------
# What it bounds
# ---------------------------------------------------------------------------------------------------------------------


def all_signs(n):
    return np.array(list(product((-1.0, 1.0), repeat=n)))


def some_signs(grams, draws, seed=1):
    """One array of shape (draws, n_t) per task."""
    rng = np.random.default_rng(seed)
    return [rng.choice((-1.0, 1.0), (draws, Ks.shape[-1])) for Ks in grams]


def forms_by_task(grams, signs):
    """σ_t' K_m^t σ_t / n_t², of shape (T, draws, M)."""
    return np.array(
        [np.sum((sigma @ Ks) * sigma, axis=-1).T / Ks.shape[-1] ** 2 for Ks, sigma in zip(grams, signs, strict=True)]
    )


def suprema(grams, signs, s):
    """sup over F of the correlation with each draw of signs, R = 1: √‖q‖_{s*}, of shape (draws,)."""
    q = forms_by_task(grams, signs).mean(axis=0)
    return np.sqrt(_power_norm(q, LsBall(s).conjugate))


# ---------------------------------------------------------------------------------------------------------------------
# Kernels
# ---------------------------------------------------------------------------------------------------------------------


def centred(Ks):
    rows = Ks - Ks.mean(axis=-1, keepdims=True)
    return rows - rows.mean(axis=-2, keepdims=True)


def bank(X, widths=WIDTHS):
    """A linear kernel and Gaussians, centred, of shape (M, n, n)."""
    squared = cdist(X, X, "sqeuclidean")
    median = np.median(squared[np.triu_indices(len(X), 1)])
    return centred(np.array([X @ X.T, *(np.exp(-squared / (2 * width**2 * median)) for width in widths)]))


def clouds(sizes, widths=WIDTHS, seed=0):
    rng = np.random.default_rng(seed)
    return [bank(rng.standard_normal((n, 5)), widths) for n in sizes]


def rank_one(M, T, n, seed=0):
    """K_m = z_m z_m' with random signs z_m: forms that fluctuate as much as possible."""
    z = np.random.default_rng(seed).choice((-1.0, 1.0), (T, M, n))
    return list(z[..., :, None] * z[..., None, :])


def effective_ranks(grams):
    """r_m = (tr K)² / ‖K‖_F², averaged over the tasks."""
    return np.mean([np.trace(Ks, axis1=1, axis2=2) ** 2 / np.sum(Ks**2, axis=(1, 2)) for Ks in grams], axis=0)


def prices(grams, kappa):
    """d_m = v_m r_m^κ, v_m = tr(K)/n averaged over the tasks."""
    v = np.mean([np.trace(Ks, axis1=1, axis2=2) / Ks.shape[-1] for Ks in grams], axis=0)
    return v * effective_ranks(grams) ** kappa


def normalised(grams, kappa):
    return [Ks / prices(grams, kappa)[:, None, None] for Ks in grams]


def stacked(grams):
    """The tasks below each other, in the form for ``kernels="precomputed"``; values between tasks are not used."""
    ends = np.cumsum([Ks.shape[-1] for Ks in grams])
    stack = np.zeros((ends[-1], ends[-1], len(grams[0])))
    for Ks, end in zip(grams, ends, strict=True):
        rows = slice(end - Ks.shape[-1], end)
        stack[rows, rows] = np.moveaxis(Ks, 0, -1)
    return stack, np.repeat(np.arange(len(grams)), [Ks.shape[-1] for Ks in grams])


# ---------------------------------------------------------------------------------------------------------------------
# The steps
# ---------------------------------------------------------------------------------------------------------------------


def moment_bound(trace, top, k):
    """Π_{j<k} (tr + 2jλ), the lemma of step 3."""
    return np.prod(trace + 2 * top * np.arange(k))


@pytest.mark.parametrize("rank", [1, 2, 4, 12])
@pytest.mark.parametrize("k", [1, 2, 3, 4, 6])
def test_moments_of_a_quadratic_form(k, rank):
    """E (σ'Kσ)^k ≤ Π_{j<k} (tr K + 2jλ) ≤ (tr K + (k−1) λ)^k, by all 2^12 signs."""
    Z = np.random.default_rng(rank).standard_normal((12, rank))
    K = Z @ Z.T
    trace, top = np.trace(K), np.linalg.eigvalsh(K)[-1]
    signs = all_signs(12)
    moment = np.mean(np.sum((signs @ K) * signs, axis=1) ** k)
    assert moment <= moment_bound(trace, top, k) * (1 + 1e-12)
    assert moment_bound(trace, top, k) <= (trace + (k - 1) * top) ** k * (1 + 1e-12)


@pytest.mark.parametrize(("k", "share"), [(1, 1 - 1e-12), (2, 0.95), (3, 0.85)])
def test_the_moments_of_a_flat_rank_one_form_come_close_to_the_bound(k, share):
    """K = 11'/n: the moments tend to 1, 3, 15, which is Π (1 + 2j), so no constant smaller than 2 is enough."""
    moment = np.mean((all_signs(16).sum(axis=1) ** 2 / 16) ** k)
    assert share * moment_bound(1, 1, k) <= moment <= moment_bound(1, 1, k) * (1 + 1e-12)


def test_the_deviation_follows_the_effective_rank():
    """The standard deviation of σ'Kσ / tr K is at most √(2/r), and λ/tr K lies between 1/r and 1/√r."""
    for K in bank(np.random.default_rng(0).standard_normal((14, 5))):
        signs = all_signs(14)
        ratio = np.sum((signs @ K) * signs, axis=1) / np.trace(K)
        r, top = np.trace(K) ** 2 / np.sum(K**2), np.linalg.eigvalsh(K)[-1] / np.trace(K)
        assert_allclose(ratio.mean(), 1)
        assert_allclose(ratio.var(), 2 * (np.sum(K**2) - np.sum(np.diag(K) ** 2)) / np.trace(K) ** 2)
        assert ratio.std() <= np.sqrt(2 / r)
        assert 1 / r <= top * (1 + 1e-12) <= (1 + 1e-9) / np.sqrt(r)


@pytest.mark.parametrize("s", [1.0, 1.1, 2.0, 4.0])
def test_a_fit_to_random_labels_attains_the_supremum(s):
    """p = 1, balanced labels, C so small that every α is at C: the learned θ is the one of the dual norm."""
    grams = normalised(clouds([20, 20, 20]), 0.5)
    X, tasks = stacked(grams)
    rng = np.random.default_rng(5)
    labels = [rng.permutation(np.repeat((-1.0, 1.0), 10)) for _ in grams]
    q = forms_by_task(grams, [y[None] for y in labels]).mean(axis=0)[0]
    C = 0.3 / np.abs(X.sum(axis=-1)).sum(axis=1).max()
    model = ParetoMKLClassifier(p=1, s=s, C=C, kernels="precomputed", tol=1e-9)
    theta = model.fit(X, np.concatenate(labels), tasks=tasks).theta_
    assert_allclose(theta @ q, _power_norm(q, LsBall(s).conjugate), rtol=1e-5)


# ---------------------------------------------------------------------------------------------------------------------
# The theorem
# ---------------------------------------------------------------------------------------------------------------------

CASES = {
    "seven kernels, one task": clouds([40]),
    "seven kernels, tasks of unlike size": clouds([15, 30, 60]),
    "seven kernels, 12 tasks": clouds([20] * 12),
    "one kernel": clouds([30], widths=())[:1],
    "40 kernels of rank one": rank_one(40, 1, 30),
    "40 kernels of rank one, 8 tasks": rank_one(40, 8, 30),
    "300 kernels of rank one, 2 tasks": rank_one(300, 2, 30),
}


@pytest.mark.parametrize("kappa", [0, 0.5, 1])
@pytest.mark.parametrize("s", [1, 1.1, 1.5, 2, 4, np.inf])
@pytest.mark.parametrize("case", CASES)
def test_rademacher_average_lies_between_its_bounds(case, s, kappa):
    """√(‖τ‖_{s*} / 2) ≤ Rad / R ≤ √(min_u ‖τ + (⌈u⌉−1) λ‖_u), the upper one less than 1.6 times too large."""
    grams = normalised(CASES[case], kappa)
    values = suprema(grams, some_signs(grams, 1000), s)
    measured, error = values.mean(), values.std() / np.sqrt(len(values))
    assert measured + 3 * error >= np.sqrt(_power_norm(traces(grams), LsBall(s).conjugate) / 2)
    ratio = rademacher_bound(grams, s) / measured
    assert 1 - 3 * error / measured <= ratio <= 1.6


@pytest.mark.parametrize("s", [1, 1.1, 1.5])
def test_the_trace_alone_would_be_no_bound(s):
    """Without λ the statement is false: 40 forms of rank one, by all signs of one task."""
    grams = rank_one(40, 1, 12)
    exact = suprema(grams, [all_signs(12)], s).mean()
    assert np.sqrt(_power_norm(traces(grams), LsBall(s).conjugate)) < 0.9 * exact
    assert exact <= rademacher_bound(grams, s) <= 1.6 * exact


def best_shared_weights(forms, s, n_steps=300):
    """max over θ ∈ Θ_s of mean_t √(θ'q^t) from above: Frank-Wolfe, its gap added; forms of shape (T, M)."""
    ball = LsBall(s)
    theta, least = ball.start(forms.shape[1]), np.inf
    for step in range(n_steps):
        roots = np.sqrt(forms @ theta)
        gradient = np.mean(forms / (2 * roots[:, None]), axis=0)
        best = ball.scale_to_boundary(gradient ** (ball.conjugate - 1))
        least = min(least, roots.mean() + gradient @ (best - theta))  # concave: no θ is above the tangent
        theta = theta + 2 / (step + 2) * (best - theta)
    assert least <= roots.mean() * (1 + 1e-3)
    return least


@pytest.mark.parametrize("s", [1.1, 2])
def test_one_ball_per_task_is_covered(s):
    """‖f_t‖ ≤ R for every t instead of the mean: below the coupled class for all signs, and close for similar tasks."""
    grams = normalised(clouds([20] * 5), 0.5)
    signs = some_signs(grams, 60)
    forms = forms_by_task(grams, signs)
    separate = np.array([best_shared_weights(forms[:, draw], s) for draw in range(60)])
    coupled = suprema(grams, signs, s)
    assert np.all(separate <= coupled * (1 + 1e-3))
    assert 0.9 * coupled.mean() <= separate.mean() <= rademacher_bound(grams, s)


# ---------------------------------------------------------------------------------------------------------------------
# What it says
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("M", [1, 2, 13, 1000])
@pytest.mark.parametrize("ratio", [1, 0.3, 0.01, 1e-4])
def test_price_of_the_choice_at_s_one(M, ratio):
    """M equal kernels, λ = ετ: at most τ exp(2 √(ε log M)), and at most e τ (1 + ε log M)."""
    value = bound_of_the_norm(np.ones(M), np.full(M, ratio), 1)
    assert value <= np.exp(2 * np.sqrt(ratio * np.log(M))) * (1 + 1e-12)
    assert value <= np.e * (1 + ratio * np.log(M))


def test_price_of_the_choice_falls_with_the_tasks():
    """E‖q‖ / ‖τ‖ − 1 at s = 1 falls about as T^(−1/2), in the bound and in truth; the part of a task does not fall."""
    excess, bounds = [], []
    for T in (1, 4, 16, 64):
        grams = rank_one(30, T, 20)
        values = suprema(grams, some_signs(grams, 1000), 1)
        excess.append(20 * np.mean(values**2) - 1)  # τ_m = 1/n
        bounds.append(20 * rademacher_bound(grams, 1) ** 2 - 1)
        assert values.mean() >= np.sqrt(1 / 20)
    excess, bounds = np.array(excess), np.array(bounds)
    assert np.all(excess <= bounds)
    assert np.all(excess[:-1] >= 1.6 * excess[1:])
    assert np.all(bounds[:-1] >= 1.6 * bounds[1:])


def test_a_kernel_of_high_rank_takes_room_unless_it_pays():
    """s = 2: fifteen near-identity kernels beside a linear one double Rad at κ = 0 and hardly change it at κ = 1."""
    smooth = clouds([40, 40], widths=())
    crowded = clouds([40, 40], widths=(1 / 8,) * 15)
    ranks = effective_ranks(crowded)
    for kappa, growth in [(0, 2.05), (0.5, 1.32), (1, 1.06)]:
        alone, beside = normalised(smooth, kappa), normalised(crowded, kappa)
        signs = some_signs(alone, 4000)
        assert_allclose(suprema(beside, signs, 2).mean() / suprema(alone, signs, 2).mean(), growth, atol=0.01)
        assert_allclose(np.sum((ranks[0] / ranks) ** (2 * kappa)) ** (1 / 4), growth, rtol=0.04)  # √(‖τ‖_2 / τ_1)
        assert_allclose(rademacher_bound(beside, 2) / rademacher_bound(alone, 2), growth, rtol=0.06)


def test_with_one_kernel_its_price_does_not_matter():
    """One kernel can reach the same functions: R² grows as the kernel is divided."""
    grams = clouds([30], widths=())
    r = effective_ranks(grams)[0]
    assert_allclose(rademacher_bound(normalised(grams, 1), 2) * np.sqrt(r), rademacher_bound(normalised(grams, 0), 2))


# ---------------------------------------------------------------------------------------------------------------------
# The numbers of the page
# ---------------------------------------------------------------------------------------------------------------------


def rows_of_the_page(heading):
    """Numbers in the table below the paragraph that begins with ``heading``, one list per row."""
    table = THEORY.read_text(encoding="utf-8").split(heading)[1].split("\n\n")[1]
    return [[float(number) for number in re.findall(r"\d+\.?\d*", line)] for line in table.splitlines()[2:]]


def averages(T, rows, n=40):
    """Bound and Monte-Carlo average in units of R/√n for each (s, κ) of ``rows``, of shape (rows, 2)."""
    grams = clouds([n] * T)
    forms = forms_by_task(grams, some_signs(grams, 4000)).mean(axis=0)
    pairs = []
    for s, kappa in rows:
        measured = np.sqrt(_power_norm(forms / prices(grams, kappa), LsBall(s).conjugate)).mean()
        pairs.append((rademacher_bound(normalised(grams, kappa), s), measured))
    return np.sqrt(n) * np.array(pairs)


def test_table_of_rademacher_averages():
    rows = np.array(rows_of_the_page("The table gives the bound / the Monte-Carlo average"))
    assert rows.shape == (6, 8)
    for T, columns in [(1, [2, 3]), (4, [4, 5]), (16, [6, 7])]:
        assert_allclose(averages(T, rows[:, :2]), rows[:, columns], atol=0.006)


def labelled_clouds(T, n, seed=0):
    """Kernels by task, labels and P(y = 1 | x), the last two of shape (T, n)."""
    rng = np.random.default_rng(seed)
    samples = rng.standard_normal((T, n, 5))
    scores = samples @ np.array([1, 0.5, 0, 0, 0])
    return [bank(X) for X in samples], np.sign(scores + 0.3 * rng.standard_normal((T, n))), norm.cdf(scores / 0.3)


def fitted_terms(kappa, C, T=4, n=100):
    """Of a fit with s = 1.1: θ of the narrowest Gaussian, R² = mean ‖f_t‖², ramp loss, 2 Rad, and the risk."""
    grams, labels, chances = labelled_clouds(T, n)
    grams = normalised(grams, kappa)
    X, tasks = stacked(grams)
    model = ParetoMKLClassifier(s=1.1, C=C, kernels="precomputed", tol=1e-6).fit(X, labels.ravel(), tasks=tasks)
    dual = np.zeros((T, T * n))
    dual[:, model.support_] = model.dual_coef_
    outputs = dual @ (X @ model.theta_)
    squares = np.sum(outputs * dual, axis=1)
    outputs = np.array([outputs[t, tasks == t] + model.intercept_[t] for t in range(T)])
    ramp = np.mean(np.clip(1 - labels * outputs, 0, 1))
    risk = np.mean(np.where(outputs > 0, 1 - chances, chances))  # of new labels at the same points
    assert np.mean(squares) <= 2 * model.objective_ * (1 + 1e-5)  # J is ½‖f‖² and losses, up to the gap
    return model.theta_[1], np.mean(squares), ramp, 2 * np.sqrt(np.mean(squares)) * rademacher_bound(grams, 1.1), risk


def test_table_of_fits():
    rows = rows_of_the_page("The next table has four tasks of 100 samples")
    assert [row[:2] for row in rows] == [list(pair) for pair in FITS]
    for kappa, C, *entries in rows:
        *_, ramp, complexity, risk = terms = fitted_terms(kappa, C)
        # for given θ a gap of 1e-6 J fixes ‖f‖ up to √(2e-6 J), here 0.1 to 0.2 % of R; R² has three digits
        assert_allclose(terms, entries, atol=0.006, rtol=6e-3)
        assert risk <= ramp + complexity


def show_tables():
    """Print the rows of both tables, to be pasted into the page."""
    rows = list(product((1, 2), (0, 0.5, 1)))
    for row, *columns in zip(rows, *(averages(T, rows) for T in (1, 4, 16)), strict=True):
        print("| {} | {:g} | ".format(*row) + " | ".join("{:.2f} / {:.2f}".format(*pair) for pair in columns) + " |")
    for kappa, C in FITS:
        weight, square, *rest = fitted_terms(kappa, C)
        print(
            f"| {kappa:g} | {C:g} | {weight:.2f} | {float(f'{square:.3g}'):g} | "
            + " | ".join(f"{x:.2f}" for x in rest)
            + " |"
        )


if __name__ == "__main__":
    show_tables()
