"""DIS-SUDA in the convention of sdcMicro: the published example, and the formula by hand."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import ParameterError
from sfumato.data.microdata import ReleasedTable
from sfumato.measures.risk.uniques.dis_suda import suda_weights
from sfumato.measures.risk.uniques.suda import SpecialUniques, minimal_uniques

# The ten people in Benschop, Machingauta, Welch, "Statistical disclosure control: a practice guide", on measuring risk.
PRACTICE = pa.table(
    {
        "residence": ["Urban"] * 4 + ["Rural"] + ["Urban"] * 5,
        "gender": ["Female", "Female", "Female", "Male", "Female", "Male", "Female", "Male", "Female", "Female"],
        "education": ["Secondary incomplete", "Secondary incomplete", "Primary incomplete", "Secondary complete",
                      "Secondary complete", "Secondary complete", "Primary complete", "Post-secondary",
                      "Secondary incomplete", "Secondary incomplete"],
        "labour": ["Employed", "Employed", "Non-LF", "Employed", "Unemployed", "Employed", "Non-LF", "Unemployed",
                   "Non-LF", "Non-LF"],
    }
)  # fmt: skip
NAMES = tuple(PRACTICE.column_names)
RELEASED = ReleasedTable(PRACTICE, sf.Schema.of(quasi=list(NAMES)), records=10)


def test_the_scores_of_the_practice_guide() -> None:
    assert minimal_uniques(PRACTICE, NAMES, 3).scores.tolist() == [0, 0, 6, 0, 12, 0, 6, 10, 0, 0]


def test_the_dis_suda_scores_of_the_practice_guide() -> None:
    """The guide prints the scores (M − k)! and the DIS-SUDA scores that follow from the weights of the earlier program."""
    risks = SpecialUniques(sampling_fraction=0.01).dis_suda(None, RELEASED, "earlier")
    assert [round(risk, 4) for risk in risks.tolist()] == [0, 0, 0.0051, 0, 0.0107, 0, 0.0051, 0.0088, 0, 0]


def by_hand(rows: list[tuple[int | None, ...]], fraction: float, earlier: bool) -> list[float]:
    columns = len(rows[0])
    scores = []
    for row in rows:
        sets: list[set[int]] = []
        for size in range(1, columns + 1):
            for chosen in combinations(range(columns), size):
                alone = all(row[c] is not None for c in chosen)
                alone = alone and sum(all(other[c] == row[c] for c in chosen) for other in rows) == 1
                if alone and not any(part < set(chosen) for part in sets):
                    sets.append(set(chosen))
        weight = [
            (2 ** (columns - k) - 1) * math.factorial(k) * math.factorial(columns - k) / math.factorial(columns)
            if earlier
            else math.factorial(columns - k)
            for k in range(columns + 1)
        ]
        scores.append(sum(weight[len(each)] for each in sets))
    sizes = Counter(rows)
    alone_records = sum(size == 1 for size in sizes.values())
    paired = sum(size for size in sizes.values() if size == 2)
    if not alone_records:
        return [0.0] * len(rows)
    dis = alone_records * fraction / (alone_records * fraction + paired * (1 - fraction))
    q = 1 + (8 - columns) / 20
    adjustment = sum(1 / score**q for score in scores if score)
    return [1 / (1 + (alone_records / dis - alone_records) / (score**q * adjustment)) if score else 0.0 for score in scores]


@given(
    st.lists(st.tuples(*[st.one_of(st.none(), st.integers(0, 2))] * 4), min_size=1, max_size=20),
    st.sampled_from([0.01, 0.3, 1.0]),
    st.booleans(),
)
def test_dis_suda_equals_the_formula_by_hand(rows: list[tuple[int | None, ...]], fraction: float, earlier: bool) -> None:
    table = pa.table({name: pa.array([row[i] for row in rows], pa.int64()) for i, name in enumerate(NAMES)})
    released = ReleasedTable(table, sf.Schema.of(quasi=list(NAMES)), records=len(rows))
    risks = SpecialUniques(sampling_fraction=fraction).dis_suda(None, released, "earlier" if earlier else "published")
    assert risks.tolist() == pytest.approx(by_hand(rows, fraction, earlier), rel=1e-9)


def test_both_conventions_stand_in_the_score_by_name() -> None:
    score = SpecialUniques(sampling_fraction=0.01).score(None, RELEASED)
    theirs = SpecialUniques(sampling_fraction=0.01).dis_suda(None, RELEASED)
    assert score.parts["DIS-SUDA (sdcMicro), largest"] == theirs.max()
    assert score.parts["DIS-SUDA (sdcMicro), mean"] == theirs.mean()
    assert score.parts["risk, largest"] != theirs.max() and score.floor == 0.1 and score.interval == (0.4, 0.4)
    assert "risk, largest" not in SpecialUniques().score(None, RELEASED).parts
    with pytest.raises(ParameterError, match="sampling_fraction"):
        SpecialUniques().dis_suda(None, RELEASED)


def test_more_columns_than_can_be_looked_at_leave_the_part_out() -> None:
    draw = np.random.default_rng(1)
    wide = pa.table({f"c{i}": draw.integers(0, 3, 30) for i in range(15)})
    released = ReleasedTable(wide, sf.Schema.of(quasi=wide.column_names), records=30)
    parts = SpecialUniques(sampling_fraction=0.1, max_size=2).score(None, released).parts
    assert "risk, largest" in parts and not any("sdcMicro" in name for name in parts)
    with pytest.raises(ParameterError, match="too many"):
        SpecialUniques(sampling_fraction=0.1).dis_suda(None, released)


def test_the_two_kinds_of_weights() -> None:
    assert suda_weights(4).tolist() == [6, 2, 1, 1]
    assert suda_weights(4, "earlier").tolist() == [1.75, 0.5, 0.25, 0.0]
