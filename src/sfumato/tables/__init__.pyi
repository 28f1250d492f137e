"""The names of this package and where they live: the one list, read by people, type checkers and the package itself."""

from sfumato.tables.system import LinearSystem as LinearSystem
from sfumato.tables.system import SuppressionProblem as SuppressionProblem

NAMES: dict[str, str]
