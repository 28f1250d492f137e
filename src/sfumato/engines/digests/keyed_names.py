"""Keyed names computed by the engine that holds the rows: HMAC-SHA256 of a text, in base 32, without the key in any statement.

The key travels as a table of one row that is joined with the rows: its blocks for the inner and the outer digest, the inner one
followed by what every message begins with. Statements, plans and logs name the columns of that table and never show what is in
them; see `secret_columns` for engines that would. RFC 2104; RFC 4648.
"""

from __future__ import annotations

import hashlib
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
from sqlglot import exp

from sfumato.core.errors import MissingColumn, Unsupported, all_at_once
from sfumato.engines.class_queries import table_fields
from sfumato.engines.digests.row_text import as_octets, call, hex_digits, hexadecimal, sha256, valid_text, whole_of_hex
from sfumato.engines.digests.secret_columns import SECRET
from sfumato.engines.expressions import Dialect, Expression, Function, Kind, Literal, Reference, RowFunction, expect
from sfumato.engines.functions.dates import in_calendar
from sfumato.engines.plan import Join, Named, Plan, Project, Scan, column, columns
from sfumato.engines.sql.values import as_kind, text_literal, type_named

#: Kinds of identifiers whose text every engine writes as `text_of` does.
NAMED_KINDS: frozenset[Kind] = frozenset({"string", "integer", "wide", "boolean", "date", "binary"})
#: The name of the uploaded table that has the key.
KEYS = "\x00keys"

_BLOCK = 64
_ALPHABET = string.ascii_lowercase + "234567"
_ONE = "\x00one"
_OUTER = f"{SECRET}outer"


@dataclass(frozen=True)
class Naming:
    """How the values of a column are named: what every message begins with, and how many characters a name has (at most 51)."""

    prefix: bytes
    length: int


def with_keyed_names(plan: Plan, names: Mapping[str, Naming], key: bytes) -> tuple[Plan, dict[str, pa.Table]]:
    """The plan with these columns replaced by their names under a key, and the table to upload for it."""
    kinds = columns(plan)
    all_at_once(MissingColumn, "pseudonyms", (f"there is no column '{name}' in the rows" for name in names if name not in kinds))
    all_at_once(Unsupported, "pseudonyms", _not_named(names, kinds))
    if not names:
        return plan, {}
    places = {name: place for place, name in enumerate(names)}
    keys = key_table([naming.prefix for naming in names.values()], key)
    # The key ends here: above this projection no row carries it.
    digests = Project(beside_key(plan, KEYS, keys), tuple(_digested(name, places) for name in kinds))
    shown = (Named(n, Base32(Reference(n), names[n].length)) if n in names else column(n) for n in kinds)
    return Project(digests, tuple(shown)), {KEYS: keys}


def _digested(name: str, places: Mapping[str, int]) -> Named:
    if name not in places:
        return column(name)
    return Named(name, keyed_digest(Reference(name), places[name]))


def beside_key(plan: Plan, table: str, keys: pa.Table) -> Plan:
    """Every row beside the key, an uploaded `table` of one row; whoever projects next leaves the key behind."""
    numbered = Project(plan, (*map(column, columns(plan)), Named(_ONE, Literal(1))))
    return Join(numbered, Scan(table, table_fields(keys)), ((_ONE, _ONE),), nulls="drop")


def keyed_digest(message: Expression, place: int) -> KeyedDigest:
    """The digest of a message beside the key, behind the prefix at this place of the key's table."""
    return KeyedDigest((message, Reference(_inner(place)), Reference(_OUTER)))


def _not_named(names: Mapping[str, Naming], kinds: Mapping[str, Kind]) -> Iterator[str]:
    for name in names:
        if kinds.get(name, "string") not in NAMED_KINDS:
            yield (
                f"column '{name}' is a {kinds[name]}, which engines do not write alike; declare it as text, whole number or "
                "date, or read the table into memory"
            )


def _inner(place: int) -> str:
    return f"{SECRET}inner {place}"


def key_table(prefixes: Sequence[bytes], key: bytes) -> pa.Table:
    """The table of one row to upload: the key's blocks, the inner one followed by each prefix."""
    block = (hashlib.sha256(key).digest() if len(key) > _BLOCK else key).ljust(_BLOCK, b"\x00")
    inner, outer = (bytes(octet ^ pad for octet in block) for pad in (0x36, 0x5C))
    blocks = {_inner(place): inner + prefix for place, prefix in enumerate(prefixes)}
    secret = {name: pa.array([octets], pa.binary()) for name, octets in ({_OUTER: outer} | blocks).items()}
    return pa.table({_ONE: pa.array([1], pa.int64()), **secret})


@dataclass(frozen=True)
class KeyedDigest(RowFunction):
    """HMAC-SHA256 in hexadecimal over identifier, inner block and outer block; missing where the identifier is."""

    once: ClassVar[bool] = True

    def kind(self, kinds: tuple[Kind, ...]) -> Kind:
        identifier, *blocks = kinds
        expect(identifier, NAMED_KINDS, "KeyedDigest")
        for block in blocks:
            expect(block, {"binary"}, "KeyedDigest")
        return "string"

    def sql(self, terms: tuple[exp.Expression, ...], kinds: tuple[Kind, ...], dialect: Dialect) -> exp.Expression:
        identifier, inner, outer = terms
        message = as_octets(_text(identifier, kinds[0], dialect), dialect)
        if dialect == "postgres":
            digest = call("SHA256", _beside(inner, message, dialect))
        else:
            digest = call("UNHEX", sha256(_beside(inner, message, dialect), dialect))
        return as_kind(sha256(_beside(outer, digest, dialect), dialect), "string", dialect)


@dataclass(frozen=True)
class Base32(Function):
    """The first characters of a digest, given in hexadecimal, in base 32 with lower-case letters."""

    length: int

    def kind(self, kind: Kind) -> Kind:
        expect(kind, {"string"}, "Base32")
        if not 1 <= self.length <= 51:
            raise Unsupported("Base32 has 1 to 51 characters of a digest")
        return "string"

    def sql(self, term: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
        # Five hexadecimal digits are four characters; the last of all has one bit of the digest, and zeros.
        digits = exp.Paren(this=exp.DPipe(this=term.copy(), expression=text_literal("0"), safe=True))
        places = range(0, 5 * -(-self.length // 4), 5)
        groups = [whole_of_hex(hex_digits(digits.copy(), place, 5, dialect), 5, dialect) for place in places]
        characters = [_character(groups[place // 4], 15 - 5 * (place % 4), dialect) for place in range(self.length)]
        missing = exp.If(this=exp.Is(this=term.copy(), expression=exp.Null()), true=exp.Null())
        return as_kind(exp.Case(ifs=[missing], default=call("CONCAT", *characters)), "string", dialect)

    @property
    def copies(self) -> int:
        return self.length + 1


def _character(group: exp.Expression, shift: int, dialect: Dialect) -> exp.Expression:
    amount = exp.Literal.number(shift)
    if dialect == "spark":
        shifted = call("SHIFTRIGHT", group.copy(), amount)
    else:
        shifted = exp.Paren(this=exp.BitwiseRightShift(this=group.copy(), expression=amount))
    five = exp.Paren(this=exp.BitwiseAnd(this=shifted, expression=exp.Literal.number(31)))
    place = exp.cast(exp.Paren(this=exp.Add(this=five, expression=exp.Literal.number(1))), type_named("INT", dialect))
    return call("SUBSTRING", text_literal(_ALPHABET), place, exp.Literal.number(1))


def _beside(one: exp.Expression, other: exp.Expression, dialect: Dialect) -> exp.Expression:
    """Octets one after the other."""
    if dialect == "spark":
        return call("CONCAT", one.copy(), other)
    return exp.Paren(this=exp.DPipe(this=one.copy(), expression=other, safe=True))


def _text(term: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
    """An identifier as `core.texts.text_of` writes it."""
    match kind:
        case "string":
            return valid_text(term, dialect)
        case "boolean":
            no = exp.If(this=exp.Not(this=term.copy()), true=text_literal("false"))
            return exp.Case(ifs=[exp.If(this=term.copy(), true=text_literal("true")), no])
        case "date":
            return in_calendar(term, kind, as_kind(term.copy(), "string", dialect), dialect)
        case "binary":
            return hexadecimal(term.copy(), dialect)
        case _:
            return as_kind(term.copy(), "string", dialect)
