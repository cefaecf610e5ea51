"""What pages and figures say: names, numbers, sentences about a point of the path, and the axis of exponents."""

from __future__ import annotations

import math
import re
from bisect import bisect
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .._tools.shares import CALLED as WAYS
from .._tools.shares import Share
from .._tools.typing import Array
from .._tools.wording import ACCURACY, R2, SAME, Measure, percent

if TYPE_CHECKING:
    from .._select.results import Comparison, CrossValidation

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
HEADLINES = {
    0: "the geometric mean: equal relative gains count the same",
    1: "the plain average: every task counts the same",
    math.inf: "only the largest training objective counts",
    -math.inf: "only the smallest training objective counts",
}
NAMED = 3  # a sentence names at most this many tasks
MEASURES = {"labels": ACCURACY, "numbers": R2, "nothing": ACCURACY}  # by what a machine reads
CALLED = {  # a machine, by what its decisions mean
    "margins": "support\n    vector machine",
    "estimates": "classifier",
    "log-odds": "logistic regression",
    "numbers": "regression",
    "levels": "one-class machine",
}
PLAIN = {  # what the kernels of the default bank do
    "linear": "straight lines",
    "quadratic": "curves and products",
    "cosine": "directions",
    "gaussian": "smooth",
    "laplacian": "jagged",
}
WIDTHS = ("very narrow", "narrow", "medium", "wide", "very wide")
WIDTH_ENDS = (0.4, 0.8, 1.5, 3.0)  # in typical distances
DEFAULT_KERNEL = re.compile(rf"((?:.*: )?)(({'|'.join(PLAIN)})(?: ×(\d[\d.]*))?)")
NUMBER_AT_START, NUMBER_AT_END = re.compile(r"^[\d.]+"), re.compile(r"[\d.]+$")
LINEAR_BELOW = 1e-3  # |p| below which M_p looks like the geometric mean


# --------------------------------------------------------------------------------------------- numbers and names
def exponent_label(p: float) -> str:
    if np.isinf(p):
        return "∞" if p > 0 else "−∞"
    return f"{float(f'{p:.4g}'):g}".replace("-", "−")  # four digits, and 1000 in full


def shorten(name: str, length: int = 40) -> str:
    """A long name with its middle cut out, since both ends help to recognise it."""
    if len(name) <= length:
        return name
    head = length // 2
    return _start(name, head).rstrip() + "…" + _end(name, length - head - 1).lstrip()


def shorten_all(names: Sequence[str], length: int = 40) -> list[str]:
    """Cut long names where they differ least, or elsewhere if that keeps more of them distinct."""
    if all(len(name) <= length for name in names):
        return list(names)
    distinct = list(dict.fromkeys(names))
    if len(distinct) == 1:
        return [shorten(name, length) for name in names]
    same_start, same_end = _n_common(distinct), _n_common([name[::-1] for name in distinct])
    start = max(0, same_start - 4)  # keep a little of the common start

    def cut(name: str, way: str) -> str:
        if len(name) <= length:
            return name
        if way == "end":
            return _start(name, length - 1).rstrip() + "…"
        if way == "start":
            return "…" + _end(name, length - 1).lstrip()
        return shorten(name, length) if way == "middle" else "…" + _start(name[start:], length - 2).strip() + "…"

    ways = ["end", "start"] if same_end >= same_start else ["start", "end"]
    found = [[cut(name, way) for name in names] for way in [*ways, "middle", "both"]]
    return max(found, key=lambda short: len(set(short)))  # the first one in a tie


def _n_common(names: Sequence[str]) -> int:
    """Length of the common prefix of all names."""
    return sum(1 for _ in takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False)))


def _start(name: str, length: int) -> str:
    """The first letters, without cutting through a number."""
    kept = name[:length]
    return NUMBER_AT_END.sub("", kept) or kept if NUMBER_AT_START.match(name[length:]) else kept


def _end(name: str, length: int) -> str:
    """The last letters, without cutting through a number."""
    kept = name[len(name) - length :]
    return NUMBER_AT_START.sub("", kept) or kept if NUMBER_AT_END.search(name[: len(name) - length]) else kept


def percent_above(share: float) -> str:
    """An upper bound in per cent: one digit, rounded up."""
    value = 100 * share
    if value < 1e-4:
        return "0.0001 %"
    scale = 10.0 ** math.floor(math.log10(value))
    return f"{math.ceil(value / scale * (1 - 1e-12)) * scale:.4f}".rstrip("0").rstrip(".") + " %"


def number_word(count: int) -> str:
    return NUMBERS[count] if count < len(NUMBERS) else str(count)


def how_many(count: int) -> str:
    """A count as a word; "none" for zero, if the sentence names the things elsewhere."""
    return number_word(count) if count else "none"


def listing(names: Sequence[str]) -> str:
    """Names as a list: "a, b and c", or the first few and "5 more"."""
    shown = [shorten(name) for name in names[:NAMED]]
    if len(names) > NAMED:
        return f"{', '.join(shown)} and {len(names) - NAMED} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def parameters(values: Mapping[str, float | None]) -> str:
    """The parameters that have a value: "C = 10, s = 1.1"."""
    known = {name: exponent_label(value) for name, value in values.items() if value is not None}
    return ", ".join(f"{name} = {text}" for name, text in known.items())


# ------------------------------------------------------------------------------------------------- sentences
def headline(
    p: float, n_tasks: int = 2, preferences: bool = False, large_is_hard: bool = True, noun: str = "task"
) -> str:
    """Which tasks count most at this p, in a few words; ``large_is_hard`` as in a path.

    noun: here and below, what a task is called, which is "pair" if it is a pair of classes.
    """
    if n_tasks == 1:
        return "one task: p has no effect"
    if p == 1 and preferences:
        return "the average, weighted by your preferences"
    if p in HEADLINES:
        return HEADLINES[p].replace("task", noun)
    if large_is_hard:
        return f"{'hard' if p > 1 else 'easy'} {noun}s get more weight"
    kind = "large objectives (hard, or many samples)" if p > 1 else "small objectives (easy, or few samples)"
    return f"{noun}s with {kind} get more weight"


def who_carries(
    p: float,
    weights: Array,
    objectives: Array,
    names: Sequence[str],
    reference: Array | None = None,
    difficulty: Array | None = None,
    noun: str = "task",
) -> str:
    """Which tasks have most of the weight, and their weight at p = 1 (from ``reference``, the weights there).

    They are the tasks with the largest (p > 1) or smallest objectives. The sentence calls them the hardest or easiest
    only if ``difficulty``, the objectives per sample, agrees; None means the objectives themselves.
    """
    n_tasks = len(weights)
    if n_tasks == 1:  # the page says why it has no slider
        return ""
    if np.allclose(weights, weights[0], rtol=1e-6):
        return f"Every {noun} carries {percent(1 / n_tasks)} of the weight."
    if p == 1:
        low, high = percent(float(weights.min())), percent(float(weights.max()))
        return f"Every {noun} carries the weight you gave it, from {low} to {high}."
    if math.isinf(p):
        chosen = np.argsort(-weights, kind="stable")[: max(1, int((weights > 0.005).sum()))]
        which = listing([names[t] for t in chosen])
        degree = "largest" if p > 0 else "smallest"
        if len(chosen) == 1:
            return f"The {noun} with the {degree} objective, {which}, carries all the weight."
        many = number_word(len(chosen)).capitalize()
        return f"{many} {noun}s share the {degree} objective and all the weight: {which}."
    sign = -1 if p > 1 else 1
    order = np.argsort(sign * objectives, kind="stable")
    count = 1 + int(np.searchsorted(np.cumsum(weights[order]), 0.5))
    third = n_tasks >= 3 and 3 * count > n_tasks
    count = max(1, round(n_tasks / 3)) if third else min(count, n_tasks - 1)
    chosen = order[:count]
    apt = difficulty is None or set(chosen) == set(np.argsort(sign * difficulty, kind="stable")[:count])
    share = percent(float(weights[chosen].sum()))
    before = "" if reference is None else f" ({percent(float(reference[chosen].sum()))} at p = 1)"
    which = listing([names[t] for t in chosen])
    who = _those_that_carry(p, count, n_tasks, third and n_tasks > 6, apt, noun)
    if count == 1:
        return f"{who}, {which}, carries {share} of the weight{before}."
    return f"{who} {share} of the weight{before}: {which}."


def _those_that_carry(p: float, count: int, n_tasks: int, third: bool, apt: bool, noun: str) -> str:
    """The subject of the sentence: the hardest or easiest tasks if ``apt``, else those with extreme objectives."""
    ending = "er" if count == 1 and n_tasks == 2 else "est"
    if apt:
        degree = ("hard" if p > 1 else "easi") + ending
        if count == 1:
            return f"The {degree} {noun}"
        few = f"third of the {noun}s carries" if third else f"{noun}s carry"
        return f"The {degree} {few}" if third else f"The {number_word(count)} {degree} {few}"
    degree = ("larg" if p > 1 else "small") + ending
    if count == 1:
        return f"The {noun} with the {degree} objective"
    few = "third of the" if third else number_word(count)
    return f"The {few} {noun}s with the {degree} objectives {'carries' if third else 'carry'}"


def change_of_objectives(
    reference_p: float,
    objectives: Array,
    reference: Array,
    names: Sequence[str],
    difficulty: Array | None = None,
    noun: str = "task",
) -> list[str]:
    """How the objectives differ from those at another p: of the hardest and easiest task, and how many gain and lose.

    ``difficulty`` says which tasks are hard: the objectives per sample at that p. None means ``reference``.
    """
    n_tasks = len(objectives)
    change = objectives / reference - 1
    if n_tasks == 1 or not (np.abs(change) >= SAME).any():
        return []
    by = reference if difficulty is None else difficulty
    hardest, easiest = int(by.argmax()), int(by.argmin())
    degrees = ("harder", "easier") if n_tasks == 2 else ("hardest", "easiest")
    first = (
        f"Compared with p = {exponent_label(reference_p)}, the {degrees[0]} {noun}'s objective "
        f"({shorten(names[hardest])}) {_moves(change[hardest])}, the {degrees[1]} {noun}'s ({shorten(names[easiest])}) "
        f"{_moves(change[easiest])}."
    )
    if n_tasks == 2:
        return [first]
    gains, losses = int((change <= -SAME).sum()), int((change >= SAME).sum())
    best, worst = int(change.argmin()), int(change.argmax())
    extremes = []
    if gains:
        extremes.append(f"{shorten(names[best])} gains most (−{percent(change[best])})")
    if losses:
        extremes.append(f"{shorten(names[worst])} loses most (+{percent(change[worst])})")
    return [
        first,
        f"Lower is better: {how_many(gains)} of {n_tasks} {noun}s {'gain' if gains > 1 else 'gains'} and "
        f"{how_many(losses)} {'lose' if losses > 1 else 'loses'}; "
        f"{', '.join(extremes)}.",
    ]


def _moves(change: float) -> str:
    if abs(change) < SAME:
        return "stays the same"
    return f"{'falls' if change < 0 else 'rises'} by {percent(change)}"


def overall_name(measure: Measure, n_tasks: int, n_classes: int = 2) -> str:
    """The name of the overall score: a mean over tasks, or a score over several classes."""
    if n_tasks > 1 and not measure.of_worst:
        return f"mean {measure.name} over the {n_tasks} tasks"
    return f"{measure.name} over all {n_classes} classes" if n_classes > 2 else measure.name


def change_of_score(
    reference_p: float,
    overall: float,
    overall_there: float | None,
    scores: Array,
    scores_there: Array | None,
    measure: Measure = ACCURACY,
    name: str = "",
    interval: tuple[float, float] = (math.nan, math.nan),
    n_rows: int | None = None,
    noun: str = "task",
) -> str:
    """The held-out score and its difference from the score at another p (None at that p itself).

    name: the name of the score, by default that of the measure; interval, n_rows: its interval and the held-out rows.
    """
    said = [f"{n_rows} row{'' if n_rows == 1 else 's'}"] if n_rows else []
    ends = measure.interval(*interval)
    said += [f"95 % interval {ends}"] if ends else []
    about = f" ({', '.join(said)})" if said else ""
    sentence = f"Held-out {name or measure.name} is {measure.text(overall)}{about}"
    if overall_there is None or scores_there is None or not math.isfinite(overall - overall_there):
        return sentence + "."
    at = f"at p = {exponent_label(reference_p)}"
    difference = overall - overall_there
    if measure.same(difference, overall):
        sentence += f", the same as {at}"
    else:
        sentence += f", {measure.size(difference)} {'more' if difference > 0 else 'less'} than {at}"
    if len(scores) > 1:
        better = int((scores > scores_there + 1e-9).sum())
        worse = int((scores < scores_there - 1e-9).sum())
        same = int(np.isfinite(scores).sum()) - better - worse
        sentence += (
            f": {number_word(better)} {noun}{' is' if better == 1 else 's are'} better, {how_many(worse)} worse, "
            f"{how_many(same)} unchanged"
            if better or worse
            else f"; no {noun} changes"
        )
    return sentence + "."


def lowest_score(names: Sequence[str], scores: Array, low: Array, high: Array, measure: Measure) -> str:
    """Which task has the lowest held-out score, which need not be a hard one: an objective is not a score."""
    if np.isfinite(scores).sum() < 2:
        return ""
    t = int(np.nanargmin(scores))
    score = measure.with_interval(float(scores[t]), float(low[t]), float(high[t]))
    return f"The lowest held-out {measure.name} is that of {shorten(names[t])}: {score}."


def plain_kernel(name: str) -> str:
    """What a default kernel does, before its name: "smooth, wide (gaussian ×4)"; other names stay as they are."""
    found = DEFAULT_KERNEL.fullmatch(name)
    if found is None:
        return name
    source, own, kind, width = found.groups()
    size = f", {WIDTHS[bisect(WIDTH_ENDS, float(width))]}" if width else ""
    return f"{source}{PLAIN[kind]}{size} ({own})"


def heaviest_kernel(shares: Array, names: Sequence[str]) -> str:
    """Which kernel has the largest share, and how many kernels have hardly any."""
    if len(shares) == 1:
        return ""
    m = int(shares.argmax())
    light = int((shares < 0.01).sum())
    rest = f"; {number_word(light)} of {len(shares)} kernels have less than 1 % each" if light > 1 else ""
    return f"The kernel “{shorten(names[m])}” has {percent(float(shares[m]))} of the variance of predictions{rest}."


def source_shares(shares: Mapping[str, float]) -> str:
    """How much each source contributes, largest first."""
    if not shares:
        return ""
    ranked = sorted(shares.items(), key=lambda item: -item[1])
    return f"Sources: {', '.join(f'{shorten(name)} {percent(float(share))}' for name, share in ranked)}."


def certificate(p: float, gap: float, n_tasks: int = 2) -> str:
    """What the gap guarantees."""
    bound = percent_above(gap)
    if n_tasks == 1:
        return f"Certified: no other mix of the kernels lowers the objective by more than {bound}."
    if p < 1:
        return (
            f"Certified: no other mix of the kernels lowers the sum of the objectives, weighted as here, by more than "
            f"{bound}, so none is better for every task by more than that."
        )
    if math.isinf(p):
        return f"Certified: no other mix of the kernels lowers the largest objective by more than {bound}."
    what = "average" if p == 1 else "mean M_p"
    return f"Certified: no other mix of the kernels lowers the {what} of the objectives by more than {bound}."


def why_no_slider(n_tasks: int, p: float) -> str:
    """Why a page with one task or one exponent has no slider."""
    if n_tasks == 1:
        return (
            "There is one task, so there is no trade-off and this page has no slider: the mean of one objective is "
            "that objective, whatever the exponent p."
        )
    return f"This path has one exponent, p = {exponent_label(p)}, so this page has no slider."


def choice(cv: CrossValidation, name: str = "", n_tasks: int = 2) -> str:
    """Which p cross-validation would pick, and whether that matters; name: of the score, by default the measure's.

    With one task p has no effect, so the sentence does not mention it.
    """
    measure = cv.measure
    what = f"{name} " if name not in ("", ACCURACY.name) else "" if measure == ACCURACY else f"{measure.name} "
    others = parameters({"C": cv.best_C, "capacity": cv.best_capacity, "s": cv.best_s, "epsilon": cv.best_epsilon})
    picked = others if n_tasks == 1 else f"p = {exponent_label(cv.best_p)} with {others}"
    rows = "the training set" if cv.n_rows is None else f"{cv.n_rows} rows of the training set"
    error = "" if measure.at_end(cv.best_score) else f", standard error {measure.size(cv.standard_error)}"
    sentence = (
        f"Cross-validation ({cv.n_splits} folds of {rows}) would pick {picked}: "
        f"{what}{measure.text(cv.best_score)}{error}."
    )
    if len(cv.ps) == 1 or n_tasks == 1:
        return sentence
    near = cv.near
    if 1.0 in cv.ps and cv.best_p != 1.0:
        behind = cv.best_score - cv.mean[list(cv.ps).index(1.0)]
        as_good = behind <= 0 or measure.same(behind, cv.best_score)
        sentence += f" The average, p = 1, is {'as good' if as_good else measure.size(behind) + ' behind'}."
    if len(near) == len(cv.ps):
        return sentence + f" All {len(near)} exponents tried are within that error: the choice hardly matters."
    are = "is" if len(near) == 1 else "are"
    return sentence + f" {number_word(len(near)).capitalize()} of {len(cv.ps)} exponents tried {are} within that error."


def verdict(
    way: Share,
    chosen: Mapping[str, Any],
    cv: CrossValidation | None,
    comparison: Comparison | None,
    n_tasks: int,
    several: bool = True,
) -> list[str]:
    """What to take home: the model, its p and the reason for it, and whether it is better than the best baseline.

    chosen: its parameters; cv: the scores along p of tasks that share their kernel; several: whether several ways to
    share were tried.
    """
    named = parameters({name: chosen.get(name) for name in ("C", "capacity", "s", "epsilon")})
    model = f"Chosen: {WAYS[way]} (share = {way}), {named}." if several else f"Chosen: {named}."
    said = [model, _why_p(way, cv, n_tasks)]
    if comparison is not None and comparison.baselines:
        said.append(_against_the_best(comparison))
    return said


def _why_p(way: Share, cv: CrossValidation | None, n_tasks: int) -> str:
    if way != "kernel":
        return "p plays no role: it balances tasks that share only their kernel."
    if n_tasks == 1:
        return "p plays no role: there is one task."
    if cv is None or len(cv.ps) == 1:
        return "p was given." if cv is None else f"p = {exponent_label(cv.best_p)}, the only one tried."
    n_near, best = len(cv.near), exponent_label(cv.best_p)
    if n_near == len(cv.ps):
        all_of = "both" if n_near == 2 else f"all {n_near}"
        return f"p = {best}, and the choice hardly matters: {all_of} exponents tried are within the standard error."
    top = cv.ps[int(np.argmax(cv.mean))]
    if cv.best_score >= max(cv.mean) - 1e-12:
        are = "is" if n_near == 1 else "are"
        return f"p = {best} has the best score in the folds; {n_near} of {len(cv.ps)} exponents {are} within its error."
    return f"p = {best}: the folds hardly tell it from the best, p = {exponent_label(top)}, and prefer p near 1."


def _against_the_best(comparison: Comparison) -> str:
    """Whether our model is better than the best baseline, and by how much."""
    best, measure = comparison.best_baseline, comparison.measure
    lead, low, high = comparison.lead_interval(best)
    if math.isnan(lead):
        return "The folds do not show whether it is better than simpler models."
    worse = high < 0  # never true for NaN
    ends = measure.interval(-high, -low) if worse else measure.interval(low, high)
    certain = f" (95 % interval of the difference over the folds: {ends})".replace("-", "−") * bool(ends)
    if worse:
        return (
            f"Worse than {best.name}, the best baseline, by {measure.size(lead)}{certain}: use that, or other kernels."
        )
    if low > 0:
        return f"Better than {best.name}, the best baseline, by {measure.size(lead)}{certain}."
    by = f"{measure.size(lead)} {'ahead' if lead >= 0 else 'behind'}"
    return f"Not shown to be better than {best.name}, the best baseline: {by}{certain}."


# --------------------------------------------------------------------------------------------- the axis of exponents
def exponent_ranks(ps: Array) -> Array:
    """Priority of the labels: 0 for ±∞ and p = 1, then the two ends, decades, others."""
    with np.errstate(divide="ignore", invalid="ignore"):
        decade = np.isin(np.log10(np.abs(ps)), np.arange(-9, 10)) | (ps == 0)
    return np.select([np.isinf(ps) | (ps == 1), (ps == ps.min()) | (ps == ps.max()), decade], [0, 1, 2], 3)


def pool_shares(shares: Array, names: list[str], n_named: int) -> tuple[Array, list[str]]:
    """Shares (n_points, n_shown) and names of kernels or sources: the largest in their order, and the others' sum."""
    if len(names) <= n_named + 1:  # pooling a single one saves nothing
        return shares, list(names)
    ranked = np.argsort(-shares.max(axis=0), kind="stable")
    named, others = np.sort(ranked[:n_named]), ranked[n_named:]
    pooled = np.column_stack([shares[:, named], shares[:, others].sum(axis=1)])
    return pooled, [names[m] for m in named] + [f"{len(others)} others"]


class ExponentScale:
    """Exponents on an axis that is logarithmic on either side of zero, with ±∞ one step beyond the last.

    ps: distinct exponents, increasing; finite: the finite ones; linear: |p| below which the axis is linear; beyond: the
    positions of −∞ and ∞.
    """

    def __init__(self, ps: ArrayLike):
        self.ps = np.unique(np.asarray(ps, dtype=float))
        finite = self.ps[np.isfinite(self.ps)]
        self.finite = finite if len(finite) else np.ones(1)
        sizes = np.abs(self.finite[self.finite != 0])
        self.linear = max(float(min(sizes, default=1.0)), LINEAR_BELOW)
        u = self.forward(self.finite)
        step = max(float(np.median(np.diff(u))), 0.08 * (u[-1] - u[0])) if len(u) > 1 else 0.5
        self.beyond = float(u[0] - step), float(u[-1] + step)

    def forward(self, p: ArrayLike) -> Array:
        """Position of a finite p: sign(p) (1 + log10 |p|/l) beyond ±l, p/l between."""
        ratio = np.asarray(p, dtype=float) / self.linear
        return np.where(np.abs(ratio) <= 1, ratio, np.sign(ratio) * (1 + np.log10(np.maximum(np.abs(ratio), 1))))

    def inverse(self, u: ArrayLike) -> Array:
        u = np.asarray(u, dtype=float)
        beyond = np.sign(u) * 10 ** np.minimum(np.maximum(np.abs(u) - 1, 0), 300)
        return self.linear * np.where(np.abs(u) <= 1, u, beyond)

    def heights(self, ps: ArrayLike) -> Array:
        """Positions of any exponents."""
        ps = np.asarray(ps, dtype=float)
        infinite = np.isinf(ps)
        return np.where(infinite, np.where(ps > 0, *self.beyond[::-1]), self.forward(np.where(infinite, 0.0, ps)))

    def round_ps(self) -> Array:
        """Round numbers in the range of the exponents, and ±∞ if it is one of them."""
        decades = 10.0 ** np.arange(-3, 10)
        sizes = np.concatenate([decades, 2 * decades, 5 * decades])
        sizes = sizes[sizes >= self.linear * (1 - 1e-9)]
        candidates = np.unique(np.concatenate([-sizes, [0.0], sizes]))
        inside = candidates[(candidates >= self.finite[0]) & (candidates <= self.finite[-1])]
        low, high = self.finite[[0, -1]]
        if len(inside) < 3 and high > low:  # a short range
            step = 10.0 ** np.floor(np.log10((high - low) / 3))
            inside = step * np.arange(np.ceil(low / step), np.floor(high / step) + 1)
        return np.concatenate([inside, self.ps[np.isinf(self.ps)]])


class ExponentAxis(ExponentScale):
    """The scale of a page: places in [0, 1], from the first to the last exponent."""

    def places(self, ps: ArrayLike) -> Array:
        return self._between(self.heights(ps))

    def _between(self, heights: Array) -> Array:
        low, high = self.heights(self.ps[[0, -1]])
        return (heights - low) / (high - low) if high > low else np.full(len(heights), 0.5)

    def nearest(self, p: float) -> int:
        """The row whose exponent is nearest to p on the axis."""
        return int(np.abs(self.heights(self.ps) - self.heights(p)).argmin())

    def breaks(self) -> Array:
        """Places between the finite exponents and ±∞, where the axis is broken."""
        ends = zip(self.ps[[0, -1]], self.beyond, self.forward(self.finite[[0, -1]]), strict=True)
        middles = [(beyond + last) / 2 for p, beyond, last in ends if np.isinf(p)]
        return self._between(np.array(middles)) if len(self.ps) > 1 else np.empty(0)

    def ticks(self) -> list[tuple[float, str, int]]:
        """Place, label and rank of round exponents; low ranks are labelled first."""
        ps = self.round_ps()
        ranks = exponent_ranks(ps).tolist()
        return list(zip(self.places(ps).round(6).tolist(), map(exponent_label, ps), ranks, strict=True))
