"""Where the data files lie, how they are downloaded, and whether they are what they should be."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._tables import Table

FOLDER_VARIABLE = "PARETOMKL_DATA"
URL_VARIABLE = "PARETOMKL_DATA_URL"


@dataclass(frozen=True)
class DataFile:
    """One public file.

    path: where it lies below the data folder; url: where it is downloaded from; read: from bytes to a table; n_rows,
    checksum: of that table (`Table.checksum`), so that any copy with the same content will do; any_order: the order of
    the rows is not part of it; sha256: of the bytes at the url (``None`` where they are not known).
    """

    path: str
    url: str
    read: Callable[[bytes], Table]
    n_rows: int
    sha256: str | None
    checksum: str
    any_order: bool = False


def optional(module: str, purpose: str, install: str) -> Any:
    """A library that is imported only where it is used."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{purpose} needs {module}; install it with: pip install {install}") from error


def given_folder(data_home: str | os.PathLike[str] | None) -> tuple[Path, str] | None:
    """The folder the user names, and how; ``None`` where there is only the cache."""
    if data_home is not None:
        return Path(data_home).expanduser(), "data_home"
    variable = os.environ.get(FOLDER_VARIABLE)
    return (Path(variable).expanduser(), FOLDER_VARIABLE) if variable else None


def cache_folder() -> Path:
    """Where downloads are kept: the operating system's folder for caches, below it ``paretomkl``."""
    pooch = optional(
        "pooch", f"Without data_home or {FOLDER_VARIABLE} the data are downloaded, which", "'paretomkl[data]'"
    )
    return Path(pooch.os_cache("paretomkl"))


def read_file(file: DataFile, data_home: str | os.PathLike[str] | None, download: bool) -> Table:
    """The table of a file, from the folder that is named or from the cache, downloaded where it may be."""
    given = given_folder(data_home)
    folder = cache_folder() if given is None else given[0]
    path = folder / file.path
    if path.is_file():
        advice = "Delete it and fetch it again" if given is None else "Delete it and put a sound copy in its place"
        return _checked(file, path, f"{advice}.")
    if given is not None:
        raise FileNotFoundError(
            f"{file.path} is not in {folder}, the folder given by {given[1]}; name a folder that holds it by data_home "
            f"or {FOLDER_VARIABLE}, or give neither to download it."
        )
    if not download:
        raise FileNotFoundError(
            f"{file.path} is not in {folder}, where downloads are kept; call with download=True, or set "
            f"{FOLDER_VARIABLE} to a folder that holds it."
        )
    _download(file, folder)
    try:
        return _checked(file, path, "It came from the network just now and was removed; fetch it again.")
    except ValueError:
        path.unlink()
        raise


def _download(file: DataFile, folder: Path) -> None:
    """Into the folder, by way of a temporary file, so that no half of a file stays behind."""
    pooch = optional("pooch", "Downloading data", "'paretomkl[data]'")
    url, sha256 = file.url, file.sha256
    if base := os.environ.get(URL_VARIABLE):
        # a mirror may hold another copy of the same content: the checksum of the table decides
        url, sha256 = f"{base.rstrip('/')}/{file.path}", None
    try:
        pooch.create(
            path=folder, base_url="", registry={file.path: sha256}, urls={file.path: url}, retry_if_failed=1
        ).fetch(file.path)
    except Exception as error:  # of the network, of the checksum, of the disk: all end the same way
        raise OSError(
            f"Could not download {file.path} from {url} ({error}). Try again, or get the file by other means and set "
            f"{FOLDER_VARIABLE} to the folder that holds {file.path}."
        ) from error


def _checked(file: DataFile, path: Path, advice: str) -> Table:
    try:
        table = file.read(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}. {advice}") from error
    if len(table) != file.n_rows:
        raise ValueError(f"{path} is damaged: it has {len(table)} rows instead of {file.n_rows}. {advice}")
    found = table.checksum(file.any_order)
    if found != file.checksum:
        raise ValueError(
            f"{path} is damaged: it has {file.n_rows} rows as it should, but the checksum of what they say is "
            f"{found[:12]} instead of {file.checksum[:12]}. {advice}"
        )
    return table
