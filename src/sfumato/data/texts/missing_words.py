"""Words and signs that often stand for "no value", and when one is no category of its own.

Among numbers, dates and truth values each of them means that there is none. In a column of texts a sign or an abbreviation (`NA`,
`k.A.`, `-`) means it too, unless the other values have its form: `NA` among codes of countries is Namibia, and `-` beside `+` is
a result. Words that say that nobody knows (`unknown`) mean it everywhere; words that may be an answer (`none`, `not applicable`)
stay values in a column of texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

_SIGNS = "NA|N/A|n/a|#N/A|#NA|#NULL!|?|??|-|--|.|..|...|NULL|(null)|NaN|<NA>|n.a.|n. a.|n.b.|k.A.|k. A.|k.a.|n.d.|s/d|\\N|"
_UNKNOWN = """
    unknown|not known|unk|unknown/missing|missing|not available|not stated|not specified|not reported|no data|undefined
    unbekannt|keine angabe|keine angaben|ohne angabe|fehlend|inconnu|inconnue|non renseigné|non renseigne|desconocido|desconocida
    sin datos|sconosciuto|sconosciuta|desconhecido|onbekend|ukjent|okänd|ukendt|tuntematon|bilinmiyor
"""
_ANSWERS = "none|nil|not applicable|nicht zutreffend|keine|aucun|ninguno|nessuno"
_AS_FORMED = 0.8  # of the other values
_SHORTEST_WORD = 4


@dataclass(frozen=True)
class WordOfNoValue:
    """A text of the list, by kind: a `sign`, a word that nobody knows the value (`unknown`), or a possible `answer`."""

    kind: Literal["sign", "unknown", "answer"]

    def means_nothing(self, text: str, others: Sequence[str], *, typed: bool) -> bool:
        """Whether it stands for no value in a column with these other values; `typed`, where they are numbers or dates."""
        if typed:
            return True
        if self.kind == "answer" or not others:
            return False
        form = _form(text)
        alike = 0 if form is None else sum(_form(other) == form for other in others)
        return self.kind == "unknown" or text == "" or alike < _AS_FORMED * len(others)


def _form(text: str) -> tuple[bool, int] | None:
    """Signs alone, or a few letters and whether they are capitals; None for everything else, which has no form to speak of."""
    if not any(map(str.isalnum, text)):
        return False, 0
    return (text.isupper(), len(text)) if text.isalpha() and len(text) < _SHORTEST_WORD else None


_WORDS: dict[str, WordOfNoValue] = {
    **{word.strip().lower(): WordOfNoValue("answer") for word in _ANSWERS.split("|")},
    **{
        word.strip().lower(): WordOfNoValue("unknown")
        for line in _UNKNOWN.split("\n")
        for word in line.split("|")
        if word.strip()
    },
    **{word.lower(): WordOfNoValue("sign") for word in _SIGNS.split("|")},
}


def code_of_no_value(text: str) -> WordOfNoValue | None:
    """The word that a text is, in whatever case and with blanks around it; None for any other text.

    >>> code_of_no_value("Unknown").kind, code_of_no_value("n/a").kind, code_of_no_value("Bern")
    ('unknown', 'sign', None)
    """
    return _WORDS.get(text.strip().lower())
