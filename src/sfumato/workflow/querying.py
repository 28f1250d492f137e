"""Asking a sensitive table from the command line: which tables, which amount, and the answer in words.

The work is done by `dp.Session`; here its arguments are read from texts and its answers written as lines.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core.certificate import plain
from sfumato.core.errors import ParameterError

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.data.microdata import Microdata
    from sfumato.dp.sql.reach import Interval
    from sfumato.ledger.amounts import LossAmount

    Intervals = Mapping[str, Sequence[Interval | None]]

#: A longer answer is cut on the terminal; files and JSON hold all of it.
MOST_LINES = 60


def tables_of(
    data: str | None, schema: str | None, others: Sequence[str], encoding: str | None = None
) -> Microdata | dict[str, Microdata]:
    """The table behind `--data` and `--schema`, or several by name, each given as NAME=PLACE:SCHEMA."""
    from sfumato.engines.sources import read

    if data is None and not others:
        raise ParameterError("name the data: --data FILE --schema FILE, or --table NAME=PLACE:SCHEMA")
    if schema is None and data is not None:
        raise ParameterError("a private answer needs declared bounds and domains: name the schema with --schema FILE")
    main = None if data is None else read(data, schema=schema, unreadable="missing", **read_as(encoding))
    if not others:
        assert main is not None  # noqa: S101  (for the type checker)
        return main
    tables = {} if main is None else {main.schema.dataset: main}
    for text in others:
        name, place, described = _named_place(text)
        in_database = "://" in place or Path(place).suffix.lower() in (".duckdb", ".ddb")
        how: dict[str, Any] = {"table": name} if in_database else read_as(encoding)
        tables[name] = read(place, schema=described, unreadable="missing", **how)
    return tables


def read_as(encoding: str | None) -> dict[str, Any]:
    """How a text file is to be read, where somebody says it."""
    return {} if encoding is None else {"encoding": encoding}


def _named_place(text: str) -> tuple[str, str, str]:
    name, equals, rest = text.partition("=")
    place, colon, schema = rest.rpartition(":")
    if not equals or not name.strip() or not colon or not place or not schema.endswith(".toml"):
        raise ParameterError("--table is written as NAME=PLACE:SCHEMA, for instance --table visits=visits.csv:visits.toml")
    return name.strip(), place, schema


def public_tables(given: Sequence[str]) -> dict[str, Any]:
    """Public tables by name, each given as NAME=PLACE."""
    from sfumato.engines.sources import read

    found = {}
    for text in given:
        name, equals, place = text.partition("=")
        if not equals or not name.strip() or not place:
            raise ParameterError("--public is written as NAME=PLACE, for instance --public cities=cities.csv")
        found[name.strip()] = read(place)
    return found


def key_values(given: Sequence[str]) -> dict[str, list[str]] | None:
    """Declared values of grouping keys, each given as NAME=VALUE,VALUE, as texts: the key's type says what they mean."""
    found = {}
    for text in given:
        name, equals, values = text.partition("=")
        if not equals or not name.strip() or not values:
            raise ParameterError("--keys is written as NAME=VALUE,VALUE, for instance --keys city=Bern,Basel")
        found[name.strip()] = [value.strip() for value in values.split(",")]
    return found or None


def amount_asked(epsilon: str | None, delta: str | None, rho: str | None) -> dict[str, Any]:
    """What a question may cost, as keyword arguments of a session; empty when nothing is said."""
    if rho is not None and (epsilon is not None or delta is not None):
        raise ParameterError("spend either --epsilon, --epsilon with --delta, or --rho")
    given = {"epsilon": epsilon, "delta": delta, "rho": rho}
    return {name: value for name, value in given.items() if value is not None}


def answer_lines(table: pa.Table, intervals: Intervals, noisy_columns: Collection[str] = ()) -> list[str]:
    """The answer with the margin of every noisy number, or both ends where one is farther off; a question mark for anything.

    `intervals` are by column, of the first `MOST_LINES` rows at least.
    """
    columns = []
    for name in table.column_names:
        values = table.column(name).slice(0, MOST_LINES).to_pylist()
        around = intervals.get(name, [None] * len(values))
        unsure = name in noisy_columns
        columns.append([_cell(value, interval, unsure) for value, interval in zip(values, around, strict=False)])
    widths = [max(len(text) for text in (name, *column)) for name, column in zip(table.column_names, columns, strict=True)]
    rows = [tuple(table.column_names), *zip(*columns, strict=True)]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    left = table.num_rows - MOST_LINES
    return [*lines, f"… and {left:,} more rows (--json or --output has them all)"] if left > 0 else lines


def _cell(value: Any, interval: Interval | None, unsure: bool) -> str:
    from sfumato.report.escape import shorten

    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return shorten(value, 60)
    if interval is None:
        return f"{value:,} ± ?" if unsure else f"{value:,}"
    return interval.beside(value)


def cost_lines(loss: Any, entry: str | None, repeated: bool, left: LossAmount | None) -> list[str]:
    """What the answer cost and what is left."""
    told = str(amount(loss))
    if repeated:
        paid = f"; it was charged {told}" + (f" (ledger entry {entry[:16]}…)" if entry else "")
        lines = [f"cost      nothing: what it needs was answered before, and the same numbers are shown{paid}"]
    else:
        lines = [f"cost      {told}" + (f" (ledger entry {entry[:16]}…)" if entry else "")]
    return [*lines, *([] if left is None else [f"left      {left}"])]


def amount(loss: Any) -> Any:
    """A guarantee as an amount where the ledger can hold it; otherwise its words."""
    from sfumato.core.errors import SfumatoError
    from sfumato.ledger.amounts import LossAmount

    try:
        return LossAmount.of(loss)
    except SfumatoError:
        return loss.claim()


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """The rows as plain data."""
    return [{name: _plain(value) for name, value in row.items()} for row in table.to_pylist()]


def _plain(value: Any) -> Any:
    return plain(value) if isinstance(value, (bool, int, float, str, type(None), Mapping, list)) else str(value)
