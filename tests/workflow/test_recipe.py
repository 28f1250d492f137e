"""Recipes: one file, paths beside it, every fault at once, the same result as the library."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.cli.main import run
from sfumato.core.errors import RecipeError
from sfumato.workflow.recipe import Recipe, without_secrets
from tests.workflow.people import files

RECIPE = """
data = "people.csv"
schema = "people.toml"
output = "out"

[[guarantee]]
name = "KAnonymity"
k = 5

[[guarantee]]
name = "DistinctLDiversity"
l = 2
attribute = "disease"

[method]
name = "Lattice"
suppression = 0.05

[checks]
attacks = ["Homogeneity", { name = "Skewness" }]
utility = ["loss", "discernibility"]
"""


def written(folder: Path, text: str = RECIPE) -> Path:
    files(folder)
    path = folder / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_recipe_runs_from_anywhere(tmp_path: Path) -> None:
    made = Recipe.load(written(tmp_path / "project")).run()
    assert made.certificate.measured["KAnonymity"] >= 5
    assert sf.verify(tmp_path / "project" / "out").holds
    assert (tmp_path / "project" / "sfumato-ledger.db").exists()
    assert set(made.scores) == {"loss", "discernibility"}
    assert len(made.certificate.attacks) == 2


def test_a_recipe_and_the_library_give_the_same_rows(tmp_path: Path) -> None:
    made = Recipe.load(written(tmp_path)).run()
    data = sf.read(tmp_path / "people.csv", schema=tmp_path / "people.toml")
    by_hand = sf.protect(data, [sf.KAnonymity(5), sf.DistinctLDiversity(2, "disease")], sf.Lattice(suppression=0.05))
    assert made.data.equals(by_hand.data)


def test_the_owners_recipe_makes_the_same_release_again(tmp_path: Path) -> None:
    first = Recipe.load(written(tmp_path)).run()
    kept = Recipe.load(tmp_path / "out" / "owner" / "recipe.toml")
    assert kept.output is None and kept.ledger_place() == str(tmp_path / "sfumato-ledger.db")
    assert kept.run().data.equals(first.data)


@pytest.mark.parametrize("source", ["csv", "duckdb"])
def test_the_owners_recipe_runs_from_another_folder(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a column that is dropped, a hierarchy file and paths that were relative to where the command was typed."""
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    for folder in (project / "schemas", elsewhere):
        folder.mkdir(parents=True)
    rows = "".join(f"p{row},{30 + row % 4},{'ab'[row % 2]},{'xy'[row // 2 % 2]}\n" for row in range(24))
    (project / "people.csv").write_text("name,age,place,ill\n" + rows)
    (project / "schemas" / "places.csv").write_text("a,*\nb,*\n")
    (project / "schemas" / "people.toml").write_text(
        'dataset = "people"\nunit = "record"\n[columns.name]\nrole = "identifier"\n[columns.age]\nrole = "quasi"\n'
        'type = "integer"\nhierarchy = { intervals = [2, 10] }\n[columns.place]\nrole = "quasi"\nhierarchy = "places.csv"\n'
        '[columns.ill]\nrole = "sensitive"\n'
    )
    monkeypatch.setenv("SFUMATO_KEY", str(tmp_path / "owner.key"))
    monkeypatch.chdir(project)
    data = ["people.csv"]
    if source == "duckdb":
        import duckdb

        with duckdb.connect("people.duckdb") as base:
            base.execute("CREATE TABLE people AS SELECT * FROM read_csv('people.csv')")
        data = ["people.duckdb", "--table", "people"]
    assert run(["protect", *data, "--schema", "schemas/people.toml", "--k", "5", "-o", "o 1", "--write-to", "rows.duckdb"]) == 0
    monkeypatch.chdir(elsewhere)
    assert run(["protect", "../project/o 1/owner/recipe.toml", "-o", "again"]) == 0, capsys.readouterr().err
    first, again = (pq.read_table(folder / "public" / "data.parquet") for folder in (project / "o 1", elsewhere / "again"))
    assert again.equals(first)
    assert not list(elsewhere.glob("*.db")) and (project / "sfumato-ledger.db").exists()


def test_every_fault_of_form_is_reported_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, 'data = ""\nschema = 3\nformat = "xls"\ncolour = "red"\n')
    with pytest.raises(RecipeError) as caught:
        Recipe.load(path)
    for part in ("data", "schema", "format", "colour", "guarantee"):
        assert part in str(caught.value)


def test_every_unknown_name_is_reported_at_once_with_the_nearest(tmp_path: Path) -> None:
    text = RECIPE.replace("KAnonymity", "KAnonimity").replace('"Lattice"', '"Latice"').replace("k = 5", "q = 5")
    text = text.replace('"Homogeneity"', '"Homogenity"').replace('"discernibility"', '"discernability"')
    with pytest.raises(RecipeError) as caught:
        Recipe.load(written(tmp_path, text))
    for part in ("KAnonymity", "Lattice", "Homogeneity", "discernibility"):
        assert f"'{part}'" in str(caught.value)


def test_a_wrong_parameter_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="unknown parameter 'supression'; did you mean 'suppression'"):
        Recipe.load(written(tmp_path, RECIPE.replace("suppression", "supression")))


@pytest.mark.parametrize("text", ["data = [", "\x00", "data = 1\ndata = 2"])
def test_broken_files_are_one_clear_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(RecipeError):
        Recipe.load(written(tmp_path, text))
    with pytest.raises(RecipeError, match="no recipe file"):
        Recipe.load(tmp_path / "nothing.toml")


def test_no_ledger_when_the_recipe_says_so(tmp_path: Path) -> None:
    made = Recipe.load(written(tmp_path, "ledger = false\n" + RECIPE)).run()
    assert not made.entered
    assert not (tmp_path / "sfumato-ledger.db").exists()


def test_an_existing_output_is_refused_before_the_work_begins(tmp_path: Path) -> None:
    path = written(tmp_path)
    (tmp_path / "out").mkdir()
    phases: list[str] = []
    with pytest.raises(sf.core.errors.InputError, match="exists already"):
        Recipe.load(path).run(lambda phase, done, total: phases.append(phase))
    assert phases == []


def test_passwords_are_not_kept() -> None:
    recipe = Recipe.parse(
        {"data": "postgresql://ada:secret@db:5432/clinic", "schema": "s.toml", "guarantee": [{"name": "KAnonymity", "k": 2}]}
    )
    assert "secret" not in str(recipe.to_mapping())
    assert without_secrets("postgresql://ada:secret@db:5432/clinic?password=x") == "postgresql://ada@db:5432/clinic"


def test_knowledge_can_be_written_in_a_recipe() -> None:
    recipe = Recipe.parse(
        {
            "data": "d.csv",
            "schema": "s.toml",
            "guarantee": [{"name": "KAnonymity", "k": 2, "knowledge": {"attributes": ["age"]}}],
        }
    )
    assert recipe.guarantees()[0].knowledge.attributes == ("age",)  # type: ignore[attr-defined]


def test_the_ledger_is_kept_in_the_owners_recipe() -> None:
    content = {"data": "d.csv", "schema": "s.toml", "guarantee": [{"name": "KAnonymity", "k": 5}]}
    assert Recipe.parse(content).to_mapping()["ledger"] == "sfumato-ledger.db"
    assert Recipe.parse({**content, "ledger": False}).to_mapping()["ledger"] is False
