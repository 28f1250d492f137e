"""Data: schema and roles, hierarchies, the class table, readers and writers, sample data.

The names below load on first use, so that `import sfumato` stays light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sfumato.core.lazy import from_table

_TABLE: dict[str, str] = {
    # what a dataset is
    "Column": "sfumato.data.schema",
    "HierarchySpec": "sfumato.data.schema",
    "Microdata": "sfumato.data.microdata",
    "Schema": "sfumato.data.schema",
    # hierarchies
    "Hierarchy": "sfumato.data.hierarchy",
    "from_dates": "sfumato.data.hierarchy_builders",
    "from_frequencies": "sfumato.data.hierarchy_builders",
    "from_intervals": "sfumato.data.hierarchy_builders",
    "from_mask": "sfumato.data.hierarchy_builders",
    "from_tree": "sfumato.data.hierarchy_builders",
    "from_values": "sfumato.data.hierarchy_builders",
    # reading and writing
    "ReadResult": "sfumato.data.read_result",
    "from_frame": "sfumato.data.readers_frames",
    "read_file": "sfumato.data.readers",
    "spreadsheet_notices": "sfumato.data.writers",
    "write_arrow": "sfumato.data.writers",
    "write_csv": "sfumato.data.writers",
    "write_file": "sfumato.data.writers",
    "write_parquet": "sfumato.data.writers",
    # looking at a table
    "Profile": "sfumato.data.profile",
    "profile_table": "sfumato.data.profile",
    "starting_schema": "sfumato.data.suggested_schema",
    # sample data
    "sample_schema": "sfumato.data.sample",
    "sample_table": "sfumato.data.sample",
    "write_sample": "sfumato.data.sample",
}

if TYPE_CHECKING:
    from sfumato.data.hierarchy import Hierarchy as Hierarchy
    from sfumato.data.hierarchy_builders import from_dates as from_dates
    from sfumato.data.hierarchy_builders import from_frequencies as from_frequencies
    from sfumato.data.hierarchy_builders import from_intervals as from_intervals
    from sfumato.data.hierarchy_builders import from_mask as from_mask
    from sfumato.data.hierarchy_builders import from_tree as from_tree
    from sfumato.data.hierarchy_builders import from_values as from_values
    from sfumato.data.microdata import Microdata as Microdata
    from sfumato.data.profile import Profile as Profile
    from sfumato.data.profile import profile_table as profile_table
    from sfumato.data.read_result import ReadResult as ReadResult
    from sfumato.data.readers import read_file as read_file
    from sfumato.data.readers_frames import from_frame as from_frame
    from sfumato.data.sample import sample_schema as sample_schema
    from sfumato.data.sample import sample_table as sample_table
    from sfumato.data.sample import write_sample as write_sample
    from sfumato.data.schema import Column as Column
    from sfumato.data.schema import HierarchySpec as HierarchySpec
    from sfumato.data.schema import Schema as Schema
    from sfumato.data.suggested_schema import starting_schema as starting_schema
    from sfumato.data.writers import spreadsheet_notices as spreadsheet_notices
    from sfumato.data.writers import write_arrow as write_arrow
    from sfumato.data.writers import write_csv as write_csv
    from sfumato.data.writers import write_file as write_file
    from sfumato.data.writers import write_parquet as write_parquet

__all__ = sorted(_TABLE)


def __getattr__(name: str) -> Any:
    return from_table(__name__, _TABLE, name)


def __dir__() -> list[str]:
    return sorted(__all__)
