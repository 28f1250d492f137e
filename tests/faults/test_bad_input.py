"""Bad input: one clear error each, nothing left behind, and never a value of a record in what is said."""

from __future__ import annotations

import io
import logging
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.cli.main import run as command
from sfumato.core.errors import SfumatoError
from sfumato.data.schema import Column, HierarchySpec
from sfumato.data.writers import write_file
from tests.workflow.people import schema

CANARY = "Zq7canary7qZ"
SEARCH = sf.Lattice(suppression=0.05)
FIVE = sf.KAnonymity(5)


def rows(count: int = 40) -> pa.Table:
    """Every text of every record carries the canary."""
    return pa.table(
        {
            "name": [f"{CANARY}{i}" for i in range(count)],
            "age": [20 + i % 50 for i in range(count)],
            "zip": [f"{CANARY}{i % 7}" for i in range(count)],
            "sex": [f"{CANARY}{i % 2}" for i in range(count)],
            "visits": list(range(count)),
            "disease": [f"{CANARY}{i % 3}" for i in range(count)],
        }
    )


def csv_file(folder: Path, text: str) -> Path:
    path = folder / "people.csv"
    path.write_text(text, encoding="utf-8")
    return path


def header() -> str:
    return "name,age,zip,sex,visits,disease\n"


def line(number: int = 1, age: str = "30") -> str:
    return f"{CANARY}{number},{age},{CANARY},{CANARY},1,{CANARY}\n"


class Liar(sf.Lattice):
    """A search that does not do what it was asked to."""

    def run(self, data, guarantees, **options):  # type: ignore[no-untyped-def]
        return super().run(data, [sf.KAnonymity(1)], **options)


CASES: dict[str, Callable[[Path], Any]] = {
    "wrong type": lambda d: sf.protect(csv_file(d, header() + line(age=CANARY) * 9), FIVE, SEARCH, schema=schema()),
    "wrong type in a frame": lambda d: sf.protect(
        rows(), FIVE, SEARCH, schema=schema(zip=Column(role="quasi", type="integer"))
    ),
    "missing column": lambda d: sf.protect(rows().drop_columns("sex"), FIVE, SEARCH, schema=schema()),
    "undescribed column": lambda d: sf.protect(rows().append_column("x", rows().column("zip")), FIVE, SEARCH, schema=schema()),
    "numbers expected by a hierarchy": lambda d: sf.protect(
        rows(), FIVE, SEARCH, schema=schema(zip=Column(role="quasi", hierarchy=HierarchySpec(intervals=(10,))))
    ),
    "dates expected by a hierarchy": lambda d: sf.protect(
        rows(), FIVE, SEARCH, schema=schema(zip=Column(role="quasi", hierarchy=HierarchySpec(dates=("year",))))
    ),
    "k larger than n": lambda d: sf.protect(rows(), sf.KAnonymity(41), SEARCH, schema=schema()),
    "empty table": lambda d: sf.protect(rows(0), FIVE, SEARCH, schema=schema()),
    "empty file": lambda d: sf.protect(csv_file(d, ""), FIVE, SEARCH, schema=schema()),
    "file with a header only": lambda d: sf.protect(csv_file(d, header()), FIVE, SEARCH, schema=schema()),
    "all rows suppressed": lambda d: sf.protect(
        rows(), sf.DistinctLDiversity(4, "disease"), sf.Lattice(suppression=1.0), schema=schema()
    ),
    "unreachable": lambda d: sf.protect(rows(), sf.DistinctLDiversity(4, "disease"), SEARCH, schema=schema()),
    "ragged lines": lambda d: sf.protect(csv_file(d, header() + line() * 9 + f"{CANARY},1\n"), FIVE, SEARCH, schema=schema()),
    "half a Parquet file": lambda d: sf.protect(half(d, "people.parquet"), FIVE, SEARCH, schema=schema()),
    "half an Arrow file": lambda d: sf.protect(half(d, "people.arrow"), FIVE, SEARCH, schema=schema()),
    "not the format it says": lambda d: sf.protect(csv_file(d, header()).rename(d / "p.parquet"), FIVE, SEARCH, schema=schema()),
    "no file": lambda d: sf.protect(d / "nothing.csv", FIVE, SEARCH, schema=schema()),
    "a lying search": lambda d: sf.protect(rows(), FIVE, Liar(), schema=schema()),
    "guarantee on a quasi-identifier": lambda d: sf.protect(rows(), sf.TCloseness(0.1, "zip"), SEARCH, schema=schema()),
    "zero bytes in CSV": lambda d: sf.protect(
        rows().set_column(4, "visits", pa.array([f"{CANARY}\0"] * 40)), sf.KAnonymity(2), SEARCH,
        schema=schema(visits=Column(role="plain")),
    ).save(d / "out", format="csv"),
    "unreadable key": lambda d: sf.protect(rows(), FIVE, SEARCH, schema=schema(), key=csv_file(d, CANARY)),
    "a ledger that is none": lambda d: sf.protect(rows(), FIVE, SEARCH, schema=schema(), ledger=csv_file(d, CANARY * 500)),
}  # fmt: skip


def half(folder: Path, name: str) -> Path:
    path = folder / name
    write_file(rows(), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    return path


@pytest.mark.parametrize("name", CASES)
def test_one_clear_error_without_a_value(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(SfumatoError) as caught:
        CASES[name](tmp_path)
    error = caught.value
    told = io.StringIO()
    while error is not None:
        told.write("".join(traceback.format_exception_only(error)) + repr(error))
        # type: ignore[assignment]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    shown = capsys.readouterr()
    for text in (told.getvalue(), caplog.text, shown.out, shown.err):
        assert CANARY not in text
    assert str(caught.value).strip()
    assert not (tmp_path / "out").exists()
    assert not [path for path in tmp_path.iterdir() if ".partial" in path.name or path.name.endswith(".part")]


def test_a_hierarchy_gap_is_the_owners_message(tmp_path: Path) -> None:
    tree = HierarchySpec(tree={"known": ["a", "b"]})
    with pytest.raises(sf.core.errors.HierarchyGap) as caught:
        sf.protect(rows(), FIVE, SEARCH, schema=schema(zip=Column(role="quasi", hierarchy=tree)))
    assert caught.value.owner_only
    assert "7 values of column 'zip'" in str(caught.value)


def test_nothing_that_is_printed_carries_a_value(tmp_path: Path) -> None:
    data = sf.read(rows(), schema())
    phases: list[str] = []
    made = sf.protect(data, sf.KAnonymity(2), SEARCH, progress=lambda phase, done, total: phases.append(phase))
    table = data.schema
    outcome = SEARCH.run(data, [sf.KAnonymity(2)])
    shown = [data, made, made.owner, made.certificate, outcome, outcome.result, outcome.class_table, table]
    shown += [*made.content.hierarchies.values(), made.content.released, made.content.references, *phases]
    for value in shown:
        assert CANARY not in repr(value), type(value)


def test_commands_show_no_value_either(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_DEBUG", "1")
    monkeypatch.chdir(tmp_path)
    path = csv_file(tmp_path, header() + line(age=CANARY) * 9 + f"{CANARY},{CANARY}\n")
    (tmp_path / "s.toml").write_text(schema().to_toml())
    for arguments in (
        ["protect", str(path), "--schema", "s.toml", "--k", "2"],
        ["check", str(path), "--schema", "s.toml"],
        ["inspect", str(path)],
    ):
        assert command(arguments) == 2
        shown = capsys.readouterr()
        assert CANARY not in shown.out + shown.err
        lines = [line for line in shown.err.splitlines() if not line.startswith("warning: nothing is promised about 'disease'")]
        assert lines[0].startswith("error: ") and "Traceback" not in shown.err
    assert not (tmp_path / "out").exists()


def test_markup_and_escape_sequences_reach_neither_card_nor_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nasty = "<script>alert(1)</script>\x1b]0;owned\x07\u202e"
    odd = pa.table(
        {f"zip{nasty}": ["1"] * 6, f"ill{nasty}": [nasty, "x", "y"] * 2, "plain": ["<img src=x onerror=alert(1)>"] * 6}
    )
    described = sf.Schema.of(f"odd {nasty}", quasi=[f"zip{nasty}"], sensitive=[f"ill{nasty}"], plain=["plain"])
    made = sf.protect(
        sf.read(odd, described), [sf.KAnonymity(2), sf.DistinctLDiversity(2, f"ill{nasty}")], SEARCH, attacks=["Homogeneity"]
    )
    made.save(tmp_path / "out")
    for card in (made.card(), made.card("owner")):
        for text in ("<script>alert", "<img src=x", "\x1b", "\u202e", "\x07"):
            assert text not in card
    assert command(["verify", str(tmp_path / "out")]) == 0
    assert command(["attack", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err and "\u202e" not in shown.out + shown.err
