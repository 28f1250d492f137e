"""Masked tables on their way out: measured, verified where they promise something, attacked with the truth at hand."""

from __future__ import annotations

import dataclasses
import json
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.core.errors import InputError, RecipeError, SfumatoError, VerificationFailed
from sfumato.data.schema import Column, Schema
from sfumato.workflow.publishing.saving import pretty
from sfumato.workflow.verifying.stated.transparency import MISSING_SHOWN, check_missing_shown, with_missing
from tests.workflow.attacked import attack_folder

SCHEMA = Schema(
    dataset="measured",
    columns={
        "name": Column(role="identifier", type="string"),
        "height": Column(role="quasi", type="number"),
        "weight": Column(role="quasi", type="number"),
        "wage": Column(role="quasi", type="number"),
        "ill": Column(role="sensitive", type="string"),
    },
)


def table(rows: int = 300, seed: int = 1) -> pa.Table:
    draw = np.random.default_rng(seed)
    base = draw.normal(size=rows)
    return pa.table(
        {
            "name": [f"person {i:05d}" for i in range(rows)],
            "height": 170 + 8 * base + draw.normal(0, 4, rows),
            "weight": 70 + 9 * base + draw.normal(0, 6, rows),
            "wage": np.exp(8 + 0.3 * base + draw.normal(0, 0.4, rows)),
            "ill": draw.choice(["no", "flu", "cold"], rows),
        }
    )


@pytest.fixture
def people() -> sf.Microdata:
    return sf.read(table(), SCHEMA)


def test_microaggregation_is_certified_to_be_k_anonymous(people: sf.Microdata, tmp_path: Path) -> None:
    release = sf.mask(people, sf.Mdav(5), seed=1)
    assert release.certificate.measured["KAnonymity"] >= 5
    assert release.data.column_names == ["height", "weight", "wage", "ill"]
    assert 0 < release.scores["information_loss"] < 1 and 0 < release.scores["disclosure_risk"] < 0.6
    release.save(tmp_path / "out")
    assert sf.verify(tmp_path / "out", allow_demonstration=True).holds


def test_protect_takes_masks_and_checks_guarantees_asked_for(people: sf.Microdata) -> None:
    release = sf.protect(people, [sf.KAnonymity(3)], sf.Mdav(5), seed=1)
    assert [str(guarantee.name) for guarantee in release.guarantees] == ["KAnonymity", "KAnonymity"]
    with pytest.raises(VerificationFailed):
        sf.protect(people, [sf.KAnonymity(3)], sf.AdditiveNoise(0.1), seed=1)


def test_a_mask_without_a_guarantee_says_so_everywhere(people: sf.Microdata, tmp_path: Path) -> None:
    release = sf.mask(people, sf.AdditiveNoise(0.1), seed=1)
    assert release.certificate.claims == ()
    release.save(tmp_path / "out")
    found = sf.verify(tmp_path / "out", allow_demonstration=True)
    assert found.promises_nothing and not found.holds and "promises no guarantee" in found.explain()
    page = (tmp_path / "out" / "public" / "card.html").read_text()
    assert "Nothing is promised" in page and "highest risk of a record" not in page
    assert "disclosure risk" in (tmp_path / "out" / "owner" / "card.html").read_text()
    told = release.certificate.transparency["method"]
    assert told["name"] == "AdditiveNoise" and told["ratio"] == 0.1


def test_a_release_that_lost_its_claims_is_not_taken_for_one_that_made_none(people: sf.Microdata, tmp_path: Path) -> None:
    sf.protect(people, [sf.KAnonymity(3)], sf.Mondrian(), seed=1).save(tmp_path / "out")
    path = tmp_path / "out" / "public" / "certificate.json"
    path.write_bytes(pretty({**json.loads(path.read_text()), "claims": []}))
    found = sf.verify(tmp_path / "out")
    assert not found.holds and "always does" in found.explain()


def test_attacks_that_cannot_run_leave_no_entry(people: sf.Microdata, tmp_path: Path) -> None:
    with pytest.raises(SfumatoError):
        sf.mask(people, sf.Mdav(5), ledger=tmp_path / "ledger.db", attacks=["RankWindow"], seed=1)
    assert not (tmp_path / "ledger.db").exists()
    release = sf.mask(people, sf.Mdav(5), ledger=tmp_path / "ledger.db", attacks=["RegisterLinkage"], seed=1)
    [told] = release.certificate.attacks
    assert 1 / 300 < told["success"] <= 0.25


def test_the_owner_knows_which_record_became_which_row_and_nobody_else_does(people: sf.Microdata, tmp_path: Path) -> None:
    release = sf.mask(people, sf.AdditiveNoise(1e-12), seed=1)
    release.save(tmp_path / "out")
    path = tmp_path / "out" / "owner" / "rows.parquet"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    rows = pq.read_table(path).column("source_row").to_numpy()
    assert sorted(rows.tolist()) == list(range(300)) and rows.tolist() != list(range(300))
    original = people.table().column("wage").to_numpy()
    assert np.allclose(release.data.column("wage").to_numpy(), original[rows], rtol=1e-5)


def test_quasi_identifiers_that_are_left_alone_are_said_out_loud(people: sf.Microdata) -> None:
    release = sf.mask(people, sf.AdditiveNoise(0.1, columns=("wage",)), seed=1)
    assert any("'height', 'weight'" in notice for notice in release.certificate.notices)


def test_synthetic_records_are_released_without_the_columns_nobody_made(people: sf.Microdata) -> None:
    release = sf.mask(people, sf.GaussianCopula(), seed=1)
    assert "name" not in release.data.column_names and "ill" in release.data.column_names
    assert release.content.source_rows is None and "nearest_record" in release.scores


class TestAttackingAMaskedFolder:
    @pytest.fixture
    def place(self, people: sf.Microdata, tmp_path: Path) -> Path:
        sf.mask(people, sf.RankSwapping(10), seed=1).save(tmp_path / "out")
        pq.write_table(people.table(), tmp_path / "source.parquet")
        return tmp_path

    def test_the_owner_counts_what_an_intruder_with_the_source_would_find(self, place: Path) -> None:
        found = {
            entry["attack"]: entry for entry in attack_folder(place / "out", register=place / "source.parquet", aligned=True)
        }
        assert set(found) == {"RegisterLinkage", "RankWindow"}
        for entry in found.values():
            low, high = entry["interval"]
            assert low <= entry["success"] <= high and entry["baseline"] == pytest.approx(1 / 300)
        assert found["RegisterLinkage"]["success"] > 10 / 300

    def test_without_the_truth_nothing_can_be_counted(self, place: Path) -> None:
        with pytest.raises(InputError, match="--aligned"):
            attack_folder(place / "out" / "public", register=place / "source.parquet")  # what everybody has

    def test_another_table_is_not_the_source(self, place: Path) -> None:
        pq.write_table(table(100), place / "other.parquet")
        with pytest.raises(InputError, match="not the table that was masked"):
            attack_folder(place / "out", register=place / "other.parquet", aligned=True)

    @pytest.mark.parametrize("rows", [[-1] * 300, [0] * 300, [0.5] * 300, ["a"] * 300, [None] * 300, [1, 2]])
    def test_a_damaged_record_of_rows_is_one_clear_error(self, place: Path, rows: list[Any]) -> None:
        path = place / "out" / "owner" / "rows.parquet"
        path.unlink()
        pq.write_table(pa.table({"source_row": rows}), path)
        with pytest.raises(InputError):
            attack_folder(place / "out", register=place / "source.parquet", aligned=True)

    def test_a_public_folder_alone_cannot_be_aligned(self, place: Path) -> None:
        with pytest.raises(InputError, match="owner"):
            attack_folder(place / "out" / "public", register=place / "source.parquet", aligned=True)

    def test_a_key_that_both_tables_have_tells_who_is_who(self, tmp_path: Path) -> None:
        rows = table().append_column("number", pa.array([f"n{i}" for i in range(300)]))
        schema = SCHEMA.replace(columns={**SCHEMA.columns, "number": Column(role="plain", type="string")})
        sf.mask(sf.read(rows, schema), sf.AdditiveNoise(1e-9), seed=1).save(tmp_path / "out")
        pq.write_table(rows, tmp_path / "register.parquet")
        found = attack_folder(tmp_path / "out", register=tmp_path / "register.parquet", key="number", only=["RegisterLinkage"])
        assert found[0]["success"] == pytest.approx(1.0)
        with pytest.raises(InputError, match="nobody of the register"):
            attack_folder(tmp_path / "out", register=rows.set_column(5, "number", pa.array(["x"] * 300)), key="number")

    def test_pseudonyms_are_no_key(self, tmp_path: Path) -> None:
        named = Column(role="identifier", type="string", pseudonym=True)
        people = sf.read(table(), SCHEMA.replace(columns={**SCHEMA.columns, "name": named}))
        sf.mask(people, sf.Mdav(3), seed=1).save(tmp_path / "out")
        with pytest.raises(InputError, match="pseudonyms"):
            attack_folder(tmp_path / "out" / "public", register=people.table(), key="name")
        (by_name,) = attack_folder(tmp_path / "out", register=people.table(), key="name", only=["RegisterLinkage"])
        (aligned,) = attack_folder(tmp_path / "out", register=people.table(), aligned=True, only=["RegisterLinkage"])
        assert by_name == aligned  # the owner's folder knows the names behind the pseudonyms

    def test_resampled_records_have_no_row_of_their_own(self, people: sf.Microdata, tmp_path: Path) -> None:
        sf.mask(people, sf.Resampling(how="joint"), seed=1).save(tmp_path / "out")
        with pytest.raises(InputError, match="several rows"):
            attack_folder(tmp_path / "out", register=people.table(), aligned=True)


def test_a_recipe_names_a_mask(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "people.parquet")
    (tmp_path / "people.toml").write_text(SCHEMA.to_toml())
    content = {
        "data": "people.parquet",
        "schema": "people.toml",
        "output": "out",
        "ledger": False,
        "seed": 1,
        "method": {"name": "Mdav", "k": 4},
        "checks": {"utility": ["information_loss", "pil"], "risk": ["interval_disclosure"]},
    }
    release = sf.Recipe.parse(content, folder=tmp_path).run()
    assert release.certificate.measured["KAnonymity"] >= 4
    assert set(release.scores) == {"information_loss", "pil", "interval_disclosure"}
    with pytest.raises(RecipeError, match="only masks go without"):
        sf.Recipe.parse({**content, "method": {"name": "Mondrian"}}, folder=tmp_path)
    with pytest.raises(RecipeError, match="Mdav"):
        sf.Recipe.parse({**content, "method": {"name": "Mdaw", "k": 4}}, folder=tmp_path)


def test_a_mask_that_cannot_be_carried_out_leaves_nothing(people: sf.Microdata, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    with pytest.raises(SfumatoError):
        sf.mask(people, sf.Mdav(301), ledger=ledger, seed=1)
    with pytest.raises(SfumatoError, match="'ill'"):
        sf.mask(people, sf.AdditiveNoise(0.1, columns=("height", "ill")), ledger=ledger, seed=1)
    assert not ledger.exists()


@pytest.mark.parametrize(
    ("method", "unchanged"),
    [
        (sf.AdditiveNoise(0.1, columns=("height", "code")), {"tag"}),
        (sf.Combined(masks=(sf.AdditiveNoise(0.1, columns=("code",)), sf.Rounding(5, columns=("height",)))), {"tag"}),
        (sf.Sampling(0.5, columns=("height", "code")), {"code", "tag"}),
        (sf.GaussianCopula(columns=("height", "code")), set()),
    ],
)
def test_only_what_a_mask_left_alone_is_said_to_be_published_as_it_is(method: Any, unchanged: set[str]) -> None:
    rows = (
        table()
        .append_column("code", pa.array([13 * i for i in range(300)]))
        .append_column("tag", pa.array([f"t{i}" for i in range(300)]))
    )
    described = {"code": Column(role="sensitive", type="integer"), "tag": Column(role="plain", type="string")}
    people = sf.read(rows, Schema(dataset="measured", columns={**SCHEMA.columns, **described}))
    notices = sf.mask(people, method, utility=(), risk=()).certificate.notices
    assert {notice.split("'")[1] for notice in notices if "is published as it is" in notice} == unchanged


def test_a_table_without_its_pseudonyms_is_not_said_to_have_them() -> None:
    pseudonymous = Schema(
        dataset="measured", columns={**SCHEMA.columns, "name": Column(role="identifier", type="string", pseudonym=True)}
    )
    people = sf.read(table(), pseudonymous)
    for method, shown in ((sf.AdditiveNoise(0.1), True), (sf.GaussianCopula(columns=("height", "wage")), False)):
        release = sf.mask(people, method, utility=(), risk=())
        assert ("name" in release.data.column_names) is shown
        assert any("pseudonym" in notice for notice in release.certificate.notices) is shown


GAPS = pa.table({"g": [None, "", "a", "b"] * 10, "h": ["p", "q"] * 20, "x": [None] * 10 + [float(n) for n in range(30)]})
GAPS_SCHEMA = Schema.of("d", quasi=["g", "h", "x"])
EMPTY = sf.Pram(0.7, columns=("g", "h"))
CENTRES, BLUR = sf.Mdav(4, columns=("x",)), sf.AdditiveNoise(0.5, columns=("x",))


@pytest.mark.parametrize(
    ("method", "named"),
    [
        (EMPTY, "'g'"),
        (BLUR, "'x'"),
        (sf.Combined(masks=(sf.Sampling(0.9), EMPTY, BLUR)), "'g', 'x'"),
        (sf.Combined(masks=(EMPTY, CENTRES)), "'g'"),
        (sf.Combined(masks=(BLUR, CENTRES)), ""),
        (sf.Pram(0.7, columns=("h",)), ""),
    ],
)
def test_missing_values_that_stay_are_named_and_held_against_the_rows(method: Any, named: str, tmp_path: Path) -> None:
    made = sf.protect(sf.read(GAPS, GAPS_SCHEMA), [], method, utility=[], risk=[])
    certificate, rows = made.certificate, made.data
    true = [f"{MISSING_SHOWN}{named}"] * bool(named)
    assert [notice for notice in certificate.notices if notice.startswith(MISSING_SHOWN)] == true
    verified = sf.verify(made.save(tmp_path / "out", format="csv"))
    assert "missing values" not in {finding.check for finding in verified.findings}
    assert not any(finding.passed is False for finding in verified.findings)
    for other in ("'h'", "'g', 'h'", "'nobody'"):
        forged = dataclasses.replace(certificate, notices=(f"{MISSING_SHOWN}{other}",))
        with pytest.raises(VerificationFailed, match="of missing values what the rows do not show"):
            check_missing_shown(forged, with_missing(rows))
    silent = check_missing_shown(dataclasses.replace(certificate, notices=()), with_missing(rows))
    assert [finding.text for finding in silent] == true
