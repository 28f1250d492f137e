"""The default: it keeps to declared hierarchies, says what it kept, and suppressing more never shows more."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from benchmarks import defaults
from sfumato.anonymity.search.base import pose
from sfumato.anonymity.search.ranges import ActiveClasses, cut, places_by_value
from sfumato.core.errors import Infeasible, VerificationFailed
from sfumato.core.progress import silent
from sfumato.data.schema import HierarchySpec
from sfumato.measures.utility.range_shown import RangeShown
from sfumato.workflow.verifying.stated.transparency import refuse_other_facts

INTERVALS = HierarchySpec(intervals=(5.0, 10.0))
ROWS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(20, 60)),
        st.floats(0, 9, allow_nan=False).map(lambda x: round(x, 1)),
        st.sampled_from(["low", "middle", "high", "top"]),
        st.sampled_from("abc"),
        st.sampled_from("pqr"),
    ),
    min_size=10,
    max_size=60,
)


def people_of(rows: list[tuple[Any, ...]], age: HierarchySpec | None = None, **about: Any) -> sf.Microdata:
    schema = sf.Schema(
        dataset="people",
        columns={
            "age": sf.Column(role="quasi", type="integer", hierarchy=age, **about),
            "weight": sf.Column(role="quasi", type="number", importance=2.0),
            "rank": sf.Column(role="quasi", order=("low", "middle", "high", "top")),
            "town": sf.Column(role="quasi"),
            "illness": sf.Column(role="sensitive"),
        },
    )
    return sf.read(pa.table({name: [row[i] for row in rows] for i, name in enumerate(schema.columns)}), schema)


def some_rows(count: int, seed: int = 1) -> list[tuple[Any, ...]]:
    draw = random.Random(seed)
    return [
        (draw.randint(20, 60), round(draw.uniform(0, 9), 1), draw.choice(["low", "middle", "high"]), draw.choice("abc"), "p")
        for _ in range(count)
    ]


@settings(max_examples=25)
@given(ROWS)
def test_the_measure_of_the_search_is_that_of_the_published_texts(rows: list[tuple[Any, ...]]) -> None:
    people = people_of(rows)
    for search in (sf.LeastLoss(), sf.LeastLoss(suppression=0.0)):
        try:
            outcome = search.run(people, [sf.KAnonymity(3)])
        except Infeasible:
            continue
        assert outcome.details["range_shown"] == pytest.approx(defaults.shown_range(people, outcome), abs=1e-12)
        assert outcome.details["range_shown"] == min(outcome.details["compared"].values())
        assert outcome.result.class_sizes().min() >= 3


GUARANTEES = [
    sf.DistinctLDiversity(2, "illness"),
    sf.EntropyLDiversity(1.5, "illness"),
    sf.TCloseness(0.4, "illness"),
    sf.BetaLikeness(1.0, "illness"),
]


@settings(max_examples=40)
@given(
    ROWS,
    st.integers(2, 5),
    st.lists(st.sampled_from(GUARANTEES), max_size=2, unique_by=repr),
    st.sampled_from([0.05, 0.2, 0.5, 1.0]),
    st.booleans(),
)
def test_allowing_suppression_never_makes_it_worse(
    rows: list[tuple[Any, ...]], k: int, others: list[Any], share: float, declared: bool
) -> None:
    people = people_of(rows, INTERVALS if declared else None)
    promises = [sf.KAnonymity(k), *others]
    for search, measure in ((sf.LeastLoss, "range_shown"), (sf.LocalRecoding, "loss"), (sf.Lattice, "loss")):
        try:
            without = search(suppression=0.0).run(people, promises).details[measure]
        except Infeasible:
            continue
        assert search(suppression=share).run(people, promises).details[measure] <= without + 1e-9, search


def test_a_large_table_starts_from_the_top_where_rounds_suppress() -> None:
    """More than 5,000 combinations: rounds that suppress were kept although one class, refined, lost much less."""
    draw = random.Random(7)
    rows = [
        (draw.randint(1, 90), draw.randint(1, 90), draw.choice("ab"), draw.choice("abc"), "p" if draw.random() < 0.93 else "q")
        for _ in range(6_000)
    ]
    names = ("x", "y", "sex", "town", "illness")
    tree = HierarchySpec(intervals=(5.0, 15.0, 45.0))
    schema = sf.Schema(
        dataset="large",
        columns={
            "x": sf.Column(role="quasi", type="integer", hierarchy=tree),
            "y": sf.Column(role="quasi", type="integer", hierarchy=tree),
            "sex": sf.Column(role="quasi"),
            "town": sf.Column(role="quasi"),
            "illness": sf.Column(role="sensitive"),
        },
    )
    people = sf.read(pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)}), schema)
    promises = [sf.KAnonymity(3), sf.EntropyLDiversity(1.2, "illness")]
    losses = [sf.LocalRecoding(suppression=share).run(people, promises).details["loss"] for share in (0.0, 0.05, 0.2)]
    assert losses[1] <= losses[0] + 1e-9 and losses[2] <= losses[0] + 1e-9


def test_a_declared_hierarchy_is_kept_to_and_ranges_need_leave() -> None:
    rows = some_rows(80)
    nodes = set(sf.LeastLoss().run(people_of(rows, INTERVALS), [sf.KAnonymity(4)]).class_table.hierarchies[0].labels)
    allowed = HierarchySpec(intervals=(5.0, 10.0), ranges=True)
    for people, bound in (
        (people_of(rows, INTERVALS), True),
        (people_of(rows, allowed), False),
        (people_of(rows, INTERVALS, source="data"), False),
        (people_of(rows), False),
    ):
        release = sf.protect(people, [sf.KAnonymity(4)], seed=1)
        ages = {str(text) for text in release.data.column("age").unique().to_pylist() if text is not None}
        assert (ages <= {str(label) for label in nodes}) is bound
        assert release.certificate.holds


def test_codes_of_digits_are_no_numbers() -> None:
    schema = sf.Schema(dataset="codes", columns={"code": sf.Column(role="quasi", type="string")})
    people = sf.read(pa.table({"code": ["01", "02", "03", "04", "05", "06"]}), schema)
    assert set(sf.protect(people, [sf.KAnonymity(2)], seed=1).data.column("code").to_pylist()) == {"*"}


@pytest.mark.parametrize("every", [True, False])
def test_the_order_of_rows_does_not_matter(every: bool) -> None:
    rows = some_rows(60) if every else [(age, 0.1 * (age % 7), "low", "a", "p") for age in range(20, 60)]
    releases = set()
    for seed in range(4):
        mixed = list(rows)
        random.Random(seed).shuffle(mixed)
        release = sf.protect(people_of(mixed), [sf.KAnonymity(4)], seed=1)
        releases.add(str(release.data.to_pydict()))
    assert len(releases) == 1


def test_the_release_says_which_search_was_kept_and_forged_words_are_refused() -> None:
    release = sf.protect(people_of(some_rows(60)), [sf.KAnonymity(4)], seed=1)
    facts = release.certificate.transparency
    assert facts["search_kept"] == release.details["search"] and facts["search_kept_by"] == "least range shown"
    assert facts["search_kept"] in release.card()
    assert release.scores["range_shown"] == pytest.approx(release.details["range_shown"])
    for forged in ({"search_kept": "the safest of all"}, {"search_kept_by": "magic"}, {"search_kept": None}):
        certificate = release.certificate
        with pytest.raises(VerificationFailed, match="searches"):
            refuse_other_facts(_with_facts(certificate, {**facts, **forged}), release.schema)
    plain = sf.protect(people_of(some_rows(60)), [sf.KAnonymity(4)], sf.TopDown(), seed=1)
    with pytest.raises(VerificationFailed, match="searches"):
        refuse_other_facts(
            _with_facts(plain.certificate, {**plain.certificate.transparency, "search_kept": facts["search_kept"]}), plain.schema
        )


def _with_facts(certificate: Any, facts: dict[str, Any]) -> Any:
    import dataclasses

    return dataclasses.replace(certificate, transparency=facts)


@settings(max_examples=60)
@given(st.lists(st.integers(0, 12), min_size=2, max_size=25), st.integers(1, 4))
def test_a_cut_saves_most_of_all_allowed_cuts(values: list[int], k: int) -> None:
    """Against trying every cut."""
    people = sf.read(
        pa.table({"x": values, "id": list(range(len(values)))}),
        sf.Schema(
            dataset="cut", columns={"x": sf.Column(role="quasi", type="integer"), "id": sf.Column(role="quasi", type="integer")}
        ),
    )
    problem = pose(people, [sf.KAnonymity(min(k, len(values)))])
    table, totals = problem.table, problem.promises.totals()
    places = places_by_value(table.hierarchies[0])
    order = np.arange(table.tuples)
    active = ActiveClasses(order, np.zeros(table.tuples, np.int64), np.zeros(1, np.int64), totals, table.codes, np.ones(2))
    upper, gain = cut(active, problem.promises, 0, places, balanced=False)
    x = places[table.codes[0]]
    best = -np.inf
    for border in np.unique(x)[1:]:
        low, high = x[x < border], x[x >= border]
        if min(low.size, high.size) >= problem.promises.k:
            best = max(best, x.size * np.ptp(x) - low.size * np.ptp(low) - high.size * np.ptp(high))
    assert gain[0] == pytest.approx(best)
    if best > -np.inf:
        assert x[upper == 0].max() < x[upper == 1].min()
    else:
        assert not upper.any()
    assert np.isinf(cut(active, problem.promises, 0, places, balanced=True)[1][0]) == np.isinf(best)


def test_the_default_uses_both_on_a_mixed_table_and_is_silent_about_nothing() -> None:
    outcome = sf.LeastLoss().run(people_of(some_rows(200)), [sf.KAnonymity(5)], progress=silent)
    assert set(outcome.details["compared"]) <= set(sf.LeastLoss.keeps_one_of)
    assert len(outcome.details["compared"]) >= 2


def test_halves_are_tried_only_where_size_is_all_that_is_asked() -> None:
    table = pa.table(
        {"x": [0.0] * 24 + [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "s": ["a", "b", "c"] * 10, "u": [str(i) for i in range(30)]}
    )
    columns = {"x": sf.Column(role="quasi", type="number"), "s": sf.Column(role="sensitive"), "u": sf.Column(role="plain")}
    people = sf.read(table, sf.Schema(dataset="shared", columns=columns))
    outcome = sf.LeastLoss().run(people, [sf.KAnonymity(10), sf.DistinctLDiversity(2, "s")])
    assert "top-down, halves at the median" not in outcome.details["compared"]


def test_beside_free_texts_people_with_several_rows_lose_no_more_than_by_mondrian() -> None:
    """Halves were not tried where units are counted, and the default was a third worse."""
    draw = np.random.default_rng(11)
    units = np.repeat(np.arange(150), draw.integers(1, 5, 150))
    numbers = {f"x{i}": draw.integers(0, 100, 150)[units] for i in range(3)}
    texts = np.array([f"text {i}" for i in range(120)])[draw.integers(0, 120, 150)][units]
    table = pa.table({"u": pa.array([str(u) for u in units]), **numbers, "job": texts})
    columns = {name: sf.Column(role="quasi", type="integer") for name in numbers}
    described = sf.Schema(dataset="visits", columns={**columns, "job": sf.Column(role="quasi"), "u": sf.Column(role="unit")})
    people, promises = sf.read(table, described), [sf.KAnonymity(3)]
    reached = defaults.shown_range(people, sf.LeastLoss().run(people, promises))
    assert reached <= 1.05 * defaults.shown_range(people, sf.Mondrian().run(people, promises))


#: Searches that run for ten seconds and show at least eight times the range of the best.
LONG = {("EIA", "KMember"), ("Abalone, intervals proposed by inspect", "Lattice")}


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", list(defaults.tables()))
def test_the_default_is_within_five_per_cent_of_the_best_single_search(
    name: str, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_DATA", str(data_dir))
    people = defaults.tables()[name]()
    promises = [sf.KAnonymity(5)]
    reached = defaults.shown_range(people, sf.LeastLoss().run(people, promises))
    for label, search in defaults.singles().items():
        if (label == "KMember" and len(people) > 5_000) or (name, label) in LONG:
            continue  # the benchmark has it
        assert reached <= defaults.WORSE * defaults.shown_range(people, search.run(people, promises)), label


@pytest.mark.covering
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("free", [{}, {"ages": True}, {"ages": True, "postcodes": True}], ids=["declared", "ages", "numbers"])
def test_on_generated_people_the_default_is_within_five_per_cent_too(free: dict[str, bool], k: int) -> None:
    """At small k Mondrian was a quarter better, by ranges of ages and postcodes whose hierarchy the owner had declared."""
    people, promises = defaults.people(500, **free), [sf.KAnonymity(k)]
    reached = defaults.shown_range(people, sf.LeastLoss().run(people, promises))
    for label, search in defaults.singles().items():
        assert reached <= defaults.WORSE * defaults.shown_range(people, search.run(people, promises)), label


def test_the_stated_range_shown_is_what_the_measure_finds_in_the_published_rows() -> None:
    for seed, guarantee in ((3, sf.KAnonymity(4)), (5, sf.KAnonymity(2))):
        release = sf.protect(people_of(some_rows(60, seed)), [guarantee], seed=1)
        stated = next(score for score in release.owner.scores if score.measure == "range_shown")
        measured = RangeShown().score(None, release.content.released)
        assert stated.parts == pytest.approx(dict(measured.parts)) and stated.value == pytest.approx(measured.value)
        assert (stated.better, stated.meaning) == (measured.better, measured.meaning)
        assert list(release.scores)[:3] == ["loss", "range_shown", "detail_kept"]
    asked = sf.protect(people_of(some_rows(60)), [sf.KAnonymity(4)], seed=1, utility=["granularity"])
    assert list(asked.scores) == ["loss", "granularity"]


def test_a_column_of_many_free_texts_leaves_the_default_no_worse_than_mondrian() -> None:
    """200 texts, evenly used: splits along them save most at first and lead nowhere."""
    draw, rows = np.random.default_rng(5), 800
    columns = {f"q{i}": draw.integers(0, 100, rows) for i in range(8)}
    table = pa.table({**columns, "text": [f"free {i % 200}" for i in range(rows)], "ill": [f"{i % 7}" for i in range(rows)]})
    roles = {name: sf.Column(role="sensitive" if name == "ill" else "quasi") for name in table.column_names}
    people = sf.read(table, sf.Schema(dataset="texts", unit="record", columns=roles))
    default, mondrian = (
        sf.protect(people, sf.KAnonymity(5), search, utility="range_shown").scores["range_shown"]
        for search in (sf.LeastLoss(), sf.Mondrian())
    )
    assert default <= 1.05 * mondrian


def test_records_of_one_value_stay_together_so_that_no_relation_appears() -> None:
    """Nine of ten are 0, half of them ill: no class of the default has another share of the ill than its people."""
    values, ill = np.r_[np.zeros(900), np.arange(1, 101)], np.array(["ill", "well"])[np.arange(1000) % 2]
    roles = {"x": sf.Column(role="quasi", type="number"), "d": sf.Column(role="sensitive", type="category")}
    people = sf.read(pa.table({"x": values, "d": ill}), sf.Schema(dataset="s", unit="record", columns=roles))
    for k in (100, 150, 300):
        released = sf.protect(people, sf.KAnonymity(k)).data
        counts: dict[tuple[Any, ...], int] = {}
        for row in zip(*(released.column(name).to_pylist() for name in ("x", "d")), strict=True):
            counts[row] = counts.get(row, 0) + 1
        assert all(counts[shown, "ill"] == counts[shown, "well"] for shown, _ in counts)


def test_the_default_keeps_promises_about_a_population_where_local_recoding_does() -> None:
    def read(values: list[int]) -> sf.Microdata:
        schema = sf.Schema(dataset="d", unit="record", columns={"x": sf.Column(role="quasi", type="integer")})
        return sf.read(pa.table({"x": values}), schema)

    release = sf.protect(read([1, 2, 3]), sf.KMap(6), population=read(list(range(1, 20))))
    assert release.certificate.claims[0].holds


@pytest.mark.parametrize("k", [3, 5, 10])
def test_few_valued_numbers_leave_the_default_no_worse_than_any_search(k: int) -> None:
    """Codes and yes/no columns declared as whole numbers: records that are exactly alike, which cuts alone passed over."""
    draw, rows = np.random.default_rng(7), 600
    flags = {f"b{i}": (draw.random(rows) < 0.1).astype(int) for i in range(8)}
    codes = {"water": draw.choice(3, rows, p=[0.9, 0.07, 0.03]), "power": draw.choice(4, rows, p=[0.85, 0.1, 0.03, 0.02])}
    for columns in (flags, {**codes, "sex": draw.integers(0, 2, rows), "town": draw.integers(0, 2, rows)}):
        people = sf.read(pa.table(columns), sf.Schema.of(quasi=list(columns), unit="record"))
        default, *others = (
            sf.protect(people, sf.KAnonymity(k), search, utility="range_shown").scores["range_shown"]
            for search in (sf.LeastLoss(), sf.LocalRecoding(), sf.Mondrian(), sf.TopDown())
        )
        assert default <= 1.05 * min(others)
