"""Folders whose digests agree and whose content deceives: each is refused, for the right reason and with exit code 1.

The forger knows the format: after every change the certificate is restated and written as releases are.
"""

from __future__ import annotations

import datetime
import decimal
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.cli.main import run
from sfumato.core.certificate import plain
from sfumato.core.declared import parameters
from sfumato.core.errors import SfumatoError
from sfumato.data.schema import Column
from sfumato.data.writers import clean, write_file
from sfumato.dp import PrivateHistogram, Session
from sfumato.ledger import Ledger, LossAmount
from sfumato.wire.fingerprint import FORMAT as FINGERPRINT
from sfumato.workflow.contents.base import DRAFT
from sfumato.workflow.earlier.comparing import NOTHING_EARLIER
from sfumato.workflow.publishing.publish import publish
from sfumato.workflow.publishing.released_form import released_form
from sfumato.workflow.publishing.saving import pretty
from sfumato.workflow.verifying.folder_rows import DATA_FILES
from sfumato.workflow.verifying.stated.transparency import KNOWS_THE_METHOD
from tests.faults.forging import change, claim, refused, restate, rewrite
from tests.workflow.people import people

Forge = Callable[[Path], None]
OTHER_BYTES = "its rows give other bytes"
WORDS = "words do not say what its parameters mean"


def made_folders(place: Path) -> None:
    """Small releases of every kind, made by the house."""
    rows = pa.table({"age": [5] * 5 + [7] * 5, "disease": ["flu", "cold"] * 5, "cost": [0.1, 2.5] * 5})
    described = sf.Schema(
        dataset="small",
        columns={"age": Column(role="quasi", type="integer"), "disease": Column(role="sensitive"), "cost": Column(type="number")},
    )
    small = sf.protect(sf.read(rows, described), sf.KAnonymity(5), sf.Lattice())
    small.save(place / "csv", "csv")
    small.save(place / "parquet")
    several = [sf.KAnonymity(3), sf.TCloseness(0.9, "disease", reference="released")]
    unit = Column(role="unit", type="string", pseudonym=True)
    sf.protect(people(120, name=unit), several, sf.Lattice(suppression=0.3)).save(place / "unit", "csv")
    hidden = Column(role="unit", type="string")
    sf.protect(people(120, name=hidden), sf.KAnonymity(3), sf.Lattice(suppression=0.3)).save(place / "dropped", "csv")
    sf.protect(people(120), sf.KAnonymity(3), sf.Lattice(suppression=0.3)).save(place / "records", "csv")
    sf.protect(people(120), sf.KAnonymity(3), sf.Lattice(suppression=0.3), seed=1).save(place / "seeded", "csv")
    book = str(place / "ledger.db")
    with Ledger.open(book) as ledger:
        ledger.grant("clinic", "ann", LossAmount.pure(9))
    domain = Column(type="string", domain=("f", "m"))
    session = Session(people(60, sex=domain), ledger=book, analyst="ann")
    publish(session.release(PrivateHistogram(("sex",), epsilon="0.5"))).save(place / "histogram", "csv")
    publish(session.sql("SELECT COUNT(*) AS n FROM people", epsilon="1").outcome).save(place / "answer", "csv")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("made")
    os.environ.setdefault("SFUMATO_KEY", str(place / "owner.key"))
    made_folders(place)
    return place


def copied(made: Path, tmp_path: Path, base: str) -> Path:
    shutil.copytree(made / base, tmp_path / "out")
    return tmp_path / "out" / "public"


@pytest.mark.parametrize(
    ("base", "verdict"),
    [
        ("csv", "keeps"),
        ("parquet", "keeps"),
        ("unit", "keeps"),
        ("dropped", "keeps what could be checked"),
        ("seeded", "demonstration"),
        ("histogram", "rests on its maker"),
        ("answer", "rests on its maker"),
    ],
)
def test_untouched_folders_have_their_verdict(made: Path, base: str, verdict: str) -> None:
    found = sf.verify(made / base)
    assert found.verdict == verdict, found.explain()


def test_a_ledger_is_looked_into_even_where_no_claim_needs_it(made: Path, tmp_path: Path) -> None:
    [found] = [finding for finding in sf.verify(made / "csv", ledger=made / "ledger.db").findings if finding.check == "ledger"]
    assert found.passed is None and "not used" in found.text
    (tmp_path / "none.db").write_text("no ledger")
    with pytest.raises(SfumatoError):
        sf.verify(made / "csv", ledger=tmp_path / "none.db")
    public = copied(made, tmp_path, "csv")
    change(public, lambda c: c.update(ledger="0" * 64))
    assert sf.verify(public, ledger=made / "ledger.db").verdict == "does not keep"


def test_a_promise_about_nobody_is_called_that(made: Path, tmp_path: Path) -> None:
    public = copied(made, tmp_path, "csv")
    rewrite(public, "data.csv", (public / "data.csv").read_text().split("\n")[0] + "\n", rows=0)
    assert "no rows: the promise is about nobody" in sf.verify(public).explain()


# --- the rows, in CSV


def cells(*ages: str) -> Forge:
    """The first five ages of the small table, written in other ways."""

    def forge(public: Path) -> None:
        lines = (public / "data.csv").read_text().split("\n")
        for number, age in enumerate(ages, 1):
            lines[number] = age + lines[number][1:]
        rewrite(public, "data.csv", "\n".join(lines))

    return forge


def text(edit: Callable[[str], str]) -> Forge:
    def forge(public: Path) -> None:
        content = (public / "data.csv").read_bytes().decode()
        changed = edit(content)
        assert changed != content
        rewrite(public, "data.csv", changed)

    return forge


def shuffled(content: str) -> str:
    lines = content.split("\n")
    return "\n".join([lines[0], *lines[5:-1], *lines[1:5], ""])


CSV: dict[str, tuple[Forge, str]] = {
    "five-ways-to-write-five": (cells("5", "05", "+5", "5.0", "005"), OTHER_BYTES),
    "one-leading-zero": (cells("05"), OTHER_BYTES),
    "a-space-behind": (cells("5 "), OTHER_BYTES),
    "quoted-number": (cells('"5"'), OTHER_BYTES),
    "decimals-apart-by-1e-20": (text(lambda t: t.replace("0.1\n", "0.10000000000000000001\n", 1)), OTHER_BYTES),
    "exponent": (text(lambda t: t.replace("2.5\n", "25e-1\n", 1)), OTHER_BYTES),
    "text-without-quotes": (
        text(lambda t: t.replace('"flu"', "flu", 1) if '"flu"' in t else t.replace("flu", '"flu"', 1)),
        OTHER_BYTES,
    ),
    "crlf": (text(lambda t: t.replace("\n", "\r\n")), OTHER_BYTES),
    "byte-order-mark": (text(lambda t: "\ufeff" + t), OTHER_BYTES),
    "no-last-line-end": (text(lambda t: t[:-1]), OTHER_BYTES),
    "empty-line": (text(lambda t: t + "\n"), OTHER_BYTES),
    "empty-lines-first": (text(lambda t: "\n\n" + t), OTHER_BYTES),
    "shuffled-rows": (text(shuffled), OTHER_BYTES),
    "semicolons": (text(lambda t: t.replace(",", ";")), "columns that the certificate describes"),
    "other-column-name": (text(lambda t: t.replace("age", "years", 1)), "columns that the certificate describes"),
    "another-column": (
        text(lambda t: "\n".join(line + (",x" if number else ",name") for number, line in enumerate(t[:-1].split("\n"))) + "\n"),
        "columns that the certificate describes",
    ),
}


@pytest.mark.parametrize("name", CSV)
def test_a_text_file_in_another_form_is_refused(made: Path, tmp_path: Path, name: str) -> None:
    forge, reason = CSV[name]
    public = copied(made, tmp_path, "csv")
    forge(public)
    refused(public, reason)


# --- the rows, in Parquet


def parquet(edit: Callable[[pa.Table], pa.Table], **options: Any) -> Forge:
    def forge(public: Path) -> None:
        rows = edit(pq.read_table(public / "data.parquet"))
        pq.write_table(rows, public / "data.parquet", **{"compression": "zstd", **options})
        restate(public, "data.parquet", rows=rows.num_rows)

    return forge


def typed(name: str, values: pa.Array) -> Callable[[pa.Table], pa.Table]:
    def edit(rows: pa.Table) -> pa.Table:
        return rows.set_column(rows.column_names.index(name), name, values)

    return edit


def unused_entry(rows: pa.Table) -> pa.Table:
    """A dictionary that still names whoever was suppressed."""
    column = rows.column("disease").combine_chunks()
    words = pa.concat_arrays([column.dictionary, pa.array(["HIV of Ada Lovelace"])])
    return typed("disease", pa.DictionaryArray.from_arrays(column.indices, words))(rows)


def between_footer_and_columns(public: Path) -> None:
    content = (public / "data.parquet").read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    place = len(content) - 8 - length
    rewrite(public, "data.parquet", content[:place] + b"name;HIV\nAda;yes\n" + content[place:])


def under(kind: str, values: pa.Array) -> Forge:
    """Ages as the house would write them, below a type that reads several of them as one."""

    def forge(public: Path) -> None:
        write_file(released_form(typed("age", values)(pq.read_table(public / "data.parquet"))), public / "data.parquet")
        restate(public, "data.parquet")
        change(public, lambda c: c["schema"]["columns"]["age"].update(type=kind))
        described = (public / "schema.toml").read_text()
        rewrite(public, "schema.toml", described.replace('type = "integer"', f'type = "{kind}"', 1))

    return forge


NANOSECONDS = pa.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], pa.timestamp("ns"))
DECIMALS = pa.array([decimal.Decimal(1) + decimal.Decimal(n).scaleb(-20) for n in range(10)], pa.decimal128(38, 20))
OTHER_TYPES = "types that no release has"
OTHER_VALUES = "in another form than those that were measured"
FIVES = pa.array(["5", "05", "+5", "005", "0005", "7", "07", "+7", "007", "0007"]).dictionary_encode()
TRUTHS = pa.array(["1", "true", "TRUE", "True", "yes", "0", "false", "FALSE", "no", "False"]).dictionary_encode()

PARQUET: dict[str, tuple[Forge, str]] = {
    "metadata": (parquet(lambda rows: rows.replace_schema_metadata({"originals": "Ada;HIV"})), OTHER_BYTES),
    "pandas-metadata": (parquet(lambda rows: rows.replace_schema_metadata({"pandas": "{}"})), OTHER_BYTES),
    "column-metadata": (
        parquet(lambda rows: rows.cast(pa.schema([f.with_metadata({"original": "Ada"}) for f in rows.schema]))),
        OTHER_BYTES,
    ),
    "unused-dictionary-entry": (parquet(unused_entry), OTHER_BYTES),
    "bytes-before-the-footer": (between_footer_and_columns, OTHER_BYTES),
    "other-compression": (parquet(lambda rows: rows, compression="snappy"), OTHER_BYTES),
    "other-row-groups": (parquet(lambda rows: rows, row_group_size=3), OTHER_BYTES),
    "page-index": (parquet(lambda rows: rows, write_page_index=True), OTHER_BYTES),
    "shuffled-rows": (parquet(lambda rows: rows.take([9, 1, 2, 3, 4, 5, 6, 7, 8, 0])), "not in the order of their content"),
    "narrow-integers": (parquet(lambda rows: typed("age", rows.column("age").cast(pa.int32()))(rows)), OTHER_TYPES),
    "plain-text": (parquet(lambda rows: typed("disease", rows.column("disease").cast(pa.string()))(rows)), OTHER_TYPES),
    "decimals-apart-by-1e-20": (parquet(typed("cost", DECIMALS)), OTHER_TYPES),
    "nanoseconds": (parquet(typed("cost", NANOSECONDS)), "cannot be read"),
    "texts-as-integers": (under("integer", FIVES), OTHER_VALUES),
    "texts-as-truth-values": (under("boolean", TRUTHS), ""),
    "whole-numbers-as-floats": (under("number", pa.array([2**53, 2**53 + 1] * 5)), OTHER_VALUES),
    "unsigned-numbers-as-floats": (under("number", pa.array([2**63 + n for n in range(10)], pa.uint64())), OTHER_VALUES),
    "pandas-index": (
        parquet(
            lambda rows: rows.append_column("__index_level_0__", pa.array(["Ada"] * 10)).replace_schema_metadata(
                {"pandas": json.dumps({"index_columns": ["__index_level_0__"]})}
            )
        ),
        OTHER_TYPES,
    ),
}


@pytest.mark.parametrize("name", PARQUET)
def test_a_parquet_file_that_holds_something_else_is_refused(made: Path, tmp_path: Path, name: str) -> None:
    forge, reason = PARQUET[name]
    public = copied(made, tmp_path, "parquet")
    forge(public)
    refused(public, reason)


#: Refused too where the forger says that another version of the library wrote the file.
ELSEWHERE = {
    "metadata": "metadata that no release has",
    "pandas-metadata": "metadata that no release has",
    "column-metadata": "describes other columns",
    "unused-dictionary-entry": "entries that no row uses",
    "bytes-before-the-footer": "between its columns and its footer",
    "other-row-groups": "grouped in another way",
    "page-index": "without a gap",
    "shuffled-rows": "not in the order of their content",
    "narrow-integers": OTHER_TYPES,
}


PAYLOAD = b"Ada Lovelace;HIV\n" * 20


def length_of(number: int) -> bytes:
    return bytes([number & 127 | 128]) + length_of(number >> 7) if number > 127 else bytes([number])


def footer(edit: Callable[[bytes], bytes]) -> Forge:
    def forge(public: Path) -> None:
        content = (public / "data.parquet").read_bytes()
        start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        made = edit(content[start:-8])
        assert made != content[start:-8]
        rewrite(public, "data.parquet", content[:start] + made + len(made).to_bytes(4, "little") + b"PAR1")

    return forge


def longer_writer(old: bytes) -> bytes:
    start = old.index(b"parquet-cpp-arrow version")
    name = old[start : start + old[start - 1]]
    longer = name + b" " + PAYLOAD
    return old[: start - 1] + length_of(len(longer)) + longer + old[start + len(name) :]


def last_page(edit: Callable[[bytes, bytes], tuple[bytes, bytes]], *, unpacked: bool = True) -> Forge:
    """Another header or body of the last page; the sizes in the footer are made to fit. `unpacked` says that what grows counts
    as unpacked too, as headers do."""
    from sfumato.workflow.verifying.parquet.parts import struct_of

    def forge(public: Path) -> None:
        content = (public / "data.parquet").read_bytes()
        start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        told = pq.read_metadata(public / "data.parquet").row_group(0)
        last = told.column(told.num_columns - 1)
        fields, body = struct_of(content, last.data_page_offset)
        header, packed = edit(content[last.data_page_offset : body], content[body:start])
        old, new = zigzag(fields[3]), zigzag(len(packed))
        place = header.index(b"\x15" + old)
        header = header[: place + 1] + new + header[place + 1 + len(old) :]
        page = content[: last.data_page_offset] + header + packed
        grown = len(page) - start
        more = grown if unpacked else 0
        packed_before = sum(told.column(i).total_compressed_size for i in range(told.num_columns))
        foot = content[start:-8]
        for before, after in (
            ((last.total_uncompressed_size, last.total_compressed_size), (more, grown)),
            ((told.total_byte_size,), (more,)),
            ((packed_before,), (grown,)),
        ):
            known = b"".join(b"\x16" + zigzag(size) for size in before)
            place = foot.rindex(known)
            fit = b"".join(b"\x16" + zigzag(size + growth) for size, growth in zip(before, after, strict=True))
            foot = foot[:place] + fit + foot[place + len(known) :]
        rewrite(public, "data.parquet", page + foot + len(foot).to_bytes(4, "little") + b"PAR1")
        assert pq.read_table(public / "data.parquet").num_rows == 10

    return forge


#: A frame that every reader skips.
SKIPPED = b"\x50\x2a\x4d\x18\x10\0\0\0Ada Lovelace;HIV"


def foreign_header(header: bytes, packed: bytes) -> tuple[bytes, bytes]:
    """A data page with the header of a dictionary besides its own, and in that one a text."""
    return header[:-1] + b"\x2c\x15\0\x15\0\x78" + bytes([17]) + PAYLOAD[:17] + b"\0\0", packed


def many_missing(header: bytes, packed: bytes) -> tuple[bytes, bytes]:
    """A statistic that counts missing values where there are none."""
    place = header.index(b"\x16\0\x28")
    return header[: place + 1] + zigzag(20240517) + header[place + 2 :], packed


def zigzag(number: int) -> bytes:
    return length_of(number << 1)


WITHIN: dict[str, tuple[Forge, str]] = {
    "unknown-field": (
        footer(lambda old: old[:-1] + b"\x08" + zigzag(99) + length_of(len(PAYLOAD)) + PAYLOAD + b"\0"),
        "metadata that no release has",
    ),
    "longer-writer": (footer(longer_writer), "metadata that no release has"),
    "behind-the-footer": (footer(lambda old: old + PAYLOAD), "behind its footer"),
    "skippable-frame": (last_page(lambda header, packed: (header, packed + SKIPPED), unpacked=False), "not one Zstandard frame"),
    "header-of-another-page": (last_page(foreign_header), "a header that no release has"),
    "count-of-missing-values": (last_page(many_missing), "could not be accounted for"),
}


@pytest.mark.parametrize("name", WITHIN)
def test_no_byte_of_another_version_s_file_goes_unread(made: Path, tmp_path: Path, name: str) -> None:
    public = copied(made, tmp_path, "parquet")
    forge, reason = WITHIN[name]
    forge(public)
    change(public, lambda c: c["versions"].update(pyarrow="7.0.0"))
    refused(public, reason)


@pytest.mark.parametrize("name", ELSEWHERE)
def test_another_version_is_no_excuse(made: Path, tmp_path: Path, name: str) -> None:
    public = copied(made, tmp_path, "parquet")
    PARQUET[name][0](public)
    change(public, lambda c: c["versions"].update(pyarrow="7.0.0"))
    refused(public, ELSEWHERE[name])


def test_a_file_of_another_version_is_compared_part_by_part(made: Path, tmp_path: Path) -> None:
    """The same rows with plain instead of dictionary encoding: what another version might have written."""
    public = copied(made, tmp_path, "parquet")
    parquet(lambda rows: clean(rows), use_dictionary=["age", "disease"])(public)
    change(public, lambda c: c["versions"].update(pyarrow="7.0.0"))
    rewrite(public, "card.html", card_again(public))
    verified = sf.verify(public)
    found = {finding.check: finding for finding in verified.findings}
    assert found["bytes"].passed is None and "not its bytes (written with pyarrow 7.0.0)" in found["bytes"].text
    assert found["KAnonymity"].passed
    assert verified.verdict == "keeps what could be checked" and "data.parquet: written by another version" in verified.sentence


def test_a_hidden_number_in_a_dictionary_is_found(made: Path, tmp_path: Path) -> None:
    """No library shows the dictionary of a column of numbers; its page is read byte by byte."""
    from sfumato.core.errors import VerificationFailed
    from sfumato.workflow.verifying.parquet.parts import refuse_other_parts

    shown = pa.table({"age": pa.array([5, 5, 7, 7])})
    write_file(shown, tmp_path / "shown.parquet")
    write_file(pa.table({"age": pa.array([5, 5, 7, 99])}), tmp_path / "other.parquet")
    refuse_other_parts(tmp_path / "shown.parquet", tmp_path / "shown.parquet", shown)
    with pytest.raises(VerificationFailed, match="statistic"):
        refuse_other_parts(tmp_path / "other.parquet", tmp_path / "shown.parquet", shown)
    with pytest.raises(VerificationFailed, match="entries that no row uses"):
        refuse_other_parts(tmp_path / "other.parquet", tmp_path / "other.parquet", shown)


# --- claims


def claims(edit: Callable[[dict[str, Any]], Any], number: int = 0) -> Forge:
    return lambda public: change(public, lambda certificate: (edit(claim(certificate, number)), None)[1])


def as_process(told: dict[str, Any]) -> None:
    told.update(evidence="process", measured=None, argument="trust me", ledger_entry="0" * 64)


def with_claim(guarantee: Any, measured: Any, also: dict[str, Any] | None = None, reference: str | None = None) -> Forge:
    """One more claim beside those that are there."""
    told = {
        "guarantee": guarantee.key,
        "parameters": plain(parameters(guarantee)),
        "promised": guarantee.claim(),
        "measured": measured,
        "holds": True,
        "evidence": guarantee.evidence,
        "protects": guarantee.protects,
        "adversary": guarantee.adversary,
        "unit": "record",
        "also_measured": also or {},
        "neighbours": None,
        "reference": reference,
        "argument": None,
        "ledger_entry": None,
    }
    return lambda public: change(public, lambda certificate: certificate["claims"].append(told))


def against_input(also: dict[str, Any], measured: float = 0.3) -> Forge:
    """A claim against the original, with the fingerprint that the certificate has."""

    def forge(public: Path) -> None:
        fingerprint = json.loads((public / "certificate.json").read_text())["fingerprint"]
        with_claim(sf.TCloseness(0.4, "disease"), measured, also, f"input {fingerprint}")(public)

    return forge


def as_loss(guarantee: Any) -> Forge:
    def edit(told: dict[str, Any]) -> None:
        told.update(guarantee=guarantee.key, parameters=plain(parameters(guarantee)), promised=guarantee.claim())
        told.update(unit=guarantee.unit, neighbours=guarantee.compared)

    return claims(edit)


REGISTER = "population sfumato-fingerprint-1:" + "0" * 64
BREAKS = "states a number that breaks the promise"

CLAIMS: dict[str, tuple[str, Forge, str]] = {
    "population-broken": ("csv", with_claim(sf.KMap(100_000), 1, reference=REGISTER), BREAKS),
    "population-without-a-number": ("csv", with_claim(sf.KMap(5), None, reference=REGISTER), BREAKS),
    "population-and-more": ("csv", with_claim(sf.KMap(5), 9, {"people safe from the state": 9}, REGISTER), "other numbers"),
    "population-praised": (
        "csv",
        with_claim(sf.KMap(5), 9, reference="population of all inhabitants, audited"),
        "another second file",
    ),
    "presence-broken": (
        "csv",
        with_claim(sf.DeltaPresence(0.1, 0.5), 0.4, {"smallest chance": 0.0}, REGISTER),
        "other numbers",
    ),
    "input-broken": ("csv", against_input({"reference input": 0.9, "reference released": 0.1}, 0.9), BREAKS),
    "input-and-another-input": ("csv", against_input({"reference input": 0.1, "reference released": 0.1}), "other numbers"),
    "input-and-another-release": ("csv", against_input({"reference input": 0.3, "reference released": 0.25}), "other numbers"),
    "loss-of-everything": ("histogram", as_loss(sf.ApproxDP(0, 1)), "it promises nothing"),
    "unknown-kind": (
        "histogram",
        claims(lambda c: c.update(guarantee="QuantumPrivacy")),
        "of a kind that this version does not know",
    ),
    "class-guarantee-as-process": ("csv", claims(as_process), "files that no release of this kind has"),
    "both-kinds": (
        "unit",
        claims(as_process),
        "partly about rows and partly about a process",
    ),
    "adversary": ("csv", claims(lambda c: c.update(adversary="knows everything")), WORDS),
    "protects": ("csv", claims(lambda c: c.update(protects="everything about everybody")), WORDS),
    "promised": ("csv", claims(lambda c: c.update(promised=sf.KAnonymity(50).claim())), WORDS),
    "unit": ("csv", claims(lambda c: c.update(unit="every person and their family")), "another unit"),
    "unit-of-pseudonyms": ("unit", claims(lambda c: c.update(unit="different 'household'")), "another unit"),
    "unit-that-was-dropped": ("dropped", claims(lambda c: c.update(unit="different 'household'")), "another unit"),
    "unit-that-was-never-counted": (
        "csv",
        lambda public: change(public, lambda c: c["transparency"].update(unit="one value of the column 'patient'")),
        "of a unit",
    ),
    "unit-of-a-removed-column": (
        "records",
        lambda public: change(public, lambda c: c["transparency"].update(unit="one value of the column 'name'")),
        "another unit",
    ),
    "unit-told-otherwise": (
        "dropped",
        lambda public: change(public, lambda c: c["transparency"].update(unit="one record")),
        "another unit",
    ),
    "unit-in-other-words": (
        "csv",
        lambda public: change(public, lambda c: c["transparency"].update(unit="whole families")),
        "of a unit",
    ),
    "more-units-than-records": ("dropped", claims(lambda c: c.update(measured=9_999)), "cannot be in classes"),
    "neighbours": (
        "csv",
        claims(lambda c: c.update(neighbours="one record added or removed")),
        "only a claim about a process has",
    ),
    "argument": ("csv", claims(lambda c: c.update(argument="proved by us")), "only a claim about a process has"),
    "holds-is-false": ("csv", claims(lambda c: c.update(holds=False)), "says that the claim does not hold"),
    "measured": ("csv", claims(lambda c: c.update(measured=6)), "another number"),
    "also-measured": ("csv", claims(lambda c: c.update(also_measured={"k under attack": 5})), "other numbers beside"),
    "also-measured-records": ("csv", claims(lambda c: c.update(also_measured={"records per class": 5})), "other numbers beside"),
    "also-measured-changed": (
        "unit",
        claims(lambda c: c["also_measured"].update({"reference released": 0.0}), 1),
        "other numbers beside",
    ),
    "foreign-parameter": ("csv", claims(lambda c: c["parameters"].update(strength="high")), "cannot be measured"),
    "parameter-in-other-words": ("csv", claims(lambda c: c["parameters"].update(k=5.0)), "cannot be measured"),
    "reference": ("csv", claims(lambda c: c.update(reference="input audited by an authority")), "another second file"),
    "evidence": ("csv", claims(lambda c: c.update(evidence="output+reference")), WORDS),
    "loss-adversary": ("histogram", claims(lambda c: c.update(adversary="knows everything and the noise")), WORDS),
    "loss-unit": ("histogram", claims(lambda c: c.update(unit="household")), WORDS),
    "loss-neighbours": ("histogram", claims(lambda c: c.update(neighbours="everybody replaced")), WORDS),
    "loss-protects": ("histogram", claims(lambda c: c.update(protects="groups of any size")), WORDS),
    "loss-parameters": ("histogram", claims(lambda c: c["parameters"].update(epsilon="1/4")), WORDS),
    "loss-in-other-digits": ("histogram", claims(lambda c: c["parameters"].update(epsilon="0.5")), WORDS),
    "loss-foreign-parameter": ("histogram", claims(lambda c: c["parameters"].update(delta="0")), "cannot be read"),
    "loss-measured": ("histogram", claims(lambda c: c.update(measured=0.1)), WORDS),
    "loss-also-measured": ("histogram", claims(lambda c: c.update(also_measured={"attacks that failed": 99})), WORDS),
    "loss-holds-is-false": ("histogram", claims(lambda c: c.update(holds=False)), "the noise was seeded"),
    "loss-unpaid": ("histogram", claims(lambda c: c.update(ledger_entry=None)), "names no ledger entry"),
    "loss-odd-entry": ("histogram", claims(lambda c: c.update(ledger_entry="paid")), "not the hash of an entry"),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_that_says_more_than_it_means_is_refused(made: Path, tmp_path: Path, name: str) -> None:
    base, forge, reason = CLAIMS[name]
    public = copied(made, tmp_path, base)
    forge(public)
    refused(public, reason)


# --- cards, schemas, other files


def page(old: str, new: str, count: int = 1) -> Forge:
    def forge(public: Path) -> None:
        content = (public / "card.html").read_text()
        assert old in content
        rewrite(public, "card.html", content.replace(old, new, count))

    return forge


def added(name: str, content: str, **more: Any) -> Forge:
    return lambda public: rewrite(public, name, content, **more)


def both(*forges: Forge) -> Forge:
    def forge(public: Path) -> None:
        for each in forges:
            each(public)

    return forge


def of_method(**parameters: Any) -> Callable[[dict[str, Any]], None]:
    """Other parameters, and no details on the page, which would follow from the true ones."""

    def edit(certificate: dict[str, Any]) -> None:
        certificate["method"].update(parameters)
        certificate["card"].update(details={})

    return edit


def stated(edit: Callable[[dict[str, Any]], Any]) -> Forge:
    return lambda public: change(public, lambda certificate: (edit(certificate), None)[1])


def told(**facts: Any) -> Forge:
    """Facts about how a release was made."""
    return stated(lambda certificate: certificate["transparency"].update(facts))


def half_a_character(place: str) -> Forge:
    """A surrogate by itself, which JSON can name and no text can hold."""

    def forge(public: Path) -> None:
        content = json.loads((public / "certificate.json").read_text())
        content[place]["name"] = "\ud800"
        (public / "certificate.json").write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")

    return forge


def columns(certificate: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = certificate["schema"]["columns"]
    return found


def named(public: Path) -> None:
    """Names in the column that is said to hold pseudonyms."""
    lines = (public / "data.csv").read_text().splitlines()
    place = (
        lines[0].split(",").index("name") if "name" in lines[0].split(",") else lines[0].replace('"', "").split(",").index("name")
    )
    changed = []
    for number, line in enumerate(lines[1:]):
        parts = line.split(",")
        parts[place] = f'"person {number:03d}"' if parts[place].startswith('"') else f"person {number:03d}"
        changed.append(",".join(parts))
    rewrite(public, "data.csv", "\n".join([lines[0], *changed]) + "\n")


def not_called_pseudonyms(certificate: dict[str, Any]) -> None:
    certificate["transparency"]["pseudonymised_columns"] = []


def unsorted_json(public: Path) -> None:
    content = json.loads((public / "certificate.json").read_text())
    (public / "certificate.json").write_text(json.dumps(content))


OTHER_PAGE = "says something else than certificate and rows do"

OTHER_FACTS = "no release of its kind tells"

OTHER_DETAILS = "shows details on its page"

NOT_ITS_OWN = "says of its method what that method does not have"

NOT_OF_A_MASK = "says of its mask what no mask says"

PRAISE = "certified by an authority"


def as_a_mask(**facts: Any) -> Forge:
    """Rows of a search, said to be those of a mask that tells these facts."""

    def edit(certificate: dict[str, Any]) -> None:
        certificate["method"] = {"name": "Mdav", "k": 5}
        for name in ("levels", "hierarchies", "written_as"):
            certificate["transparency"].pop(name, None)
        certificate["transparency"].update({"adversary": KNOWS_THE_METHOD, "k": 5, **facts})

    return stated(edit)


PARTS: dict[str, tuple[str, Forge, str]] = {
    "adversary-inflated": ("csv", told(adversary="knows everything about everybody"), "another adversary"),
    "adversary-of-masks": ("csv", told(adversary=KNOWS_THE_METHOD), "another adversary"),
    "invented-fact": ("csv", told(certified_by="an authority"), OTHER_FACTS),
    "fact-of-a-mask": ("csv", told(noise="independent"), OTHER_FACTS),
    "fact-of-an-answer": ("answer", told(adversary=KNOWS_THE_METHOD), OTHER_FACTS),
    "praise-among-parameters": ("csv", stated(lambda c: c["method"].update(audit=PRAISE)), NOT_ITS_OWN),
    "praise-as-a-parameter": ("csv", stated(lambda c: c["method"].update(suppression=PRAISE)), NOT_ITS_OWN),
    "parameter-out-of-range": ("csv", stated(lambda c: c["method"].update(suppression=7)), NOT_ITS_OWN),
    "notice-that-no-mask-writes": ("csv", as_a_mask(notice=PRAISE), NOT_OF_A_MASK),
    "notice-of-another-column": (
        "csv",
        as_a_mask(notice=f"column '{PRAISE}' is published as it is: its matrix changes nothing"),
        NOT_OF_A_MASK,
    ),
    "model-in-words": ("csv", as_a_mask(model={"audit": PRAISE}), NOT_OF_A_MASK),
    "transitions-in-words": ("csv", as_a_mask(transitions={"age": {"audit": PRAISE}}), NOT_OF_A_MASK),
    "steps-in-words": ("csv", as_a_mask(steps=[{"masked_columns": ["age"], "notice": PRAISE}]), NOT_OF_A_MASK),
    "steps-of-no-mask": ("csv", as_a_mask(steps=[{"masked_columns": [["age"]], "method": {"audit": PRAISE}}]), NOT_OF_A_MASK),
    "mask-with-another-parameter": ("csv", as_a_mask(audit=PRAISE), NOT_OF_A_MASK),
    "type-in-words": ("csv", told(written_as={"age": {"type": "certifiedbyanauthority"}}), "how values were written"),
    "level-that-no-tree-has": ("csv", told(levels={"age": 9}), "levels and hierarchies"),
    "level-in-words": ("csv", told(levels={"age": "approved"}), "levels and hierarchies"),
    "level-of-another-column": ("csv", told(levels={"disease": 0}), "levels and hierarchies"),
    "hierarchy-in-words": ("csv", told(hierarchies={"age": "approved by an authority"}), "levels and hierarchies"),
    "hierarchies-in-a-list": ("csv", told(hierarchies=[["age"]]), "levels and hierarchies"),
    "quasi-identifiers-in-lists": ("csv", told(quasi_identifiers=[["age"]]), "a form that no release has"),
    "praised-population": ("csv", told(population="every inhabitant"), "of a population"),
    "created-in-words": ("csv", stated(lambda c: c.update(created="approved on 1 May 2031")), "created"),
    "created-at-no-time": ("csv", stated(lambda c: c.update(created="9999-99-99T99:99:99+00:00")), "no calendar or clock"),
    "the-same-claim-twice": ("csv", stated(lambda c: c["claims"].append(dict(c["claims"][0]))), "the same claim twice"),
    "method-of-another-loss": ("histogram", stated(of_method(epsilon="1/1000")), "costs another loss"),
    "loss-in-words": ("histogram", stated(of_method(epsilon=PRAISE)), "cannot have the parameters"),
    "contribution-in-words": ("histogram", stated(lambda c: c["method"].update(contribution=PRAISE)), "counted of each unit"),
    "contribution-to-an-answer-in-words": ("answer", stated(lambda c: c["method"].update(contribution=PRAISE)), "of each unit"),
    "fingerprint-in-words": ("csv", stated(lambda c: c.update(fingerprint="checked by auditors")), "fingerprint"),
    "ledger-in-words": ("csv", stated(lambda c: c.update(ledger="entered in the federal register")), "ledger"),
    "method-in-words": ("csv", stated(lambda c: c["method"].update(name="Certified Anonymiser")), "no name of one"),
    "half-a-character": ("csv", half_a_character("method"), "not valid JSON"),
    "half-a-character-elsewhere": ("csv", half_a_character("transparency"), "not valid JSON"),
    "half-a-character-on-the-page": ("histogram", half_a_character("card"), "not valid JSON"),
    "roles-of-a-private-result": (
        "histogram",
        stated(lambda c: columns(c)["sex"].update(role="quasi")),
        "a private result a role",
    ),
    "card-with-a-script": ("csv", page("</main>", "<script>alert(1)</script></main>"), "no card has, such as a script"),
    "card-with-a-handler": ("csv", page("<main ", '<main onload="alert(1)" '), "such as a handler"),
    "card-with-an-image": ("csv", page("</main>", '<img src="https://example.org/x.png"></main>'), "something loaded"),
    "card-with-a-link": ("csv", page("</main>", '<a href="https://example.org">more</a></main>'), "link to elsewhere"),
    "card-with-a-frame": ("csv", page("</main>", "<iframe></iframe></main>"), "something loaded"),
    "card-with-a-form": ("csv", page("</main>", "<form></form></main>"), "no card has"),
    "card-with-a-comment": ("csv", page("</main>", "<!-- Ada;HIV --></main>"), "a comment"),
    "card-without-policy": ("csv", page("default-src 'none'".replace("'", "&#x27;"), "default-src *"), "state the policy"),
    "card-that-refreshes": (
        "csv",
        page("</title>", '</title><meta http-equiv="refresh" content="0;url=https://example.org">'),
        "state the policy",
    ),
    "style-that-loads": ("csv", page("</style>", "body { background: url(https://example.org) }</style>"), "style loads"),
    "contradicting-card": ("csv", page("at least 5 records", "at least 50 records"), OTHER_PAGE),
    "contradicting-figure": ("csv", page("Histogram of 2 classes", "Histogram of 9 classes"), OTHER_PAGE),
    "card-that-calls-it-signed": ("csv", page("not signed", "signed by a notary"), OTHER_PAGE),
    "card-of-another-release": (
        "csv",
        lambda public: rewrite(public, "card.html", (public.parents[1] / "other.html").read_text()),
        OTHER_PAGE,
    ),
    "contradicting-card-of-an-artefact": ("histogram", page("1.65 times", "1.01 times"), OTHER_PAGE),
    "drawn-elsewhere-but-other-words": (
        "csv",
        both(stated(lambda c: c["versions"].update(matplotlib="1.0")), page("at least 5 records", "at least 50 records")),
        OTHER_PAGE,
    ),
    "answers-that-nobody-gave": (
        "csv",
        stated(lambda c: c["card"].update(answers={"roles": {"given": True, "note": "asked"}})),
        "leave the answers with their owner",
    ),
    "questions-that-nobody-asks": ("csv", stated(lambda c: c["card"].update(answers={"fun": True})), "form of a certificate"),
    "card-details": ("histogram", stated(lambda c: c["card"]["details"].update(checked="by an authority")), OTHER_DETAILS),
    "no-card": (
        "csv",
        both(lambda public: (public / "card.html").unlink(), stated(lambda c: c["files"].pop("card.html"))),
        "every release of this kind has are missing",
    ),
    "another-schema": (
        "csv",
        lambda public: rewrite(public, "schema.toml", (public / "schema.toml").read_text().replace('"quasi"', '"plain"')),
        "not the schema of the certificate",
    ),
    "comment-in-the-schema": (
        "csv",
        lambda public: rewrite(public, "schema.toml", (public / "schema.toml").read_text() + "# Ada;HIV\n"),
        "not the schema of the certificate",
    ),
    "foreign-file": ("csv", added("originals.csv", "name;disease\nAda;HIV\n"), "files that no release of this kind has"),
    "second-data-file": ("csv", added("data.parquet", "PAR1", rows=1), "exactly one data file"),
    "hierarchy-of-nobody": ("csv", added("hierarchy-1.csv", "a;*\n"), "files that no release of this kind has"),
    "result-beside-rows": ("csv", added("result.json", "{}\n"), "files that no release of this kind has"),
    "schema-beside-an-artefact": ("histogram", added("schema.toml", 'dataset = "x"\n'), "files that no release of this kind has"),
    "errors-beside-rows": ("csv", added("errors.csv", "age\n1\n", rows=1), "files that no release of this kind has"),
    "errors-in-another-form": (
        "answer",
        lambda public: rewrite(public, "errors.csv", (public / "errors.csv").read_text().replace("\n", "\r\n")),
        OTHER_BYTES,
    ),
    "an-identifier": ("unit", stated(lambda c: columns(c)["name"].update(role="identifier")), "a column of identifiers"),
    "pseudonyms-that-are-names": ("unit", named, "something else than the pseudonyms"),
    "a-unit-that-is-no-pseudonym": ("unit", stated(not_called_pseudonyms), "does not call it pseudonyms"),
    "removed-but-there": (
        "csv",
        stated(lambda c: c["transparency"].update(removed_columns=["disease"])),
        "removed or replaced, and the data say otherwise",
    ),
    "other-quasi-identifiers": (
        "csv",
        stated(lambda c: c["transparency"].update(quasi_identifiers=["age", "disease"])),
        "other quasi-identifiers",
    ),
    "column-not-described": (
        "csv",
        stated(lambda c: (columns(c).pop("cost"), c["transparency"]["written_as"].pop("cost"), None)[2]),
        "columns that the certificate describes",
    ),
    "endless-domain": (
        "csv",
        stated(lambda c: columns(c)["disease"].update(domain=["x"] * 1_000_001)),
        "more values of a column than can be checked",
    ),
    "labels-of-values": ("csv", stated(lambda c: columns(c)["disease"].update(labels={"1": "HIV"})), "no release says"),
    "seeded-and-called-private": ("seeded", stated(lambda c: c.update(private=True)), "although its randomness was seeded"),
    "private-and-called-seeded": ("csv", stated(lambda c: c.update(private=False)), "although its randomness was seeded"),
    "card-of-an-unknown-format": ("csv", stated(lambda c: c["card"].update(format="sfumato-card-99")), "does not make"),
    "second-format-called-the-first": (
        "csv",
        stated(lambda c: (c.pop("card"), c.update(format="sfumato-certificate-1"), None)[2]),
        "other versions of what made it",
    ),
    "a-version-of-something-else": ("csv", stated(lambda c: c["versions"].update(secret="Ada HIV")), "other versions"),
    "praised-randomness": ("csv", stated(lambda c: c.update(randomness="SEEDED with 1, audited")), "source of randomness"),
    "endless-composition": (
        "csv",
        stated(lambda c: c.update(composition={"x": "y" * 2_000_000})),
        "what no comparison with them says",
    ),
    "a-result-called-rows": ("histogram", stated(lambda c: c.update(content="Rows")), "names its kind of content otherwise"),
    "rows-called-rows": ("csv", stated(lambda c: c.update(content="Rows")), "names its kind of content otherwise"),
    "rows-called-a-result": ("csv", stated(lambda c: c.update(content="PrivateResult")), "names its kind of content otherwise"),
    "content-of-no-kind": ("csv", stated(lambda c: c.update(content="Sermon")), "does not know"),
    "content-that-is-null": ("csv", stated(lambda c: c.update(content=None)), "form of a certificate"),
    "a-result-with-a-fingerprint": (
        "histogram",
        stated(lambda c: c.update(fingerprint=f"{FINGERPRINT}:" + "0" * 64)),
        "what only a table of records has",
    ),
    "a-result-that-was-compared": (
        "histogram",
        stated(lambda c: c.update(composition={"earlier_releases": 0, "finding": NOTHING_EARLIER})),
        "what only a table of records has",
    ),
    "a-draft-of-noise": (
        "histogram",
        stated(lambda c: c.update(draft=True, notices=[DRAFT, *c["notices"]])),
        "calls itself a draft, and says what no draft says",
    ),
    "endless-attacks": ("csv", stated(lambda c: c.update(attacks=[{"x": "y" * 2_000_000}])), "form of a certificate"),
    "seeded-without-a-word": ("seeded", stated(lambda c: c.update(notices=[])), "no notice of its certificate says so"),
    "certificate-in-another-form": ("csv", unsorted_json, "not written as releases write it"),
    "signature-with-an-appendix": (
        "csv",
        lambda public: (public / "signature.json").write_bytes(pretty({"public_key": "", "signature": "", "Ada": "HIV"})),
        "signature",
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_part_that_is_not_the_release_s_own_is_refused(made: Path, tmp_path: Path, name: str) -> None:
    base, forge, reason = PARTS[name]
    public = copied(made, tmp_path, base)
    shutil.copy(made / "unit" / "public" / "card.html", tmp_path / "other.html")
    forge(public)
    refused(public, reason)


def test_there_are_enough_forgeries() -> None:
    assert len(CSV) + len(PARQUET) + len(ELSEWHERE) + len(CLAIMS) + len(PARTS) >= 60


# --- what a ledger tells of a private result


def test_margins_and_question_of_a_paid_answer_are_the_maker_s_word(made: Path, tmp_path: Path) -> None:
    """The ledger keeps what was measured: the verdict says that it keeps neither the question nor the margins."""
    book = made / "ledger.db"
    found = sf.verify(made / "answer", ledger=book)
    assert found.verdict == "keeps what could be checked" and found.holds
    assert "the question and the margins beside the answer: the maker's word" in found.sentence
    public = copied(made, tmp_path, "answer")
    rewrite(public, "errors.csv", '"n"\n0.001\n')
    assert sf.verify(public, ledger=book).verdict != "keeps"


@pytest.mark.parametrize("format", ["csv", pytest.param("parquet", marks=pytest.mark.slow)])
def test_margins_and_question_of_an_answer_that_was_entered_are_compared(tmp_path: Path, format: Any) -> None:
    book = tmp_path / "ledger.db"
    with Ledger.open(book) as ledger:
        ledger.grant("clinic", "ann", LossAmount.pure(9))
    known = {"sex": Column(type="string", domain=("f", "m")), "visits": Column(type="integer", bounds=(0, 4))}
    session = Session(people(60, **known), ledger=str(book), analyst="ann")
    answer = session.sql("SELECT sex, COUNT(*) AS n, AVG(visits) AS v FROM people GROUP BY sex", epsilon="4")
    publish(answer.outcome, ledger=session.ledger).save(tmp_path / "out", format)
    public, name = tmp_path / "out" / "public", f"errors.{format}"
    assert sf.verify(public, ledger=book).verdict == "keeps", sf.verify(public, ledger=book).explain()
    kept, margins = (public / name).read_bytes(), answer.errors.column("n").to_pylist()
    (public / name).unlink()
    write_file(typed("n", pa.array([margin / 2 for margin in margins]))(answer.errors), public / name)
    restate(public, name)
    assert "the margins beside the answer are not those" in sf.verify(public, ledger=book).explain()
    rewrite(public, name, kept)
    change(public, lambda c: c["method"].update(query="SELECT sex, COUNT(*) AS n FROM people WHERE disease = 'HIV' GROUP BY sex"))
    assert "it differs in method" in sf.verify(public, ledger=book).explain()


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (lambda c: of_method(name="Mst")(c), "another method"),
        (lambda c: of_method(columns=["age"])(c), "another method"),
        (lambda c: c.update(ledger="0" * 64), "not in the chain"),
    ],
)
def test_the_ledger_knows_how_a_result_was_made(made: Path, tmp_path: Path, edit: Callable[[Any], Any], reason: str) -> None:
    book = made / "ledger.db"
    assert sf.verify(made / "histogram", ledger=book).verdict == "keeps"
    public = copied(made, tmp_path, "histogram")
    change(public, lambda c: (edit(c), None)[1])
    found = sf.verify(public, ledger=book)
    assert found.verdict == "does not keep" and reason in found.explain()


def test_a_method_that_nobody_knows_is_called_that(made: Path, tmp_path: Path) -> None:
    public = copied(made, tmp_path, "histogram")
    change(public, lambda c: c["method"].update(name="QuantumLaundry"))
    rewrite(public, "card.html", card_again(public))
    found = sf.verify(public)
    assert found.verdict == "rests on its maker" and "a method that this version does not know" in found.sentence


@pytest.mark.parametrize(
    ("base", "verdict", "edit"),
    [
        ("csv", "keeps what could be checked", lambda c: c["method"].update(name="QuantumLaundry")),
        ("histogram", "rests on its maker", lambda c: c["method"].update(audit=PRAISE)),
        ("answer", "rests on its maker", lambda c: c["method"].update(audit=PRAISE)),
    ],
)
def test_so_is_one_that_has_other_parameters_or_made_rows(
    made: Path, tmp_path: Path, base: str, verdict: str, edit: Callable[[Any], Any]
) -> None:
    assert "does not know" not in sf.verify(made / base).sentence
    public = copied(made, tmp_path, base)
    change(public, lambda c: (edit(c), None)[1])
    rewrite(public, "card.html", card_again(public))
    found = sf.verify(public)
    assert found.verdict == verdict and "a method that this version does not know" in found.sentence


def test_a_charge_of_an_older_ledger_pays_for_records_alone(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ledgers did not note for whom they were charged; then it was for a record."""
    charge = Ledger.charge
    monkeypatch.setattr(Ledger, "charge", lambda self, entry: replace(charge(self, entry), protected=None))
    book = made / "ledger.db"
    assert sf.verify(made / "histogram", ledger=book).holds
    public = copied(made, tmp_path, "histogram")
    as_loss(sf.PureDP("0.5", unit="household"))(public)
    found = sf.verify(public, ledger=book)
    assert found.verdict == "does not keep" and "was charged for one record added or removed" in found.explain()


def test_a_file_beside_the_release_is_mentioned(made: Path, tmp_path: Path) -> None:
    public = copied(made, tmp_path, "csv")
    (public.parent / "card.html").write_text("certified")
    found = sf.verify(public.parent)
    assert found.verdict == "keeps" and "no part of the release and not looked at: 'card.html'" in found.explain()
    assert "not looked at" not in sf.verify(made / "csv").explain()


def test_a_number_against_the_original_is_not_checked_without_it(made: Path, tmp_path: Path) -> None:
    """Beside a promise that is measured in the release, it may say anything: the verdict says that nobody looked."""
    public = copied(made, tmp_path, "unit")
    change(public, lambda c: claim(c, 1)["also_measured"].update({"reference input": 0.0}))
    rewrite(public, "card.html", card_again(public))
    found = sf.verify(public)
    assert found.verdict == "keeps what could be checked" and "also stated against the original table" in found.sentence
    assert sf.verify(public, original=people(120)).verdict == "does not keep"
    assert sf.verify(made / "unit", original=people(120)).verdict == "keeps"


def test_claims_against_a_second_table_that_fit_are_not_refused(made: Path, tmp_path: Path) -> None:
    public = copied(made, tmp_path, "csv")
    with_claim(sf.KMap(5), 9, reference=REGISTER)(public)
    with_claim(sf.DeltaPresence(0.1, 0.5), 0.4, {"smallest chance": 0.2}, REGISTER)(public)
    against_input({"reference input": 0.3, "reference released": 0.1})(public)
    rewrite(public, "card.html", card_again(public))
    assert sf.verify(public).verdict == "keeps what could be checked", sf.verify(public).explain()


# --- what is not refused, and the command


def test_a_card_of_the_first_format_is_not_compared_but_runs_nothing(made: Path, tmp_path: Path) -> None:
    public = copied(made, tmp_path, "csv")
    page("at least 5 records", "at least 50 records")(public)
    change(public, lambda c: (c.pop("card"), c.update(format="sfumato-certificate-1"), c["versions"].pop("matplotlib"), None)[3])
    found = sf.verify(public)
    assert found.verdict == "keeps what could be checked" and found.accepted
    assert "card.html was not compared" in found.sentence
    page("</main>", "<script>alert(1)</script></main>")(public)
    refused(public, "such as a script")


def test_the_first_versions_made_a_claim_twice_that_was_asked_for_twice(made: Path, tmp_path: Path) -> None:
    public = copied(made, tmp_path, "csv")
    change(public, lambda c: (c.pop("card"), c.update(format="sfumato-certificate-1"), c["versions"].pop("matplotlib"), None)[3])
    change(public, lambda c: c["claims"].append(dict(c["claims"][0])))
    assert sf.verify(public).verdict == "keeps what could be checked"


def test_a_card_of_the_first_format_lowers_what_is_said_of_a_private_result_too(made: Path, tmp_path: Path) -> None:
    public = copied(made, tmp_path, "histogram")
    page("1.65 times", "1.01 times")(public)
    change(public, lambda c: (c.pop("card"), c.update(format="sfumato-certificate-1"), c["versions"].pop("matplotlib"), None)[3])
    found = sf.verify(public)
    assert found.verdict == "rests on its maker" and "card.html was not compared" in found.sentence
    assert "what they say they are" not in found.sentence


def test_what_nobody_can_check_is_called_that(made: Path) -> None:
    [found] = [finding for finding in sf.verify(made / "seeded").findings if finding.check == "statements"]
    assert found.passed is None and not found.claim
    assert found.text.startswith("stated by the maker, not checked: ") and "notices" in found.text
    [found] = [finding for finding in sf.verify(made / "histogram").findings if finding.check == "statements"]
    assert "arguments of claims" in found.text and "notices" not in found.text


def card_again(public: Path) -> str:
    """The page as the changed certificate makes it."""
    from sfumato.core.certificate import Certificate
    from sfumato.data.readers.files import read_file
    from sfumato.workflow.publishing.cards import public_card

    certificate = Certificate.from_mapping(json.loads((public / "certificate.json").read_text()))
    [data] = [public / name for name in DATA_FILES if name in certificate.files]
    return public_card(certificate, read_file(data, sf.Schema.parse(certificate.schema)).table, "")


def drawn_elsewhere(public: Path) -> None:
    """The certificate names another version of matplotlib, and the page is saved anew for it."""
    change(public, lambda c: c["versions"].update(matplotlib="1.0"))
    rewrite(public, "card.html", card_again(public))


def test_drawings_of_another_matplotlib_are_not_compared(made: Path, tmp_path: Path) -> None:
    public = copied(made, tmp_path, "csv")
    drawn_elsewhere(public)
    page("stroke-width: ", "stroke-width: 1")(public)
    found = sf.verify(public)
    assert found.verdict == "keeps what could be checked" and found.accepted
    assert "drawings of another version of matplotlib are not compared" in found.explain()
    assert "what they show was not compared" in found.sentence


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Histogram of 2 classes", "A histogram of 2 classes"),
        ("<figure>", "<figure></figure><section><p>Ada has HIV</p></section><figure>"),
        ("<figure>", "<figure>Ada has HIV"),
        ("</svg>", "<text>Ada has HIV</text></svg>"),
        ("</svg>", '<g aria-label="Ada has HIV"></g></svg>'),
        ("</svg>", "</svg><p>Ada has HIV</p>"),
        ("</svg>", '</svg><svg xmlns="http://www.w3.org/2000/svg"></svg>'),
        ("<svg ", '<svg width="2000" '),
        ('viewBox="0 0 ', 'viewBox="9 0 '),
        ("</svg>", '<svg width="9"></svg></svg>'),
        ("</svg>", '<g class="verdict"></g></svg>'),
    ],
)
def test_another_matplotlib_is_no_excuse_for_words(made: Path, tmp_path: Path, old: str, new: str) -> None:
    public = copied(made, tmp_path, "csv")
    drawn_elsewhere(public)
    page(old, new)(public)
    refused(public, OTHER_PAGE)


@pytest.mark.parametrize(
    "style", ["position:fixed", "Position: fixed", "fill:red;z-index:9", "margin:-99em", "background:#fff", "fi/**/ll:red"]
)
def test_a_figure_paints_and_does_not_move(made: Path, tmp_path: Path, style: str) -> None:
    public = copied(made, tmp_path, "csv")
    drawn_elsewhere(public)
    page("</svg>", f'<rect style="{style}"/></svg>')(public)
    refused(public, "an attribute that no card has")


@pytest.mark.parametrize(
    ("base", "forge", "code"),
    [
        ("csv", None, 0),
        ("histogram", None, 0),
        ("seeded", None, 1),
        ("csv", CSV["five-ways-to-write-five"][0], 1),
        ("parquet", PARQUET["unused-dictionary-entry"][0], 1),
        ("csv", CLAIMS["class-guarantee-as-process"][1], 1),
        ("csv", PARTS["card-with-a-script"][1], 1),
        ("unit", PARTS["pseudonyms-that-are-names"][1], 1),
    ],
)
def test_the_command_ends_with_the_verdict(
    made: Path, tmp_path: Path, base: str, forge: Forge | None, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    public = copied(made, tmp_path, base)
    if forge is not None:
        forge(public)
    assert run(["verify", str(public.parent), "--json"]) == code
    told = json.loads(capsys.readouterr().out)
    assert told["accepted"] is (code == 0)
    expected = {"csv": "keeps", "histogram": "rests on its maker", "seeded": "demonstration"}
    assert told["verdict"] == ("does not keep" if forge else expected[base])


def test_a_demonstration_can_be_allowed(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(made / "seeded"), "--allow-demonstration"]) == 0
    assert "a demonstration, not a private release" in capsys.readouterr().out
    assert not sf.verify(made / "seeded").holds and sf.verify(made / "seeded", allow_demonstration=True).holds


def test_every_type_is_written_so_that_it_can_be_verified(tmp_path: Path) -> None:
    """Dates, times, numbers, truth values, missing cells, unicode, quotes and item sets, in both formats."""
    moment = datetime.datetime(2024, 5, 17, 8, 30, 0, 123456)
    rows = pa.table(
        {
            "age": [30, 30, None, None],
            "day": [datetime.date(2024, 5, 17), None] * 2,
            "at": pa.array([moment, None] * 2, pa.timestamp("us")),
            "at_utc": pa.array([moment, None] * 2, pa.timestamp("us", "UTC")),
            "cost": [1e300, -0.0, 1e-7, None],
            "price": pa.array([decimal.Decimal("1.10"), None] * 2, pa.decimal128(9, 2)),
            "big": pa.array([2**63 - 1, -(2**63), 0, None]),
            "bigger": pa.array([2**64 - 1, 0, 1, None], pa.uint64()),
            "small": pa.array([1.5, 0.1, None, 3e38], pa.float32()),
            "true": [True, False, None, True],
            "note": ["", 'a "b", c', "Zürich\n東京", None],
            "tags": ["a|b", "", "b", None],
            "none": pa.nulls(4),
        }
    )
    described = {name: Column(role="plain") for name in rows.column_names}
    described |= {"age": Column(role="quasi"), "tags": Column(role="plain", type="string", items="|")}
    made = sf.protect(sf.read(rows, sf.Schema(dataset="types", columns=described)), sf.KAnonymity(2), sf.Lattice())
    for format in ("parquet", "csv"):
        made.save(tmp_path / format, format)  # type: ignore[arg-type]
        found = sf.verify(tmp_path / format)
        assert found.verdict == "keeps", found.explain()


def test_a_folder_that_is_no_release_is_said_to_be_none(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong path is no broken release; a release that lost its certificate is."""
    (tmp_path / "photos").mkdir()
    for content in (None, "a.txt"):
        if content:
            (tmp_path / "photos" / content).write_text("holiday")
        assert run(["verify", str(tmp_path / "photos")]) == 2
        assert "is no release folder" in capsys.readouterr().err
    (tmp_path / "photos" / "of Ann").mkdir()
    assert run(["verify", str(tmp_path / "photos")]) == 2
    told = capsys.readouterr().err
    assert "is no release folder" in told and "Ann" not in told and "a.txt" not in told
    public = copied(made, tmp_path, "csv")
    (public / "certificate.json").unlink()
    for folder in (public, public.parent):
        assert sf.verify(folder).verdict == "does not keep" and run(["verify", str(folder)]) == 1
