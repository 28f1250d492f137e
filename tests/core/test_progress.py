"""`progress=True`: a bar in a terminal, a display in a notebook, silence elsewhere, and nothing left behind."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import sfumato as sf
from sfumato.core import progress_bar
from sfumato.core.errors import ParameterError
from sfumato.core.progress import shown
from tests.workflow.people import people, release


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard error as the bar sees it; the one of the tests is theirs."""
    stream = Terminal()
    monkeypatch.setattr(progress_bar, "sys", SimpleNamespace(stderr=stream, modules={}))
    return stream


def last_line(written: str) -> str:
    """What a terminal shows after these characters: each carriage return starts the line again, and writes over it."""
    line = ""
    for part in written.split("\r"):
        line = part + line[len(part) :]
    return line


def test_a_bar_shows_the_phase_and_its_share_and_is_gone_afterwards(terminal: Terminal) -> None:
    with shown(True) as receive:
        receive("searching", 1, 4)
        assert last_line(terminal.getvalue()).startswith("searching  [#######...")
        assert "25%" in last_line(terminal.getvalue())
        receive("verifying", 0, 0)
        assert last_line(terminal.getvalue()).rstrip() == "verifying  0:00"
    assert last_line(terminal.getvalue()).strip() == "" and "\n" not in terminal.getvalue()


def test_a_bar_is_gone_after_an_error(terminal: Terminal) -> None:
    with pytest.raises(ZeroDivisionError), shown(True) as receive:
        receive("searching", 1, 4)
        _ = 1 / 0
    assert "searching" in terminal.getvalue() and last_line(terminal.getvalue()).strip() == ""


def test_many_steps_are_drawn_a_few_times(terminal: Terminal) -> None:
    with shown(True) as receive:
        for step in range(10_000):
            receive("searching", step, 10_000)
    assert 1 <= terminal.getvalue().count("searching") < 100


def test_nothing_is_written_where_nobody_looks_unless_lines_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    for asked, lines in ((True, 0), (False, 0), ("lines", 2)):
        with shown(asked) as receive:  # type: ignore[arg-type]
            for phase in ("searching", "searching", "verifying"):
                receive(phase, 0, 1)
        written = capsys.readouterr()
        assert (written.out, len(written.err.splitlines())) == ("", lines)


@pytest.mark.parametrize("closed", [None, io.StringIO()])
def test_a_closed_standard_error_stops_no_work(closed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if closed is not None:
        closed.close()
        closed = SimpleNamespace(isatty=lambda: True, write=closed.write, flush=closed.flush)
    monkeypatch.setattr(progress_bar, "sys", SimpleNamespace(stderr=closed, modules={}))
    for asked in (True, "lines"):
        with shown(asked) as receive:  # type: ignore[arg-type]
            receive("searching", 0, 1)


def test_a_notebook_has_one_display_that_is_updated(monkeypatch: pytest.MonkeyPatch) -> None:
    """IPython is no dependency: this stands in for its two functions that are called."""
    updates: list[Any] = []
    handle = SimpleNamespace(update=updates.append)

    def display(value: Any, display_id: bool) -> Any:
        assert display_id and value._repr_html_() == ""
        return handle

    notebook, inside = ModuleType("IPython"), ModuleType("IPython.display")
    notebook.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    inside.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", inside)
    with shown(True) as receive:
        receive("searching", 1, 4)
    assert updates[0]._repr_html_() == '<div><progress value="1" max="4"></progress> searching</div>'
    assert repr(updates[0]).startswith("searching  [###")
    assert updates[-1]._repr_html_() == "" and repr(updates[-1]) == ""


LONG_WORK: dict[str, Callable[[Any], object]] = {
    "protect": lambda progress: sf.protect(people(100), k=5, progress=progress),
    "mask": lambda progress: sf.mask(people(100), "Mdav(k=5)", progress=progress),
    "compare": lambda progress: sf.compare(people(100), ["Mdav(k=5)"], runs=1, cache=False, workers=1, progress=progress),
    "attack": lambda progress: sf.attack(release(100), progress=progress),
    "refute": lambda progress: sf.refute(lambda rows: len(rows), neighbours=([1], []), samples=500, progress=progress),
    "apply": lambda progress: sf.Mdav(k=5, columns=("age",)).apply(people(100), progress=progress),
    "release": lambda progress: sf.Session(people(100), budget=sf.PureDP(1)).release(
        sf.dp.TopK("disease", k=1, epsilon=1, candidates=("flu", "cold")), progress=progress
    ),
}


@pytest.mark.parametrize("name", LONG_WORK)
def test_long_work_draws_a_bar(name: str, terminal: Terminal) -> None:
    LONG_WORK[name](True)
    assert "\r" in terminal.getvalue() and last_line(terminal.getvalue()).strip() == ""


def test_what_is_no_receiver_is_refused() -> None:
    with pytest.raises(ParameterError, match="progress is True"):
        sf.protect(people(100), k=5, progress="bar")  # type: ignore[arg-type]
