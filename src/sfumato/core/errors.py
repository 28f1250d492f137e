"""Every error sfumato raises, in one tree, and the one category of its notices.

    SfumatoError
    ├── InputError              exit code 2: the request cannot be carried out as written
    │   ├── ParameterError      a parameter of a method or guarantee is out of range (a ValueError too)
    │   ├── SchemaError         a schema contradicts itself or the data
    │   │   └── MissingColumn   a named column is not in the data (a KeyError too)
    │   ├── MissingMeasure      a release was not measured so (a KeyError too)
    │   ├── HierarchyError      a hierarchy is not a tree over its leaves
    │   │   └── HierarchyGap    values of the data are missing from their hierarchy
    │   ├── SourceError         a file or table cannot be read
    │   │   └── TimedOut        an engine did not answer in the time that a statement may take
    │   ├── RecipeError         a recipe contradicts itself
    │   ├── Unsupported         a combination of method, guarantee and data that is refused, with the reason
    │   └── MissingExtra        an optional dependency is needed
    ├── GuaranteeNotMet         exit code 1: what was asked for does not hold
    │   ├── Infeasible          no transformation of this table reaches the guarantees
    │   └── VerificationFailed  a written release does not show what it claims
    ├── BudgetRefused           exit code 3: the ledger does not grant it
    ├── LedgerError             the ledger is damaged or cannot be reached
    │   └── NoLedger            there is none at that place, and it was opened to be read
    └── Cancelled               stopped by the user

A message says what, why and what to do. No message carries a record value; the exception is a schema or hierarchy
that the data owner is editing, whose messages are marked by `owner_only`. No message carries a password, and no error brings
along another one that holds what was being read (`forgetting`).

A notice is what a person should know although nothing failed: `SfumatoWarning`, a warning. Python shows it once for each place of
the code that it is about, which is where the caller of sfumato stands (`notify`). Commands print notices themselves and silence
the warnings.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ContextDecorator, contextmanager
from types import FrameType, TracebackType
from typing import NoReturn

#: An address that carries more than machine and database: a user, a password, parameters. A path that was made of an address
#: has one slash where the address had two.
_TELLING_URL = re.compile(
    r"([A-Za-z][\w+.-]*://)(?:[^\n]*@[^\s'\"]*|[^\s'\"]*(?:\?|:(?=\D))[^\s'\"]*)|([A-Za-z][\w+.-]+:/)[^\n]*@[^\s'\"]*"
)
_PASSWORD = re.compile(r"(?i)(passw(?:or)?d\s*=\s*)(?:'(?:\\.|[^'\\])*'?|\"(?:\\.|[^\"\\])*\"?|(?:\\.|[^\s,;])+)", re.DOTALL)
_LONGEST_NAME = 80
#: Modules that stand between a public function and its caller.
_BETWEEN = ("sfumato", "contextlib")


class SfumatoError(Exception):
    """Root of the tree; `exit_code` is what the command line returns."""

    exit_code = 2
    owner_only = False
    #: The faults one by one, where several were reported at once.
    faults: tuple[str, ...] = ()

    def __init__(self, message: str = "") -> None:
        super().__init__(_PASSWORD.sub(r"\1…", _TELLING_URL.sub(lambda address: f"{address[1] or address[2]}…", message)))


class forgetting(ContextDecorator):
    """An error of ours that leaves this function brings no other along: what a library raised holds what it was reading."""

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Cut the chain behind an error of ours."""
        from sfumato.core.stopping import stop_behind

        if isinstance(error, SfumatoError) and stop_behind(error) is None:
            error.__cause__ = error.__context__ = None


def as_name(text: object) -> str:
    """A name that somebody wrote, in quotes, unless it is no name but perhaps an address with a password."""
    shown = str(text)
    telling = "://" in shown or "@" in shown or len(shown) > _LONGEST_NAME
    return "(not shown: an address, or too long for a name)" if telling else f"'{shown}'"


class InputError(SfumatoError):
    """The request cannot be carried out as written."""


class ParameterError(InputError, ValueError):
    """A parameter of a method or a guarantee is out of range; for Python also a `ValueError`."""


class SchemaError(InputError):
    """A schema contradicts itself or the data."""


class MissingColumn(SchemaError, KeyError):
    """A named column is not in the data; for Python also a `KeyError`, but one whose text is the plain sentence."""

    __str__ = Exception.__str__


class MissingMeasure(InputError, KeyError):
    """A release has no such score; for Python also a `KeyError`, but one whose text is the plain sentence."""

    __str__ = Exception.__str__


class HierarchyError(InputError):
    """A hierarchy is not a tree over its leaves."""

    owner_only = True


class HierarchyGap(HierarchyError):
    """Values of the data are missing from their hierarchy."""


class SourceError(InputError):
    """A file or table cannot be read."""


class TimedOut(SourceError):
    """An engine did not answer within the seconds that a statement may take."""

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


class RecipeError(InputError):
    """A recipe contradicts itself."""


class Unsupported(InputError):
    """A combination of method, guarantee and data that is refused, with the reason."""


class MissingExtra(InputError):
    """An optional dependency is needed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs the package '{package}'. Install it with: pip install 'sfumato[{extra}]'")


class GuaranteeNotMet(SfumatoError):
    """What was asked for does not hold."""

    exit_code = 1


class Infeasible(GuaranteeNotMet):
    """No transformation of this table reaches the guarantees."""


class VerificationFailed(GuaranteeNotMet):
    """A written release does not show what it claims."""


class BudgetRefused(SfumatoError):
    """The ledger does not grant it."""

    exit_code = 3


class LedgerError(SfumatoError):
    """The ledger is damaged or cannot be reached."""


class NoLedger(LedgerError):
    """There is no ledger at a place that was opened to be read."""


class Cancelled(SfumatoError):
    """Stopped by the user before anything was written."""

    exit_code = 130


def raise_alone(error: SfumatoError) -> NoReturn:
    """Raise an error without what led to it: `from None` hides the error of a library and keeps it, record values included,
    as `__context__`.
    """
    try:
        raise error
    finally:
        error.__cause__ = error.__context__ = None


@contextmanager
def reported_as(say: Callable[[Exception], SfumatoError]) -> Iterator[None]:
    """Turn whatever fails inside a library into what `say` makes of it; our own errors pass, without what led to them.

    DuckDB, PostgreSQL, Arrow and Spark quote the values they stumble over: of their errors only the class may be
    named. Ours are new ones, on which theirs hang neither as cause nor as context.
    """
    from sfumato.core.stopping import stops_come_through

    try:
        with stops_come_through():
            yield
    except SfumatoError as error:
        error.__cause__ = error.__context__ = None
        raise
    except Exception as error:
        raise_alone(say(error))


def all_at_once(error: type[SfumatoError], heading: str, faults: Iterable[str]) -> None:
    """Raise one error that lists every fault; do nothing when there is none."""
    listed = list(faults)
    if not listed:
        return
    several = f"{heading}: {len(listed)} faults\n" + "\n".join(f"  {i}. {fault}" for i, fault in enumerate(listed, 1))
    raised = error(f"{heading}: {listed[0]}" if len(listed) == 1 else several)
    raised.faults = tuple(f"{heading}: {fault}" for fault in listed)
    raise raised


class SfumatoWarning(UserWarning):
    """A notice of sfumato. It names columns and files, and never a value of a record."""


class NotCompiled(SfumatoWarning):
    """The numerical kernels run as NumPy, slower: nobody has run `sfumato warm` for this installation."""


def notify(notices: str | Iterable[str], category: type[SfumatoWarning] = SfumatoWarning) -> None:
    """Warn of each notice where the caller of sfumato stands."""
    listed = [notices] if isinstance(notices, str) else list(notices)
    if not listed:
        return
    frame = _caller()
    place = frame.f_globals
    for notice in listed:
        warnings.warn_explicit(
            notice,
            category,
            filename=frame.f_code.co_filename,
            lineno=frame.f_lineno,
            module=str(place.get("__name__") or "<unknown>"),
            registry=place.setdefault("__warningregistry__", {}),
        )


def _caller() -> FrameType:
    """The innermost frame outside sfumato; the outermost one where there is none."""
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] in _BETWEEN:
        frame = frame.f_back
    return frame
