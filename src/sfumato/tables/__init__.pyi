"""The names of this package and where they live: the one list, read by people, type checkers and the package itself."""

from sfumato.core.lazy import Kind

from sfumato.tables.audit.auditing import Audit as Audit
from sfumato.tables.protection import AuditedTable as AuditedTable
from sfumato.tables.promises import BlanksStayOpen as BlanksStayOpen
from sfumato.tables.audit.auditing import Break as Break
from sfumato.tables.perturbation.cell_keys import CellKeys as CellKeys
from sfumato.tables.contributions import Contributions as Contributions
from sfumato.tables.perturbation.adjustment import ControlledAdjustment as ControlledAdjustment
from sfumato.tables.perturbation.rounding import ControlledRounding as ControlledRounding
from sfumato.tables.perturbation.rounding import ConventionalRounding as ConventionalRounding
from sfumato.tables.dimension import Dimension as Dimension
from sfumato.tables.sensitivity import Dominance as Dominance
from sfumato.tables.formats.exchange import ExchangedTable as ExchangedTable
from sfumato.tables.system import LinearSystem as LinearSystem
from sfumato.tables.sensitivity import MinimumFrequency as MinimumFrequency
from sfumato.tables.promises import MultiplesOf as MultiplesOf
from sfumato.tables.perturbation.noise import NoiseBeforeTabulating as NoiseBeforeTabulating
from sfumato.tables.sensitivity import PPercent as PPercent
from sfumato.tables.sensitivity import PQ as PQ
from sfumato.tables.protection import ProtectedCube as ProtectedCube
from sfumato.tables.published import PublishedTable as PublishedTable
from sfumato.tables.perturbation.rounding import RandomRounding as RandomRounding
from sfumato.tables.perturbation.rounding import SmallCountRounding as SmallCountRounding
from sfumato.tables.audit.witnesses import Witnesses as Witnesses
from sfumato.tables.suppression.suppress import Suppression as Suppression
from sfumato.tables.system import SuppressionProblem as SuppressionProblem
from sfumato.tables.cube import TableCube as TableCube
from sfumato.tables.table_loss import TableLoss as TableLoss
from sfumato.tables.counting import count_cube as count_cube
from sfumato.tables.formats.cell_rows import cube_of_rows as cube_of_rows
from sfumato.tables.protection import audited as audited
from sfumato.tables.protection import protect_cube as protect_cube
from sfumato.tables.cross_tables import crosstab as crosstab
from sfumato.tables.cross_tables import protected_crosstab as protected_crosstab
from sfumato.tables.formats.exchange import read_exchange as read_exchange
from sfumato.tables.suppression.suppress import suppress as suppress
from sfumato.tables.formats.apriori import with_apriori as with_apriori
from sfumato.tables.audit.witnesses import witnesses as witnesses

NAMES: dict[str, str]
KINDS: dict[str, Kind]
