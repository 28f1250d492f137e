"""A law over several parameters is tried with each value of each, and with all combinations under `make stress`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.covering import leave_to_stress

_TOY = """
import pytest

@pytest.mark.covering
@pytest.mark.parametrize("letter", "abc")
@pytest.mark.parametrize(("digit", "word"), [(1, "one"), (2, "two")])
def test_law(letter, digit, word): ...

@pytest.mark.parametrize("letter", "abc")
@pytest.mark.parametrize("digit", [1, 2])
def test_both_act_on_each_other(letter, digit): ...
"""


def collected(request: pytest.FixtureRequest, folder: Path, law: str) -> list[pytest.Function]:
    file = folder / "toy.py"
    file.write_text(_TOY)
    items = pytest.Module.from_parent(request.session, path=file).collect()
    return [item for item in items if isinstance(item, pytest.Function) and item.originalname == law]


def kept(items: list[pytest.Function]) -> list[tuple[object, ...]]:
    leave_to_stress(items)
    return [tuple(item.callspec.params.values()) for item in items if not item.get_closest_marker("stress")]


def test_each_value_is_tried_with_one_of_the_others(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    items = collected(request, tmp_path, "test_law")
    tried = kept(items)
    assert len(items) == 6 and len(tried) == 3
    assert {value for values in tried for value in values} == {"a", "b", "c", 1, 2, "one", "two"}


def test_parameters_that_act_on_each_other_and_what_is_asked_for_by_name_are_all_run(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    assert len(kept(collected(request, tmp_path, "test_both_act_on_each_other"))) == 6
    assert len(kept(collected(request, tmp_path, "test_law")[1:3])) == 2
