"""The tables: plain frames with one function each, listed in `catalog`.

Every function takes the cells of a sweep and what the report highlights. A cell that was
asked for has its place, also when it is missing; objective and M are then those planned.
"""

from async_rollout.analysis.tables.aggregate import mode_aggregate
from async_rollout.analysis.tables.catalog import TABLES, build_table, build_tables, write_tables
from async_rollout.analysis.tables.headline import summary_headline
from async_rollout.analysis.tables.writing import display

__all__ = [
    "TABLES",
    "build_table",
    "build_tables",
    "display",
    "mode_aggregate",
    "summary_headline",
    "write_tables",
]
