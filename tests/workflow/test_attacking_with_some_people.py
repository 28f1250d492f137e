"""A register of some of the people attacks a masked release: the owner's folder says who is who, without the source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.cli.main import run
from sfumato.core.errors import InputError, MissingColumn
from sfumato.data.schema import Column, Schema
from sfumato.measures.risk.success import wilson
from sfumato.workflow.contents.who_is_who import PEOPLE, WhoIsWho

COLUMNS = {
    "patient": Column(role="unit", type="string"),
    "card": Column(role="identifier", type="string"),
    "age": Column(role="quasi", type="integer"),
    "weight": Column(role="quasi", type="number"),
    "wage": Column(role="quasi", type="number", missing=("-9",)),
}
SCHEMA = Schema(dataset="visits", columns=COLUMNS)


def visits(rows_of_each: int) -> pd.DataFrame:
    draw = np.random.default_rng(7)
    frame = pd.DataFrame(
        {
            "patient": [f"{i // rows_of_each:04}" for i in range(240)],  # 0007 is a text, and read as a number it is another
            "card": [f"c{i}" for i in range(240)],
            "age": draw.integers(20, 80, 240),
            "weight": draw.normal(70, 12, 240).round(1),
            "wage": draw.lognormal(7, 0.6, 240).round(),
        }
    )
    frame.loc[5:9, "wage"] = -9
    return frame


@pytest.fixture(scope="module", params=[1, 3], ids=["one row of each", "three rows of each"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("some")
    frame = visits(request.param)
    frame.to_csv(folder / "source.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SFUMATO_KEY", str(folder / "owner.key"))
        source = sf.read(folder / "source.csv", SCHEMA)
        sf.mask(source, sf.AdditiveNoise(0.08), utility=(), risk=()).save(folder / "out")
    some = frame.iloc[np.random.default_rng(3).permutation(240)[:90]].copy()
    some.iloc[:10, 0] = [f"x{i}" for i in range(10)]  # people whom the release does not have
    some.iloc[10:12, 0] = None
    some.to_csv(folder / "register.csv", index=False)
    return folder


def by_brute_force(place: Path) -> tuple[float, int, float]:
    """Hits, judged entries and the hits of blind guesses, from the source table in pandas."""
    released = pd.read_parquet(place / "out" / "public" / "data.parquet")
    source = pd.read_csv(place / "source.csv", dtype={"patient": str})
    rows = pq.read_table(place / "out" / "owner" / "rows.parquet").column("source_row").to_numpy()
    owner = source["patient"].to_numpy()[rows]
    register = pd.read_csv(place / "register.csv", dtype={"patient": str})
    names = ["age", "weight", "wage"]
    shown = released[names].to_numpy(dtype=float)
    scale = np.nanstd(shown, axis=0)
    filled = 2.0  # a missing value differs by the mean square difference of two records: twice the variance
    hits, judged, blind = 0.0, 0, 0.0
    for entry in register.itertuples():
        mine = owner == entry.patient
        if not mine.any():
            continue
        judged += 1
        blind += mine.mean()
        values = np.array([entry.age, entry.weight, np.nan if entry.wage == -9 else entry.wage], dtype=float)
        squares = ((shown - values) / scale) ** 2
        squares[np.isnan(squares)] = filled
        distance = squares.sum(axis=1)
        nearest = distance <= distance.min() * (1 + 1e-9)
        hits += mine[nearest].mean()
    return hits, judged, blind


def test_the_hits_are_those_of_brute_force_over_the_people_who_can_be_judged(place: Path) -> None:
    (found,) = sf.attack(place / "out", register=place / "register.csv", only="RegisterLinkage")
    hits, judged, blind = by_brute_force(place)
    assert (found.targets, found.details["not_judged"]) == (judged, 90 - judged) == (78, 12)
    assert found.details["expected_correct"] == pytest.approx(hits, abs=1e-9)
    assert found.success == pytest.approx(hits / judged) and found.success > 5 * found.baseline
    assert found.baseline == pytest.approx(blind / judged)
    low, high = found.interval
    assert low < found.success < high
    assert "Of 90 entries in the register, 78 can be judged" in found.finding


def test_every_way_to_name_the_people_finds_the_same(place: Path) -> None:
    unasked, by_key = (
        sf.attack(place / "out", register=place / "register.csv", only="RegisterLinkage", **options)
        for options in ({}, {"key": "patient"})
    )
    own = sf.read(place / "register.csv", SCHEMA)  # the register declares its unit
    assert unasked == by_key == sf.attack(place / "out", register=own, only="RegisterLinkage")
    (by_card,) = sf.attack(place / "out", register=own, key="card", only="RegisterLinkage")
    assert by_card.targets == 90 and by_card.baseline == pytest.approx(1 / 240)  # a card has one row, and everybody a card


def test_the_order_of_the_register_is_no_matter_and_the_source_gives_the_same(place: Path) -> None:
    source = pd.read_csv(place / "source.csv", dtype={"patient": str})
    source.iloc[::-1].to_csv(place / "reversed.csv", index=False)
    (by_key,) = sf.attack(place / "out", register=place / "reversed.csv", key="card", only="RegisterLinkage")
    (aligned,) = sf.attack(place / "out", register=place / "source.csv", aligned=True, only="RegisterLinkage")
    assert by_key.success == pytest.approx(aligned.success) and by_key.interval == pytest.approx(aligned.interval)
    assert by_key.interval == pytest.approx(wilson(by_key.details["expected_correct"], 240))  # type: ignore[arg-type]


def test_the_command_line_says_the_same(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = sf.attack(place / "out", register=place / "register.csv", only="RegisterLinkage")
    command = ["attack", str(place / "out"), "--with", str(place / "register.csv"), "-a", "RegisterLinkage"]
    assert run(command) == 0
    shown = capsys.readouterr()
    assert "78 targets" in shown.out and "78 can be judged" in shown.out and "blind guessing" in shown.out and shown.err == ""
    assert run([*command, "--key", "patient", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["attacks"]
    assert told["success"] == pytest.approx(found.success) and told["interval"] == pytest.approx(list(found.interval))
    assert run(["attack", str(place / "out" / "public"), "--with", str(place / "register.csv"), "--key", "patient"]) == 2
    assert "owner's folder" in capsys.readouterr().err


def test_the_release_itself_is_attacked_as_its_folder_is() -> None:
    release = sf.mask(sf.read(pa.table(visits(1)), SCHEMA), sf.RankSwapping(10), utility=(), risk=(), seed=1)
    some = visits(1).iloc[40:100].assign(patient=lambda rows: rows["patient"])
    found = {each.attack: each for each in release.attack(register=some)}
    assert set(found) == {"RegisterLinkage", "RankWindow"}
    assert all(each.targets == 60 and each.success > 2 * each.baseline for each in found.values())


def test_the_owners_folder_keeps_digests_and_no_values(place: Path) -> None:
    stored = (place / "out" / "owner" / PEOPLE).read_bytes()
    assert b"c17" not in stored and (place / "out" / "owner" / PEOPLE).stat().st_mode & 0o777 == 0o600
    table = pq.read_table(place / "out" / "owner" / PEOPLE)
    assert table.column_names == ["patient", "card"] and table.num_rows == 240
    assert not (place / "out" / "public" / PEOPLE).exists()


@pytest.mark.parametrize(
    ("change", "options", "why", "error"),
    [
        (None, {"key": "age of birth"}, "no column 'age of birth'", MissingColumn),
        (None, {"key": "wage"}, "does not tell the records", InputError),
        ({"patient": "stranger"}, {}, "nobody of the register", InputError),
        ({"patient": None}, {"key": "patient"}, "nobody of the register", InputError),
    ],
)
def test_what_cannot_be_counted_is_one_clear_error(place: Path, change: Any, options: Any, why: str, error: Any) -> None:
    register = pd.read_csv(place / "register.csv", dtype={"patient": str})
    register = register.assign(**(change or {}))
    with pytest.raises(error, match=why):
        sf.attack(place / "out", register=register, only="RegisterLinkage", **options)


def test_a_damaged_list_of_people_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / PEOPLE
    assert WhoIsWho.load(path) is None
    pq.write_table(pa.table({"patient": ["a"]}), path)
    with pytest.raises(InputError, match="save the release again"):
        WhoIsWho.load(path)
    path.write_bytes(b"nothing")
    with pytest.raises(InputError, match="save the release again"):
        WhoIsWho.load(path)
