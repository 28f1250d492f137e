"""What the words of a command mean to a session: which tables, which public tables, which keys, which amount."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.cli.usage import Misuse
from sfumato.core.plain_data import Plain

if TYPE_CHECKING:
    from sfumato.data.microdata import Microdata


def tables_of(data: str | None, schema: str | None, others: Sequence[str], reading: Plain) -> Microdata | dict[str, Microdata]:
    """The table behind `--data` and `--schema`, or several by name, each given as NAME=PLACE:SCHEMA; `reading` says
    how the texts of all of them are read, over what their schemas say."""
    from sfumato.engines.sources import read

    if data is None and not others:
        raise Misuse("name the data: --data FILE --schema FILE, or --table NAME=PLACE:SCHEMA")
    if schema is None and data is not None:
        raise Misuse("a private answer needs declared bounds and domains: name the schema with --schema FILE")
    main = None if data is None else read(data, schema=schema, unreadable="missing", **reading)
    if not others:
        assert main is not None  # noqa: S101  (for the type checker)
        return main
    tables = {} if main is None else {main.schema.dataset: main}
    for text in others:
        name, place, described = _named_place(text)
        in_database = "://" in place or Path(place).suffix.lower() in (".duckdb", ".ddb")
        how: dict[str, Any] = {"table": name} if in_database else dict(reading)
        tables[name] = read(place, schema=described, unreadable="missing", **how)
    return tables


def _named_place(text: str) -> tuple[str, str, str]:
    name, equals, rest = text.partition("=")
    place, colon, schema = rest.rpartition(":")
    if not equals or not name.strip() or not colon or not place or not schema.endswith(".toml"):
        raise Misuse("--table is written as NAME=PLACE:SCHEMA, for instance --table visits=visits.csv:visits.toml")
    return name.strip(), place, schema


def public_tables(places: Sequence[str]) -> dict[str, Microdata]:
    """Public tables by name, each given as NAME=PLACE."""
    from sfumato.engines.sources import read

    tables = {}
    for text in places:
        name, equals, place = text.partition("=")
        if not equals or not name.strip() or not place:
            raise Misuse("--public is written as NAME=PLACE, for instance --public cities=cities.csv")
        tables[name.strip()] = read(place)
    return tables


def key_values(lists: Sequence[str]) -> dict[str, list[str] | str] | None:
    """Declared values of grouping keys, each given as NAME=VALUE,VALUE, as texts: the key's type says what they mean. A SELECT
    over public tables stays as it is."""
    keys: dict[str, list[str] | str] = {}
    for text in lists:
        name, equals, values = text.partition("=")
        if not equals or not name.strip() or not values:
            raise Misuse("--keys is written as NAME=VALUE,VALUE, for instance --keys city=Bern,Basel")
        from sfumato.dp.sql.reading.public_lists import is_list_query

        keys[name.strip()] = values if is_list_query(values) else [value.strip() for value in values.split(",")]
    return keys or None


def amount_asked(epsilon: str | None, delta: str | None, rho: str | None) -> dict[str, Any]:  # options of a session
    """What a question may cost, as keyword arguments of a session; empty when nothing is said."""
    if rho is not None and epsilon is not None:
        raise Misuse("spend either --epsilon or --rho, each with --delta where keys are discovered")
    amounts = {"epsilon": epsilon, "delta": delta, "rho": rho}
    return {name: value for name, value in amounts.items() if value is not None}
