"""Scores that were measured before are remembered, so that a comparison that was stopped goes on where it was.

They stand under a keyed digest of data, method, measures and seed; nothing but scores is kept.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from contextlib import suppress
from pathlib import Path

from sfumato.core.certificate import canonical, plain
from sfumato.core.errors import InputError
from sfumato.core.plain_data import Plain, PlainDict
from sfumato.core.platforms import NEW, flags
from sfumato.data.microdata import Microdata

#: What is remembered of a method.
_FIELDS = {
    "risk",
    "floor",
    "gain",
    "loss",
    "scores",
    "parts",
    "risk_measure",
    "linked_shares",
    "left",
    "rows",
    "guaranteed",
    "unproven",
    "seconds",
}
_KEY_BYTES = 32
_AGAIN = flags("O_WRONLY", "O_CREAT", "O_TRUNC")


class Memory:
    """Scores that were measured before, one small file each; names tell nothing to whoever lacks the key beside them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._key = _key_in(folder)

    def name(self, *parts: object) -> str:
        """The name of a result by everything that it depends on."""
        return hmac.new(self._key, canonical([plain(part) for part in parts]), hashlib.sha256).hexdigest()

    def digest(self, people: Microdata) -> str:
        """A keyed digest of the rows in their order, and of what the schema says about them."""
        import pyarrow as pa

        running = hmac.new(self._key, canonical(people.schema.model_dump(mode="json", exclude={"roles"})), hashlib.sha256)
        for column in people.schema.columns.values():
            if column.hierarchy is not None and column.hierarchy.file is not None:
                running.update(_content(Path(people.schema.folder or "") / column.hierarchy.file))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, people.relation.schema()) as writer:  # a batch alone would leave out its texts
            for batch in people.relation.batches():
                writer.write_batch(batch)
        running.update(sink.getvalue())
        return running.hexdigest()

    def get(self, name: str) -> PlainDict | None:
        """What is remembered; a damaged file counts as nothing."""
        try:
            stored = json.loads((self.folder / f"{name}.json").read_bytes())
        except (OSError, ValueError):
            return None
        return stored if isinstance(stored, dict) and set(stored) == _FIELDS else None

    def keep(self, name: str, result: Plain) -> None:
        """Remember a result; a folder that cannot be written to is no reason to stop."""
        path = self.folder / f"{name}.json"
        try:
            hidden = path.with_suffix(f".{os.getpid()}.part")
            with open(os.open(hidden, _AGAIN, 0o600), "wb") as file:
                file.write(canonical(plain(dict(result))))
            hidden.replace(path)
        except OSError:
            return


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # whoever needs it will say so
        return b""


def _key_in(folder: Path) -> bytes:
    """The key of a folder, made on first use; two that make it at once agree on one."""
    path = folder / "key"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists():
            hidden = folder / f"key.{os.getpid()}.{secrets.token_hex(4)}"
            with open(os.open(hidden, NEW, 0o600), "wb") as file:
                file.write(os.urandom(_KEY_BYTES))
            with suppress(FileExistsError):
                os.link(hidden, path)
            hidden.unlink()
        key = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"the folder '{folder}' cannot keep results ({error.strerror}); name another, or pass cache=False"
        ) from None
    if len(key) != _KEY_BYTES:
        raise InputError(f"'{path}' is not the key of such a folder; remove the folder '{folder}' and what it remembers")
    return key
