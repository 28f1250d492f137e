"""The owner's list of what is to be hidden: itemsets and rules, in a file, with the key of its digest.

A text file has an itemset in each line, its items with commas between them (or tabs, or blanks), or a rule as `items -> items`.
The file beside a release is JSON and holds the key as well: whoever is given it can check the digest in the certificate, and
without the key nobody can test a guess about the list. The digest is HMAC-SHA256 (RFC 2104) of the list in canonical form.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from sfumato.core.certificate import canonical
from sfumato.core.errors import InputError, ParameterError, SourceError, all_at_once
from sfumato.core.guarantees.hidden import Hidden, Itemset, RuleSides

FORMAT = "sfumato-itemsets-1"
_LARGEST = 64_000_000
_ARROW = "->"
_KEY_BYTES = 32
_SHOWN = 10


@dataclass(frozen=True)
class ItemsetList:
    """What is to be hidden, and the key of the digest that a certificate names; without a key there is no digest."""

    itemsets: tuple[Itemset, ...] = field(default=(), repr=False)
    rules: tuple[RuleSides, ...] = field(default=(), repr=False)
    key: bytes | None = field(default=None, repr=False)

    @classmethod
    def of(cls, hidden: Hidden, key: bytes | None = None) -> Self:
        """The list of a guarantee."""
        return cls(hidden.itemsets, hidden.rules, key)

    @property
    def digest(self) -> str | None:
        """How a certificate names the list."""
        if self.key is None:
            return None
        content = canonical({"format": FORMAT, "itemsets": sorted(self.itemsets), "rules": sorted(self.rules)})
        return f"{FORMAT}:{hmac.new(self.key, content, hashlib.sha256).hexdigest()}"

    def promise(self, support: float, confidence: float | None) -> Hidden:
        """The guarantee about this list at these thresholds."""
        return Hidden(self.itemsets, support, confidence, self.rules)

    def written(self) -> bytes:
        """The list as the file that its owner keeps."""
        stored = {
            "format": FORMAT,
            "key": None if self.key is None else self.key.hex(),
            "itemsets": [list(itemset) for itemset in self.itemsets],
            "rules": [[list(left), list(right)] for left, right in self.rules],
        }
        return (json.dumps(stored, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """A list from a file; every line that is none is named, and no item."""
        place = Path(path)
        try:
            if place.stat().st_size > _LARGEST:
                raise InputError(f"'{place.name}' is larger than {_LARGEST:,} bytes, as no list of itemsets is")
            text = place.read_bytes().decode("utf-8")
        except OSError as error:
            raise SourceError(f"'{place.name}' cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise InputError(f"'{place.name}' is not UTF-8 text") from None
        content = _of_json(text, place.name) if text.lstrip().startswith("{") else _of_lines(text.splitlines(), place.name)
        return cls(*content)


def _of_json(text: str, name: str) -> tuple[tuple[Itemset, ...], tuple[RuleSides, ...], bytes | None]:
    try:
        stored = json.loads(text)
        if stored.get("format") != FORMAT or set(stored) != {"format", "key", "itemsets", "rules"}:
            raise InputError(f"'{name}' is no list of itemsets as releases write it ({FORMAT})")
        hidden = Hidden(stored["itemsets"], 1, 1.0, stored["rules"])
        key = None if stored["key"] is None else bytes.fromhex(stored["key"])
    except InputError:
        raise
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise InputError(f"'{name}' is no list of itemsets as releases write it ({FORMAT})") from None
    if key is not None and len(key) != _KEY_BYTES:
        raise InputError(f"'{name}' has a key of another length than {_KEY_BYTES} bytes")
    return hidden.itemsets, hidden.rules, key


def _of_lines(lines: Iterable[str], name: str) -> tuple[tuple[Itemset, ...], tuple[RuleSides, ...]]:
    itemsets: list[list[str]] = []
    rules: list[tuple[list[str], list[str]]] = []
    broken = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        sides = [_items(side) for side in line.split(_ARROW)]
        try:
            if len(sides) == 1:
                Hidden((tuple(sides[0]),), 1)
                itemsets.append(sides[0])
            else:
                Hidden((), 1, 1.0, [sides])  # type: ignore[arg-type]  # what is no pair is refused
                rules.append((sides[0], sides[1]))
        except ParameterError:
            broken.append(number)
    shown = ", ".join(map(str, broken[:_SHOWN])) + (f" and {len(broken) - _SHOWN:,} more" if len(broken) > _SHOWN else "")
    faults = [f"neither an itemset nor a rule in line {shown}"] if broken else []
    faults += [] if itemsets or rules or broken else ["no itemset and no rule is in it"]
    all_at_once(InputError, f"'{name}'", faults)
    listed = Hidden(itemsets, 1, 1.0, rules)  # type: ignore[arg-type]  # the guarantee settles what it is told
    return listed.itemsets, listed.rules


def _items(text: str) -> list[str]:
    separator = "\t" if "\t" in text else "," if "," in text else None
    return [item.strip() for item in text.strip().split(separator)]
