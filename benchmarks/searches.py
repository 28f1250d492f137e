"""Searches on Adult: the optimal lattice search against ARX, local recoding, cell suppression.

Table and hierarchies are in memory; encoding and search are timed, every repetition on a table that has not been
encoded before. The optimum must be the one ARX found.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks import adult
from benchmarks.arx import K_ANONYMITY, WITH_SENSITIVE, Optimum
from benchmarks.harness import Case

_K_LIMITS_MS = (25.0, 70.0, 60.0)
_S = "occupation"


def cases() -> Iterator[Case]:
    """All cases on Adult that search."""
    yield from _k_anonymity()
    yield from _with_sensitive()
    yield from _local_recoding()
    yield _cell_suppression()


def _k_anonymity() -> Iterator[Case]:
    import sfumato as sf

    make = adult.fresh(adult.table())
    for best, limit in zip(K_ANONYMITY, _K_LIMITS_MS, strict=True):
        method = sf.Lattice(suppression=best.suppression)
        yield Case(
            f"adult, k=5, {best.suppression:.0%} suppression",
            lambda people, method=method: method.run(people, [sf.KAnonymity(5)]),
            limit=limit,
            peer=best.cpu_ms,
            prepare=make,
            check=lambda outcome, best=best: differs(outcome, best),
            note="peer: ARX",
        )


def _with_sensitive() -> Iterator[Case]:
    import sfumato as sf

    guarantees = {
        "distinct l=3": sf.DistinctLDiversity(3, _S),
        "entropy l=3": sf.EntropyLDiversity(3, _S),
        "recursive (4,3)": sf.RecursiveLDiversity(4, 3, _S),
        "t=0.2 equal": sf.TCloseness(0.2, _S),
        "t=0.2 hierarchical": sf.TCloseness(0.2, _S, distance="hierarchical"),
    }
    make = adult.fresh(adult.table(), sensitive=_S)
    for name, guarantee in guarantees.items():
        for best in WITH_SENSITIVE[name]:
            method = sf.Lattice(suppression=best.suppression)
            asked = [sf.KAnonymity(5), guarantee]
            yield Case(
                f"adult, k=5 and {name}, {best.suppression:.0%} suppression",
                lambda people, method=method, asked=asked: method.run(people, asked),
                peer=best.cpu_ms,
                bar=0.25 if best.suppression else 1.0,
                prepare=make,
                check=lambda outcome, best=best: differs(outcome, best),
                stretch=120.0 if best.suppression else 40.0,
                note="peer: ARX",
            )


def differs(outcome: Any, best: Optimum) -> str | None:
    """What is not as ARX found it."""
    details = outcome.details
    found = (tuple(details["levels"].values()), details["classes"], details["suppressed"])
    if found != (best.levels, best.classes, best.suppressed):
        return "another optimum than ARX's"
    if not details["optimal"]:
        return "not proven optimal"
    return None if abs(details["loss"] - best.loss) <= 5.000001e-6 else f"loss {details['loss']:.9f}, not {best.loss}"


def _local_recoding() -> Iterator[Case]:
    import sfumato as sf

    make = adult.fresh(adult.table())
    wanted = (("defaults", sf.LocalRecoding(), 0.9411, 0.3), ("step 0.0003", sf.LocalRecoding(step=0.0003), 0.9474, 2.2))
    for what, method, granularity, limit in wanted:
        yield Case(
            f"adult, local recoding k=5, granularity ≥ {granularity}, {what}",
            lambda people, method=method: method.run(people, [sf.KAnonymity(5)]),
            unit="s",
            limit=limit,
            prepare=make,
            check=lambda outcome, granularity=granularity: _too_coarse(outcome, granularity),
            remark=lambda outcome: f"granularity {1 - outcome.details['loss']:.4f}",
        )


def _too_coarse(outcome: Any, granularity: float) -> str | None:
    smallest = outcome.result.class_sizes().min()
    if smallest < 5:
        return f"a class of {smallest}"
    reached = 1 - outcome.details["loss"]
    return None if reached >= granularity else f"granularity {reached:.5f}, not {granularity}"


def _cell_suppression() -> Case:
    import sfumato as sf

    def remark(outcome: Any) -> str:
        cells = sum(outcome.details["suppressed_cells"].values())
        return f"{cells:,} cells and {outcome.details['suppressed']:,} records suppressed"

    return Case(
        "adult, cell suppression k=5, five keys",
        lambda people: sf.CellSuppression().run(people, [sf.KAnonymity(5)]),
        unit="s",
        limit=1.0,
        prepare=adult.fresh(adult.table(), quasi=adult.FIVE_KEYS),
        check=lambda outcome: None if outcome.result.class_sizes().min() >= 5 else "a class below 5",
        remark=remark,
    )
