"""Encode tables as the estimators do, for other estimators."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._data.labels import Samples
from .._data.reading import Reading, read_samples
from .._tools.public import PublicNames
from .._tools.typing import AnyArray, Array, IntArray
from ..kernels._preparing import Preparation
from ..tables._coding import Coding


class TableEncoder(PublicNames, TransformerMixin, BaseEstimator):
    """Turns a table with text, categories and gaps into numbers, as the estimators of this library do.

    The estimators take such tables themselves, and fit what they learn from them in each fold of a search. This
    transformer gives the same numbers to other estimators.

    - Numbers and booleans stay as they are. A gap gets the median of its column.
    - Ordered categories become ranks 0, 1, ….
    - Text and other categories become one indicator per level, and one for gaps if there are some. A level that
      training did not have gets the shares of the levels in training, with an
      :class:`~paretomkl.exceptions.UnseenLevelWarning`.
    - Columns with hardly any values are left out.
    - Dates, and text with many different values, such as names, are refused.

    Attributes
    ----------
    levels_ : dict
        The levels of each column of text or categories.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : array of shape (n_features,)
        Their names, if they have any.

    Examples
    --------
    >>> import pandas as pd
    >>> from paretomkl import TableEncoder
    >>> table = pd.DataFrame({"age": [30, None, 50], "ward": ["east", "west", "east"]})
    >>> TableEncoder().set_output(transform="pandas").fit_transform(table)
        age  ward=east  ward=west
    0  30.0        1.0        0.0
    1  40.0        0.0        1.0
    2  50.0        1.0        0.0
    """

    _internal = ("kernels", "mixed_names", "reading", "task_column", "preparation_", "ranges_in_", "rows_in_")

    task_column = None
    kernels = "default"  # the rules for X are those of the default bank
    mixed_names = False

    n_features_in_: int
    feature_names_in_: AnyArray
    codings_: dict[str, Coding]

    @property
    def reading(self) -> Reading:
        """How to read X."""
        return Reading()

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn levels and medians.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
        y : object, default=None
            Ignored.

        Returns
        -------
        self : object
        """
        samples = self._read(X, reset=True)
        self.preparation_ = Preparation.of(samples.data, n_levels=samples.n_levels)
        coding = getattr(self, "codings_", {}).get("X")
        self.levels_ = {} if coding is None else dict(coding.levels)
        return self

    def transform(self, X: Any) -> Array:
        """Encode a table.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)

        Returns
        -------
        encoded : array of shape (n_samples, n_encoded), or a frame as set by ``set_output``
        """
        check_is_fitted(self)
        return self.preparation_(self._read(X, reset=False).data)[:, self._columns]

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """The names of the encoded columns: ``"age"``, ``"ward=east"``.

        Parameters
        ----------
        input_features : array-like of str, default=None
            The names of the columns if ``fit`` saw none; by default ``"x0"``, ``"x1"``, ….

        Returns
        -------
        names : array of str
        """
        check_is_fitted(self)
        known = getattr(self, "feature_names_in_", None)
        if input_features is not None and known is not None and list(input_features) != list(known):
            raise ValueError("input_features is not equal to feature_names_in_.")
        given = known if input_features is None else input_features
        names = [f"x{k}" for k in range(self.n_features_in_)] if given is None else [str(name) for name in given]
        if len(names) != self.n_features_in_:
            raise ValueError(f"input_features should have length equal to {self.n_features_in_}, got {len(names)}.")
        for category in self.preparation_.categories:
            levels = self.levels_[names[category.column]]
            own = [*levels, *["missing"] * (category.missing is not None)]
            names += [f"{names[category.column]}={level}" for level in own]
        return np.array([names[k] for k in self._columns], dtype=object)

    @property
    def _columns(self) -> IntArray:
        """The prepared columns that are passed on."""
        wanted = self.preparation_.expanded(np.arange(self.n_features_in_))
        return wanted[~np.isin(wanted, self.preparation_.unused)]

    def _read(self, X: Any, reset: bool) -> Samples:
        if issparse(X):
            raise TypeError("TableEncoder needs a dense X, but X is sparse; sparse columns need no encoding.")
        return read_samples(self, X, reset=reset)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
