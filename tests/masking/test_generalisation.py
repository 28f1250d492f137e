"""Generalisation to a named level, and suppression of chosen and rare values."""

from __future__ import annotations

import tomllib
from collections import Counter

import pyarrow as pa
import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import HierarchyError, ParameterError, Unsupported

SCHEMA = {
    "columns": {
        "age": {"role": "quasi", "type": "integer", "hierarchy": {"intervals": [10, 20]}},
        "job": {"role": "quasi", "type": "string", "hierarchy": {"tree": {"arts": ["dancer", "writer"], "law": ["judge"]}}},
        "town": {"role": "quasi", "type": "string"},
    }
}
ROWS = {"age": [3, 17, None, 25], "job": ["dancer", "judge", "writer", None], "town": ["x", "y", "y", "y"]}


def people() -> sf.Microdata:
    return sf.read(pa.table(ROWS), SCHEMA)


def shown(mask: sf.masking.Mask, name: str, data: sf.Microdata | None = None) -> list[object]:
    return mask.apply(people() if data is None else data).result.table.column(name).to_pylist()


def test_each_column_is_shown_at_its_level_and_missing_values_stay_missing() -> None:
    mask = sf.Generalisation({"age": 2, "job": 1})
    assert shown(mask, "age") == ["[0, 20)", "[0, 20)", None, "[20, 40)"]
    assert shown(mask, "job") == ["arts", "law", "arts", None]
    assert shown(mask, "town") == ROWS["town"]
    assert mask.columns == ("age", "job")


def test_the_same_values_as_a_search_shows_at_the_same_level() -> None:
    data = sf.read(sf.data.sample_table(300), schema=sf.data.sample_schema())
    release = sf.protect(data, [sf.KAnonymity(2)], sf.Lattice(), ledger=None)
    levels = {name: level for name, level in release.details["levels"].items() if level > 0}
    masked = sf.Generalisation(levels).apply(data).result.table
    for name in levels:
        assert set(map(str, release.data.column(name).to_pylist())) <= set(map(str, masked.column(name).to_pylist()))


def test_the_root_and_a_flat_hierarchy_show_a_star() -> None:
    assert shown(sf.Generalisation({"town": 1}), "town") == ["*"] * 4


def test_chosen_values_are_suppressed() -> None:
    outcome = sf.Generalisation(suppress={"town": ("x",), "age": ("17",)}).apply(people())
    assert outcome.result.table.column("town").to_pylist() == ["*", "y", "y", "y"]
    assert outcome.result.table.column("age").to_pylist() == ["3", "*", None, "25"]
    assert outcome.details["suppressed"] == {"town": 1, "age": 1}


def test_suppressed_values_survive_toml() -> None:
    from sfumato.workflow import named

    mask = sf.Generalisation({"job": 1}, {"town": ("x", "y")}, fewer_than=3)
    assert named.method(tomllib.loads(tomlkit.dumps({"method": mask.described()}))["method"]) == mask


def test_a_suppressed_value_is_suppressed_whatever_its_level() -> None:
    assert shown(sf.Generalisation({"job": 1}, {"job": ("dancer",)}), "job") == ["*", "law", "arts", None]


@given(words=st.lists(st.sampled_from("abcdefg") | st.none(), min_size=4, max_size=60), fewest=st.integers(2, 4))
def test_every_shown_value_is_shown_by_enough_records(words: list[str | None], fewest: int) -> None:
    if not any(words):
        return
    data = sf.read(pa.table({"w": pa.array(words, pa.string())}), {"columns": {"w": {"role": "quasi", "type": "string"}}})
    after = shown(sf.Generalisation(fewer_than=fewest), "w", data)
    counts = Counter(word for word in after if word is not None)
    known = sum(word is not None for word in words)
    assert all(count >= min(fewest, known) for count in counts.values())
    before = Counter(word for word in words if word is not None)
    stars = sum(count for count in before.values() if count < fewest)
    if stars == 0 or stars >= fewest:  # nothing more is suppressed than the rare
        assert all((word == "*") == (before[original] < fewest) for original, word in zip(words, after, strict=True) if original)


def test_rare_values_are_counted_within_each_stratum() -> None:
    data = sf.read(pa.table({"w": list("aaabbbaaabbc"), "s": [0] * 6 + [1] * 6}), {"columns": {"w": {"role": "quasi"}, "s": {}}})
    mask = sf.Generalisation(fewer_than=3, strata=("s",))
    assert shown(mask, "w", data) == [*"aaabbbaaa", "*", "*", "*"]


@pytest.mark.parametrize(
    ("mask", "error", "match"),
    [
        (lambda: sf.Generalisation(), ParameterError, "give levels, suppress or fewer_than"),
        (
            lambda: sf.Generalisation({"age": 0}),
            ParameterError,
            "levels must be .* of at least 1; level 0 would leave a column as it is",
        ),
        (lambda: sf.Generalisation({"age": 1.5}), ParameterError, "whole number"),
        (lambda: sf.Generalisation(suppress={"town": "x"}), ParameterError, "list of values"),
        (lambda: sf.Generalisation(fewer_than=1), ParameterError, "fewer_than"),
        (lambda: sf.Generalisation({"age": 1}, columns=("job",)), ParameterError, "not in columns"),
        (lambda: sf.Generalisation({"age": 9}).apply(people()), ParameterError, "'age' has no level 9: its hierarchy ends at 3"),
        (
            lambda: sf.Generalisation({"age": 1}, columns=("age", "town")).apply(people()),
            ParameterError,
            "'town' has neither a level",
        ),
        (lambda: sf.Generalisation(suppress={"town": ("zzz",)}).apply(people()), ParameterError, "'town' has neither a level"),
        (lambda: sf.Generalisation(fewer_than=5).apply(people()), Unsupported, "more than there are records"),
    ],
)
def test_what_would_change_nothing_or_cannot_be_done_is_refused(mask: object, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        mask()  # type: ignore[operator]


def test_a_value_outside_the_hierarchy_is_an_error_for_the_owner() -> None:
    data = sf.read(pa.table({"job": ["dancer", "pilot"]}), {"columns": {"job": SCHEMA["columns"]["job"]}})
    with pytest.raises(HierarchyError, match="missing from its hierarchy"):
        sf.Generalisation({"job": 1}).apply(data)
