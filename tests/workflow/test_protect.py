"""`protect` end to end: what is kept, dropped, measured, certified and refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import Infeasible, InputError, MissingColumn, ParameterError, SchemaError
from sfumato.data.microdata import Microdata
from sfumato.data.schema import Column, HierarchySpec
from sfumato.report.summary import summary_lines
from tests.workflow.people import people, release, schema, table

FIVE = sf.KAnonymity(5)
SEARCH = sf.Lattice(suppression=0.05)


def test_a_release_keeps_what_was_asked_for() -> None:
    made = sf.protect(people(), [FIVE, sf.DistinctLDiversity(2, "disease")], SEARCH)
    assert made.certificate.measured["KAnonymity"] >= 5
    assert made.certificate.measured["DistinctLDiversity(disease)"] >= 2
    assert made.certificate.holds
    assert sf.check(made.data, made.schema, [FIVE]).holds


def test_identifiers_do_not_leave() -> None:
    made = release()
    assert "name" not in made.data.column_names
    assert made.certificate.transparency["removed_columns"] == ["name"]


def test_an_identifier_may_leave_as_a_pseudonym() -> None:
    made = sf.protect(people(name=Column(role="identifier", pseudonym=True)), FIVE, SEARCH)
    names = made.data.column("name").to_pylist()
    assert len(set(names)) == len(names)
    assert not any("person" in name for name in names)
    assert any("pseudonym" in notice for notice in made.certificate.notices)


def test_plain_and_sensitive_columns_are_published_as_they_are() -> None:
    made = sf.protect(people(), FIVE, sf.Lattice(suppression=0))
    before = sorted(zip(*(table().column(c).to_pylist() for c in ("visits", "disease")), strict=True))
    after = sorted(zip(*(made.data.column(c).to_pylist() for c in ("visits", "disease")), strict=True))
    assert before == after


def test_the_place_of_a_row_tells_nothing() -> None:
    order = pa.array(list(reversed(range(600))))
    turned = sf.read(table().take(order), schema())
    assert sf.protect(turned, FIVE, SEARCH).data.equals(release().data)


def test_the_loss_is_the_one_that_the_measures_find() -> None:
    from sfumato.core.registry import find

    made = release()
    again = find("measure", "loss")().score(people(), made.content.released)
    assert made.scores["loss"] == pytest.approx(again.value, abs=1e-9)


def test_scores_and_attacks_are_made_as_asked() -> None:
    made = sf.protect(people(), FIVE, SEARCH, utility=["loss", "discernibility"], attacks=["Homogeneity"])
    assert set(made.scores) == {"loss", "discernibility"}
    assert [result["attack"] for result in made.certificate.attacks] == ["Homogeneity"]


def test_both_references_of_t_closeness_are_printed() -> None:
    made = sf.protect(people(), [FIVE, sf.TCloseness(0.5, "disease")], sf.Lattice(suppression=0))
    claim = made.certificate.claims[1]
    assert claim.evidence == "output+reference"
    assert claim.measured == claim.also_measured["reference input"] is not None
    assert set(claim.also_measured) == {"reference input", "reference released"}
    assert claim.reference is not None and claim.reference.startswith("input sfumato-fingerprint-1:")


def alone_with(value: str) -> Microdata:
    """People who look alike, and one who is alone in a class and will be suppressed."""
    alone = pa.table({"sex": ["alone"], "disease": [value]})
    rows = pa.concat_tables([table(80).select(["sex", "disease"]), alone])
    columns = {"sex": sf.Column(role="quasi"), "disease": sf.Column(role="sensitive")}
    return sf.read(rows, sf.Schema(dataset="d", unit="record", columns=columns))


@pytest.mark.covering
@pytest.mark.parametrize("reference", ["released", "input"])
@pytest.mark.parametrize(
    "promise", [sf.TCloseness(0.9, "disease"), sf.BetaLikeness(9, "disease"), sf.DeltaDisclosure(9, "disease")]
)
def test_a_suppressed_person_changes_no_number_that_is_stated(promise: object, reference: str, tmp_path: Path) -> None:
    """The distance from the original was stated: with the released rows it told the value of the one left out."""
    stated = []
    # that no class has what one suppressed person has breaks δ-disclosure
    for value in ("flu", "cold", "flu" if isinstance(promise, sf.DeltaDisclosure) else "rare"):
        someone = alone_with(value)
        promised = replace(promise, reference=reference)  # type: ignore[type-var]
        made = sf.protect(someone, [FIVE, promised], sf.Lattice(suppression=0.05))
        assert made.details["suppressed"] == 1
        claims = made.certificate.to_mapping()["claims"]
        for claim in claims:
            claim.pop("reference")  # a keyed digest
        stated.append(claims)
        made.save(tmp_path / value, overwrite=True)
        unread = sf.verify(tmp_path / value)
        assert unread.holds or (reference == "input" and "pass it" in unread.explain())
        assert sf.verify(tmp_path / value, original=someone).holds
        assert ("could reveal values of suppressed records" in "".join(summary_lines(made))) == (reference == "input")
    assert stated[0] == stated[1] == stated[2]
    assert ("reference input" in stated[0][1]["also_measured"]) is False
    assert (stated[0][1]["measured"] is None) == (reference == "input")


def test_a_seeded_release_is_a_demonstration() -> None:
    made = release(seed=7)
    assert not made.certificate.private
    assert any("demonstration" in notice for notice in made.certificate.notices)
    assert release(seed=7).certificate.fingerprint == made.certificate.fingerprint
    assert release().certificate.private


def test_the_fingerprint_belongs_to_rows_and_key() -> None:
    mine = release().certificate.fingerprint
    assert mine == release().certificate.fingerprint
    assert mine != release(rows=599).certificate.fingerprint
    assert mine != release(seed=1).certificate.fingerprint


def test_class_size_counts_people_where_a_unit_is_named() -> None:
    doubled = pa.concat_tables([table(), table()])
    data = sf.read(doubled, schema(name=Column(role="unit")))
    made = sf.protect(data, FIVE, SEARCH)
    claim = made.certificate.claims[0]
    assert made.certificate.measured["KAnonymity"] == claim.measured >= 5
    assert claim.also_measured["records per class"] == 2 * claim.measured
    assert claim.unit == "different 'name'"
    assert "name" not in made.data.column_names


def test_outsiders_verify_records_where_units_were_counted_and_dropped(tmp_path: Path) -> None:
    doubled = pa.concat_tables([table(), table()])
    promises = [sf.KAnonymity(5), sf.AlphaKAnonymity(0.9, 5, "disease"), sf.DistinctLDiversity(2, "disease")]
    made = sf.protect(sf.read(doubled, schema(name=Column(role="unit"))), promises, SEARCH)
    assert [claim.unit for claim in made.certificate.claims] == ["different 'name'", "different 'name'", "record"]
    found = sf.verify(made.save(tmp_path / "out"))
    assert found.holds and found.verdict == "keeps what could be checked", found.explain()
    assert [finding.passed for finding in found.findings if finding.claim] == [True, None, True, None, True]
    assert found.sentence.count("cannot recount") == 2


def test_a_person_with_many_records_is_not_said_to_hide_among_them(tmp_path: Path) -> None:
    """A hundred records of five patients: whoever looks for one of them has five to choose from, and nobody can recount them."""
    rows = pa.table({"patient": ["p1"] * 96 + ["p2", "p3", "p4", "p5"], "age": [40] * 100})
    for pseudonym in (False, True):
        described = {"patient": Column(role="unit", type="string", pseudonym=pseudonym), "age": Column(role="quasi")}
        made = sf.protect(sf.read(rows, sf.Schema(dataset="d", columns=described)), FIVE)
        page = made.card("public") + made.card("owner")
        assert "highest risk" not in page and "carry which risk" not in page
        assert "shared by at least 5 records, counted in different &#x27;patient&#x27;." in page
        assert ("rests on the maker" in page) is not pseudonym
        assert ("Anybody can measure it again on the released files" in page) is pseudonym
        assert any("counted in different 'patient'" in line for line in summary_lines(made))
        assert sf.verify(made.save(tmp_path / str(pseudonym))).verdict == (
            "keeps" if pseudonym else "keeps what could be checked"
        )


@pytest.mark.parametrize("stated", [4, 10_000, "infinite", None])
def test_units_that_the_classes_cannot_hold_are_disproved(tmp_path: Path, stated: object) -> None:
    doubled = pa.concat_tables([table(), table()])
    made = sf.protect(sf.read(doubled, schema(name=Column(role="unit"))), FIVE, SEARCH)
    file = made.save(tmp_path / "out") / "public" / "certificate.json"
    content = json.loads(file.read_text())
    content["claims"][0]["measured"] = stated
    file.write_text(json.dumps(content))
    assert not sf.verify(tmp_path / "out").holds


def test_a_published_unit_is_a_pseudonym_and_is_counted_from_the_file() -> None:
    doubled = pa.concat_tables([table(), table()])
    data = sf.read(doubled, schema(name=Column(role="unit", pseudonym=True)))
    made = sf.protect(data, FIVE, SEARCH)
    assert made.schema.unit == "name"
    sizes = made.data.group_by(list(made.schema.quasi)).aggregate([([], "count_all")]).column("count_all").to_pylist()
    assert made.certificate.claims[0].measured * 2 == min(sizes)


def test_a_population_is_used_where_a_guarantee_asks_for_it() -> None:
    population = sf.read(table(3000, seed=9), schema())
    made = sf.protect(people(300), [sf.KMap(5)], SEARCH, population=population)
    assert made.certificate.measured["KMap"] >= 5
    with pytest.raises(ParameterError, match="population"):
        sf.protect(people(300), [sf.KMap(5)], SEARCH)


def test_a_population_needs_its_quasi_identifiers_only() -> None:
    register = table(3000, seed=9).select(["age", "zip", "sex"])
    roles = sf.Schema.of(quasi=["age", "zip", "sex"])
    wanted = sf.protect(people(300), [sf.KMap(5)], SEARCH, population=sf.read(table(3000, seed=9), schema()))
    for population in (register, sf.read(register, roles)):
        made = sf.protect(people(300), [sf.KMap(5)], SEARCH, population=population)
        assert made.certificate.measured == wanted.certificate.measured


def test_risks_have_a_line_of_their_own() -> None:
    made = release(utility=["loss", "discernibility"], risk=["prosecutor_risk"])
    lines = {line.split()[0]: line for line in summary_lines(made)}
    assert "discernibility" in lines["useful"] and "prosecutor_risk" not in lines["useful"]
    assert "prosecutor_risk" in lines["risk"]


def test_the_ledger_keeps_the_numbers_of_equal_guarantees(tmp_path: Path) -> None:
    promises = [sf.TCloseness(0.9, "disease"), sf.TCloseness(0.95, "disease", distance="kl")]
    made = sf.protect(people(), promises, SEARCH, ledger=tmp_path / "l.db")
    with sf.Ledger.open(tmp_path / "l.db") as book:
        assert book.releases("clinic")[0].payload["claims"] == made.certificate.measured
    assert len(made.certificate.measured) == 2


def test_frames_and_files_are_read_with_a_schema() -> None:
    made = sf.protect(table().to_pandas(), FIVE, SEARCH, schema=schema())
    assert made.data.equals(release().data)


def test_what_cannot_be_done_is_said_all_at_once() -> None:
    described = schema(visits=Column(role="plain")).replace(columns={k: v for k, v in schema().columns.items() if k != "visits"})
    with pytest.raises(SchemaError) as caught:
        sf.protect(sf.read(table(), described), [sf.DistinctLDiversity(2, "age"), sf.TCloseness(0.2, "nothing")], SEARCH)
    for part in ("'visits'", "DistinctLDiversity(age)", "TCloseness(nothing)"):
        assert part in str(caught.value)


def test_undescribed_columns_are_dropped_or_kept_when_the_owner_says_so() -> None:
    columns = {name: column for name, column in schema().columns.items() if name != "visits"}
    dropping = sf.Schema(dataset="clinic", columns=columns, unlisted="drop")
    keeping = sf.Schema(dataset="clinic", columns=columns, unlisted="plain")
    assert "visits" not in sf.protect(sf.read(table(), dropping), FIVE, SEARCH).data.column_names
    assert "visits" in sf.protect(sf.read(table(), keeping), FIVE, SEARCH).data.column_names


@pytest.mark.parametrize(
    ("rows", "guarantee", "error"),
    [(0, FIVE, InputError), (3, FIVE, Infeasible), (600, sf.DistinctLDiversity(5, "disease"), Infeasible)],
)
def test_what_no_release_can_keep_is_refused(rows: int, guarantee: sf.KAnonymity, error: type[Exception]) -> None:
    with pytest.raises(error):
        sf.protect(people(rows), guarantee, SEARCH)


def test_an_empty_release_is_refused() -> None:
    with pytest.raises(Infeasible):
        sf.protect(people(40), sf.DistinctLDiversity(5, "disease"), sf.Lattice(suppression=1.0))


def test_no_guarantee_and_no_such_column_are_refused() -> None:
    with pytest.raises(ParameterError, match="no guarantee"):
        sf.protect(people(), [], SEARCH)
    with pytest.raises(MissingColumn, match="'zip'"):
        sf.protect(table().drop_columns("zip"), FIVE, SEARCH, schema=schema())


def test_a_release_cannot_be_changed() -> None:
    made = release()
    with pytest.raises(AttributeError):
        made.data = None  # type: ignore[misc]
    with pytest.raises(TypeError):
        made.scores["loss"] = 0.0  # type: ignore[index]


def test_a_view_is_what_an_outsider_has() -> None:
    view = release().view()
    assert view.result.table.num_rows and view.certificate["claims"]
    assert "name" not in view.schema.columns


def test_progress_names_phases_and_can_cancel() -> None:
    phases: list[str] = []

    def watch(phase: str, done: int, total: int) -> None:
        phases.append(phase)
        if phase == "writing":
            raise sf.core.errors.Cancelled("stopped by the user")

    with pytest.raises(sf.core.errors.Cancelled):
        sf.protect(people(), FIVE, SEARCH, progress=watch)
    assert phases[-1] == "writing"


def test_a_mask_without_a_width_is_named_whatever_the_data_are() -> None:
    open_width = sf.protect(people(40), sf.KAnonymity(2), sf.Lattice(suppression=0.3))
    assert any("column 'zip' is masked without a declared width" in notice for notice in open_width.certificate.notices)
    declared = people(40, zip=Column(role="quasi", type="string", hierarchy=HierarchySpec(mask="right", width=5)))
    closed = sf.protect(declared, sf.KAnonymity(2), sf.Lattice(suppression=0.3))
    assert not any("declared width" in notice for notice in closed.certificate.notices)


def test_a_release_with_hundreds_of_codes_for_no_value_is_verified(tmp_path: Path) -> None:
    table = pa.table({"a": ["x", "y"] * 10, "s": ["1", "2"] * 10})
    columns = {"a": {"role": "quasi"}, "s": {"role": "sensitive"}}
    read = {"missing": [f"code{place}" for place in range(300)]}
    schema = {"dataset": "coded", "unit": "record", "read": read, "columns": columns}
    sf.protect(sf.read(table, schema), [sf.KAnonymity(2)], sf.Lattice()).save(tmp_path / "out")
    assert sf.verify(tmp_path / "out").accepted
    many = [f"code{place}" for place in range(10_001)]
    with pytest.raises(SchemaError, match="more than 10,000 codes"):
        sf.read(table, {**schema, "read": {"missing": many}})
    with pytest.raises(SchemaError, match="more than 10,000 codes"):
        sf.read(table, {**schema, "read": {}, "columns": {**columns, "a": {"role": "quasi", "missing": many}}})
