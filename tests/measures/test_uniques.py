"""Special uniques, individual and household risk, and the logic between kinds of disclosure."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

import sfumato as sf
from sfumato.core.errors import InputError, MissingColumn, ParameterError
from sfumato.data.microdata import ReleasedTable
from sfumato.lessons.disclosure_logic import disclosures
from sfumato.measures.risk.uniques.household_risk import HouseholdRisk
from sfumato.measures.risk.uniques.individual_risk import IndividualRisk
from sfumato.measures.risk.uniques.population_uniqueness import individual_risk
from sfumato.measures.risk.uniques.suda import SpecialUniques, intrusion_risks, minimal_uniques
from sfumato.measures.risk.uniques.uniqueness import class_sizes, unique_share

ROWS = st.lists(st.tuples(*[st.integers(0, 2)] * 4), min_size=1, max_size=25)
NAMES = ("a", "b", "c", "d")


def as_table(rows: list[tuple[int, ...]]) -> pa.Table:
    return pa.table({name: [str(row[i]) for row in rows] for i, name in enumerate(NAMES)})


def minimal_by_hand(rows: list[tuple[int, ...]], most: int) -> list[set[tuple[int, ...]]]:
    """Every set of columns, every record; minimal when no smaller part singles the record out."""
    found: list[set[tuple[int, ...]]] = [set() for _ in rows]
    for size in range(1, most + 1):
        for chosen in combinations(range(4), size):
            shown = [tuple(row[c] for c in chosen) for row in rows]
            for i, key in enumerate(shown):
                if shown.count(key) == 1 and not any(set(part) < set(chosen) for part in found[i]):
                    found[i].add(chosen)
    return found


@given(ROWS, st.integers(1, 4))
def test_minimal_uniques_equal_looking_at_every_set(rows: list[tuple[int, ...]], most: int) -> None:
    expected = minimal_by_hand(rows, most)
    found = minimal_uniques(as_table(rows), NAMES, most)
    for i, sets in enumerate(expected):
        assert found.counts[i].tolist() == [sum(len(s) == size for s in sets) for size in range(1, most + 1)]
        score = sum(math.prod(max(4 - k, 1) for k in range(len(s), most + 1)) for s in sets)
        assert found.scores[i] == score
    total = sum(found.scores)
    for c in range(4):
        part = sum(math.prod(max(4 - k, 1) for k in range(len(s), most + 1)) for sets in expected for s in sets if c in s)
        assert found.shares[c] == pytest.approx(part / total if total else 0.0)


def test_one_column_that_singles_out_weighs_more_than_two() -> None:
    rows = pa.table({"a": list("xyyyy"), "b": list("ppqqp"), "c": list("rrrsr")})
    found = minimal_uniques(rows, ("a", "b", "c"), 2)
    assert found.counts.tolist() == [[1, 0], [0, 0], [0, 1], [1, 0], [0, 0]] or found.scores[0] > found.scores[2]
    score = SpecialUniques(max_size=2).score(None, ReleasedTable(rows, sf.Schema.of(quasi=["a", "b", "c"]), records=5))
    assert score.value == pytest.approx(np.mean(found.scores > 0))
    assert score.parts["score, largest"] == found.scores.max()


def test_risks_of_uniques_keep_the_mean_of_the_file() -> None:
    draw = np.random.default_rng(2)
    rows = as_table([tuple(row) for row in draw.integers(0, 5, (200, 4)).tolist()])
    found = minimal_uniques(rows, NAMES, 3)
    risks = intrusion_risks(rows, found, 0.1)
    sizes = class_sizes(rows, NAMES)
    level = 0.1 * sizes[1] / (0.1 * sizes[1] + 2 * 0.9 * sizes.get(2, 0))
    assert risks[found.special].mean() == pytest.approx(level)
    assert (risks[~found.special] == 0).all()
    ranked = np.argsort(found.scores[found.special])
    assert (np.diff(risks[found.special][ranked]) >= -1e-12).all()
    assert set(intrusion_risks(rows, found, 1.0).tolist()) <= {0.0, 1.0}
    part = SpecialUniques(sampling_fraction=0.1, columns=NAMES).score(None, ReleasedTable(rows, sf.Schema(), records=200)).parts
    assert part["risk, largest"] == pytest.approx(risks.max())


def test_refusals_of_special_uniques() -> None:
    with pytest.raises(ParameterError, match="max_size"):
        SpecialUniques(max_size=0)
    with pytest.raises(ParameterError, match="sampling_fraction"):
        SpecialUniques(sampling_fraction=2.0)
    with pytest.raises(InputError, match="no records"):
        minimal_uniques(as_table([]), NAMES)
    wide = pa.table({f"c{i}": ["1", "2"] for i in range(40)})
    with pytest.raises(ParameterError, match="too many"):
        minimal_uniques(wide, tuple(wide.column_names), 5)
    with pytest.raises(MissingColumn):
        minimal_uniques(wide, ("nowhere",))


@pytest.mark.parametrize("p", [0.9, 0.5, 0.1, 1e-3, 1e-6])
def test_individual_risk_equals_the_integral_and_the_closed_forms(p: float) -> None:
    """E[1/F | f] = ∫₀¹ G(s)/s ds with the generating function G(s) = (p s/(1 - (1 - p) s))^f; y = p s/(1 - (1 - p) s)."""
    q = 1 - p
    for f in (1, 2, 3, 10):
        integral = quad(lambda y, f=f: y ** (f - 1) * p / (p + q * y), 0, 1, points=[p], epsabs=1e-16, epsrel=1e-11, limit=500)[0]
        assert individual_risk(np.array([f]), np.array([p]))[0] == pytest.approx(integral, rel=1e-6)
    one = p / q * math.log(1 / p)
    assert individual_risk(np.array([1]), np.array([p]))[0] == pytest.approx(one, rel=1e-9)
    assert individual_risk(np.array([2]), np.array([p]))[0] == pytest.approx(p / q - (p / q) ** 2 * math.log(1 / p), rel=1e-7)


SURVEY = sf.Schema(columns={"age": sf.Column(role="quasi"), "w": sf.Column(role="weight"), "home": sf.Column(role="plain")})
SAMPLE = pa.table({"age": ["20", "20", "30", "40"], "w": [5.0, 5.0, 10.0, 1.0], "home": ["h", "i", "h", None]})


def test_individual_risk_of_a_survey() -> None:
    risk = IndividualRisk().per_record(None, ReleasedTable(SAMPLE, SURVEY, records=4))
    pair, single = 0.2, 0.1
    odds = pair / (1 - pair)
    assert risk[:2] == pytest.approx([odds - odds**2 * math.log(1 / pair)] * 2)
    assert risk[2] == pytest.approx(single / (1 - single) * math.log(1 / single))
    assert risk[3] == 1.0
    score = IndividualRisk(threshold=0.5).score(None, ReleasedTable(SAMPLE, SURVEY, records=4))
    assert score.value == pytest.approx(risk.mean())
    assert score.parts["share above 0.5"] == 0.25 and score.parts["largest"] == 1.0
    whole = IndividualRisk(sampling_fraction=1.0).per_record(None, ReleasedTable(SAMPLE, SURVEY, records=4))
    assert whole.tolist() == pytest.approx([0.5, 0.5, 1.0, 1.0])


def test_a_household_is_found_through_any_member() -> None:
    released = ReleasedTable(SAMPLE, SURVEY, records=4)
    single = IndividualRisk().per_record(None, released)
    score = HouseholdRisk("home").score(None, released)
    together = 1 - (1 - single[0]) * (1 - single[2])
    assert score.value == pytest.approx((together + single[1] + together + 1.0) / 4)
    assert score.parts["households"] == 3
    assert score.parts["expected households found"] == pytest.approx(together + single[1] + 1.0)
    assert score.value >= score.parts["individual risk, mean"]


def test_refusals_of_individual_and_household_risk() -> None:
    released = ReleasedTable(SAMPLE, SURVEY, records=4)
    with pytest.raises(MissingColumn, match="street"):
        HouseholdRisk("street").score(None, released)
    plain = ReleasedTable(SAMPLE, sf.Schema.of(quasi=["age"]), records=4)
    with pytest.raises(InputError, match="sampling_fraction"):
        IndividualRisk().score(None, plain)
    with pytest.raises(InputError, match="no released records"):
        IndividualRisk().score(None, ReleasedTable(SAMPLE.slice(0, 0), SURVEY, records=0))
    for wrong in ({"sampling_fraction": 0.0}, {"threshold": 0.0}):
        with pytest.raises(ParameterError):
            IndividualRisk(**wrong)
        with pytest.raises(ParameterError):
            HouseholdRisk("home", **wrong)
    with pytest.raises(InputError, match="released table"):
        IndividualRisk().score(None, 7)


PATIENTS = pa.table(
    {
        "name": ["ABD", "COL", "GHE", "CIO", "HYU"],
        "city": ["Barcelona", "Barcelona", "Tarragona", "Tarragona", "Tarragona"],
        "age": [30, 30, 60, 60, 58],
        "illness": ["Cancer", "Cancer", "AIDS", "AIDS", "Heart attack"],
    }
)


@pytest.mark.golden("G-RSK-03")
def test_identity_and_attribute_disclosure_on_five_patients() -> None:
    found = disclosures(PATIENTS, ["city", "age"], ["illness"])
    assert found.identity.tolist() == [False] * 4 + [True]
    assert found.attributes["illness"].all()
    four = disclosures(PATIENTS.slice(0, 4), ["city", "age"], ["illness"])
    assert four.anonymous and class_sizes(PATIENTS.slice(0, 4), ["city", "age"]) == {2: 2}
    assert not four.identity.any() and four.attribute.all()
    assert "0 of 4 records can be identified" in four.in_words() and "(4 of them without being identified)" in four.in_words()


@pytest.mark.golden("G-RSK-04")
def test_a_single_student_is_known_to_be_listed_and_sick() -> None:
    rows = [("Enfield", "Anthropology", "Yes"), ("Leeds", "Law", "No"), ("Leeds", "Law", "Yes"), ("Leeds", "Law", "No")]
    table = pa.table({"town": [r[0] for r in rows], "study": [r[1] for r in rows], "sick": [r[2] for r in rows]})
    found = disclosures(table, ["town", "study"], ["sick"])
    assert found.membership.tolist() == [True, False, False, False]
    assert found.attributes["sick"].tolist() == [True, False, False, False]
    population = pa.table({"town": ["Enfield", "Leeds", "Leeds", "Leeds"], "study": ["Anthropology"] + ["Law"] * 3})
    assert disclosures(table, ["town", "study"], ["sick"], population).membership.all()
    wider = pa.concat_tables([population, population])
    assert not disclosures(table, ["town", "study"], ["sick"], wider).membership.any()


def test_whoever_knows_all_attributes_learns_none_by_identifying() -> None:
    found = disclosures(PATIENTS.select(["city", "age"]), ["city", "age"])
    assert found.identity.tolist() == [False] * 4 + [True]
    assert found.attributes == {} and not found.attribute.any()


@given(ROWS)
def test_identity_disclosure_implies_attribute_and_membership_disclosure(rows: list[tuple[int, ...]]) -> None:
    found = disclosures(as_table(rows), ["a", "b"])
    assert (found.attribute | ~found.identity).all()
    assert (found.membership | ~found.identity).all()
    pairs = [row[:2] for row in rows]
    assert found.identity.tolist() == [pairs.count(pair) == 1 for pair in pairs]
    for i, name in enumerate(("c", "d"), start=2):
        values = [{other[i] for other in rows if other[:2] == row[:2]} for row in rows]
        assert found.attributes[name].tolist() == [len(seen) == 1 for seen in values]


def test_refusals_of_the_logic() -> None:
    with pytest.raises(ParameterError, match="at least one"):
        disclosures(PATIENTS, [])
    with pytest.raises(ParameterError, match="either known or confidential"):
        disclosures(PATIENTS, ["city"], ["city"])
    with pytest.raises(MissingColumn):
        disclosures(PATIENTS, ["street"])


@pytest.mark.golden("G-RSK-01")
def test_zip_gender_and_birth_date_single_out_most_of_a_population() -> None:
    assert unique_share({1: 216_000_000, 2: 16_000_000}) == pytest.approx(0.871, abs=5e-4)


@pytest.mark.golden("G-RSK-02")
def test_zip_gender_and_month_of_birth_single_out_few() -> None:
    share = unique_share({1: 9_100_000, 5: 47_780_000})
    assert round(100 * share, 1) == 3.7


@given(ROWS)
def test_uniqueness_equals_counting_by_hand(rows: list[tuple[int, ...]]) -> None:
    alone = sum(rows.count(row) == 1 for row in rows)
    assert unique_share(class_sizes(as_table(rows), NAMES)) == pytest.approx(alone / len(rows))
    assert unique_share({}) == 0.0
    with pytest.raises(ParameterError):
        unique_share({0: 1})


def test_the_only_record_is_unique() -> None:
    alone = sf.read(pa.table({"a": ["x"], "b": ["y"]}))
    score = SpecialUniques(columns=("a", "b")).score(alone, alone)
    assert score.value == 1.0
    assert score.parts["minimal uniques of 1"] == 2.0
    assert score.parts["minimal uniques of 2"] == 0.0
