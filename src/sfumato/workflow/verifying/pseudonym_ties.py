"""Which pseudonyms tie records together, and how many different ones a class has, counted with bounded memory.

Rows arrive in batches. Each pseudonym goes with the number of its group into one of many files, chosen by a random linear
function of its characters, so that all rows of one pseudonym lie in the same file; the files are then counted one after the
other. The count is exact. The files hold published pseudonyms and numbers, and lie in a private folder that is removed.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import VerificationFailed
from sfumato.workflow.verifying.untrusted import quoted

if TYPE_CHECKING:
    import pyarrow as pa

#: The characters of a pseudonym.
PSEUDONYM = r"^[a-z2-7]{26}$"
_WIDTH = 26
_ROWS_PER_FILE = 2_000_000
_MOST_FILES = 256


@dataclass(frozen=True)
class Ties:
    """What a column of pseudonyms ties together: whether one has several records, whether one has records in several classes,
    and how many different ones, a missing one among them, each class has."""

    several_records: bool
    several_classes: bool
    units: NDArray[np.int64]

    def tying(self, unit: str | None) -> bool:
        """Whether records are tied that a promise about classes counts as unrelated: across classes where people are counted by
        the column `unit`, at all where records are."""
        return self.several_records if unit is None else self.several_classes


class PseudonymRows:
    """The pseudonyms of one column, row by row, in files of a private folder."""

    def __init__(self, name: str, rows: int, folder: Path) -> None:
        self.name = name
        count = min(_MOST_FILES, max(1, -(-rows // _ROWS_PER_FILE)))
        token = secrets.token_hex(8)
        self._paths = [folder / f"pseudonyms-{token}-{number}" for number in range(count)]
        self._files = [path.open("xb", buffering=1 << 16) for path in self._paths]
        self._kind = np.dtype([("name", f"S{_WIDTH}"), ("group", "<i8")])
        self._factors = np.frombuffer(secrets.token_bytes(8 * _WIDTH), dtype=np.uint64) | np.uint64(1)
        self._nameless: set[int] = set()

    def add(self, column: pa.ChunkedArray, groups: NDArray[np.int64]) -> None:
        """More rows: the pseudonym and the group of each."""
        import pyarrow as pa
        import pyarrow.compute as pc

        texts = column.cast(pa.string()).combine_chunks()
        valid = texts.is_valid().to_numpy(zero_copy_only=False)
        self._nameless.update(np.unique(groups[~valid]).tolist())
        present = texts.drop_null()
        if not len(present):
            return
        if not pc.all(pc.match_substring_regex(present, PSEUDONYM)).as_py():
            raise VerificationFailed(f"the column {quoted(self.name)} holds something else than pseudonyms")
        rows: NDArray[Any] = np.empty(len(present), dtype=self._kind)
        rows["name"], rows["group"] = np.array(present.to_pylist(), dtype=f"S{_WIDTH}"), groups[valid]
        letters = rows["name"].copy().view(np.uint8).reshape(-1, _WIDTH)
        with np.errstate(over="ignore"):
            mixed = letters.astype(np.uint64) @ self._factors
        place = (mixed >> np.uint64(33)) % np.uint64(len(self._files))
        for number in np.unique(place).tolist():
            self._files[number].write(rows[place == number].tobytes())

    def counted(self, class_of_group: NDArray[np.int64], classes: int) -> Ties:
        """What the rows tie together, where group g is of class `class_of_group[g]`; the files are removed."""
        units = np.zeros(classes, dtype=np.int64)
        several_records = several_classes = False
        for rows in self._contents():
            names, of_row = np.unique(rows["name"], return_inverse=True)
            several_records |= names.size < rows.size
            pairs = np.unique(of_row * classes + class_of_group[rows["group"]])
            several_classes |= names.size < pairs.size
            units += np.bincount(pairs % classes, minlength=classes)
        return Ties(several_records, several_classes, units)

    def close(self) -> None:
        """Remove what is left."""
        for file, path in zip(self._files, self._paths, strict=True):
            file.close()
            path.unlink(missing_ok=True)

    def _contents(self) -> Iterator[NDArray[Any]]:
        for file, path in zip(self._files, self._paths, strict=True):
            file.close()
            rows: NDArray[Any] = np.fromfile(path, dtype=self._kind)
            path.unlink()
            if rows.size:
                yield rows
