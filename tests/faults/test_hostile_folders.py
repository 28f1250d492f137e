"""`verify` on folders that somebody prepared: a verdict every time, never a crash, never a look outside."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.core.errors import SourceError
from sfumato.data.writers import write_file
from tests.faults.forging import MARK, change, refused, restate
from tests.workflow.people import people


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("made")
    os.environ.setdefault("SFUMATO_KEY", str(place / "owner.key"))
    wanted = [sf.KAnonymity(5), sf.DistinctLDiversity(2, "disease")]
    sf.protect(people(300), wanted, sf.Lattice(suppression=0.1)).save(place / "out")
    return place / "out"


@pytest.fixture
def public(made: Path, tmp_path: Path) -> Path:
    (tmp_path / "outside.txt").write_text(MARK)
    shutil.copytree(made, tmp_path / "out")
    return tmp_path / "out" / "public"


def test_the_untouched_folder_holds(public: Path) -> None:
    assert sf.verify(public.parent).holds
    assert sf.verify(public).holds


def test_a_folder_that_is_not_there_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        sf.verify(tmp_path / "nothing")


def test_an_empty_folder_is_no_release(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="is no release folder"):
        sf.verify(tmp_path)
    (tmp_path / "public").mkdir()
    assert not sf.verify(tmp_path).holds


def test_a_changed_file_is_noticed(public: Path) -> None:
    (public / "card.html").write_text("<p>better numbers</p>")
    assert "digest" in refused(public)


def test_a_missing_and_an_added_file_are_noticed(public: Path) -> None:
    (public / "names.csv").write_text("name\nAda\n")
    assert "does not name" in refused(public)
    (public / "names.csv").unlink()
    (public / "schema.toml").unlink()
    assert "missing" in refused(public)


@pytest.mark.parametrize("name", ["data.parquet", "certificate.json", "schema.toml", "signature.json"])
def test_links_are_refused(public: Path, tmp_path: Path, name: str) -> None:
    (public / name).unlink(missing_ok=True)
    os.symlink(tmp_path / "outside.txt", public / name)
    assert "not a plain file" in refused(public)


def test_a_linked_public_folder_is_refused(public: Path, tmp_path: Path) -> None:
    shutil.move(public, tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", public)
    refused(public)


def test_folders_pipes_and_devices_are_refused(public: Path) -> None:
    (public / "sub").mkdir()
    refused(public)
    (public / "sub").rmdir()
    os.mkfifo(public / "pipe")
    assert "not a plain file" in refused(public)
    (public / "pipe").unlink()
    (public / "data.parquet").unlink()
    os.mkfifo(public / "data.parquet")
    refused(public)


@pytest.mark.parametrize("name", ["../outside.txt", "/etc/hostname", "a/b", "..", "", "x\x1b[2J", "\u202egpj.exe", "a" * 300])
def test_names_that_lead_elsewhere_are_refused(public: Path, name: str) -> None:
    def edit(certificate: dict[str, Any]) -> None:
        certificate["files"][name] = {"sha256": "0" * 64, "bytes": 14, "rows": 1}

    change(public, edit)
    refused(public)


def test_file_names_with_control_characters_are_refused(public: Path) -> None:
    (public / "x\x1b[31mred").write_text("x")
    refused(public)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"format": 1}', b"{}" * 3, b'{"a": NaN}', b"[" * 100_000, b'{"a":' * 5_000 + b"1"],
)
def test_malformed_certificates_are_refused(public: Path, content: bytes) -> None:
    (public / "certificate.json").write_bytes(content)
    refused(public)


def test_deep_json_inside_a_certificate_is_refused(public: Path) -> None:
    deep: Any = 1
    for _ in range(500):
        deep = [deep]
    change(public, lambda certificate: certificate.update(method={"name": deep}))
    assert "deep" in refused(public)


def test_repeated_keys_are_refused(public: Path) -> None:
    text = (public / "certificate.json").read_text()
    (public / "certificate.json").write_text(text.replace('"private"', '"private": false, "private"', 1))
    refused(public, "not valid JSON")


FORM = "does not have the form of a certificate"
UNMEASURABLE = "the claim cannot be measured"
WORDS = "words do not say what its parameters mean"
TOO_LARGE = "too large to be measured"
OTHER_COLUMNS = "does not have the columns"


@pytest.mark.parametrize(
    ("reason", "edit"),
    [
        ("makes no claim", lambda c: c.update(claims=[])),
        (FORM, lambda c: c.update(claims="all")),
        (FORM, lambda c: c.update(claims=[1])),
        (FORM, lambda c: c["claims"][0].update(holds="yes")),
        (FORM, lambda c: c["claims"][0].update(parameters=[5])),
        (UNMEASURABLE, lambda c: c["claims"][0].update(parameters={"k": "five"})),
        (TOO_LARGE, lambda c: c["claims"][0].update(parameters={"k": 10**400})),
        (WORDS, lambda c: c["claims"][0].update(parameters={"k": 5, "knowledge": {"attributes": ["nothing"]}})),
        (UNMEASURABLE, lambda c: c["claims"][0].update(guarantee="os.system")),
        (UNMEASURABLE, lambda c: c["claims"][0].update(guarantee="Release")),
        ("another number", lambda c: c["claims"][0].update(measured=500)),
        (TOO_LARGE, lambda c: c["claims"][0].update(measured=10**400)),
        ("another number", lambda c: c["claims"][0].update(measured=None)),
        ("another number", lambda c: c["claims"][0].update(measured="infinite")),
        (WORDS, lambda c: c["claims"][0].update(promised="nobody can ever be found")),
        (FORM, lambda c: c["claims"][0].update(extra=1)),
        (FORM, lambda c: c.update(files={})),
        (FORM, lambda c: c.update(files=[])),
        (FORM, lambda c: c["files"]["data.parquet"].update(rows="many")),
        ("as many rows", lambda c: c["files"]["data.parquet"].update(rows=1)),
        (FORM, lambda c: c["files"]["data.parquet"].update(bytes=-1)),
        ("said to be larger", lambda c: c["files"]["data.parquet"].update(bytes=10**30)),
        (FORM, lambda c: c["files"]["data.parquet"].update(sha256="zz")),
        (FORM, lambda c: c.update(schema=[])),
        (OTHER_COLUMNS, lambda c: (c["schema"].update(columns={}), c["transparency"].update(written_as={}))),
        ("schema cannot be read", lambda c: c["schema"]["columns"]["visits"].update(role="king")),
        ("says things about a column", lambda c: c["schema"]["columns"]["age"].update(bounds=[0, 1e18])),
        (
            "a hierarchy that no release has",
            lambda c: c["schema"]["columns"]["age"].update(hierarchy={"file": "../../outside.txt"}),
        ),
        ("a hierarchy that no release has", lambda c: c["schema"]["columns"]["age"].update(hierarchy={"file": "/etc/passwd"})),
        (
            "a hierarchy that no release has",
            lambda c: c["schema"]["columns"]["age"].update(hierarchy={"mask": "right", "width": 10**12}),
        ),
        ("a hierarchy that no release has", lambda c: c["schema"]["columns"]["disease"].update(hierarchy={"mask": "right"})),
        ("unknown parts", lambda c: c["schema"].update(folder="/etc")),
        ("unknown format", lambda c: c.update(format="sfumato-certificate-99")),
        (FORM, lambda c: c.pop("versions")),
        (FORM, lambda c: c.update(surprise=1)),
        (FORM, lambda c: c.update(dataset="x" * 100_000)),
    ],
)
def test_certificates_with_wrong_content_are_refused(public: Path, reason: str, edit: Callable[[dict[str, Any]], Any]) -> None:
    change(public, lambda certificate: (edit(certificate), None)[1])
    refused(public, reason)


def test_a_claim_that_the_data_do_not_keep_is_found(public: Path) -> None:
    def stronger(certificate: dict[str, Any]) -> None:
        claim = certificate["claims"][0]
        claim.update(parameters={"k": 300}, promised=sf.KAnonymity(300).claim(), measured=300)

    change(public, stronger)
    assert "breaks it" in refused(public)


def test_data_that_were_exchanged_together_with_the_digest_are_measured(public: Path) -> None:
    write_file(pq.read_table(public / "data.parquet").slice(0, 2), public / "data.parquet")
    restate(public, "data.parquet", rows=2)
    refused(public, "breaks it")


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"\0" * 100 + b"PAR1", os.urandom(5000)])
def test_data_files_that_are_no_data_are_refused(public: Path, content: bytes) -> None:
    (public / "data.parquet").write_bytes(content)
    restate(public, "data.parquet")
    refused(public)


def test_a_cut_data_file_is_refused(public: Path) -> None:
    whole = (public / "data.parquet").read_bytes()
    for length in (len(whole) // 3, len(whole) - 5):
        (public / "data.parquet").write_bytes(whole[:length])
        restate(public, "data.parquet")
        refused(public)


@pytest.mark.slow
def test_a_decompression_bomb_is_not_unpacked(public: Path) -> None:
    """A few kilobytes that would unpack into many gigabytes."""
    schema = pq.read_schema(public / "data.parquet")
    one = pa.table({field.name: pa.array(["a" * 10_000_000]) for field in schema})
    with pq.ParquetWriter(public / "data.parquet", one.schema, compression="zstd", use_dictionary=False) as writer:
        for _ in range(4):
            writer.write_table(pa.concat_tables([one] * 4))
    small = (public / "data.parquet").stat().st_size
    assert small < 2_000_000
    restate(public, "data.parquet")
    refused(public)


def test_a_signature_that_is_none_is_refused(public: Path) -> None:
    for content in ("[]", "{}", '{"public_key": 1, "signature": 2}', '{"public_key": "ed25519:AAAA", "signature": "AAAA"}'):
        (public / "signature.json").write_text(content)
        assert "signature" in refused(public)


def test_too_many_files_are_refused(public: Path) -> None:
    for number in range(300):
        (public / f"f{number}.txt").touch()
    refused(public)


def test_attacks_on_a_hostile_folder_are_an_input_error(public: Path) -> None:
    from sfumato.core.errors import InputError
    from tests.workflow.attacked import attack_folder

    (public / "certificate.json").write_text("{}")
    with pytest.raises(InputError):
        attack_folder(public.parent)
