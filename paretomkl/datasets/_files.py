"""Finds, downloads and checks the data files."""

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

    path: its place in the data folder; url: where to download it; read: turns its bytes into a table; n_rows, checksum:
    of that table (`Table.checksum`), so that any copy with the same content is fine; any_order: whether the checksum
    ignores the order of the rows; sha256: of the bytes at the url (``None`` if unknown).
    """

    path: str
    url: str
    read: Callable[[bytes], Table]
    n_rows: int
    sha256: str | None
    checksum: str
    any_order: bool = False


def optional(module: str, purpose: str, install: str) -> Any:
    """Import an optional library, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{purpose} needs {module}; install it with: pip install {install}") from error


def given_folder(data_home: str | os.PathLike[str] | None) -> tuple[Path, str] | None:
    """The folder that the user named, and where they named it; ``None`` if there is only the cache."""
    if data_home is not None:
        return Path(data_home).expanduser(), "data_home"
    variable = os.environ.get(FOLDER_VARIABLE)
    return (Path(variable).expanduser(), FOLDER_VARIABLE) if variable else None


def cache_folder() -> Path:
    """The folder for downloads: ``paretomkl`` in the operating system's cache folder."""
    pooch = optional(
        "pooch", f"Without data_home or {FOLDER_VARIABLE} the data must be downloaded, which", "'paretomkl[data]'"
    )
    return Path(pooch.os_cache("paretomkl"))


def read_file(file: DataFile, data_home: str | os.PathLike[str] | None, download: bool) -> Table:
    """Read the table of a file from the named folder or from the cache, and download it first if allowed."""
    given = given_folder(data_home)
    folder = cache_folder() if given is None else given[0]
    path = folder / file.path
    if path.is_file():
        advice = "Delete it and fetch it again" if given is None else "Replace it with a good copy"
        return _checked(file, path, f"{advice}.")
    if given is not None:
        raise FileNotFoundError(
            f"{file.path} is not in {folder}, the folder given by {given[1]}; set data_home or {FOLDER_VARIABLE} to a "
            "folder that holds it, or use neither to download it."
        )
    if not download:
        raise FileNotFoundError(
            f"{file.path} is not in {folder}, the folder for downloads; use download=True, or set "
            f"{FOLDER_VARIABLE} to a folder that holds it."
        )
    _download(file, folder)
    try:
        return _checked(file, path, "It was just downloaded and has been removed; fetch it again.")
    except ValueError:
        path.unlink()
        raise


def _download(file: DataFile, folder: Path) -> None:
    """Download a file into the folder, via a temporary file, so that no partial file remains."""
    pooch = optional("pooch", "Downloading data", "'paretomkl[data]'")
    url, sha256 = file.url, file.sha256
    if base := os.environ.get(URL_VARIABLE):
        # a mirror may hold another copy of the same content, so only the checksum of the table counts
        url, sha256 = f"{base.rstrip('/')}/{file.path}", None
    try:
        pooch.create(
            path=folder, base_url="", registry={file.path: sha256}, urls={file.path: url}, retry_if_failed=1
        ).fetch(file.path)
    except Exception as error:  # network, checksum or disk: the advice is the same
        raise OSError(
            f"Could not download {file.path} from {url} ({error}). Try again, or get the file in another way and set "
            f"{FOLDER_VARIABLE} to the folder that holds {file.path}."
        ) from error


def _checked(file: DataFile, path: Path, advice: str) -> Table:
    try:
        table = file.read(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}. {advice}") from error
    if len(table) != file.n_rows:
        rows = "row" if len(table) == 1 else "rows"
        raise ValueError(f"{path} is damaged: it has {len(table)} {rows} instead of {file.n_rows}. {advice}")
    found = table.checksum(file.any_order)
    if found != file.checksum:
        raise ValueError(
            f"{path} is damaged: it has the right number of rows ({file.n_rows}), but the checksum of their content is "
            f"{found[:12]} instead of {file.checksum[:12]}. {advice}"
        )
    return table
