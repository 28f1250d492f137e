"""Ctrl-C behind other errors: some libraries catch it and raise an error of their own in its place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_LONGEST_CHAIN = 100


def stop_behind(error: BaseException) -> BaseException | None:
    """The `KeyboardInterrupt` or `SystemExit` that led to an error, where there is one."""
    waiting: list[BaseException | None] = [error]
    for _ in range(_LONGEST_CHAIN):
        current = waiting.pop() if waiting else None
        if isinstance(current, KeyboardInterrupt | SystemExit):
            return current
        if current is not None:
            waiting += [current.__context__, current.__cause__]
        elif not waiting:
            return None
    return None


@contextmanager
def stops_come_through() -> Iterator[None]:
    """Let a Ctrl-C through that a library turned into an error of its own (DuckDB: a `RuntimeError`)."""
    try:
        yield
    except Exception as error:
        stop = stop_behind(error)
        if stop is None:
            raise
        raise stop from None
