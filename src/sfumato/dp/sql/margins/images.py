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

from sfumato.dp.sql.margins.propagation import linear, noisy_parts, number_of
from sfumato.dp.sql.measuring.noise import Price
from sfumato.dp.sql.operators.aggregates import PLACEHOLDER
from sfumato.dp.sql.operators.base import Cell, arguments
from sfumato.dp.sql.operators.box import Box
from sfumato.dp.sql.operators.language import evaluate, over_answers
from sfumato.dp.sql.operators.windows import WindowColumn
from sfumato.dp.sql.question import Question, is_whole


def selects(question: Question, price: Price, node: exp.Expression) -> bool:
    """True where an expression uses the noisy number of units by which discovered groups were shown or left out."""
    if price.threshold is None:
        return False
    texts = [text for text in noisy_parts(node) if text in question.statistics]
    return any(price.units in question.statistics[text].parts for text in texts)


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
    if is_linear(question, node) or sum_of_whole(question, price, node) is not None:
        return True
    if not isinstance(node, exp.Div) or not is_linear(question, node.this):
        return False
    return is_linear(question, node.expression) or is_share(question, price, node)


def is_share(question: Question, price: Price, node: exp.Expression) -> bool:
    """True for a number of a group over a sum of groups that it is among, where no noise chose those."""
    divisor = node.expression if isinstance(node, exp.Div) else None
    window = question.windows.get(divisor.name.removeprefix(PLACEHOLDER)) if isinstance(divisor, exp.Column) else None
    if window is None or window.function.makes != "sum" or window.argument is None or not noisy_parts(node.this):
        return False
    chosen = window.chooses or question.having is not None or price.threshold is not None
    among = window.rows is None or all(side is None or side >= 0 for side in window.rows)
    return among and not chosen and is_linear(question, node.this) and is_linear(question, window.argument)


def of_whole(question: Question, price: Price, node: exp.Expression) -> float | None:
    """The largest that a part of a whole can be: a group, or a sum of some, over the sum or the largest of all; else None.

    A multiple of a share lies between 0 and that multiple of 1, as what is not below 0 is added up. The whole is that of all
    groups of a partition, which no noise chose.
    """
    whole = _window(question, node.expression) if isinstance(node, exp.Div) else None
    if whole is None or whole.argument is None or whole.order or whole.rows is not None:
        return None
    if not (whole.function.makes == "sum" or whole.function.largest):
        return None
    factor, dividend = _multiple(node.this)
    part, argument = _window(question, dividend), plain(whole.argument)
    running = (
        part is not None
        and whole.function.makes == part.function.makes == "sum"
        and part.argument is not None
        and plain(part.argument) == argument
        and part.partition == whole.partition
    )
    chosen = whole.chooses or (part is not None and part.chooses) or question.having is not None or price.threshold is not None
    ends = certain(question, argument)
    positive = ends is not None and bool(np.all(ends.low >= 0))
    return factor if (running or dividend == argument) and positive and not chosen else None


def sum_of_whole(question: Question, price: Price, node: exp.Expression) -> tuple[str, str] | None:
    """The windows of a sum of some groups over that of all, of numbers that are not below 0; None for anything else."""
    if not isinstance(node, exp.Div) or of_whole(question, price, node) is None:
        return None
    _, dividend = _multiple(node.this)
    texts = (dividend.name.removeprefix(PLACEHOLDER), node.expression.name.removeprefix(PLACEHOLDER))
    return texts if texts[0] in question.windows else None


def _window(question: Question, node: exp.Expression) -> WindowColumn | None:
    return question.windows.get(node.name.removeprefix(PLACEHOLDER)) if isinstance(node, exp.Column) else None


def _multiple(node: exp.Expression) -> tuple[float, exp.Expression]:
    """A constant factor of an expression, and what it is a factor of."""
    if not isinstance(node, exp.Mul):
        return 1.0, node
    for constant, other in ((node.this, node.expression), (node.expression, node.this)):
        number = number_of(_constant(constant))
        if number is not None and number > 0:
            factor, inner = _multiple(other)
            return number * factor, inner
    return 1.0, node


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


def as_divisor(question: Question, node: exp.Expression, part: exp.Expression, box: Box, alone: Box | None = None) -> Box:
    """Where a part lies that an expression divides by: not at zero, for then there is no quotient.

    One of either sign counts where it is clear of zero at the surest level, and then at every level; otherwise it may be
    anything. To decide that level by level would select the intervals that fail. The same goes for one that comes as near to
    zero as one likes, below what has either sign. The first column is what is shown, the last one what is certain where there
    are more than two. `alone` is where the part lies when nothing else has to hold with it.
    """
    if not noisy_parts(part):
        return box
    ends = certain(question, part)
    if ends is not None and (np.all(ends.low > 0) or np.all(ends.high < 0)):
        return box
    judged = box if alone is None else alone
    surest = max(judged.low.shape[1] - 2, 1)
    clear = ((judged.low[:, surest] > 0) | (judged.high[:, surest] < 0))[:, None]
    low, high, lost = np.where(clear, box.low, -np.inf), np.where(clear, box.high, np.inf), np.where(clear, box.lost, True)
    least = 1.0 if is_whole(question, part) else 0.0
    if ends is not None and np.all(ends.low >= 0) and (least > 0 or part is node.this or _of_one_sign(question, node.this)):
        low = np.maximum(box.low, least)
        # Nothing measured but zero or less: a divisor above zero may be anything.
        high = np.where(box.high > 0, np.maximum(box.high, low), np.inf) if least == 0 else np.maximum(box.high, low)
        lost = box.lost | (box.low <= 0) | (box.low < least)
    for mine, shown in ((low, box.low), (high, box.high), (lost, box.lost)):
        mine[:, 0] = shown[:, 0]
    return Box(low, high, lost)


def _of_one_sign(question: Question, node: exp.Expression) -> bool:
    ends = certain(question, node)
    return ends is not None and bool(np.all(ends.low >= 0) or np.all(ends.high <= 0))


def certain(question: Question, node: exp.Expression) -> Box | None:
    """Between which ends an expression lies by the question and the declared bounds alone."""
    boxes: dict[exp.Expression, Box] = {}
    for part in node.find_all(exp.Column, exp.Sub):
        if isinstance(part, exp.Sub):
            if _is_left_over(question, part):
                boxes[part] = Box.of(np.zeros((1, 1)), np.full((1, 1), np.inf))
        elif part.name.startswith(PLACEHOLDER):
            low, high = _certain_ends(question, part.name.removeprefix(PLACEHOLDER))
            boxes[part] = Box.of(np.array([[low]]), np.array([[high]]))

    def of_constant(part: exp.Expression) -> Box:
        value = None if part.find(exp.Column) is not None else number_of(evaluate(part, {}))
        return Box.exactly(np.array([[np.nan if value is None else value]]))

    with np.errstate(all="ignore"):
        return image(node, boxes, of_constant, lambda _, __, box: box)


def _certain_ends(question: Question, text: str) -> tuple[float, float]:
    """Between which ends a statistic or a window lies."""
    window = question.windows.get(text)
    if window is None:
        return question.statistics[text].certain
    if window.argument is None:
        return 0.0, np.inf
    ends = certain(question, window.argument)
    if ends is None or window.function.makes == "neighbour":
        return -np.inf, np.inf
    low, high = float(ends.low.min()), float(ends.high.max())
    if window.function.makes == "sum":
        return (0.0 if low >= 0 else -np.inf), (0.0 if high <= 0 else np.inf)
    return (0.0, np.inf) if window.function.makes == "count" else (low, high)


def _is_left_over(question: Question, node: exp.Sub) -> bool:
    """True for the number of rows less the number of some of them."""
    names = [side.name.removeprefix(PLACEHOLDER) if isinstance(side, exp.Column) else "" for side in (node.this, node.expression)]
    statistics = [question.statistics.get(name) for name in names]
    taken = {each.name: each for each in question.measurements if each.kind == "rows"}
    rows = [taken.get(each.count or "") if each is not None and each.linear else None for each in statistics]
    return rows[0] is not None and rows[1] is not None and rows[0].expression is None and rows[0].where is None


def _constant(node: exp.Expression) -> Cell:
    """The value of what depends on no key and no statistic; missing for others."""
    return None if node.find(exp.Column) is not None else evaluate(node, {})


def image(
    node: exp.Expression,
    parts: Mapping[exp.Expression, Box],
    exact_box: Callable[[exp.Expression], Box],
    divisor: Callable[[exp.Expression, exp.Expression, Box], Box],
    held: Callable[[exp.Expression, Box], Box] = lambda _, box: box,
) -> Box | None:
    """Where an expression lies when its noisy parts lie in their boxes; None where an operator has no image.

    `divisor` says where a part lies that an expression divides by, given both and the part's box; `held` what else is known of a
    quotient.
    """
    if node in parts:
        return parts[node]
    if not noisy_parts(node):
        return exact_box(node)
    operator = over_answers(node)
    if operator is None:
        return None
    if operator.image is not None:
        divided_by = operator.divisor(node, _constant)

        def inside_box(part: exp.Expression) -> Box | None:
            box = image(part, parts, exact_box, divisor, held)
            return divisor(node, part, box) if box is not None and part is divided_by else box

        box = operator.image(node, inside_box)
        return held(node, box) if box is not None and divided_by is not None else box
    listed = arguments(node)
    inside = image(listed[0], parts, exact_box, divisor, held) if operator.linear == "sum" and len(listed) == 1 else None
    if inside is None or operator.array is None:
        return None
    # A sum of one argument rises or falls with it.
    low, high = inside.low, inside.high
    at_low, at_high = operator.array(node, lambda part: low), operator.array(node, lambda part: high)
    if at_low is None or at_high is None:
        return None
    return Box.of(np.minimum(at_low, at_high), np.maximum(at_low, at_high), inside.lost)
