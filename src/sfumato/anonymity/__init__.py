"""A table about people, to be published row by row: class checks on codes, searches, pseudonyms."""

from __future__ import annotations

from sfumato.core.lazy import Kind

KINDS = {"search": Kind("sfumato.anonymity.search.base:Search", ("sfumato.anonymity",))}
