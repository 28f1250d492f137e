"""A schema to start from, written from a profile for the owner to edit.

Roles are suggestions; types, bounds and domains are marked `source = "data"`, because what is learnt from the data
is not yet declared; hierarchies are chosen by the kind of value. Where a proposal goes beyond the type of the values, it has
a reason, which the command prints and the schema has as a comment.
"""

from __future__ import annotations

import math

from sfumato.data.profile import MOST_CODES, ColumnProfile, Profile
from sfumato.data.schema import Column, HierarchySpec, Schema

_FINEST_INTERVALS = 16  # about so many intervals on the finest level
_FEW_NUMBERS = 10
_ROWS_PER_CODE = 5  # on average: in a small table few values say little
_AS_FLAGS_HAVE = 2


def starting_schema(profile: Profile, dataset: str) -> Schema:
    """Suggested roles, what the data show, and a hierarchy for every quasi-identifier."""
    columns = {column.name: _column(column) for column in profile.columns}
    alone = profile.unit == "record" and all(column.role != "unit" for column in columns.values())
    return Schema(dataset=dataset, unit="record" if alone else None, columns=columns)


def nested_widths(extent: float, whole: bool) -> tuple[float, ...]:
    """Doubling interval widths from a round number upward, as long as they divide the extent."""
    if not math.isfinite(extent) or extent <= 0:
        return ()
    rough = extent / _FINEST_INTERVALS
    power = 10.0 ** math.floor(math.log10(rough))
    first = next(step * power for step in (1, 2, 5, 10) if step * power >= rough * (1 - 1e-9))
    first = max(first, 2.0) if whole else float(f"{first:.6g}")
    widths = []
    width = first
    while width < extent:
        widths.append(float(f"{width:.12g}"))
        width *= 2
    return tuple(widths)


def proposal_reasons(profile: Profile) -> dict[str, str]:
    """Why the starting schema reads a column otherwise than its values alone suggest, by column; no values of records."""
    reasons = {column.name: _reason(column) for column in profile.columns}
    return {name: reason for name, reason in reasons.items() if reason}


def _column(column: ColumnProfile) -> Column:
    if _are_codes(column):
        ordered = column.distinct > _AS_FLAGS_HAVE  # numbers have an order, and two values need none
        return Column(
            role=column.role,
            type="category",
            domain=None if ordered else column.domain,
            order=column.domain if ordered else None,
            source="data",
            hierarchy=HierarchySpec(flat=True),
        )
    numeric = column.type in ("integer", "number")
    bounds = None
    if numeric and isinstance(column.smallest, (int, float)) and isinstance(column.largest, (int, float)):
        bounds = (float(column.smallest), float(column.largest)) if column.role not in ("identifier", "unit") else None
    domain = column.domain if column.role in ("quasi", "sensitive") and not numeric else None
    return Column(
        role=column.role,
        type=column.type,
        bounds=bounds,
        domain=domain,
        source="data" if column.learnt or bounds is not None or domain is not None else "declared",
        hierarchy=_hierarchy(column) if column.role == "quasi" else None,
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


def _reason(column: ColumnProfile) -> str:
    if _are_codes(column):
        ordered = column.distinct > _AS_FLAGS_HAVE
        words = "codes of categories in their order (delete order if it means nothing)" if ordered else "codes of categories"
        listed = "order" if ordered else "domain"
        return (
            f"{column.distinct} whole numbers, {MOST_CODES} or fewer, are read as {words}. "
            f'To compute with them, write type = "integer" and delete {listed}.'
        )
    return ""


def _hierarchy(column: ColumnProfile) -> HierarchySpec:
    if column.type in ("date", "datetime"):
        return HierarchySpec(dates=("month", "quarter", "year", "decade"))
    if column.type in ("integer", "number") and column.distinct > _FEW_NUMBERS:
        widths = nested_widths(float(column.largest or 0) - float(column.smallest or 0), column.type == "integer")
        if widths:
            return HierarchySpec(intervals=widths)
    if column.type == "string" and column.domain and _is_code(column.domain):
        return HierarchySpec(mask="right")
    return HierarchySpec(flat=True)


def _is_code(domain: tuple[str, ...]) -> bool:
    """Digits of one length, as postcodes and classification codes have."""
    lengths = {len(value) for value in domain}
    return len(lengths) == 1 and 2 <= min(lengths) <= 12 and all(value.isdecimal() for value in domain)
