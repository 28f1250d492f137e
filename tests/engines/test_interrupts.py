"""Ctrl-C in the middle of a question to DuckDB is a `KeyboardInterrupt` to whoever asked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

QUESTION = """
import os, signal, threading
from sfumato.engines.duckdb_connections import Connections

held = Connections("'a table'")
try:
    with held.one() as connection:
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        connection.execute("SELECT count(DISTINCT hash(range)) FROM range(100000000)")
    print("it was answered")
except KeyboardInterrupt:
    print("stopped")
"""


@pytest.mark.slow
def test_a_question_that_is_stopped_raises_what_python_raises(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", QUESTION], capture_output=True, text=True, timeout=60, env=environment, check=False
    )
    assert done.stdout == "stopped\n", done.stderr
    assert list(tmp_path.iterdir()) == []
