"""What `doctor` says: one finding per line, kept, warned about or failed, with what to do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sfumato.core.plain_data import PlainDict

State = Literal["kept", "warning", "failed"]
_GIB = 1024**3


@dataclass(frozen=True)
class EngineFinding:
    """One thing that an engine can do, can do with a limit, or cannot do here; `advice` says what to do about it."""

    what: str
    state: State
    text: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.state:<8} {self.what}: {self.text}{f'. {self.advice}' if self.advice else ''}"


@dataclass(frozen=True)
class Diagnosis:
    """What an engine can do here, before anything is asked of it. `source` is its address without secrets."""

    engine: str
    source: str
    findings: tuple[EngineFinding, ...]

    @property
    def usable(self) -> bool:
        """Whether nothing failed; warnings are no failure."""
        return all(finding.state != "failed" for finding in self.findings)

    def __iter__(self) -> Iterator[EngineFinding]:
        return iter(self.findings)

    def __getitem__(self, what: str) -> EngineFinding:
        return next(finding for finding in self.findings if finding.what == what)

    def to_mapping(self) -> PlainDict:
        """Plain data, ready for JSON."""
        findings = [{"what": f.what, "state": f.state, "text": f.text, "advice": f.advice} for f in self.findings]
        return {"engine": self.engine, "source": self.source, "usable": self.usable, "findings": findings}

    def lines(self) -> list[str]:
        """The findings in words."""
        counts = {state: sum(f.state == state for f in self.findings) for state in ("failed", "warning")}
        end = "it can be used here" if self.usable else "it cannot be used here as it is"
        last = f"{counts['failed']} failed, {counts['warning']} warnings: {end}"
        return [f"{self.engine} at {self.source}", *map(str, self.findings), last]

    def __str__(self) -> str:
        return "\n".join(self.lines())


def kept(what: str, text: str) -> EngineFinding:
    """Something that works."""
    return EngineFinding(what, "kept", text)


def warning(what: str, text: str, advice: str = "") -> EngineFinding:
    """Something that works with a limit."""
    return EngineFinding(what, "warning", text, advice)


def failed(what: str, text: str, advice: str = "") -> EngineFinding:
    """Something that does not work."""
    return EngineFinding(what, "failed", text, advice)


def folder_finding(what: str, path: Path) -> EngineFinding:
    """Whether something can be written at a place: its nearest folder that exists is writable."""
    folder = path if path.is_dir() else path.parent
    missing = not folder.exists()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        return failed(what, f"nothing can be written into '{folder}'", "Choose another place, or ask for the right")
    free = shutil.disk_usage(folder).free / _GIB
    new_folders = "; missing folders are made" if missing else ""
    if free < 1:
        return warning(what, f"the folder '{folder}' has {free:.2f} GiB left{new_folders}", "Free some space first")
    return kept(what, f"the folder '{folder}' can be written and has {free:,.0f} GiB left{new_folders}")
