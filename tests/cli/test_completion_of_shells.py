"""Completion in zsh and fish, as somebody gets it who installs it and types: a real shell at a terminal."""

from __future__ import annotations

import os
import pty
import select
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.test_help import MAIN

pytestmark = [pytest.mark.slow, pytest.mark.stress]


def house(folder: Path, shell: str) -> dict[str, str]:
    """A home in which completion was installed for this shell, and a program called `sfumato`."""
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    program = folder / "bin" / "sfumato"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c {shlex.quote(MAIN)} "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "HOME": str(folder), "ZDOTDIR": str(folder), "PATH": path, "TERM": "dumb"}
    installed = {**environment, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    subprocess.run([program, "--install-completion", shell], env=installed, capture_output=True, check=True)
    return environment


def test_fish_completes_commands_and_options(tmp_path: Path) -> None:
    environment = house(tmp_path, "fish")

    def offered(line: str) -> list[str]:
        typed = ["fish", "-c", f"complete -C {shlex.quote(line)}"]
        answer = subprocess.run(typed, env=environment, capture_output=True, text=True, check=True)
        return [each.split("\t")[0] for each in answer.stdout.splitlines()]

    assert offered("sfumato ledger gr") == ["grant"]
    assert offered("sfumato protect --overw") == ["--overwrite"]


def test_zsh_completes_a_command_at_a_terminal(tmp_path: Path) -> None:
    environment = house(tmp_path, "zsh")
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        ["zsh", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
    ) as shell:
        os.close(theirs)
        try:
            os.write(ours, b"print begun$((40 + 2))\n")
            assert b"begun42" in _until(ours, b"begun42")
            os.write(ours, b"sfumato ledger gr\t")
            _until(ours, b"\a")  # the first time zsh only loads the function
            os.write(ours, b"\t")
            assert b"ant" in _until(ours, b"ant")
        finally:
            shell.kill()
            os.close(ours)


def _until(terminal: int, wanted: bytes, seconds: float = 60) -> bytes:
    """What appears, until what is wanted has appeared."""
    shown, end = b"", time.monotonic() + seconds
    while wanted not in shown and time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            shown += os.read(terminal, 4096)
    return shown
