"""The whole set of a peer's measures on raw Adult costs at most a tenth of a second of CPU."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow.csv
import pytest

import sfumato as sf
from sfumato.measures.guarantees.measure import measure_each

BAR_SECONDS = 0.1


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
    spent = []
    for _ in range(5):
        before = time.process_time()
        found = measure_each(rows, schema, asked)
        spent.append(time.process_time() - before)
    assert found[0].classes == 12_458
    # the smallest of several runs: other work on the machine only ever adds
    assert min(spent) < BAR_SECONDS
