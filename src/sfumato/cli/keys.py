"""Commands about the owner's signing key: make one, show its public half."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from sfumato.cli.help import ACCOUNT, add, group
from sfumato.cli.output import Json, answer
from sfumato.core.plain_data import PlainDict

UNSIGNED = "not signed, so nobody can tell who made it. Make a key once: sfumato key new signing.key; then add --sign signing.key"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    keys = group("The key that signs releases.", "sfumato key new signing.key")
    add(keys, new, "sfumato key new signing.key")
    add(keys, show, "sfumato key show signing.key.pub")
    app.add_typer(keys, name="key", rich_help_panel=ACCOUNT)


def new(
    file: Annotated[str, typer.Argument(help="Where the private key goes; the public key goes beside it, with .pub.")],
    json: Json = False,
) -> None:
    """Make a signing key: a private file that only you can read, and a public one to give away."""
    from sfumato.workflow.publishing.signing import new_key

    public, place = new_key(file)
    facts = {"private": file, "public": str(place), "public_key": str(public), "identity": public.identity}
    lines = [
        f"private   {file} (keep it to yourself; sign with: sfumato protect … --sign {shlex.quote(file)})",
        f"public    {place} (give it to those who verify: sfumato verify FOLDER --public-key {shlex.quote(str(place))})",
        f"key       {public}",
        f"identity  {public.identity}",
    ]
    answer(facts, lines, json)


def propose(facts: PlainDict, lines: list[str], sign: str | None) -> None:
    """Beside what was saved without a signature, how to sign the next one."""
    facts["signed"] = sign is not None
    if sign is None:
        facts["proposal"] = UNSIGNED
        lines.append(f"sign      {UNSIGNED}")


def show(file: Annotated[str, typer.Argument(help="A private or a public key file.")], json: Json = False) -> None:
    """Print the public key and its identity, 64 digits to compare with what its owner shows."""
    from sfumato.workflow.publishing.signing import known_key

    public = known_key(file)
    facts = {"public_key": str(public), "identity": public.identity}
    answer(facts, [f"key       {public}", f"identity  {public.identity}"], json)
