"""Plain data by name: what certificates, ledger entries, recipes, cards and answers of commands are written as and read from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

#: Plain data by name, as JSON and TOML have it: texts, numbers, truth values, lists and tables of them, to any depth.
#: No type says what lies under a name: whoever wrote it knows its shape, and whoever reads what a stranger wrote checks it first.
Plain: TypeAlias = Mapping[str, Any]

#: The same, made anew for whoever asked, who may add to it.
PlainDict: TypeAlias = dict[str, Any]
