"""Data sets: those of the paper, from their public files, and synthetic tasks whose relevant kernels are known."""

from ._fetch import data_found, fetch, list_datasets
from ._synthetic import make_multitask

__all__ = ["data_found", "fetch", "list_datasets", "make_multitask"]
