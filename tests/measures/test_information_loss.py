"""The loss of any analysis, and the generic loss of mixed data."""

from __future__ import annotations

import math
from statistics import fmean

import numpy as np
import pyarrow as pa
import pytest

from sfumato.core.errors import ParameterError, Unsupported
from sfumato.data.records import Records
from sfumato.measures.utility.divergence import Hellinger
from sfumato.measures.utility.information_loss import DIVERGENCES, AnalysisLoss, InformationLoss
from sfumato.measures.utility.probabilistic_loss import ProbabilisticInformationLoss
from tests.measures.masked_tables import microdata, noisy, people, synthetic, with_gaps


def averages(records: Records) -> np.ndarray:
    return np.asarray(np.nanmean(records.matrix(), axis=0))


def test_an_analysis_is_compared_by_a_divergence_of_your_own() -> None:
    data = microdata({"x": [1.0, 2.0, 3.0], "y": [0.0, 0.0, 6.0]})
    shown = pa.table({"x": [1.0, 2.0, 6.0], "y": [0.0, 0.0, 0.0]})  # averages (2, 2) become (3, 0)
    values = {name: AnalysisLoss(averages, name).score(data, shown).value for name in DIVERGENCES}
    assert values["absolute"] == 1.5
    assert values["squared"] == 2.5
    assert values["maximum"] == 2
    assert values["euclidean"] == pytest.approx(math.sqrt(5))
    assert values["relative"] == 0.75
    assert values["total_variation"] == 0.5
    assert values["hellinger"] == pytest.approx(math.sqrt(1 - math.sqrt(0.5)))
    assert values["kullback_leibler"] > 10  # one of the shares is gone
    own = AnalysisLoss(averages, lambda before, after: float(after[0] - before[0]))
    assert own.score(data, shown).value == 1


def test_every_divergence_of_a_result_from_itself_is_zero() -> None:
    data = people(50)
    for name in DIVERGENCES:
        assert AnalysisLoss(averages, name).score(data, data).value == 0


def test_results_that_cannot_be_compared_are_refused() -> None:
    data = people(20)
    fewer = synthetic(data, data.table().slice(0, 7))
    with pytest.raises(Unsupported, match="20 numbers on the original and 7"):
        AnalysisLoss(lambda records: records.matrix()[:, 0]).score(data, fewer)
    with pytest.raises(Unsupported, match="missing or infinite"):
        AnalysisLoss(lambda records: [math.nan]).score(data, data)
    with pytest.raises(Unsupported, match="distributions"):
        AnalysisLoss(lambda records: [-1.0, 2.0], "hellinger").score(data, data)
    with pytest.raises(ParameterError, match="divergence"):
        AnalysisLoss(averages, "distance")
    with pytest.raises(ParameterError, match="analysis"):
        AnalysisLoss("mean")  # type: ignore[arg-type]


def test_numbers_alone_lose_what_pil_says() -> None:
    data = people()
    shown = noisy(data, 0.2)
    columns = ("age", "income", "spent")
    found = InformationLoss(columns).score(data, shown)
    assert found.value == ProbabilisticInformationLoss(columns).score(data, shown).value
    assert "categories" not in found.parts


def test_categories_alone_lose_what_the_hellinger_distance_says() -> None:
    data = people()
    table = data.table()
    shown = table.set_column(table.column_names.index("town"), "town", pa.array(["old"] * len(data)))
    columns = ("sex", "town")
    assert InformationLoss(columns).score(data, shown).value == pytest.approx(
        Hellinger(columns, pairs=True).score(data, shown).value
    )
    assert InformationLoss(("town",)).score(data, shown).value == pytest.approx(Hellinger(("town",)).score(data, shown).value)


def test_mixed_data_weigh_columns_equally() -> None:
    data = people()
    found = InformationLoss().score(data, noisy(data, 0.5))
    assert found.value == pytest.approx((3 * found.parts["numbers"] + 2 * found.parts["categories"]) / 5)
    assert 0 < found.value < 1


def test_breaking_what_binds_a_number_and_a_category_is_noticed() -> None:
    data = people()
    table = data.table()
    mixed = table.column("town").take(pa.array(np.random.default_rng(0).permutation(len(data))))
    shown = table.set_column(table.column_names.index("town"), "town", mixed)
    found = InformationLoss(("age", "town")).score(data, shown)
    assert found.parts["numbers"] == found.parts["distributions"] == 0
    assert found.parts["pairs"] > 0.2


@pytest.mark.parametrize("gaps", [0.0, 0.15])
def test_nothing_is_lost_where_nothing_changed_and_more_noise_loses_more(gaps: float) -> None:
    data = with_gaps(people(600), gaps)
    values = [InformationLoss().score(data, data).value]
    values += [fmean(InformationLoss().score(data, noisy(data, k, s)).value for s in range(4)) for k in (0.03, 0.1, 1.0)]
    assert values[0] == 0
    assert values == sorted(values) and values[-1] < 1


def test_bins_are_at_least_two() -> None:
    with pytest.raises(ParameterError, match="bins"):
        InformationLoss(bins=1)
