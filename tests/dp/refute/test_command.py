"""`sfumato refute`: foreign code runs in a child process with limits, and every way it can misbehave is one clear error."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sfumato.cli.main import run
from sfumato.core.errors import InputError, ParameterError
from sfumato.workflow.refuting.refute import refute_target

EXAMPLES = "sfumato.dp.refute.examples"
HOSTILE = """
import os, sys, time, threading
NEIGHBOURS = ((1, 2, 3), (1, 2))
def fine(rows): return 7
def private(rows):
    import secrets
    return secrets.randbelow(10)
def endless(rows):
    while True: pass
def leaves(rows): os._exit(3)
def crashes(rows):
    import ctypes
    ctypes.string_at(0)
def greedy(rows): return len(bytearray(10**12))
def chatty(rows):
    print("x" * 1000); sys.stderr.write("y" * 1000)
    return "z" * 100_000
def forks(rows):
    os.fork()
    return 7
def exits(rows): sys.exit(len(rows))
def interrupts(rows): raise KeyboardInterrupt
def environment(rows): return sorted(os.environ)
def secret(rows): return os.environ.get("DATABASE_PASSWORD", "none") == "none" or len(rows)
def where(rows): return (os.getcwd() == os.environ["HOME"]) or len(rows)
def forges(rows):
    for fd in range(3, 500):
        try: os.write(fd, b'not json\\n')
        except OSError: pass
    return 1
def flees(rows):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            with open(MARK + "~", "w") as file: file.write(str(os.getpid()))
            os.rename(MARK + "~", MARK)
            time.sleep(600)
        os._exit(0)
    os.wait()
    while not os.path.exists(MARK): time.sleep(0.01)  # it has fled before its parent is missed
    os._exit(0)
def writes(rows):
    try:
        with open("big", "wb") as file: file.truncate(10**9)
    except OSError: return "limited"
    return len(rows)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "hostile.py"
    file.write_text(HOSTILE + f"MARK = {str(tmp_path / 'mark')!r}\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    return file


def gone(pid: int) -> bool:
    """Whether a process ends within a minute; one that only waits to be reaped has ended."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            if "zombie" in Path(f"/proc/{pid}/status").read_text():
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def told(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    return json.loads(capsys.readouterr().out)


def test_a_false_claim_is_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["refute", f"{EXAMPLES}:func2", "--json"]) == 1
    found = told(capsys)
    assert found["refuted"] is True and found["witness"]["event"] == "output is exactly 13"  # type: ignore[index]


def test_what_is_not_refuted_is_exit_code_0_and_no_proof(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["refute", f"{EXAMPLES}:func1", "--samples", "2000"]) == 0
    assert "no proof" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["refute", "nothing"],
        ["refute", "no_such_module_here:function"],
        ["refute", f"{EXAMPLES}:no_such_function"],
        ["refute", f"{EXAMPLES}:func2", "--neighbours", "[1]"],
        ["refute", f"{EXAMPLES}:func2", "--neighbours", "not json"],
        ["refute", f"{EXAMPLES}:func2", "--neighbours", "missing.json"],
        ["refute", f"{EXAMPLES}:func2", "--epsilon", "much"],
        ["refute", f"{EXAMPLES}:func2", "--samples", "3"],
        ["refute", "sfumato.core.errors:SfumatoError"],
    ],
)
def test_what_is_asked_wrongly_is_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_neighbours_come_from_json_a_file_or_a_module(module: Path) -> None:
    (module.parent / "pair.json").write_text("[[1, 2, 3], [1, 2]]", "utf-8")
    (module.parent / "pair.py").write_text("NEIGHBOURS = ([1, 2, 3], [1, 2])", "utf-8")
    (module.parent / "counting.py").write_text("def count(rows): return len(rows)", "utf-8")
    for given in ("[[1, 2, 3], [1, 2]]", "pair.json", "pair.py"):
        assert refute_target("counting:count", neighbours=given).refuted
    assert refute_target(f"{module.parent}/counting.py:count", neighbours="pair.json").refuted
    with pytest.raises(InputError, match="neighbours are missing"):
        refute_target("counting:count")


def test_a_function_that_behaves_is_tested(module: Path) -> None:
    assert not refute_target("hostile:fine", samples=1000).refuted
    assert not refute_target("hostile.py:private", samples=1000).refuted


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("leaves", "exit code 3"),
        ("crashes", "SIGSEGV"),
        ("greedy", "out of memory"),
        ("interrupts", "raised KeyboardInterrupt"),
        ("forges", "wrote into the pipe"),
    ],
)
def test_whatever_a_function_does_is_one_clear_error(function: str, message: str, module: Path) -> None:
    with pytest.raises(InputError, match=message):
        refute_target(f"hostile:{function}", samples=200)


def test_an_endless_function_is_stopped(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.workflow.refuting.refute._GRACE", 1.5)
    with pytest.raises(InputError, match="did not come back|used up its time"):
        refute_target("hostile:endless", seconds=0.1)


@pytest.mark.parametrize("function", ["chatty", "forks", "secret", "where", "writes"])
def test_what_is_noisy_or_curious_sees_and_disturbs_nothing(
    function: str, module: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DATABASE_PASSWORD", "hunter2")
    before = set(os.listdir(module.parent))
    assert not refute_target(f"hostile:{function}", samples=120).refuted
    assert capfd.readouterr().out == ""
    assert set(os.listdir(module.parent)) - before <= {"__pycache__"}


def test_leaving_with_a_code_that_depends_on_the_data_is_a_leak(module: Path) -> None:
    assert refute_target("hostile:exits").refuted


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="the system does not list processes")
def test_a_process_that_fled_is_killed(module: Path) -> None:
    with pytest.raises(InputError):
        refute_target("hostile:flees", samples=200)
    assert gone(int((module.parent / "mark").read_text()))


def test_the_target_is_written_as_module_and_function() -> None:
    for target in ("module", ":function", "module:"):
        with pytest.raises(ParameterError):
            refute_target(target)


def test_ctrl_c_stops_the_child_too(module: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", "from sfumato.cli.main import main; main()", "refute", "hostile:endless"],
        stderr=subprocess.PIPE,
        text=True,
        cwd=module.parent,
    )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    until = time.monotonic() + 120
    while not (child := children.read_text().split()):
        assert time.monotonic() < until
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=120)
    assert process.returncode == 130 and "stopped" in complaint
    assert gone(int(child[0]))
