"""Transactions: from lines, long tables, lists and columns; what is broken is refused by its number, and no item is shown."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import InputError, MissingColumn, ParameterError, SourceError
from sfumato.data.transactions import Transactions

BASKETS = [("bread", "milk"), (), ("beer",), ("bread",)]


def test_every_way_of_having_baskets_gives_the_same(tmp_path: Path) -> None:
    wanted = Transactions.of(BASKETS)
    lines = tmp_path / "b.dat"
    lines.write_text("milk bread milk \n\nbeer\r\nbread")
    long = pa.table({"order": [7, 3, 7, 9], "product": ["milk", "beer", "bread", "bread"]})
    lists = pa.chunked_array([[["milk", "bread"], []], [["beer"], ["bread", "bread"]]])
    pq.write_table(pa.table({"items": lists}), tmp_path / "lists.parquet")
    (tmp_path / "long.csv").write_text("order,product\n7,milk\n3,beer\n7,bread\n9,bread\n")
    made = [
        Transactions.read(lines),
        Transactions.of_lists(lists),
        Transactions.read(tmp_path / "lists.parquet", item="items"),
    ]
    assert all(each.same_baskets(wanted) for each in made)
    without_empty = [("bread", "milk"), ("beer",), ("bread",)]
    by_file = Transactions.read(tmp_path / "long.csv", basket="order", item="product")
    by_engine = Transactions.of_table(sf.read(tmp_path / "long.csv", engine="duckdb"), basket="order", item="product")
    for each in (Transactions.of_table(long, basket="order", item="product"), by_file):
        assert list(each.baskets()) == without_empty
    assert sorted(by_engine.baskets()) == sorted(without_empty)


def test_records_become_baskets_of_their_values() -> None:
    people = pa.table({"sex": ["f", None], "age": [30, 40], "name": ["x", "y"]})
    assert list(Transactions.of_columns(people, ["sex", "age"]).baskets()) == [("age=30", "sex=f"), ("age=40",)]
    with pytest.raises(MissingColumn, match="no column 'gone'"):
        Transactions.of_columns(people, ["gone"])


@given(st.lists(st.lists(st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=4))))
def test_what_is_written_with_tabs_is_read_back(baskets: list[list[str]]) -> None:
    from sfumato.data.transactions_files import written_lines

    made = Transactions.of(baskets)
    lines = written_lines(made.baskets(), made.items, "\t").decode()
    back = Transactions.of([line.split("\t") if line else [] for line in lines.split("\n")[:-1]])
    assert list(back.baskets()) == list(made.baskets()) == [tuple(sorted(set(basket))) for basket in baskets]
    assert back.support(made.items[:2]) == sum(set(made.items[:2]) <= set(basket) for basket in baskets)


def test_broken_lines_are_all_named_and_nothing_else_is(tmp_path: Path) -> None:
    place = tmp_path / "b.dat"
    place.write_bytes(b"milk\n\xff secret\nbread\nsecret\x00 x\n" + b"y" * 2000 + b"\n")
    with pytest.raises(InputError, match=r"'b.dat' has broken lines: lines 2, 4, 5: an item is empty, no UTF-8") as refused:
        Transactions.read(place)
    assert "secret" not in str(refused.value)
    place.write_bytes(b"a,,b\n")
    with pytest.raises(InputError, match="line 1"):
        Transactions.read(place, separator=",")
    with pytest.raises(SourceError, match="cannot be read"):
        Transactions.read(tmp_path / "gone.dat")
    with pytest.raises(InputError, match="leave basket= and item= out"):
        Transactions.read(place, item="x")


def test_a_line_without_an_end_is_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.data.transactions_files.LONGEST_LINE", 100)
    (tmp_path / "b.dat").write_bytes(b"a b\n" + b"x " * 10_000)
    with pytest.raises(InputError, match="line 2: longer than 100 bytes"):
        Transactions.read(tmp_path / "b.dat")


def test_records_without_basket_or_item_are_refused_by_their_number() -> None:
    long = pa.table({"order": ["1", None, "2"], "product": ["a", "b", None]})
    with pytest.raises(InputError, match="records 2, 3: 'order' or 'product' is missing"):
        Transactions.of_table(long, basket="order", item="product")
    with pytest.raises(InputError, match="record 2: no basket"):
        Transactions.of_lists(pa.array([["a"], None]))
    with pytest.raises(InputError, match="record 1: an item is missing in a list"):
        Transactions.of_lists(pa.array([["a", None], ["b"]]))
    with pytest.raises(InputError, match="basket 2: not a list"):
        Transactions.of([["a"], "ab"])


def test_an_item_with_the_separator_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="1 of the items hold the separator"):
        Transactions.of([["whole milk", "beer"]]).write(tmp_path / "b.dat")
    Transactions.of([["whole milk", "beer"]]).write(tmp_path / "b.dat", separator="\t")
    assert list(Transactions.read(tmp_path / "b.dat", separator="\t").baskets()) == [("beer", "whole milk")]


def test_nothing_shows_an_item() -> None:
    assert repr(Transactions.of(BASKETS)) == "Transactions(4 baskets, 3 items, 4 entries)"
    hidden = sf.Hidden([["secret"]], 2)
    assert "secret" not in repr(hidden) and "secret" not in hidden.claim()
    with pytest.raises(ParameterError) as refused:
        sf.Hidden(["secret"], 2)
    assert "secret" not in str(refused.value)
