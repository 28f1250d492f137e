"""How an adversary reads one released text: as a node of a hierarchy, a range, a mask, everything, or itself.

A text that the release describes is read as described. Otherwise its form speaks: `[20, 30)` is a range,
`130**` a mask whose stars stand for any character, `*` for everything. Reading too much into a text costs
nobody privacy, reading too little would hide an attack, so doubtful cases are read widely.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from sfumato.attacks.tables.classes import ReleasedClasses
from sfumato.data.hierarchies.hierarchy import ROOT, Hierarchy
from sfumato.data.hierarchies.shown_levels import TO as TO
from sfumato.data.microdata import ShownValue

#: Masks with more runs of stars than this are read as everything: no method makes them, and matching them
#: could be slow.
_MOST_RUNS = 2
_RANGE = re.compile(r"[\[(]([^,;]+)[,;]([^,;]+)([\])])")
#: Beyond this, neighbouring whole numbers are the same floating-point number.
_EXACT = 2.0**53


@dataclass(frozen=True)
class TextMeaning:
    """What one text stands for: everything, leaves, numbers in [low, high), or texts that fit a mask."""

    everything: bool = False
    leaves: frozenset[str | None] = frozenset()
    bounds: tuple[float, float] | None = None
    mask: str | None = None

    def fits(self, text: str | None) -> bool:
        """Whether a text fits the mask: a star is one character or, where lengths differ, none."""
        if self.mask is None or text is None:
            return False
        runs = re.split(r"(\*+)", self.mask)
        # one counted repetition per run of stars: star by star a hostile mask would take for ever
        pattern = "".join(f".{{0,{len(run)}}}" if run.startswith("*") else re.escape(run) for run in runs)
        return re.fullmatch(pattern, text, re.DOTALL) is not None

    def may_share_a_text(self, other: TextMeaning) -> bool:
        """Whether two masks can stand for the same text, judged by what they show at both ends."""
        if self.mask is None or other.mask is None:
            return False
        (first, last), (start, end) = _ends(self.mask), _ends(other.mask)
        return (first.startswith(start) or start.startswith(first)) and (last.endswith(end) or end.endswith(last))


def meanings(classes: ReleasedClasses, column: int) -> list[TextMeaning]:
    """What each text of a quasi-identifier stands for."""
    name = classes.quasi[column]
    shown = classes.released.shown.get(name, {})
    tree = classes.released.hierarchies.get(name)
    return [read(label, shown.get(label), tree) for label in classes.labels[column]]


def read(label: str | None, shown: ShownValue | None = None, tree: Hierarchy | None = None) -> TextMeaning:
    """Read one text, with its description and the hierarchy of its column where there are such."""
    if shown is not None and shown.leaves:
        # `*` over the listed leaves also stands for values that the hierarchy does not list
        return TextMeaning(everything=label == ROOT, leaves=shown.leaves)
    if shown is not None and shown.bounds is not None:
        return TextMeaning(bounds=shown.bounds)
    if label is None:
        return TextMeaning(leaves=frozenset([None]))
    if not label.strip("*"):
        return TextMeaning(everything=True)
    ranged = _range(label, tree)
    if ranged is not None:
        return ranged
    runs = len(re.findall(r"\*+", label))
    if runs > _MOST_RUNS:
        return TextMeaning(everything=True)
    return TextMeaning(mask=label if runs else None, leaves=frozenset([label]))


def _range(label: str, tree: Hierarchy | None) -> TextMeaning | None:
    ends = label.split(TO)
    if tree is not None and len(ends) == 2 and ends[0] in tree.index and ends[1] in tree.index:
        return TextMeaning(leaves=frozenset(tree.leaves[tree.index[ends[0]] : tree.index[ends[1]] + 1]))
    match = _RANGE.fullmatch(label.strip())
    if match is None:
        return None
    low, high, closing = (part.strip() for part in match.groups())
    if tree is not None and tree.ordered and low in tree.index and high in tree.index:
        stop = tree.index[high] + (closing == "]")
        return TextMeaning(leaves=frozenset(tree.leaves[tree.index[low] : stop]))
    try:
        first, last = float(low), float(high)
    except ValueError:
        return None
    return TextMeaning(bounds=(first, math.nextafter(last, math.inf) if closing == "]" or abs(last) >= _EXACT else last))


def _ends(mask: str) -> tuple[str, str]:
    return mask[: mask.index("*")], mask[mask.rindex("*") + 1 :]
