"""Texts of a query, over rows alone."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.dp.sql.operators.base import Operator, Terms, constant_of
from sfumato.dp.sql.operators.term import MOST_GROUPS, Term, bounded, condition, null
from sfumato.engines import expressions as e
from sfumato.engines.expressions import Value
from sfumato.engines.functions import texts as t


def _like(node: exp.Like, terms: Terms) -> Term:
    term, pattern = terms(node.this), terms(node.expression).text
    if term.kind != "string" or pattern is None or "\\" in pattern:
        raise Unsupported("LIKE takes a text and a constant pattern of letters, % and _")
    return condition(t.Like(term.expression, pattern))


def _ilike(node: exp.ILike, terms: Terms) -> Term:
    if not (isinstance(node.expression, exp.Literal) and node.expression.is_string):
        raise Unsupported("ILIKE takes a text and a constant pattern of letters, % and _")
    # As rows are lowered: the letters A to Z alone.
    pattern = "".join(letter.lower() if letter.isascii() else letter for letter in str(node.expression.this))
    return _like(exp.Like(this=exp.Lower(this=node.this), expression=exp.Literal.string(pattern)), terms)


def _starts(node: exp.StartsWith, terms: Terms) -> Term:
    start = terms(node.expression).text
    if start is None or any(letter in start for letter in "%_\\"):
        raise Unsupported("STARTS_WITH takes a constant without %, _ and \\")
    return _like(exp.Like(this=node.this, expression=exp.Literal.string(start + "%")), terms)


def _letters(node: exp.Lower | exp.Upper, terms: Terms) -> Term:
    term = _text(terms(node.this))
    changed = t.Lowered(term.expression) if isinstance(node, exp.Lower) else t.Uppered(term.expression)
    return Term(changed, "string")


def _substring(node: exp.Expression, terms: Terms) -> Term:
    term = _text(terms(node.this))
    if isinstance(node, exp.Left):
        start, length = Fraction(1), constant_of(terms(node.expression), "LEFT")
    else:
        start = constant_of(terms(node.args["start"]), "SUBSTRING")
        stated = node.args.get("length")
        length = Fraction(10_000) if stated is None else constant_of(terms(stated), "SUBSTRING")
    if start.denominator != 1 or length.denominator != 1 or start < 1 or not 0 <= length <= 10_000:
        raise Unsupported("SUBSTRING takes a start of at least 1 and a length from 0 to 10,000")
    return Term(t.TextPart(term.expression, int(start), int(length)), "string")


def _length(node: exp.Length, terms: Terms) -> Term:
    return Term(t.Length(_text(terms(node.this)).expression), "integer", Fraction(0), Fraction(2**30), sure=False)


def _joined(node: exp.DPipe, terms: Terms) -> Term:
    return _one_after_the_other([_as_text(terms(part), "||") for part in (node.this, node.expression)])


def _concatenated(node: exp.Concat, terms: Terms) -> Term:
    """A missing text counts as an empty one, as it does in the engines that the dialect is of."""
    return _one_after_the_other([_or_empty(_as_text(terms(part), "CONCAT")) for part in node.expressions])


def _as_text(term: Term, where: str) -> Term:
    if term.missing:
        return null("string")
    if term.kind == "string":
        return term
    if "string" not in e.CASTS[term.kind]:
        raise Unsupported(f"{where} takes texts, whole numbers, conditions and dates, not a {term.kind}")
    held = bounded(term)
    texts = None
    if term.kind == "integer" and held.values is not None:
        texts = tuple(None if value is None else str(value) for value in held.values)
    return Term(e.Cast(held.expression, "string"), "string", values=texts)


def _or_empty(term: Term) -> Term:
    if term.text is not None:
        return term
    chosen = e.Choose(((e.IsMissing(term.expression), e.Literal("")),), term.expression)
    values = None if term.values is None else tuple("" if value is None else value for value in term.values)
    return Term(chosen, "string", values=values)


def _one_after_the_other(parts: list[Term]) -> Term:
    """Texts joined; what they can be is known where that of each part is, and there are not too many."""
    listed = [part.values for part in parts if part.values is not None]
    values: tuple[Value, ...] | None = None
    if len(listed) == len(parts) and math.prod(len(each) for each in listed) <= MOST_GROUPS:
        texts = (None if None in texts else "".join(map(str, texts)) for texts in itertools.product(*listed))
        values = tuple(dict.fromkeys(texts))
    return Term(e.Joined(tuple(part.expression for part in parts)), "string", values=values)


def _text(term: Term) -> Term:
    if term.kind != "string":
        raise Unsupported(f"a text function was given a {term.kind}")
    return term


_REGULAR = "regular expressions differ between engines; use LIKE"

ROWS = (
    Operator(
        "text || text", (exp.DPipe,), "one text after the other; whole numbers, conditions and dates as texts", _joined,
        reads=("safe",),
    ),
    Operator(
        "CONCAT(text, …)", (exp.Concat,), "as `||`, a missing one counted as an empty text", _concatenated,
        reads=("safe", "coalesce"),
    ),
    Operator("text LIKE 'pattern'", (exp.Like,), "matches: % is any text, _ any character", _like),
    Operator("text ILIKE 'pattern'", (exp.ILike,), "as `LIKE`, the letters A to Z in either case", _ilike),
    Operator("STARTS_WITH(text, 'start')", (exp.StartsWith,), "begins with a constant", _starts),
    Operator("text SIMILAR TO 'pattern'", (exp.RegexpLike, exp.SimilarTo), rows=_REGULAR),
    Operator("LOWER(text)", (exp.Lower,), "A to Z in lower case, no other letter", _letters),
    Operator("UPPER(text)", (exp.Upper,), "a to z in upper case, no other letter", _letters),
    Operator(
        "SUBSTRING(text, start, length)", (exp.Substring,),
        "so many characters (the rest where no length is said) from the one with number `start`; the first has number 1",
        _substring, reads=("start", "length"),
    ),
    Operator("LEFT(text, length)", (exp.Left,), "so many characters from the first on", _substring),
    Operator("LENGTH(text)", (exp.Length,), "number of characters", _length),
)  # fmt: skip
