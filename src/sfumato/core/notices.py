"""Notices: what a person should know although nothing failed, as warnings of one category.

Python shows a warning once for each place of the code that it is about. That place is where the caller of sfumato stands, not a
line in here. The commands print notices themselves and silence the warnings.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from types import FrameType

#: Modules that stand between a public function and its caller.
_BETWEEN = ("sfumato", "contextlib")


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
