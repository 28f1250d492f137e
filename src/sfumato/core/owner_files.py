"""Files that the data owner edits: read them, and say what is wrong with them in words, without echoing their values."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sfumato.core.errors import SfumatoError, as_name, forgetting
from sfumato.core.files import MOST_TEXT_BYTES, read_plain
from sfumato.core.plain_data import PlainDict
from sfumato.core.texts import closest

_MOST_BITS = 1000  # a larger whole number is beyond every floating-point number
#: What validation calls a fault, and what the owner should read instead.
_WORDS = {
    "missing": "is missing",
    "string_type": "must be text (in quotes)",
    "string_too_short": "must not be empty",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be a table of keys and values",
    "model_type": "must be a table of keys and values",
    "mapping_type": "must be a table of keys and values",
}
#: The form of texts that have one, by key.
_FORMS = {"ledger": "must be the id of a ledger, 32 hexadecimal digits"}


@forgetting()
def load_toml(path: Path, error: type[SfumatoError], what: str, start: str, *, limit: int = MOST_TEXT_BYTES) -> PlainDict:
    """The content of a TOML file; `start` tells where to get one from."""
    try:
        return parse_toml(read_plain(path, error, limit=limit, what=f"{what} file").decode("utf-8"))
    except FileNotFoundError:
        raise error(f"there is no {what} file '{path}'. {start}") from None
    except UnicodeDecodeError as fault:
        raise error(f"the {what} file '{path}' is not UTF-8 text (byte {fault.start + 1:,}); save it as UTF-8") from None
    except OSError as fault:
        raise error(f"cannot read the {what} file '{path}': {type(fault).__name__}") from None
    except (ValueError, RecursionError) as fault:
        raise error(f"'{path}' is not valid TOML: {_reason(fault)}") from None


def parse_toml(text: str) -> PlainDict:
    """TOML as plain data; a `ValueError` where it is none, or holds a whole number that nothing can be counted in."""
    content = tomllib.loads(text)
    if any(value.bit_length() > _MOST_BITS for value in _whole_numbers(content)):
        raise ValueError
    return content


def _whole_numbers(value: object) -> Iterator[int]:
    if isinstance(value, (dict, list)):
        for entry in value.values() if isinstance(value, dict) else value:
            yield from _whole_numbers(entry)
    elif isinstance(value, int):
        yield value


def _reason(fault: Exception) -> str:
    if isinstance(fault, tomllib.TOMLDecodeError):
        return _place_in(str(fault))
    return "it is nested too deeply" if isinstance(fault, RecursionError) else "it holds a whole number that is too large"


def _place_in(text: str) -> str:
    """What the parser says, without what it quotes of the file."""
    return re.sub(r"'[^'\n]{4,}'|\"[^\"\n]{4,}\"", "…", text)


def readable(
    faults: Iterable[Mapping[str, Any]],  # as Pydantic lists them
    what: str,
    keys: Iterable[str],
    top: Iterable[str] = (),
    sections: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """Validation faults (as Pydantic lists them) as sentences: the place, what is wrong, the nearest known key; `top` are the
    keys that stand at the top of the file, and `sections` says of other keys below which one they stand."""
    names, above = sorted(keys), set(top)
    sentences = []
    for fault in faults:
        place = ".".join(as_name(part).strip("'") for part in fault["loc"]) or what
        text = _WORDS.get(str(fault["type"])) or _in_our_words(fault)
        if fault["type"] == "string_pattern_mismatch":
            text = _FORMS.get(str(fault["loc"][-1]), "is not written in the form that it needs")
        if fault["type"] == "extra_forbidden":
            text = _unknown(str(fault["loc"][-1]), names, above if len(fault["loc"]) > 1 else set(), sections)
        sentences.append(f"{place}: {text}")
    return sentences


def _in_our_words(fault: Mapping[str, object]) -> str:
    """What validation says, as a sentence about a key."""
    text, about = str(fault["msg"]), fault.get("ctx")
    if fault["type"] in ("too_long", "too_short") and isinstance(about, Mapping):
        most, least = about.get("max_length"), about.get("min_length")
        return f"must have {f'at most {most}' if fault['type'] == 'too_long' else f'at least {least}'} entries"
    plain = text.removeprefix("Value error, ")
    ours = (("Input should be ", "must be "), (" a valid ", " a "), ("greater than or equal to", "at least"))
    for theirs, instead in (*ours, ("less than or equal to", "at most"), ("greater than", "above"), ("less than", "below")):
        plain = plain.replace(theirs, instead) if text.startswith("Input should be ") else plain
    return plain


def _unknown(key: str, keys: Iterable[str], above: set[str], sections: Mapping[str, str]) -> str:
    """A key that is not known where it stands."""
    if key in sections and key not in above:
        near = closest(key, keys)
        meant = f"did you mean '{near}'? '{key}'" if near is not None and near != key else "it"
        return f"unknown key here; {meant} belongs below [{sections[key]}]"
    if key in above:
        return "unknown key here; it belongs at the top of the file, above the first line in [brackets]"
    near = closest(key, keys)
    if key not in keys and near is not None:
        return f"unknown key; did you mean '{near}'?"
    return "unknown key here; remove it" if key in keys else "unknown key; remove it or correct its spelling"
