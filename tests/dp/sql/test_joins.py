"""How often a JOIN may multiply the rows of one unit: decided by the query and by public tables, never by private rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import Unsupported
from sfumato.dp.sql.reading.multiplicity import MOST_PUBLIC_COPIES

SCHEMA = {
    "dataset": "ward",
    "columns": {
        "patient": {"role": "unit", "type": "integer"},
        "name": {"type": "string"},
        "hiv": {"type": "boolean"},
        "zip": {"type": "integer", "bounds": [0, 9999]},
        "old_zip": {"type": "integer", "bounds": [0, 9999]},
        "cost": {"type": "number", "bounds": [0, 10]},
    },
}
TYPES = [("patient", pa.int64()), ("name", pa.string()), ("hiv", pa.bool_())]
TYPES += [("zip", pa.int64()), ("old_zip", pa.int64()), ("cost", pa.float64())]


def rows(visits: int = 3) -> pa.Table:
    """Bob, Carl, and Anna with so many visits."""
    people = [(1, "Bob", False, 1, 1, 1.0), (2, "Carl", False, 2, 1, 2.0), *([(3, "Anna", True, 1, 1, 3.0)] * visits)]
    return pa.Table.from_pylist([dict(zip((n for n, _ in TYPES), row, strict=True)) for row in people], schema=pa.schema(TYPES))


def asked(public: dict[str, pa.Table] | None = None, **options: Any) -> sf.Session:
    return sf.Session(
        {"v": sf.read(rows(), schema=SCHEMA)}, public=public or {}, budget=sf.PureDP(10**9), max_rows=100, max_groups=1, **options
    )


def counted(session: sf.Session, query: str) -> int:
    return int(session.sql(query, epsilon=10**6).table["n"][0].as_py())


def test_two_sides_with_many_rows_per_unit_are_joined() -> None:
    # Anna has 3 × 3 pairs of visits, Bob and Carl one each.
    assert counted(asked(), "SELECT COUNT(*) AS n FROM v a JOIN v b ON a.patient = b.patient") == 11


THREE = [
    "SELECT COUNT(*) AS n FROM v a JOIN v b ON a.patient = b.patient JOIN v c ON a.patient = c.patient",
    "WITH a AS (SELECT patient FROM v WHERE name = 'Anna' AND hiv) "
    "SELECT COUNT(*) AS n FROM a a0 JOIN a a1 ON a0.patient = a1.patient JOIN a a2 ON a0.patient = a2.patient",
    "WITH a AS (SELECT patient FROM v), b AS (SELECT x.patient AS patient FROM a x JOIN a y ON x.patient = y.patient) "
    "SELECT COUNT(*) AS n FROM b JOIN v ON b.patient = v.patient",
    "WITH a AS (SELECT x.patient AS patient, y.cost AS cost FROM v x JOIN v y ON x.patient = y.patient), "
    "b AS (SELECT patient, cost, COUNT(*) AS k FROM a GROUP BY patient, cost) "
    "SELECT COUNT(*) AS n FROM b JOIN v ON b.patient = v.patient",
    "SELECT COUNT(*) AS n FROM (SELECT DISTINCT patient, cost FROM v) a JOIN v b ON a.patient = b.patient "
    "JOIN v c ON a.patient = c.patient",
]


@pytest.mark.parametrize("query", THREE)
def test_three_sides_with_many_rows_per_unit_are_refused_whatever_the_rows_are(query: str) -> None:
    session = asked()
    with pytest.raises(Unsupported, match="GROUP BY unit") as refusal:
        session.explain(query, epsilon=1)
    empty = sf.Session({"v": sf.read(rows().slice(0, 0), schema=SCHEMA)}, budget=sf.PureDP(1), max_rows=1, max_groups=1)
    with pytest.raises(Unsupported) as other:
        empty.explain(query, epsilon=1)
    assert str(refusal.value) == str(other.value)


def test_the_rewrite_that_the_refusal_names_works() -> None:
    query = (
        "SELECT SUM(CLAMP(s.total, 0, 100)) AS n FROM v a JOIN v b ON a.patient = b.patient "
        "JOIN (SELECT patient, SUM(cost) AS total FROM v GROUP BY patient) AS s ON a.patient = s.patient "
        "JOIN (SELECT patient, COUNT(*) AS k FROM v x JOIN v y USING (patient) GROUP BY x.patient) AS t ON a.patient = t.patient"
    )
    with pytest.raises(Unsupported):
        counted(asked(), query.replace("v x JOIN v y USING (patient)", "v x JOIN v y USING (patient) JOIN v z USING (patient)"))
    # Anna: 9 pairs, each with her total of 9; Bob 1; Carl 2.
    assert asked().sql(query, epsilon=10**6).table["n"][0].as_py() == pytest.approx(84, abs=0.1)


def copies(of: int, key: int = 1) -> pa.Table:
    return pa.table({"zip": [key] * of + [2], "mark": list(range(of + 1))})


def test_a_public_table_may_multiply_up_to_the_limit() -> None:
    session = asked({"p": copies(MOST_PUBLIC_COPIES), "q": copies(MOST_PUBLIC_COPIES + 1), "r": copies(40), "s": copies(26)})
    assert counted(session, "SELECT COUNT(*) AS n FROM v JOIN p ON v.zip = p.zip WHERE p.mark < 7") == 4 * 7
    for query in (
        "SELECT COUNT(*) AS n FROM v JOIN q ON v.zip = q.zip",
        "SELECT COUNT(*) AS n FROM v LEFT JOIN q ON v.zip = q.zip",
        "SELECT COUNT(*) AS n FROM q JOIN v ON v.zip = q.zip",
        "SELECT COUNT(*) AS n FROM v JOIN (SELECT zip AS z, mark AS m FROM q) t ON v.zip = t.z",
        "SELECT COUNT(*) AS n FROM v JOIN r ON v.zip = r.zip JOIN s ON v.zip = s.zip",
        "SELECT COUNT(*) AS n FROM v JOIN (SELECT r.zip AS zip FROM r JOIN s ON r.zip = s.zip) t ON v.zip = t.zip",
        "SELECT COUNT(*) AS n FROM (SELECT v.patient AS patient FROM v JOIN r ON v.zip = r.zip) a "
        "JOIN (SELECT v.patient AS patient FROM v JOIN s ON v.zip = s.zip) b ON a.patient = b.patient",
    ):
        with pytest.raises(Unsupported, match="1,000 rows of one private row"):
            session.explain(query, epsilon=1)


def test_a_public_sub_query_counts_with_the_rows_that_it_has() -> None:
    """On both of its columns the public table is unique, and under the condition it has few rows."""
    session = asked({"q": copies(MOST_PUBLIC_COPIES + 1)})
    narrowed = "SELECT COUNT(*) AS n FROM v JOIN (SELECT zip, mark FROM q WHERE mark < 5) t ON v.zip = t.zip"
    assert counted(session, narrowed) == 4 * 5
    session.explain("SELECT COUNT(*) AS n FROM v JOIN q ON v.zip = q.zip AND v.old_zip = q.mark", epsilon=1)


def test_copies_of_public_rows_end_where_a_sub_query_makes_one_row_per_unit() -> None:
    session = asked({"r": copies(40)})
    one = "(SELECT v.patient AS patient, COUNT(*) AS k FROM v JOIN r ON v.zip = r.zip GROUP BY v.patient)"
    assert counted(session, f"SELECT COUNT(*) AS n FROM {one} a JOIN {one} b ON a.patient = b.patient") == 3


def test_public_tables_joined_with_each_other_stay_a_public_table() -> None:
    many = pa.table({"zip": [1] * 2000})
    session = asked({"p": many, "q": many, "one": pa.table({"zip": [1, 2], "area": [5, 6]}), "two": pa.table({"area": [5]})})
    with pytest.raises(Unsupported, match="1,000,000 rows"):
        session.explain("SELECT COUNT(*) AS n FROM p JOIN q ON p.zip = q.zip JOIN v ON v.zip = p.zip", epsilon=1)
    assert counted(session, "SELECT COUNT(*) AS n FROM one JOIN two ON one.area = two.area JOIN v ON v.zip = one.zip") == 4


def test_one_public_column_may_be_compared_twice() -> None:
    schema = {"dataset": "d", "columns": {name: {"type": "integer"} for name in ("a", "b")}}
    data = sf.read(pa.table({"a": [1, 2], "b": [1, 1]}), schema=schema)
    session = sf.Session({"d": data}, public={"p": pa.table({"k": [1, 2]})}, budget=sf.PureDP(10**9))
    assert counted(session, "SELECT COUNT(*) AS n FROM d JOIN p ON d.a = p.k AND d.b = p.k") == 1


def test_a_record_may_be_joined_with_a_public_sub_query_that_is_unique_by_its_key() -> None:
    schema = {"dataset": "d", "columns": {"a": {"type": "integer"}}}
    data = sf.read(pa.table({"a": [1, 2]}), schema=schema)
    session = sf.Session({"d": data}, public={"p": pa.table({"k": [1, 1], "w": [1, 2]})}, budget=sf.PureDP(10**9))
    assert counted(session, "SELECT COUNT(*) AS n FROM d JOIN (SELECT k FROM p WHERE w = 1) t ON d.a = t.k") == 1
    with pytest.raises(Unsupported, match="several rows for one key"):
        session.explain("SELECT COUNT(*) AS n FROM d JOIN (SELECT k FROM p) t ON d.a = t.k", epsilon=1)
