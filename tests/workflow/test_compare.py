"""Comparing masks: the same numbers however they are computed, a front that is one, reasons that are true."""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core import registry
from sfumato.core.errors import Cancelled, InputError, ParameterError, SfumatoError
from sfumato.data.schema import Column, Schema
from sfumato.masking.base import Change, Kept, Mask
from sfumato.report.comparison_words import _uncertainty
from sfumato.workflow import jobs
from sfumato.workflow.comparing import measuring
from sfumato.workflow.comparing.grid import expanded, label_of, method_called, method_of, typed
from tests.workflow.test_mask import SCHEMA, table

USUAL_RISK = registry.make("measure", {"name": "disclosure_risk", "linkage": "largest"})
METHODS = ["Mdav(k=[3, 10])", "RankSwapping, p=[2, 20]", sf.AdditiveNoise(0.1), {"name": "MultiplicativeNoise", "alpha": 10}]


@pytest.fixture(scope="module")
def people() -> sf.Microdata:
    return sf.read(table(200), SCHEMA)


@pytest.fixture(scope="module")
def found(people: sf.Microdata) -> Iterator[Any]:
    yield sf.compare(people, METHODS, runs=1, cache=False, workers=1)


def test_lists_are_tried_one_by_one_and_lists_by_nature_are_not() -> None:
    masks = expanded([*METHODS, {"name": "Mdav", "k": [3, 4], "columns": ["height", "wage"]}])
    labels = [label_of(mask) for mask in masks]
    assert labels[:2] == ["Mdav(k=3)", "Mdav(k=10)"] and len(labels) == 8
    assert masks[-1].columns == ("height", "wage")


def test_combined_masks_are_named_by_their_parts() -> None:
    both = sf.Combined(masks=(sf.Mdav(3, columns=("height",)), sf.AdditiveNoise(0.1, columns=("wage",))))
    assert label_of(both) == 'Mdav(k=3, columns=["height"]) + AdditiveNoise(ratio=0.1, columns=["wage"])'


def test_faults_of_all_methods_are_told_at_once() -> None:
    with pytest.raises(ParameterError) as refusal:
        expanded(["Mdaw(k=3)", "Mdav(k=0)", "Mdav(kk=3)", "Lattice", 5])
    assert [f"method {i}:" in str(refusal.value) for i in range(1, 6)] == [True] * 5


def test_every_point_is_what_the_measures_say(people: sf.Microdata, found: Any) -> None:
    assert [point.label for point in found.points][:2] == ["Mdav(k=3)", "Mdav(k=10)"]

    masked = sf.Mdav(3).apply(people, seed="compare/0").result
    point = found.points[0]
    assert point.risk == pytest.approx(USUAL_RISK.score(people, masked).value)
    assert point.loss == pytest.approx(registry.make("measure", "overall_loss").score(people, masked).value)
    score = USUAL_RISK.score(people, masked)
    assert (point.floor, point.gain) == pytest.approx((score.floor, score.gain))


def test_the_original_loses_nothing_and_is_found(found: Any) -> None:
    assert found.original.loss == 0.0 and found.original.risk > 0.9


def test_the_front_is_what_nobody_betters(found: Any) -> None:
    for point in found.measured:
        bettered = any(
            other.gain <= point.gain and other.loss <= point.loss and (other.gain, other.loss) != (point.gain, point.loss)
            for other in found.measured
        )
        assert (point in found.front) == (not bettered)
    assert found.recommended.balance == min(point.balance for point in found.front)


@pytest.mark.slow
def test_processes_and_this_process_find_the_same(people: sf.Microdata, found: Any) -> None:
    apart = sf.compare(people, METHODS, runs=1, cache=False, workers=2)
    assert [(point.risk, point.loss) for point in apart.points] == [(point.risk, point.loss) for point in found.points]


def test_what_was_measured_is_not_measured_again(people: sf.Microdata, found: Any, tmp_path: Path, monkeypatch: Any) -> None:
    seen: list[str] = []
    real = measuring.evaluate_each

    def counted(data: Any, method: Any, seeds: Any, measures: Any) -> Any:
        seen.append(label_of(method))
        if len(seen) == 4:
            raise Cancelled("stopped")
        return real(data, method, seeds, measures)

    monkeypatch.setattr(measuring, "evaluate_each", counted)
    with pytest.raises(Cancelled):
        sf.compare(people, METHODS, runs=1, cache=tmp_path, workers=1)
    assert len(list(tmp_path.glob("*.json"))) == 3
    again = sf.compare(people, METHODS, runs=1, cache=tmp_path, workers=1)
    assert len(seen) == 4 + 3
    assert [(point.risk, point.loss) for point in again.points] == [(point.risk, point.loss) for point in found.points]
    sf.compare(people, METHODS, runs=1, cache=tmp_path, workers=1)
    assert len(seen) == 7
    sf.compare(sf.read(table(199), SCHEMA), ["Mdav(k=3)"], runs=1, cache=tmp_path, workers=1)
    assert len(seen) == 8  # other data


def test_the_cache_holds_scores_and_no_record(people: sf.Microdata, tmp_path: Path) -> None:
    sf.compare(people, ["Mdav(k=3)", "AdditiveNoise(ratio=0.1)"], runs=1, cache=tmp_path, workers=1)
    for file in tmp_path.glob("*.json"):
        content = file.read_text()
        assert set(json.loads(content)) >= {"risk", "loss"}
        assert "person" not in content
    first, second = sorted(tmp_path.glob("*.json"))
    first.write_text("damaged")
    second.write_text('{"risk": 0.0}')
    assert len(sf.compare(people, ["Mdav(k=3)", "AdditiveNoise(ratio=0.1)"], runs=1, cache=tmp_path, workers=1).measured) == 2


def test_texts_and_hierarchy_files_are_part_of_what_is_remembered(tmp_path: Path) -> None:
    from sfumato.workflow.comparing.memory import Memory

    memory = Memory(tmp_path / "kept")
    (tmp_path / "town.csv").write_text("a,x\nb,x\n")
    described = {"columns": {"town": {"role": "quasi", "type": "string", "hierarchy": "town.csv"}}}
    schema = Schema.parse(described, folder=tmp_path)
    first = memory.digest(sf.read(pa.table({"town": ["a", "b"] * 5}), schema))
    assert first == memory.digest(sf.read(pa.table({"town": ["a", "b"] * 5}), schema))
    assert first != memory.digest(sf.read(pa.table({"town": ["q", "z"] * 5}), schema))
    (tmp_path / "town.csv").write_text("a,x\nb,y\n")
    assert first != memory.digest(sf.read(pa.table({"town": ["a", "b"] * 5}), schema))


def test_a_cache_without_a_key_of_its_own_is_refused(people: sf.Microdata, tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"")
    with pytest.raises(InputError, match="not the key"):
        sf.compare(people, ["Mdav(k=3)"], cache=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot keep results"):
        sf.compare(people, ["Mdav(k=3)"], cache=tmp_path / "file")


@pytest.mark.slow
def test_parameters_that_are_mappings_can_be_compared(people: sf.Microdata, tmp_path: Path) -> None:
    masks = [sf.Rounding({"height": 5, "weight": 10, "wage": 1000}), sf.Rounding(20), sf.Mdav(3)]
    assert len(sf.compare(people, masks, cache=tmp_path, workers=2).measured) == 3


def test_risks_of_different_measures_are_not_weighed_against_each_other(people: sf.Microdata) -> None:
    found = sf.compare(people, ["Mdav(k=3)", "AdditiveNoise(ratio=0.1)", "GaussianCopula()"], cache=False, workers=1)
    synthetic = found.points[2]
    assert synthetic.risk_measure == "nearest_record" and synthetic not in found.front
    assert found.recommended is not synthetic and "cannot be compared" in " ".join(found.reasons)
    alone = sf.compare(people, ["GaussianCopula()"], cache=False, workers=1)
    assert alone.recommended is alone.points[0]


def test_a_further_measure_that_does_not_fit_is_left_out(people: sf.Microdata) -> None:
    found = sf.compare(people, ["Mdav(k=3)", "GaussianCopula()"], also=["distance_linkage"], cache=False, workers=1)
    assert ["distance_linkage" in point.scores for point in found.points] == [True, False]


def test_equal_points_are_both_on_the_front(people: sf.Microdata) -> None:
    found = sf.compare(people, [sf.Mdav(3), sf.Mdav(3, columns=("height", "weight", "wage"))], cache=False, workers=1)
    assert len(found.front) == 2


def test_a_method_that_fits_no_column_is_refused_and_the_others_go_on(people: sf.Microdata) -> None:
    found = sf.compare(people, ["Pram(stay=0.8)", "Mdav(k=5)", "Mdav(k=500)"], cache=False, workers=1)
    refused = {point.label: point.refused for point in found.points if point.refused}
    assert set(refused) == {"Pram(stay=0.8)", "Mdav(k=500)"}
    assert found.recommended.label == "Mdav(k=5)"
    assert "refused" in "\n".join(found.lines())


def test_columns_a_method_cannot_change_are_named_and_still_used_against_it() -> None:
    rows = table(200).append_column("town", pa.array(["a", "b", "c", "d"] * 50))
    schema = SCHEMA.replace(columns={**SCHEMA.columns, "town": Column(role="quasi", type="string")})
    found = sf.compare(sf.read(rows, schema), ["AdditiveNoise(ratio=0.5)", "Mdav(k=5)"], cache=False, workers=1)
    assert found.points[0].left == ("town",) and found.points[1].left == ()
    assert "leaves 'town'" in "\n".join(found.lines())


def test_limits_steer_the_recommendation(people: sf.Microdata, found: Any) -> None:
    strict = dataclasses.replace(found, most_risk=found.front[0].gain)
    assert strict.recommended is found.front[0]
    none = dataclasses.replace(found, most_risk=0.0, most_loss=0.0)
    assert none.recommended is None and "None of them" in " ".join(none.reasons)


def test_the_map_is_one_page_that_fetches_nothing(found: Any, tmp_path: Path) -> None:
    page = found.save_map(tmp_path / "map.html").read_text()
    assert (
        "default-src &#x27;none&#x27;" in page
        and "<script" not in page
        and "http://" not in page.replace("http://www.w3.org", "")
    )
    for point in found.points:
        assert page.count(point.label) >= 2  # in the figure's tooltip and in the table
    svg = found.save_map(tmp_path / "map.svg").read_text()
    titles = [node.text or "" for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("title")]
    for point in found.points:
        assert any(text.startswith(f"{point.label}: risk") for text in titles)
    with pytest.raises(ParameterError, match=r"\.html or \.svg"):
        found.save_map(tmp_path / "map.pdf")


def test_runs_are_averaged(people: sf.Microdata) -> None:
    found = sf.compare(people, [sf.AdditiveNoise(0.5)], runs=3, cache=False, workers=1)
    [point] = found.points
    assert point.runs == 3 and point.spread[0] > 0
    single = [sf.compare(people, [sf.AdditiveNoise(0.5)], runs=1, cache=False, workers=1).points[0].risk]
    assert point.risk != single[0]


@pytest.mark.slow
def test_a_mask_of_ones_own_is_compared_too(people: sf.Microdata) -> None:
    @dataclasses.dataclass(frozen=True)
    class Flat(Mask):
        def change(self, records: Any, draws: Any, context: Any) -> Change:
            return Change({column.name: np.full(records.size, column.values.mean()) for column in records.numbers})

        def keeps(self) -> tuple[Kept, ...]:
            return (Kept("mean", exactly=True),)

    found = sf.compare(people, [Flat(), sf.Mdav(3), sf.Mdav(5), sf.Mdav(7)], cache=False, workers=2)
    assert [point.label for point in found.measured] == ["Flat()", "Mdav(k=3)", "Mdav(k=5)", "Mdav(k=7)"]
    assert found.points[0].risk < found.points[1].risk


def test_nothing_is_said_of_new_draws_where_a_method_draws_nothing(people: sf.Microdata) -> None:
    found = sf.compare(people, ["Mdav(k=3)"], cache=False, workers=1)
    draws = ((0.3, 0.2), (0.4, 0.1), (0.35, 0.15))
    point = dataclasses.replace(found.points[0], draws=draws, runs=3)
    drawn, read = (_uncertainty(found, dataclasses.replace(point, drawn=drawn))[0] for drawn in (True, False))
    assert drawn.startswith("A new draw has a gain within ±") and drawn.endswith("by 3 draws.")
    assert "new draw" not in read and read.endswith("by 3 measurements.")


def test_requests_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InputError, match="quasi"):
        sf.compare(table(50), ["Mdav(k=3)"], cache=False, workers=1)
    with pytest.raises(InputError, match="no records"):
        sf.compare(sf.read(table(0), SCHEMA), ["Mdav(k=3)"], cache=False, workers=1)
    with pytest.raises(ParameterError, match="runs"):
        sf.compare(sf.read(table(50), SCHEMA), ["Mdav(k=3)"], runs=0, cache=False, workers=1)
    with pytest.raises(ParameterError, match="does not compare records with those.*protect with risk="):
        sf.compare(sf.read(table(50), SCHEMA), ["Mdav(k=3)"], risk="prosecutor_risk", cache=False, workers=1)


def test_a_worker_that_dies_is_an_error_and_not_a_hang(people: sf.Microdata, monkeypatch: Any) -> None:
    monkeypatch.setattr(jobs.sys, "executable", "/bin/false")
    with pytest.raises(SfumatoError, match="ended too early"):
        sf.compare(people, METHODS, cache=False, workers=2)


def test_the_usual_methods_fit_the_columns() -> None:
    words = Schema(dataset="w", columns={"town": Column(role="quasi", type="string"), "x": Column(role="plain")})
    rows = pa.table({"town": ["a", "b", "c", "d"] * 30, "x": list(range(120))})
    found = sf.compare(sf.read(rows, words), cache=False, workers=1)
    assert {str(point.method["name"]) for point in found.measured} == {"Mdav", "Pram", "Recoded"}


def test_guarantees_and_a_search_are_written_in_words() -> None:
    methods = expanded(
        [
            "KAnonymity(k=[3, 5]) by Mondrian",
            "KAnonymity(k=5) + DistinctLDiversity(l=[2, 3], attribute='by + by') by Lattice(suppression=[0.0, 0.05])",
            "KAnonymity, k=7",
            sf.Recoded(sf.KAnonymity(9), sf.CellSuppression()),
        ]
    )
    assert [label_of(method) for method in methods] == [
        "KAnonymity(k=3) by Mondrian",
        "KAnonymity(k=5) by Mondrian",
        'KAnonymity(k=5) + DistinctLDiversity(l=2, attribute="by + by") by Lattice',
        'KAnonymity(k=5) + DistinctLDiversity(l=2, attribute="by + by") by Lattice(suppression=0.05)',
        'KAnonymity(k=5) + DistinctLDiversity(l=3, attribute="by + by") by Lattice',
        'KAnonymity(k=5) + DistinctLDiversity(l=3, attribute="by + by") by Lattice(suppression=0.05)',
        "KAnonymity(k=7) by LeastLoss",
        "KAnonymity(k=9) by CellSuppression",
    ]
    assert [method_of(json.loads(json.dumps(method.described()))) for method in methods] == methods


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("Mondrian", "say which, for instance 'KAnonymity\\(k=5\\) by Mondrian'"),
        ("KAnonymity(k=5) by Mdav(k=3)", "search must be a search for guarantees"),
        ("KAnonymity(k=5) by Mondrian by Lattice", "one 'by'"),
        ("Mdav(k=3) by Mondrian", "unknown guarantee"),
        ("KAnonymity(k=0) by Mondrian", "k"),
        ({"name": "Recoded", "guarantees": {"name": "KAnonymity", "k": 3}, "method": "x"}, "no parameter 'method'"),
        ({"name": "Recoded", "guarantees": [3]}, "describes no guarantee"),
        ({"name": "Recoded"}, "guarantees must be one guarantee or several"),
    ],
)
def test_words_that_name_no_recoding_are_refused(given: Any, why: str) -> None:
    with pytest.raises(ParameterError, match=why):
        expanded([given])


@pytest.mark.slow
def test_a_recoding_is_compared_in_processes_as_here_and_cannot_win_by_leaving_people_out(people: sf.Microdata) -> None:
    methods = ["KAnonymity(k=[3, 20]) by Mondrian", "KAnonymity(k=5000) by Mondrian", "Mdav(k=3)"]
    here = sf.compare(people, methods, cache=False, workers=1)
    apart = sf.compare(people, methods, cache=False, workers=2)
    assert [(p.label, p.risk, p.loss, p.refused) for p in here.points if not p.refused] == [
        (p.label, p.risk, p.loss, p.refused) for p in apart.points if not p.refused
    ]
    weak, strong, impossible, _ = here.points
    assert strong.risk < weak.risk and strong.loss > weak.loss
    assert impossible.refused is not None and "5000" in impossible.refused
    alone = sf.compare(people, ["KAnonymity(k=20) by Mondrian"], cache=False, workers=1)
    assert any("keeps the guarantee in its name" in reason for reason in alone.reasons)


@pytest.mark.parametrize(
    "method",
    [
        "KAnonymity(k=3) by Mondrian",
        "KAnonymity(k=3) + DistinctLDiversity(l=2, attribute='job') by Lattice(suppression=0.05)",
        sf.Mdav(4, columns=("height", "wage")),
        sf.Combined(masks=(sf.Mdav(3, columns=("height",)), sf.Pram(stay=0.8, columns=("sex",)))),
        {"name": "Pram", "stay": 0.8, "columns": ["sex"]},
    ],
)
def test_what_is_told_to_type_is_the_method(method: Any) -> None:
    """On the command line, of which the words are read as `protect` reads them, and in Python."""
    (one,) = expanded([method])
    options, arguments = typed(one)
    words = shlex.split(options)
    assert words[::2] == ["--method"]
    method_told, promised_told = method_called(words[1])
    given = eval(f"(lambda *promised, method=None: [*promised, method])({arguments})", {"sf": sf})
    if isinstance(one, sf.Recoded):
        assert (promised_told, method_told) == (one.asked, one.search)
        assert (tuple(given[0]), given[1]) == (one.asked, one.search)
    else:
        assert promised_told == () and method_told == one == given[-1]


def test_searches_that_did_not_prove_their_optimum_are_named_with_their_gap(people: sf.Microdata) -> None:
    searches = (sf.Lattice(0.1), sf.Lattice(0.1, time_limit=1e-9), sf.LocalRecoding())
    methods = [sf.Recoded(sf.KAnonymity(3), search) for search in searches]
    comparison = sf.compare(people, methods, risk="distance_linkage", loss="moments", runs=1, cache=False, workers=1)
    by_gap, without = comparison.unproven
    assert "time_limit" in by_gap and "not proven: other levels might lose up to" in by_gap
    assert "LocalRecoding gives no bound" in without
    assert [point["unproven"] is None for point in comparison.to_mapping()["points"]].count(False) == 2
    page = comparison.page()
    assert page.count("ptimum not proven") == 2 and "ptimum not proven: other levels might lose up to" in page
    assert "ptimum not proven: LocalRecoding gives no bound" in page
