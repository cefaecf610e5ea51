"""Install the wheel into a clean environment and use it there, outside the repository.

    python tools/try_wheel.py dist            # a folder with one wheel, or the wheel itself

The Python that runs this script creates the environment, with dependencies from the package index. The script only
needs the standard library, so you can try every Python.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

LIBRARY = """
import sys
import paretomkl
from paretomkl.plotting import ObjectivesDisplay
from sklearn.datasets import load_wine

assert sys.argv[1] in paretomkl.__file__, f"imported from {paretomkl.__file__}, not from the wheel"
X, y = load_wine(return_X_y=True)
path = paretomkl.pareto_path(X, y)
assert (path.gap <= 1e-3).all(), path.gap
ObjectivesDisplay.from_path(path)
model = paretomkl.ParetoMKLClassifier(C=10).fit(X[::2], y[::2])
score = model.score(X[1::2], y[1::2])
assert score > 0.9, score
paretomkl.save_model(model, "model.skops")
assert (paretomkl.load_model("model.skops").predict(X) == model.predict(X)).all()
print(f"library: path of {len(path)} points in {path.n_sweeps} sweeps, accuracy on the other half of wine {score:.3f}")
"""

TABLE = """
from sklearn.datasets import load_wine

table = load_wine(as_frame=True).frame
table["country"] = ["France", "Italy"] * (len(table) // 2)
table.to_csv("wine.csv", index=False)
"""

COMMANDS = (
    ("--version",),
    ("info",),
    ("path", "wine.csv", "--target", "target", "--task", "country", "--out", "wine"),
    ("fit", "wine.csv", "--target", "target", "--task", "country", "--out", "wine.skops"),
    ("predict", "wine.skops", "wine.csv", "--out", "predictions.csv"),
)
WRITTEN = ("wine/page.html", "wine.skops", "predictions.csv")


def wheel_in(place: Path) -> Path:
    """The wheel itself, or the only wheel in a folder."""
    found = sorted(place.glob("*.whl")) if place.is_dir() else [place]
    if len(found) != 1:
        sys.exit(f"{place} should contain one wheel, but has {len(found)}.")
    return found[0].resolve()


def try_wheel(wheel: Path, folder: Path) -> None:
    """Create an environment in the folder, install the wheel with all extras, and run library and commands there."""
    environment = folder / "environment"
    venv.create(environment, with_pip=True)
    programs = environment / ("Scripts" if os.name == "nt" else "bin")
    python = programs / ("python.exe" if os.name == "nt" else "python")
    # no PYTHONPATH: the package must come from the wheel
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    variables |= {"PYTHONUTF8": "1", "MPLBACKEND": "Agg"}

    def run(*command: object) -> None:
        subprocess.run([str(part) for part in command], cwd=folder, env=variables, check=True)

    run(python, "-m", "pip", "install", "--quiet", f"{wheel}[all]")
    run(python, "-m", "pip", "check")
    run(python, "-c", LIBRARY, str(environment.name))
    run(python, "-c", TABLE)
    for options in COMMANDS:
        run(programs / "paretomkl", *options)
    missing = [name for name in WRITTEN if not (folder / name).stat().st_size]
    assert not missing, f"{missing} are empty"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path, help="a wheel, or a folder with one")
    wheel = wheel_in(parser.parse_args().wheel)
    with tempfile.TemporaryDirectory() as folder:
        try_wheel(wheel, Path(folder))
    print(f"{wheel.name} works on Python {sys.version.split()[0]}.")


if __name__ == "__main__":
    main()
