"""The names of this package and where they live: the one list, read by people, type checkers and the package itself."""

from sfumato.tables.system import LinearSystem as LinearSystem
from sfumato.tables.system import SuppressionProblem as SuppressionProblem
from sfumato.tables.audit.auditing import Audit as Audit
from sfumato.tables.audit.auditing import Break as Break
from sfumato.tables.audit.witnesses import Witnesses as Witnesses
from sfumato.tables.suppression.suppress import Suppression as Suppression
from sfumato.tables.suppression.suppress import suppress as suppress
from sfumato.tables.audit.witnesses import witnesses as witnesses

NAMES: dict[str, str]
