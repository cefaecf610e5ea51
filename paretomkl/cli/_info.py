"""``paretomkl info``."""

import os
from contextlib import suppress
from typing import Annotated

from typer import Option

from .. import __version__
from .._tools.wording import counted
from ._options import AsJson
from ._running import Output, command

PACKAGES = (
    *("numpy", "scipy", "scikit-learn", "numba", "joblib", "pandas", "pyarrow"),
    *("matplotlib", "skops", "cvxpy", "distributed"),
)


@command()
def info(
    warm_up: Annotated[bool, Option("--warm-up", help="Compile now, once per machine, not at first use.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show versions, threads, and which data sets of the paper are on this computer."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from ..datasets import data_found

    output = Output(as_json)
    if warm_up:
        _warm_up(output)
        return
    packages = dict.fromkeys(PACKAGES)
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            packages[name] = version(name)
    data = data_found()
    facts = {
        "paretomkl": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "threads": {name: os.environ[name] for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS") if name in os.environ},
        "packages": packages,
        "data": data,
    }
    rows = {"paretomkl": __version__, "Python": f"{facts['python']} on {facts['system']}, {facts['cores']} cores"}
    rows |= {name: installed or "not installed" for name, installed in packages.items()}
    rows |= {f"data: {name}": str(folder or "not here yet; downloaded when needed") for name, folder in data.items()}
    table = Table(box=SIMPLE_HEAD, show_header=False)
    for row in rows.items():
        table.add_row(*row)
    output.say(table)
    output.finish(facts)


def _warm_up(output: Output) -> None:
    from ._warm_up import warm_up

    compiled, seconds = warm_up()
    fresh = f"Compiled {counted(compiled, 'function')} in {seconds:.0f} s; from now on they load from the cache."
    output.say(fresh if compiled else f"Already compiled; loading took {seconds:.1f} s.")
    output.finish({"compiled": compiled, "seconds": seconds})
