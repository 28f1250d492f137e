"""Commands about the ledger: what was released, granted and spent, and whether the account is intact."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import defaults
from sfumato.cli.help import ACCOUNT, add, group
from sfumato.cli.output import Json, answer, complain, table_lines
from sfumato.cli.usage import Misuse

if TYPE_CHECKING:
    from sfumato.ledger.accounts import Protected
    from sfumato.ledger.chain import Entry
    from sfumato.ledger.ledger import Ledger

Place = Annotated[str, typer.Option("--ledger", help="The ledger's file or URL.")]
Dataset = Annotated[str | None, typer.Option("--dataset", help="Only this dataset.")]
Epsilon = Annotated[str | None, typer.Option("--epsilon", help="ε, exact: 0.1 or 1/10.")]
Delta = Annotated[str | None, typer.Option("--delta", help="δ, with ε.")]
Rho = Annotated[str | None, typer.Option("--rho", help="ρ of zero-concentrated privacy, instead of ε.")]
DEFAULT = "sfumato-ledger.db"


def register(app: typer.Typer) -> typer.Typer:
    """Add the commands; returns their group."""
    account = group(
        "The account of releases, grants and spends; alone it shows who spent what and what is left.",
        "sfumato ledger",
        "sfumato ledger grant clinic ann --epsilon 1",
        no_args_is_help=False,
    )
    account.callback(invoke_without_command=True)(_alone)
    add(account, show, "sfumato ledger show --dataset clinic")
    add(account, spends, "sfumato ledger spends --dataset clinic")
    add(account, releases, "sfumato ledger releases --dataset clinic")
    add(account, withdraw, "sfumato ledger withdraw 3f2a --reason 'a role was wrong, and the folder was never given to anybody'")
    add(account, verify, "sfumato ledger verify", "sfumato ledger verify --anchor HASH")
    add(account, versions, "sfumato ledger versions clinic")
    add(account, odometer, "sfumato ledger odometer clinic --analyst ann --delta 1e-6")
    app.add_typer(account, name="ledger", rich_help_panel=ACCOUNT)
    return account


def _alone(
    context: typer.Context,
    ledger: Place = DEFAULT,
    dataset: Dataset = None,
    figure: Annotated[str | None, typer.Option("--figure", help="Draw the budgets into this SVG file.")] = None,
    json: Json = False,
) -> None:
    """The account of releases, grants and spends; without a command it shows who spent what and what is left."""
    if context.invoked_subcommand is not None:
        return
    defaults.announce(context)
    from sfumato.report.ledger_overview import overview
    from sfumato.report.wording import counted

    with _opened(ledger) as book:
        accounts = overview(book, dataset)
    heads = ("dataset", "analyst", "granted", "spent", "left", "unit", "answered", "open")
    rows = [
        (
            line.account.dataset,
            "everybody" if line.account.is_cap else line.account.analyst,
            str(line.account.granted),
            str(line.account.spent),
            str(line.account.remaining),
            _unit_shown(line.account.protected),
            f"{line.answered:,}",
            f"{line.open:,}",
        )
        for line in accounts.lines
    ]
    lines = table_lines(heads, rows) if rows else ["no budget was granted yet; grant one with: sfumato ledger grant"]
    if any(line.open for line in accounts.lines):
        lines.append("open: reserved and not answered (a process stopped in between, or is at work); it stays spent")
    lines += [
        f"notice    the data of {name} changed under their version; see: sfumato ledger versions {shlex.quote(name)}"
        for name in accounts.outdated
    ]
    entries = "1 entry" if accounts.entries == 1 else f"{accounts.entries:,} entries"
    lines += ["", f"{counted(accounts.releases, 'release')}, {entries}; the last:"]
    lines += _entry_lines(list(accounts.last))
    if figure is not None:
        _write_figure(figure, accounts.figure())
        lines += ["", f"drawn into {figure}"]
    answer({"ledger": ledger_name(ledger), **accounts.to_mapping(), "figure": figure}, lines, json)


def show(ledger: Place = DEFAULT, dataset: Dataset = None, json: Json = False) -> None:
    """List the entries."""
    with _opened(ledger) as book:
        entries = book.entries(dataset)
    from sfumato.report.ledger_overview import entry_mapping

    mappings = [entry_mapping(entry) for entry in entries]
    answer({"ledger": ledger_name(ledger), "entries": mappings}, _entry_lines(entries, dataset), json)


def spends(ledger: Place = DEFAULT, dataset: Dataset = None, json: Json = False) -> None:
    """List who spent what when on which question, and what became of it."""
    with _opened(ledger) as book:
        spendings = book.spends(dataset)
    from sfumato.ledger.accounts import Protected

    words = {"reserved": "without an answer", "committed": "answered", "rolled back": "given back"}
    rows = [
        (
            each.time[:19],
            each.dataset,
            each.analyst,
            str(each.loss),
            _unit_shown(each.protected),
            words[each.state],
            _question_shown(each.question),
            each.reserved_by[:16],
        )
        for each in spendings
    ]
    mappings = [
        {
            "time": each.time,
            "dataset": each.dataset,
            "analyst": each.analyst,
            "loss": each.loss.to_mapping(),
            **Protected.plain(each.protected),
            "state": each.state,
            "question": each.question,
            "reserved_by": each.reserved_by,
            "closed_by": each.closed_by,
        }
        for each in spendings
    ]
    lines = table_lines(("time", "dataset", "analyst", "loss", "unit", "state", "question", "entry"), rows)
    answer({"ledger": ledger_name(ledger), "spends": mappings}, lines if rows else [f"nothing was spent yet{_on(dataset)}"], json)


def _question_shown(digest: str) -> str:
    """A part of the digest of a question: which rows are read stands before the colon, what was asked of them after it."""
    rows, colon, asked = digest.rpartition(":")
    return f"{rows[-8:]}{colon}{asked[:8]}" if colon else digest[:16]


def releases(ledger: Place = DEFAULT, dataset: Dataset = None, json: Json = False) -> None:
    """List the releases with what was measured on them or, for private artefacts, what they cost; and which were withdrawn."""
    from sfumato.report.wording import counted

    with _opened(ledger) as book:
        entries = book.entries(dataset, "release")
        withdrawn = {each.release: each for each in book.withdrawals(dataset)}
    mappings, lines = [], []
    for entry in entries:
        payload, stated = entry.payload, withdrawn.get(entry.hash)
        rows = counted(int(payload.get("rows", 0)), "row")
        lines.append(f"{entry.time[:19]}  {entry.dataset}  {rows}  {_claims(payload)}  {entry.hash[:16]}…")
        if stated is not None:
            lines.append(f"{'':19}  withdrawn {stated.time[:10]}, never given away by its owner's word: {stated.reason}")
        statement = None if stated is None else {"time": stated.time, "reason": stated.reason, "hash": stated.entry}
        facts = {"sequence": entry.sequence, "time": entry.time, "dataset": entry.dataset, "hash": entry.hash}
        mappings.append({**facts, **_named(payload), "withdrawn": statement})
    answer({"ledger": ledger_name(ledger), "releases": mappings}, lines or [f"the ledger has no releases{_on(dataset)}"], json)


def withdraw(
    release: Annotated[str, typer.Argument(help="The release's id, as `sfumato ledger releases` shows it.")],
    reason: Annotated[str, typer.Option("--reason", help="Why; it stays in the ledger for ever. Name no value of a record.")],
    dataset: Annotated[str | None, typer.Option("--dataset", help="The dataset that the release must be about.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="State it without being asked.")] = False,
    ledger: Place = DEFAULT,
    json: Json = False,
) -> None:
    """State that a release was never given away; it then counts no more."""
    from sfumato.ledger.ledger import Ledger
    from sfumato.ledger.withdrawals import settled_reason

    settled_reason(reason)
    with _opened(ledger) as book:
        named = book.withdrawable(release, dataset=dataset)
    said = f"release {named.hash[:16]}… of '{named.dataset}', made {named.time[:10]} ({_claims(named.payload) or 'no promise'})"
    if not yes:
        _confirm(said, json)
    with Ledger.open(ledger) as book:
        entry = book.withdraw(named.hash, reason, dataset=dataset)
    facts = {"release": named.hash, "dataset": named.dataset, "reason": entry.payload["reason"], "hash": entry.hash}
    lines = [
        f"withdrawn {said}; entry {entry.sequence}, {entry.hash[:16]}…",
        "stated    it was never given away: your word, which nobody can verify and every later certificate repeats",
    ]
    answer({"ledger": ledger_name(ledger), **facts}, lines, json)


def _confirm(said: str, json: bool) -> None:
    """Ask on standard error whether the owner states it; anything but yes enters nothing."""
    unasked = "a withdrawal is for ever and was not confirmed. Nothing was entered; pass --yes to state it without being asked"
    if json:
        raise Misuse(unasked)
    complain(
        f"You state that {said} was never given to anybody. Later releases are then not compared with it, and their certificates "
        "repeat your statement. A release that was given away and called back still counts: do not withdraw it."
    )
    complain("Type yes to enter this statement:")
    try:
        agreed = sys.stdin is not None and sys.stdin.readline().strip().lower() in ("y", "yes")
    except (OSError, ValueError):  # nobody is there to say it
        agreed = False
    if not agreed:
        raise Misuse(unasked)


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
    facts = {"ok": report.ok, "entries": report.entries, "head": str(report.head), "finding": report.finding}
    facts |= {"first_damaged": report.first_damaged, "notes": list(report.notes)}
    answer(facts, [report.finding, *(f"note      {note}" for note in report.notes)], json)
    if not report.ok:
        raise typer.Exit(1)


def versions(
    dataset: Annotated[str, typer.Argument(help="The dataset id.")], ledger: Place = DEFAULT, json: Json = False
) -> None:
    """List which data the sessions on a dataset were opened on, and whether they changed: for the owner's eyes."""
    from sfumato.ledger.versions import outdated
    from sfumato.report.markup import shorten

    with _opened(ledger) as book:
        history = book.versions(dataset)
    rows = [(each.time[:19], shorten(each.version or "-", 60), shorten(each.table, 60), each.state, each.how) for each in history]
    lines = table_lines(("time", "version", "table", "data", "digest of"), rows) if rows else ["no session was opened on it yet"]
    old = outdated(history)
    for version in old:
        lines.append(
            f"notice    the data changed under version '{shorten(version, 60)}': questions answered before still show the old "
            "numbers. Declare a new version when opening (version=…, --data-version); the budget stays the same"
        )
    mappings = [dict(each.__dict__) for each in history]
    answer({"ledger": ledger_name(ledger), "dataset": dataset, "versions": mappings, "outdated": old}, lines, json)


def odometer(
    dataset: Annotated[str, typer.Argument(help="The dataset id.")],
    analyst: Annotated[
        str | None, typer.Option("--analyst", help="Only this analyst's questions; without it everybody's.")
    ] = None,
    delta: Annotated[
        str, typer.Option("--delta", help="The probability that the bound is ever exceeded; 0 adds up losses in ε.")
    ] = "1e-6",
    ledger: Place = DEFAULT,
    json: Json = False,
) -> None:
    """Show what the answers have lost so far: a bound that holds at whatever time one looks."""
    from sfumato.dp.accounting.odometer import Odometer
    from sfumato.ledger.accounts import EVERYBODY

    with _opened(ledger) as book:
        charges = book.charges(dataset, analyst or EVERYBODY)
        notices = [str(each) for each in book.not_covered(dataset)]
    reading = Odometer(delta, charges.allowed).reading(each.guarantee() for each in charges.amounts)
    about = "" if charges.protected is None else f", about {charges.protected}"
    facts = {
        "ledger": ledger_name(ledger),
        "dataset": dataset,
        "analyst": analyst,
        **reading.to_mapping(),
        "not_covered": notices,
    }
    lines = [f"{reading}{about}", *(f"notice    {notice}" for notice in notices)]
    answer({**facts, "about": None if charges.protected is None else str(charges.protected)}, lines, json)


def ledger_name(place: str) -> str:
    """Where the ledger is, without the password of a URL."""
    from sfumato.workflow.recipe import without_secrets

    return without_secrets(place)


def _entry_lines(entries: list[Entry], dataset: str | None = None) -> list[str]:
    from sfumato.report.ledger_overview import entry_protected

    rows = [
        (str(e.sequence), e.time[:19], e.kind, e.dataset, e.analyst or "-", _unit_shown(entry_protected(e)), e.hash[:16])
        for e in entries
    ]
    heads = ("entry", "time", "kind", "dataset", "analyst", "unit", "hash")
    return table_lines(heads, rows) if rows else [f"the ledger has no entries{_on(dataset)}"]


def _on(dataset: str | None) -> str:
    """What a list was narrowed to."""
    return "" if dataset is None else f" of '{dataset}'"


def _unit_shown(protected: Protected | None) -> str:
    return "-" if protected is None else protected.short


def _opened(place: str) -> Ledger:
    from sfumato.ledger.ledger import Ledger

    return Ledger.open(place, read_only=True)


def _claims(payload: dict[str, Any]) -> str:
    if payload.get("evidence") == "process":
        return "; ".join(str(text) for text in payload.get("promised", ()))
    numbers = payload.get("claims", {}).items()
    return ", ".join(f"{name} {'kept' if value is None else f'= {value}'}" for name, value in numbers)


def _named(payload: dict[str, Any]) -> dict[str, Any]:
    names = ("rows", "claims", "method", "sha256", "evidence", "charged", "private")
    return {name: payload[name] for name in names if name in payload}


def _write_figure(path: str, source: str) -> None:
    from pathlib import Path

    from sfumato.data.writers import atomic_path

    with atomic_path(Path(path), mode=0o600) as temporary:
        temporary.write_text(source, encoding="utf-8")
