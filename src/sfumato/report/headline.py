"""A verdict: one of four words, why, and what weakens it. The words are the same for a release, a table and an attack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sfumato.core.plain_data import PlainDict
from sfumato.report.wording import counted

Word = Literal["kept", "warning", "no promise", "not kept"]

#: How each word is coloured where somebody looks at a terminal; the word itself says it without colours.
COLOURS: dict[Word, str] = {"kept": "32", "warning": "33", "no promise": "33", "not kept": "31"}


@dataclass(frozen=True)
class Headline:
    """`kept`: every promise was measured and holds, and nothing weakens it. `warning`: the promises hold as far as they could be
    measured, and something weakens them. `no promise`: there is none. `not kept`: one of them does not hold.

    >>> Headline.of("kept", "1 promise holds", ["one more release is not compared"]).lines
    ['verdict   warning: 1 promise holds; 1 warning', 'warning   one more release is not compared']
    """

    word: Word
    reason: str
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, word: Word, reason: str, warnings: list[str]) -> Headline:
        """The verdict with these warnings: what is kept and warned about is a warning."""
        several = tuple(dict.fromkeys(warnings))
        beside = f"; {counted(len(several), 'warning')}" if several else ""
        return cls("warning" if word == "kept" and several else word, f"{reason}{beside}", several)

    @property
    def lines(self) -> list[str]:
        """The headline, and one line for each warning."""
        return [f"verdict   {self.word}: {self.reason}", *(f"warning   {each}" for each in self.warnings)]

    def to_mapping(self) -> PlainDict:
        """Plain data, ready for JSON."""
        return {"verdict": self.word, "reason": self.reason, "warnings": list(self.warnings)}
