"""The names of this package and where they live: the one list, read by people, type checkers and the package itself."""

from sfumato.report.content import Answer as Answer
from sfumato.report.content import CardContent as CardContent
from sfumato.report.checklist import checklist as checklist
from sfumato.report.card import release_card as release_card

NAMES: dict[str, str]
