"""The names of this package and where they live: the one list, read by people, type checkers and the package itself."""

# what a dataset is
from sfumato.data.schema import Column as Column
from sfumato.data.schema import HierarchySpec as HierarchySpec
from sfumato.data.microdata import Microdata as Microdata
from sfumato.data.schema import Schema as Schema
from sfumato.data.transactions import Transactions as Transactions

# hierarchies
from sfumato.data.hierarchies.hierarchy import Hierarchy as Hierarchy
from sfumato.data.hierarchies.hierarchy_builders import from_cuts as from_cuts
from sfumato.data.hierarchies.hierarchy_builders import from_dates as from_dates
from sfumato.data.hierarchies.hierarchy_builders import from_frequencies as from_frequencies
from sfumato.data.hierarchies.hierarchy_builders import from_intervals as from_intervals
from sfumato.data.hierarchies.hierarchy_builders import from_mask as from_mask
from sfumato.data.hierarchies.hierarchy import from_tree as from_tree
from sfumato.data.hierarchies.hierarchy_builders import from_values as from_values
from sfumato.data.hierarchies.proposed_hierarchy import ProposedHierarchy as ProposedHierarchy
from sfumato.data.schema_edits import write_hierarchy as write_hierarchy

# reading and writing
from sfumato.data.readers.read_result import ReadResult as ReadResult
from sfumato.data.readers.frames import from_frame as from_frame
from sfumato.data.readers.files import read_file as read_file
from sfumato.data.writers import spreadsheet_notices as spreadsheet_notices
from sfumato.data.writers import write_arrow as write_arrow
from sfumato.data.writers import write_csv as write_csv
from sfumato.data.writers import write_file as write_file
from sfumato.data.writers import write_parquet as write_parquet

# looking at a table
from sfumato.data.profiling.profile import Profile as Profile
from sfumato.data.profiling.profile import profile_table as profile_table
from sfumato.data.profiling.suggested_schema import proposal_reasons as proposal_reasons
from sfumato.data.profiling.suggested_schema import starting_schema as starting_schema

# sample data
from sfumato.data.sample import sample_schema as sample_schema
from sfumato.data.sample import sample_table as sample_table
from sfumato.data.sample import write_sample as write_sample

NAMES: dict[str, str]
