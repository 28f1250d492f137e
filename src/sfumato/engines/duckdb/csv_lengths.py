"""Lines with a separator too many at their end: DuckDB reads them as if it were not there, and the reader of this process refuses
them. They are looked for before DuckDB is asked, so that both refuse the same lines.

Bytes are counted line by line, which settles every line outside quotes. Where a cell in quotes could hide one, whoever asked
looks at the cells.
"""

from __future__ import annotations

import numpy as np

#: Faulty lines that are remembered, to be named.
MOST_NAMED = 100


class LineLengths:
    """The lines of a file, seen block by block, that end with a separator and have more cells than there are names."""

    def __init__(self, separator: str, columns: int) -> None:
        self._mark, self._columns = ord(separator), columns
        self._rest: list[bytes] = []
        self._lines = 0
        #: Number and cells of faulty lines, and how many there are; certain where the file has no quote.
        self.faulty: list[tuple[int | None, int]] = []
        self.count = 0
        #: Whether a line in question has a quote, so that its cells are to be looked at.
        self.in_doubt = False

    def look(self, block: bytes) -> None:
        """Take the next bytes of the file."""
        end = (block.rfind(b"\n") + 1) or (block.rfind(b"\r") + 1)  # a pair of both stays together
        if not end:
            self._rest.append(block)
            return
        self._whole_lines(b"".join([*self._rest, block[:end]]))
        self._rest = [block[end:]]

    def finish(self) -> None:
        """The last line may have no end."""
        self._whole_lines(b"".join(self._rest))
        self._rest = []

    def _whole_lines(self, content: bytes) -> None:
        returns = b"\r" in content
        if returns:
            content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        mark = bytes([self._mark])
        if content.find(mark + b"\n") < 0 and not content.endswith(mark):
            self._lines += content.count(b"\n")
            return
        values = np.frombuffer(content, dtype=np.uint8)
        ends = np.flatnonzero(values == 10)
        if not content.endswith(b"\n"):
            ends = np.append(ends, len(values))
        last = ends[ends > 0]
        candidates = last[values[last - 1] == self._mark]
        marks, quotes = (np.flatnonzero(values == byte) for byte in (self._mark, ord('"')))
        places = np.searchsorted(ends, candidates)
        starts = np.where(places > 0, ends[places - 1] + 1, 0)
        cells = np.searchsorted(marks, candidates) - np.searchsorted(marks, starts) + 1
        quoted = np.searchsorted(quotes, candidates) - np.searchsorted(quotes, starts)
        too_many = cells > self._columns
        self.in_doubt = self.in_doubt or bool((quoted[too_many] > 0).any() or (quoted % 2).any())
        self.count += int(too_many.sum())
        for place, number in zip(places[too_many][:MOST_NAMED].tolist(), cells[too_many].tolist(), strict=False):
            if len(self.faulty) < MOST_NAMED:
                self.faulty.append((self._lines + place + 1, number))
        self._lines += content.count(b"\n")
