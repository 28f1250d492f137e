"""The byte source after a fork: no process repeats what another one draws."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from sfumato.core.randomness import StreamRandomness
from sfumato.kernels.sampling.draws import Draws

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def in_a_fork(draw: Callable[[], bytes]) -> bytes:
    """What `draw` returns in a forked child."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writing, draw())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        drawn = pipe.read()
    os.waitpid(child, 0)
    return drawn


@pytest.mark.parametrize("seed", [None, 7, "text"])
def test_parent_and_children_draw_different_bytes(seed: int | str | None) -> None:
    stream = StreamRandomness(seed)
    stream.bytes(5)
    children = [in_a_fork(lambda: stream.bytes(32)) for _ in range(3)]
    grandchild = in_a_fork(lambda: in_a_fork(lambda: stream.bytes(32)))
    drawn = [*children, grandchild, stream.bytes(32)]
    assert [len(each) for each in drawn] == [32] * 5
    assert len(set(drawn)) == 5


def test_a_fork_does_not_disturb_the_stream_of_its_parent() -> None:
    apart, alone = StreamRandomness(7), StreamRandomness(7)
    apart.bytes(5), alone.bytes(5)
    in_a_fork(lambda: apart.bytes(32))
    assert apart.bytes(32) == alone.bytes(32)


def test_a_seeded_program_draws_the_same_in_its_children_each_time() -> None:
    def program() -> bytes:
        stream = StreamRandomness(7)
        return in_a_fork(lambda: stream.bytes(16)) + in_a_fork(lambda: stream.bytes(16)) + stream.bytes(16)

    first, second = in_a_fork(program), in_a_fork(program)
    assert len(first) == 48 and first == second


def test_draws_of_masks_differ_after_a_fork() -> None:
    draws = Draws(StreamRandomness(7))
    assert in_a_fork(lambda: draws.key().encode()) != draws.key().encode()
