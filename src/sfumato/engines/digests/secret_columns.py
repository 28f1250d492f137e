"""Columns of uploaded tables that no statement, plan or log may show; where they would appear, they are refused."""

from __future__ import annotations

from collections.abc import Iterable

from sfumato.core.errors import Unsupported

#: How the names of such columns begin; no column of data is called so.
SECRET = "\x00secret "  # noqa: S105 - the beginning of a name


def holds_secret(names: Iterable[str]) -> bool:
    """True where one of these columns is secret."""
    return any(name.startswith(SECRET) for name in names)


def refuse_secret(names: Iterable[str], why: str) -> None:
    """Refuse to bring secret columns to a place where they could be read."""
    if holds_secret(names):
        raise Unsupported(f"pseudonyms and draws cannot be computed there without showing their key: {why}")
