"""Run similar packages on the same kernels, each in its own environment."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent / "neighbours"
NEIGHBOURS = ("mklpy", "himalaya", "multimodallearn")  # <name>.txt and run_<name>.py in that folder
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def run_neighbours(
    Ks: np.ndarray,
    y: np.ndarray,
    workdir: str | os.PathLike,
    python: str = "python3.11",
    names: tuple[str, ...] = NEIGHBOURS,
    timeout: float = 1800.0,
) -> list[dict]:
    """Fit every package once on the given kernels, with one thread each, and time the fit.

    Parameters
    ----------
    Ks : array of shape (n_kernels, n, n)
        Base Gram matrices.
    y : array of shape (n,)
        Labels, +1 or -1.
    workdir : path
        Where the environments live; they are created on first use and kept.
    python : str
        Interpreter that creates the environments.
    names : tuple of str
        Which packages to run.
    timeout : float
        Seconds allowed for one subprocess: an installation or a fit.

    Returns
    -------
    rows : list of dict
        ``{"name", "version", "seconds", "note"}``, or ``{"name", "error"}`` if something failed.
    """
    workdir = Path(workdir).resolve()
    workdir.mkdir(parents=True, exist_ok=True)
    data = workdir / "kernels.npz"
    np.savez(data, Ks=np.asarray(Ks, dtype=float), y=np.asarray(y, dtype=float))
    try:
        return [_run_one(name, data, workdir, python, timeout) for name in names]
    finally:
        data.unlink()


def _run_one(name: str, data: Path, workdir: Path, python: str, timeout: float) -> dict:
    try:
        interpreter = _environment(name, workdir, python, timeout)
        output = _call([interpreter, FOLDER / f"run_{name}.py", data], timeout)
        return json.loads(output.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {"name": name, "error": f"stopped after {timeout:g} seconds"}
    except subprocess.CalledProcessError as failure:
        lines = (failure.stderr or failure.stdout or "").strip().splitlines() or ["no message"]
        return {"name": name, "error": f"exit status {failure.returncode}: {lines[-1]}"}
    except (OSError, ValueError, IndexError) as failure:  # no such interpreter, or no JSON line
        return {"name": name, "error": f"{type(failure).__name__}: {failure}"}


def _environment(name: str, workdir: Path, python: str, timeout: float) -> Path:
    """Interpreter of one package's environment, which is created if it is missing or its requirements changed."""
    folder, requirements = workdir / name, FOLDER / f"{name}.txt"
    interpreter, installed = folder / "bin" / "python", folder / "installed.txt"
    wanted = requirements.read_text()
    if not installed.exists() or installed.read_text() != wanted:
        _call([python, "-m", "venv", "--clear", folder], timeout)
        _call([interpreter, "-m", "pip", "install", "--quiet", "-r", requirements], timeout)
        installed.write_text(wanted)  # last, so a broken installation is retried
    return interpreter


def _call(command: list, timeout: float) -> str:
    environment = os.environ | dict.fromkeys(THREAD_VARIABLES, "1")
    for variable in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"):
        environment.pop(variable, None)
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=timeout, env=environment, check=True
    )
    return done.stdout
