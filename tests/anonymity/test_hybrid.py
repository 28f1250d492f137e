"""Hybrid records: table, place and set in one class, searched, measured, published and verified."""

from __future__ import annotations

import tomllib
from itertools import chain, combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.declared import build, parameters
from sfumato.core.errors import HierarchyError, HierarchyGap, Infeasible, ParameterError, SchemaError, Unsupported
from sfumato.data.item_sets import ItemSets
from sfumato.data.recoding import RecodingTable
from sfumato.data.schema import Column, HierarchySpec, Schema
from sfumato.kernels.classes.item_recoding import ClassItems
from sfumato.measures.guarantees.known_items import items_of
from sfumato.measures.guarantees.measure import measure
from tests.examples import examples

TREE = {"dairy": ["milk", "butter"], "drinks": {"hot": ["tea", "coffee"], "cold": ["water"]}}
ABOVE = {
    "milk": {"milk", "dairy"},
    "butter": {"butter", "dairy"},
    "tea": {"tea", "hot", "drinks"},
    "coffee": {"coffee", "hot", "drinks"},
    "water": {"water", "cold", "drinks"},
}


@pytest.fixture(autouse=True)
def owner_key(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_KEY", str(tmp_path_factory.mktemp("keys") / "owner.key"))


def described(*, taxonomy: bool = True, second: bool = False, **changes: Column) -> Schema:
    tree = HierarchySpec(tree=TREE) if taxonomy else None
    place = HierarchySpec(intervals=(10, 20, 40))
    columns = {
        "id": Column(role="plain", type="integer"),
        "x": Column(role="quasi", type="integer", hierarchy=place),
        "y": Column(role="quasi", type="integer", hierarchy=place),
        "sex": Column(role="quasi", type="string"),
        "basket": Column(role="quasi", type="string", items="|", hierarchy=tree),
        "clubs": Column(role="quasi" if second else "plain", type="string", items=", ".strip()),
        "disease": Column(role="sensitive", type="string"),
        **changes,
    }
    return Schema(dataset="hybrid", columns=columns)


def table(rows: int = 200, seed: int = 1) -> pa.Table:
    draw = np.random.default_rng(seed)
    shares = dict(zip(ABOVE, (0.7, 0.2, 0.5, 0.3, 0.6), strict=True))
    return pa.table(
        {
            "id": np.arange(rows),
            "x": draw.integers(0, 80, rows),
            "y": draw.integers(0, 80, rows),
            "sex": draw.choice(["f", "m"], rows),
            "basket": ["|".join(item for item, share in shares.items() if draw.random() < share) for _ in range(rows)],
            "clubs": [",".join(club for club in "abc" if draw.random() < 0.6) for _ in range(rows)],
            "disease": draw.choice(["flu", "cold", "asthma"], rows),
        }
    )


baskets = st.one_of(st.none(), st.lists(st.sampled_from(sorted(ABOVE)), max_size=5).map("|".join))
records = st.fixed_dictionaries(
    {
        "x": st.integers(0, 39),
        "y": st.integers(0, 19),
        "sex": st.sampled_from("fm"),
        "basket": baskets,
        "clubs": st.lists(st.sampled_from("abc"), max_size=3).map(", ".join),
        "disease": st.sampled_from(["flu", "cold", "asthma"]),
    }
)
TYPES = pa.schema(
    [
        ("id", pa.int64()),
        ("x", pa.int64()),
        ("y", pa.int64()),
        ("sex", pa.string()),
        ("basket", pa.string()),
        ("clubs", pa.string()),
        ("disease", pa.string()),
    ]
)


def as_table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([{"id": i, **row} for i, row in enumerate(rows)], schema=TYPES)


def recoded(data: pa.Table, schema: Schema, guarantees: list[Any], search: sf.Hybrid) -> pa.Table:
    """The rows as a search recodes them, without a release around them."""
    people = sf.read(data, schema)
    outcome = search.run(people, guarantees)
    return people.relation.recode(
        RecodingTable.of(outcome.result, outcome.class_table.keys, outcome.class_table.quasi), list(schema.columns)
    )


def fewest_by_force(rows: list[dict[str, Any]], tabular: list[str], sets: dict[str, str], most: int) -> int:
    """For everything somebody may know of some record, count the records that agree, one by one."""
    parsed = [{name: set(items_of(row[name], separator)) for name, separator in sets.items()} for row in rows]
    found = []
    for row, mine in zip(rows, parsed, strict=True):
        of_each = [list(chain.from_iterable(combinations(sorted(mine[name]), size) for size in range(most + 1))) for name in sets]
        for known in product(*of_each):
            found.append(
                sum(
                    all(other[name] == row[name] for name in tabular)
                    and all(set(part) <= theirs[name] for name, part in zip(sets, known, strict=True))
                    for other, theirs in zip(rows, parsed, strict=True)
                )
            )
    return min(found)


# The law ----------------------------------------------------------------------------------------------------------------


@settings(max_examples=examples(30))
@given(
    st.lists(records, min_size=2, max_size=25),
    st.integers(1, 4),
    st.integers(1, 3),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["suppress", "generalise"]),
)
def test_whoever_knows_some_items_finds_k_records_or_none_and_nothing_is_invented(
    rows: list[dict[str, Any]], k: int, items: int, taxonomy: bool, second: bool, way: Any
) -> None:
    assume(k <= len(rows))
    schema = described(taxonomy=taxonomy, second=second)
    asked = sf.KAnonymity(k, sf.Knowledge(items=items))
    released = recoded(as_table(rows), schema, [asked], sf.Hybrid(suppression=0.1, items=way))
    found = measure(released, schema, asked)
    assert found.holds
    assert found.value >= k
    for row in released.to_pylist():
        before = rows[row["id"]]
        allowed = [ABOVE[item] if taxonomy and way == "generalise" else {item} for item in items_of(before["basket"], "|")]
        for item in items_of(row["basket"], "|"):
            assert any(item in names for names in allowed)
        if second:
            assert set(items_of(row["clubs"], ",")) <= set(items_of(before["clubs"], ","))
        assert row["disease"] == before["disease"]


@settings(max_examples=examples(15))
@given(st.lists(records, min_size=2, max_size=25), st.integers(1, 3), st.booleans())
def test_other_guarantees_hold_against_whoever_knows_whole_sets(rows: list[dict[str, Any]], k: int, second: bool) -> None:
    assume(k <= len(rows))
    schema = described(second=second)
    asked = [
        sf.KAnonymity(k, sf.Knowledge(items=2)),
        sf.DistinctLDiversity(2, "disease"),
        sf.TCloseness(0.6, "disease", reference="released"),
    ]
    try:
        released = recoded(as_table(rows), schema, asked, sf.Hybrid(suppression=0.2))
    except Infeasible:
        assume(False)
    assert all(measure(released, schema, guarantee).holds for guarantee in asked)


@settings(max_examples=examples(20))
@given(st.lists(records, min_size=3, max_size=20), st.booleans(), st.randoms(use_true_random=False))
def test_how_sets_are_recoded_does_not_depend_on_the_order_of_rows(
    rows: list[dict[str, Any]], taxonomy: bool, random: Any
) -> None:
    asked = [sf.KAnonymity(2, sf.Knowledge(items=2))]
    schema = described(taxonomy=taxonomy, second=True, x=Column(role="plain"), y=Column(role="plain"), sex=Column(role="plain"))
    numbered = as_table(rows)
    order = list(range(len(rows)))
    random.shuffle(order)
    first = recoded(numbered, schema, asked, sf.Hybrid()).sort_by("id").to_pylist()
    second = recoded(numbered.take(pa.array(order)), schema, asked, sf.Hybrid()).sort_by("id").to_pylist()
    assert first == second


# The verifier -----------------------------------------------------------------------------------------------------------


@settings(max_examples=examples(30))
@given(st.lists(records, min_size=1, max_size=20), st.integers(1, 3), st.booleans())
def test_the_verifier_agrees_with_brute_force(rows: list[dict[str, Any]], items: int, second: bool) -> None:
    small = [{**row, "x": row["x"] // 20, "y": 0} for row in rows]
    sets = {"basket": "|", **({"clubs": ","} if second else {})}
    found = measure(as_table(small), described(second=second), sf.KAnonymity(1, sf.Knowledge(items=items)))
    tabular = ["x", "y", "sex"]
    assert found.value == fewest_by_force(small, tabular, sets, items)


TRANSACTIONS = ("a1|b1|b2", "a2|b1", "a2|b1|b2", "a1|a2|b2")


def transactions(*texts: str) -> tuple[pa.Table, Schema]:
    schema = Schema(columns={"basket": Column(role="quasi", type="string", items="|")})
    return pa.table({"basket": list(texts)}), schema


@pytest.mark.golden("G-SET-02")
def test_two_pairs_break_2_2_anonymity() -> None:
    found = measure(*transactions(*TRANSACTIONS), sf.KAnonymity(2, sf.Knowledge(items=2)))
    assert not found.holds
    assert found.value == 1
    # without the two rare pairs, {a1,b1} and {a1,a2}, it holds
    assert measure(*transactions("b1|b2", "a2|b1", "a2|b1|b2", "a2|b2"), sf.KAnonymity(2, sf.Knowledge(items=2))).holds


def test_e12_a_rare_triple_does_not_break_knowledge_of_two_items() -> None:
    shown = ("a|b|c", "a|b", "b|c", "a|c")
    assert measure(*transactions(*shown), sf.KAnonymity(2, sf.Knowledge(items=2))).value == 2
    assert measure(*transactions(*shown), sf.KAnonymity(2, sf.Knowledge(items=3))).value == 1


def test_e12_supports_are_compared_with_k_and_not_with_m() -> None:
    shown = ("a|b", "a|b", "c", "c")
    found = measure(*transactions(*shown), sf.KAnonymity(3, sf.Knowledge(items=2)))
    assert found.value == 2  # every support reaches m = 2
    assert not found.holds


def test_e12_sizes_below_m_are_checked_too() -> None:
    shown = ("a|b", "a|b", "z")  # the only pair is frequent, the single item z is not
    found = measure(*transactions(*shown), sf.KAnonymity(2, sf.Knowledge(items=2)))
    assert found.value == 1
    assert not found.holds


def test_whole_texts_are_compared_where_no_items_are_assumed() -> None:
    data, schema = transactions("a|b", "b|a", "a|b")
    assert measure(data, schema, sf.KAnonymity(2)).value == 1
    assert measure(data, schema, sf.KAnonymity(2, sf.Knowledge(items=2))).value == 3


def test_different_units_are_counted_where_a_unit_is_named() -> None:
    schema = Schema(columns={"basket": Column(role="quasi", type="string", items="|"), "who": Column(role="unit", type="string")})
    data = pa.table({"basket": ["a", "a", "a|b", "b"], "who": ["p", "p", "p", "q"]})
    assert measure(data, schema, sf.KAnonymity(1, sf.Knowledge(items=1))).value == 1
    assert measure(data, schema, sf.KAnonymity(1, sf.Knowledge(items=1))).also["smallest class without items"] == 2


def test_failing_classes_can_be_looked_at() -> None:
    data, schema = transactions(*TRANSACTIONS)
    found = sf.check(data, schema, [sf.KAnonymity(2, sf.Knowledge(items=2))])
    assert not found.holds
    assert "up to 2 items" in found.explain()


def test_sets_with_too_many_combinations_are_refused_at_once() -> None:
    data, schema = transactions("|".join(str(i) for i in range(100_000)))
    with pytest.raises(Unsupported, match="combinations"):
        measure(data, schema, sf.KAnonymity(1, sf.Knowledge(items=60_000)))


# The search, step by step ------------------------------------------------------------------------------------------------


def recoded_class(*texts: str, k: int, items: int, tree: dict[str, Any] | None = None) -> list[str]:
    column = Column(role="quasi", type="string", items="|", hierarchy=HierarchySpec(tree=tree) if tree else None)
    sets = ItemSets.of("basket", column, texts)
    nodes = sets.tree(set().union(*(sets.split(text) for text in texts)))
    work = ClassItems(
        [frozenset((0, nodes.leaf[item]) for item in sets.split(text)) for text in texts],
        [1] * len(texts),
        [nodes],
        generalise=tree is not None,
    )
    work.enforce(k, items)
    return [sets.join(nodes.labels[node] for _, node in shown) for shown in work.shown]


def test_a_rare_item_is_deleted() -> None:
    assert recoded_class("a|b", "a|b|z", "b", k=2, items=1) == ["a|b", "a|b", "b"]


def test_the_cheaper_item_of_a_rare_pair_is_deleted() -> None:
    shown = recoded_class("a|b", "a", "a", "b", k=2, items=2)
    assert shown == ["a", "a", "a", ""]  # b occurs twice, a three times


def test_items_are_generalised_where_that_loses_less() -> None:
    tree = {"dairy": ["milk", "butter"], "drinks": ["tea", "coffee", "water", "wine"]}
    assert recoded_class("milk", "butter", "tea", "tea", k=2, items=1, tree=tree) == ["dairy", "dairy", "tea", "tea"]


def test_a_generalisation_that_does_not_help_is_not_made() -> None:
    tree = {"dairy": ["milk", "butter"], "drinks": ["tea", "coffee"]}
    assert recoded_class("milk", "tea", "coffee", k=2, items=1, tree=tree) == ["", "drinks", "drinks"]


def test_what_a_generalisation_leaves_rare_is_mended_too() -> None:
    tree = {"dairy": ["milk", "butter"], "rest": ["tea", "rum", "zest", "salt", "rice", "oats"]}
    before = ("milk|rum", "milk|tea", "butter|rum", "butter|tea", "milk|zest", "zest", "zest")
    shown = recoded_class(*before, k=2, items=2, tree=tree)
    assert shown == ["dairy|rum", "dairy|tea", "dairy|rum", "dairy|tea", "dairy", "", ""]


def test_items_of_two_sets_are_known_together() -> None:
    schema = Schema(columns={name: Column(role="quasi", type="string", items="|") for name in ("basket", "clubs")})
    data = pa.table({"basket": ["a", "a", "b", "b"], "clubs": ["p", "q", "p", "q"]})
    asked = sf.KAnonymity(2, sf.Knowledge(items=1))
    assert measure(data, schema, asked).value == 1  # each item is shared by two records, each pair by one
    outcome = sf.Hybrid().run(sf.read(data, schema), [asked])
    assert outcome.details["items_deleted"] in ({"basket": 4, "clubs": 0}, {"basket": 0, "clubs": 4}, {"basket": 2, "clubs": 2})
    assert measure(recoded(data, schema, [asked], sf.Hybrid()), schema, asked).holds


def test_the_worked_case_becomes_2_2_anonymous() -> None:
    shown = recoded_class(*TRANSACTIONS, k=2, items=2)
    assert shown == ["b1|b2", "a2|b1", "a2|b1|b2", "a2|b2"]
    assert measure(*transactions(*shown), sf.KAnonymity(2, sf.Knowledge(items=2))).holds


def test_loss_is_the_share_of_items_that_is_lost() -> None:
    data, schema = transactions("a|b", "a|b|z", "b|a", "a|y|b")
    outcome = sf.Hybrid().run(sf.read(data, schema), [sf.KAnonymity(2, sf.Knowledge(items=1))])
    assert outcome.details["loss"] == pytest.approx((0 + 1 / 3 + 0 + 1 / 3) / 4)
    assert outcome.details["items_deleted"] == {"basket": 2}
    assert outcome.details["items_kept"] == {"basket": 8}


def test_sets_alone_are_one_class() -> None:
    data, schema = transactions(*TRANSACTIONS)
    made = sf.protect(sf.read(data, schema), sf.KAnonymity(2, sf.Knowledge(items=2)), sf.Hybrid())
    assert sorted(made.data.column("basket").to_pylist()) == ["a2|b1", "a2|b1|b2", "a2|b2", "b1|b2"]


def test_wider_classes_keep_more_items() -> None:
    asked = [sf.KAnonymity(3, sf.Knowledge(items=2))]
    people = sf.read(table(), described())
    kept = [sf.Hybrid(breadth=breadth).run(people, asked).details["loss_per_attribute"]["basket"] for breadth in (1, 8)]
    assert kept[1] < kept[0]
    chosen = sf.Hybrid().run(people, asked)
    assert chosen.details["loss"] <= sf.Hybrid(breadth=1).run(people, asked).details["loss"]


def test_a_class_is_a_cloaking_rectangle() -> None:
    schema = described()
    released = recoded(table(), schema, [sf.KAnonymity(5, sf.Knowledge(items=1))], sf.Hybrid())
    before = {row["id"]: row for row in table().to_pylist()}
    inside: dict[tuple[str, str], int] = {}
    for row in released.to_pylist():
        for name in ("x", "y"):
            if row[name] == "*":
                continue
            low, high = (float(bound) for bound in str(row[name]).strip("[)").split(", "))
            assert low <= before[row["id"]][name] < high
        inside[row["x"], row["y"]] = inside.get((row["x"], row["y"]), 0) + 1
    assert min(inside.values()) >= 5


# From a table to a verified release ----------------------------------------------------------------------------------------


@pytest.mark.covering
@pytest.mark.parametrize("taxonomy", [True, False])
@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_a_release_is_certified_saved_and_verified(tmp_path: Path, taxonomy: bool, format: Any) -> None:
    asked = sf.KAnonymity(3, sf.Knowledge(items=2))
    made = sf.protect(sf.read(table(), described(taxonomy=taxonomy)), [asked], sf.Hybrid())
    assert made.certificate.measured["KAnonymity"] >= 3
    assert made.certificate.claims[0].promised == asked.claim()
    assert "up to 2 items" in made.certificate.claims[0].adversary
    made.save(tmp_path / "out", format=format)
    verdict = sf.verify(tmp_path / "out")
    assert verdict.holds, verdict.explain()
    assert sf.check(made.data, made.schema, [asked]).holds
    assert made.schema.columns["basket"].items == "|"


def test_a_changed_set_is_found_by_verification(tmp_path: Path) -> None:
    from sfumato.workflow.publishing.claims import References, measure_all

    asked = sf.KAnonymity(3, sf.Knowledge(items=2))
    made = sf.protect(sf.read(table(), described()), [asked], sf.Hybrid())
    shown = made.data.column("basket").to_pylist()
    shown[0] = "oysters"
    spoilt = made.data.set_column(made.data.column_names.index("basket"), "basket", pa.array(shown))
    assert not measure_all(spoilt, made.schema, [asked], References())[0].holds


def test_guarantees_combine_in_a_release(tmp_path: Path) -> None:
    asked = [sf.KAnonymity(3, sf.Knowledge(items=2)), sf.DistinctLDiversity(2, "disease")]
    made = sf.protect(sf.read(table(), described(second=True)), asked, sf.Hybrid())
    assert made.certificate.measured["DistinctLDiversity(disease)"] >= 2
    made.save(tmp_path / "out")
    assert sf.verify(tmp_path / "out").holds


def test_a_recipe_names_the_knowledge(tmp_path: Path) -> None:
    from sfumato.data.writers import write_file

    write_file(table(), tmp_path / "people.csv")
    (tmp_path / "people.toml").write_text(described().to_toml(), "utf-8")
    (tmp_path / "recipe.toml").write_text(
        'data = "people.csv"\nschema = "people.toml"\nledger = false\noutput = "out"\n'
        '[[guarantee]]\nname = "KAnonymity"\nk = 3\nknowledge = { items = 2 }\n'
        '[method]\nname = "Hybrid"\nitems = "suppress"\n',
        "utf-8",
    )
    made = sf.Recipe.load(tmp_path / "recipe.toml").run()
    assert made.guarantees == (sf.KAnonymity(3, sf.Knowledge(items=2)),)
    assert sf.verify(tmp_path / "out").holds


# What is refused, and what travels -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "search",
    [sf.LocalRecoding(), sf.Lattice(), sf.Mondrian(), sf.TopDown(), sf.KMember(), sf.CellSuppression()],
    ids=lambda search: type(search).__name__,
)
def test_other_searches_refuse_knowledge_of_items(search: Any) -> None:
    people = sf.read(table(40), described())
    with pytest.raises(Unsupported, match="Hybrid"):
        search.run(people, [sf.KAnonymity(2, sf.Knowledge(items=1))])


def test_other_searches_treat_a_set_as_one_value() -> None:
    people = sf.read(table(), described())
    made = sf.protect(people, sf.KAnonymity(3), sf.LocalRecoding())
    assert made.certificate.measured["KAnonymity"] >= 3


def test_knowledge_of_items_means_nothing_without_sets() -> None:
    schema = described(basket=Column(role="plain", type="string"))
    asked = sf.KAnonymity(3, sf.Knowledge(items=2))
    for search in (sf.Hybrid(), sf.LocalRecoding()):
        made = sf.protect(sf.read(table(), schema), asked, search)
        assert made.certificate.measured["KAnonymity"] >= 3


def test_units_and_populations_are_refused() -> None:
    asked = sf.KAnonymity(2, sf.Knowledge(items=1))
    with pytest.raises(Unsupported, match="unit"):
        sf.Hybrid().run(sf.read(table(), described(id=Column(role="unit"))), [asked])
    people = sf.read(table(), described())
    with pytest.raises(Unsupported, match="KMap"):
        sf.Hybrid().run(people, [asked, sf.KMap(2)], population=people)


def test_items_outside_the_taxonomy_are_reported() -> None:
    basket = Column(role="quasi", type="string", items="|", hierarchy=HierarchySpec(tree={"dairy": ["milk", "butter"]}))
    with pytest.raises(HierarchyGap, match="basket"):
        sf.Hybrid().run(sf.read(table(), described(basket=basket)), [sf.KAnonymity(2, sf.Knowledge(items=1))])
    torn = Column(role="quasi", type="string", items="|", hierarchy=HierarchySpec(tree={"hot|cold": list(ABOVE)}))
    with pytest.raises(HierarchyError, match="separator"):
        sf.Hybrid().run(sf.read(table(), described(basket=torn)), [sf.KAnonymity(2, sf.Knowledge(items=1))])


@pytest.mark.parametrize(
    "wrong",
    [
        {"role": "quasi", "type": "integer", "items": "|"},
        {"role": "quasi", "items": "|"},
        {"role": "identifier", "type": "string", "items": "|"},
        {"role": "quasi", "type": "string", "items": ""},
        {"role": "quasi", "type": "string", "items": "four"},
        {"role": "quasi", "type": "string", "items": " "},
        {"role": "quasi", "type": "string", "items": "|", "domain": ["a"]},
        {"role": "quasi", "type": "string", "items": "|", "hierarchy": {"frequency": [2]}},
    ],
)
def test_a_separator_of_items_is_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(SchemaError):
        Schema.parse({"columns": {"basket": wrong}})


def test_a_schema_with_items_travels_through_toml() -> None:
    schema = described()
    assert Schema.parse(tomllib.loads(schema.to_toml())) == schema
    assert schema.set_valued == ("basket",)


@pytest.mark.parametrize(
    "guarantee",
    [
        sf.KAnonymity(5, sf.Knowledge(items=2)),
        sf.KAnonymity(5, sf.Knowledge(attributes=("x", "basket"), items=1)),
        sf.KAnonymity(5),
    ],
    ids=repr,
)
def test_knowledge_travels_as_a_mapping(guarantee: sf.KAnonymity) -> None:
    assert build(sf.KAnonymity, parameters(guarantee)) == guarantee
    assert guarantee.adversary.startswith("knows")


@pytest.mark.parametrize(
    "knowledge", [{"items": -1}, {"items": True}, {"item": 2}, {"name": "Something", "items": 2}, 5, {"items": "2"}]
)
def test_knowledge_that_makes_no_sense_is_refused(knowledge: Any) -> None:
    with pytest.raises(ParameterError):
        build(sf.KAnonymity, {"k": 2, "knowledge": knowledge})


def test_narrower_knowledge_leaves_sets_out() -> None:
    found = measure(table(60), described(), sf.KAnonymity(1, sf.Knowledge(attributes=("sex",), items=2)))
    assert found.value > 10
    assert found.quasi == ("sex",)


@pytest.mark.parametrize("wrong", [{"items": "hide"}, {"breadth": 0}, {"suppression": 2.0}, {"step": 0.0}])
def test_parameters_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        sf.Hybrid(**wrong)
