"""How losses add up: in a row, over disjoint parts, for groups, between neighbour relations and units.

Pure functions of frozen losses; rational where the rule is rational, rounded up where it needs an exponential.
Dwork, Roth, "The algorithmic foundations of differential privacy", 2014 (sections 2.3 and 3.5); McSherry, "Privacy
integrated queries", SIGMOD 2009 (parallel composition); Bun, Steinke, "Concentrated differential privacy", TCC 2016
(Propositions 1.7 and 1.9); Mironov, "Rényi differential privacy", CSF 2017 (Propositions 1 and 2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from sfumato.core.declared import require
from sfumato.core.errors import Unsupported
from sfumato.core.exact import Number
from sfumato.core.guarantees.loss import ApproxDP, ConcentratedDP, LossGuarantee, Neighbours, PureDP, RenyiDP
from sfumato.dp.accounting.conversion import Kind, as_approx, as_renyi, as_zcdp, common_kind, kind_of
from sfumato.dp.accounting.enclosure import Enclosure

_PARTS: dict[Kind, tuple[str, ...]] = {
    "pure": ("epsilon",),
    "approx": ("epsilon", "delta"),
    "zcdp": ("rho",),
    "renyi": ("epsilon",),
}


def sequential(*losses: LossGuarantee, delta: Number | None = None) -> LossGuarantee:
    """The loss of several answers about the same data: sums, after stating all in the weakest kind among them.

    Where zCDP or Rényi losses meet an (ε, δ) loss, they are composed among themselves first and then stated as (ε, δ)
    with the named `delta`, which comes on top of theirs.

    >>> sequential(PureDP("0.1"), PureDP("0.2")).epsilon
    Fraction(3, 10)
    """
    if delta is not None and common_kind(losses) == "approx":
        concentrated = tuple(loss for loss in losses if kind_of(loss) in ("zcdp", "renyi"))
        if concentrated:
            others = tuple(loss for loss in losses if loss not in concentrated)
            return sequential(as_approx(sequential(*concentrated), delta), *others)
    return _combined(alike(losses), sum)


def parallel(*losses: LossGuarantee, parts: int = 1) -> LossGuarantee:
    """The loss of several answers of which each reads another part of the data: the largest, not the sum.

    Each loss is that of its answer as a function of the whole data, and one unit's data lies in at most `parts` of the
    parts (one, where the parts are disjoint in units). If one unit is added or removed, only those parts change. If one
    unit is replaced by another, the old unit's parts and the new unit's parts change, so twice as many losses are added.

    >>> parallel(PureDP("0.1"), PureDP("0.2")).epsilon
    Fraction(1, 5)
    """
    require(isinstance(parts, int) and parts >= 1, "one unit's data lies in at least one part")
    stated = alike(losses)
    changed = parts if stated[0].neighbours == "add_remove" else 2 * parts
    return _combined(stated, lambda values: sum(sorted(values, reverse=True)[:changed], Fraction(0)))


def post_processed(loss: LossGuarantee) -> LossGuarantee:
    """Whatever is computed from an answer alone costs nothing more; a new look at the data is a new answer."""
    return loss


def repeated(loss: LossGuarantee, times: int) -> LossGuarantee:
    """The loss of the same mechanism run several times on the same data."""
    require(isinstance(times, int) and times >= 0, "a mechanism runs a whole number of times")
    return _scaled(loss, Fraction(times))


def group(loss: LossGuarantee, size: int) -> LossGuarantee:
    """The loss towards `size` units together, for the same relation: kε, (kε, δ(e^(kε) − 1)/(e^ε − 1)), k²ρ.

    A Rényi loss of order α holds for 2^c units as 3^c·ε at order α/2^c, if that order is at least 2.
    """
    require(isinstance(size, int) and size >= 1, "a group has at least one unit")
    if size == 1:
        return loss
    match loss:
        case PureDP(epsilon=epsilon):
            return replace(loss, epsilon=Fraction(epsilon) * size)
        case ConcentratedDP(rho=rho):
            return replace(loss, rho=Fraction(rho) * size**2)
        case ApproxDP(epsilon=epsilon, delta=delta):
            return replace(loss, epsilon=Fraction(epsilon) * size, delta=_group_delta(Fraction(epsilon), Fraction(delta), size))
        case RenyiDP(order=order, epsilon=epsilon):
            doublings = (size - 1).bit_length()
            lowered = Fraction(order) / 2**doublings
            if lowered < 2:
                raise Unsupported(
                    f"a Rényi loss speaks for groups of {size} from order {2 ** (doublings + 1)} on; account in a higher order"
                )
            return replace(loss, order=lowered, epsilon=Fraction(epsilon) * 3**doublings)
    raise Unsupported(f"the privacy of groups is not defined for {loss.name}")


def between(loss: LossGuarantee, neighbours: Neighbours) -> LossGuarantee:
    """The same mechanism's loss under another neighbour relation.

    Replacing a unit is removing one and adding another, so an add/remove loss holds for a group of two. The other way
    round nothing follows: under replacement the number of units is public and may be released as it is.
    """
    if neighbours == loss.neighbours:
        return loss
    if neighbours == "replace":
        return group(loss, 2).about(neighbours="replace")
    require(neighbours == "add_remove", "neighbours is one of add_remove, replace")
    raise Unsupported(
        "a loss stated for replaced units says nothing about one unit added or removed: there the number of units is public. "
        "Compute the mechanism's sensitivity for add_remove instead"
    )


def for_unit(loss: LossGuarantee, unit: str, records: int) -> LossGuarantee:
    """A loss per record stated for a unit that owns at most so many records (a user, a household).

    Under add_remove a unit's records come or go one by one. A loss for replaced records does not cover a unit whose
    number of records changes and is refused.
    """
    if loss.neighbours == "replace":
        raise Unsupported(
            "a loss for replaced records does not cover a unit with more or fewer records; state the loss for add_remove"
        )
    return group(loss, records).about(unit=unit)


def alike(losses: Sequence[LossGuarantee]) -> tuple[LossGuarantee, ...]:
    """The losses stated in one kind, for one relation and unit."""
    require(len(losses) > 0, "there is no loss to compose; state the kind by a loss of 0, for example PureDP(0)")
    first = losses[0]
    for loss in losses:
        require(
            loss.neighbours == first.neighbours,
            "the losses are stated for different neighbour relations; state them for 'replace' with sfumato.dp.between",
        )
        require(
            loss.unit == first.unit,
            "the losses protect different units; state them for one with sfumato.dp.for_unit",
        )
    kind = common_kind(tuple(losses))
    if kind == "pure":
        return tuple(losses)
    if kind == "zcdp":
        return tuple(as_zcdp(loss) for loss in losses)
    if kind == "approx":
        return tuple(as_approx(loss) for loss in losses)
    order = min(Fraction(loss.order) for loss in losses if isinstance(loss, RenyiDP))
    return tuple(as_renyi(loss, order) for loss in losses)


def parts_of(loss: LossGuarantee) -> dict[str, Fraction]:
    """The numbers of a loss that add up: ε, ε and δ, or ρ."""
    return {name: Fraction(getattr(loss, name)) for name in _PARTS[kind_of(loss)]}


def with_parts(loss: LossGuarantee, parts: dict[str, Fraction]) -> LossGuarantee:
    """The loss with other numbers; δ is capped at 1, beyond which it says nothing more."""
    if "delta" in parts:
        parts = {**parts, "delta": min(parts["delta"], Fraction(1))}
    return replace(loss, **parts)  # type: ignore[arg-type]


def _combined(stated: tuple[LossGuarantee, ...], combine: Callable[[list[Fraction]], Fraction | int]) -> LossGuarantee:
    listed = [parts_of(loss) for loss in stated]
    return with_parts(stated[0], {name: Fraction(combine([each[name] for each in listed])) for name in listed[0]})


def _scaled(loss: LossGuarantee, factor: Fraction) -> LossGuarantee:
    return with_parts(loss, {name: value * factor for name, value in parts_of(loss).items()})


def _group_delta(epsilon: Fraction, delta: Fraction, size: int) -> Fraction:
    if delta == 0:
        return Fraction(0)
    if epsilon == 0:
        return min(delta * size, Fraction(1))
    # (e^(kε) − 1)/(e^ε − 1) = 1 + e^ε + … + e^((k−1)ε), at least e^((k−1)ε): beyond 1 the number says nothing.
    if epsilon * (size - 1) > 1000:
        return Fraction(1)
    growth = Enclosure.of(epsilon)
    factor = ((growth * size).exp() - 1) / (growth.exp() - 1)
    return min((factor * delta).up(), Fraction(1))
