"""`verify` with a ledger: the entry that a certificate names must be the one that was made for this release."""

from __future__ import annotations

import datetime
import hashlib
import json
import struct
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.data.schema import Column
from sfumato.dp import PrivateHistogram, Session
from sfumato.ledger import Ledger, LossAmount
from sfumato.workflow.contents.rows import ROWS_DIGEST
from sfumato.workflow.publishing.cards import public_card
from sfumato.workflow.publishing.publish import publish
from sfumato.workflow.publishing.released_form import rows_digest
from sfumato.workflow.publishing.saving import describe_file, pretty
from sfumato.workflow.verifying.certificate_form import read_certificate, read_schema
from sfumato.workflow.verifying.limited_reading import read_foreign
from tests.conformance.masks import example
from tests.conformance.masks import people as of_masks


def table() -> pa.Table:
    rows = 60
    return pa.table(
        {
            "age": pa.array([20 + row % 4 for row in range(rows)], pa.int32()),
            "zip": pa.array([f"10{row % 3}" if row % 20 else None for row in range(rows)]).dictionary_encode(),
            "cost": pa.array([row / 7 for row in range(rows)], pa.float32()),
            "price": pa.array([Decimal(row) / 4 for row in range(rows)], pa.decimal128(9, 2)),
            "seen": pa.array([datetime.date(2020, 1, 1 + row % 28) for row in range(rows)]),
            "disease": [("flu", "cold", "cough")[row % 3] for row in range(rows)],
        }
    )


def people(dataset: str = "clinic") -> Any:
    columns = {
        "age": Column(role="quasi"),
        "zip": Column(role="quasi"),
        "disease": Column(role="sensitive", type="string", domain=("flu", "cold", "cough")),
    }
    return sf.read(table(), sf.Schema(dataset=dataset, columns=columns, unlisted="plain"))


def finding(folder: Path, book: Path) -> tuple[bool | None, str]:
    [found] = [each for each in sf.verify(folder, ledger=book).findings if each.check == "ledger"]
    return found.passed, found.text


def naming(folder: Path, entry: str) -> Path:
    path = folder / "public" / "certificate.json"
    path.write_bytes(pretty({**json.loads(path.read_text()), "ledger": entry}))
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("entered")


@pytest.fixture(scope="module")
def book(place: Path) -> Path:
    return place / "ledger.db"


@pytest.fixture(scope="module")
def release(book: Path) -> sf.Release:
    promised = [sf.KAnonymity(3), sf.TCloseness(0.9, "disease")]
    return sf.protect(people(), promised, sf.Lattice(suppression=0.3), ledger=book)


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_the_entry_of_a_release_is_its_own_in_either_format(release: sf.Release, book: Path, tmp_path: Path, format: Any) -> None:
    folder = release.save(tmp_path / "out", format)
    assert finding(folder, book)[0] is True and not sf.verify(folder, ledger=book).caveats


def of_other_people(folder: Path, **versions: str) -> Path:
    """The folder with other sensitive values, all of whose digests and pages are made again."""
    public = folder / "public"
    path = public / "certificate.json"
    told = json.loads(path.read_text())
    told["versions"] |= versions
    header, *rows = (public / "data.csv").read_text().splitlines()
    other = sorted(
        row.replace("flu", "\0").replace("cold", "flu").replace("cough", "cold").replace("\0", "cough") for row in rows
    )
    (public / "data.csv").write_text("\n".join([header, *other]) + "\n")
    told["files"]["data.csv"] |= describe_file(public / "data.csv")
    certificate = read_certificate(told)
    rows_read = read_foreign(public / "data.csv", read_schema(certificate))
    (public / "card.html").write_text(public_card(certificate, rows_read, ""))
    told["files"]["card.html"] = describe_file(public / "card.html")
    path.write_bytes(pretty(told))
    return folder


def test_other_rows_with_the_same_statements_are_not_those_of_the_entry(book: Path, tmp_path: Path) -> None:
    release = sf.protect(people(), sf.KAnonymity(3), sf.Lattice(suppression=0.3), ledger=book)
    folder = of_other_people(release.save(tmp_path / "out", "csv"))
    assert sf.verify(folder).verdict == "keeps"  # nobody can tell from the folder alone
    passed, text = finding(folder, book)
    assert passed is False and "rows are not those" in text


@pytest.mark.parametrize("versions", [{"pyarrow": "1.0.0"}, {"sfumato": "0.0.9"}])
def test_naming_another_version_does_not_excuse_other_rows(versions: dict[str, str], book: Path, tmp_path: Path) -> None:
    release = sf.protect(people(), sf.KAnonymity(3), sf.Lattice(suppression=0.3), ledger=book)
    honest = release.save(tmp_path / "honest", "csv")
    told = json.loads((honest / "public" / "certificate.json").read_text())
    (honest / "public" / "certificate.json").write_bytes(pretty({**told, "versions": {**told["versions"], **versions}}))
    assert finding(honest, book)[0] is True  # the rows are compared, whatever wrote them
    passed, text = finding(of_other_people(release.save(tmp_path / "out", "csv"), **versions), book)
    assert passed is False and "rows are not those" in text


def entered_earlier(release: sf.Release, book: Path) -> str:
    """The hash of an entry as earlier versions made it, without a digest of the rows."""
    with Ledger.open(book) as ledger:
        entry = ledger.entry(release.certificate.ledger)
        assert entry is not None
        payload = {name: value for name, value in entry.payload.items() if name != ROWS_DIGEST}
        assert payload != entry.payload
        return ledger.enter_release("clinic", payload, token=f"earlier-{entry.hash[:16]}").hash


def test_rows_of_an_entry_without_their_digest_are_compared_as_far_as_they_can_be(book: Path, tmp_path: Path) -> None:
    release = sf.protect(people(), sf.KAnonymity(3), sf.Lattice(suppression=0.3), ledger=book)
    entry = entered_earlier(release, book)
    folder = naming(release.save(tmp_path / "out", "csv"), entry)
    assert finding(folder, book)[0] is True
    assert finding(of_other_people(folder), book)[0] is False
    found = sf.verify(of_other_people(folder, pyarrow="1.0.0"), ledger=book)
    assert found.verdict == "keeps what could be checked"
    assert "whether they are the same rows is not known" in found.sentence and "another version" not in found.explain()


def test_a_release_that_names_no_entry_is_not_held_against_a_ledger(release: sf.Release, book: Path, tmp_path: Path) -> None:
    folder = sf.protect(people(), sf.KAnonymity(3), sf.Lattice(suppression=0.3)).save(tmp_path / "out", "csv")
    assert sf.verify(folder).verdict == "keeps"
    found = sf.verify(folder, ledger=book)
    assert found.verdict == "keeps what could be checked" and any("names no entry of a ledger" in each for each in found.caveats)


@pytest.mark.parametrize("name", ["AdditiveNoise", "GaussianCopula", "Mdav", "Pram"])
def test_a_mask_saved_as_csv_has_the_rows_that_were_entered(name: str, book: Path, tmp_path: Path) -> None:
    masked = sf.protect(of_masks(), (), example(name), ledger=book)
    assert finding(masked.save(tmp_path / "out", "csv"), book)[0] is True


def test_so_is_that_of_a_mask_and_of_a_demonstration(book: Path, tmp_path: Path) -> None:
    mask = sf.protect(people(), (), sf.AdditiveNoise(0.5, columns=("cost",)), ledger=book).save(tmp_path / "mask")
    seeded = sf.protect(people(), sf.KAnonymity(3), sf.Lattice(suppression=0.3), ledger=book, seed=1).save(tmp_path / "seeded")
    assert finding(mask, book)[0] is True and finding(seeded, book)[0] is True


def granted(ledger: Ledger) -> str:
    return ledger.grant("clinic", "ann", LossAmount.pure(1)).hash


def of_another_dataset(ledger: Ledger) -> str:
    return sf.protect(people("another"), sf.KAnonymity(3), sf.Lattice(suppression=0.3), ledger=ledger).certificate.ledger


def of_another_promise(ledger: Ledger) -> str:
    return sf.protect(people(), sf.KAnonymity(5), sf.Lattice(suppression=0.3), ledger=ledger).certificate.ledger


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (granted, "a grant"),
        (of_another_dataset, "another dataset"),
        (of_another_promise, "claims, promised"),
    ],
)
def test_no_other_entry_is_taken_for_it(
    release: sf.Release, book: Path, tmp_path: Path, other: Callable[[Ledger], str], said: str
) -> None:
    with Ledger.open(book) as ledger:
        entry = other(ledger)
    folder = naming(release.save(tmp_path / "out", "csv"), entry)
    passed, text = finding(folder, book)
    assert passed is False and said in text
    assert sf.verify(folder, ledger=book).verdict == "does not keep"


def test_other_rows_of_the_same_original_are_not_those_of_the_entry(book: Path, tmp_path: Path) -> None:
    """Two masks that draw: all that is stated is the same, the rows are not."""
    made = [sf.protect(people(), (), sf.AdditiveNoise(0.5, columns=("cost",)), ledger=book) for _ in range(2)]
    folder = naming(made[0].save(tmp_path / "out"), made[1].certificate.ledger)
    passed, text = finding(folder, book)
    assert passed is False and text.endswith("it differs in sha256")


def test_an_artefact_names_its_charge_or_its_own_release(place: Path, tmp_path: Path) -> None:
    book = place / "charged.db"
    with Ledger.open(book) as ledger:
        ledger.grant("clinic", "ann", LossAmount.pure(9))
        session = Session(people(), ledger=ledger, analyst="ann", unit="record")
        outcomes = [session.release(PrivateHistogram(("disease",), epsilon=each)) for each in ("0.5", "1")]
        made = [publish(outcome, ledger=ledger) for outcome in outcomes]
    folder = made[0].save(tmp_path / "entered", "csv")
    assert finding(folder, book)[0] is True and sf.verify(folder, ledger=book).holds
    assert sf.verify(publish(outcomes[0]).save(tmp_path / "charged"), ledger=book).holds
    passed, text = finding(naming(folder, made[1].certificate.ledger), book)
    assert passed is False and "charged" in text


def every_kind() -> pa.Table:
    """Every type that a release has, with missing cells, a column of them, and texts that files could take for others."""
    at = datetime.datetime(2020, 1, 2, 3, 4, 5, 678901)
    return pa.table(
        {
            "whole": pa.array([-5, None, 7, 2**62]),
            "large": pa.array([2**64 - 1, None, 0, 1], pa.uint64()),
            "number": [0.1, None, -0.0, 1e300],
            "flag": [True, None, False, True],
            "day": pa.array([datetime.date(2020, 1, 2), None, datetime.date(1900, 1, 1), datetime.date(2020, 1, 2)]),
            "at": pa.array([at, None, at, at], pa.timestamp("us")),
            "text": ["a", None, "", 'ä,"b'],
            "none": pa.array([None] * 4, pa.string()),
        }
    )


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_every_kind_of_value_has_the_digest_that_was_entered(format: Any, book: Path, tmp_path: Path) -> None:
    columns = {"none": Column(role="plain", type="string"), "whole": Column(role="quasi")}
    data = sf.read(every_kind().drop_columns("large"), sf.Schema(dataset="kinds", columns=columns, unlisted="plain"))
    made = sf.protect(data, (), sf.AdditiveNoise(0.5, columns=("number",)), ledger=book)
    assert finding(made.save(tmp_path / "out", format), book)[0] is True


def test_the_digest_of_rows_tells_every_cell_apart() -> None:
    rows = every_kind()
    digests = {rows_digest(rows), rows_digest(rows.rename_columns([f"{name}_" for name in rows.column_names]))}
    for place, name in enumerate(rows.column_names):
        for row in range(4):
            cells = rows.column(name).to_pylist()
            other = next(each for each in [*cells, "x" if name == "none" else None] if each != cells[row])
            cells[row] = other
            digests.add(rows_digest(rows.set_column(place, name, pa.array(cells, rows.schema.field(name).type))))
    digests.add(rows_digest(pa.table({"text": ["ab", "c"]})))
    digests.add(rows_digest(pa.table({"text": ["a", "bc"]})))
    digests.add(rows_digest(pa.table({"text": [""]})))
    digests.add(rows_digest(pa.table({"text": pa.array([None], pa.string())})))
    assert len(digests) == 2 + 4 * rows.num_columns + 4


def test_the_digest_of_rows_does_not_depend_on_how_arrow_holds_them() -> None:
    rows = every_kind()
    parts = pa.concat_tables([rows.slice(0, 1), rows.slice(1, 0), rows.slice(1)])
    coded = rows.set_column(6, "text", rows["text"].dictionary_encode())
    assert {rows_digest(parts), rows_digest(coded), rows_digest(rows.slice(0))} == {rows_digest(rows)}
    assert rows_digest(parts.slice(1, 2)) == rows_digest(rows.slice(1, 2).combine_chunks())


def test_the_digest_of_rows_stays_what_it_is() -> None:
    """Entries are compared with it for ever."""
    rows = pa.table({"n": [3, None], "x": [0.5, -1.0], "word": ["ä", "b"]})
    content = [
        b'["n","integer",2]' + b"\x80" + struct.pack("<qq", 3, 0),
        b'["x","number",2]' + b"\xc0" + struct.pack("<dd", 0.5, -1.0),
        b'["word","text",2]' + b"\xc0" + struct.pack("<qq", 2, 1) + "äb".encode(),
    ]
    assert rows_digest(rows) == hashlib.sha256(b"".join(content)).hexdigest()
