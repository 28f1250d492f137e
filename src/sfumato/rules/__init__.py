"""Rules: what is mined from baskets, and how some of it is hidden before they are published.

Frequent, closed and maximal itemsets and rules between them; methods that change baskets until what is on the owner's list is not
derived any more (`Hidden`), with what that costs.
"""

from __future__ import annotations

from sfumato.core.lazy import Kind, face, names_in_stub

NAMES = names_in_stub(__file__)
KINDS = {"hiding": Kind("sfumato.rules.hiding.base:Hiding", ("sfumato.rules.hiding",))}
__all__, __getattr__, __dir__ = face(__name__, NAMES)
