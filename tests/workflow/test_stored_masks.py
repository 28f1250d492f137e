"""Masked rows that stay in their engine: the same facts as in this process, verified and attacked in their folder."""

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
from sfumato.core.errors import InputError, ParameterError, Unsupported
from sfumato.data.schema import Column
from sfumato.engines.digests.row_digest import table_sums
from sfumato.engines.duckdb.relation import DuckDBRelation
from sfumato.engines.write import write_table
from sfumato.masking.base import Mask
from sfumato.workflow.earlier.comparing import ADDS_UP
from sfumato.workflow.verifying.stated.transparency import MISSING_SHOWN, SAMPLE
from tests.workflow.people import schema, table

MASKS: dict[str, Mask] = {
    "both": sf.Combined(masks=(sf.AdditiveNoise(0.1, columns=("age",)), sf.Pram(stay=0.8, columns=("sex",)))),
    "factors": sf.MultiplicativeNoise(10, columns=("visits",), zeros=1.0, may_round_back=True),
    "levels": sf.Generalisation({"age": 1, "zip": 1}),
    "sample": sf.Sampling(0.5),
    "swapped": sf.RankSwapping(5, columns=("age",)),
    "coded": sf.Combined(masks=(sf.TopBottomCoding(top=60, columns=("age",)), sf.Rounding(5, how="random", columns=("age",)))),
}
ROWS = 1_200


def people(count: int = ROWS) -> pa.Table:
    """With values missing, and every fifth record there twice."""
    rows = table(count)
    ages = pa.array([None if place % 50 == 0 else age for place, age in enumerate(rows.column("age").to_pylist())], pa.int64())
    rows = rows.set_column(rows.column_names.index("age"), "age", ages)
    return pa.concat_tables([rows, rows.take(list(range(0, count, 5)))]).combine_chunks()


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("source") / "people.parquet"
    pq.write_table(people(), place)
    return place


@pytest.fixture
def crossing(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many rows come out of DuckDB into this process at once."""
    answers: list[int] = []
    ask: Callable[..., pa.Table] = DuckDBRelation.run

    def counted(self: DuckDBRelation, *arguments: Any, **named: Any) -> pa.Table:
        answer = ask(self, *arguments, **named)
        answers.append(answer.num_rows)
        return answer

    def refused(self: DuckDBRelation, plan: Any) -> Any:
        raise AssertionError("rows were collected")

    monkeypatch.setattr(DuckDBRelation, "run", counted)
    monkeypatch.setattr(DuckDBRelation, "stream", refused)
    yield answers


def rows_in(folder: Path) -> pa.Table:
    return pa.concat_tables([pq.read_table(part) for part in sorted((folder / "public" / "data").iterdir())])


def on_duckdb(source: Path, **described: Column) -> sf.Microdata:
    return sf.read(source, schema(**described), engine="duckdb")


@pytest.mark.parametrize("name", MASKS)
def test_a_mask_is_written_by_the_engine_and_says_what_it_says_here(
    name: str, source: Path, tmp_path: Path, crossing: Any
) -> None:
    mask = MASKS[name]
    release = sf.protect(on_duckdb(source), (), mask, destination=tmp_path / "out", ledger=tmp_path / "ledger.db")
    assert max(crossing) <= 256  # counts of values and of parts of a range, no rows
    here = sf.protect(sf.read(source, schema()), (), mask)
    assert dict(release.certificate.method) == dict(here.certificate.method)
    one, other = (dict(each.certificate.transparency) for each in (release, here))
    one.pop("swapped_within", None)
    assert one == other
    assert [each for each in release.certificate.notices if each.startswith(MISSING_SHOWN)] == [
        each for each in here.certificate.notices if each.startswith(MISSING_SHOWN)
    ]
    assert len(release) == len(here) and rows_in(tmp_path / "out").num_rows == len(here)
    assert release.schema.columns.keys() == here.schema.columns.keys()
    verification = sf.verify(tmp_path / "out", ledger=tmp_path / "ledger.db")
    assert verification.verdict == here.verify().verdict
    assert "made again from certificate and rows" in verification.explain()


def test_noise_that_makes_every_row_another_group_is_not_grouped(source: Path, tmp_path: Path, crossing: Any) -> None:
    mask = sf.AdditiveNoise(0.5, columns=("age", "visits"), whole=False)
    described = {"visits": Column(role="quasi")}
    release = sf.protect(on_duckdb(source, **described), (), mask, destination=tmp_path / "out")
    assert release.data.groups.table.num_columns == 0 and len(release) == people().num_rows
    assert max(crossing) < 50 and sf.verify(tmp_path / "out").verdict == "promises nothing"


def test_a_promise_about_classes_is_measured_on_masked_rows(source: Path, tmp_path: Path) -> None:
    mask = sf.Generalisation({"age": 3, "zip": 3, "sex": 1})
    release = sf.protect(on_duckdb(source), [sf.KAnonymity(5)], mask, destination=tmp_path / "out")
    here = sf.protect(sf.read(source, schema()), [sf.KAnonymity(5)], mask)
    assert release.certificate.measured == here.certificate.measured
    assert sf.verify(tmp_path / "out").holds
    with pytest.raises(sf.errors.VerificationFailed, match="does not keep"):
        weak = sf.Rounding(5, columns=("age",))
        sf.protect(on_duckdb(source), [sf.KAnonymity(50)], weak, destination=tmp_path / "weak")
    assert not (tmp_path / "weak").exists()


def test_attacks_on_masks_read_the_rows_of_the_folder(tmp_path: Path) -> None:
    numbered = people(400).append_column("record", pa.array(range(480)))
    pq.write_table(numbered, tmp_path / "people.parquet")
    described = {"record": Column(role="plain")}
    mask = sf.Combined(masks=(sf.RankSwapping(10, columns=("age",)), sf.Pram(stay=0.7, columns=("sex",))))
    sf.protect(on_duckdb(tmp_path / "people.parquet", **described), (), mask, destination=tmp_path / "out")
    results = sf.attack(tmp_path / "out", register=sf.read(numbered, schema(**described)), key="record")
    assert {"PramPosterior", "RankWindow"} <= {result.attack for result in results}


def forged(public: Path, changes: dict[str, Any]) -> None:
    from sfumato.workflow.publishing.saving import pretty

    certificate = json.loads((public / "certificate.json").read_text())
    certificate["method"] |= changes
    certificate["transparency"]["method"] |= changes
    (public / "certificate.json").write_bytes(pretty(certificate))


def test_rows_that_disprove_the_mask_are_found_part_by_part(source: Path, tmp_path: Path) -> None:
    mask = sf.Rounding(5, columns=("age",))
    sf.protect(on_duckdb(source), (), mask, destination=tmp_path / "out")
    forged(tmp_path / "out" / "public", {"base": 10.0})
    verification = sf.verify(tmp_path / "out")
    assert not verification.accepted and "did not have the parameters" in verification.explain()


def test_a_part_that_was_changed_is_found(source: Path, tmp_path: Path) -> None:
    sf.protect(on_duckdb(source), (), MASKS["both"], destination=tmp_path / "out")
    part = tmp_path / "out" / "public" / "data" / "part-00000.parquet"
    pq.write_table(pq.read_table(part).slice(1), part, compression="zstd")
    assert not sf.verify(tmp_path / "out").accepted
    shutil.rmtree(part.parent)
    assert not sf.verify(tmp_path / "out").accepted


def test_pseudonyms_and_draws_have_keys_of_their_own(source: Path, tmp_path: Path) -> None:
    described = {"name": Column(role="identifier", pseudonym=True)}
    key = tmp_path / "owner.key"
    sf.protect(on_duckdb(source, **described), (), MASKS["both"], destination=tmp_path / "out", key=key)
    names = sf.protect(sf.read(source, schema(**described)), (), MASKS["both"], key=key).data.column("name")
    assert sorted(rows_in(tmp_path / "out").column("name").to_pylist()) == sorted(names.to_pylist())
    assert sf.verify(tmp_path / "out").verdict == "promises nothing"


def test_two_runs_draw_under_different_keys_and_a_seed_repeats_them(source: Path, tmp_path: Path) -> None:
    digests = []
    for place, seed in enumerate((None, None, 7, 7)):
        sf.protect(on_duckdb(source), (), MASKS["both"], destination=tmp_path / f"{place}", seed=seed)
        digests.append(table_sums(rows_in(tmp_path / f"{place}")).content_digest())
    assert len(set(digests)) == 3 and digests[2] == digests[3]


def test_a_mask_into_a_table_is_verified_there(source: Path, tmp_path: Path) -> None:
    place = tmp_path / "published.duckdb"
    release = sf.protect(on_duckdb(source), (), sf.Rounding(5, columns=("age",)), destination=place)
    release.save(tmp_path / "out")
    verification = sf.verify(tmp_path / "out", data=place, table="release")
    assert verification.verdict == "promises nothing" and "their digest is the one that was certified" in verification.explain()
    forged(tmp_path / "out" / "public", {"base": 10.0})
    assert not sf.verify(tmp_path / "out", data=place, table="release").accepted


def test_what_needs_records_is_refused_before_the_work(source: Path, tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match=r"Mdav is not computed by an engine: it needs all records"):
        sf.protect(on_duckdb(source), (), sf.Mdav(5), destination=tmp_path / "out")
    with pytest.raises(Unsupported, match="disclosure_risk compares records"):
        sf.protect(on_duckdb(source), (), MASKS["both"], destination=tmp_path / "out", risk=["disclosure_risk"])
    with pytest.raises(Unsupported, match="detail_kept compares with the cells that were known"):
        sf.protect(on_duckdb(source), [sf.KAnonymity(1)], MASKS["levels"], destination=tmp_path / "out", utility=["detail_kept"])
    with pytest.raises(Unsupported, match="grouped only where a promise"):
        sf.protect(on_duckdb(source), (), MASKS["both"], destination=tmp_path / "out", attacks=["Homogeneity"])
    assert not (tmp_path / "out").exists()


def test_a_sample_is_protected_here_and_says_that_it_is_one(source: Path, tmp_path: Path) -> None:
    release = sf.protect(on_duckdb(source), (), sf.Mdav(5, columns=("age",)), sample=300)
    assert len(release) == 300 and release.details["sample"] == "300 of 1,440 records"
    release.save(tmp_path / "out")
    certificate = json.loads((tmp_path / "out" / "public" / "certificate.json").read_text())
    assert certificate["transparency"]["sample"] == SAMPLE and SAMPLE in certificate["notices"]
    assert "1,440" not in (tmp_path / "out" / "public" / "card.html").read_text()
    assert sf.verify(tmp_path / "out").verdict == "promises nothing"
    searched = sf.protect(on_duckdb(source), [sf.KAnonymity(3)], sample=500, seed=3)
    assert len(searched) <= 500 and searched.verify(allow_demonstration=True).holds
    for about_input in (sf.TCloseness(0.3, "disease"), sf.BetaLikeness(2, "disease"), sf.DeltaDisclosure(2, "disease")):
        with pytest.raises(Unsupported, match="a sample of it that nobody keeps"):
            sf.protect(on_duckdb(source), [sf.KAnonymity(3), about_input], sample=500)
    about_rows = sf.TCloseness(0.5, "disease", reference="released")
    assert sf.protect(on_duckdb(source), [about_rows], sample=500).verify().holds
    with pytest.raises(ParameterError, match="leave destination= or sample= out"):
        sf.protect(on_duckdb(source), (), sf.Mdav(5), sample=300, destination=tmp_path / "there")
    with pytest.raises(ParameterError, match="protect all of them"):
        sf.protect(on_duckdb(source), (), sf.Mdav(5), sample=1_440)


def test_rows_of_a_sample_are_not_looked_up_by_their_place_in_the_table(source: Path, tmp_path: Path) -> None:
    """Places in the sorted sample used to be taken for places in the table, and nearly nobody was found."""
    sf.protect(on_duckdb(source), (), sf.Mdav(5, columns=("age",)), sample=300).save(tmp_path / "out")
    with pytest.raises(InputError, match="--key COLUMN"):
        sf.attack(tmp_path / "out", register=sf.read(source, schema()), aligned=True)


def test_releases_of_some_records_are_not_combined_and_the_reason_is_true(source: Path, tmp_path: Path) -> None:
    """They were said to have another table, or values that a mask changed, which they do not."""
    book = tmp_path / "ledger.db"
    chosen: list[tuple[Any, dict[str, Any]]] = [(None, {}), (None, {"sample": 500}), (sf.Sampling(0.5), {}), (None, {})]
    for place, (method, options) in enumerate(chosen):
        release = sf.protect(on_duckdb(source), [sf.KAnonymity(1)], method, ledger=book, **options)
        finding = str(release.certificate.composition["finding"])
        assert "another one then" not in finding and "a mask changed" not in finding
        assert ("a drawn sample of the records" in finding and ADDS_UP in finding) == (place > 0)
    noisy = sf.protect(on_duckdb(source), (), sf.AdditiveNoise(0.5, columns=("age",)), ledger=book)
    assert "values that a mask changed" in str(noisy.certificate.composition["finding"])


@pytest.mark.parametrize("there", [False, True])
def test_a_sample_among_several_masks_changes_no_column(source: Path, tmp_path: Path, there: bool) -> None:
    """All quasi-identifiers used to be listed as masked, although all but one were published as they are."""
    mask = sf.Combined(masks=(sf.Sampling(0.5), sf.Combined(masks=(sf.AdditiveNoise(0.5, columns=("age",)), sf.Sampling(0.9)))))
    options = {"destination": tmp_path / "out"} if there else {}
    release = sf.protect(on_duckdb(source), (), mask, **options)
    if not there:
        release.save(tmp_path / "out")
    assert release.certificate.transparency["masked_columns"] == ["age"]
    (left,) = [notice for notice in release.certificate.notices if "published as they are, because" in notice]
    assert all(f"'{name}'" in left for name in ("sex", "zip")) and "'age'" not in left
    assert all(finding.passed is not False for finding in sf.verify(tmp_path / "out").findings)
    alone = sf.protect(on_duckdb(source), (), sf.Combined(masks=(sf.Sampling(0.5),)))
    assert alone.certificate.transparency["masked_columns"] == []


def test_more_records_than_a_mask_takes_here_are_refused_with_the_number(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.masking import engine_rows

    monkeypatch.setattr(engine_rows, "MOST_RECORDS", 1_000)
    with pytest.raises(InputError, match=r"1,440 records, and a mask in this process takes at most 1,000"):
        sf.protect(on_duckdb(source), (), sf.Mdav(5))
    assert len(sf.protect(on_duckdb(source), (), sf.Mdav(5, columns=("age",)), sample=100)) == 100


EVERY = sf.Combined(
    masks=(
        sf.AdditiveNoise(0.2, rescale=True, columns=("age",)),
        sf.Rounding(3, how="random", columns=("age",)),
        sf.Pram(stay=0.7, invariant=True, columns=("sex",)),
        sf.Pram(stay=0.7, columns=("disease",)),
        sf.Sampling(0.8),
    )
)
OTHERS = sf.Combined(masks=(sf.RankSwapping(10, columns=("age",)), sf.AdditiveNoise(0.5, columns=("visits",), whole=False)))


@pytest.fixture(scope="module")
def digests(source: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What DuckDB writes under one key."""
    return {name: _digest(on_duckdb(source), mask, tmp_path_factory.mktemp(name)) for name, mask in _BOTH.items()}


_BOTH: dict[str, Mask] = {"every": EVERY, "others": OTHERS}


def _digest(rows: sf.Microdata, mask: Mask, folder: Path) -> str:
    sf.protect(rows, (), mask, destination=folder / "out", seed=5)
    return table_sums(rows_in(folder / "out")).content_digest()


def shuffled(seed: int) -> pa.Table:
    rows = people()
    return rows.take(np.random.default_rng(seed).permutation(rows.num_rows))


@pytest.mark.parametrize("name", _BOTH)
def test_the_same_rows_from_memory(name: str, tmp_path: Path, digests: dict[str, str]) -> None:
    assert _digest(sf.read(shuffled(1), schema()), _BOTH[name], tmp_path) == digests[name]


@pytest.mark.postgres
@pytest.mark.parametrize("name", _BOTH)
def test_the_same_rows_from_postgres(name: str, tmp_path: Path, digests: dict[str, str], postgres_url: str) -> None:
    write_table(shuffled(2), postgres_url, table_name="masked_people", overwrite=True)
    assert _digest(sf.read(postgres_url, schema(), table="masked_people"), _BOTH[name], tmp_path) == digests[name]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("name", _BOTH)
def test_the_same_rows_from_spark(name: str, tmp_path: Path, digests: dict[str, str], spark: Any) -> None:
    pq.write_table(shuffled(3), tmp_path / "people.parquet")
    frame = spark.read.parquet(str(tmp_path / "people.parquet")).repartition(3)
    assert _digest(sf.read(frame, schema()), _BOTH[name], tmp_path) == digests[name]


def test_what_nobody_measured_is_not_said_to_be_measured(source: Path, tmp_path: Path) -> None:
    """A mask in an engine is neither promised nor measured, and the summary said that its risk was."""
    from sfumato.report.summary import summary_lines
    from sfumato.workflow.verdicts import release_verdict

    release = sf.protect(on_duckdb(source), (), sf.Rounding(5, columns=("age",)), destination=tmp_path / "out")
    verdict = release_verdict(release)
    said = "\n".join([str(verdict), *summary_lines(release)])
    assert "no promise" in said and "no risk was measured" in said and "was measured (risk)" not in said
    assert "part by part" in sf.verify(tmp_path / "out").explain()


@pytest.mark.parametrize("stored", [True, False])
def test_a_sample_of_records_leaves_their_values_as_they_are_and_says_so(source: Path, tmp_path: Path, stored: bool) -> None:
    options = {"destination": tmp_path / "out"} if stored else {}
    people = on_duckdb(source) if stored else sf.read(source, schema())
    release = sf.protect(people, (), sf.Sampling(0.5), **options)  # type: ignore[arg-type]
    notices = [each for each in release.certificate.notices if "published as they are, because" in each]
    assert len(notices) == 1 and "'age'" in notices[0] and "'sex'" in notices[0]
