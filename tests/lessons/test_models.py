"""The register of privacy models is complete and points at rooms that exist."""

from __future__ import annotations

import importlib

import pytest

import sfumato as sf
from sfumato.core import registry
from sfumato.lessons.models import MODELS, models


@pytest.mark.parametrize(
    "words",
    [
        "re-identification",
        "k-anonymity",
        "multiparty",
        "differential privacy",
        "d-privacy",
        "result privacy",
        "integral privacy",
        "homomorphic",
    ],
)
def test_every_model_of_the_specification_is_registered(words: str) -> None:
    assert [model for model in MODELS if words in model.name]


def test_rooms_that_are_named_can_be_entered() -> None:
    for model in models(built=True):
        assert model.room is not None
        importlib.import_module(model.room)


def test_names_are_unique_and_filters_select() -> None:
    assert len({model.name for model in MODELS}) == len(MODELS)
    assert {model.driven for model in MODELS} == {"data", "computation", "result"}
    assert set(models(whose="user")) < set(MODELS)
    assert all(model.composes for model in models(driven="computation") if "differential" in model.name)


def test_no_guarantee_of_a_published_table_claims_to_compose() -> None:
    """k-anonymity does not compose: the register says so of every model whose guarantees a search reaches."""
    assert registry.names("guarantee")
    assert not any(model.composes for model in models(built=True) if model.room == sf.anonymity.__name__)
