"""The command ``paretomkl demo``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .._learn.path import ParetoPath, pareto_path
from .._tools.files import check_writable
from .._tools.typing import AnyArray, Array
from .._tools.wording import short_kernel
from ..kernels._kernels import KernelBank
from ..report import trade_off_page

# code on the page that loads the same samples, with public names only
LOADING = """\
import numpy as np
from sklearn.datasets import load_digits

X, y = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
by_digit = [rng.permutation(np.flatnonzero(y == digit)) for digit in range(10)]
turn = np.concatenate([np.arange(len(rows)) for rows in by_digit])  # one of each digit in turn
rows = np.sort(np.concatenate(by_digit)[np.argsort(turn, kind="stable")[:{n_samples}]])
X, y = X[rows] / 16, y[rows]"""


def digits(n_samples: int) -> tuple[Array, AnyArray]:
    """A balanced sample of scikit-learn's handwritten digits, pixels scaled to [0, 1]."""
    from sklearn.datasets import load_digits  # imported here because other commands only need the table below

    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    shuffled = [rng.permutation(np.flatnonzero(y == digit)) for digit in range(10)]
    # take one of each digit in turn, until there are enough
    rows = [same[turn] for turn in range(max(map(len, shuffled))) for same in shuffled if turn < len(same)]
    chosen = np.sort(rows[:n_samples])
    return X[chosen] / 16, y[chosen]


def path_table(path: ParetoPath, title: str, n_kernels: int = 1, rows: Sequence[int] | None = None) -> Table:
    """A table of the path, or of some of its points: how p affects the objectives, the task weights and the kernels.

    It shows the ``n_kernels`` heaviest kernels of each point; one fits into 80 columns. The smallest and the largest
    objective are labelled "easiest" and "hardest" unless a larger task is easier. The weight belongs to the task with
    the largest objective.
    """
    table = Table(title=title, title_style="bold", title_justify="left", header_style="bold", box=SIMPLE_HEAD)
    extremes = ("easiest", "hardest") if path.large_is_hard else ("smallest J", "largest J")
    for name in ("p", "M_p", *extremes, "weight"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("heaviest kernels" if n_kernels > 1 else "heaviest kernel")
    table.add_column("gap", justify="right", no_wrap=True)
    shares = path.kernel_shares
    for i in range(len(path)) if rows is None else rows:
        p = path.ps[i]
        objectives = path.objectives[i]
        share = shares[i]
        heavy = [m for m in np.argsort(-share)[:n_kernels] if share[m] >= 0.05]
        table.add_row(
            "∞" if np.isinf(p) else f"{p:g}",
            f"{path.objective[i]:.4f}",
            f"{objectives.min():.3f}",
            f"{objectives.max():.3f}",
            f"{path.task_weights[i, objectives.argmax()]:.1%}",
            # truncate long names to keep one line per exponent
            Text(
                ", ".join(f"{share[m]:.0%} {short_kernel(path.kernel_names[m])}" for m in heavy),
                no_wrap=True,
                overflow="ellipsis",
            ),
            f"{path.gap[i]:.0e}",
        )
    return table


def run_demo(n_samples: int, C: float, s: float, tol: float, page: Path | None = None) -> None:
    if page is not None:
        check_writable(page)
    console = Console()
    X, y = digits(n_samples)
    pareto_path(X[:40], y[:40], s=s, C=C, tol=tol, verbose=0)  # compiles, so that the times below exclude it
    path = pareto_path(X, y, s=s, C=C, tol=tol)
    title = f"Pareto path on {len(X)} handwritten digits: {len(path.task_names)} tasks share one kernel"
    console.print(path_table(path, title, n_kernels=2 if console.width >= 110 else 1))
    largest = sorted({path.task_names[t] for t in path.objectives.argmax(axis=1)})
    which = "Hardest" if path.large_is_hard else "The largest objective"
    console.print(
        f"{len(path)} certified points from {path.n_sweeps} sweeps over the tasks in {path.seconds['total']:.2f} s "
        f"(tasks {path.seconds['tasks']:.2f} s, master {path.seconds['master']:.2f} s).\n"
        f"{which} is {', '.join(largest)}; weight is its weight in the equivalent weighted sum of the tasks.\n"
        "Small p favours small objectives, p = 1 is their average, p = ∞ the largest. The gap is a certificate: no "
        "choice of kernel weights improves the mean of the objectives (for p < 1: their weighted sum) by a larger "
        "fraction.",
        highlight=False,
    )
    if page is not None:
        loading = LOADING.format(n_samples=n_samples)
        capacity = KernelBank().capacity  # as in the table
        found = trade_off_page(
            X, y, s=s, C=C, capacity=capacity, file=page, title="Handwritten digits", loading=loading
        )
        console.print(
            f"\n{found.file}: {len(found.path)} points under a slider, judged on {len(found.test)} digits held out. "
            "Open it in a browser.",
            highlight=False,
            soft_wrap=True,
        )
