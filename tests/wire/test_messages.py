"""Signatures, sealed messages and frames: what was changed, cut or made for another purpose is refused."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import InputError
from sfumato.core.randomness import StreamRandomness
from sfumato.wire.frames import FRAME_LIMIT, FrameReader, joined, packed, split
from sfumato.wire.sealing import OVERHEAD, SealingKey, open_sealed, seal
from sfumato.wire.signatures import SigningKey, VerifyingKey, framed

SIGNING, SEALING = SigningKey.generate(), SealingKey.generate()


@given(st.binary(max_size=200), st.integers(0, 10**6))
def test_a_signature_fits_its_message_alone(message: bytes, place: int) -> None:
    signature = SIGNING.sign(message, context="certificate")
    assert SIGNING.public.verifies(message, signature, context="certificate")
    assert not SIGNING.public.verifies(message, signature, context="head")
    assert not SIGNING.public.verifies(message + b"x", signature, context="certificate")
    changed = bytearray(signature)
    changed[place % 64] ^= 1 << (place % 8)
    assert not SIGNING.public.verifies(message, bytes(changed), context="certificate")
    assert not SigningKey.generate().public.verifies(message, signature, context="certificate")


def test_a_broken_signature_is_false_and_no_crash() -> None:
    for signature in (b"", b"x", b"\0" * 64, b"\xff" * 65):
        assert not SIGNING.public.verifies(b"m", signature, context="c")
    assert not VerifyingKey(b"\xff" * 32).verifies(b"m", SIGNING.sign(b"m", context="c"), context="c")


def test_context_and_message_cannot_run_into_each_other() -> None:
    assert framed(b"bc", "a") != framed(b"c", "ab")
    with pytest.raises(InputError):
        framed(b"m", "")


def test_a_public_key_survives_being_printed() -> None:
    public = SIGNING.public
    assert VerifyingKey.parse(str(public)) == public and "BEGIN PUBLIC KEY" in public.pem()
    assert public.identity.replace("-", "") == hashlib.sha256(public.raw).hexdigest()  # all 256 bits
    for wrong in ("", "ed25519:", "ed25519:AAAA", "rsa:AAAA", "ed25519:" + "é" * 44, str(public) + "!"):
        with pytest.raises(InputError):
            VerifyingKey.parse(wrong)


@given(st.binary(max_size=200), st.binary(max_size=20))
def test_a_sealed_message_opens_for_its_key_and_context_alone(message: bytes, context: bytes) -> None:
    sealed = seal(SEALING.public, message, context=context)
    assert len(sealed) == len(message) + OVERHEAD and open_sealed(SEALING, sealed, context=context) == message
    assert seal(SEALING.public, message, context=context) != sealed
    for key, other in ((SealingKey.generate(), context), (SEALING, context + b"x")):
        with pytest.raises(InputError, match="cannot be opened"):
            open_sealed(key, sealed, context=other)


def test_every_changed_bit_is_noticed() -> None:
    sealed = seal(SEALING.public, b"hello")
    for place in range(len(sealed) * 8):
        # The highest bit of an X25519 key is ignored when agreeing, but it enters the derived key.
        changed = bytearray(sealed)
        changed[place // 8] ^= 1 << (place % 8)
        with pytest.raises(InputError):
            open_sealed(SEALING, bytes(changed))
    for cut in range(len(sealed)):
        with pytest.raises(InputError):
            open_sealed(SEALING, sealed[:cut])


def test_unusable_keys_are_refused() -> None:
    for public in (b"", b"\0" * 32, b"\1" + b"\0" * 31, b"x" * 33):
        with pytest.raises(InputError, match="not a usable"):
            seal(public, b"m")


def test_a_seed_reproduces_a_sealed_message() -> None:
    one, other = (seal(SEALING.public, b"m", randomness=StreamRandomness(5)) for _ in range(2))
    assert one == other


@given(st.lists(st.binary(max_size=50), max_size=10), st.integers(1, 7))
def test_frames_come_back_whatever_the_pieces(payloads: list[bytes], piece: int) -> None:
    stream = joined(payloads)
    reader, found = FrameReader(), []
    for start in range(0, len(stream), piece):
        found += reader.feed(stream[start : start + piece])
    reader.finish()
    assert found == payloads == split(stream)


@given(st.binary(max_size=100))
def test_arbitrary_bytes_are_frames_or_refused(stream: bytes) -> None:
    try:
        frames = split(stream, limit=20)
    except InputError:
        return
    assert joined(frames, limit=20) == stream


def test_a_frame_that_announces_too_much_is_refused_before_it_arrives() -> None:
    reader = FrameReader(limit=100)
    with pytest.raises(InputError, match="announces"):
        reader.feed((101).to_bytes(4, "big"))
    with pytest.raises(InputError, match="refused before"):
        reader.feed(b"")
    with pytest.raises(InputError):
        packed(b"x" * (FRAME_LIMIT + 1))


def test_too_many_and_unfinished_frames_are_refused() -> None:
    with pytest.raises(InputError, match="more than"):
        split(joined([b""] * 11), count_limit=10)
    with pytest.raises(InputError, match="middle"):
        split(packed(b"abc")[:-1])
