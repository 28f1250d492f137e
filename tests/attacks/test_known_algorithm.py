"""What a certificate tells about the algorithm, and that the searches do what the attack supposes of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.attacks import KnownAlgorithm, Minimality, Register
from sfumato.attacks.tables.known_algorithm import published_algorithm
from sfumato.core.declared import parameters
from sfumato.core.errors import Infeasible, InputError, ParameterError, Unsupported
from sfumato.core.view import View
from sfumato.data.schema import Column, HierarchySpec, Schema

SCHEMA = Schema(
    dataset="clinic",
    columns={
        "age": Column(role="quasi", type="integer", bounds=(0, 8), hierarchy=HierarchySpec(intervals=(3, 9))),
        "town": Column(role="quasi", type="string", domain=("a", "b", "c")),
        "disease": Column(role="sensitive", type="string"),
    },
)
HALF_SICK = sf.AlphaKAnonymity(0.5, 1, "disease", ("HIV",))
SEARCHES = [sf.CellSuppression(suppression=0), sf.Lattice(), sf.LocalRecoding(suppression=0), sf.Mondrian(), sf.TopDown()]
MIXTURES: list[list[Any]] = [
    [HALF_SICK],
    [sf.AlphaKAnonymity(0.5, 2, "disease")],
    [sf.KAnonymity(2), sf.DistinctLDiversity(2, "disease")],
]


@pytest.fixture(autouse=True)
def owner_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Releases are made here: with a key of their own, never the user's."""
    monkeypatch.setenv("SFUMATO_KEY", str(tmp_path / "owner.key"))


def people(seed: int, rows: int) -> pa.Table:
    draw = np.random.default_rng(seed)
    return pa.table(
        {
            "age": draw.integers(0, 4, rows) * 2,
            "town": draw.choice(["a", "b"], rows),
            "disease": draw.choice(["HIV", "flu", "cold"], rows, p=[0.3, 0.4, 0.3]),
        }
    )


def keeps(counts: Counter[str], guarantees: list[Any]) -> bool:
    """Whether people with these diseases may be a class, written down from the definitions."""
    everybody = sum(counts.values())
    for promise in guarantees:
        if everybody < getattr(promise, "k", 1):
            return False
        if isinstance(promise, sf.DistinctLDiversity) and len(counts) < promise.l:
            return False
        if isinstance(promise, sf.AlphaKAnonymity):
            protected = promise.protected_values or tuple(counts)
            if any(counts[value] > promise.alpha * everybody for value in protected):
                return False
    return True


def merged_classes(search: Any, table: pa.Table, guarantees: list[Any]) -> tuple[list[list[bool]], bool]:
    """For every class of several groups of people, whether each group keeps the promises by itself; and whether everybody's
    does."""
    outcome = search.run(sf.read(table, SCHEMA), guarantees)
    recoding, coded = outcome.result, outcome.class_table
    raw = [[tree.leaves[code] for tree, code in zip(coded.hierarchies, codes, strict=True)] for codes in coded.codes.T.tolist()]
    diseases: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for row in table.to_pylist():
        diseases[str(row["age"]), row["town"]][row["disease"]] += 1
    inside: dict[int, set[tuple[str, ...]]] = defaultdict(set)
    for cell, klass in zip(recoding.cell.tolist(), recoding.klass.tolist(), strict=True):
        inside[klass].add(tuple(raw[coded.tuple_of_cell[cell]]))
    fine = {group: keeps(counts, guarantees) for group, counts in diseases.items()}
    return [[fine[group] for group in groups] for groups in inside.values() if len(groups) > 1], all(fine.values())


def without_need(search: Any, guarantees: list[Any]) -> tuple[int, int]:
    """How many classes were merged, and how many of them without need, over forty tables."""
    merged = needless = 0
    for seed in range(40):
        try:
            classes, all_fine = merged_classes(search, people(seed, 14 + seed), guarantees)
        except Infeasible:
            continue
        merged += len(classes)
        needless += sum(all_fine if isinstance(search, sf.Lattice) else all(groups) for groups in classes)
    return merged, needless


@pytest.mark.covering
@pytest.mark.parametrize("guarantees", MIXTURES, ids=["half sick", "half of any", "two diseases"])
@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: type(search).__name__)
def test_these_searches_never_merge_people_who_were_fine_apart(search: Any, guarantees: list[Any]) -> None:
    """The law that the attack rests on."""
    merged, needless = without_need(search, guarantees)
    assert merged > 10 and needless == 0


@pytest.mark.parametrize("search", [sf.KMember(), sf.LocalRecoding(suppression=0, step=0.9, refine=False)])
def test_others_do_and_are_refused_therefore(search: Any) -> None:
    assert without_need(search, MIXTURES[0])[1] > 0
    with pytest.raises(Unsupported):
        published_algorithm(view_of({"name": type(search).__name__, **parameters(search)}, HALF_SICK), None)


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: type(search).__name__)
def test_a_release_is_never_taken_for_one_of_another_algorithm(search: Any) -> None:
    attacked = 0
    for seed, guarantees in ((seed, MIXTURES[seed % 3]) for seed in range(9)):
        table = people(seed, 14)
        try:
            release = sf.protect(sf.read(table, SCHEMA), guarantees, search)
            known, attribute = published_algorithm(release.view(), table)
            beliefs = Minimality().beliefs(release.view(), known, attribute)
        except (Infeasible, Unsupported) as refusal:
            assert isinstance(refusal, Infeasible) or "overlap" in str(refusal)
            continue
        attacked += 1
        # However the adversary shifts beliefs, as many people as the release shows have each disease.
        for value, count in Counter(release.data.column("disease").to_pylist()).items():
            if known.protected is None or value in known.protected:
                assert sum(belief.people * belief.probability.get(value, 0) for belief in beliefs) == count
    assert attacked


def test_the_certificate_says_what_was_required() -> None:
    table = people(1, 40)
    data = sf.read(table, SCHEMA)
    release = sf.protect(data, [sf.KAnonymity(3), sf.AlphaKAnonymity(1 / 2, 2, "disease", ("HIV",))], sf.Mondrian())
    known, attribute = published_algorithm(release.view(), table)
    assert (known.l, known.k, known.requirement, known.protected) == (2, 3, "frequency", ("HIV",))
    assert (known.recoding, known.refinement, attribute) == ("local", "original", "disease")
    lattice = sf.protect(data, [sf.DistinctLDiversity(3, "disease"), sf.DistinctLDiversity(1, "disease")], sf.Lattice())
    known, _ = published_algorithm(lattice.view(), table)
    assert (known.l, known.k, known.requirement, known.protected, known.recoding) == (3, 1, "distinct", None, "global")


def test_a_register_alone_is_the_same_as_saying_what_the_certificate_says() -> None:
    table = pa.table(
        {"age": [1, 1, 2, 2, 2, 2], "town": ["a"] * 6, "disease": ["HIV", "HIV", "none", "none", "none", "none"]},
    )
    view = sf.protect(sf.read(table, SCHEMA), [HALF_SICK], sf.Mondrian()).view()
    by_hand = Minimality().run(view, KnownAlgorithm(table, l=2, protected=("HIV",)))
    for register in (
        table,
        Register(table),
        Register(table.rename_columns(["years", "town", "x"]), {"age": "years", "town": "town"}),
    ):
        found = Minimality().run(view, register)
        assert found == by_hand and (found.success, found.baseline) == (1.0, 0.5)
    assert Minimality("disease").run(view, table) == by_hand
    with pytest.raises(ParameterError, match="promises nothing about 'town'"):
        Minimality("town").run(view, table)


def view_of(method: Any, *claims: Any, unit: str = "record") -> View:
    told = [{"guarantee": claim.key, "parameters": parameters(claim), "unit": unit} for claim in claims]
    return View(pa.table({}), SCHEMA, {"method": method, "claims": told})


LOCAL = {"name": "LocalRecoding", "refine": True}


@pytest.mark.parametrize(
    ("view", "why"),
    [
        (View(pa.table({}), SCHEMA), "no certificate"),
        (view_of({}, HALF_SICK), "no certificate"),
        (view_of({"name": "KMember"}, HALF_SICK), "made by KMember"),
        (view_of({"name": "Hybrid"}, HALF_SICK), "made by Hybrid"),
        (view_of({"name": "Mdav", "k": 3}, HALF_SICK), "made by Mdav"),
        (view_of({"name": "Mondrian", "relaxed": True}, HALF_SICK), "'relaxed'"),
        (view_of({"name": "LocalRecoding", "refine": False}, HALF_SICK), "'refine'"),
        (view_of({"name": "Lattice", "time_limit": 3.0}, HALF_SICK), "'time_limit'"),
        (view_of(LOCAL), "nothing about sensitive values"),
        (view_of(LOCAL, sf.KAnonymity(5)), "nothing about sensitive values"),
        (view_of(LOCAL, sf.AlphaKAnonymity(0.5, 3, "disease", ())), "nothing about sensitive values"),
        (view_of(LOCAL, sf.DistinctLDiversity(1, "disease")), "nothing about sensitive values"),
        (view_of(LOCAL, sf.KAnonymity(5, sf.Knowledge(attributes=("age",))), HALF_SICK), "partial knowledge"),
        (view_of(LOCAL, HALF_SICK, sf.DistinctLDiversity(2, "disease")), "several guarantees"),
        (view_of(LOCAL, sf.DistinctLDiversity(2, "disease"), sf.DistinctLDiversity(2, "town")), "several guarantees"),
        (view_of(LOCAL, sf.DistinctLDiversity(2, "disease", ("HIV",))), "with a protected value alone"),
        (view_of(LOCAL, sf.AlphaKAnonymity(0.4, 1, "disease")), "one half, one third"),
        (view_of(LOCAL, sf.EntropyLDiversity(2, "disease")), "promises EntropyLDiversity"),
        (view_of(LOCAL, sf.TCloseness(0.2, "disease")), "promises TCloseness"),
        (view_of(LOCAL, HALF_SICK, sf.TCloseness(0.2, "disease")), "several guarantees"),
        (view_of(LOCAL, HALF_SICK, unit="patient"), "different units"),
    ],
)
def test_an_algorithm_that_the_attack_does_not_model_is_refused_with_the_reason(view: View, why: str) -> None:
    with pytest.raises(Unsupported, match=why) as refusal:
        Minimality().run(view, pa.table({"age": [1]}))
    assert "HIV" not in str(refusal.value)


def test_a_third_is_a_third_however_it_is_written() -> None:
    for alpha in (1 / 3, 0.3333333333333333, 0.333333333333333):
        assert published_algorithm(view_of(LOCAL, sf.AlphaKAnonymity(alpha, 1, "disease")), None)[0].l == 3


def test_suppressed_people_are_missed_and_counted() -> None:
    table = pa.table({"age": [1] * 10 + [8], "town": ["a"] * 10 + ["c"], "disease": ["HIV", "flu"] * 5 + ["flu"]})
    release = sf.protect(sf.read(table, SCHEMA), [sf.KAnonymity(3), HALF_SICK], sf.Lattice(suppression=0.3))
    assert release.data.num_rows == 10
    with pytest.raises(InputError, match="1 people of the register are in no released class"):
        Minimality().run(release.view(), table)


@pytest.mark.parametrize("claims", [["text"], [{"guarantee": "KAnonymity"}], [{"parameters": 3}]])
def test_claims_that_are_none_are_refused(claims: object) -> None:
    view = View(None, None, {"method": {"name": "Lattice", "time_limit": None}, "claims": claims})
    with pytest.raises(Unsupported, match="cannot be read"):
        published_algorithm(view, None)
