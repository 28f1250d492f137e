"""A release at hand is attacked as its saved folder is: the texts it shows stand for the same values."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.data.schema import Schema
from tests.conformance.masks import example
from tests.conformance.masks import people as maskable
from tests.conformance.methods import SEARCHES
from tests.workflow.attacked import attack_folder

TOWNS = {"south": ["a", "b", "c"], "north": ["d", "e", "f"]}
ILLS = {"common": ["cold", "flu"], "rare": ["gout", "lupus"]}
SCHEMA = {
    "dataset": "towns",
    "unit": "record",
    "columns": {
        "town": {"role": "quasi", "type": "string", "hierarchy": {"tree": TOWNS}},
        "age": {"role": "quasi", "type": "integer", "hierarchy": {"intervals": [2, 4]}},
        "ill": {"role": "sensitive", "type": "string", "hierarchy": {"tree": ILLS}},
    },
}
FIELDS = pa.schema([("town", pa.string()), ("age", pa.int64()), ("ill", pa.string())])


def drawn(seed: int, rows: int = 50) -> pa.Table:
    draw = random.Random(seed)
    ills = [each for below in ILLS.values() for each in below]
    return pa.Table.from_pylist(
        [{"town": draw.choice("aabcdef"), "age": draw.choice([1, 2, 3, 4, 9]), "ill": draw.choice(ills)} for _ in range(rows)],
        schema=FIELDS,
    )


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> tuple[sf.Release, Path]:
    release = sf.protect(sf.read(drawn(1), SCHEMA), [sf.KAnonymity(2)], sf.Lattice(), seed=1)
    return release, release.save(tmp_path_factory.mktemp("earlier") / "release")


@pytest.mark.parametrize("search", SEARCHES)
def test_a_release_is_attacked_as_its_folder_is_whatever_search_made_it(
    search: str, earlier: tuple[sf.Release, Path], tmp_path: Path
) -> None:
    rows = drawn(1)
    release = sf.protect(sf.read(rows, SCHEMA), [sf.KAnonymity(3)], SEARCHES[search](), seed=1)
    folder = release.save(tmp_path / "release")
    register = rows.select(["town", "age"])
    at_hand = attack_folder(release, register=register, earlier=[earlier[0]])
    assert at_hand == attack_folder(folder, register=register, earlier=[earlier[1]])
    assert {"Homogeneity", "Similarity", "Linkage", "Intersection"} <= {each["attack"] for each in at_hand}


def test_what_read_returns_is_a_register(earlier: tuple[sf.Release, Path]) -> None:
    release, rows = earlier[0], drawn(1)
    linked = sf.attack(release, register=rows, only="Linkage")
    assert release.attack(register=sf.read(rows, SCHEMA), only="Linkage") == linked


@pytest.mark.parametrize("mask", ["Generalisation", "Mdav", "Pram", "RankSwapping"])
def test_a_masked_release_is_attacked_as_its_folder_is(mask: str, tmp_path: Path) -> None:
    people = maskable(60)
    release = sf.protect(people, [], example(mask), seed=1, utility=[], risk=[])
    known: dict[str, Any] = {"register": people.table(), "aligned": True}
    assert attack_folder(release, **known) == attack_folder(release.save(tmp_path / "release"), **known)


DAYS: dict[str, Any] = {
    "dates": {"dates": ["month", "year"]},
    "mask": {"mask": "right"},
    "file": {"file": "days.csv"},
}


@pytest.mark.parametrize("by", DAYS)
def test_a_view_is_read_over_the_register_as_its_release_is(by: str, tmp_path: Path) -> None:
    """A view that was made without the register, or with another, finds everybody whom the folder finds."""
    days = [f"2020-{1 + n % 12:02d}-{1 + n % 7:02d}" for n in range(84)]
    (tmp_path / "days.csv").write_text("".join(f"{day};{day[:7]};{day[:4]};*\n" for day in sorted(set(days))))
    day = {"role": "quasi", "type": "date" if by == "dates" else "string", "hierarchy": DAYS[by]}
    ills = ["cold", "flu", "gout"] * 28
    source = pa.table({"day": days, "ill": ills})
    columns = {"day": day, "ill": {"role": "sensitive", "type": "string"}}
    schema = Schema.parse({"dataset": "days", "columns": columns}).replace(folder=str(tmp_path))
    release = sf.protect(sf.read(source, schema), [sf.KAnonymity(3)], sf.Lattice(suppression=0.3), seed=1)
    register = pa.table({"day": sorted(set(days))})
    folder = release.save(tmp_path / "release")
    at_hand = sf.attack(release, register=register, only="Linkage")
    assert at_hand[0].success > 0
    other = pa.table({"day": days[:1]})
    for view in (release.view(), release.view(register=other), release.view(register=register), folder):
        assert sf.attack(view, register=register, only="Linkage") == at_hand


def covers(shown: str | None, value: Any) -> bool:
    """Whether a person with this value may be behind the text."""
    if shown is None or value is None:
        return shown is None and value is None
    if shown == "*" or shown in TOWNS:
        return shown == "*" or value in TOWNS[shown]
    if shown.startswith("["):
        low, high = shown[1:-1].split(",")
        return float(low) <= float(value) < float(high) + (shown[-1] == "]") * 1e-9
    return shown == str(value)


@pytest.mark.parametrize(
    "search",
    [sf.Lattice(suppression=0.3), sf.Mondrian(ranges_everywhere=True), sf.LocalRecoding()],
    ids=lambda s: type(s).__name__,
)
def test_linkage_counts_whom_the_generalised_texts_cover(search: Any) -> None:
    rows = drawn(3, 60)
    release = sf.protect(sf.read(rows, SCHEMA), [sf.KAnonymity(3)], search, seed=1)
    shown = [(row["town"], None if row["age"] is None else str(row["age"])) for row in release.data.to_pylist()]
    register = [*rows.select(["town", "age"]).to_pylist(), {"town": "f", "age": 20}, {"town": None, "age": 1}]
    matches = [sum(covers(town, person["town"]) and covers(age, person["age"]) for town, age in shown) for person in register]
    table = pa.Table.from_pylist(register, schema=pa.schema(list(FIELDS)[:2]))
    for found in (
        sf.attack(release, register=table, only="Linkage")[0],
        sf.attacks.Linkage().run(release.view(register=table), table),
    ):
        assert found.success == pytest.approx(sum(1 / each for each in matches if each) / len(register))
        assert found.details["without_match"] == matches.count(0)
        assert found.details["identified"] == matches.count(1)
