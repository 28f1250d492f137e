"""Whatever fails while a release is made, the ledger has no entry of it, its store no rows; no limit is a limit like others."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.core import registry
from sfumato.core.declared import declarations
from sfumato.core.errors import SfumatoError
from sfumato.core.ranges import Range, Refused
from sfumato.core.view import Attack, Measure
from sfumato.data.writers import write_file
from sfumato.ledger.ledger import Ledger
from sfumato.workflow.recipe import Recipe
from tests.conformance.masks import people

_TABLE = people(40)
_SEARCH = sf.Mondrian()
_MASK = sf.Mdav(4, columns=("wage",))


class _Failure(Exception):
    """What nobody expects."""


def _fail(*_: Any, **__: Any) -> Any:
    raise _Failure


class _FailingMeasure(Measure):
    key = "failing"
    score = _fail


class _FailingAttack(Attack):
    run = _fail

    def fits(self, view: Any) -> bool:
        return True


#: What runs after a search or a mask, up to the entry itself.
STEPS = (
    "workflow.contents.rows.claims_of",
    "workflow.contents.rows.Rows.entry",
    "workflow.contents.base.canonical",
    "workflow.publishing.publish._facts",
    "workflow.publishing.publish.versions",
    "workflow.earlier.readings.ReleaseReading.of",
    "workflow.earlier.readings.ReleaseReading.to_json",
    "workflow.earlier.readings.keep",
    "ledger.ledger.Ledger.enter_release",
)


def _nothing(ledger: Path) -> None:
    with Ledger.open(ledger) as book:
        assert book.releases(_TABLE.schema.dataset) == []
    assert list(Path(f"{ledger}.releases").glob("*.parquet")) == []


@pytest.mark.parametrize("method", [_SEARCH, _MASK], ids=["search", "mask"])
@pytest.mark.parametrize("step", STEPS)
def test_a_release_that_fails_is_not_entered(step: str, method: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = tmp_path / "ledger.db"
    with Ledger.open(ledger):
        pass
    with monkeypatch.context() as broken:
        broken.setattr(f"sfumato.{step}", _fail)
        with pytest.raises(_Failure):
            sf.protect(_TABLE, [sf.KAnonymity(2)] if method is _SEARCH else (), method, ledger=ledger)
    _nothing(ledger)


@pytest.mark.parametrize("method", [_SEARCH, _MASK], ids=["search", "mask"])
@pytest.mark.parametrize(
    "asked", [{"utility": [_FailingMeasure()]}, {"risk": [_FailingMeasure()]}, {"attacks": [_FailingAttack()]}]
)
def test_what_cannot_be_measured_is_not_entered(asked: dict[str, Any], method: Any, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    with pytest.raises(_Failure):
        sf.protect(_TABLE, [sf.KAnonymity(2)] if method is _SEARCH else (), method, ledger=ledger, **asked)
    _nothing(ledger)


def test_a_key_that_cannot_sign_is_found_before_anything_is_entered(tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(_TABLE.schema.to_toml())
    write_file(_TABLE.table(), tmp_path / "people.csv")
    asked = {"data": "people.csv", "schema": "schema.toml", "guarantee": [{"name": "KAnonymity", "k": 2}], "output": "out"}
    recipe = Recipe.parse({**asked, "method": {"name": "Mondrian"}, "sign": "gone.key", "ledger": "ledger.db"}, folder=tmp_path)
    with pytest.raises(SfumatoError):
        recipe.run()
    _nothing(tmp_path / "ledger.db")


def test_a_disk_that_fails_after_the_entry_loses_no_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.workflow.earlier import readings as earlier

    keep = earlier.keep

    def full(store: Path, name: str, content: bytes) -> None:
        if name.endswith(".json"):
            raise OSError("no space left")
        keep(store, name, content)

    with monkeypatch.context() as broken:
        broken.setattr(earlier, "keep", full)
        first = sf.protect(_TABLE, sf.KAnonymity(2), _SEARCH, ledger=tmp_path / "ledger.db")
    assert first.certificate.ledger != "not entered"
    second = sf.protect(_TABLE, sf.KAnonymity(3), _SEARCH, ledger=tmp_path / "ledger.db")
    assert "how its texts are to be read was not kept; assume that everything" in second.certificate.composition["finding"]


def _takes(allowed: Range | None, value: object) -> bool:
    try:
        return allowed is not None and allowed.settled(value) is not None
    except Refused:
        return False


UNLIMITED = [
    (kind, name, each.name)
    for kind in ("search", "mask", "measure")
    for name, cls in registry.every(kind).items()
    for each in declarations(cls)
    if _takes(each.range, math.inf) and not _takes(each.range, -math.inf)
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name", "parameter"), UNLIMITED)
def test_no_limit_is_saved_and_verified(kind: str, name: str, parameter: str, tmp_path: Path) -> None:
    made = registry.find(kind, name)(**{parameter: math.inf})
    if kind == "search":
        release = sf.protect(_TABLE, sf.KAnonymity(2), made, ledger=tmp_path / "ledger.db")
        assert release.certificate.to_mapping()["method"][parameter] == "infinite"
    else:
        release = sf.mask(_TABLE, _MASK, risk=[made], ledger=tmp_path / "ledger.db")
    folder = release.save(tmp_path / "out")
    assert [finding for finding in sf.verify(folder).findings if finding.passed is False] == []
    assert b"Infinity" not in b"".join(path.read_bytes() for path in folder.rglob("*.json"))
    kept = tomllib.loads((folder / "owner" / "recipe.toml").read_text())
    assert kind != "search" or registry.make("search", kept["method"]) == made
