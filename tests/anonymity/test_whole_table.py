"""Promises about all records together, and by a model: kept, measured by a second computation, never called proven by rows."""

from __future__ import annotations

import itertools
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.binomial import fewest_unlikely, likely_at_most
from sfumato.core.errors import Infeasible, ParameterError, SfumatoError, Unsupported
from sfumato.data.class_table import encode
from sfumato.data.schema import HierarchySpec
from sfumato.data.texts.values import text_of
from sfumato.measures.guarantees.measure import measure
from sfumato.report.summary import summary_lines
from tests.conformance.problems import People, people, released_rows
from tests.examples import examples

SEARCHES = [sf.Lattice(0.4), sf.LeastLoss(0.4), sf.LocalRecoding(0.4), sf.Mondrian(), sf.TopDown(), sf.KMember()]


def tail(trials: int, chance: Fraction, least: int) -> Fraction:
    """P(Bin(trials, chance) ≥ least), exactly."""
    return sum((comb(trials, n) * chance**n * (1 - chance) ** (trials - n) for n in range(least, trials + 1)), Fraction(0))


@given(
    trials=st.integers(0, 60),
    chance=st.sampled_from([0.01, 0.1, 0.25, 0.5, 0.9, 1.0]),
    confidence=st.sampled_from([0.5, 0.9, 0.95, 0.999]),
)
def test_tails_are_those_of_exact_fractions(trials: int, chance: float, confidence: float) -> None:
    n, allowed = fewest_unlikely(trials, chance, 1 - confidence), Fraction(1 - confidence)
    exact = Fraction(chance)
    assert tail(trials, exact, n) <= allowed
    assert n == 0 or tail(trials, exact, n - 1) > allowed * (1 - Fraction(1, 10**6))
    most = likely_at_most(trials, chance, confidence)
    assert tail(trials, exact, most + 1) <= allowed and most <= trials


def test_large_tails_agree_with_another_implementation() -> None:
    from scipy.stats import binom

    for trials, chance in ((10**6, 0.01), (50_000, 0.5), (100_000, 1e-4)):
        n = fewest_unlikely(trials, chance, 0.05)
        assert binom.sf(n - 1, trials, chance) <= 0.05 < binom.sf(n - 2, trials, chance)


@settings(max_examples=examples(30))
@given(sizes=st.lists(st.integers(1, 6), min_size=1, max_size=12), data=st.data())
def test_each_promise_is_measured_as_its_definition_says_and_merging_keeps_it(sizes: list[int], data: st.DataObject) -> None:
    def table(groups: list[int]) -> pa.Table:
        return pa.table({"q": [str(number) for number, size in enumerate(groups) for _ in range(size)]})

    schema = sf.Schema.of(quasi=["q"], unit="record")
    risk = data.draw(st.sampled_from([0.1, 0.25, 0.5, 0.75, 1.0]))
    fraction = data.draw(st.sampled_from([0.05, 0.3, 1.0]))
    average = measure(table(sizes), schema, sf.AverageRisk(risk))
    mean_risk = sum(Fraction(1, size) for size in sizes for _ in range(size)) / sum(sizes)
    assert average.value == pytest.approx(float(mean_risk)) and average.holds == (mean_risk <= Fraction(risk))
    unique = sf.UniquenessByModel(0.2, fraction)
    alone = Counter(sizes)[1]
    most = next(n for n in range(alone + 1) if tail(alone, Fraction(fraction), n + 1) <= Fraction(1 - 0.95))
    assert measure(table(sizes), schema, unique).value == pytest.approx(most / sum(sizes))
    mapped = sf.KMapByModel(5, fraction)
    assert measure(table(sizes), schema, mapped).holds == (min(sizes) >= mapped.least_records)
    # as declared: whoever merges two classes keeps every one of these promises
    if len(sizes) > 1:
        merged = [sizes[0] + sizes[1], *sizes[2:]]
        for promise in (sf.AverageRisk(risk), unique, mapped):
            assert promise.monotone
            if measure(table(sizes), schema, promise).holds:
                assert measure(table(merged), schema, promise).holds


@pytest.mark.parametrize("search", SEARCHES, ids=repr)
@settings(max_examples=examples(15))
@given(table=people(attributes=(1, 3), kinds=("unbalanced", "intervals", "mask", "flat")), data=st.data())
def test_every_search_keeps_them_or_refuses(search: Any, table: People, data: st.DataObject) -> None:
    risk = sf.AverageRisk(data.draw(st.sampled_from([0.2, 0.4, 0.7, 1.0])))
    unique = sf.UniquenessByModel(data.draw(st.sampled_from([0.0, 0.1, 0.5])), data.draw(st.sampled_from([0.1, 0.6])))
    asked = data.draw(st.sampled_from([[risk], [unique], [risk, unique, sf.KAnonymity(2)], [sf.KMapByModel(4, 0.3), risk]]))
    try:
        outcome = search.run(table.microdata(), asked)
    except Infeasible:
        return
    rows = released_rows(table.microdata(), outcome)
    sizes = Counter(zip(*(rows.column(name).to_pylist() for name in table.schema.quasi), strict=True)).values()
    for promise in asked:
        assert not rows.num_rows or measure(rows, table.schema, promise).holds
        if isinstance(promise, sf.AverageRisk) and sizes:
            assert len(sizes) <= (promise.risk + 1e-9) * rows.num_rows


def nodes_of(table: People) -> Iterator[tuple[list[tuple[str, ...]], list[float]]]:
    """Every combination of levels: what the records show there, and what each of them loses."""
    coded = encode(table.microdata())
    trees = dict(zip(coded.quasi, coded.hierarchies, strict=True))
    weights = [table.schema.columns[name].importance for name in trees]
    for levels in itertools.product(*(range(tree.height + 1) for tree in trees.values())):
        shown, losses = [], [0.0] * table.table.num_rows
        for (name, tree), level, weight in zip(trees.items(), levels, weights, strict=True):
            rows = tree.rows()
            at = {row[0]: row[level] for row in rows}
            texts = [at[text_of(value)] for value in table.table.column(name).to_pylist()]
            below = Counter(at.values())
            for row, text in enumerate(texts):
                losses[row] += weight / sum(weights) * ((below[text] - 1) / (len(rows) - 1) if len(rows) > 1 else 0)
            shown.append(texts)
        yield list(zip(*shown, strict=True)), losses


def keep_all(promises: list[Any], sizes: list[int]) -> bool:
    """Whether released classes of these sizes keep the promises, by their definitions."""
    for promise in promises:
        if isinstance(promise, sf.KAnonymity) and any(size < promise.k for size in sizes):
            return False
        if isinstance(promise, sf.AverageRisk) and len(sizes) > (promise.risk + 1e-12) * sum(sizes):
            return False
        if isinstance(promise, sf.UniquenessByModel) and sizes:
            chance, alone = Fraction(promise.sampling_fraction), Counter(sizes)[1]
            most = next(n for n in range(alone + 1) if tail(alone, chance, n + 1) <= Fraction(1 - promise.confidence))
            if most > (promise.share + 1e-12) * sum(sizes):
                return False
    return True


AVERAGES = [
    [sf.AverageRisk(0.3)],
    [sf.AverageRisk(0.5)],
    [sf.AverageRisk(0.8)],
    [sf.UniquenessByModel(0.1, 0.3)],
    [sf.UniquenessByModel(0.25, 0.6, 0.8)],
    [sf.AverageRisk(0.6), sf.UniquenessByModel(0.2, 0.3)],
    [sf.AverageRisk(0.45), sf.KAnonymity(2)],
]


@settings(max_examples=examples(40))
@given(
    table=people(rows=(1, 12), attributes=(1, 2), kinds=("unbalanced", "intervals", "mask", "forest")),
    promises=st.sampled_from(AVERAGES),
    share=st.sampled_from([0.0, 0.3, 0.5, 1.0]),
)
def test_the_best_node_on_average_is_that_of_an_exhaustive_search(table: People, promises: list[Any], share: float) -> None:
    """Every node with every choice of classes to suppress: what is called infeasible is, and the gap is no less than what could
    be saved."""
    least, fewest = None, None
    for keys, losses in nodes_of(table):
        sizes = Counter(keys)
        lost = {key: sum(loss for loss, each in zip(losses, keys, strict=True) if each == key) for key in sizes}
        choices = []
        for count in range(len(sizes) + 1):
            for gone in itertools.combinations(sizes, count):
                suppressed, kept = sum(sizes[key] for key in gone), sizes.keys() - set(gone)
                if suppressed <= share * len(keys) + 1e-9 and keep_all(promises, [sizes[key] for key in kept]):
                    loss = (suppressed + sum(lost[key] for key in kept)) / len(keys)
                    choices.append((suppressed, loss))
        if choices:
            least = min([loss for _, loss in choices] + ([least] if least is not None else []))
            fewest = min([min(choices)[1]] + ([fewest] if fewest is not None else []))
    try:
        outcome = sf.Lattice(share).run(table.microdata(), promises)
    except Infeasible:
        assert least is None or any(getattr(each, "k", 1) > table.table.num_rows for each in promises)
        return
    assert least is not None and outcome.details["loss"] == pytest.approx(fewest, abs=1e-12)
    assert outcome.details["loss"] - outcome.details["gap"] <= least + 1e-12
    assert not outcome.details["optimal"] or outcome.details["loss"] == pytest.approx(least, abs=1e-12)


def test_only_as_many_classes_of_a_size_go_as_it_takes() -> None:
    table = pa.table({"town": ["big"] * 8 + [f"t{i}" for i in range(10)]})
    columns = {"town": sf.Column(role="quasi", greatest_level=0)}
    data = sf.read(table, sf.Schema(dataset="people", unit="record", columns=columns))
    outcome = sf.Lattice(0.3).run(data, [sf.AverageRisk(0.5)])
    assert outcome.details["optimal"] and outcome.details["loss"] == pytest.approx(4 / 18)
    outcome = sf.Lattice(0.4).run(data, [sf.UniquenessByModel(0.3, 0.5)])
    assert outcome.details["optimal"] and outcome.details["loss"] == pytest.approx(7 / 18)
    with pytest.raises(Infeasible, match="7 of 18 records would have to be suppressed there at the least"):
        sf.Lattice(0.3).run(data, [sf.UniquenessByModel(0.3, 0.5)])
    with pytest.raises(Infeasible, match="every class was asked to have 2 records, which is enough and not always needed"):
        sf.LeastLoss(0.3).run(data, [sf.AverageRisk(0.5)])


@pytest.mark.parametrize("wide", [False, True])
def test_which_equal_classes_go_does_not_depend_on_the_order_of_rows(wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if wide:
        monkeypatch.setattr("sfumato.anonymity.search.node_tables.fits", lambda table: False)
    rows = [("big", "x")] * 8 + [(f"t{i}", "xyz"[i % 3]) for i in range(10)]
    released = set()
    for step in (1, 5, 7):  # coprime to 18: every row once
        shuffled = [rows[i * step % 18] for i in range(18)]
        table = pa.table({"town": [row[0] for row in shuffled], "kind": [row[1] for row in shuffled]})
        columns = {name: sf.Column(role="quasi", greatest_level=0) for name in ("town", "kind")}
        data = sf.read(table, sf.Schema(dataset="people", unit="record", columns=columns))
        kept = released_rows(data, sf.Lattice(0.3).run(data, [sf.AverageRisk(0.5)]))
        released.add(tuple(sorted(zip(kept["town"].to_pylist(), kept["kind"].to_pylist(), strict=True))))
    assert len(released) == 1 and len(next(iter(released))) == 14


def test_an_objective_leaves_the_choice_of_classes_unproven() -> None:
    table = pa.table({"town": ["big"] * 8 + [f"t{i}" for i in range(10)]})
    data = sf.read(table, sf.Schema(dataset="people", unit="record", columns={"town": sf.Column(role="quasi")}))
    outcome = sf.Lattice(0.3, prefer_generalising=0.4).run(data, [sf.AverageRisk(0.5)])
    assert not outcome.details["optimal"] and "gap" not in outcome.details
    assert sf.Lattice(0.0, prefer_generalising=0.4).run(data, [sf.AverageRisk(0.5)]).details["optimal"]


def towns() -> sf.Microdata:
    tree = HierarchySpec(tree={"north": ["a", "b"], "south": ["c", "d"]})
    table = pa.table({"town": ["a"] * 10 + ["b"] * 8 + ["c"] + ["d"] * 2})
    return sf.read(table, sf.Schema(dataset="people", unit="record", columns={"town": sf.Column(role="quasi", hierarchy=tree)}))


def test_an_average_allows_small_classes_that_k_anonymity_does_not() -> None:
    by_average = sf.Lattice().run(towns(), [sf.AverageRisk(0.2)])
    assert by_average.details["levels"] == {"town": 0} and by_average.result.class_sizes().min() == 1
    assert sf.Lattice().run(towns(), [sf.KAnonymity(5)]).details["levels"] == {"town": 2}
    with pytest.raises(Infeasible, match="AverageRisk fails even where everything is generalised"):
        sf.Lattice().run(towns(), [sf.AverageRisk(0.01)])


def test_a_claim_by_a_model_names_model_fraction_and_confidence_and_is_never_called_kept(tmp_path: Path) -> None:
    promises = [sf.KMapByModel(20, 0.1), sf.UniquenessByModel(0.05, 0.1, 0.99)]
    release = sf.protect(towns(), promises, sf.Lattice(0.2))
    for claim in release.certificate.claims:
        assert claim.evidence == "output+model"
        assert "by a" in claim.promised and "model" in claim.promised and "declared chance 0.1" in claim.promised
    assert (
        "0.99 confidence" in release.certificate.claims[1].promised and "at most 0.05," in release.certificate.claims[0].promised
    )
    release.save(tmp_path / "out")
    card = (tmp_path / "out" / "public" / "card.html").read_text()
    assert card.count("rests on its maker") >= 2 and "Promises by a model rest on the model" in card
    assert [line[:10] for line in summary_lines(release) if "model" in line] == ["by model  "] * 2
    verification = sf.verify(tmp_path / "out")
    assert verification.verdict == "rests on its maker" and verification.accepted and not verification.holds
    assert len(verification.not_checked) == 2


def exceeded(sizes: Callable[[np.random.Generator], Any], fraction: float, draws: int) -> int:
    """In how many draws more records are unique in the population than the bound of the model says; `sizes` makes the groups of
    a population, whose people are drawn independently."""
    rng, promise, above = np.random.default_rng(20_061), sf.UniquenessByModel(0.05, fraction, 0.95), 0
    for _ in range(draws):
        groups = sizes(rng)
        drawn = rng.binomial(groups, fraction)
        bound = promise.measured_of(int((drawn == 1).sum()), int(drawn.sum()))
        above += int(((drawn == 1) & (groups == 1)).sum()) / drawn.sum() > bound + 1e-12
    return above


@pytest.mark.slow
def test_the_bound_on_uniques_is_as_sure_as_it_says_where_the_model_holds() -> None:
    """Groups of the logarithmic series, for which the model holds but for the cut at the top. More than 155 of 2,000 draws above
    a bound of 95 % have a chance below 10⁻⁶; fewer than 155 above one of 90 % have one below 10⁻³."""
    assert exceeded(lambda rng: rng.logseries(1 - 1e-4, 1_500), 0.1, 2_000) <= 155
    assert exceeded(lambda rng: rng.logseries(1 - 1e-4, 1_500), 0.4, 2_000) <= 155


def test_the_claim_on_uniques_names_the_model_that_rare_combinations_break() -> None:
    """Five independent columns: drawing is as declared, the model is not, and the bound is exceeded every time."""

    def rare(rng: np.random.Generator) -> Any:
        columns = [rng.choice(m, 20_000, p=np.arange(m, 0, -1) ** 2 / sum(np.arange(1, m + 1) ** 2)) for m in (12, 10, 8, 6, 4)]
        return np.unique(np.ravel_multi_index(columns, (12, 10, 8, 6, 4)), return_counts=True)[1]

    assert exceeded(rare, 0.05, 10) == 10
    claim = sf.UniquenessByModel(0.05, 0.05).claim()
    assert "if everybody of the population is in the table independently with the declared chance 0.05 and if the people" in claim
    assert "negative binomial given its records, as the model supposes" in claim
    assert claim.endswith("it understates where many combinations of values are rare in the population")


@pytest.mark.parametrize(("k", "fraction"), [(20, 0.1), (5, 0.5), (50, 0.02)])
def test_small_groups_appear_no_more_often_than_a_k_map_by_model_says(k: int, fraction: float) -> None:
    """Of 20,000 groups per size more than 5 % plus six deviations have a chance below 10⁻⁸."""
    rng, least = np.random.default_rng(20_061), sf.KMapByModel(k, fraction).least_records
    for people_ in range(1, k):
        assert (rng.binomial(people_, fraction, 20_000) >= least).mean() <= 0.05 + 6 * (0.05 * 0.95 / 20_000) ** 0.5


def test_a_certificate_that_names_the_drawing_alone_is_verified_with_the_whole_condition_beside(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as earlier:
        earlier.setattr(sf.UniquenessByModel, "claim", lambda promise: promise.former_claims()[0])
        sf.protect(towns(), [sf.UniquenessByModel(0.05, 0.1), sf.KAnonymity(2)], sf.Lattice(0.2)).save(tmp_path / "out")
    checked = sf.verify(tmp_path / "out")
    assert checked.verdict == "keeps what could be checked", checked.explain()
    assert "as the model supposes" in checked.explain()


def test_rows_prove_an_average_risk_and_a_model_beside_it_stays_unproven(tmp_path: Path) -> None:
    for promises, verdict in (
        ([sf.AverageRisk(0.3)], "keeps"),
        ([sf.AverageRisk(0.3), sf.KMapByModel(20, 0.1)], "keeps what could be checked"),
    ):
        sf.protect(towns(), promises, sf.Lattice(0.2)).save(tmp_path / verdict)
        assert sf.verify(tmp_path / verdict).verdict == verdict


def forged(folder: Path, change: Any) -> str:
    """The verdict on a folder whose certificate was changed."""
    file = folder / "public" / "certificate.json"
    content = json.loads(file.read_text())
    for claim in content["claims"]:
        change(claim)
    file.write_text(json.dumps(content))
    return sf.verify(folder).verdict


FORGERIES = {
    "a larger k": lambda claim: claim["parameters"].update(k=500),
    "another fraction": lambda claim: claim["parameters"].update(sampling_fraction=0.001),
    "a surer model": lambda claim: claim["parameters"].update(confidence=0.999999),
    "no model": lambda claim: claim.update(evidence="output"),
    "another number": lambda claim: claim.update(measured=50),
    "other words": lambda claim: claim.update(promised="every class stands for at least 20 people"),
    "a smaller risk": lambda claim: claim["parameters"].update(risk=0.0001),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release by a model and one with an average risk."""
    place = tmp_path_factory.mktemp("honest")
    for name, promise in (("model", sf.KMapByModel(20, 0.1)), ("average", sf.AverageRisk(0.3))):
        sf.protect(towns(), promise, sf.Lattice(0.2)).save(place / name)
        assert sf.verify(place / name).accepted
    return place


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_thresholds_and_words_are_refused(name: str, folders: Path, tmp_path: Path) -> None:
    shutil.copytree(folders / ("average" if name == "a smaller risk" else "model"), tmp_path / "out")
    assert forged(tmp_path / "out", FORGERIES[name]) == "does not keep"


def test_a_check_says_that_rows_cannot_confirm_a_model() -> None:
    table = pa.table({"q": ["a"] * 5 + ["b"] * 6})
    schema = sf.Schema.of(quasi=["q"], unit="record")
    checked = sf.check(table, schema, [sf.KMapByModel(20, 0.1), sf.AverageRisk(0.2)])
    assert checked.unjudged == ("KMapByModel",) and checked.broken == ()
    assert "rows, which cannot confirm it" in checked.explain() and "AverageRisk holds" in checked.explain()
    assert [entry["holds"] for entry in checked.to_mapping()["guarantees"]] == [None, True]
    broken = sf.check(table, schema, [sf.KMapByModel(80, 0.1)])
    assert broken.broken == ("KMapByModel",) and broken.to_mapping()["guarantees"][0]["holds"] is False


def test_people_with_several_records_are_refused() -> None:
    table = pa.table({"town": ["a"] * 6, "person": ["p", "p", "q", "q", "r", "r"]})
    columns = {"town": sf.Column(role="quasi"), "person": sf.Column(role="unit")}
    data = sf.read(table, sf.Schema(dataset="people", columns=columns))
    for promise in (sf.AverageRisk(0.5), sf.UniquenessByModel(0.1, 0.1), sf.KMapByModel(3, 0.1)):
        with pytest.raises(ParameterError, match="supposes that each record is another person"):
            sf.protect(data, [promise, sf.KAnonymity(2)])
        with pytest.raises(Unsupported, match="supposes that each record is another person"):
            sf.Lattice().run(data, [promise])


def test_parameters_have_ranges() -> None:
    for wrong in (lambda: sf.AverageRisk(0), lambda: sf.KMapByModel(5, 0), lambda: sf.UniquenessByModel(0.1, 0.1, 1.0)):
        with pytest.raises(SfumatoError):
            wrong()
