"""The options that several commands share, and how to read their values."""

import inspect
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from .._tools.config import CHOICES, set_config
from .._tools.devices import chosen_device
from .._tools.running import effective_jobs
from .._tools.shares import SHARES, Share
from .._tools.wording import WORST, check_score_name, counted, did_you_mean, joined, split_names
from ..tables._files import MAX_ROWS, STANDARD_INPUT, TableError
from ._running import Output, note

if TYPE_CHECKING:
    from .._select.scores import Judge
    from .._select.search import ParetoMKLClassifierCV, ParetoMKLRegressorCV
    from ..kernels._kernels import KernelLike
    from ..machines import MachineKind
    from ..tables._tables import Table

LARGE, LARGE_REGRESSION = 5000, 2500  # rows above which commands use all cores by default, and pages have fewer points
SEARCH_ROWS = 3000  # rows that parameters are chosen on at most, the default of the searches
FOLDS = {"new-tasks": "new tasks", "time": "time"}  # what --cv takes besides a number, and what searches call it
NEW_TASK = "new_task"  # column that marks predictions for tasks the model has not seen
ABOUT_KERNELS = (
    "`--kernels` takes `default` (fitted to the table: linear, quadratic, Gaussians and Laplacians with widths around "
    "the typical distance, on standardised columns), `paper` (linear, quadratic, nine Gaussians), or a list with "
    "parameters after a colon and columns after an @: `linear,rbf:0.5,laplacian:2@age+bmi`.\n\n"
    "`--source 'genes=g_*' --source clinic=age+ward` gives each group of columns its own default kernels and shows "
    "what the group contributes to predictions."
)
ABOUT_SCORES = (
    "`--scoring` takes `accuracy` (the default), `balanced_accuracy` (the default with `--balanced`), `roc_auc`, "
    "`average_precision`, `f1`, `precision`, `recall`, `f1_macro` or `matthews_corrcoef`; for regression `r2` (the "
    "default), `neg_mean_squared_error`, `neg_root_mean_squared_error`, `neg_mean_absolute_error` or "
    "`explained_variance`. The score is the mean over the tasks, or that of the worst task with `worst_` before the "
    "name.\n\n"
    "A target with decimals, or with more than 20 different whole numbers, is predicted as a number; "
    "`--classification` treats its values as classes, `--regression` always predicts numbers."
)
ABOUT_SHARING = (
    "`--share` says what tasks have in common: `nothing`, the `kernel` (the only choice for which p matters), part of "
    "their `function`, or `everything`. Give several, separated by commas, and cross-validation chooses; `auto` means "
    "all four."
)

# ------------------------------------------------------------------------------------------------ options
TableArgument = Annotated[Path, Argument(help="CSV, Parquet, Arrow or NumPy file; - means standard input.")]
Target = Annotated[str, Option("--target", "-y", help="Column with the classes or numbers to predict.")]
Tolerance = Annotated[float, Option(min=1e-8, max=0.5, help="Relative gap to certify at every p.")]
Delimiter = Annotated[str | None, Option(help="Column separator of a text file; default: comma, in .tsv tab.")]
Decimal = Annotated[str, Option(help="Decimal mark in a text file: a point or a comma.")]
Encoding = Annotated[str | None, Option(help="Encoding of a text file, such as latin-1 or cp1252; default: UTF-8.")]
Device = Annotated[
    str | None, Option(help="`cpu` (the default), `cuda`, or `auto`: a GPU for large tables if there is one.")
]
AsJson = Annotated[bool, Option("--json", help="Print one JSON object instead of text.")]


def use_device(name: str | None) -> None:
    """Choose the device for this command, and say so if it is not there."""
    if name is None:
        return
    if name not in CHOICES:
        raise TableError(f"--device takes {joined(CHOICES, 'or')}, got {name!r}{did_you_mean(name, CHOICES)}")
    set_config(device=name)
    chosen_device(pays=True)


@dataclass(frozen=True)
class Options:
    """The options of every command that learns from a table, as typed."""

    task: Annotated[str | None, Option("--task", "-t", help="Column that names the task of each row.")] = None
    group: Annotated[
        str | None,
        Option(help="Column that names the patient, machine … of each row; folds keep its rows together."),
    ] = None
    kernels: Annotated[str, Option(help="Base kernels, see below.")] = "default"
    source: Annotated[
        list[str] | None, Option(metavar="NAME=PATTERN", help="Group of columns, see below; repeatable.")
    ] = None
    s: Annotated[float | None, Option("--s", min=1.0, help="Norm of the kernel weights; default: cross-validated.")] = (
        None
    )
    capacity: Annotated[
        float | None, Option(min=0.0, help="How strongly to penalise flexible kernels; default: cross-validated.")
    ] = None
    C: Annotated[float | None, Option("--C", min=1e-9, help="Cost of an error; default: cross-validated.")] = None
    Cs: Annotated[
        str | None, Option("--Cs", help="Values of C to choose from; default: 0.1,1,10,100, and 0.01 for regression.")
    ] = None
    regression: Annotated[
        bool | None,
        Option("--regression/--classification", help="Predict numbers or classes; default: depends on the target."),
    ] = None
    loss: Annotated[
        str | None,
        Option(help="Loss, such as `hinge` or `squared` for classes, `squared` or `epsilon_insensitive` for numbers."),
    ] = None
    epsilon: Annotated[
        float | None,
        Option(min=0.0, help="Errors up to this many standard deviations cost nothing; default: cross-validated."),
    ] = None
    categorical: Annotated[str, Option(help="Numeric columns that hold categories, separated by commas.")] = ""
    drop: Annotated[str, Option(help="Columns to ignore, separated by commas.")] = ""
    scoring: Annotated[str | None, Option(help="Score to choose by and to show; see below.")] = None
    balanced: Annotated[bool, Option("--balanced", help="Give the classes of a task equal weight.")] = False
    share: Annotated[
        str | None,
        Option(help="What tasks share: `nothing`, `kernel`, `function`, `everything`, several, or `auto`; see below."),
    ] = None
    cv: Annotated[
        str,
        Option(
            "--cv",
            help="Number of cross-validation folds; or `new-tasks`, which leaves whole tasks out, or `time`, which "
            "holds out later rows of each task.",
        ),
    ] = "5"
    time_column: Annotated[
        str | None,
        Option(
            help="Column with the time of each row, which is not an input; default: the rows of a task are in order."
        ),
    ] = None
    no_baselines: Annotated[bool, Option("--no-baselines", help="Do not compare with simpler models.")] = False
    impute: Annotated[bool, Option("--impute", help="Fill gaps in the inputs from the training rows.")] = False
    drop_missing: Annotated[
        bool, Option("--drop-missing", help="Skip rows without a target or task, or with other gaps.")
    ] = False
    min_class_rows: Annotated[
        int | None, Option(min=1, help="Skip classes of a task with fewer rows, and tasks with one class.")
    ] = None
    min_task_rows: Annotated[int | None, Option(min=1, help="Skip tasks with fewer rows.")] = None
    delimiter: Delimiter = None
    decimal: Decimal = "."
    encoding: Encoding = None
    max_rows: Annotated[int, Option(min=1, help="Refuse tables with more rows.")] = MAX_ROWS
    sample: Annotated[int | None, Option(min=4, help="Use only this many rows, drawn at random.")] = None
    seed: Annotated[int, Option(min=0, help="Random seed for --sample and the split.")] = 0
    jobs: Annotated[
        int | None,
        Option(help="Folds to run at a time, and threads; -1 means all cores, the default for large tables."),
    ] = None
    device: Device = None
    as_json: AsJson = False

    def given(self) -> dict[str, Any]:
        """The options whose value is not the default."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name)) != field.default}

    # ------------------------------------------------------------------------------------------ reading
    def load(self, file: Path, target: str, any_tasks: bool = False) -> "Table":
        """Load the table, check that its target fits these options, and print notes about rows and ids.

        Wrong options are refused before the file is read. ``any_tasks`` is the same as in :func:`load_table`.
        """
        from ..tables._tables import few, in_words, load_table

        parse_ways(self.share or "auto")
        self.costs()
        self.folds()
        effective_jobs(self.jobs)
        use_device(self.device)
        self._check_loss()
        table = load_table(file, target, **self.table_keywords(), any_tasks=any_tasks)
        if self.scoring is not None:
            check_score_name(self.scoring.removeprefix(WORST), "--scoring", table.regression)
        self._check_loss(table)
        if table.regression and self.balanced:
            raise TableError(f"--balanced weights classes, but {target!r} is numeric; remove it.")
        if table.left_out:
            note(in_words(table.left_out, len(table.y)))
        if table.look_like_ids:
            one = len(table.look_like_ids) == 1
            which = f"{'column' if one else 'columns'} {few(table.look_like_ids)}"
            drop = shlex.quote(",".join(table.look_like_ids))
            note(
                f"{which} {'looks like an id' if one else 'look like ids'}: a whole number that is different in every "
                f"row; to ignore {'it' if one else 'them'}, use --drop {drop}."
            )
        return table

    def _check_loss(self, table: "Table | None" = None) -> None:
        """Refuse a loss that does not exist, or that is not for the target of the table."""
        if self.loss is None and self.epsilon is None:
            return
        from ..machines import MACHINES  # takes a second

        reads = {"labels", "numbers"} if table is None else {"numbers" if table.regression else "labels"}
        kinds = {kind.loss: kind for kind in MACHINES.values() if kind.reads in reads}
        if self.loss is not None and self.loss not in kinds:
            where = "" if table is None else f" for {'numbers' if table.regression else 'classes'}"
            meant = did_you_mean(self.loss, kinds)
            raise TableError(f"--loss{where} is {joined(kinds, 'or')}, got {self.loss!r}{meant}")
        if self.epsilon is not None and (self.loss is None or "epsilon" not in kinds[self.loss].parameters):
            able = [loss for loss, kind in kinds.items() if "epsilon" in kind.parameters]
            raise TableError(f"--epsilon works only with --loss {joined(able, 'or')}.")

    def table_keywords(self) -> dict[str, Any]:
        """The given options as keywords of :func:`load_table`."""
        from ..tables._tables import load_table

        known = inspect.signature(load_table).parameters
        found = {name: value for name, value in self.given().items() if name in known}
        parse = {"categorical": split_names, "drop": split_names, "delimiter": parse_delimiter}
        return found | {name: parse[name](value) for name, value in found.items() if name in parse}

    def say_read(self, file: Path, table: "Table") -> None:
        """Print how the table was understood: the first line, shown before the libraries that learn are loaded."""
        tasks = [counted(len(set(table.tasks)), "task")] * (table.columns.task is not None)
        inputs = counted(len(table.columns.numbers + table.columns.words), "column")
        kind = "is numeric" if table.regression else f"has {len(set(table.y.tolist())):,} classes"
        size = ", ".join([counted(len(table.y), "row"), *tasks, f"{inputs} to learn from"])
        Output(self.as_json).say(f"Read {called(file)}: {size}; {table.columns.target!r} {kind}.")
        if is_large(table):
            note("so many rows may take minutes; --sample uses a random part of them, --jobs more cores.")

    # ----------------------------------------------------------------------------------------- learning
    def bank(self, table: "Table") -> "KernelLike":
        """The kernels for a table; a note lists the columns that no source names."""
        from ._kernel_options import OTHERS, parse_kernels, parse_sources

        if not self.source:
            kernels = parse_kernels(self.kernels, table.features)
            if isinstance(kernels, str) and kernels == "default":
                return "default"
            from ..kernels._kernels import KernelBank

            return KernelBank(kernels, standardize="range")
        if self.kernels != "default":
            raise TableError("--source gives each source the default kernels; do not use it with --kernels.")
        made, rest = parse_sources(self.source, table)
        if rest:
            from ..tables._tables import few

            note(f"columns that no --source names form the source {OTHERS!r}: {few(rest)}; --drop ignores columns.")
        return made

    def ways(self, table: "Table", default: Sequence[Share]) -> list[Share]:
        """What the tasks of a table may share; a note says if --share has no effect."""
        if len(set(table.tasks)) > 1:
            return list(default) if self.share is None else parse_ways(self.share)
        if self.share is not None:
            note("--share has no effect: it needs several tasks (--task).")
        return ["kernel"]

    def share_among(self, ways: Sequence[Share]) -> Any:
        """``share`` of a search over these ways; unless --share names them, it leaves out those that take too long."""
        if len(ways) == 1:
            return ways[0]
        return "auto" if list(ways) == list(SHARES) and self.share in (None, "auto") else list(ways)

    def folds(self) -> Any:
        """``cv`` of a search: a number, or the name of folds."""
        if self.cv in FOLDS:
            return FOLDS[self.cv]
        if not (self.cv.isdecimal() and int(self.cv) >= 2):
            meant = did_you_mean(self.cv, FOLDS)
            raise TableError(f"--cv takes a number of at least 2, {joined(FOLDS, 'or')}, got {self.cv!r}{meant}")
        return int(self.cv)

    def kind(self, table: "Table") -> "MachineKind":
        """The kind of machine for a table."""
        from ..machines import MACHINES
        from ..machines._base import find_kind

        loss = self.loss or ("squared" if table.regression else "hinge")
        return find_kind(MACHINES, loss, "--loss", reads="numbers" if table.regression else "labels")

    def parameters(self, table: "Table") -> dict[str, Any]:
        """What estimators and searches for a table have in common, as far as it is given."""
        given = {"loss": self.loss, "epsilon": self.epsilon, "class_weight": "balanced" if self.balanced else None}
        given |= {"task_column": table.columns.task}
        return {"verbose": None} | {name: value for name, value in given.items() if value is not None}

    def search(self, table: "Table", **given: Any) -> "ParetoMKLClassifierCV | ParetoMKLRegressorCV":
        """A search for a table; ``given`` parameters come before those of the options."""
        from .._select.search import ParetoMKLClassifierCV, ParetoMKLRegressorCV

        fixed = {"s": self.s, "capacity": self.capacity, "Cs": self.costs(), "n_jobs": self.jobs_for(table)}
        fixed = {name: value for name, value in fixed.items() if value is not None}
        searching = ParetoMKLRegressorCV if table.regression else ParetoMKLClassifierCV
        return searching(**self.parameters(table) | fixed | given)

    def costs(self) -> list[float] | None:
        """Values of C to choose from; None means the default."""
        if self.C is not None:
            return [self.C]
        return None if self.Cs is None else parse_numbers(self.Cs, "--Cs")

    def jobs_for(self, table: "Table") -> int | None:
        """Folds to run at a time, and threads: all cores for a large table, unless --jobs says otherwise."""
        return -1 if self.jobs is None and is_large(table) else self.jobs

    def judge(self, regression: bool) -> "Judge":
        """What judges the models; with --balanced not accuracy, which favours models that ignore rare classes."""
        from .._select.scores import make_judge

        scoring = self.scoring or ("balanced_accuracy" if self.balanced else None)
        return make_judge(scoring, "--scoring", regression)


def called(file: Path) -> str:
    """What messages call a file."""
    return "standard input" if str(file) in STANDARD_INPUT else file.name


def is_large(table: "Table") -> bool:
    """Whether learning from a table takes long enough to use all cores and to save work."""
    return len(table.y) > (LARGE_REGRESSION if table.regression else LARGE)


def parse_delimiter(text: str | None) -> str | None:
    """Accept ``tab`` and ``\\t``, since a tab is hard to type in a shell."""
    return "\t" if text in ("\\t", "tab") else text


def parse_numbers(text: str, option: str) -> list[float]:
    """Parse numbers separated by commas; ``inf`` and ``∞`` mean infinity."""
    try:
        numbers = [float(part.strip().replace("∞", "inf")) for part in text.split(",") if part.strip()]
    except ValueError:
        raise TableError(f"{option} takes numbers separated by commas, got {text!r}.") from None
    if not numbers:
        raise TableError(f"{option} needs at least one number.")
    return numbers


def parse_ways(text: str) -> list[Share]:
    """Parse ways to share separated by commas; ``auto`` means all of them."""
    found: list[Share] = []
    for part in text.split(","):
        ways = SHARES if part.strip() == "auto" else [way for way in SHARES if way == part.strip()]
        if not ways:
            meant = did_you_mean(part, [*SHARES, "auto"])
            raise TableError(f"--share takes {', '.join(SHARES)} or auto, got {text!r}{meant}")
        found += ways
    return [way for way in SHARES if way in found]
