"""Warnings and errors with fields, so that programs need not search their messages.

Convergence has its own: :class:`sklearn.exceptions.ConvergenceWarning` and :class:`paretomkl.solution.RoundingWarning`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

__all__ = [
    "DeviceWarning",
    "GridEdgeWarning",
    "MissingValueWarning",
    "NewTaskWarning",
    "RareLabelWarning",
    "SharingWarning",
    "SourceWarning",
    "TaskDataError",
    "UnlikeTrainingWarning",
    "UnseenLevelWarning",
    "UntrustedError",
]

# All fields have defaults: a process that receives an error from another one first makes it from its message alone.


class DeviceWarning(UserWarning):
    """The device that was asked for is not there or cannot do the work, so the CPU does it.

    Parameters
    ----------
    message : str
        The whole sentence.
    device, reason : str, default=""
        The device, as in :func:`paretomkl.set_config`, and why it is not used.

    Examples
    --------
    >>> import warnings
    >>> from paretomkl.exceptions import DeviceWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", DeviceWarning)
    """

    def __init__(self, message: str, device: str = "", reason: str = ""):
        super().__init__(message)
        self.device, self.reason = device, reason


class RareLabelWarning(UserWarning):
    """A label of a task has fewer samples than there are folds, so some test sets have none.

    Parameters
    ----------
    message : str
        The whole sentence.
    task, label : hashable, default=None
        The task, None if there is only one, and its label.
    n_samples, n_splits : int, default=0
        The number of samples with the label, and the number of folds.

    Examples
    --------
    >>> import warnings
    >>> from paretomkl.exceptions import RareLabelWarning
    >>> from paretomkl.model_selection import MultiTaskStratifiedKFold
    >>> with warnings.catch_warnings(record=True, category=RareLabelWarning) as found:
    ...     _ = MultiTaskStratifiedKFold(5).split([[0]] * 9, ["a"] * 6 + ["b"] * 3)
    >>> found[0].message.label, found[0].message.n_samples
    ('b', 3)
    """

    def __init__(
        self, message: str, task: Hashable = None, label: Hashable = None, n_samples: int = 0, n_splits: int = 0
    ):
        super().__init__(message)
        self.task, self.label, self.n_samples, self.n_splits = task, label, n_samples, n_splits


class GridEdgeWarning(UserWarning):
    """A search chose the first or the last value of its grid, and a value beyond it may be better.

    Parameters
    ----------
    message : str
        The whole sentence.
    parameter : str, default="C"
        The parameter.
    value, beyond : float, default=nan
        The chosen value, and one to try.
    edge : str, default=""
        ``"smallest"`` or ``"largest"``.

    Examples
    --------
    >>> from paretomkl.exceptions import GridEdgeWarning
    >>> GridEdgeWarning("Add 1000 to Cs.", value=100.0, beyond=1000.0, edge="largest").beyond
    1000.0
    """

    def __init__(
        self,
        message: str,
        parameter: str = "C",
        value: float = float("nan"),
        beyond: float = float("nan"),
        edge: str = "",
    ):
        super().__init__(message)
        self.parameter, self.value, self.beyond, self.edge = parameter, value, beyond, edge


class UnlikeTrainingWarning(UserWarning):
    """Samples to predict are unlike what the model has seen, such as values far outside the training range.

    Parameters
    ----------
    message : str
        The whole sentence.
    rows : sequence of int, default=()
        The samples, at most the first thousand.
    columns : sequence, default=()
        The names, or the positions, of the columns.

    Examples
    --------
    >>> import warnings
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl import ParetoMKLClassifier
    >>> from paretomkl.exceptions import UnlikeTrainingWarning
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = ParetoMKLClassifier().fit(X, y)
    >>> X[3, 2] = 140.0  # millimetres, where all others are centimetres
    >>> with warnings.catch_warnings(record=True, category=UnlikeTrainingWarning) as found:
    ...     _ = clf.predict(X)
    >>> found[0].message.rows, found[0].message.columns
    ((3,), (2,))
    """

    def __init__(self, message: str, rows: Sequence[int] = (), columns: Sequence[Hashable] = ()):
        super().__init__(message)
        self.rows, self.columns = tuple(rows), tuple(columns)


class NewTaskWarning(UnlikeTrainingWarning):
    """Some samples belong to tasks that were not in the training data; the common function predicts them.

    Parameters
    ----------
    message : str
        The whole sentence.
    tasks : sequence, default=()
        The new tasks.
    n_samples : int, default=0
        How many samples belong to them.
    rows : sequence of int, default=()
        These samples, at most the first thousand.

    Examples
    --------
    >>> import warnings
    >>> from paretomkl.exceptions import NewTaskWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", NewTaskWarning)
    """

    def __init__(self, message: str, tasks: Sequence[Hashable] = (), n_samples: int = 0, rows: Sequence[int] = ()):
        super().__init__(message, rows)
        self.tasks, self.n_samples = tuple(tasks), n_samples


class SharingWarning(UserWarning):
    """A search leaves out some ways to share, since the data or the folds do not allow them.

    Parameters
    ----------
    message : str
        The whole sentence.
    ways : sequence of str, default=()
        The ways that are left out.
    task : hashable, default=None
        The first task that does not allow them; None if no single task is the reason.

    Examples
    --------
    >>> import warnings
    >>> from paretomkl.exceptions import SharingWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", SharingWarning)
    """

    def __init__(self, message: str, ways: Sequence[str] = (), task: Hashable = None):
        super().__init__(message)
        self.ways, self.task = tuple(ways), task


class SourceWarning(UserWarning):
    """A source of columns is constant or slow, or some columns are in no source.

    Parameters
    ----------
    message : str
        The whole sentence.
    source : str, default=""
        The name of the source.
    columns : sequence, default=()
        The names, or the positions, of columns that no source names.

    Examples
    --------
    >>> import warnings
    >>> from paretomkl import ParetoMKLClassifier, sources
    >>> from paretomkl.exceptions import SourceWarning
    >>> with warnings.catch_warnings(record=True, category=SourceWarning) as found:
    ...     _ = ParetoMKLClassifier(kernels=sources({"a": [0]})).fit([[0.0, 1.0], [1.0, 0.0]], ["a", "b"])
    >>> found[0].message.columns
    (1,)
    """

    def __init__(self, message: str, source: str = "", columns: Sequence[Hashable] = ()):
        super().__init__(message)
        self.source, self.columns = source, tuple(columns)


class MissingValueWarning(UserWarning):
    """Some values of X are missing; the bank of kernels fills them in.

    Parameters
    ----------
    message : str
        The whole sentence.
    n_rows : int, default=0
        How many rows have a gap.
    columns : mapping, default=None
        The number of gaps of each column that has some.
    sources : mapping, default=None
        The number of rows that lack each source that some rows lack altogether.
    share : float, default=0.0
        The share of cells without a value.
    unused : sequence, default=()
        Columns with so few values in training that they are left out.

    Examples
    --------
    >>> import warnings
    >>> from paretomkl import ParetoMKLClassifier
    >>> from paretomkl.exceptions import MissingValueWarning
    >>> X = [[0.0, 1.0], [float("nan"), 2.0], [3.0, 1.0], [4.0, 3.0]]
    >>> with warnings.catch_warnings(record=True, category=MissingValueWarning) as found:
    ...     _ = ParetoMKLClassifier().fit(X, [0, 0, 1, 1])
    >>> found[0].message.n_rows, found[0].message.columns, found[0].message.share
    (1, {0: 1}, 0.125)
    """

    def __init__(
        self,
        message: str,
        n_rows: int = 0,
        columns: Mapping[Hashable, int] | None = None,
        sources: Mapping[str, int] | None = None,
        share: float = 0.0,
        unused: Sequence[Hashable] = (),
    ):
        super().__init__(message)
        self.n_rows, self.share, self.unused = n_rows, share, tuple(unused)
        self.columns, self.sources = dict(columns or {}), dict(sources or {})


class UnseenLevelWarning(UnlikeTrainingWarning):
    """A column of categories has levels that the training data did not have.

    Parameters
    ----------
    message : str
        The whole sentence.
    column : str, default=""
        The name of the column.
    levels : sequence of str, default=()
        The new levels.
    rows : sequence of int, default=()
        The samples that have them, at most the first thousand.

    Examples
    --------
    >>> from paretomkl.exceptions import UnseenLevelWarning
    >>> UnseenLevelWarning("Column 'colour' has a new level.", "colour", ["red"], [3]).levels
    ('red',)
    """

    def __init__(self, message: str, column: str = "", levels: Sequence[str] = (), rows: Sequence[int] = ()):
        super().__init__(message, rows, (column,) if column else ())
        self.column, self.levels = column, tuple(levels)


class TaskDataError(ValueError):
    """A task cannot be learned or predicted, often because a fold lacks some of its classes.

    Parameters
    ----------
    problem : str
        What is wrong.
    advice : str, default=""
        What to change in Python code; the message is both.
    task : hashable, default=None
        The task, None if there is only one.

    Examples
    --------
    >>> from paretomkl import ParetoMKLClassifier
    >>> from paretomkl.exceptions import TaskDataError
    >>> try:
    ...     ParetoMKLClassifier().fit([[0.0], [1.0]], ["a", "a"])
    ... except TaskDataError as error:
    ...     print(error.problem)
    y has only one class, 'a'; a task needs two classes or more.
    """

    def __init__(self, problem: str, advice: str = "", task: Hashable = None):
        super().__init__(f"{problem} {advice}".strip())
        self.problem, self.advice, self.task = problem, advice, task


class UntrustedError(ValueError):
    """A file contains types that a saved model does not need.

    Parameters
    ----------
    message : str
        The whole sentence.
    types : sequence of str, default=()
        The names of these types.

    Examples
    --------
    >>> from paretomkl.exceptions import UntrustedError
    >>> UntrustedError("The file contains os.system.", ["os.system"]).types
    ['os.system']
    """

    def __init__(self, message: str, types: Sequence[str] = ()):
        super().__init__(message)
        self.types = list(types)
