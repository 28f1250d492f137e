"""What helps: commands by task, examples, words for values, near misses, and where to read on; completion."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sfumato.cli.help import TASKS, Command, CommandGroup
from sfumato.cli.main import commands, run

MAIN = "from sfumato.cli.main import main; main()"
#: Types of Python and of the library of commands, and its own words.
FOREIGN = re.compile(
    r"<\w+(\[\w+\])?>|\blist\[|\bint\b|\bstr\b|\bfloat\b|x>=|\binvalid\b|No such|Try '|Aborted|\[OPTIONS\] \{", re.I
)


def every_command(node: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    node = commands() if node is None else node
    yield path, node
    for name, each in getattr(node, "commands", {}).items():
        yield from every_command(each, (*path, name))


ALL = dict(every_command())


def test_nothing_typed_lists_every_command_by_task(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    alone = capsys.readouterr()
    assert run(["--help"]) == 0
    assert capsys.readouterr().out == alone.out and alone.err == ""
    headings = [line.removesuffix(":") for line in alone.out.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings == [*TASKS, "Options", "Examples"]
    for (name, *rest), _ in [each for each in ALL.items() if each[0]]:
        assert rest or f"\n  {name}  " in alone.out
    assert run(["key"]) == 0 and "new" in capsys.readouterr().out


def test_no_summary_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "..." not in shown
    for path, each in ALL.items():
        if len(path) == 1:
            assert " ".join(each.help.split("\n\n")[0].split()) in shown


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_help_has_examples_and_no_foreign_words(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(ALL[path], (Command, CommandGroup))
    assert run([*path, "--help"]) == 0
    shown = capsys.readouterr().out
    assert not FOREIGN.search(shown), FOREIGN.search(shown)
    assert "Examples:" in shown and shown.startswith(f"Usage: {' '.join(['sfumato', *path])}")


@pytest.mark.parametrize(("path", "example"), [(path, line) for path, each in ALL.items() for line in each.epilog.split("\n")])
def test_examples_are_commands_that_can_be_parsed(path: tuple[str, ...], example: str) -> None:
    words = shlex.split(example)
    assert words[0] == "sfumato"
    if any(option in words for option in ("--help", "--version")):
        return
    node, rest = commands(), words[1:]
    context: Any = None
    called = []
    while True:
        context = node.make_context("sfumato", list(rest), parent=context)  # type: ignore[attr-defined]
        if not isinstance(node, CommandGroup) or not context._protected_args:
            break
        called.append(context._protected_args[0])
        node, rest = node.commands[called[-1]], context.args
    assert tuple(called) == path or path in ((), tuple(called)[:1])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["protct"], "there is no command 'protct' (did you mean 'protect'?). See `sfumato --help`."),
        (["ledger", "grnat"], "there is no command 'grnat' (did you mean 'grant'?). See `sfumato ledger --help`."),
        (
            ["protect", "a.csv", "--metod", "x"],
            "there is no option '--metod' (did you mean '--method'?). See `sfumato protect --help`.",
        ),
        (["protect", "a.csv", "--k", "five"], "--k must be a whole number. See `sfumato protect --help`."),
        (
            ["check", "a.csv", "--show-failing", "0"],
            "--show-failing must be a whole number of at least 1. See `sfumato check --help`.",
        ),
        (["refute", "a.py:f", "--seconds", "x"], "--seconds must be a number of at least 0.1. See `sfumato refute --help`."),
        (
            ["protect"],
            "SOURCE is missing: a recipe (.toml), or a table with --schema and guarantees. See `sfumato protect --help`.",
        ),
        (["protect", "a.csv", "--schema"], "--schema needs a value: FILE. See `sfumato protect --help`."),
        (["protect", "a.csv", "--overwrite=x"], "--overwrite takes no value. See `sfumato protect --help`."),
        (["verify", "a", "b"], "there is an argument too many: sfumato verify takes FOLDER. See `sfumato verify --help`."),
        (["protect", "a.csv", "--k", "5"], "needs --schema; or name a recipe (a .toml file). See `sfumato protect --help`."),
        (["ledger", "grant", "d", "ann"], "--rho. See `sfumato ledger grant --help`."),
    ],
)
def test_a_usage_error_is_in_our_words_and_names_the_help(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(words) == 2
    shown = capsys.readouterr()
    assert shown.err.endswith(f"{said}\n") and shown.out == "" and not FOREIGN.search(shown.err)
    if words[-1] == "--schema":  # which would take the next word for its value
        return
    assert run([*words, "--json"]) == 2
    told = json.loads(capsys.readouterr().out)
    assert told["error"].endswith(said) and told["kind"] == "Misuse"


def test_what_was_typed_is_not_repeated_where_it_may_be_a_password(capsys: pytest.CaptureFixture[str]) -> None:
    secret = "postgresql://ada:hunter2@host/db"
    for words in (["verify", "out", secret], [secret], ["protect", "a", f"--{secret}", "x"], ["protect", "a", "--k", secret]):
        assert run(words) == 2
        assert "hunter2" not in capsys.readouterr().err


def complete(line: str, home: Path) -> list[str]:
    words = line.split(" ")
    environment = {
        **os.environ,
        "HOME": str(home),
        "_SFUMATO_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    answer = subprocess.run([sys.executable, "-c", MAIN], env=environment, capture_output=True, text=True, check=True)
    return answer.stdout.split()


@pytest.mark.slow
def test_completion_knows_commands_and_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sfumato.toml").write_text("unknown = 1\n")  # which never disturbs it
    assert complete("sfumato pro", tmp_path) == ["protect"]
    assert complete("sfumato ledger gr", tmp_path) == ["grant"]
    assert {"--ledger", "--least-level"} <= set(complete("sfumato protect --le", tmp_path))
    shown = subprocess.run(
        [sys.executable, "-c", MAIN, "--show-completion", "bash"],
        env={**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}, capture_output=True, text=True,
    )  # fmt: skip
    assert shown.returncode == 0 and "_SFUMATO_COMPLETE=complete_bash" in shown.stdout


@pytest.mark.slow
def test_completion_that_is_installed_completes_in_a_shell(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash here")
    program = tmp_path / "bin" / "sfumato"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c {shlex.quote(MAIN)} "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "HOME": str(tmp_path), "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
    installed = {**environment, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    subprocess.run([program, "--install-completion", "bash"], env=installed, capture_output=True, check=True)
    typed = 'COMP_WORDS=(sfumato ledger gr); COMP_CWORD=2; _sfumato_completion sfumato; echo "${COMPREPLY[@]}"'
    answer = subprocess.run(
        [bash, "--noprofile", "--rcfile", tmp_path / ".bashrc", "-ic", typed], env=environment, capture_output=True, text=True
    )
    assert answer.stdout.split() == ["grant"], answer.stderr
