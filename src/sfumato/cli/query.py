"""The command that asks a sensitive table: explained before it costs, answered with margins, charged to the ledger."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.dry_run import Draft, DryRun, print_cost_of_answer, print_cost_of_batch, refuse_draft
from sfumato.cli.keys import propose
from sfumato.cli.ledger import DEFAULT, Delta, Epsilon, Place, Rho, ledger_name
from sfumato.cli.output import Json, answer, complain
from sfumato.cli.reading import reads_a_table
from sfumato.core.errors import ParameterError
from sfumato.core.guarantees.loss import PureDP
from sfumato.core.plain_data import PlainDict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sfumato.core.outcome import Outcome
    from sfumato.data.microdata import Microdata
    from sfumato.dp.session import Session
    from sfumato.workflow.contents.base import Content
    from sfumato.workflow.release import Release

Analyst = Annotated[str, typer.Option("--analyst", help="Who asks; the owner grants budgets by this name.")]
Seed = Annotated[str | None, typer.Option("--seed", help="Make a repeatable demonstration.")]
Sign = Annotated[str | None, typer.Option("--sign", help="Sign with the key in this file.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an earlier release.")]
Unit = Annotated[
    str | None,
    typer.Option("--unit", help="The column that names the unit, or record for each row, if the schema says neither."),
]
Version = Annotated[str, typer.Option("--data-version", help="The version of the data; name a new one when they changed.")]
Digest = Annotated[
    bool,
    typer.Option("--digest/--no-digest", help="Note in the ledger, for the owner, whether the data changed; reads them once."),
]
Timeout = Annotated[
    float | None,
    typer.Option("--timeout", help="The most seconds of a statement in the engine; then it is stopped, and stays charged."),
]
#: The budget of a session that only explains.
NOTHING = PureDP(0)
Format = Annotated[str, typer.Option("--format", help="parquet or csv, for a table.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(reads_a_table(query))


def query(
    question: Annotated[
        str, typer.Argument(help="The question in SQL; several, separated by semicolons, are one batch under one charge.")
    ],
    data: Annotated[str | None, typer.Option("--data", "-d", help="The file of the table.")] = None,
    schema: Annotated[str | None, typer.Option("--schema", "-s", help="The schema (TOML) of the table.")] = None,
    table: Annotated[
        list[str] | None, typer.Option("--table", help="A table by name, as NAME=PLACE:SCHEMA; may be repeated.")
    ] = None,
    ledger: Place = DEFAULT,
    analyst: Analyst = "analyst",
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    explain: Annotated[bool, typer.Option("--explain", help="Print the cost and the expected error; ask nothing.")] = False,
    dry_run: DryRun = False,
    draft: Draft = False,
    describe: Annotated[bool, typer.Option("--describe", help="Print the columns of the answer; ask nothing.")] = False,
    within: Annotated[
        str | None, typer.Option("--within", help="Print what it costs to be within this error; ask nothing.")
    ] = None,
    rank_within: Annotated[
        str | None, typer.Option("--rank-within", help="The same for quantiles: how many rows they may be off their rank.")
    ] = None,
    confidence: Annotated[float, typer.Option("--confidence", help="The confidence of the margins.")] = 0.95,
    rows: Annotated[int | None, typer.Option("--rows", min=1, help="With --within: rows you expect in a group.")] = None,
    max_rows: Annotated[
        int | None,
        typer.Option("--max-rows", min=1, help="The most rows of a unit that count in a group."),
    ] = None,
    max_rows_per_group: Annotated[int | None, typer.Option("--max-rows-per-group", hidden=True)] = None,
    max_groups: Annotated[int | None, typer.Option("--max-groups", min=1, help="The most groups in which a unit counts.")] = None,
    bounding: Annotated[str, typer.Option("--bounding", help="Which rows count: sample or truncate.")] = "sample",
    order: Annotated[list[str] | None, typer.Option("--order", help="With truncate: the first rows by this column.")] = None,
    unit: Unit = None,
    public: Annotated[list[str] | None, typer.Option("--public", help="A public table, as NAME=PLACE; may be repeated.")] = None,
    keys: Annotated[
        list[str] | None,
        typer.Option("--keys", help="Values of a grouping key, as NAME=VALUE,VALUE or NAME=SELECT … of a public table."),
    ] = None,
    version: Version = "",
    digest: Digest = True,
    timeout: Timeout = None,
    output: Annotated[str | None, typer.Option("--output", "-o", help="Publish the answer into this folder as well.")] = None,
    format: Format = "csv",
    sign: Sign = None,
    overwrite: Overwrite = False,
    seed: Seed = None,
    json: Json = False,
    *,
    reading: PlainDict,
) -> None:
    """Ask a sensitive table in SQL and get noisy answers with margins, under a budget."""
    from sfumato.cli.arguments import amount_asked, key_values, public_tables, tables_of
    from sfumato.cli.query_batch import ask_batch
    from sfumato.dp.sql.parse import separated

    if max_rows_per_group is not None:
        raise ParameterError(f"--max-rows-per-group is called --max-rows now: write --max-rows {max_rows_per_group}")
    refuse_draft(draft)
    amounts = amount_asked(epsilon, delta, rho)
    costing = within is not None or rank_within is not None
    telling = explain or costing or describe or dry_run
    if not amounts and not costing and not describe:
        raise ParameterError("say what the answer may cost: --epsilon, --epsilon with --delta, or --rho")
    if not 0 < confidence < 1:
        raise ParameterError("--confidence lies between 0 and 1, for instance 0.95")
    if output is not None and not telling:
        check_output(output, format, sign, overwrite)
    session = open_session(
        tables_of(data, schema, table or (), reading),
        **({"budget": NOTHING} if telling else {"ledger": ledger}),
        analyst=analyst,
        unit=unit,
        public=public_tables(public or ()),
        max_rows=max_rows,
        max_groups=max_groups,
        bounding=bounding,
        order=tuple(order or ()),
        version=version,
        digest=digest,
        seed=seed,
        timeout=timeout,
    )
    declared = key_values(keys or ())
    questions = separated(question)
    if not json and (max_rows is not None or max_groups is not None) and not session.has_units:
        complain("notice: --max-rows and --max-groups have no effect: each record is a unit of its own, with one row")
    if len(questions) > 1:
        if costing or (output is not None and not telling):
            raise ParameterError(
                "--within, --rank-within and --output are about one question, and this is a batch. Ask one of its questions "
                "alone: what the batch answered costs nothing more"
            )
        if dry_run:
            print_cost_of_batch(session, questions, {**amounts, "keys": declared}, confidence, ledger, json)
            return
        ask_batch(session, questions, {**amounts, "keys": declared}, confidence, (describe, explain), ledger, json)
    elif describe and not dry_run:
        _print_explanation(session.describe(question, keys=declared), json)
    elif telling:
        if costing:
            margin, ranks = _number(within, "--within"), _number(rank_within, "--rank-within")
            explanation = session.cost(
                question, within=margin, rank_within=ranks, confidence=confidence, rows=rows, delta=delta, keys=declared
            )
        else:
            explanation = session.explain(question, confidence=confidence, keys=declared, **amounts)
        if dry_run:
            print_cost_of_answer(explanation, session.describe(question, keys=declared), session, ledger, json)
        else:
            _print_explanation(explanation, json)
    else:
        _answered(session, question, {**amounts, "keys": declared}, confidence, ledger, (output, format, sign, overwrite), json)


def open_session(
    tables: Mapping[str, Microdata] | Microdata,
    *,
    seed: str | None = None,
    **options: Any,  # those of `Session`
) -> Session:
    """A session over tables; a seed of digits counts as the number. What the owner should know goes to standard error."""
    import warnings

    from sfumato.dp.book import OtherLedger
    from sfumato.dp.session import Session

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        session = Session(tables, seed=int(seed) if seed is not None and seed.isdecimal() else seed, **options)
    for each in caught:
        if not issubclass(each.category, OtherLedger):
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
        elif session.ledger is not None:  # without one nothing is charged: the question is only explained
            complain(f"notice: {each.message}")
    return session


def publish_outcome(
    session: Session, outcome: Outcome[object], output: str, format: str, sign: str | None, overwrite: bool
) -> Release[Content]:
    """Certify, enter and save what a session returned; returns the artefact."""
    from sfumato.workflow.publishing.publish import publish

    release = publish(outcome, session.ledger)
    release.save(output, format, overwrite=overwrite, sign=sign)  # type: ignore[arg-type]
    return release


def _answered(
    session: Session,
    question: str,
    options: dict[str, Any],
    confidence: float,
    ledger: str,
    target: tuple[str | None, str, str | None, bool],
    json: bool,
) -> None:
    from sfumato.report.answer_words import answer_facts, answer_text, cost_lines

    answered = session.sql(question, **options)
    left = session.remaining()
    facts: dict[str, Any] = {
        **answer_facts(answered, confidence),
        "left": None if left is None else left.to_mapping(),
        "ledger": ledger_name(ledger),
    }
    lines = answer_text(answered, confidence)
    lines += cost_lines(answered.loss, answered.entry, answered.repeated, left)
    facts["not_covered"] = answered.outcome.details.get("not_covered", [])
    lines += [f"notice    {each}" for each in facts["not_covered"]]
    if not facts["private"]:
        lines.append("notice    a demonstration: the noise was seeded, so nobody is protected")
    output, format, sign, overwrite = target
    if output is not None:
        publish_outcome(session, answered.outcome, output, format, sign, overwrite)
        facts["folder"] = output
        check = shlex.join(["sfumato", "verify", output, "--ledger", ledger_name(ledger)])
        lines.append(f"published {output} (check it with: {check})")
        propose(facts, lines, sign)
    answer(facts, lines, json)


def _print_explanation(explanation: Any, json: bool) -> None:
    answer(explanation.to_mapping(), [*str(explanation).split("\n"), "", "nothing was asked and nothing was spent"], json)


def check_output(output: str, format: str, sign: str | None, overwrite: bool) -> None:
    """Refuse a place or a key that cannot be used before anything is spent."""
    from sfumato.workflow.publishing.appearing import check_place
    from sfumato.workflow.publishing.saving import signing_key

    if format not in ("parquet", "csv"):
        raise ParameterError("a table is saved as 'parquet' or 'csv'")
    check_place(Path(output).absolute(), overwrite=overwrite)
    signing_key(None if sign is None else Path(sign))


def _number(text: str | None, option: str) -> float | None:
    from sfumato.core.exact import exact

    return None if text is None else float(exact(text, option))
