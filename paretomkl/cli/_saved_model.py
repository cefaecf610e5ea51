"""Saved models, and their predictions for the rows of a table."""

import json
import warnings
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile, ZipFile

import numpy as np

from .._learn.table_model import TableModel
from .._tools.typing import AnyArray, Array
from .._tools.wording import counted, hint, percent, quoted
from ..exceptions import MissingValueWarning, UnlikeTrainingWarning, UntrustedError
from ..tables._coding import Coding
from ..tables._files import TableError
from ..tables._tables import Columns, Table
from ._running import note

if TYPE_CHECKING:
    from pandas import DataFrame as Frame
    from sklearn.base import BaseEstimator

    from .._select.scores import Judge

MOST_NAMED = 5  # words, tasks and columns that a note lists at most
BLOCK = 2000  # rows predicted at a time


def save_fitted(table: Table, model: "BaseEstimator", scoring: str, by_task: Any, out: Path) -> None:
    """Save a model with what is needed to use it on raw rows, and with its scores."""
    from .._learn.saving import save_model

    numbers = table.inputs[table.columns.numbers]
    low, high = numbers.min().to_numpy(), numbers.max().to_numpy()
    save_model(TableModel(model, table.columns, low, high, table.impute, scoring, by_task), out)


def _of_a_frame(model: Any, name: str) -> TableModel:
    """What predicts the rows of a table with an estimator that was fitted to a frame."""
    from .._learn.base import MultiTaskEstimator

    if not isinstance(model, MultiTaskEstimator):
        raise TableError(
            f"{name} holds a {type(model).__name__}, but predict reads models of `paretomkl fit`, and estimators and "
            "searches of paretomkl that save_model wrote."
        )
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        raise TableError(f"The model in {name} was fitted to an array, which names no columns; fit it to a frame.")
    task = getattr(model, "task_column", None)
    if task is None and len(getattr(model, "sources_", [])) > 1:
        raise TableError(
            f"The model in {name} was fitted with tasks=, so no column names the task of a row; fit it with "
            "task_column=."
        )
    task = None if task is None else str(names[task] if isinstance(task, int) else task)
    levels = getattr(model, "codings_", {"X": Coding(())})["X"].levels
    features = [str(one) for one in names if str(one) != task]
    numbers = [one for one in features if one not in levels]
    no_end = np.full(len(numbers), np.inf)
    columns = Columns("", task, numbers, [one for one in features if one in levels])
    return TableModel(model, columns, -no_end, no_end, impute=True)


def columns_of(file: Path) -> Columns | None:
    """The columns that a saved model needs, read from the text in its archive; None if they are not found there.

    Loading a model imports skops, and with it all of scikit-learn. So this is how a table is checked before that.
    """
    try:
        with ZipFile(file) as archive:
            saved = json.loads(archive.read("schema.json"))["content"]["content"]["columns"]["content"]["content"]
        return Columns(*(_plain(saved[field.name]) for field in fields(Columns)))
    except (BadZipFile, OSError, ValueError, KeyError, TypeError):
        return None


def _plain(node: dict[str, Any]) -> Any:
    """A text, None, or a list of texts, as skops writes them."""
    content = node["content"]
    return [_plain(one) for one in content] if isinstance(content, list) else json.loads(content)


def _note_gaps(inputs: "Frame") -> None:
    """Print how many values of the inputs are missing, and in which columns."""
    gaps = inputs.isna()
    if gaps.to_numpy().any():
        which = quoted(gaps.columns[gaps.any()], MOST_NAMED)
        share = percent(float(gaps.to_numpy().mean()))
        note(
            f"{counted(int(gaps.any(axis=1).sum()), 'row')} of {len(gaps):,} have gaps, {share} of all values, which "
            f"the model fills in from what it learned from: {which}."
        )


@dataclass(frozen=True)
class SavedModel(TableModel):
    """A model of a table, with what ``paretomkl predict`` says about its rows."""

    @classmethod
    def load(cls, file: Path) -> "SavedModel":
        """Read a file of ``paretomkl fit``, or one of ``save_model`` if its model was fitted to a frame."""
        from .._learn.saving import load_model

        try:
            saved = load_model(file)
        except UntrustedError as error:
            found = quoted(error.types, MOST_NAMED)
            raise TableError(
                f"{file.name} is refused: it holds {found}, which models of `paretomkl fit` never contain and which "
                "could run code written by whoever made the file. None of it was run."
            ) from None
        model = saved if isinstance(saved, TableModel) else _of_a_frame(saved, file.name)
        return cls(**vars(model))

    @property
    def regression(self) -> bool:
        from sklearn.base import is_regressor

        return bool(is_regressor(self.model))

    @cached_property
    def judge(self) -> "Judge":
        """What judges predictions: the score the model was fitted with."""
        from .._select.scores import make_judge

        return make_judge(self.scoring, regression=self.regression)

    @property
    def known_tasks(self) -> list[str]:
        return [] if self.columns.task is None else [str(source) for source in self.model.sources_]

    # ----------------------------------------------------------------------------------------------- inputs
    def inputs(self, frame: "Frame", file_name: str = "The table") -> "Frame":
        """The columns of a table that the model needs; notes list gaps and words it has not seen."""
        inputs = super().inputs(frame, file_name)
        _note_gaps(inputs)
        codings = getattr(self.model, "codings_", {})
        for name in self.columns.words:
            words = codings["X"].levels[name]
            if new := sorted(set(inputs[name].dropna()) - set(words)):
                note(f"column {name!r} has words that the model has not seen and ignores: {quoted(new, MOST_NAMED)}.")
        return self._with_known_tasks(inputs)

    def _with_known_tasks(self, inputs: "Frame") -> "Frame":
        """The inputs with tasks of the type that the model knows, such as numbers; names of others stay text."""
        task = self.columns.task
        if task is None or all(isinstance(source, str) for source in self.model.sources_):
            return inputs
        known = {str(source): source for source in self.model.sources_}
        return inputs.assign(**{task: [known.get(text, text) for text in inputs[task]]})

    def note_far_outside(self, inputs: "Frame") -> dict[str, int]:
        """Count the rows with numbers far outside the training range, by column, and print notes about them."""
        if not self.columns.numbers:
            return {}
        from .._data.ranges import far_outside  # imported here because it needs SciPy

        known = np.array([self.low, self.high, np.zeros(len(self.low))])
        found = far_outside(inputs[self.columns.numbers].to_numpy(), known)
        for far in found[:MOST_NAMED]:
            note(f"{far.in_words(self.columns.numbers[far.position], 1)}; predictions there are guesses.")
        if len(found) > MOST_NAMED:
            rest = len(found) - MOST_NAMED
            has = "has" if rest == 1 else "have"
            note(f"{counted(rest, 'more column')} {has} numbers far outside what the model has seen.")
        return {self.columns.numbers[far.position]: len(far.rows) for far in found}

    # -------------------------------------------------------------------------------------------- predictions
    def answer(self, inputs: "Frame", handling: str | None, with_scores: bool, proba: bool = False) -> "Answers":
        """Predict the rows; ``handling`` says what to do with rows of new tasks, None means the default."""
        n, scored = len(inputs), with_scores and not self.regression
        labels = np.full(n, np.nan) if self.regression else np.full(n, None, dtype=object)
        scores = np.full((n, 1 if self.two_classes else len(self.model.classes_)), np.nan) if scored else None
        probabilities = np.full((n, len(self.model.classes_)), np.nan) if proba else None
        answers = Answers(self, inputs, labels, scores, self._checked(handling), probabilities)
        if not answers.given.any():
            raise TableError(answers.refusal())
        new = answers.new
        self._predict(inputs, ~new if answers.handling == "mean" else answers.given, answers)
        if answers.handling == "mean" and new.any():
            as_known = [inputs[new].assign(**{str(self.columns.task): task}) for task in self.known_tasks]
            mean = np.mean([self._decisions(rows) for rows in as_known], axis=0)
            labels[new] = self._labels(mean)
            if scores is not None:
                scores[new] = mean
            if probabilities is not None:
                from .._learn.calibration import led_by

                found = np.mean([self.model.predict_proba(rows) for rows in as_known], axis=0)
                probabilities[new] = led_by(found, np.searchsorted(self.model.classes_, labels[new]))
        return answers

    def _checked(self, handling: str | None) -> str:
        common = hasattr(self.model, "common_share_")
        if handling == "common" and not common:
            raise TableError(
                "--unknown-tasks common needs a model with a common part (fit --share function), which this one does "
                "not have; use --unknown-tasks mean."
            )
        if self.columns.task is None and handling is not None:
            raise TableError("--unknown-tasks is for models with tasks, but this one has none; remove it.")
        return handling or ("common" if common else "refuse")

    def _predict(self, inputs: "Frame", chosen: AnyArray, answers: "Answers") -> None:
        """Predict the chosen rows block by block, with a progress line if it takes long."""
        from .._fitting.novelty import FAR, in_words  # imported here because it needs SciPy
        from .._tools.running import Progress

        rows, novelty = np.flatnonzero(chosen), np.zeros(len(chosen))
        with Progress(len(rows), 0.0, None, "rows") as progress, warnings.catch_warnings():
            for own in (MissingValueWarning, UnlikeTrainingWarning):  # the command prints its own notes
                warnings.simplefilter("ignore", own)
            for first in range(0, len(rows), BLOCK):
                some = rows[first : first + BLOCK]
                answers.labels[some] = self.model.predict(inputs.iloc[some])
                if answers.scores is not None:
                    answers.scores[some] = self._decisions(inputs.iloc[some])
                if answers.probabilities is not None:
                    answers.probabilities[some] = self.model.predict_proba(inputs.iloc[some])
                with suppress(AttributeError):  # some models have none, such as those with precomputed kernels
                    novelty[some] = self.model.novelty(inputs.iloc[some])
                progress.done(len(some))
                progress.show("predicted")
        far = (novelty > FAR) & ~inputs.isna().any(axis=1).to_numpy()  # another note names gaps that were filled in
        if far.any():
            note(in_words(novelty, np.flatnonzero(far), 1))

    @property
    def two_classes(self) -> bool:
        return not self.regression and len(self.model.classes_) == 2

    def _decisions(self, inputs: "Frame") -> Array:
        """Decision scores with one column for two classes and else one per class, or the predicted numbers."""
        decide = self.model.predict if self.regression else self.model.decision_function
        return np.asarray(decide(inputs)).reshape(len(inputs), -1)

    def _labels(self, decisions: Array) -> AnyArray:
        if self.regression:
            return decisions[:, 0]
        best = (decisions[:, 0] > 0).astype(int) if self.two_classes else decisions.argmax(axis=1)
        return self.model.classes_[best]


@dataclass(frozen=True)
class Answers:
    """Predictions (n_rows,) for the inputs, and their scores (n_rows, n_scores) and probabilities if requested.

    handling: what happens to rows of tasks the model has not seen: "refuse", "common" or "mean".
    """

    saved: SavedModel
    inputs: "Frame"
    labels: AnyArray
    scores: Array | None
    handling: str
    probabilities: Array | None = None

    @property
    def name(self) -> str:
        """The name of the column with the predictions."""
        return f"predicted_{self.saved.columns.target}" if self.saved.columns.target else "prediction"

    @cached_property
    def tasks(self) -> AnyArray:
        """The task of each row."""
        task = self.saved.columns.task
        return np.full(len(self.inputs), "all rows") if task is None else self.inputs[task].to_numpy()

    @cached_property
    def new(self) -> AnyArray:
        """Which rows belong to tasks the model has not seen."""
        return ~np.isin(self.tasks.astype(str), self.saved.known_tasks) & (self.saved.columns.task is not None)

    @cached_property
    def new_tasks(self) -> dict[str, int]:
        """How many rows these tasks have."""
        return dict(Counter(self.tasks[self.new]))

    @property
    def given(self) -> AnyArray:
        """Which rows have a prediction."""
        return ~self.new if self.handling == "refuse" else np.ones(len(self.new), dtype=bool)

    def refusal(self) -> str:
        """A message that says which rows have no prediction and what to do."""
        names, n = list(self.new_tasks), int(self.new.sum())
        which = f"task {quoted(names)}" if len(names) == 1 else f"tasks {quoted(names, MOST_NAMED)}"
        known = hint(names, self.saved.known_tasks, "known task")
        return (
            f"{counted(n, 'row')} of the unknown {which} {'has' if n == 1 else 'have'} no prediction; --unknown-tasks "
            f"mean predicts such rows with the mean of the known tasks; {known}"
        )
