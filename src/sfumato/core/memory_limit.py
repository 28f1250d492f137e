"""What the system lets this process have of memory, and an Arrow that fits into it.

Arrow's usual allocator reserves a gigabyte at once, which counts against RLIMIT_DATA although nothing is in it. Which allocator
Arrow takes is settled when it is loaded, so this is asked before anything of ours loads it.
"""

from __future__ import annotations

import os


def memory_limit() -> int | None:
    """The bytes that this process may have, where the system limits it."""
    try:
        import resource
    except ImportError:  # a system without such limits
        return None
    kinds = (getattr(resource, name, None) for name in ("RLIMIT_DATA", "RLIMIT_AS"))
    limits = [resource.getrlimit(kind)[0] for kind in kinds if kind is not None]
    return min((limit for limit in limits if limit != resource.RLIM_INFINITY), default=None)


def fit_arrow() -> None:
    """Let Arrow take memory as it needs it where there is a limit, unless somebody chose an allocator."""
    if memory_limit() is not None:
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
