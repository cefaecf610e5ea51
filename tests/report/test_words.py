"""The sentences match the numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from paretomkl._show import words
from paretomkl._show.words import shorten
from paretomkl._tools import wording
from paretomkl.report import CrossValidation, Measure

NAMES = ["a", "b", "c", "d", "e", "f", "g", "h", "i"]


@pytest.mark.parametrize(
    ("p", "said"),
    [
        (1.0, "the plain average: every task counts the same"),
        (0.5, "easy tasks get more weight"),
        (2.0, "hard tasks get more weight"),
        (math.inf, "only the largest training objective counts"),
        (-math.inf, "only the smallest training objective counts"),
        (0.0, "the geometric mean: equal relative gains count the same"),
    ],
)
def test_headline(p, said):
    assert words.headline(p) == said
    assert words.headline(p, n_tasks=1) == "one task: p has no effect"


def test_headline_of_preferences():
    assert words.headline(1.0, preferences=True) == "the average, weighted by your preferences"


def test_two_hardest_tasks_carry_most():
    weights = np.array([0.43, 0.38, 0.05, 0.04, 0.03, 0.03, 0.02, 0.01, 0.01])
    objectives = np.arange(9, 0, -1.0)
    said = words.who_carries(5.0, weights, objectives, NAMES, np.full(9, 1 / 9))
    assert said == "The two hardest tasks carry 81 % of the weight (22 % at p = 1): a and b."


def test_easiest_third_where_the_weight_is_spread():
    weights = np.array([0.2, 0.15, 0.14, 0.12, 0.11, 0.1, 0.08, 0.06, 0.04])
    said = words.who_carries(0.1, weights, np.arange(1.0, 10.0), NAMES, np.full(9, 1 / 9))
    assert said == "The easiest third of the tasks carries 49 % of the weight (33 % at p = 1): a, b and c."


def test_one_task_carries_most():
    weights = np.array([0.1, 0.2, 0.7])
    said = words.who_carries(5.0, weights, np.array([1.0, 2.0, 3.0]), ["a", "b", "c"])
    assert said == "The hardest task, c, carries 70 % of the weight."


def test_two_tasks_are_compared():
    said = words.who_carries(0.5, np.array([0.61, 0.39]), np.array([1.0, 2.0]), ["pump", "valve"])
    assert said == "The easier task, pump, carries 61 % of the weight."


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ([0.0, 0.0, 1.0], "The task with the largest objective, c, carries all the weight."),
        ([0.0, 0.4, 0.6], "Two tasks share the largest objective and all the weight: c and b."),
    ],
)
def test_worst_tasks(weights, said):
    assert words.who_carries(math.inf, np.array(weights), np.array([1.0, 3.0, 3.0]), ["a", "b", "c"]) == said


def test_equal_weights():
    said = words.who_carries(1.0, np.full(4, 0.25), np.array([1.0, 2.0, 3.0, 4.0]), ["a", "b", "c", "d"])
    assert said == "Every task carries 25 % of the weight."


def test_preferences_are_the_weights_of_the_average():
    said = words.who_carries(1.0, np.array([0.2, 0.5, 0.3]), np.array([1.0, 2.0, 3.0]), ["a", "b", "c"])
    assert said == "Every task carries the weight you gave it, from 20 % to 50 %."


def test_change_of_objectives():
    said = words.change_of_objectives(1.0, np.array([1.08, 2.0, 2.907]), np.array([1.0, 2.0, 3.0]), ["a", "b", "c"])
    assert said == [
        "Compared with p = 1, the hardest task's objective (c) falls by 3.1 %, the easiest task's (a) rises by 8 %.",
        "Lower is better: one of 3 tasks gains and one loses; c gains most (−3.1 %), a loses most (+8 %).",
    ]


def test_no_change_is_not_mentioned():
    same = np.array([1.0, 2.0])
    assert words.change_of_objectives(1.0, same, same, ["a", "b"]) == []


def test_change_of_score():
    there, here = np.array([0.9, 0.8, np.nan, 0.7]), np.array([0.95, 0.8, np.nan, 0.65])
    assert words.change_of_score(1.0, 0.936, 0.928, here, there) == (
        "Held-out accuracy is 93.6 %, 0.8 points more than at p = 1: one task is better, one worse, one unchanged."
    )
    assert words.change_of_score(1.0, 0.928, None, there, None) == "Held-out accuracy is 92.8 %."
    assert words.change_of_score(1.0, 0.9, 0.9, there[:2], there[:2]) == (
        "Held-out accuracy is 90.0 %, the same as at p = 1; no task changes."
    )


def test_sentences_follow_the_measure():
    here, there = np.array([0.9, 0.8]), np.array([0.9, 0.85])
    auc = Measure("ROC AUC", "roc_auc", percent=False)
    assert words.change_of_score(1.0, 0.85, 0.875, here, there, auc) == (
        "Held-out ROC AUC is 0.850, 0.025 less than at p = 1: no tasks are better, one worse, one unchanged."
    )
    nan = math.nan
    assert words.change_of_score(1.0, nan, 0.9, here, there, auc) == "Held-out ROC AUC is not defined."
    cv = CrossValidation([0.5, 1.0], [0.8, 0.9], [0.02, 0.02], 1.0, 10.0, 4, auc)
    assert "would pick p = 1 with C = 10: ROC AUC 0.900, standard error 0.010." in words.choice(cv)


def test_choice_along_p_whatever_else_was_searched():
    """Only rows with the chosen other parameters count."""
    from types import SimpleNamespace

    grid = [{"C": C, "s": s, "p": p} for C in (1.0, 10.0) for s in (1.1, 2.0) for p in (1.0, 0.5)]
    mean = np.arange(8) / 10
    results = {"params": grid, "param_p": np.array([one["p"] for one in grid]), "mean_test_score": mean}
    results["std_test_score"] = np.zeros(8)
    search = SimpleNamespace(
        cv_results_=results, best_params_=grid[5], n_splits_=3, n_search_rows_=30, best_share_="kernel"
    )
    cv = CrossValidation.from_search(search)
    assert (cv.ps, cv.mean, cv.best_C) == ([0.5, 1.0], [0.5, 0.4], 10.0)
    assert (cv.best_s, cv.best_capacity) == (grid[5]["s"], None)


def test_heaviest_kernel():
    said = words.heaviest_kernel(np.array([0.63, 0.369, 0.0005, 0.0005]), ["rbf", "linear", "poly", "cosine"])
    assert said == "The kernel “rbf” has 63 % of the variance of predictions; two of 4 kernels have less than 1 % each."


def test_shares_of_sources():
    assert words.source_shares({"clinic": 0.29, "genes": 0.71}) == "Sources: genes 71 %, clinic 29 %."
    assert words.source_shares({"genes": 0.9999, "clinic": 0.0001}) == (
        "Sources: genes more than 99 %, clinic less than 0.1 %."
    )
    assert words.source_shares({}) == ""


def test_parameters_that_were_chosen():
    assert words.parameters({"p": np.inf, "C": 10.0, "capacity": None, "s": 1.1}) == "p = ∞, C = 10, s = 1.1"
    cv = CrossValidation([1.0], [0.9], [0.02], 1.0, 10.0, 4, best_s=2.0, best_capacity=0.5)
    assert "would pick p = 1 with C = 10, capacity = 0.5, s = 2: 90.0 %" in words.choice(cv)


@pytest.mark.parametrize(
    ("p", "what"),
    [(0.5, "sum of the objectives, weighted as here,"), (1.0, "average of the objectives"), (np.inf, "largest")],
)
def test_certificate_never_understates_the_gap(p, what):
    said = words.certificate(p, 2.11e-5)
    assert what in said
    assert "more than 0.003 %" in said


@pytest.mark.parametrize("gap", [1e-9, 1e-6, 1.234e-5, 9.99e-5, 1e-3, 0.0991, 0.25])
def test_bounds_are_rounded_up(gap):
    assert float(words.percent_above(gap).removesuffix(" %")) >= 100 * gap * (1 - 1e-9)


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0.81, "81 %"),
        (0.031, "3.1 %"),
        (0.08, "8 %"),
        (0.998, "more than 99 %"),
        (1.0, "100 %"),
        (2e-5, "less than 0.1 %"),
    ],
)
def test_percent(share, said):
    assert wording.percent(share) == said


def make_cv(mean, best=0.2, std=0.02):
    ps = [0.2, 1.0, 5.0]
    return CrossValidation(ps, mean, [std] * 3, best, 10.0, 4)


def test_choice_of_cross_validation():
    assert words.choice(make_cv([0.9, 0.87, 0.5])) == (
        "Cross-validation (4 folds of the training set) would pick p = 0.2 with C = 10: 90.0 %, standard error "
        "1.0 point. The average, p = 1, is 3.0 points behind. One of 3 exponents tried is within that error."
    )


def test_choice_that_hardly_matters():
    said = words.choice(make_cv([0.9, 0.9, 0.895]))
    assert "The average, p = 1, is as good. All 3 exponents tried are within that error" in said


@pytest.mark.parametrize("length", range(10, 61))
def test_long_names_keep_both_ends(length):
    name = "the very long name of a task that nobody wants to read"
    short = shorten(name, length)
    if len(name) <= length:
        assert short == name
        return
    head, tail = short.split("…")
    assert name.startswith(head)
    assert name.endswith(tail)
    assert length - 2 <= len(short) <= length, "no more is left out than needed, but for blanks around the gap"
    assert min(len(head), len(tail)) >= length // 2 - 2


def test_names_in_a_sentence():
    name = "the very long name of a task that nobody wants to read"
    assert words.listing([name]) == "the very long name o…obody wants to read"
    assert words.listing(["a", "b", "c"]) == "a, b and c"
    assert words.listing(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"


# ------------------------------------------------------------------------------- hard is not large, easy is not small
@pytest.mark.parametrize(
    ("p", "said"),
    [
        (1.0, "the plain average: every task counts the same"),
        (0.5, "tasks with small objectives (easy, or few samples) get more weight"),
        (2.0, "tasks with large objectives (hard, or many samples) get more weight"),
        (math.inf, "only the largest training objective counts"),
        (-math.inf, "only the smallest training objective counts"),
    ],
)
def test_headline_where_large_tasks_are_not_the_hard_ones(p, said):
    assert words.headline(p, large_is_hard=False) == said


@pytest.mark.parametrize(
    ("p", "n_tasks", "said"),
    [
        (5.0, 9, "The two tasks with the largest objectives carry 81 % of the weight: a and b."),
        (5.0, 2, "The task with the larger objective, a, carries 53 % of the weight."),
        (0.1, 3, "The task with the smallest objective, c, carries 50 % of the weight."),
        (0.1, 9, "The third of the tasks with the smallest objectives carries 33 % of the weight: i, h and g."),
    ],
)
def test_who_carries_where_size_decides(p, n_tasks, said):
    """The tasks are as hard as they are small."""
    shares = {
        (5.0, 9): [0.43, 0.38, 0.05, 0.04, 0.03, 0.03, 0.02, 0.01, 0.01],
        (5.0, 2): [0.53, 0.47],
        (0.1, 3): [0.2, 0.3, 0.5],
        (0.1, 9): [0.111, 0.111, 0.111, 0.111, 0.111, 0.112, 0.111, 0.111, 0.111],
    }
    objectives = np.arange(n_tasks, 0, -1.0)
    given = (p, np.array(shares[p, n_tasks]), objectives, NAMES[:n_tasks], None)
    assert words.who_carries(*given, difficulty=1 / objectives) == said
    assert words.who_carries(*given, difficulty=3 * objectives) == words.who_carries(*given)


def test_hardest_and_easiest_are_judged_per_sample():
    here, there, sizes = np.array([1.08, 2.0, 2.907]), np.array([1.0, 2.0, 3.0]), np.array([1.0, 10.0, 6.0])
    said = words.change_of_objectives(1.0, here, there, ["a", "b", "c"], there / sizes)
    assert said[0] == (
        "Compared with p = 1, the hardest task's objective (a) rises by 8 %, the easiest task's (b) stays the same."
    )


@pytest.mark.parametrize(
    ("value", "said"),
    [(-819094049.0, "-8.191e8"), (123456.0, "123456"), (2e-5, "2e-5"), (12.3456, "12.35")],
)
def test_numbers_in_units_stay_short(value, said):
    assert wording.in_digits(value) == said
