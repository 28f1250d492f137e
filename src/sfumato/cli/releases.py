"""Commands about a release that exists: verify it, attack it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from sfumato.cli.help import CHECK, add
from sfumato.cli.output import Json, Quiet, Strict, complain, conclude, shown_progress
from sfumato.cli.reading import reads_a_table
from sfumato.cli.usage import Misuse
from sfumato.core.plain_data import Plain, PlainDict
from sfumato.core.texts import percent


def register(app: typer.Typer) -> None:
    """Add the commands."""
    add(
        app,
        reads_a_table(verify),
        "sfumato verify out",
        "sfumato verify out --original people.csv --ledger sfumato-ledger.db --strict",
        "sfumato verify out --public-key signing.key.pub",
        "sfumato verify out --itemsets out/owner/itemsets.json",
        task=CHECK,
    )
    add(
        app,
        reads_a_table(attack),
        "sfumato attack out",
        "sfumato attack out --with people.csv",
        "sfumato attack out --earlier last-year",
        "sfumato attack out --itemsets out/owner/itemsets.json",
        "sfumato attack out --with people.csv --attack 'Minimality(value=\"HIV\")'",
        task=CHECK,
    )


Itemsets = Annotated[
    str | None, typer.Option("--itemsets", help="The owner's list of what was hidden in baskets (owner/itemsets.json).")
]


def verify(
    folder: Annotated[str, typer.Argument(help="The folder of the release.")],
    original: Annotated[str | None, typer.Option("--original", help="The table it was made from.")] = None,
    population: Annotated[str | None, typer.Option("--population", help="The population it compares with.")] = None,
    itemsets: Itemsets = None,
    public_key: Annotated[
        str | None, typer.Option("--public-key", help="The owner's public key (ed25519:…) or its file.")
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            "--ledger", help="The ledger that paid for claims of differential privacy, or that a release is entered in."
        ),
    ] = None,
    allow_demonstration: Annotated[
        bool, typer.Option("--allow-demonstration", help="Accept a release that was made with a seed.")
    ] = False,
    data: Annotated[
        str | None, typer.Option("--data", help="Where the rows are that were published into a database: its URL or file.")
    ] = None,
    table: Annotated[str | None, typer.Option("--table", help="The table of --data.")] = None,
    strict: Strict = False,
    json: Json = False,
    *,
    reading: PlainDict,
) -> None:
    """Check a release from its files: digests, signature, and every claim that can be measured or looked up again."""
    from sfumato.workflow.verdicts import verification_verdict
    from sfumato.workflow.verifying.verify import verify as run

    verification = run(
        folder,
        original=original,
        population=population,
        itemsets=itemsets,
        public_key=public_key,
        ledger=ledger,
        allow_demonstration=allow_demonstration,
        data=data,
        table=table,
        **reading,
    )
    headline = verification_verdict(verification)
    facts = {**verification.to_mapping(), "headline": headline.word}  # its own verdict is one of nine words
    findings = verification.explain().removesuffix(verification.sentence).splitlines()
    conclude(facts, findings, headline, json, strict=strict, failed=not verification.accepted)


def attack(
    folder: Annotated[
        str,
        typer.Argument(
            help="The folder of the release, or a .json file that describes an attack on numbers, on a model, or on a release by "
            "somebody who knows more."
        ),
    ],
    register: Annotated[str | None, typer.Option("--with", help="A register of people with raw values.")] = None,
    schema: Annotated[
        str | None,
        typer.Option(
            "--schema", help="A schema of the register: types and codes for missing values, if not those of the release."
        ),
    ] = None,
    table: Annotated[str | None, typer.Option("--table", help="The table of the database that --with names.")] = None,
    earlier: Annotated[list[str] | None, typer.Option("--earlier", help="An earlier release of the same data.")] = None,
    aligned: Annotated[
        bool, typer.Option("--aligned", help="The register is the table that was masked (for its owner).")
    ] = False,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            help="A column of the register that identifies people, to count correct links in a masked release: one that is "
            "published, or one that its owner's folder knows (unit and identifiers of the source; without --key the unit).",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--attack",
            "-a",
            help="Only this attack; with parameters as in 'Minimality(value=\"HIV\")'. May be repeated.",
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option("--data", help="Where the rows of a release are that was published into a database: its URL or file."),
    ] = None,
    data_table: Annotated[str | None, typer.Option("--data-table", help="The table of --data.")] = None,
    itemsets: Itemsets = None,
    strict: Strict = False,
    json: Json = False,
    quiet: Quiet = False,
    *,
    reading: PlainDict,
) -> None:
    """Attack a release, or what a JSON file describes, and report success beside blind guessing."""
    import warnings

    from sfumato.data.schema import Schema
    from sfumato.workflow.attacking.outputs import attack_outputs
    from sfumato.workflow.attacking.registers import CodesNotApplied
    from sfumato.workflow.attacking.releases import attack as run_attacks
    from sfumato.workflow.attacking.releases import stated
    from sfumato.workflow.earlier.read_alike import read_described
    from sfumato.workflow.verifying.verify import certificate_of

    if folder.endswith(".json"):
        if register or schema or table or earlier or only or aligned or key or data or data_table or itemsets or reading:
            raise Misuse("a file that describes an attack must hold everything about it; leave the options out")
        _conclude({"file": folder}, [attack_outputs(folder)], None, json, strict)
        return
    if schema and register is None:
        raise Misuse("--schema describes the register: pass that with --with")
    if table and register is None:
        raise Misuse("--table names a table of the register's database: pass that with --with")
    if reading and register is None:
        raise Misuse("how texts are read is about the register: pass that with --with")
    people = None
    if register is not None and schema:
        described = Schema.load(schema)
        people = read_described(register, described.columns, table, described.read.overridden(reading))
    with shown_progress(json, quiet) as progress, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outcomes = run_attacks(
            folder,
            register=people or register,
            table=table,
            reading=reading,
            earlier=earlier or (),
            only=only or (),
            knowledge={} if itemsets is None else {"itemsets": itemsets},
            aligned=aligned,
            key=key,
            data=data,
            data_table=data_table,
            progress=progress,
        )
    for each in caught:
        if issubclass(each.category, CodesNotApplied):
            complain(f"notice: {each.message}")
        else:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    claims = certificate_of(folder).to_mapping()["claims"]
    _conclude({"folder": folder}, [stated(result) for result in outcomes], claims, json, strict)


def _conclude(about: PlainDict, results: list[PlainDict], claims: Iterable[Plain] | None, json: bool, strict: bool) -> None:
    """The results, the one with the greatest gain first, and the verdict on all of them, which ends what is shown."""
    from sfumato.workflow.verdicts import attack_verdict, by_gain, gain

    verdict = attack_verdict(results, claims)
    ordered = [{**each, "gain": gain(each)} for each in by_gain(results)]
    conclude({**about, "attacks": ordered}, _lines(ordered), verdict, json, strict=strict, last=True)


def _lines(results: list[PlainDict]) -> list[str]:
    from sfumato.report.wording import counted

    if not results:
        return ["no attack fits this release and what was given; with --with, --earlier or --attack others can be tried"]
    lines = []
    for result in results:
        if result["targets"] and result["details"].get("without_match") == result["targets"]:
            lines += [
                f"{result['attack']}: nobody was matched, of {counted(result['targets'], 'target')}",
                f"  {result['finding']}",
            ]
            continue
        low, high = (percent(end) for end in result["interval"])
        estimated = result["details"].get("people_are") == "estimated"
        about, sure = ("roughly ", "estimated") if estimated else ("", f"95 % interval {low} to {high}")
        lines += [
            f"{result['attack']}: success {about}{percent(result['success'])} ({sure}), "
            f"blind guessing {about}{percent(result['baseline'])}, gain {about}{_signed(result['gain'])}, "
            f"{about}{counted(result['targets'], 'target')}",
            f"  {result['finding']}",
        ]
    return lines


def _signed(gain: float) -> str:
    """A gain in per cent; below 0 where guessing does better."""
    return percent(gain) if gain >= 0 else f"−{percent(-gain)}"
