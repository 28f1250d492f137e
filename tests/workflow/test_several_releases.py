"""What is said about several releases of one dataset, against the truth found by enumeration."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import reduce
from itertools import combinations, permutations
from operator import and_
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.data.sample import write_sample
from sfumato.data.schema import Column, HierarchySpec, Schema

GRADES = ("low", "mid", "high", "top")
REGIONS = ({"north": ["n1", "n2"], "south": ["s1", "s2"]}, {"odd": ["n1", "s1"], "even": ["n2", "s2"]})
SEARCHES = (
    sf.Lattice(suppression=0.3),
    sf.Lattice(suppression=0.05),
    sf.Mondrian(ranges_everywhere=True),
    sf.LocalRecoding(),
    sf.TopDown(),
    sf.CellSuppression(),
    sf.KMember(),
)
MASKS = (
    sf.Mdav(3, columns=("age",)),
    sf.AdditiveNoise(0.2, columns=("age",)),
    sf.RankSwapping(20, columns=("age",)),
    sf.Pram(0.7, columns=("region",)),
)
SAFE = re.compile(r"no person|nobody can|no one|as before\.$|people 0", re.IGNORECASE)
LEFT = re.compile(r"among (?:as few as )?([\d,]+) records?")


@dataclass(frozen=True)
class Setting:
    """One release: how the table is described, who is in it, and how it is protected."""

    method: Any
    schema: Schema = field(repr=False)
    rows: pa.Table = field(repr=False)
    people: tuple[int, ...] = field(repr=False)
    promises: tuple[Any, ...] = ()

    @property
    def masked(self) -> bool:
        return self.method in MASKS

    def values(self) -> dict[int, dict[str, Any]]:
        """The values of every person as this table writes them."""
        rows = sf.read(self.rows, self.schema).table().to_pylist()
        return {
            person: {name: plain_value(row[name]) for name in ("age", "region", "grade")}
            for person, row in zip(self.people, rows, strict=True)
        }


def drawn_table(draw: np.random.Generator, rows: int) -> dict[str, list[Any]]:
    return {
        "age": [int(x) for x in draw.integers(18, 34, rows)],
        "region": [str(x) for x in draw.choice(["n1", "n2", "s1", "s2"], rows)],
        "grade": [str(x) for x in draw.choice(GRADES, rows)],
        "illness": [str(x) for x in draw.choice(["flu", "cold", "gout"], rows)],
    }


def drawn_setting(draw: np.random.Generator, people: dict[str, list[Any]], *, masks: bool) -> Setting:
    columns: dict[str, list[Any]] = {name: list(values) for name, values in people.items()}
    present = list(range(len(columns["age"])))
    kind = str(draw.choice(["integer", "string", "number"], p=[0.8, 0.1, 0.1]))
    widths = [(4, 8, 16), (5, 10, 20), (3, 6)][int(draw.integers(3))]
    coded = bool(draw.random() < 0.15)
    if draw.random() < 0.3:  # the table changed: some are gone, some are new
        keep = draw.random(len(columns["age"])) < 0.8
        new = drawn_table(draw, 4)
        fresh = int(draw.integers(100, 1_000_000))
        present = [person for person, kept in zip(present, keep, strict=True) if kept] + list(range(fresh, fresh + 4))
        columns = {name: [v for v, k in zip(values, keep, strict=True) if k] + new[name] for name, values in columns.items()}
    if coded:  # an age that this description takes for a missing one
        columns["age"] = [99 if age == 20 else age for age in columns["age"]]
    types = {"integer": pa.int64(), "number": pa.float64(), "string": pa.string()}
    texts = [str(float(v)) if draw.random() < 0.3 else str(v) for v in columns["age"]] if kind == "string" else columns["age"]
    grade_role = "plain" if draw.random() < 0.2 else "quasi"
    age = Column(
        role="quasi",
        type=kind,  # type: ignore[arg-type]
        missing=("99",) if coded else (),
        hierarchy=None if kind == "string" else HierarchySpec(intervals=widths),
    )
    region = Column(role="quasi", type="string", hierarchy=HierarchySpec(tree=REGIONS[int(draw.integers(2))]))
    described = {
        "age": age,
        "region": region,
        "grade": Column(role=grade_role, type="string", order=GRADES),  # type: ignore[arg-type]
        "illness": Column(role="sensitive", type="string"),
    }
    table = pa.table({**columns, "age": pa.array(texts, types[kind])})
    methods = [*SEARCHES, *(MASKS if masks and kind != "string" else ())]
    method = methods[int(draw.integers(len(methods)))]
    promises = () if method in MASKS else (sf.KAnonymity(int(draw.integers(2, 4))),)
    return Setting(method, Schema(dataset="d", columns=described), table, tuple(present), promises)


def covers(label: Any, raw: Any, column: Column) -> bool:
    """Whether a released text may stand for a raw value, by what its description says in words."""
    if raw is None or label is None:
        return raw == label or label == "*"
    label, raw = str(label), str(raw)
    if label in ("*", raw):
        return True
    if column.hierarchy is not None and column.hierarchy.tree is not None:
        return raw in column.hierarchy.tree.get(label, ())
    if " … " in label:
        low, high = (GRADES.index(end) for end in label.split(" … "))
        return low <= GRADES.index(raw) <= high
    if label[0] == "[":
        low_text, high_text = label[1:-1].split(", ")
        below = float(raw) <= float(high_text) if label[-1] == "]" else float(raw) < float(high_text)
        return float(low_text) <= float(raw) and below
    return False


def plain_value(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def left_for(person: int, releases: list[tuple[Setting, pa.Table]]) -> Counter[Any]:
    """What records of all releases can be the person's, by the columns that all show as they are. Each table has its own way
    to write the person's values; who is not in it is looked up as today's table, the first, writes them."""
    quasi = {name for setting, _ in releases for name in setting.schema.quasi}
    shared = [name for name in ("grade", "illness") if name not in quasi]
    today = releases[0][0].values()[person]
    left: Counter[Any] | None = None
    for setting, rows in releases:
        values = setting.values().get(person, today)
        found = Counter(
            tuple(row[name] for name in shared)
            for row in rows.to_pylist()
            if all(
                covers(plain_value(row[name]), values[name], setting.schema.columns[name])
                if name in setting.schema.quasi
                else plain_value(row[name]) == values[name]
                for name in quasi
            )
        )
        left = found if left is None else left & found
    assert left is not None
    return left


def check_sequence(seed: int, folder: Path, *, masks: bool = True) -> Counter[str]:
    """Publish two or three releases of one dataset and hold every certificate to the truth."""
    draw = np.random.default_rng(seed)
    people = drawn_table(draw, 26)
    outcomes: Counter[str] = Counter()
    published: dict[str, tuple[Setting, pa.Table]] = {}
    for _ in range(int(draw.integers(2, 4))):
        setting = drawn_setting(draw, people, masks=masks)
        data = sf.read(setting.rows, setting.schema)
        try:
            made = sf.protect(data, setting.promises, setting.method, ledger=folder / f"{seed}.db")
        except sf.errors.Infeasible:
            continue
        known = made.certificate.composition
        assert not SAFE.search(known["finding"].split(":")[-1]) or "could not" in known["finding"], known
        uncompared = set(known.get("not_compared", {}))
        others = [published[name] for name in published if name not in uncompared and name != made.certificate.ledger]
        same = [name for name, (_, rows) in published.items() if name not in uncompared and rows.equals(made.data)]
        if uncompared:
            assert "assume that everything" in known["finding"]
            outcomes["not compared"] += 1
        for name, (earlier, _) in published.items():
            if name != made.certificate.ledger and (earlier.masked or setting.masked) and name not in same:
                assert name in uncompared, "a masked release was compared"
        if known.get("compared"):
            assert known["compared"] + len(uncompared) + len(same) >= len(published) - (made.certificate.ledger in published)
            assert not set(same) & uncompared
            truth = [left_for(person, [(setting, made.data), *others]) for person in setting.people]
            possible = [left for left in truth if left]
            assert possible
            worst = min(sum(left.values()) for left in possible)
            assert known["details"]["worst_remaining_group"] <= worst, (seed, known)
            exact = made.details["composition"]["people counted in the original"]
            assert int(LEFT.findall(exact)[0].replace(",", "")) == worst, (seed, exact)
            singled = sum(len({key[-1] for key in left}) == 1 for left in possible)
            assert (known["success"] > 0) >= (singled > 0), (seed, known)
            assert "people" not in known, "an outsider counts nobody"
            outcomes["compared"] += 1
        published[made.certificate.ledger] = (setting, made.data)
    return outcomes


@pytest.mark.slow
def test_nothing_that_is_said_about_several_releases_is_false(tmp_path: Path) -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(48):
        outcomes += check_sequence(seed, tmp_path, masks=seed % 4 == 0)
    assert outcomes["compared"] >= 20 and outcomes["not compared"] >= 15, outcomes


@pytest.mark.stress
def test_nothing_that_is_said_about_many_more_releases_is_false(tmp_path: Path) -> None:
    for seed in range(1_000, 1_300):
        check_sequence(seed, tmp_path, masks=seed % 4 == 0)


@pytest.mark.slow
def test_masked_releases_are_said_not_to_be_compared(tmp_path: Path) -> None:
    """Three masks of one table, and a search after them: everybody is in all of them."""
    write_sample(tmp_path, rows=3_000)
    people = sf.read(tmp_path / "people.csv", schema=tmp_path / "people.toml")
    columns = ("age",)
    masks = (
        sf.Mdav(5, columns=columns),
        sf.AdditiveNoise(0.5, columns=columns),
        sf.RankSwapping(20, columns=columns),
        sf.Pram(0.8, columns=("marital-status",)),
    )
    for position, mask in enumerate(masks):
        found = sf.protect(people, [], mask, ledger=tmp_path / "ledger.db").certificate.composition
        assert found["earlier_releases"] == position
        assert len(found.get("not_compared", {})) == position
        assert not position or "assume that everything the releases tell adds up" in found["finding"]
        assert "people" not in found and "success" not in found
    again = sf.protect(people, [], sf.AdditiveNoise(0.25, columns=columns), ledger=tmp_path / "ledger.db").certificate.composition
    assert again["repeated_masks"] == {"age": "'age' is published as it is in 1 of the releases"}  # where PRAM changed another
    found = sf.protect(
        people, sf.KAnonymity(5), sf.Lattice(suppression=0.9), ledger=tmp_path / "ledger.db"
    ).certificate.composition
    assert found["compared"] == 0 and len(found["not_compared"]) == 5
    assert found["repeated_masks"] == again["repeated_masks"]  # a search takes nothing back


DAYS = [f"2020-0{1 + i % 3}-{1 + i:02d}" for i in range(16)]
AGES = [20, 21, 22, 99] * 4
WRITTEN: dict[str, tuple[pa.Array, Column]] = {
    "integer": (pa.array(AGES), Column(role="quasi", type="integer")),
    "another code for missing": (pa.array(AGES), Column(role="quasi", type="integer", missing=("99",))),
    "number": (pa.array([age + 0.0 for age in AGES]), Column(role="quasi", type="number")),
    "text": (pa.array([f"{age}.0" for age in AGES]), Column(role="quasi", type="string")),
    "padded text": (pa.array([f"0{age}" for age in AGES]), Column(role="quasi", type="string")),
    "dates": (pa.array(DAYS), Column(role="quasi", type="date", hierarchy=HierarchySpec(dates=("month", "year")))),
    "dates as text": (pa.array(DAYS), Column(role="quasi", type="string")),
}


PAIRS = [pair for pair in permutations(WRITTEN, 2) if pair[0].startswith("dates") == pair[1].startswith("dates")]


@pytest.mark.parametrize(
    ("then", "now", "place"), [(*pair, ("quasi", "sensitive")[number % 2]) for number, pair in enumerate(PAIRS)]
)
def test_values_that_are_written_otherwise_do_not_make_releases_disjoint(then: str, now: str, place: str, tmp_path: Path) -> None:
    """The same sixteen people, whose values are read as other types or with other missing codes, as quasi-identifiers and as
    columns that are published as they are."""
    findings = []
    for written in (then, now):
        values, column = WRITTEN[written]
        described = {"x": column.model_copy(update={"role": place, "hierarchy": column.hierarchy if place == "quasi" else None})}
        described |= {"q": Column(role="quasi", type="string"), "s": Column(role="sensitive", type="string")}
        rows = pa.table({"x": values, "q": ["a", "b"] * 8, "s": ["u", "v", "w", "v"] * 4})
        data = sf.read(rows, Schema(dataset="d", columns=described))
        findings.append(sf.protect(data, sf.KAnonymity(1), sf.Lattice(), ledger=tmp_path / "l.db").certificate.composition)
    assert findings[1]["compared"] == 0
    reason = "had another type, or other codes for missing ones"
    if {then, now} == {"text", "padded text"}:  # written otherwise under one description: nobody can tell from a changed table
        reason = "as they are written the releases have nothing in common, which proves nothing about people"
    assert reason in findings[1]["finding"]
    assert "assume that everything the releases tell adds up" in findings[1]["finding"]


HIERARCHIES = {
    "intervals": HierarchySpec(intervals=(5, 10)),
    "other intervals": HierarchySpec(intervals=(4, 8), origin=1.0),
    "mask": HierarchySpec(mask="right"),
    "wide mask": HierarchySpec(mask="right", width=4),
    "mask from the left": HierarchySpec(mask="left"),
    "tree": HierarchySpec(tree={"first": [str(n) for n in range(10, 17)], "second": [str(n) for n in range(17, 26)]}),
    "other tree": HierarchySpec(tree={"first": [str(n) for n in range(10, 20)], "second": [str(n) for n in range(20, 26)]}),
    "frequency": HierarchySpec(frequency=(4, 8)),
    "file": HierarchySpec(file="levels.csv"),
}


#: Each with itself, its neighbour and one from farther away, in either place.
KINDS = list(HIERARCHIES)
CHANGED_TREES = [(KINDS[i], KINDS[(i + step) % len(KINDS)]) for i in range(len(KINDS)) for step in (0, 1, 4)]


@pytest.mark.parametrize(("then", "now"), CHANGED_TREES)
def test_labels_are_read_by_the_hierarchy_of_then(then: str, now: str, tmp_path: Path) -> None:
    """Two global recodings of one table: what remains for each person is known from the two hierarchies."""
    (tmp_path / "levels.csv").write_text("".join(f"{n};g{n % 3};*\n" for n in range(10, 26)), encoding="utf-8")
    ages = [10 + n % 16 for n in range(32)]
    rows = pa.table({"age": [str(age) for age in ages], "s": [f"v{n % 5}" for n in range(32)]})
    shown = []
    for name in (then, now):
        column = Column(role="quasi", type="string", hierarchy=HIERARCHIES[name])
        schema = Schema(dataset="d", columns={"age": column, "s": Column(role="sensitive", type="string")}, folder=str(tmp_path))
        made = sf.protect(sf.read(rows, schema), sf.KAnonymity(6), sf.Lattice(), ledger=tmp_path / "l.db")
        tree = made.content.hierarchies["age"]
        level = dict(made.certificate.transparency["levels"])["age"]
        shown.append([tree.generalise(str(age), level) for age in ages])
        (tmp_path / "levels.csv").write_text("".join(f"{n};g{n // 8};*\n" for n in range(10, 26)), encoding="utf-8")
    found = made.certificate.composition
    if then == "frequency" and now != "frequency":
        assert found["compared"] == 0 and "learnt from the table of then" in found["finding"]
        return
    if shown[0] == shown[1]:
        assert found["earlier_releases"] == 0  # the same rows again
        return
    truth = []
    for one, two in zip(*shown, strict=True):
        left = Counter(v for label, v in zip(shown[0], rows.column("s").to_pylist(), strict=True) if label == one)
        left &= Counter(v for label, v in zip(shown[1], rows.column("s").to_pylist(), strict=True) if label == two)
        truth.append(sum(left.values()))
    assert found["details"]["worst_remaining_group"] <= min(truth)
    exact = made.details["composition"]["people counted in the original"]
    assert int(LEFT.findall(exact)[0]) == min(truth)


@pytest.mark.parametrize("side", ["right", "left"])
def test_codes_longer_than_the_declared_width_are_read_as_they_were_masked(side: Any, tmp_path: Path) -> None:
    """A declared width cuts longer codes off: the texts of the first release stand for the same people in the second."""
    codes = [f"{n % 2}{n // 2 % 2}{n // 4 % 2}{n // 8 % 3}" for n in range(48)]
    codes = [(code + "x" if side == "right" else "x" + code) if n % 5 == 0 else code for n, code in enumerate(codes)]
    rows = pa.table({"code": codes, "s": [f"v{n % 7}" for n in range(48)]})
    column = Column(role="quasi", type="string", hierarchy=HierarchySpec(mask=side, width=4))
    schema = Schema(dataset="d", columns={"code": column, "s": Column(role="sensitive", type="string")})
    shown = []
    for least in (4, 12):
        made = sf.protect(sf.read(rows, schema), sf.KAnonymity(least), sf.Lattice(), ledger=tmp_path / "l.db")
        level = dict(made.certificate.transparency["levels"])["code"]
        shown.append([made.content.hierarchies["code"].generalise(code, level) for code in codes])
    assert 1 < len(set(shown[1])) < len(set(shown[0])) < len(set(codes))
    values = rows.column("s").to_pylist()
    truth = []
    for one, two in zip(*shown, strict=True):
        left = Counter(value for label, value in zip(shown[0], values, strict=True) if label == one)
        left &= Counter(value for label, value in zip(shown[1], values, strict=True) if label == two)
        truth.append(sum(left.values()))
    found = made.certificate.composition
    assert found["compared"] == 1 and found["details"]["worst_remaining_group"] <= min(truth)
    assert int(LEFT.findall(made.details["composition"]["people counted in the original"])[0]) == min(truth)


def test_a_reading_of_a_mask_that_a_longer_value_widened_is_not_compared(tmp_path: Path) -> None:
    """So it was kept once; which width the texts had cannot be told."""
    column = Column(role="quasi", type="string", hierarchy=HierarchySpec(mask="right", width=3))
    schema = Schema(dataset="d", columns={"code": column, "s": Column(role="sensitive", type="string")})
    rows = pa.table({"code": ["1001", "100", "101", "110"] * 6, "s": ["u", "v", "w"] * 8})
    found = {}
    for least in (2, 12):
        found = sf.protect(
            sf.read(rows, schema), sf.KAnonymity(least), sf.Lattice(), ledger=tmp_path / "l.db"
        ).certificate.composition
        for kept in (tmp_path / "l.db.releases").glob("*.json"):
            reading = json.loads(kept.read_text())
            reading["columns"]["code"]["width"] = 4
            kept.write_text(json.dumps(reading))
    assert found["compared"] == 0 and "not known for certain" in found["finding"]


def cut_off(code: str, width: int, side: str) -> set[str]:
    """What a mask of this width makes of a code, character by character."""
    padded = code.ljust(width) if side == "right" else code.rjust(width)
    shown = {code, "*" * width}
    for stars in range(1, width + 1):
        left = padded[: width - stars].rstrip() + "*" * stars
        shown.add(left if side == "right" else "*" * stars + padded[stars:].lstrip())
    return shown


def covers_day(label: str, day: str) -> bool:
    low, _, high = label.partition(" … ")
    return label in ("*", day) or (low <= day <= high if high else len(label) in (4, 7) and day.startswith(label))


def covers_code(label: str, code: str, width: int, side: str) -> bool:
    if label.startswith("["):
        return covers(label, code, Column())
    return label == "*" or (len(code) <= width and label in cut_off(code, width, side))


def check_days_and_codes(seed: int, folder: Path) -> int:
    """Dates in parts or as ranges, and codes whose longest one, and with it every mask, changes from release to release."""
    draw = np.random.default_rng(seed)
    people = [
        {"day": f"2020-{m:02d}-{d:02d}", "code": str(c)[:size], "s": str(s)}
        for m, d, c, size, s in zip(
            draw.integers(1, 4, 24), draw.integers(1, 28, 24), draw.integers(1000, 1100, 24), draw.integers(2, 5, 24),
            draw.choice(list("uvw"), 24), strict=True,
        )
    ]  # fmt: skip
    compared = 0
    published: dict[str, tuple[list[dict[str, Any]], int, str]] = {}
    for _ in range(3):
        rows = [person for person in people if draw.random() < 0.95]
        if draw.random() < 0.4:
            rows.append({"day": "2020-02-02", "code": "123456", "s": "u"})
        side = str(draw.choice(["right", "left"]))
        units = [("month", "year"), ("year",)][int(draw.integers(2))]
        described = {
            "day": Column(role="quasi", type="string", hierarchy=HierarchySpec(dates=units)),  # type: ignore[arg-type]
            "code": Column(role="quasi", type="string", hierarchy=HierarchySpec(mask=side)),  # type: ignore[arg-type]
            "s": Column(role="sensitive", type="string"),
        }
        data = sf.read(pa.Table.from_pylist(rows), Schema(dataset="d", columns=described))
        method = SEARCHES[int(draw.integers(len(SEARCHES)))]
        try:
            made = sf.protect(data, sf.KAnonymity(2), method, ledger=folder / f"days-{seed}.db")
        except sf.errors.Infeasible:
            continue
        released = (made.data.to_pylist(), max(len(row["code"]) for row in rows), side)
        known = made.certificate.composition
        if known.get("compared"):
            assert "not_compared" not in known
            others = [each for name, each in published.items() if name != made.certificate.ledger]
            lefts = []
            for person in rows:
                fitting = [
                    Counter(
                        row["s"]
                        for row in table
                        if covers_day(row["day"], person["day"]) and covers_code(row["code"], person["code"], width, masked)
                    )
                    for table, width, masked in (released, *others)
                ]
                together = [fitting, *combinations(fitting, 2)]  # all of them, and two at a time: not everybody is in all
                lefts += [sum(reduce(and_, some).values()) for some in together]
            worst = min(left for left in lefts if left)
            assert known["details"]["worst_remaining_group"] <= worst, seed
            exact = made.details["composition"]["people counted in the original"]
            assert int(LEFT.findall(exact)[0].replace(",", "")) == worst, seed
            compared += 1
        published[made.certificate.ledger] = released
    return compared


@pytest.mark.slow
def test_parts_of_dates_and_masked_codes_are_read_as_they_were_meant(tmp_path: Path) -> None:
    assert sum(check_days_and_codes(seed, tmp_path) for seed in range(8)) >= 8


@pytest.mark.stress
def test_many_parts_of_dates_and_masked_codes_are_read_as_they_were_meant(tmp_path: Path) -> None:
    assert sum(check_days_and_codes(seed, tmp_path) for seed in range(100, 200)) >= 100
