"""A schema to start from, written from a profile for the owner to edit.

Roles are suggestions; types, bounds and domains are marked `source = "data"`, because what is learnt from the data
is not yet declared; hierarchies are chosen by the kind of value. Where a proposal goes beyond the type of the values, it has
a reason, which the command prints and the schema has as a comment.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from sfumato.core.errors import MissingColumn, all_at_once
from sfumato.core.texts import nearest, percent
from sfumato.data.profiling.identifier_names import names_postcodes
from sfumato.data.profiling.profile import MOST_CODES, ColumnProfile, Profile
from sfumato.data.profiling.suggested_intervals import CROWDED, nested_widths
from sfumato.data.schema import Column, HierarchySpec, Schema, Type

#: What is said of a column that might identify people and is published as it is because its owner said so.
PLAIN_BY_DECISION = (
    "WARNING. Published as it is, because its owner left it out of the quasi-identifiers; whoever knows its value of somebody "
    "can use it to find them"
)
_ROWS_PER_CODE = 5  # on average: in a small table few values say little
_AS_FLAGS_HAVE = 2
_POSTCODE, _CLEAR = "postcode", 0.8  # a kind of value, and the share of values that settles the matter
#: Digits, digits and letters, letters and digits with a gap, nine digits: characters of the usual kinds of postcodes.
_POSTCODE_WIDTHS = (5, 7, 8, 10)
_MOST_DIGITS = 7
_DIGITS = (10, 100, 1000, 10_000)  # masking a digit of a number


def starting_schema(profile: Profile, dataset: str, quasi: Collection[str] | None = None) -> Schema:
    """Suggested roles, what the data show, and a hierarchy for every quasi-identifier. With `quasi` its owner decided which
    columns are generalised: the other suggested ones are published as they are."""
    columns = {column.name: _column(column) for column in with_quasi(profile, quasi).columns}
    for name, codes in profile.reading.codes.items():
        columns[name] = columns[name].model_copy(update={"missing": codes})
    alone = profile.unit == "record" and all(column.role != "unit" for column in columns.values())
    return Schema(dataset=dataset, unit="record" if alone else None, columns=columns, read=profile.reading.reading)


def with_quasi(profile: Profile, quasi: Collection[str] | None) -> Profile:
    """The profile with the quasi-identifiers that its owner decided on."""
    if quasi is None:
        return profile
    names = [column.name for column in profile.columns]
    unknown = [f"there is no column '{name}'{nearest(name, names)}" for name in quasi if name not in names]
    all_at_once(MissingColumn, "quasi", unknown)
    return replace(profile, columns=tuple(_decided(column, quasi) for column in profile.columns), quasi=tuple(quasi))


def _decided(column: ColumnProfile, quasi: Collection[str]) -> ColumnProfile:
    if column.name in quasi:
        return replace(column, role="quasi", reason=column.reason if column.role == "quasi" else "its owner decided so")
    if column.role != "quasi":
        return column
    return replace(column, role="plain", reason=PLAIN_BY_DECISION)


def role_reasons(profile: Profile, quasi: Collection[str] | None = None) -> dict[str, str]:
    """Why each column has its role, and why it is read otherwise than its values alone suggest; no values of records."""
    shown = with_quasi(profile, quasi)
    also = proposal_reasons(shown)
    return {
        column.name: f"{column.role}: {column.reason}" + (f". Also: {also[column.name]}" if column.name in also else "")
        for column in shown.columns
    }


def proposal_reasons(profile: Profile) -> dict[str, str]:
    """Why the starting schema reads a column otherwise than its values alone suggest, by column; no values of records."""
    reasons = {column.name: _reason(column) for column in profile.columns}
    return {name: reason for name, reason in reasons.items() if reason}


def _column(column: ColumnProfile) -> Column:
    if not _are_postcodes(column) and _are_codes(column):
        ordered = column.distinct > _AS_FLAGS_HAVE  # numbers have an order, and two values need none
        return Column(
            role=column.role,
            type="category",
            domain=None if ordered else column.domain,
            order=column.domain if ordered else None,
            source="data",
            hierarchy=HierarchySpec(flat=True),
        )
    kind = _proposed_type(column)
    numeric = kind in ("integer", "number")
    bounds = None
    if numeric and isinstance(column.smallest, (int, float)) and isinstance(column.largest, (int, float)):
        bounds = (float(column.smallest), float(column.largest)) if column.role not in ("identifier", "unit") else None
    domain = column.domain if column.role in ("quasi", "sensitive") and not numeric else None
    hierarchy = _hierarchy(column) if column.role == "quasi" else None
    with_numbers = hierarchy is not None and hierarchy.has_numbers
    learnt = column.learnt or kind != column.type or bounds is not None or domain is not None or with_numbers
    return Column(
        role=column.role,
        type=kind,
        bounds=bounds,
        domain=domain,
        source="data" if learnt else "declared",
        hierarchy=hierarchy,
    )


def _are_codes(column: ColumnProfile) -> bool:
    """Few whole numbers, each in several rows. Only those that an outsider may know are masked and linked as categories; a
    sensitive number stays one, so that it can be averaged."""
    return (
        column.role == "quasi"
        and column.type in ("integer", "number")
        and column.domain is not None
        and _AS_FLAGS_HAVE <= column.distinct <= MOST_CODES
        and column.mean_rows >= _ROWS_PER_CODE
    )


def _are_postcodes(column: ColumnProfile) -> bool:
    """By the column's name, or by what its texts look like; digits of numbers say little alone."""
    named, digits = names_postcodes(column.name), column.type == "integer" and _digits(column) is not None
    looks = column.type == "string" and column.patterns.get(_POSTCODE, 0.0) >= _CLEAR
    return column.role == "quasi" and (looks or named and (digits or column.type == "string" and _width(column) is not None))


def _digits(column: ColumnProfile) -> tuple[int, ...] | None:
    """How many digits the numbers of a column have, where postcodes have as many."""
    inside = column.lengths and _POSTCODE_WIDTHS[0] - 2 <= column.lengths[0] and column.lengths[-1] <= _MOST_DIGITS
    return column.lengths if inside and float(column.smallest or 0) >= 0 else None


def _width(column: ColumnProfile) -> int | None:
    """The one length of all values; of different ones that of the longest kind of postcode that they may be."""
    if len(column.lengths) == 1:
        return column.lengths[0]
    return next((width for width in _POSTCODE_WIDTHS if column.lengths and column.lengths[-1] <= width), None)


def _zeros_lost(column: ColumnProfile) -> bool:
    return column.type == "integer" and len(column.lengths) > 1


def _proposed_type(column: ColumnProfile) -> Type:
    """Postcodes are texts, as long as their numbers have all digits."""
    return "string" if _are_postcodes(column) and not _zeros_lost(column) else column.type


def _by_quantiles(column: ColumnProfile) -> bool:
    crowded = column.fullest is not None and column.fullest >= CROWDED and bool(column.cuts)
    return column.role == "quasi" and crowded and not _are_postcodes(column)


def _reason(column: ColumnProfile) -> str:
    if _are_postcodes(column):
        if _zeros_lost(column):
            return (
                "these look like postcodes that lost their leading zeros, so their last digits are grouped. Write them as texts "
                'with all digits, and use hierarchy = {mask = "right", width = 5}.'
            )
        return f"these look like postcodes: texts whose last characters are masked, {_width(column)} characters wide."
    if _are_codes(column):
        ordered = column.distinct > _AS_FLAGS_HAVE
        words = "codes of categories in their order (delete order if it means nothing)" if ordered else "codes of categories"
        listed = "order" if ordered else "domain"
        return (
            f"{column.distinct} whole numbers, {MOST_CODES} or fewer, are read as {words}. "
            f'To compute with them, write type = "integer" and delete {listed}.'
        )
    if _by_quantiles(column):
        return (
            f"equal widths would put {percent(column.fullest or 0.0)} of the known values into one interval ({percent(CROWDED)} "
            "or more), so the intervals are cut at quantiles. Replace the cuts by limits that do not depend on the data."
        )
    return ""


def _hierarchy(column: ColumnProfile) -> HierarchySpec:
    if column.type in ("date", "datetime"):
        return HierarchySpec(dates=("month", "quarter", "year", "decade"))
    if _are_postcodes(column):
        return HierarchySpec(intervals=_DIGITS) if _zeros_lost(column) else HierarchySpec(mask="right", width=_width(column))
    if _by_quantiles(column):
        return HierarchySpec(cuts=column.cuts)
    if column.type in ("integer", "number") and column.distinct > MOST_CODES:
        widths = nested_widths(float(column.largest or 0) - float(column.smallest or 0), column.type == "integer")
        if widths:
            return HierarchySpec(intervals=widths)
    if column.type == "string" and column.domain and _is_code(column.domain):
        return HierarchySpec(mask="right", width=len(column.domain[0]))
    return HierarchySpec(flat=True)


def _is_code(domain: tuple[str, ...]) -> bool:
    """Digits of one length, as postcodes and classification codes have."""
    lengths = {len(value) for value in domain}
    return len(lengths) == 1 and 2 <= min(lengths) <= 12 and all(value.isdecimal() for value in domain)
