"""What is committed speaks about the project only: no machine's paths, no package index, no merge marks."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Assembled from pieces, so that this file does not match itself.
PATTERNS = {
    "the path of this checkout": re.escape(str(ROOT)) + r"(?![\w-])",
    "somebody's home folder": r"(?<![\w.])/(?:" + "|".join(("ro" + "ot", "ho" + "me/[a-z]+", "Us" + "ers/[A-Za-z]+")) + r")/",
    "a folder of a local package index": r"file:/" + r"//",
    "a package index": r"(?:index|extra-index)" + r"-url|find" + r"-links|/sim" + r"ple/|py" + r"pi\.org|pythonho" + r"sted",
    "a merge mark": r"^(?:<{7}|>{7}) ",
}
TEXT_LIMIT = 2_000_000


def committed_files() -> list[Path]:
    """Files that git tracks or would track."""
    answer = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if answer.returncode != 0:
        pytest.skip("not a git checkout")
    names = [name for name in answer.stdout.decode("utf-8").split("\0") if name]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def text_of(path: Path) -> str | None:
    raw = path.read_bytes()[:TEXT_LIMIT]
    if b"\0" in raw:
        return None
    return raw.decode("utf-8", errors="replace")


@pytest.mark.parametrize("what", PATTERNS)
def test_no_committed_file_mentions(what: str) -> None:
    pattern = re.compile(PATTERNS[what], re.MULTILINE)
    found = [
        f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}"
        for path in committed_files()
        if (text := text_of(path)) is not None
        for match in pattern.finditer(text)
    ]
    assert not found, f"{what} is mentioned in {found}"


def test_the_patterns_find_what_they_look_for() -> None:
    assert re.search(PATTERNS["the path of this checkout"], f"see {ROOT}/src")
    assert re.search(PATTERNS["somebody's home folder"], "at /ho" + "me/ada/data.csv")
    assert re.search(PATTERNS["a package index"], "--index" + "-url x")
