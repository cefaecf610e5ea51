"""The checklist of a release: one line for each check.

    make release-check                                     # all of them
    .venv/bin/python tools/release.py --quick              # only those that take seconds to a minute
    .venv/bin/python tools/release.py --only page demo     # only these

The output of each check is kept in build/release/. The wheel is tried with every supported Python on the path; --python
names others, such as --python ~/python3.14/bin/python3.
"""

from __future__ import annotations

import argparse
import re
import runpy
import shutil
import subprocess
import sys
import time
import tomllib
import zipfile
from collections.abc import Callable
from email import message_from_bytes
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "build" / "release"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
LARGEST_WHEEL = 700_000  # bytes


class Failed(Exception):
    """What is wrong, in a few words."""


def run(log: str, *command: object) -> str:
    """What a command prints, which a log keeps."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    LOGS.mkdir(parents=True, exist_ok=True)
    (LOGS / f"{log}.log").write_text(f"$ {' '.join(words)}\n{done.stdout}", "utf-8")
    if done.returncode:
        raise Failed(f"see {LOGS.relative_to(ROOT)}/{log}.log")
    return done.stdout


def built(ending: str) -> Path:
    """The wheel or the source distribution in dist/."""
    found = sorted((ROOT / "dist").glob(f"*{ending}"))
    if len(found) != 1:
        raise Failed(f"dist/ has {len(found)} files *{ending}; make package builds one")
    return found[0]


def last_line_of_pytest(output: str) -> str:
    return re.findall(r"\d+ passed.*", output)[-1].strip(" =")


# -- the checks


def version() -> str:
    """A version to release, committed, not tagged elsewhere; `files` checks that all files name the same one."""
    number = runpy.run_path(str(ROOT / "paretomkl" / "__init__.py"))["__version__"]
    if not re.fullmatch(r"\d+\.\d+\.\d+", number):
        raise Failed(f"{number} is not a release")
    if run("version", "git", "status", "--porcelain"):
        raise Failed("some changes are not committed; see build/release/version.log")
    if run("version", "git", "tag", "--list", f"v{number}", "--no-contains", "HEAD"):
        raise Failed(f"another commit has the tag v{number}")
    return number


def files() -> str:
    """Changelog, citation, recipe, workflows and contents of the package."""
    python = sys.executable
    return last_line_of_pytest(run("files", python, "-m", "pytest", "-m", "not slow", "tests/test_project.py"))


def lint() -> str:
    run("lint", "make", "lint")
    return "ruff, mypy, codespell"


def package() -> str:
    """Build wheel and source distribution, and check their metadata and contents."""
    run("package", "make", "package")
    wheel, sources = built(".whl"), built(".tar.gz")
    if wheel.stat().st_size > LARGEST_WHEEL:
        raise Failed(f"{wheel.name} has {wheel.stat().st_size / 1e6:.2f} MB, more than {LARGEST_WHEEL / 1e6:.2f} MB")
    return ", ".join(f"{file.name} {file.stat().st_size / 1e6:.2f} MB" for file in (wheel, sources))


def page() -> str:
    """The page on the package index: it can be rendered, and no link or picture is relative."""
    from readme_renderer import markdown

    wheel = built(".whl")
    with zipfile.ZipFile(wheel) as archive:
        metadata = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        message = message_from_bytes(archive.read(metadata))
    html = markdown.render(message.get_payload(decode=True).decode("utf-8"))
    if not html:
        raise Failed("the description cannot be rendered")
    relative = re.findall(r'(?:href|src)="(?!https?:|#)([^"]*)"', html)
    if relative:
        raise Failed(f"relative links: {', '.join(relative)}")
    addresses = [entry.partition(", ")[0] for entry in message.get_all("Project-URL", [])]
    return f"{len(html)} characters of HTML; addresses: {', '.join(addresses)}"


def demo() -> str:
    start = time.perf_counter()
    run("demo", "make", "demo")
    return f"{time.perf_counter() - start:.0f} s"


def doc() -> str:
    run("doc", "make", "doc")
    return "no warnings"


def tests() -> str:
    return last_line_of_pytest(run("tests", "make", "test-all"))


def oldest() -> str:
    return last_line_of_pytest(run("oldest", "make", "test-oldest"))


def wheel(pythons: list[str]) -> str:
    """Library and commands from the wheel, in a fresh environment for each Python."""
    supported = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    tried = []
    for python in [*pythons, *(found for name in supported if (found := shutil.which(f"python{name}")))]:
        asked = subprocess.run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True)
        name = asked.stdout.decode().strip()
        if name and name not in tried:
            run(f"wheel-{name}", python, ROOT / "tools" / "try_wheel.py", built(".whl"))
            tried.append(name)
    missing = [name for name in supported if name not in tried]
    if missing:
        raise Failed(f"tried on {', '.join(tried)}; name a Python {', '.join(missing)} with --python")
    return f"Python {', '.join(tried)}"


QUICK = (version, files, lint, package, page, demo)
LONG = (doc, tests, oldest, wheel)


def checked(check: Callable[..., str], *arguments: object) -> bool:
    """Run one check and print its line."""
    print(f"{check.__name__:9}", end="", flush=True)
    try:
        print(f"OK      {check(*arguments)}")
    except Failed as reason:
        print(f"failed  {reason}")
        return False
    return True


def main() -> int:
    names = {check.__name__: check for check in QUICK + LONG}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--quick", action="store_true", help="without " + ", ".join(check.__name__ for check in LONG))
    which.add_argument("--only", nargs="+", choices=names, metavar="CHECK", help=", ".join(names))
    parser.add_argument("--python", action="append", default=[], help="also try the wheel with this Python")
    options = parser.parse_args()
    chosen = [names[name] for name in options.only] if options.only else QUICK if options.quick else QUICK + LONG
    passed = [checked(check, *([options.python] if check is wheel else [])) for check in chosen]
    print(f"{sum(passed)} of {len(passed)} checks OK.")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
