"""Limits count what is really read: files that lie about their size, never end, or wait for a writer."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.core.errors import InputError, LedgerError, ParameterError, SfumatoError, SourceError, VerificationFailed
from sfumato.data.readers import expanding
from sfumato.workflow.attacking import outputs as attacking_outputs
from sfumato.workflow.attacking import releases as attacking
from sfumato.workflow.publishing import signing
from sfumato.workflow.verifying import limited_reading, untrusted
from sfumato.workflow.verifying.limited_reading import unpack, unpack_in_turn
from tests.workflow.people import people


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("made")
    os.environ.setdefault("SFUMATO_KEY", str(place / "owner.key"))
    sf.protect(people(200), [sf.KAnonymity(5)], sf.Lattice(suppression=0.1)).save(place / "out")
    return place / "out"


@pytest.fixture
def public(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "out")
    return tmp_path / "out" / "public"


def restate(public: Path, name: str, **changes: Any) -> None:
    """Make the certificate agree with a changed file, as a careful forger would."""
    digest, length = hashlib.sha256(), 0
    with (public / name).open("rb") as file:
        while block := file.read(1 << 24):
            digest.update(block)
            length += len(block)
    path = public / "certificate.json"
    content = json.loads(path.read_text())
    content["files"][name] |= {"sha256": digest.hexdigest(), "bytes": length, **changes}
    path.write_text(json.dumps(content))


def constant(path: Path, columns: list[str], rows: int, groups: int = 1) -> None:
    """A few kilobytes of Parquet: the same number in every row."""
    ones = pa.array([7], pa.int64()).take(pa.array([0] * 1_000, pa.int32()))
    part = pa.chunked_array([ones] * (rows // 1_000)).combine_chunks()
    table = pa.table(dict.fromkeys(columns, part))
    pages: dict[str, Any] = {"data_page_size": 1 << 30, "write_batch_size": 1 << 26, "max_rows_per_page": 1 << 30}
    with pq.ParquetWriter(path, table.schema, compression="zstd", write_statistics=False, **pages) as writer:
        for _ in range(groups):
            writer.write_table(table, row_group_size=rows)


@pytest.mark.slow
def test_a_small_file_that_unpacks_into_more_than_a_gigabyte_is_given_up(public: Path) -> None:
    """The footer says nothing of it: lengths of dictionary pages are those of the codes."""
    names = pq.read_schema(public / "data.parquet").names
    rows = (1_200_000_000 // (8 * len(names)) // 1_000) * 1_000
    constant(public / "data.parquet", names, rows)
    assert (public / "data.parquet").stat().st_size < 60_000
    restate(public, "data.parquet", rows=rows)
    found = sf.verify(public.parent)
    assert not found.holds
    assert "unpacks into more than" in found.explain()


def test_the_bytes_that_come_out_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    constant(tmp_path / "data.parquet", ["a", "b"], 100_000, groups=4)
    assert unpack(tmp_path / "data.parquet").num_rows == 400_000
    monkeypatch.setenv(limited_reading.VARIABLE, "2000000")
    with pytest.raises(VerificationFailed, match="2,000,000 bytes") as caught:
        unpack(tmp_path / "data.parquet")
    assert caught.value.__cause__ is None
    monkeypatch.setenv(limited_reading.VARIABLE, "-5")
    with pytest.raises(ParameterError, match=limited_reading.VARIABLE):
        unpack(tmp_path / "data.parquet")


def test_long_texts_behind_short_codes_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 10_000, pa.int32()), pa.array(["x" * 100_000]))
    pq.write_table(pa.table({"a": texts}), tmp_path / "data.parquet", compression="zstd")
    monkeypatch.setenv(limited_reading.VARIABLE, "500000000")
    with pytest.raises(VerificationFailed, match="unpacks into more"):
        unpack(tmp_path / "data.parquet")


@pytest.mark.slow
def test_a_page_that_needs_more_memory_than_granted_is_a_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = pa.table({"a": pa.array(["x" * 1_000_000] * 300)})
    options: dict[str, Any] = {"data_page_size": 1 << 30, "write_batch_size": 1 << 20}
    pq.write_table(page, tmp_path / "data.parquet", compression="zstd", use_dictionary=False, **options)
    monkeypatch.setattr(limited_reading, "_CHILD_BYTES", 500_000_000)
    with pytest.raises(VerificationFailed, match="memory|stopped"):
        unpack(tmp_path / "data.parquet")


def test_a_child_that_hangs_or_dies_is_a_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    constant(tmp_path / "data.parquet", ["a"], 1_000)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(VerificationFailed, match="stopped"):
        unpack(tmp_path / "data.parquet")
    monkeypatch.undo()
    monkeypatch.setattr(limited_reading, "_PATIENCE", 0)
    with pytest.raises(VerificationFailed, match="given up"):
        unpack(tmp_path / "data.parquet")


def test_rows_that_come_in_turn_are_counted_as_those_that_come_at_once(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    texts = pa.array(["a", None, "b", "a", "cc", "b", "a"])
    pq.write_table(pa.table({"text": texts, "whole": range(7)}), path, row_group_size=2)
    pieces = list(unpack_in_turn(path, 7, range(1, 4), [4, 1]))
    assert [piece.num_rows for piece in pieces] == [4, 1]
    assert pa.concat_tables(pieces).to_pylist() == unpack(path, 7, range(1, 4)).to_pylist()
    assert list(unpack_in_turn(path, 7, range(0), [])) == []
    for sizes in ([4], [3, 2], [4, 2], [2, 2, 1, 1]):
        with pytest.raises(VerificationFailed, match="as many rows"):
            list(unpack_in_turn(path, 7, range(1, 4), sizes))
    with pytest.raises(VerificationFailed, match="as many rows"):
        list(unpack_in_turn(path, 8, range(1, 4), [4, 1]))


def test_long_texts_behind_short_codes_are_counted_over_all_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000, pa.int32()), pa.array(["x" * 100_000]))
    with pq.ParquetWriter(tmp_path / "data.parquet", pa.schema([("a", pa.string())]), compression="zstd") as writer:
        for _ in range(4):
            writer.write_table(pa.table({"a": texts.cast(pa.string())}))
    monkeypatch.setenv(limited_reading.VARIABLE, "300000000")
    tables = unpack_in_turn(tmp_path / "data.parquet", 4_000, range(4), [1_000] * 4)
    assert [next(tables).num_rows, next(tables).num_rows] == [1_000, 1_000]
    with pytest.raises(VerificationFailed, match="unpacks into more"):
        list(tables)


def test_what_comes_back_is_what_the_reader_in_process_reads(made: Path, tmp_path: Path) -> None:
    table = pa.table(
        {
            "text": pa.array(["a", None, "b", "a"]),
            "whole": pa.array([1, 2, None, 4], pa.int64()),
            "day": pa.array([0, 1, 2, None], pa.date32()),
            "exact": pa.array(["1.50", "2.25", None, "0.01"]).cast(pa.decimal128(9, 2)),
        }
    )
    for number, given in enumerate((table, table.slice(0, 0))):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(given, path, row_group_size=3)
        found = unpack(path)
        assert pa.types.is_dictionary(found.schema.field("text").type)
        assert found.to_pylist() == given.to_pylist()


def test_nothing_is_left_of_the_rows(public: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert sf.verify(public.parent).holds
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_file_of_holes_is_not_copied(public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied = untrusted._copy

    def watched(name: str, *rest: Any) -> int:
        assert name != "data.parquet", "it was copied"
        return copied(name, *rest)

    monkeypatch.setattr(untrusted, "_copy", watched)
    for limit in (None, 300_000_000):
        with (public / "data.parquet").open("r+b") as file:
            file.truncate(limit or 15_000_000_000)
        if limit:
            restate(public, "data.parquet")
        found = sf.verify(public.parent)
        assert not found.holds
        assert ("mostly holes" if limit else "length differs") in found.explain()


def test_a_pipe_never_makes_verify_wait(public: Path) -> None:
    for name in ("data.parquet", "certificate.json"):
        (public / name).unlink()
        os.mkfifo(public / name)
        assert not sf.verify(public.parent).holds


SPECIAL: dict[str, Callable[[str], Any]] = {
    "data": lambda place: sf.read(place),
    "data on disk": lambda place: sf.read(place, engine="duckdb"),
    "population": lambda place: sf.protect(people(50), [sf.KMap(2)], population=place),
    "schema": lambda place: sf.Schema.load(place),
    "hierarchy": lambda place: sf.protect(
        pa.table({"zip": ["a", "b"] * 10}),
        sf.KAnonymity(2),
        schema={"columns": {"zip": {"role": "quasi", "hierarchy": place}}},
    ),
    "recipe": lambda place: sf.Recipe.load(place),
    "public key": lambda place: signing.public_key(place),
    "any key": lambda place: signing.known_key(place),
    "owner's key": lambda place: sf.protect(people(50), sf.KAnonymity(2), key=place),
    "register": lambda place: attacking._table(place, aligned=False),
    "answers": lambda place: attacking_outputs.attack_outputs(place),
    "ledger": lambda place: sf.ledger.Ledger.open(place),
}


@pytest.mark.parametrize("what", SPECIAL)
def test_pipes_and_devices_are_refused_at_once(what: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in (str(tmp_path / "pipe"), "/dev/zero"):
        with pytest.raises((InputError, LedgerError), match="not a plain file|is missing"):
            SPECIAL[what](place)


def test_a_compressed_table_is_read_as_far_as_its_size_allows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "people.csv.gz"
    with gzip.open(path, "wb") as file:
        file.write(b"age,town\n" + b"34,Lisbon\n" * 200_000)
    assert len(sf.read(path)) == 200_000
    monkeypatch.setattr(expanding, "FREE_BYTES", 100_000)
    with pytest.raises(SourceError, match=expanding.VARIABLE):
        sf.read(path)
    monkeypatch.setenv(expanding.VARIABLE, "2000")
    assert len(sf.read(path)) == 200_000
    monkeypatch.setenv(expanding.VARIABLE, "much")
    with pytest.raises(ParameterError, match=expanding.VARIABLE):
        sf.read(path)


def test_a_workbook_that_unpacks_into_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "people.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b" " * 50_000_000)
    monkeypatch.setattr(expanding, "FREE_BYTES", 1_000_000)
    with pytest.raises(SourceError, match="unpacks into more"):
        sf.read(path)


def test_a_file_that_grows_is_read_to_its_limit_only(tmp_path: Path) -> None:
    from sfumato.core.files import read_plain

    (tmp_path / "long.toml").write_bytes(b"x" * 101)
    with pytest.raises(SfumatoError, match="longer than 100 bytes"):
        read_plain(tmp_path / "long.toml", limit=100)
