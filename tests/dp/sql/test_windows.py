"""Windows over noisy groups: what DuckDB makes of the same noisy numbers, at no cost, with intervals that hold."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pytest

import sfumato as sf
from sfumato.core.errors import Unsupported
from sfumato.core.randomness import default
from sfumato.dp.sql.asking.answer import put_together
from sfumato.dp.sql.margins.noise_points import points_of_sums
from sfumato.dp.sql.measuring.noise import Noise, Request, price
from sfumato.dp.sql.measuring.one_query import measure
from tests.dp.sql.database import session

KEYS = "EXTRACT(MONTH FROM day)"
#: Windows over groups of city and category, each also over the columns of the answer without windows.
WINDOWS = {
    "RANK() OVER (ORDER BY {n} DESC)": "integer",
    "DENSE_RANK() OVER (PARTITION BY city ORDER BY {n} > 20)": "integer",
    "ROW_NUMBER() OVER (ORDER BY city, category DESC)": "integer",
    "SUM({s}) OVER (PARTITION BY city ORDER BY category)": "number",
    "SUM({n}) OVER (ORDER BY city)": "integer",
    "AVG({n}) OVER (ORDER BY {s} ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)": "number",
    "SUM({n}) OVER (ORDER BY {s} ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)": "integer",
    "SUM({n}) OVER (ORDER BY {s} ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING)": "integer",
    "SUM({n}) OVER (ORDER BY city, category RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)": "integer",
    "MIN({s}) OVER (PARTITION BY category)": "number",
    "MAX({n}) OVER (PARTITION BY category ORDER BY city)": "integer",
    "COUNT(*) OVER (PARTITION BY city)": "integer",
    "COUNT({m}) OVER ()": "integer",
    "LAG({n}) OVER (PARTITION BY city ORDER BY category)": "integer",
    "LEAD({n}, 2, 0) OVER (ORDER BY city, category)": "integer",
    "100.0 * {s} / SUM({s}) OVER (PARTITION BY city)": "number",
    "{n} - LAG({n}, 1, {n}) OVER (ORDER BY city, category)": "number",
    "CASE WHEN RANK() OVER (ORDER BY {n}) <= 3 THEN 'few' ELSE 'many' END": "string",
}
AGGREGATES = {"n": "COUNT(*)", "s": "SUM(amount)", "m": "NULLIF(COUNT(*), 0)"}
GROUPS = "FROM orders GROUP BY city, category"


@pytest.fixture(scope="module")
def shop() -> sf.Session:
    return session(budget=sf.PureDP(10**6), max_rows=5, max_groups=3)


@pytest.mark.parametrize("window", WINDOWS)
def test_a_window_is_what_duckdb_makes_of_the_noisy_groups(shop: sf.Session, window: str) -> None:
    groups = shop.sql(f"SELECT city, category, COUNT(*) AS n, SUM(amount) AS s, NULLIF(COUNT(*), 0) AS m {GROUPS}", epsilon=10)
    left = shop.remaining()
    answer = shop.sql(
        f"SELECT city, category, {window.format(**AGGREGATES)} AS w, COUNT(*) AS n, SUM(amount) AS s {GROUPS}", epsilon=10
    )
    assert answer.repeated and shop.remaining() == left  # computed from what was measured
    duck = duckdb.connect()
    duck.register("answer", groups.table)
    inside = window.format(n="n", s="s", m="m")
    expected = duck.execute(f"SELECT city, category, {inside} AS w FROM answer ORDER BY city, category").fetchall()
    shown = sorted((row["city"], row["category"], row["w"]) for row in answer.table.to_pylist())
    assert [row[2] for row in shown] == pytest.approx([row[2] for row in expected]) or [row[2] for row in shown] == [
        row[2] for row in expected
    ]
    assert answer.answer.kinds[2] == WINDOWS[window]


def test_windows_come_after_having_and_before_limit(shop: sf.Session) -> None:
    groups = shop.sql(f"SELECT city, category, COUNT(*) AS n, SUM(amount) AS s {GROUPS}", epsilon=10).table
    query = "SELECT city, category, SUM(COUNT(*)) OVER () AS total, RANK() OVER (ORDER BY COUNT(*) DESC) AS place "
    query += f"{GROUPS} HAVING COUNT(*) > 30 ORDER BY place DESC, city LIMIT 2 OFFSET 1"
    answer = shop.sql(query, epsilon=5)
    duck = duckdb.connect()
    duck.register("answer", groups)
    expected = duck.execute(
        "SELECT city, category, SUM(n) OVER () AS total, RANK() OVER (ORDER BY n DESC) AS place FROM answer WHERE n > 30 "
        "ORDER BY place DESC, city LIMIT 2 OFFSET 1"
    ).fetchall()
    assert [tuple(row.values()) for row in answer.table.to_pylist()] == expected
    assert answer.intervals().to_pylist()[0]["total"] is None  # noise chose which groups are added up
    assert "HAVING" in answer.selection


def test_ranks_and_choices_have_no_margin_and_say_so(shop: sf.Session) -> None:
    query = (
        "SELECT city, RANK() OVER (ORDER BY COUNT(*)) AS r, SUM(COUNT(*)) OVER (ORDER BY SUM(amount)) AS s, "
        "MAX(COUNT(*)) OVER () AS m, AVG(AVG(amount)) OVER () AS a, COUNT(*) OVER () AS c FROM orders GROUP BY city"
    )
    answer = shop.sql(query, epsilon=10)
    assert all({name: row[name] for name in "rsma"} == dict.fromkeys("rsma") for row in answer.intervals().to_pylist())
    assert answer.intervals().to_pylist()[0]["c"] == {"low": 4.0, "high": 4.0}
    notes = {note.name: note for note in shop.explain(query, epsilon=10).columns}
    assert notes["r"].margin is None and "several groups" in notes["r"].sentence(0.95)
    with pytest.raises(Unsupported, match="no loss can be told for the column 'r'"):
        shop.cost(query, within=10)


COVERED = [
    f"SELECT {KEYS} AS k, SUM(SUM(quantity)) OVER (ORDER BY {KEYS}) AS w FROM orders GROUP BY k",
    f"SELECT {KEYS} AS k, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY {KEYS}) AS w FROM orders GROUP BY k",
    f"SELECT {KEYS} AS k, AVG(SUM(amount)) OVER (ORDER BY {KEYS} ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS w "
    "FROM orders GROUP BY k",
    "SELECT category AS k, 100.0 * SUM(amount) / SUM(SUM(amount)) OVER () AS w FROM orders GROUP BY k",
    "SELECT category AS k, 1.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS w FROM orders GROUP BY k",
    f"SELECT {KEYS} AS k, 100.0 * SUM(SUM(quantity)) OVER (ORDER BY {KEYS}) / SUM(SUM(quantity)) OVER () AS w "
    "FROM orders GROUP BY k",
    "SELECT category AS k, COUNT(*) * 1.0 / MAX(COUNT(*)) OVER () AS w FROM orders GROUP BY k",
]


@pytest.mark.usefixtures("engine_asked_once")
@pytest.mark.parametrize("query", COVERED)
def test_intervals_cover_what_the_bounded_rows_say(query: str) -> None:
    """150 noises of at least 4 groups: the share covered is below 0.95 by more than chance allows less often than 10⁻⁶."""
    shop = session(max_rows=3, max_groups=2, bounding="truncate")
    question = shop._question(shop._parsed(query), None)
    exact = put_together(question, *_drawn(shop, question, 10**12, 0))
    truth = {row[0]: row[1] for row in exact.rows}
    covered: list[bool] = []
    for seed in range(150):
        answer = put_together(question, *_drawn(shop, question, 20, seed))
        for row, interval in zip(answer.rows, answer.intervals(0.95)["w"], strict=True):
            if interval is not None and truth[row[0]] is not None:
                low, high = (
                    (-np.inf if interval.low is None else interval.low),
                    (np.inf if interval.high is None else interval.high),
                )
                covered.append(low - 1e-3 <= truth[row[0]] <= high + 1e-3)
    # Groups of one answer share noise: as if they were one, 150 answers have a deviation of at most 0.018 around 0.95.
    assert len(covered) > 400 and np.mean(covered) > 0.95 - 5 * 0.018


@pytest.mark.usefixtures("engine_asked_once")
@pytest.mark.parametrize(("epsilon", "running"), [(1, 1.0), (10, 0.12)])
def test_a_part_of_a_whole_lies_between_nothing_and_all_of_it(epsilon: int, running: float) -> None:
    """Also where much of the whole is noise; a running share is known to a few times its error."""
    query = (
        f"SELECT {KEYS} AS k, COUNT(*) * 1.0 / MAX(COUNT(*)) OVER () AS m, COUNT(*) / SUM(COUNT(*)) OVER () AS s, "
        f"SUM(SUM(quantity)) OVER (ORDER BY {KEYS}) / SUM(SUM(quantity)) OVER () AS w, "
        f"SUM(SUM(quantity)) OVER (ORDER BY {KEYS} ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) / SUM(SUM(quantity)) OVER () AS f "
        "FROM orders GROUP BY k"
    )
    shop = session(max_rows=3, max_groups=2, bounding="truncate")
    question = shop._question(shop._parsed(query), None)
    widths = []
    for seed in range(5):
        answer = put_together(question, *_drawn(shop, question, 2 * epsilon, seed))
        intervals = answer.intervals(0.95)
        for place, name in enumerate("mswf", 1):
            for row, interval in zip(answer.rows, intervals[name], strict=True):
                assert interval is not None and interval.low is not None and interval.high is not None
                assert min(row[place], 0) - 1e-9 <= interval.low <= row[place] <= interval.high <= max(row[place], 1) + 1e-9
        widths += [interval.high - interval.low for interval in intervals["w"]]  # type: ignore[union-attr,operator]
    assert np.median(widths) <= running


def _drawn(shop: sf.Session, question: Any, epsilon: int, seed: int) -> tuple[Any, Any]:
    priced = price(question, Request(epsilon=epsilon), shop._bounds)
    return priced, measure(question, priced, default(seed))


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(50)])
@pytest.mark.parametrize("terms", [1, 2, 7])
def test_points_of_a_sum_are_quantiles_of_the_convolved_law(scale: Fraction, terms: int) -> None:
    noise = Noise("laplace", scale, 1, 1, Fraction(1))
    points = np.sort(points_of_sums([noise], terms, 4096, 1)[0])
    reach = np.arange(-int(40 * scale) - 40, int(40 * scale) + 41)
    ratio = np.exp(-1 / float(scale))
    once = (1 - ratio) / (1 + ratio) * ratio ** np.abs(reach)
    chances = once
    for _ in range(terms - 1):
        chances = np.convolve(chances, once)
    numbers = np.arange(len(chances)) - len(chances) // 2
    exact = numbers[np.searchsorted(np.cumsum(chances), (np.arange(4096) + 0.5) / 4096)]
    # Large noise is computed on a grid of a twentieth of its scale.
    assert np.abs(points - exact)[4:-4].max() <= max(1.0, float(scale) / 10)


REWRITES = {
    "NTILE(4) OVER (ORDER BY COUNT(*))": ("over groups there are SUM", "RANK() OVER (ORDER BY COUNT(*))"),
    "SUM(COUNT(*)) OVER w": ("ALIAS|OVER", "SUM(COUNT(*)) OVER (PARTITION BY city)"),
    "RANK() OVER ()": ("needs an order", "RANK() OVER (ORDER BY COUNT(*))"),
    "SUM(COUNT(*)) OVER (ORDER BY city RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)": (
        "ROWS BETWEEN n PRECEDING",
        "SUM(COUNT(*)) OVER (ORDER BY city ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
    ),
    "LAG(city) OVER (ORDER BY city)": ("over numbers", "LAG(COUNT(*)) OVER (ORDER BY city)"),
    "SUM(amount) OVER (ORDER BY city)": ("inside an aggregate", "SUM(SUM(amount)) OVER (ORDER BY city)"),
    "SUM(SUM(COUNT(*)) OVER ()) OVER ()": ("a window inside a window", "SUM(COUNT(*)) OVER ()"),
    "LAG(COUNT(*), COUNT(*)) OVER (ORDER BY city)": ("constant number of groups", "LAG(COUNT(*), 2) OVER (ORDER BY city)"),
}


@pytest.mark.parametrize("window", REWRITES)
def test_what_is_refused_names_what_works(shop: sf.Session, window: str) -> None:
    reason, rewrite = REWRITES[window]
    with pytest.raises(Unsupported, match=reason):
        shop.explain(f"SELECT city, COUNT(*) AS n, {window} AS w FROM orders GROUP BY city", epsilon=1)
    assert shop.explain(f"SELECT city, COUNT(*) AS n, {rewrite} AS w FROM orders GROUP BY city", epsilon=1).columns


def test_windows_are_for_groups_and_not_for_rows(shop: sf.Session) -> None:
    for query, reason in {
        "SELECT COUNT(*) AS n FROM (SELECT customer_id, RANK() OVER (ORDER BY amount) AS r FROM orders) WHERE r = 1": "indow",
        "SELECT COUNT(*) AS n FROM orders WHERE RANK() OVER (ORDER BY amount) = 1": "windows are computed over the groups|HAVING",
        "SELECT city, COUNT(*) AS n FROM orders GROUP BY city HAVING RANK() OVER (ORDER BY COUNT(*)) = 1": "before windows",
        "SELECT city, COUNT(*) AS n FROM orders GROUP BY city QUALIFY RANK() OVER (ORDER BY COUNT(*)) = 1": "QUALIFY",
    }.items():
        with pytest.raises(Unsupported, match=reason):
            shop.explain(query, epsilon=1)


def test_discovered_groups_are_ranked_as_they_are_shown() -> None:
    shop = session(max_rows=3, max_groups=3)
    windows = "RANK() OVER (ORDER BY COUNT(*) DESC) AS r, SUM(COUNT(*)) OVER () AS t"
    query = f"SELECT coupon, COUNT(*) AS n, {windows} FROM orders GROUP BY coupon"
    answer = shop.sql(query, epsilon=20, delta="1e-4")
    rows = answer.table.to_pylist()
    assert (
        len(rows) >= 2
        and sorted(row["r"] for row in rows)[0] == 1
        and {row["t"] for row in rows} == {sum(row["n"] for row in rows)}
    )
    assert all(row["t"] is None for row in answer.intervals().to_pylist())


def test_many_groups_take_no_longer_than_a_few_of_them_each() -> None:
    from sqlglot import exp

    from sfumato.dp.sql.operators.ordering import Ordering
    from sfumato.dp.sql.operators.windows import WindowColumn, WindowFunction, window_values

    column = exp.column(exp.to_identifier("x", quoted=True))
    rows = [(place, {"x": place % 7}) for place in range(20_000)]
    window = WindowColumn(WindowFunction(exp.Sum, "sum"), column, (), (Ordering(column, False, False),))
    running = window_values(window, rows)
    assert running.values[0] == 0 and running.values[6] == sum(row["x"] for _, row in rows)
