"""Floating-point arithmetic as it stands, for terms that whoever asks has bounded: no operand is moved, and each is written once.

Sums and products of IEEE numbers are the same on every engine. `Arithmetic` is for terms that may be anything.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.engines.expressions import NUMERIC, Dialect, Kind, RowFunction, expect
from sfumato.engines.sql.values import as_kind


@dataclass(frozen=True)
class Affine(RowFunction):
    """first + second · third, missing where one of them is.

    The terms are within 1e150 in size, and a product other than zero is not closer to it than 1e-300.
    """

    def kind(self, kinds: tuple[Kind, ...]) -> Kind:
        if len(kinds) != 3:
            raise Unsupported("Affine has three terms")
        for kind in kinds:
            expect(kind, NUMERIC, "Affine")
        return "number"

    def sql(self, terms: tuple[exp.Expression, ...], kinds: tuple[Kind, ...], dialect: Dialect) -> exp.Expression:
        first, second, third = (as_kind(term, "number", dialect) for term in terms)
        return exp.Paren(this=exp.Add(this=first, expression=exp.Paren(this=exp.Mul(this=second, expression=third))))
