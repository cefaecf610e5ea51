"""The command line: one short function per command.

Exit codes: 0 done; 1 something went wrong that is not the caller's doing; 2 wrong options or wrong data, with one
sentence that says what to do; 130 interrupted. Nothing half-written is left behind.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any


def main() -> None:
    """Entry point of the ``paretomkl`` command."""
    try:
        import pandas  # noqa: F401
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError as error:
        sys.exit(f"The command line needs {error.name}; install it with: pip install 'paretomkl[cli]'")
    except KeyboardInterrupt:  # this early there is nothing to undo
        sys.exit(130)
    _application()()


def _guarded(command: Callable[[], None], as_json: bool = False) -> None:
    """Run a command; wrong data end in one sentence and exit code 2, an interrupt in 130."""
    import typer

    try:
        with warnings.catch_warnings():
            warnings.showwarning = _note
            command()
    except BrokenPipeError:  # the reader of a pipe has gone, as head does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except KeyboardInterrupt:
        typer.echo("Interrupted; nothing was written.", err=True)
        raise typer.Exit(130) from None
    except (ValueError, OSError, ImportError) as error:
        words = " ".join(str(error).split())
        if as_json:
            import json

            typer.echo(json.dumps({"error": words}, ensure_ascii=False))
        typer.echo(f"Error: {words}", err=True)
        raise typer.Exit(2) from None


def _note(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Warnings meant for users as one sentence; those meant for programmers are not for them."""
    if issubclass(category, UserWarning):
        sys.stderr.write(f"Note: {' '.join(str(message).split())}\n")


def _application() -> Any:
    import typer
    from typer import Argument, Option

    app = typer.Typer(
        help="Multi-task multiple kernel learning along the Pareto front.",
        no_args_is_help=True,
        add_completion=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog="Start with: `paretomkl demo`, then `paretomkl path data.csv --target y`.",
    )
    # what the commands that learn from a table have in common
    table = Argument(help="CSV, Parquet, Arrow or NumPy file.")
    target = Option(..., "--target", "-y", help="Column that holds the classes.")
    task = Option(None, "--task", "-t", help="Column that names the task of each row.")
    kernels = Option("default", help="Base kernels, see below.")
    about_kernels = (
        "`--kernels` takes `default` (linear, quadratic, nine Gaussians) or a list with parameters after a colon and "
        "columns after an @: `linear,rbf:0.5,laplacian:2@age+bmi`."
    )
    s = Option(1.1, "--s", min=1.0, help="Norm of the kernel weights; 1 is sparse.")
    tol = Option(1e-3, min=1e-8, max=0.5, help="Relative gap to certify at every p.")
    Cs = Option("0.1,1,10,100", "--Cs", help="Values of C to choose from.")
    categorical = Option("", help="Columns of categories that look like numbers or names, separated by commas.")
    drop = Option("", help="Columns to leave out, separated by commas.")
    impute = Option(False, "--impute", help="Fill in missing values: the median, or the commonest category.")
    delimiter = Option(None, help="What separates the columns of a text file; default a comma, in .tsv a tab.")
    decimal = Option(".", help="What decimals follow in a text file: a point or a comma.")
    max_rows = Option(20_000, min=1, help="Refuse tables of more rows.")
    sample = Option(None, min=4, help="Draw this many rows at random.")
    seed = Option(0, min=0, help="Seed of --sample and of the split.")
    jobs = Option(None, help="Folds at a time and threads; -1 is all cores.")
    as_json = Option(False, "--json", help="Print one JSON object instead of words.")

    def tell_version(wanted: bool) -> None:
        if wanted:
            from . import __version__

            typer.echo(__version__)
            raise typer.Exit

    @app.callback()
    def about(
        version: bool = Option(
            False, "--version", is_eager=True, callback=tell_version, help="Print the version and stop."
        ),
    ) -> None:
        """Multi-task multiple kernel learning along the Pareto front."""

    @app.command(epilog="Example: `paretomkl demo --samples 500 --page digits.html`, then open `digits.html`.")
    def demo(
        samples: int = Option(200, min=20, max=1797, help="How many digits to learn from."),
        C: float = Option(1.0, "--C", min=1e-6, help="Cost of a margin violation."),
        s: float = s,
        tol: float = tol,
        page: Path | None = Option(Path("paretomkl-demo.html"), help="Where to write the page with the slider."),
        no_page: bool = Option(False, "--no-page", help="Print the table only."),
    ) -> None:
        """Trace the Pareto path on scikit-learn's digits: 45 one-vs-one tasks, 11 kernels, 13 exponents."""
        from ._demo import run_demo

        _guarded(lambda: run_demo(samples, C, s, tol, None if no_page else page))

    @app.command(
        epilog="Example: `paretomkl path patients.csv --target outcome --task hospital --out patients` and open "
        f"`patients/page.html`.\n\n{about_kernels}"
    )
    def path(
        file: Path = table,
        target: str = target,
        task: str = task,
        out: Path | None = Option(None, help="Folder for page.html and path.csv; default: the name of the table."),
        kernels: str = kernels,
        s: float = s,
        C: float | None = Option(None, "--C", min=1e-9, help="Cost of a margin violation; default: cross-validation."),
        Cs: str = Cs,
        points: int = Option(121, min=15, max=1000, help="Exponents on the slider."),
        test_size: float = Option(0.25, min=0.1, max=0.9, help="Share of the rows to judge by."),
        categorical: str = categorical,
        drop: str = drop,
        impute: bool = impute,
        delimiter: str = delimiter,
        decimal: str = decimal,
        max_rows: int = max_rows,
        sample: int = sample,
        seed: int = seed,
        jobs: int = jobs,
        as_json: bool = as_json,
    ) -> None:
        """Show the trade-off between tasks: a page with a slider over p, and the numbers behind it."""

        def run() -> None:
            from .commands import Output, run_path, table_options

            options = table_options(task, categorical, drop, impute, delimiter, decimal, max_rows, sample, seed)
            folder = out or Path(f"{Path(file.name.removesuffix('.gz')).stem}-path")
            output = Output(as_json)
            run_path(file, target, options, folder, kernels, s, C, Cs, points, test_size, seed, jobs, output)

        _guarded(run, as_json)

    @app.command(
        epilog="Example: `paretomkl fit patients.csv --target outcome --task hospital --out model.skops`."
        f"\n\n{about_kernels}"
    )
    def fit(
        file: Path = table,
        target: str = target,
        out: Path = Option(..., "--out", "-o", help="Where to write the model, by custom `….skops`."),
        task: str = task,
        kernels: str = kernels,
        s: float = s,
        p: str | None = Option(None, "--p", help="Exponent; `inf` protects the worst task. Default: cross-validation."),
        C: float | None = Option(None, "--C", min=1e-9, help="Cost of a margin violation; default: cross-validation."),
        ps: str = Option("1,0.5,2,0.1,10,0.01,inf", help="Exponents to choose from; the first of equals is taken."),
        Cs: str = Cs,
        cv: int = Option(5, min=2, help="Folds of the cross-validation."),
        balanced: bool = Option(False, "--balanced", help="Weigh the classes of a task alike, however rare."),
        tol: float = tol,
        categorical: str = categorical,
        drop: str = drop,
        impute: bool = impute,
        delimiter: str = delimiter,
        decimal: str = decimal,
        max_rows: int = max_rows,
        sample: int = sample,
        seed: int = seed,
        jobs: int = jobs,
        as_json: bool = as_json,
    ) -> None:
        """Fit a model, with p and C by cross-validation unless they are given, and save it."""

        def run() -> None:
            from .commands import Output, run_fit, table_options

            options = table_options(task, categorical, drop, impute, delimiter, decimal, max_rows, sample, seed)
            output = Output(as_json)
            run_fit(file, target, options, out, kernels, s, p, C, ps, Cs, cv, balanced, tol, jobs, output)

        _guarded(run, as_json)

    @app.command(epilog="Example: `paretomkl predict model.skops new.csv --out predictions.csv`.")
    def predict(
        model: Path = Argument(help="Model that `paretomkl fit` wrote."),
        file: Path = table,
        out: Path | None = Option(None, "--out", "-o", help="CSV file to write; default: print the predictions."),
        scores: bool = Option(False, "--scores", help="Add the decision scores."),
        delimiter: str = delimiter,
        decimal: str = decimal,
        as_json: bool = as_json,
    ) -> None:
        """Predict the rows of a table with a saved model."""

        def run() -> None:
            from .commands import Output, run_predict

            run_predict(model, file, out, delimiter, decimal, scores, Output(as_json))

        _guarded(run, as_json)

    @app.command()
    def info(as_json: bool = as_json) -> None:
        """Versions, threads, and which data sets of the paper are at hand."""

        def run() -> None:
            from .commands import Output, run_info

            run_info(Output(as_json))

        _guarded(run, as_json)

    from .experiments.cli import reproduce

    app.command(epilog="Example: `paretomkl reproduce --quick --jobs 2`, then open `experiments/tables.md`.")(reproduce)
    return app
