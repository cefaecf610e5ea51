"""Saved models, and their predictions for the rows of a table."""

import json
import warnings
from collections import Counter
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np

from .. import __version__
from .._tools.wording import counted, hint, joined, quoted
from ..exceptions import NewTaskWarning, UntrustedError
from ..tables._files import TableError
from ..tables._tables import Columns, Table
from ._options import NEW_TASK
from ._running import note

MODEL_KIND = "paretomkl model"
MOST_NAMED = 5  # words, tasks and columns that a note lists at most
BLOCK = 2000  # rows predicted at a time
FAR = 1.0  # a number is far outside if it is beyond the training range by more than this many widths of the range


def save_fitted(table: Table, model: Any, out: Path) -> None:
    """Save a pipeline of encoder and model, and the columns it needs."""
    from sklearn.pipeline import make_pipeline

    from .._learn.saving import save_model

    pipeline = make_pipeline(table.encoder, model)
    save_model({"kind": MODEL_KIND, "version": __version__, **vars(table.columns), "model": pipeline}, out)


def columns_of(file: Path) -> Columns | None:
    """The columns that a saved model needs, read from the text in its archive; None if they are not found there.

    Loading a model imports skops, and with it all of scikit-learn. So this is how a table is checked before that.
    """
    try:
        with ZipFile(file) as archive:
            saved = json.loads(archive.read("schema.json"))["content"]
        return Columns(*(_plain(saved[field.name]) for field in fields(Columns)))
    except (BadZipFile, OSError, ValueError, KeyError, TypeError):
        return None


def _plain(node: dict[str, Any]) -> Any:
    """A text, None, or a list of texts, as skops writes them."""
    content = node["content"]
    return [_plain(one) for one in content] if isinstance(content, list) else json.loads(content)


def check_columns(columns: Columns, frame: Frame, file_name: str) -> None:
    """Raise if a table does not have the columns that a model needs."""
    absent = [name for name in columns.inputs if name not in frame.columns]
    if absent:
        others = [name for name in frame.columns if name not in columns.inputs]
        said = f"{file_name} has no column {joined(map(repr, absent), 'or')}, which the model needs"
        raise TableError(f"{said}; {hint(absent, others, 'other column')}" if others else f"{said}.")


@dataclass(frozen=True)
class SavedModel:
    """What ``paretomkl fit`` wrote: a pipeline of encoder and model, and the columns it needs."""

    pipeline: Any
    columns: Columns

    @classmethod
    def load(cls, file: Path) -> "SavedModel":
        from .._learn.saving import load_model
        from ..tables._tables import Columns

        try:
            saved = load_model(file)
        except UntrustedError as error:
            found = quoted(error.types, MOST_NAMED)
            raise TableError(
                f"{file.name} is refused: it holds {found}, which models of `paretomkl fit` never contain and which "
                "could run code written by whoever made the file. None of it was run."
            ) from None
        if not (isinstance(saved, dict) and saved.get("kind") == MODEL_KIND):
            raise TableError(f"{file.name} is a saved model, but `paretomkl fit` did not write it.")
        return cls(saved["model"], Columns(*(saved[field.name] for field in fields(Columns))))

    @property
    def model(self) -> Any:
        return self.pipeline[-1]

    @property
    def regression(self) -> bool:
        from sklearn.base import is_regressor

        return bool(is_regressor(self.model))

    def inputs(self, frame: Frame, file_name: str) -> Frame:
        """The columns of a table that the model needs; a note lists words it has not seen."""
        columns = self.columns
        check_columns(columns, frame, file_name)
        inputs = columns.read(frame)
        imputes = any(
            "simpleimputer" in getattr(part, "named_steps", ()) for _, part, _ in self.pipeline[0].transformers_
        )
        for name in columns.inputs:
            missing = int(inputs[name].isna().sum())
            if missing and (name == columns.task or not imputes):
                advice = "remove those rows" if name == columns.task else "fill the gaps, or fit with --impute"
                raise TableError(f"Column {name!r} has no value in {counted(missing, 'row')}; {advice}.")
        known = self.pipeline[0].named_transformers_["words"][-1].categories_ if columns.words else []
        for name, words in zip(columns.words, known, strict=True):
            new = sorted(set(inputs[name].dropna()) - set(words))
            if new:
                some = quoted(new, MOST_NAMED)
                note(f"column {name!r} has words that the model has not seen and ignores: {some}.")
        return inputs

    def note_far_outside(self, inputs: Frame) -> dict[str, int]:
        """Count the rows with numbers far outside the training range, by column, and print notes about them."""
        if not self.columns.numbers:
            return {}
        scaler = self.pipeline[0].named_transformers_["numbers"][-1]
        found: dict[str, int] = {}
        for name, low, high in zip(self.columns.numbers, scaler.data_min_, scaler.data_max_, strict=True):
            values = inputs[name].to_numpy()
            width = FAR * ((high - low) or abs(low) or 1.0)
            far = (values < low - width) | (values > high + width)
            if not far.any():
                continue
            found[name] = int(far.sum())
            if len(found) <= MOST_NAMED:
                row = int(far.argmax())
                seen = f"{low:g} to {high:g}" if high > low else f"{low:g}"
                where = f"{counted(found[name], 'row')}, such as {values[row]:g} in row {row + 1}"
                note(
                    f"column {name!r} is far outside what the model has seen ({seen}) in {where}; predictions there "
                    "are guesses."
                )
        if len(found) > MOST_NAMED:
            rest = len(found) - MOST_NAMED
            has = "has" if rest == 1 else "have"
            note(f"{counted(rest, 'more column')} {has} numbers far outside what the model has seen.")
        return found

    def answer(self, inputs: Frame, handling: str | None, with_scores: bool) -> "Answers":
        """Predictions for all rows, except rows of unknown tasks if ``handling`` is "refuse"."""
        task, common = self.columns.task, hasattr(self.model, "common_share_")
        if handling == "common" and not common:
            raise TableError(
                "--unknown-tasks common needs a model with a common part (fit --share function), which this one does "
                "not have; use --unknown-tasks mean."
            )
        if task is None and handling is not None:
            raise TableError("--unknown-tasks is for models with tasks, but this one has none; remove it.")
        known = [] if task is None else [str(source) for source in self.model.sources_]
        new = np.zeros(len(inputs), dtype=bool) if task is None else ~inputs[task].isin(known).to_numpy()
        handling = handling or ("common" if common else "refuse")
        if handling == "refuse" and new.all():
            answers = Answers(self, None, None, new, known, handling, inputs)
            raise TableError(answers.refusal() or "")
        labels: Any = np.full(
            len(inputs), np.nan if self.regression else None, dtype=float if self.regression else object
        )
        by_model = ~new if handling in ("refuse", "mean") else np.ones(len(inputs), dtype=bool)
        values = None if self.regression or not with_scores else np.full((len(inputs), self._n_scores), np.nan)
        if by_model.any():
            self._fill(np.flatnonzero(by_model), inputs, labels, values)
        if handling == "mean" and new.any():
            means = np.mean([self._decisions(inputs[new].assign(**{str(task): one})) for one in known], axis=0)
            labels[new] = means[:, 0] if self.regression else self._labels(means)
            if values is not None:
                values[new] = means
        return Answers(self, labels, values, new, known, handling, inputs)

    def _fill(self, rows: Any, inputs: Frame, labels: Any, values: Any) -> None:
        """Predict these rows block by block, with a progress line if it takes long."""
        from .._tools.progress import Progress

        with Progress(len(rows), 0.0, None, "rows") as progress, warnings.catch_warnings():
            warnings.simplefilter("ignore", NewTaskWarning)  # the command prints its own note
            for first in range(0, len(rows), BLOCK):
                some = rows[first : first + BLOCK]
                labels[some] = self.pipeline.predict(inputs.iloc[some])
                if values is not None:
                    values[some] = self._decisions(inputs.iloc[some])
                progress.done(len(some))
                progress.show("predicted")

    @property
    def _n_scores(self) -> int:
        return 1 if len(self.model.classes_) == 2 else len(self.model.classes_)

    def _decisions(self, inputs: Frame) -> Any:
        """Decision scores with one column for two classes and else one per class, or the predicted numbers."""
        decide = self.pipeline.predict if self.regression else self.pipeline.decision_function
        return np.asarray(decide(inputs)).reshape(len(inputs), -1)

    def _labels(self, decisions: Any) -> Any:
        two = decisions.shape[1] == 1
        return self.model.classes_[(decisions[:, 0] > 0).astype(int) if two else decisions.argmax(axis=1)]


@dataclass(frozen=True)
class Answers:
    """Predictions (n_rows,), their scores, and which rows belong to tasks the model has not seen."""

    saved: SavedModel
    labels: Any
    scores: Any
    new: Any
    known: list[str]
    handling: str
    inputs: Frame

    @property
    def name(self) -> str:
        """The name of the column with the predictions."""
        return f"predicted_{self.saved.columns.target}"

    def new_tasks(self) -> dict[str, int]:
        """The number of rows of each task the model has not seen."""
        return dict(Counter(self.inputs[self.saved.columns.task][self.new])) if self.new.any() else {}

    def refusal(self) -> str | None:
        """A message that says which rows have no prediction and what to do; None if all have one."""
        if self.handling != "refuse" or not self.new.any():
            return None
        names, n = list(self.new_tasks()), int(self.new.sum())
        which = f"task {quoted(names)}" if len(names) == 1 else f"tasks {quoted(names, MOST_NAMED)}"
        has = "has" if n == 1 else "have"
        return (
            f"{counted(n, 'row')} of the unknown {which} {has} no prediction; --unknown-tasks mean predicts such rows "
            f"with the mean of the known tasks; {hint(names, self.known, 'known task')}"
        )

    def beside(self, kept: Frame, inputs: Frame) -> Frame:
        """Kept columns, task, prediction and scores, and a column that marks rows of new tasks if there are any."""
        import pandas as pd

        task, target = self.saved.columns.task, self.saved.columns.target
        made: dict[str, Any] = {} if task is None or task in kept.columns else {task: inputs[task].to_numpy()}
        made[self.name] = self.labels
        if self.scores is not None:
            classes = [str(label) for label in self.saved.model.classes_]
            names = classes[1:] if self.scores.shape[1] == 1 else classes
            made |= {f"score: {name}": column for name, column in zip(names, self.scores.T, strict=True)}
        if self.new.any():
            made[NEW_TASK] = self.new
            if self.handling != "refuse":
                self._note_new()
        taken = [name for name in made if name in kept.columns]
        if taken:
            raise TableError(
                f"The table already has a column {taken[0]!r}, which the predictions of {target!r} need; rename it."
            )
        return pd.concat([kept.reset_index(drop=True), pd.DataFrame(made)], axis=1)

    def _note_new(self) -> None:
        everything = getattr(self.saved.model, "share", "") == "everything"
        by = {
            "mean": "the mean decision of the known tasks predicts them",
            "common": f"{'the model of all tasks' if everything else 'what the tasks have in common'} predicts them",
        }[self.handling]
        names = quoted(self.new_tasks(), MOST_NAMED)
        n = int(self.new.sum())
        which = f"{n:,} of {counted(len(self.new), 'row')} {'belongs' if n == 1 else 'belong'} to tasks"
        note(f"{which} the model has not seen, {names}: {by}, and the column {NEW_TASK!r} marks them.")
