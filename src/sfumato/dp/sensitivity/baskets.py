"""Sensitivities for baskets: how much a count of one article changes by a customer, a transaction, or an item.

What differs between neighbours is a choice: whoever owns several transactions is protected only if the customer is.
"""

from __future__ import annotations

from typing import Literal

from sfumato.core.declared import require
from sfumato.core.guarantees.loss import Neighbours
from sfumato.dp.sensitivity.base import Sensitivity

Differing = Literal["customer", "transaction", "item"]


def units_sold(
    differing: Differing, *, transactions: int = 1, units: int = 1, neighbours: Neighbours = "add_remove"
) -> Sensitivity:
    """How often one article was bought, when a customer has at most `transactions` of at most `units` of it each.

    A differing customer changes it by transactions × units, a transaction by units, one item in a basket by 1; the same
    when one is replaced, since both stay between none and that many.
    """
    require(transactions >= 1 and units >= 1, "the most transactions of a customer and units in a transaction are at least 1")
    most = {"customer": transactions * units, "transaction": units, "item": 1}
    require(differing in most, "differing is 'customer', 'transaction' or 'item'")
    return Sensitivity.of(
        most[differing], neighbours, unit=differing, why=f"one {differing} holds at most {most[differing]} of it"
    )
