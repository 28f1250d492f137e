"""Measuring on raw Adult: the nine numbers that pyCANON reports, eight quasi-identifiers and one sensitive attribute."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks import adult
from benchmarks.harness import Case

_S = "occupation"


def guarantees() -> list[Any]:
    """One guarantee per measure; what they ask for does not matter, all are measured."""
    import sfumato as sf

    return [
        sf.KAnonymity(2),
        sf.AlphaKAnonymity(0.5, 2, _S),
        sf.DistinctLDiversity(2, _S),
        sf.EntropyLDiversity(2, _S),
        sf.RecursiveLDiversity(2, 2, _S),
        sf.BetaLikeness(1, _S, reference="released"),
        sf.BetaLikeness(1, _S, enhanced=True, reference="released"),
        sf.TCloseness(0.2, _S, reference="released"),
        sf.DeltaDisclosure(1, _S, reference="released"),
    ]


def cases() -> Iterator[Case]:
    """The whole set at once."""
    import pyarrow.csv

    import sfumato as sf
    from sfumato.measures.guarantees.measure import measure_each

    # as a CSV file is read by Arrow: nothing is encoded beforehand
    rows = pyarrow.csv.read_csv(adult.folder() / "adult.csv", parse_options=pyarrow.csv.ParseOptions(delimiter=";"))
    described = sf.Schema.of(quasi=[name for name in adult.COLUMNS if name != _S], sensitive=[_S])
    yield Case(
        "adult, the nine measures of pyCANON",
        lambda _: measure_each(rows, described, guarantees()),
        unit="s",
        limit=0.1,
        check=lambda found: None if len(found) == 9 and found[0].classes == 12_458 else "other classes than the table has",
    )
