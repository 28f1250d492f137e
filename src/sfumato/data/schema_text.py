"""A starting schema as a file that a person edits: short lines, a comment with the reason above each role, long lists left out.

A domain that was learnt binds nobody, so that one of many or of long values is left out, and that is said.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.data.schema import Column, Schema

#: No line is longer, unless a single name or value is.
WIDTH = 110
_MOST_LISTED = 40
_LONGEST_LISTED = 60


def schema_to_edit(
    schema: Schema, reasons: Mapping[str, str], of_reading: Mapping[str, str], questions: Sequence[str] = ()
) -> str:
    """The schema as TOML; `reasons` by column, `of_reading` by key of `read`, `questions` where the owner has to choose."""
    lines = [f"dataset = {_text(schema.dataset)}"]
    if schema.roles == "proposed":
        lines += comment(
            "Delete the next line when you have read the role of every column: until then each release is warned about."
        )
        lines.append(f"roles = {_text(schema.roles)}")
    if schema.declared_unit is not None:
        lines.append(f"unit = {_text(schema.declared_unit)}")
    lines += _read(schema, of_reading, questions)
    if publication := schema.publication.stated():
        lines += ["", "[publication]", *(f"{key} = {_text(value)}" for key, value in publication.items())]
    for name, column in schema.columns.items():
        lines += ["", f"[columns.{_key(name)}]", *comment(reasons.get(name, ""))]
        lines += _column(column)
    return "\n".join(lines) + "\n"


def comment(text: str) -> list[str]:
    """A text as lines of comment; what a terminal or an editor would not show is a blank."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    return [f"# {line}" for line in textwrap.wrap(" ".join(shown.split()), WIDTH - 2, break_on_hyphens=False)]


def _read(schema: Schema, reasons: Mapping[str, str], questions: Sequence[str]) -> list[str]:
    stated = schema.read.to_mapping()
    if not stated and not questions:
        return []
    lines = ["", "[read]"]
    for key, value in stated.items():
        lines += comment(f"{key}: {reasons[key]}" if reasons.get(key) else "")
        lines += _entry(key, value)
    for question in questions:
        lines += comment(f"TO DECIDE. {question}")
    return lines


def _column(column: Column) -> list[str]:
    stated = {"role": column.role, **column.model_dump(exclude_defaults=True, exclude_none=True, exclude={"role"})}
    lines = []
    for key, value in stated.items():
        if key == "domain" and column.source == "data" and _is_long(value):
            lines += comment(f"domain: its {len(value):,} values were learnt and bind nobody, so that they are left out")
            continue
        lines += _entry(key, value)
    return lines


def _is_long(values: Sequence[str]) -> bool:
    return len(values) > _MOST_LISTED or any(len(value) > _LONGEST_LISTED for value in values)


def _entry(key: str, value: Any) -> list[str]:
    written = _value(value)
    if len(key) + len(written) + 3 <= WIDTH:
        return [f"{_key(key)} = {written}"]
    if isinstance(value, Mapping) and len(value) == 1:  # an inline table stays on its line, an array within need not
        [(inner, listed)] = value.items()
        if isinstance(listed, (list, tuple)):
            return [f"{_key(key)} = {{{_key(inner)} = [", *_wrapped(listed), "]}"]
    if isinstance(value, (list, tuple)):
        return [f"{_key(key)} = [", *_wrapped(value), "]"]
    return [f"{_key(key)} = {written}"]


def _wrapped(values: Sequence[Any]) -> list[str]:
    lines, line = [], "   "
    for value in values:
        written = f" {_value(value)},"
        if len(line) + len(written) > WIDTH and line.strip():
            lines.append(line)
            line = "   "
        line += written
    return [*lines, line]


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)} = {_value(entry)}" for key, entry in value.items() if entry is not None) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_value, value)) + "]"
    return _text(value) if isinstance(value, str) else str(value)


def _text(text: str) -> str:
    """A string of one line, whatever is in it."""
    from tomlkit.items import String, StringType

    return String.from_raw(text, StringType.SLB).as_string()


def _key(name: str) -> str:
    import tomlkit

    return tomlkit.key(name).as_string()
