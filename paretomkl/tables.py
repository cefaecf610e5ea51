"""Tables in files: read, checked and encoded as the command line does it."""

from ._tables import Columns, Table, TableError, load_table, read_table

__all__ = ["Columns", "Table", "TableError", "load_table", "read_table"]
