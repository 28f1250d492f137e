"""Numbers of a query: arithmetic, clamping, rounding, buckets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.dp.sql.dispatch import Resolve, constant_of, lower, named_rule, rule
from sfumato.dp.sql.term import EXACT, Term, arithmetic, as_number, bounded, clamped, constant, merged
from sfumato.engines import expressions as e
from sfumato.engines import functions as f

_ARITHMETIC: Mapping[type[exp.Expression], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}


@rule(*_ARITHMETIC)
def _arithmetic(node: exp.Binary, resolve: Resolve) -> Term:
    return arithmetic(_ARITHMETIC[type(node)], lower(node.this, resolve), lower(node.expression, resolve))


@named_rule("CLAMP")
def _clamp(node: exp.Anonymous, resolve: Resolve) -> Term:
    if len(node.expressions) != 3:
        raise Unsupported("CLAMP(x, low, high) takes three arguments")
    term, low, high = (lower(argument, resolve) for argument in node.expressions)
    return clamped(term, constant_of(low, "CLAMP"), constant_of(high, "CLAMP"))


@rule(exp.Literal)
def _literal(node: exp.Literal, resolve: Resolve) -> Term:
    if node.is_string:
        return constant(str(node.this))
    text = str(node.this)
    if len(text) > 60:
        raise Unsupported("a number in the query has too many digits")
    try:
        return constant(int(text))
    except ValueError:
        return constant(float(text))


@rule(exp.Neg)
def _negative(node: exp.Neg, resolve: Resolve) -> Term:
    term = lower(node.this, resolve)
    value = term.constant
    if value is not None:
        return constant(-int(value) if term.kind == "integer" else -float(value))
    return arithmetic("-", constant(0), term)


@rule(exp.Least, exp.Greatest)
def _extreme(node: exp.Least | exp.Greatest, resolve: Resolve) -> Term:
    """LEAST and GREATEST; missing when one argument is."""
    terms = [bounded(lower(part, resolve)) for part in (node.this, *node.expressions)]
    least = isinstance(node, exp.Least)
    constants = [term.constant for term in terms if term.constant is not None]
    rest = [term for term in terms if term.constant is None]
    if len(rest) == 1 and constants and rest[0].numeric:
        term = rest[0]
        edge = min(constants) if least else max(constants)
        if term.kind != "number" and edge.denominator != 1:
            term = as_number(term)
        side = constant(int(edge) if term.kind != "number" else float(edge))
        beyond = e.Compare(">" if least else "<", term.expression, side.expression)
        chosen = e.Choose(((beyond, side.expression),), term.expression)
        low, high = term.low, term.high
        if least:
            high = edge if high is None else min(high, edge)
            low = None if low is None else min(low, edge)
        else:
            low = edge if low is None else max(low, edge)
            high = None if high is None else max(high, edge)
        kind = "number" if term.kind == "number" else term.kind
        return Term(chosen, kind, low, high)
    if not all(term.numeric for term in terms):
        raise Unsupported("LEAST and GREATEST are for numbers")
    operator = "<=" if least else ">="

    def chosen_of(parts: list[e.Expression]) -> e.Expression:
        found = parts[0]
        for part in parts[1:]:
            known = e.And((e.Not(e.IsMissing(found)), e.Not(e.IsMissing(part))))
            ordered = e.Compare(operator, found, part)  # type: ignore[arg-type]
            found = e.Choose(((e.And((known, ordered)), found), (known, part)), e.Arithmetic("+", found, part))
        return found

    return merged([as_number(term) for term in terms], chosen_of)


@rule(exp.Abs)
def _absolute(node: exp.Abs, resolve: Resolve) -> Term:
    term = bounded(lower(node.this, resolve))
    negative = arithmetic("-", constant(0), term)
    merged_term = merged(
        [negative, term], lambda parts: e.Choose(((e.Compare("<", term.expression, constant(0).expression), parts[0]),), parts[1])
    )
    high = merged_term.high
    return replace(merged_term, low=Fraction(0), high=high, values=None)


@rule(exp.Div)
def _divide(node: exp.Div, resolve: Resolve) -> Term:
    divisor = lower(node.expression, resolve).constant
    if divisor is None:
        raise Unsupported("a row's value can be divided by a constant only, since a divisor from the data may be zero")
    if not Fraction(1, 10**9) <= abs(divisor) <= 10**9:
        raise Unsupported("the divisor must lie between 1e-9 and 1e9")
    term = as_number(bounded(lower(node.this, resolve)))
    ends = [None if end is None else end / divisor for end in (term.low, term.high)]
    if divisor < 0:
        ends.reverse()
    return Term(f.Divide(term.expression, float(divisor)), "number", ends[0], ends[1], sure=False)


@rule(exp.Floor, exp.Ceil)
def _floor(node: exp.Floor | exp.Ceil, resolve: Resolve) -> Term:
    up = isinstance(node, exp.Ceil)
    term = bounded(lower(node.this, resolve))
    if not term.numeric:
        raise Unsupported(f"a {term.kind} cannot be rounded")
    if up:
        below = Term(f.Floor(_minus(term).expression), "integer", *_floored(_minus(term)))
        return arithmetic("-", constant(0), below)
    return Term(f.Floor(term.expression), "integer", *_floored(term))


def _minus(term: Term) -> Term:
    return bounded(arithmetic("-", constant(0), term))


def _floored(term: Term) -> tuple[Fraction | None, Fraction | None]:
    limits = (Fraction(-EXACT), Fraction(EXACT))
    low = limits[0] if term.low is None else Fraction(term.low // 1)
    high = limits[1] if term.high is None else Fraction(term.high // 1)
    return max(low, limits[0]), min(high, limits[1])


@rule(exp.IntDiv)
def _whole_division(node: exp.IntDiv, resolve: Resolve) -> Term:
    return _floor(exp.Floor(this=exp.Div(this=node.this, expression=node.expression)), resolve)


@rule(exp.Round)
def _round(node: exp.Round, resolve: Resolve) -> Term:
    digits = Fraction(0) if node.args.get("decimals") is None else constant_of(lower(node.args["decimals"], resolve), "ROUND")
    if digits.denominator != 1 or not 0 <= digits <= 9:
        raise Unsupported("ROUND takes a whole number of digits from 0 to 9")
    power = 10 ** int(digits)
    scaled = exp.Floor(
        this=exp.Add(
            this=exp.Mul(this=exp.Paren(this=node.this.copy()), expression=exp.Literal.number(power)),
            expression=exp.Literal.number("0.5"),
        )
    )
    if power == 1:
        return lower(scaled, resolve)
    return lower(exp.Div(this=scaled, expression=exp.Literal.number(power)), resolve)


@rule(exp.Mod)
def _remainder(node: exp.Mod, resolve: Resolve) -> Term:
    divisor = constant_of(lower(node.expression, resolve), "MOD")
    term = bounded(lower(node.this, resolve))
    if term.kind != "integer" or divisor.denominator != 1 or not 0 < divisor < EXACT:
        raise Unsupported("MOD takes a whole number and a positive whole constant")
    low = Fraction(0) if term.low is not None and term.low >= 0 else -(divisor - 1)
    return Term(f.Remainder(term.expression, int(divisor)), "integer", low, divisor - 1)


@rule(exp.Pow)
def _power(node: exp.Pow, resolve: Resolve) -> Term:
    if constant_of(lower(node.expression, resolve), "POWER") != 2:
        raise Unsupported("POWER takes the exponent 2 only; write other products out")
    term = lower(node.this, resolve)
    squared = arithmetic("*", term, term)
    return replace(squared, low=Fraction(0) if squared.low is None else max(squared.low, Fraction(0)))


@rule(exp.WidthBucket)
def _bucket(node: exp.WidthBucket, resolve: Resolve) -> Term:
    """WIDTH_BUCKET as in the standard: 0 below, 1 … n inside, n + 1 above."""
    term = as_number(bounded(lower(node.this, resolve)))
    low, high, count = (
        constant_of(lower(node.args[key], resolve), "WIDTH_BUCKET") for key in ("min_value", "max_value", "num_buckets")
    )
    if low >= high or count.denominator != 1 or not 1 <= count <= 10_000:
        raise Unsupported("WIDTH_BUCKET(x, low, high, n) takes constants with low < high and n from 1 to 10,000")
    inside = f.Bucket(term.expression, float(low), float(high), int(count))
    below = e.Compare("<", term.expression, e.Literal(float(low)))
    above = e.Compare(">=", term.expression, e.Literal(float(high)))
    shifted = e.FixedPoint(e.Arithmetic("+", inside, e.Literal(1)), 1, float(EXACT))
    chosen = e.Choose(((below, e.Literal(0)), (above, e.Literal(int(count) + 1))), shifted)
    return Term(chosen, "integer", Fraction(0), count + 1)
