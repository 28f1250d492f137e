"""Keyed fingerprints of tables, and digests of files.

Each value becomes two 64-bit words under a key of its column (BLAKE2b for distinct texts, a keyed mixer for
numbers); the words of a row are added, mixed and summed over all rows modulo 2^64; a final HMAC-SHA256 covers
sums, row count and column names. The fingerprint belongs to the multiset of rows: their order, the order of
columns, chunking and dictionary encoding do not matter.

What it is good for: the owner can tell later that a release came from this table, and nobody without the key
can test a guess about the data or relate two fingerprints made with different keys. What it is not: a
commitment by the owner. The inner sums are chosen for speed, and whoever holds the key could construct two
tables with the same fingerprint; accidental changes collide with probability about 2^-128. Clarke et al.,
"Incremental multiset hash functions", ASIACRYPT 2003 (the additive construction); RFC 2104.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sfumato.core.certificate import canonical
from sfumato.core.errors import SourceError
from sfumato.core.plain_data import Plain
from sfumato.core.platforms import NO_LINK, READ

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from sfumato.wire.keys import OwnerKey

    Words = np.ndarray[tuple[int], np.dtype[np.uint64]]
    Lanes = tuple[Words, Words]

FORMAT = "sfumato-fingerprint-1"
#: Of sums that an engine computed; see `keyed_content`.
SECOND_FORMAT = "sfumato-fingerprint-2"
FORMATS = (FORMAT, SECOND_FORMAT)
_SLICE = 1 << 17  # rows mixed at a time: the intermediate words stay in the processor's cache
_MULTIPLIERS = (
    0xBF58476D1CE4E5B9,
    0x94D049BB133111EB,
)  # the finaliser of SplitMix64 (Steele, Lea, Flood 2014)


def fingerprint(table: pa.Table, key: OwnerKey | bytes) -> str:
    """The keyed fingerprint of a table in memory: `sfumato-fingerprint-1:` and 64 hexadecimal digits."""
    running = Fingerprint(table.schema.names, key)
    for batch in table.to_batches():
        running.add(batch)
    return running.finish()


class Fingerprint:
    """A fingerprint in the making, a batch of rows at a time, for tables that do not fit into memory."""

    def __init__(self, columns: Iterable[str], key: OwnerKey | bytes) -> None:
        self._key = key if isinstance(key, bytes) else key.derive("fingerprint")
        self._names = list(columns)
        self._columns = [
            _Column(self._derived(f"column {self._names[:place].count(name)} {name}")) for place, name in enumerate(self._names)
        ]
        mixing = self._derived("row")
        self._row_keys = (int.from_bytes(mixing[:8], "little"), int.from_bytes(mixing[8:16], "little"))
        self._sums = [0, 0]
        self._rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a batch that has the announced columns in the announced order."""
        import numpy as np

        if batch.schema.names != self._names:
            raise SourceError("a batch has other columns than the table it belongs to")
        for start in range(0, batch.num_rows, _SLICE):
            part = batch.slice(start, _SLICE)
            first, second = np.zeros(part.num_rows, np.uint64), np.zeros(part.num_rows, np.uint64)
            for column, array in zip(self._columns, part.columns, strict=True):
                one, two = column.lanes(array)
                first += one
                second += two
            # Without this mixing the sum over rows would not notice values exchanged between rows.
            _mix(first, self._row_keys[0])
            second ^= first
            _mix(second, self._row_keys[1])
            self._sums[0] += int(first.sum(dtype=np.uint64))
            self._sums[1] += int(second.sum(dtype=np.uint64))
            self._rows += part.num_rows

    def finish(self) -> str:
        """The fingerprint of everything added so far."""
        sums = [total % 2**64 for total in self._sums]
        content = {"format": FORMAT, "columns": sorted(self._names), "rows": self._rows, "sums": sums}
        return f"{FORMAT}:{hmac.new(self._derived('final'), canonical(content), hashlib.sha256).hexdigest()}"

    def _derived(self, purpose: str) -> bytes:
        return hmac.new(self._key, f"{FORMAT} {purpose}".encode(), hashlib.sha256).digest()


def keyed_content(content: Plain, key: OwnerKey | bytes) -> str:
    """The fingerprint in its second format: HMAC-SHA256 of a table's names, kinds, row count and sums of row digests.

    The engine that holds the rows adds up digests without a key (`engines.digests.row_digest`), and the key is used here, once:
    it reaches no engine. Without the key nobody can test a guess about the rows; an engine that computed the sums could, but it
    has the rows. It is no commitment against somebody who can choose rows: sums of digests can be met by chosen rows (Wagner, "A
    generalized birthday problem", CRYPTO 2002). The digests of published files are a commitment. Accidental changes collide
    with probability about 2^-240.
    """
    derived = key if isinstance(key, bytes) else key.derive("fingerprint")
    final = hmac.new(derived, f"{SECOND_FORMAT} final".encode(), hashlib.sha256).digest()
    return f"{SECOND_FORMAT}:{hmac.new(final, canonical({'format': SECOND_FORMAT, **content}), hashlib.sha256).hexdigest()}"


class _Column:
    """Turns the values of one column into words; remembers the last dictionary, which many batches share."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._seen: tuple[pa.Array, Lanes] | None = None

    def lanes(self, array: pa.Array) -> Lanes:
        import pyarrow as pa

        if isinstance(array, pa.DictionaryArray):
            return self._of_codes(array.indices, self._of_dictionary(array.dictionary))
        kind = array.type
        if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_floating(kind):
            return self._of_numbers(array)
        if pa.types.is_temporal(kind):
            return self._of_numbers(array)
        if pa.types.is_null(kind):
            return self._of_codes(pa.nulls(len(array), pa.int32()), self._of_texts([]))
        try:
            encoded = array.dictionary_encode()
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):  # nested values
            return self._of_codes(pa.array(range(len(array)), pa.int64()), self._of_texts(array.to_pylist()))
        return self._of_codes(encoded.indices, self._of_texts(encoded.dictionary.to_pylist()))

    def _of_dictionary(self, dictionary: pa.Array) -> Lanes:
        import numpy as np
        import pyarrow as pa

        if self._seen is not None and (self._seen[0] is dictionary or self._seen[0].equals(dictionary)):
            return self._seen[1]
        if pa.types.is_string(dictionary.type) or pa.types.is_large_string(dictionary.type):
            lanes = self._of_texts(dictionary.to_pylist())
        else:
            one, two = self.lanes(dictionary)
            missing = self._of_texts([])
            lanes = (np.append(one, missing[0]), np.append(two, missing[1]))
        self._seen = (dictionary, lanes)
        return lanes

    def _of_codes(self, indices: pa.Array, table: Lanes) -> Lanes:
        import numpy as np

        missing = len(table[0]) - 1
        codes = indices.to_numpy(zero_copy_only=False) if indices.null_count == 0 else None
        if codes is None:
            valid = indices.is_valid().to_numpy(zero_copy_only=False)
            codes = np.where(valid, indices.fill_null(0).to_numpy(zero_copy_only=False), missing)
        codes = codes.astype(np.intp, copy=False)
        return table[0].take(codes), table[1].take(codes)

    def _of_texts(self, values: list[Any]) -> Lanes:
        """Words of distinct values, and at the end those of a missing value."""
        import numpy as np

        digests = bytearray()
        for value in (*values, None):
            keyed = hashlib.blake2b(key=self._key, digest_size=16)
            keyed.update(_tagged(value))
            digests += keyed.digest()
        words = np.frombuffer(bytes(digests), dtype="<u8").astype(np.uint64).reshape(-1, 2)
        return np.ascontiguousarray(words[:, 0]), np.ascontiguousarray(words[:, 1])

    def _of_numbers(self, array: pa.Array) -> Lanes:
        import numpy as np

        family, bits = _bits(array)
        keyed = hmac.new(self._key, f"numbers {family}".encode(), hashlib.sha256).digest()
        first, second = bits.copy(), bits
        _mix(first, int.from_bytes(keyed[:8], "little"))
        _mix(second, int.from_bytes(keyed[8:16], "little"))
        first ^= np.uint64(int.from_bytes(keyed[16:24], "little"))
        _mix(first, int.from_bytes(keyed[24:], "little"))
        if array.null_count:
            absent = ~array.is_valid().to_numpy(zero_copy_only=False)
            one, two = self._of_texts([])
            first[absent], second[absent] = one[0], two[0]
        return first, second


def _bits(array: pa.Array) -> tuple[str, Words]:
    """A family name and one 64-bit word per value; equal values of one family have equal words."""
    import numpy as np
    import pyarrow as pa

    kind = array.type
    if pa.types.is_floating(kind):
        numbers = array.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0  # -0.0 is 0.0
        numbers[np.isnan(numbers)] = np.nan
        return "number", numbers.view(np.uint64)
    if pa.types.is_boolean(kind):
        return "boolean", array.cast(pa.uint8()).fill_null(0).to_numpy(zero_copy_only=False).astype(np.uint64)
    if pa.types.is_temporal(kind):
        family, array = _in_one_unit(array)
        wide = array.cast(pa.int32() if array.type.bit_width == 32 else pa.int64())
        return family, wide.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64).astype(np.uint64)
    family = "large integer" if pa.types.is_uint64(kind) else "integer"
    whole = array.fill_null(0).to_numpy(zero_copy_only=False)
    return family, whole.astype(np.int64 if family == "integer" else np.uint64).astype(np.uint64)


def _in_one_unit(array: pa.Array) -> tuple[str, pa.Array]:
    """Dates in days and times in microseconds, as engines differ in the unit; what is finer keeps its own
    unit.
    """
    import pyarrow as pa

    if pa.types.is_date(array.type):
        return "date", array.cast(pa.date32())
    if pa.types.is_timestamp(array.type):
        try:
            family = "instant" if array.type.tz else "local time"
            return family, array.cast(pa.timestamp("us", array.type.tz))
        except pa.ArrowInvalid:
            pass
    return str(array.type), array


def _mix(words: Words, key: int) -> None:
    """A keyed bijection of 64-bit words in which every bit of the input reaches every bit of the output; in
    place.
    """
    import numpy as np

    words ^= np.uint64(key)
    for shift, multiplier in zip((30, 27), _MULTIPLIERS, strict=True):
        words ^= words >> np.uint64(shift)
        words *= np.uint64(multiplier)
    words ^= words >> np.uint64(31)


def _tagged(value: Any) -> bytes:
    if value is None:
        return b"missing"
    if isinstance(value, str):
        return b"text " + value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes):
        return b"bytes " + value
    return f"{type(value).__name__} {value!r}".encode("utf-8", "surrogatepass")


@dataclass(frozen=True)
class FileDigest:
    """SHA-256 of a file and its length, as certificates list them."""

    sha256: str
    bytes: int


def sha256_file(path: str | os.PathLike[str], *, limit: int | None = None, follow_links: bool = True) -> FileDigest:
    """Digest a plain file without reading it into memory; refused when it is longer than `limit` bytes."""
    how = READ if follow_links else READ | NO_LINK
    name = os.path.basename(os.fspath(path))
    try:
        with open(os.open(path, how), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise SourceError(f"'{name}' is not a plain file")
            digest, length = hashlib.sha256(), 0
            while block := file.read(1 << 20):
                length += len(block)
                if limit is not None and length > limit:
                    raise SourceError(f"'{name}' is longer than the {limit:,} bytes allowed")
                digest.update(block)
    except OSError as error:
        raise SourceError(f"'{name}' cannot be read: {error.strerror}") from None
    return FileDigest(digest.hexdigest(), length)
