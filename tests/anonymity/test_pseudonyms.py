"""Pseudonyms (ANO-02): consistent, keyed, separated by scope; and not enough (E-01)."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.anonymity.pseudonyms import WARNING, PseudonymMap, Pseudonyms, refuse_inside_release
from sfumato.core.errors import InputError, ParameterError
from sfumato.wire.keys import OwnerKey

KEY, OTHER = OwnerKey(bytes(range(32))), OwnerKey(bytes(32))
PATIENTS = Pseudonyms(KEY, scope="patient")


def test_the_same_person_has_the_same_pseudonym_in_every_table() -> None:
    visits = pa.array(["Ada", "Ben", None, "Ada"])
    bills = pa.chunked_array([["Ben"], ["Ada", "Cem"]])
    one, other = PATIENTS.apply(visits).to_pylist(), PATIENTS.apply(bills).to_pylist()
    assert one[0] == one[3] == other[1] and one[1] == other[0] and one[2] is None
    assert len({*one, *other} - {None}) == 3
    assert all(len(name) == 26 and name.isalnum() and name.islower() for name in other)


def test_scopes_and_keys_give_unrelated_pseudonyms() -> None:
    names = {Pseudonyms(key, scope=scope).of("Ada") for key in (KEY, OTHER) for scope in ("patient", "doctor", "patientA")}
    assert len(names) == 6
    assert Pseudonyms(KEY, scope="a").of("bc") != Pseudonyms(KEY, scope="ab").of("c")


def test_a_number_and_its_text_are_the_same_person() -> None:
    assert PATIENTS.apply(pa.array([7, 7.0])).to_pylist() == [PATIENTS.of("7")] * 2
    assert PATIENTS.of("007") != PATIENTS.of(7)
    assert PATIENTS.of(None) is None and PATIENTS.of(float("nan")) is None


@given(st.lists(st.one_of(st.none(), st.text(max_size=5)), max_size=20))
def test_applying_is_the_same_as_asking_one_by_one(values: list[str | None]) -> None:
    column = pa.array(values, pa.string())
    expected = [PATIENTS.of(value) for value in values]
    assert PATIENTS.apply(column).to_pylist() == expected
    assert PATIENTS.apply(column.dictionary_encode()).to_pylist() == expected
    known = {value for value in values if value is not None}
    assert len({name for name in expected if name is not None}) == len(known)
    assert dict(PATIENTS.map_of(column).identifiers) == {PATIENTS.of(value): value for value in known}


def test_unicode_spellings_are_joined_on_request() -> None:
    composed, decomposed = "Zo\u00eb", "Zoe\u0308"
    assert PATIENTS.of(composed) != PATIENTS.of(decomposed)
    joined = Pseudonyms(KEY, scope="patient", unicode_form="NFC")
    assert joined.of(composed) == joined.of(decomposed)
    assert joined.apply(pa.array([composed, decomposed])).to_pylist() == [joined.of(composed)] * 2


def test_a_frozen_pseudonym() -> None:
    """Tables pseudonymised years apart must still join: this may never change."""
    assert PATIENTS.of("Ada") == "sgnkq2jbuwguxyw3wwrlg2x4ue"


def test_length_is_an_option() -> None:
    assert Pseudonyms(KEY, scope="patient", length=20).of("Ada") == (PATIENTS.of("Ada") or "")[:20]
    for wrong in (0, 15, 52, "26"):
        with pytest.raises(ParameterError):
            Pseudonyms(KEY, scope="patient", length=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [{"scope": ""}, {"scope": None}, {"key": b"x" * 32}, {"unicode_form": "NFD"}])
def test_wrong_parameters_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        Pseudonyms(**{"key": KEY, "scope": "patient", **wrong})  # type: ignore[arg-type]


def test_neither_key_nor_identifiers_are_printed() -> None:
    kept = PATIENTS.map_of(pa.array(["Ada"]))
    for text in (repr(PATIENTS), str(PATIENTS), repr(kept), str(kept)):
        assert "Ada" not in text and KEY.secret.hex() not in text and repr(KEY.secret) not in text


def test_empty_and_null_columns() -> None:
    assert PATIENTS.apply(pa.array([], pa.string())).to_pylist() == []
    assert PATIENTS.apply(pa.chunked_array([], pa.string())).to_pylist() == []
    assert PATIENTS.apply(pa.array([None, None], pa.string())).to_pylist() == [None, None]
    assert PATIENTS.apply(pa.nulls(2)).to_pylist() == [None, None]


def test_a_map_leads_back_for_whoever_holds_the_file(tmp_path: Path) -> None:
    column = pa.array(["Ada", "Ben", None])
    PATIENTS.map_of(column).save(tmp_path / "map.json")
    kept = PseudonymMap.load(tmp_path / "map.json")
    assert kept.resolve(PATIENTS.of("Ada") or "") == "Ada" and len(kept) == 2 and kept.scope == "patient"
    assert stat.S_IMODE((tmp_path / "map.json").stat().st_mode) == 0o600
    with pytest.raises(InputError) as caught:
        kept.resolve("Ada")
    assert "Ada" not in str(caught.value)
    with pytest.raises(InputError, match="not overwritten"):
        kept.save(tmp_path / "map.json")
    (tmp_path / "map.json").chmod(0o644)
    with pytest.raises(InputError, match="chmod"):
        PseudonymMap.load(tmp_path / "map.json")


def test_maps_of_several_tables_become_one() -> None:
    one, other = PATIENTS.map_of(pa.array(["Ada", "Ben"])), PATIENTS.map_of(pa.array(["Ben", "Cem"]))
    assert sorted(one.merged(other).identifiers.values()) == ["Ada", "Ben", "Cem"]
    with pytest.raises(InputError, match="scope"):
        one.merged(Pseudonyms(KEY, scope="doctor").map_of(pa.array(["Ada"])))
    with pytest.raises(InputError, match="contradict"):
        one.merged(PseudonymMap("patient", {PATIENTS.of("Ada") or "": "Eve"}))


@pytest.mark.parametrize("inside", [".", "owner", "public", "public/deeper"])
def test_a_map_is_never_kept_with_a_release(tmp_path: Path, inside: str) -> None:
    release = tmp_path / "out"
    (release / "public" / "deeper").mkdir(parents=True)
    (release / "owner").mkdir()
    (release / "public" / "certificate.json").write_text("{}")
    kept = PATIENTS.map_of(pa.array(["Ada"]))
    with pytest.raises(InputError, match="release folder"):
        kept.save(release / inside / "map.json")
    (tmp_path / "shortcut").symlink_to(release / inside)
    with pytest.raises(InputError, match="release folder"):
        refuse_inside_release(tmp_path / "shortcut" / "map.json")
    kept.save(tmp_path / "map.json")


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"format": "x", "scope": "s", "identifiers": {}}', '{"identifiers": [1]}'])
def test_a_damaged_map_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "map.json").write_text(content)
    (tmp_path / "map.json").chmod(0o600)
    with pytest.raises(InputError, match="not a pseudonym map"):
        PseudonymMap.load(tmp_path / "map.json")


def test_a_plain_join_finds_people_in_a_pseudonymised_table() -> None:
    """Erratum E-01: replacing names does not suffice. A public register with the same quasi-identifiers
    undoes it.
    """
    hospital = pa.table(
        {
            "name": ["Alice", "Bob", "Carl", "Dora", "Ed"],
            "age": [30, 30, 41, 52, 52],
            "zip": ["4711", "4712", "4711", "5055", "5055"],
            "disease": ["flu", "AIDS", "cancer", "flu", "cold"],
        }
    )
    released = hospital.set_column(0, "name", PATIENTS.apply(hospital["name"]))
    assert not set(released["name"].to_pylist()) & set(hospital["name"].to_pylist())

    register = hospital.select(["name", "age", "zip"]).rename_columns(["citizen", "age", "zip"])
    joined = register.join(released, keys=["age", "zip"], join_type="inner").to_pylist()
    matches = {row["citizen"]: [r["disease"] for r in joined if r["citizen"] == row["citizen"]] for row in joined}
    found = {citizen: diseases[0] for citizen, diseases in matches.items() if len(diseases) == 1}

    assert found == {"Alice": "flu", "Bob": "AIDS", "Carl": "cancer"}
    assert "does not make a table anonymous" in WARNING
    assert json.dumps(released["name"].to_pylist()).count("Alice") == 0


def test_the_way_back_names_nobody_who_is_not_in_the_column() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([1, None]), pa.array(["removed", "Ada"]))
    assert dict(PATIENTS.map_of(column).identifiers) == {PATIENTS.of("Ada"): "Ada"}
