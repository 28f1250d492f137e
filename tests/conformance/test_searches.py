"""Laws of every search with every guarantee: accepted by the plain verifier or refused with a reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.errors import Infeasible, InputError, Unsupported
from sfumato.core.guarantees.base import ClassGuarantee
from sfumato.core.guarantees.k_anonymity import KAnonymity
from sfumato.core.guarantees.l_diversity import DistinctLDiversity, EntropyLDiversity
from sfumato.core.guarantees.population import KMap
from sfumato.core.guarantees.t_closeness import TCloseness
from sfumato.core.outcome import Outcome
from sfumato.data.microdata import Microdata
from sfumato.data.sample import sample_schema, sample_table
from sfumato.data.schema import Column, Schema
from sfumato.data.texts.values import text_of
from sfumato.engines.memory import MemoryRelation
from tests.conformance.methods import GUARANTEE_KINDS, SEARCHES, limit_of, variants
from tests.conformance.problems import GUARANTEES, People, guarantee, knowing, mixtures, people, released_rows, verdicts
from tests.conformance.truth import covers
from tests.examples import examples

Asked = Sequence[ClassGuarantee]
Found = tuple[Microdata, Outcome[Any]]


def run(search: Any, given_people: People, asked: Asked, order: Sequence[int] | None = None) -> Found | None:
    """The outcome, or None when the search refuses with a reason."""
    data = given_people.microdata(order)
    register = given_people.register() if any(wanted.needs_population for wanted in asked) else None
    try:
        return data, search.run(data, asked, population=register)
    except (Infeasible, Unsupported) as refusal:
        assert len(str(refusal)) > 30
        return None


def check(search: Any, given_people: People, asked: Asked) -> bool:
    """Everything that must be true of an outcome; False when there is none."""
    found = run(search, given_people, asked)
    if found is None:
        return False
    data, outcome = found
    released = released_rows(data, outcome)
    assert outcome.claimed == tuple(asked)
    assert outcome.result.records == data.relation.count() == released.num_rows + outcome.result.suppressed
    assert outcome.result.suppressed <= limit_of(search, outcome.result.records)
    for measured in verdicts(given_people, released, asked):
        assert measured.holds, measured.explanation
    tell_the_truth(given_people, outcome, released)
    assert 0 <= outcome.details["loss"] <= 1 + 1e-12
    return True


def tell_the_truth(given_people: People, outcome: Outcome[Any], released: pa.Table) -> None:
    """Every released row is found again by its number: its values are coarser or the same, the others untouched."""
    coded = outcome.class_table
    before = {row["number"]: row for row in given_people.table.to_pylist()}
    for row in released.to_pylist():
        original = before.pop(row["number"])
        assert row["secret"] == original["secret"]
        for name, tree in zip(coded.quasi, coded.hierarchies, strict=True):
            order = given_people.schema.columns[name].order
            shown, raw = text_of(row[name]), text_of(original[name])
            assert covers(shown, raw, tree, order), (name, shown, raw)


def test_every_guarantee_is_drawn() -> None:
    assert set(GUARANTEES) == set(GUARANTEE_KINDS)


@pytest.mark.parametrize("kind", sorted(GUARANTEES))
@pytest.mark.parametrize("name", sorted(SEARCHES))
@settings(max_examples=examples(3))
@given(data=st.data())
def test_a_release_is_accepted_by_the_verifier_or_refused_with_a_reason(name: str, kind: str, data: st.DataObject) -> None:
    table = data.draw(people(units=data.draw(st.booleans())))
    check(data.draw(st.sampled_from(variants(name))), table, [data.draw(guarantee(kind, table.secrets))])


@pytest.mark.parametrize("name", sorted(SEARCHES))
@settings(max_examples=examples(12))
@given(data=st.data())
def test_a_mixture_of_guarantees_is_accepted_or_refused(name: str, data: st.DataObject) -> None:
    table = data.draw(people(units=data.draw(st.booleans())))
    check(data.draw(st.sampled_from(variants(name))), table, data.draw(mixtures(table.secrets)))


@pytest.mark.parametrize("name", sorted(SEARCHES))
@settings(max_examples=examples(8))
@given(data=st.data())
def test_k_anonymity_that_fits_the_table_is_never_refused(name: str, data: st.DataObject) -> None:
    """With a common root one class of all records is possible, so every search must find something."""
    table = data.draw(people(kinds=("unbalanced", "intervals", "flat", "mask", "numbers", "single")))
    k = data.draw(st.integers(1, table.table.num_rows))
    for search in variants(name):
        assert check(search, table, [KAnonymity(k)]), search


@pytest.mark.parametrize("name", sorted(SEARCHES))
@settings(max_examples=examples(10))
@given(data=st.data())
def test_the_order_of_rows_does_not_matter(name: str, data: st.DataObject) -> None:
    table = data.draw(people(attributes=(1, 2), rows=(2, 12)))
    search = data.draw(st.sampled_from(variants(name)))
    asked = data.draw(mixtures(table.secrets, 2))
    order = data.draw(st.permutations(range(table.table.num_rows)))
    first, second = run(search, table, asked), run(search, table, asked, order)
    assert (first is None) == (second is None)
    if first is not None and second is not None:
        assert multiset(released_rows(*first)) == multiset(released_rows(*second))
        assert first[1].details["loss"] == pytest.approx(second[1].details["loss"], abs=1e-12)


def multiset(table: pa.Table) -> Counter[tuple[Any, ...]]:
    columns = [[text_of(value) for value in table.column(name).to_pylist()] for name in sorted(table.column_names)]
    return Counter(zip(*columns, strict=True))


def degenerate(values: Sequence[Any]) -> People:
    count = len(values)
    table = pa.table(
        {
            "q": pa.array(values, pa.string()),
            "r": pa.array(values, pa.string()),
            "secret": pa.array(values, pa.string()),
            "number": range(count),
        }
    )
    columns = {
        "q": Column(role="quasi"),
        "r": Column(role="quasi"),
        "secret": Column(role="sensitive"),
        "number": Column(role="plain"),
    }
    return People(table, Schema(dataset="degenerate", columns=columns), table.select(["q", "r"]))


@pytest.mark.parametrize("name", sorted(SEARCHES))
def test_an_empty_table_is_refused(name: str) -> None:
    for search in variants(name):
        with pytest.raises(InputError, match="no records"):
            search.run(degenerate([]).microdata(), [KAnonymity(1)])


@pytest.mark.parametrize("values", [["x"], [None], ["x"] * 5, [None] * 5, ["é", "é", "é", "日", "🙂"]], ids=repr)
@pytest.mark.parametrize("name", sorted(SEARCHES))
def test_small_constant_missing_and_unicode_tables(name: str, values: list[str | None]) -> None:
    table = degenerate(values)
    for search in variants(name):
        assert check(search, table, [KAnonymity(1)])
        if len(set(values)) == 1:
            assert check(search, table, [KAnonymity(len(values)), TCloseness(0.0, "secret")])
            found = run(search, table, [KAnonymity(len(values))])
            assert found is not None and found[1].details["loss"] == 0
        with pytest.raises(Infeasible, match="cannot be reached"):
            search.run(table.microdata(), [KAnonymity(len(values) + 1)])


CANARY = "ca\u00f1ary-7c1e"


@pytest.mark.parametrize("name", sorted(SEARCHES))
def test_no_record_value_appears_in_a_refusal_or_a_repr(name: str) -> None:
    table = degenerate([f"{CANARY}{i}" for i in range(4)])
    impossible: list[list[ClassGuarantee]] = [
        [KAnonymity(9)],
        [DistinctLDiversity(9, "secret")],
        [EntropyLDiversity(9, "secret")],
        [KMap(50)],
        [TCloseness(0.1, "secret", distance="ordered")],
        [TCloseness(0.0, "secret"), DistinctLDiversity(5, "secret")],
    ]
    for search in variants(name):
        for asked in impossible:
            register = table.register() if any(wanted.needs_population for wanted in asked) else None
            try:
                outcome = search.run(table.microdata(), asked, population=register)
            except (Infeasible, Unsupported) as refusal:
                assert CANARY not in f"{refusal!r} {refusal}"
            else:  # everything may be suppressed where that is allowed
                assert outcome.result.suppressed == outcome.result.records
        outcome = search.run(table.microdata(), [KAnonymity(2)])
        assert CANARY not in f"{outcome!r} {outcome.result!r} {outcome.class_table!r} {search!r}"


@pytest.mark.parametrize("name", sorted(SEARCHES))
def test_what_a_search_cannot_do_is_refused_before_it_starts(name: str) -> None:
    table = degenerate(["a", "b"])
    for search in variants(name):
        with pytest.raises(InputError, match="at least one"):
            search.run(table.microdata(), [])
        with pytest.raises(InputError, match="population"):
            search.run(table.microdata(), [KMap(2)])
        with pytest.raises(InputError, match="unknown"):
            search.run(table.microdata(), [DistinctLDiversity(2, "unknown")])


def test_a_class_counts_the_people_it_shows_and_no_others() -> None:
    """Nine of ten people of the population have no record: a class that counts on them must show a value above theirs."""
    sample = pa.table({"q": ["a", "a"], "r": ["x", "x"], "secret": ["s", "t"], "number": [0, 1]})
    population = pa.table({"q": ["a"] + ["b"] * 9, "r": ["x"] * 10})
    table = People(sample, degenerate([]).schema, population)
    for name in sorted(SEARCHES):
        for search in variants(name):
            check(search, table, [KMap(5)])
            check(search, table, [KMap(5), EntropyLDiversity(1.5, "secret", protected_values=("s",))])


@settings(max_examples=examples(12))
@given(table=people(units=True), l=st.integers(1, 3))
def test_a_unit_column_does_not_matter_where_no_k_is_asked(table: People, l: int) -> None:  # noqa: E741
    plain = {**table.schema.columns, "person": Column(role="plain")}
    without = People(table.table, table.schema.replace(columns=plain), table.population)
    for name in sorted(SEARCHES):
        search = SEARCHES[name]()
        first, second = (run(search, given_people, [DistinctLDiversity(l, "secret")]) for given_people in (table, without))
        assert (first is None) == (second is None)
        if first is not None and second is not None:
            assert first[1].details["loss"] == pytest.approx(second[1].details["loss"], abs=1e-12)


def test_a_range_with_a_missing_value_is_the_whole_domain() -> None:
    table = degenerate(["1", "2", "3", None])
    data = table.microdata()
    outcome = SEARCHES["Mondrian"](ranges_everywhere=True).run(data, [KAnonymity(2)])
    shown = released_rows(data, outcome).column("q").to_pylist()
    assert sorted(Counter(shown).items()) == [("*", 2), ("[1, 3)", 2)]
    assert outcome.details["loss_per_attribute"]["q"] == pytest.approx((2 * 1 + 2 * 1 / 3) / 4)


@pytest.mark.parametrize("name", sorted(SEARCHES))
def test_every_search_keeps_to_declared_hierarchies_and_ranges_need_leave(name: str) -> None:
    """One rule for all, so that what they show can be compared; a code of digits is no number."""
    people = Microdata(MemoryRelation(sample_table(300)), sample_schema())

    def others(search: Any) -> set[str]:
        """The columns that show texts which are no nodes of their hierarchy."""
        outcome = search.run(people, [KAnonymity(3)])
        rows, trees = (
            released_rows(people, outcome),
            dict(zip(outcome.class_table.quasi, outcome.class_table.hierarchies, strict=True)),
        )
        return {name for name, tree in trees.items() if not set(rows.column(name).to_pylist()) <= {None, "*", *tree.labels}}

    assert others(SEARCHES[name]()) == set()
    if name == "Mondrian":
        assert others(SEARCHES[name](ranges_everywhere=True)) == {"age", "postcode"}


def test_a_range_of_a_declared_order_names_its_ends() -> None:
    column = Column(role="quasi", order=("3", "1", "2"))
    table = pa.table({"q": ["3", "1", "2", "2"]})
    data = Microdata(MemoryRelation(table), Schema(columns={"q": column}))
    outcome = SEARCHES["Mondrian"]().run(data, [KAnonymity(2)])
    assert Counter(released_rows(data, outcome).column("q").to_pylist()) == {"3 … 1": 2, "2": 2}


@pytest.mark.parametrize("name", sorted(SEARCHES))
@settings(max_examples=examples(5))
@given(table=people(attributes=(2, 3)), k=st.integers(1, 4))
def test_only_what_the_adversary_knows_is_generalised(name: str, table: People, k: int) -> None:
    known, *unknown = table.schema.quasi
    for search in variants(name):
        found = run(search, table, [knowing([known], k)])
        if found is None:
            continue
        released = released_rows(*found)
        assert verdicts(table, released, [knowing([known], k)])[0].holds
        kept = table.table.take(pa.array(released.column("number").to_pylist(), pa.int64()))
        for column in unknown:
            assert released.column(column).to_pylist() == kept.column(column).to_pylist()
