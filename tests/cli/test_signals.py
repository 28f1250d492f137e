"""Ctrl-C stops the command line wherever it is, and waits only for the compiler."""

from __future__ import annotations

import subprocess
import sys

import pytest

WORK = """
import os, signal, sys, time
from sfumato.cli import signals

signals.install()
done = []
body = '''
def work(times, done):
    for _ in range(times):
        os.kill(os.getpid(), signal.{signal})
        end = time.monotonic() + 0.1
        while time.monotonic() < end:
            pass
        done.append(1)
'''
names = {{"__name__": "{module}", "os": os, "signal": signal, "time": time}}
exec(body, names)
try:
    names["work"]({times}, done)
    time.sleep(30)
    print("it went on")
except KeyboardInterrupt:
    print("stopped after", len(done), signals.interrupted())
"""


def outcome(module: str, times: int, name: str = "SIGINT") -> subprocess.CompletedProcess[str]:
    code = WORK.format(module=module, times=times, signal=name)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("module", "times", "expected"),
    [
        ("somewhere", 1, "stopped after 0 True\n"),
        ("llvmlite.binding", 1, "stopped after 1 True\n"),
        ("numba.core", 1, "stopped after 1 True\n"),
        ("numba.core", 2, "stopped after 1 True\n"),  # the second Ctrl-C does not wait
    ],
)
def test_ctrl_c_waits_for_the_compiler_alone(module: str, times: int, expected: str) -> None:
    done = outcome(module, times)
    assert (done.stdout, done.stderr) == (expected, "")


@pytest.mark.parametrize("module", ["somewhere", "numba.core"])
def test_termination_leaves_with_its_code(module: str) -> None:
    done = outcome(module, 1, "SIGTERM")
    assert (done.returncode, done.stdout, done.stderr) == (143, "", "")


@pytest.mark.parametrize(
    ("name", "expected"), [("SIGINT", (1, "stopped True\n", "")), ("SIGTERM", (143, "", "")), ("SIGHUP", (129, "", ""))]
)
def test_a_signal_is_not_lost_while_an_object_is_deleted(name: str, expected: tuple[int, str, str]) -> None:
    code = (
        "import os, signal, sys, time\n"
        "from sfumato.cli import signals\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"  # whoever runs the tests may have said nohup
        "signals.install()\n"
        "class Deleted:\n"
        "    def __del__(self):\n"
        f"        os.kill(os.getpid(), signal.{name})\n"
        "        time.sleep(0.01)\n"
        "held = Deleted()\n"
        "try:\n"
        "    del held\n"
        "    time.sleep(30)\n"
        "except KeyboardInterrupt:\n"
        "    print('stopped', signals.interrupted())\n"
        "    sys.exit(1)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == expected


def test_an_error_that_a_library_raises_in_its_place_is_ctrl_c_all_the_same() -> None:
    code = (
        "import os, signal, sys\n"
        "from sfumato.cli import main\n"
        "def lost(**given):\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    except KeyboardInterrupt:\n"
        "        pass\n"
        "    raise ImportError('half loaded')\n"
        "main.commands = lambda: lost\n"
        "main.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (130, "stopped; nothing was left half-written\n")


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_stopped_command_leaves_its_libraries_alone(name: str, code: int) -> None:
    """Taken down while their threads are at work, libraries may abort the process; what was to be done at exit is done."""
    script = (
        "import atexit, os, signal, sys, time\n"
        "from sfumato.cli import main\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
        "class Library:\n"
        "    def __del__(self, kill=os.abort):\n"
        "        kill()\n"
        "held = Library()\n"
        "atexit.register(print, 'tidy')\n"
        "def stopped(**given):\n"
        f"    os.kill(os.getpid(), signal.{name})\n"
        "    time.sleep(30)\n"
        "main.commands = lambda: stopped\n"
        "main.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (code, "tidy\n")


def test_the_module_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "sfumato", "version"], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("sfumato ")
