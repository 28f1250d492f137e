"""How the stored corpus was made: folders, recipes, schemas and a ledger, written by the version that is current.

    python -m tests.corpus.make tests/corpus/format-2.tar.xz

Run it once per format and keep what it writes: `test_stored.py` holds later versions to reading it. Everything in it is
generated; nobody's data is in it. It is packed because a ledger must keep its mode, and because cards are long.
"""

from __future__ import annotations

import datetime
import decimal
import os
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.data.microdata import Microdata
from sfumato.data.schema import Column, HierarchySpec, Schema

DISEASES = ("flu", "cold", "asthma", "none")
TREE = "flu;infection;*\ncold;infection;*\nasthma;chronic;*\nnone;none;*\n"


def table(rows: int = 160, seed: int = 7) -> pa.Table:
    """Generated people, with a column of every type that a file holds."""
    draw = np.random.default_rng(seed)
    day = datetime.date(2024, 1, 1)
    return pa.table(
        {
            "name": [f"person {i // 2:04d}" for i in range(rows)],
            "age": draw.integers(20, 60, rows),
            "zip": [f"{z:05d}" for z in draw.integers(1000, 1012, rows)],
            "sex": draw.choice(["f", "m"], rows),
            "seen": [day + datetime.timedelta(days=int(d)) for d in draw.integers(0, 60, rows)],
            "at": [datetime.datetime(2024, 1, 1, int(h), 30) for h in draw.integers(0, 24, rows)],
            "share": [None if i % 17 == 0 else float(x) for i, x in enumerate(draw.random(rows).round(3))],
            "paid": pa.array([decimal.Decimal(int(c)) / 100 for c in draw.integers(0, 900, rows)], pa.decimal128(9, 2)),
            "insured": [bool(b) for b in draw.integers(0, 2, rows)],
            "note": [("", "naïve, “quoted”", 'say "no"', None, "東京")[int(i)] for i in draw.integers(0, 5, rows)],
            "tags": ["|".join(sorted(set(draw.choice(["a", "b", "c"], 2)))) for _ in range(rows)],
            "disease": draw.choice(DISEASES, rows),
        }
    )


def schema(dataset: str = "clinic", **changes: Column) -> Schema:
    """The schema of `table`."""
    plain = {name: Column(role="plain") for name in ("seen", "at", "share", "paid", "insured", "note")}
    return Schema(
        dataset=dataset,
        columns={
            "name": Column(role="identifier"),
            "age": Column(role="quasi", type="integer", hierarchy=HierarchySpec(intervals=(5, 10, 20, 40))),
            "zip": Column(role="quasi", type="string", hierarchy=HierarchySpec(mask="right")),
            "sex": Column(role="quasi", type="string"),
            **plain,
            "tags": Column(role="plain", type="string", items="|"),
            "disease": Column(role="sensitive", type="string"),
            **changes,
        },
    )


def people(**changes: Column) -> Microdata:
    """The table with its schema."""
    return sf.read(table(), schema(**changes))


class Making:
    """One run: where the corpus goes, and the keys, ledger and files that the folders are made with."""

    def __init__(self, corpus: Path, work: Path) -> None:
        self.corpus, self.work = corpus, work
        self.key = work / "signing.key"
        self.ledger = corpus / "ledger" / "ledger.sqlite"
        self.ledger.parent.mkdir(parents=True)
        from sfumato.workflow.publishing.signing import new_key

        _, beside = new_key(self.key)
        shutil.copy(beside, corpus / "signing.pub")

    def keep(self, name: str, made: Any, format: str = "parquet", *, owner: bool = False, sign: bool = False) -> None:
        """Save a folder, and keep its public part or the whole."""
        made.save(self.work / name, format, sign=self.key if sign else None)
        kept = self.work / name if owner else self.work / name / "public"
        target = self.corpus / "folders" / name
        shutil.copytree(kept, target if owner else target / "public")


def make_tables(making: Making) -> None:
    """Protected and masked tables."""
    five, search = sf.KAnonymity(5), sf.Lattice(suppression=0.1)
    several = [five, sf.DistinctLDiversity(2, "disease"), sf.TCloseness(0.5, "disease", reference="released")]
    making.keep("parquet", sf.protect(people(), five, search), owner=True)
    making.keep("csv", sf.protect(people(), five, search, answers={"roles": True}), "csv")
    making.keep("several-signed", sf.protect(people(), several, search, attacks=["Homogeneity"]), sign=True)
    making.keep("several-csv-signed", sf.protect(people(), several, search), "csv", sign=True)
    (making.work / "disease.csv").write_text(TREE)
    declared = schema(disease=Column(role="sensitive", type="string", hierarchy=HierarchySpec(file="disease.csv")))
    with_files = sf.read(table(), declared.replace(folder=str(making.work)))
    distance = sf.TCloseness(0.6, "disease", distance="hierarchical", reference="released")
    making.keep("hierarchy-file", sf.protect(with_files, [five, distance], search), "csv")
    making.keep("local-recoding", sf.protect(people(), five, sf.LocalRecoding()))
    making.keep("t-closeness", sf.protect(people(), [five, sf.TCloseness(0.5, "disease")], search))
    population = sf.read(table(rows=400, seed=8), schema())
    making.keep("k-map", sf.protect(people(), sf.KMap(5), search, population=population), "csv")
    making.keep("unit", sf.protect(people(name=Column(role="unit", type="string")), sf.KAnonymity(3), search))
    named = Column(role="unit", type="string", pseudonym=True)
    making.keep("unit-pseudonym", sf.protect(people(name=named), sf.KAnonymity(3), search), "csv")
    making.keep("pseudonyms", sf.protect(people(name=Column(role="identifier", pseudonym=True)), five, search))
    making.keep("seeded", sf.protect(people(), five, search, seed=5))
    numbers = {"age": Column(role="quasi", type="integer", bounds=(20, 60)), "zip": Column(role="plain", type="string")}
    making.keep("mask", sf.mask(people(**numbers), sf.AdditiveNoise(0.2, columns=("age",))), "csv")
    making.keep("mask-k", sf.mask(people(**numbers, sex=Column(role="plain")), sf.Mdav(k=3, columns=("age",)), sf.KAnonymity(3)))


def make_artefacts(making: Making) -> None:
    """Private artefacts and answers, all charged to one ledger; the ledger keeps releases of a table besides."""
    from sfumato.dp import PrivateHistogram, Session
    from sfumato.ledger import Ledger, LossAmount
    from sfumato.workflow.publishing.publish import publish

    private = Schema(
        dataset="private",
        columns={
            "name": Column(role="identifier"),
            "age": Column(type="integer", bounds=(20, 60)),
            "sex": Column(type="string", domain=("f", "m")),
        },
    )
    data = sf.read(table().select(["name", "age", "sex"]), private)
    with Ledger.open(making.ledger) as ledger:
        ledger.grant("private", "ann", LossAmount.pure(8))
        ledger.grant("private", "bob", LossAmount.pure("1/2"))
    book = str(making.ledger)
    histogram = PrivateHistogram(("sex", "age"), bins={"age": [20, 40, 60]}, epsilon="0.5")
    with_session = Session(data, ledger=book, analyst="ann")
    paid = with_session.release(histogram)
    making.keep("histogram", publish(paid, ledger=with_session.ledger), "csv")
    making.keep("histogram-signed", publish(with_session.release(histogram)), sign=True)
    seeded = Session(data, ledger=book, analyst="ann", seed=3).release(histogram)
    making.keep("histogram-seeded", publish(seeded), "csv")
    answer = with_session.sql("SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY sex", epsilon="1")
    making.keep("answer", publish(answer.outcome, ledger=with_session.ledger), "csv")
    with_session.sql("SELECT COUNT(*) AS n FROM people", epsilon="0.25")
    Session(data, ledger=book, analyst="bob").sql("SELECT COUNT(*) AS n FROM people", epsilon="0.5")
    sf.protect(people(), sf.KAnonymity(5), sf.Lattice(suppression=0.1), ledger=making.ledger)
    making.keep("entered", sf.protect(people(), sf.KAnonymity(4), sf.Lattice(suppression=0.2), ledger=making.ledger), "csv")


RECIPE = """data = "people.csv"
schema = "people.toml"
output = "out"
ledger = false

[[guarantee]]
name = "KAnonymity"
k = 4

[[guarantee]]
name = "DistinctLDiversity"
l = 2
attribute = "disease"

[method]
name = "Lattice"
suppression = 0.1

[checks]
attacks = ["Homogeneity"]
utility = ["loss", "discernibility"]
"""


def make_recipe(making: Making) -> None:
    """A recipe with its table and schema."""
    from sfumato.data.writers import write_file

    place = making.corpus / "recipe"
    place.mkdir()
    write_file(table(rows=80), place / "people.csv")
    (place / "people.toml").write_text(schema().to_toml(), encoding="utf-8")
    (place / "recipe.toml").write_text(RECIPE, encoding="utf-8")


def make_references(making: Making) -> None:
    """The tables that some claims compare with."""
    from sfumato.data.writers import write_file

    place = making.corpus / "references"
    place.mkdir()
    write_file(table(), place / "original.parquet")
    write_file(table(rows=400, seed=8).select(["age", "zip", "sex"]), place / "population.parquet")


def main(target: str) -> None:
    """Write the corpus into a file."""
    with tempfile.TemporaryDirectory() as place:
        corpus, work = Path(place, "corpus"), Path(place, "work")
        corpus.mkdir()
        work.mkdir()
        os.environ["SFUMATO_KEY"] = str(work / "owner.key")
        making = Making(corpus, work)
        for make in (make_tables, make_artefacts, make_recipe, make_references):
            make(making)
        with tarfile.open(target, "x:xz") as packed:
            packed.add(corpus, ".", filter=_nobodys)


def _nobodys(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


if __name__ == "__main__":
    main(sys.argv[1])
