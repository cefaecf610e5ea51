"""The configuration: on which device large problems are solved."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from .wording import joined, literal

CHOICES = ("cpu", "cuda", "auto")
DEVICES = (*CHOICES, "torch-cpu")  # the last one is for tests
_VARIABLE = "PARETOMKL_DEVICE"

everywhere: dict[str, str] = {}  # what set_config has set
here: ContextVar[dict[str, str] | None] = ContextVar("paretomkl_config", default=None)  # inside config_context


def get_config() -> dict[str, str]:
    """The current configuration.

    Returns
    -------
    config : dict
        ``device``: see :func:`set_config`.

    Examples
    --------
    >>> import paretomkl
    >>> with paretomkl.config_context(device="auto"):
    ...     paretomkl.get_config()
    {'device': 'auto'}
    """
    return {"device": _checked(os.environ.get(_VARIABLE, "cpu"), _VARIABLE)} | everywhere | (here.get() or {})


def set_config(*, device: str | None = None) -> None:
    """Choose the device for large problems and for predictions, in all threads of this process.

    Parameters
    ----------
    device : {"cpu", "cuda", "auto"}, default=None
        ``"cuda"`` uses an NVIDIA GPU through PyTorch, ``"auto"`` uses one if there is one and if it pays, and
        ``"cpu"`` none. ``"torch-cpu"`` runs the code for GPUs on the CPU; it is slow and meant for tests. None changes
        nothing. At the start, the environment variable ``PARETOMKL_DEVICE`` counts, or ``"cpu"``.

    Examples
    --------
    >>> import paretomkl
    >>> before = paretomkl.get_config()
    >>> paretomkl.set_config(device="auto")
    >>> paretomkl.set_config(**before)
    """
    everywhere.update(_given(device))


@contextmanager
def config_context(*, device: str | None = None) -> Iterator[None]:
    """The same as :func:`set_config`, for the code inside a ``with`` block; other threads are not affected.

    Parameters
    ----------
    device : {"cpu", "cuda", "auto"}, default=None
        See :func:`set_config`.

    Examples
    --------
    >>> import paretomkl
    >>> with paretomkl.config_context(device="cpu"):
    ...     pass
    """
    token = here.set((here.get() or {}) | _given(device))
    try:
        yield
    finally:
        here.reset(token)


def _given(device: str | None) -> dict[str, str]:
    return {} if device is None else {"device": _checked(device, "device")}


def _checked(device: object, name: str) -> str:
    if not isinstance(device, str) or device not in DEVICES:
        raise ValueError(f"{name} must be {joined(map(repr, CHOICES), 'or')}, got {literal(device)}.")
    return device
