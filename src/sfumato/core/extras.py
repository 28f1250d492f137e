"""Packages that some want and others do without: asked for when they are needed, with one error that says how to install them."""

from __future__ import annotations

from importlib import import_module

from sfumato.core.errors import MissingExtra


def require_extra(package: str, extra: str, purpose: str) -> None:
    """Raise `MissingExtra`, which names the extra and the command, where a package is not installed."""
    try:
        import_module(package)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package.partition(".")[0]:
            raise  # it is installed, and something that it needs is missing
        raise MissingExtra(package, extra, purpose) from None
