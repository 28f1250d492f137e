"""Key files belong to their owner alone, appear whole, and are never overwritten."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.core.errors import InputError, SfumatoError, SourceError
from sfumato.core.files import read_private, write_private
from sfumato.core.randomness import StreamRandomness
from sfumato.wire.keys import OwnerKey, default_owner_key_path, load_or_create_owner_key
from sfumato.wire.signatures import SigningKey


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[OwnerKey, SigningKey])
def kind(request: pytest.FixtureRequest) -> type[OwnerKey] | type[SigningKey]:
    return request.param  # type: ignore[no-any-return]


def test_a_saved_key_is_private_and_comes_back(tmp_path: Path, kind: type[OwnerKey] | type[SigningKey]) -> None:
    previous = os.umask(0)
    try:
        key = kind.generate()
        key.save(tmp_path / "key")
    finally:
        os.umask(previous)
    again = kind.load(tmp_path / "key")
    assert mode(tmp_path / "key") == 0o600 and [path.name for path in tmp_path.iterdir()] == ["key"]
    if isinstance(key, OwnerKey):
        assert again == key
    else:
        assert isinstance(again, SigningKey) and again.public == key.public


def test_a_key_is_never_overwritten(tmp_path: Path, kind: type[OwnerKey] | type[SigningKey]) -> None:
    kind.generate().save(tmp_path / "key")
    before = (tmp_path / "key").read_bytes()
    with pytest.raises(InputError, match="not overwritten"):
        kind.generate().save(tmp_path / "key")
    assert (tmp_path / "key").read_bytes() == before and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("loose", [0o640, 0o604, 0o620, 0o660, 0o777, 0o610])
def test_a_key_that_others_may_use_is_refused(tmp_path: Path, kind: type[OwnerKey] | type[SigningKey], loose: int) -> None:
    kind.generate().save(tmp_path / "key")
    (tmp_path / "key").chmod(loose)
    with pytest.raises(InputError, match="chmod 600"):
        kind.load(tmp_path / "key")


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"sfumato-owner-key-1 00", b"x" * 100_000, b"-----BEGIN"])
def test_what_is_no_key_is_refused(tmp_path: Path, kind: type[OwnerKey] | type[SigningKey], content: bytes) -> None:
    write_private(tmp_path / "key", content)
    with pytest.raises(SfumatoError) as caught:
        kind.load(tmp_path / "key")
    assert caught.value.exit_code == 2


def test_links_pipes_and_absent_files_are_refused(tmp_path: Path) -> None:
    OwnerKey.generate().save(tmp_path / "key")
    (tmp_path / "link").symlink_to(tmp_path / "key")
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name, reason in (("link", "symbolic link"), ("pipe", "plain file"), ("absent", "No such file")):
        with pytest.raises(SourceError, match=reason):
            read_private(tmp_path / name)
    with pytest.raises(SourceError, match="cannot be written"):
        write_private(tmp_path / "absent" / "key", b"")


def test_a_private_file_is_replaced_whole_on_request(tmp_path: Path) -> None:
    write_private(tmp_path / "map", b"old")
    write_private(tmp_path / "map", b"new", replace=True)
    assert read_private(tmp_path / "map") == b"new" and mode(tmp_path / "map") == 0o600
    assert len(list(tmp_path.iterdir())) == 1


def test_a_key_is_never_printed() -> None:
    key, signing = OwnerKey(b"\xaa" * 32), SigningKey.generate()
    for text in (repr(key), str(key), repr(signing), str(signing)):
        assert "aaaa" not in text and "\\xaa" not in text and "PRIVATE" not in text
    with pytest.raises(InputError) as caught:
        OwnerKey(b"\xaa" * 31)
    assert "aa" not in str(caught.value)


def test_purposes_give_unrelated_keys() -> None:
    key = OwnerKey.generate(StreamRandomness(1))
    assert key == OwnerKey.generate(StreamRandomness(1))
    derived = {key.derive(purpose) for purpose in ("a", "b", "fingerprint", "pseudonyms")}
    assert len(derived) == 4 and all(len(each) == 32 for each in derived) and key.secret not in derived


def test_the_place_of_the_owner_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SFUMATO_KEY", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    assert default_owner_key_path() == tmp_path / "home" / ".config" / "sfumato" / "owner.key"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert default_owner_key_path() == tmp_path / "config" / "sfumato" / "owner.key"
    made = load_or_create_owner_key()
    assert load_or_create_owner_key() == made and mode(tmp_path / "config" / "sfumato") == 0o700
    monkeypatch.setenv("SFUMATO_KEY", str(tmp_path / "named.key"))
    assert load_or_create_owner_key() != made and (tmp_path / "named.key").is_file()
    assert load_or_create_owner_key(tmp_path / "config" / "sfumato" / "owner.key") == made


def test_a_damaged_owner_key_is_not_replaced(tmp_path: Path) -> None:
    write_private(tmp_path / "key", b"")
    with pytest.raises(InputError, match="damaged"):
        load_or_create_owner_key(tmp_path / "key")
    assert (tmp_path / "key").read_bytes() == b""


def test_processes_that_make_the_key_at_once_share_it(tmp_path: Path) -> None:
    script = "import sys; from sfumato.wire.keys import load_or_create_owner_key as k; print(k(sys.argv[1]).derive('x'))"
    command = [sys.executable, "-c", script, str(tmp_path / "new" / "owner.key")]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert len({process.communicate(timeout=60)[0] for process in processes}) == 1
    assert {process.returncode for process in processes} == {0}
