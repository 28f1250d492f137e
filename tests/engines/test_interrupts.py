"""Ctrl-C in the middle of a question to DuckDB is a `KeyboardInterrupt` to whoever asked, and the question ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.core.stopping import interrupted_on_stop

#: Questions that would take hours. Whether DuckDB works on one in this thread or in another is chance: hence several.
QUESTIONS = """
import os, signal, threading
from sfumato.engines.duckdb.connections import Connections

held = Connections("'a table'")
for _ in range(6):
    try:
        with held.one() as connection:
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            connection.execute("SELECT sum(hash(range) % 7) FROM range(100000000000)")
        print("it was answered")
    except KeyboardInterrupt:
        print("stopped")
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


@pytest.mark.slow
def test_a_question_that_is_stopped_raises_what_python_raises(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", QUESTIONS], capture_output=True, text=True, timeout=240, env=environment, check=False
    )
    assert done.stdout == "stopped\n" * 6 + "True\n", done.stderr
    assert list(tmp_path.iterdir()) == []


def test_everybody_who_is_at_work_is_told_and_then_happens_what_would_have_happened() -> None:
    happened: list[str] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: happened.append("usual"))
    try:
        usual = signal.getsignal(signal.SIGTERM)
        first, second = (
            interrupted_on_stop(lambda: happened.append("first")),
            interrupted_on_stop(lambda: happened.append("second")),
        )
        first.__enter__()
        second.__enter__()
        signal.raise_signal(signal.SIGTERM)
        assert happened == ["first", "second", "usual"]
        first.__exit__(None, None, None)  # the one that began first may end first
        signal.raise_signal(signal.SIGTERM)
        assert happened[3:] == ["second", "usual"]
        second.__exit__(None, None, None)
        assert signal.getsignal(signal.SIGTERM) is usual
    finally:
        signal.signal(signal.SIGTERM, before)
