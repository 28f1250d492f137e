"""From the values of a column to a hierarchy that a release is made with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import HierarchyError, MissingColumn, ParameterError
from sfumato.data.schema import Column, HierarchySpec, Schema
from sfumato.workflow.hierarchies import preview

FIELDS = ("health", "food", "building", "transport", "office", "teaching", "farming", "trade")
PLACES = [f"{field} worker of kind {kind:02d}" for field in FIELDS for kind in range(25)]


def staff(rows: int = 4_000) -> pa.Table:
    """People with 200 occupations, some rare."""
    draw = np.random.default_rng(3)
    weights = 1 / np.arange(1, len(PLACES) + 1)
    return pa.table(
        {
            "occupation": draw.choice(PLACES, rows, p=weights / weights.sum()),
            "age": draw.integers(18, 90, rows),
            "illness": draw.choice(["flu", "cold", "none"], rows),
        }
    )


def table(**columns: list[Any]) -> pa.Table:
    return pa.table(columns)


def test_a_template_has_every_value_once_with_the_most_frequent_first() -> None:
    begun = sf.new_hierarchy(table(job=["b", "a", "b", None, "c"]), "job", levels=2)
    assert begun.rows == [["b", "", "", "*"], ["a", "", "", "*"], ["c", "", "", "*"]]
    assert (begun.values, begun.counts, begun.missing, begun.made_by) == (("b", "a", "c"), (2, 1, 1), 1, "template")


def test_unknown_codes_are_listed_and_placed_nowhere() -> None:
    codes = ["E11.9"] * 50 + ["A09"] * 45 + ["C4A", "Diabetes"]
    begun = sf.new_hierarchy(table(dx=codes), "dx", kind="auto")
    assert begun.made_by == "icd10" and begun.unplaced == ("C4A", "Diabetes") and begun.unplaced_records == 2
    assert begun.rows[-2:] == [["C4A", "", "", "", "*"], ["Diabetes", "", "", "", "*"]]
    assert [size.values for size in begun.preview()] == [4, 4, 4, 4, 1]


def test_auto_proposes_nothing_where_too_little_speaks_for_it() -> None:
    begun = sf.new_hierarchy(table(dx=["E11.9", "other", "none"]), "dx", kind="auto")
    assert begun.made_by == "template" and begun.proposed_kind is None
    assert [(each.kind.name, each.records, each.other_records) for each in begun.evidence] == [("icd10", 1, 2)]


def test_misspelt_countries_have_their_nearest_name() -> None:
    begun = sf.new_hierarchy(table(country=["Colombia", "Columbia", "Kanada", "Hong"]), "country", kind="countries")
    assert begun.unplaced == ("Columbia", "Hong", "Kanada")
    assert begun.nearest == {"Columbia": "Colombia", "Kanada": "Canada"}


@pytest.mark.parametrize(
    ("kind", "values", "spec"),
    [
        ("ages", [34, 51, 90], HierarchySpec(cuts=tuple(float(age) for age in range(5, 91, 5)))),
        ("postcodes", ["8001", "3011"], HierarchySpec(mask="right", width=4)),
        ("dates", ["1956-02-25"], HierarchySpec(dates=("month", "quarter", "year", "decade"))),
    ],
)
def test_kinds_that_parameters_describe_need_no_list(kind: str, values: list[Any], spec: HierarchySpec, tmp_path: Path) -> None:
    begun = sf.new_hierarchy(table(x=values), "x", kind=kind)
    assert begun.spec("x.csv") == spec
    assert [file.name for file in begun.save(tmp_path / "x.csv")] == ["x.values.csv"]
    assert [size.values for size in begun.preview()][-1] == 1


def test_ages_have_bands_of_5_10_and_20_years_that_nest_and_a_top_band() -> None:
    begun = sf.new_hierarchy(table(age=list(range(105))), "age", kind="ages")
    tree = begun.tree()
    assert [tree.generalise("37", level) for level in (1, 2, 3)] == ["[35, 40)", "[30, 40)", "[20, 40)"]
    assert tree.generalise("104", 1) == tree.generalise("90", 2) == "[90, inf)"


def test_other_values_of_a_column_of_dates_are_named_and_the_preview_shows_the_rest() -> None:
    begun = sf.new_hierarchy(table(day=["1956-02-25", "1956-03-01", "unclear"]), "day", kind="dates")
    assert begun.unplaced == ("unclear",)
    assert [size.values for size in begun.preview()] == [3, 3, 2, 2, 2, 1]


def test_codes_that_were_read_as_numbers_are_noted() -> None:
    [note] = sf.new_hierarchy(table(nace=[62.1, 62.01]), "nace", kind="nace2").notes
    assert 'type = "string"' in note
    assert sf.new_hierarchy(table(nace=["62.10"]), "nace", kind="nace2").notes == ()


def test_groups_from_a_list_a_file_or_a_mapping(tmp_path: Path) -> None:
    people = table(job=["Nurse", "nurse", "cook", "pilto", "baker"])
    text = "Health: nurse, doctor\nFood: cook, baker\nTransport: pilot\n"
    (tmp_path / "groups.txt").write_text(text)
    mapping = {"Health": ["nurse", "doctor"], "Food": ["cook", "baker"], "Transport": ["pilot"]}
    for groups in (text, tmp_path / "groups.txt", mapping):
        begun = sf.new_hierarchy(people, "job", groups=groups)
        assert begun.placed == {"Nurse": ("Health",), "nurse": ("Health",), "cook": ("Food",), "baker": ("Food",)}
        assert (begun.respelt, begun.unplaced, begun.nearest) == (("Nurse",), ("pilto",), {"pilto": "pilot"})
        assert begun.listed == {"doctor": ("Health",), "pilot": ("Transport",)}
    with pytest.raises(ParameterError, match="1 value stands"):
        sf.new_hierarchy(people, "job", groups={"a": ["x"], "b": ["x"]})


def test_an_earlier_hierarchy_is_continued(tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("nurse;hospital;Health;*\ncook;kitchen;Food;*\n")
    begun = sf.new_hierarchy(table(job=["Nurse", "cook", "cok", "judge"]), "job", tree=tmp_path / "old.csv")
    assert begun.rows == [
        ["Nurse", "hospital", "Health", "*"],
        ["cook", "kitchen", "Food", "*"],
        ["nurse", "hospital", "Health", "*"],
        ["cok", "", "", "*"],
        ["judge", "", "", "*"],
    ]
    assert begun.nearest == {"cok": "cook"}
    with pytest.raises(ParameterError, match="no groups"):
        sf.new_hierarchy(table(job=["a"]), "job", tree=sf.data.from_values(["a"]))


def test_similar_values_are_a_proposal_that_loads() -> None:
    begun = sf.new_hierarchy(table(job=["Nurse", "nurse", "Nurse", "nusre", "cook"]), "job", similar=True)
    assert begun.rows == [["Nurse", "Nurse", "*"], ["cook", "cook", "*"], ["nurse", "Nurse", "*"], ["nusre", "Nurse", "*"]]
    assert [size.values for size in begun.preview()] == [4, 2, 1]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"kind": "icd9"}, ParameterError, "icd10"),
        ({"kind": "ages", "similar": True}, ParameterError, "kind and similar"),
        ({"levels": 0}, ParameterError, "levels"),
        ({"levels": 2, "kind": "icd10"}, ParameterError, "levels of its own"),
        ({"kind": "icd10", "country": "CH"}, ParameterError, "postcodes"),
        ({"groups": "nothing.txt"}, HierarchyError, "there is no list"),
        ({"column": "jobs"}, MissingColumn, "it has job"),
        ({"column": "none"}, HierarchyError, "no values"),
    ],
)
def test_bad_input_is_one_clear_error(options: dict[str, Any], error: type[Exception], words: str) -> None:
    people = pa.table({"job": ["secret"], "none": pa.array([None], pa.string())})
    with pytest.raises(error, match=words) as caught:
        sf.new_hierarchy(people, options.pop("column", "job"), **options)
    assert "secret" not in str(caught.value)


def test_two_hundred_occupations_take_one_list_and_become_a_release(tmp_path: Path) -> None:
    people = staff()
    begun = sf.new_hierarchy(people, "occupation")
    begun.save(tmp_path / "occupation.csv")
    assert len(begun.values) > 150
    edited = [line.split(";") for line in (tmp_path / "occupation.csv").read_text().splitlines()]
    (tmp_path / "occupation.csv").write_text("".join(f"{value};{value.split()[0]};{root}\n" for value, _, root in edited))
    spec = begun.spec("occupation.csv")
    columns = {
        "occupation": Column(role="quasi", type="string", hierarchy=spec),
        "age": Column(role="quasi", type="integer", hierarchy=sf.new_hierarchy(people, "age", kind="ages").spec("")),
        "illness": Column(role="sensitive", type="string"),
    }
    schema = Schema(dataset="staff", unit="record", columns=columns, folder=str(tmp_path))
    with pytest.raises(ParameterError, match="those of suppressed records too") as caught:
        sf.protect(sf.read(people, schema), [sf.KAnonymity(5)], sf.Lattice(suppression=0.05))
    assert not any(value in str(caught.value) for value in begun.values)
    declared = {**columns, "occupation": Column(role="quasi", type="string", hierarchy=HierarchySpec(file="occupation.csv"))}
    release = sf.protect(sf.read(people, schema.replace(columns=declared)), [sf.KAnonymity(5)], sf.Lattice(suppression=0.05))
    release.save(tmp_path / "out")
    assert sf.verify(tmp_path / "out").holds
    assert set(release.data.column("occupation").to_pylist()) <= {*PLACES, *FIELDS, "*"}


def test_a_list_of_the_values_of_a_sensitive_column_is_refused(tmp_path: Path) -> None:
    people = staff(200)
    (tmp_path / "illness.csv").write_text("flu;a;*\ncold;a;*\nnone;b;*\n")
    columns = {
        "occupation": Column(role="quasi"),
        "age": Column(role="quasi"),
        "illness": Column(role="sensitive", hierarchy=HierarchySpec(file="illness.csv", leaves="data")),
    }
    schema = Schema(dataset="staff", unit="record", columns=columns, folder=str(tmp_path))
    with pytest.raises(ParameterError, match='delete leaves = "data"'):
        sf.protect(sf.read(people, schema), [sf.TCloseness(0.9, "illness", distance="hierarchical")])
    with pytest.raises(ParameterError, match='delete leaves = "data"'):
        sf.protect(sf.read(people, schema), [sf.KAnonymity(2)])


def test_a_preview_with_data_counts_records_of_a_schema_and_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "job.csv").write_text("nurse;Health;*\ndoctor;Health;*\ncook;Food;*\n")
    people = table(job=["nurse"] * 4 + ["doctor"] * 3 + ["cook"] * 2)
    levels = preview(tmp_path / "job.csv", column="job", data=people, k=5)["job"]
    assert [(each["smallest"], each["small_groups"], each["small_records"]) for each in levels] == [
        (2, 3, 9),
        (2, 1, 2),
        (9, 0, 0),
    ]
    (tmp_path / "s.toml").write_text('[columns.job]\nrole = "quasi"\nhierarchy = "job.csv"\n')
    assert preview(tmp_path / "s.toml", data=people)["job"] == levels
    assert "smallest" not in preview(tmp_path / "job.csv")["job.csv"][0]
    with pytest.raises(ParameterError, match="--column"):
        preview(tmp_path / "job.csv", data=people)
    with pytest.raises(MissingColumn):
        preview(tmp_path / "job.csv", data=people, column="jobs")


@pytest.mark.parametrize(
    ("ways", "words"),
    [
        ({"groups": {"a": 5}}, "a group has a list of values, not int"),
        ({"groups": {"a": "mf"}}, "a group has a list of values, not str"),
        ({"groups": 5}, "groups is a file, its text, or a mapping"),
        ({"tree": 5}, "tree is an earlier hierarchy or its file"),
        ({"groups": {"a": ["b"], "c": ["b"]}}, "1 value stands in several groups"),
    ],
)
def test_what_places_nothing_is_refused_in_words(ways: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        sf.new_hierarchy(table(job=["b", "a"]), "job", **ways)


def test_a_zero_that_is_dialled_within_a_country_is_no_part_of_a_number() -> None:
    numbers = ["+41(0)44 123 45 67", "+41 44 123 45 67", "0041 (0) 44 1234567"]
    begun = sf.new_hierarchy(table(phone=numbers), "phone", kind="telephones")
    assert {row[1] for row in begun.rows} == {"+4144123****"} and not begun.unplaced
