"""Speed, accuracy and memory compared with the obvious implementations.

Writes doc/benchmarks.md and benchmarks/results.json.

python benchmarks/bench.py                  everything
python benchmarks/bench.py --only 3,5       some sections; the others keep their earlier results
python benchmarks/bench.py --quick          a small trial of everything, written to benchmarks/quick
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import data
import numpy as np
from neighbours import NEIGHBOURS, run_neighbours
from report import ROOT, TRIAL_NOTE, Page, Section, quick_folder, single_thread, time_limit, timed
from search_speed import automatic
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from paretomkl import PAPER_PS, Gaussian, ParetoMKLClassifier, ParetoMKLClassifierCV, pareto_path
from paretomkl._data.tasks import make_tasks
from paretomkl.baselines import IndependentMKL, MinimaxMTL, PartiallySharedMKL, SparseMTL, UniformKernelSVC
from paretomkl.kernels import paper_kernels
from paretomkl.path import ParetoPath

sys.path.insert(0, str(ROOT / "tests"))
import oracles

INTRODUCTION = """This page measures what the library promises. All figures in a section come from one run, with a
single thread on every side. Times of the library are the best of several runs after one that compiles, including
kernels. Times of the slow side are from one run, or the better of two if it is short. "Loop" is the paper's algorithm
written in the obvious way around `SVC(kernel="precomputed")` (`tests/oracles.py`), with the kernel stack computed once.
A gap is relative, and it is the library's certificate unless it is called true."""
HERE = Path(__file__).resolve().parent
ENVIRONMENTS = HERE / "environments"
BELOW_ONE = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
CHOSEN = (0, 1, 5, 6, 7)  # of the paper's kernels, for small problems: linear, quadratic, three Gaussians


@dataclass(frozen=True)
class Settings:
    """How much to measure."""

    seeds: tuple[int, ...] = (0, 1, 2)
    repeats: int = 5
    norms: tuple[float, ...] = (1, 1.1, 1.5, 2, 4)
    costs: tuple[float, ...] = (0.1, 1, 10)
    ps_convex: tuple[float, ...] = (1, 1.5, 2, 5, 20, np.inf)
    ps_concave: tuple[float, ...] = BELOW_ONE
    long_run: int = 2000  # sweeps of the loop that points with p < 1 are compared with
    sets: tuple[str, ...] = ("digits", *data.READERS)
    fraction: float = 0.1
    per_digit: int = 20
    path_costs: tuple[float, ...] = (1, 10, 100)
    conic_sets: tuple[str, ...] = ("vehicle", "robot")
    conic_limit: float = 120.0  # seconds for one p
    single_sizes: tuple[int, ...] = (250, 600, 1200)
    neighbour_size: int = 1200
    memory_size: int = 6000
    search_costs: tuple[float, ...] = (0.1, 1, 10, 100)
    search_tols: tuple[float, ...] = (1e-3, 1e-5)
    search_digits: int = 100  # per digit
    search_wide: int = 5000  # features, with a twentieth as many samples
    predicted: int = 4000  # samples
    slow_limit: float = 600.0  # seconds for one slow alternative
    install: bool = True  # whether to create the neighbours' environments


TRIAL = Settings(
    seeds=(0,),
    repeats=2,
    norms=(1, 1.1),
    costs=(1,),
    ps_convex=(1, 2, np.inf),
    ps_concave=(0.01, 0.5),
    long_run=200,
    sets=("digits", "vehicle"),
    fraction=0.05,
    per_digit=6,
    path_costs=(1, 100),
    conic_sets=("vehicle",),
    conic_limit=10.0,
    single_sizes=(100, 200),
    neighbour_size=150,
    memory_size=600,
    search_costs=(1, 10),
    search_tols=(1e-3,),
    search_digits=12,
    search_wide=1000,
    predicted=500,
    slow_limit=20.0,
    install=False,
)


# --------------------------------------------------------------------------------------------- small helpers
def name_of(p: float) -> str:
    return "∞" if np.isinf(p) else f"{p:g}"


def our_time(X: Any, y: Any, repeats: int, **parameters: Any) -> tuple[float, ParetoPath]:
    """Best time of ``pareto_path`` in seconds, after compilation."""
    run = partial(pareto_path, X, y, verbose=0, **{"kernels": "paper", **parameters})
    run()
    return timed(run, repeats)


def pairs_of(y: np.ndarray, tasks: np.ndarray | None = None) -> list[oracles.Task]:
    """Tasks in the form that the oracles take."""
    return [(task.rows, task.targets) for task in make_tasks(y, tasks)]


def small_problem(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Samples, labels and task labels: related linear tasks with noise, noisiest last."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(15, 21, size=rng.integers(3, 5))
    tasks = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.uniform(size=(len(tasks), 4))
    directions = rng.standard_normal(4) + 0.7 * rng.standard_normal((len(sizes), 4))
    score = np.einsum("ij,ij->i", X - 0.5, directions[tasks])
    score += 0.2 * (1 + tasks) * rng.standard_normal(len(tasks))
    y = np.ones(len(tasks), dtype=int)
    for t in range(len(sizes)):
        mine = tasks == t
        y[mine] = np.where(score[mine] > np.median(score[mine]), 1, -1)
    return X, y, tasks


def load_set(name: str, settings: Settings) -> tuple[np.ndarray, np.ndarray]:
    return data.digits(settings.per_digit) if name == "digits" else data.load(name, settings.fraction)


def sets_at_hand(section: Section, names: tuple[str, ...]) -> list[str]:
    here = [name for name in names if name == "digits" or name in data.available()]
    absent = [name for name in names if name not in here]
    if absent:
        section.note(f"Not measured because their files are missing: {', '.join(absent)}.")
    return here


# ------------------------------------------------------------------------------------------------- accuracy
def small_paths(settings: Settings, ps: tuple[float, ...], s: float, C: float) -> Iterator[tuple]:
    """Yield kernels and tasks of each small problem, and its paths at tol = 1e-5 and at the default."""
    for seed in settings.seeds:
        X, y, tasks = small_problem(seed)
        chosen = list(CHOSEN[: 4 + seed % 2])
        kernels = [paper_kernels()[m] for m in chosen]
        run = partial(pareto_path, X, y, tasks=tasks, ps=ps, s=s, C=C, kernels=kernels, verbose=0)
        yield oracles.paper_kernels(X)[chosen], pairs_of(y, tasks), run(tol=1e-5), run()


def judge_convex(settings: Settings, s: float, C: float) -> Iterator[tuple[float, ...] | None]:
    """Excess at tol = 1e-5, excess at the default, reported minus true gap, of each point; None: the oracle failed."""
    for Ks, pairs, *paths in small_paths(settings, settings.ps_convex, s, C):
        for i, p in enumerate(settings.ps_convex):
            try:
                optimum, _ = oracles.conic_optimum(Ks, pairs, C, p, s)
            except ArithmeticError:
                yield None
                continue
            values = [oracles.power_mean(oracles.objectives(Ks, path.theta[i], pairs, C), p) for path in paths]
            margins = [path.gap[i] - (1 - optimum / value) for path, value in zip(paths, values, strict=True)]
            yield values[0] / optimum - 1, values[1] / optimum - 1, min(margins)


def judge_concave(settings: Settings, s: float, C: float) -> Iterator[tuple[float, ...] | None]:
    """True gap, reported minus true gap, excess over the loop and the loop's gap of each point with p < 1."""
    for Ks, pairs, _, path in small_paths(settings, settings.ps_concave, s, C):
        for i, p in enumerate(settings.ps_concave):
            values = oracles.objectives(Ks, path.theta[i], pairs, C)
            eta = (values / values.max()) ** (p - 1)
            try:
                optimum, _ = oracles.weighted_optimum(Ks, pairs, C, eta, s)
            except ArithmeticError:
                yield None
                continue
            true_gap = 1 - optimum / (eta @ values)
            loop = oracles.algorithm2(Ks, pairs, C, p, s, max_sweeps=settings.long_run, tol=1e-7)
            excess = oracles.power_mean(values, p) / loop.objective - 1
            yield true_gap, path.gap[i] - true_gap, excess, loop.gap


def judged(section: Section, judgements: Iterator[tuple[float, ...] | None], s: float, C: float) -> np.ndarray:
    """The judgements as columns, without the ones where the oracle failed; a note reports those."""
    rows = list(judgements)
    good = [row for row in rows if row is not None]
    if len(good) < len(rows):
        failures = len(rows) - len(good)
        section.note(f"The conic solver failed in {failures} cases at s = {s:g}, C = {C:g}; they are left out.")
    return np.array(good).T


def accuracy(section: Section, settings: Settings) -> None:
    """Compare objectives and certificates for p >= 1 with a conic solver."""
    columns = {"s": "g", "C": "g", "points": "d", "largest excess": ".1e", "at tol 1e-3": ".1e", "least margin": ".1e"}
    table = section.table(columns)
    for s, C in product(settings.norms, settings.costs):
        tight, loose, margins = judged(section, judge_convex(settings, s, C), s, C)
        section.add(table, s, C, len(tight), tight.max(), loose.max(), margins.min())
    excess, margin = max(row[3] for row in table.rows), min(row[5] for row in table.rows)
    section.claim("objective within 1e-4 of the conic optimum", f"{excess:.1e}", excess <= 1e-4)
    section.claim("reported gap ≥ true gap, up to 1e-7", f"reported − true ≥ {margin:.1e}", margin >= -1e-7)


def concave(section: Section, settings: Settings) -> None:
    """Confirm the certificate for p < 1, and compare the objective with a long run of the loop."""
    columns = {"s": "g", "C": "g", "points": "d", "largest true gap": ".1e", "least margin": ".1e"}
    columns |= {"largest excess": ".1e", "least excess": ".1e", "loop's gap": ".1e"}
    table = section.table(columns)
    for s, C in product(settings.norms, settings.costs):
        gaps, margins, excess, loop = judged(section, judge_concave(settings, s, C), s, C)
        section.add(table, s, C, len(gaps), gaps.max(), margins.min(), excess.max(), excess.min(), loop.max())
    margin, most = min(row[4] for row in table.rows), max(row[5] for row in table.rows)
    section.claim("reported gap ≥ true weighted gap, up to 1e-7", f"reported − true ≥ {margin:.1e}", margin >= -1e-7)
    section.claim("M_p at most 1e-3 above a long run of the loop", f"{most:.1e}", most <= 1e-3)


# ---------------------------------------------------------------------------------------------------- paths
def sweeps(section: Section, settings: Settings) -> None:
    """The path of 13 points: number of sweeps, and where the time goes."""
    columns = {"set": "s", "N": "d", "T": "d", "s": "g", "C": "g", "sweeps": "d", "largest gap": ".1e"}
    columns |= {"total s": ".3f", "tasks s": ".3f", "master s": ".3f", "master share": ".0%"}
    table = section.table(columns)
    for name in sets_at_hand(section, settings.sets):
        X, y = load_set(name, settings)
        for s, C in product((1.1, 1), settings.path_costs):
            _, path = our_time(X, y, 1, s=s, C=C)
            others = [pareto_path(X, y, s=s, C=C, kernels="paper", verbose=0) for _ in range(settings.repeats - 1)]
            seconds = min((one.seconds for one in (path, *others)), key=lambda spent: spent["total"])
            total, tasks, master = (seconds[part] for part in ("total", "tasks", "master"))
            size = (len(X), len(path.task_names))
            section.add(table, name, *size, s, C, path.n_sweeps, path.gap.max(), total, tasks, master, master / total)
    most, gap, share = (max(row[column] for row in table.rows) for column in (5, 6, 10))
    spent = np.array([row[7:10] for row in table.rows]).sum(axis=0)
    section.claim("at most 60 sweeps for 13 points", f"{most}", most <= 60)
    section.claim("gap at most 1e-3 at every point", f"{gap:.1e}", gap <= 1e-3)
    section.claim(
        "master at most a quarter of the time",
        f"{share:.0%} at most, {spent[2] / spent[0]:.0%} over all",
        share <= 0.25,
    )


def against_loop(section: Section, settings: Settings) -> None:
    """Time the seven p <= 1 with the loop and with the path."""
    ps = [p for p in PAPER_PS if p <= 1]
    columns = {"set": "s", "N": "d", "T": "d", "loop sweeps": "d", "loop gap": ".1e", "loop s": ".2f"}
    columns |= {"sweeps": "d", "gap": ".1e", "ours s": ".4f", "ratio": ".0f"}
    table = section.table(columns, "Against the loop")
    for name in sets_at_hand(section, settings.sets):
        X, y = load_set(name, settings)
        pairs = pairs_of(y)

        def loop(X: np.ndarray = X, pairs: list = pairs) -> list:
            Ks = oracles.paper_kernels(X)
            return [oracles.algorithm2(Ks, pairs, 1.0, p, 1.1, tol=1e-3) for p in ps]

        slow, found = timed(loop)
        fast, path = our_time(X, y, settings.repeats, ps=ps)
        worst = max(one.gap for one in found)
        taken = sum(one.n_sweeps for one in found)
        size = (len(X), len(pairs))
        section.add(table, name, *size, taken, worst, slow, path.n_sweeps, path.gap.max(), fast, slow / fast)
    least = min(row[-1] for row in table.rows)
    section.claim("p ≤ 1: at least 50 times as fast as the loop", f"{least:.0f} times at least", least >= 50)


def conic_time(Ks: np.ndarray, pairs: list, p: float, limit: float) -> tuple[float, float, float]:
    """Seconds of the faster CVXPY formulation, seconds in the solver, and the optimum; infinite if both fail."""
    weights = np.full(len(pairs), 1 / len(pairs))
    costs = [np.ones(len(signs)) for _, signs in pairs]
    best = (np.inf, np.inf, np.nan)
    for build in (oracles.primal_problem, oracles.dual_problem):
        began = perf_counter()
        problem, _ = build(Ks, pairs, costs, p, 1.1, weights, True)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                problem.solve(solver="CLARABEL", time_limit=limit)
        except Exception as failure:  # SolverError; only the oracles import cvxpy
            if type(failure).__name__ != "SolverError":
                raise
            continue
        if problem.status == "optimal":
            best = min(best, (perf_counter() - began, problem.solver_stats.solve_time, float(problem.value)))
    return best


def against_conic(section: Section, settings: Settings) -> None:
    """Time the six p > 1 with CVXPY, one by one, and with the path."""
    ps = [p for p in PAPER_PS if p > 1]
    columns = {"set": "s", "N": "d", "T": "d", "points": "d", "CVXPY s": ".2f", "in solver s": ".2f", "excess": ".1e"}
    columns |= {"ours s": ".4f", "ratio": ".0f", "solver ratio": ".0f", "ours 1e-6 s": ".4f", "ratio 1e-6": ".0f"}
    table = section.table(columns, "Against CVXPY")
    for name in sets_at_hand(section, settings.conic_sets):
        X, y = load_set(name, settings)
        Ks, pairs = oracles.paper_kernels(X), pairs_of(y)
        times = {p: conic_time(Ks, pairs, p, settings.conic_limit) for p in ps}
        solved = [p for p in ps if np.isfinite(times[p][0])]
        for p in sorted(set(ps) - set(solved)):
            section.note(f"CVXPY did not solve {name} at p = {name_of(p)} in {settings.conic_limit:g} s; left out.")
        if not solved:
            continue
        whole, inside, _ = np.array([times[p] for p in solved]).sum(axis=0)
        fast, path = our_time(X, y, settings.repeats, ps=solved)
        tight, _ = our_time(X, y, settings.repeats, ps=solved, tol=1e-6)
        excess = max(path.objective[i] / times[p][2] - 1 for i, p in enumerate(solved))
        size = (len(X), len(pairs), len(solved))
        ratios = (fast, whole / fast, inside / fast, tight, whole / tight)
        section.add(table, name, *size, whole, inside, excess, *ratios)
    if table.rows:
        least, solver = (min(row[column] for row in table.rows) for column in (8, 9))
        measured = f"{least:.0f} times at least; {solver:.0f} counting only the seconds inside the solver"
        section.claim("p > 1: at least 200 times as fast as CVXPY", measured, least >= 200)


def speed(section: Section, settings: Settings) -> None:
    against_loop(section, settings)
    against_conic(section, settings)


# ------------------------------------------------------------------------------------------------- one task
def single_task(section: Section, settings: Settings) -> None:
    """Compare a single task with the twenty-line loop."""
    columns = {"n": "d", "s": "g", "loop sweeps": "d", "loop gap": ".1e", "loop s": ".3f"}
    columns |= {"sweeps": "d", "gap": ".1e", "ours s": ".4f", "ratio": ".1f"}
    table = section.table(columns)
    for n, s in product(settings.single_sizes, (1, 1.1, 2)):
        X, y = data.digits_binary(n)

        def loop(X: np.ndarray = X, y: np.ndarray = y, s: float = s) -> Any:
            return oracles.single_task_loop(oracles.paper_kernels(X), y, 1.0, s, tol=1e-5)

        fast, path = our_time(X, y, settings.repeats, ps=[1.0], s=s, tol=1e-5)
        try:
            with time_limit(settings.slow_limit):
                slow, found = timed(loop, 2 if s == 2 else 1)
        except TimeoutError as stopped:
            section.note(f"The loop was {stopped} at n = {n}, s = {s:g}; the table uses that time.")
            section.add(table, n, s, None, None, settings.slow_limit, *_ours(path), fast, settings.slow_limit / fast)
            continue
        section.add(table, n, s, found.n_sweeps, found.gap, slow, *_ours(path), fast, slow / fast)
    sparse = min(row[-1] for row in table.rows if row[1] != 2)
    spread = min(row[-1] for row in table.rows if row[1] == 2)
    section.claim("s = 1 and 1.1: at least 5 times as fast as the loop", f"{sparse:.1f} times at least", sparse >= 5)
    section.claim("s = 2: never slower than the loop", f"{spread:.1f} times at least", spread >= 1)


def _ours(path: ParetoPath) -> tuple[int, float]:
    return path.n_sweeps, float(path.gap.max())


def neighbours(section: Section, settings: Settings) -> None:
    """Time similar packages on the same kernels."""
    X, y = data.digits_binary(settings.neighbour_size)
    ours = section.table({"paretomkl": "s", "sweeps": "d", "gap": ".1e", "seconds": ".3f"})
    seconds = {}
    for tol in (1e-3, 1e-5):
        seconds[tol], path = our_time(X, y, settings.repeats, ps=[1.0], tol=tol)
        section.add(ours, f"s = 1.1, tol = {tol:.0e}", *_ours(path), seconds[tol])
    names = [name for name in NEIGHBOURS if settings.install or (ENVIRONMENTS / name / "installed.txt").exists()]
    if len(names) < len(NEIGHBOURS):
        section.note("A trial run skips the packages that have no environment yet.")
    if not names:
        return
    table = section.table({"neighbour": "s", "settings": "s", "seconds": ".2f", "ratio": ".0f", "ratio 1e-5": ".0f"})
    rows = run_neighbours(oracles.paper_kernels(X), y, ENVIRONMENTS, python=sys.executable, names=tuple(names))
    for row in rows:
        if "error" in row:
            section.note(f"{row['name']} failed: {row['error'].replace(str(ROOT) + '/', '')}")
            continue
        title = f"{row['name']} {row['version']}"
        section.add(
            table, title, row["note"], row["seconds"], row["seconds"] / seconds[1e-3], row["seconds"] / seconds[1e-5]
        )
    if table.rows:
        least, tight = (min(row[column] for row in table.rows) for column in (3, 4))
        measured = f"{least:.0f} times at least; {tight:.0f} at a gap of 1e-5"
        section.claim("at least 10 times as fast as each neighbour", measured, least >= 10)


# ------------------------------------------------------------------------------------- search and prediction
def search(section: Section, settings: Settings) -> None:
    """Compare the choice of p and C with GridSearchCV over the estimator, and with the choice of p, C, s and κ."""
    columns = {"set": "s", "n": "d", "tasks": "d", "tol": ".0e", "fits": "d", "grid s": ".2f", "p and C s": ".2f"}
    columns |= {"ratio": ".1f", "largest difference": ".4f", "p, C, s, κ s": ".2f", "of p and C": ".2f"}
    table = section.table(columns)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    makers = {
        "many digits": partial(data.digits, settings.search_digits),
        "wide": partial(data.blobs, settings.search_wide // 20, 4, settings.search_wide),
    }
    names = [*makers, *sets_at_hand(section, settings.sets)]
    for tol, name in product(settings.search_tols, names):
        X, y = makers[name]() if name in makers else load_set(name, settings)
        grid = {"p": list(PAPER_PS), "C": list(settings.search_costs)}
        common = {"Cs": settings.search_costs, "cv": folds, "tol": tol}
        ours = ParetoMKLClassifierCV(**common, s=1.1, kernels="paper")
        theirs = GridSearchCV(ParetoMKLClassifier(kernels="paper", tol=tol), grid, cv=folds)
        everything = ParetoMKLClassifierCV(**common)
        for compiling in (ours, everything):
            compiling.fit(X, y)
        fast, found = timed(partial(ours.fit, X, y), 2, process_time)
        slow, sought = timed(partial(theirs.fit, X, y), 1, process_time)
        whole, _ = timed(partial(everything.fit, X, y), 2, process_time)
        fits = 5 * len(PAPER_PS) * len(settings.search_costs) + 1
        apart = np.abs(found.cv_results_["mean_test_score"] - sought.cv_results_["mean_test_score"]).max()
        numbers = (tol, fits, slow, fast, slow / fast, apart, whole, whole / fast)
        section.add(table, name, len(y), found.n_tasks_, *numbers)
    rows = [row for row in table.rows if row[3] == settings.search_tols[0]]
    for column, least in ((7, True), (10, False)):
        of_rows = [row[column] for row in rows]
        measured = f"{min(of_rows):.1f} to {max(of_rows):.1f} at the default tol"
        if least:
            section.claim("at least 10 times as fast as GridSearchCV", measured, min(of_rows) >= 10)
        else:
            section.claim("p, C, s and κ in at most twice the time of p and C", measured, max(of_rows) <= 2)


def prediction(section: Section, settings: Settings) -> None:
    """Compare prediction with SVC on the same data."""
    columns = {"classes": "d", "features": "d", "kernels": "d", "SVC support": "d", "SVC ms": ".1f"}
    table = section.table(columns | {"support": "d", "ms": ".1f", "ratio": ".2f", "per kernel": ".3f"})
    X, y = data.digits(100)
    new = np.resize(load_digits().data / 16, (settings.predicted, X.shape[1]))
    for classes, features, kernels in product((2, 10), (5, 64), ([Gaussian(1.0)], "paper")):
        seen = slice(20, 20 + features) if features < 64 else slice(None)
        labels = y if classes == 10 else (y > 4).astype(int)
        svc = SVC(gamma=0.5).fit(X[:, seen], labels)
        ours = ParetoMKLClassifier(kernels=kernels).fit(X[:, seen], labels)
        slow, _ = timed(partial(svc.predict, new[:, seen]), settings.repeats, process_time)
        fast, _ = timed(partial(ours.predict, new[:, seen]), settings.repeats, process_time)
        ratio = fast / len(ours.support_) / (slow / len(svc.support_))
        count = len(ours.theta_)
        support = len(svc.support_), 1e3 * slow, len(ours.support_), 1e3 * fast
        section.add(table, classes, new[:, seen].shape[1], count, *support, ratio, ratio / count)
    most = max(row[-1] for row in table.rows)
    section.claim("at most 1.5 times SVC.predict per support vector and kernel", f"{most:.2f} at most", most <= 1.5)


# ---------------------------------------------------------------------------------- methods to compare with
def comparison_methods(section: Section, settings: Settings) -> None:
    """Time one fit of every baseline."""
    names = sets_at_hand(section, ("satellite",) if "satellite" in settings.sets else settings.sets[-1:])
    if not names:
        return
    X, y = load_set(names[0], settings)
    T = len(make_tasks(y))
    plain = ParetoMKLClassifier(C=10, kernels="paper")
    kernel_methods = {
        "IndependentMKL": IndependentMKL(C=10, kernels="paper"),
        "PartiallySharedMKL β = 0.1 T": PartiallySharedMKL(beta=0.1 * T, C=10, kernels="paper"),
        "PartiallySharedMKL β = 0.5 T": PartiallySharedMKL(beta=0.5 * T, C=10, kernels="paper"),
        **{
            f"SparseMTL p = {p:g}, q = {q:g}": SparseMTL(p=p, q=q, C=10, kernels="paper")
            for p, q in ((1, 1), (1, 1.5), (1, 2), (0.5, 1), (0.5, 1.5), (0.5, 2))
        },
        "UniformKernelSVC": UniformKernelSVC(C=10, kernels="paper"),
    }
    linear_methods = {
        f"MinimaxMTL {kind}, μ = {mu:g}": MinimaxMTL(kind, mu=mu) for kind in ("trace", "ep") for mu in (0.001, 0.01)
    }
    table = section.table({"method": "s", "seconds": ".3f", "ratio": ".1f", "gap": ".1e"})
    plain.fit(X, y)
    unit, _ = timed(partial(plain.fit, X, y), settings.repeats, process_time)
    section.add(table, "ParetoMKLClassifier p = 1", unit, 1.0, plain.gap_)
    seconds = {}
    for name, method in (kernel_methods | linear_methods).items():
        method.fit(X, y)
        seconds[name], _ = timed(partial(method.fit, X, y), settings.repeats, process_time)
        section.add(table, name, seconds[name], seconds[name] / unit, method.gap_)
    most = max(seconds[name] for name in kernel_methods) / unit
    slowest = max(seconds[name] for name in linear_methods)
    section.claim("kernel methods: at most 10 times ParetoMKLClassifier", f"{most:.1f} times at most", most <= 10)
    section.claim("linear methods: within a minute", f"{slowest:.2f} seconds at most", slowest <= 60)


# --------------------------------------------------------------------------------------------------- memory
def memory(section: Section, settings: Settings) -> None:
    """Measure the peak memory of a fresh process."""
    columns = {"problem": "s", "points": "d", "sweeps": "d", "gap": ".1e", "seconds": ".1f"}
    table = section.table(columns | {"imports MB": ".0f", "peak MB": ".0f"})
    for classes in (2, 6):
        command = [sys.executable, str(HERE / "memory.py"), str(settings.memory_size), str(classes)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=settings.slow_limit, check=True)
        except subprocess.TimeoutExpired:
            section.note(f"{classes} classes: stopped after {settings.slow_limit:g} seconds.")
            continue
        found = json.loads(done.stdout.splitlines()[-1])
        problem = f"{classes} classes, {found['tasks']} tasks"
        numbers = (found[key] for key in ("points", "sweeps", "gap", "seconds", "imports_mb", "peak_mb"))
        section.add(table, problem, *numbers)
        lines = done.stderr.splitlines()
        shown = lines if len(lines) <= 8 else [*lines[:4], "…", *lines[-3:]]
        section.note(f"Progress shown for {classes} classes:\n\n" + "\n".join(f"    {line}" for line in shown))
    if table.rows:
        most = max(row[-1] for row in table.rows)
        section.claim("peak memory below 1500 MB", f"{most:.0f} MB", most < 1500)


# ---------------------------------------------------------------------------------------------------- pages
Measure = Callable[[Section, Settings], None]
SECTIONS: dict[str, tuple[str, str, Measure]] = {
    "1": (
        "1. Accuracy against a conic solver",
        "Random multi-task problems (3 or 4 tasks of 15 to 20 samples, 4 or 5 kernels; p from 1 to ∞). LIBSVM "
        "evaluates J at the path's θ, and Clarabel gives the optimum. *Excess* is how far M_p lies above the optimum, "
        "relative, at tol = 1e-5 and at the default. *Margin* is the reported gap minus the true gap, at either "
        "tolerance.",
        accuracy,
    ),
    "2": (
        "2. Certificates for p < 1",
        "The same problems for p from 0.01 to 0.5 at the default tolerance. The *true gap* compares the sum of J "
        "weighted by η ∝ J^(p−1), with J from LIBSVM, with its optimum from Clarabel. *Excess* is how far M_p lies "
        "above the value from a long run of the loop (to a gap of 1e-7 or 2000 sweeps), relative; it is negative if "
        "the path is better. M_p is not convex here, so the two may reach different points of the Pareto front.",
        concave,
    ),
    "3": (
        "3. Sweeps of the whole path",
        "`pareto_path(X, y)` for the paper's 13 exponents at a relative gap of 1e-3, with its 11 kernels and "
        "one-vs-one tasks. Digits has 200 samples; the other data sets use 10 % of a balanced pool.",
        sweeps,
    ),
    "4": (
        "4. Speed against the obvious implementations",
        "The same data sets, s = 1.1, C = 1. The loop runs the seven p ≤ 1 to a gap of 1e-3, each from uniform "
        "weights. CVXPY runs the six p > 1 one by one, with Clarabel at its default accuracy, in the primal and in the "
        "dual formulation of `tests/oracles.py`. For each p we count the faster one, including building but without "
        "kernels and failed attempts. Ours runs at tol = 1e-3 and at 1e-6; the excess is M_p at 1e-3 relative to "
        "CVXPY's.",
        speed,
    ),
    "5": (
        "5. One task alone",
        "Digits below five against the others, n samples, 11 kernels, C = 1, gap 1e-5 on both sides. The loop is "
        "`single_task_loop` in `tests/oracles.py`. Both sides include the kernels.",
        single_task,
    ),
    "6": (
        "6. Neighbouring packages",
        "The same data with n = 1200. The other packages get precomputed kernels. Each runs in its own environment, "
        "and only its fit is timed. None of them solves this problem or reports its gap. Our time includes the "
        "kernels.",
        neighbours,
    ),
    "7": (
        "7. Memory",
        "6000 samples in 20 dimensions, 11 kernels, in a fresh process: two classes at p = 1, and six classes with the "
        "whole path. *Peak* is the highest resident memory minus that at the interpreter's start, including imports "
        "and compiled code.",
        memory,
    ),
    "8": (
        "8. Choosing p, C, s and κ",
        "`ParetoMKLClassifierCV(s=1.1)` compared with `GridSearchCV(ParetoMKLClassifier())`: the paper's kernels, 13 "
        "exponents, C = 0.1, 1, 10, 100, the same five folds and the same tol on both sides; CPU seconds. *Wide* has "
        "250 samples with 5000 features, where the kernels dominate the cost. *Largest difference* compares the mean "
        "scores for a pair of p and C: both are within tol of the optimum, and samples near the boundary can fall on "
        "either side. The last columns are the default's whole search: the same p and C, s = 1.1 and 2, κ = ½ and 1, "
        "and the 13 default kernels.",
        search,
    ),
    "9": (
        "9. Prediction",
        "`predict` on 4000 digits after a fit on 1000, compared with `SVC(gamma=0.5)`; CPU time. The ratio compares "
        "the times per support vector; *per kernel* divides it by the number of kernels.",
        prediction,
    ),
    "10": (
        "10. Baselines",
        "One fit of each on Satellite at 10 % (378 samples, 15 tasks) with C = 10 and the default tol; CPU seconds.",
        comparison_methods,
    ),
    "11": (
        "11. Automatic choices",
        "Everything the defaults choose, in CPU seconds of one thread, both sides in turn. The grid search is "
        "`GridSearchCV(make_pipeline(StandardScaler(), SVC()))` with 7 values of C, 5 of gamma and 5 folds (`SVR` for "
        "numbers; with tasks, one model of all rows with task indicators).",
        lambda section, settings: automatic(section, settings is TRIAL),
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="numbers of the sections to run, such as 3,5")
    parser.add_argument("--no-neighbours", action="store_true", help="skip section 6, which installs packages")
    parser.add_argument("--quick", action="store_true", help="a small trial of everything, within a minute")
    options = parser.parse_args()
    chosen = options.only.split(",") if options.only else list(SECTIONS)
    unknown = [key for key in chosen if key not in SECTIONS]
    if unknown:
        parser.error(f"there is no section {unknown[0]!r}; the sections are {', '.join(SECTIONS)}")
    if options.no_neighbours:
        chosen = [key for key in chosen if key != "6"]

    settings = TRIAL if options.quick else Settings()
    folder = quick_folder() if options.quick else None
    results = (folder or HERE) / "results.json"
    page = Page(
        "Benchmarks", INTRODUCTION + TRIAL_NOTE * options.quick, results, (folder or ROOT / "doc") / "benchmarks.md"
    )
    with single_thread():
        for key in chosen:
            title, text, measure = SECTIONS[key]
            command = f"python benchmarks/bench.py --only {key}{' --quick' if options.quick else ''}"
            with page.section(key, title, text, command) as section:
                measure(section, settings)


if __name__ == "__main__":
    main()
