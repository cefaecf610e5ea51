"""The command line: one short function per command."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the ``paretomkl`` command."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError:
        sys.exit("The command line needs typer and rich; install them with: pip install 'paretomkl[cli]'")
    _application()()


def _application():  # type: ignore[no-untyped-def]
    import typer

    app = typer.Typer(
        help="Multi-task multiple kernel learning along the Pareto front.",
        no_args_is_help=True,
        add_completion=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def about() -> None:
        """Multi-task multiple kernel learning along the Pareto front."""

    @app.command()
    def demo(
        samples: int = typer.Option(200, min=20, max=1797, help="How many digits to learn from."),
        C: float = typer.Option(1.0, "--C", min=1e-6, help="Cost of a margin violation."),
        s: float = typer.Option(1.1, "--s", min=1.0, help="Norm of the kernel weights; 1 is sparse."),
        tol: float = typer.Option(1e-3, min=1e-8, max=0.5, help="Relative gap to certify at every p."),
    ) -> None:
        """Trace the Pareto path on scikit-learn's digits: 45 one-vs-one tasks, 11 kernels, 13 exponents."""
        from ._demo import run_demo

        run_demo(samples, C, s, tol)

    return app
