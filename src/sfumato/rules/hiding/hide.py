"""Hiding in one call: a method by name or as it is, and the side effects counted beside."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING

from sfumato.core import registry
from sfumato.core.guarantees.hidden import Hidden
from sfumato.core.progress import ProgressLike, silent
from sfumato.rules.effects_of_hiding import side_effects

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sfumato.core.outcome import Outcome
    from sfumato.data.transactions import Transactions
    from sfumato.rules.hiding.base import Hiding


def hide(
    transactions: Transactions,
    itemsets: Hidden | Iterable[Iterable[str]],
    support: float | None = None,
    *,
    confidence: float | None = None,
    rules: Iterable[tuple[Iterable[str], Iterable[str]]] = (),
    method: Hiding | str | Mapping[str, object] | None = None,
    seed: int | str | None = None,
    progress: ProgressLike = silent,
) -> Outcome[Transactions]:
    """Change baskets until these itemsets and rules are not derived from them: a `Hidden`, or what one is made of. By default
    rules alone lose their confidence and everything else its support, near the border. `sf.publish` makes a release of the
    outcome, whose details count the side effects.

    >>> from sfumato.data.transactions import Transactions
    >>> baskets = Transactions.of([["a", "b"], ["a", "b", "c"], ["a", "c"]])
    >>> hide(baskets, [["a", "b"]], 2).details["side_effects"].hiding_failures
    0
    """
    hidden = itemsets if isinstance(itemsets, Hidden) else Hidden(itemsets, support, confidence, rules)  # type: ignore[arg-type]
    default = "BorderBased" if hidden.itemsets else "ConfidenceReduction"
    chosen: Hiding = registry.make("hiding", default if method is None else method)
    outcome = chosen.run(transactions, hidden, seed=seed, progress=progress)
    effects = side_effects(transactions, outcome.result, hidden)
    return dataclasses.replace(outcome, details={**outcome.details, "side_effects": effects})
