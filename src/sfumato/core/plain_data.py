"""Plain data by name: what certificates, ledger entries, recipes, cards and answers of commands are written as and read from."""

from __future__ import annotations

import copyreg
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

#: Plain data by name, as JSON and TOML have it: texts, numbers, truth values, lists and tables of them, to any depth.
#: No type says what lies under a name: whoever wrote it knows its shape, and whoever reads what a stranger wrote checks it first.
Plain: TypeAlias = Mapping[str, Any]

#: The same, made anew for whoever asked, who may add to it.
PlainDict: TypeAlias = dict[str, Any]


def read_only(entries: Mapping[str, object]) -> MappingProxyType[str, object]:
    """A view of the entries that nobody can change."""
    return MappingProxyType(dict(entries))


# Python copies no read-only view, and results hold many: they are copied as what they show.
copyreg.pickle(MappingProxyType, lambda view: (read_only, (dict(view),)))
