"""Somebody who knows more than a release shows: a file names the folder of the release and what is known."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import attacks
from sfumato.attacks.adversary import OutputAttack
from sfumato.cli.main import run
from sfumato.core.errors import SfumatoError
from sfumato.core.registry import every
from sfumato.core.view import AttackResult, View
from sfumato.data.hierarchies.hierarchy_builders import build
from sfumato.data.microdata import ReleasedTable
from sfumato.data.schema import Column, HierarchySpec, Schema
from sfumato.data.texts.values import texts
from sfumato.workflow.attacking.outputs import attack_outputs
from tests.workflow.attacked import attack_folder

AGES = [21, 22, 23, 24, 51, 52, 53, 54]
PLACES = ["Bonn", "Ulm", "Bonn", "Ulm", "Oslo", "Oslo", "Moss", "Moss"]
TREE = {"Germany": ["Bonn", "Ulm"], "Norway": ["Oslo", "Moss"]}


def column_of_ages() -> Column:
    return Column(role="quasi", type="integer", bounds=(0, 99), hierarchy=HierarchySpec(intervals=(10, 50)))


BASKETS = pa.table(
    {
        "age": AGES,
        "town": PLACES,
        "basket": ["beer|bread", "beer|bread", "bread|milk", "bread|milk", "beer|tea", "beer|tea", "milk|tea", "milk|tea"],
    }
)
SHOP = Schema(
    dataset="shop",
    columns={
        "age": column_of_ages(),
        "town": Column(role="quasi", type="string", hierarchy=HierarchySpec(tree=TREE)),
        "basket": Column(role="quasi", type="string", items="|"),
    },
)
PATIENTS = pa.table({"age": AGES, "town": PLACES, "disease": ["flu", "flu", "HIV", "cold", "cancer", "cancer", "cancer", "flu"]})
CLINIC = Schema(
    dataset="clinic",
    columns={
        "age": column_of_ages(),
        "town": Column(role="quasi", type="string", hierarchy=HierarchySpec(tree=TREE)),
        "disease": Column(role="sensitive", type="string"),
    },
)
VISITS = pa.table({"who": list("aabbcd"), "day": ["mo", "tu", "mo", "we", "mo", "mo"]})
DIARY = Schema(
    dataset="visits",
    columns={"who": Column(role="unit", type="string", pseudonym=True), "day": Column(role="quasi", type="string")},
)


def read_as_described(release: sf.Release, original: pa.Table, schema: Schema) -> View:
    """The release with what its texts stand for, from the table it was made of."""
    described = {name: column for name, column in schema.columns.items() if column.hierarchy is not None}
    trees = {name: build(name, column, texts(original.column(name).unique())) for name, column in described.items()}
    return View(ReleasedTable(release.data, release.schema, trees, original.num_rows), release.schema)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, View]]]:
    """Three releases and how they are read in Python."""
    folder = tmp_path_factory.mktemp("releases")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SFUMATO_KEY", str(folder / "owner.key"))
        shop = sf.protect(sf.read(BASKETS, SHOP), [sf.KAnonymity(2)], sf.Hybrid())
        clinic = sf.protect(sf.read(PATIENTS, CLINIC), [sf.KAnonymity(4)], sf.Lattice())
        visits = sf.protect(sf.read(VISITS, DIARY), [sf.KAnonymity(1)], sf.Lattice())
        for name, release in (("shop", shop), ("clinic", clinic), ("visits", visits)):
            release.save(folder / name)
        views = {
            "shop": read_as_described(shop, BASKETS, SHOP),
            "clinic": read_as_described(clinic, PATIENTS, CLINIC),
            "visits": visits.view(),
        }
        yield folder, views


@pytest.fixture
def place(made: tuple[Path, dict[str, View]]) -> Path:
    return made[0]


@pytest.fixture
def views(made: tuple[Path, dict[str, View]]) -> dict[str, View]:
    return made[1]


def game(folder: Path, attack: dict[str, Any], knowledge: Any, published: Any = "shop") -> Path:
    path = folder / "game.json"
    named = {"release": published} if isinstance(published, str) else published
    path.write_text(json.dumps({"attack": attack, "published": named, "knowledge": knowledge}))
    return path


def told(result: AttackResult) -> dict[str, Any]:
    return {
        "attack": result.attack,
        "success": result.success,
        "baseline": result.baseline,
        "interval": list(result.interval),
        "targets": result.targets,
        "finding": result.finding,
        "details": dict(result.details),
    }


@pytest.mark.parametrize(
    ("items", "target", "left"),
    [
        (["beer"], {}, 4),
        (["bread", "milk"], {}, 2),
        (["beer"], {"age": 52}, 2),
        (["beer"], {"age": "21", "town": "Ulm"}, 2),
        ([], {"town": "Moss"}, 4),
        ([], {"town": "Paris"}, 0),
        (["tea"], {"town": "Bonn"}, 0),
        (["wine"], {}, 0),
    ],
)
def test_a_file_about_one_basket_gives_what_python_gives(
    place: Path, views: dict[str, View], items: list[str], target: dict[str, Any], left: int
) -> None:
    found = attack_outputs(game(place, {"name": "PartialKnowledge"}, {"items": items, "target": target}))
    raw: dict[str, str | None] = {name: str(value) for name, value in target.items()}
    assert found == told(attacks.PartialKnowledge().run(views["shop"], attacks.KnownSet(frozenset(items), raw)))
    assert found["details"]["known_items"] == len(items)
    assert found["details"]["candidates"] == left and found["success"] == (1 / left if left else 0.0)


def test_knowing_nothing_particular_attacks_everybody(place: Path, views: dict[str, View]) -> None:
    found = attack_outputs(game(place, {"name": "PartialKnowledge", "items": 1}, {}))
    assert found == told(attacks.PartialKnowledge(items=1).run(views["shop"]))
    assert attack_folder(place / "shop", only=["PartialKnowledge(items=1)"]) == [found]
    assert found["targets"] == 8


@pytest.mark.parametrize(
    ("known", "facts", "success"),
    [
        ({"target": {"age": 22}}, attacks.Facts({"age": "22"}), 1 / 2),
        ({"target": {"age": 22}, "excluded": ["flu"]}, attacks.Facts({"age": "22"}, ("flu",)), 1 / 2),
        (
            {"target": {"town": "Bonn"}, "excluded": ["HIV"], "others": {"cold": 1}},
            attacks.Facts({"town": "Bonn"}, ("HIV",), {"cold": 1}),
            1.0,
        ),
    ],
)
def test_a_file_of_facts_gives_what_python_gives(
    place: Path, views: dict[str, View], known: dict[str, Any], facts: attacks.Facts, success: float
) -> None:
    found = attack_outputs(game(place, {"name": "BackgroundKnowledge"}, known, "clinic"))
    assert found == told(attacks.BackgroundKnowledge().run(views["clinic"], facts))
    assert found["success"] == pytest.approx(success) and found["targets"] == 1


def test_shares_and_groups_known_from_elsewhere_give_what_python_gives(place: Path, views: dict[str, View]) -> None:
    prior: dict[str | None, float] = {"cancer": 0.01, "flu": 0.9, "HIV": 0.04, "cold": 0.05}
    found = attack_outputs(game(place, {"name": "Skewness"}, {"prior": prior}, "clinic"))
    assert found == told(attacks.Skewness().run(views["clinic"], prior))
    assert (found["success"], found["baseline"]) == (0.75, 0.01)
    groups: dict[str | None, str] = {"flu": "light", "cold": "light", "HIV": "grave", "cancer": "grave"}
    found = attack_outputs(game(place, {"name": "Similarity"}, {"groups": groups}, "clinic"))
    assert found == told(attacks.Similarity().run(views["clinic"], groups))
    everything = dict.fromkeys(groups, "ill")
    assert attack_outputs(game(place, {"name": "Similarity"}, {"groups": everything}, "clinic"))["success"] == 1.0


@pytest.mark.parametrize("name", ["BackgroundKnowledge", "Homogeneity", "ProbabilisticInference", "Skewness"])
def test_a_file_without_knowledge_gives_what_the_folder_gives(place: Path, name: str) -> None:
    assert [attack_outputs(game(place, {"name": name}, {}, "clinic"))] == attack_folder(place / "clinic", only=[name])


def test_what_is_known_by_name_gives_what_a_file_gives(place: Path) -> None:
    known = {"target": {"town": "Bonn"}, "excluded": ["HIV"], "others": {"cold": 1}}
    [found] = attack_folder(place / "clinic", only=["BackgroundKnowledge"], knowledge=known)
    assert found == attack_outputs(game(place, {"name": "BackgroundKnowledge"}, known, "clinic"))
    with pytest.raises(SfumatoError, match="takes 'rumours'"):
        attack_folder(place / "clinic", knowledge={"rumours": ["flu"]})


def test_pseudonyms_are_followed_by_what_somebody_saw(place: Path, views: dict[str, View]) -> None:
    real = told(attacks.PseudonymTracking(observed=("day",)).run(views["visits"]))
    assert attack_folder(place / "visits", only=['PseudonymTracking(observed=["day"])']) == [real]
    assert attack_outputs(game(place, {"name": "PseudonymTracking", "observed": ["day"]}, {}, "visits")) == real
    # mo is shared by four; tu and we are of one person each
    assert real["details"]["expected_correct"] == pytest.approx((1 / 4 + 1) / 2 * 2 + 2 / 4)
    (blind,) = attack_folder(place / "visits", only=["PseudonymTracking(observed=[])"])
    assert blind["success"] == blind["baseline"] == pytest.approx(1 / 4)


ITEMS = {"name": "PartialKnowledge"}
FACTS = {"name": "BackgroundKnowledge"}


@pytest.mark.parametrize(
    ("attack", "knowledge", "why"),
    [
        (ITEMS, {"items": "canary-31"}, "items must be a list"),
        (ITEMS, {"items": [None]}, "items must be a list"),
        (ITEMS, {"items": [["canary-31"]]}, "single values"),
        (ITEMS, {"items": ["\ud800"]}, "single values"),
        (ITEMS, {"items": [], "target": "canary-31"}, "target must be an object"),
        (ITEMS, {"items": [], "target": {"age": {"canary-31": 1}}}, "single values"),
        (ITEMS, {"items": [], "target": {"basket": "canary-31"}}, "quasi-identifiers of the release: age, town"),
        (ITEMS, {"items": [], "target": {"age": "canary-31"}}, "not numbers"),
        (ITEMS, {"items": [], "target": {"\ud800": "x"}}, "characters that do not exist"),
        (ITEMS, {"item": ["canary-31"]}, "'item' is not among items, target"),
        ({"name": "PartialKnowledge", "column": "age"}, {"items": []}, "holds no sets"),
        ({"name": "PartialKnowledge", "itms": 2}, {}, "did you mean 'items'"),
        (FACTS, {"excluded": ["canary-31"]}, "target must say who"),
        (FACTS, {"target": {"age": 22}, "excluded": "canary-31"}, "excluded must be a list"),
        (FACTS, {"target": {"age": 22}, "others": {"canary-31": -1}}, "whole numbers"),
        (FACTS, {"target": {"age": 22}, "others": {"canary-31": True}}, "whole numbers"),
        (FACTS, {"target": {"age": 22}, "others": ["canary-31"]}, "others must be an object"),
        ({"name": "Skewness"}, {"prior": {"canary-31": 1.5}}, "from 0 to 1"),
        ({"name": "Skewness"}, {"prior": {"canary-31": float("nan")}}, "from 0 to 1"),
        ({"name": "Skewness"}, {"prior": {"canary-31": 0.6, "flu": 0.6}}, "more than 1"),
        ({"name": "Skewness"}, {"prior": 0.3}, "prior must be an object"),
        ({"name": "Similarity"}, {"groups": {"canary-31": 3}}, "names of groups"),
        ({"name": "PseudonymTracking"}, {"observed": ["canary-31"]}, "knowledge must be empty"),
        ({"name": "PseudonymTracking"}, {}, "no pseudonyms"),
        ({"name": "Linkage"}, {}, "--with"),
        ({"name": "Intersection"}, {}, "--earlier"),
    ],
)
def test_knowledge_that_makes_no_sense_is_one_clear_error_without_a_value(
    place: Path, attack: dict[str, Any], knowledge: Any, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = game(place, attack, knowledge)
    with pytest.raises(SfumatoError, match=why):
        attack_outputs(path)
    assert run(["attack", str(path)]) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("error: ") and "canary" not in shown.err and shown.out == ""


@pytest.mark.parametrize(
    ("known", "why"),
    [
        ({"target": {"age": 22}, "others": {"canary-31": 1}}, "more others"),
        ({"target": {"age": 22}, "excluded": ["flu", "HIV", "cold"]}, "no value is left"),
        ({"target": {"disease": "canary-31"}}, "not by disease"),
    ],
)
def test_facts_that_contradict_the_release_are_refused(place: Path, known: Any, why: str) -> None:
    with pytest.raises(SfumatoError, match=why) as refusal:
        attack_outputs(game(place, FACTS, known, "clinic"))
    assert "canary" not in str(refusal.value)


@pytest.mark.parametrize(
    "published", [["shop"], None, {}, {"release": 3}, "none", "", "a\0b", "\ud800", "game.json", {"answers": "shop"},
                  {"release": "shop", "more": 1}]
)  # fmt: skip
def test_what_is_no_release_is_refused(place: Path, published: Any) -> None:
    path = game(place, ITEMS, {"items": ["tea"]}, published)
    with pytest.raises(SfumatoError):
        attack_outputs(path)
    assert run(["attack", str(path)]) == 2


def test_a_value_that_a_hierarchy_refuses_is_not_repeated(place: Path, tmp_path: Path) -> None:
    """Whoever wrote the folder may have it refuse values that it does not list."""
    shutil.copytree(place / "shop", tmp_path / "strict")
    certificate = tmp_path / "strict" / "public" / "certificate.json"
    strict = certificate.read_text().replace('"missing": "root"', '"missing": "refuse"')
    assert strict != certificate.read_text()
    certificate.write_text(strict)
    with pytest.raises(SfumatoError, match="missing from the hierarchy") as refusal:
        attack_outputs(game(tmp_path, ITEMS, {"target": {"town": "canary-31"}}, "strict"))
    assert "canary" not in str(refusal.value)


def test_the_folder_is_looked_for_beside_the_file(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = game(place, ITEMS, {"items": ["milk", "tea"], "target": {"age": 53}})
    monkeypatch.chdir(tmp_path)
    assert run(["attack", str(path)]) == 0
    shown = capsys.readouterr().out
    assert (
        "PartialKnowledge: success 50 %" in shown
        and "12.5 %, gain 42.9 %, 1 target" in shown
        and "milk" not in shown
        and "53" not in shown
    )
    assert run(["attack", str(path), "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)["attacks"]
    assert (result["success"], result["baseline"], result["details"]["candidates"]) == (0.5, 0.125, 2)


@pytest.mark.parametrize("name", [name for name, kind in every("attack").items() if issubclass(kind, OutputAttack)])
def test_an_attack_on_outputs_sends_to_a_file(place: Path, name: str) -> None:
    with pytest.raises(SfumatoError, match=rf"{name} attacks no table .* \.json"):
        attack_folder(place / "shop", only=[name])
