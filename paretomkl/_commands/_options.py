"""The options that commands have in common, and what is typed for them."""

import inspect
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from .._parallel import effective_jobs
from .._row_selection import in_words
from .._shares import SHARES, Share
from .._table_files import MAX_ROWS, TableError
from .._wording import nearest, quoted, split_names
from ._running import note

if TYPE_CHECKING:
    from .._judging import Judge
    from .._tables import Table

MOST_NAMED = 12  # columns that a note lists
LARGE = 5000  # rows from which on commands use all cores, unless they are asked not to, and pages have fewer points
SEARCH_ROWS = 3000  # that parameters are chosen on at most, as searches do unless they are asked otherwise
NEW_TASK = "new_task"  # column that marks predictions for tasks a model has not seen
LOSSES = ("squared", "epsilon_insensitive")
ABOUT_KERNELS = (
    "`--kernels` takes `default` (made from the table: linear, quadratic, Gaussians and Laplacians of widths around "
    "the typical distance, on standardised columns), `paper` (linear, quadratic, nine Gaussians), or a list with "
    "parameters after a colon and columns after an @: `linear,rbf:0.5,laplacian:2@age+bmi`.\n\n"
    "`--source 'genes=g_*' --source clinic=age+ward` gives each group of columns default kernels of its own, and shows "
    "what it contributes to predictions."
)
ABOUT_SCORES = (
    "`--scoring` takes `accuracy` (the default), `balanced_accuracy` (the default with `--balanced`), `roc_auc`, "
    "`average_precision`, `f1`, `precision`, `recall`, `f1_macro` or `matthews_corrcoef`; for regression `r2` (the "
    "default), `neg_mean_squared_error`, `neg_root_mean_squared_error`, `neg_mean_absolute_error` or "
    "`explained_variance`: the mean over the tasks, or with `worst_` before the name the lowest score of a task.\n\n"
    "A target with decimals, or with more than 20 different whole numbers, is predicted as a number; "
    "`--classification` takes its values for classes, `--regression` insists on numbers."
)
ABOUT_SHARING = (
    "`--share` says what tasks have in common: `nothing`, the `kernel` (the only way for which p matters), part of "
    "their `function`, or `everything`. Of several, with commas between them, the folds choose; `auto` is all four."
)

# ------------------------------------------------------------------------------------------------ options
TableFile = Annotated[Path, Argument(help="CSV, Parquet, Arrow or NumPy file; - is standard input.")]
Target = Annotated[str, Option("--target", "-y", help="Column that holds the classes, or numbers to predict.")]
Tolerance = Annotated[float, Option(min=1e-8, max=0.5, help="Relative gap to certify at every p.")]
Delimiter = Annotated[str | None, Option(help="Between the columns of a text file; default a comma, in .tsv a tab.")]
Decimal = Annotated[str, Option(help="Decimal point of a text file: a point or a comma.")]
Encoding = Annotated[str | None, Option(help="Of a text file, such as latin-1 or cp1252; default UTF-8.")]
AsJson = Annotated[bool, Option("--json", help="Print one JSON object instead of words.")]


@dataclass(frozen=True)
class Options:
    """What the commands that learn from a table have in common, as typed."""

    task: Annotated[str | None, Option("--task", "-t", help="Column that names the task of each row.")] = None
    kernels: Annotated[str, Option(help="Base kernels, see below.")] = "default"
    source: Annotated[
        list[str] | None, Option(metavar="NAME=PATTERN", help="Group of columns, see below; can be repeated.")
    ] = None
    s: Annotated[float | None, Option("--s", min=1.0, help="Norm of the kernel weights; default: by folds.")] = None
    capacity: Annotated[float | None, Option(min=0.0, help="How much flexible kernels pay; default: by folds.")] = None
    C: Annotated[float | None, Option("--C", min=1e-9, help="Cost of an error; default: by folds.")] = None
    Cs: Annotated[
        str | None, Option("--Cs", help="Values of C to choose from; default: 0.1,1,10,100, for regression 0.01 too.")
    ] = None
    regression: Annotated[
        bool | None,
        Option("--regression/--classification", help="Predict numbers, or classes; default: what the target holds."),
    ] = None
    loss: Annotated[str | None, Option(help="Of a regression: `squared` (the default) or `epsilon_insensitive`.")] = (
        None
    )
    epsilon: Annotated[
        float | None, Option(min=0.0, help="Errors that cost nothing, in standard deviations; default: by folds.")
    ] = None
    categorical: Annotated[str, Option(help="Columns of categories, if they look otherwise; with commas.")] = ""
    drop: Annotated[str, Option(help="Columns to leave out, separated by commas.")] = ""
    scoring: Annotated[str | None, Option(help="Score to choose by and to show, see below.")] = None
    balanced: Annotated[bool, Option("--balanced", help="Weigh the classes of a task alike, however rare.")] = False
    share: Annotated[
        str | None,
        Option(help="What tasks share: `nothing`, `kernel`, `function`, `everything`, several, or `auto`; see below."),
    ] = None
    no_rivals: Annotated[bool, Option("--no-rivals", help="Do not compare with simpler models.")] = False
    impute: Annotated[bool, Option("--impute", help="Fill in what is missing: median or commonest value.")] = False
    drop_missing: Annotated[
        bool, Option("--drop-missing", help="Leave out rows without a target or task, or with other gaps.")
    ] = False
    min_class_rows: Annotated[
        int | None, Option(min=1, help="Leave out classes of a task with fewer rows, and tasks of one class.")
    ] = None
    min_task_rows: Annotated[int | None, Option(min=1, help="Leave out tasks with fewer rows.")] = None
    delimiter: Delimiter = None
    decimal: Decimal = "."
    encoding: Encoding = None
    max_rows: Annotated[int, Option(min=1, help="Refuse tables of more rows.")] = MAX_ROWS
    sample: Annotated[int | None, Option(min=4, help="Draw this many rows at random.")] = None
    seed: Annotated[int, Option(min=0, help="Seed of --sample and of the split.")] = 0
    jobs: Annotated[
        int | None, Option(help="Folds at a time and threads; -1 is all cores; default: 1, for large tables -1.")
    ] = None
    as_json: AsJson = False

    def given(self) -> dict[str, Any]:
        """The options that are not the default."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name)) != field.default}

    def bank(self, table: "Table") -> Any:
        """The kernels for a table; columns that are in no source are noted."""
        from .._kernel_options import OTHERS, parse_kernels, parse_sources

        if not self.source:
            return parse_kernels(self.kernels, table.features)
        if self.kernels != "default":
            raise TableError("--source gives each source the default kernels; leave out --kernels.")
        made, rest = parse_sources(self.source, table)
        if rest:
            named = quoted(rest, MOST_NAMED)
            note(f"what no --source names is one of its own, {OTHERS!r}: {named}; --drop leaves columns out.")
        return made

    def ways(self, table: "Table", default: Sequence[Share]) -> list[Share]:
        """What the tasks of a table may share; a note says so where there are none."""
        if len(set(table.tasks)) > 1:
            return list(default) if self.share is None else parse_ways(self.share)
        if self.share is not None:
            note("--share changes nothing: it takes several tasks (--task) to share something.")
        return ["kernel"]

    @property
    def pays(self) -> bool:
        """Whether kernels pay for their capacity."""
        return self.kernels == "default" or self.capacity is not None

    def searched(self) -> dict[str, Any]:
        """Norm and capacity as a search takes them, those that are given."""
        return {name: value for name in ("s", "capacity") if (value := getattr(self, name)) is not None}

    @property
    def machine(self) -> Any:
        """Of a regression."""
        from ..estimators import machine_of_loss

        return machine_of_loss(self.loss or "squared")

    def check(self) -> None:
        """Refuse what is wrong before the file is read."""
        if self.loss not in (None, *LOSSES):
            near = nearest(self.loss, LOSSES)
            meant = f"; did you mean {near!r}?" if near else "."
            raise TableError(f"--loss is squared or epsilon_insensitive, got {self.loss!r}{meant}")
        if self.epsilon is not None and self.loss != "epsilon_insensitive":
            raise TableError("--epsilon is for --loss epsilon_insensitive.")
        parse_ways(self.share or "auto")
        self.costs()
        effective_jobs(self.jobs)

    def load(self, file: Path, target: str, any_tasks: bool = False) -> "Table":
        """The table, if its target and these options go together; what was left out of it is noted.

        ``any_tasks`` as in :func:`load_table`.
        """
        from .._tables import load_table

        self.check()
        table = load_table(file, target, **self.table_keywords(), any_tasks=any_tasks)
        if table.left_out:
            note(in_words(table.left_out, len(table.y)))
        if table.look_like_ids:
            one = len(table.look_like_ids) == 1
            which = f"{'column' if one else 'columns'} {quoted(table.look_like_ids)}"
            drop = ",".join(table.look_like_ids)
            note(
                f"{which} {'looks like an id' if one else 'look like ids'}: a whole number that is different in every "
                f"row; to learn from the others only, use --drop {shlex.quote(drop)}."
            )
        insisted = "--classification" if table.regression else "--regression"
        if table.regression and self.balanced:
            raise TableError(
                f"--balanced weighs classes, and {target!r} holds numbers; leave it out, or use {insisted}."
            )
        if not table.regression and (self.loss is not None or self.epsilon is not None):
            advice = f"leave them out, or use {insisted}"
            raise TableError(f"--loss and --epsilon are for numbers, and {target!r} holds classes; {advice}.")
        return table

    def jobs_for(self, table: "Table") -> int | None:
        """Folds at a time and threads: of a large table all cores, unless the user has a wish."""
        return -1 if self.jobs is None and len(table.y) > LARGE else self.jobs

    def judge(self, regression: bool) -> "Judge":
        """What models are judged by; accuracy would choose the models that leave rare classes alone."""
        from .._judging import make_judge

        scoring = self.scoring or ("balanced_accuracy" if self.balanced else None)
        return make_judge(scoring, "--scoring", regression)

    def costs(self) -> list[float] | None:
        """Values of C to choose from; None is the default."""
        if self.C is not None:
            return [self.C]
        return None if self.Cs is None else parse_numbers(self.Cs, "--Cs")

    @property
    def class_weight(self) -> str | None:
        """As the estimators take it."""
        return "balanced" if self.balanced else None

    def table_keywords(self) -> dict[str, Any]:
        """The same as :func:`load_table` takes them."""
        parse = {"categorical": split_names, "drop": split_names, "delimiter": parse_delimiter}
        from .._tables import load_table

        known = inspect.signature(load_table).parameters
        return {name: parse.get(name, lambda v: v)(value) for name, value in self.given().items() if name in known}


def parse_delimiter(text: str | None) -> str | None:
    """The shell has no easy way to type a tab."""
    return "\t" if text in ("\\t", "tab") else text


def parse_numbers(text: str, option: str) -> list[float]:
    """Numbers separated by commas; ``inf`` and ``∞`` are infinity."""
    try:
        numbers = [float(part.strip().replace("∞", "inf")) for part in text.split(",") if part.strip()]
    except ValueError:
        raise TableError(f"{option} takes numbers separated by commas, got {text!r}.") from None
    if not numbers:
        raise TableError(f"{option} names no number.")
    return numbers


def parse_ways(text: str) -> list[Share]:
    """Ways to share separated by commas; ``auto`` is all of them."""
    found: list[Share] = []
    for part in text.split(","):
        ways = SHARES if part.strip() == "auto" else [way for way in SHARES if way == part.strip()]
        if not ways:
            near = nearest(part, [*SHARES, "auto"])
            meant = f"; did you mean {near!r}?" if near else "."
            raise TableError(f"--share takes {', '.join(SHARES)} or auto, got {text!r}{meant}")
        found += ways
    return [way for way in SHARES if way in found]
