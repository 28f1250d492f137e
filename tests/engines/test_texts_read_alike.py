"""A text declared as another type is the same value on every engine as in this process, or is refused everywhere."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import SourceError
from sfumato.data.microdata import Microdata
from sfumato.engines.sql.relation import lenient
from tests.examples import examples

_NUMBERS = itertools.count()

#: What engines read by their own casts and this process does not, or the other way round.
TEXTS: dict[str, list[str]] = {
    "integer": ["12.5", "5e-1", "1e1", "0x10", "1_000", "7.", "7.00", "+5", "007", "-0", "\u20031", "1\u00a0", "1\n", "\x1c1"]
    + ["9223372036854775807", "-9223372036854775808", "9223372036854775808", "0" * 29 + "7", "0" * 30 + "7", "1 2", "  ", ""]
    + ["\u0661", "1,000", "inf", ".0", "+", "+-1", "1\u2028", "1\x00".strip("\x00")],
    "number": ["1_0", "+nan", "nan", "+inf", "-inf", "inf", "Inf", "infinity", "Infinity", "1d", "1f", "0x1p3", "5.", ".5", "+.5"]
    + [".", "e5", "1e", "1e5", "1E-5", "1e400", "-1e400", "1e-400", "-1e-400", "1e9999", "1e99999", "-1e99999", "1e-99999"]
    + ["0e99999", "0.0e+00099999", "1e+00005", "1e-00005", "9" * 500, "1" + "0" * 400 + "e-400", "0." + "0" * 400 + "1e401"]
    + ["1.7976931348623158e308", "1.7976931348623159e308", "2.4703282292062327209e-324", "5e-324", "0.1", "9007199254740993"]
    + [
        "8.41e21",
        "123456789012345678901234567890.5",
        "\u20031",
        "1\u00a0",
        "1 e5",
        "1,5",
        "--1",
        "",
        " ",
        "-0",
        "0.30000000000000004",
    ],
    "boolean": [
        "true",
        "TRUE",
        "t",
        "yes",
        " yes",
        "Y\u00a0",
        "1",
        "false",
        "F",
        "no",
        "N",
        "0",
        "on",
        "off",
        "tr",
        "ye\u017f",
        "\u0130",
    ]
    + ["2", "", " ", "maybe", "1.0"],
    "date": [
        "2024-01-01 BC",
        "2024-01-01 (BC)",
        "epoch",
        "infinity",
        "now",
        "today",
        "2024/01/02",
        "2024-01-01 x",
        "2024",
        "2024-1-1",
    ]
    + [
        "2024-01",
        "20240101",
        "2024-01-01",
        " 2024-01-01",
        "2024-01-01\u00a0",
        "2024-02-29",
        "2023-02-29",
        "1900-02-29",
        "0000-01-01",
    ]
    + ["0001-01-01", "9999-12-31", "10000-01-01", "+2024-01-01", "2024-01-01T", "2024-01-01T00", "2024-01-01 00:00:00.0000009"]
    + [
        "2024-01-01 00:00:00.000001",
        "2024-01-01 02:00+02",
        "2024-01-01 00:30-23:30",
        "0001-01-01 01:00+02",
        "2024-01-01 10:00",
        "",
    ]
    + ["2024-01-01 00:00:00 UTC", "2024-W01-1", "2024-001", "9999-12-31 22:00-02", "2024-01-01 00:00:00Z"],
    "datetime": [
        "2024-01-01T10",
        "2024-01-01 10:30+02",
        "2024-01-01 10:30",
        "2024-01-01 10:30:00",
        "2024-01-01",
        "2024-01-01T1030",
    ]
    + ["2024-01-01T103005.25Z", "2024-01-01 10:30:05,5", "2024-01-01 10:30:05.1234569", "2024-01-01 10:30:05.12345678901+05:30"]
    + ["2024-01-01 10:30:05 +0000", "2024-01-01 10:30:05.5 -0330", "2024-01-01 10:30 Z", "2024-01-01  10:30", "2024-01-01 24:00"]
    + [
        "2024-01-01 10:60",
        "2024-01-01 10:30:60",
        "2024-01-01 10:3",
        "2024-01-01 1:30",
        "2024-01-01 10:3005",
        "2024-01-01 1030:05",
    ]
    + ["2024-01-01 10.5", "2024-01-01 10:30.5", "2024-01-01 10:30:00:00", "2024-01-01 10:30+24:00", "2024-01-01 10:30+23:59:59"]
    + ["2024-01-01 10:30-23:59", "2024-01-01 10:30+02:60", "2024-01-01 10:30z", "2024-01-01t10:30", "2024-01-01 10:30:00 UTC"]
    + ["0001-01-01 00:00+02", "0001-01-01 00:00-02", "9999-12-31 23:59:59.999999", "9999-12-31 23:00-02", "9999-12-31 23:00+02"]
    + ["2024-01-01 10:30:00 PM", "2024-01-01 10:30:00 Europe/Berlin", "2024-02-30 10:00", "now", "epoch", "infinity", ""],
}

#: Texts of a CSV file whose schema says under `[read]` how its numbers and dates are written.
WRITTEN: dict[str, list[str]] = {
    "integer": ["1.234", "1,0", "12,5", "1234", " 7", "7\u00a0", "1.23", "", "1,234"],
    "number": ["1,5", "1.5", "1.234,5", "\u00a01,5", " 2,0 ", "+,5", "1e3", "1,5e-2", "inf", "1_0,5", "", "x", "1,5 EUR"],
    "date": [
        "5.1.2024",
        "05.01.2024",
        "31.2.2024",
        "5.1.2024 0:00",
        "5.1.2024 00:00:00",
        "5.1.2024 7:30",
        "2024-01-05",
        "2024-1-5",
    ]
    + ["5.1.24", "", "\u00a05.1.2024", "5/1/2024", "2024-01-05 x", "29.2.2024", "29.2.2023", "5.1.0000"],
    "datetime": [
        "5.1.2024 7:30",
        "05.01.2024T17:30:05",
        "5.1.2024 7:30:05.000",
        "5.1.2024",
        "5.1.2024 24:00",
        "2024-01-05 10:30+02",
    ]
    + ["5.1.2024 7:3", "", "31.12.2024 23:59:59", "5.1.2024 7:30 Z"],
}


_SPACES = st.sampled_from(["", "", "", "", " ", "\t", "\n", "\u00a0", "\u2003", "\x1f", "  "])
_DIGITS = st.text("0123456789", min_size=1, max_size=20)
_ODD = st.sampled_from(["_", ",", ".", "e", "E", "x", "-", "+", ":", " ", "T", "Z", "0", "9", "f", "d", "\u0661", "\n"])
_TWO = st.integers(0, 61).map("{:02}".format)


def _clocks() -> st.SearchStrategy[str]:
    fraction = st.one_of(st.just(""), st.tuples(st.sampled_from([".", ","]), _DIGITS).map("".join))
    colons = st.tuples(_TWO, st.just(":"), _TWO, st.one_of(st.just(""), st.tuples(st.just(":"), _TWO, fraction).map("".join)))
    basic = st.tuples(_TWO, _TWO, st.one_of(st.just(""), st.tuples(_TWO, fraction).map("".join)))
    return st.one_of(colons.map("".join), basic.map("".join), _TWO, st.just("00:00"), st.just("00:00:00"))


def _moments() -> st.SearchStrategy[str]:
    year = st.one_of(st.integers(0, 10000), st.sampled_from([1, 1900, 2000, 2023, 2024, 9999])).map("{:04}".format)
    month, day = st.integers(0, 13).map("{:02}".format), st.one_of(st.integers(0, 32), st.integers(28, 31)).map("{:02}".format)
    days = st.tuples(year, st.just("-"), month, st.just("-"), day).map("".join)
    offset = st.tuples(
        st.sampled_from(["+", "-", " +", " -"]), st.one_of(_clocks(), st.sampled_from(["00:00", "02", "0530"]))
    ).map("".join)
    zone = st.one_of(st.just(""), st.just("Z"), st.just(" Z"), offset)
    return st.one_of(days, st.tuples(days, st.sampled_from(["T", " "]), _clocks(), zone).map("".join))


def _near_misses(declared: str) -> st.SearchStrategy[str]:
    sign = st.sampled_from(["", "", "-", "+"])
    exponent = st.one_of(st.just(""), st.tuples(st.sampled_from(["e", "E"]), sign, st.integers(0, 10**6).map(str)).map("".join))
    point = st.sampled_from(["", ".", ".0", ".00", ".5"])
    numbers = st.one_of(
        st.tuples(sign, _DIGITS, point).map("".join),
        st.tuples(sign, _DIGITS, st.sampled_from(["", "."]), st.text("0123456789", max_size=20), exponent).map("".join),
        st.tuples(sign, st.floats(allow_nan=True, allow_infinity=True).map(repr)).map("".join),
    )
    words = st.sampled_from([*TEXTS["boolean"], "True", "YES", "Nein"])
    base = {"integer": numbers, "number": numbers, "boolean": words}.get(declared, _moments())
    mutated = st.tuples(base, st.integers(0, 30), _ODD).map(lambda drawn: drawn[0][: drawn[1]] + drawn[2] + drawn[0][drawn[1] :])
    return st.tuples(_SPACES, st.one_of(base, base, base, mutated, st.sampled_from(TEXTS[declared])), _SPACES).map("".join)


Open = Callable[[Sequence[str], str], Microdata]


def _schema(declared: str) -> dict[str, Any]:
    return {"dataset": "d", "columns": {"n": {"type": "integer"}, "x": {"type": declared}}}


def _table(texts: Sequence[str]) -> pa.Table:
    return pa.table({"n": list(range(len(texts))), "x": pa.array(texts, pa.string())})


def _here(texts: Sequence[str], declared: str, **options: Any) -> Microdata:
    return sf.read(_table(texts), schema=_schema(declared), **options)


def _spark(texts: Sequence[str], declared: str, session: Any) -> Microdata:
    frame = session.createDataFrame([(n, text) for n, text in enumerate(texts)], "n bigint, x string")
    return sf.read(frame, schema=_schema(declared))


def _postgres(texts: Sequence[str], declared: str, url: str) -> Microdata:
    from sfumato.engines.write import write_table

    name = f"alike{next(_NUMBERS)}"
    write_table(_table(texts), url, table_name=name)
    return sf.read(url, schema=_schema(declared), table=name)


def _file(texts: Sequence[str], declared: str, folder: Path, kind: str) -> Microdata:
    from sfumato.engines.write import write_table

    path = folder / f"texts{next(_NUMBERS)}.{kind}"
    if kind == "duckdb":
        write_table(_table(texts), path, table_name="t")
        return sf.read(path, schema=_schema(declared), table="t")
    if kind == "parquet":
        pq.write_table(_table(texts), path)
    else:
        pyarrow.csv.write_csv(_table(texts), path)
    return sf.read(path, schema=_schema(declared), engine="duckdb")


@pytest.fixture(
    params=[
        "duckdb",
        "parquet",
        "csv",
        pytest.param("postgres", marks=pytest.mark.postgres),
        pytest.param("spark", marks=pytest.mark.spark),
    ]
)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Puts texts on an engine and reads them as they are declared."""
    if request.param == "postgres":
        url: str = request.getfixturevalue("postgres_url")
        return lambda texts, declared: _postgres(texts, declared, url)
    if request.param == "spark":
        session = request.getfixturevalue("spark")
        return lambda texts, declared: _spark(texts, declared, session)
    return lambda texts, declared: _file(texts, declared, tmp_path, request.param)


def _values(data: Microdata) -> list[Any]:
    rows = [row for batch in data.relation.batches() for row in batch.to_pylist()]
    moments = [row["x"] for row in sorted(rows, key=lambda row: int(row["n"]))]
    # Where all texts are in UTC this process says so beside the same moments.
    return [each.replace(tzinfo=None) if getattr(each, "tzinfo", None) is not None else each for each in moments]


def _agree(opened: Open, texts: Sequence[str], declared: str) -> None:
    ours = _values(_here(texts, declared, unreadable="missing"))
    data = opened(texts, declared)
    theirs = _values(Microdata(lenient(data.relation), data.schema, data.description))
    assert [each for each in zip(texts, ours, theirs, strict=True) if repr(each[1]) != repr(each[2])] == []
    readable = [text for text, value in zip(texts, ours, strict=True) if value is not None or text == ""]
    assert _values(opened(readable, declared)) == _values(_here(readable, declared))


@pytest.mark.parametrize("declared", TEXTS)
def test_known_odd_texts_are_read_alike(opened: Open, declared: str) -> None:
    _agree(opened, TEXTS[declared], declared)


@pytest.mark.parametrize("declared", WRITTEN)
def test_texts_that_are_written_in_another_way_are_read_alike(tmp_path: Path, declared: str) -> None:
    path = tmp_path / "written.csv"
    ways = {"decimal": ",", "thousands": ".", "date_format": "%d.%m.%Y"}

    def read(texts: Sequence[str], **options: Any) -> list[Any]:
        pyarrow.csv.write_csv(_table(texts), path)
        data = sf.read(path, schema={**_schema(declared), "read": ways}, **options)
        relation = lenient(data.relation) if options.get("unreadable") else data.relation
        return _values(Microdata(relation, data.schema, data.description))

    ours = read(WRITTEN[declared], unreadable="missing")
    assert read(WRITTEN[declared], unreadable="missing", engine="duckdb") == ours
    readable = [text for text, value in zip(WRITTEN[declared], ours, strict=True) if value is not None or text == ""]
    assert read(readable, engine="duckdb") == read(readable)
    assert 2 < len(readable) < len(ours)
    with pytest.raises(SourceError, match=f"{len(ours) - len(readable)} of {len(ours) - 1} values cannot be read"):
        read(WRITTEN[declared], engine="duckdb")


@pytest.mark.parametrize("declared", TEXTS)
@settings(
    max_examples=examples(1),
    phases=[Phase.generate],  # an example asks an engine twice about many texts: one that fails says which of them
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(drawn=st.data())
def test_near_misses_are_read_alike(opened: Open, declared: str, drawn: st.DataObject) -> None:
    _agree(opened, drawn.draw(st.lists(_near_misses(declared), min_size=80, max_size=160)), declared)


@pytest.mark.parametrize("declared", TEXTS)
def test_texts_that_cannot_be_read_are_counted_and_refused(opened: Open, declared: str) -> None:
    ours = _values(_here(TEXTS[declared], declared, unreadable="missing"))
    odd = [text for text, value in zip(TEXTS[declared], ours, strict=True) if value is None and text != ""]
    readable = next(text for text, value in zip(TEXTS[declared], ours, strict=True) if value is not None)
    with pytest.raises(SourceError) as here:
        _here([readable, "", *odd], declared)
    with pytest.raises(SourceError) as there:
        _values(opened([readable, "", *odd], declared))
    for message in map(str, (here.value, there.value)):
        assert f"column 'x': {len(odd):,} of {len(odd) + 1:,} values cannot be read as" in message
        assert not any(text in message for text in odd if len(text) > 3)


def test_private_answers_about_texts_are_the_same(opened: Open) -> None:
    texts = ["12.5", "0x10", "1_0", "5e-1", "3", " 4 ", "7.0", "", "x"]
    schema = {"dataset": "d", "columns": {"n": {"type": "integer"}, "x": {"type": "integer", "bounds": [0, 15]}}}
    here = sf.read(_table(texts), schema=schema, unreadable="missing")
    engine = opened(texts, "integer")
    answers = []
    for data in (here, Microdata(engine.relation, here.schema, engine.description)):
        session = sf.Session(data, budget=sf.PureDP(10**9))
        said = session.sql("SELECT COUNT(x) AS c, SUM(x) AS s FROM d", epsilon=10**6).table.to_pylist()[0]
        histogram = sf.dp.PrivateHistogram(columns=("x",), bins={"x": 16}, epsilon=10**6, max_rows=1)
        answers.append((said["c"], round(said["s"]), session.release(histogram).result.to_pylist()))
    assert answers[0] == answers[1] and answers[0][:2] == (3, 14)
