"""Rows that go into a database as well: only what was verified stays there, and no password is kept."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import RecipeError, SourceError, VerificationFailed
from sfumato.workflow.recipe import Recipe, without_secrets
from tests.workflow.people import release
from tests.workflow.test_recipe import RECIPE, written


def writing(folder: Path, write: str) -> Recipe:
    return Recipe.load(written(folder, f"write = {write}\n{RECIPE}"))


def phases_of(recipe: Recipe) -> list[str]:
    phases: list[str] = []
    recipe.run(lambda phase, done, total: phases.append(phase))
    return phases


def test_a_recipe_writes_into_a_duckdb_file(tmp_path: Path) -> None:
    made = writing(tmp_path, '{ to = "rows.duckdb" }').run()
    assert len(sf.read(tmp_path / "rows.duckdb", table="release")) == len(made)
    assert sf.verify(tmp_path / "out").holds


def test_an_existing_table_is_refused_before_the_work_and_replaced_on_request(tmp_path: Path) -> None:
    release().write(tmp_path / "rows.duckdb", table_name="people")
    before = (tmp_path / "rows.duckdb").read_bytes()
    with pytest.raises(SourceError, match="already has a table 'people'"):
        phases_of(writing(tmp_path, '{ to = "rows.duckdb", table = "people" }'))
    assert not (tmp_path / "out").exists() and (tmp_path / "rows.duckdb").read_bytes() == before
    made = writing(tmp_path, '{ to = "rows.duckdb", table = "people", overwrite = true }').run()
    assert len(sf.read(tmp_path / "rows.duckdb", table="people")) == len(made)


@pytest.mark.parametrize("place", ["missing/rows.duckdb", "people.csv", "mysql://host/database"])
def test_a_place_that_cannot_hold_the_table_is_refused_before_the_work(tmp_path: Path, place: str) -> None:
    recipe = writing(tmp_path, f'{{ to = "{place}" }}')
    with pytest.raises(SourceError):
        recipe.run()
    assert not (tmp_path / "out").exists() and not (tmp_path / "sfumato-ledger.db").exists()


def test_rows_that_do_not_come_back_as_they_were_verified_do_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sfumato.engines.duckdb.relation as engine

    made = release()
    made.write(tmp_path / "old.duckdb")
    honest = engine.read_table
    monkeypatch.setattr(engine, "read_table", lambda *given: honest(*given).slice(1))
    with pytest.raises(VerificationFailed, match="Nothing was written there"):
        made.write(tmp_path / "new.duckdb")
    with pytest.raises(VerificationFailed):
        made.write(tmp_path / "old.duckdb", table_name="second")
    with pytest.raises(VerificationFailed):
        made.write(tmp_path / "old.duckdb", overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["old.duckdb"]
    assert len(sf.read(tmp_path / "old.duckdb")) == len(made)  # one table, whole


@pytest.mark.postgres
def test_rows_that_postgres_changes_do_not_stay(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import sfumato.engines.postgres.relation as engine

    made = release()
    made.write(postgres_url, table_name="stays", overwrite=True)

    def changed(*given: object) -> pa.Table:
        table = engine_read(*given)
        return table.set_column(0, "age", [["*"] * table.num_rows])

    engine_read = engine.read_table
    monkeypatch.setattr(engine, "read_table", changed)
    with pytest.raises(VerificationFailed):
        made.write(postgres_url, table_name="never_there")
    with pytest.raises(VerificationFailed):
        made.write(postgres_url, table_name="stays", overwrite=True)
    with pytest.raises(SourceError, match="no table 'never_there'"):
        len(sf.read(postgres_url, table="never_there"))
    assert len(sf.read(postgres_url, table="stays")) == len(made)


@pytest.mark.postgres
def test_a_recipe_writes_into_postgres_and_keeps_no_password(tmp_path: Path, postgres_url: str) -> None:
    secret = f"{postgres_url}{'&' if '?' in postgres_url else '?'}application_name=hunter2"
    made = writing(tmp_path, f'{{ to = "{secret}", table = "recipe_rows", overwrite = true }}').run()
    assert len(sf.read(postgres_url, table="recipe_rows")) == len(made)
    for path in (tmp_path / "out").rglob("*"):
        assert path.is_dir() or b"hunter2" not in path.read_bytes()
    with pytest.raises(SourceError, match="already has a table") as caught:
        writing(tmp_path / "again", f'{{ to = "{secret}", table = "recipe_rows" }}').run()
    assert "hunter2" not in str(caught.value)


def test_the_password_is_in_no_form_of_the_recipe(tmp_path: Path) -> None:
    recipe = writing(tmp_path, '{ to = "postgresql://ada:hunter2@db/clinic?password=hunter2" }')
    assert recipe.to_mapping()["write"]["to"] == "postgresql://ada@db/clinic"
    for text in (repr(recipe), str(recipe), str(recipe.to_mapping()), repr(recipe.write)):
        assert "hunter2" not in text


@pytest.mark.parametrize("url", ["postgresql://ada:1/hunter2@db/x", "postgresql://ada:hunter2/x@db/y", "postgresql://[hunter2"])
def test_a_malformed_url_is_not_shown(url: str) -> None:
    assert without_secrets(url) == "postgresql://…"


def test_faults_of_the_place_are_reported(tmp_path: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        writing(tmp_path, '{ table = "", replace = true }')
    for part in ("write.to", "write.table", "write.replace"):
        assert part in str(caught.value)
