"""Read, check and encode tables from files, as the command line does."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._tables import Columns, Table, TableError, load_table, read_table

__all__ = ["Columns", "Table", "TableError", "load_table", "read_table"]

if not TYPE_CHECKING:  # otherwise type checkers would accept any name

    def __getattr__(name: str) -> Any:
        """Import names on first use: the command line reads its options without NumPy."""
        if name in __all__:
            from . import _tables

            return getattr(_tables, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
