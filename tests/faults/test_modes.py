"""Who may read what was written: public files everybody, the owner's files the owner, whatever the umask."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.data.hierarchies import hierarchy_builders
from sfumato.data.schema import Column, HierarchySpec, Schema
from sfumato.workflow.publishing.publish import publish
from tests.workflow.people import files, people, release, table


@contextmanager
def umask(bits: int) -> Iterator[None]:
    before = os.umask(bits)
    try:
        yield
    finally:
        os.umask(before)


def modes(folder: Path) -> dict[str, str]:
    """The mode of everything below a folder, and of the folder."""
    return {
        str(path.relative_to(folder.parent)): f"{stat.S_IMODE(path.lstat().st_mode):04o}"
        for path in sorted([folder, *folder.rglob("*")])
    }


MASKS = pytest.mark.parametrize("bits", [0o000, 0o022, 0o077], ids=lambda bits: f"umask {bits:03o}")


@MASKS
@pytest.mark.parametrize("kind", ["table", "artefact"])
def test_public_files_are_readable_and_the_owner_s_are_not(bits: int, kind: str, tmp_path: Path) -> None:
    if kind == "table":
        made: sf.Release[Any] = release()
    else:
        described = Schema(dataset="clinic", columns={"sex": Column(role="quasi", type="string", domain=("f", "m"))})
        session = sf.Session(sf.read(table().select(["sex"]), described), ledger=tmp_path / "ledger.db", budget=sf.PureDP(1.0))
        made = publish(session.release(sf.dp.PrivateHistogram(("sex",), epsilon=0.1)))
    with umask(bits):
        made.save(tmp_path / "new" / "deep" / "out")
    found = modes(tmp_path / "new")
    for name, mode in found.items():
        parts = Path(name).parts
        folder = (tmp_path / name).is_dir()
        owner = "owner" in parts
        assert (
            mode == {(True, False): "0755", (True, True): "0700", (False, False): "0644", (False, True): "0600"}[folder, owner]
        ), name
    assert any("owner/card.html" in name for name in found) and any("public/card.html" in name for name in found)


@MASKS
def test_a_tree_that_is_published_is_readable(bits: int, tmp_path: Path) -> None:
    spec = HierarchySpec(tree={"ill": ["flu", "cold", "asthma"], "well": ["none"]})
    data = people(disease=Column(role="sensitive", type="string", hierarchy=spec))
    made = sf.protect(data, [sf.KAnonymity(5)], sf.Lattice(suppression=0.05))
    with umask(bits):
        made.save(tmp_path / "out")
    assert modes(tmp_path / "out")["out/public/hierarchy-1.csv"] == "0644"


@MASKS
def test_what_is_learnt_from_the_data_is_its_owner_s(bits: int, tmp_path: Path) -> None:
    data, schema = files(tmp_path)
    with umask(bits):
        sf.inspect(data, schema_out=tmp_path / "learnt.toml")
        found = sf.compare(sf.read(data, schema), [sf.Rounding(5)], cache=tmp_path / "cache", workers=1)
        found.save_map(tmp_path / "map.html")
        found.save_map(tmp_path / "map.svg")
        sf.protect(sf.read(data, schema), [sf.KAnonymity(5)], sf.Lattice(suppression=0.05), ledger=tmp_path / "ledger.db")
        hierarchy_builders.from_values(["a"]).save(tmp_path / "tree.csv")
        release().write(tmp_path / "rows.duckdb")
        with sf.Ledger.open(tmp_path / "ledger.db") as ledger:
            ledger.enter_release("clinic", {"rows": 1}, token="once")  # the log beside it exists while it is open
            private = modes(tmp_path)
    ours = {name for name in private if not name.endswith(("people.csv", "people.toml"))} - {tmp_path.name}
    assert {Path(name).name for name in ours} >= {"learnt.toml", "map.html", "map.svg", "ledger.db", "ledger.db-wal", "key"}
    for name in ours:
        assert private[name] == ("0700" if (tmp_path.parent / name).is_dir() else "0600"), name
