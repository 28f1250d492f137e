"""The command that releases one private artefact: a histogram, clusters, a top list, a synthetic table."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.dry_run import Draft, DryRun, print_cost_of_artefact, refuse_draft
from sfumato.cli.help import PUBLISH, add
from sfumato.cli.keys import propose
from sfumato.cli.ledger import DEFAULT, Place, ledger_name
from sfumato.cli.output import Json, Quiet, StrictlyMade, answer, complain, conclude, shown_progress
from sfumato.cli.query import (
    NOTHING,
    Analyst,
    Digest,
    Format,
    Overwrite,
    Seed,
    Sign,
    Unit,
    Version,
    check_output,
    open_session,
    publish_outcome,
)
from sfumato.cli.reading import reads_a_table
from sfumato.cli.usage import Misuse
from sfumato.core.owner_files import parse_toml
from sfumato.core.plain_data import PlainDict

if TYPE_CHECKING:
    from sfumato.data.schema import Schema as Description
    from sfumato.dp.session import Session


def register(app: typer.Typer) -> None:
    """Add the command."""
    add(
        app,
        reads_a_table(publish),
        "sfumato publish --list",
        "sfumato publish PrivateHistogram people.csv --schema people.toml --set columns='[\"sex\"]' --set epsilon=0.5",
        task=PUBLISH,
    )


def publish(
    method: Annotated[str | None, typer.Argument(help="The algorithm; --list names them all.")] = None,
    data: Annotated[str | None, typer.Argument(help="The file of the table, or the URL of a database.")] = None,
    schema: Annotated[str | None, typer.Option("--schema", "-s", help="The schema (TOML) of the table.")] = None,
    table: Annotated[str | None, typer.Option("--table", help="The table of the database.")] = None,
    parameters: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter as NAME=VALUE, the value as in TOML; may be repeated.")
    ] = None,
    ledger: Place = DEFAULT,
    analyst: Analyst = "analyst",
    unit: Unit = None,
    version: Version = "",
    digest: Digest = True,
    output: Annotated[str, typer.Option("--output", "-o", help="The folder of the release.")] = "out",
    format: Format = "csv",
    sign: Sign = None,
    overwrite: Overwrite = False,
    seed: Seed = None,
    dry_run: DryRun = False,
    draft: Draft = False,
    listed: Annotated[bool, typer.Option("--list", help="List the algorithms with their parameters.")] = False,
    strict: StrictlyMade = False,
    json: Json = False,
    quiet: Quiet = False,
    *,
    reading: PlainDict,
) -> None:
    """Run a private algorithm on a table, pay for it and publish what it made."""
    refuse_draft(draft)
    if listed:
        _list(method, json)
        return
    if method is None or data is None or schema is None:
        raise Misuse("publish needs a method, a table and --schema; `sfumato publish --list` names the methods.")
    from sfumato.core import registry
    from sfumato.engines.sources import read

    algorithm = registry.make("algorithm", {"name": method, **_settings(parameters or ())})
    if not dry_run:
        check_output(output, format, sign, overwrite)
    people = read(data, schema=schema, table=table, unreadable="missing", **reading)
    charged: dict[str, Any] = {"budget": NOTHING} if dry_run else {"ledger": ledger}
    session = open_session(people, analyst=analyst, unit=unit, version=version, digest=digest, seed=seed, **charged)
    if dry_run:
        print_cost_of_artefact(session.release_cost(algorithm), session, ledger, json)
        return
    _say_what_is_warned_about(session, seed, people.schema, strict=strict)
    with shown_progress(json, quiet) as progress:
        outcome = session.release(algorithm, for_owner=True, progress=progress)
    release = publish_outcome(session, outcome, output, format, sign, overwrite)
    _print_release(release, session.remaining(), output, ledger, sign, json, strict)


def _say_what_is_warned_about(session: Session, seed: object, schema: Description, *, strict: bool) -> None:
    """Before the charge: a seed, earlier charges that the loss does not cover, and roles that nobody confirmed."""
    from sfumato.report.headline import DEMONSTRATION, Headline, refuse_all_but_kept, unread

    earlier = [] if session.ledger is None else map(str, session.ledger.not_covered(session.dataset))
    if strict:
        refuse_all_but_kept(Headline.of("kept", "", [*([] if seed is None else [DEMONSTRATION]), *earlier, *unread(schema)]))
    for warning in unread(schema):
        complain(f"warning: {warning}")


def _print_release(release: Any, left: Any, output: str, ledger: str, sign: str | None, json: bool, strict: bool) -> None:
    from sfumato.report.answer_words import amount
    from sfumato.report.wording import counted
    from sfumato.workflow.contents.private_result import is_table
    from sfumato.workflow.verdicts import release_verdict

    certificate = release.certificate
    loss, paid = amount(release.guarantees[0]), certificate.claims[0].ledger_entry
    facts = {
        "dataset": certificate.dataset,
        "method": dict(certificate.method),
        "rows": release.data.num_rows if is_table(release.data) else None,
        "claims": certificate.to_mapping()["claims"],
        "loss": loss.to_mapping() if hasattr(loss, "to_mapping") else loss,
        "left": None if left is None else left.to_mapping(),
        "ledger": certificate.ledger,
        "charged": paid,
        "private": certificate.private,
        "notices": list(certificate.notices),
        "folder": output,
    }
    what = counted(release.data.num_rows, "row") if is_table(release.data) else "a result"
    lines = [f"made      {what} about '{certificate.dataset}' with {certificate.method.get('name')}"]
    lines += [f"promised  {claim.promised}" for claim in certificate.claims if claim.holds]
    lines += [f"counted   {certificate.method['contribution']}"] if "contribution" in certificate.method else []
    lines += [f"cost      {loss}" + (f" (ledger entry {paid[:16]}…)" if paid else ", not charged")]
    lines += [] if left is None else [f"left      {left}"]
    verdict = release_verdict(release)
    lines += [f"notice    {notice}" for notice in certificate.notices if notice not in verdict.warnings]
    lines += [f"saved     {output}/public to give away, {output}/owner to keep"]
    lines += [f"check     {shlex.join(['sfumato', 'verify', output, '--ledger', ledger_name(ledger)])}"]
    propose(facts, lines, sign)
    conclude(facts, lines, verdict, json, strict=strict)


def _settings(texts: list[str] | tuple[str, ...]) -> dict[str, Any]:
    """`k=3` and `columns=["age"]` as TOML; a value that is no TOML, such as 1/10 or age, is a text."""
    settings: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise Misuse("--set is written as NAME=VALUE, for instance --set epsilon=0.5")
        try:
            settings[name.strip()] = parse_toml(f"value = {value.strip()}")["value"]
        except (ValueError, RecursionError):
            settings[name.strip()] = value.strip()
    return settings


def _list(method: str | None, json: bool) -> None:
    from sfumato.core import registry
    from sfumato.workflow import named

    algorithms = registry.every("algorithm")
    if method is not None:
        algorithms = {method: registry.find("algorithm", method)}
    descriptions = {name: named.described(kind) for name, kind in sorted(algorithms.items())}
    lines = []
    for name, about in descriptions.items():
        lines += [f"{name}: {about['what']}"]
        lines += [f"    {parameter}" for parameter in about["parameters"]]
    answer({"algorithms": descriptions}, lines or ["no algorithm is installed"], json)
