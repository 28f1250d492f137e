"""What stopped a question that reads texts as another type: how many texts of which column cannot be read, and never a text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from sfumato.core.errors import SfumatoError, SourceError, raise_alone
from sfumato.data.relation import Relation
from sfumato.data.texts.text_forms import MISFITS, unreadable_texts
from sfumato.engines.expressions import Compare, Literal, Reference
from sfumato.engines.plan import AggregateColumn, Field, Group, Plan, Scan, scans
from sfumato.engines.plannable import plannable

_ROWS = "rows"


@contextmanager
def unreadable_counted(plan: Plan, relations: Mapping[str, Relation]) -> Iterator[None]:
    """Texts that cannot be read are counted once they stopped a plan over these relations, and refused in one sentence."""
    try:
        yield
    except Exception:
        faults: list[str] = []
        with suppress(SfumatoError):  # then something else is wrong, and is reported
            for table, relation in relations.items():
                read = [field for scan in scans(plan) if scan.table == table for field in scan.columns]
                texts = {field.name: field for field in read if field.stored == "string" and not field.lenient}
                faults += _counted(relation, [*texts.values()]) if texts else ()
        if faults:
            raise_alone(SourceError(f"the table {MISFITS}: {'; '.join(faults)}"))
        raise


def _counted(relation: Relation, fields: list[Field]) -> Iterator[str]:
    from sfumato.engines.functions.texts import ReadAs

    plain = tuple(Field(field.name, "string", field.missing) for field in fields)
    counts = []
    for place, field in enumerate(fields):
        text = Reference(field.name)
        counts += [
            AggregateColumn(f"texts{place}", "count", where=Compare("<>", text, Literal(""))),
            AggregateColumn(f"values{place}", "count", ReadAs(text, field.kind)),
        ]
    answer = plannable(relation).run(Group(Scan(_ROWS, plain), (), tuple(counts))).to_pylist()[0]
    for place, field in enumerate(fields):
        texts, values = answer[f"texts{place}"], answer[f"values{place}"]
        if texts > values:
            yield unreadable_texts(field.name, texts - values, texts, field.kind)
