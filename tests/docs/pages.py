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


def headings(page: Path) -> set[str]:
    """The anchors of a page, as the site and code hosts make them of its headings."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    anchors: set[str] = set()
    for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        anchors.add(re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower()))
    return anchors


def blocks(page: Path, language: str = "python") -> list[tuple[int, str]]:
    """Blocks in one language, each with its first line in the page."""
    text = page.read_text("utf-8")
    return [(text.count("\n", 0, block.start()) + 2, block[2]) for block in BLOCK.finditer(text) if block[1] == language]


def command_lines(block: str) -> list[dict[str, object]]:
    """What a reader types of a block, as words, each with the exit code that the page states (0 unless it says otherwise) and a
    pattern of what the page shows as its answer.

    A block is typed where it begins with a command or with a prompt. After a prompt, lines without one are what is answered; `…`
    stands for whatever is left out, and blanks for any number of blanks.
    """
    lines = re.sub(r"\\\n\s*", " ", block).splitlines()
    prompted = any(line.startswith("$ ") for line in lines)
    if not prompted and not re.match(r"sfumato |python -", block):
        return []
    typed: list[dict[str, object]] = []
    answers: list[list[str]] = []
    for line in lines:
        command = line.removeprefix("$ ")
        if prompted and command == line:
            answers[-1].append(line)
        elif line.strip() and not line.startswith("#"):
            code = ENDS_WITH.search(line)
            typed.append({"words": shlex.split(command, comments=True), "code": int(code[1]) if code else 0})
            answers.append([])
    return [each | {"shown": _pattern(answer)} for each, answer in zip(typed, answers, strict=True)]


def _pattern(answer: list[str]) -> str:
    return ".*".join(re.escape(part.strip()) for part in re.split("…", " ".join(" ".join(answer).split())))


def pieces(page: Path) -> list[Piece]:
    """Everything that the page asks its reader to run, in its order."""
    text = page.read_text("utf-8")
    listed: list[Piece] = []
    for block in BLOCK.finditer(text):
        if block[1] == "python":
            listed.append(("python", block[2], text.count("\n", 0, block.start()) + 2))
        elif block[1] in ("", "console"):
            line = text.count("\n", 0, block.start()) + 2
            listed.extend(("command", command, line) for command in command_lines(block[2]))
    return listed
