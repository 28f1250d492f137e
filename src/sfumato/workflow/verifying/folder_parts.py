"""The parts of a foreign folder besides its rows: which files may be there, and whether each says what the certificate says.

A file has a name that the house gives and the content that follows from certificate and rows: the schema and the public page are
made again and compared byte by byte, hierarchies and plain data are read and written again. Nothing else travels along.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.attacks.adversary import OutputAttack
from sfumato.attacks.tables.classes import ABOUT_SHOWN_VALUES
from sfumato.core import registry
from sfumato.core.certificate import FIRST_FORMAT, Certificate, plain
from sfumato.core.errors import SfumatoError, VerificationFailed
from sfumato.core.files import temporary_folder
from sfumato.core.randomness import DESCRIPTIONS
from sfumato.core.view import Score
from sfumato.data.schema import Schema
from sfumato.measures.risk.linkage.transparency import published_steps
from sfumato.report.wording import attack_in_words
from sfumato.workflow.contents.base import OTHER_SCORES, content_kind
from sfumato.workflow.publishing.cards import CARD, CARD_FORMAT, FORMER_CARD_FORMATS, WITH_ANSWERS, public_card
from sfumato.workflow.publishing.claims import stated_unit
from sfumato.workflow.verifying.pseudonym_ties import PSEUDONYM
from sfumato.workflow.verifying.stated.transparency import names_in
from sfumato.workflow.verifying.untrusted import quoted
from sfumato.workflow.verifying.verification import Finding

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.data.microdata import ReleasedTable

SCHEMA = "schema.toml"
#: What a release was made with, by the format of its certificate.
_VERSIONS_FIRST = {"sfumato", "python", "numpy", "pyarrow"}
_VERSIONS = {*_VERSIONS_FIRST, "matplotlib"}
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+-]{0,39}")
_MOST_STATED = 1_000_000
#: What attacks on a masked table are given when it is published; those on other rows are given nothing.
_HELD = {"register", "truth"}
_FIGURE, _CAPTION = "<figure>", "<figcaption"


def refuse_foreign_files(certificate: Certificate, schema: Schema) -> None:
    """Only files of a release, under the names that the house gives them."""
    may, must = content_kind(certificate).files(certificate, schema)
    listed = set(certificate.files)
    foreign = sorted(listed - may - {CARD})
    if foreign:
        raise VerificationFailed(f"files that no release of this kind has: {', '.join(map(quoted, foreign[:5]))}")
    missing = sorted({*must, CARD} - listed)
    if missing:
        raise VerificationFailed(f"files that every release of this kind has are missing: {', '.join(missing[:5])}")


def refuse_other_trees(names: Iterable[str]) -> None:
    """Files of hierarchies have the names that releases give them."""
    if not all(re.fullmatch(r"hierarchy-[1-9][0-9]{0,2}\.csv", name) for name in names):
        raise VerificationFailed("a hierarchy has a name that no release gives it")


def check_schema_file(schema: Schema, columns: list[str], private: Path) -> Finding:
    """The schema as a file is the schema of the certificate, in the order of the columns."""
    ordered = schema.replace(columns={name: schema.columns[name] for name in columns}, folder=None)
    if (private / SCHEMA).read_bytes() != ordered.to_toml().encode():
        raise VerificationFailed(f"{SCHEMA} is not the schema of the certificate")
    return Finding("schema", True, f"{SCHEMA} is the schema of the certificate")


def refuse_other_hierarchies(schema: Schema, private: Path) -> None:
    """A hierarchy file is a hierarchy and nothing else."""
    from sfumato.data.hierarchies.hierarchy import Hierarchy

    for name in sorted(
        {column.hierarchy.file for column in schema.columns.values() if column.hierarchy and column.hierarchy.file}
    ):
        try:
            tree = Hierarchy.load(private / name, separator=";", verbatim=True)
            with temporary_folder("verify") as place:
                tree.save(Path(place) / name)
                same = (Path(place) / name).read_bytes() == (private / name).read_bytes()
        except SfumatoError:
            raise VerificationFailed(f"the hierarchy {quoted(name)} cannot be read") from None
        if not same:
            raise VerificationFailed(f"the hierarchy {quoted(name)} is not written as releases write one")


def refuse_other_sets(schema: Schema, table: pa.Table) -> None:
    """A set is written in one way: its spelling would tell rows apart that count as equal."""
    from sfumato.data.texts.values import sorted_sets

    if sorted_sets(table, schema) is not table:
        raise VerificationFailed("a column of sets holds one that is not written as releases write them: sorted, each item once")


def refuse_roles(certificate: Certificate, schema: Schema) -> None:
    """Columns of a private result have types and no roles."""
    _refuse_identifiers(schema)
    if any(set(column) - {"type"} for column in certificate.schema.get("columns", {}).values()):
        raise VerificationFailed("the certificate gives columns of a private result a role, as only rows of people have")


def _refuse_identifiers(schema: Schema) -> None:
    if schema.with_role("identifier"):
        raise VerificationFailed("the certificate's schema describes a column of identifiers, which no release has")


def refuse_names(certificate: Certificate, schema: Schema, table: pa.Table) -> None:
    """No column of names: identifiers are dropped or replaced, and what stands for names looks as pseudonyms do."""
    import pyarrow as pa
    import pyarrow.compute as pc

    _refuse_identifiers(schema)
    transparency = certificate.transparency
    replaced, removed = names_in(transparency, "pseudonymised_columns"), names_in(transparency, "removed_columns")
    if not set(replaced) <= set(table.column_names) or set(removed) & set(table.column_names):
        raise VerificationFailed("the certificate says of a column that it was removed or replaced, and the data say otherwise")
    if "quasi_identifiers" in transparency:
        quasi = set(names_in(transparency, "quasi_identifiers"))
        if not set(schema.quasi) <= quasi or quasi - set(schema.quasi) - set(removed):
            raise VerificationFailed("the certificate names other quasi-identifiers than its schema does")
    if transparency.get("row_order", "sorted by content") != "sorted by content":
        raise VerificationFailed("the certificate names an order of rows that no release has")
    unit = stated_unit(certificate)
    if "unit" in transparency:
        known_unit = transparency["unit"] == "one record" if unit is None else unit in removed
        if not (known_unit if schema.unit is None else unit == schema.unit):
            raise VerificationFailed("the certificate says of a unit what its columns do not say")
    if schema.unit is not None and schema.unit not in replaced:
        raise VerificationFailed("the column that names people is published, and the certificate does not call it pseudonyms")
    for name in replaced:
        values = table.column(name).unique().drop_null()
        if pa.types.is_dictionary(values.type):
            values = values.cast(pa.string())
        if not pa.types.is_string(values.type) or not pc.all(pc.match_substring_regex(values, PSEUDONYM)).as_py():
            if len(values):
                raise VerificationFailed(f"the column {quoted(name)} holds something else than the pseudonyms it is said to hold")


def refuse_contradictions(certificate: Certificate, schema: Schema) -> None:
    """What a certificate says in two places must agree: its evidence, and where its randomness came from."""
    if certificate.schema.get("dataset", "unnamed") != certificate.dataset:
        raise VerificationFailed("the certificate and its schema name different data sets")
    packages = _VERSIONS_FIRST if certificate.format == FIRST_FORMAT else _VERSIONS
    if set(certificate.versions) != packages or not all(_VERSION.fullmatch(named) for named in certificate.versions.values()):
        raise VerificationFailed("the certificate names other versions of what made it than its format has")
    columns = {*schema.columns, *names_in(certificate.transparency, "removed_columns")}
    example = certificate.card.get("example", {})
    well_formed = isinstance(example, Mapping) and all(isinstance(each, list) and len(each) == 2 for each in example.values())
    if not well_formed or not set(example) <= columns:
        raise VerificationFailed("the certificate shows an invented row of other columns than it is about")
    if certificate.schema.get("unit") is not None and registry.has("mask", certificate.method.get("name")):
        raise VerificationFailed("the certificate says that each record is a person, which nobody says of masked rows")
    if certificate.card.get("answers") and certificate.card.get("format") not in (None, *WITH_ANSWERS):
        raise VerificationFailed("the certificate answers the checklist, and releases leave the answers with their owner")
    kinds = {claim.evidence == "process" for claim in certificate.claims}
    if len(kinds) > 1:
        raise VerificationFailed("the claims are partly about rows and partly about a process; no release makes both")
    if certificate.randomness not in DESCRIPTIONS:
        raise VerificationFailed("the certificate names a source of randomness that no release has")
    seeded = not DESCRIPTIONS[certificate.randomness]
    if seeded == certificate.private:
        raise VerificationFailed(
            "the certificate calls itself private although its randomness was seeded, or the other way round"
        )
    if seeded and not any("demonstration" in notice for notice in certificate.notices):
        raise VerificationFailed("the release was made with a seed, and no notice of its certificate says so")


def stated_only(certificate: Certificate) -> Finding:
    """What nobody can check from the files, by name: it is shown, and rests on whoever wrote it."""
    texts = {
        "notices": certificate.notices,
        "comparison with earlier releases": certificate.composition,
        "attacks": certificate.attacks,
        "that usefulness was measured": certificate.card.get("scored"),
        "answers to the checklist": certificate.card.get("answers"),
        "the invented row": certificate.card.get("example"),
        "who publishes it and for what": certificate.schema.get("publication"),
        "that nobody has several records": certificate.schema.get("unit"),
        "details of the page": certificate.card.get("details"),
        "arguments of claims": [claim for claim in certificate.claims if claim.argument],
        "levels of a mask": _levels_of_a_mask(certificate),
        "kinds and levels of trees that are not published": _trees_not_published(certificate),
    }
    for what in (certificate.composition, certificate.attacks, certificate.method, certificate.transparency):
        if len(json.dumps(plain(what))) > _MOST_STATED:
            raise VerificationFailed("the certificate states more about how it was made than any release does")
    present = ["when it was made", "how it was made", *(name for name, value in texts.items() if value)]
    return Finding("statements", None, f"stated by the maker, not checked: {', '.join(present)}")


def _trees_not_published(certificate: Certificate) -> bool:
    """Whether a kind of tree is named for a column whose tree the schema does not describe: no text can be compared with it,
    but against a level of a flat one."""
    kinds, columns = certificate.transparency.get("hierarchies"), certificate.schema.get("columns")
    levels = certificate.transparency.get("levels", {})
    if not isinstance(kinds, Mapping) or not isinstance(columns, Mapping):
        return False
    described = {name for name, column in columns.items() if isinstance(column, Mapping) and column.get("hierarchy")}
    return any((kind != "flat" or name not in levels) and name not in described for name, kind in kinds.items())


def _levels_of_a_mask(certificate: Certificate) -> bool:
    """Whether a mask states levels: its hierarchies are not published, so that nothing can be compared with them."""
    masked, facts = registry.has("mask", certificate.method.get("name")), certificate.transparency
    return masked and any(
        each.get("method", {}).get("levels") for each in published_steps({"method": certificate.method, **facts})
    )


def check_scores(certificate: Certificate, released: ReleasedTable) -> list[Finding]:
    """Every score of the public page is computed again from the rows."""
    from sfumato.workflow.publishing.scoring import computed_again

    scores = certificate.card.get("scores", ())
    numbers = [number for score in scores for number in (score["value"], *score["parts"].values())]
    if len({score["measure"] for score in scores}) < len(scores) or not all(type(each) in (int, float) for each in numbers):
        raise VerificationFailed(OTHER_SCORES)
    if not all(computed_again(Score(**score), released) for score in scores):
        raise VerificationFailed(OTHER_SCORES)
    text = f"computed again from the rows: {', '.join(score['measure'] for score in scores)}"
    return [Finding("scores", True, text)] if scores else []


def refuse_other_attacks(certificate: Certificate) -> None:
    """Attacks that are known and can be run on such rows, with rates and counts that agree; what is said of them in words follows
    from the numbers. One may stand there twice, with other parameters.
    """
    masked = registry.has("mask", certificate.method.get("name"))
    shown = (ABOUT_SHOWN_VALUES,) if masked else ()
    for stated in certificate.attacks:
        low, high = stated["interval"]
        supposing = registry.find("attack", stated["attack"]).supposing if registry.has("attack", stated["attack"]) else ""
        # Earlier certificates do not say what is supposed.
        numbers = (stated["success"], stated["baseline"], stated["targets"])
        forms = {attack_in_words(*numbers), attack_in_words(*numbers, supposing)}
        said = forms | {f"{words} {caveat}" for words in forms for caveat in shown}
        if (
            not registry.has("attack", stated["attack"])
            or (not _can_be_run(stated["attack"], masked) and certificate.format != FIRST_FORMAT)
            or not low - 1e-9 <= stated["success"] <= high + 1e-9
            or (not stated["targets"] and stated["success"] > 0)
            or (stated["finding"] not in said and certificate.format != FIRST_FORMAT)
        ):
            raise VerificationFailed("the certificate states an attack in a way that no release does")


def _can_be_run(attack: str, masked: bool) -> bool:
    """Whether whoever publishes rows runs the attack on them: it is about rows, and takes no more than he hands over."""
    kind = registry.find("attack", attack)
    return not issubclass(kind, OutputAttack) and set(kind.needs) <= (_HELD if masked else set())


def check_card(certificate: Certificate, data: object, signature: str, private: Path) -> Finding:
    """The public page is the one that certificate and rows make; one of another format is only held to be harmless."""
    from sfumato.report.harmless import refuse_behaviour

    try:
        page = (private / CARD).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise VerificationFailed(f"{CARD} is not UTF-8 text") from None
    try:
        refuse_behaviour(page)
    except SfumatoError as error:
        raise VerificationFailed(f"{CARD} is not a card: {error}") from None
    if certificate.format == FIRST_FORMAT or certificate.card.get("format") in FORMER_CARD_FORMATS:
        text = "not compared: it is of an earlier format; it runs no script and loads nothing"
        return Finding("card", None, text, caveat=f"{CARD} was not compared with them, and what it says was not checked")
    if certificate.card.get("format") != CARD_FORMAT:
        raise VerificationFailed(f"{CARD} is of a format that this version does not make; another version may")
    try:
        expected = public_card(certificate, data, signature)
    except Exception as error:  # whatever a stranger wrote, the answer is a verdict and not a crash
        raise VerificationFailed(f"the card cannot be made from the certificate ({type(error).__name__})") from None
    if page == expected:
        return Finding("card", True, "made again from certificate and rows, it is the same page")
    drawn_elsewhere = certificate.versions.get("matplotlib") != _matplotlib()
    if drawn_elsewhere and _same_but_drawn(page, expected):
        return Finding(
            "card",
            None,
            "made again, its text is the same, in its figures too; drawings of another version of matplotlib are not compared",
            caveat=f"the figures of {CARD} were drawn by another version of matplotlib, and what they show was not compared",
        )
    raise VerificationFailed(f"{CARD} says something else than certificate and rows do")


def _same_but_drawn(page: str, expected: str) -> bool:
    """Whether two pages differ in the drawings of their figures only: as many, of plain SVG, with the words of the other's."""
    from sfumato.report.content import shows_only

    (text, drawn), (words, expected_figures) = _without_figures(page), _without_figures(expected)
    return (
        text == words
        and len(drawn) == len(expected_figures)
        and all(each.startswith("<svg") and each.endswith("</svg>") for each in drawn)
        and all(shows_only(figure, other) for figure, other in zip(drawn, expected_figures, strict=True))
    )


def _without_figures(page: str) -> tuple[str, list[str]]:
    """The page without its drawings, and the drawings; in one pass, whatever a stranger wrote."""
    first, *rest = page.split(_FIGURE)
    kept, drawn = [first], []
    for part in rest:
        figure, end, text = part.partition(_CAPTION)
        kept.append(_FIGURE + end + text)
        drawn.append(figure)
    return "".join(kept), drawn


def _matplotlib() -> str:
    from importlib.metadata import version

    return version("matplotlib")
