"""`verify` on folders that somebody prepared: a verdict every time, never a crash, never a look outside."""

from __future__ import annotations

import hashlib
import json
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
from tests.workflow.people import people

MARK = "OUTSIDE-SECRET"


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


def refused(public: Path) -> str:
    """The verdict must be a failure, in words that repeat nothing from outside."""
    found = sf.verify(public.parent)
    assert not found.holds, found.explain()
    text = found.explain() + repr(found) + json.dumps(found.to_mapping())
    assert MARK not in text
    assert "\x1b" not in text
    return text


def change(public: Path, edit: Callable[[dict[str, Any]], Any]) -> None:
    path = public / "certificate.json"
    content = json.loads(path.read_text())
    replaced = edit(content)
    path.write_text(json.dumps(content if replaced is None else replaced))


def restate(public: Path, name: str) -> None:
    """Make the certificate agree with a changed file, as a careful forger would."""
    content = (public / name).read_bytes()

    def edit(certificate: dict[str, Any]) -> None:
        certificate["files"][name] = {
            **certificate["files"].get(name, {}),
            "sha256": hashlib.sha256(content).hexdigest(),
            "bytes": len(content),
        }

    change(public, edit)


def test_the_untouched_folder_holds(public: Path) -> None:
    assert sf.verify(public.parent).holds
    assert sf.verify(public).holds


def test_a_folder_that_is_not_there_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        sf.verify(tmp_path / "nothing")


def test_an_empty_folder_claims_nothing(tmp_path: Path) -> None:
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
    refused(public)


@pytest.mark.parametrize(
    "edit",
    [
        lambda c: c.update(claims=[]),
        lambda c: c.update(claims="all"),
        lambda c: c.update(claims=[1]),
        lambda c: c["claims"][0].update(holds="yes"),
        lambda c: c["claims"][0].update(parameters=[5]),
        lambda c: c["claims"][0].update(parameters={"k": "five"}),
        lambda c: c["claims"][0].update(parameters={"k": 10**400}),
        lambda c: c["claims"][0].update(parameters={"k": 5, "knowledge": {"attributes": ["nothing"]}}),
        lambda c: c["claims"][0].update(guarantee="os.system"),
        lambda c: c["claims"][0].update(guarantee="Release"),
        lambda c: c["claims"][0].update(measured=500),
        lambda c: c["claims"][0].update(measured="infinite"),
        lambda c: c["claims"][0].update(promised="nobody can ever be found"),
        lambda c: c["claims"][0].update(extra=1),
        lambda c: c.update(files={}),
        lambda c: c.update(files=[]),
        lambda c: c["files"]["data.parquet"].update(rows="many"),
        lambda c: c["files"]["data.parquet"].update(rows=1),
        lambda c: c["files"]["data.parquet"].update(bytes=-1),
        lambda c: c["files"]["data.parquet"].update(bytes=10**30),
        lambda c: c["files"]["data.parquet"].update(sha256="zz"),
        lambda c: c.update(schema=[]),
        lambda c: c.update(schema={"columns": {}}),
        lambda c: c["schema"]["columns"]["age"].update(role="king"),
        lambda c: c["schema"]["columns"]["age"].update(bounds=[0, 1e18]),
        lambda c: c["schema"]["columns"]["age"].update(hierarchy={"file": "../../outside.txt"}),
        lambda c: c["schema"]["columns"]["age"].update(hierarchy={"file": "/etc/passwd"}),
        lambda c: c["schema"]["columns"]["age"].update(hierarchy={"mask": "right", "width": 10**12}),
        lambda c: c["schema"]["columns"]["disease"].update(hierarchy={"mask": "right"}),
        lambda c: c["schema"].update(folder="/etc"),
        lambda c: c.update(format="sfumato-certificate-99"),
        lambda c: c.pop("versions"),
        lambda c: c.update(surprise=1),
        lambda c: c.update(dataset="x" * 100_000),
    ],
)
def test_certificates_with_wrong_content_are_refused(public: Path, edit: Callable[[dict[str, Any]], Any]) -> None:
    change(public, lambda certificate: (edit(certificate), None)[1])
    refused(public)


def test_a_claim_that_the_data_do_not_keep_is_found(public: Path) -> None:
    def stronger(certificate: dict[str, Any]) -> None:
        claim = certificate["claims"][0]
        claim.update(parameters={"k": 300}, promised=sf.KAnonymity(300).claim(), measured=300)

    change(public, stronger)
    assert "breaks it" in refused(public)


def test_data_that_were_exchanged_together_with_the_digest_are_measured(public: Path) -> None:
    table = pq.read_table(public / "data.parquet")
    pq.write_table(
        pa.concat_tables([table.slice(0, 1), table.slice(1).slice(0, table.num_rows - 1)]).slice(0, 2), public / "data.parquet"
    )
    restate(public, "data.parquet")
    change(public, lambda c: c["files"]["data.parquet"].update(rows=2))
    assert "breaks it" in refused(public)


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
    from sfumato.workflow.attacking import attack_folder

    (public / "certificate.json").write_text("{}")
    with pytest.raises(InputError):
        attack_folder(public.parent)
