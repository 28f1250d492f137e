"""Rows in several Parquet files, read one file at a time: the groups of the rows, and every change refused with its reason."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.core.errors import VerificationFailed
from sfumato.data.schema import Column, Schema
from sfumato.measures.guarantees.measure import measure_each, measure_grouped
from sfumato.wire.merkle import tree_root
from sfumato.workflow.publishing.claims import tying_pseudonyms
from sfumato.workflow.publishing.released_form import in_one_type, in_order_of_content, released_form
from sfumato.workflow.verifying import untrusted
from sfumato.workflow.verifying.stored import form as stored_form
from sfumato.workflow.verifying.stored import parts as stored_parts
from sfumato.workflow.verifying.stored.parts import StoredFile, grouped_parts, merkle_root, part_name, read_manifest

ALPHABET = np.array(list("abcdefghijklmnopqrstuvwxyz234567"))
SCHEMA = Schema(
    dataset="parts",
    columns={
        "age": Column(role="quasi", type="string"),
        "sex": Column(role="quasi", type="string"),
        "disease": Column(role="sensitive", type="string"),
        "income": Column(role="plain", type="integer"),
        "weight": Column(role="plain", type="number"),
        "born": Column(role="plain", type="date"),
        "alive": Column(role="plain", type="boolean"),
    },
)
GUARANTEES = [
    sf.KAnonymity(5),
    sf.DistinctLDiversity(2, "disease"),
    sf.TCloseness(0.4, "disease", reference="released"),
    sf.EntropyLDiversity(1.2, "disease"),
    sf.AverageRisk(0.5),
]


def rows(count: int = 6_000, seed: int = 1) -> pa.Table:
    """Generated rows as a release has them: sorted by content, with missing values."""
    draw = np.random.default_rng(seed)
    table = pa.table(
        {
            "age": draw.choice(["20-29", "30-39", "40-49"], count).tolist(),
            "sex": pa.array(draw.choice(["f", "m"], count).tolist(), mask=draw.random(count) < 0.1),
            "disease": draw.choice(["flu", "cold", "asthma", "angina é"], count).tolist(),
            "income": pa.array(draw.integers(-5, 300, count), mask=draw.random(count) < 0.1),
            "weight": draw.choice([0.0, 1.5, 70.25], count),
            "born": pa.array(draw.integers(0, 20_000, count).astype(np.int32)).cast(pa.date32()),
            "alive": draw.random(count) < 0.5,
        }
    )
    return plain(released_form(table))


def plain(table: pa.Table) -> pa.Table:
    return pa.table({name: in_one_type(table[name]) for name in table.column_names})


def describe(folder: Path) -> tuple[StoredFile, ...]:
    """What an honest certificate, or a careful forger's, says of the files."""
    files = []
    for number, path in enumerate(sorted(folder.iterdir())):
        content = path.read_bytes()
        stated = pq.read_metadata(path).num_rows if content[-4:] == b"PAR1" else 0
        files.append(StoredFile(part_name(number), len(content), stated, hashlib.sha256(content).hexdigest()))
    return tuple(files)


def write_arrow(table: pa.Table, path: Path, **options: Any) -> None:
    pq.write_table(table, path, compression="zstd", row_group_size=500, **options)


def write_duckdb(table: pa.Table, path: Path, bloom: str = "false") -> None:
    with duckdb.connect() as connection:
        connection.register("stored", table)
        connection.execute("SET preserve_insertion_order = true")
        connection.execute(
            f"COPY stored TO '{path}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 2048, WRITE_BLOOM_FILTER {bloom})"
        )


@pytest.fixture(autouse=True)
def small_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """The size of a row group, so that small files have several."""
    monkeypatch.setattr(stored_form, "ROWS_PER_GROUP", 500)


WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {
    "arrow": lambda table, path: write_arrow(table, path, store_schema=False),
    "arrow with its schema": write_arrow,
    "arrow without dictionaries": lambda table, path: write_arrow(table, path, use_dictionary=False),
    "duckdb": write_duckdb,
}


def put(folder: Path, table: pa.Table, parts: int = 3, write: Callable[[pa.Table, Path], None] = WRITERS["arrow"]) -> None:
    folder.mkdir(exist_ok=True)
    size = -(-table.num_rows // parts)
    for number in range(parts):
        write(table.slice(number * size, size), folder / part_name(number))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    put(tmp_path / "data", rows())
    (tmp_path / "private").mkdir()
    return tmp_path


def read(place: Path, files: tuple[StoredFile, ...] | None = None, schema: Schema = SCHEMA, **options: Any) -> Any:
    folder = place / "data"
    with untrusted.untrusted(folder) as public:
        stored = grouped_parts(public, describe(folder) if files is None else files, schema, place / "private", **options)
    assert not list((place / "private").iterdir())
    return stored


def refused(
    place: Path, reason: str, files: tuple[StoredFile, ...] | None = None, schema: Schema = SCHEMA, **options: Any
) -> None:
    with pytest.raises(VerificationFailed, match=reason):
        read(place, files, schema, **options)
    assert not list((place / "private").iterdir())


@pytest.mark.covering
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("parts", [1, 4])
def test_grouped_files_measure_as_their_rows_do(tmp_path: Path, writer: str, parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_parts, "_ROWS_AT_ONCE", 2_100)
    table = rows()
    put(tmp_path / "data", table, parts, WRITERS[writer])
    (tmp_path / "private").mkdir()
    seen: list[pa.Table] = []
    groups = read(tmp_path, each=seen.append).groups
    assert plain(pa.concat_tables([each.select(table.column_names) for each in map(plain, seen)])).equals(table)
    assert max(each.num_rows for each in seen) <= 2_100
    assert groups.records == table.num_rows
    assert groups.table.num_rows == len(set(zip(*(table[name].to_pylist() for name in groups.table.column_names), strict=True)))
    assert measure_grouped(groups, SCHEMA, GUARANTEES) == measure_each(table, SCHEMA, GUARANTEES)


@pytest.mark.spark
def test_a_file_that_spark_wrote_is_read(spark: Any, tmp_path: Path) -> None:
    """With indexes of its pages, checksums and cut bounds of long texts."""
    table = rows(2_000).select(["age", "sex", "disease", "income", "weight"])
    kept = {name: SCHEMA.columns[name] for name in table.column_names}
    schema = SCHEMA.replace(columns={**kept, "note": Column(role="plain", type="string")})
    records = [tuple(row.values()) for row in table.to_pylist()]
    frame = spark.createDataFrame(records, "age string, sex string, disease string, income long, weight double")
    noted = frame.selectExpr("*", "rpad(disease, 200, 'äö') AS note").coalesce(1)
    noted.write.option("compression", "zstd").parquet(str(tmp_path / "written"))
    (tmp_path / "data").mkdir()
    (tmp_path / "private").mkdir()
    (written,) = (tmp_path / "written").glob("*.parquet")
    shutil.copy(written, tmp_path / "data" / part_name(0))
    measured = measure_grouped(read(tmp_path, schema=schema).groups, schema, GUARANTEES)
    assert measured == measure_each(table, schema, GUARANTEES)


def test_a_class_in_two_files_is_one_class(place: Path) -> None:
    table = rows()
    shutil.rmtree(place / "data")
    # three records of a class in the first file, the others in the second
    first = table.filter(pa.compute.equal(table["age"], "20-29"))
    (place / "data").mkdir()
    write_arrow(first.slice(0, 3), place / "data" / part_name(0))
    write_arrow(table.slice(3), place / "data" / part_name(1))
    assert measure_grouped(read(place).groups, SCHEMA, GUARANTEES) == measure_each(table, SCHEMA, GUARANTEES)


def test_files_without_rows_are_read(place: Path) -> None:
    shutil.rmtree(place / "data")
    put(place / "data", rows(0), 1)
    groups = read(place).groups
    assert groups.records == 0
    assert measure_grouped(groups, SCHEMA, [sf.KAnonymity(5)])[0].holds


def test_a_changed_row_is_noticed(place: Path) -> None:
    files = describe(place / "data")
    table = pq.read_table(place / "data" / part_name(1))
    changed = table.set_column(3, "income", pa.array([*table["income"].to_pylist()[:-1], 1_000_000]))
    write_arrow(changed, place / "data" / part_name(1), store_schema=False)
    refused(place, "part-00001.parquet.*digest", files)


def test_a_file_of_the_same_length_with_other_bytes_is_noticed(place: Path) -> None:
    files = describe(place / "data")
    path = place / "data" / part_name(2)
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(bytes(content))
    refused(place, "part-00002.parquet.*its digest differs", files)


def test_missing_added_and_repeated_files_are_noticed(place: Path) -> None:
    files = describe(place / "data")
    shutil.copy(place / "data" / part_name(0), place / "data" / part_name(3))
    refused(place, "not certified: 'part-00003.parquet'", files)
    refused(place, "order of their content")  # certified twice
    (place / "data" / part_name(3)).unlink()
    (place / "data" / part_name(1)).unlink()
    refused(place, "missing: 'part-00001.parquet'", files)


def test_files_in_another_order_are_noticed(place: Path) -> None:
    files = describe(place / "data")
    first, second = place / "data" / part_name(0), place / "data" / part_name(1)
    first.rename(place / "aside")
    second.rename(first)
    (place / "aside").rename(second)
    refused(place, "digest", files)
    refused(place, "order of their content")


def test_rows_in_another_order_are_noticed(place: Path) -> None:
    path = place / "data" / part_name(1)
    table = pq.read_table(path)
    write_arrow(pa.concat_tables([table.slice(1_000), table.slice(0, 1_000)]), path)
    refused(place, "part-00001.parquet.*order of their content")


def test_other_numbers_of_rows_are_noticed(place: Path) -> None:
    files = list(describe(place / "data"))
    files[1] = dataclasses.replace(files[1], rows=files[1].rows + 1)
    refused(place, "as many rows", tuple(files))


@pytest.mark.parametrize(
    "entries",
    [
        None,
        [],
        {},
        [1],
        [{"name": "part-00000.parquet", "bytes": 1, "rows": 1}],
        [{"name": "part-00000.parquet", "bytes": True, "rows": 1, "sha256": "0" * 64}],
        [{"name": "part-00000.parquet", "bytes": -1, "rows": 1, "sha256": "0" * 64}],
        [{"name": "part-00000.parquet", "bytes": 1, "rows": 2**60, "sha256": "0" * 64}],
        [{"name": "part-00000.parquet", "bytes": 1, "rows": 1, "sha256": "0" * 63}],
        [{"name": "part-00000.parquet", "bytes": 1, "rows": 1, "sha256": "0" * 64, "also": 1}],
        [{"name": "part-00001.parquet", "bytes": 1, "rows": 1, "sha256": "0" * 64}],
        [{"name": "../part-00000.parquet", "bytes": 1, "rows": 1, "sha256": "0" * 64}],
        [{"name": "part-00000.parquet", "bytes": 1, "rows": 1, "sha256": "0" * 64}] * 2,
    ],
)
def test_lists_of_files_that_no_release_has_are_refused(entries: Any) -> None:
    with pytest.raises(VerificationFailed):
        read_manifest(entries)


def test_an_honest_list_is_read_back() -> None:
    files = tuple(StoredFile(part_name(i), 10 + i, i, f"{i:064x}") for i in range(3))
    assert read_manifest([dataclasses.asdict(file) for file in files]) == files


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"\0" * 100 + b"PAR1", bytes(range(256)) * 20])
def test_files_that_are_no_data_are_refused(place: Path, content: bytes) -> None:
    files = list(describe(place / "data"))
    (place / "data" / part_name(0)).write_bytes(content)
    files[0] = StoredFile(part_name(0), len(content), 2_000, hashlib.sha256(content).hexdigest())
    refused(place, "part-00000.parquet", tuple(files))


def test_cut_files_are_refused(place: Path) -> None:
    path, files = place / "data" / part_name(0), list(describe(place / "data"))
    whole = path.read_bytes()
    for length in (len(whole) // 3, len(whole) - 5):
        path.write_bytes(whole[:length])
        files[0] = dataclasses.replace(files[0], bytes=length, sha256=hashlib.sha256(whole[:length]).hexdigest())
        refused(place, "complete Parquet file", tuple(files))


def test_links_pipes_and_folders_are_refused(place: Path) -> None:
    files, path = describe(place / "data"), place / "data" / part_name(1)
    path.rename(place / "outside")
    os.symlink(place / "outside", path)
    refused(place, "not a plain file", files)
    path.unlink()
    os.mkfifo(path)
    refused(place, "not a plain file", files)


def test_a_folder_inside_an_untrusted_one_is_opened_without_links(place: Path) -> None:
    with pytest.raises(VerificationFailed, match="not a plain file"), untrusted.untrusted(place):
        pass
    with untrusted.untrusted(place, folders=("data", "private")) as public, public.inside("data") as data:
        assert public.names == ()
        assert data.names == tuple(part_name(i) for i in range(3))
    os.symlink(place / "data", place / "linked")
    with pytest.raises(VerificationFailed, match="not a plain file"):
        with untrusted.untrusted(place, folders=("data", "private", "linked")):
            pass


def _rewritten(place: Path, change: Callable[[pa.Table], pa.Table], **options: Any) -> None:
    path = place / "data" / part_name(0)
    write_arrow(change(pq.read_table(path)), path, **options)


def test_other_columns_and_kinds_are_refused(place: Path) -> None:
    _rewritten(place, lambda table: table.drop_columns(["alive"]))
    refused(place, "columns that the certificate describes")
    put(place / "data", rows())
    _rewritten(place, lambda table: table.append_column("name", pa.array(["Ada"] * table.num_rows)))
    refused(place, "columns that the certificate describes")
    put(place / "data", rows())
    _rewritten(place, lambda table: table.set_column(3, "income", table["income"].cast(pa.decimal128(24, 2))))
    refused(place, "kind that no release has")
    put(place / "data", rows())
    _rewritten(place, lambda table: table.set_column(3, "income", table["income"].cast(pa.string())))
    refused(place, "another form")


def test_metadata_of_others_is_refused(place: Path) -> None:
    _rewritten(place, lambda table: table.replace_schema_metadata({"owner": "Ada"}))
    refused(place, "metadata that no writer")
    put(place / "data", rows())
    table = pq.read_table(place / "data" / part_name(0))
    with pq.ParquetWriter(place / "data" / part_name(0), table.schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"owner": "Ada"})
    refused(place, "metadata that no writer")


def test_entries_of_a_dictionary_that_no_row_uses_are_refused(place: Path) -> None:
    def with_a_name(table: pa.Table) -> pa.Table:
        codes = table["disease"].combine_chunks().dictionary_encode()
        wider = pa.DictionaryArray.from_arrays(codes.indices, [*codes.dictionary.to_pylist(), "Ada Lovelace"])
        return table.set_column(2, "disease", wider)

    _rewritten(place, with_a_name)
    refused(place, "entries that no row uses")


def test_bytes_between_the_parts_are_refused(place: Path) -> None:
    path = place / "data" / part_name(0)
    whole = path.read_bytes()
    footer = int.from_bytes(whole[-8:-4], "little") + 8
    path.write_bytes(whole[:-footer] + b"Ada Lovelace" + whole[-footer:])
    refused(place, "between its columns and its footer")


def test_pages_of_another_version_are_refused(place: Path) -> None:
    _rewritten(place, lambda table: table, data_page_version="2.0")
    refused(place, "page of a kind")


def test_bloom_filters_are_refused(place: Path) -> None:
    shutil.rmtree(place / "data")
    put(place / "data", rows(), 1, lambda table, path: write_duckdb(table, path, "true"))
    refused(place, "Bloom filter")


@pytest.mark.slow
def test_every_changed_byte_of_a_file_is_refused_or_harmless(place: Path) -> None:
    """A forger who restates the digest: the verdict is a verdict, and rows that were read are those that the file shows."""
    shutil.rmtree(place / "data")
    put(place / "data", rows(300), 1)
    path = place / "data" / part_name(0)
    whole = path.read_bytes()
    honest = measure_grouped(read(place).groups, SCHEMA, GUARANTEES)
    draw = np.random.default_rng(5)
    verdicts = 0
    for position in draw.integers(4, len(whole) - 8, 25).tolist():
        content = bytearray(whole)
        content[position] ^= 1 << int(draw.integers(0, 8))
        path.write_bytes(bytes(content))
        entry = StoredFile(part_name(0), len(content), 300, hashlib.sha256(bytes(content)).hexdigest())
        try:
            assert measure_grouped(read(place, (entry,)).groups, SCHEMA, GUARANTEES) == honest
        except VerificationFailed:
            verdicts += 1
        assert not list((place / "private").iterdir())
    assert verdicts > 10


@pytest.mark.slow
def test_a_small_file_that_unpacks_into_much_is_given_up(place: Path) -> None:
    count = 1_000_000
    table = pa.table({name: pa.array(["x" * 2_000]).take(pa.array(np.zeros(count, np.int64))) for name in ("age",)})
    schema = Schema(dataset="parts", columns={"age": Column(role="quasi", type="string")})
    shutil.rmtree(place / "data")
    (place / "data").mkdir()
    pq.write_table(table, place / "data" / part_name(0), compression="zstd", row_group_size=count)
    refused(place, "unpacks into more", schema=schema)


def pseudonym(number: int) -> str:
    return "".join(ALPHABET[(number >> (5 * i)) % 32] for i in range(26))


@pytest.mark.covering
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("people", [12, 400, 100_000])
def test_pseudonyms_that_tie_records_are_found_with_bounded_memory(
    tmp_path: Path, unit: bool, people: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.workflow.verifying.pseudonym_ties._ROWS_PER_FILE", 100)
    draw = np.random.default_rng(people)
    base = rows(900)
    persons = draw.permutation(people)[:900] if people >= 900 else draw.integers(0, people, 900)
    names = pa.array([pseudonym(int(person)) for person in persons], mask=draw.random(900) < 0.02)
    schema = SCHEMA.replace(columns={**SCHEMA.columns, "person": Column(role="unit" if unit else "plain", type="string")})
    table = plain(released_form(base.append_column("person", names)))
    put(tmp_path / "data", table)
    (tmp_path / "private").mkdir()
    stored = read(tmp_path, schema=schema, pseudonyms=["person"])
    for column in (None, "person"):
        expected = tying_pseudonyms(table, schema, ["person"], column)
        assert stored.tying_pseudonyms(["person"], column) == expected
        assert expected == ("person" if people < 900 else None)
    assert measure_grouped(stored.groups, schema, GUARANTEES) == measure_each(table, schema, GUARANTEES)


def test_a_name_among_pseudonyms_is_refused(tmp_path: Path) -> None:
    schema = SCHEMA.replace(columns={**SCHEMA.columns, "person": Column(role="unit", type="string")})
    table = rows(10).append_column("person", pa.array(["Ada Lovelace"] * 10))
    put(tmp_path / "data", table, 1)
    (tmp_path / "private").mkdir()
    with pytest.raises(VerificationFailed, match="something else than pseudonyms") as caught:
        read(tmp_path, schema=schema, pseudonyms=["person"])
    assert "Ada" not in str(caught.value)


def test_the_root_is_that_of_the_tree_by_its_definition() -> None:
    def by_definition(leaves: list[bytes]) -> bytes:
        if not leaves:
            return hashlib.sha256(b"").digest()
        if len(leaves) == 1:
            return hashlib.sha256(b"\0" + leaves[0]).digest()
        k = 1
        while 2 * k < len(leaves):
            k *= 2
        return hashlib.sha256(b"\1" + by_definition(leaves[:k]) + by_definition(leaves[k:])).digest()

    for n in range(40):
        leaves = [f"leaf {i}".encode() for i in range(n)]
        assert tree_root(leaves) == by_definition(leaves)


def test_the_root_changes_with_every_part_of_the_list() -> None:
    files = tuple(StoredFile(part_name(i), 10 + i, i, f"{i:064x}") for i in range(5))
    changed = [
        files[:-1],
        files[::-1],
        (*files, files[-1]),
        *(
            (*files[:i], dataclasses.replace(files[i], **change), *files[i + 1 :])
            for i in range(5)
            for change in ({"name": "x"}, {"bytes": 99}, {"rows": 99}, {"sha256": "f" * 64})
        ),
    ]
    roots = {merkle_root(each) for each in (files, *changed)}
    assert len(roots) == len(changed) + 1
    assert merkle_root(files) == merkle_root(list(files))


def test_order_of_content_is_that_of_released_rows() -> None:
    table = rows(500)
    assert in_order_of_content(table)
    assert not in_order_of_content(table.take(pa.array(np.random.default_rng(3).permutation(500))))
    assert in_order_of_content(table.slice(0, 1))
    assert in_order_of_content(table.slice(0, 0))
