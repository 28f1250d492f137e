"""Ctrl-C is found behind the errors that libraries put in its place, and nothing else is."""

from __future__ import annotations

import pytest

from sfumato.core.stopping import stop_behind, stops_come_through


def hidden(stop: BaseException) -> None:
    """What DuckDB does: catch the interrupt and raise an error of one's own."""
    try:
        raise stop
    except BaseException as error:
        raise RuntimeError("Query interrupted") from error


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), SystemExit(143)])
def test_a_hidden_stop_comes_through_as_itself(stop: BaseException) -> None:
    with pytest.raises(type(stop)) as raised, stops_come_through():
        hidden(stop)
    assert raised.value is stop


def test_a_stop_that_was_wrapped_twice_without_saying_so_is_found() -> None:
    with pytest.raises(ValueError) as raised:
        try:
            hidden(KeyboardInterrupt())
        except RuntimeError:
            raise ValueError("the file is damaged") from None
    assert isinstance(stop_behind(raised.value), KeyboardInterrupt)


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(ValueError, match="wrong"), stops_come_through():
        try:
            raise KeyError("a")
        except KeyError:
            raise ValueError("wrong") from None


def test_a_ring_of_causes_ends() -> None:
    first, second = ValueError(), ValueError()
    first.__cause__, second.__cause__ = second, first
    assert stop_behind(first) is None
