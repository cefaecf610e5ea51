"""``paretomkl demo``."""

from pathlib import Path
from typing import Annotated

from typer import Option

from ._options import Tolerance
from ._running import Output, command


@command("Example: `paretomkl demo --samples 500 --page digits.html`, then open `digits.html`.")
def demo(
    samples: Annotated[int, Option(min=20, max=1797, help="How many digits to learn from.")] = 200,
    C: Annotated[float, Option("--C", min=1e-6, help="Cost of a margin violation.")] = 10.0,
    s: Annotated[float, Option("--s", min=1.0, help="Norm of the kernel weights; 1 is sparse.")] = 1.1,
    tol: Tolerance = 1e-3,
    page: Annotated[Path, Option(help="File to write the page with the slider to.")] = Path("paretomkl-demo.html"),
    no_page: Annotated[bool, Option("--no-page", help="Only print the table.")] = False,
) -> None:
    """Trace the Pareto path on scikit-learn's digits: 45 one-vs-one tasks, 13 kernels, 13 exponents."""
    from .._tools.files import check_writable

    if not no_page:
        check_writable(page)
    Output(as_json=False).say(f"Learning from {samples} of scikit-learn's handwritten digits.")
    from ._demonstration import run_demo  # imported after the first line is printed: it takes a second

    run_demo(samples, C, s, tol, None if no_page else page)
