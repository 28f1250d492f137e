"""Damage that keeps the form: one value of a JSON or TOML file exchanged, one cell of a ledger, a column of another type."""

from __future__ import annotations

import copy
import datetime
import io
import json
import random
import sqlite3
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import tomlkit

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 5, 10**19, -(2**63), 1e308, -1e-320, 0.5, "", " ", "x", "²", "\x1b[2J", "\u202eabc",
    "../../etc/passwd", "/dev/zero", "nan", "infinite", "1e999", "9" * 400,
    [], [1], [[]], [None], ["a", "a"], {}, {"a": 1}, {"file": "x"}, {"": {}},
    "a" * 5_000,
    {"intervals": 5}, {"intervals": [1, 3]}, {"mask": "right", "width": 10**9}, {"dates": []}, [0, 1e999], [5, 1], "2024-13-45",
)  # fmt: skip


def json_value(content: bytes, draw: random.Random, others: Sequence[bytes]) -> bytes:
    """Exchange, remove or double values of a JSON file."""
    try:
        tree = json.loads(content)
    except (ValueError, RecursionError):
        return content
    return json.dumps(_changed(tree, draw)).encode("utf-8", "surrogatepass")


def toml_value(content: bytes, draw: random.Random, others: Sequence[bytes]) -> bytes:
    """Exchange, remove or double values of a TOML file."""
    try:
        tree = tomllib.loads(content.decode())
        return tomlkit.dumps(_changed(tree, draw)).encode()
    except (ValueError, RecursionError, TypeError, tomlkit.exceptions.TOMLKitError):
        return content


def _changed(tree: Any, draw: random.Random) -> Any:
    tree = copy.deepcopy(tree)
    for _ in range(draw.choice((1, 1, 2))):
        places = list(_places(tree))
        if not places:
            break
        holder, key = draw.choice(places)
        match draw.randrange(6):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[draw.choice(("x", "", "name", "file", "k", "ключ"))] = copy.deepcopy(holder[key])
            case 1:
                holder.append(copy.deepcopy(holder[key]))
            case 2:
                other, place = draw.choice(places)
                holder[key] = (
                    copy.deepcopy(other[place]) if place in (other if isinstance(other, dict) else range(len(other))) else 1
                )
            case _:
                holder[key] = copy.deepcopy(draw.choice(ODD))
    return tree


def _places(tree: Any) -> list[tuple[Any, Any]]:
    found, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        entries = list(node.items()) if isinstance(node, dict) else list(enumerate(node)) if isinstance(node, list) else []
        found += [(node, key) for key, _ in entries]
        waiting += [below for _, below in entries]
    return found


def ledger_cell(content: bytes, draw: random.Random, others: Sequence[bytes]) -> bytes:
    """Exchange a cell of a ledger's tables, as somebody who may write the file can."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        path.write_bytes(content)
        connection = sqlite3.connect(path)
        try:
            connection.execute("PRAGMA journal_mode = DELETE")
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                connection.execute(f'DROP TRIGGER "{name}"')
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()]
            table = draw.choice(tables)
            columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
            rows = [row[0] for row in connection.execute(f'SELECT rowid FROM "{table}"').fetchall()]
            value = draw.choice([each for each in ODD if not isinstance(each, int) or abs(each) < 2**63])
            value = json.dumps(value) if isinstance(value, (list, dict)) else draw.choice((value, b"\xff\x00", json.dumps(value)))
            if draw.random() < 0.2 and rows:
                connection.execute(f'DELETE FROM "{table}" WHERE rowid = ?', (draw.choice(rows),))
            elif rows:
                connection.execute(
                    f'UPDATE "{table}" SET "{draw.choice(columns)}" = ? WHERE rowid = ?', (value, draw.choice(rows))
                )
            connection.commit()
        except (sqlite3.Error, UnicodeDecodeError, IndexError):  # damaged before: even the words of the error
            pass
        finally:
            connection.close()
        return path.read_bytes()


def _drawn(draw: random.Random, *values: Any) -> list[Any]:
    return [draw.choice(values) for _ in range(60)]


def _whole_numbers(draw: random.Random, least: int, most: int, kind: pa.DataType) -> pa.Array:
    return pa.array([draw.randrange(least, most) for _ in range(60)], pa.int64()).cast(kind)


_COLUMNS: tuple[Callable[[random.Random], pa.Array], ...] = (
    lambda draw: pa.array(_drawn(draw, 0.0, float("nan"), float("inf"), -float("inf"), 1e308, 5e-324, None), pa.float64()),
    lambda draw: pa.array(_drawn(draw, 0, 2**63 - 1, -(2**63), None), pa.int64()),
    lambda draw: pa.array(_drawn(draw, 0, 2**64 - 1), pa.uint64()),
    lambda draw: pa.array(_drawn(draw, b"\xff\xfe", b"", None), pa.binary()),
    lambda draw: pa.array(_drawn(draw, "", "²", "\x00", "\x1b[2J", "1", "01", " 1", "nan", None), pa.string()),
    lambda draw: _whole_numbers(draw, -(2**31), 2**31, pa.int32()).cast(pa.date32()),
    lambda draw: _whole_numbers(draw, -(2**62), 2**62, pa.timestamp(draw.choice(("s", "ms", "us", "ns")))),
    lambda draw: _whole_numbers(draw, 0, 2**62, pa.timestamp("us", draw.choice(("UTC", "Asia/Tokyo", "+14:00")))),
    lambda draw: _whole_numbers(draw, 0, 86_400, pa.int32()).cast(pa.time32("s")),
    lambda draw: _whole_numbers(draw, 0, 2**40, pa.duration("us")),
    lambda draw: pa.array(["1.5", "-99999999999999999999999999999999999.9", None] * 20).cast(pa.decimal128(38, 1)),
    lambda draw: pa.array(["1.5", "9" * 70 + ".9", None] * 20).cast(pa.decimal256(76, 2)),
    lambda draw: pa.array([[1, 2], [], None] * 20),
    lambda draw: pa.array([{"a": 1}, None, {"a": None}] * 20),
    lambda draw: pa.nulls(60),
    lambda draw: pa.array([True, False, None] * 20),
    lambda draw: pa.array([1.5, None, 65504] * 20, pa.float32()).cast(pa.float16()),
    lambda draw: pa.array(["a", None, "b"] * 20).dictionary_encode(),
    lambda draw: pa.array([datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None] * 20),
)
_NAMES = (
    "",
    " ",
    "age",
    "AGE",
    "age ",
    "ä",
    "a" * 300,
    "x\x00y",
    "\u202e",
    "1",
    "select",
    '"',
    "__index_level_0__",
    "zip",
    "day",
)


def parquet_columns(content: bytes, draw: random.Random, others: Sequence[bytes]) -> bytes:
    """A sound file with odd types, extreme values, odd and doubled names."""
    chosen = [(draw.choice(_NAMES), draw.choice(_COLUMNS)(draw)) for _ in range(draw.randint(1, 5))]
    place = io.BytesIO()
    try:
        table = pa.Table.from_arrays([column for _, column in chosen], names=[name for name, _ in chosen])
        if draw.random() < 0.3:
            table = table.replace_schema_metadata({"pandas": json.dumps({"index_columns": draw.choice(ODD)})})
        pq.write_table(table, place)
    except (pa.ArrowException, ValueError):
        return content
    return place.getvalue()
