"""A data page holds its values and nothing else: pages of honest writers pass, and bytes behind or between values are found."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from sfumato.core.errors import VerificationFailed
from sfumato.workflow.verifying.parquet.pages import refuse_other_bytes

PLAIN, RUNS, DICTIONARY = 0, 3, 8
BOOLEAN, INT64, BYTE_ARRAY = 0, 2, 6
NAMES = pa.chunked_array([pa.array(["a", "bc", None, "a", "a"])])
NUMBERS = pa.chunked_array([pa.array([1, 2, 3])])
TRUTHS = pa.chunked_array([pa.array([True, False, True])])
HIDDEN = b"Ada Lovelace;HIV"
#: Levels of five values of which the third is missing: packed bits with their length before them.
LEVELS = (2).to_bytes(4, "little") + bytes([3, 0b11011])
#: Places in a dictionary of two entries: one bit each, four of them packed.
PLACES = bytes([1, 3, 0b0010])


def plain(*texts: str) -> bytes:
    return b"".join(len(text).to_bytes(4, "little") + text.encode() for text in texts)


HONEST: dict[str, tuple[bytes, int, pa.ChunkedArray, int, bool]] = {
    "texts": (LEVELS + plain("a", "bc", "a", "a"), PLAIN, NAMES, BYTE_ARRAY, True),
    "places": (LEVELS + PLACES, DICTIONARY, NAMES, BYTE_ARRAY, True),
    "places of one entry": (LEVELS + bytes([0, 8]), DICTIONARY, NAMES, BYTE_ARRAY, True),
    "repeated places": (LEVELS + bytes([1, 2, 0, 6, 1]), DICTIONARY, NAMES, BYTE_ARRAY, True),
    "numbers": (np.arange(1, 4, dtype="<i8").tobytes(), PLAIN, NUMBERS, INT64, False),
    "truths": (bytes([0b101]), PLAIN, TRUTHS, BOOLEAN, False),
    "runs of truths": ((2).to_bytes(4, "little") + bytes([3, 0b101]), RUNS, TRUTHS, BOOLEAN, False),
}


def check(page: bytes, name: str) -> None:
    _, encoding, values, physical, optional = HONEST[name]
    refuse_other_bytes(page, encoding, values, physical, optional=optional)


@pytest.mark.parametrize("name", HONEST)
def test_a_page_ends_with_its_last_value(name: str) -> None:
    page = HONEST[name][0]
    check(page, name)
    for other in (page + HIDDEN, page + b"\0", page[:-1]):
        with pytest.raises(VerificationFailed):
            check(other, name)


FORGED: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "a run of nothing": ("places", lambda page: page[:-2] + bytes([0, 65]) + page[-2:]),
    "a long form of a short number": ("places", lambda page: page[:-2] + bytes([0x83, 0]) + page[-1:]),
    "bits behind the last place": ("places", lambda page: page[:-1] + bytes([0b10010010])),
    "bits behind the last truth": ("truths", lambda page: bytes([page[0] | 0x40])),
    "text in groups that no value needs": ("places", lambda page: page[:-2] + bytes([5, page[-1], 65])),
    "hundreds of groups that no value needs": ("places", lambda page: page[:-2] + bytes([0xA1, 1, page[-1]]) + bytes(79)),
    "bits above a repeated place": ("repeated places", lambda page: page[:-1] + bytes([0x41])),
    "text behind the levels": ("texts", lambda page: (18).to_bytes(4, "little") + page[4:6] + HIDDEN + page[6:]),
    "runs beyond the page": ("runs of truths", lambda page: (200).to_bytes(4, "little") + page[4:]),
    "places of a hundred bits": ("places", lambda page: page[:6] + bytes([100]) + page[7:]),
    "another encoding": ("places", lambda page: b""),
}


@pytest.mark.parametrize("name", FORGED)
def test_bytes_between_values_are_found(name: str) -> None:
    base, forged = FORGED[name]
    with pytest.raises(VerificationFailed):
        check(forged(HONEST[base][0]), base)


def test_encodings_that_no_writer_of_releases_uses_are_refused() -> None:
    with pytest.raises(VerificationFailed):
        refuse_other_bytes(b"", 5, NUMBERS, INT64, optional=False)
