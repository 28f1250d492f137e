"""Measuring on raw Adult: the nine numbers that pyCANON reports, eight quasi-identifiers and one sensitive attribute."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks import adult
from benchmarks.harness import Case

SENSITIVE = "occupation"


def guarantees() -> list[Any]:
    """One guarantee per measure; what they ask for does not matter, all are measured."""
    import sfumato as sf

    return [
        sf.KAnonymity(2),
        sf.AlphaKAnonymity(0.5, 2, SENSITIVE),
        sf.DistinctLDiversity(2, SENSITIVE),
        sf.EntropyLDiversity(2, SENSITIVE),
        sf.RecursiveLDiversity(2, 2, SENSITIVE),
        sf.BetaLikeness(1, SENSITIVE, reference="released"),
        sf.BetaLikeness(1, SENSITIVE, enhanced=True, reference="released"),
        sf.TCloseness(0.2, SENSITIVE, reference="released"),
        sf.DeltaDisclosure(1, SENSITIVE, reference="released"),
    ]


def raw() -> tuple[Any, Any]:
    """The rows as Arrow reads the CSV file, nothing encoded beforehand, and their roles."""
    import pyarrow.csv

    import sfumato as sf

    rows = pyarrow.csv.read_csv(adult.folder() / "adult.csv", parse_options=pyarrow.csv.ParseOptions(delimiter=";"))
    return rows, sf.Schema.of(quasi=[name for name in adult.COLUMNS if name != SENSITIVE], sensitive=[SENSITIVE])


def cases() -> Iterator[Case]:
    """The whole set at once."""
    from sfumato.measures.guarantees.measure import measure_each

    rows, described = raw()
    yield Case(
        "adult, the nine measures of pyCANON",
        lambda _: measure_each(rows, described, guarantees()),
        unit="s",
        limit=0.1,
        check=lambda found: None if len(found) == 9 and found[0].classes == 12_458 else "other classes than the table has",
    )
