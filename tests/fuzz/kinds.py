"""What is fuzzed: for each kind of input valid seeds, and what is done with a damaged one."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf
from sfumato.ledger import Ledger
from tests.fuzz.mutations import BYTES, TEXT, Mutation
from tests.fuzz.structures import json_value, ledger_cell, parquet_columns, toml_value

CANARY = "Zq7canary7qZ"
ROWS = 60


@dataclass(frozen=True)
class Kind:
    """Seeds, the damage done to them, a function to try, and a command line to run on the same file."""

    seeds: Sequence[bytes]
    mutations: Sequence[Mutation]
    attempt: Callable[[Path, int], object]
    ending: str
    command: Callable[[Path], list[str]]


def table(rows: int = ROWS) -> pa.Table:
    """People whose every text carries a mark that no message may repeat."""
    return pa.table(
        {
            "age": [20 + i % 40 for i in range(rows)],
            "zip": [f"{CANARY}{i % 4}" for i in range(rows)],
            "day": [f"19{40 + i % 50}-03-0{1 + i % 9}" for i in range(rows)],
            "pay": [f"{1000 + 7 * i}.5" for i in range(rows)],
            "disease": [f"{CANARY}-{'abc'[i % 3]}" for i in range(rows)],
        }
    )


SCHEMA = """dataset = "fuzz"
unlisted = "drop"

[columns]
age = {role = "quasi", type = "integer", bounds = [0, 120], hierarchy = {intervals = [5, 10, 20, 40]}}
zip = {role = "quasi", type = "string", importance = 2.0, hierarchy = {mask = "right", width = 15}}
day = {role = "quasi", type = "date", hierarchy = {dates = ["month", "year", "decade"]}}
pay = {role = "plain", type = "number", bounds = [0, 100000], missing = ["-9"]}
disease = {role = "sensitive", type = "string", order = ["a", "b"], label = "what"}
"""
READ = """
[read]
separator = ","
encoding = "utf-8"
thousands = "'"
date_format = "%Y-%m-%d"
missing = ["NA", "k.A."]
"""
SCHEMAS = (
    SCHEMA,
    SCHEMA.replace('{mask = "right", width = 15}', '{tree = {"*" = {a = ["b", "c"], d = []}}, missing = "root"}'),
    SCHEMA.replace("\n[columns]", READ + "\n[columns]"),
    SCHEMA.replace('{mask = "right", width = 15}', "{frequency = [2, 4]}").replace('type = "date"', 'type = "string"'),
    SCHEMA.replace('hierarchy = {mask = "right", width = 15}', 'hierarchy = "towns.csv"'),
)
RECIPE = """data = "people.csv"
schema = "people.toml"
output = "out"
format = "csv"
ledger = false
seed = 7

[[guarantee]]
name = "KAnonymity"
k = 3

[[guarantee]]
name = "TCloseness"
t = 0.9
attribute = "disease"

[method]
name = "Lattice"
suppression = 0.5

[checks]
utility = ["discernibility"]
risk = ["uniques"]

[answers]
retention = {given = true, note = "for the tests"}
"""
RECIPES = (
    RECIPE,
    RECIPE.replace('name = "Lattice"\nsuppression = 0.5', 'name = "Mondrian"'),
    'data = "people.csv"\nschema = "people.toml"\nledger = false\n'
    '[method]\nname = "AdditiveNoise"\nratio = 0.1\ncolumns = ["age"]\n',
)
HIERARCHIES = (
    "".join(f"{CANARY}{i};{'ab'[i % 2]};*\n" for i in range(4)).encode(),
    b"leaf,group,top\n" + b"".join(f'"{CANARY}{i}","g, {i % 2}",all\n'.encode() for i in range(4)),
    b"\xef\xbb\xbf" + "".join(f"{CANARY}{i};x;y;*\r\n" for i in range(4)).encode(),
)
QUESTIONS = (
    "SELECT COUNT(*) AS n FROM people",
    "SELECT zip, COUNT(*) AS n, AVG(pay) AS mean FROM people WHERE age BETWEEN 20 AND 40 GROUP BY zip HAVING COUNT(*) > 3",
    "SELECT disease, SUM(age) FROM people WHERE zip LIKE 'a%' OR pay > 1e3 GROUP BY disease ORDER BY 2 DESC LIMIT 3",
    "SELECT MEDIAN(pay) AS m, QUANTILE(age, 0.25) AS q, STDDEV(pay) AS s FROM people WHERE age IS NOT NULL",
    "SELECT CASE WHEN age < 30 THEN 'young' ELSE 'old' END AS g, COUNT(*) FROM people GROUP BY 1",
    "SELECT COUNT(*) FROM (SELECT age + 2 AS a, CAST(pay AS INTEGER) AS p FROM people WHERE YEAR(day) > 1950) t WHERE a % 3 = 0",
    "SELECT SUM(pay) + 1 AS s FROM people WHERE COALESCE(zip, 'x') IN ('a', 'b', 'c')",
)


def kind(name: str, folder: Path) -> Kind:
    """One kind of input, with the files it needs in `folder`."""
    from sfumato.data.writers import write_file

    write_file(table(), folder / "people.csv")
    (folder / "people.toml").write_text(SCHEMA)
    (folder / "towns.csv").write_bytes(HIERARCHIES[0])
    made = {
        "csv": _csv,
        "parquet": _parquet,
        "schema": _schema,
        "recipe": _recipe,
        "hierarchy": _hierarchy,
        "certificate": _certificate,
        "ledger": _ledger,
        "sql": _sql,
    }
    return made[name](folder)


def _protect(data: object, schema: object) -> object:
    return sf.protect(data, sf.KAnonymity(3), sf.Lattice(suppression=1.0), schema=schema)


def _csv(folder: Path) -> Kind:
    plain = (folder / "people.csv").read_bytes()
    text = plain.decode()
    seeds = (
        plain, text.replace(",", ";").encode(), text.encode("utf-16"), text.replace("\n", "\r\n").encode("utf-8-sig"),
        text.replace(",", "\t").encode("latin-1"), text.replace(CANARY, f'{CANARY}, ""x""').encode(),
    )  # fmt: skip

    def attempt(path: Path, number: int) -> object:
        if number % 4 == 0:
            return _protect(path, folder / "people.toml")
        return sf.inspect(path) if number % 2 else sf.read(path, schema=folder / "people.toml")

    return Kind(seeds, (*BYTES, *TEXT), attempt, ".csv", lambda path: ["inspect", str(path), "--no-schema"])


def _parquet(folder: Path) -> Kind:
    seeds = []
    for options in ({}, {"use_dictionary": False, "compression": "none"}, {"compression": "zstd", "row_group_size": 20}):
        pq.write_table(table(), folder / "seed.parquet", **options)  # type: ignore[arg-type]
        seeds.append((folder / "seed.parquet").read_bytes())

    def attempt(path: Path, number: int) -> object:
        if number % 5 == 0:
            from sfumato.workflow.verifying.limited_reading import read_foreign

            return read_foreign(path, sf.Schema(), ROWS)
        return sf.inspect(path) if number % 5 == 1 else sf.read(path, engine="duckdb" if number % 5 == 2 else None).table()

    return Kind(seeds, (*BYTES, *[parquet_columns] * 5), attempt, ".parquet", lambda path: ["inspect", str(path), "--no-schema"])


def _schema(folder: Path) -> Kind:
    def attempt(path: Path, number: int) -> object:
        schema = sf.Schema.load(path)
        schema.to_toml()
        return _protect(folder / "people.csv", schema.replace(folder=str(folder)))

    def command(path: Path) -> list[str]:
        return ["check", str(folder / "people.csv"), "--schema", str(path), "--k", "3"]

    return Kind([text.encode() for text in SCHEMAS], (*TEXT, *[toml_value] * 9), attempt, ".toml", command)


def _recipe(folder: Path) -> Kind:
    def attempt(path: Path, number: int) -> object:
        shutil.rmtree(folder / "out", ignore_errors=True)
        recipe = sf.Recipe.load(path)
        recipe.to_mapping()
        return recipe.run() if number % 10 == 0 and _stays_here(recipe) else recipe

    def command(path: Path) -> list[str]:
        shutil.rmtree(folder / "out", ignore_errors=True)
        try:
            harmless = _stays_here(sf.Recipe.load(path))
        except Exception:
            harmless = True
        return ["protect", str(path), "-q"] if harmless else ["version"]

    return Kind([text.encode() for text in RECIPES], (*TEXT, *[toml_value] * 9), attempt, ".toml", command)


def _stays_here(recipe: sf.Recipe) -> bool:
    """Whether running it writes to the folder of the test and nowhere else."""
    return (
        recipe.output in (None, "out") and recipe.ledger is False and recipe.write is None and recipe.sign is recipe.key is None
    )


def _hierarchy(folder: Path) -> Kind:
    def schema(path: Path) -> dict[str, object]:
        spec = {"file": str(path), "missing": "root"}
        columns = {"zip": {"role": "quasi", "hierarchy": spec}, "disease": {"role": "sensitive"}}
        return {"unlisted": "drop", "columns": columns}

    def attempt(path: Path, number: int) -> object:
        return _protect(folder / "people.csv", schema(path))

    def command(path: Path) -> list[str]:
        described = path.with_suffix(".toml")
        described.write_text(f'unlisted = "drop"\n[columns.zip]\nrole = "quasi"\nhierarchy = "{path}"\n')
        return ["check", str(folder / "people.csv"), "--schema", str(described), "--k", "3"]

    return Kind(HIERARCHIES, TEXT, attempt, ".csv", command)


def _certificate(folder: Path) -> Kind:
    release = _protect(folder / "people.csv", folder / "people.toml")
    assert isinstance(release, sf.Release)
    release.save(folder / "release")
    public = folder / "release" / "public"
    seed = (public / "certificate.json").read_bytes()

    def attempt(path: Path, number: int) -> object:
        place = path.with_suffix("")
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(public, place)
        shutil.copy(path, place / "certificate.json")
        try:
            return sf.verify(place).explain()
        finally:
            shutil.rmtree(place)

    def command(path: Path) -> list[str]:
        place = path.with_suffix("")
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(public, place)
        shutil.copy(path, place / "certificate.json")
        return ["verify", str(place), "--json"]

    return Kind((seed,), (*TEXT, *[json_value] * 15), attempt, ".json", command)


def _ledger(folder: Path) -> Kind:
    place = folder / "seed.db"
    people = sf.read(table(), _private_schema())
    session = sf.Session(people, ledger=place, budget=sf.PureDP(5), seed=1)
    for question in QUESTIONS[:3]:
        session.sql(question, epsilon=0.5)
    with Ledger.open(place) as book:
        book.note("fuzz", {"text": "x"}, token=hashlib.sha256(b"x").hexdigest())
    import sqlite3

    with sqlite3.connect(place) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("VACUUM")
    connection.close()

    def attempt(path: Path, number: int) -> object:
        with Ledger.open(path, read_only=number % 2 == 0) as book:
            book.entries(), book.accounts(), book.spends(), book.remaining("fuzz", "analyst")
            if number % 3 == 0 and number % 2:
                sf.Session(people, ledger=book, seed=1).sql(QUESTIONS[0], epsilon=0.25)
            return book.verify()

    return Kind(
        (place.read_bytes(),),
        (*BYTES, *[ledger_cell] * 5),
        attempt,
        ".db",
        lambda path: ["ledger", "verify", "--ledger", str(path)],
    )


def _private_schema() -> sf.Schema:
    return sf.Schema.parse(
        {
            "dataset": "fuzz",
            "columns": {
                "age": {"type": "integer", "bounds": [0, 120]},
                "zip": {"type": "string", "domain": ["a", "b", "c"]},
                "day": {"type": "date"},
                "pay": {"type": "number", "bounds": [0, 100_000]},
                "disease": {"type": "string", "domain": ["a", "b", "c"]},
            },
        }
    )


def _sql(folder: Path) -> Kind:
    people = sf.read(table(), _private_schema())
    (folder / "private.toml").write_text(_private_schema().to_toml())

    def attempt(path: Path, number: int) -> object:
        question = path.read_bytes().decode("utf-8", "replace")
        session = sf.Session(people, budget=sf.PureDP(100), seed=number)
        if number % 3 == 0:
            return session.explain(question, epsilon=0.5)
        return session.sql(question, epsilon=0.5)

    def command(path: Path) -> list[str]:
        question = path.read_bytes().decode("utf-8", "replace").replace("\0", "")
        schema = str(folder / "private.toml")
        return ["query", question, "--data", str(folder / "people.csv"), "--schema", schema, "--explain", "--epsilon", "0.5"]

    return Kind([question.encode() for question in QUESTIONS], TEXT, attempt, ".sql", command)
