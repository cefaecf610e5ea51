"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def check_writable(file: str | os.PathLike[str]) -> Path:
    """Refuse at once what could not be written in the end."""
    target = Path(file)
    if target.is_dir():
        raise IsADirectoryError(f"{str(target)!r} is a folder; name a file in that directory.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(target.parent)!r} to write {target.name!r} into.")
    return target


def write_whole(file: str | os.PathLike[str], content: str | bytes) -> Path:
    """Write a file beside the target and put it in place once it is complete."""
    target = check_writable(file)
    handle, beside = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with open(handle, "wb") as stream:
            stream.write(content.encode() if isinstance(content, str) else content)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(beside, 0o666 & ~mask)  # as any new file; a temporary one is private
        os.replace(beside, target)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
    return target
