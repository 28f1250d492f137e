"""Certificates with the second format of fingerprints are verified, and the owner shows the source of either."""

from __future__ import annotations

from pathlib import Path

import pytest

import sfumato as sf
from sfumato.wire.fingerprint import FORMAT, SECOND_FORMAT
from sfumato.wire.keys import OwnerKey
from sfumato.workflow import protect as protecting
from tests.workflow.people import people, schema, table

SEARCH = sf.Lattice(suppression=0.05)
KEY = OwnerKey(bytes(range(32)))


def test_a_folder_with_the_second_format_is_verified(tmp_path: Path) -> None:
    register = sf.read(table(3000, seed=9), schema())
    guarantees = [sf.KMap(5), sf.TCloseness(0.9, "disease")]
    release = sf.protect(people(300), guarantees, SEARCH, population=register, destination=tmp_path / "out")
    assert str(release.certificate.fingerprint).startswith(f"{SECOND_FORMAT}:")
    assert all(f" {SECOND_FORMAT}:" in str(claim.reference) for claim in release.certificate.claims)
    verification = sf.verify(tmp_path / "out", original=people(300), population=register)
    assert [finding for finding in verification.findings if finding.claim and not finding.passed] == []
    place = tmp_path / "out" / "public" / "certificate.json"
    place.write_bytes(place.read_bytes().replace(SECOND_FORMAT.encode(), b"sfumato-fingerprint-3"))
    assert not sf.verify(tmp_path / "out").holds


@pytest.mark.parametrize("in_engine", [False, True])
def test_the_owner_shows_which_table_a_release_came_from(in_engine: bool) -> None:
    stated = protecting.fingerprint(people(), KEY, in_engine=in_engine)
    assert stated is not None and stated.startswith(SECOND_FORMAT if in_engine else FORMAT)
    assert protecting.has_fingerprint(people(), stated, KEY)
    assert not protecting.has_fingerprint(people(599), stated, KEY)
    assert not protecting.has_fingerprint(people(), stated, OwnerKey(bytes(32)))
