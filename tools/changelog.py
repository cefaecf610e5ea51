"""Move the sentences of changelog.d/ into CHANGELOG.md.

    python tools/changelog.py                 # shows the section for the next release
    python tools/changelog.py 2026-12-01      # writes it with that date and removes the fragments

The section is for ``paretomkl.__version__`` without its ``.dev`` suffix. Entries that the file already has for that
version stay at the top.
"""

from __future__ import annotations

import re
import sys
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def version(root: Path) -> str:
    """The version to release, read without importing the package."""
    source = (root / "paretomkl" / "__init__.py").read_text("utf-8")
    found = re.search(r'^__version__ = "([\d.]+?)(?:\.dev\d+)?"$', source, re.M)
    if found is None:
        sys.exit("paretomkl/__init__.py doesn't set __version__.")
    return found[1]


def fragments(root: Path) -> list[Path]:
    return sorted(file for file in (root / "changelog.d").glob("*.md") if file.name != "README.md")


def as_item(fragment: Path) -> str:
    """A fragment as a list item: lines after the first are indented; a fragment that is already a list stays one."""
    text = fragment.read_text("utf-8").strip()
    if not text:
        sys.exit(f"{fragment.name} is empty.")
    if text.startswith("- "):
        return text
    return "- " + text.replace("\n", "\n  ")


def assemble(changelog: str, release: str, items: list[str], day: str) -> str:
    """The text of CHANGELOG.md with the items added at the end of this release's section."""
    heading, new = f"## {release} ({day})", "\n".join(items)
    section = re.compile(rf"^## {re.escape(release)} \([^)]*\)\n(.*?)(?=^## |\Z)", re.M | re.S)
    found = section.search(changelog)
    if found is None:  # a new release goes above the others
        before, separator, after = changelog.partition("\n## ")
        return f"{before.rstrip()}\n\n{heading}\n\n{new}\n" + (f"\n## {after}" if separator else "")
    body = f"{found[1].strip()}\n{new}".strip()
    after = changelog[found.end() :]
    return f"{changelog[: found.start()]}{heading}\n\n{body}\n" + (f"\n{after}" if after else "")


def main(arguments: list[str], root: Path = ROOT) -> None:
    files, changelog = fragments(root), root / "CHANGELOG.md"
    items = [as_item(file) for file in files]
    if not arguments:
        print(f"## {version(root)}\n\n" + "\n".join(items))
        return
    day = date.fromisoformat(arguments[0]).isoformat()
    changelog.write_text(assemble(changelog.read_text("utf-8"), version(root), items, day), "utf-8")
    for file in files:
        file.unlink()


if __name__ == "__main__":
    main(sys.argv[1:])
