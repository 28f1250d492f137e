"""What systems differ in: flags for opening files, modes and owners, and abilities that only some have.

The program is made for Linux. Elsewhere what a system lacks is left out where nothing depends on it, and refused in words where
something does ([platforms](docs/platforms.md)).
"""

from __future__ import annotations

import os

from sfumato.core.errors import Unsupported

#: Whether files have owners and the modes of POSIX here.
HAS_OWNERS = hasattr(os, "geteuid")


def flags(*names: str) -> int:
    """Flags of `os.open` together, as far as this system has them; bytes are never translated."""
    together = getattr(os, "O_BINARY", 0)
    for name in names:
        together |= getattr(os, name, 0)
    return together


def belongs_to_us(status: os.stat_result, *, or_root: bool = False) -> bool:
    """Whether a file belongs to the user of this process; True where files have no owners."""
    return not HAS_OWNERS or status.st_uid == os.geteuid() or (or_root and status.st_uid == 0)


def set_mode(descriptor: int, mode: int) -> None:
    """Give an open file its mode, whatever the umask, where files have modes."""
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, mode)


def require_ability(present: bool, what: str) -> None:
    """Refuse what this system cannot do."""
    if not present:
        raise Unsupported(f"{what} needs abilities of Linux or macOS that this system does not have; do it there")
