"""The description that the package index shows: the README, with links that work there.

The build runs this. An index shows no relative pictures and follows no relative links, so both get the address
`Repository` of [project.urls] in pyproject.toml, at the tag of the version. While no address is given, links become
plain text and pictures are left out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE = r"(?![a-z]+:|#)"  # neither an address nor a heading of the same page
CODE_OR_LINK = re.compile(rf"```.*?```|(!?)\[([^\]]*)\]\({RELATIVE}([^)]+)\)", re.S)


def for_the_index(readme: str, repository: str | None, version: str) -> str:
    """The README with links into the repository, or without relative links."""

    def as_shown(found: re.Match[str]) -> str:
        picture, text, target = found.groups()
        if target is None:  # a block of code
            return found[0]
        if repository:
            return f"{picture}[{text}]({repository.rstrip('/')}/{'raw' if picture else 'blob'}/v{version}/{target})"
        return "" if picture else text

    return CODE_OR_LINK.sub(as_shown, readme)


class IndexPage(MetadataHookInterface):
    """Hatchling calls `update` with the table [project]."""

    def update(self, metadata: dict[str, Any]) -> None:
        readme = (Path(self.root) / "README.md").read_text("utf-8")
        text = for_the_index(readme, metadata["urls"].get("Repository"), metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
