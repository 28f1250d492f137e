"""Ways of hiding side by side: what is still derived or guessed against what is lost, on one map.

Duncan, Keller-McNulty, Stokes, "Disclosure risk vs. data utility: the R-U confidentiality map", NISS 2001.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core import registry
from sfumato.core.declared import parameters
from sfumato.core.errors import Infeasible, InputError
from sfumato.core.guarantees.hidden import Hidden
from sfumato.core.progress import ProgressLike, shown, silent
from sfumato.core.view import AttackResult, View

if TYPE_CHECKING:
    from sfumato.data.transactions import Transactions
    from sfumato.rules.effects_of_hiding import SideEffects
    from sfumato.rules.hiding.base import Hiding


@dataclass(frozen=True)
class ComparedHiding:
    """One method: its side effects, and how much of the list is guessed after it."""

    method: Hiding
    effects: SideEffects
    guess: AttackResult

    @property
    def risk(self) -> float:
        """The share of the list that is still derived, or guessed above chance; the larger of both."""
        above = (self.guess.success - self.guess.baseline) / (1 - self.guess.baseline) if self.guess.baseline < 1 else 0.0
        return max(self.effects.hiding_failure, above, 0.0)

    @property
    def loss(self) -> float:
        """The share of the other itemsets that is lost, or of the other rules where that is larger."""
        return max(self.effects.lost_share, self.effects.lost_rules_share)

    @property
    def label(self) -> str:
        """The method with the parameters that are not its defaults."""
        stated = parameters(self.method)
        usual = parameters(type(self.method)())
        own = ", ".join(f"{name}={value}" for name, value in stated.items() if usual.get(name) != value)
        return f"{self.method.name}({own})" if own else self.method.name


@dataclass(frozen=True)
class HidingComparison:
    """The methods that hide everything on the list, the one with the least loss first, and why others are missing."""

    compared: tuple[ComparedHiding, ...]
    refused: Mapping[str, str] = field(default_factory=dict)

    def to_mapping(self) -> list[dict[str, object]]:
        """Plain data, a method in each entry."""
        return [
            {
                "method": each.label,
                "risk": each.risk,
                "loss": each.loss,
                "guessed": each.guess.success,
                **each.effects.to_mapping(),
            }
            for each in self.compared
        ]

    def map(self) -> str:
        """The methods by loss and risk, as SVG; the original loses nothing and hides nothing."""
        from sfumato.report.figures.risk_utility import Mark, RiskUtility, risk_utility

        def beaten(one: ComparedHiding) -> bool:
            return any(
                other.risk <= one.risk and other.loss <= one.loss and (other.risk, other.loss) != (one.risk, one.loss)
                for other in self.compared
            )

        marks = [
            Mark(each.method.name, each.label, each.risk, each.loss, each.label, best=not beaten(each)) for each in self.compared
        ]
        risk, loss = "share of the list derived or guessed", "share of the rest that is lost"
        return risk_utility(RiskUtility(marks, original=(1.0, 0.0), risk_label=risk, loss_label=loss))

    def save_map(self, path: str | Path) -> None:
        """Write the map as an SVG file."""
        Path(path).write_text(self.map(), encoding="utf-8")


def compare_hiding(
    transactions: Transactions,
    hidden: Hidden,
    methods: Iterable[Hiding | str | Mapping[str, object]] = (),
    *,
    seed: int | str | None = None,
    progress: ProgressLike = silent,
) -> HidingComparison:
    """Hide by several methods, and measure what each leaves and loses; by default by all that can hide what is listed.

    >>> from sfumato.data.transactions import Transactions
    >>> baskets = Transactions.of([["a", "b"], ["a", "b", "c"], ["a", "c"], ["b", "c"]])
    >>> [each.effects.hiding_failures for each in compare_hiding(baskets, Hidden([["a", "b"]], 2)).compared]
    [0, 0, 0, 0]
    """
    from sfumato.attacks.outputs.guess_hidden import GuessHidden
    from sfumato.rules.hiding.hide import hide

    asked = [registry.make("hiding", each) for each in methods]
    usual = [kind() for kind in registry.every("hiding").values() if not (kind.of_rules and hidden.itemsets)]
    attack, refused = GuessHidden(), {}
    knowledge = attack.knowledge_from({"itemsets": hidden})
    facts = {"claims": [{"guarantee": hidden.key, "parameters": hidden.thresholds}]}
    compared = []
    with shown(progress) as receiver:
        for place, method in enumerate(asked or usual):
            receiver("comparing", place, len(asked or usual))
            try:
                outcome = hide(transactions, hidden, method=method, seed=seed)
            except (InputError, Infeasible) as refusal:
                if asked:
                    raise
                refused[method.name] = str(refusal)  # too large for it, or without a way: the others are compared
                continue
            guess = attack.run(View(outcome.result, None, facts), knowledge)
            compared.append(ComparedHiding(method, outcome.details["side_effects"], guess))
    return HidingComparison(tuple(sorted(compared, key=lambda each: (each.loss, each.risk, each.label))), refused)
