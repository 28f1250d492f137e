"""Nobody's membership shows: neighbouring tables of twenty records, run many times, against the claimed loss."""

from __future__ import annotations

from typing import Any

import pytest

from sfumato.core.randomness import StreamRandomness
from sfumato.dp import Aim, Mst, epsilon_for
from sfumato.dp.refute.tester import refute
from sfumato.dp.synthesis import aim, mst
from tests.dp.synthesis.people import small

DELTA = "0.00001"
WITH_OUTLIER = small(["red"] * 10 + ["blue"] * 9 + ["green"], [True] * 19 + [False])
WITHOUT = small(["red"] * 10 + ["blue"] * 9, [True] * 19)


def counted(method: Any, source: StreamRandomness) -> Any:
    """The synthetic table as what an attacker would look at: the number of records, and those like the outlier."""

    def run(data: Any) -> tuple[int, int, int]:
        table = method.run(data, randomness=source).result
        colours, flags = table.column("colour").to_pylist(), table.column("flag").to_pylist()
        pairs = list(zip(colours, flags, strict=True))
        return len(pairs), colours.count("green"), pairs.count(("green", False))

    return run


@pytest.mark.slow
@pytest.mark.parametrize("method", [Mst, Aim])
def test_an_outlier_is_not_visible_beyond_the_claim(method):
    """A false alarm has a chance of at most 1e-6 by the tester's own confidence."""
    claim = method(rho="0.5", report=False)
    found = refute(
        counted(claim, StreamRandomness(f"membership {method.__name__}")),
        neighbours=(WITH_OUTLIER, WITHOUT),
        epsilon=epsilon_for("0.5", DELTA),
        delta=DELTA,
        samples=300,
        seconds=3000,
    )
    assert not found.refuted, found.explain()


@pytest.mark.slow
@pytest.mark.parametrize(("method", "module"), [(Mst, mst), (Aim, aim)])
def test_a_synthesis_with_too_little_noise_is_found_out(method, module, monkeypatch):
    """The same attack on a broken version, whose noise has a thousandth of the variance it is charged for."""
    honest = module.noisy_counts

    def quiet(counts: Any, variance: Any, reach: Any, purse: Any, source: Any) -> Any:
        return counts + (honest(counts, variance, reach, purse, source) - counts) / 30

    monkeypatch.setattr(module, "noisy_counts", quiet)
    found = refute(
        counted(method(rho="0.01", report=False), StreamRandomness("quiet")),
        neighbours=(WITH_OUTLIER, WITHOUT),
        epsilon=epsilon_for("0.01", DELTA),
        delta=DELTA,
        samples=300,
        seconds=3000,
    )
    assert found.refuted
