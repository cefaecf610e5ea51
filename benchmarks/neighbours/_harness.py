"""What the scripts of this folder share: read the kernels, time one fit, print one JSON line."""

import json
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version

import numpy as np

Prepare = Callable[[np.ndarray, np.ndarray], tuple[Callable[[], object], str]]


def time_fit(name: str, distribution: str, prepare: Prepare) -> None:
    """Time the fit which ``prepare(Ks, y)`` sets up, on the file named on the command line.

    The file is an ``.npz`` with ``Ks`` of shape (n_kernels, n, n) and ``y`` of shape (n,), +1 or -1. ``prepare``
    returns the fit, a function without arguments, and a note on the settings. Imports and conversions into the
    containers of the package belong in ``prepare``, so that only the fit is timed.
    """
    with np.load(sys.argv[1]) as data:
        Ks, y = data["Ks"], data["y"]
    warnings.simplefilter("ignore")
    fit, note = prepare(Ks, y)
    start = time.perf_counter()
    fit()
    seconds = time.perf_counter() - start
    print(json.dumps({"name": name, "version": version(distribution), "seconds": seconds, "note": note}))
