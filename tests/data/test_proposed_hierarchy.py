"""A hierarchy that was begun: its file, its preview, and the line in a schema."""

from __future__ import annotations

import stat
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.errors import HierarchyError, InputError, MissingColumn, SchemaError
from sfumato.data.hierarchies.hierarchy import Hierarchy, from_tree
from sfumato.data.hierarchies.level_sizes import level_sizes
from sfumato.data.hierarchies.proposed_hierarchy import MOST_VALUES, ProposedHierarchy, refuse_too_many
from sfumato.data.schema import HierarchySpec, Schema
from sfumato.data.schema_edits import hierarchy_line, write_hierarchy
from tests.examples import examples

SCHEMA = """# written by hand
dataset = "staff"
unit = "record"

[columns.job]  # what they do
role = "quasi"
hierarchy = { flat = true }

[columns.age]
role = "quasi"
hierarchy = { intervals = [5, 10] }   # mine
"""


def begun(**changes: object) -> ProposedHierarchy:
    fields: dict[str, object] = {
        "column": "job",
        "made_by": "groups",
        "levels": ("group",),
        "values": ("nurse", "cook", "pilot"),
        "counts": (7, 3, 2),
        "placed": {"nurse": ("Health",), "cook": ("Food",)},
        "missing": 1,
        "listed": {"doctor": ("Health",)},
        "nearest": {"pilot": "pilote"},
    }
    return ProposedHierarchy(**{**fields, **changes})  # type: ignore[arg-type]


def test_the_file_has_the_most_frequent_first_and_empty_cells_at_the_end() -> None:
    assert begun().text() == "nurse;Health;*\ncook;Food;*\ndoctor;Health;*\npilot;;*\n"
    assert begun().listing() == "value;records;note\nnurse;7;\ncook;3;\npilot;2;not placed; nearest: pilote\n".replace(
        "not placed; nearest: pilote", '"not placed; nearest: pilote"'
    )
    assert (begun().unplaced, begun().unplaced_records, begun().records) == (("pilot",), 2, 12)


def test_an_unfinished_file_is_refused_with_its_rows_and_a_finished_one_is_the_tree(tmp_path: Path) -> None:
    files = begun().save(tmp_path / "job.csv")
    assert [file.name for file in files] == ["job.csv", "job.values.csv"]
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600, 0o600]
    with pytest.raises(HierarchyError, match="rows 4"):
        Hierarchy.load(files[0])
    files[0].write_text(files[0].read_text().replace("pilot;;", "pilot;Transport;"))
    tree = Hierarchy.load(files[0])
    assert tree.generalise("pilot", 1) == "Transport" and tree.generalise("nurse", 1) == "Health"


def test_nothing_is_overwritten_unasked_and_nothing_is_left_of_what_is_refused(tmp_path: Path) -> None:
    (tmp_path / "job.values.csv").write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        begun().save(tmp_path / "job.csv")
    assert [file.name for file in tmp_path.iterdir()] == ["job.values.csv"]
    begun().save(tmp_path / "job.csv", overwrite=True)
    assert (tmp_path / "job.values.csv").read_text().startswith("value;")
    with pytest.raises(InputError, match=r"\.csv"):
        begun().save(tmp_path / "job.txt")
    with pytest.raises(HierarchyError, match="2 values") as caught:
        begun(values=(" nurse", "", "cook"), placed={}).save(tmp_path / "other.csv")
    assert "nurse" not in str(caught.value) and not (tmp_path / "other.csv").exists()


def test_no_value_is_in_the_repr() -> None:
    assert not any(value in repr(begun()) for value in ("nurse", "cook", "pilot", "doctor", "Health"))


@settings(max_examples=examples(30))
@given(
    st.lists(st.text("ab,;\"'\u00e9 x", min_size=1, max_size=6).map(str.strip).filter(bool), unique=True, min_size=1, max_size=8)
)
def test_whatever_the_values_the_schema_reads_the_file_again(values: list[str]) -> None:
    import tempfile

    from sfumato.data.hierarchies.hierarchy_builders import build
    from sfumato.data.schema import Column

    made = begun(values=tuple(values), counts=(1,) * len(values), placed=dict.fromkeys(values, ("G",)), listed={})
    with tempfile.TemporaryDirectory() as place:
        made.save(Path(place) / "t.csv")
        tree = build("job", Column(hierarchy=made.spec("t.csv")), list(values), None, place)
    assert all(tree.labels[int(tree.node_of[2, tree.index[value]])] == "*" for value in values) and tree.height == 2


def test_the_preview_counts_the_records_of_every_level() -> None:
    sizes = begun().preview(k=5)
    assert [(each.values, each.smallest, each.small_groups, each.small_records) for each in sizes] == [
        (4, 1, 3, 6),  # nurse 7, cook 3, pilot 2, missing 1
        (4, 1, 3, 6),
        (1, 13, 0, 0),
    ]
    assert sizes[0].loss == 0 and sizes[-1].loss == 1
    assert begun(values=(), counts=(), missing=0).preview()[0].smallest == 0


@settings(max_examples=examples(40))
@given(
    st.dictionaries(st.sampled_from(["NO", "SE", "IT", "JP"]), st.integers(1, 9), min_size=1),
    st.integers(1, 12),
)
def test_sizes_are_those_counted_by_hand_and_coarser_levels_have_no_more_small_records(counts: dict[str, int], k: int) -> None:
    tree = from_tree({"Europe": {"North": ["NO", "SE"], "South": ["IT"]}, "Asia": ["JP"]})
    sizes = level_sizes(tree, list(counts), list(counts.values()), k)
    for level, size in enumerate(sizes):
        groups: Counter[str | None] = Counter()
        for value, count in counts.items():
            groups[tree.generalise(value, level)] += count
        small = [count for count in groups.values() if count < k]
        assert (size.values, size.smallest) == (len(groups), min(groups.values()))
        assert (size.small_groups, size.small_records) == (len(small), sum(small))
    assert all(a.small_records >= b.small_records and a.loss <= b.loss for a, b in zip(sizes, sizes[1:], strict=False))


def test_a_column_without_values_or_with_too_many_is_no_list_to_edit() -> None:
    refuse_too_many(["a"], "job")
    with pytest.raises(HierarchyError, match="no values"):
        refuse_too_many([], "job")
    with pytest.raises(HierarchyError, match="100,001"):
        refuse_too_many(["a"] * (MOST_VALUES + 1), "job")


# --- the schema ---------------------------------------------------------------------------------------------


def test_the_line_is_written_into_the_schema_and_everything_else_stays(tmp_path: Path) -> None:
    schema = tmp_path / "staff.toml"
    schema.write_text(SCHEMA)
    schema.chmod(0o640)
    spec = HierarchySpec(file="job.csv", leaves="data")
    write_hierarchy(schema, "job", spec)
    line = hierarchy_line(spec)
    assert schema.read_text() == SCHEMA.replace("hierarchy = { flat = true }", line)
    assert stat.S_IMODE(schema.stat().st_mode) == 0o640
    assert Schema.load(schema).columns["job"].hierarchy == spec


def test_a_hierarchy_that_somebody_chose_is_kept_unless_told_otherwise(tmp_path: Path) -> None:
    schema = tmp_path / "staff.toml"
    schema.write_text(SCHEMA)
    spec = HierarchySpec(cuts=(5.0, 10.5))
    with pytest.raises(InputError, match="intervals"):
        write_hierarchy(schema, "age", spec)
    with pytest.raises(MissingColumn, match="job, age"):
        write_hierarchy(schema, "jobs", spec)
    assert schema.read_text() == SCHEMA
    write_hierarchy(schema, "age", spec, overwrite=True)
    assert "hierarchy = {cuts = [5, 10.5]}   # mine" in schema.read_text()
    write_hierarchy(schema, "age", spec)  # it says so already


@pytest.mark.parametrize(
    "text",
    [
        'columns.job = { role = "quasi" }\n',
        '[columns]\njob.role = "quasi"\n',
        '[columns.job]\nrole = "quasi"\n[columns.job.labels]\na = "b"\n[columns.age]\n',
        '[columns.job]\nrole = "quasi"\n[columns.job.hierarchy]\nflat = true\n[columns.age]\n',
        '[columns."job"]\r\nrole = "quasi"\r\n',
    ],
)
def test_a_schema_is_edited_however_it_is_written_or_left_alone(text: str, tmp_path: Path) -> None:
    schema = tmp_path / "staff.toml"
    schema.write_bytes(text.encode())
    before = Schema.load(schema)
    spec = HierarchySpec(file="job.csv")
    try:
        write_hierarchy(schema, "job", spec)
    except SchemaError:
        assert schema.read_bytes() == text.encode()
        return
    job = before.columns["job"].model_copy(update={"hierarchy": spec})
    assert Schema.load(schema) == before.replace(columns={**before.columns, "job": job})


def test_leaves_of_the_data_are_for_files() -> None:
    spec = HierarchySpec(file="job.csv", leaves="data")
    assert spec.made_of_values and not HierarchySpec(file="job.csv").made_of_values
    with pytest.raises(SchemaError, match="leaves"):
        Schema.parse({"columns": {"job": {"hierarchy": {"flat": True, "leaves": "data"}}}})


def test_a_schema_keeps_its_line_ends(tmp_path: Path) -> None:
    schema = tmp_path / "s.toml"
    schema.write_bytes(b'dataset = "s"\r\n\r\n[columns.job]\r\nrole = "quasi"\r\n')
    write_hierarchy(schema, "job", HierarchySpec(flat=True))
    written = schema.read_bytes()
    assert b"hierarchy = " in written and written.count(b"\r\n") >= 4 and b"\n" not in written.replace(b"\r\n", b"").rstrip(b"\n")
