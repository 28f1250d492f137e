"""The whole set of a peer's measures on raw Adult, over one grouping; what it costs is measured by `make bench`."""

from __future__ import annotations

from pathlib import Path

import pyarrow.csv
import pytest

import sfumato as sf
from sfumato.measures.guarantees.measure import measure_each


@pytest.mark.data
def test_nine_measures_on_raw_adult(data_dir: Path) -> None:
    options = pyarrow.csv.ParseOptions(delimiter=";")
    rows = pyarrow.csv.read_csv(data_dir / "adult" / "adult.csv", parse_options=options)
    quasi = [name for name in rows.column_names if name != "occupation"]
    schema = sf.Schema.of(quasi=quasi, sensitive=["occupation"])
    asked = [
        sf.KAnonymity(2),
        sf.AlphaKAnonymity(0.5, 2, "occupation"),
        sf.DistinctLDiversity(2, "occupation"),
        sf.EntropyLDiversity(2, "occupation"),
        sf.RecursiveLDiversity(2, 2, "occupation"),
        sf.BetaLikeness(1, "occupation", reference="released"),
        sf.BetaLikeness(1, "occupation", enhanced=True, reference="released"),
        sf.TCloseness(0.2, "occupation", reference="released"),
        sf.DeltaDisclosure(1, "occupation", reference="released"),
    ]
    found = measure_each(rows, schema, asked)
    assert {measured.classes for measured in found} == {12_458}
    assert found[0].value == 1
    assert not any(measured.holds for measured in found)
