"""A mix cascade (PBD-12): what the observer and each mix see, and what they can conclude."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import pytest

from sfumato.core.errors import InputError, ParameterError
from sfumato.core.randomness import StreamRandomness
from sfumato.measures.risk.uniques.mix_anonymity import narrowed, sender_belief
from sfumato.wire.mix import Cascade, Delivery, Recipient, read_letter
from sfumato.wire.sealing import OVERHEAD, SealingKey

ANN, BEN = SealingKey.generate(StreamRandomness(1)), SealingKey.generate(StreamRandomness(2))
TO_ANN, TO_BEN = Recipient("ann", ANN.public), Recipient("ben", BEN.public)


def delivered(cascade: Cascade, senders: str) -> Delivery:
    for place, sender in enumerate(senders):
        recipient = TO_ANN if place % 2 else TO_BEN
        message = f"message {place} of {sender}".encode() * (1 + place)
        cascade.hand_in(sender, cascade.route.packet(message, recipient))
    return cascade.run()


def test_every_message_arrives_once() -> None:
    delivery = delivered(Cascade(mixes=3, threshold=6), "abcdef")
    keys = {"ann": ANN, "ben": BEN}
    texts = [read_letter(keys[name], letter) for name, letter in zip(delivery.observer.recipients, delivery.letters, strict=True)]
    assert sorted(texts) == sorted(f"message {i} of {s}".encode() * (1 + i) for i, s in enumerate("abcdef"))
    assert Counter(delivery.observer.recipients) == {"ann": 3, "ben": 3}


def test_the_observer_sees_no_text_and_nothing_that_links_in_with_out() -> None:
    observer = delivered(Cascade(mixes=3, threshold=8), "abcdefgh").observer
    packets = [packet for link in observer.links for packet in link]
    assert all(b"message" not in packet for packet in packets)
    assert all(b"ann" not in packet and b"ben" not in packet for link in observer.links[:-1] for packet in link)
    # No sixteen bytes of a packet occur anywhere in a packet of another link.
    windows = [{packet[at : at + 16] for packet in link for at in range(len(packet) - 15)} for link in observer.links]
    for (one, left), (other, right) in itertools.combinations(enumerate(windows), 2):
        names = {window for window in left & right if window.strip(b"\0") == b""}
        assert left & right == names, f"links {one} and {other} share bytes"


def test_all_packets_of_all_links_have_the_same_length() -> None:
    cascade = Cascade(mixes=4, threshold=5, body_bytes=300)
    observer = delivered(cascade, "abcde").observer
    assert {len(packet) for link in observer.links[:-1] for packet in link} == {cascade.route.packet_bytes}
    assert {len(letter) for letter in observer.links[-1]} == {cascade.route.letter_bytes}


def test_each_mix_sees_its_own_packets_only() -> None:
    delivery = delivered(Cascade(mixes=3, threshold=4), "abcd")
    for view, before, after in zip(delivery.mixes, delivery.observer.links, delivery.observer.links[1:], strict=False):
        assert view.arrived == before and view.departed == after
        assert set(vars(view)) == {"position", "arrived", "departed", "order"}
    for text in (repr(delivery), repr(delivery.mixes[0])):
        assert "\\x" not in text and "order" not in text


def test_a_packet_is_worked_on_once_even_with_another_tail() -> None:
    cascade = Cascade(mixes=2, threshold=2)
    packet = cascade.route.packet(b"x", TO_ANN)
    cascade.hand_in("a", packet)
    with pytest.raises(InputError, match="came before"):
        cascade.hand_in("b", packet)
    cascade.hand_in("b", cascade.route.packet(b"y", TO_ANN))
    delivery = cascade.run()
    with pytest.raises(InputError, match="came before"):
        cascade.hand_in("a", packet)
    on_the_way = delivery.observer.links[1][0]
    with pytest.raises(InputError, match="came before"):
        cascade._mixes[1].accept(on_the_way[:-OVERHEAD] + bytes(OVERHEAD))


def test_damaged_short_and_foreign_packets_are_refused_and_do_not_count() -> None:
    cascade, other = Cascade(mixes=2, threshold=2), Cascade(mixes=2, threshold=2)
    packet = cascade.route.packet(b"x", TO_ANN)
    for wrong in (packet[:-1], packet + b"\0", bytes(len(packet)), packet[:-1] + bytes([packet[-1] ^ 1])):
        with pytest.raises(InputError):
            cascade.hand_in("a", wrong)
    with pytest.raises(InputError, match="cannot be opened"):
        cascade.hand_in("a", other.route.packet(b"x", TO_ANN))
    cascade.hand_in("a", packet)
    with pytest.raises(InputError, match="only 1 of 2"):
        cascade.run()


def test_limits_are_checked() -> None:
    cascade = Cascade(mixes=1, threshold=2, body_bytes=10)
    with pytest.raises(InputError, match="at most 10"):
        cascade.route.packet(b"x" * 11, TO_ANN)
    for name in ("", "x" * 33, "a\0b"):
        with pytest.raises(ParameterError):
            cascade.route.packet(b"x", Recipient(name, ANN.public))
    for wrong in ({"mixes": 0}, {"threshold": 1}, {"body_bytes": 0}):
        with pytest.raises(ParameterError):
            Cascade(**wrong)


def test_a_seed_reproduces_the_order_and_another_changes_it() -> None:
    orders = [
        [view.order for view in delivered(Cascade(2, 8, randomness=StreamRandomness(seed)), "abcdefgh").mixes]
        for seed in (1, 1, 2)
    ]
    assert orders[0] == orders[1] != orders[2]


def test_every_order_of_a_batch_is_equally_frequent() -> None:
    """600 rounds of 3 packets, 6 orders: chi-square with 5 degrees of freedom; 40 is passed with chance
    1.5e-7.
    """
    from sfumato.wire.mix import Mix, Route

    mix = Mix(0, 1, 3, 1, StreamRandomness("orders"))
    route, counts = Route((mix.public,), 1), Counter()
    for _ in range(600):
        for _ in range(3):
            mix.accept(route.packet(b"", TO_ANN))
        counts[mix.flush().order] += 1
    assert len(counts) == 6 and sum((count - 100) ** 2 / 100 for count in counts.values()) < 40


def test_one_honest_mix_leaves_the_whole_batch_as_anonymity_set() -> None:
    delivery = delivered(Cascade(mixes=3, threshold=4), "abcd")
    for honest in range(3):
        colluding = [view for view in delivery.mixes if view.position != honest]
        assert sender_belief(delivery.observer, 0, colluding=colluding) == dict.fromkeys("abcd", 0.25)


def test_without_an_honest_mix_the_sender_is_known() -> None:
    delivery = delivered(Cascade(mixes=3, threshold=6), "abcdef")
    keys = {"ann": ANN, "ben": BEN}
    for place, name in enumerate(delivery.observer.recipients):
        belief = sender_belief(delivery.observer, place, colluding=delivery.mixes)
        [sender] = [sender for sender, chance in belief.items() if chance == 1.0]
        assert read_letter(keys[name], delivery.letters[place]).endswith(f"of {sender}".encode())


def test_who_sends_more_is_likelier_and_own_packets_do_not_hide_others() -> None:
    observer = delivered(Cascade(mixes=2, threshold=4), "aaab").observer
    assert sender_belief(observer, 0) == {"a": 0.75, "b": 0.25}
    flooded = delivered(Cascade(mixes=2, threshold=4), "vxxx").observer
    assert sender_belief(flooded, 0, own_packets=[1, 2, 3]) == {"v": 1.0, "x": 0.0}
    with pytest.raises(InputError):
        sender_belief(flooded, 0, own_packets=range(4))
    with pytest.raises(InputError):
        sender_belief(flooded, 4)


def test_rounds_narrow_the_belief_by_intersection() -> None:
    rounds = [
        sender_belief(delivered(Cascade(mixes=1, threshold=4), senders).observer, 0) for senders in ("abcd", "abef", "aghh")
    ]
    assert narrowed(rounds[:1]) == dict.fromkeys("abcd", 0.25)
    two = narrowed(rounds[:2])
    assert two["a"] == two["b"] == 0.5 and math.isclose(sum(two.values()), 1)
    assert narrowed(rounds)["a"] == 1.0
    with pytest.raises(InputError, match="do not come from one sender"):
        narrowed([{"a": 1.0}, {"b": 1.0}])
    with pytest.raises(InputError):
        narrowed([])
