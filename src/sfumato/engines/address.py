"""Database addresses without their secrets.

A URL may carry a password in its authority or its parameters; what is shown keeps scheme, host, port and
database alone.
"""

from __future__ import annotations

from urllib.parse import urlsplit

POSTGRES_SCHEMES = ("postgresql://", "postgres://")


def is_postgres_url(source: object) -> bool:
    """True for a PostgreSQL URL."""
    return isinstance(source, str) and source.lower().startswith(POSTGRES_SCHEMES)


def redacted(url: str) -> str:
    """The URL as it may be shown: no user, no password, no parameters."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or "local"
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "postgresql://…"
    # A malformed URL may hold a piece of the password in its path or host.
    if "@" in parts.path or "@" in host or parts.scheme.lower() not in ("postgresql", "postgres"):
        return "postgresql://…"
    return f"postgresql://{host}{port}/{parts.path.lstrip('/')}"
