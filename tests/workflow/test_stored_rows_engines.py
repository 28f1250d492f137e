"""The same release wherever the rows are, and wherever they go: content digests agree, whatever order and partitions."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.cli.main import run
from sfumato.core.errors import InputError, SourceError, Unsupported
from sfumato.data.schema import Column
from sfumato.engines.digests.row_digest import row_sums, table_sums
from sfumato.engines.write import write_table
from tests.workflow.people import schema, table

PROMISES = [sf.KAnonymity(5), sf.DistinctLDiversity(2, "disease")]
SEARCHES = {"lattice": sf.Lattice(suppression=0.05), "mondrian": sf.Mondrian(ranges_everywhere=True)}
DESCRIBED = schema(name=Column(role="identifier", pseudonym=True))


def rows_in(folder: Path) -> pa.Table:
    return pa.concat_tables([pq.read_table(part) for part in sorted((folder / "public" / "data").iterdir())])


def shuffled(rows: pa.Table, seed: int) -> pa.Table:
    return rows.take(np.random.default_rng(seed).permutation(rows.num_rows))


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, tuple[str, Any]]]:
    """The owner's key, and per search digest and measured numbers of the release that is made in this process."""
    key = tmp_path_factory.mktemp("key") / "owner.key"
    releases = {
        name: sf.protect(sf.read(table(1_500), DESCRIBED), PROMISES, search, key=key) for name, search in SEARCHES.items()
    }
    return key, {
        name: (table_sums(release.data).content_digest(), release.certificate.measured) for name, release in releases.items()
    }


def check(
    people: sf.Microdata, name: str, folder: Path, expected: tuple[Path, dict[str, tuple[str, Any]]], original: Any = None
) -> None:
    key, releases = expected
    release = sf.protect(people, PROMISES, SEARCHES[name], destination=folder, key=key)
    assert (table_sums(rows_in(folder)).content_digest(), release.certificate.measured) == releases[name]
    assert sf.verify(folder, original=original).accepted


@pytest.mark.parametrize("search", SEARCHES)
def test_from_a_frame_in_memory(search: str, tmp_path: Path, expected: Any) -> None:
    check(sf.read(shuffled(table(1_500), 1), DESCRIBED), search, tmp_path / "out", expected)


@pytest.mark.postgres
@pytest.mark.parametrize("search", SEARCHES)
def test_from_postgres_to_a_folder(search: str, tmp_path: Path, expected: Any, postgres_url: str) -> None:
    write_table(shuffled(table(1_500), 2), postgres_url, table_name="stored_people", overwrite=True)
    people = sf.read(postgres_url, DESCRIBED, table="stored_people")
    check(people, search, tmp_path / "out", expected)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("search", ["lattice", pytest.param("mondrian", marks=pytest.mark.stress)])
def test_from_spark_to_a_folder(search: str, tmp_path: Path, expected: Any, spark: Any) -> None:
    frame = spark.createDataFrame(shuffled(table(1_500), 3).to_pandas()).repartition(3)
    check(sf.read(frame, DESCRIBED), search, tmp_path / "out", expected)


@pytest.mark.spark
@pytest.mark.slow
def test_from_spark_into_a_table_of_its_catalogue(tmp_path: Path, expected: Any, spark: Any) -> None:
    key, releases = expected
    name = f"stored_release_{secrets.token_hex(4)}"
    frame = spark.createDataFrame(shuffled(table(1_500), 4).to_pandas()).repartition(3)
    options: dict[str, Any] = {"destination": f"spark:{name}", "key": key}
    try:
        release = sf.protect(sf.read(frame, DESCRIBED), PROMISES, SEARCHES["lattice"], **options)
        release.save(tmp_path / "out")
        stored = sf.read(spark.table(name))
        assert (row_sums(stored.relation).content_digest(), release.certificate.measured) == releases["lattice"]
        assert sf.verify(tmp_path / "out", data=spark.table(name)).accepted
        assert release.verify().accepted
        fewer = spark.table(name).filter("visits > 0")
        assert "their digest differs" in sf.verify(tmp_path / "out", data=fewer).explain()
        with pytest.raises(InputError, match="is there already"):
            sf.protect(sf.read(frame, DESCRIBED), PROMISES, SEARCHES["lattice"], **options)
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_into_a_table_of_duckdb(engine: str, tmp_path: Path, expected: Any) -> None:
    key, releases = expected
    pq.write_table(table(1_500), tmp_path / "people.parquet")
    people = sf.read(tmp_path / "people.parquet", DESCRIBED, engine=engine)
    place = tmp_path / "published.duckdb"
    release = sf.protect(people, PROMISES, SEARCHES["lattice"], destination=place, table_name="clinic", key=key)
    release.save(tmp_path / "out")
    assert not (tmp_path / "out" / "public" / "data").exists()
    assert table_sums(sf.read(place, table="clinic", engine="memory").table()).content_digest() == releases["lattice"][0]
    assert sf.verify(tmp_path / "out", data=place, table="clinic").accepted
    assert release.verify().accepted
    with pytest.raises(InputError, match="are in a database"):
        sf.verify(tmp_path / "out")
    with pytest.raises(InputError, match="already has a table"):
        sf.protect(people, PROMISES, SEARCHES["lattice"], destination=place, table_name="clinic", key=key)


def test_a_table_that_was_changed_is_found(tmp_path: Path) -> None:
    import duckdb

    pq.write_table(table(1_500), tmp_path / "people.parquet")
    people = sf.read(tmp_path / "people.parquet", schema(), engine="duckdb")
    place = tmp_path / "published.duckdb"
    sf.protect(people, PROMISES, SEARCHES["lattice"], destination=place).save(tmp_path / "out")
    with duckdb.connect(str(place)) as connection:
        connection.execute("UPDATE release SET visits = visits + 1 WHERE rowid = 7")
    verification = sf.verify(tmp_path / "out", data=place, table="release")
    assert not verification.accepted and "their digest differs" in verification.explain()


@pytest.mark.postgres
def test_from_postgres_into_a_table_beside_it(
    tmp_path: Path, expected: Any, postgres_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    key, releases = expected
    write_table(shuffled(table(1_500), 4), postgres_url, table_name="stored_people", overwrite=True)
    people = sf.read(postgres_url, DESCRIBED, table="stored_people")
    options: dict[str, Any] = {"destination": postgres_url, "table_name": "stored_release", "overwrite": True, "key": key}
    release = sf.protect(people, PROMISES, SEARCHES["lattice"], **options)
    release.save(tmp_path / "out")
    assert (
        table_sums(sf.read(postgres_url, table="stored_release", engine="memory").table()).content_digest()
        == (releases["lattice"][0])
    )
    assert run(["verify", str(tmp_path / "out"), "--data", postgres_url, "--table", "stored_release"]) == 0
    assert "their digest is the one that was certified" in capsys.readouterr().out


def resealed(out: Path, place: Path) -> None:
    """The description and the certificate written anew for whatever the table holds now."""
    import json

    from sfumato.engines.digests.row_digest import row_sums
    from sfumato.workflow.publishing.saving import describe_file, pretty

    public = out / "public"
    about = json.loads((public / "stored.json").read_text())
    about["content"] = row_sums(sf.read(place, table="release").relation).content_digest()
    (public / "stored.json").write_bytes(pretty(about))
    certificate = json.loads((public / "certificate.json").read_text())
    certificate["files"]["stored.json"] |= describe_file(public / "stored.json")
    (public / "certificate.json").write_bytes(pretty(certificate))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("UPDATE release SET name = 'Ada ' || name", "something else than the pseudonyms"),
        ("ALTER TABLE release ALTER visits TYPE VARCHAR", "other types of values"),
    ],
)
def test_a_forged_table_is_refused_as_a_forged_file_is(tmp_path: Path, change: str, reason: str) -> None:
    import duckdb

    pq.write_table(table(1_500), tmp_path / "people.parquet")
    people, place = sf.read(tmp_path / "people.parquet", DESCRIBED, engine="duckdb"), tmp_path / "published.duckdb"
    sf.protect(people, PROMISES, SEARCHES["lattice"], destination=place).save(tmp_path / "out")
    with duckdb.connect(str(place)) as connection:
        connection.execute(change)
    resealed(tmp_path / "out", place)
    verification = sf.verify(tmp_path / "out", data=place, table="release")
    assert not verification.accepted and reason in verification.explain()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("CREATE VIEW shown AS SELECT * FROM release", "in no table"),
        (
            "CREATE TABLE shown AS SELECT * REPLACE (disease::ENUM('flu', 'cold', 'asthma', 'none', 'Ada, HIV') AS disease) "
            "FROM release",
            "types that no release has",
        ),
        ("CREATE TABLE shown AS SELECT * REPLACE (visits::TINYINT AS visits) FROM release", "types that no release has"),
        ("CREATE TABLE shown AS SELECT * FROM release ORDER BY random()", ""),
    ],
)
def test_what_only_looks_like_the_table_is_refused(tmp_path: Path, change: str, reason: str) -> None:
    import duckdb

    pq.write_table(table(1_500), tmp_path / "people.parquet")
    people, place = sf.read(tmp_path / "people.parquet", schema(), engine="duckdb"), tmp_path / "published.duckdb"
    release = sf.protect(people, [sf.KAnonymity(5)], SEARCHES["lattice"], destination=place)
    with pytest.raises(Unsupported, match="stayed in their engine"):
        release.data.to_pandas()
    release.save(tmp_path / "out")
    with duckdb.connect(str(place)) as connection:
        connection.execute(change)
    verification = sf.verify(tmp_path / "out", data=place, table="shown")
    assert verification.accepted == (not reason) and reason in verification.explain()
    assert reason or "A table has no order; none was checked" in verification.explain()


def _appears(place: Path) -> Any:
    """Somebody else makes the file while the release is being entered."""

    def progress(stage: str, done: int, total: int) -> None:
        if stage == "entering in the ledger" and done:
            place.write_bytes(b"")

    return progress


@pytest.mark.parametrize("ledger", [True, False])
def test_a_release_that_was_entered_and_did_not_appear_is_said(tmp_path: Path, ledger: bool) -> None:
    pq.write_table(table(1_500), tmp_path / "people.parquet")
    people, place = sf.read(tmp_path / "people.parquet", schema(), engine="duckdb"), tmp_path / "published.duckdb"
    book = tmp_path / "ledger.db" if ledger else None
    if not ledger:
        sf.protect(people, [sf.KAnonymity(5)], SEARCHES["lattice"], destination=place, ledger=book)
        assert place.exists()
        return
    with pytest.raises(SourceError, match="entry for this release, which did not appear") as caught:
        sf.protect(people, [sf.KAnonymity(5)], SEARCHES["lattice"], destination=place, ledger=book, progress=_appears(place))
    assert caught.value.__cause__ is None and place.read_bytes() == b""
    with sf.Ledger.open(tmp_path / "ledger.db") as opened:
        assert len(opened.releases("clinic")) == 1


@pytest.mark.postgres
def test_a_table_that_others_depend_on_stops_before_the_entry(tmp_path: Path, postgres_url: str) -> None:
    import psycopg

    pq.write_table(table(1_500), tmp_path / "people.parquet")
    people = sf.read(tmp_path / "people.parquet", schema(), engine="duckdb")
    options: dict[str, Any] = {"destination": postgres_url, "table_name": "depended_on", "overwrite": True}
    sf.protect(people, [sf.KAnonymity(5)], SEARCHES["lattice"], **options)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE VIEW depends AS SELECT * FROM depended_on")
    try:
        with pytest.raises(SourceError, match="SQLSTATE 2BP01"):
            sf.protect(people, [sf.KAnonymity(5)], SEARCHES["lattice"], ledger=tmp_path / "ledger.db", **options)
        with sf.Ledger.open(tmp_path / "ledger.db") as opened:
            assert not opened.releases("clinic")
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("DROP VIEW depends; DROP TABLE depended_on")
