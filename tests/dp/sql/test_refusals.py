"""What a refusal proposes works: each proposal is typed out and accepted, and no refusal proposes anything that is not."""

from __future__ import annotations

import ast
import datetime
import functools
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import Unsupported
from sfumato.dp.sql.parse import parse
from tests.dp.sql.database import CUSTOMERS, ORDERS, customers, orders, regions, session

REFUSALS: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("refusals.toml").read_text(encoding="utf-8"))["refusal"]


def records() -> sf.Session:
    """The shop with each record as a unit of its own."""

    def plain(schema: dict[str, Any]) -> dict[str, Any]:
        columns = {**schema["columns"], "customer_id": {"type": "integer"}}
        return {"dataset": "shop", "unit": "record", "columns": columns}

    tables = {"customers": sf.read(customers(), schema=plain(CUSTOMERS)), "orders": sf.read(orders(), schema=plain(ORDERS))}
    return sf.Session(tables, public={"regions": regions()}, budget=sf.PureDP(1))


@pytest.fixture(scope="module")
def shops() -> dict[str, sf.Session]:
    return {"units": session(), "records": records()}


@pytest.fixture(scope="module")
def messages(shops: dict[str, sf.Session]) -> Callable[[dict[str, Any]], str]:
    """What a refusal says, typed once."""

    @functools.cache
    def refused(place: str, query: str) -> str:
        with pytest.raises(Unsupported) as refusal:
            shops[place].describe(query)
        return str(refusal.value)

    return lambda refusal: refused(refusal.get("on", "units"), refusal["ask"])


@pytest.mark.parametrize("refusal", REFUSALS, ids=[each["says"][:60] for each in REFUSALS])
def test_what_is_refused_names_a_rewrite_that_works(
    shops: dict[str, sf.Session], messages: Callable[[dict[str, Any]], str], refusal: dict[str, Any]
) -> None:
    place = refusal.get("on", "units")
    assert refusal["says"] in messages(refusal)
    for query in refusal.get("write", ()):
        assert shops[refusal.get("write_on", place)].describe(query).columns
    if "batch" in refusal:
        described, _ = shops[place].describe_batch(refusal["batch"])
        assert len(described) == len(refusal["batch"])
    assert refusal.keys() & {"write", "batch"}


#: Words by which a refusal proposes something to type.
_PROPOSES = re.compile(r"; [a-z]|instead|\bwrite\b|\buse\b|: [A-Z]{3}|for instance|such as|[Dd]eclare")
#: What is proposed is no query, or a text alone does not bring the refusal about: tested below, in another file, or unreachable.
ELSEWHERE = {
    "IN lists more than 10,000 values": "below",
    "rank_within is about quantiles": "below",
    "the bounds of a summed column are beyond": "the owner's schema",
    "rows of one private row": "test_joins.py",
    "the public tables joined with each other": "test_joins.py",
    "session.contributions(epsilon=…) finds bounds privately": "below",
    "the loss is too small to discover keys": "below",
    "give one expression, for instance AVG(income)": "below",
    "the sub-query of IN has more than": "below",
    "the list of '": "test_key_lists.py",
    "compute it directly": "no private table is read, so that nothing is asked",
    "found by looking at the values": "the owner's schema",
    "only declared tables can be read": "proposes nothing",
    "{} is not supported; as aggregates": "names the aggregates that there are, as the message of `aggregates`",
    # Guards: columns of queries are columns of plans by then.
    "JOIN … ON compares columns, not expressions": "unreachable",
    "a sub-query of a condition is compared with columns": "unreachable",
    "SELECT * cannot be used here": "unreachable",
}


def refusals_in_the_code() -> Iterator[tuple[str, str]]:
    """Every text of a refusal in the room, as the parts that are the same each time, joined by {}."""
    for path in sorted(Path(sf.__file__).parent.joinpath("dp/sql").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        constants = {
            target.id: _text(statement.value, {})
            for statement in tree.body
            if isinstance(statement, ast.Assign)
            for target in statement.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Unsupported" and node.args:
                yield path.name, _text(node.args[0], constants)
        if "_REFUSED" in constants:
            table = next(each for each in tree.body if isinstance(each, ast.Assign) and _name(each) == "_REFUSED")
            assert isinstance(table.value, ast.Dict)
            yield from ((path.name, _text(value, {})) for value in table.value.values)


def _name(statement: ast.Assign) -> str:
    return statement.targets[0].id if isinstance(statement.targets[0], ast.Name) else ""


def _text(node: ast.expr, constants: dict[str, str]) -> str:
    match node:
        case ast.Constant(value=str(value)):
            return value
        case ast.JoinedStr(values=values):
            return "".join(_text(value, constants) for value in values)
        case ast.Name(id=name):
            return constants.get(name, "{}")
    return "{}"


def test_every_refusal_that_proposes_something_is_typed(messages: Callable[[dict[str, Any]], str]) -> None:
    typed = [messages(refusal) for refusal in REFUSALS]
    from sfumato.dp.sql.operators.language import LANGUAGE

    said = [("language", each.rows) for each in LANGUAGE.operators if isinstance(each.rows, str)]
    texts = [(name, text) for name, text in [*refusals_in_the_code(), *said] if _PROPOSES.search(text)]
    assert len(texts) > 60
    untyped = []
    for name, text in texts:
        longest = max(text.split("{}"), key=len)
        if not any(longest in message for message in typed) and not any(part in text for part in ELSEWHERE):
            untyped.append(f"{name}: {text}")
    assert untyped == []


def test_proposals_that_need_more_than_a_text(shops: dict[str, sf.Session]) -> None:
    shop = shops["units"]
    many = ", ".join(["1"] * 10_001)
    with pytest.raises(Unsupported, match="put them into a public table and join it"):
        shop.describe(f"SELECT COUNT(*) FROM orders WHERE quantity IN ({many})")
    assert shop.describe("SELECT COUNT(*) FROM orders JOIN regions ON orders.city = regions.city").columns
    listed = sf.Session(
        sf.read(customers(), schema=CUSTOMERS), public={"many": pa.table({"age": range(10_001)})}, budget=sf.PureDP(1)
    )
    with pytest.raises(Unsupported, match="join its table instead"):
        listed.describe("SELECT COUNT(*) FROM shop WHERE age IN (SELECT age FROM many)")
    assert listed.describe("SELECT COUNT(*) FROM shop JOIN many ON shop.age = many.age").columns
    with pytest.raises(Unsupported, match="say within="):
        shop.cost("SELECT COUNT(*) FROM orders", rank_within=5)
    assert shop.cost("SELECT COUNT(*) FROM orders", within=5).loss
    bare = session(max_rows=None, max_groups=None)
    with pytest.raises(Unsupported, match=r"say max_rows=….*session.contributions\(epsilon=…\)"):
        bare.explain("SELECT COUNT(*) FROM orders", epsilon=1)
    found = bare.contributions(table="orders", epsilon=1)
    assert bare.explain("SELECT COUNT(*) FROM orders", epsilon=1, max_rows=found.max_rows).loss
    coupons = "SELECT coupon, COUNT(*) FROM orders GROUP BY coupon"
    with pytest.raises(Unsupported, match="with a larger ε or ρ, or declare the keys"):
        shop.explain(coupons, epsilon="1e-9", delta="1e-60", max_rows=10**6, max_groups=10**6)
    assert shop.explain(coupons, epsilon=1, delta="1e-6").loss
    assert shop.explain(coupons, epsilon="1e-9", keys={"coupon": ["spring"]}).loss
    with pytest.raises(Unsupported, match="not declared.*ask with epsilon and delta"):
        shop.explain(coupons, epsilon=1)
    with pytest.raises(Unsupported, match=r"for instance AVG\(income\)"):
        shop.table("customers").agg(n="COUNT(*), AVG(income)").explain(epsilon=1)
    assert shop.table("customers").agg(n="AVG(income)").explain(epsilon=1).loss


DAYS = [datetime.date(2022, 3, 1), datetime.date(2023, 4, 2), datetime.date(2023, 5, 3), datetime.date(2030, 1, 1)]


def dated(**declared: Any) -> sf.Session:
    """Records with a date and a moment each."""
    moments = [datetime.datetime(day.year, day.month, day.day, 12) for day in DAYS]
    columns = {"day": {"type": "date", **declared}, "seen": {"type": "datetime"}}
    table = pa.table({"day": DAYS, "seen": moments})
    return sf.Session(sf.read(table, {"dataset": "t", "unit": "record", "columns": columns}), budget=sf.PureDP(10**12))


@pytest.mark.parametrize("asked", ["DATEDIFF('day', DATE '2022-01-01', day)", "EXTRACT(YEAR FROM day)"])
def test_a_number_made_of_dates_gets_its_bounds_from_the_dates_that_are_listed(asked: str) -> None:
    with pytest.raises(Unsupported, match=r"List the dates.* in the schema \(domain = .*, or clamp in the query: AVG\(CLAMP"):
        dated().explain(f"SELECT AVG({asked}) FROM t", epsilon=1)
    assert dated(domain=["2022-03-01", "2023-04-02"]).explain(f"SELECT AVG({asked}) FROM t", epsilon=1).loss
    assert dated().explain(f"SELECT AVG(CLAMP({asked}, 0, 100)) FROM t", epsilon=1).loss
    moment = asked.replace("day)", "seen)")
    with pytest.raises(Unsupported, match=r"calendar\. Clamp in the query: AVG\(CLAMP\(x, 0, 100\)\)$"):
        dated().explain(f"SELECT AVG({moment}) FROM t", epsilon=1)
    assert dated().explain(f"SELECT AVG(CLAMP({moment}, 0, 100)) FROM t", epsilon=1).loss


def test_the_years_of_listed_dates_are_keys() -> None:
    query = "SELECT EXTRACT(YEAR FROM day) AS y, COUNT(*) AS n FROM t GROUP BY y"
    with pytest.raises(Unsupported, match=r"key 'y' are not declared.*Give keys=\{…\} with the question"):
        dated().explain(query, epsilon=1)
    assert dated().explain(query, epsilon=1, keys={"y": [2022, 2023]}).loss
    listed = dated(domain=["2022-03-01", "2023-04-02", "2023-12-31"])
    answer = listed.sql(query, epsilon=10**9).table
    assert sorted(zip(*answer.select(["y", "n"]).to_pydict().values(), strict=True)) == [
        (2022, 1),
        (2023, 3),
    ]  # 2030 is the nearest
    plain = "SELECT day, COUNT(*) FROM t GROUP BY day"
    with pytest.raises(Unsupported, match="declare the domain in the schema where the key is a column of a table"):
        dated().explain(plain, epsilon=1)
    assert listed.explain(plain, epsilon=1).loss


def test_bounds_are_for_numbers() -> None:
    with pytest.raises(sf.errors.SchemaError, match="bounds are for numbers; use domain for values"):
        sf.Schema.parse({"columns": {"city": {"type": "string", "bounds": [0, 1]}}})


def test_a_table_whose_name_has_a_hyphen_is_to_be_quoted() -> None:
    for name, after in (("visits-2023", ""), ("visits-2023", " WHERE city = 'from a-b'"), ("2023", " GROUP BY city")):
        with pytest.raises(Unsupported, match=f'stands in double quotes: FROM "{name}" ') as refused:
            parse(f"SELECT COUNT(*) FROM {name}{after}")
        assert "a-b" not in str(refused.value)
        parse(f'SELECT COUNT(*) FROM "{name}"{after}')
    for query in ("SELECT COUNT(* FROM a-b", "SELECT 'from a-b' FROM t LIMIT (", 'SELECT COUNT(* FROM "a-b"'):
        with pytest.raises(Unsupported, match=r"line 1, column [0-9]+$"):  # quotes would not mend it
            parse(query)


def test_a_column_named_like_a_word_of_sql_is_to_be_quoted() -> None:
    for query in ("SELECT AVG(alter) FROM t", "SELECT alter, COUNT(*) FROM t GROUP BY alter"):
        with pytest.raises(Unsupported, match='ALTER is a word of SQL: write a column of that name in double quotes, "alter"$'):
            parse(query)
        parse(query.replace("alter", '"alter"'))
    with pytest.raises(Unsupported, match="column 19$"):  # quotes would not mend it
        parse("SELECT COUNT(* FROM t")
