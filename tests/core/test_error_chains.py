"""Errors and all that they bring along: no value of a file, no password, whatever is wrong with the input."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.core.errors import InputError, ParameterError, SfumatoError, as_name, forgetting
from sfumato.data.hierarchies.hierarchy import Hierarchy
from sfumato.data.schema import Column, HierarchySpec, Schema
from sfumato.workflow.recipe import Recipe

CANARY = "Zylberquist"
PASSWORD = "HUNTER2"
URL = f"postgresql://anna:{PASSWORD}@host/db?options={PASSWORD}"
LATIN = f"{CANARY} é {PASSWORD}".encode("latin-1")


def held(error: BaseException | None, seen: set[int] | None = None) -> Iterator[str]:
    """Everything that an error and the errors behind it hold, as text."""
    known = set() if seen is None else seen
    if error is None or id(error) in known:
        return
    known.add(id(error))
    yield str(error)
    for value in (*error.args, *vars(error).values(), *(getattr(error, name, None) for name in ("object", "doc", "input"))):
        yield value.decode("latin-1") if isinstance(value, bytes) else repr(value)
    if callable(listed := getattr(error, "errors", None)):
        yield repr(listed())
    yield from held(error.__cause__, known)
    yield from held(error.__context__, known)


def failing(ask: Callable[[], object]) -> SfumatoError:
    with pytest.raises(SfumatoError) as raised:
        ask()
    return raised.value


def assert_tells_nothing(error: BaseException, *values: str) -> None:
    for text in held(error):
        for value in values or (CANARY, PASSWORD):
            assert value not in text, f"{type(error).__name__} holds it"


def recipe(**changes: Any) -> dict[str, Any]:
    return {"data": "a.csv", "schema": "a.toml", "guarantee": [{"name": "KAnonymity", "k": 5}], **changes}


WRONG = {
    "an unknown key": recipe(datbase=URL),
    "a key that is the address": recipe(**{URL: 1}),
    "a wrong type": recipe(table=[URL]),
    "an address as a method": recipe(method={"name": URL}),
    "an address as a parameter": recipe(method={"name": "Mdav", "k": URL}),
    "a parameter named so": recipe(method={"name": "Mdav", "k": 5, URL: 5}),
    "an address as a guarantee": recipe(guarantee=[{"name": URL}]),
    "an address as a number": recipe(guarantee=[{"name": "KAnonymity", "k": URL}]),
    "an address as an attack": recipe(checks={"attacks": [URL]}),
    "an address as a measure": recipe(checks={"utility": [URL], "risk": [{"name": URL}]}),
    "an address to write to": recipe(write={"too": URL}),
    "an address below a place": recipe(write={"to": "x.duckdb", URL: 1}),
    "an answer": recipe(answers={URL: True}),
    "a data source as words": recipe(method={"name": "Mdav", "k": f"host=h password={PASSWORD}"}),
}


@pytest.mark.parametrize("content", WRONG.values(), ids=list(WRONG))
def test_a_wrong_recipe_echoes_no_address_and_no_password(content: dict[str, Any]) -> None:
    assert_tells_nothing(failing(lambda: Recipe.parse(content)), PASSWORD)


BYTES: dict[str, Callable[[Path], Callable[[], object]]] = {
    "recipe": lambda path: lambda: Recipe.load(path),
    "schema": lambda path: lambda: Schema.load(path),
    "hierarchy": lambda path: lambda: Hierarchy.load(path),
    "signing key": lambda path: lambda: sf.wire.SigningKey.load(path),
    "owner key": lambda path: lambda: sf.wire.OwnerKey.load(path),
}


@pytest.mark.parametrize("kind", BYTES)
def test_a_file_that_is_not_utf8_leaves_no_bytes_in_the_chain(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "file.toml"
    path.write_bytes(b'dataset = "' + LATIN + b'"\n')
    path.chmod(0o600)
    error = failing(BYTES[kind](path))
    assert error.__cause__ is None and error.__context__ is None
    assert_tells_nothing(error)


def _gz(content: bytes) -> bytes:
    return gzip.compress(content)[:-9]


SCHEMA = Schema(dataset="d", columns={"a": Column(role="quasi", type="integer"), "b": Column(role="plain", type="date")})
FILES: dict[str, bytes] = {
    "cut.parquet": b"PAR1" + LATIN,
    "cut.arrow": b"ARROW1" + LATIN,
    "uneven.csv": f"a,b\n1,2,3,{CANARY}\n".encode(),
    "types.csv": f"a,b\n{CANARY},{CANARY}\n".encode(),
    "latin.csv": b"a,b\n1," + LATIN + b"\xff\xfe\x00\n",
    "quotes.csv": f'a,b\n"{CANARY},1\n'.encode(),
    "cut.csv.gz": _gz(f"a,b\n1,{CANARY}\n".encode() * 1000),
    "cut.xlsx": b"PK\x03\x04" + LATIN,
    "cut.sav": b"$FL2" + LATIN,
    "cut.dta": LATIN,
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("schema", [None, SCHEMA], ids=["without schema", "with schema"])
def test_a_damaged_table_leaves_no_value_in_the_chain(name: str, schema: Schema | None, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(FILES[name])
    try:
        sf.read(tmp_path / name, schema)
    except SfumatoError as error:
        assert_tells_nothing(error)


def test_typed_columns_with_wrong_values_leave_none_in_the_chain(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [CANARY], "b": [CANARY]}), tmp_path / "t.parquet")
    assert_tells_nothing(failing(lambda: sf.read(tmp_path / "t.parquet", SCHEMA)))


@pytest.mark.parametrize(
    "text",
    [
        f'name = "{CANARY}',
        f"{CANARY}",
        f'[columns.a]\nrole = "{CANARY}"',
        f'a = 1\n"{CANARY}" = 2\n"{CANARY}" = 3',
        "a = " + "[" * 3000,
    ],
    ids=["open", "no value", "role", "twice", "deep"],
)
def test_a_schema_that_is_wrong_leaves_no_value_in_the_chain(text: str, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(text)
    error = failing(lambda: Schema.load(tmp_path / "s.toml"))
    assert error.__cause__ is None and error.__context__ is None
    if f'"{CANARY}" =' not in text:  # an unknown key is named: whoever edits the schema has to find it
        assert_tells_nothing(error)


@pytest.mark.parametrize("content", [LATIN, f'{{"a": "{CANARY}"'.encode(), json.dumps({"claims": CANARY}).encode()])
def test_a_certificate_that_is_wrong_leaves_no_value_in_the_chain(content: bytes, tmp_path: Path) -> None:
    public = tmp_path / "public"
    public.mkdir()
    (public / "certificate.json").write_bytes(content)
    assert CANARY not in sf.verify(tmp_path).explain()
    from sfumato.workflow.verifying.verify import open_release

    with pytest.raises(SfumatoError) as raised, open_release(tmp_path):
        pass
    assert_tells_nothing(raised.value)


def test_protecting_what_cannot_be_protected_leaves_no_value_in_the_chain() -> None:
    hierarchy = HierarchySpec(intervals=(10,))
    schema = Schema(dataset="d", columns={"a": Column(role="quasi", type="string", hierarchy=hierarchy)})
    assert_tells_nothing(failing(lambda: sf.protect(sf.read(pa.table({"a": [CANARY] * 9}), schema), sf.KAnonymity(2))))


def test_neighbours_that_are_no_json_leave_no_value_in_the_chain() -> None:
    from sfumato.workflow.refuting.refute import refute_target

    assert_tells_nothing(failing(lambda: refute_target("module:function", epsilon=1, neighbours=f"[[{CANARY}]")))


def test_what_is_forgotten() -> None:
    with pytest.raises(InputError) as raised, forgetting():
        try:
            LATIN.decode()
        except UnicodeDecodeError:
            raise InputError("not UTF-8") from None
    assert raised.value.__context__ is None


def test_a_stop_is_not_forgotten() -> None:
    with pytest.raises(InputError) as raised, forgetting():
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise InputError("a library made an error of it") from None
    assert isinstance(raised.value.__context__, KeyboardInterrupt)


def test_names_are_shown_and_addresses_are_not() -> None:
    assert as_name("Latice") == "'Latice'"
    assert PASSWORD not in as_name(URL) and PASSWORD not in str(InputError(f"cannot open '{URL}'"))
    assert "postgresql://host:5432/db" in str(InputError("cannot open postgresql://host:5432/db"))


def test_errors_are_public_and_are_those_that_python_knows() -> None:
    assert sf.errors.ParameterError is ParameterError
    with pytest.raises(ValueError, match="k must be"):
        sf.KAnonymity(0)
    people = sf.read(pa.table({"age": [1, 2]}), sf.Schema.of(quasi=["age"]))
    with pytest.raises(KeyError) as refusal:
        people.schema.require_columns(["height"])
    assert str(refusal.value).startswith("schema '") and "'age'" in str(refusal.value)


@pytest.mark.parametrize(
    "written", ["'tiger lily'", '"tiger lily"', "'it\\'s lily'", "tiger\\ lily", "'tiger lily", "tiger_lily", "'tiger\nlily'"]
)
def test_a_password_is_left_out_whole(written: str) -> None:
    said = str(SfumatoError(f"cannot connect with host=h password = {written}"))
    assert said.startswith("cannot connect with host=h password = …") and "lily" not in said and "tiger" not in said


def test_what_follows_a_password_is_kept() -> None:
    assert str(SfumatoError("password='a b' host=h; ask them")) == "password=… host=h; ask them"
