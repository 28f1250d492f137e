"""What validation finds in a file is said in our words, whichever kind of fault it is."""

from __future__ import annotations

import pytest

from sfumato.core.errors import SfumatoError
from sfumato.data.schema import Schema
from sfumato.workflow.recipe import Recipe

RECIPE = {"data": "a.csv", "schema": "a.toml", "guarantee": [{"name": "KAnonymity", "k": 5}]}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"format": "parket"}, "format: must be 'parquet' or 'csv'"),
        ({"sample": 0}, "sample: must be at least 1"),
        ({"sample": "x"}, "sample: must be a whole number"),
        ({"sample": 1.5}, "sample: must be a whole number"),
        ({"data": ""}, "data: must not be empty"),
        ({"data": 5}, "data: must be text (in quotes)"),
        ({"overwrite": "perhaps"}, "overwrite: must be true or false"),
        ({"guarantee": 5}, "guarantee: must be a list"),
        ({"guarantee": [5]}, "guarantee.0: must be a table of keys and values"),
        ({"checks": 5}, "checks: must be a table of keys and values"),
        ({"answers": []}, "answers: must be a table of keys and values"),
    ],
)
def test_faults_of_a_recipe(changes: dict[str, object], said: str) -> None:
    with pytest.raises(SfumatoError) as refusal:
        Recipe.parse({**RECIPE, **changes})
    assert said in str(refusal.value) and not any(word in str(refusal.value).lower() for word in FOREIGN)


FOREIGN = ("input should", "valid", "integer", "string", "dictionary", "tuple", "pydantic", "parse")


@pytest.mark.parametrize(
    "column", [{"role": "quazi"}, {"bounds": 5}, {"bounds": [1, 2, 3]}, {"domain": "a"}, {"hierarchy": 5}, 5]
)
def test_faults_of_a_schema(column: object) -> None:
    with pytest.raises(SfumatoError) as refusal:
        Schema.parse({"columns": {"a": column}})
    assert not any(word in str(refusal.value).lower() for word in FOREIGN if word not in ("string", "integer")), refusal.value
