"""`sfumato.toml` in the working folder: the dataset, the ledger and the signing key of a project, for options that nobody typed.

Only the file in the working folder itself is read, as a plain file of bounded size; it holds names and paths, no secret.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.cli.output import beside, complain
from sfumato.cli.usage import Library
from sfumato.core.errors import RecipeError, all_at_once, as_name

if TYPE_CHECKING:
    from sfumato.core.plain_data import PlainDict

FILE = "sfumato.toml"
#: Keys of the file, and the parameter of a command that each is the default of.
PARAMETERS: Mapping[str, str] = {"dataset": "dataset", "ledger": "ledger", "key": "sign"}
_MEANINGS = {"dataset": "the id of a dataset", "ledger": "the ledger's file or URL", "key": "the file of a signing key"}
#: What commands do not take from the file: a release of somebody else is entered in a ledger of theirs.
_NOT_FOR = {"verify": frozenset({"ledger"})}
_MOST_BYTES = 64_000
_LONGEST = 4096


class Defaults(Mapping[str, str]):
    """The defaults by the names of parameters; the file is read when the first of them is asked for."""

    def __init__(self, command: str | None = None, *, resilient: bool = False) -> None:
        self._read: Mapping[str, str] | None = {} if resilient else None  # completion never fails because of a file
        self._left_out = _NOT_FOR.get(command or "", frozenset())

    def __getitem__(self, name: str) -> str:
        key = next(key for key, parameter in PARAMETERS.items() if parameter == name) if name in PARAMETERS.values() else None
        if key is None or key in self._left_out:
            raise KeyError(name)
        if self._read is None:
            self._read = load()
        return self._read[key]

    def __iter__(self) -> Iterator[str]:
        return (name for name in PARAMETERS.values() if name in self)

    def __len__(self) -> int:
        return len(list(iter(self)))


def load() -> PlainDict:
    """What the file in the working folder says; nothing where there is none. All faults at once."""
    place = Path(FILE)
    try:
        if not place.exists() and not place.is_symlink():
            return {}
    except OSError:
        return {}
    from sfumato.core.owner_files import load_toml

    if place.is_symlink():
        raise RecipeError(f"{FILE} is a link, and only a file in this folder is read: copy it here")
    content = load_toml(place, RecipeError, "defaults", f"Keys are {', '.join(PARAMETERS)}.", limit=_MOST_BYTES)
    all_at_once(RecipeError, FILE, [fault for name, value in content.items() for fault in _faults(name, value)])
    return content


def _faults(name: str, value: object) -> list[str]:
    from sfumato.core.texts import nearest

    if name not in PARAMETERS:
        hint = nearest(name, PARAMETERS) or f"; it may have {', '.join(PARAMETERS)}"
        return [f"unknown key {as_name(name)}{hint}"]
    if not isinstance(value, str) or not value.strip() or not value.isprintable() or len(value) > _LONGEST:
        return [f"{name} must be {_MEANINGS[name]}, as a text in quotes"]
    if name == "key" and ("PRIVATE KEY" in value or "://" in value):
        return ["key must be the file of a signing key: the key itself does not belong here"]
    if name == "ledger" and _has_secrets(value):
        return ["ledger holds a password, which does not belong here: use the password file of PostgreSQL, or --ledger"]
    return []


def _has_secrets(address: str) -> bool:
    from urllib.parse import urlsplit

    if "://" not in address:
        return re.search(r"(^|\s)(password|passfile|sslpassword)\s*=", address, re.IGNORECASE) is not None
    try:
        parts = urlsplit(address)
        return parts.password is not None or "password" in parts.query.lower() or "@" in parts.path
    except ValueError:
        return True


def announce(ctx: Library) -> None:
    """Remember which options came from the file, and say so once: on standard error, or in the JSON."""
    noted = {}
    for key, parameter in PARAMETERS.items():
        source = ctx.get_parameter_source(parameter) if parameter in ctx.params else None
        if source is not None and source.name == "DEFAULT_MAP" and _is_used(ctx, key):
            noted[key] = str(ctx.params[parameter])
    beside.set({"file": FILE, **noted} if noted else {})
    if not (ctx.info_name == "protect" and str(ctx.params.get("source")).endswith(".toml")):  # a recipe may say it itself
        _say(noted, ctx.params.get("json", False))


def beside_a_recipe(options: PlainDict, stated: Collection[str], *, as_json: bool) -> PlainDict:
    """The options without those that came from the file where the recipe states them; the rest is said."""
    noted = {key: value for key, value in beside.get({}).items() if key in PARAMETERS}
    left = {key: value for key, value in noted.items() if PARAMETERS[key] not in stated}
    beside.set({"file": FILE, **left} if left else {})
    _say(left, as_json)
    return {name: value for name, value in options.items() if name not in {PARAMETERS[key] for key in noted.keys() - left.keys()}}


def _say(noted: Mapping[str, str], as_json: bool) -> None:
    if noted and not as_json:
        complain(f"from {FILE}: {', '.join(f'{key} = {json.dumps(value, ensure_ascii=False)}' for key, value in noted.items())}")


def _is_used(ctx: Library, key: str) -> bool:
    """Whether this run needs it: a release that is entered nowhere has no ledger, and an answer that is not published no key."""
    if key == "ledger":
        return not ctx.params.get("no_ledger")
    return key != "key" or ctx.info_name != "query" or ctx.params.get("output") is not None
