"""Lists of values that a query over public tables gives: keys={"coupon": "SELECT code FROM coupons"}.

No private row is read, so that the list is no secret and costs nothing.
"""

from __future__ import annotations

from sfumato.core.errors import Unsupported
from sfumato.dp.sql.operators.language import lower
from sfumato.dp.sql.operators.term import MOST_GROUPS
from sfumato.dp.sql.parse import parse, refuse_clauses, without_alias
from sfumato.dp.sql.question import referenced
from sfumato.dp.sql.reading.catalogue import Catalogue, Lowering
from sfumato.dp.sql.reading.multiplicity import computed
from sfumato.dp.sql.reading.rows import source_rows
from sfumato.engines import plan as p
from sfumato.engines.expressions import Value


def is_list_query(values: object) -> bool:
    """True for a text that is a SELECT."""
    return isinstance(values, str) and values.lstrip().upper().startswith(("SELECT", "WITH"))


def public_values(key: str, text: str, catalogue: Catalogue) -> tuple[Value, ...]:
    """The different values of the one column of a query over public tables, in order."""
    select = parse(text)
    refuse_clauses(select, {"expressions", "from_", "joins", "where", "with_", "distinct"}, "keys: a list of values")
    if len(select.expressions) != 1:
        raise Unsupported(f"keys: the list of '{key[:60]}' takes a query that shows one column")
    lowering = Lowering(catalogue, referenced=referenced(select, ()))
    rows = source_rows(select, lowering)
    if rows.private or lowering.primary is not None:
        raise Unsupported(
            f"keys: the list of '{key[:60]}' may read public tables only, because the keys of an answer are shown without noise. "
            "Name the values, or leave them out and ask with epsilon and delta: frequent keys are then discovered"
        )
    term = lower(without_alias(select.expressions[0]), rows.resolve)
    plan = p.Group(p.Project(rows.plan, (p.Named("value", term.expression),)), ("value",), ())
    values = computed(plan, lowering.read).column("value").to_pylist()
    if not 1 <= len(values) <= MOST_GROUPS:
        raise Unsupported(f"keys: the list of '{key[:60]}' has {len(values):,} values; it takes 1 to {MOST_GROUPS:,}")
    return tuple(sorted(values, key=lambda value: (value is not None, value)))
