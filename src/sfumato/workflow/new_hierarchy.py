"""Begin a hierarchy for a column from the values that it has: a file to edit, or parameters, and what speaks for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core.errors import ParameterError, forgetting
from sfumato.core.plain_data import Plain
from sfumato.core.texts import counted
from sfumato.data.hierarchies.group_lists import looked_up, parse_groups, read_groups
from sfumato.data.hierarchies.hierarchy import ROOT, Hierarchy
from sfumato.data.hierarchies.proposed_hierarchy import ProposedHierarchy, refuse_too_many
from sfumato.data.hierarchies.similar_values import nearest_values, similar_groups
from sfumato.data.value_kinds import listing
from sfumato.data.value_kinds.base import ValueKind
from sfumato.workflow.hierarchies import value_counts

if TYPE_CHECKING:
    from sfumato.data.microdata import Microdata
    from sfumato.engines.sources import SchemaLike, TableLike

#: So many values that nothing places are compared with those that are known.
_MOST_MISSPELT = 500
_MOST_LEVELS = 20
#: Kinds whose codes end in zeros that numbers lose.
_WITH_DECIMALS = ("icd10", "nace2")


@forgetting()
def new_hierarchy(
    data: TableLike,
    column: str,
    *,
    schema: SchemaLike | None = None,
    kind: str | None = None,
    country: str | None = None,
    groups: str | Path | Mapping[str, Sequence[str]] | None = None,
    similar: bool = False,
    tree: str | Path | Hierarchy | None = None,
    levels: int = 1,
    table: str | None = None,
    **reading: object,  # keys of a `Reading`
) -> ProposedHierarchy:
    """Begin the hierarchy of a column; at most one of the next four says how values are placed.

    `kind` is a kind of values that has a tree of its own (`ages`, `countries`, `dates`, `icd10`, `isco08`, `nace2`,
    `postcodes`, of `country` where that is named, `telephones`), or `auto`: the one that the values look like, if one is
    convincing. `groups` is a list of groups (a file, or a mapping of group and values), `tree` an earlier hierarchy; values
    written otherwise are looked up by their plain words. `similar` puts values together that may be the same. Without any of
    them it is a template with so many empty `levels`. What nothing places is listed with empty cells for its owner to fill in.

    >>> import pyarrow as pa
    >>> people = pa.table({"from": ["CH", "DE", "CH", "XX"]})
    >>> begun = new_hierarchy(people, "from", kind="countries")
    >>> begun.rows
    [['CH', 'Western Europe', 'Europe', '*'], ['DE', 'Western Europe', 'Europe', '*'], ['XX', '', '', '*']]
    """
    _check(kind, groups, similar, tree, levels)
    _check_types(kind, country, groups, tree)
    from sfumato.engines.sources import read

    stated: Plain = reading
    people = read(data, schema, table=table, **stated)
    values, counts, missing = _values(people, column)
    refuse_too_many(values, column)
    evidence = listing.evidence(column, values, counts)
    best = listing.proposed(evidence)
    common: dict[str, Any] = {
        "column": column,
        "values": values,
        "counts": counts,
        "missing": missing,
        "evidence": evidence,
        "proposed_kind": best.name if best else None,
    }
    chosen = best if kind == listing.AUTO else listing.kind_named(kind, values, counts, country) if kind is not None else None
    if chosen is not None:
        return ProposedHierarchy(**common, **_of_kind(chosen, values), notes=_notes(people, column, chosen))
    if groups is not None:
        return ProposedHierarchy(**common, **_of_groups(groups, values))
    if tree is not None:
        return ProposedHierarchy(**common, **_of_tree(tree, values))
    if similar:
        together = similar_groups(values, counts)
        placed = {value: (group[0],) for group in together for value in group}
        return ProposedHierarchy(**common, made_by="similar", levels=("proposed group",), placed=placed)
    names = tuple(f"level {level}" for level in range(1, levels + 1))
    return ProposedHierarchy(**common, made_by="template", levels=names, placed={})


def _check(kind: str | None, groups: object, similar: bool, tree: object, levels: int) -> None:
    ways = {"kind": kind is not None, "groups": groups is not None, "similar": similar, "tree": tree is not None}
    chosen = [name for name, asked in ways.items() if asked]
    if len(chosen) > 1:
        raise ParameterError(f"{' and '.join(chosen)} each say how values are placed. Choose one of them.")
    if type(levels) is not int or not 1 <= levels <= _MOST_LEVELS:
        raise ParameterError(f"levels is the number of empty levels of a template, a whole number from 1 to {_MOST_LEVELS}")
    if levels != 1 and chosen and kind != listing.AUTO:
        raise ParameterError(f"levels is for a template, and {chosen[0]} has levels of its own. Leave levels out.")


def _check_types(kind: object, country: object, groups: object, tree: object) -> None:
    if country is not None and kind in (None, listing.AUTO):
        raise ParameterError(
            "country says of which country postcodes are. Pass kind='postcodes' (--as postcodes) as well, or leave it out."
        )
    if groups is not None and not isinstance(groups, (str, Path, Mapping)):
        raise ParameterError(f"groups is a file, its text, or a mapping of group and values, not {type(groups).__name__}")
    if isinstance(groups, Mapping):
        for members in groups.values():
            if isinstance(members, (str, bytes, Mapping)) or not isinstance(members, Collection):
                raise ParameterError(
                    f"groups: a group has a list of values, not {type(members).__name__}. Write {{'Health': ['nurse', 'doctor']}}"
                )
    if tree is not None and not isinstance(tree, (str, Path, Hierarchy)):
        raise ParameterError(f"tree is an earlier hierarchy or its file, not {type(tree).__name__}")


def _values(people: Microdata, column: str) -> tuple[tuple[str, ...], tuple[int, ...], int]:
    """The values of a column, the most frequent first, how many records have each, and how many have none."""
    counts = value_counts(people, column)
    missing = counts.pop(None, 0)
    order = sorted(((count, value) for value, count in counts.items() if value is not None), key=lambda each: (-each[0], each[1]))
    return tuple(value for _, value in order), tuple(count for count, _ in order), missing


def _of_kind(kind: ValueKind, values: Sequence[str]) -> dict[str, Any]:
    """What a kind of values makes of them; those that it does not know stay without a place."""
    placed = {value: above for value in values if (above := kind.groups(value)) is not None}
    unplaced = [value for value in values if value not in placed]
    return {
        "made_by": kind.name,
        "levels": kind.levels,
        "placed": placed,
        "parameters": kind.parameters(list(placed)) if placed else None,
        "nearest": nearest_values(unplaced[:_MOST_MISSPELT], kind.spellings()),
    }


def _of_groups(groups: str | Path | Mapping[str, Sequence[str]], values: Sequence[str]) -> dict[str, Any]:
    if isinstance(groups, Mapping):
        listed = {str(value): (str(group),) for group, members in groups.items() for value in members}
        twice = sum(map(len, groups.values())) - len(listed)
        if twice:
            stand = "stands" if twice == 1 else "stand"
            raise ParameterError(f"{counted(twice, 'value')} {stand} in several groups, or twice in one. List each value once.")
    else:
        lines = parse_groups(groups) if isinstance(groups, str) and "\n" in groups else read_groups(groups)
        listed = {value: (group,) for value, group in lines.items()}
    return _of_list(listed, values, "groups", ("group",))


def _of_tree(tree: str | Path | Hierarchy, values: Sequence[str]) -> dict[str, Any]:
    """An earlier hierarchy; its root, which every list gets, is left out."""
    earlier = tree if isinstance(tree, Hierarchy) else Hierarchy.load(tree)
    rows = [[cell or "" for cell in row] for row in earlier.rows() if row[0] is not None]
    rooted = earlier.height > 0 and all(row[-1] == ROOT for row in rows)
    above = {row[0]: tuple(row[1:-1] if rooted else row[1:]) for row in rows}
    width = earlier.height - rooted
    if width < 1:
        raise ParameterError("the earlier hierarchy has no groups between its values and the root. Begin without it.")
    return _of_list(above, values, "tree", tuple(f"level {level}" for level in range(1, width + 1)))


def _of_list(
    listed: Mapping[str, tuple[str, ...]], values: Sequence[str], made_by: str, levels: tuple[str, ...]
) -> dict[str, Any]:
    placed, respelt = looked_up(listed, values)
    unplaced = [value for value in values if value not in placed]
    return {
        "made_by": made_by,
        "levels": levels,
        "placed": placed,
        "listed": {value: above for value, above in listed.items() if value not in placed},
        "nearest": nearest_values(unplaced[:_MOST_MISSPELT], list(listed)),
        "respelt": respelt,
    }


def _notes(people: Microdata, column: str, kind: ValueKind) -> tuple[str, ...]:
    """What the type of the column takes away from its codes."""
    import pyarrow as pa

    arrow = people.relation.schema().field(column).type
    value_type = arrow.value_type if pa.types.is_dictionary(arrow) else arrow
    if kind.name in _WITH_DECIMALS and not (pa.types.is_string(value_type) or pa.types.is_large_string(value_type)):
        return (f"'{column}' was read as numbers, in which zeros of codes are lost. Declare type = \"string\" in the schema.",)
    return ()
