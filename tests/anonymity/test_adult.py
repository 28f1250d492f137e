"""The optimum on a real table: level vectors, losses, classes and suppressed records, setting by setting.

The expected numbers were found by another system with exact search and agree with an exhaustive evaluation of
the lattice.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.anonymity.search.lattice import Lattice
from sfumato.anonymity.search.local_recoding import LocalRecoding
from sfumato.core.guarantees.base import ClassGuarantee
from sfumato.core.guarantees.k_anonymity import KAnonymity
from sfumato.core.guarantees.l_diversity import DistinctLDiversity, EntropyLDiversity, RecursiveLDiversity
from sfumato.core.guarantees.t_closeness import TCloseness
from sfumato.data.microdata import Microdata
from sfumato.data.schema import Column, HierarchySpec, Schema
from sfumato.engines.sources import read

pytestmark = pytest.mark.data

COLUMNS = (
    "sex",
    "age",
    "race",
    "marital-status",
    "education",
    "native-country",
    "workclass",
    "occupation",
    "salary-class",
)
ADULTS: dict[bool, Microdata] = {}


@pytest.fixture(scope="module")
def adult_file(data_dir: Path) -> Path:
    return data_dir / "adult" / "adult.csv"


def adults(path: Path, *, occupation_sensitive: bool) -> Microdata:
    """Adult with its nine hierarchies, read once; `occupation` is the sensitive attribute of the l- and t-models."""
    if occupation_sensitive not in ADULTS:
        columns = {
            name: Column(
                role="sensitive" if occupation_sensitive and name == "occupation" else "quasi",
                hierarchy=HierarchySpec(file=str(path.with_name(f"adult_hierarchy_{name}.csv"))),
            )
            for name in COLUMNS
        }
        ADULTS[occupation_sensitive] = read(path, Schema(dataset="adult", columns=columns, unlisted="drop"))
    return ADULTS[occupation_sensitive]


K_ROWS = [
    (2, 0.0, (0, 4, 1, 1, 3, 2, 0, 2, 0), 0.60368, 52, 0),
    (2, 0.05, (0, 3, 0, 0, 1, 1, 1, 1, 0), 0.17527, 1_468, 1_350),
    (2, 1.0, (0, 3, 0, 0, 1, 0, 0, 1, 0), 0.16651, 1_953, 2_998),
    (5, 0.0, (0, 4, 1, 1, 3, 2, 2, 1, 0), 0.63554, 24, 0),
    (5, 0.05, (0, 3, 0, 0, 2, 1, 1, 2, 0), 0.26963, 397, 1_346),
    (5, 1.0, (0, 3, 0, 0, 2, 1, 1, 1, 0), 0.22770, 602, 2_553),
    (10, 0.0, (0, 4, 1, 1, 3, 2, 2, 1, 0), 0.63554, 24, 0),
    (10, 0.05, (0, 3, 0, 1, 2, 1, 1, 2, 0), 0.31784, 196, 1_437),
    (10, 1.0, (0, 3, 0, 0, 2, 1, 1, 1, 0), 0.26774, 381, 3_983),
]

DISTINCT = DistinctLDiversity(3, "occupation")
ENTROPY = EntropyLDiversity(3, "occupation")
RECURSIVE = RecursiveLDiversity(4, 3, "occupation")
EQUAL = TCloseness(0.2, "occupation", distance="equal")
HIERARCHICAL = TCloseness(0.2, "occupation", distance="hierarchical")

SENSITIVE_ROWS = [
    (DISTINCT, 0.0, (0, 4, 1, 2, 3, 2, 0, 0), 0.62500, 26, 0),
    (DISTINCT, 0.05, (0, 3, 0, 0, 2, 1, 1, 0), 0.17988, 387, 1_400),
    (DISTINCT, 1.0, (0, 3, 0, 0, 2, 1, 0, 0), 0.17361, 492, 2_335),
    (ENTROPY, 0.0, (0, 4, 1, 1, 3, 2, 2, 0), 0.67915, 8, 0),
    (ENTROPY, 0.05, (0, 3, 0, 1, 2, 1, 1, 0), 0.22573, 261, 1_180),
    (ENTROPY, 1.0, (0, 3, 0, 0, 2, 1, 0, 0), 0.19718, 408, 3_129),
    (RECURSIVE, 0.0, (0, 4, 1, 2, 3, 2, 0, 0), 0.62500, 26, 0),
    (RECURSIVE, 0.05, (0, 2, 0, 1, 2, 1, 1, 0), 0.21977, 378, 1_408),
    (RECURSIVE, 1.0, (0, 3, 0, 0, 2, 1, 1, 0), 0.18885, 368, 1_715),
    (EQUAL, 0.0, (1, 4, 1, 1, 3, 2, 2, 1), 0.92915, 2, 0),
    (EQUAL, 0.05, (1, 4, 1, 1, 3, 1, 2, 1), 0.83969, 6, 235),
    (EQUAL, 1.0, (1, 2, 0, 0, 3, 0, 2, 1), 0.64349, 23, 8_156),
    (HIERARCHICAL, 0.0, (0, 4, 1, 1, 3, 2, 2, 1), 0.80415, 4, 0),
    (HIERARCHICAL, 0.05, (1, 4, 0, 0, 3, 1, 2, 1), 0.67495, 24, 1_384),
    (HIERARCHICAL, 1.0, (0, 3, 0, 0, 3, 0, 2, 1), 0.54387, 37, 7_271),
]


@pytest.mark.parametrize(("k", "limit", "levels", "loss", "classes", "suppressed"), K_ROWS)
def test_the_best_levels_for_k_anonymity(
    adult_file: Path, k: int, limit: float, levels: tuple[int, ...], loss: float, classes: int, suppressed: int
) -> None:
    outcome = Lattice(limit).run(adults(adult_file, occupation_sensitive=False), [KAnonymity(k)])
    found = outcome.details
    assert outcome.result.records == 30_162
    assert found["optimal"] and found["nodes"] == 12_960
    assert tuple(found["levels"].values()) == levels
    assert (found["classes"], found["suppressed"]) == (classes, suppressed)
    assert found["loss"] == pytest.approx(loss, abs=5.1e-6)


@pytest.mark.parametrize(("guarantee", "limit", "levels", "loss", "classes", "suppressed"), SENSITIVE_ROWS)
def test_the_best_levels_with_a_sensitive_attribute(
    adult_file: Path,
    guarantee: ClassGuarantee,
    limit: float,
    levels: tuple[int, ...],
    loss: float,
    classes: int,
    suppressed: int,
) -> None:
    outcome = Lattice(limit).run(adults(adult_file, occupation_sensitive=True), [KAnonymity(5), guarantee])
    found = outcome.details
    assert found["optimal"] and found["nodes"] == 4_320
    assert tuple(found["levels"].values()) == levels
    assert (found["classes"], found["suppressed"]) == (classes, suppressed)
    assert found["loss"] == pytest.approx(loss, abs=5.1e-6)


@pytest.mark.parametrize(
    ("k", "step", "granularity"), [(5, 0.01, 0.9411), (5, 0.0003, 0.9474), (10, 0.01, 0.9180), (10, 0.0003, 0.9239)]
)
def test_local_recoding_keeps_at_least_this_much_detail(adult_file: Path, k: int, step: float, granularity: float) -> None:
    people = adults(adult_file, occupation_sensitive=False)
    outcome = LocalRecoding(step=step).run(people, [KAnonymity(k)])
    assert round(1 - outcome.details["loss"], 4) >= granularity
    assert outcome.result.class_sizes().min() >= k
    assert outcome.result.suppressed <= 0.05 * 30_162
