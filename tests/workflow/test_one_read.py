"""Records are paired with their masked rows although the engine hands them over in another order at each scan."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import InputError
from sfumato.data.masked import as_masked
from sfumato.data.microdata import Microdata
from sfumato.engines.memory import MemoryRelation
from sfumato.engines.snapshots import read_once
from sfumato.engines.write import write_table

_SCHEMA = {
    "dataset": "incomes",
    "columns": {
        "age": {"role": "quasi", "type": "number"},
        "income": {"role": "quasi", "type": "number"},
        "note": {"role": "plain", "type": "string"},
    },
}
MASK = sf.AdditiveNoise(0.001)


def incomes(rows: int = 400) -> pa.Table:
    draw = np.random.default_rng(5)
    return pa.table(
        {
            "age": draw.normal(45, 15, rows),
            "income": draw.lognormal(10, 0.7, rows),
            "note": [f"{number:06d}" for number in range(rows)],
        }
    )


class Shuffled(MemoryRelation):
    """Rows of a table that somebody else scans: each scan begins elsewhere."""

    engine = "shuffled"

    def __init__(self, table: pa.Table) -> None:
        super().__init__(table)
        self.scans = itertools.count(1)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        start = next(self.scans) * 37 % self.count()
        whole = pa.Table.from_batches(list(super().batches(columns)))
        yield from pa.concat_tables([whole.slice(start), whole.slice(0, start)]).to_batches()


def people(relation: Any) -> Microdata:
    return Microdata(relation, sf.Schema.parse(_SCHEMA))


@pytest.fixture(scope="module")
def in_order() -> sf.Release:
    return sf.protect(people(MemoryRelation(incomes())), [], MASK, seed=1, risk="disclosure_risk", attacks=["RegisterLinkage"])


def test_risk_does_not_depend_on_the_order_of_scans(in_order: Any) -> None:
    shuffled = people(Shuffled(incomes()))
    found = sf.protect(shuffled, [], MASK, seed=1, risk="disclosure_risk", attacks=["RegisterLinkage"])
    assert next(shuffled.relation.scans) == 2, "the table is read once"
    # noise of a thousandth hides nobody; with records paired at random the risk is near the blind guess
    expected = in_order.scores["disclosure_risk"]
    assert expected > 0.4
    assert found.scores["disclosure_risk"] == pytest.approx(expected, abs=0.03)
    success = in_order.certificate.attacks[0]["success"]
    assert success > 0.5
    assert found.certificate.attacks[0]["success"] == pytest.approx(success, abs=0.1)
    assert in_order.content.source_rows is not None
    assert found.content.source_rows is None, "numbers of rows mean nothing to whoever cannot repeat the scan"


def test_a_mask_and_a_measure_called_by_hand_pair_the_same_records(in_order: Any) -> None:
    shuffled = people(Shuffled(incomes()))
    masked = MASK.apply(shuffled, seed=1).result
    measure = sf.measures.risk.DistanceLinkage()
    assert measure.score(shuffled, masked).value > 0.7
    with pytest.raises(InputError, match="no order of their own"):
        measure.score(people(Shuffled(incomes())), masked)
    assert as_masked(shuffled.table(), shuffled).rows is None


def test_a_comparison_reads_once() -> None:
    ordered = sf.compare(people(MemoryRelation(incomes(200))), [MASK], workers=1, cache=False)
    shuffled = people(Shuffled(incomes(200)))
    found = sf.compare(shuffled, [MASK], workers=1, cache=False)
    assert next(shuffled.relation.scans) == 2
    assert found.points[0].risk == pytest.approx(ordered.points[0].risk, abs=0.03)
    assert ordered.points[0].risk > 0.4
    assert found.original.risk == pytest.approx(ordered.original.risk)


@pytest.mark.parametrize("mask", [MASK, sf.Combined(masks=(MASK, sf.RankSwapping(p=1))), sf.Recoded(sf.KAnonymity(2))])
def test_every_kind_of_method_keeps_the_records_it_read(mask: Any) -> None:
    table = incomes(120)
    shuffled = people(Shuffled(table))
    masked = mask.apply(shuffled, seed=1).result
    assert masked.source is not None and masked.rows is not None
    before = masked.source[1].column("note").take(pa.array(masked.rows)).to_pylist()
    assert before == masked.table.column("note").to_pylist()


@pytest.mark.postgres
def test_a_table_that_somebody_else_is_scanning(postgres_url: str) -> None:
    """`synchronize_seqscans`: a scan of a table larger than a quarter of the shared buffers starts where another one is."""
    write_table(incomes(4_500), postgres_url, table_name="narrow", overwrite=True)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE one_read_pages (age FLOAT, income FLOAT, note TEXT, fill TEXT STORAGE PLAIN)")
        connection.execute("INSERT INTO one_read_pages SELECT age, income, note, repeat('y', 7900) FROM narrow")
        connection.execute("CREATE VIEW one_read_scanned AS SELECT age, income, note FROM one_read_pages")
        try:
            mine = sf.read(postgres_url, _SCHEMA, table="one_read_scanned")
            expected = sf.protect(read_once(mine), [], MASK, seed=1, risk="disclosure_risk").scores["disclosure_risk"]
            with psycopg.connect(postgres_url) as other, other.cursor("other") as cursor:
                cursor.execute("SELECT note FROM one_read_pages")
                firsts = set()
                for _ in range(3):
                    cursor.fetchmany(900)
                    firsts.add(mine.table().column("note")[0].as_py())
                assert len(firsts) > 1, "the order of scans must differ for this test to mean anything"
                found = sf.protect(mine, [], MASK, seed=1, risk="disclosure_risk").scores["disclosure_risk"]
            assert abs(found - expected) < 0.03
            assert found > 0.3
        finally:
            connection.execute("DROP TABLE one_read_pages, narrow CASCADE")


@pytest.mark.spark
def test_a_shuffled_frame(spark: Any, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    table = incomes(400)
    pq.write_table(table, tmp_path / "rows.parquet")
    frame = spark.read.parquet(str(tmp_path / "rows.parquet")).repartition(4, "note").limit(400)
    found = sf.protect(sf.read(frame, _SCHEMA), [], MASK, seed=1, risk="disclosure_risk")
    assert found.scores["disclosure_risk"] > 0.4
