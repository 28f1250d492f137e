"""Bounded contributions: sampling and truncating."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import MissingColumn, ParameterError, Unsupported
from sfumato.core.randomness import default
from sfumato.dp import bound_contributions
from sfumato.dp.algorithms.contributions import bounded_rows
from tests.dp.algorithms.tables import microdata

LOG = {
    "Alice": ["car", "bicycle"],
    "Bob": ["apples", "bananas", "koc university"],
    "Sam": ["Sam Altman", "Open AI", "Ward"],
}


def by_user(table: pa.Table) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in table.to_pylist():
        found.setdefault(row["user"], []).append(row["keyword"])
    return found


@pytest.mark.golden("G-DP-24")
def test_search_log_truncated_to_two_keywords() -> None:
    pairs = [(user, word) for user, words in LOG.items() for word in words]
    log = microdata(
        {"user": [user for user, _ in pairs], "keyword": [word for _, word in pairs]}, {"user": {"role": "unit"}, "keyword": {}}
    )
    bounded = bound_contributions(log, 2, method="truncate")
    assert by_user(bounded.table()) == {
        "Alice": ["car", "bicycle"],
        "Bob": ["apples", "bananas"],
        "Sam": ["Sam Altman", "Open AI"],
    }
    counts = Counter(word for words in by_user(bounded.table()).values() for word in words)
    for user in LOG:  # the L1 sensitivity is 2, and it is reached
        others = Counter(word for other, words in by_user(bounded.table()).items() if other != user for word in words)
        assert sum((counts - others).values()) == 2


rows = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 3), st.integers(0, 2)), max_size=30)


@given(rows, st.integers(1, 4), st.sampled_from("abcd"), st.randoms(use_true_random=False))
def test_a_unit_that_goes_takes_only_its_own_rows_along(
    entries: list[tuple[str, int, int]], limit: int, gone: str, random: object
) -> None:
    """Truncating by a column with ties: what is kept of others depends neither on the unit that goes nor on storage order."""

    def kept(given_rows: list[tuple[str, int, int]]) -> Counter[tuple[str, int, int]]:
        table = pa.table({name: pa.array([row[i] for row in given_rows], kind) for i, (name, kind) in enumerate(KINDS)})
        bounded = bounded_rows(table, "user", limit, method="truncate", order="time")
        return Counter((row["user"], row["time"], row["value"]) for row in bounded.to_pylist())

    KINDS = [("user", pa.string()), ("time", pa.int64()), ("value", pa.int64())]
    shuffled = list(entries)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    everyone, others = kept(entries), kept([row for row in shuffled if row[0] != gone])
    change = everyone - others
    assert not others - everyone
    assert sum(change.values()) <= limit
    assert {row[0] for row in change} <= {gone}


@given(rows, st.integers(1, 4), st.integers(0, 2**32))
def test_a_sample_keeps_as_many_rows_as_allowed(entries: list[tuple[str, int, int]], limit: int, seed: int) -> None:
    table = pa.table({"user": pa.array([row[0] for row in entries], pa.string()), "n": pa.array(range(len(entries)), pa.int64())})
    bounded = bounded_rows(table, "user", limit, randomness=default(seed))
    have, keep = Counter(row[0] for row in entries), Counter(bounded.column("user").to_pylist())
    assert keep == Counter({user: min(count, limit) for user, count in have.items()})
    numbers = bounded.column("n").to_pylist()
    assert numbers == sorted(set(numbers))


def test_every_pair_of_rows_is_sampled_equally_often() -> None:
    """6,000 samples of 2 of 4 rows: chi-square with 5 degrees of freedom above 37.3 has probability below 10⁻⁶."""
    table = pa.table({"user": ["u"] * 4, "n": [0, 1, 2, 3]})
    source = default("pairs")
    drawn = Counter(tuple(bounded_rows(table, "user", 2, randomness=source).column("n").to_pylist()) for _ in range(6_000))
    assert len(drawn) == 6
    assert sum((count - 1_000) ** 2 / 1_000 for count in drawn.values()) < 37.3


def test_rows_without_a_unit_are_left_out_and_missing_times_come_last() -> None:
    table = pa.table({"user": ["a", None, "a", "a"], "time": [None, 1, 5, 2], "n": [0, 1, 2, 3]})
    assert bounded_rows(table, "user", 2, method="truncate", order="time").column("n").to_pylist() == [2, 3]


def test_the_same_seed_keeps_the_same_rows() -> None:
    table = pa.table({"user": ["a"] * 50, "n": list(range(50))})
    first, again = (bounded_rows(table, "user", 5, randomness=default(3)) for _ in range(2))
    assert first.equals(again)
    assert not first.equals(bounded_rows(table, "user", 5, randomness=default(4)))


def test_an_empty_table_stays_empty() -> None:
    data = microdata({"user": [], "x": []}, {"user": {"role": "unit"}, "x": {}}, {"user": pa.string(), "x": pa.int64()})
    assert len(bound_contributions(data, 3, method="truncate", order="x")) == 0
    assert len(bound_contributions(data, 3)) == 0


def test_rows_of_a_database_have_no_order_of_their_own(tmp_path: Path) -> None:
    pq.write_table(pa.table({"user": ["a", "a", "b"], "day": [2, 1, 1]}), tmp_path / "log.parquet")
    data = sf.read(tmp_path / "log.parquet", {"columns": {"user": {"role": "unit"}, "day": {}}}, engine="duckdb")
    with pytest.raises(Unsupported, match="order"):
        bound_contributions(data, 1, method="truncate")
    kept = bound_contributions(data, 1, method="truncate", order="day").table()
    assert sorted(zip(kept.column("user").to_pylist(), kept.column("day").to_pylist(), strict=True)) == [("a", 1), ("b", 1)]


def test_refusals_say_what_to_do() -> None:
    data = microdata({"user": ["a"], "x": [1]}, {"user": {}, "x": {}})
    with pytest.raises(ParameterError, match="role"):
        bound_contributions(data, 1)
    with pytest.raises(MissingColumn, match=r"2 faults(.|\n)*nobody(.|\n)*never"):
        bound_contributions(data, 1, unit="nobody", order="never", method="truncate")
    for wrong in (0, -1, True, 10**7):
        with pytest.raises(ParameterError, match="rows"):
            bound_contributions(data, wrong, unit="user")
    with pytest.raises(ParameterError, match="truncate"):
        bound_contributions(data, 1, unit="user", method="cut")  # type: ignore[arg-type]
