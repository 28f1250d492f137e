"""Pages as text: their blocks of Python, the command lines that a reader types, their links."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)")
ENDS_WITH = re.compile(r"#.*\bexit code (\d+)")

Piece = tuple[str, object, int]


def named(page: Path) -> str:
    """The page as it is called in a test's id."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str = "python") -> list[tuple[int, str]]:
    """Blocks in one language, each with its first line in the page."""
    text = page.read_text("utf-8")
    return [(text.count("\n", 0, block.start()) + 2, block[2]) for block in BLOCK.finditer(text) if block[1] == language]


def command_lines(block: str) -> list[tuple[list[str], int]]:
    """What a reader types of a block, as words, each with the exit code that the page states (0 unless it says otherwise).

    A block is typed where it begins with a command or with a prompt; after a prompt, lines without one are what is answered.
    """
    lines = re.sub(r"\\\n\s*", " ", block).splitlines()
    prompted = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    typed = prompted or (lines if re.match(r"sfumato |python -", block) else [])
    stated = ((line, ENDS_WITH.search(line)) for line in typed if line.strip() and not line.startswith("#"))
    return [(shlex.split(line, comments=True), int(code[1]) if code else 0) for line, code in stated]


def pieces(page: Path) -> list[Piece]:
    """Everything that the page asks its reader to run, in its order."""
    text = page.read_text("utf-8")
    listed: list[Piece] = []
    for block in BLOCK.finditer(text):
        if block[1] == "python":
            listed.append(("python", block[2], text.count("\n", 0, block.start()) + 2))
        elif block[1] in ("", "console"):
            listed.extend(("command", words, code) for words, code in command_lines(block[2]))
    return listed
