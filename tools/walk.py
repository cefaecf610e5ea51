"""Count the modules of the package that a call enters, and the hops between them: ``python tools/walk.py [-v]``.

A hop is a call into another module than that of the function before; compiled functions are not seen. Every call runs
once before it is counted, because some things happen only the first time. ``-v`` lists the modules.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from sklearn.datasets import load_iris

import paretomkl
from paretomkl import ParetoMKLClassifier, ParetoMKLClassifierCV, pareto_path
from paretomkl.report import trade_off_page

ROOT = os.path.dirname(paretomkl.__file__) + os.sep


def walk(call: Callable[[], object]) -> tuple[set[str], int]:
    """The modules that a call enters, by their paths in the package, and the number of hops between them."""
    entered: set[str] = set()
    stack = [""]  # for each function that runs now, the module of the package that it works for
    hops = 0

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal hops
        if event == "call":
            file = frame.f_code.co_filename
            if file.startswith(ROOT):
                entered.add(file[len(ROOT) :])
                hops += stack[-1] != file
            stack.append(file if file.startswith(ROOT) else stack[-1])
        elif event == "return" and len(stack) > 1:
            stack.pop()

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return entered, hops


def calls(folder: Path) -> dict[str, Callable[[], object]]:
    """What is counted, on the iris data; the page is written to the folder."""
    X, y = load_iris(return_X_y=True)
    fitted = ParetoMKLClassifier().fit(X, y)
    return {
        "predict": lambda: fitted.predict(X),
        "fit": lambda: ParetoMKLClassifier().fit(X, y),
        "pareto_path": lambda: pareto_path(X, y, ps=[0.5, 1, 2]),
        "search": lambda: ParetoMKLClassifierCV(cv=2).fit(X, y),
        "page": lambda: trade_off_page(ParetoMKLClassifierCV(), X, y, file=folder / "page.html"),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        for name, call in calls(Path(folder)).items():
            call()
            entered, hops = walk(call)
            print(f"{name:12} {len(entered):3} modules {hops:7} hops")
            if "-v" in sys.argv:
                print("   ", *sorted(entered))
