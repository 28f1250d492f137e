"""What rows show of a mask's parameters: rows that were made with them never disprove them, whatever came after."""

from __future__ import annotations

import datetime
import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import SfumatoError
from sfumato.data.schema import Column, Schema
from sfumato.masking.base import Mask
from sfumato.masking.shown_rows import ShownRows
from sfumato.workflow.publishing.columns import released_schema
from sfumato.workflow.publishing.released_form import released_form
from tests.conformance import masks, test_parameterisations
from tests.conformance.masks import NUMBERS

#: What may come after a mask: noise on one column, a rounding, fewer rows, other rows, swapped values.
LATER: dict[str, Callable[[], tuple[Mask, ...]]] = {
    "nothing": lambda: (),
    "noise": lambda: (sf.AdditiveNoise(0.1, columns=("height",)),),
    "rounded": lambda: (sf.Rounding(7.5, columns=("wage",)), sf.TopBottomCoding(top=180, columns=("height",))),
    "sampled": lambda: (sf.Sampling(0.3, columns=("region",)),),
    "resampled": lambda: (sf.Resampling("joint", columns=("region",)),),
    "swapped": lambda: (
        sf.RecordSwapping(0.5, columns=("weight", "school")),
        sf.Combined(masks=(sf.Pram(0.7, columns=("town",)),)),
    ),
}
#: The example of terms takes more people than these tests have; there are others below.
NAMES = [name for name in masks.every_mask() if name != "TermGeneralisation"]
MORE: dict[str, Callable[[], Mask]] = {
    **test_parameterisations.SETTINGS,
    **{name: lambda name=name: masks.example(name) for name in NAMES},
    **{f"mixed {name}": lambda name=name: masks.example(name, masks.mixed_columns_for(name)) for name in NAMES},
    **{
        f"{name} in strata": lambda name=name: replace(masks.example(name), strata=("region",))
        for name in (
            "Mdav",
            "VMdav",
            "Cbfs",
            "OptimalUnivariate",
            "Condensation",
            "Rounding",
            "TopBottomCoding",
            "Generalisation",
        )
    },
    "groups in strata": lambda: sf.Mdav(
        3, groups=[["height", "town"], ["wage"]], columns=["height", "town", "wage"], strata=["region"]
    ),
    "means": lambda: sf.TopBottomCoding(top=0.9, bottom=0.1, by="quantile", show="mean", columns=NUMBERS),
    "means in strata": lambda: sf.TopBottomCoding(top=175, show="mean", columns=["height"], strata=["region"]),
    "bounds between whole numbers": lambda: sf.TopBottomCoding(top=61.5, bottom=30.5, columns=["age"]),
    "real numbers": lambda: sf.Rounding(0.7, whole=False, columns=["age", "height"]),
    "hours": lambda: sf.Rounding(5 / 24, columns=["moment"]),
    "rare in strata": lambda: sf.Generalisation(fewer_than=12, columns=["town", "school"], strata=["region"]),
    "many terms": lambda: sf.TermGeneralisation(40, columns=["terms"]),
    "diverse in groups": lambda: sf.Cbfs(3, sensitive=["ill"], p=2, groups=[["height"], ["wage"]], columns=["height", "wage"]),
}


def is_shown(mask: Mask) -> bool:
    """Whether rows show anything of a mask's parameters."""
    parts = mask.masks if isinstance(mask, sf.Combined) else (mask,)
    return any(
        is_shown(part) if isinstance(part, sf.Combined) else type(part).disproved_by is not Mask.disproved_by for part in parts
    )


@cache
def some_people(missing: float) -> sf.Microdata:
    """Those of the settings, of whom some values are not known."""
    whole = test_parameterisations.people()
    table, random = whole.table(), np.random.default_rng(5)
    for name in (*NUMBERS, "age", "town", "school", "day", "moment") if missing else ():
        place, lost = table.column_names.index(name), pa.array(random.random(table.num_rows) < missing)
        table = table.set_column(place, name, pa.compute.if_else(lost, None, table.column(name).combine_chunks()))
    return sf.read(table, whole.schema)


def shown(people: sf.Microdata, mask: Mask, seed: int = 1) -> ShownRows:
    """The rows in the form in which they are published, with the schema that is."""
    masked = mask.apply(people, seed=seed).result
    table = released_form(masked.table)
    return ShownRows(table, released_schema(people.schema, table), masked.transparency)


@pytest.mark.covering
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("setting", [name for name in MORE if is_shown(MORE[name]())])
def test_rows_never_disprove_the_parameters_they_were_made_with(setting: str, missing: float) -> None:
    people = some_people(missing)
    made = 0
    for later in LATER.values():
        try:
            mask = sf.Combined(masks=(MORE[setting](), *later()))
            rows = shown(people, mask)
        except SfumatoError:  # these masks do not go together, or these people cannot be masked so
            continue
        made += 1
        assert not mask.disproved_by(rows)
    assert made > 1 or missing


@pytest.mark.parametrize("name", [*NAMES, "joint"])
def test_a_mask_says_whether_every_record_goes_out_once(name: str) -> None:
    mask = sf.Resampling("joint") if name == "joint" else masks.example(name)
    rows = mask.apply(masks.people(100), seed=1).result.rows
    assert mask.keeps_rows is (rows is not None and sorted(rows.tolist()) == list(range(100)))


def fewest(table: pa.Table, names: tuple[str, ...]) -> int:
    """By brute force: the fewest rows that share what these columns show."""
    return min(Counter(zip(*(table.column(name).to_pylist() for name in names), strict=True)).values())


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize(
    ("make", "groups"),
    [
        (lambda k: sf.Mdav(k, columns=NUMBERS), [NUMBERS]),
        (lambda k: sf.VMdav(k, columns=("height", "town")), [("height", "town")]),
        (lambda k: sf.Cbfs(k, columns=NUMBERS), [NUMBERS]),
        (lambda k: sf.OptimalUnivariate(k, columns=NUMBERS), [(name,) for name in NUMBERS]),
        (
            lambda k: sf.Mdav(k, groups=[["height"], ["wage", "town"]], columns=["height", "wage", "town"]),
            [("height",), ("wage", "town")],
        ),
        (lambda k: sf.Mdav(k, columns=NUMBERS, strata=["region"]), [(*NUMBERS, "region")]),
    ],
    ids=["Mdav", "VMdav", "Cbfs", "OptimalUnivariate", "groups", "strata"],
)
def test_a_k_is_disproved_exactly_where_fewer_rows_share_a_value(
    make: Callable[[int], Any], groups: list[tuple[str, ...]], missing: float
) -> None:
    rows = shown(some_people(missing), make(4))
    least = min(fewest(rows.table, group) for group in groups)
    assert [make(k).disproved_by(rows) for k in (2, 4, least, least + 1, 100)] == [False, False, False, True, True]
    inside = [sf.Combined(masks=(make(k), sf.Pram(0.9, columns=("school",)))) for k in (least, least + 1)]
    assert [mask.disproved_by(replace(rows, facts={})) for mask in inside] == [False, True]


def test_what_later_steps_changed_or_left_out_disproves_nothing() -> None:
    rows = shown(some_people(0.0), sf.Mdav(4, columns=NUMBERS))
    absurd = sf.Mdav(100, columns=NUMBERS)
    hiding: list[tuple[Mask, ...]] = [
        (sf.Sampling(0.5),),
        (sf.Resampling("joint"),),
        (sf.AdditiveNoise(0.1, columns=NUMBERS),),
        (sf.Combined(masks=(sf.AdditiveNoise(0.1, columns=("age",)), sf.Sampling(0.5))),),
    ]
    for later in hiding:
        assert not sf.Combined(masks=(absurd, *later)).disproved_by(rows)
    for later in itertools.combinations([sf.AdditiveNoise(0.1, columns=(name,)) for name in NUMBERS], 2):
        assert sf.Combined(masks=(absurd, *later)).disproved_by(rows)


ROWS = pa.table(
    {
        "age": pa.array([20, 25, 30, None] * 10),
        "pay": [1.5, 1.5, 3.0, 4.5] * 10,
        "day": [datetime.date(2020, 1, 1), datetime.date(2020, 1, 11)] * 20,
        "at": [datetime.datetime(2020, 1, 1, 6), datetime.datetime(2020, 1, 1, 12)] * 20,
        "town": ["a", "b", "b", "*"] * 10,
        "set": ["x|y", "x", "x", "x|z"] * 10,
        "ill": ["flu", "flu", "hiv", "none"] * 10,
        "part": ["n", "s"] * 20,
    }
)
SCHEMA = Schema(
    dataset="d",
    columns={
        **{name: Column(role="plain") for name in ROWS.column_names},
        "set": Column(type="string", items="|"),
        "ill": Column(role="sensitive"),
    },
)


@pytest.mark.parametrize(
    ("mask", "disproved"),
    [
        (sf.Rounding(5, columns=("age",)), False),
        (sf.Rounding(1000, columns=("age",)), True),
        (sf.Rounding({"age": 5, "pay": 0.3}, how="random", columns=("age", "pay")), False),
        (sf.Rounding({"age": 5, "pay": 0.7}, how="random", columns=("age", "pay")), True),
        (sf.Rounding(10, columns=("day",)), True),
        (sf.Rounding(0.25, columns=("at",)), False),
        (sf.Rounding(0.2, columns=("at",)), True),
        (sf.TopBottomCoding(top=30, bottom=20, columns=("age",)), False),
        (sf.TopBottomCoding(top=29, columns=("age",)), True),
        (sf.TopBottomCoding(bottom=20.6, columns=("age",)), True),
        (sf.TopBottomCoding(top=29, show="mean", columns=("age",)), False),
        (sf.TopBottomCoding(top=24, show="mean", columns=("age",)), True),
        (sf.TopBottomCoding(top=0.7, by="quantile", columns=("age",)), False),
        (sf.TopBottomCoding(top=0.5, by="quantile", columns=("age",)), True),
        (sf.TopBottomCoding(top=0.5, by="quantile", columns=("age",), strata=("elsewhere",)), False),
        (sf.TopBottomCoding(top="2020-01-11", columns=("day",)), False),
        (sf.TopBottomCoding(top="2020-01-10", columns=("day",)), True),
        (sf.TopBottomCoding(top="2020-01-01T12:00:00", columns=("at",)), False),
        (sf.TopBottomCoding(top="2020-01-01T11:00:00", columns=("at",)), True),
        (sf.Generalisation({"town": 1}), False),
        (sf.Generalisation({"age": 1}), True),
        (sf.Generalisation({"town": 1_000_001}), True),
        (sf.Generalisation(suppress={"town": ["c"]}), False),
        (sf.Generalisation(suppress={"town": ["a"]}), True),
        (sf.Generalisation(suppress={"town": ["a"]}, levels={"town": 1}), False),
        (sf.Generalisation(fewer_than=10, columns=["town"]), False),
        (sf.Generalisation(fewer_than=11, columns=["town"]), True),
        (sf.TermGeneralisation(10, columns=["set"]), False),
        (sf.TermGeneralisation(11, columns=["set"]), True),
        (sf.Condensation(20, columns=("pay",), strata=("part",)), False),
        (sf.Condensation(21, columns=("pay",), strata=("part",)), True),
        (sf.Condensation(41, columns=("pay",)), True),
        (sf.Cbfs(10, columns=("town",), p=2, sensitive="ill"), True),
        (sf.Cbfs(10, columns=("part",), p=2, sensitive="ill"), False),
        (sf.Cbfs(10, columns=("part",), l=2, sensitive="ill"), False),
        (sf.Cbfs(10, columns=("part",), l=2.1, sensitive="ill"), True),
        (sf.Cbfs(10, columns=("part",), l=2, c=0.5, diversity="recursive", sensitive="ill"), True),
        (sf.Cbfs(10, columns=("part",), l=2, c=3, diversity="recursive", sensitive="ill"), False),
        (sf.Mdav(2, columns=("pay", "town"), groups=(("elsewhere",),)), True),
    ],
    ids=repr,
)
def test_each_mask_says_what_its_rows_show(mask: Mask, disproved: bool) -> None:
    assert mask.disproved_by(ShownRows(ROWS, SCHEMA, {"ordered_codes": {}})) is disproved


def test_numbers_that_are_codes_in_an_order_of_their_owner_are_not_compared_as_numbers() -> None:
    codes = Column(role="quasi", type="integer", order=("9", "1", "2", "3"))
    people = sf.read(pa.table({"school": [9, 1, 2, 3] * 5}), Schema(dataset="d", columns={"school": codes}))
    mask = sf.TopBottomCoding(top="2")
    rows = shown(people, mask)
    assert set(rows.table.column("school").to_pylist()) == {9, 1, 2} and rows.facts["ordered_codes"] == {
        "school": ["9", "1", "2", "3"]
    }
    assert not mask.disproved_by(rows)
    beyond = [sf.TopBottomCoding(top=top, columns=("school",)) for top in ("2", 1, "9", 4)]
    assert [each.disproved_by(rows) for each in beyond] == [False, True, True, True]
    for facts, disproved in (
        ({}, False),
        ({"ordered_codes": {}}, True),
        ({"ordered_codes": {"school": ["1", "2"]}}, True),
        ({"ordered_codes": {"school": []}}, True),
    ):
        assert sf.TopBottomCoding(top=2, columns=("school",)).disproved_by(replace(rows, facts=facts)) is disproved


@pytest.mark.parametrize(
    "codes", [pa.array([4, 1, 3, 2] * 5), pa.array([4.0, 1, 3, 2] * 5), pa.array([4, 1, None, 2] * 5).cast(pa.float64())]
)
@pytest.mark.parametrize(
    "mask",
    [
        lambda: sf.TopBottomCoding(top="1", columns=("code",)),
        lambda: sf.TopBottomCoding(top=1, columns=("code",)),
        lambda: sf.TopBottomCoding(top=0.7, by="quantile", columns=("code",)),
        lambda: sf.Combined(masks=(sf.TopBottomCoding(top="1", columns=("code",)), sf.Pram(0.7, columns=("sex",)))),
    ],
)
def test_where_codes_are_not_told_whole_numbers_disprove_nothing(mask: Callable[[], Mask], codes: pa.Array) -> None:
    described = {"code": Column(role="quasi", order=("4", "1", "3", "2")), "sex": Column(role="quasi", type="string")}
    people = sf.read(pa.table({"code": codes, "sex": ["f", "m"] * 10}), Schema(dataset="d", columns=described))
    rows = shown(people, mask())
    steps = [{key: told for key, told in step.items() if key != "ordered_codes"} for step in rows.facts.get("steps", [])]
    untold = {"steps": steps} if steps else {}
    assert not mask().disproved_by(rows) and not mask().disproved_by(replace(rows, facts=untold))


def test_a_mask_of_numbers_leaves_numbers() -> None:
    texts = ROWS.set_column(0, "age", pa.array(["23", "24", "25", None] * 10))
    for name in NAMES:
        mask = replace(masks.example(name), columns=("age",)) if masks.example(name).handles == {"number"} else None
        if mask is not None and not isinstance(mask, sf.Rounding):
            assert mask.disproved_by(ShownRows(texts, SCHEMA)), name
            hidden = sf.Combined(masks=(mask, sf.Generalisation({"age": 1}))) if not mask.synthetic else None
            assert hidden is None or not hidden.disproved_by(ShownRows(texts, SCHEMA))
    assert sf.Rounding(1, columns=("age",)).disproved_by(ShownRows(texts, SCHEMA))
    assert sf.Rounding({"pay": 1.5}, columns=("age", "pay")).disproved_by(ShownRows(ROWS, SCHEMA))


@pytest.mark.parametrize("name", [name for name in NAMES if masks.example(name).handles == {"number"}])
def test_rows_of_a_mask_of_numbers_are_numbers(name: str) -> None:
    people, mask = some_people(0.0), masks.example(name)
    assert not mask.disproved_by(shown(people, mask))


def test_more_strata_than_can_be_compared_in_time_disprove_nothing() -> None:
    rows = pa.table({"s": [str(i // 3) for i in range(9000)], "c": [float(i % 3) for i in range(9000)]})
    schema = Schema(dataset="d", columns={"s": Column(role="plain"), "c": Column(role="quasi")})
    mask = sf.TopBottomCoding(top=0.5, by="quantile", columns=("c",), strata=("s",))
    few = ShownRows(rows.slice(0, 300), schema, {"ordered_codes": {}})
    assert mask.disproved_by(few) and not mask.disproved_by(replace(few, table=rows))
