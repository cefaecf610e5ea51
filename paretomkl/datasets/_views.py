"""Handwritten digits as several sources, for examples that need no download."""

from __future__ import annotations

import numpy as np

from .._tools.typing import Array, IntArray

N_DIGITS = 1000


def load_digit_views() -> tuple[dict[str, Array], IntArray]:
    """Load 1000 of scikit-learn's handwritten digits, described by three sources.

    Returns
    -------
    views : dict of arrays of shape (1000, n_columns)
        ``"sums"`` has the sums of the 8 rows and the 8 columns of each image, ``"frequencies"`` the 40 amplitudes of
        its Fourier transform, and ``"noise"`` 40 columns of random numbers.
    y : array of shape (1000,)
        The digits.

    Examples
    --------
    >>> from paretomkl.datasets import load_digit_views
    >>> views, y = load_digit_views()
    >>> {name: view.shape for name, view in views.items()}
    {'sums': (1000, 16), 'frequencies': (1000, 40), 'noise': (1000, 40)}
    """
    from sklearn.datasets import load_digits

    images, y = load_digits(return_X_y=True)
    images = images[:N_DIGITS].reshape(-1, 8, 8)
    views = {
        "sums": np.hstack([images.sum(axis=1), images.sum(axis=2)]),
        "frequencies": np.abs(np.fft.rfft2(images)).reshape(-1, 40),
        "noise": np.random.default_rng(0).random((N_DIGITS, 40)),
    }
    return views, y[:N_DIGITS]
