"""Data sets: public ones, from the paper and others, and synthetic tasks whose relevant kernels are known."""

from ._fetch import data_found, fetch, list_datasets
from ._synthetic import make_multitask
from ._views import load_digit_views

__all__ = ["data_found", "fetch", "list_datasets", "load_digit_views", "make_multitask"]
