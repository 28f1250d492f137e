"""Amounts of privacy loss as exact rational numbers: pure ε, approximate (ε, δ), zero-concentrated ρ.

Losses of one kind add up by sequential composition; a loss of another kind is first converted upward, and
only where the conversion is exact in rational numbers: ε is (ε, 0), and ε is ρ = ε²/2. Everything else is
refused.
Dwork, Roth, "The algorithmic foundations of differential privacy", 2014 (sequential composition);
Bun, Steinke, "Concentrated differential privacy", TCC 2016 (Propositions 1.4 and 1.7: ε gives ε²/2, ρ adds
up).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal

from sfumato.core.declared import Declared
from sfumato.core.errors import BudgetRefused, ParameterError
from sfumato.core.exact import Number, exact, exactly_shown, shown
from sfumato.core.guarantees.loss import RECORD, ApproxDP, ConcentratedDP, LossGuarantee, Neighbours, PureDP
from sfumato.core.plain_data import Plain
from sfumato.core.ranges import Range, Refused

Kind = Literal["pure", "approx", "zcdp"]

#: How the kinds are called where people read.
SYMBOLS: dict[Kind, str] = {"pure": "ε", "approx": "ε with δ", "zcdp": "ρ"}
_PARTS: dict[str, tuple[str, ...]] = {"pure": ("epsilon",), "approx": ("epsilon", "delta"), "zcdp": ("rho",)}
_STORED = re.compile(r"(0|[1-9][0-9]*)/([1-9][0-9]*)")

#: One amount may be as fine as `core.exact` allows; a total of many may grow to this, in bits.
TOTAL_BITS = 8192


@dataclass(frozen=True)
class _Exact(Range):
    """Fractions from 0 up, as long as those of a total may be; nothing else is converted here."""

    at_most: int | None = None

    @property
    def words(self) -> str:
        return "an exact number " + ("of at least 0" if self.at_most is None else f"from 0 to {self.at_most}")

    def settled(self, value: object) -> Fraction:
        if not isinstance(value, Fraction) or value < 0 or (self.at_most is not None and value > self.at_most):
            raise self.refuse(value)
        if max(value.numerator.bit_length(), value.denominator.bit_length()) > TOTAL_BITS:
            raise Refused("has too many digits; use a decimal with fewer places")
        return value


@dataclass(frozen=True)
class LossAmount(Declared):
    """How much privacy is lost, or may be lost: never negative, exact.

    >>> LossAmount.pure("0.1").plus(LossAmount.pure("0.2")) == LossAmount.pure("0.3")
    True
    """

    kind: Annotated[Kind, "how the loss is measured"]
    epsilon: Annotated[Fraction | None, _Exact(), "ε"] = None
    delta: Annotated[Fraction | None, _Exact(at_most=1), "δ"] = None
    rho: Annotated[Fraction | None, _Exact(), "ρ"] = None

    def coherent(self) -> Iterator[str]:
        """A kind has its own parts and no others."""
        if any((getattr(self, part) is not None) != (part in _PARTS[self.kind]) for part in ("epsilon", "delta", "rho")):
            yield f"a loss of kind '{self.kind}' has exactly {' and '.join(_PARTS[self.kind])}"

    @classmethod
    def pure(cls, epsilon: Number) -> LossAmount:
        """ε-differential privacy. A float counts as the decimal it prints as: 0.1 is exactly 1/10."""
        return cls("pure", epsilon=exact(epsilon, "epsilon"))

    @classmethod
    def approx(cls, epsilon: Number, delta: Number) -> LossAmount:
        """(ε, δ)-differential privacy."""
        return cls("approx", epsilon=exact(epsilon, "epsilon"), delta=exact(delta, "delta"))

    @classmethod
    def zcdp(cls, rho: Number) -> LossAmount:
        """ρ-zero-concentrated differential privacy."""
        return cls("zcdp", rho=exact(rho, "rho"))

    @classmethod
    def of(cls, guarantee: LossGuarantee) -> LossAmount:
        """What a guarantee costs; the neighbour relation and the unit stand beside it, in `Protected`."""
        match guarantee:
            case PureDP(epsilon=epsilon):
                return cls("pure", epsilon=Fraction(epsilon))
            case ApproxDP(epsilon=epsilon, delta=delta):
                return cls("approx", epsilon=Fraction(epsilon), delta=Fraction(delta))
            case ConcentratedDP(rho=rho):
                return cls("zcdp", rho=Fraction(rho))
        raise ParameterError(
            f"{guarantee.name} cannot be charged to a ledger, which holds PureDP, ApproxDP and ConcentratedDP; convert it first"
        )

    def guarantee(self, neighbours: Neighbours = "add_remove", unit: str = RECORD) -> LossGuarantee:
        """The guarantee that costs this."""
        if self.rho is not None:
            return ConcentratedDP(self.rho, neighbours=neighbours, unit=unit)
        if self.delta is not None:
            return ApproxDP(self.epsilon or 0, self.delta, neighbours=neighbours, unit=unit)
        return PureDP(self.epsilon or 0, neighbours=neighbours, unit=unit)

    @classmethod
    def nothing(cls, kind: Kind) -> LossAmount:
        """The zero of a kind."""
        return cls(kind, **dict.fromkeys(_PARTS[kind], Fraction(0)))

    def converted(self, kind: Kind) -> LossAmount:
        """The same guarantee stated in another kind, where that is exact; otherwise refused."""
        if kind == self.kind:
            return self
        if self.kind == "pure" and self.epsilon is not None:
            if kind == "approx":
                return LossAmount("approx", epsilon=self.epsilon, delta=Fraction(0))
            if kind == "zcdp":
                return LossAmount("zcdp", rho=self.epsilon**2 / 2)
        raise BudgetRefused(f"{self} has no exact counterpart in {SYMBOLS[kind]}; of amounts only ε has others")

    def converts_to(self, kind: Kind) -> bool:
        """Whether `converted` can state it in that kind."""
        return kind == self.kind or self.kind == "pure"

    @property
    def options(self) -> str:
        """The options of a command that state this amount."""
        stated = ((part, getattr(self, part)) for part in _PARTS[self.kind])
        return " ".join(f"--{part} {exactly_shown(value)}" for part, value in stated)

    def at_least(self, other: LossAmount) -> LossAmount:
        """The larger of each part of both."""
        return self._combined(other.converted(self.kind), max)

    def plus(self, other: LossAmount) -> LossAmount:
        """Both losses in a row; δ is capped at 1, beyond which it says nothing more."""
        theirs = other.converted(self.kind)
        return self._combined(theirs, lambda mine, added: mine + added)

    def minus(self, other: LossAmount) -> LossAmount:
        """What is left of this amount, never below zero."""
        theirs = other.converted(self.kind)
        return self._combined(theirs, lambda mine, taken: max(mine - taken, Fraction(0)))

    def lower(self, other: LossAmount) -> LossAmount:
        """The smaller of both, part by part; the other is of the same kind."""
        return self._combined(other.converted(self.kind), min)

    def within(self, limit: LossAmount) -> bool:
        """True when no part exceeds the limit, which is of the same kind."""
        mine = self.converted(limit.kind)
        return all(getattr(mine, part) <= getattr(limit, part) for part in _PARTS[limit.kind])

    def to_mapping(self) -> dict[str, str]:
        """Plain data: `{"kind": "pure", "epsilon": "1/10"}`, always as numerator/denominator."""
        parts = {part: getattr(self, part) for part in _PARTS[self.kind]}
        return {"kind": self.kind, **{part: f"{v.numerator}/{v.denominator}" for part, v in parts.items()}}

    @classmethod
    def from_mapping(cls, mapping: Plain) -> LossAmount:
        """Read plain data back; exactly the written form is accepted."""
        kind = mapping.get("kind")
        if kind not in _PARTS or set(mapping) != {"kind", *_PARTS[kind]}:
            raise ParameterError("not an amount of privacy loss")
        return cls(kind, **{part: _stored(mapping[part]) for part in _PARTS[kind]})

    def __str__(self) -> str:
        symbols = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}
        return ", ".join(f"{symbols[part]} = {shown(getattr(self, part))}" for part in _PARTS[self.kind])

    def _combined(self, other: LossAmount, combine: Any) -> LossAmount:
        parts = {part: combine(getattr(self, part), getattr(other, part)) for part in _PARTS[self.kind]}
        if "delta" in parts:
            parts["delta"] = min(parts["delta"], Fraction(1))
        if any(v.denominator.bit_length() > TOTAL_BITS or v.numerator.bit_length() > TOTAL_BITS for v in parts.values()):
            raise BudgetRefused(
                "the amounts spent so far have no common fraction of reasonable size. Ask with a decimal amount, such as 0.05."
            )
        return LossAmount(self.kind, **parts)


def _stored(text: Any) -> Fraction:
    match = _STORED.fullmatch(text) if isinstance(text, str) and len(text) < TOTAL_BITS else None
    if match is None:
        raise ParameterError("not an amount of privacy loss")
    return Fraction(int(match[1]), int(match[2]))
