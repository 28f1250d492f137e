"""Distances over a hierarchy of the sensitive attribute: `check` agrees with the certificate, in memory and from
the files, and what only the owner has stays with the owner.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.cli.main import run
from sfumato.data.schema import Column, HierarchySpec
from sfumato.workflow.publishing.columns import without_hierarchies
from tests.workflow.people import schema, table

PROMISE = sf.TCloseness(0.12, "disease", distance="hierarchical")
SPECS = {
    "tree": HierarchySpec(tree={"lung": ["flu", "cold", "asthma"], "well": ["none"]}),
    "file": HierarchySpec(file="owners-diseases.csv"),
    "flat": None,
}


def made(folder: Path, kind: str) -> sf.Release:
    (folder / "owners-diseases.csv").write_text("flu;lung;*\ncold;lung;*\nasthma;lung;*\nnone;well;*\n")
    described = schema(disease=Column(role="sensitive", type="string", hierarchy=SPECS[kind])).replace(folder=str(folder))
    return sf.protect(sf.read(table(2_000), described), [sf.KAnonymity(5), PROMISE], sf.Lattice(suppression=0.05))


@pytest.mark.parametrize("kind", SPECS)
def test_check_agrees_with_the_certificate(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    release = made(tmp_path, kind)
    release.save(tmp_path / "out")
    claim = next(claim for claim in release.certificate.claims if claim.guarantee == PROMISE.key)
    stated = claim.also_measured["reference released"]
    in_memory = sf.check(release.data, release.schema, [PROMISE])
    from_files = sf.check(tmp_path / "out" / "public" / "data.parquet", None, [PROMISE])
    assert in_memory.holds and from_files.holds
    assert in_memory.measured[PROMISE.key] == pytest.approx(stated, abs=1e-12)
    assert from_files.measured[PROMISE.key] == pytest.approx(stated, abs=1e-12)
    asked = f'TCloseness, t={PROMISE.t}, attribute="disease", distance="hierarchical"'
    assert run(["check", str(tmp_path / "out" / "public" / "data.parquet"), "--guarantee", asked]) == 0
    assert sf.verify(tmp_path / "out").holds


@pytest.mark.parametrize("spec", [HierarchySpec(frequency=(2,)), HierarchySpec(mask="right")], ids=["frequency", "mask"])
@pytest.mark.parametrize("source", ["declared", "data"])
def test_a_tree_that_depends_on_suppressed_values_is_not_published(spec: HierarchySpec, source: str) -> None:
    """The order of groups by frequency, and the width of a mask, told the value of the one person who was suppressed."""
    described = schema(disease=Column(role="sensitive", type="string", hierarchy=spec, source=source))
    with pytest.raises(sf.errors.ParameterError, match="those of suppressed records too.*Write the tree yourself"):
        sf.protect(sf.read(table(200), described), [sf.KAnonymity(5), PROMISE], sf.Lattice(suppression=0.05))
    wide = HierarchySpec(mask="right", width=6)
    fixed = schema(disease=Column(role="sensitive", type="string", hierarchy=wide))
    assert sf.protect(sf.read(table(200), fixed), [sf.KAnonymity(5), PROMISE], sf.Lattice(suppression=1.0), seed=1)


def test_the_hierarchy_matters(tmp_path: Path) -> None:
    release = made(tmp_path, "tree")
    bare = sf.check(release.data, without_hierarchies(release.schema), [PROMISE])
    assert bare.measured != sf.check(release.data, release.schema, [PROMISE]).measured


@pytest.mark.parametrize("kind", SPECS)
def test_what_is_the_owners_reaches_no_public_file(tmp_path: Path, kind: str) -> None:
    release = made(tmp_path, kind)
    release.save(tmp_path / "out")
    seen = release.view().schema.columns["disease"].hierarchy
    assert seen is None or seen.file == "hierarchy-1.csv"  # the published tree, whatever the owner calls it
    assert "hierarchy" not in release.published.schema["columns"]["disease"]
    for path in (tmp_path / "out" / "public").iterdir():
        content = path.read_bytes()
        assert b"owners-diseases" not in content and os.fsencode(tmp_path) not in content
