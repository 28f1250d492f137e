"""What a session is given, in the form in which it uses it: tables by name, their dataset, values of keys."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

from sfumato.core.errors import ParameterError
from sfumato.core.exact import Number
from sfumato.data.microdata import Microdata

if TYPE_CHECKING:
    from sfumato.dp.sql.reading.catalogue import Catalogue
    from sfumato.engines.expressions import Value


class QuestionOptions(TypedDict, total=False):
    """What comes with a question: the loss that it may cost, what one unit may contribute, and values of its grouping keys.

    The loss is one of: `epsilon`; `epsilon` and `delta`; `rho`; `rho` and `delta`. `Session.sql` says what the others mean.
    """

    epsilon: Number | None
    delta: Number | None
    rho: Number | None
    max_rows: int | None
    max_groups: int | None
    keys: Mapping[str, Sequence[object]] | None


def named_tables(data: Microdata | Mapping[str, Microdata]) -> dict[str, Microdata]:
    """The tables by name; one that has none is called as its dataset."""
    if isinstance(data, Mapping):
        tables = dict(data)
        if not tables or not all(isinstance(table, Microdata) for table in tables.values()):
            raise ParameterError("data is a table from sf.read, or several by name")
        return tables
    if not isinstance(data, Microdata):
        raise ParameterError("data is a table from sf.read: sf.Session(sf.read(frame, schema=…), …)")
    named = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", data.schema.dataset) is not None
    return {data.schema.dataset if named else "data": data}


def dataset_of(tables: Mapping[str, Microdata]) -> str:
    """The one dataset that the tables belong to."""
    ids = sorted({table.schema.dataset for table in tables.values()})
    if len(ids) != 1:
        raise ParameterError(
            f"the tables belong to the datasets {', '.join(ids)}; budgets belong to a dataset, "
            "so that tables asked together share its id"
        )
    return ids[0]


def declared_keys(keys: Mapping[str, Sequence[Value]] | None, catalogue: Catalogue) -> dict[str, tuple[Value, ...]]:
    """The values of grouping keys, those of public lists looked up."""
    from sfumato.dp.sql.reading.public_lists import is_list_query, public_values

    return {
        name: public_values(name, str(values), catalogue) if is_list_query(values) else key_values(name, values)
        for name, values in (keys or {}).items()
    }


def key_values(name: str, values: Sequence[Value]) -> tuple[Value, ...]:
    """The values of a grouping key as they came with a question, each once."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence) or not values:
        raise ParameterError(f"keys: give '{name[:60]}' a list of values, or a SELECT of one column of a public table")
    try:
        return tuple(dict.fromkeys(values))
    except TypeError:
        raise ParameterError(f"keys: the values of '{name[:60]}' are single values, not lists") from None
