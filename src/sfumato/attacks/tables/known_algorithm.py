"""What the adversary of the minimality attack knows about the algorithm: stated by hand, or read from a certificate.

The reasoning is right for searches that never merge groups of people which keep every promise on their own. That is a
property of each search, so only those are read from a certificate that have it:

* `Lattice` publishes the least loss, and the original table, where it keeps the promises, loses nothing: global recoding.
* `Mondrian` (strict), `TopDown`, `LocalRecoding` (with its refinement), `LeastLoss` (whichever of its searches it keeps where
  sensitive values are protected) and `CellSuppression` split a class as long as all parts keep the promises, and parts made of
  groups that keep them do so too: local recoding.

Wong, Fu, Wang, Pei, "Minimality attack in privacy preserving data publishing", VLDB 2007.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from sfumato.core import registry
from sfumato.core.declared import Declared
from sfumato.core.errors import Unsupported
from sfumato.core.guarantees.base import TOLERANCE, ClassGuarantee, Knowledge
from sfumato.core.guarantees.k_anonymity import AlphaKAnonymity, KAnonymity
from sfumato.core.guarantees.l_diversity import DistinctLDiversity
from sfumato.core.ranges import Count, Each, Instance, Whole
from sfumato.core.view import View

Recoding = Literal["local", "global"]
#: What the searches do that can be reasoned about, each with the one setting under which it does so.
_SEARCHES: dict[str, tuple[Recoding, str, Any]] = {
    "CellSuppression": ("local", "", None),
    "Lattice": ("global", "time_limit", None),
    "LeastLoss": ("local", "", None),
    "LocalRecoding": ("local", "refine", True),
    "Mondrian": ("local", "relaxed", False),
    "TopDown": ("local", "", None),
}
_OR_SUPPOSE = "To suppose an algorithm, say what it requires: KnownAlgorithm(register, l=2), or 'Minimality(l=2)' as a command."


@dataclass(frozen=True, eq=False)
class KnownAlgorithm(Declared):
    """A public `register` of exactly the people behind the release with their raw quasi-identifiers (an Arrow table or a
    `Register`), and what the algorithm does: it merges people only where otherwise a class would have fewer than `k` of
    them or break `l`-diversity: no protected value in more than 1/l of a class (`requirement="frequency"`, `protected`:
    which values, by default all) or fewer than l different values in a class ("distinct").

    `recoding`: "local" merges class by class, each on its own need; "global" recodes the whole table at once, because of a
    violation somewhere. `refinement` is what the algorithm would have preferred: the "original" quasi-identifiers, or with
    local recoding "any split" of a class into two groups of people with equal quasi-identifiers.
    """

    register: Annotated[Any, "the people behind the release, with raw quasi-identifiers"] = field(repr=False)
    l: Annotated[int, Whole(at_least=2), "the diversity that the algorithm requires"]  # noqa: E741 - the name in the literature
    k: Annotated[Count, "people in a class, at the least"] = 1
    requirement: Annotated[Literal["frequency", "distinct"], "what diversity means"] = "frequency"
    protected: Annotated[
        tuple[str, ...] | None,
        Each(Instance(str), what="a list of values in their text form"),
        "the values that are protected; every value where left out",
    ] = field(default=None, repr=False)
    recoding: Annotated[Recoding, "whether classes are merged one by one or the table is recoded as a whole"] = "local"
    refinement: Annotated[Literal["original", "any split"], "what the algorithm would have preferred"] = "original"

    def coherent(self) -> Iterable[str]:
        if self.protected is not None and self.requirement != "frequency":
            yield "protected is for the requirement 'frequency'; distinct values protect all values"
        if self.refinement != "original" and self.recoding != "local":
            yield "the refinement 'any split' is for local recoding alone"


def published_algorithm(view: View[object, object], register: object) -> tuple[KnownAlgorithm, str]:
    """The algorithm that the view's certificate names, and the sensitive attribute it protects.

    Refused, with the reason, where the certificate names none, or one that may merge people for other reasons than the
    requirement that this attack reasons about.
    """
    recoding = _recoding_of(view.certificate.get("method"))
    k, required = 1, []
    for guarantee in _guarantees_of(view.certificate.get("claims")):
        if isinstance(guarantee, KAnonymity):
            if guarantee.knowledge not in (None, Knowledge()):
                raise _refused("k-anonymity against partial knowledge")
            k = max(k, guarantee.k)
            continue
        if isinstance(guarantee, AlphaKAnonymity):
            k = max(k, guarantee.k)
        if not _always_kept(guarantee):
            required.append(guarantee)
    if len(required) > 1:
        raise _refused("several guarantees about sensitive values, and which of them made it merge people cannot be told")
    if not required:
        raise Unsupported(
            "minimality: the release promises nothing about sensitive values, so none of them was a reason to merge people. "
            "There is nothing to find out this way."
        )
    l, requirement, protected = _requirement_of(required[0])  # noqa: E741
    return KnownAlgorithm(register, l, k, requirement, protected, recoding), str(required[0].sensitive)


def _recoding_of(method: Any) -> Recoding:
    name = method.get("name") if isinstance(method, Mapping) else None
    if not isinstance(name, str):
        raise Unsupported(f"minimality: there is no certificate that names the algorithm. {_OR_SUPPOSE}")
    if name not in _SEARCHES:
        raise Unsupported(
            f"minimality: the release was made by {name[:60]}, which may merge people without need, so that merging "
            f"them gives no reason away. The attack reasons about {', '.join(_SEARCHES)}. {_OR_SUPPOSE}"
        )
    recoding, setting, needed = _SEARCHES[name]
    if setting and method.get(setting) != needed:
        raise Unsupported(
            f"minimality: {name} with this '{setting}' may merge people without need, so that merging them gives no "
            f"reason away. {_OR_SUPPOSE}"
        )
    return recoding


def _guarantees_of(claims: Any) -> list[ClassGuarantee]:
    guarantees = []
    for claim in claims if isinstance(claims, Sequence) else ():
        parameters = claim.get("parameters") if isinstance(claim, Mapping) else None
        if not isinstance(parameters, Mapping):
            raise Unsupported(f"minimality: the certificate's claims cannot be read. {_OR_SUPPOSE}")
        if claim.get("unit", "record") != "record":
            raise _refused("different units, where this attack counts records")
        name = str(claim.get("guarantee")).split("(")[0]
        guarantees.append(registry.make("guarantee", {**parameters, "name": name}))
    return guarantees


def _always_kept(guarantee: ClassGuarantee) -> bool:
    """One value, one whole class, no protected value: nobody is merged for that."""
    if isinstance(guarantee, DistinctLDiversity):
        return guarantee.l == 1 or guarantee.protected_values == ()
    return isinstance(guarantee, AlphaKAnonymity) and (guarantee.alpha >= 1 or guarantee.protected_values == ())


def _requirement_of(guarantee: ClassGuarantee) -> tuple[int, Literal["frequency", "distinct"], tuple[str, ...] | None]:
    if isinstance(guarantee, DistinctLDiversity):
        if guarantee.protected_values is not None:
            raise _refused("distinct values in classes with a protected value alone")
        return guarantee.l, "distinct", None
    if isinstance(guarantee, AlphaKAnonymity):
        people = round(1 / guarantee.alpha)
        if abs(guarantee.alpha * people - 1) > TOLERANCE:
            raise _refused("a share that is not one half, one third, one quarter and so on")
        return people, "frequency", guarantee.protected_values
    raise _refused(guarantee.name)


def _refused(promise: str) -> Unsupported:
    return Unsupported(
        f"minimality: the release promises {promise}. The attack reasons about one DistinctLDiversity without protected values, "
        f"or one AlphaKAnonymity with alpha = 1/2, 1/3, …, beside k-anonymity. {_OR_SUPPOSE}"
    )
