"""How long one statement may run in an engine, and how it is ended there.

PostgreSQL keeps the limit itself; DuckDB and Spark are interrupted from here. Ctrl-C and termination end the statement in the
engine as well, so that nothing goes on computing for nobody.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from sfumato.core.errors import ParameterError, TimedOut, raise_alone
from sfumato.core.stopping import interrupted_on_stop, stop_behind

#: The longest limit: a week. Above some bound every engine takes a limit for none.
LONGEST = 7 * 24 * 3600.0
#: A statement that was interrupted may be the first of several: the others are interrupted as well.
_AGAIN = 0.2

#: The seconds that a statement may take, None for as long as it takes.
LIMIT: ContextVar[float | None] = ContextVar("seconds per statement", default=None)


def check_timeout(seconds: object) -> float | None:
    """The limit as a number of seconds, None for none; refuses what is no limit."""
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds <= LONGEST:
        raise ParameterError(f"timeout is a number of seconds above 0 and at most {LONGEST:,.0f} (a week), or None for no limit")
    return float(seconds)


@contextmanager
def statements_within(seconds: float | None) -> Iterator[None]:
    """Every statement that is asked of an engine inside may take this long; None changes nothing."""
    if seconds is None:
        yield
        return
    before = LIMIT.set(seconds)
    try:
        yield
    finally:
        LIMIT.reset(before)


def statement_seconds() -> float | None:
    """How long a statement may take now, None for as long as it takes."""
    return LIMIT.get()


def timed_out(where: str, seconds: float) -> TimedOut:
    """The error for a statement that took too long."""
    return TimedOut(f"{where} did not answer within {seconds:g} s, and the statement was stopped. Allow more time.", seconds)


@contextmanager
def stopped_in_time(interrupt: Callable[[], object], where: str) -> Iterator[None]:
    """Call `interrupt` when the limit has passed, and when Ctrl-C or termination arrives. Late answers are refused as well."""
    seconds = LIMIT.get()
    with interrupted_on_stop(interrupt):
        if seconds is None:
            yield
            return
        late, over = threading.Event(), threading.Event()

        def watch() -> None:
            wait = seconds
            while not over.wait(wait):
                late.set()
                wait = _AGAIN
                with suppress(Exception):  # what has ended by now needs no telling
                    interrupt()

        watcher = threading.Thread(target=watch, name="sfumato statement limit", daemon=True)
        watcher.start()
        try:
            yield
        except Exception as error:
            if late.is_set() and stop_behind(error) is None:
                raise_alone(timed_out(where, seconds))
            raise
        finally:
            over.set()
            watcher.join()
        if late.is_set():
            raise_alone(timed_out(where, seconds))
