"""V-MDAV: clusters of variable size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pytest

import sfumato as sf
from sfumato.core.errors import ParameterError
from tests.masking import microaggregation_oracles as oracle


def test_clumps_of_different_sizes_stay_together() -> None:
    table = pa.table({"age": [20.0, 21.0, 22.0, 23.0, 60.0, 61.0, 62.0, 90.0, 91.0, 92.0, 93.0, 94.0]})
    people = sf.read(table)
    labels = sf.VMdav(3, gamma=1.1, columns=("age",)).apply(people).details["labels"]
    assert oracle.as_sets(labels) == {frozenset({0, 1, 2, 3}), frozenset({4, 5, 6}), frozenset({7, 8, 9, 10, 11})}
    assert oracle.as_sets(sf.Mdav(3, columns=("age",)).apply(people).details["labels"]) != oracle.as_sets(labels)


def test_without_gamma_no_cluster_grows() -> None:
    values = np.random.default_rng(2).normal(size=(90, 2))
    outcome = sf.VMdav(9, gamma=0, columns=("a", "b")).apply(sf.read(pa.table({"a": values[:, 0], "b": values[:, 1]})))
    assert outcome.details["smallest_cluster"] == outcome.details["largest_cluster"] == 9


def test_more_than_k_records_share_a_cluster_where_they_lie_close() -> None:
    values = np.random.default_rng(2).normal(size=(91, 2))
    data = sf.read(pa.table({"a": values[:, 0], "b": values[:, 1]}), sf.Schema.of(quasi=["a", "b"]))
    outcome = sf.VMdav(5, gamma=1.5).apply(data)
    assert 5 <= outcome.details["smallest_cluster"] < outcome.details["largest_cluster"] <= 9
    assert sf.check(outcome.result.table, data.schema, list(outcome.claimed)).holds


@pytest.mark.data
def test_less_is_lost_than_by_mdav_on_clumped_data(data_dir: Path) -> None:
    """EIA has many equal and nearly equal records: about a quarter less is lost at k = 10."""
    table = csv.read_csv(data_dir / "casc" / "EIA.csv")
    columns = tuple(name for name in table.column_names if name not in ("UTILNAME", "STATE", "YEAR", "MONTH"))
    variable = sf.VMdav(10, gamma=1.1, columns=columns).apply(sf.read(table)).details["information_loss"]
    fixed = sf.Mdav(10, columns=columns).apply(sf.read(table)).details["information_loss"]
    assert variable < 0.8 * fixed


@pytest.mark.parametrize("gamma", [-0.1, float("nan"), float("inf")])
def test_a_gamma_that_is_no_factor_is_refused(gamma: float) -> None:
    with pytest.raises(ParameterError, match="gamma"):
        sf.VMdav(3, gamma=gamma)
