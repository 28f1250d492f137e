"""How useful and how safe a release is: measures and attacks run on what was published."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sfumato.core.errors import ParameterError
from sfumato.core.progress import Progress
from sfumato.core.view import Attack, AttackResult, Score, View
from sfumato.data.released import ReleasedTable, ShownValue
from sfumato.workflow import named

if TYPE_CHECKING:
    from sfumato.data.class_table import ClassTable
    from sfumato.data.microdata import Microdata
    from sfumato.data.recoding import Recoding


@dataclass(frozen=True)
class Checks:
    """What is measured besides the guarantees: keys of measures, and attacks or their names."""

    utility: tuple[str, ...] = ("loss",)
    risk: tuple[str, ...] = ()
    attacks: tuple[Attack | str, ...] = ()


def scores_of(
    original: Microdata | None, released: ReleasedTable, checks: Checks, loss: float, progress: Progress
) -> tuple[Score, ...]:
    """The scores asked for; the loss is always among them and is exact, because the recoding states it per
    class.
    """
    scores = [
        Score(
            "loss",
            loss,
            "lower",
            "mean loss of detail per record and attribute: 0 keeps every value, 1 keeps none; a suppressed record costs 1",
        )
    ]
    others = [key for key in dict.fromkeys((*checks.utility, *checks.risk)) if key != "loss"]
    for position, key in enumerate(others):
        progress("measuring", position, len(others))
        scores.append(named.measure(key).score(original, released))
    return tuple(scores)


def attack_all(view: View, attacks: tuple[Attack | str, ...], progress: Progress) -> tuple[AttackResult, ...]:
    """Run the attacks on the published view, with nothing but what an outsider has."""
    results = []
    for position, attack in enumerate(attacks):
        progress("attacking", position, len(attacks))
        adversary = named.attack(attack) if isinstance(attack, str) else attack
        if not isinstance(adversary, Attack):
            raise ParameterError(f"{type(adversary).__name__} is not an attack. Pass attacks or their names.")
        results.append(adversary.run(view))
    return tuple(results)


def plain_result(result: AttackResult) -> Mapping[str, Any]:
    """An attack's result as a certificate states it."""
    return {
        "attack": result.attack,
        "success": result.success,
        "baseline": result.baseline,
        "interval": list(result.interval),
        "targets": result.targets,
        "finding": result.finding,
    }


def shown_ranges(table: ClassTable, recoding: Recoding) -> dict[str, dict[str, ShownValue]]:
    """What the shown values stand for that are no hierarchy nodes (ranges made by partitioning), by
    column and text.
    """
    found: dict[str, dict[str, ShownValue]] = {}
    for name, tree, shown in zip(table.quasi, table.hierarchies, recoding.shown, strict=True):
        known = set(tree.labels)
        extra = {
            label: ShownValue(float(shown.loss[i]), float(shown.sizes[i]), frozenset(), bounds=_bounds(label))
            for i, label in enumerate(shown.labels)
            if label is not None and label not in known
        }
        if extra:
            found[name] = extra
    return found


def _bounds(label: str) -> tuple[float, float] | None:
    """The half-open numeric extent of a range: `[28, 36)` ends before 36, `[1.5, 2.5]` just after 2.5."""
    from sfumato.measures.guarantees.cover import interval_of

    span = interval_of(label)
    if span is None:
        return None
    low, high, _, with_high = span
    return low, math.nextafter(high, math.inf) if with_high else high
