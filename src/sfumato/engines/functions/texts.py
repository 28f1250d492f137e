"""Functions of text: patterns, parts, lengths, letters."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.engines.expressions import Dialect, Function, Kind, expect, kind_of_value
from sfumato.engines.sql.from_text import from_text
from sfumato.engines.sql.values import as_kind, text_literal


@dataclass(frozen=True)
class Like(Function):
    """The text matches a pattern in which % stands for any text and _ for any character; case matters."""

    pattern: str

    def kind(self, kind: Kind) -> Kind:
        expect(kind, {"string"}, "Like")
        kind_of_value(self.pattern)
        if "\\" in self.pattern:
            raise Unsupported("a pattern of Like may not contain a backslash: engines read it differently")
        return "boolean"

    def sql(self, term: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
        return exp.Like(this=term, expression=text_literal(self.pattern))


@dataclass(frozen=True)
class TextPart(Function):
    """At most `length` characters of the text, from the one with number `start` (the first has number 1)."""

    start: int
    length: int

    def kind(self, kind: Kind) -> Kind:
        expect(kind, {"string"}, "TextPart")
        if not (1 <= self.start < 2**31 and 0 <= self.length < 2**31):
            raise Unsupported("TextPart needs a start of at least 1 and a length of at least 0")
        return "string"

    def sql(self, term: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
        numbers = [exp.Literal.number(self.start), exp.Literal.number(self.length)]
        return as_kind(exp.Anonymous(this="SUBSTRING", expressions=[term, *numbers]), "string", dialect)


@dataclass(frozen=True)
class ReadAs(Function):
    """The text as a value of another kind, missing where it is none."""

    read: Kind

    def kind(self, kind: Kind) -> Kind:
        expect(kind, {"string"}, "ReadAs")
        return self.read

    def sql(self, term: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
        return from_text(term, self.read, dialect)


@dataclass(frozen=True)
class Length(Function):
    """The number of characters (code points) of the text."""

    def kind(self, kind: Kind) -> Kind:
        expect(kind, {"string"}, "Length")
        return "integer"

    def sql(self, term: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
        return as_kind(exp.Anonymous(this="LENGTH", expressions=[term]), "integer", dialect)


@dataclass(frozen=True)
class _Letters(Function):
    """The text with some letters changed for others, and no other letter."""

    old: ClassVar[str] = ""
    new: ClassVar[str] = ""

    def kind(self, kind: Kind) -> Kind:
        expect(kind, {"string"}, type(self).__name__)
        return "string"

    def sql(self, term: exp.Expression, kind: Kind, dialect: Dialect) -> exp.Expression:
        letters = [text_literal(self.old), text_literal(self.new)]
        return as_kind(exp.Anonymous(this="TRANSLATE", expressions=[term, *letters]), "string", dialect)


@dataclass(frozen=True)
class Lowered(_Letters):
    """The text with A to Z in lower case; other letters stay, because engines disagree about them."""

    old: ClassVar[str] = string.ascii_uppercase
    new: ClassVar[str] = string.ascii_lowercase


@dataclass(frozen=True)
class Uppered(_Letters):
    """The text with a to z in upper case; other letters stay, because engines disagree about them."""

    old: ClassVar[str] = string.ascii_lowercase
    new: ClassVar[str] = string.ascii_uppercase
