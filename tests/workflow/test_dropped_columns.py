"""Releases that drop columns, or give them other roles: what is said about two and three of them, against enumeration."""

from __future__ import annotations

import re
from collections import Counter
from functools import reduce
from itertools import combinations
from operator import and_
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import Infeasible, InputError
from sfumato.data.schema import Column, HierarchySpec, Schema
from tests.workflow.test_several_releases import GRADES, REGIONS, covers

LEFT = re.compile(r"among (?:as few as )?([\d,]+) records?")
SHARE = re.compile(r"For (?:up to )?(?:roughly )?([\d.]+) % of them (?:\(estimated\) )?one value of (.*?) is left")
SEARCHES = (sf.Lattice(suppression=0.3), sf.Mondrian(), sf.LocalRecoding(), sf.TopDown(), sf.CellSuppression())
ROLES: dict[str, tuple[str, ...]] = {
    "region": ("quasi",),
    "age": ("quasi", "quasi", "plain", "dropped"),
    "grade": ("quasi", "plain", "dropped"),
    "vip": ("quasi", "plain", "sensitive", "dropped"),
    "visits": ("plain", "quasi", "dropped"),
    "illness": ("sensitive", "sensitive", "dropped"),
    "income": ("sensitive", "plain", "dropped"),
}
Published = tuple[Schema, pa.Table]
Person = dict[str, Any]


def drawn_people(draw: np.random.Generator) -> list[Person]:
    def some(values: list[Any], shares: list[float]) -> Any:
        return values[int(draw.choice(len(values), p=shares))]

    return [
        {
            "region": some(["n1", "n2", "s1", "s2"], [0.4, 0.3, 0.2, 0.1]),
            "age": some([*range(18, 30), None], [0.08] * 12 + [0.04]),
            "grade": some(list(GRADES), [0.4, 0.3, 0.2, 0.1]),
            "vip": some(["yes", "no"], [0.2, 0.8]),
            "visits": some([0, 1, 2], [0.6, 0.3, 0.1]),
            "illness": some(["flu", "cold", "gout", None], [0.5, 0.3, 0.15, 0.05]),
            "income": some(["low", "mid", "top"], [0.5, 0.3, 0.2]),
        }
        for _ in range(int(draw.integers(8, 24)))
    ]


def drawn_schema(draw: np.random.Generator) -> Schema:
    columns = {}
    for name, roles in ROLES.items():
        role: Any = roles[int(draw.integers(len(roles)))]
        spec = HierarchySpec(tree=REGIONS[int(draw.integers(2))]) if name == "region" else None
        if name == "age":
            spec = HierarchySpec(intervals=[(4, 8), (5, 10), (3,)][int(draw.integers(3))])
        if role != "dropped":
            kind: Any = "integer" if name in ("age", "visits") else "string"
            order = GRADES if name == "grade" else None
            columns[name] = Column(role=role, type=kind, order=order, hierarchy=spec if role == "quasi" else None)
    return Schema(dataset="d", columns=columns)


def truth(people: list[Person], releases: list[Published]) -> tuple[list[int], list[float], list[str]]:
    """Two at a time and all together: the fewest records that are left for anybody, the share of people with one value of a
    sensitive column left; and these columns. Whatever is a quasi-identifier anywhere is known."""
    known = {name for schema, _ in releases for name in schema.quasi}
    sensitive = sorted({name for schema, _ in releases for name in schema.sensitive} - known)
    rows = [table.to_pylist() for _, table in releases]
    fitting = [
        [
            [row for row in table if all(covers(row[name], person[name], schema.columns[name]) for name in known & row.keys())]
            for (schema, _), table in zip(releases, rows, strict=True)
        ]
        for person in people
    ]
    every = tuple(range(len(releases)))
    fewest, shares = [], []
    for chosen in {every, *combinations(every, 2)}:
        shown = [set(releases[place][1].column_names) for place in chosen]
        link = sorted(set.intersection(*shown) - known)
        left, certain = [], 0
        for found in fitting:
            common = reduce(and_, (Counter(tuple(row[n] for n in link) for row in found[place]) for place in chosen))
            if common:
                left.append(sum(common.values()))
                among = [[row for row in found[place] if tuple(row[n] for n in link) in common] for place in chosen]
                certain += any(len({row[name] for row in some}) == 1 for some in among for name in sensitive if name in some[0])
        fewest.append(min(left, default=0))
        shares.append(certain / len(left) if left else 0.0)
    return fewest, shares, sensitive


def check_sequence(seed: int, folder: Path) -> Counter[str]:
    draw = np.random.default_rng(seed)
    people = drawn_people(draw)
    outcomes: Counter[str] = Counter()
    published: dict[str, Published] = {}
    for _ in range(int(draw.integers(2, 4))):
        here = [person for person in people if draw.random() < 0.9] if draw.random() < 0.3 else people
        schema = drawn_schema(draw)
        table = pa.Table.from_pylist([{name: person[name] for name in schema.columns} for person in here])
        k = int(draw.integers(1, 5))
        try:
            made = sf.protect(
                sf.read(table, schema), sf.KAnonymity(k), SEARCHES[int(draw.integers(5))], ledger=folder / f"{seed}.db"
            )
        except (Infeasible, InputError):
            continue
        known = made.certificate.composition
        others = [each for name, each in published.items() if name not in known.get("not_compared", {})]
        if known.get("compared") and known["compared"] == len(others):
            fewest, shares, sensitive = truth(here, [(schema, made.data), *others])
            assert known["details"]["worst_remaining_group"] <= min(n for n in fewest if n), (seed, known)
            assert (known["success"] > 0) >= (max(shares) > 0), (seed, known)
            assert not sensitive or set(re.findall("'(.*?)'", SHARE.findall(known["finding"])[0][1])) == set(sensitive)
            exact = made.details.get("composition", {}).get("people counted in the original")
            if exact is not None:
                assert int(LEFT.findall(exact)[0]) == min(fewest), (seed, exact)
                assert not sensitive or abs(float(SHARE.findall(exact)[0][0]) - 100 * max(shares)) < 0.06, (seed, exact)
                outcomes["counted"] += 1
            outcomes["nobody" if max(shares) == 0 else "somebody"] += 1
            outcomes["several" if len(others) > 1 else "two"] += 1
        published[made.certificate.ledger] = (schema, made.data)
    return outcomes


@pytest.mark.slow
def test_what_is_said_about_releases_with_other_columns_is_true(tmp_path: Path) -> None:
    outcomes = sum((check_sequence(seed, tmp_path) for seed in range(20)), Counter[str]())
    assert min(outcomes[name] for name in ("counted", "two", "several", "somebody")) >= 5, outcomes


@pytest.mark.stress
def test_what_is_said_about_many_more_releases_with_other_columns_is_true(tmp_path: Path) -> None:
    outcomes = sum((check_sequence(seed, tmp_path) for seed in range(100, 500)), Counter[str]())
    assert min(outcomes.values()) >= 5 and outcomes["several"] >= 50, outcomes


def released(folder: Path, rows: dict[str, list[Any]], roles: dict[str, Any], k: int) -> sf.Release:
    """A release of these columns; a role is a word, or a column."""
    columns = {name: role if isinstance(role, Column) else Column(role=role, type="string") for name, role in roles.items()}
    data = sf.read(pa.table({name: rows[name] for name in roles}), Schema(dataset="d", columns=columns))
    return sf.protect(data, sf.KAnonymity(k), sf.Lattice(), ledger=folder / "l.db")


def test_a_third_release_does_not_make_the_statement_weaker(tmp_path: Path) -> None:
    cells = [("a", "c"), *[("a", "d"), ("b", "c"), ("b", "d")] * 5]
    rows: dict[str, list[Any]] = {"inc": [str(n) for n in range(16)], "s": ["u", "v"] * 8}
    rows |= {"z": [z for z, _ in cells], "w": [w for _, w in cells]}
    roles = {"inc": "plain", "z": "quasi", "w": "quasi", "s": "sensitive"}
    found = [
        released(tmp_path, rows, {name: roles[name] for name in names}, 5).certificate.composition
        for names in (("inc", "z", "s"), ("inc", "w", "s"), ("z", "s"))
    ]
    assert "as few as 1 record, instead of 6" in found[1]["finding"] and "as few as 1 record, instead of 6" in found[2]["finding"]
    assert 0 < found[1]["success"] <= found[2]["success"]
    assert "by way of a third were not followed" in found[2]["finding"]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_value_is_certain_also_where_one_release_alone_shows_its_column(order: tuple[int, int], tmp_path: Path) -> None:
    """By w the illness is one of two; both of them have the same income, which the other release shows."""
    rows: dict[str, list[Any]] = {"z": ["a"] * 4, "w": ["1", "1", "2", "2"]}
    rows |= {"ill": ["flu", "cold", "gout", "ms"], "inc": ["10", "10", "20", "30"]}
    steps = [({"z": "quasi", "ill": "sensitive", "inc": "sensitive"}, 4), ({"w": "quasi", "ill": "sensitive"}, 2)]
    made = [released(tmp_path, rows, *steps[place]) for place in order][-1]
    assert made.certificate.composition["details"]["singled_out_by_attribute"] == {"ill": 0.0, "inc": 2.0}
    assert "For roughly 50 % of them (estimated) one value of" in made.certificate.composition["finding"]


def test_earlier_releases_that_write_a_column_otherwise_are_not_compared(tmp_path: Path) -> None:
    """The third release does not show the column that the first two write otherwise, and that ties their records together."""
    rows: dict[str, list[Any]] = {"x": [20, 99] * 4, "z": ["a", "b"] * 4, "s": ["u", "v", "w", "x"] * 2}
    for missing in ((), ("99",)):
        column = Column(role="plain", type="integer", missing=missing)
        made = released(tmp_path, rows, {"x": column, "z": "quasi", "s": "sensitive"}, 2)
    assert made.certificate.composition["compared"] == 0
    last = released(tmp_path, rows, {"z": "quasi", "s": "sensitive"}, 2).certificate.composition
    assert last["compared"] == 0 and "the values of column 'x' had another type" in last["finding"]


@pytest.mark.parametrize("who", ["left", "came"])
def test_the_owner_is_told_of_everybody_whom_the_certificate_tells_of(who: str, tmp_path: Path) -> None:
    rows: dict[str, list[Any]] = {"z": ["a"] * 6 + ["b"] * 6, "ill": ["flu", "cold", "gout", "ms", "flu", "x"] * 2}
    fewer = {name: values[1:] for name, values in rows.items()}
    for each in (rows, fewer) if who == "left" else (fewer, rows):
        made = released(tmp_path, each, {"z": "quasi", "ill": "sensitive"}, 3)
    said = "singles out a group smaller than any class of the release that it is in, 1 person in all"
    assert said in made.certificate.composition["finding"]
    assert said in made.details["composition"]["people counted in the original"]


def test_a_difference_is_held_against_the_release_that_shows_it(tmp_path: Path) -> None:
    """Fifteen less ten leave five, fewer than any class of that release; a class of two elsewhere does not excuse them. Nor is a
    group of nine as it was before where one release has a class of two."""
    tree = HierarchySpec(tree={"A": ["a", "c"], "B": ["b"], "E": ["e"]})
    first, second = ["a"] * 10 + ["c"] * 5 + ["b"] * 10, ["a"] * 10 + ["b"] * 10 + ["e"] * 2
    for values, spec, k in ((first, tree, 10), (second, None, 2)):
        rows: dict[str, list[Any]] = {"z": values, "s": [("u", "v", "w")[n % 3] for n in range(len(values))]}
        made = released(tmp_path, rows, {"z": Column(role="quasi", type="string", hierarchy=spec), "s": "sensitive"}, k)
    finding = made.certificate.composition["finding"]
    assert "singles out a group smaller than any class of the release that it is in, 5 people in all" in finding
    assert (
        "as few as 9 records, and the smallest group of one release alone, alike in what counts as known, has 2 records"
        in finding
    )
