"""``paretomkl demo``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from ._options import Tolerance
from ._running import Output, command

if TYPE_CHECKING:
    from .._learn.path import ParetoPath
    from .._tools.typing import AnyArray, Array

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


@command(
    "Example: `paretomkl demo --samples 500 --page digits.html`, then open `digits.html`.",
    summary="Trace the Pareto path on scikit-learn's digits.",
)
def demo(
    samples: Annotated[int, Option(min=20, max=1797, help="How many digits to learn from.")] = 200,
    C: Annotated[float, Option("--C", min=1e-6, help="Cost of a margin violation.")] = 10.0,
    s: Annotated[float, Option("--s", min=1.0, help="Norm of the kernel weights; 1 is sparse.")] = 1.1,
    tol: Tolerance = 1e-3,
    page: Annotated[Path, Option(help="File to write the page with the slider to.")] = Path("paretomkl-demo.html"),
    no_page: Annotated[bool, Option("--no-page", help="Only print the table.")] = False,
) -> None:
    """Trace the Pareto path on scikit-learn's digits: 45 one-vs-one tasks, 13 kernels, 13 exponents."""
    from .._tools.files import check_writable, write_whole

    if not no_page:
        check_writable(page)
    output = Output(as_json=False)
    output.say(f"Learning from {samples} of scikit-learn's handwritten digits.")
    from .._learn.path import pareto_path  # imported after the first line is printed: it takes a second

    X, y = digits(samples)
    pareto_path(X[:40], y[:40], s=s, C=C, tol=tol, verbose=0)  # compiles, so that the times below exclude it
    _report(pareto_path(X, y, s=s, C=C, tol=tol), samples, output)
    if no_page:
        return
    from .._select.search import ParetoMKLClassifierCV
    from ..kernels._kernels import KernelBank
    from ..report import trade_off_page

    search = ParetoMKLClassifierCV(Cs=C, s=s, capacity=KernelBank().capacity, loss="hinge")  # as in the table
    found = trade_off_page(search, X, y, title="Handwritten digits")
    write_whole(page, found.page(loading=LOADING.format(n_samples=samples)))
    points = f"{len(found.path)} points under a slider, judged on {len(found.test)} digits held out"
    output.say(f"\n{page}: {points}. Open it in a browser.")


def digits(n_samples: int) -> "tuple[Array, AnyArray]":
    """A balanced sample of scikit-learn's handwritten digits, pixels scaled to [0, 1]."""
    import numpy as np
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    shuffled = [rng.permutation(np.flatnonzero(y == digit)) for digit in range(10)]
    # take one of each digit in turn, until there are enough
    rows = [same[turn] for turn in range(max(map(len, shuffled))) for same in shuffled if turn < len(same)]
    chosen = np.sort(rows[:n_samples])
    return X[chosen] / 16, y[chosen]


def _report(path: "ParetoPath", n_samples: int, output: Output) -> None:
    from rich.text import Text

    from ._showing import path_table

    title = f"Pareto path on {n_samples} handwritten digits: {len(path.task_names)} tasks share one kernel"
    output.say(path_table(path, title))
    largest = sorted({path.task_names[t] for t in path.objectives.argmax(axis=1)})
    which = "Hardest" if path.large_is_hard else "The largest objective"
    words = (
        f"{len(path)} certified points from {path.n_sweeps} sweeps over the tasks in {path.seconds['total']:.2f} s "
        f"(tasks {path.seconds['tasks']:.2f} s, master {path.seconds['master']:.2f} s).\n"
        f"{which} is {', '.join(largest)}; weight is its weight in the equivalent weighted sum of the tasks.\n"
        "Small p favours small objectives, p = 1 is their average, p = ∞ the largest. The gap is a certificate: no "
        "choice of kernel weights improves the mean of the objectives (for p < 1: their weighted sum) by a larger "
        "fraction."
    )
    output.say(Text(words))  # wrapped also where it is not shown on a terminal
