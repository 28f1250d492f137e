"""What systems differ in: flags for opening files, modes and owners, and abilities that only some have.

The program is made for Linux. Elsewhere what a system lacks is left out where nothing depends on it, and refused in words where
something does ([platforms](docs/platforms.md)).
"""

from __future__ import annotations

import os
from collections.abc import Callable

from sfumato.core.errors import Unsupported

#: Whether files have owners and the modes of POSIX here.
HAS_OWNERS = hasattr(os, "geteuid")


def flags(*names: str) -> int:
    """Flags of `os.open` together, as far as this system has them; bytes are never translated."""
    together = getattr(os, "O_BINARY", 0)
    for name in names:
        together |= getattr(os, name, 0)
    return together


#: To read a plain file, to make a new one that nobody has, and to flush one that was written: some systems flush only what is
#: open for writing.
READ = flags("O_RDONLY", "O_CLOEXEC", "O_NONBLOCK")
NO_LINK = flags("O_NOFOLLOW")
NEW = flags("O_WRONLY", "O_CREAT", "O_EXCL")
FLUSH = flags("O_RDONLY" if HAS_OWNERS else "O_RDWR")


def _without_modes(descriptor: int, mode: int) -> None:
    """Nothing to do where files have no modes."""


#: Give an open file its mode, whatever the umask, where files have modes.
set_mode: Callable[[int, int], None] = getattr(os, "fchmod", _without_modes)


def require_ability(present: bool, what: str) -> None:
    """Refuse what this system cannot do."""
    if not present:
        raise Unsupported(f"{what} needs abilities of Linux or macOS that this system does not have; do it there")
