"""Events for numeric composition: what they refuse, and what happens without the extra."""

from __future__ import annotations

import sys

import pytest

from sfumato.core.errors import MissingExtra, ParameterError, Unsupported
from sfumato.dp.accounting.numeric import Events, NoisyAnswer


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
    with pytest.raises(MissingExtra, match=r"sfumato\[accounting\]"):
        Events((NoisyAnswer("laplace", 10),)).epsilon("1e-6")


@pytest.mark.parametrize(
    "arguments",
    [
        ("cauchy", 1),
        ("laplace", 0),
        ("laplace", 1, 0),
        ("laplace", 1, 1, 0),
        ("laplace", 1, 1, 1, 2),
        ("discrete_laplace", 1, "0.5"),
    ],
)
def test_answers_that_make_no_sense_are_refused(arguments: tuple[object, ...]) -> None:
    with pytest.raises(ParameterError):
        NoisyAnswer(*arguments)  # type: ignore[arg-type]


def test_sampled_answers_are_accounted_for_under_add_remove() -> None:
    events = Events((NoisyAnswer("gaussian", 1, sampling="0.1"),), neighbours="replace")
    with pytest.raises(Unsupported, match="add_remove"):
        events.epsilon("1e-6")


def test_nothing_asked_or_no_delta_is_refused() -> None:
    with pytest.raises(ParameterError, match="no answer"):
        Events().epsilon("1e-6")
    with pytest.raises(ParameterError, match="between 0 and 1"):
        Events((NoisyAnswer("laplace", 1),)).epsilon(0)


def test_events_are_values() -> None:
    first = Events(unit="user").then(NoisyAnswer("gaussian", 10))
    assert first.then(NoisyAnswer("laplace", 1)) != first and first.epsilon("1e-6").unit == "user"
