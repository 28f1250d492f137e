"""Commands about the ledger: what was released, granted and spent, and whether the account is intact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.output import Json, answer, table_lines
from sfumato.core.errors import ParameterError

if TYPE_CHECKING:
    from sfumato.ledger.ledger import Ledger

Place = Annotated[str, typer.Option("--ledger", help="The ledger's file or URL.")]
Dataset = Annotated[str | None, typer.Option("--dataset", help="Only this dataset.")]
DEFAULT = "sfumato-ledger.db"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="The account of releases, grants and spends; alone it lists the entries.")
    group.callback(invoke_without_command=True)(_alone)
    group.command()(show)
    group.command()(releases)
    group.command()(verify)
    group.command()(grant)
    app.add_typer(group, name="ledger")


def _alone(context: typer.Context, ledger: Place = DEFAULT, json: Json = False) -> None:
    """The account of releases, grants and spends; without a command it lists the entries."""
    if context.invoked_subcommand is None:
        show(ledger, None, json)


def show(ledger: Place = DEFAULT, dataset: Dataset = None, json: Json = False) -> None:
    """List the entries."""
    with _opened(ledger) as book:
        entries = book.entries(dataset)
    rows = [(str(e.sequence), e.time[:19], e.kind, e.dataset, e.analyst or "-", e.hash[:16]) for e in entries]
    lines = table_lines(("entry", "time", "kind", "dataset", "analyst", "hash"), rows)
    told = [
        {
            "sequence": e.sequence,
            "time": e.time,
            "kind": e.kind,
            "dataset": e.dataset,
            "analyst": e.analyst,
            "hash": e.hash,
        }
        for e in entries
    ]
    answer(
        {"ledger": ledger_name(ledger), "entries": told},
        lines if rows else ["the ledger has no entries"],
        json,
    )


def releases(ledger: Place = DEFAULT, dataset: Dataset = None, json: Json = False) -> None:
    """List the releases with what was measured on them."""
    from sfumato.report.wording import counted

    with _opened(ledger) as book:
        entries = book.entries(dataset, "release")
    told = [{"sequence": e.sequence, "time": e.time, "dataset": e.dataset, "hash": e.hash} for e in entries]
    payloads = [e.payload for e in entries]
    lines = [
        f"{entry.time[:19]}  {entry.dataset}  {counted(int(payload.get('rows', 0)), 'row')}  "
        + ", ".join(f"{name} = {value}" for name, value in payload.get("claims", {}).items())
        for entry, payload in zip(entries, payloads, strict=True)
    ]
    told = [{**each, **_named(payload)} for each, payload in zip(told, payloads, strict=True)]
    answer({"ledger": ledger_name(ledger), "releases": told}, lines or ["the ledger has no releases"], json)


def verify(
    ledger: Place = DEFAULT,
    anchor: Annotated[
        list[str] | None,
        typer.Option("--anchor", help="An entry hash from a certificate that must be in the ledger."),
    ] = None,
    json: Json = False,
) -> None:
    """Recompute every hash and balance of the ledger."""
    with _opened(ledger) as book:
        report = book.verify(*(anchor or ()))
    told = {"ok": report.ok, "entries": report.entries, "head": str(report.head), "finding": report.finding}
    answer({**told, "first_damaged": report.first_damaged}, [report.finding], json)
    if not report.ok:
        raise typer.Exit(1)


def grant(
    dataset: Annotated[str, typer.Argument(help="The dataset id.")],
    analyst: Annotated[str, typer.Argument(help="Who may spend it.")],
    epsilon: Annotated[str | None, typer.Option("--epsilon", help="ε, exact: 0.1 or 1/10.")] = None,
    delta: Annotated[str | None, typer.Option("--delta", help="δ, with ε.")] = None,
    rho: Annotated[str | None, typer.Option("--rho", help="ρ of zero-concentrated privacy, instead of ε.")] = None,
    ledger: Place = DEFAULT,
    json: Json = False,
) -> None:
    """Set the most an analyst may ever spend on a dataset."""
    from sfumato.ledger.amounts import LossAmount
    from sfumato.ledger.ledger import Ledger

    if (epsilon is None) == (rho is None) or (rho is not None and delta is not None):
        raise ParameterError("grant either --epsilon, --epsilon with --delta, or --rho")
    if rho is not None:
        loss = LossAmount.zcdp(rho)
    elif delta is not None:
        loss = LossAmount.approx(str(epsilon), delta)
    else:
        loss = LossAmount.pure(str(epsilon))
    with Ledger.open(ledger) as book:
        entry = book.grant(dataset, analyst, loss)
    told = {"dataset": dataset, "analyst": analyst, "granted": loss.to_mapping(), "hash": entry.hash}
    answer(told, [f"granted to {analyst} on {dataset}; entry {entry.sequence}, {entry.hash[:16]}…"], json)


def ledger_name(place: str) -> str:
    """Where the ledger is, without the password of a URL."""
    from sfumato.workflow.recipe import without_secrets

    return without_secrets(place)


def _opened(place: str) -> Ledger:
    from sfumato.ledger.ledger import Ledger

    return Ledger.open(place, read_only=True)


def _named(payload: dict[str, Any]) -> dict[str, Any]:
    return {name: payload[name] for name in ("rows", "claims", "method", "sha256") if name in payload}
