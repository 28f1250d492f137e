"""How a private result was made follows from its claim, and is held against everything that the ledger entered about it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.certificate import FIRST_FORMAT, Certificate
from sfumato.core.registry import every
from sfumato.data.readers.read_result import UNREADABLE
from sfumato.dp import Session
from sfumato.ledger import Ledger, LossAmount
from sfumato.workflow.publishing.publish import publish
from sfumato.workflow.verifying.stated.details import details_of, refuse_other_details
from sfumato.workflow.verifying.stated.results import RESULT_DIGEST, check_stated_result
from sfumato.workflow.verifying.verification import Finding
from tests.faults.forging import change, rewrite

ROWS = pa.table(
    {"user": [f"u{row // 2}" for row in range(40)], "word": ["a", "b"] * 20, "score": [row % 10 for row in range(40)]}
)
NUMBER = {"type": "integer", "bounds": [0, 9], "source": "declared"}
ALGORITHMS = [
    sf.dp.PrivateHistogram(("word",), epsilon="0.5", max_rows=2),
    sf.dp.PrivateHistogram(("word",), rho="0.5", neighbours="replace", max_rows=2),
    sf.dp.PrivateQuantiles("score", (0.5,), epsilon=0.25, max_rows=2),
    sf.dp.TopK("word", 1, epsilon=1),
    sf.dp.KMeans(("score",), 1, 1, iterations=1, max_rows=2),
    sf.dp.GridKMeans(("score",), 1, epsilon=1, max_rows=2),
    sf.dp.Mst(rho="0.1", max_rows=2),
    sf.dp.Aim(rho="0.1", max_rows=2),
    sf.dp.SearchLog("word", limit=2, epsilon=1, delta="1e-6"),
]
QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("SELECT COUNT(*) AS n FROM t", {"max_rows": 2}),
    ("SELECT COUNT(*) AS n FROM t", {"max_rows": 1, "options": {"bounding": "truncate", "order": ["score"]}}),
    ('SELECT COUNT(DISTINCT "user") AS n FROM t', {}),
    ("SELECT word, COUNT(*) AS n FROM t GROUP BY word", {"max_rows": 1, "max_groups": 2}),
    ('SELECT word, COUNT(DISTINCT "user") AS n FROM t GROUP BY word', {"max_groups": 1}),
    ("SELECT score, SUM(score) AS n FROM t GROUP BY score", {"max_rows": 3, "max_groups": 1, "keys": {"score": [1, 2, None]}}),
    ('SELECT AVG(n) AS n FROM (SELECT "user", CLAMP(COUNT(*), 0, 4) AS n FROM t GROUP BY "user")', {}),
]


COLUMNS = {
    "user": {"type": "string", "role": "unit"},
    "word": {"type": "string", "domain": ["a", "b"], "source": "declared"},
    "score": NUMBER,
}
RECORDS = {**COLUMNS, "user": {"type": "string"}}


@pytest.mark.parametrize("algorithm", ALGORITHMS[:3] + ALGORITHMS[4:6], ids=lambda each: each.name)
def test_a_bound_that_was_called_rows_is_read_as_before(algorithm: Any) -> None:
    session = Session({"t": table()}, budget=algorithm.loss().about(unit="user"))
    made = publish(session.release(algorithm)).certificate
    method = {("rows" if name == "max_rows" else name): value for name, value in made.method.items()}
    assert "rows" in method
    assert said(dataclasses.replace(made, method=method)) is None
    assert refused(dataclasses.replace(made, method={**method, "rows": 3}))
    assert said(dataclasses.replace(made, method={**method, "max_rows": 2})) is not None  # no version wrote both
    assert details_of(method, {}) == details_of(made.method, {})  # so that the page is the same
    refuse_other_details(dataclasses.replace(made, method=method))
    with pytest.raises(
        sf.errors.ParameterError, match="parameter 'rows' has another name; .* calls this max_rows: the most rows"
    ):
        type(algorithm)(**{**algorithm.parameters(), "rows": 2})


def table(columns: Any = COLUMNS) -> Any:
    return sf.read(ROWS, {"dataset": "log", "columns": columns})


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.grant("log", "ann", LossAmount.pure(99))
        yield ledger


def said(certificate: Certificate) -> Finding | None:
    """What the certificate's method says of its claim, without a ledger."""
    return check_stated_result(certificate, None, None, None)


def forged(certificate: Certificate, **method: Any) -> Certificate:
    told = {name: value for name, value in {**certificate.method, **method}.items() if value is not None}
    return dataclasses.replace(certificate, method=told)


def refused(certificate: Certificate) -> bool:
    found = said(certificate)
    return found is not None and found.passed is False


def test_every_algorithm_is_among_them() -> None:
    assert {type(each) for each in ALGORITHMS} == set(every("algorithm").values())


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda algorithm: algorithm.name)
def test_what_an_algorithm_says_of_itself_agrees_with_its_claim(algorithm: Any) -> None:
    made = publish(Session(table(), budget=algorithm.loss().about(unit="user")).release(algorithm)).certificate
    assert made.claims[0].unit == "user" and "contribution" in made.method
    assert said(made) is None
    numbers = isinstance(algorithm, (sf.dp.PrivateQuantiles, sf.dp.KMeans, sf.dp.GridKMeans, sf.dp.Mst, sf.dp.Aim))
    typed = f". {UNREADABLE}" * numbers  # the others read texts alone
    assert algorithm.left_out() and made.method["contribution"].endswith(f"{algorithm.left_out()}{typed}")
    assert said(forged(made, contribution=algorithm.counted("user"))) is None  # as earlier versions wrote it
    assert said(forged(made, contribution=algorithm.contribution("user"))) is None  # as earlier versions wrote it
    assert refused(forged(made, contribution=algorithm.left_out()))
    paid = dataclasses.replace(made, claims=(dataclasses.replace(made.claims[0], ledger_entry="0" * 64),))
    loss = "epsilon" if "epsilon" in made.method else "rho"
    for wrong in ({loss: "1/1000"}, {loss: "none"}, {loss: "1e999999999"}, {loss: [1]}, {"contribution": "for ever"}):
        assert refused(forged(made, **wrong)), wrong
    assert refused(forged(paid, contribution=None))
    assert said(dataclasses.replace(forged(paid, contribution=None), format=FIRST_FORMAT)) is None  # it was not told then
    assert refused(dataclasses.replace(made, claims=made.claims * 2))


def test_of_records_all_are_counted() -> None:
    counts = sf.dp.PrivateHistogram(("word",), epsilon=1, max_rows=1)
    made = publish(Session(table(RECORDS), budget=sf.PureDP(1)).release(counts)).certificate
    assert made.claims[0].unit == "record" and said(made) is None
    assert made.method["contribution"] == counts.left_out()
    assert said(forged(made, contribution=None)) is None  # as earlier versions wrote it
    assert refused(forged(made, contribution=counts.contribution("record")))


MESSY = pa.table(
    {
        "user": ["u1", "u2", "u3", "u4", "u5", None],
        "word": ["a", None, "other", "b", "a", "b"],
        "score": [3, 4, 5, 99, None, 2],
    }
)


@pytest.mark.parametrize("columns", [COLUMNS, RECORDS], ids=["units", "records"])
def test_rows_are_left_out_as_it_is_said(columns: Any) -> None:
    """Missing and undeclared values are left out, and rows without a unit; a number beyond its bounds is not."""
    data, one = sf.read(MESSY, {"dataset": "log", "columns": columns}), int(columns is RECORDS)
    assert sf.dp.PrivateHistogram(("word",), epsilon=1, max_rows=1).counts(data).tolist() == [2, 1 + one]
    scores = sf.dp.PrivateHistogram(("score",), epsilon=1, max_rows=1).counts(data).tolist()
    assert scores == [0, 0, one, 1, 1, 1, 0, 0, 0, 1]
    _, leaves = sf.dp.PrivateQuantiles("score", epsilon=1, max_rows=1).leaf_counts(data)
    assert leaves.tolist() == scores
    assert sf.dp.TopK("word", 1, epsilon=1).scores(data)[1].tolist() == [2, 1 + one]


def test_a_method_that_is_not_known_is_called_that() -> None:
    made = publish(Session(table(), budget=sf.PureDP(9, unit="user")).release(ALGORITHMS[0])).certificate  # type: ignore[arg-type]
    for other in ({"name": "Unheard"}, {"unheard": 1}):
        found = said(forged(made, **other))
        assert found is not None and found.passed is None and "does not know" in found.caveat


@pytest.mark.parametrize(
    ("query", "asked", "columns"),
    [(*each, columns) for each in QUESTIONS for columns in (COLUMNS, RECORDS) if columns is COLUMNS or "user" not in each[0]],
)
def test_what_an_answer_says_is_counted_agrees_with_its_bounds(query: str, asked: dict[str, Any], columns: Any) -> None:
    unit = "user" if columns is COLUMNS else "record"
    options = asked.get("options", {})
    session = Session({"t": table(columns)}, budget=sf.PureDP(99, unit=unit), **options)
    bounds = {name: value for name, value in asked.items() if name != "options"}
    made = publish(session.sql(query, epsilon=1, **bounds).outcome).certificate
    assert made.claims[0].unit == unit and said(made) is None
    more = {**made.method["bounds"], "rows": 77, "groups": 77}
    wrong = [{"contribution": "for ever"}, {"query": "nobody is found"}, {"bounds": {"rows": "all"}}, {"bounds": None}]
    if "At most" in made.method["contribution"]:
        wrong.append({"bounds": more})
    for each in wrong:
        assert refused(forged(made, **each)), each
    other = dataclasses.replace(made.claims[0], unit="clinic", parameters={**made.claims[0].parameters, "unit": "clinic"})
    assert refused(dataclasses.replace(made, claims=(other,)))


def test_a_certificate_that_names_its_charge_alone_does_not_escape_what_was_entered(book: Ledger) -> None:
    answer = Session({"t": table()}, ledger=book, analyst="ann").sql(QUESTIONS[0][0], epsilon=1, max_rows=2)
    entered = publish(answer.outcome, ledger=book).certificate
    charge = dataclasses.replace(entered, ledger=answer.entry)
    other = forged(charge, query="SELECT COUNT(*) AS n FROM deaths")
    smaller = pa.table({"n": [0.0001]})
    for certificate, errors, passed in (
        (entered, answer.errors, True),
        (charge, answer.errors, True),
        (other, answer.errors, False),
        (dataclasses.replace(other, ledger=entered.ledger), answer.errors, False),
        (charge, smaller, False),
        (entered, smaller, False),
        (charge, None, False),
        (entered, None, False),
    ):
        found = check_stated_result(certificate, answer.table, errors, book)
        assert found is not None and found.passed is passed, found


def test_what_was_entered_of_another_result_of_the_same_charge_says_nothing(book: Ledger) -> None:
    session = Session({"t": table()}, ledger=book, analyst="ann")
    first, second = (session.sql(f"SELECT COUNT(*) AS {name} FROM t", epsilon=1, max_rows=2) for name in ("n", "m"))
    assert second.repeated and second.entry == first.entry
    publish(first.outcome, ledger=book)
    found = check_stated_result(publish(second.outcome).certificate, second.table, second.errors, book)
    assert found is not None and found.passed is None and "the question" in found.caveat
    [entry] = book.releases("log")
    earlier = {name: value for name, value in entry.payload.items() if name != RESULT_DIGEST}  # as earlier versions entered it
    book.enter_release("log", earlier, token="earlier")
    found = check_stated_result(publish(second.outcome).certificate, second.table, second.errors, book)
    assert found is not None and found.passed is False


def test_margins_that_only_the_charge_keeps_are_missed(book: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where trees are too large to be kept, the charge keeps the whole answer with its errors."""
    monkeypatch.setattr("sfumato.dp.sql.asking.identity.MOST_NODES", 1)
    answer = Session({"t": table()}, ledger=book, analyst="ann").sql("SELECT MEDIAN(score) AS n FROM t", epsilon=1, max_rows=2)
    certificate = publish(answer.outcome).certificate
    for errors, missed in ((answer.errors, False), (None, True)):
        found = check_stated_result(certificate, answer.table, errors, book)
        assert found is not None and found.passed is None and ("the files have none" in found.caveat) is missed


def test_the_folder_of_a_forged_answer_is_refused(book: Ledger, tmp_path: Path) -> None:
    answer = Session({"t": table()}, ledger=book, analyst="ann").sql(QUESTIONS[0][0], epsilon=1, max_rows=2)
    folder = publish(answer.outcome, ledger=book).save(tmp_path / "out", "csv")
    assert sf.verify(folder, ledger=book).verdict == "keeps"
    rewrite(folder / "public", "errors.csv", '"n"\n0.0001\n')
    change(folder / "public", lambda told: told.update(ledger=answer.entry))
    assert "margins beside the answer are not those" in sf.verify(folder, ledger=book).explain()


def test_what_the_claim_does_not_cover_is_said_as_the_ledger_says_it(book: Ledger) -> None:
    """Charges about records, then a budget about users: the notice cannot be dropped, turned round or invented."""
    records = Session({"t": table(RECORDS)}, ledger=book, analyst="ann")
    plain = records.sql("SELECT COUNT(*) AS n FROM t", epsilon=5)
    covered = publish(plain.outcome).certificate
    book.change_unit("log", "user")
    made = Session({"t": table()}, ledger=book, analyst="ann").release(ALGORITHMS[0])  # type: ignore[arg-type]
    certificate = publish(made, ledger=book).certificate
    [notice] = certificate.notices
    assert notice.startswith("not covered: ε = 5")

    def found(about: Certificate, *notices: str, result: Any = made.result) -> Finding:
        finding = check_stated_result(dataclasses.replace(about, notices=notices), result, None, book)
        assert finding is not None
        return finding

    others = [(), ("this result covers every earlier charge",), (notice.replace("ε = 5", "ε = 4"),), (notice, notice + "!")]
    for other in others:
        assert found(certificate, *other).passed is False
        first = found(dataclasses.replace(certificate, format=FIRST_FORMAT), *other)
        assert first.passed is None and "does not cover" in first.caveat
    assert found(certificate, notice, "rounded").passed is True
    answer = plain.outcome.result
    assert found(covered, result=answer).passed is None, "what was asked before is covered"
    assert found(covered, notice, result=answer).passed is None, "and published later, it is said"
    assert found(covered, notice.replace("ε = 5", "ε = 4"), result=answer).passed is False
    # the owner finds out how many records a user has; what was published before stays as true as it was
    book.change_unit("log", "user", rows_per_unit=2)
    assert found(certificate, notice).passed is True and found(certificate).passed is True
    assert found(certificate, notice + "!").passed is False
