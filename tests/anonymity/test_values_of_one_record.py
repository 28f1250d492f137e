"""Amounts that one record alone has share one column of counts where a promise only asks how many values are different."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.anonymity.predicates import promises
from sfumato.anonymity.predicates.promises import promises_of
from sfumato.data.class_table import encode

PROMISES = [sf.KAnonymity(3), sf.DistinctLDiversity(3, "income")]


def people(records: int = 400) -> sf.Microdata:
    random = np.random.default_rng(7)
    income = np.where(random.random(records) < 0.4, random.integers(1, 4, records) * 1000, random.integers(0, 10**6, records))
    columns = {
        "age": pa.array(random.integers(20, 40, records)),
        "town": pa.array([f"T{place}" for place in random.integers(0, 6, records)]),
        "income": pa.array(income),
    }
    roles = {"age": {"role": "quasi"}, "town": {"role": "quasi"}, "income": {"role": "sensitive"}}
    return sf.read(pa.table(columns), {"unit": "record", "columns": roles})


def test_the_columns_are_as_many_as_values_that_several_have_and_one() -> None:
    table = encode(people(), sensitive=("income",))
    values, counts = np.unique(people().table().column("income").to_numpy(), return_counts=True)
    made = promises_of(PROMISES, table)
    assert made.layout.widths["income"] == int((counts > 1).sum()) + 1 < len(values) / 2
    assert made.totals().sum(axis=0)[-1] == int((counts == 1).sum())
    entropy = promises_of([*PROMISES, sf.EntropyLDiversity(2, "income")], table)
    assert entropy.layout.widths["income"] == len(values), "whoever asks for shares gets every value"


@pytest.mark.parametrize(
    "search", [sf.Lattice(suppression=0.1), sf.LocalRecoding(), sf.Mondrian()], ids=lambda search: type(search).__name__
)
def test_a_search_decides_as_it_does_with_a_column_for_each_value(search: sf.Search, monkeypatch: pytest.MonkeyPatch) -> None:
    together = search.run(people(), PROMISES)
    monkeypatch.setattr(promises, "_only_different", lambda guarantees: set())
    apart = search.run(people(), PROMISES)
    assert together.details["loss"] == apart.details["loss"]
    assert together.result.klass.tolist() == apart.result.klass.tolist()
