"""A fingerprint belongs to the multiset of rows and to the key."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sfumato.core.errors import SourceError
from sfumato.wire.fingerprint import Fingerprint, fingerprint, sha256_file
from sfumato.wire.keys import OwnerKey

KEY = OwnerKey(bytes(range(32)))

values = st.one_of(st.none(), st.sampled_from(["", "a", "b", "missing", "None", "ü", "01234"]))
rows = st.lists(st.tuples(values, st.one_of(st.none(), st.integers(-3, 3))), max_size=12)


def table(content: list[tuple[str | None, int | None]]) -> pa.Table:
    return pa.table(
        {
            "name": pa.array([row[0] for row in content], pa.string()),
            "number": pa.array([row[1] for row in content], pa.int64()),
        }
    )


@given(rows, st.randoms(use_true_random=False))
def test_the_order_of_rows_and_columns_does_not_matter(content: list, random) -> None:  # type: ignore[no-untyped-def,type-arg]
    shuffled = random.sample(content, len(content))
    assert fingerprint(table(content), KEY) == fingerprint(table(shuffled).select(["number", "name"]), KEY)


@given(rows, rows)
def test_different_multisets_of_rows_have_different_fingerprints(one: list, other: list) -> None:  # type: ignore[type-arg]
    assume(sorted(map(repr, one)) != sorted(map(repr, other)))
    assert fingerprint(table(one), KEY) != fingerprint(table(other), KEY)


@given(rows, st.integers(1, 5))
def test_encoding_and_chunking_do_not_matter(content: list, chunk: int) -> None:  # type: ignore[type-arg]
    plain = table(content)
    expected = fingerprint(plain, KEY)
    encoded = pa.table({name: plain[name].dictionary_encode() for name in plain.column_names})
    pieces = [plain.slice(start, chunk) for start in range(0, len(plain), chunk)]
    recoded = [pa.table({n: piece[n].dictionary_encode() for n in piece.column_names}) for piece in pieces]
    assert fingerprint(encoded, KEY) == expected
    if pieces:
        assert fingerprint(pa.concat_tables(pieces), KEY) == expected == fingerprint(pa.concat_tables(recoded), KEY)
    narrow = plain.set_column(1, "number", plain["number"].cast(pa.int8()))
    wide = narrow.set_column(0, "name", narrow["name"].cast(pa.large_string()))
    assert fingerprint(wide, KEY) == expected


def test_values_exchanged_between_rows_are_noticed() -> None:
    assert fingerprint(table([("a", 1), ("b", 2)]), KEY) != fingerprint(table([("a", 2), ("b", 1)]), KEY)


def test_repeated_rows_count() -> None:
    seen = {fingerprint(table([("a", 1)] * count), KEY) for count in range(20)}
    assert len(seen) == 20


def test_another_key_gives_an_unrelated_fingerprint() -> None:
    content = table([("a", 1)])
    assert fingerprint(content, KEY) != fingerprint(content, OwnerKey(bytes(32)))
    assert fingerprint(content, KEY.derive("fingerprint")) == fingerprint(content, KEY)


def test_column_names_matter() -> None:
    content = table([("a", 1)])
    assert fingerprint(content, KEY) != fingerprint(content.rename_columns(["name", "count"]), KEY)
    twins = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["x", "x"])
    assert fingerprint(twins, KEY) != fingerprint(twins.select([1, 0]), KEY)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array([1.0, None]), pa.array([1.0, float("nan")])),
        (pa.array([1, None]), pa.array([1, 0])),
        (pa.array([True, False]), pa.array([1, 0])),
        (pa.array([datetime.date(2026, 1, 1)]), pa.array([datetime.date(2026, 1, 2)])),
        (pa.array([datetime.datetime(2026, 1, 1)]), pa.array([datetime.datetime(2026, 1, 1, 0, 0, 1)])),
        (pa.array([[1, 2], [3]]), pa.array([[1], [2, 3]])),
        (pa.array([b"a"]), pa.array(["a"])),
        (pa.array(["1"]), pa.array([1])),
        (pa.array([None]), pa.array(["missing"])),
        (pa.array([2**63], pa.uint64()), pa.array([-(2**63)], pa.int64())),
    ],
)
def test_values_of_all_types_are_told_apart(one: pa.Array, other: pa.Array) -> None:
    assert fingerprint(pa.table({"x": one}), KEY) != fingerprint(pa.table({"x": other}), KEY)


def test_the_unit_of_a_time_does_not_matter() -> None:
    moment = pa.array([datetime.datetime(1969, 7, 20, 20, 17), None])
    units = [moment.cast(pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")]
    assert len({fingerprint(pa.table({"x": array}), KEY) for array in units}) == 1
    fine = pa.array([1, 2], pa.timestamp("ns"))
    assert fingerprint(pa.table({"x": fine}), KEY) != fingerprint(pa.table({"x": fine.take([0, 0])}), KEY)
    days = pa.array([datetime.date(1969, 7, 20)])
    assert fingerprint(pa.table({"x": days}), KEY) == fingerprint(pa.table({"x": days.cast(pa.date64())}), KEY)


def test_equal_numbers_are_equal() -> None:
    zeros = (pa.array([0.0]), pa.array([-0.0]), pa.array([0.0], pa.float32()))
    assert len({fingerprint(pa.table({"x": zero}), KEY) for zero in zeros}) == 1


def test_a_frozen_fingerprint() -> None:
    """Fingerprints on certificates must stay comparable: this one may never change."""
    content = pa.table({"name": ["Ada", None, "Ada"], "age": [36, 7, None], "weight": [1.5, float("nan"), -0.0]})
    assert fingerprint(content, KEY) == "sfumato-fingerprint-1:8b353fa9c0b07fba3f1b05b005846b9aed62859bc5827eed286c701ec7eb0751"


def test_a_batch_with_other_columns_is_refused() -> None:
    running = Fingerprint(["a"], KEY)
    with pytest.raises(SourceError):
        running.add(pa.record_batch({"b": pa.array([1])}))


def test_random_changes_of_a_large_table_are_noticed() -> None:
    random = np.random.default_rng(3)
    codes = random.integers(0, 50, (4, 20_000))
    seen = set()
    for _ in range(30):
        codes[random.integers(4), random.integers(20_000)] += 50
        seen.add(fingerprint(pa.table({str(c): pa.array(codes[c]) for c in range(4)}), KEY))
    assert len(seen) == 30


@pytest.mark.slow
def test_a_million_rows_in_another_order_have_the_same_fingerprint() -> None:
    random = np.random.default_rng(1)
    domain = pa.array([f"value {number}" for number in range(60)])
    columns = {
        f"c{number}": pa.DictionaryArray.from_arrays(pa.array(random.integers(0, 60, 10**6, dtype=np.int32)), domain)
        for number in range(9)
    }
    content = pa.table(columns)
    assert fingerprint(content, KEY) == fingerprint(content.take(pa.array(random.permutation(10**6))), KEY)


def test_a_file_is_digested_within_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"abc")
    found = sha256_file(path, limit=3)
    assert found.bytes == 3 and found.sha256.startswith("ba7816bf")
    with pytest.raises(SourceError, match="longer"):
        sha256_file(path, limit=2)
    (tmp_path / "link").symlink_to(path)
    assert sha256_file(tmp_path / "link") == found
    os.mkfifo(tmp_path / "pipe")
    for name, options in (("link", {"follow_links": False}), ("pipe", {}), ("absent", {}), (".", {})):
        with pytest.raises(SourceError):
            sha256_file(tmp_path / name, **options)
