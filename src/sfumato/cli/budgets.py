"""Commands of the owner of a ledger: what an analyst, or everybody together, may spend, and whom that protects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.help import add
from sfumato.cli.ledger import DEFAULT, Delta, Epsilon, Place, Rho
from sfumato.cli.output import Json, answer
from sfumato.cli.usage import Misuse

if TYPE_CHECKING:
    from sfumato.ledger.amounts import LossAmount
    from sfumato.ledger.chain import Entry

Unit = Annotated[
    str | None, typer.Option("--unit", help="Whom the dataset's budgets protect: the unit column, or record for each row.")
]
Relation = Annotated[
    str | None, typer.Option("--neighbours", help="With --unit: add_remove (one unit is added or removed) or replace.")
]


def register(account: typer.Typer) -> None:
    """Add the commands to those about the ledger."""
    add(account, grant, "sfumato ledger grant clinic ann --epsilon 1", "sfumato ledger grant clinic ann --rho 1/2 --unit patient")
    add(account, cap, "sfumato ledger cap clinic --epsilon 3")
    add(account, unit, "sfumato ledger unit clinic --unit patient --rows-per-unit 8")


def grant(
    dataset: Annotated[str, typer.Argument(help="The dataset id.")],
    analyst: Annotated[str, typer.Argument(help="Who may spend it.")],
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    unit: Unit = None,
    neighbours: Relation = None,
    ledger: Place = DEFAULT,
    json: Json = False,
) -> None:
    """Set the most an analyst may ever spend on a dataset."""
    from sfumato.ledger.ledger import Ledger

    loss = given_loss(epsilon, delta, rho, "grant")
    with Ledger.open(ledger) as book:
        entry = book.grant(dataset, analyst, loss, unit=unit, neighbours=neighbours)  # type: ignore[arg-type]
        identity = book.identity
    facts = {"dataset": dataset, "analyst": analyst, "granted": loss.to_mapping(), "hash": entry.hash, **_stated(entry)}
    lines = [f"granted {loss} to {analyst} on {dataset}; entry {entry.sequence}, {entry.hash[:16]}…"]
    answer({**facts, "ledger_id": identity}, lines + _about(dataset, entry) + _for_the_schema(identity), json)


def cap(
    dataset: Annotated[str, typer.Argument(help="The dataset id.")],
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    unit: Unit = None,
    neighbours: Relation = None,
    ledger: Place = DEFAULT,
    json: Json = False,
) -> None:
    """Set the most everybody together may ever spend on a dataset."""
    from sfumato.ledger.ledger import Ledger

    loss = given_loss(epsilon, delta, rho, "cap")
    with Ledger.open(ledger) as book:
        entry = book.cap(dataset, loss, unit=unit, neighbours=neighbours)  # type: ignore[arg-type]
        identity = book.identity
    facts = {"dataset": dataset, "cap": loss.to_mapping(), "hash": entry.hash, **_stated(entry)}
    lines = [f"everybody together may spend {loss} on {dataset}; entry {entry.sequence}, {entry.hash[:16]}…"]
    answer({**facts, "ledger_id": identity}, lines + _about(dataset, entry) + _for_the_schema(identity), json)


def unit(
    dataset: Annotated[str, typer.Argument(help="The dataset id.")],
    named: Annotated[
        str, typer.Option("--unit", help="Whom its budgets protect from now on: the unit column, or record for each row.")
    ],
    neighbours: Annotated[
        str, typer.Option("--neighbours", help="add_remove (one unit is added or removed) or replace.")
    ] = "add_remove",
    rows_per_unit: Annotated[
        int | None,
        typer.Option("--rows-per-unit", min=1, help="The most rows that one unit has; earlier spends count for that many."),
    ] = None,
    ledger: Place = DEFAULT,
    json: Json = False,
) -> None:
    """Change whom the budgets on a dataset protect; what was spent is carried over."""
    from sfumato.ledger.ledger import Ledger

    with Ledger.open(ledger) as book:
        entry = book.change_unit(dataset, named, neighbours=neighbours, rows_per_unit=rows_per_unit)  # type: ignore[arg-type]
        accounts, missing = book.accounts(dataset), book.not_covered(dataset)
    facts = {
        "dataset": dataset,
        "hash": entry.hash,
        **_stated(entry),
        "rows_per_unit": rows_per_unit,
        "accounts": [
            {"analyst": each.analyst, "spent": each.spent.to_mapping(), "left": each.remaining.to_mapping()} for each in accounts
        ],
        "not_covered": [str(each) for each in missing],
    }
    lines = [*_about(dataset, entry), f"entry {entry.sequence}, {entry.hash[:16]}…"]
    for each in accounts:
        who = "everybody" if each.is_cap else each.analyst
        left = str(each.remaining) if each.spent.within(each.granted) else "nothing"
        lines.append(f"{who}: {each.spent} of {each.granted} spent, {left} left")
    answer(facts, lines + [f"notice    {each}" for each in missing], json)


def given_loss(epsilon: str | None, delta: str | None, rho: str | None, verb: str) -> LossAmount:
    """The amount that the options state: ε, ε with δ, or ρ."""
    from sfumato.ledger.amounts import LossAmount

    if (epsilon is None) == (rho is None) or (rho is not None and delta is not None):
        raise Misuse(f"{verb} either --epsilon, --epsilon with --delta, or --rho")
    if rho is not None:
        return LossAmount.zcdp(rho)
    if delta is not None:
        return LossAmount.approx(str(epsilon), delta)
    return LossAmount.pure(str(epsilon))


def _stated(entry: Entry) -> dict[str, str | None]:
    from sfumato.ledger.accounts import Protected
    from sfumato.report.ledger_overview import entry_protected

    return Protected.plain(entry_protected(entry))


def _about(dataset: str, entry: Entry) -> list[str]:
    from sfumato.report.ledger_overview import entry_protected

    stated = entry_protected(entry)
    return [] if stated is None else [f"all budgets on {dataset} are about {stated}"]


def _for_the_schema(identity: str) -> list[str]:
    """The line that ties a schema to its ledger; the owner puts it there, nothing rewrites a schema."""
    return [f'so that another ledger is noticed, keep this line at the top of the schema: ledger = "{identity}"']
