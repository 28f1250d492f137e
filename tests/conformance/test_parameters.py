"""Methods and guarantees are values: a TOML file describes the same object as Python."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.declared import build, parameters
from sfumato.core.errors import InputError, ParameterError, RecipeError
from sfumato.core.registry import make
from tests.conformance.methods import GUARANTEE_KINDS, SEARCHES, variants
from tests.conformance.problems import GUARANTEES, guarantee, knowing
from tests.examples import examples

ROUND_TRIPS = {
    "CellSuppression": {"importance": {"age": 2.0, "größe in cm": 1.0}},
    "Lattice": {"suppression": 0.25, "max_nodes": 10, "time_limit": 1.5},
}


def through_toml(value: Any, kind: str) -> Any:
    described = tomlkit.dumps({"name": type(value).__name__, **parameters(value)})
    return make(kind, tomllib.loads(described))


@pytest.mark.parametrize("name", sorted(SEARCHES))
def test_a_search_comes_back_from_toml(name: str) -> None:
    for search in [*variants(name), build(SEARCHES[name], ROUND_TRIPS.get(name, {}))]:
        assert through_toml(search, "search") == search


@pytest.mark.parametrize("kind", sorted(GUARANTEES))
@settings(max_examples=examples(20))
@given(data=st.data())
def test_a_guarantee_comes_back_from_toml(kind: str, data: st.DataObject) -> None:
    value = data.draw(guarantee(kind, ["flu", "cold"]))
    assert through_toml(value, "guarantee") == value


def test_an_adversary_comes_back_from_toml() -> None:
    value = knowing(["age", "marital-status"], 3)
    assert through_toml(value, "guarantee") == value


@pytest.mark.parametrize("name", sorted({**SEARCHES, **GUARANTEE_KINDS}))
def test_every_unknown_parameter_is_named_at_once(name: str) -> None:
    kind = {**SEARCHES, **GUARANTEE_KINDS}[name]
    with pytest.raises(ParameterError, match=r"(?s)supression.*wrong"):
        build(kind, {"supression": 1, "wrong": 2})


@pytest.mark.parametrize("name", sorted(name for name, kind in SEARCHES.items() if "suppression" in parameters(kind())))
def test_a_suppression_limit_is_a_share(name: str) -> None:
    for share in (-0.1, 1.5, float("nan")):
        with pytest.raises(ParameterError, match="suppression"):
            SEARCHES[name](suppression=share)


def test_a_name_that_is_no_search_is_refused_with_the_nearest() -> None:
    with pytest.raises(RecipeError, match="Mondrian"):
        make("search", {"name": "Mondrain"})
    with pytest.raises(InputError):
        make("search", {"name": "KAnonymity", "k": 2})
