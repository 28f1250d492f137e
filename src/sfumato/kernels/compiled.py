"""Compiled kernels that never compile in the middle of a user's command.

A kernel is a plain Python function with a fixed Numba signature and a NumPy twin. `warm` compiles all kernels into
Numba's cache and leaves a stamp; a process that finds the stamp loads the machine code, any other uses the twins,
which are slower and give the same numbers. Somebody who never ran `warm` is told of it once for each installation.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import platform
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar, cast

from sfumato.core.errors import NotCompiled, notify
from sfumato.core.progress import Progress, silent

P = ParamSpec("P")
R = TypeVar("R")

_STAMP = "sfumato-kernels.stamp"
_TOLD = "told-of-warm.stamp"
_HERE = Path(__file__).parent
_KERNELS: list[Kernel[..., Any]] = []
_ready: bool | None = None
_told = False


class Kernel(Generic[P, R]):
    """A function in two forms: machine code when it has been compiled before, NumPy otherwise."""

    def __init__(self, plain: Callable[P, R], signature: str, twin: Callable[P, R]) -> None:
        self.plain = plain
        self.signature = signature
        self.twin = twin
        self.__doc__ = plain.__doc__
        self.__name__ = plain.__name__
        self._chosen: Callable[P, R] | None = None
        _KERNELS.append(self)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        chosen = self._chosen
        if chosen is None:
            if not available():
                tell_of_warm()
            chosen = self._chosen = self.compile() if available() else self.twin
        return chosen(*args, **kwargs)

    def compile(self) -> Callable[P, R]:
        """The machine code, from Numba's cache when it is there."""
        import numba

        return cast("Callable[P, R]", numba.njit(self.signatures, cache=True, nogil=True)(self.plain))

    @property
    def signatures(self) -> list[str]:
        """One for each kind of counts that it takes."""
        return list(dict.fromkeys(self.signature.replace("count[", f"{kind}[") for kind in ("int64", "int32")))


def kernel(signature: str, twin: Callable[P, R]) -> Callable[[Callable[P, R]], Kernel[P, R]]:
    """Register a kernel with its signature and its NumPy twin.

    `count` in a signature stands for integers of 64 and of 32 bits.
    """

    def wrap(plain: Callable[P, R]) -> Kernel[P, R]:
        return Kernel(plain, signature, twin)

    return wrap


def available() -> bool:
    """True when `warm` has compiled exactly these sources for this interpreter and machine."""
    global _ready
    if _ready is None:
        _ready = os.environ.get("SFUMATO_KERNELS") != "numpy" and any(_read(folder) == _identity() for folder in _folders())
    return _ready


def warm(progress: Progress = silent) -> int:
    """Compile every kernel into the cache; returns how many there are."""
    global _ready
    kernels = every_kernel()
    for done, entry in enumerate(kernels):
        progress("compiling kernels", done, len(kernels))
        entry._chosen = entry.compile()
    progress("compiling kernels", len(kernels), len(kernels))
    for folder in _folders():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / _STAMP).write_text(_identity(), encoding="ascii")
            break
        except OSError:
            continue
    _ready = True
    return len(kernels)


def remove() -> int:
    """Remove every compiled kernel of this installation and the stamps, which uninstalling leaves; returns how many files."""
    global _ready
    import numba

    left = [folder / name for folder in _folders() for name in (_STAMP, _TOLD)]
    for entry in every_kernel():
        cache = Path(str(numba.njit(cache=True)(entry.plain).stats.cache_path))
        source = Path(entry.plain.__code__.co_filename).stem
        left += cache.glob(f"{source}.{entry.plain.__qualname__}-*.nb[ic]")  # of every version of Python
        entry._chosen = None
    removed = sum(map(_removed, dict.fromkeys(left)))
    for folder in {path.parent for path in left} - {_HERE}:
        with suppress(OSError):  # somebody else's files are in it
            folder.rmdir()
    _ready = False
    return removed


def tell_of_warm() -> None:
    """Say once for an installation that its kernels can be compiled, where they can be and are not."""
    global _told
    if _told or os.environ.get("SFUMATO_KERNELS") == "numpy" or available():
        return
    _told = True
    identity = _identity()
    if any(_read(folder, _TOLD) == identity for folder in _folders()):
        return
    folder = _folders()[-1]
    with suppress(OSError):  # then the next process says it again
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _TOLD).write_text(identity, encoding="ascii")
    notify(
        "the numerical kernels are not compiled for this installation, so NumPy computes the same numbers more slowly. Run "
        "`sfumato warm` once. This is said once",
        NotCompiled,
    )


def every_kernel() -> list[Kernel[..., Any]]:  # each returns what it does
    """All kernels there are, of every module of this room."""
    for source in _sources():
        importlib.import_module(".".join(("sfumato.kernels", *source.relative_to(_HERE).with_suffix("").parts)))
    return list(_KERNELS)


def _sources() -> list[Path]:
    """Every module of this room, in the order of their names: a kernel is found where it stands."""
    return sorted(path for path in _HERE.rglob("*.py") if path.name != "__init__.py")


def _identity() -> str:
    """What the cached machine code depends on: sources, interpreter, machine, compiler."""
    from importlib.metadata import version

    digest = hashlib.sha256()
    for source in _sources():
        # Numba drops its cache when the file is touched, so the stamp must go stale with it
        digest.update(f"{source.relative_to(_HERE).as_posix()} {source.stat().st_mtime_ns} {source.stat().st_size};".encode())
    for part in (platform.python_version(), platform.machine(), version("numba"), version("llvmlite"), _processor()):
        digest.update(part.encode())
    return digest.hexdigest()


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return "".join(line for line in lines if line.startswith(("model name", "flags")))[:4000].split("\n\n")[0]
    except OSError:
        return platform.processor()


def _folders() -> list[Path]:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return [_HERE / "__pycache__", cache / "sfumato"]


def _read(folder: Path, name: str = _STAMP) -> str:
    try:
        return (folder / name).read_text(encoding="ascii")
    except OSError:
        return ""


def _removed(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True
