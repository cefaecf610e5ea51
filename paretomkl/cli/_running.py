"""How commands run: what they print, how they fail, and which options they take."""

import inspect
import json
import os
import shutil
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import wraps
from math import isfinite, isnan
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option
from typer.core import TyperGroup

from .. import __version__
from .._tools.files import FULL, WriteError
from .._tools.wording import counted, joined, literal, nearest
from ..exceptions import GridEdgeWarning, RareLabelWarning, SharingWarning, TaskDataError
from ._interrupts import interrupts

if TYPE_CHECKING:
    from .._tools.typing import Array

UsageError: Any = typer.BadParameter.__base__
ShellError: Any = UsageError.__base__  # the base of all typer errors about options; typer does not export it
Function = Callable[..., None]
Facts = dict[str, object]  # what --json prints


class Commands(TyperGroup):
    """The commands; errors about options look like all other errors: one sentence, or one JSON object."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> Any:
        words = list(sys.argv[1:] if args is None else args)
        options["standalone_mode"] = False
        try:
            code = super().main(words, *rest, **options)
        except ShellError as error:
            if type(error).__name__ == "NoArgsIsHelpError":  # its message is the help text
                typer.echo(error.format_message())
            else:
                fail(_about_usage(error), "--json" in words)
            sys.exit(error.exit_code)
        except OSError as error:  # such as help redirected to a full disk
            _silence()
            fail(str(WriteError.of("Standard output", error)), as_json=False)
            sys.exit(1)
        except (typer.Abort, KeyboardInterrupt):
            typer.echo("Interrupted.", err=True)
            sys.exit(130)
        sys.exit(code if isinstance(code, int) else 0)


def _about_usage(error: Any) -> str:
    """What is wrong with the options, and what the user probably meant."""
    possible = hasattr(error, "option_name") and getattr(error, "possibilities", None)  # of options, not commands
    words = " ".join((error.message if possible else error.format_message()).split()).rstrip(".")
    if possible and (near := nearest(error.option_name, possible)):
        return f"{words}; did you mean {near}?"
    where = getattr(getattr(error, "ctx", None), "command_path", "") or "paretomkl"
    return words if words.endswith("?") else f"{words}; see {where} --help."


app = typer.Typer(
    cls=Commands,
    help="Multi-task multiple kernel learning along the Pareto front.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,  # tables of options need more than 80 columns
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: `paretomkl demo`, then `paretomkl path data.csv --target y`.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """Multi-task multiple kernel learning along the Pareto front."""


def command(
    epilog: str | None = None, resumable: bool = False, options: type | None = None, summary: str | None = None
) -> Callable[[Function], Function]:
    """Turn a function into a command that handles errors and takes the fields of ``options`` as options.

    The list of commands shows ``summary``, at most 60 characters; by default the first sentence of its docstring.
    """

    def register(function: Function) -> Function:
        app.command(epilog=epilog, short_help=summary)(_guarded(_spelt_out(function, options), resumable))
        return function

    return register


def _spelt_out(function: Function, options: type | None) -> Function:
    """Replace the parameter ``options`` by one option for each of its fields: typer has no groups of options."""
    own = dict(inspect.signature(function).parameters)
    if options is None:
        return function
    del own["options"]
    shared = inspect.signature(options).parameters

    @wraps(function)
    def run(**given: Any) -> None:
        function(options=options(**{name: given.pop(name) for name in shared}), **given)

    both = [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in (own | dict(shared)).values()]
    vars(run)["__signature__"] = inspect.Signature(both)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in both}
    return run


def _guarded(function: Function, resumable: bool) -> Function:
    """Turn wrong data into one sentence and exit code 2, an interrupt into exit code 130, and warnings into notes.

    A resumable command keeps its finished parts. So an interrupt says how to go on, and a failed process or cluster
    (RuntimeError) does not need a traceback.
    """
    expected = (ValueError, OSError, ImportError, MemoryError) + (RuntimeError,) * resumable

    @wraps(function)
    def run(**given: Any) -> None:
        as_json = bool(given.get("as_json", False))
        try:
            with warnings.catch_warnings(), _interruptible():
                warnings.showwarning = Notes()
                function(**given)
            sys.stdout.flush()  # fail here if the output goes to a file on a full disk
        except BrokenPipeError:  # the reader of the pipe has closed it, as head does
            _silence()
            raise typer.Exit(0) from None
        except KeyboardInterrupt:
            rest = "run the same command again to continue" if resumable else "nothing was written"
            typer.echo(f"Interrupted; {rest}.", err=True)
            raise typer.Exit(130) from None
        except expected as error:
            if isinstance(error, OSError) and error.errno in FULL:  # the disk is full while printing
                _silence()
                error = WriteError.of("Standard output", error)
                as_json = False  # JSON would go to the same full disk
            fail(_words_of(error), as_json)
            not_theirs = isinstance(error, (RuntimeError, MemoryError, WriteError))
            raise typer.Exit(1 if not_theirs else 2) from None

    return run


@contextmanager
def _interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt in place of an error that took its place."""
    try:
        yield
    except Exception:
        if interrupts.pending:
            raise KeyboardInterrupt from None
        raise
    finally:
        interrupts.handled()


def _words_of(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "Not enough memory: kernels compare all pairs of rows. Use fewer rows, such as --sample 5000."
    return on_the_command_line(error)


def _silence() -> None:
    """Discard all further output, so that Python does not fail when it flushes the rest at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def fail(words: str, as_json: bool) -> None:
    """Print an error in words, and as JSON too if requested."""
    Output(as_json).finish({"error": words})
    typer.echo(_wrapped(f"Error: {words}"), err=True)


def on_the_command_line(said: BaseException) -> str:
    """A warning or an error of the library on one line, with options of the command line instead of parameters."""
    words = str(said)
    if isinstance(said, RareLabelWarning):
        whose = "" if said.task is None else f" of task {str(said.task)!r}"
        few = f"{counted(said.n_samples, 'row')} for {said.n_splits} folds"
        words = f"class {literal(said.label)}{whose} has only {few}; some test sets will have none."
    elif isinstance(said, GridEdgeWarning):
        option = f"--{said.parameter}s"
        chosen = f"The chosen {said.parameter}={said.value:g} is the {said.edge} of {option}"
        words = f"{chosen} and scores better than all others; add {said.beyond:g} to {option}."
    elif isinstance(said, SharingWarning):
        words = f"skipped --share {joined(said.ways)}: {words.partition(': ')[2]}"
    cause = said if isinstance(said, TaskDataError) else said.__cause__
    if isinstance(cause, TaskDataError) and cause.advice:  # it is for programmers
        words = words.replace(cause.advice, "")
    return " ".join(words.split())


class Notes:
    """Shows each warning for users once, in one sentence, and hides warnings for programmers."""

    def __init__(self) -> None:
        self.written: set[str] = set()

    def __call__(self, message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        words = on_the_command_line(message if isinstance(message, Warning) else category(message))
        if issubclass(category, UserWarning) and words not in self.written:  # several folds may give the same warning
            self.written.add(words)
            note(words)


def note(words: str) -> None:
    """Print a note on standard error."""
    sys.stderr.write(_wrapped(f"Note: {words}") + "\n")


def _wrapped(words: str) -> str:
    """Wrap lines between words on a terminal; elsewhere keep one line, which programs can read."""
    if not sys.stderr.isatty():
        return words
    width = shutil.get_terminal_size().columns
    lines = textwrap.fill(words, width, break_long_words=False, break_on_hyphens=False)
    return f"\r\x1b[K{lines}"  # replaces the progress line


class Output:
    """Where a command writes: words for people on standard output, or one JSON object for programs.

    beside: write words to standard error, because standard output holds a table.
    """

    def __init__(self, as_json: bool, beside: bool = False):
        self.as_json = as_json
        self.beside = beside

    def say(self, words: object) -> None:
        if not self.as_json:
            from rich.console import Console

            text, console = isinstance(words, str), Console(highlight=False, stderr=self.beside)
            console.print(words, markup=not text, soft_wrap=text and not console.is_terminal)

    def finish(self, facts: Mapping[str, object]) -> None:
        if self.as_json:
            sys.stdout.write(json.dumps(_plain(facts), default=str, ensure_ascii=False) + "\n")


def _plain(value: object) -> object:
    """Lists and numbers instead of NumPy's; JSON has neither NaN, which becomes None, nor infinity, a text here."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not isfinite(value):
        return None if isnan(value) else str(value)
    return value


def one_blas_thread() -> AbstractContextManager[object]:
    """Within it linear algebra has one thread: ``--jobs`` threads share the work among themselves."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, user_api="blas")


def named(names: Sequence[str], values: "Array") -> dict[str, float]:
    return dict(zip(names, values.tolist(), strict=True))
