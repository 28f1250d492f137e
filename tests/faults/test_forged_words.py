"""What a certificate says beside its claims: only what its method, its rows and its own numbers say."""

from __future__ import annotations

import itertools
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.attacks.tables.meaning import read
from sfumato.data.schema import Column, Schema
from sfumato.data.texts.column_types import _parse
from sfumato.masking import transparency
from sfumato.workflow.publishing.cards import public_card
from sfumato.workflow.publishing.publish import publish
from sfumato.workflow.verifying.certificate_form import read_certificate, read_schema
from sfumato.workflow.verifying.limited_reading import read_foreign
from tests.faults.forging import change, refused, rewrite

Edit = Callable[[dict[str, Any]], Any]

ROWS = pa.table(
    {
        "a": [float(i % 17) for i in range(60)],
        "b": [float(i % 13) for i in range(60)],
        "d": ["x", "y", "z"] * 20,
        "e": ["u", "v"] * 30,
    }
)
NUMBERS = Schema(
    dataset="m",
    unit="record",
    columns={
        "a": Column(role="quasi", type="number"),
        "b": Column(role="quasi", type="number"),
        "d": Column(role="sensitive"),
        "e": Column(role="plain"),
    },
)


def forged(public: Path, edit: Edit) -> Path:
    """The certificate with other words, and the page that they make, as a careful forger would write it."""
    change(public, lambda certificate: [edit(certificate), certificate][1])
    content = json.loads((public / "certificate.json").read_text())
    certificate = read_certificate(content)
    schema = read_schema(certificate)
    names = [name for name in ("data.parquet", "data.csv") if name in content["files"]]
    rows = read_foreign(public / names[0], schema, content["files"][names[0]]["rows"]) if names else None
    rewrite(public, "card.html", public_card(certificate, rows, ""))
    return public


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders that nobody changed; tests forge copies."""
    place = tmp_path_factory.mktemp("honest")
    both = sf.Combined(masks=(sf.Mdav(3), sf.Pram(columns=("e",), stay=0.8)))
    sf.protect(sf.read(ROWS, NUMBERS), [sf.KAnonymity(3)], method=both).save(place / "masked", "csv")
    rows = pa.table({"age": [5] * 6 + [7] * 6, "disease": ["flu", "cold", "flu", "cold", "flu", "none"] * 2})
    roles = Schema(dataset="small", columns={"age": Column(role="quasi", type="integer"), "disease": Column(role="sensitive")})
    made = sf.protect(sf.read(rows, roles), sf.KAnonymity(5), sf.Lattice(), ledger=place / "ledger.db")
    made.save(place / "entered", "csv")
    assert all(sf.verify(place / name).verdict == "keeps" for name in ("masked", "entered"))
    column = Column(role="plain", type="string", domain=("f", "m"), source="declared")
    people = sf.read(pa.table({"sex": ["f", "m"] * 50}), Schema(dataset="p", unit="record", columns={"sex": column}))
    outcome = sf.dp.PrivateHistogram(("sex",), epsilon=1).run(people)
    publish(outcome, ledger_entry="a" * 64).save(place / "histogram", "csv")
    assert sf.verify(place / "histogram").verdict == "rests on its maker"
    return place


@pytest.fixture
def masked(honest: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(honest / "masked", tmp_path / "out")) / "public"


@pytest.fixture
def entered(honest: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(honest / "entered", tmp_path / "out")) / "public"


@pytest.fixture
def histogram(honest: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(honest / "histogram", tmp_path / "out")) / "public"


def steps(certificate: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = certificate["transparency"]["steps"]
    return found


@pytest.mark.parametrize(
    "edit",
    [
        lambda c: c["transparency"].update(k=1000),
        lambda c: c["transparency"].update(masked_columns=["d"]),
        lambda c: steps(c).reverse(),
        lambda c: steps(c).append(steps(c)[0]),
        lambda c: steps(c)[0].update(epsilon=0.001),
        lambda c: steps(c)[1].update(masked_columns=["d"]),
        lambda c: steps(c)[1]["transitions"]["e"].update(epsilon=0.001),
        lambda c: steps(c)[1]["transitions"]["e"].update(matrix=[[0.5, 0.5], [0.5, 0.5]], epsilon=0.0),
        lambda c: steps(c)[1].update(transitions={"certified": steps(c)[1]["transitions"]["e"]}),
    ],
    ids=["k", "columns", "reversed", "twice", "another-mask", "step-columns", "epsilon", "matrix", "no-column"],
)
def test_a_mask_tells_what_it_did(masked: Path, edit: Edit) -> None:
    refused(forged(masked, edit), "says of its mask what no mask says")


def test_a_mask_is_not_called_a_search(tmp_path: Path) -> None:
    sf.protect(sf.read(ROWS, NUMBERS), [sf.KAnonymity(3)], method=sf.Mdav(3)).save(tmp_path / "out", "csv")

    def edit(certificate: dict[str, Any]) -> None:
        certificate["method"] = {"name": "Lattice", "suppression": 0.0}
        kept = ("quasi_identifiers", "removed_columns", "pseudonymised_columns", "row_order", "unit")
        certificate["transparency"] = {name: certificate["transparency"][name] for name in kept}

    refused(forged(tmp_path / "out" / "public", edit), "what its columns do not have")


@pytest.mark.parametrize("lost", ["hierarchies", "written_as"])
def test_a_search_names_every_tree_and_how_every_column_was_written(tmp_path: Path, lost: str) -> None:
    sf.protect(sf.read(ROWS, NUMBERS), [sf.KAnonymity(3)], method=sf.Lattice()).save(tmp_path / "out", "csv")
    public = tmp_path / "out" / "public"
    assert sf.verify(public.parent).verdict == "keeps"
    refused(forged(public, lambda c: c["transparency"][lost].popitem() and None), "as if it were by another")


@pytest.mark.parametrize(
    ("mask", "names"),
    [
        (sf.Mdav(3), {"k": 12}),
        (sf.VMdav(3), {"k": 12}),
        (sf.Cbfs(3, p=2, sensitive=("d",)), {"p": 3}),
        (sf.OptimalUnivariate(3), {"k": 12}),
    ],
    ids=lambda each: type(each).__name__,
)
def test_the_parameters_of_a_mask_promise_no_more_than_its_claims(tmp_path: Path, mask: Any, names: dict[str, int]) -> None:
    schema = NUMBERS.replace(columns={name: NUMBERS.columns[name] for name in ("a", "d")})
    sf.protect(sf.read(ROWS.select(["a", "d"]), schema), (), method=mask).save(tmp_path / "out", "csv")
    public = tmp_path / "out" / "public"
    assert sf.verify(public.parent).verdict == "keeps"

    def edit(certificate: dict[str, Any]) -> None:
        told = certificate["transparency"]
        for about in (certificate["method"], told["method"]):
            about.update(names)
        told.update({name: value for name, value in names.items() if name in told})

    refused(forged(public, edit), "keeps by its parameters what the certificate does not claim")


def test_rows_that_are_all_gone_keep_nothing(entered: Path) -> None:
    """Whatever is promised of no rows holds, and is about nobody."""
    header = (entered / "data.csv").read_text().split("\n")[0] + "\n"
    rewrite(entered, "data.csv", header, rows=0)
    public = forged(entered, lambda certificate: certificate["claims"][0].update(measured="infinite"))
    found = sf.verify(public.parent)
    assert found.verdict == "not checked" and not found.accepted, found.explain()
    assert "no row was released" in found.sentence


def test_a_notice_of_hostile_column_names_is_read_in_time(tmp_path: Path) -> None:
    sf.protect(sf.read(ROWS, NUMBERS), (), method=sf.Pram(columns=("e",), stay=0.8)).save(tmp_path / "out", "csv")
    before, after = "column '", "' is published as it is: its matrix changes nothing"
    names = ["a", f"a{after}; {before}a"]

    def edit(certificate: dict[str, Any]) -> None:
        about = certificate["transparency"]
        about.update(removed_columns=names, masked_columns=["e", *names])
        about["notice"] = "; ".join([f"{before}a{after}"] * 44) + "!"

    change(tmp_path / "out" / "public", edit)
    started = time.process_time()
    refused(tmp_path / "out" / "public", "")
    assert time.process_time() - started < 10


def test_hostile_cells_and_labels_are_read_in_time() -> None:
    started = time.process_time()
    assert _parse("1" * 40_000 + "x", "number") is None
    assert read("[" + " " * 4_000 + "x", None).bounds is None
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "details",
    [
        {"epsilon": "0.0001"},
        {"published rows": 10**9},
        {"suppressed": 0},
        {"deviation": 0.001},
        {"audit": "passed"},
    ],
    ids=lambda details: next(iter(details)),
)
def test_details_of_a_private_result_follow_from_its_parameters(histogram: Path, details: dict[str, Any]) -> None:
    public = forged(histogram, lambda certificate: certificate["card"].update(details=details))
    refused(public, "shows details on its page")
    page = (public / "card.html").read_text()
    assert "0.0001" not in page and "1,000,000,000" not in page


@pytest.mark.parametrize(
    "said",
    [
        {"people": 0, "sentence": "No person can be in all 2 releases"},
        {"earlier_releases": 0, "finding": "No person can be in all 2 releases"},
        {"earlier_releases": 1, "finding": "nobody is found", "compared": 0, "not_available": ["a" * 64]},
        {"earlier_releases": 1, "finding": "nobody is found", "compared": 1, "success": 0.0},
        {"earlier_releases": 2, "finding": "nobody is found", "compared": 1, "attack": "Intersection", "success": 0.0},
    ],
    ids=["invented", "nothing-compared", "not-available", "no-attack", "one-is-missing"],
)
def test_a_comparison_that_was_not_made_found_nothing(entered: Path, said: dict[str, Any]) -> None:
    refused(forged(entered, lambda c: c.update(composition=said)), "what no comparison with them says")


def test_the_page_calls_a_comparison_the_statement_of_its_maker(entered: Path) -> None:
    assert "statement of whoever made the release" in (entered / "card.html").read_text()


def test_a_level_is_one_that_the_column_shows(entered: Path) -> None:
    refused(forged(entered, lambda c: c["transparency"].update(levels={"age": 1})), "does not show the level")


def test_an_earlier_page_does_not_stand_in_a_later_certificate(entered: Path) -> None:
    change(entered, lambda c: c["card"].update(format="sfumato-card-1"))
    refused(entered, "of a format that this version does not make")


def sets(role: Any, *texts: str) -> sf.Microdata:
    columns = {"age": Column(role="quasi", type="integer"), "terms": Column(role=role, type="string", items="|")}
    return sf.read(pa.table({"age": [5] * len(texts), "terms": list(texts)}), Schema(dataset="s", columns=columns))


@pytest.mark.parametrize(
    "guarantee",
    [sf.DistinctLDiversity(2, "terms"), sf.EntropyLDiversity(2, "terms"), sf.AlphaKAnonymity(0.5, 5, "terms")],
    ids=lambda guarantee: guarantee.name,
)
def test_one_set_written_in_two_ways_is_no_diversity(guarantee: Any) -> None:
    people = sets("sensitive", *["hiv|flu", "flu|hiv"] * 3)
    with pytest.raises(sf.errors.Infeasible):
        sf.protect(people, [guarantee], sf.Lattice())
    assert not sf.check(people.table(), people.schema, [guarantee]).holds


@pytest.mark.covering
@pytest.mark.parametrize("role", ["quasi", "sensitive", "plain"])
@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_the_order_of_items_in_the_source_does_not_leave(tmp_path: Path, role: Any, engine: Any) -> None:
    texts = ["|".join(order) for order in itertools.permutations("abc")] + ["a|b|c|c", " a|b|c", "a||b|c", "a|b|c|"]
    given = sets(role, *texts)
    pq.write_table(pa.table({"age": [5] * 10, "terms": texts}), tmp_path / "rows.parquet")
    people = sf.read(tmp_path / "rows.parquet", given.schema, engine=engine)
    made = sf.protect(people, sf.KAnonymity(5), sf.Lattice())
    assert made.data.column("terms").to_pylist() == ["a|b|c"] * 10
    made.save(tmp_path / "out", "csv")
    assert sf.verify(tmp_path / "out").verdict == "keeps"


def test_the_spelling_of_sets_tells_no_rows_apart(tmp_path: Path) -> None:
    sf.protect(sets("quasi", *["a|b"] * 6), sf.KAnonymity(5), sf.Lattice()).save(tmp_path / "out", "csv")
    public = tmp_path / "out" / "public"
    head, *_ = (public / "data.csv").read_text().splitlines()
    cells = sorted(f'5,"{text}"' for text in ("a|b", "b|a", "a|b|b", "a||b", " a|b", "b|b|a"))
    rewrite(public, "data.csv", "\n".join([head, *cells]) + "\n")
    refused(public, "not written as releases write them")


def test_protected_sets_are_written_as_they_are_counted() -> None:
    people = sets("sensitive", "hiv|flu", "cold", "none")
    with pytest.raises(sf.errors.SchemaError, match="sorted"):
        sf.protect(people, [sf.DistinctLDiversity(2, "terms", protected_values=("hiv|flu",))], sf.Lattice())


def test_facts_of_strata_are_told_for_each(tmp_path: Path) -> None:
    assert transparency._strata({"k": 3, "rows": {transparency.BY_STRATUM: [1, 2]}}) == [{"k": 3, "rows": 1}, {"k": 3, "rows": 2}]
