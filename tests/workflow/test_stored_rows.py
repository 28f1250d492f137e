"""Rows that stay in their engine: the same release as in this process, with no row of the source or of the release here."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.cli.main import run
from sfumato.core.errors import InputError, ParameterError, Unsupported, VerificationFailed
from sfumato.data.schema import Column
from sfumato.engines.digests.row_digest import table_sums
from sfumato.engines.duckdb.relation import DuckDBRelation
from sfumato.workflow.publishing.forecast import memory_of
from sfumato.workflow.publishing.released_form import released_form
from tests.workflow.people import schema, table

SEARCHES = {
    "lattice": sf.Lattice(suppression=0.05),
    "local": sf.LocalRecoding(suppression=0.05),
    "mondrian": sf.Mondrian(ranges_everywhere=True),
    "default": sf.LeastLoss(),
}
PROMISES = [sf.KAnonymity(5), sf.DistinctLDiversity(2, "disease"), sf.TCloseness(0.5, "disease")]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    pq.write_table(table(2_000), tmp_path / "people.parquet")
    return tmp_path / "people.parquet"


def stored(source: Path, out: Path, *options: Any, described: sf.Schema | None = None, **named: Any) -> sf.Release:
    people = sf.read(source, described or schema(), engine="duckdb")
    promises, search = options or ([sf.KAnonymity(5)], SEARCHES["lattice"])
    return sf.protect(people, promises, search, destination=out, **named)


def rows_in(folder: Path) -> pa.Table:
    parts = sorted((folder / "public" / "data").iterdir())
    return pa.concat_tables([pq.read_table(part) for part in parts])


@pytest.mark.parametrize("search", SEARCHES)
def test_the_engine_writes_the_rows_that_this_process_would(source: Path, tmp_path: Path, search: str) -> None:
    here = sf.protect(sf.read(source, schema()), PROMISES, SEARCHES[search])
    there = stored(source, tmp_path / "out", PROMISES, SEARCHES[search])
    assert released_form(rows_in(tmp_path / "out")).equals(released_form(here.data))
    assert table_sums(rows_in(tmp_path / "out")).content_digest() == table_sums(here.data).content_digest()
    assert there.certificate.measured == here.certificate.measured
    assert dict(there.scores) == pytest.approx(dict(here.scores))
    assert len(there) == len(here) and sf.verify(tmp_path / "out", original=source).holds


def test_verify_measures_claims_that_compare_with_the_original(source: Path, tmp_path: Path) -> None:
    stored(source, tmp_path / "out", [sf.KAnonymity(5), sf.TCloseness(0.5, "disease")], SEARCHES["lattice"])
    alone, beside = sf.verify(tmp_path / "out"), sf.verify(tmp_path / "out", original=source)
    assert any("compares with the original" in finding.text for finding in alone.findings)
    assert beside.accepted and not any("compares with the original" in finding.text for finding in beside.findings)


@pytest.fixture
def crossing(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, tuple[str, ...]]]]:
    """What comes out of DuckDB into this process, by rows and columns."""
    answers: list[tuple[int, tuple[str, ...]]] = []
    ask: Callable[..., pa.Table] = DuckDBRelation.run

    def counted(self: DuckDBRelation, *arguments: Any, **named: Any) -> pa.Table:
        answer = ask(self, *arguments, **named)
        answers.append((answer.num_rows, tuple(answer.column_names)))
        return answer

    def refused(self: DuckDBRelation, plan: Any) -> Any:
        raise AssertionError("rows were collected")

    monkeypatch.setattr(DuckDBRelation, "run", counted)
    monkeypatch.setattr(DuckDBRelation, "stream", refused)
    yield answers


def test_only_groups_cross_the_border_of_the_engine(tmp_path: Path, crossing: list[tuple[int, tuple[str, ...]]]) -> None:
    rows = 20_000
    pq.write_table(table(rows).drop_columns(["zip"]), tmp_path / "people.parquet")
    described = schema().replace(columns={n: c for n, c in schema().columns.items() if n != "zip"})
    release = stored(tmp_path / "people.parquet", tmp_path / "out", described=described)
    cells = 2 * 72
    assert len(release) > 19_000 and crossing
    assert max(count for count, _ in crossing) <= cells
    assert not any({"name", "visits"} & set(names) for _, names in crossing)


def test_nothing_appears_when_what_was_written_breaks_the_promise(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sfumato.measures.guarantees.grouped import GroupedTable
    from sfumato.workflow.publishing import stored_rows

    honest = stored_rows.regrouped

    def one_row_alone(*arguments: Any) -> GroupedTable:
        groups = honest(*arguments)
        moved = groups.counts.copy()
        moved[1] += moved[0] - 1
        return GroupedTable(groups.table, np.r_[1, moved[1:]])

    monkeypatch.setattr(stored_rows, "regrouped", one_row_alone)
    ledger = tmp_path / "ledger.db"
    with pytest.raises(VerificationFailed, match="does not keep what was promised"):
        stored(source, tmp_path / "out", ledger=ledger)
    assert sorted(each.name for each in tmp_path.iterdir() if not each.name.startswith("ledger")) == ["people.parquet"]
    with sf.Ledger.open(ledger) as book:
        assert not book.releases("clinic")


FAULTS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a row changed": (lambda data: _changed(data / "part-00000.parquet"), "differs"),
    "a row missing": (lambda data: _rewritten(data / "part-00000.parquet"), "differs"),
    "a file missing": (lambda data: (data / "part-00000.parquet").unlink(), "missing"),
    "a file twice": (lambda data: shutil.copy(data / "part-00000.parquet", data / "part-00001.parquet"), "not certified"),
    "another file": (lambda data: (data / "notes.txt").write_text("x"), "not certified"),
    "no folder": (lambda data: shutil.rmtree(data), "cannot be opened"),
}


def _changed(part: Path) -> None:
    rows = pq.read_table(part)
    visits = rows.column("visits").to_pylist()
    changed = pa.array([visits[0] + 1, *visits[1:]], rows.schema.field("visits").type)
    pq.write_table(rows.set_column(rows.column_names.index("visits"), "visits", changed), part, compression="zstd")


def _rewritten(part: Path) -> None:
    rows = pq.read_table(part)
    pq.write_table(rows.slice(1), part, compression="zstd")


@pytest.mark.parametrize("fault", FAULTS)
def test_verify_finds_what_was_done_to_the_parts(source: Path, tmp_path: Path, fault: str) -> None:
    stored(source, tmp_path / "out")
    change, reason = FAULTS[fault]
    change(tmp_path / "out" / "public" / "data")
    verification = sf.verify(tmp_path / "out")
    assert not verification.accepted and reason in verification.explain()


def test_a_row_that_was_changed_with_its_digests_is_found_by_counting(source: Path, tmp_path: Path) -> None:
    """Whoever writes certificate, list and digests anew still cannot make a class of one count as five."""
    from sfumato.workflow.publishing.saving import describe_file, pretty
    from sfumato.workflow.verifying.stored.parts import StoredFile, merkle_root

    stored(source, tmp_path / "out")
    public = tmp_path / "out" / "public"
    part = public / "data" / "part-00000.parquet"
    rows = pq.read_table(part)
    ages = rows.column("age").to_pylist()
    ages[0] = "[0, 5)"
    changed = released_form(rows.set_column(rows.column_names.index("age"), "age", pa.array(ages)))
    names = [field.type for field in rows.schema]
    pq.write_table(changed.cast(pa.schema(list(zip(changed.column_names, names, strict=True)))), part, compression="zstd")
    about = json.loads((public / "stored.json").read_text())
    file = StoredFile(part.name, part.stat().st_size, rows.num_rows, str(describe_file(part)["sha256"]))
    about |= {"files": [vars(file)], "root": merkle_root([file])}
    (public / "stored.json").write_bytes(pretty(about))
    certificate = json.loads((public / "certificate.json").read_text())
    certificate["files"]["stored.json"] |= describe_file(public / "stored.json")
    (public / "certificate.json").write_bytes(pretty(certificate))
    verification = sf.verify(tmp_path / "out")
    assert not verification.accepted and "measured 1, which breaks it" in verification.explain(), verification.explain()


def test_a_folder_of_parts_beside_rows_is_refused(tmp_path: Path) -> None:
    sf.protect(sf.read(table(), schema()), [sf.KAnonymity(5)]).save(tmp_path / "out")
    (tmp_path / "out" / "public" / "data").mkdir()
    assert not sf.verify(tmp_path / "out").accepted


def test_people_whose_column_is_dropped_are_counted_by_the_engine(source: Path, tmp_path: Path) -> None:
    described = schema(name=Column(role="unit"))
    here = sf.protect(sf.read(source, described), [sf.KAnonymity(4)], SEARCHES["lattice"])
    there = stored(source, tmp_path / "out", [sf.KAnonymity(4)], SEARCHES["lattice"], described=described)
    assert there.certificate.claims == here.certificate.claims
    assert "name" not in rows_in(tmp_path / "out").column_names
    assert "rests on its maker" in sf.verify(tmp_path / "out").explain()


def test_pseudonyms_are_those_of_this_process(source: Path, tmp_path: Path) -> None:
    described, key = schema(name=Column(role="identifier", pseudonym=True)), tmp_path / "owner.key"
    here = sf.protect(sf.read(source, described), [sf.KAnonymity(5)], SEARCHES["lattice"], key=key)
    stored(source, tmp_path / "out", [sf.KAnonymity(5)], SEARCHES["lattice"], described=described, key=key)
    assert released_form(rows_in(tmp_path / "out")).equals(released_form(here.data))
    assert sf.verify(tmp_path / "out").accepted


def test_a_pseudonym_that_ties_records_is_refused(tmp_path: Path) -> None:
    rows = table(300)
    twice = rows.set_column(0, "name", pa.array([f"person {i // 2}" for i in range(300)]))
    pq.write_table(twice, tmp_path / "people.parquet")
    described = schema(name=Column(role="identifier", pseudonym=True))
    with pytest.raises(sf.errors.Infeasible, match="tied together"):
        stored(tmp_path / "people.parquet", tmp_path / "out", [sf.KAnonymity(5)], SEARCHES["lattice"], described=described)
    assert not (tmp_path / "out").exists()


def test_too_many_cells_are_refused_with_numbers_and_the_columns_that_make_them(source: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"1,\d{3} different combinations of 3 columns.*'age' has 72 different values") as caught:
        stored(source, tmp_path / "out", memory="500KB")
    assert "allow more memory" in str(caught.value) and not (tmp_path / "out").exists()


@pytest.mark.parametrize(("text", "size"), [("2GB", 2 * 2**30), ("500 MiB", 500 * 2**20), (10_000, 10_000), ("1.5g", 3 * 2**29)])
def test_an_amount_of_memory_is_read_as_people_write_it(text: str | int, size: int) -> None:
    assert memory_of(text) == size


@pytest.mark.parametrize("text", ["", "much", "0GB", "-1GB", True, 0])
def test_anything_else_is_no_amount_of_memory(text: Any) -> None:
    with pytest.raises(ParameterError, match="an amount such as '2GB'"):
        memory_of(text)


def test_what_needs_records_is_refused_before_the_work(source: Path, tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="entropy compares records"):
        stored(source, tmp_path / "out", utility=["entropy"])
    with pytest.raises(Unsupported, match="Mdav is not computed by an engine"):
        sf.protect(sf.read(source, schema(), engine="duckdb"), (), sf.Mdav(5), destination=tmp_path / "out")
    with pytest.raises(InputError, match="is about a destination"):
        sf.protect(sf.read(source, schema()), [sf.KAnonymity(5)], memory="2GB")
    assert not (tmp_path / "out").exists()


def test_measures_and_attacks_on_classes_agree_with_those_on_rows(source: Path, tmp_path: Path) -> None:
    asked = {"utility": ["discernibility", "average_class_size", "class_count"], "risk": ["prosecutor_risk", "uniques"]}
    promises = [sf.KAnonymity(5), sf.DistinctLDiversity(2, "disease")]
    options = {**asked, "attacks": ["Homogeneity", "Skewness"]}
    here = sf.protect(sf.read(source, schema()), promises, SEARCHES["lattice"], **options)
    there = stored(source, tmp_path / "out", promises, SEARCHES["lattice"], **options)
    assert dict(there.scores) == pytest.approx(dict(here.scores))
    assert there.certificate.attacks == here.certificate.attacks
    here.save(tmp_path / "here")
    assert there.certificate.card["scores"] == here.certificate.card["scores"]
    assert {score["measure"] for score in there.certificate.card["scores"]} >= {"class_count", "prosecutor_risk", "uniques"}
    assert "computed again from the rows" in sf.verify(tmp_path / "out").explain()


def test_attacks_see_sensitive_columns_that_nothing_is_promised_of(tmp_path: Path) -> None:
    """They were not grouped, and the certificate stated 0 % where the value of everybody is certain."""
    rows = pa.table(
        {
            "age": [20 + i % 8 * 5 for i in range(400)],
            "code": [i // 8 % 2 for i in range(400)],
            "inc": [i % 8 for i in range(400)],
        }
    )
    pq.write_table(rows, tmp_path / "people.parquet")
    roles = {"age": Column(role="quasi"), "code": Column(role="sensitive"), "inc": Column(role="sensitive")}
    described = sf.Schema(dataset="d", unit="record", columns=roles)
    promises = [sf.KAnonymity(5), sf.DistinctLDiversity(2, "code")]
    release = stored(
        tmp_path / "people.parquet", tmp_path / "out", promises, SEARCHES["lattice"], described=described, attacks=["Homogeneity"]
    )
    assert release.certificate.attacks[0]["success"] == 1.0
    assert sf.attack(tmp_path / "out", only="Homogeneity")[0].success == 1.0


def test_rows_that_were_lost_on_the_way_are_not_published(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.measures.guarantees.grouped import GroupedTable
    from sfumato.workflow.publishing import stored_rows

    honest = stored_rows.regrouped

    def fewer(*arguments: Any) -> GroupedTable:
        groups = honest(*arguments)
        return GroupedTable(groups.table.slice(1), groups.counts[1:])

    monkeypatch.setattr(stored_rows, "regrouped", fewer)
    with pytest.raises(VerificationFailed, match="rows were written and .* can be read back"):
        stored(source, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_does_not_fit_a_destination_is_refused_before_the_work(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.toml").write_text(schema().to_toml())
    command = ["protect", "people.parquet", "--schema", "schema.toml", "--k", "5"]
    wrong = ["--destination", "out", "--write-to", "x.duckdb", "-o", "other", "--format", "csv"]
    assert run([*command, *wrong]) == 2
    said = capsys.readouterr().err
    assert all(part in said for part in ("leave one out", "leave output (-o) out", "leave format out"))
    assert run([*command, "--memory", "1GB"]) == 2 and "is about a destination" in capsys.readouterr().err
    assert run([*command, "--destination", "we[ird"]) == 2 and "choose another destination" in capsys.readouterr().err
    assert sorted(each.name for each in tmp_path.iterdir()) == ["people.parquet", "schema.toml"]
    release = stored(source, tmp_path / "out")
    for call in (lambda: release.write(tmp_path / "x.duckdb"), release.to_pandas):
        with pytest.raises(Unsupported, match="stayed in their engine"):
            call()


def test_an_existing_folder_is_kept_unless_it_may_be_replaced(source: Path, tmp_path: Path) -> None:
    stored(source, tmp_path / "out")
    before = (tmp_path / "out" / "public" / "certificate.json").read_bytes()
    with pytest.raises(InputError, match="exists"):
        stored(source, tmp_path / "out")
    assert (tmp_path / "out" / "public" / "certificate.json").read_bytes() == before
    stored(source, tmp_path / "out", overwrite=True)
    assert sf.verify(tmp_path / "out").accepted


def test_a_stored_release_is_compared_with_earlier_ones_by_its_classes(tmp_path: Path) -> None:
    rows = table(2_000).drop_columns(["visits"])
    pq.write_table(rows, tmp_path / "people.parquet")
    described = schema().replace(columns={n: c for n, c in schema().columns.items() if n != "visits"})
    promises, findings = [sf.KAnonymity(5), sf.DistinctLDiversity(2, "disease")], []
    for place in ("here", "there"):
        ledger, people = tmp_path / f"{place}.db", tmp_path / "people.parquet"
        for number, search in enumerate((SEARCHES["lattice"], sf.LocalRecoding())):
            if place == "here":
                release = sf.protect(sf.read(people, described), promises, search, ledger=ledger)
            else:
                release = stored(people, tmp_path / f"out{number}", promises, search, described=described, ledger=ledger)
        findings.append((release.certificate.composition["finding"], release.details["composition"]))
    assert findings[0] == findings[1] and "Combined" in findings[0][0]
    assert sf.verify(tmp_path / "out1", ledger=tmp_path / "there.db").accepted


def test_records_that_could_be_tied_by_other_columns_are_said_not_to_be(source: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    stored(source, tmp_path / "one", ledger=ledger)
    release = stored(source, tmp_path / "two", [sf.KAnonymity(5)], sf.LocalRecoding(), ledger=ledger)
    composition = release.certificate.composition
    assert "records could be tied together by 'disease', 'visits'" in composition["finding"]
    assert "adds up" in composition["finding"] and composition["compared"] == 0 and "success" not in composition


def test_the_command_line_leaves_the_rows_of_a_file_in_it(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.toml").write_text(schema().to_toml())
    command = ["protect", "people.parquet", "--schema", "schema.toml", "--k", "5", "--destination", "out", "--memory", "1GB"]
    assert run([*command, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["rows"] > 1_800 and facts["folder"].endswith("out") and (tmp_path / "out" / "owner" / "recipe.toml").is_file()
    assert run(["verify", "out"]) == 0
    assert run(command) == 2 and "exists" in capsys.readouterr().err


def test_saving_elsewhere_is_refused_with_the_reason(source: Path, tmp_path: Path) -> None:
    release = stored(source, tmp_path / "out")
    with pytest.raises(Unsupported, match="copy that folder"):
        release.save(tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_stored_release_is_verified_and_attacked_by_its_folder_and_by_itself(source: Path, tmp_path: Path) -> None:
    promises = [sf.KAnonymity(5), sf.DistinctLDiversity(2, "disease")]
    here = sf.protect(sf.read(source, schema()), promises, SEARCHES["lattice"])
    there = stored(source, tmp_path / "out", promises, SEARCHES["lattice"])
    assert there.verify().accepted
    named = ["Homogeneity", "Skewness", "ProbabilisticInference"]
    for release in (there, tmp_path / "out"):
        assert sf.attack(release, only=named) == sf.attack(here, only=named)
        found = sf.attack(release, register=source, only="Linkage")
        assert found == sf.attack(here, register=source, only="Linkage")
    assert {result.attack for result in sf.attack(there)} >= set(named)
    with pytest.raises(Unsupported, match="looks at single records"):
        sf.attack(tmp_path / "out", only="PseudonymTracking")


@pytest.mark.parametrize("role", ["quasi", "plain"])
def test_bytes_are_refused_before_the_work_whatever_their_role(tmp_path: Path, role: str) -> None:
    codes = pa.array([b"a", b"b"] * 20, pa.binary())
    pq.write_table(pa.table({"code": codes, "sex": ["f", "m"] * 20}), tmp_path / "coded.parquet")
    columns = {"code": {"role": role}, "sex": {"role": "quasi"}}
    people = sf.read(tmp_path / "coded.parquet", {"dataset": "coded", "unit": "record", "columns": columns}, engine="duckdb")
    with pytest.raises(Unsupported, match=r"columns of times or bytes \(code\)"):
        sf.protect(people, [sf.KAnonymity(5)], destination=tmp_path / "out")
    assert not (tmp_path / "out").exists()
