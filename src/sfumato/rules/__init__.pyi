"""The names of this package and where they live: the one list, read by people, type checkers and the package itself."""

from sfumato.core.lazy import Kind

from sfumato.rules.hiding.border_based import BorderBased as BorderBased
from sfumato.rules.hiding.confidence_reduction import ConfidenceReduction as ConfidenceReduction
from sfumato.rules.discrimination import DiscriminatingRule as DiscriminatingRule
from sfumato.rules.hiding.exact import ExactHiding as ExactHiding
from sfumato.rules.hiding.greedy import GreedyHiding as GreedyHiding
from sfumato.rules.hiding.base import Hiding as Hiding
from sfumato.rules.mining import Itemsets as Itemsets
from sfumato.rules.mining import Rule as Rule
from sfumato.rules.effects_of_hiding import SideEffects as SideEffects
from sfumato.rules.hiding.support_reduction import SupportReduction as SupportReduction
from sfumato.data.transactions import Transactions as Transactions
from sfumato.rules.discrimination import discriminating as discriminating
from sfumato.rules.hiding.hide import hide as hide
from sfumato.rules.mining import mine as mine
from sfumato.rules.mining import rules as rules
from sfumato.rules.effects_of_hiding import side_effects as side_effects
from sfumato.rules.discrimination import without_discrimination as without_discrimination

NAMES: dict[str, str]
KINDS: dict[str, Kind]
