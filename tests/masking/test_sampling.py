"""Sampling: a random part of the records, unchanged, in random order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import ParameterError, Unsupported

DATA = pa.table({"x": np.arange(1000.0), "word": [f"w{i % 7}" for i in range(1000)], "half": [i % 2 for i in range(1000)]})


def test_each_published_row_is_the_record_it_stands_for() -> None:
    masked = sf.Sampling(0.25, columns=("x", "word")).apply(DATA, seed=1).result
    assert len(masked) == 250 and masked.rows is not None and len(set(masked.rows.tolist())) == 250
    assert masked.table.to_pydict() == DATA.take(pa.array(masked.rows)).to_pydict()
    assert masked.rows.tolist() != sorted(masked.rows.tolist())


def test_every_record_is_equally_likely() -> None:
    """Fixed seeds; each of 1,000 records is drawn in 400 runs with probability 0.25: 100 ± 8.7. One of them
    strays by 60 with probability below 1e-8."""
    times = np.zeros(1000)
    for seed in range(400):
        times[sf.Sampling(0.25, columns=("x",)).apply(DATA, seed=seed).result.rows] += 1
    assert times.sum() == 400 * 250 and np.all(np.abs(times - 100) < 60)


def test_strata_are_sampled_with_the_same_share() -> None:
    masked = sf.Sampling(0.1, columns=("x",), strata=("half",)).apply(DATA, seed=1).result
    assert sorted(masked.table.column("half").to_pylist()) == [0] * 50 + [1] * 50
    assert masked.transparency["share"] == 0.1


@pytest.mark.parametrize("share", [0, 1, 1.5, -0.1, True])
def test_a_share_lies_between_0_and_1(share: float) -> None:
    with pytest.raises(ParameterError, match="share"):
        sf.Sampling(share)


@pytest.mark.parametrize(("share", "word"), [(0.01, "nobody"), (0.99, "everybody")])
def test_a_sample_of_nobody_or_everybody_is_refused(share: float, word: str) -> None:
    with pytest.raises(Unsupported, match=word):
        sf.Sampling(share, columns=("x",)).apply(DATA.slice(0, 10))


def test_a_sample_says_that_it_changed_no_column(tmp_path: Path) -> None:
    """Certificates used to list the quasi-identifiers as masked, although each is published as it is."""
    people = sf.read(sf.data.sample_table(400), schema=sf.data.sample_schema())
    release = sf.mask(people, sf.Sampling(0.5), seed=1)
    assert release.certificate.transparency["masked_columns"] == []
    combined = sf.mask(people, sf.Combined(masks=(sf.Sampling(0.5), sf.Rounding(5, columns=("age",)))), seed=1)
    assert [step["masked_columns"] for step in combined.certificate.transparency["steps"]] == [[], ["age"]]
    release.save(tmp_path / "sample")
    assert all(finding.passed is not False for finding in sf.verify(tmp_path / "sample", allow_demonstration=True).findings)
