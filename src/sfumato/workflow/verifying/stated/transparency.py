"""What a certificate tells about how rows were made, in the words and under the names that the house gives.

An attacker may know it without harm (Kerckhoffs); an honest reader corrects an analysis by it. Whoever verifies a stranger's
certificate holds it against these lists: what is not on them is no fact of a release, and nobody chooses an adversary's words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from zoneinfo import available_timezones

from sfumato.core import registry
from sfumato.core.certificate import FIRST_FORMAT, Certificate
from sfumato.core.errors import VerificationFailed
from sfumato.core.plain_data import Plain
from sfumato.data.hierarchies.hierarchy import ROOT
from sfumato.data.hierarchies.shown_levels import MOST_LEVELS, ShownLevel
from sfumato.data.hierarchies.shown_texts import ShownTexts
from sfumato.data.schema import HIERARCHY_KINDS, MOST_CODES, Column, HierarchySpec, Schema
from sfumato.measures.risk.linkage.transparency import published_steps
from sfumato.workflow.earlier.readings import is_digest_of_code
from sfumato.workflow.publishing.claims import stated_unit
from sfumato.workflow.verifying.stated import methods as stated_methods
from sfumato.workflow.verifying.untrusted import quoted
from sfumato.workflow.verifying.verification import Finding

if TYPE_CHECKING:
    import pyarrow as pa

KNOWS_THE_PERSON = "knows the quasi-identifiers of a person and that the person is in the table"
AS_EACH_PROMISE = "as each promise says"
KNOWS_THE_METHOD = "knows the method and its parameters, and values of a person's quasi-identifiers"
PUBLIC_POPULATION = "declared public by the owner"
HIDDEN_POPULATION = "not published"
#: What is said of a release that was made of some of the records.
SAMPLE = "a uniform random sample of a larger table, drawn before anything else; how many records that table has is not stated"
_SAMPLE_BEFORE = (
    "a uniform random sample of the records of a larger table, drawn before anything else; how many it has is not told"
)
KEPT_BY = "least range shown"
RANGES = "ranges of the data"
#: What is said of columns whose missing values a mask leaves missing; they are listed after it.
MISSING_SHOWN = (
    "missing values stay missing, so that it is certain who has none, and what the mask tells about itself is about records that "
    "have a value: "
)
#: What is said of columns that show ranges of the data; they stand between.
ENDS_OF_RANGES = (
    "the ranges of ",
    " were made of the data: where they begin and end can be the values of single records",
)
_LEVELS = "the certificate says of levels and hierarchies what its columns do not have"

_OF_EACH = frozenset(
    (
        "adversary quasi_identifiers removed_columns pseudonymised_columns row_order unit population learnt_from_population "
        "sample"
    ).split()
)
#: What every release of rows tells since its page is certified.
_ALWAYS = _OF_EACH - {"population", "learnt_from_population", "sample"}
_OF_A_SEARCH = frozenset({"hierarchies", "levels", "written_as", "search_kept", "search_kept_by"})
#: The names of types, as `readings.kind_of` gives them.
_TYPE = re.compile(
    r"boolean|integer|number|date|string|float|halffloat|float16|binary|large_binary|fixed_size_binary\[[0-9]{1,9}\]"
    r"|decimal(32|64|128|256)?\([0-9]{1,3}, -?[0-9]{1,3}\)|datetime( [+-][0-9]{2}:[0-9]{2}| (?P<zone>[\w/+-]{1,40}))?"
)
#: The tree with a single level above its values has two.
_FLAT_LEVELS = 1


def refuse_other_facts(certificate: Certificate, schema: Schema) -> None:
    """Raise where a certificate tells what no release of its kind tells, or names another adversary."""
    facts, masked = certificate.transparency, registry.has("mask", certificate.method.get("name"))
    if not masked and set(facts) - _OF_EACH - _OF_A_SEARCH:
        raise VerificationFailed("the certificate tells things about how it was made that no release of its kind tells")
    adversaries = (KNOWS_THE_METHOD,) if masked else (KNOWS_THE_PERSON, AS_EACH_PROMISE)
    if facts.get("adversary", adversaries[0]) not in adversaries:
        raise VerificationFailed("the certificate names another adversary than releases of its kind do")
    if facts.get("population", HIDDEN_POPULATION) not in (HIDDEN_POPULATION, PUBLIC_POPULATION):
        raise VerificationFailed("the certificate says of a population what no release says")
    if facts.get("sample", SAMPLE) not in (SAMPLE, _SAMPLE_BEFORE):
        raise VerificationFailed("the certificate says of a sample what no release says")
    stated_methods.refuse_other_parameters(certificate.method)
    if masked:
        _refuse_other_mask(certificate, schema)
    else:
        search_known = stated_methods.is_known(certificate.method) and certificate.format != FIRST_FORMAT
        _refuse_other_levels(facts)
        one_level = search_known and registry.find("search", certificate.method["name"]).one_level
        searched = _searched(certificate, schema)
        if search_known and ("levels" in facts) is not one_level or one_level and not searched <= set(facts["levels"]):
            raise VerificationFailed(_LEVELS)
        search = registry.find("search", certificate.method["name"]) if search_known else None
        _refuse_other_choice(facts, search)
        if search is not None and not search.makes_ranges and RANGES in facts.get("hierarchies", {}).values():
            raise VerificationFailed(_LEVELS)
        if certificate.format != FIRST_FORMAT:
            _refuse_other_ends(certificate)
        _refuse_other_writing(facts.get("written_as", {}), schema)
        if search_known and not _says_what_searches_say(facts, schema):
            raise VerificationFailed("the certificate does not say what a release by its method says, as if it were by another")
    if certificate.format != FIRST_FORMAT and not set(facts) >= _ALWAYS:
        raise VerificationFailed("the certificate does not tell what every release of its kind tells about how it was made")


def _refuse_other_choice(facts: Mapping[str, Any], search: Any) -> None:
    """Which of several searches was kept: one of those that the method runs, by the measure that it compares them on."""
    stated = (facts.get("search_kept"), facts.get("search_kept_by"))
    if search is None:  # of another version, or somebody's own
        sound = all(each is None or isinstance(each, str) for each in stated)
    elif not search.keeps_one_of:
        sound = stated == (None, None)
    else:
        sound = stated[0] in search.keeps_one_of and stated[1] == KEPT_BY
    if not sound:
        raise VerificationFailed("the certificate says of the searches that were run what its method does not say")


def _refuse_other_ends(certificate: Certificate) -> None:
    """The notice about ranges names the columns that are said to show them."""
    (first, last), facts = ENDS_OF_RANGES, certificate.transparency
    ranged = [name for name in names_in(facts, "quasi_identifiers") if facts.get("hierarchies", {}).get(name) == RANGES]
    said = [
        notice.removeprefix(first).removesuffix(last)
        for notice in certificate.notices
        if notice.startswith(first) and notice.endswith(last)
    ]
    # in the order of the schema or of the table
    if [sorted(names.split(", ")) for names in said] != ([sorted(", ".join(ranged).split(", "))] if ranged else []):
        raise VerificationFailed("the notice about ranges of the data names other columns than show them")


def _searched(certificate: Certificate, schema: Schema) -> set[str]:
    """The quasi-identifiers that a search generalises: those that the adversary knows, where every promise assumes the same."""
    knowledge = [claim.parameters.get("knowledge") for claim in certificate.claims]
    attributes = [tuple(each.get("attributes") or ()) if isinstance(each, dict) else () for each in knowledge]
    return set(attributes[0]) if len(set(attributes)) == 1 and attributes[0] else set(schema.quasi)


def _says_what_searches_say(facts: Mapping[str, Any], schema: Schema) -> bool:
    """Whether a tree is named for every quasi-identifier, and for every column how its values were written."""
    kinds, written = facts.get("hierarchies"), facts.get("written_as")
    if not isinstance(kinds, dict) or not isinstance(written, dict):
        return False
    return set(schema.quasi) <= set(kinds) and set(written) == set(schema.columns)


def _is_type(kind: str) -> bool:
    """Whether a type has this name, in a time zone that there is."""
    parts = _TYPE.fullmatch(kind)
    return parts is not None and (parts["zone"] is None or parts["zone"] in available_timezones())


def _refuse_other_writing(writing: Any, schema: Schema) -> None:
    """How the values behind published columns were written: a type and the codes for missing values, and no other word."""
    sound = isinstance(writing, dict) and set(writing) <= set(schema.columns)
    for written in writing.values() if sound else ():
        kind, missing = (written.get("type"), written.get("missing", [])) if isinstance(written, dict) else (None, None)
        sound &= (
            isinstance(kind, str)
            and _is_type(kind)
            and isinstance(missing, list)
            and len(missing) <= MOST_CODES
            and all(isinstance(code, str) and is_digest_of_code(code) for code in missing)
            and set(written) <= {"type", "missing"}
        )
    if not sound:
        raise VerificationFailed("the certificate says in a form that no release has how values were written")


def _refuse_other_levels(facts: Mapping[str, Any]) -> None:
    """How far each quasi-identifier was generalised, in which kind of tree: a level of that tree, and no other word."""
    kinds, levels = facts.get("hierarchies", {}), facts.get("levels", {})
    quasi, learnt = (names_in(facts, name) for name in ("quasi_identifiers", "learnt_from_population"))
    if not (isinstance(kinds, dict) and isinstance(levels, dict)):
        raise VerificationFailed(_LEVELS)
    flat = {name for name, kind in kinds.items() if kind == "flat"}
    if (
        {*kinds, *levels} - set(quasi)
        or not set(learnt) <= {name for name, kind in kinds.items() if kind == "frequency"}
        or not all(kind in (*HIERARCHY_KINDS, RANGES) for kind in kinds.values())
        or not all(
            type(level) is int and 0 <= level <= (_FLAT_LEVELS if name in flat else MOST_LEVELS) for name, level in levels.items()
        )
    ):
        raise VerificationFailed(_LEVELS)


def _refuse_other_trees(certificate: Certificate, schema: Schema) -> None:
    """A tree is of the kind that the schema describes, of a column that is published; it is learnt from a population only where
    there is one, and a claim that needs it."""
    facts = certificate.transparency
    needed = any(claim.evidence == "output+reference" for claim in certificate.claims)
    kinds, population = facts.get("hierarchies", {}), facts.get("population")
    if (
        not {*kinds, *facts.get("levels", {})} <= set(schema.quasi)
        or not all(kind in _published_as(schema.columns[name], population) for name, kind in kinds.items())
        or (facts.get("learnt_from_population") and (population is None or not needed))
    ):
        raise VerificationFailed(_LEVELS)


def _published_as(column: Column, population: str | None) -> tuple[str, ...]:
    """The kinds of trees that are published as this column describes its own."""
    spec = column.hierarchy
    if spec is None:
        # what was learnt from the data is not published
        return ("flat", "frequency", "intervals", "cuts", "mask", RANGES)
    if spec.kind == "file":
        return ("file", "tree", RANGES, *(("frequency",) if population == PUBLIC_POPULATION else ()))
    return (spec.kind, RANGES) if spec.kind == "dates" else (spec.kind,)


def refuse_levels_not_shown(certificate: Certificate, schema: Schema, table: pa.Table) -> None:
    """Refuse a tree of another kind than the schema's, a level that it does not have, and trees, ranges and levels that the
    texts of the column contradict; `schema` finds the files of trees."""
    from sfumato.data.texts.values import texts

    facts = certificate.transparency
    if certificate.format != FIRST_FORMAT:
        _refuse_other_trees(certificate, schema)
    for name, level in facts.get("levels", {}).items():
        kind, column = facts.get("hierarchies", {}).get(name), schema.columns.get(name)
        if name not in table.column_names or column is None:
            continue
        from_population = name in names_in(facts, "learnt_from_population") and (
            not column.hierarchy or not column.hierarchy.file
        )
        if from_population:  # whom nobody counted is shown as he is
            continue
        if kind == "frequency" and not column.hierarchy:
            # the sizes of its groups are not published, and each size doubles the last at least
            column = column.model_copy(update={"hierarchy": HierarchySpec(frequency=tuple(2**i for i in range(1, 64)))})
        elif not column.hierarchy and kind != "flat":  # the first versions did not publish all descriptions
            continue
        shown = ShownLevel(column, level, schema.folder)
        seen = [text for text in texts(table.column(name).unique()) if text is not None]
        if not shown.exists or not shown.can_show_all(seen):
            raise VerificationFailed(f"the column {quoted(name)} does not show the level that the certificate names")


def check_texts(certificate: Certificate, schema: Schema, table: pa.Table) -> list[Finding]:
    """Refuse texts that neither the tree nor the ranges have that are named for a column; what a published tree does not have may
    be a value in no group, which is said here. `schema` finds the files of trees."""
    from sfumato.data.texts.values import texts

    facts, searched, outside = certificate.transparency, _searched(certificate, schema), []
    kinds = {} if certificate.format == FIRST_FORMAT else facts.get("hierarchies", {})
    for name, kind in kinds.items():
        column = schema.columns[name]
        if name not in searched or name not in table.column_names or column.items is not None:  # a set is no node of a tree
            continue
        shown = ShownTexts(column, facts.get("written_as", {}).get(name, {}).get("type"), schema.folder)
        seen = [text for text in texts(table.column(name).unique()) if text is not None and text != ROOT]
        if kind == RANGES:
            ranges = [shown.is_range(text) for text in seen]
            sound = any(ranges) and all(ranged or shown.is_value(text) for ranged, text in zip(ranges, seen, strict=True))
            outside += [quoted(name)] if any(map(shown.ends_in_no_group, seen)) else []
        else:
            sound = name in facts.get("levels", {}) or all(shown.is_node(kind, text) for text in seen)
            outside += [quoted(name)] if any(map(shown.in_no_group, seen)) else []
        if not sound:
            raise VerificationFailed(f"the column {quoted(name)} shows something else than the tree or ranges that are named")
    said = f"shown as values by the word of the maker, since the published trees do not have them: texts of {', '.join(outside)}"
    return [Finding("values in no group", None, said)] if outside else []


def with_missing(table: pa.Table) -> tuple[str, ...]:
    """The columns in which values are missing."""
    return tuple(name for name in table.column_names if table.column(name).null_count)


def missing_shown(facts: Plain, missing: Sequence[str]) -> str:
    """The notice that a mask left missing values missing, which anybody sees; empty where it did not, or there are none.
    `missing` are the columns in which values are missing."""
    stated = [(each.get("method", {}).get("name"), each.get("masked_columns", ())) for each in published_steps(facts)]
    masks = [(registry.find("mask", name), columns) for name, columns in stated if registry.has("mask", name)]
    shown = []
    for name in missing:
        changing = [mask for mask, columns in masks if name in columns and not mask.selects]
        if changing and all(mask.shows_missing for mask in changing):
            shown.append(f"'{name}'")
    return f"{MISSING_SHOWN}{', '.join(shown)}" if shown else ""


def check_missing_shown(certificate: Certificate, missing: Sequence[str]) -> list[Finding]:
    """Refuse a notice that names other columns with missing values than the rows have; earlier versions wrote none, and then it
    is said here."""
    if not registry.has("mask", certificate.method.get("name")) or "masked_columns" not in certificate.transparency:
        return []
    said = [notice for notice in certificate.notices if notice.startswith(MISSING_SHOWN)]
    true = missing_shown({"method": certificate.method, **certificate.transparency}, missing)
    if said and said != [true]:
        raise VerificationFailed("the certificate says of missing values what the rows do not show")
    return [Finding("missing values", None, true)] if true and not said else []


def _refuse_other_mask(certificate: Certificate, schema: Schema) -> None:
    from sfumato.masking.transparency import VisibleTable

    facts = certificate.transparency
    removed, masked = names_in(facts, "removed_columns"), names_in(facts, "masked_columns")
    if facts.get("method", certificate.method) != certificate.method:
        raise VerificationFailed("the certificate names two different masks")
    if not set(masked) <= {*schema.columns, *removed}:
        raise VerificationFailed("the certificate says of a column that it was masked, and there is no such column")
    rows = next((about["rows"] for about in certificate.files.values() if about.get("rows") is not None), None)
    visible = VisibleTable(_before_pseudonyms(schema, facts), frozenset({*schema.columns, *removed}), rows)
    own = {name: value for name, value in facts.items() if name not in _OF_EACH}
    stated_methods.refuse_other_words({"method": certificate.method, "masked_columns": masked, **own}, visible)
    if certificate.format != FIRST_FORMAT and not {"method", "masked_columns"} <= set(facts):
        raise VerificationFailed("the certificate does not tell which mask it is about, or which columns were masked")
    if certificate.format != FIRST_FORMAT and stated_unit(certificate) is None:
        stated_methods.refuse_missing_claims(certificate, schema)


def refuse_disproved_mask(certificate: Certificate, schema: Schema, table: pa.Table, *, complete: bool = True) -> None:
    """Refuse parameters of a mask that the rows disprove; some of the rows, where not all are at hand, disprove less."""
    from sfumato.masking.shown_rows import ShownRows

    if not registry.has("mask", certificate.method.get("name")):
        return
    facts = certificate.transparency
    replaced = names_in(facts, "pseudonymised_columns")
    masked = table.select([name for name in table.column_names if name not in replaced])
    stated_methods.refuse_disproved(certificate.method, ShownRows(masked, _before_pseudonyms(schema, facts), facts, complete))


def _before_pseudonyms(schema: Schema, facts: Mapping[str, Any]) -> Schema:
    """The schema with the role that columns had before their values were replaced by pseudonyms."""
    replaced = names_in(facts, "pseudonymised_columns")
    columns = {
        name: column.model_copy(update={"role": "identifier"}) if name in replaced and column.role == "plain" else column
        for name, column in schema.columns.items()
    }
    return schema.replace(columns=columns)


def names_in(facts: Plain, key: str) -> list[str]:
    """The columns that are listed under a key, none where it is not there."""
    names = facts.get(key, ())
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise VerificationFailed("the certificate lists columns in a form that no release has")
    return list(names)
