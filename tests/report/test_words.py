"""The sentences say what the numbers say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from paretomkl._drawing import shorten
from paretomkl._page import words
from paretomkl.report import CrossValidation

NAMES = ["a", "b", "c", "d", "e", "f", "g", "h", "i"]


@pytest.mark.parametrize(
    ("p", "said"),
    [
        (1.0, "the plain average: every task counts the same"),
        (0.5, "easy tasks get more weight"),
        (2.0, "hard tasks get more weight"),
        (math.inf, "only the worst task counts"),
        (-math.inf, "only the easiest task counts"),
        (0.0, "the geometric mean: equal relative gains count the same"),
    ],
)
def test_headline(p, said):
    assert words.headline(p) == said
    assert words.headline(p, n_tasks=1) == "one task: p changes nothing"


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
        "Against p = 1 the hardest task's objective (c) falls by 3.1 %, the easiest's (a) rises by 8 %.",
        "Lower is better: one of 3 tasks gains and one loses; c gains most (−3.1 %), a loses most (+8 %).",
    ]


def test_no_change_is_not_mentioned():
    same = np.array([1.0, 2.0])
    assert words.change_of_objectives(1.0, same, same, ["a", "b"]) == []


def test_change_of_accuracy():
    there, here = np.array([0.9, 0.8, np.nan, 0.7]), np.array([0.95, 0.8, np.nan, 0.65])
    assert words.change_of_accuracy(1.0, 0.936, 0.928, here, there) == (
        "Held-out accuracy is 93.6 %, 0.8 points more than at p = 1: one task is better, one worse, one as before."
    )
    assert words.change_of_accuracy(1.0, 0.928, None, there, None) == "Held-out accuracy is 92.8 %."
    assert words.change_of_accuracy(1.0, 0.9, 0.9, there[:2], there[:2]) == (
        "Held-out accuracy is 90.0 %, as at p = 1, task by task."
    )


def test_heaviest_kernel():
    said = words.heaviest_kernel(np.array([0.63, 0.369, 0.0005, 0.0005]), ["rbf", "linear", "poly", "cosine"])
    assert said == "Of the kernel weights rbf has 63 %; two of 4 kernels carry less than 1 % each."


@pytest.mark.parametrize(
    ("p", "what"),
    [(0.5, "sum of the objectives, weighted as here,"), (1.0, "average of the objectives"), (np.inf, "largest")],
)
def test_certificate_never_says_less_than_the_gap(p, what):
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
    assert words.percent(share) == said


def make_cv(mean, best=0.2, std=0.02):
    ps = [0.2, 1.0, 5.0]
    return CrossValidation(ps, mean, [std] * 3, best, 10.0, 4)


def test_choice_of_cross_validation():
    assert words.choice(make_cv([0.9, 0.87, 0.5])) == (
        "Cross-validation (4 folds of the training part) would pick p = 0.2 with C = 10: 90.0 %, standard error "
        "1.0 point. The average, p = 1, is 3.0 points behind. One of 3 exponents tried is within that error."
    )


def test_choice_that_matters_little():
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
