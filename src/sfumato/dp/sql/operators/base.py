"""An operator or function of the language in one row: what it means over rows, and over answers.

Whatever is asked of an expression follows from the rows of its operators (`language`): its term with kind and bounds, its value
for a group, its values for all that the noise may have been, how far noise moves it, and its line in docs/dp/sql.md.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.dp.sql.operators.box import Box
from sfumato.dp.sql.operators.term import Term
from sfumato.dp.sql.parse import function_name

#: A value of an answer: a key, a noisy number, or missing. Of any kind, because keys are.
Cell: TypeAlias = Any
Floats: TypeAlias = NDArray[np.float64]
#: A node of the parsed query: of any type, because each operator knows the arguments of its own.
Node: TypeAlias = Any

#: What the parts of a node are: terms over rows; kinds, cells, arrays and boxes over answers.
Terms: TypeAlias = Callable[[exp.Expression], Term]
Kinds: TypeAlias = Callable[[exp.Expression], str | None]
Cells: TypeAlias = Callable[[exp.Expression], Cell]
Arrays: TypeAlias = Callable[[exp.Expression], Floats | None]
Boxes: TypeAlias = Callable[[exp.Expression], Box | None]


@dataclass(frozen=True)
class OverAnswers:
    """What an operator does to keys and noisy numbers, computed here and never in an engine.

    `kind` refuses kinds that it does not take. `cell` is its value for one group; what fails has none, because the answer is paid
    for by then. `array` is the same for many groups and possible noises at once: what has no value is not a number, and the first
    column is what is shown. It is None where the operator jumps, so that its error is unknown. `image` is where the value lies
    when its arguments lie in boxes; without one it is known for a sum of one argument only.

    `linear` says how noise passes through: as in a sum (of any of its arguments), a product with a constant, a quotient by one.
    `contracts` says that it makes no two values of its first argument (or of the single one with noise) differ more, and `turns`
    whether they then rise together (1), turn round (-1) or may do either (0). `rounding` is the step that a node rounds to, with
    what is rounded; `divisor` the argument where a node has no value when that is zero.
    """

    kind: Callable[[Node, Kinds], str | None]
    cell: Callable[[Node, Cells], Cell]
    array: Callable[[Node, Arrays], Floats | None] | None = None
    linear: Literal["sum", "product", "quotient"] | None = None
    contracts: Literal["first", "single"] | None = None
    turns: int = 1
    rounding: Callable[[Node, Cells], tuple[float, exp.Expression] | None] = lambda node, cells: None
    divisor: Callable[[Node, Cells], exp.Expression | None] = lambda node, cells: None
    image: Callable[[Node, Boxes], Box | None] | None = None


@dataclass(frozen=True)
class Operator:
    """One operator or function.

    `spelled` is how the docs write it, `words` what it means, also where it would have no value; without words it is not listed.
    `nodes` are how the parser reads it; without any it is found by its name. `reads` are what it reads of a node beside its
    arguments: anything else is refused, not passed over. `rows` is its term over rows, total and the same on every engine, or why
    there is none; `answers` what it does to answers, None where it cannot be used there.
    """

    spelled: str
    nodes: tuple[type[exp.Expression], ...] = ()
    words: str = ""
    rows: Callable[[Node, Terms], Term] | str = ""
    answers: OverAnswers | None = None
    reads: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The function's name, without its arguments."""
        return self.spelled.partition("(")[0].upper()


def arguments(node: exp.Expression) -> list[exp.Expression]:
    """What a node is applied to."""
    args = node.args
    listed = [args.get("this"), args.get("expression"), *(args.get("expressions") or ())]
    return [part for part in listed if isinstance(part, exp.Expression)]


def constant_of(term: Term, where: str) -> Fraction:
    """The number of a constant term; anything else is refused."""
    value = term.constant
    if value is None:
        raise Unsupported(f"{where} takes constants")
    return value


# Kinds over answers ----------------------------------------------------------------------------------------------------


def takes(allowed: str) -> Callable[[exp.Expression, Kinds], str | None]:
    """All arguments are of one kind, and so is the result."""

    def kind(node: exp.Expression, kinds: Kinds) -> str | None:
        expect((kinds(part) for part in node.iter_expressions()), allowed, node)
        return allowed

    return kind


def expect(kinds: Iterable[str | None], allowed: str, node: exp.Expression) -> None:
    """Refuse arguments of another kind; a missing constant is of every kind."""
    if any(kind not in (allowed, None) for kind in kinds):
        raise Unsupported(f"{function_name(node)} over an answer needs a {allowed} on each side")


def same_kind(kinds: Iterable[str | None], node: exp.Expression) -> str | None:
    """The kind that all are of."""
    different = {kind for kind in kinds if kind is not None}
    if len(different) > 1:
        raise Unsupported(f"{function_name(node)} mixes a {' and a '.join(sorted(different))}")
    return next(iter(different), None)


def one_kind(node: exp.Expression, kinds: Kinds) -> str | None:
    """All arguments are of one kind, whichever, and so is the result."""
    return same_kind((kinds(part) for part in node.iter_expressions()), node)


# Values over answers ---------------------------------------------------------------------------------------------------


def number(value: Cell) -> Cell:
    """Truth values count as 0 and 1."""
    return int(value) if isinstance(value, bool) else value


def alike(left: Cell, right: Cell) -> tuple[Cell, Cell]:
    """A text beside a date is read as a date."""
    if isinstance(left, datetime.date) and isinstance(right, str):
        return left, datetime.date.fromisoformat(right)
    if isinstance(right, datetime.date) and isinstance(left, str):
        return datetime.date.fromisoformat(left), right
    return number(left), number(right)


def of_one(compute: Callable[[Any], Cell]) -> Callable[[exp.Expression, Cells], Cell]:  # of a number
    """A function of one argument, missing where it is."""

    def cell(node: exp.Expression, cells: Cells) -> Cell:
        value = cells(node.expressions[0] if isinstance(node, exp.Anonymous) else node.args["this"])
        return None if value is None else compute(number(value))

    return cell


def of_two(compute: Callable[[Any, Any], Cell]) -> Callable[[exp.Expression, Cells], Cell]:  # of numbers
    """A function of two arguments, missing where one is."""

    def cell(node: exp.Expression, cells: Cells) -> Cell:
        one, other = node.expressions if isinstance(node, exp.Anonymous) else (node.args["this"], node.args["expression"])
        left, right = cells(one), cells(other)
        if left is None or right is None:
            return None
        value = compute(*alike(left, right))
        return None if isinstance(value, complex) else value

    return cell


def array_of_one(compute: Callable[[Floats], Floats]) -> Callable[[exp.Expression, Arrays], Floats | None]:
    """A function of one argument on arrays."""

    def array(node: exp.Expression, arrays: Arrays) -> Floats | None:
        values = arrays(arguments(node)[0])
        return None if values is None else compute(values)

    return array


def array_of_several(compute: Callable[[Floats, Floats], Floats]) -> Callable[[exp.Expression, Arrays], Floats | None]:
    """A function of two arguments on arrays, or of more by twos."""

    def array(node: exp.Expression, arrays: Arrays) -> Floats | None:
        result: Floats | None = None
        for part in arguments(node):
            values = arrays(part)
            if values is None:
                return None
            result = values if result is None else compute(result, values)
        return result

    return array


def image_of(compute: Callable[..., Box]) -> Callable[[exp.Expression, Boxes], Box | None]:
    """A function of the boxes of all arguments."""

    def image(node: exp.Expression, boxes: Boxes) -> Box | None:
        parts = [boxes(part) for part in arguments(node)]
        boxed = [part for part in parts if part is not None]
        return compute(*boxed) if len(boxed) == len(parts) else None

    return image


def image_by_twos(compute: Callable[[Box, Box], Box]) -> Callable[[exp.Expression, Boxes], Box | None]:
    """A function of two boxes, or of more by twos."""
    return image_of(lambda first, *others: reduce(compute, others, first))


def rising(compute: Callable[[Floats], Floats]) -> Callable[[Box], Box]:
    """A function that rises with its argument, or stays."""
    return lambda part: part.rising(compute)
