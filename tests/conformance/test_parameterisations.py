"""Masks in many of their settings: what is released is accepted by whoever verifies it, and its notices are true."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.data.schema import Column, Schema
from sfumato.masking.base import Mask
from sfumato.workflow.publishing import cards
from tests.conformance import masks
from tests.conformance.masks import NUMBERS, TOWNS

COUNT = 120
DAY = datetime.date(1998, 1, 1)
_SPREAD = np.full((4, 4), 0.1) + np.eye(4) * 0.6
_HALVES = np.full((4, 4), 0.125, np.float32) + np.eye(4, dtype=np.float32) / 2
_BY_LABEL = {one: {other: 0.7 if one == other else 0.1 for other in TOWNS} for one in TOWNS}

SETTINGS: dict[str, Callable[[], Mask]] = {
    "a date": lambda: sf.TopBottomCoding(top=DAY, columns=["day"]),
    "a date by column": lambda: sf.TopBottomCoding(top={"day": DAY}, columns=["day"]),
    "a date as text": lambda: sf.TopBottomCoding(bottom="1992-01-01", columns=["day"]),
    "a moment": lambda: sf.TopBottomCoding(top=datetime.datetime(1998, 1, 1, 12), columns=["moment"]),
    "a category": lambda: sf.TopBottomCoding(bottom="primary", columns=["school"]),
    "a number of numpy": lambda: sf.TopBottomCoding(
        top={"age": np.int64(60), "height": np.float32(180)}, columns=["age", "height"]
    ),
    "a mean": lambda: sf.TopBottomCoding(top={"height": 180, "weight": 75}, show="mean", columns=["height", "weight"]),
    "suppressed texts": lambda: sf.Generalisation(suppress={"town": ["Åbo"]}),
    "suppressed numbers": lambda: sf.Generalisation(suppress={"age": [40, np.int64(41), 42.0, Decimal(43)]}),
    "suppressed dates": lambda: sf.Generalisation(suppress={"day": [datetime.date(1990, 1, 1)]}),
    "rare values": lambda: sf.Generalisation(fewer_than=28, columns=["town"]),
    "a matrix": lambda: sf.Pram(matrix={"town": _SPREAD.tolist()}, columns=["town"]),
    "a matrix of numpy": lambda: sf.Pram(matrix={"town": [list(row) for row in _HALVES]}, columns=["town"]),
    "a matrix by label": lambda: sf.Pram(matrix={"town": _BY_LABEL}, columns=["town"]),
    "a fraction that stays": lambda: sf.Pram(stay=Fraction(4, 5), columns=["town"]),
    "invariant": lambda: sf.Pram(stay=0.7, invariant=True, columns=["town", "school"]),
    "joint": lambda: sf.Pram(stay=0.7, joint=True, columns=["town", "school"]),
    "joint, nothing left": lambda: sf.Pram(epsilon=0, joint=True, columns=["town", "school"]),
    "suppressed at random": lambda: sf.Pram(stay=0.7, suppress=0.1, columns=["town"]),
    "nothing left": lambda: sf.Pram(epsilon=0, columns=["town"]),
    "strata": lambda: sf.Pram(epsilon=1, columns=["town"], strata=["region"]),
    "entropy": lambda: sf.Cbfs(4, sensitive=["ill"], l=1.5, columns=NUMBERS),
    "p-sensitive": lambda: sf.Cbfs(4, sensitive=["ill"], p=np.int64(2), columns=NUMBERS),
    "recursive": lambda: sf.Cbfs(4, sensitive=["ill"], l=2, c=3, diversity="recursive", columns=NUMBERS),
    "groups of columns": lambda: sf.Mdav(4, groups=[["height", "weight"], ["wage"]], columns=NUMBERS),
    "common ancestors": lambda: sf.Mdav(4, category_centroid="ancestor", columns=["height", "town"]),
    "condensed one by one": lambda: sf.Condensation(1, columns=NUMBERS),
    "condensed in strata": lambda: sf.Condensation(5, columns=NUMBERS, strata=["region"]),
    "IPSO A": lambda: sf.Ipso("A", predictors=["age"], columns=NUMBERS),
    "IPSO B": lambda: sf.Ipso("B", predictors=["age"], columns=NUMBERS),
    "IPSO C": lambda: sf.Ipso("C", predictors=["age"], columns=NUMBERS),
    "IPSO in groups": lambda: sf.Ipso(groups=2, columns=NUMBERS),
    "lognormal": lambda: sf.MultiplicativeNoise(10, law="lognormal", zeros=0, columns=NUMBERS),
    "linear where unique": lambda: sf.PartiallySynthetic(predictors=["region"], model="linear", where="unique", columns=NUMBERS),
    "partly synthetic": lambda: sf.PartiallySynthetic(columns=["height"]),
    "households": lambda: sf.RecordSwapping(0.3, match=["town"], swapped=["region"], household="house"),
    "targeted": lambda: sf.RecordSwapping(0.3, targeted=True, key=["age"], columns=["town"]),
    "resampled alone": lambda: sf.Resampling("independent", columns=NUMBERS),
    "resampled by ranks": lambda: sf.Resampling("ranks", columns=NUMBERS),
    "resampled together": lambda: sf.Resampling("joint", columns=NUMBERS),
    "rounded at random": lambda: sf.Rounding(
        {"height": Fraction(5), "wage": np.int64(100)}, how="random", columns=["height", "wage"]
    ),
    "trees": lambda: sf.SequentialTrees(size=100, order=["town", "height"], columns=["height", "town"]),
    "a copula": lambda: sf.GaussianCopula(size=100, marginals="empirical", columns=["height", "town"]),
    "shuffled": lambda: sf.Shuffling(predictors=["age"], columns=["wage"]),
    "ranks": lambda: sf.BucketRankSwapping(10, unit="ranks", columns=NUMBERS),
    "a fraction of a percent": lambda: sf.RankSwapping(Fraction(25, 2), columns=NUMBERS),
    "exact moments": lambda: sf.AdditiveNoise(Fraction(1, 10), moments="exact", columns=NUMBERS),
    "rescaled": lambda: sf.CorrelatedNoise(0.1, rescale=True, columns=NUMBERS),
    "much noise": lambda: sf.AdditiveNoise(10**30, columns=NUMBERS),
    "masks of masks": lambda: sf.Combined(
        masks=(sf.Pram(matrix={"town": _SPREAD.tolist()}, columns=["town"]), sf.Combined(masks=(sf.Mdav(3, columns=NUMBERS),)))
    ),
    "a mask in strata": lambda: sf.Combined(
        masks=(sf.Pram(epsilon=1, columns=["town"], strata=["region"]), sf.AdditiveNoise(0.1, columns=("height", "code")))
    ),
    "a sample": lambda: sf.Sampling(0.5),
    "a sample of one column": lambda: sf.Sampling(0.5, columns=["code"]),
    "terms": lambda: sf.TermGeneralisation(70, columns=["terms"]),
}


@cache
def people() -> sf.Microdata:
    """People with dates, moments and households, and a code that nobody shares."""
    table, start = masks.people(COUNT).table(), datetime.datetime(1990, 1, 1, 9)
    days = [start + datetime.timedelta(days=i * 77 % 4000) for i in range(COUNT)]
    more = {
        "day": (pa.array([day.date() for day in days]), Column(role="quasi", type="date")),
        "moment": (pa.array(days), Column(role="quasi", type="datetime")),
        "code": (pa.array([7919 * i % 10_007 for i in range(COUNT)]), Column(role="sensitive", type="integer")),
        "house": (pa.array([str(i // 3) for i in range(COUNT)]), Column(role="plain", type="string")),
    }
    for name, (values, _) in more.items():
        table = table.append_column(name, values)
    described = {name: column for name, (_, column) in more.items()}
    return sf.read(table, Schema(dataset="settings", unit="record", columns={**masks.SCHEMA.columns, **described}))


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_release_is_accepted_and_its_notices_are_true(setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "MOST_DISTINCT", 0)  # the owner's figures, which nobody verifies, take most of the time
    release = sf.protect(people(), (), SETTINGS[setting](), utility=(), risk=())
    release.save(tmp_path / "out", "csv")
    verdict = sf.verify(tmp_path / "out")
    assert not [finding.text for finding in verdict.findings if finding.passed is False]
    original, rows = people().table(), release.content.source_rows
    for notice in release.certificate.notices:
        if "published as" in notice:
            named = re.findall(r"'([^']+)'", notice)
            assert named and rows is not None, notice
            for name in named:
                shown = release.data.column(name).to_pylist()
                assert shown == original.column(name).take(rows).to_pylist(), notice
        if "are alone in what" in notice:
            shown = Counter(zip(*(release.data.column(name).to_pylist() for name in named), strict=True))
            assert notice.startswith(
                f"{sum(count == 1 for count in shown.values())} of {COUNT if rows is None else len(rows)} records"
            )
