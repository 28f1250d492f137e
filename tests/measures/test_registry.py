"""Every public guarantee has a verifier, every measure a key."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import measures
from sfumato.anonymity.predicates.promises import _MAKERS
from sfumato.core import registry
from sfumato.core.errors import RecipeError, Unsupported
from sfumato.core.guarantees.base import ClassGuarantee
from sfumato.core.view import Measure
from sfumato.measures import risk, utility
from sfumato.measures.guarantees.measure import MEASURES, measure


def test_every_public_guarantee_has_a_check_and_a_verifier() -> None:
    public = set(registry.every("guarantee").values())
    assert public
    assert public == set(MEASURES)
    assert public == set(_MAKERS)


def test_a_guarantee_without_a_verifier_is_refused() -> None:
    @dataclasses.dataclass(frozen=True)
    class Invented(ClassGuarantee):
        threshold: float = 1.0  # type: ignore[misc]

        def claim(self) -> str:
            return "nothing"

    with pytest.raises(Unsupported, match="no verifier"):
        measure(pa.table({"a": [1]}), sf.Schema.of(quasi=["a"]), Invented())


@pytest.mark.parametrize("key", registry.names("measure"))
def test_every_measure_is_found_by_its_own_key(key: str) -> None:
    found = registry.find("measure", key)
    assert issubclass(found, Measure)
    assert dataclasses.is_dataclass(found)
    assert found.key == key  # type: ignore[attr-defined]


def test_every_listed_name_resolves() -> None:
    for room in (utility, risk, measures.guarantees):
        for name in room.__all__:
            assert getattr(room, name) is not None


def test_an_unknown_measure_names_the_nearest() -> None:
    with pytest.raises(RecipeError, match="discernibility"):
        registry.find("measure", "discernability")


def test_the_verifier_loads_no_search_and_no_kernel() -> None:
    probe = (
        "import sys, sfumato.measures.guarantees.measure, sfumato.measures.guarantees.overview;"
        "rooms = ('sfumato.kernels', 'sfumato.anonymity', 'sfumato.data.class_table');"
        "print([m for m in sys.modules if m.startswith(rooms)])"
    )
    answer = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
