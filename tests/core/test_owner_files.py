"""Faults of files that the owner edits, in words."""

from __future__ import annotations

from pathlib import Path

import pytest

import sfumato as sf
from sfumato.core.errors import RecipeError, SchemaError


def test_an_unknown_key_is_told_with_the_nearest_and_without_its_value() -> None:
    with pytest.raises(SchemaError) as caught:
        sf.Schema.parse({"dataset": "d", "columns": {"age": {"rolle": "CANARY"}, "zip": {"bounds": [9, 1]}}})
    told = str(caught.value)
    assert "columns.age.rolle: unknown key; did you mean 'role'?" in told
    assert "columns.zip: the lower bound is above the upper bound" in told
    assert "CANARY" not in told and "Value error" not in told


@pytest.mark.parametrize(
    ("content", "words"), [(None, "there is no"), (b"\xff\xfe\x00", "not UTF-8"), (b"x = = 1", "not valid TOML")]
)
def test_a_file_that_cannot_be_read_says_so(tmp_path: Path, content: bytes | None, words: str) -> None:
    file = tmp_path / "given.toml"
    if content is not None:
        file.write_bytes(content)
    for load, error in ((sf.Schema.load, SchemaError), (sf.Recipe.load, RecipeError)):
        with pytest.raises(error, match=words):
            load(file)


@pytest.mark.parametrize("key", ["data", "schema", "population", "output", "ledger", "sign", "key", "write"])
def test_a_null_character_in_the_name_of_a_file_is_refused(key: str) -> None:
    given = {"data": "a.csv", "schema": "a.toml", "guarantee": [{"name": "KAnonymity", "k": 2}]}
    assert sf.Recipe.parse(given)
    with pytest.raises(RecipeError, match="without a null character"):
        sf.Recipe.parse({**given, key: {"to": "a\0b"} if key == "write" else "a\0b"})
