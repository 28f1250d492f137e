"""What a public card says besides its promises: who publishes, what was done to each column, one invented row."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.data.hierarchies.shown_levels import ShownLevel
from sfumato.data.publication import LABELS, Publication
from sfumato.data.schema import Column, HierarchySpec, Schema
from sfumato.workflow.publishing.publish import publish
from tests.faults.forging import change, refused
from tests.workflow.people import people, release, table

SAID = Publication(
    publisher="City <b>hospital</b>",
    contact="https://hospital.example/data",
    purpose="Research",
    valid_until="2030-12-31",
    units="patients",
)

DECLARED = Schema(
    dataset="invented",
    unit="record",
    publication=SAID,
    columns={
        "name": Column(role="identifier"),
        "age": Column(role="quasi", type="integer", bounds=(18, 89), hierarchy=HierarchySpec(intervals=(10, 50))),
        "zip": Column(role="quasi", type="string", hierarchy=HierarchySpec(mask="right", width=5)),
        "sex": Column(role="quasi", type="string", domain=("f", "m", "neither"), hierarchy=HierarchySpec(flat=True)),
        "visits": Column(role="plain", type="integer", source="data", bounds=(0, 3)),
        "disease": Column(role="sensitive", type="string"),
    },
)


@pytest.fixture(scope="module")
def made() -> sf.Release:
    return sf.protect(sf.read(table(300), DECLARED), sf.KAnonymity(5), sf.Lattice(suppression=0.05))


def test_the_card_says_who_publishes_as_text_and_verify_compares_it(made: sf.Release, tmp_path: Path) -> None:
    folder = made.save(tmp_path / "out")
    page = (folder / "public" / "card.html").read_text()
    for label, value in SAID.shown():
        assert f"<dt>{label}</dt>" in page and value.replace("<", "&lt;").replace(">", "&gt;") in page
    assert "Licence" not in page and "How to cite" not in page  # what nobody stated is left out
    assert re.findall(r'href="([^"]*)"', page) == ["#card"] + re.findall(r'href="(#class-sizes[^"]*)"', page)
    assert "5 patients" in page or "6 patients" in page or "patients." in page
    assert sf.verify(folder).verdict == "keeps", sf.verify(folder).explain()
    assert "Say it under [publication]" in (folder / "owner" / "card.html").read_text()
    change(folder / "public", lambda c: c["schema"]["publication"].update(publisher="Somebody else"))
    refused(folder / "public", "is not the schema of the certificate")


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda c: c["schema"]["publication"].update(publisher="x" * 600), "schema cannot be read"),
        (lambda c: c["schema"]["publication"].update(contact="two\nlines"), "schema cannot be read"),
        (lambda c: c["card"]["example"].update(salary=["1", "2"]), "invented row of other columns"),
        (lambda c: c["card"]["example"].update(age=["1"]), "invented row of other columns"),
        (lambda c: c["card"]["example"].update(age=["x" * 61, "y"]), "does not have the form"),
        (lambda c: c["card"]["example"].update(age=["1", "2"]), "something else than certificate and rows do"),
        (lambda c: c["schema"].update(unit="person"), "schema cannot be read"),
    ],
)
def test_what_a_stranger_states_is_bounded_and_escaped(made: sf.Release, tmp_path: Path, edit: object, words: str) -> None:
    public = made.save(tmp_path / "out") / "public"
    change(public, edit)  # type: ignore[arg-type]
    refused(public, words)


def test_a_card_of_the_former_format_is_not_compared_and_says_so(made: sf.Release, tmp_path: Path) -> None:
    public = made.save(tmp_path / "out") / "public"
    change(public, lambda c: (c["card"].update(format="sfumato-card-3", answers={}), c["card"].pop("example"), None)[2])
    found = sf.verify(public)
    assert found.verdict == "keeps what could be checked" and found.accepted
    assert "card.html was not compared" in found.sentence
    (public / "card.html").write_text((public / "card.html").read_text().replace("</main>", "<script>1</script></main>"))
    assert not sf.verify(public).accepted


def test_the_invented_row_is_drawn_from_what_was_declared_and_never_from_data(made: sf.Release) -> None:
    example = _example(made)
    assert set(example) == {"age", "zip", "sex"}  # what was learnt (visits) or not declared (name, disease) has none
    levels = made.certificate.transparency["levels"]
    for name, (before, after) in example.items():
        column = made.content.references.original.schema.columns[name]  # type: ignore[union-attr]
        assert ShownLevel(column, levels[name], None).can_show_all([after]), name
        assert before is not None
    assert "The row on the right is invented" in made.card()


def _example(made: sf.Release) -> dict[str, list[str | None]]:
    from sfumato.workflow.publishing.cards import stated_card

    return stated_card(made)["example"]


def test_the_example_is_the_same_whatever_the_records_are() -> None:
    """It follows from schema and method: two tables that share no value show the same invented row."""
    described = Schema(
        dataset="d",
        columns={
            "age": Column(role="quasi", type="string", domain=tuple("abcdefgh"), hierarchy=HierarchySpec(flat=True)),
            "job": Column(role="sensitive", type="string", domain=tuple("stuvwxyz")),
            "pay": Column(role="plain", type="number", bounds=(0, 9000)),
        },
    )
    tables = [
        pa.table({"age": list(ages) * 30, "job": list(jobs) * 30, "pay": [pay + i % 7 for i in range(60)]})
        for ages, jobs, pay in (("ab", "st", 100.0), ("gh", "yz", 8000.0))
    ]
    for guarantee, method in ((sf.KAnonymity(5), sf.Lattice()), ((), sf.Rounding(base=100, columns=("pay",)))):
        one, other = (_example(sf.protect(sf.read(rows, described), guarantee, method)) for rows in tables)
        assert one == other and set(one) == {"age", "job", "pay"}
    before, after = (float(value or 0) for value in one["pay"])
    assert after % 100 == 0 and 0 < abs(before - after) <= 50  # the mask was run on invented rows


def test_without_anything_declared_there_is_no_example() -> None:
    made = sf.protect(
        sf.read(table(300), sf.Schema.of(quasi=["age"], identifier=["name"], plain=["zip", "sex", "visits", "disease"])),
        sf.KAnonymity(2),
    )
    assert _example(made) == {} and "No example is shown" in made.card() and "invented: each" not in made.card()


def test_each_column_says_what_was_done_to_it() -> None:
    page = release().card()
    for words in ("replaced by intervals, by ", "left out", "published as it is", "may be known to others", "sensitive"):
        assert words in page
    mask = sf.mask(people(300), sf.Rounding(base=10, columns=("age",))).card()
    assert "changed by Rounding" in mask and "multiples of" in mask


def test_no_question_to_the_owner_reaches_the_public_card() -> None:
    rows = table(200).append_column("code", pa.array([f"c{i}" for i in range(200)]))
    described = people(10).schema
    made = sf.protect(
        sf.read(rows, described.replace(columns={**described.columns, "code": Column(role="plain", type="string")})),
        sf.KAnonymity(2),
    )
    assert any("Should it be a quasi-identifier?" in notice for notice in made.certificate.notices)
    page = made.card()
    assert "?" not in re.sub(r"<[^>]*>", "", page.split("<body>")[1]) and "whoever knows that value finds the record" in page


def test_no_parameter_stands_without_its_meaning() -> None:
    for made in (release(), sf.mask(people(300), sf.Mdav(k=4, columns=("age",)))):
        page = made.card()
        parameters = page.split("Parameters of the method", 2)[2].split("</table>")[0]
        cells = re.findall(r"<tr><th scope=\"row\">(.*?)</th><td[^>]*>(.*?)</td><td[^>]*>(.*?)</td></tr>", parameters)
        assert cells and all(meaning for _, _, meaning in cells)


def test_a_private_result_carries_the_publication_of_its_table(tmp_path: Path) -> None:
    data = sf.read(
        table(300),
        Schema(
            dataset="d",
            unit="record",
            publication=SAID,
            columns={**people(5).schema.columns, "sex": Column(role="quasi", type="string", domain=("f", "m"))},
        ),
    )
    session = sf.Session(data, budget=sf.PureDP(1), ledger=tmp_path / "ledger.db")
    for outcome in (
        session.release(sf.dp.PrivateHistogram(columns=["sex"], epsilon="0.1")),
        session.sql("SELECT COUNT(*) AS n FROM d", epsilon=0.1).outcome,
    ):
        made = publish(outcome)
        assert "City &lt;b&gt;hospital" in made.card() and LABELS["publisher"] in made.card()
    found = sf.verify(made.save(tmp_path / "out"), ledger=tmp_path / "ledger.db")
    assert {finding.check: finding.passed for finding in found.findings}["card"] is True


def test_the_annex_maps_measurements_to_the_three_criteria() -> None:
    made = sf.protect(
        people(),
        [sf.KAnonymity(5), sf.DistinctLDiversity(2, "disease")],
        attacks=["Homogeneity"],
        risk=["uniques"],
    )
    page = made.card("owner")
    assert "Annex: the three criteria of data protection" not in made.card()
    annex = page.split("Annex: the three criteria")[1]
    rows = dict(re.findall(r"<tr><th scope=\"row\"><span>(singling out|linkability|inference).*?</th>(.*?)</tr>", annex))
    assert "shared by at least 5 records" in rows["singling out"] and "Uniques" in rows["singling out"]
    assert "different values of" in rows["inference"] and "Attack Homogeneity" in rows["inference"]
    assert "Nothing. For a person to judge." in rows["linkability"]
