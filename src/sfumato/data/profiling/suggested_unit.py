"""Whose data a row is: a proposal from columns that look like identifiers, for the owner to check.

A number that names a person and occurs in several rows says that people have several rows: it becomes the unit. Where every
number of a person occurs once, each record seems to be a unit; that a number of visits or rows does so says nothing. What
different people may share, such as a name or an address, decides nothing, and a column with empty cells names no unit. All of it
is learnt from these rows: the next ones may differ.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sfumato.core.guarantees.loss import RECORD
from sfumato.core.texts import counted
from sfumato.data.profiling.identifier_names import SHARED, numbers_persons, role_by_name
from sfumato.data.profiling.roles import DIRECT, few_repeat, nearly_all_different

if TYPE_CHECKING:
    from sfumato.data.profiling.profile import ColumnProfile

_NUMBERS = {"e-mail address", "UUID", "IBAN", "payment card", "national number"}
_OF_PEOPLE = DIRECT - {"UUID"}
_GROUPS = {"household"}  # words of quasi-identifiers that may as well name a group of people
_MANY, _FEW_ROWS = 20, 100
_CHECK = "learnt from these rows, so please check it"
_EVENLY = 'values that repeat so evenly may name people or households, and then need role = "unit"'
_DIFFERING = 'numbers that differ nearly everywhere are amounts, or number people, and then need role = "unit"'


@dataclass(frozen=True)
class SuggestedUnit:
    """The unit column, `record`, or None where the data do not tell, and why."""

    unit: str | None
    reason: str


def suggest_unit(columns: Sequence[ColumnProfile], declared: Collection[str] = ()) -> tuple[SuggestedUnit, list[ColumnProfile]]:
    """The unit, and the columns with the roles that follow; columns whose role was `declared` keep it."""
    stated = next((column.name for column in columns if column.role == "unit" and column.name in declared), None)
    numbering = [column for column in columns if column.name not in declared and column.most_rows > 1 and _numbers_people(column)]
    candidates = [column for column in numbering if not column.missing]
    gaps = _about_gaps([column for column in numbering if column.missing])
    if stated is not None:
        return SuggestedUnit(stated, "given by the schema"), [_settled(column, declared, None, "") for column in columns]
    if candidates:
        chosen = max(candidates, key=lambda column: (_says_person(column), column.distinct))
        repetition = repeats(chosen)
        others = [f"'{column.name}'" for column in candidates if column is not chosen]
        verb = "repeats" if len(others) == 1 else "repeat"
        also = f"; {', '.join(others)} {verb} too: the unit is whom you want to protect" if others else ""
        reason = f"it looks like an identifier and repeats: {repetition} ({_CHECK}{also}){gaps}"
        return SuggestedUnit(chosen.name, reason), [_settled(column, declared, chosen.name, reason) for column in columns]
    settled = [_settled(column, declared, None, "") for column in columns]
    undecided = [column for column in settled if column.name not in declared]
    said = [column for column in settled if column.name in declared and column.role == "identifier"]
    suggested = _without_column(undecided, said)
    repeating = [f"'{column.name}' ({repeats(column)})" for column in said if column.most_rows > 1 and _says_person(column)]
    named = f"; {', '.join(repeating[:5])} numbers people and repeats" if repeating else ""
    return replace(suggested, reason=suggested.reason + named + gaps), settled


def repeats(column: ColumnProfile) -> str:
    """How often the values of a column occur."""
    rows = round(column.distinct * column.mean_rows)
    average = f"{column.mean_rows:.3g}" if column.mean_rows < 1000 else f"{column.mean_rows:,.0f}"
    return f"{column.distinct:,} different values in {rows:,} rows, {average} rows each on average, at most {column.most_rows:,}"


def _about_gaps(columns: Sequence[ColumnProfile]) -> str:
    """Columns that look like the unit but leave rows without one."""
    named = [f"'{column.name}' ({counted(column.missing, 'row')} without a value)" for column in columns[:5]]
    verb = "looks" if len(columns) == 1 else "look"
    return f"; {', '.join(named)} {verb} like an identifier that repeats, but a unit needs a value in every row" if named else ""


def _without_column(columns: Sequence[ColumnProfile], said: Sequence[ColumnProfile] = ()) -> SuggestedUnit:
    """`record` only where a column is known to name people, none does so twice, and no other column may do so as well; `said` are
    those that the schema calls identifiers."""
    names = [*said, *(column for column in columns if column.role == "identifier")]
    even = [f"'{column.name}' ({repeats(column)})" for column in columns if _repeats_evenly(column)]
    hint = f"; check {', '.join(even[:5])}: {_EVENLY}" if even else ""
    differing = [f"'{column.name}'" for column in columns if _differs_nearly_everywhere(column)]
    hint += f"; check {', '.join(differing[:5])}: {_DIFFERING}" if differing else ""
    if not names:
        flags = [column for column in columns if column.role == "quasi" and _says(column)]
        flagged = f"of the columns named as if they named people ({_listed(flags)}) none has more than two values"
        finding = flagged if flags else "no column was recognised as naming people"
        return SuggestedUnit(None, f"{finding}, so answers protect one record unless the schema names a unit{hint}")
    filled = [column for column in names if not _of_few_rows(column)]
    if (
        not even
        and not differing
        and any(_names_people(column) for column in filled)
        and all(column.most_rows == 1 and not column.missing for column in filled)
    ):
        return SuggestedUnit(RECORD, f"every value of {_listed(filled)} occurs once ({_CHECK}: no person may ever have two rows)")
    return SuggestedUnit(
        None,
        f"there are columns that look like identifiers ({_listed(names)}), and the rows do not tell whether one person has "
        'several: give the column that tells people apart role = "unit", or write unit = "record" if each row is a person of its '
        f"own. Until then private questions are refused{hint}",
    )


def _listed(columns: Sequence[ColumnProfile]) -> str:
    return ", ".join(f"'{column.name}'" for column in columns[:5]) + (" …" if len(columns) > 5 else "")


def _settled(column: ColumnProfile, declared: Collection[str], unit: str | None, reason: str) -> ColumnProfile:
    """A column that was only a candidate names people all the same."""
    if column.name in declared:
        return column
    if column.name == unit:
        return replace(column, role="unit", reason=reason)
    return replace(column, role="identifier") if column.role == "unit" else column


def _repeats_evenly(column: ColumnProfile) -> bool:
    """Many values, each in a few rows, and none in many more than the others: as codes of people are, whatever their name."""
    named = role_by_name(column.name)
    told_otherwise = named is not None and named[1] not in _GROUPS
    if column.role != "quasi" or column.type not in ("string", "integer") or column.patterns or told_otherwise:
        return False
    return column.distinct >= _MANY and 2 <= column.mean_rows <= _FEW_ROWS and column.most_rows <= 3 * column.mean_rows + 5


def _differs_nearly_everywhere(column: ColumnProfile) -> bool:
    """Whole numbers that seem to be amounts, a few of which repeat."""
    if column.role != "quasi" or column.type != "integer" or column.most_rows == 1 or role_by_name(column.name) is not None:
        return False
    return nearly_all_different(column.distinct, round(column.distinct * column.mean_rows))


def _of_few_rows(column: ColumnProfile) -> bool:
    """Empty in most rows, as the number of somebody else is whom a record mentions, such as a contact."""
    return not _says_person(column) and _numbers_people(column) and column.missing > column.distinct * column.mean_rows


def _says(column: ColumnProfile) -> bool:
    """Whether the name says that the values name people."""
    named = role_by_name(column.name)
    return named is not None and named[0] in ("identifier", "unit")


def _names_people(column: ColumnProfile) -> bool:
    """Whether name or values say that people are numbered, and not visits, orders or rows."""
    return _says_person(column) or bool(_OF_PEOPLE & set(column.patterns))


def _numbers_people(column: ColumnProfile) -> bool:
    """True for what belongs to one person or account, unlike names and addresses, which people share."""
    if column.role not in ("identifier", "unit"):
        return False
    named = role_by_name(column.name)
    if named is None or not _says(column):
        return bool(_NUMBERS & set(column.patterns))
    return named[1] not in SHARED and not few_repeat(named[1], column.distinct, round(column.distinct * column.mean_rows))


def _says_person(column: ColumnProfile) -> bool:
    return numbers_persons(column.name)
