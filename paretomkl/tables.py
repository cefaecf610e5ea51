"""Read, check and encode tables from files, as the command line does."""

from ._tables import Columns, Table, TableError, load_table, read_table

__all__ = ["Columns", "Table", "TableError", "load_table", "read_table"]
