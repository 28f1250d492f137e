"""What weakens a release and is known before the long work: roles that nobody confirmed, promises that are missing or empty."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sfumato.core.errors import InputError, notify
from sfumato.core.guarantees.base import ClassGuarantee
from sfumato.data.microdata import Microdata
from sfumato.data.schema import Schema
from sfumato.report.headline import ROLES_UNREAD, Headline, refuse_all_but_kept, unpromised_in_words


def warn_before(schema: Schema, guarantees: Iterable[ClassGuarantee], *, strict: bool) -> None:
    """Warn of roles that nobody confirmed and of sensitive columns without a promise; where somebody is strict, refuse what is
    known to be warned about later."""
    said = [*unread(schema), *unpromised(schema, guarantees)]
    if strict:
        refuse_all_but_kept(Headline.of("kept", "", said))
    notify(said)


def warned_of_people(data: Microdata, *, strict: bool) -> list[str]:
    """A warning where nobody declares whose a record is and a column that numbers people repeats; where the schema says that each
    record is a person's, such a table is refused."""
    said = []
    for name, people, rows in _repeated_people(data):
        finding = f"column '{name}', which numbers people, has {people:,} different values in {rows:,} rows"
        if data.schema.each_record_is_a_unit:
            raise InputError(
                f'unit = "record" says that no person has several rows, but {finding}. Give it role = "unit"; if it numbers '
                "something else, leave it out of the table."
            )
        said.append(repeated_in_words(name, people, rows))
    if strict:
        refuse_all_but_kept(Headline.of("kept", "", said))
    notify(said)
    return said


def repeated_in_words(name: str, people: int, rows: int) -> str:
    """What to say where nobody declares whose a record is and a column that numbers people repeats."""
    return (
        f"records are counted and not people, and column '{name}', which numbers people, has {people:,} different values in "
        f'{rows:,} rows: a class may be one person. Give it role = "unit"'
    )


def _repeated_people(data: Microdata) -> Iterator[tuple[str, int, int]]:
    """Columns that number people, have values in several rows and are no unit: name, different values, rows with one."""
    from sfumato.data.profiling.identifier_names import numbers_persons
    from sfumato.engines.class_queries import ROWS
    from sfumato.engines.expressions import Reference
    from sfumato.engines.plan import AggregateColumn, Group, Scan
    from sfumato.engines.plannable import plannable

    identifiers = [name for name in data.schema.with_role("identifier") if name in data.column_names]
    # a pseudonym that repeats is refused where something is promised, with its own words
    names = [name for name in identifiers if numbers_persons(name) and not data.schema.columns[name].pseudonym]
    if data.schema.unit is not None or not names:
        return
    relation = plannable(data.relation)
    asked = [
        AggregateColumn(f"{function} {place}", function, Reference(name))
        for place, name in enumerate(names)
        for function in ("count", "count_distinct")
    ]
    rows = Scan(ROWS, tuple(relation.fields[name] for name in names))
    answer = relation.run(Group(rows, (), tuple(asked))).to_pylist()[0]
    for place, name in enumerate(names):
        if answer[f"count_distinct {place}"] < answer[f"count {place}"]:
            yield name, answer[f"count_distinct {place}"], answer[f"count {place}"]


def unread(schema: Schema) -> list[str]:
    """A warning where `inspect` proposed the roles and nobody confirmed them."""
    return [ROLES_UNREAD] if schema.roles == "proposed" else []


def unpromised(schema: Schema, guarantees: Iterable[ClassGuarantee]) -> list[str]:
    """A warning about the sensitive columns that none of these guarantees is about, and one for each that says nothing."""
    stated = list(guarantees)
    promised = {each.about for each in stated}
    empty = [f"{each.key} promises nothing: every table keeps it" for each in stated if each.says_nothing]
    return [*empty, *unpromised_in_words([name for name in schema.sensitive if name not in promised])]
