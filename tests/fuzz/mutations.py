"""Small damage to valid inputs: bytes flipped, cut, doubled and spliced; tokens swapped; numbers blown up; deep nesting."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

NUMBERS = (
    b"1" + b"0" * 400, b"-1", b"0", b"1e999", b"-1e999", b"1e-400", b"nan", b"inf", b"-inf", b"9223372036854775808", b"-0", b"2",
    b"0x10", b"1_000", b"18446744073709551616", b"0.1", b"1e308", b"4294967296", b"-2147483649", b"1.7976931348623157e308",
)  # fmt: skip
ODDITIES = (
    "²", "٣", "½", "\u202e", "\ufeff", "\x00", "\x1b[2J", "\ud7ff", "ß", "İ", "e\u0301", "\u2028", "\r", "\n", "\t", "'", '"',
    "`", "\\", ";", "--", "/*", "%s", "{}", "$$", "..", "/", "~", "null", "true", "[]", "1900-01-01", "9999-12-31", "0000-00-00",
)  # fmt: skip
_TOKEN = re.compile(rb"[A-Za-z_][A-Za-z_0-9]*|[0-9.]+|\s+|.", re.DOTALL)
_NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?")

Mutation = Callable[[bytes, random.Random, Sequence[bytes]], bytes]


def flip(content: bytes, draw: random.Random, others: Sequence[bytes]) -> bytes:
    """Change some bytes."""
    changed = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 4, 16))):
        if changed:
            changed[draw.randrange(len(changed))] = draw.randrange(256)
    return bytes(changed)


def cut(content: bytes, draw: random.Random, others: Sequence[bytes]) -> bytes:
    """Lose the end, the beginning or a piece in between."""
    start, end = sorted((draw.randint(0, len(content)), draw.randint(0, len(content))))
    return draw.choice((content[:start], content[end:], content[:start] + content[end:]))


def double(content: bytes, draw: random.Random, others: Sequence[bytes]) -> bytes:
    """Repeat a piece, sometimes very often."""
    start = draw.randint(0, len(content))
    piece = content[start : start + draw.choice((1, 3, 20, 200))]
    return content[:start] + piece * draw.choice((1, 2, 30, 1_000)) + content[start:]


def splice(content: bytes, draw: random.Random, others: Sequence[bytes]) -> bytes:
    """Go on as another input does."""
    other = draw.choice(others)
    return content[: draw.randint(0, len(content))] + other[draw.randint(0, len(other)) :]


def insert(content: bytes, draw: random.Random, others: Sequence[bytes]) -> bytes:
    """Put something odd anywhere."""
    place = draw.randint(0, len(content))
    odd = draw.choice(ODDITIES).encode("utf-8", "surrogatepass")
    return content[:place] + odd * draw.choice((1, 1, 1, 50)) + content[place:]


def number(content: bytes, draw: random.Random, others: Sequence[bytes]) -> bytes:
    """Blow a number up, or turn it round."""
    found = list(_NUMBER.finditer(content))
    if not found:
        return insert(content, draw, others)
    chosen = draw.choice(found)
    return content[: chosen.start()] + draw.choice(NUMBERS) + content[chosen.end() :]


def token(content: bytes, draw: random.Random, others: Sequence[bytes]) -> bytes:
    """Lose, double, exchange or replace words and signs."""
    pieces = _TOKEN.findall(content)
    for _ in range(draw.choice((1, 1, 2, 3))):
        if not pieces:
            break
        place, other = draw.randrange(len(pieces)), draw.randrange(len(pieces))
        match draw.randrange(4):
            case 0:
                del pieces[place]
            case 1:
                pieces.insert(other, pieces[place])
            case 2:
                pieces[place], pieces[other] = pieces[other], pieces[place]
            case _:
                pieces[place] = draw.choice(_TOKEN.findall(draw.choice(others)) or [b""])
    return b"".join(pieces)


def nest(content: bytes, draw: random.Random, others: Sequence[bytes]) -> bytes:
    """Wrap a piece into many brackets."""
    opening, closing = draw.choice(((b"[", b"]"), (b"(", b")"), (b'{"a":', b"}"), (b"{a=", b"}"), (b'"', b'"')))
    depth = draw.choice((2, 70, 2_000))
    start, end = sorted((draw.randint(0, len(content)), draw.randint(0, len(content))))
    return content[:start] + opening * depth + content[start:end] + closing * depth + content[end:]


BYTES: tuple[Mutation, ...] = (flip, cut, double, splice, insert)
TEXT: tuple[Mutation, ...] = (flip, cut, double, splice, insert, number, number, token, token, token, nest)


def mutated(seeds: Sequence[bytes], draw: random.Random, kinds: Sequence[Mutation]) -> bytes:
    """One of the seeds with one to three pieces of damage."""
    content = draw.choice(seeds)
    for _ in range(draw.choice((1, 1, 2, 3))):
        content = draw.choice(kinds)(content, draw, seeds)
    return content[:2_000_000]
