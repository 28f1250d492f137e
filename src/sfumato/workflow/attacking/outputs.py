"""An attack, what was published and what the adversary knows, from one JSON file: a game.

`{"attack": {"name": "Reconstruction"}, "published": [2, 1], "knowledge": {"members": [[1, 1], [0, 1]], "truth": [1, 1]}}`.
The attack itself says how both are read; nothing is imported because the file says so. Of a model the file names a table of
answers, of a release its folder, which are looked for beside the file. What is known about a person goes into no message and no
result; an empty knowledge attacks everybody with what the attack supposes by itself, as `sfumato attack out` does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.attacks.adversary import Player, mapping
from sfumato.core import registry
from sfumato.core.errors import InputError, SfumatoError, SourceError
from sfumato.core.files import read_plain
from sfumato.core.plain_data import PlainDict
from sfumato.core.view import AnyAttack
from sfumato.workflow.attacking.releases import LACKING, stated
from sfumato.workflow.attacking.tables import BesideFile

#: A file of answers larger than this is not read.
MOST_BYTES = 1 << 28
_PARTS = {"attack", "published", "knowledge"}


def attack_outputs(path: str | Path) -> PlainDict:
    """Run the attack that a JSON file describes; the result is rates and counts, never a value."""
    content = _content(Path(path))
    entry = content["attack"]
    attack = registry.make("attack", entry if isinstance(entry, (str, Mapping)) else "")
    name = type(attack).__name__
    if not isinstance(attack, Player) or not _described_by_files(type(attack)):
        described = sorted(each for each, kind in registry.every("attack").items() if _described_by_files(kind))
        raise InputError(
            f"{name} cannot be described by a file: pass the folder of the release and a register (--with) or other releases "
            f"(--earlier). Files describe: {', '.join(described)}."
        )
    try:
        entries = mapping(content["knowledge"], "knowledge")
        result = attack.play(content["published"], entries, BesideFile(Path(path).parent))
    except SfumatoError:
        raise
    except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as error:
        # what a file describes may be of any shape, and its numbers may be people's: none of them is repeated
        raise InputError(
            f"'{path}' does not describe a game of {name}: shapes or kinds of its values do not fit ({type(error).__name__})"
        ) from None
    return stated(result)


def _described_by_files(kind: type[AnyAttack]) -> bool:
    """What options bring, no file does."""
    return issubclass(kind, Player) and not set(kind.needs) & set(LACKING)


def _content(path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(read_plain(path, limit=MOST_BYTES))
    except OSError as error:
        raise SourceError(f"'{path}' cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise InputError(f"'{path}' is not JSON") from None
    if not isinstance(content, dict) or set(content) != _PARTS:
        raise InputError(f"'{path}' must be a JSON object with exactly: {', '.join(sorted(_PARTS))}")
    return content
