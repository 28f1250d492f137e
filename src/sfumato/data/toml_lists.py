"""Lists of texts as TOML, written in one go: tomlkit takes time that grows with the square of their length."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import tomlkit
from tomlkit.items import Array, Trivia


class _Written(Array):
    """An array whose text is known already."""

    def __init__(self, text: str) -> None:
        super().__init__([], Trivia())
        self._text = text

    def as_string(self) -> str:
        return self._text


def text_list(values: Sequence[str]) -> Array:
    """The array as tomlkit writes it, ready to stand in a table of a document."""
    escapes = _escapes()
    return _Written("[" + ", ".join(f'"{value.translate(escapes)}"' for value in values) + "]")


@cache
def _escapes() -> dict[int, str]:
    """How tomlkit writes the characters that it does not write as they are."""
    odd = [*range(0x20), 0x22, 0x5C, 0x7F]
    return {code: tomlkit.item(chr(code)).as_string()[1:-1] for code in odd}
