"""Who stands behind each row of a masked release, for its owner: keyed digests of the columns that identify people.

With them a register of some of the people serves to count what an intruder finds, whatever the order of its rows and without
the source. The values themselves are not kept. The digests (BLAKE2b) hide them from nobody who has a list of candidates: the file
is the owner's, as the numbers of the source rows are.
"""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core import randomness
from sfumato.core.errors import InputError
from sfumato.data.microdata import Microdata
from sfumato.data.texts.values import texts

if TYPE_CHECKING:
    from collections.abc import Sequence

#: In the owner's folder of a masked table: for each released row the digests of what identifies its person.
PEOPLE = "people.parquet"
_SALT = b"sfumato-salt"
_DIGEST = pa.binary(16)

Int = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class WhoIsWho:
    """For each released row a digest of the person's value in every identifying column; the unit comes first."""

    digests: pa.Table = field(repr=False)
    salt: bytes = field(repr=False)

    @classmethod
    def of(cls, original: Microdata, rows: Int) -> WhoIsWho | None:
        """The people behind these records of the original; None where no column identifies anybody."""
        schema = original.schema
        names = [name for name in (schema.unit, *schema.with_role("identifier")) if name in original.column_names]
        if not names:
            return None
        salt, behind, source = randomness.default().bytes(32), pa.array(rows), original.table()
        columns = {name: _digests(source.column(name), name, salt).take(behind) for name in dict.fromkeys(names) if name}
        return cls(pa.table(columns), salt)

    @classmethod
    def load(cls, path: Path) -> WhoIsWho | None:
        """The stored people; None where the folder does not tell."""
        import pyarrow.parquet as pq

        if not path.is_file():
            return None
        try:
            table = pq.read_table(path)
            salt = base64.b64decode((table.schema.metadata or {}).get(_SALT, b""), validate=True)
            if len(salt) != 32 or any(each.type != _DIGEST for each in table.columns):
                raise pa.ArrowInvalid("no digests")
        except (OSError, pa.ArrowException, ValueError):
            raise InputError(f"'{path}' does not say who stands behind which row; save the release again") from None
        return cls(table, salt)

    def to_bytes(self) -> bytes:
        """As it is stored."""
        import pyarrow.parquet as pq

        buffer = io.BytesIO()
        pq.write_table(self.digests.replace_schema_metadata({_SALT: base64.b64encode(self.salt)}), buffer)
        return buffer.getvalue()

    @property
    def columns(self) -> Sequence[str]:
        """The columns that people can be looked up by."""
        return list(self.digests.column_names)

    def __len__(self) -> int:
        return int(self.digests.num_rows)

    def whose(self, name: str) -> Int:
        """The same number for rows of the same person; a row without a value is nobody else's."""
        encoded = self.digests.column(name).combine_chunks().dictionary_encode()
        missing = encoded.indices.is_null().to_numpy(zero_copy_only=False)
        codes = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        return np.where(missing, len(encoded.dictionary) + np.arange(codes.size), codes)

    def rows_of(self, people: pa.ChunkedArray, name: str) -> Int:
        """A row of the release of each person of a register, -1 where there is none."""
        first: Mapping[bytes, int] = {
            digest: row for row, digest in reversed(list(enumerate(self.digests.column(name).to_pylist()))) if digest is not None
        }
        listed = _digests(people, name, self.salt).to_pylist()
        return np.array([-1 if digest is None else first.get(digest, -1) for digest in listed], dtype=np.int64)


def _digests(column: pa.ChunkedArray, name: str, salt: bytes) -> pa.Array:
    """One digest per record, of the text of its value; missing where the value is."""
    encoded = column.combine_chunks()
    encoded = encoded if pa.types.is_dictionary(encoded.type) else encoded.dictionary_encode()
    key = hashlib.blake2b(name.encode(), key=salt, digest_size=32).digest()
    of_value = [
        None if text is None else hashlib.blake2b(text.encode(), key=key, digest_size=16).digest()
        for text in texts(encoded.dictionary)
    ]
    return pa.array(of_value, _DIGEST).take(encoded.indices)
