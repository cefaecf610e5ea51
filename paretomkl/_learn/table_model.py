"""A fitted model of a table: it predicts the raw rows of a table, and describes itself on a card."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._tools.typing import AnyArray, Array
from .._tools.wording import bounded, counted, hint
from ..tables._coding import short
from ..tables._files import TableError
from ..tables._tables import MOST_COLUMNS, Columns, few

if TYPE_CHECKING:
    from pandas import DataFrame as Frame


@dataclass(frozen=True)
class TableModel:
    """A fitted estimator that predicts raw rows, as ``paretomkl fit`` writes it and ``load_model`` reads it.

    Attributes
    ----------
    model : estimator
        The fitted estimator.
    columns : Columns
        The columns of the table that it needs.
    low, high : arrays of shape (n_numbers,)
        The ranges of the columns of numbers in training.
    impute : bool
        Whether gaps are filled in; otherwise they are refused.
    scoring : str or None
        The name of the score that it was chosen by.
    by_task : ScoresByTask or None
        Scores of each task on rows that the models which predicted them had not seen.
    """

    model: Any
    columns: Columns
    low: Array
    high: Array
    impute: bool
    scoring: str | None = None
    by_task: Any = None

    def inputs(self, frame: Frame, file_name: str = "The table") -> Frame:
        """The columns that the model needs, as it was fitted to them; other columns are ignored."""
        columns = self.columns
        if hasattr(frame, "to_pandas"):  # such as one of polars
            frame = frame.to_pandas()
        check_columns(columns, frame, file_name)
        inputs = columns.read(frame)
        for name in columns.inputs:
            missing = int(inputs[name].isna().sum())
            if missing and (name == columns.task or not self.impute):
                advice = "remove those rows" if name == columns.task else "fill the gaps, or fit with --impute"
                raise TableError(f"Column {name!r} has no value in {counted(missing, 'row')}; {advice}.")
        return inputs[[str(name) for name in self.model.feature_names_in_]]

    def predict(self, frame: Frame) -> AnyArray:
        """The predicted classes or numbers of the rows, (n_rows,)."""
        return self.model.predict(self.inputs(frame))

    def decision_function(self, frame: Frame) -> AnyArray:
        """The decisions of the rows, as those of the estimator."""
        return self.model.decision_function(self.inputs(frame))

    def predict_proba(self, frame: Frame) -> AnyArray:
        """The probabilities of the classes, (n_rows, n_classes)."""
        return self.model.predict_proba(self.inputs(frame))

    def card(self, importances: Any = None) -> str:
        """A model card in Markdown: rows per task, parameters, held-out scores with intervals, and what to know.

        ``importances`` are what :func:`~paretomkl.inspection.importance` found, for a section of their own.
        """
        from .card import model_card

        features = self.columns.numbers + self.columns.words
        return model_card(
            self.model, by_task=self.by_task, importances=importances, target=self.columns.target, features=features
        )

    @property
    def classes_(self) -> AnyArray:
        """The classes."""
        return self.model.classes_


def check_columns(columns: Columns, frame: Frame, file_name: str) -> None:
    """Raise if a table does not have the columns that a model needs."""
    absent = [name for name in columns.inputs if name not in frame.columns]
    if absent:
        others = [name for name in frame.columns if name not in columns.inputs]
        said = f"{file_name} has no column {few(absent, 'or')}, which the model needs"
        tips = hint(absent[:MOST_COLUMNS], [short(name) for name in others], "other column")
        raise TableError(bounded(f"{said}; {tips}" if others else f"{said}."))
