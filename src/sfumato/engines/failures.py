"""What a failing driver may say: the class of its error and nothing else.

DuckDB, PostgreSQL, Arrow and Spark quote the values they stumble over. Ours are new errors; the driver's hang on them neither
as cause nor as context.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sfumato.core.errors import SfumatoError, raise_alone
from sfumato.core.stopping import stops_come_through


@contextmanager
def told_plainly(say: Callable[[Exception], SfumatoError]) -> Iterator[None]:
    """Turn whatever fails inside into what `say` makes of it; our own errors pass, without what led to them."""
    try:
        with stops_come_through():
            yield
    except SfumatoError as error:
        error.__cause__ = error.__context__ = None
        raise
    except Exception as error:
        raise_alone(say(error))
