"""Losses of one kind stated in another, always upwards: what follows is true, though it may say less.

ε is (ε, 0), is ε²/2-zCDP, and bounds the Rényi divergence of each order; ρ-zCDP bounds order α by ρα; what becomes (ε, δ)
from zCDP or Rényi needs a δ. A Rényi divergence never falls with its order, so a bound holds for every smaller order.
Bun, Steinke, "Concentrated differential privacy", TCC 2016 (Proposition 1.4); Mironov, "Rényi differential privacy",
CSF 2017.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from sfumato.core.errors import Unsupported
from sfumato.core.exact import Number
from sfumato.core.guarantees.loss import ApproxDP, ConcentratedDP, LossGuarantee, PureDP, RenyiDP
from sfumato.dp.accounting.renyi import approx_from_renyi, pure_divergence
from sfumato.dp.accounting.zcdp import approx_from_zcdp

Kind = Literal["pure", "approx", "zcdp", "renyi"]

_KINDS: dict[type[LossGuarantee], Kind] = {PureDP: "pure", ApproxDP: "approx", ConcentratedDP: "zcdp", RenyiDP: "renyi"}


def kind_of(loss: LossGuarantee) -> Kind:
    """Which of the four kinds a loss is; others have accountings of their own."""
    kind = _KINDS.get(type(loss))
    if kind is None:
        raise Unsupported(f"{loss.name} does not compose with central losses (PureDP, ApproxDP, ConcentratedDP, RenyiDP)")
    return kind


def common_kind(losses: tuple[LossGuarantee, ...]) -> Kind:
    """The weakest kind among the losses, which all of them can be stated in."""
    kinds = {kind_of(loss) for loss in losses}
    for kind in ("approx", "renyi", "zcdp"):
        if kind in kinds:
            return kind
    return "pure"


def as_approx(loss: LossGuarantee, delta: Number | None = None) -> ApproxDP:
    """The loss as (ε, δ). A zCDP or Rényi loss spends the named δ; a pure one needs none."""
    match loss:
        case ApproxDP():
            return loss
        case PureDP(epsilon=epsilon):
            return ApproxDP(epsilon, 0, neighbours=loss.neighbours, unit=loss.unit)
        case ConcentratedDP() | RenyiDP() if delta is None:
            raise Unsupported(f"{loss.name} is (epsilon, delta)-differential privacy for every delta: name one, for example 1e-6")
        case ConcentratedDP():
            return approx_from_zcdp(loss, delta)  # type: ignore[arg-type]
        case RenyiDP():
            return approx_from_renyi(loss, delta=delta)  # type: ignore[arg-type]
    raise Unsupported(f"{loss.name} cannot be stated as (epsilon, delta)-differential privacy")


def as_zcdp(loss: LossGuarantee) -> ConcentratedDP:
    """The loss as ρ; an (ε, δ) loss with δ above zero and a Rényi loss of one order have no such bound."""
    match loss:
        case ConcentratedDP():
            return loss
        case PureDP(epsilon=epsilon):
            return ConcentratedDP(Fraction(epsilon) ** 2 / 2, neighbours=loss.neighbours, unit=loss.unit)
        case ApproxDP(epsilon=epsilon, delta=0):
            return ConcentratedDP(Fraction(epsilon) ** 2 / 2, neighbours=loss.neighbours, unit=loss.unit)
    raise Unsupported(
        f"{loss.name} has no bound for Rényi divergences of all orders, as zCDP needs; state the others as ApproxDP"
    )


def as_renyi(loss: LossGuarantee, order: Number) -> RenyiDP:
    """The loss as a Rényi divergence of this order."""
    order = Fraction(RenyiDP(order, 0).order)
    match loss:
        case RenyiDP(order=theirs, epsilon=epsilon) if order <= Fraction(theirs):
            return RenyiDP(order, epsilon, neighbours=loss.neighbours, unit=loss.unit)
        case RenyiDP():
            raise Unsupported("a Rényi loss bounds its own order and smaller ones, not larger ones")
        case ConcentratedDP(rho=rho):
            return RenyiDP(order, Fraction(rho) * order, neighbours=loss.neighbours, unit=loss.unit)
        case PureDP(epsilon=epsilon) | ApproxDP(epsilon=epsilon, delta=0):
            return RenyiDP(order, pure_divergence(epsilon, order), neighbours=loss.neighbours, unit=loss.unit)
    raise Unsupported(f"{loss.name} does not bound Rényi divergences; state the others as ApproxDP")
