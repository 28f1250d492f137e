"""What every measured number of a table means, in words: the part of a check that needs no promise."""

from __future__ import annotations

import math
from collections.abc import Iterator

from sfumato.measures.guarantees.overview import AttributeMeasures, TableMeasures

_RECORDS = (
    "every record that was measured shares its quasi-identifiers with at least so many, itself included",
    "records that are alone in their class: whoever knows the quasi-identifiers knows them",
    "the chance of picking the right record of a person known to be inside",
)
#: The same where a column names whom each record is about.
_UNITS = (
    "every record that was measured shares its quasi-identifiers with records of at least so many units, its own included",
    "records in classes of one unit: whoever knows the quasi-identifiers knows whose they are",
    "the chance of picking the right unit of a class for a person known to be inside",
)
#: What shares are of, where people have several records.
SHARES_OF_RECORDS = "of its records (of people with several, more may share a value)"


def measured_lines(measures: TableMeasures) -> list[str]:
    """One line per number: its name, its value, and what it says about the worst class."""
    shared, alone, right = _RECORDS if measures.units is None else _UNITS
    lines = [
        _line("k-anonymity", measures.k, shared),
        _line("unique records", measures.uniques, alone),
        _line("highest risk", 1.0 / measures.k if measures.k else 1.0, right),
    ]
    if measures.k_map is not None and measures.presence is not None:
        low, high = measures.presence
        lines += [
            _line("k-map", measures.k_map, "at least so many of the population given fit what the table shows of somebody"),
            _line("δ-presence, smallest", low, "the least share of the population behind a class that is in the table"),
            _line("δ-presence, largest", high, "the largest: how sure the table alone makes an attacker that somebody is in it"),
        ]
    for name, attribute in measures.attributes.items():
        shares = "" if measures.units is None else f", {SHARES_OF_RECORDS}"
        lines += [
            "",
            f"About '{name}' ({attribute.values} different values), in the worst class{shares}:",
            *_attribute(attribute),
        ]
    if not measures.attributes:
        lines += ["", "No column is described as sensitive, so nothing was measured about attribute disclosure."]
    return lines


def _attribute(measures: AttributeMeasures) -> Iterator[str]:
    yield _line("  distinct l", measures.distinct_l, "different values that the class shows; 1 gives the value away")
    yield _line("  entropy l", measures.entropy_l, "as uncertain as this many equally likely values")
    for l, c in measures.recursive_c.items():  # noqa: E741
        yield _line(f"  recursive c, l={l}", c, f"(c,{l})-diversity holds for every c above this")
    yield _line(
        "  α",
        measures.alpha,
        "share of the most frequent value: how sure the class alone makes an attacker about one of its records",
    )
    where = "the original" if measures.reference == "input" else "the whole table"
    for distance, t in measures.t.items():
        yield _line(f"  t, {distance}", t, f"distance from the distribution in {where}; 0 means that the class has the same one")
    yield _line("  β", measures.beta, f"by how many times its share in {where} a value's share grows")
    yield _line(
        "  β, enhanced",
        measures.enhanced_beta,
        "the same, also limited for frequent values; infinite when a class goes past that limit",
    )
    yield _line("  δ", measures.delta, "largest change of the logarithm of a share; infinite when a class lacks a value")


def _line(name: str, value: float, meaning: str) -> str:
    number = "infinite" if math.isinf(value) else f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
    return f"{name:<20} {number:>10}   {meaning}"
