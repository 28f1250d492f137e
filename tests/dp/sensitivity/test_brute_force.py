"""Sensitivity by trying everything: nothing tried is no answer, and records that are equal are still different."""

from __future__ import annotations

from typing import Any

import pytest

from sfumato.core.errors import ParameterError
from sfumato.dp.sensitivity.brute_force import global_sensitivity, local_sensitivity


@pytest.mark.parametrize(
    ("relation", "sizes", "domain"),
    [("add_remove", [3], [0, 5]), ("add_remove", [1, 3], [0, 5]), ("replace", [0], [0, 5]), ("replace", [2], [5])],
)
def test_no_neighbouring_pair_is_refused(relation: Any, sizes: list[int], domain: list[int]) -> None:
    with pytest.raises(ParameterError, match="nothing was tried"):
        global_sensitivity(sum, domain, relation, sizes=sizes)


@pytest.mark.parametrize("domain", [[1, True], [True, 1], [1.0, True]])
def test_equal_records_of_different_types_are_tried_apart(domain: list[Any]) -> None:
    def query(table: list[Any]) -> int:
        return sum(100 if record is True else 1 for record in table)

    assert global_sensitivity(query, domain, "add_remove", sizes=[0, 1]).l1 == 100
    assert global_sensitivity(query, domain, "replace", sizes=[1]).l1 == 99
    assert local_sensitivity(query, [1], domain, "replace").l1 == 99


def test_records_need_not_be_hashable() -> None:
    assert (
        global_sensitivity(lambda table: sum(len(basket) for basket in table), [[], [1, 2]], "add_remove", sizes=[0, 1]).l1 == 2
    )
