"""Few whole numbers are proposed as codes of categories, with the reason; what was learnt binds nobody and does not leave."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.cli.main import run
from sfumato.core.errors import Unsupported
from sfumato.data.profiling.profile import profile_table
from sfumato.data.profiling.suggested_schema import proposal_reasons, starting_schema
from sfumato.data.records import CategoryColumn, Records
from sfumato.data.schema import Column, Schema

ROWS = 300


def _table(rows: int = ROWS) -> pa.Table:
    draw = np.random.default_rng(3)
    return pa.table(
        {
            "age": draw.integers(18, 90, rows),
            "smoker": draw.integers(0, 2, rows),
            "rating": [place % 6 for place in range(rows)],
            "eleven": [place % 11 for place in range(rows)],
            "flag": pa.array([None if place % 9 == 0 else float(place % 2) for place in range(rows)]),
            "half": [place % 4 / 2 for place in range(rows)],
            "score": [place % 3 for place in range(rows)],
            "town": draw.choice(["A", "B", "C"], rows),
        }
    )


def test_up_to_ten_whole_numbers_are_proposed_as_categories_with_their_codes() -> None:
    profile = profile_table(_table())
    columns = starting_schema(profile, "d").columns
    assert columns["smoker"].type == columns["flag"].type == columns["rating"].type == "category"
    assert columns["smoker"].domain == ("0", "1") == columns["flag"].domain and columns["smoker"].order is None
    assert columns["rating"].order == ("0", "1", "2", "3", "4", "5")  # counts and ratings have an order
    assert all(columns[name].source == "data" and columns[name].bounds is None for name in ("smoker", "rating", "flag"))
    assert columns["age"].type == columns["eleven"].type == "integer" and columns["half"].type == "number"
    assert columns["score"].role == "sensitive" and columns["score"].type == "integer"  # it may be averaged
    reasons = proposal_reasons(profile)
    assert set(reasons) >= {"smoker", "rating", "flag"} and not {"age", "eleven", "half", "score", "town"} & set(reasons)
    assert reasons["smoker"].startswith("2 whole numbers, 10 or fewer, are read as codes of categories.")


def test_in_a_small_table_few_values_say_nothing() -> None:
    assert starting_schema(profile_table(_table(20)), "d").columns["rating"].type == "integer"


def test_the_command_prints_the_reason_and_the_schema_has_it_as_a_comment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    sf.data.write_file(_table(), "t.csv")
    assert run(["inspect", "t.csv"]) == 0
    assert "proposed: 'rating': 6 whole numbers, 10 or fewer, are read as codes" in capsys.readouterr().out
    written = " ".join(line.removeprefix("# ") for line in Path("t.toml").read_text(encoding="utf-8").splitlines())
    assert "[columns.smoker] quasi: " in written and "Also: 2 whole numbers" in written
    assert Schema.load("t.toml").columns["smoker"].type == "category"
    assert run(["inspect", "t.csv", "--no-schema", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["proposals"]) >= {"smoker", "rating"}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_codes_are_kept_as_they_are_written(ending: str, tmp_path: Path) -> None:
    table = pa.table({"flag": [0, 1, None, 1]})
    sf.data.write_file(table, tmp_path / f"t.{ending}")
    people = sf.read(tmp_path / f"t.{ending}", Schema(columns={"flag": Column(role="quasi", type="category")}))
    assert people.table().column("flag").to_pylist() == ["0", "1", None, "1"]
    (column,) = Records.of(people.table(), people.schema, ["flag"]).columns
    assert isinstance(column, CategoryColumn) and column.labels == ("0", "1")


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_engines_read_codes_alike(engine: str, tmp_path: Path) -> None:
    sf.data.write_file(pa.table({"flag": [0, 1, None, 1], "v": ["a", "b", "c", "d"]}), tmp_path / "t.parquet")
    schema = Schema(columns={"flag": Column(role="quasi", type="category"), "v": Column(role="sensitive")})
    people = sf.read(tmp_path / "t.parquet", schema, engine=engine)
    released = sf.protect(people, [sf.KAnonymity(1)])
    assert sorted(map(str, released.data.column("flag").to_pylist())) == ["0", "1", "1", "None"]


def test_a_category_has_no_bounds() -> None:
    with pytest.raises(ValueError, match="use domain"):
        Column(type="category", bounds=(0, 1))


def test_an_order_that_was_learnt_binds_nobody() -> None:
    later = pa.table({"rating": ["0", "10", "2", "3"]})
    learnt = Schema(columns={"rating": Column(role="quasi", type="category", order=("0", "2", "3"), source="data")})
    (column,) = Records.of(later, learnt, ["rating"]).columns
    assert isinstance(column, CategoryColumn) and column.labels == ("0", "2", "3", "10")
    declared = Schema(columns={"rating": Column(role="quasi", type="category", order=("0", "2", "3"))})
    with pytest.raises(Unsupported, match="does not list"):
        Records.of(later, declared, ["rating"])


def test_values_of_suppressed_people_do_not_leave_in_a_learnt_order(tmp_path: Path) -> None:
    """The only person with seven children is suppressed; the order that `inspect` learnt lists the seven."""
    children = [place % 4 for place in range(80)] + [7]
    table = pa.table({"children": children, "town": ["A", "B"] * 40 + ["C"], "note": ["x"] * 81})
    schema = starting_schema(profile_table(table), "d")
    assert "7" in (schema.columns["children"].order or ())
    sensitive = schema.columns["children"].model_copy(update={"role": "sensitive"})
    for described in (schema, schema.replace(columns={**schema.columns, "children": sensitive})):
        release = sf.protect(sf.read(table, described), [sf.KAnonymity(5)], sf.Lattice(suppression=0.05))
        assert release.data.num_rows == 80
        folder = tmp_path / described.columns["children"].role
        release.save(folder)
        assert sf.verify(folder).holds
        public = "".join(file.read_text(encoding="utf-8") for file in (folder / "public").iterdir() if file.suffix == ".toml")
        assert "order" not in public


def test_every_usual_mask_runs_where_flags_are_categories() -> None:
    """With 0/1 columns as numbers, noise and rank swapping refuse them, because rounding and ties undo the change."""
    from sfumato.core.errors import SfumatoError
    from sfumato.masking.base import Mask
    from sfumato.workflow.comparing.grid import usual_methods

    table = _table(2 * ROWS).select(["age", "smoker", "rating", "town"])
    proposed = starting_schema(profile_table(table), "d")
    numbers = proposed.replace(
        columns={
            name: Column(role="quasi", type="integer") if column.type == "category" else column
            for name, column in proposed.columns.items()
        }
    )

    def refused(schema: Schema) -> int:
        people, count = sf.read(table, schema), 0
        for mask in usual_methods(people):
            if isinstance(mask, Mask):
                try:
                    mask.apply(people, seed=1)
                except SfumatoError:
                    count += 1
        return count

    assert refused(proposed) == 0
    assert refused(numbers) >= 3
