"""Terms of sets climb a taxonomy until enough records show them; compared with a plain-Python oracle."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import ParameterError, Unsupported

TREE = {"animal": {"pet": ["cat", "dog"], "wild": ["wolf", "newt"]}, "tool": ["saw", "axe"], "word": []}
PARENTS = {
    "cat": "pet",
    "dog": "pet",
    "wolf": "wild",
    "newt": "wild",
    "pet": "animal",
    "wild": "animal",
    "saw": "tool",
    "axe": "tool",
}
TERMS = ("cat", "dog", "wolf", "newt", "saw", "axe", "word")


def logs(sets: list[list[str] | None], tree: object = TREE, **more: list[object]) -> sf.Microdata:
    terms = {"role": "quasi", "type": "string", "items": "|"} | ({"hierarchy": {"tree": tree}} if tree else {})
    columns: dict[str, object] = {"terms": terms} | {name: {"role": "unit" if name == "who" else "plain"} for name in more}
    texts = pa.array([None if entry is None else "|".join(entry) for entry in sets], pa.string())
    return sf.read(pa.table({"terms": texts, **more}), {"columns": columns})


def shown(data: sf.Microdata, k: int, **options: object) -> list[str | None]:
    return sf.TermGeneralisation(k, **options).apply(data).result.table.column("terms").to_pylist()  # type: ignore[arg-type]


def oracle(sets: list[list[str] | None], k: int) -> list[str | None]:
    """By the definition, one level after the other, with sets in place of arrays."""
    holders = {term: {i for i, entry in enumerate(sets) if entry and term in entry} for term in TERMS}
    label: dict[str, str | None] = {term: term if len(who) >= k else None for term, who in holders.items()}
    place = {term: term for term in TERMS}
    depth = {"cat": 3, "dog": 3, "wolf": 3, "newt": 3, "saw": 3, "axe": 3}
    for level in range(1, 4):
        waiting = [term for term in TERMS if label[term] is None and term in depth]
        for term in waiting:
            # tool stands right below the root: its leaves repeat until the level below it
            if term not in ("saw", "axe") or level == 2:
                place[term] = PARENTS.get(place[term], "*")
        for node in {place[term] for term in waiting}:
            below = [term for term in waiting if place[term] == node]
            if node not in ("*", *TERMS) and len(set().union(*(holders[term] for term in below))) >= k:
                label.update(dict.fromkeys(below, node))
    return [None if entry is None else "|".join(sorted({label[t] for t in entry if label[t]})) for entry in sets]  # type: ignore[type-var]


def test_the_nearest_broader_term_that_enough_records_show() -> None:
    data = logs([["dog", "cat"], ["dog"], ["wolf", "saw"], ["newt"], ["axe", "word"], None, []])
    assert shown(data, 2) == ["dog", "dog", "tool|wild", "wild", "tool", None, ""]


@given(
    sets=st.lists(st.none() | st.lists(st.sampled_from(TERMS), max_size=4, unique=True), min_size=4, max_size=40),
    k=st.integers(2, 4),
)
def test_the_mask_does_what_the_definition_says(sets: list[list[str] | None], k: int) -> None:
    if all(entry is None for entry in sets):
        return
    assert shown(logs(sets), k) == oracle(sets, k)


@given(
    sets=st.lists(st.lists(st.sampled_from(TERMS), max_size=4, unique=True), min_size=4, max_size=40),
    k=st.integers(2, 4),
)
def test_every_term_that_is_shown_is_shown_by_at_least_k_records(sets: list[list[str]], k: int) -> None:
    after = shown(logs(sets), k)
    counts = Counter(term for text in after for term in (text or "").split("|") if term)
    assert all(count >= k for count in counts.values())


def test_without_a_taxonomy_rare_terms_are_dropped() -> None:
    assert shown(logs([["cat", "dog"], ["cat"], ["saw"]], tree=None), 2) == ["cat", "cat", ""]


def test_persons_are_counted_where_the_schema_names_them() -> None:
    """The dog is in two records of one person: too few for k = 2."""
    sets = [["dog", "axe"], ["dog"], ["axe"]]
    assert shown(logs(sets, who=[1, 1, 2]), 2) == ["axe", "", "axe"]
    outcome = sf.TermGeneralisation(2).apply(logs(sets, who=[1, 1, 2]))
    assert outcome.result.transparency["counted"] == "units"


def test_each_stratum_is_counted_apart() -> None:
    data = logs([["cat"], ["cat"], ["cat"], ["dog"]], place=["a", "a", "b", "b"])
    assert shown(data, 2, strata=("place",)) == ["cat", "cat", "pet", "pet"]


def test_the_loss_of_meaning_is_told_to_the_owner() -> None:
    outcome = sf.TermGeneralisation(2).apply(logs([["dog", "wolf"], ["dog", "newt"], ["word"]]))
    told = outcome.details["terms"]
    assert (told["kept"], told["generalised"], told["dropped"]) == (2, 2, 1)
    assert told["loss"] == pytest.approx((0 + 0 + 1 / 6 + 1 / 6 + 1) / 5)


def test_what_is_not_a_set_or_too_few_records_are_refused() -> None:
    with pytest.raises(Unsupported, match="'x' holds single values"):
        sf.TermGeneralisation(2, columns=("x",)).apply(pa.table({"x": ["a", "b"]}))
    with pytest.raises(Unsupported, match="k = 9 is more than there are records"):
        sf.TermGeneralisation(9).apply(logs([["cat"], ["dog"]]))
    with pytest.raises(ParameterError, match="k must be a whole number of at least 2, not 1"):
        sf.TermGeneralisation(1)
    with pytest.raises(Unsupported, match="no values at all"):
        sf.TermGeneralisation(2).apply(logs([None, None]))


def test_a_missing_set_stays_missing_and_a_dropped_one_is_empty() -> None:
    sets = ["a|b", "a", None, "c"] * 20 + ["q"]
    logs = sf.read(pa.table({"terms": sets}), {"columns": {"terms": {"items": "|", "type": "string"}}})
    masked = sf.TermGeneralisation(10, columns=("terms",)).apply(logs).result.table.column("terms").to_pylist()
    assert [text is None for text in masked] == [text is None for text in sets] and masked[-1] == ""
