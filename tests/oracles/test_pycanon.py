"""pycanon measures the same tables.

Where it defines a number differently, the test states how and checks both readings:

* entropy l: pycanon truncates exp(H) to an integer; ours is the real number.
* recursive (c,l): pycanon sorts the counts ascending and so divides the smallest count, not the largest, by
  the tail of that order; the definition has the most frequent value first. The l agrees, the c does not.
* enhanced β: pycanon reports the largest min(β, -ln q) over the values; ours is the smallest β for which the
  table is enhanced β-like, infinite when a value gains more than -ln q.
* δ-disclosure: pycanon skips values that a class lacks; by the definition (ln 0) they make δ infinite.
* ordered t: only for columns that pandas holds as numbers; the equal distance for text.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pycanon import anonymity

import sfumato as sf
from sfumato.measures.guarantees.measure import measure
from sfumato.measures.guarantees.overview import AttributeMeasures, TableMeasures, measure_all

pytestmark = pytest.mark.oracle

QUASI = ["q1", "q2", "q3"]
SEEDS = range(12)


def random_table(seed: int, *, numeric: bool) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    rows = int(draw.integers(20, 150))
    frame = {name: draw.integers(0, int(draw.integers(1, 4)), rows).astype(str) for name in QUASI}
    values = draw.geometric(0.35, rows) * 10
    frame["s"] = values if numeric else np.char.add("v", values.astype(str))
    return pd.DataFrame(frame)


def ours(frame: pd.DataFrame, quasi: list[str], sensitive: str) -> tuple[TableMeasures, AttributeMeasures]:
    schema = sf.Schema.of(quasi=quasi, sensitive=[sensitive])
    found = measure_all(pa.Table.from_pandas(frame, preserve_index=False), schema)
    return found, found.attributes[sensitive]


def agree(frame: pd.DataFrame, quasi: list[str], sensitive: str, *, numeric: bool) -> None:
    table, attribute = ours(frame, quasi, sensitive)
    assert table.k == anonymity.k_anonymity(frame, quasi)
    alpha, k = anonymity.alpha_k_anonymity(frame, quasi, [sensitive])
    assert (attribute.alpha, table.k) == (pytest.approx(alpha), k)
    assert attribute.distinct_l == anonymity.l_diversity(frame, quasi, [sensitive])
    # rounding may leave a whole number just below itself before it is truncated
    assert anonymity.entropy_l_diversity(frame, quasi, [sensitive]) in {
        int(attribute.entropy_l + 1e-9),
        int(attribute.entropy_l - 1e-9),
    }
    distance = "ordered" if numeric else "equal"
    if attribute.values > 1:
        assert attribute.t[distance] == pytest.approx(anonymity.t_closeness(frame, quasi, [sensitive]))
    assert attribute.beta == pytest.approx(anonymity.basic_beta_likeness(frame, quasi, [sensitive]))
    skipping = anonymity.delta_disclosure(frame, quasi, [sensitive])
    assert attribute.delta in (pytest.approx(skipping), math.inf)
    if math.isinf(attribute.delta):
        assert (pd.crosstab([frame[name] for name in quasi], frame[sensitive]) == 0).any(axis=None)
    truncated = anonymity.enhanced_beta_likeness(frame, quasi, [sensitive])
    rarest = -math.log(frame[sensitive].value_counts(normalize=True).min())
    assert truncated == pytest.approx(min(attribute.beta, rarest))
    assert attribute.enhanced_beta in (pytest.approx(attribute.beta), math.inf)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_tables_with_a_text_attribute(seed: int) -> None:
    agree(random_table(seed, numeric=False), QUASI, "s", numeric=False)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_tables_with_a_numeric_attribute(seed: int) -> None:
    agree(random_table(seed, numeric=True), QUASI, "s", numeric=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_recursive_diversity_agrees_in_l_and_differs_by_the_order_of_counts(seed: int) -> None:
    frame = random_table(seed, numeric=False)
    _, attribute = ours(frame, QUASI, "s")
    c, l = anonymity.recursive_c_l_diversity(frame, QUASI, ["s"])  # noqa: E741
    assert l == attribute.distinct_l
    if l < 2:
        assert math.isnan(c)
        return
    ascending, descending = [], []
    for _, group in frame.groupby(QUASI):
        counts = np.sort(group["s"].value_counts().to_numpy())
        ascending.append(math.floor(counts[0] / counts[l - 1 :].sum() + 1))
        descending.append(counts[-1] / counts[::-1][l - 1 :].sum())
    assert c == max(ascending)
    assert attribute.recursive_c[l] == pytest.approx(max(descending))


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_asked_for_holds_exactly_when_the_measured_number_keeps_it(seed: int) -> None:
    frame = random_table(seed, numeric=False)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    schema = sf.Schema.of(quasi=QUASI, sensitive=["s"])
    k = anonymity.k_anonymity(frame, QUASI)
    assert measure(table, schema, sf.KAnonymity(k)).holds
    assert not measure(table, schema, sf.KAnonymity(k + 1)).holds
    t = anonymity.t_closeness(frame, QUASI, ["s"])
    assert measure(table, schema, sf.TCloseness(t + 1e-9, "s", reference="released")).holds
    if t > 1e-6:
        assert not measure(table, schema, sf.TCloseness(t - 1e-9, "s", reference="released")).holds
    beta = anonymity.basic_beta_likeness(frame, QUASI, ["s"])
    if beta > 1e-6:
        assert measure(table, schema, sf.BetaLikeness(beta + 1e-9, "s", reference="released")).holds
        assert not measure(table, schema, sf.BetaLikeness(beta - 1e-9, "s", reference="released")).holds


@pytest.mark.data
@pytest.mark.parametrize(
    ("quasi", "sensitive", "numeric"),
    [
        (["sex", "race", "salary-class"], "occupation", False),
        (["marital-status", "sex"], "education", False),
        (["workclass", "salary-class"], "age", True),
    ],
)
def test_a_sample_of_adult(data_dir: Path, quasi: list[str], sensitive: str, numeric: bool) -> None:
    frame = pd.read_csv(data_dir / "adult" / "adult.csv", sep=";").iloc[::10].reset_index(drop=True)
    agree(frame, quasi, sensitive, numeric=numeric)
