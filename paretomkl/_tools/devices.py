"""The device that was chosen, if it is there."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

from ..exceptions import DeviceWarning
from .config import get_config


def chosen_device(pays: bool, obstacle: str = "") -> Any:
    """The device of PyTorch to use, or None for the usual code on the CPU.

    ``pays`` says whether a device saves time, which decides under ``device="auto"``. ``obstacle`` says why this problem
    cannot go to a device. If the user has named one, a warning says why it is not used.
    """
    name = get_config()["device"]
    if name == "cpu" or (name == "auto" and (obstacle or not pays)):
        return None
    reason = obstacle or _missing(name)
    if not reason:
        import torch

        return torch.device("cpu" if name == "torch-cpu" else "cuda")
    if name != "auto":
        warnings.warn(DeviceWarning(f"The CPU is used: {reason}.", name, reason), stacklevel=3)
    return None


@cache
def _missing(name: str) -> str:
    """Why there is no such device; empty if there is one."""
    try:
        import torch
    except ImportError:
        return "PyTorch is not installed; install it with: pip install 'paretomkl[gpu]'"
    if name != "torch-cpu" and not torch.cuda.is_available():
        return "PyTorch finds no CUDA device"
    return ""
