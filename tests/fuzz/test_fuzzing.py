"""Damaged inputs of every kind: refused in words or taken, never a crash, never a record's value in what is said.

The numbers say how many of each kind are tried in `make stress`, 30,000 and more together; SFUMATO_FUZZ_SHARE changes it
(0.1 tries a tenth). `make test` tries one in a hundred.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from sfumato.core.errors import Unsupported
from tests.fuzz import kinds as fuzzed
from tests.fuzz.mutations import BYTES, TEXT, mutated
from tests.fuzz.worker import fuzz

ROOT = Path(__file__).parent.parent.parent
COUNTS = {
    "csv": 6_000,
    "parquet": 3_600,
    "schema": 5_000,
    "recipe": 5_000,
    "hierarchy": 3_000,
    "certificate": 2_400,
    "ledger": 2_400,
    "sql": 4_600,
}
SHARE = float(os.environ.get("SFUMATO_FUZZ_SHARE", "1"))
PART = 600


def tried(name: str, first: int, count: int, folder: Path) -> list[dict[str, Any]]:
    """The faults that a process finds in these inputs; one that ends early is started again behind the input that ended it."""
    folder.mkdir()
    found: list[dict[str, Any]] = []
    end = first + count
    while first < end:
        command = [sys.executable, "-m", "tests.fuzz.worker", name, str(first), str(end - first), str(folder)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        found += [line for line in lines if "what" in line]
        last = (folder / "number").read_text() if (folder / "number").exists() else done.stderr[-2_000:]
        if last == "done":
            break
        found.append({"kind": name, "number": last, "what": f"the process ended with {done.returncode}"})
        if not last.isdecimal():
            break
        first = int(last) + 1
    return found


@pytest.mark.stress
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("name", COUNTS)
def test_no_damaged_input_is_a_fault_of_the_program(name: str, tmp_path: Path) -> None:
    count = round(COUNTS[name] * SHARE)
    parts = [(start, min(PART, count - start)) for start in range(0, count, PART)]
    with ThreadPoolExecutor(int(os.environ.get("WORKERS", "2"))) as pool:
        found = pool.map(lambda part: tried(name, part[0], part[1], tmp_path / f"part{part[0]}"), parts)
    assert [fault for faults in found for fault in faults] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", COUNTS)
def test_one_damaged_input_in_a_hundred_of_the_stress_tests(name: str, tmp_path: Path) -> None:
    assert tried(name, 1_000_000, COUNTS[name] // 100, tmp_path / "part") == []


@pytest.mark.slow
def test_the_seeds_are_sound_and_faults_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the tests above would pass whatever the program does."""
    monkeypatch.setenv("SFUMATO_KEY", str(tmp_path / "owner.key"))
    known = {name: fuzzed.kind(name, tmp_path) for name in COUNTS}
    for kind in known.values():
        for seed in kind.seeds:
            (tmp_path / f"input{kind.ending}").write_bytes(seed)
            kind.attempt(tmp_path / f"input{kind.ending}", 0)

    def failing(path: Path, number: int) -> None:
        if number == 1:
            raise KeyError("outside the tree of errors")
        raise Unsupported(f"a message with {fuzzed.CANARY}")

    broken = fuzzed.Kind(
        known["csv"].seeds[:1], (lambda content, draw, others: content,), failing, ".csv", lambda path: ["version"]
    )
    assert "KeyError" in str(fuzz("csv", broken, 1, tmp_path, []))
    assert "value was said" in str(fuzz("csv", broken, 2, tmp_path, []))


def test_the_same_number_gives_the_same_damage() -> None:
    import random

    for kinds in (BYTES, TEXT):
        made = [mutated([b"a = 1\n[b]\nc = [2, 3]\n"], random.Random("x 7"), kinds) for _ in range(2)]
        assert made[0] == made[1]
