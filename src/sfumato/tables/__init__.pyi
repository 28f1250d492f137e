"""The names of this package and where they live: the one list, read by people, type checkers and the package itself."""

from sfumato.core.lazy import Kind

from sfumato.tables.contributions import Contributions as Contributions
from sfumato.tables.dimension import Dimension as Dimension
from sfumato.tables.sensitivity import Dominance as Dominance
from sfumato.tables.formats.exchange import ExchangedTable as ExchangedTable
from sfumato.tables.system import LinearSystem as LinearSystem
from sfumato.tables.sensitivity import MinimumFrequency as MinimumFrequency
from sfumato.tables.sensitivity import PPercent as PPercent
from sfumato.tables.sensitivity import PQ as PQ
from sfumato.tables.system import SuppressionProblem as SuppressionProblem
from sfumato.tables.cube import TableCube as TableCube
from sfumato.tables.counting import count_cube as count_cube
from sfumato.tables.formats.cell_rows import cube_of_rows as cube_of_rows
from sfumato.tables.formats.exchange import read_exchange as read_exchange
from sfumato.tables.formats.apriori import with_apriori as with_apriori

NAMES: dict[str, str]
KINDS: dict[str, Kind]
