"""Measures with parameters: by key, by a table of name and parameters, or as values; faults before the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.core import registry
from sfumato.core.errors import MissingMeasure, ParameterError, RecipeError
from sfumato.data.schema import Column
from sfumato.measures.utility.loss import Loss
from sfumato.measures.utility.query_error import QueryError, Workload
from sfumato.report.summary import summary_lines
from sfumato.workflow.recipe import Recipe
from tests.workflow.people import people, release, table
from tests.workflow.test_recipe import RECIPE, written

LEARNING = {"name": "machine_learning", "target": "disease"}


def refused(**options: Any) -> str:
    """The message of the refusal, which must come before any work."""
    phases: list[str] = []
    with pytest.raises(ParameterError) as caught:
        release(progress=lambda phase, done, total: phases.append(phase), **options)
    assert phases == []
    return str(caught.value)


def test_a_measure_is_a_key_a_table_or_a_value() -> None:
    value = QueryError(Workload(queries=20))
    made = release(utility=["loss", "discernibility", LEARNING, value], risk={"name": "prosecutor_risk", "threshold": 0.5})
    assert list(made.scores) == ["loss", "discernibility", "machine_learning", "query_error", "prosecutor_risk"]
    told = release(utility=[{"name": "query_error", "workload": {"queries": 20}}])
    assert told.scores["query_error"] == made.scores["query_error"]


def test_parameters_reach_the_measure() -> None:
    few, many = ({"name": "prosecutor_risk", "threshold": share} for share in (0.01, 0.9))
    scores = [release(risk=[asked]).owner.scores[-1] for asked in (few, many)]
    assert dict(scores[0].parts) != dict(scores[1].parts)


def test_one_measure_with_different_parameters_is_told_apart() -> None:
    made = release(utility=[LEARNING, {**LEARNING, "target": "visits"}, LEARNING])
    assert set(made.scores) == {
        "loss",
        "machine_learning(target=disease)",
        "machine_learning(target=visits)",
        "machine_learning(target=disease) 2",
    }


def test_the_exact_loss_is_kept_beside_a_weighted_one() -> None:
    plain = release().scores["loss"]
    assert dict(release(utility=["loss", {"name": "loss"}, Loss()]).scores) == {"loss": plain}
    weighted = release(utility=[Loss(weights={"age": 5.0, "zip": 1.0, "sex": 1.0})])
    assert weighted.scores["loss"] == plain and len(weighted.scores) == 2


def test_every_fault_of_a_request_is_reported_at_once_and_before_the_work() -> None:
    told = refused(
        utility=["machine_learning", "discernability", {"name": "query_error", "sanety": 2}, {"target": "age"}, 7],
        risk=["journalist_risk", "population_uniqueness"],
        attacks=["Homogenity"],
    )
    for part in (
        "8 faults",
        "parameter 'target' is missing",
        "'discernibility'",
        "'sanety'; did you mean 'sanity'",
        "a measure needs a name",
        "int is not a measure",
        "journalist_risk needs a population",
        "population_uniqueness needs sampling_fraction",
        "'Homogeneity'",
    ):
        assert part in told


def test_a_target_that_is_not_published_is_refused_before_the_work() -> None:
    assert "the column 'name', which is not published" in refused(utility=[{**LEARNING, "target": "name"}])
    assert "the column 'salary', which is not published" in refused(utility=[{**LEARNING, "target": "salary"}])


@pytest.mark.parametrize(
    "measure",
    [
        "journalist_risk",
        "population_uniqueness",
        "individual_risk",
        "log_linear_risk",
        "sampling_risk",
        {"name": "household_risk", "household": "zip"},
    ],
)
def test_a_measure_without_what_it_reckons_from_is_refused_before_the_search(measure: Any) -> None:
    key = measure if isinstance(measure, str) else measure["name"]
    assert f"{key} needs " in refused(risk=[measure])
    if key == "journalist_risk":
        return
    sampled = {"name": measure, "sampling_fraction": 0.1} if isinstance(measure, str) else {**measure, "sampling_fraction": 0.1}
    assert release(risk=[sampled]).scores[key] >= 0


def test_columns_that_are_not_published_are_refused_before_the_search() -> None:
    household = {"name": "household_risk", "household": "name", "sampling_fraction": 0.1}
    assert "household_risk is about the column 'name', which is not published" in refused(risk=[household])
    cells = {"name": "log_linear_risk", "columns": ["age", "name"], "sampling_fraction": 0.1}
    assert "log_linear_risk is about the column 'name', which is not published" in refused(risk=[cells])


def test_a_value_that_is_no_measure_is_refused() -> None:
    assert "object is not a measure" in refused(risk=[object()])
    assert "object is not an attack" in refused(attacks=[object()])


def test_risk_compares_with_the_population_of_the_run() -> None:
    made = release(population=table(3_000), risk=["journalist_risk"])
    assert 0 < made.scores["journalist_risk"] <= 0.2


def test_survey_weights_stand_in_for_a_population() -> None:
    weighted = people(visits=Column(role="weight", type="integer"))
    positive = weighted.table().set_column(4, "visits", [[2] * 600])
    made = sf.protect(positive, sf.KAnonymity(5), sf.Lattice(suppression=0.05), schema=weighted.schema, risk="journalist_risk")
    assert made.scores["journalist_risk"] <= 0.1


def test_a_recipe_names_measures_with_parameters(tmp_path: Path) -> None:
    asked = 'utility = ["loss", { name = "machine_learning", target = "disease" }]\nrisk = ["uniques"]'
    made = Recipe.load(written(tmp_path, RECIPE.replace('utility = ["loss", "discernibility"]', asked))).run()
    assert set(made.scores) == {"loss", "machine_learning", "uniques"}
    kept = Recipe.load(tmp_path / "out" / "owner" / "recipe.toml")
    assert kept.checks.utility == ("loss", LEARNING)


def test_a_recipe_without_a_needed_parameter_is_one_clear_error(tmp_path: Path) -> None:
    asked = 'utility = ["machine_learning"]\nrisk = [{ name = "prosecutor_risk", threshold = 7 }]'
    with pytest.raises(RecipeError) as caught:
        Recipe.load(written(tmp_path, RECIPE.replace('utility = ["loss", "discernibility"]', asked)))
    assert "checks.utility: MachineLearningLoss: parameter 'target' is missing" in str(caught.value)
    assert "checks.risk: ProsecutorRisk: threshold" in str(caught.value)


SUPPOSE_TRUTH = [
    "entropy",
    "distortion",
    "loss",
    "granularity",
    "detail_kept",
    "squared_error",
    "precision",
    "ambiguity",
    "range_shown",
]


def test_the_measures_that_take_shown_values_for_true_are_known() -> None:
    assert sorted(SUPPOSE_TRUTH) == [name for name in registry.names("measure") if sf.find("measure", name).supposes_truth]


@pytest.mark.parametrize("measure", SUPPOSE_TRUTH)
@pytest.mark.parametrize("also", [(), (sf.Generalisation(levels={"zip": 1}),)], ids=["changed", "changed and generalised"])
def test_a_loss_of_generalisation_is_not_reported_of_a_mask_that_changes_values(measure: str, also: tuple[sf.Mask, ...]) -> None:
    swapping = sf.RankSwapping(p=20, columns=["age"])
    method = sf.Combined(masks=(swapping, *also)) if also else swapping
    release = sf.protect(people(60), method=method, utility=measure, seed=1)
    assert measure not in release.scores
    assert f"{measure} says nothing here" in release.details["not measured"]
    assert "useful    not measured" in summary_lines(release)


def test_it_is_reported_of_a_mask_that_only_generalises() -> None:
    release = sf.protect(people(60), method=sf.Generalisation(levels={"age": 2}), utility=["loss", "detail_kept"])
    assert release.scores["loss"] > 0 and 0 < release.scores["detail_kept"] < 1


def test_a_score_that_there_is_not_says_which_there_are_and_why() -> None:
    sample = sf.read(sf.data.sample_table(60), schema=sf.data.sample_schema())
    rounded = sf.protect(sample, (), sf.Rounding(5, columns=("age",)), utility=["information_loss"], risk=(), seed=1)
    with pytest.raises(KeyError) as missing:
        rounded.scores["loss"]
    assert str(missing.value).startswith("this release has no score 'loss', only information_loss. It was not asked for")
    rounded = sf.protect(sample, (), sf.Rounding(5, columns=("age",)), utility=["loss"], risk=(), seed=1)
    with pytest.raises(MissingMeasure, match="has no score 'loss', nor any other. loss says nothing here: .* puts other values"):
        rounded.scores["loss"]
    assert rounded.scores.get("loss") is None and "loss" not in rounded.scores
