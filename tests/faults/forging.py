"""A careful forger's tools: change a certificate or a file so that form and digests still agree."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sfumato as sf
from sfumato.workflow.publishing.saving import pretty

MARK = "OUTSIDE-SECRET"


def refused(public: Path, reason: str = "") -> str:
    """The verdict must be a failure for this reason, in words that repeat nothing from outside."""
    found = sf.verify(public.parent)
    text = found.explain() + repr(found) + json.dumps(found.to_mapping())
    assert found.verdict == "does not keep" and not found.accepted and not found.holds, text
    assert reason in found.explain(), text
    assert MARK not in text and "\x1b" not in text
    return text


def change(public: Path, edit: Callable[[dict[str, Any]], Any]) -> None:
    """Edit the certificate and write it in the form that releases have."""
    path = public / "certificate.json"
    content = json.loads(path.read_text())
    replaced = edit(content)
    path.write_bytes(pretty(content if replaced is None else replaced))


def restate(public: Path, name: str, **more: Any) -> None:
    """Make the certificate agree with a changed file."""
    content = (public / name).read_bytes()
    about = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content), **more}
    change(public, lambda certificate: certificate["files"].update({name: {**certificate["files"].get(name, {}), **about}}))


def rewrite(public: Path, name: str, content: bytes | str, **more: Any) -> None:
    """Exchange a file and restate it."""
    (public / name).write_bytes(content.encode() if isinstance(content, str) else content)
    restate(public, name, **more)


def claim(certificate: dict[str, Any], number: int = 0) -> dict[str, Any]:
    """One claim of the certificate."""
    found: dict[str, Any] = certificate["claims"][number]
    return found
