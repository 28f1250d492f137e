"""What leaves with a release: values of suppressed and changed records are planted and looked for in every byte of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.core.errors import Infeasible, ParameterError, SfumatoError, Unsupported
from sfumato.data.schema import Column, HierarchySpec, Schema
from tests.conformance import masks
from tests.conformance.methods import GUARANTEE_KINDS, SEARCHES
from tests.workflow.leaving import forms, leaving, pages

SURNAMES = tuple(f"surname{i:02d}" for i in range(12))
ILLS = ("flu", "cold", "asthma", "none")
#: People who stand out in everything; nobody else has any of these values.
PLANTED: tuple[dict[str, Any], ...] = (
    {"name": "Quirinus Vex", "surname": "Zylberquist", "post": "ZXQKJ", "pay": 918273645, "note": "noteAlphaQx", "ill": "kuruVz"},
    {"name": "Oona Brzk", "surname": "Wojtaszczyk", "post": "YVQWP", "pay": 817263549, "note": "noteBetaRw", "ill": "sodokuTm"},
)
GUARANTEES: dict[str, sf.ClassGuarantee] = {
    "AlphaKAnonymity": sf.AlphaKAnonymity(0.9, 5, "ill"),
    "BetaLikeness": sf.BetaLikeness(3.0, "ill"),
    "DeltaDisclosure": sf.DeltaDisclosure(3.0, "ill"),
    "DeltaPresence": sf.DeltaPresence(0.0, 0.9),
    "DistinctLDiversity": sf.DistinctLDiversity(2, "ill"),
    "EntropyLDiversity": sf.EntropyLDiversity(1.5, "ill"),
    "KAnonymity": sf.KAnonymity(5),
    "KMap": sf.KMap(5),
    "AverageRisk": sf.AverageRisk(0.3),
    "KMapByModel": sf.KMapByModel(20, 0.1),
    "UniquenessByModel": sf.UniquenessByModel(0.05, 0.1),
    "RecursiveLDiversity": sf.RecursiveLDiversity(4.0, 2, "ill"),
    "TCloseness": sf.TCloseness(0.5, "ill", distance="hierarchical"),
}


def rows(count: int, seed: int, planted: bool = True) -> pa.Table:
    draw = np.random.default_rng(seed)
    columns: dict[str, list[Any]] = {
        "name": [f"person {i}" for i in range(count)],
        "surname": draw.choice(SURNAMES, count).tolist(),
        "post": [f"A{x}B{y}" for x, y in draw.integers(0, 3, (count, 2)).tolist()],
        "pay": (1_000 * draw.integers(20, 60, count)).tolist(),
        "note": draw.choice(["red", "blue"], count).tolist(),
        "ill": draw.choice(ILLS, count).tolist(),
    }
    if planted:
        for person in PLANTED:
            for name, value in person.items():
                columns[name].append(value)
    return pa.table(columns)


def described(surname: HierarchySpec | None = None) -> Schema:
    """Domains and bounds are learnt from the data, labels come from a statistical package: the owner's knowledge."""
    learnt = (*SURNAMES, *(str(person["surname"]) for person in PLANTED))
    ills = (*ILLS, *(str(person["ill"]) for person in PLANTED))
    return Schema(
        dataset="planted",
        columns={
            "name": Column(role="identifier"),
            "surname": Column(
                role="quasi", type="string", domain=learnt, source="data", hierarchy=surname, labels={learnt[-1]: learnt[-2]}
            ),
            "post": Column(role="quasi", type="string", hierarchy=HierarchySpec(mask="right", width=5)),
            "pay": Column(
                role="quasi",
                type="integer",
                bounds=(0, 918273645),
                source="data",
                hierarchy=HierarchySpec(intervals=(10**4, 10**5)),
            ),
            "note": Column(role="plain", type="string", labels={"noteAlphaQx": "noteBetaRw"}),
            "ill": Column(role="sensitive", type="string", domain=ills, source="data"),
        },
    )


def read_again(public: Path) -> pa.Table:
    file = public / "data.parquet"
    return pq.read_table(file) if file.exists() else pa_csv.read_csv(public / "data.csv")


def cells(table: pa.Table) -> list[str]:
    return sorted({str(value) for column in table.columns for value in column.unique().to_pylist()})


def shows(texts: list[str], value: str | int | float) -> bool:
    return any(str(value).removesuffix(".0") in text for text in texts)


def assert_hidden(folder: Path, values: Sequence[str | int | float]) -> None:
    """None of these values stands in any form in anything that leaves."""
    for name, content in leaving(folder):
        for value in values:
            for form in forms(value):
                assert form not in content, f"{value!r} stands in {name}"


def assert_nothing_of_the_planted_leaves(folder: Path) -> int:
    """A suppressed person leaves nothing at all, any other only what the rows show; returns how many were suppressed."""
    shown = cells(read_again(folder))
    suppressed = 0
    for person in PLANTED:
        gone = not shows(shown, person["note"])  # published as it is, for whoever is in the release
        suppressed += gone
        assert_hidden(folder, [value for name, value in person.items() if gone or name == "name" or not shows(shown, value)])
    return suppressed


def protected(guarantee: sf.ClassGuarantee, search: Any, folder: Path, **options: Any) -> Path:
    population = rows(2_000, 2) if guarantee.needs_population else None
    surname = options.pop("surname", HierarchySpec(frequency=(4, 8)) if population is not None else None)
    form = options.pop("format", "parquet")
    data = sf.read(rows(300, 1), described(surname))
    made = sf.protect(data, [guarantee, sf.KAnonymity(3)], search, population=population, seed=1, **options)
    made.save(folder, format=form)
    return folder / "public"


def test_the_walker_finds_what_compression_hides(tmp_path: Path) -> None:
    """The control: a file that does hold a value, in a dictionary, in a page and as statistics."""
    table = pa.table({"text": ["Zylberquist"] * 50 + ["other"] * 50, "number": [918273645] * 50 + [3] * 50})
    pq.write_table(table, tmp_path / "data.parquet", compression="gzip", use_dictionary=["text"], write_statistics=False)
    assert b"Zylberquist" not in (tmp_path / "data.parquet").read_bytes()
    for value in ("Zylberquist", 918273645):
        assert any(form in body for _, body in pages(tmp_path / "data.parquet") for form in forms(value))
        with pytest.raises(AssertionError, match="stands in"):
            assert_hidden(tmp_path, [value])


def test_every_guarantee_is_tried() -> None:
    assert set(GUARANTEES) == set(GUARANTEE_KINDS)


@pytest.mark.parametrize("name", sorted(GUARANTEES))
def test_a_suppressed_person_leaves_nothing_whatever_is_promised(name: str, tmp_path: Path) -> None:
    public = protected(GUARANTEES[name], sf.Lattice(suppression=0.05), tmp_path / "out")
    suppressed = assert_nothing_of_the_planted_leaves(public)
    # δ-disclosure wants every illness in every class: all are in one, and nobody is left out
    assert suppressed == (0 if name == "DeltaDisclosure" else len(PLANTED))


@pytest.mark.parametrize("name", sorted(SEARCHES))
def test_a_suppressed_or_changed_person_leaves_nothing_whatever_searches(name: str, tmp_path: Path) -> None:
    public = protected(GUARANTEES["KAnonymity"], SEARCHES[name](), tmp_path / "out", format="csv")
    assert_nothing_of_the_planted_leaves(public)


def masked_people() -> tuple[sf.Microdata, list[str | float]]:
    """People of whom each of the last has one value like nobody else's."""
    columns = masks.people(200).table().to_pydict()
    planted: dict[str, str | float] = {
        **{name: 918273645.25 + 1000 * place for place, name in enumerate(masks.NUMBERS)},
        "town": "Zylberquist",
        "region": "noteAlphaQx",
        "ill": "kuruVz",
    }
    for place, (name, value) in enumerate(planted.items(), start=1):
        columns[name][-place] = value
    return sf.read(pa.table(columns), masks.SCHEMA), list(planted.values())


@pytest.mark.parametrize("name", masks.every_mask())
def test_a_changed_value_leaves_only_where_a_row_shows_it(name: str, tmp_path: Path) -> None:
    data, planted = masked_people()
    mask = masks.example(name) if name == "TermGeneralisation" else masks.example(name, masks.mixed_columns_for(name))
    made = sf.protect(data, (), mask, seed=1, utility=(), risk="uniques")
    made.save(tmp_path / "out")
    shown = cells(read_again(tmp_path / "out" / "public"))
    assert_hidden(tmp_path / "out" / "public", [value for value in planted if not shows(shown, value)])


@pytest.mark.stress
@pytest.mark.parametrize("format", ["parquet", "csv"])
@pytest.mark.parametrize("search", sorted(SEARCHES))
@pytest.mark.parametrize("name", sorted(GUARANTEES))
def test_every_guarantee_by_every_search(name: str, search: str, format: str, tmp_path: Path) -> None:
    for number, surname in enumerate((None, HierarchySpec(frequency=(4, 8)), HierarchySpec(mask="left"))):
        for public in (False, True) if GUARANTEES[name].needs_population else (False,):
            folder = tmp_path / f"{number}{public}"
            try:
                options = {"surname": surname, "format": format}
                made = protected(GUARANTEES[name], SEARCHES[search](), folder, population_public=public, **options)
            except Infeasible:
                continue
            except Unsupported:  # KMember separates equal records and compares with no population
                assert search == "KMember" and GUARANTEES[name].needs_population
                continue
            if not public:
                assert_nothing_of_the_planted_leaves(made)
            elif (
                surname is not None and surname.frequency
            ):  # the tree lists the population, which everybody can have, and nobody else
                leaves = {line.split(";")[0] for line in (made / "hierarchy-1.csv").read_text().splitlines()}
                assert leaves <= {*rows(2_000, 2).column("surname").to_pylist()}


class TestFrequencyGroupsOfAPopulation:
    """k-map and δ-presence over groups by frequency: the groups are learnt from the population, never from the data."""

    def files(self, folder: Path) -> tuple[sf.Microdata, Path]:
        population = rows(2_000, 2)
        pq.write_table(population, folder / "population.parquet")
        return sf.read(rows(300, 1), described(HierarchySpec(frequency=(4, 8)))), folder / "population.parquet"

    @pytest.mark.parametrize("guarantee", [sf.KMap(5), sf.DeltaPresence(0.0, 0.9)], ids=lambda each: each.name)
    def test_the_tree_stays_with_whoever_has_the_population(self, guarantee: sf.ClassGuarantee, tmp_path: Path) -> None:
        data, population = self.files(tmp_path)
        made = sf.protect(data, [guarantee], sf.Lattice(suppression=0.05), population=population)
        made.save(tmp_path / "out")
        public = tmp_path / "out" / "public"
        assert assert_nothing_of_the_planted_leaves(public) == len(PLANTED)
        assert not list(public.glob("hierarchy-*"))
        assert made.certificate.transparency["population"] == "not published"
        assert made.certificate.transparency["learnt_from_population"] == ["surname"]
        found = sf.verify(tmp_path / "out", population=population)
        assert found.holds and not found.not_checked, found.explain()
        assert sf.verify(tmp_path / "out").not_checked

    def test_that_ranges_were_allowed_is_not_published(self, tmp_path: Path) -> None:
        _, population = self.files(tmp_path)
        data = sf.read(rows(300, 1), described(HierarchySpec(frequency=(4, 8), ranges=True)))
        made = sf.protect(data, [sf.KMap(5)], sf.Lattice(suppression=0.05), population=population, utility=(), risk=())
        made.save(tmp_path / "out")
        assert made.certificate.schema["columns"]["surname"]["hierarchy"] == {"frequency": [4, 8]}

    def test_a_public_population_publishes_its_own_tree(self, tmp_path: Path) -> None:
        population = rows(2_000, 2, planted=False)
        schema = described(HierarchySpec(frequency=(4, 8), missing="root"))
        data = sf.read(rows(300, 1), schema)  # the planted are not in the population
        made = sf.protect(
            data, [sf.DeltaPresence(0.0, 0.9)], sf.Lattice(suppression=0.05), population=population, population_public=True
        )
        made.save(tmp_path / "out")
        public = tmp_path / "out" / "public"
        assert assert_nothing_of_the_planted_leaves(public) == len(PLANTED)
        assert [path.name for path in public.glob("hierarchy-*")] == ["hierarchy-1.csv"]
        listed = (public / "hierarchy-1.csv").read_text().splitlines()
        assert sorted(line.split(";")[0] for line in listed) == sorted(SURNAMES)
        assert made.certificate.transparency["population"] == "declared public by the owner"
        assert sf.verify(tmp_path / "out", population=population).holds

    def test_the_tree_does_not_depend_on_the_data(self) -> None:
        population = rows(2_000, 2)
        spec = HierarchySpec(frequency=(4, 8))
        trees = []
        for seed in (1, 5):
            data = sf.read(rows(300, seed), described(spec))
            sf.protect(data, [sf.KAnonymity(3)], sf.Lattice(suppression=0.1))  # a tree of the data is remembered, and not used
            made = sf.protect(data, [sf.KMap(5)], sf.Lattice(suppression=0.1), population=population)
            trees.append(made.content.hierarchies["surname"].rows())
        assert trees[0] == trees[1]

    def test_a_value_that_the_population_lacks_is_refused(self) -> None:
        data = sf.read(rows(300, 1), described(HierarchySpec(frequency=(4, 8))))
        with pytest.raises(SfumatoError, match="missing from its hierarchy"):
            sf.protect(data, [sf.KMap(5)], sf.Lattice(suppression=0.05), population=rows(2_000, 2, planted=False))

    def test_a_declaration_without_a_population_is_refused(self) -> None:
        with pytest.raises(ParameterError, match="pass population="):
            sf.protect(sf.read(rows(300, 1), described()), [sf.KAnonymity(5)], population_public=True)
