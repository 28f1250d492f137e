"""Every test of the ledger runs on SQLite and on PostgreSQL."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from sfumato.ledger import Ledger


@dataclass(frozen=True)
class Place:
    """An address at which a ledger can be opened, and a way to edit it behind the ledger's back."""

    address: str
    edit: Callable[[str], None]

    def open(self, **options: object) -> Ledger:
        return Ledger.open(self.address, **options)  # type: ignore[arg-type]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "sqlite":
        yield sqlite_place(tmp_path / "ledger.db")
    else:
        yield from postgres_place(request.getfixturevalue("postgres_url"))


@pytest.fixture
def ledger(place: Place) -> Iterator[Ledger]:
    with place.open() as opened:
        yield opened


def sqlite_place(path: Path) -> Place:
    def edit(statement: str) -> None:
        import sqlite3

        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("DROP TRIGGER IF EXISTS entries_no_UPDATE")
        connection.execute("DROP TRIGGER IF EXISTS entries_no_DELETE")
        connection.execute(statement.replace("{t}", ""))
        connection.close()

    return Place(str(path), edit)


def postgres_place(url: str) -> Iterator[Place]:
    """A schema of its own, so that tests do not see each other's ledger."""
    import psycopg

    schema = f"ledger_{secrets.token_hex(6)}"
    separator = "&" if "?" in url else "?"
    address = f"{url}{separator}options=-csearch_path%3D{schema}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")

    def edit(statement: str) -> None:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("ALTER TABLE sfumato_ledger_entries DISABLE TRIGGER USER")
            connection.execute(statement.replace("{t}", "sfumato_ledger_"))

    try:
        yield Place(address, edit)
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA {schema} CASCADE")
