"""Every claim of a foreign certificate, stated again from its guarantee and measured again.

A claim is a guarantee with its parameters and what was measured; whom it protects, against whom and in which words follows from
them and is not the writer's choice. A claim that says anything else is refused, whatever was measured.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sfumato.core.certificate import FIRST_FORMAT, KNOWN_VALUES, RECORDS_PER_CLASS, Certificate, Claim, plain
from sfumato.core.declared import parameters
from sfumato.core.errors import SfumatoError
from sfumato.core.guarantees.base import ANY_ADVERSARY, TOLERANCE, ClassGuarantee
from sfumato.core.guarantees.k_anonymity import AlphaKAnonymity
from sfumato.core.guarantees.likeness import BetaLikeness, DeltaDisclosure
from sfumato.core.guarantees.population import DeltaPresence
from sfumato.data.schema import Column, Schema
from sfumato.data.texts.reading import PLAIN, Reading
from sfumato.report.wording import known_values
from sfumato.wire.fingerprint import FORMATS as FINGERPRINTS
from sfumato.workflow import named
from sfumato.workflow.contents.base import content_kind
from sfumato.workflow.publishing.grouped_rows import GroupedRows
from sfumato.workflow.verifying.stated.transparency import names_in
from sfumato.workflow.verifying.untrusted import quoted
from sfumato.workflow.verifying.verification import Finding

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.core.guarantees.hidden import Hidden
    from sfumato.data.transactions_lists import ItemsetList
    from sfumato.engines.sources import TableLike
    from sfumato.ledger.ledger import Ledger
    from sfumato.measures.guarantees.examined import Measurement
    from sfumato.workflow.publishing.claims import References

_OTHER_WORDS = "the claim's words do not say what its parameters mean"
#: What is measured beside a promise with the original at hand, and cannot be measured without it.
_REFERENCE = "reference"
_BESIDE = f"{_REFERENCE} input"
_NOT_THERE = object()
_OTHER_NUMBERS = "the certificate states other numbers beside the promise than those measured here"
_POPULATION = re.compile(rf"population (({'|'.join(FINGERPRINTS)}):[0-9a-f]{{64}}|without digest)")


def references_of(
    certificate: Certificate,
    schema: Schema,
    original: TableLike,
    population: TableLike,
    reading: Reading = PLAIN,
    itemsets: ItemsetList | Hidden | str | Path | None = None,
) -> References:
    """The tables to compare with; a file or frame is read with the types and missing codes that the release's columns have, and
    as `reading` says."""
    from sfumato.data.microdata import Microdata
    from sfumato.engines.sources import read
    from sfumato.workflow.earlier.read_alike import read_described, with_codes, written_columns
    from sfumato.workflow.publishing.claims import References

    written = written_columns(certificate.to_mapping()) or {}
    codes = {name: column.missing for name, column in written.items() if column.missing}
    if original is not None and not isinstance(original, Microdata):
        columns = {name: Column(type=schema.columns[name].type, missing=codes.get(name, ())) for name in schema.sensitive}
        if any(column.missing for column in columns.values()):
            opened = read(original, **reading.to_mapping())
            columns |= {name: with_codes(columns[name], opened, name) for name in opened.column_names if name in columns}
        original = read(original, Schema(dataset=schema.dataset, columns=columns, read=reading))
    if population is not None and not isinstance(population, Microdata):
        others = {name: Column(missing=missing) for name, missing in codes.items()}
        population = read_described(population, others, None, reading.of_another_table())
    return References(original, population, itemsets=_listed(itemsets))


def _listed(itemsets: ItemsetList | Hidden | str | Path | None) -> ItemsetList | None:
    from sfumato.core.guarantees.hidden import Hidden
    from sfumato.data.transactions_lists import ItemsetList

    if isinstance(itemsets, Hidden):
        return ItemsetList.of(itemsets)
    return ItemsetList.read(itemsets) if isinstance(itemsets, (str, Path)) else itemsets


def check_claims(
    certificate: Certificate, schema: Schema, data: object, references: References, ledger: Ledger | str | Path | None
) -> list[Finding]:
    """One finding per claim, two where files show a part of it alone; `data` is what the folder holds."""
    from sfumato.workflow.verifying.process_claims import check_process_claim

    findings: list[Finding] = []
    for claim in certificate.claims:
        if claim.evidence == "process":
            of_claim = [Finding(claim.guarantee[:80], *check_process_claim(claim, certificate, data, ledger))]
        else:
            of_claim = content_kind(certificate).check_claim(claim, certificate, schema, data, references)
        findings += [replace(each, claim=True) for each in of_claim]
    return findings


def check_class_claim(
    claim: Claim, certificate: Certificate, schema: Schema, table: pa.Table, references: References
) -> list[Finding]:
    """A claim about the classes of rows, stated again from its guarantee and measured again."""
    from sfumato.workflow.publishing.claims import measure_all

    name = claim.guarantee[:80]
    try:
        guarantee = _guarantee(claim)
        wrong = _misstated(claim, guarantee, certificate, schema)
        if wrong:
            return [Finding(name, False, wrong)]
        unprotected = _protects_nobody(guarantee, certificate, schema, table)
        if unprotected and certificate.format != FIRST_FORMAT:
            return [Finding(name, False, unprotected)]
        # a rounded threshold is a promise of its own, and must be kept as well
        worded = _worded(claim, guarantee, certificate.format) or guarantee
        # the first versions published such promises
        caveat = "; ".join(each for each in (_first_words(claim, guarantee), unprotected) if each)
        missing = _missing(guarantee, references)
        if missing:
            wrong = _contradicted(claim, guarantee, schema, table) or _contradicted(claim, worded, schema, table)
            if wrong:
                return [Finding(name, False, wrong)]
            return [Finding(name, None, f"compares with {missing}; pass it to check this claim", caveat=caveat)]
        if _not_within(guarantee, table, references):
            other = "the table that was passed as the original lacks values that were released: it is another table"
            return [Finding(name, False, other)]
        both = [guarantee] if worded is guarantee else [guarantee, worded]
        measured, *rounded = measure_all(table, schema, both, references)
        if not all(each.holds for each in (measured, *rounded)):
            return [Finding(name, False, f"{worded.claim()}; measured {measured.value:.6g}, which breaks it")]
        findings = _compare_numbers(claim, guarantee, certificate, schema, table, measured, references.original is not None)
    except SfumatoError as error:
        reason = type(error).__name__ if error.owner_only else str(error)
        return [Finding(name, False, f"the claim cannot be measured: {reason}")]
    except (TypeError, ValueError, OverflowError, MemoryError, ArithmeticError, LookupError, AttributeError) as error:
        return [Finding(name, False, f"the claim cannot be measured ({type(error).__name__})")]
    if not table.num_rows and findings[0].passed:
        findings = [Finding(name, None, f"{guarantee.claim()}; no row was released, so that this is about nobody")]
    if guarantee.evidence == "output+model" and findings[0].passed:
        by_model = (
            f"rests on its maker: {guarantee.claim()}. The rows do not contradict it ({measured.value:.6g} measured); how the "
            "table was drawn they do not show"
        )
        findings[0] = Finding(name, None, by_model)
    return [replace(findings[0], caveat=caveat), *findings[1:]]


def _compare_numbers(
    claim: Claim,
    guarantee: ClassGuarantee,
    certificate: Certificate,
    schema: Schema,
    table: pa.Table,
    measured: Measurement,
    with_original: bool,
) -> list[Finding]:
    """The numbers that a claim states beside those that were measured; what it promises is kept."""
    name = claim.guarantee[:80]
    if _dropped_unit(certificate, schema, guarantee) is not None:
        return _check_units(claim, guarantee, measured)
    if not _withheld(claim, guarantee) and not _same(claim.measured, measured.value):
        return [Finding(name, False, f"the certificate states another number than the {measured.value:.6g} measured here")]
    against = ""
    if _withheld(claim, guarantee):
        against = " against the table that was passed as the original; that it is the original, its owner's key shows and no file"
    beside, text = dict(claim.also_measured), f"{guarantee.claim()}; measured {measured.value:.6g}{against}"
    if KNOWN_VALUES in measured.also:
        text += f"; a missing value counts as one: without those, some class shows {known_values(measured.also[KNOWN_VALUES])}"
    findings = [Finding(name, True, text)]
    if hasattr(guarantee, "reference") and not with_original and beside.pop(_BESIDE, _NOT_THERE) is not _NOT_THERE:
        findings.append(Finding(name, None, "is also stated against the original table; pass it to check that number"))
    # beside promises about the released rows, and where records were suppressed, the input is not stated any more
    left_out = {_BESIDE, KNOWN_VALUES}  # earlier versions did not count known values alone; whoever verifies is told all the same
    here = {key: value for key, value in measured.also.items() if key in beside or key not in left_out}
    if not _same_numbers(beside, here):
        return [Finding(name, False, _OTHER_NUMBERS)]
    if _about_nobody(table, guarantee):
        nobody = "no released row has a protected value, so that this is about nobody"
        findings[0] = Finding(name, None, f"{guarantee.claim()}; {nobody}")
    return findings


def _missing(guarantee: ClassGuarantee, references: References) -> str | None:
    """The second table that the guarantee compares with and nobody passed, in words."""
    if guarantee.evidence != "output+reference":
        return None
    if guarantee.needs_population:
        return "a population" if references.population is None else None
    return "the original table" if references.original is None else None


def _not_within(guarantee: ClassGuarantee, table: pa.Table | GroupedRows, references: References) -> bool:
    """Whether some sensitive value was released more often than the table has it that was passed as the original."""
    from sfumato.measures.guarantees.reference import ReferenceDistribution

    name, original = guarantee.sensitive, references.distribution([guarantee])
    if name is None or original is None:
        return False
    rows = table.groups if isinstance(table, GroupedRows) else table
    released, held = ReferenceDistribution.of(rows, [name]).attribute(name), original.attribute(name)
    return any(count > held.get(value, 0) for value, count in released.items())


def _withheld(claim: Claim, guarantee: ClassGuarantee) -> bool:
    """Whether the claim is about the original and states no number, because that could tell values of suppressed records."""
    return claim.measured is None and getattr(guarantee, _REFERENCE, None) == "input"


def _contradicted(claim: Claim, guarantee: ClassGuarantee, schema: Schema, table: pa.Table) -> str | None:
    """What is wrong with the numbers of a claim even where its second table is missing; None where nothing is."""
    from sfumato.workflow.publishing.claims import References, measure_all

    stated, withheld = _number(claim.measured), _withheld(claim, guarantee)
    if not withheld and (stated is None or not guarantee.kept_by(stated)):
        return "the certificate itself states a number that breaks the promise, or none"
    beside = {key: _number(value) for key, value in claim.also_measured.items()}
    wanted: dict[str, float | None] = {}
    if isinstance(guarantee, DeltaPresence):
        smallest = beside.get("smallest chance")
        wanted = {"smallest chance": smallest}
        if smallest is None or stated is None or not guarantee.minimum - TOLERANCE <= smallest <= stated + TOLERANCE:
            return _OTHER_NUMBERS
    elif hasattr(guarantee, "reference"):
        released: ClassGuarantee = replace(cast("Any", guarantee), reference="released")
        here = measure_all(table, schema, [released], References())[0].value
        if not _same(claim.also_measured.get(f"{_REFERENCE} released"), here):
            return _OTHER_NUMBERS
        wanted = {f"{_REFERENCE} released": beside.get(f"{_REFERENCE} released")}
        wanted |= {} if withheld else {_BESIDE: stated}
    return None if beside == wanted else _OTHER_NUMBERS


def _protects_nobody(guarantee: ClassGuarantee, certificate: Certificate, schema: Schema, table: pa.Table) -> str:
    """Why the promise may be kept and protect nobody, as no release is published; empty where it is not so."""
    from sfumato.workflow.publishing.claims import counted_alone, says_something, stated_unit, tying_pseudonyms

    name, unit = guarantee.key[:80], schema.unit or stated_unit(certificate)
    if unit is not None and guarantee in counted_alone([_guarantee(each) for each in certificate.claims]):
        return f"{name} counts records, and nothing is claimed of how many people a class has: it may be one person alone"
    published = dict.fromkeys([*names_in(certificate.transparency, "pseudonymised_columns"), *schema.with_role("unit")])
    tying = tying_pseudonyms(table, schema, published, unit) if says_something(guarantee) else None
    if tying is None:
        return ""
    return f"{name} is about single classes, and the pseudonyms of {quoted(tying)} tie records of one person together"


def _guarantee(claim: Claim) -> ClassGuarantee:
    return named.guarantee({**claim.parameters, "name": claim.guarantee.split("(")[0]})


def _number(stated: Any) -> float | None:
    """A number as certificates write it; None where there is none."""
    if isinstance(stated, str):
        return {"infinite": math.inf, "-infinite": -math.inf}.get(stated)
    return None if stated is None else float(stated)


def _about_nobody(table: pa.Table, guarantee: ClassGuarantee) -> bool:
    """Whether a promise is about protected values that no row has."""
    from sfumato.workflow.publishing.grouped_rows import texts_shown

    protected = getattr(guarantee, "protected_values", None)
    about_classes_too = isinstance(guarantee, AlphaKAnonymity)  # how large a class is, whatever its values
    name = guarantee.sensitive
    if name is None or protected is None or about_classes_too or name not in table.column_names:
        return False
    return not texts_shown(table, name) & set(protected)


def _misstated(claim: Claim, guarantee: ClassGuarantee, certificate: Certificate, schema: Schema) -> str | None:
    """What the claim says otherwise than its guarantee does, in words; None where they agree."""
    from sfumato.workflow.publishing.claims import References

    stated = (claim.guarantee, plain(dict(claim.parameters)), claim.evidence, claim.protects)
    meant = (guarantee.key, plain(parameters(guarantee)), guarantee.evidence, guarantee.protects)
    if stated != meant or _worded(claim, guarantee, certificate.format) is None:
        return _OTHER_WORDS
    if claim.holds is not True:
        return "the certificate itself says that the claim does not hold"
    if (claim.neighbours, claim.argument, claim.ledger_entry) != (None, None, None):
        return "the claim is about rows, and states what only a claim about a process has"
    if claim.unit != _unit(certificate, schema, guarantee):
        return "the claim names another unit than the one that the rows are about"
    named_by_input = References(original_digest=certificate.fingerprint).digest_for(guarantee)
    by_population = guarantee.needs_population and _POPULATION.fullmatch(str(claim.reference))
    if claim.reference != named_by_input and not by_population:
        return "the claim names another second file than the one that it needs"
    return None


def _worded(claim: Claim, guarantee: ClassGuarantee, format: str) -> ClassGuarantee | None:
    """The guarantee that the claim's words state, now or earlier: the one that it names or, in the first format, the same with
    its thresholds rounded; None where the words say something else.
    """
    said = (claim.promised, claim.adversary)
    if said == (guarantee.claim(), guarantee.adversary):
        return guarantee
    if said in {(words, guarantee.adversary) for words in guarantee.former_claims()}:
        return guarantee
    # the first versions did not say that a promise is about some values only
    about_some = getattr(guarantee, "protected_values", None) is not None and not isinstance(guarantee, AlphaKAnonymity)
    if format != FIRST_FORMAT or about_some:
        return None
    return next((each for each in (guarantee, _rounded(guarantee)) if said in _first_wordings(each)), None)


def _first_wordings(guarantee: ClassGuarantee) -> set[tuple[str, str]]:
    """Promise and adversary as the versions that wrote the first format worded them."""
    now = (guarantee.claim(), guarantee.adversary)
    if isinstance(guarantee, DeltaDisclosure):
        name, most = guarantee.attribute, f"{guarantee.delta:.4g}"
        odds = f"in every class the odds of each value of '{name}' change by less than the factor e^{most}"
        return {now, *((words, now[1]) for words in (*guarantee.former_claims(), odds))}
    if isinstance(guarantee, BetaLikeness):
        return {
            now,
            *((words, now[1]) for each in (guarantee, replace(guarantee, enhanced=False)) for words in each.former_claims()),
        }
    if isinstance(guarantee, DeltaPresence):
        return {now, (now[0], ANY_ADVERSARY)}
    return {now}


def _first_words(claim: Claim, guarantee: ClassGuarantee) -> str:
    """What must be known about a claim that is worded as the first versions did; empty for any other."""
    if (claim.promised, claim.adversary) == (guarantee.claim(), guarantee.adversary):
        return ""
    return (
        f"{guarantee.key[:80]} is worded as the first versions did, which can say more than was measured; what was measured: "
        f"{guarantee.claim()}, against somebody who {guarantee.adversary}"
    )


def _rounded(guarantee: ClassGuarantee) -> ClassGuarantee:
    """The guarantee as the first versions worded it, which wrote four digits of a threshold."""
    numbers = {name: value for name, value in vars(guarantee).items() if isinstance(value, float)}
    try:
        rounded: ClassGuarantee = replace(
            cast("Any", guarantee), **{name: float(f"{value:.4g}") for name, value in numbers.items()}
        )
    except SfumatoError:  # rounded, it is no threshold
        return guarantee
    return rounded


def _unit(certificate: Certificate, schema: Schema, guarantee: ClassGuarantee) -> str:
    from sfumato.workflow.publishing.claims import counts_units

    column = schema.unit or _dropped_unit(certificate, schema, guarantee)
    return f"different '{column}'" if column and counts_units(guarantee) else "record"


def _dropped_unit(certificate: Certificate, schema: Schema, guarantee: ClassGuarantee) -> str | None:
    """The column that named the units and is not published, as the certificate says elsewhere; None where records are counted."""
    from sfumato.workflow.publishing.claims import counts_units, stated_unit

    return stated_unit(certificate) if schema.unit is None and counts_units(guarantee) else None


def _check_units(claim: Claim, guarantee: Any, measured: Measurement) -> list[Finding]:
    """A claim about different units whose column was dropped: the file shows records, of which there are at
    least as many; how many units they are it does not show.
    """
    from sfumato.workflow.publishing.claims import records_per_class

    name, records = claim.guarantee[:80], records_per_class(measured)
    beside_a_share = "k" in measured.also
    if (
        set(claim.also_measured) != {*measured.also, RECORDS_PER_CLASS}
        or not _same(claim.also_measured[RECORDS_PER_CLASS], records)
        or (beside_a_share and not _same(claim.measured, measured.value))
    ):
        text = f"the certificate states other numbers than those measured here ({records:.6g} records per class)"
        return [Finding(name, False, text)]
    units = claim.also_measured.get("k") if beside_a_share else claim.measured
    if isinstance(units, str) or units is None or not guarantee.k <= units <= records:
        return [Finding(name, False, f"the units that the certificate states cannot be in classes of {records:.6g} records")]
    on_trust = (
        f"rests on its maker: the certificate states {units:.6g} different units per class, which outsiders cannot recount "
        "because the column that names them is not published"
    )
    return [Finding(name, True, f"{guarantee.claim()}; measured {records:.6g} records per class"), Finding(name, None, on_trust)]


def _same_numbers(stated: Mapping[str, Any], measured: Mapping[str, float]) -> bool:
    return set(stated) == set(measured) and all(_same(stated[key], measured[key]) for key in measured)


def _same(stated: Any, measured: float) -> bool:
    if isinstance(stated, str):
        return stated == ("infinite" if measured > 0 else "-infinite") and math.isinf(measured)
    if stated is None:
        return math.isnan(measured)
    if not isinstance(stated, (int, float)) or isinstance(stated, bool):
        return False
    try:
        return math.isclose(stated, measured, rel_tol=1e-9, abs_tol=1e-9)
    except OverflowError:  # a whole number beyond every floating-point number
        return False
