"""How far an expression over several noisy parts may be off: intervals of the parts, and the image of the expression over them.

The parts are the largest sub-expressions whose own interval is known: sums of counts and sums by the law of their noise, ratios
of two such sums and single statistics by what the noise may have been. Each gets an equal share of the probability of being
wrong, so that all intervals hold at once at the confidence, whatever the noises have to do with each other; then so does the
image. See docs/theory/margins.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from sqlglot import exp

from sfumato.dp.sql.box import Box
from sfumato.dp.sql.language import evaluate, over_answers
from sfumato.dp.sql.noise import Price
from sfumato.dp.sql.operators import arguments
from sfumato.dp.sql.propagation import linear, noisy_parts
from sfumato.dp.sql.question import Question


def selects(question: Question, price: Price, node: exp.Expression) -> bool:
    """True where an expression uses the noisy number of units by which discovered groups were shown or left out."""
    if price.threshold is None:
        return False
    return any(price.units in question.statistics[text].parts for text in noisy_parts(node))


def parts_of(question: Question, price: Price, node: exp.Expression) -> list[exp.Expression]:
    """The largest sub-expressions whose own interval is known, each once."""
    if not noisy_parts(node):
        return []
    if _is_part(question, price, node):
        return [node]
    below = [part for child in node.iter_expressions() for part in parts_of(question, price, child)]
    return list(dict.fromkeys(below))


def _is_part(question: Question, price: Price, node: exp.Expression) -> bool:
    if isinstance(node, exp.Column):
        return True
    if selects(question, price, node) or any(_rounds(part) for part in node.walk()):
        return False
    if is_linear(question, node):
        return True
    return isinstance(node, exp.Div) and is_linear(question, node.this) and is_linear(question, node.expression)


def is_linear(question: Question, node: exp.Expression) -> bool:
    """True for sums and multiples of counts and sums."""
    return linear(node, steady(question))


def steady(question: Question) -> set[str]:
    """The counts and sums: they always have a value, with the same error whatever the data."""
    return {text for text, each in question.statistics.items() if each.tree is None and each.steady}


def _rounds(node: exp.Expression) -> bool:
    operator = over_answers(node)
    return operator is not None and operator.rounding(node, lambda part: evaluate(part, {})) is not None


def plain(node: exp.Expression) -> exp.Expression:
    """The same expression without what changes no value: parentheses, casts to real numbers, a divisor's NULLIF(…, 0)."""
    copied = node.copy()
    for name, value in list(copied.args.items()):
        if isinstance(value, exp.Expression):
            copied.set(name, plain(value))
        elif isinstance(value, list):
            copied.set(name, [plain(part) if isinstance(part, exp.Expression) else part for part in value])
    if isinstance(copied, exp.Div) and isinstance(copied.expression, exp.Nullif) and _is_zero(copied.expression.expression):
        copied.set("expression", copied.expression.this)
    return copied.this if isinstance(copied, (exp.Paren, exp.Cast)) and noisy_parts(copied) and not _rounds(copied) else copied


def _is_zero(node: exp.Expression) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and float(node.this) == 0


def image(node: exp.Expression, parts: Mapping[exp.Expression, Box], exact_box: Callable[[exp.Expression], Box]) -> Box | None:
    """Where an expression lies when its noisy parts lie in their boxes; None where an operator has no image."""
    if node in parts:
        return parts[node]
    if not noisy_parts(node):
        return exact_box(node)
    operator = over_answers(node)
    if operator is None:
        return None
    if operator.image is not None:
        return operator.image(node, lambda part: image(part, parts, exact_box))
    listed = arguments(node)
    inside = image(listed[0], parts, exact_box) if operator.linear == "sum" and len(listed) == 1 else None
    if inside is None or operator.array is None:
        return None
    # A sum of one argument rises or falls with it.
    low, high = inside.low, inside.high
    at_low, at_high = operator.array(node, lambda part: low), operator.array(node, lambda part: high)
    if at_low is None or at_high is None:
        return None
    return Box.of(np.minimum(at_low, at_high), np.maximum(at_low, at_high), inside.lost)
