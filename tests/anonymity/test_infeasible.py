"""A refusal names the guarantee that fails and describes a class it fails in, without a value of a record."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.anonymity.search import k_member
from sfumato.core.errors import Infeasible, Unsupported
from sfumato.data.schema import HierarchySpec

SEARCHES = [sf.Lattice(), sf.LeastLoss(), sf.LocalRecoding(), sf.Mondrian(), sf.TopDown(), sf.KMember()]


def people() -> sf.Microdata:
    tree = HierarchySpec(flat=True)
    table = pa.table({"town": ["oslo"] * 6 + ["bergen"] * 6, "ill": ["secret"] * 11 + ["other"], "job": ["x"] * 6 + ["y"] * 6})
    columns = {
        "town": sf.Column(role="quasi", hierarchy=tree),
        "ill": sf.Column(role="sensitive"),
        "job": sf.Column(role="sensitive"),
    }
    return sf.read(table, sf.Schema(dataset="people", columns=columns))


@pytest.mark.parametrize("search", SEARCHES, ids=repr)
def test_the_guarantee_that_fails_is_named_among_several(search: Any) -> None:
    promises = [sf.KAnonymity(3), sf.DistinctLDiversity(2, "job"), sf.EntropyLDiversity(1.9, "ill")]
    with pytest.raises(Infeasible) as refusal:
        search.run(people(), promises)
    text = str(refusal.value)
    assert "EntropyLDiversity(ill) fails even where everything is generalised" in text
    assert "the one class of all 12 records" in text
    assert "DistinctLDiversity(job) fails" not in text and "KAnonymity fails" not in text
    assert not any(value in text for value in ("oslo", "bergen", "secret"))


def test_classes_of_a_tree_without_root_are_counted(tmp_path: Any) -> None:
    file = tmp_path / "town.csv"
    file.write_text("oslo;east\nbergen;west\ntromso;west\n")
    schema = sf.Schema(
        dataset="people",
        columns={"town": sf.Column(role="quasi", hierarchy=HierarchySpec(file=str(file))), "ill": sf.Column(role="sensitive")},
    )
    table = pa.table({"town": ["oslo"] * 6 + ["bergen"] * 3, "ill": list("ppppppqrs")})
    rootless = sf.read(table, schema)
    with pytest.raises(Infeasible, match=r"DistinctLDiversity\(ill\) fails .* 1 class breaks it, with 6 of 9 records"):
        sf.Lattice().run(rootless, [sf.KAnonymity(2), sf.DistinctLDiversity(2, "ill")])
    with pytest.raises(Unsupported, match="Column 'town' has no common root"):
        sf.KMember().run(rootless, [sf.KAnonymity(2)])


def test_a_k_above_the_table_is_named_whatever_else_is_asked() -> None:
    table = pa.table({"town": ["a"] * 4 + ["b"] * 4, "ill": ["p", "p", "q", "q", "p", "p", "p", "q"]})
    schema = sf.Schema(dataset="people", columns={"town": sf.Column(role="quasi"), "ill": sf.Column(role="sensitive")})
    with pytest.raises(Infeasible, match="k = 9 cannot be reached"):
        sf.LeastLoss().run(sf.read(table, schema), [sf.KAnonymity(9), sf.DistinctLDiversity(2, "ill")])


def test_k_member_names_the_column_with_too_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(k_member, "MAX_ANCESTORS", 5)
    with pytest.raises(Unsupported, match="Column 'town' has too many different values"):
        sf.KMember().run(people(), [sf.KAnonymity(2)])
