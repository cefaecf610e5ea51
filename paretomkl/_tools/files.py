"""Write files atomically."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Saved:
    """Mark of a class that saved models may contain, for classes that are neither estimators nor dataclasses.

    A file may call the class with any arguments, so creating an object must have no effect beyond the object.
    """


class WriteError(OSError):
    """A file could not be written although permissions allow it, for instance because the disk is full."""

    @classmethod
    def of(cls, what: str, error: OSError) -> WriteError:
        """The system error with the name of the file."""
        why = "the disk is full" if error.errno in FULL else error.strerror or str(error)
        return cls(f"{what} cannot be written: {why}.")


def check_writable(file: str | os.PathLike[str]) -> Path:
    """Raise early if the file cannot be written."""
    target = Path(file)
    if target.is_dir():
        raise IsADirectoryError(f"{str(target)!r} is a folder; name a file in that directory.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(target.parent)!r} to write {target.name!r} into.")
    if not _is_special(target):
        try:
            with tempfile.TemporaryFile(dir=target.resolve().parent):  # more reliable than checking permissions
                pass
        except OSError as error:
            if error.errno in FULL:
                raise WriteError.of(repr(str(target)), error) from error
            raise PermissionError(f"{str(target)!r} cannot be written: {error.strerror}.") from error
    return target


def _is_special(target: Path) -> bool:
    """Whether the target is a pipe or a device, such as standard output, which must not be replaced."""
    return target.exists() and (not target.is_file() or target.parent == Path(os.devnull).parent)


def write_whole(file: str | os.PathLike[str], content: str | bytes) -> Path:
    """Write a temporary file beside the target and move it into place once it is complete."""
    target = check_writable(file)
    whole = content.encode() if isinstance(content, str) else content
    try:
        return _write(target, whole)
    except BrokenPipeError:  # the reader is gone, which is not an error
        raise
    except OSError as error:
        raise WriteError.of(repr(str(target)), error) from error


def _write(target: Path, whole: bytes) -> Path:
    if _is_special(target):
        target.write_bytes(whole)
        return target
    place = target.resolve()  # keeps a link and replaces the file it points to
    handle, beside = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.", suffix=".part")
    try:
        with open(handle, "wb") as stream:
            stream.write(whole)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(beside, 0o666 & ~mask)  # the mode of a new file; temporary files are private
        os.replace(beside, place)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
    return target
