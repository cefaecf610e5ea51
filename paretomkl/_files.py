"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class WriteError(OSError):
    """A file that could be written to by right, and cannot: the disk is full, for instance."""

    @classmethod
    def of(cls, what: str, error: OSError) -> WriteError:
        """The error of the system, with the name of the file."""
        why = "the disk is full" if error.errno in FULL else error.strerror or str(error)
        return cls(f"{what} cannot be written: {why}.")


def check_writable(file: str | os.PathLike[str]) -> Path:
    """Refuse at once what could not be written in the end."""
    target = Path(file)
    if target.is_dir():
        raise IsADirectoryError(f"{str(target)!r} is a folder; name a file in that directory.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(target.parent)!r} to write {target.name!r} into.")
    if not _is_special(target):
        try:
            with tempfile.TemporaryFile(dir=target.resolve().parent):  # asking for permission is no proof of it
                pass
        except OSError as error:
            if error.errno in FULL:
                raise WriteError.of(repr(str(target)), error) from error
            raise PermissionError(f"{str(target)!r} cannot be written: {error.strerror}.") from error
    return target


def _is_special(target: Path) -> bool:
    """A pipe or a device, such as standard output has, which is written to and never replaced."""
    return target.exists() and (not target.is_file() or target.parent == Path(os.devnull).parent)


def write_whole(file: str | os.PathLike[str], content: str | bytes) -> Path:
    """Write a file beside the target and put it in place once it is complete."""
    target = check_writable(file)
    whole = content.encode() if isinstance(content, str) else content
    try:
        return _write(target, whole)
    except BrokenPipeError:  # the reader has gone, which is no fault
        raise
    except OSError as error:
        raise WriteError.of(repr(str(target)), error) from error


def _write(target: Path, whole: bytes) -> Path:
    if _is_special(target):
        target.write_bytes(whole)
        return target
    place = target.resolve()  # a link stays one
    handle, beside = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.", suffix=".part")
    try:
        with open(handle, "wb") as stream:
            stream.write(whole)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(beside, 0o666 & ~mask)  # as any new file; a temporary one is private
        os.replace(beside, place)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
    return target
