"""Pseudonyms: identifiers replaced by names that look random and are the same for the same person in every table.

A pseudonym is HMAC-SHA256 of scope and identifier under the owner's key, in base 32: without the key nobody can
compute it from a guessed identifier or go back; other scopes give unrelated pseudonyms, so that tables which must
not be joined cannot be. It is no protection by itself: the other attributes still single people out, see `WARNING`.
Pfitzmann, Hansen, "A terminology for talking about privacy by data minimization", 2010; RFC 2104.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal

from sfumato.core.declared import Declared
from sfumato.core.errors import InputError, Unsupported, all_at_once, forgetting
from sfumato.core.files import read_private, write_private
from sfumato.core.ranges import Instance, Made, Text, Whole
from sfumato.data.texts.values import text_of
from sfumato.wire.keys import OwnerKey

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.engines.plan import Plan

LENGTH = 26
SHORTEST, LONGEST = 16, 51
MAP_FORMAT = "sfumato-pseudonym-map-1"
MAP_LIMIT = 4_000_000_000

#: The notice that goes with every release in which identifiers were only dropped or replaced.
WARNING = (
    "Removing identifiers or replacing them by pseudonyms does not make a table anonymous: whoever knows a "
    "few of a "
    "person's other attributes can find the record by a plain join, and a pseudonym links everything "
    "recorded about the "
    "person. A guarantee such as k-anonymity helps only where all records of a person are in one class; otherwise drop the "
    "column. Attack the result before publishing."
)


@dataclass(frozen=True)
class Pseudonyms(Declared):
    """Pseudonyms of one `scope`, a kind of identifier such as "patient"; with the same `key` it gives equal pseudonyms.

    `length` counts characters of 5 bits each (26 are 130 bits). `unicode_form="NFC"` takes composed and decomposed
    spellings of a name for the same; otherwise identifiers are compared as they are.

    >>> patients = Pseudonyms(OwnerKey(bytes(32)), scope="patient")
    >>> patients.of("Ada") == patients.of("Ada") != Pseudonyms(OwnerKey(bytes(32)), scope="doctor").of("Ada")
    True
    """

    key: Annotated[OwnerKey, Instance(OwnerKey, "an owner's key; see load_or_create_owner_key"), "the owner's key"] = field(
        repr=False
    )
    scope: Annotated[str, Text("a kind of identifier, such as 'patient'"), "the kind of identifier"]
    length: Annotated[int, Whole(at_least=SHORTEST, at_most=LONGEST), "characters of a pseudonym"] = LENGTH
    unicode_form: Annotated[Literal["NFC", "NFKC"] | None, "which spellings of a name are taken for the same"] = None

    def of(self, identifier: object) -> str | None:
        """The pseudonym of one identifier; a missing one stays missing. Numbers and their text are the same
        person.
        """
        return self._of(identifier, self._key())

    def apply(self, column: pa.Array | pa.ChunkedArray) -> pa.Array:
        """A column of identifiers as a column of pseudonyms, computed once per distinct identifier."""
        import pyarrow as pa

        encoded = _encoded(column)
        key = self._key()
        names = [self._of(value, key) for value in encoded.dictionary.to_pylist()]
        return pa.DictionaryArray.from_arrays(encoded.indices, pa.array(names, pa.string())).cast(pa.string())

    def map_of(self, column: pa.Array | pa.ChunkedArray) -> PseudonymMap:
        """The way back for the identifiers of a column: to be saved apart from the release, or not at all."""
        key = self._key()
        encoded = _encoded(column)
        occurring = encoded.dictionary.take(encoded.indices.drop_null().unique())
        present = [value for value in occurring.to_pylist() if text_of(value) is not None]
        named = ((self._of(value, key), self._text(value)) for value in present)
        return PseudonymMap(self.scope, {name: text for name, text in named if name is not None and text is not None})

    def _key(self) -> bytes:
        return self.key.derive("pseudonyms")

    def _prefix(self) -> bytes:
        """What every message begins with, so that no message of one scope is one of another."""
        scope = self.scope.encode()
        return len(scope).to_bytes(8, "big") + scope

    def _text(self, identifier: object) -> str | None:
        text = text_of(identifier)
        return unicodedata.normalize(self.unicode_form, text) if text is not None and self.unicode_form else text

    def _of(self, identifier: object, key: bytes) -> str | None:
        text = self._text(identifier)
        if text is None:
            return None
        digest = hmac.digest(key, self._prefix() + text.encode("utf-8", "surrogatepass"), hashlib.sha256)
        return base64.b32encode(digest).decode().lower()[: self.length]


def with_pseudonyms(plan: Plan, names: Mapping[str, Pseudonyms]) -> tuple[Plan, dict[str, pa.Table]]:
    """The plan with these columns replaced by their pseudonyms, which the engine computes, and the table to upload for it.

    They are those of `Pseudonyms.apply`. The key is in the uploaded table alone, see `engines.digests.keyed_names`; an engine
    that could not hide it refuses. Refused as well: numbers with a point and moments, which engines do not write alike, and
    `unicode_form`.
    """
    from sfumato.engines.digests.keyed_names import Naming, with_keyed_names

    spelled = (
        f"column '{name}' has unicode_form, which engines do not share" for name, each in names.items() if each.unicode_form
    )
    all_at_once(Unsupported, "pseudonyms", spelled)
    keys = {each._key() for each in names.values()}
    if len(keys) > 1:
        raise Unsupported("the pseudonyms of one table have one key")
    naming = {name: Naming(each._prefix(), each.length) for name, each in names.items()}
    return with_keyed_names(plan, naming, next(iter(keys), b""))


def _fixed(table: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType(dict(table))


@dataclass(frozen=True)
class PseudonymMap(Declared):
    """Pseudonyms of a `scope` back to `identifiers`, for a privileged user: a file of mode 0600, never inside a release
    folder.
    """

    scope: Annotated[str, "the kind of identifier"]
    identifiers: Annotated[
        Mapping[str, str], Made(_fixed, "a table of pseudonyms and identifiers"), "pseudonym to identifier"
    ] = field(repr=False)

    def __len__(self) -> int:
        return len(self.identifiers)

    def resolve(self, pseudonym: str) -> str:
        """The identifier behind a pseudonym."""
        try:
            return self.identifiers[pseudonym]
        except KeyError:
            raise InputError(f"this pseudonym is not in the map of scope '{self.scope}'") from None

    def merged(self, other: PseudonymMap) -> PseudonymMap:
        """Both maps as one, for several tables of one scope and key."""
        if self.scope != other.scope:
            raise InputError("only maps of the same scope can be merged")
        if any(other.identifiers.get(name, text) != text for name, text in self.identifiers.items()):
            raise InputError("the maps contradict each other: they were made with different keys or unicode forms")
        return PseudonymMap(self.scope, {**self.identifiers, **other.identifiers})

    def save(self, path: str | os.PathLike[str], *, replace: bool = False) -> None:
        """Write the map to a file of its owner; refused inside a release folder."""
        refuse_inside_release(path)
        content = {"format": MAP_FORMAT, "scope": self.scope, "identifiers": dict(self.identifiers)}
        write_private(
            path,
            json.dumps(content, ensure_ascii=False, indent=0).encode("utf-8", "surrogatepass"),
            replace=replace,
        )

    @classmethod
    @forgetting()
    def load(cls, path: str | os.PathLike[str]) -> PseudonymMap:
        """Read a map; refused when others may read it."""
        try:
            content = json.loads(read_private(path, limit=MAP_LIMIT).decode("utf-8", "surrogatepass"))
            scope, identifiers = content["scope"], content["identifiers"]
            plain = isinstance(scope, str) and all(isinstance(text, str) for text in identifiers.values())
            if content["format"] != MAP_FORMAT or not plain:
                raise ValueError
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise InputError(f"{os.fspath(path)} is not a pseudonym map, or it is damaged") from None
        return cls(scope, identifiers)


def refuse_inside_release(path: str | os.PathLike[str]) -> None:
    """Refuse a place inside a folder that holds a release: what is secret must not travel with it."""
    for folder in Path(os.path.realpath(path)).parents:
        marks = (folder / "certificate.json", folder / "public" / "certificate.json")
        if any(os.path.lexists(mark) for mark in marks) or folder.name == "public":
            raise InputError("a pseudonym map is never kept in a release folder. Name a file elsewhere.")


def _encoded(column: pa.Array | pa.ChunkedArray) -> pa.DictionaryArray:
    import pyarrow as pa

    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(whole, pa.ChunkedArray):  # older Arrow versions return a single chunk
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], whole.type)
    if isinstance(whole, pa.DictionaryArray):
        return whole
    return whole.dictionary_encode()
