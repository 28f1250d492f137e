"""`check` of a release in memory: the people behind its classes, and protected values that exist."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.cli.main import run
from sfumato.core.errors import Unsupported
from sfumato.core.guarantees.base import ClassGuarantee
from sfumato.data.schema import Column, HierarchySpec
from sfumato.workflow.publishing.columns import without_hierarchies
from tests.workflow.people import schema, table

TREE = HierarchySpec(tree={"north": ["f"], "south": ["m"]})


def test_a_release_in_memory_matches_the_people_that_its_certificate_states() -> None:
    population, described = table(600), schema(sex=Column(role="quasi", type="string", hierarchy=TREE))
    promises = [sf.KMap(5), sf.DeltaPresence(0, 0.9)]
    sample = sf.read(population.slice(0, 200), described)
    release = sf.protect(sample, promises, sf.Lattice(0.05), population=sf.read(population, described))
    stated = [claim.measured for claim in release.certificate.claims]
    checked = sf.check(release.data, release.schema, promises, population=population)
    assert checked.holds and not checked.notices and list(checked.measured.values()) == stated
    assert all(column.hierarchy is None for column in release.content.schema.columns.values())  # the owner's stay the owner's
    bare = sf.check(release.data, without_hierarchies(release.schema), promises, population=population)
    assert not bare.holds and "pass the schema with their hierarchies" in bare.explain()


NOBODY: list[ClassGuarantee] = [
    sf.DistinctLDiversity(3, "disease", protected_values=("nosuch",)),
    sf.EntropyLDiversity(3, "disease", protected_values=("nosuch",)),
    sf.RecursiveLDiversity(3, 2, "disease", protected_values=("nosuch",)),
    sf.TCloseness(0.1, "disease", protected_values=("nosuch",)),
    sf.BetaLikeness(0.1, "disease", protected_values=("nosuch",)),
    sf.DeltaDisclosure(0.1, "disease", protected_values=("nosuch",)),
    sf.AlphaKAnonymity(0.1, 1, "disease", protected_values=("nosuch",)),
]


@pytest.mark.parametrize("guarantee", NOBODY, ids=lambda each: each.name)
def test_a_promise_about_values_that_nobody_can_have_is_refused(guarantee: ClassGuarantee) -> None:
    rows = table(60)
    for original in (None, rows):
        with pytest.raises(Unsupported, match="would protect nobody: 'nosuch'. Check their spelling"):
            sf.check(rows, schema(), [guarantee], original=original)
    declared = Column(role="sensitive", type="string", domain=("flu", "cold", "asthma", "none", "nosuch"))
    tree = HierarchySpec(tree={"ill": ["flu", "cold", "asthma"], "well": ["none", "nosuch"]})
    for known in (declared, Column(role="sensitive", type="string", hierarchy=tree)):
        assert sf.check(rows, schema(disease=known), [guarantee]).guarantees
    one = rows.slice(0, 1).set_column(rows.column_names.index("disease"), "disease", pa.array(["nosuch"]))
    assert sf.check(rows, schema(), [guarantee], original=pa.concat_tables([rows, one])).guarantees


def test_the_command_line_refuses_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from sfumato.data.writers import write_file

    write_file(table(60), tmp_path / "people.csv")
    (tmp_path / "schema.toml").write_text(schema().to_toml())
    asked = 'DistinctLDiversity, l=3, attribute="disease", protected_values=["nosuch"]'
    assert run(["check", str(tmp_path / "people.csv"), "--guarantee", asked]) != 0
    shown = capsys.readouterr()
    assert "would protect nobody" in shown.err and "holds" not in shown.out
