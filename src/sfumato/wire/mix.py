"""A cascade of mixes: messages go in with their senders in view and come out so that nobody can say which was
whose.

A sender seals the message for the recipient and then once for each mix, last mix first. Each mix takes off
one layer, waits until
`threshold` messages lie before it, and passes them on in a secret random order, padded to the same length
again; a packet that came before is refused. As long as one mix of the cascade is honest, input and output of
the batch cannot be related. Chaum, "Untraceable electronic mail, return addresses, and digital pseudonyms",
CACM 1981.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from sfumato.core.errors import InputError, ParameterError
from sfumato.core.randomness import Randomness, SystemRandomness, permutation
from sfumato.wire.sealing import OVERHEAD, SealingKey, open_sealed, seal

NAME_BYTES = 32
_LENGTH_BYTES = 4


@dataclass(frozen=True)
class Route:
    """What a sender needs to know: the mixes' public keys in order, and the room for a message.

    All packets of a route have the same length on every link, whatever they carry.
    """

    keys: tuple[bytes, ...]
    body_bytes: int

    @property
    def letter_bytes(self) -> int:
        """Length of what leaves the last mix: recipient's name and sealed body."""
        return NAME_BYTES + _LENGTH_BYTES + self.body_bytes + OVERHEAD

    @property
    def packet_bytes(self) -> int:
        """Length of every packet on the way."""
        return self.letter_bytes + OVERHEAD * len(self.keys)

    def packet(self, message: bytes, recipient: Recipient, randomness: Randomness | None = None) -> bytes:
        """Wrap a message: sealed for the recipient, then for each mix from the last to the first."""
        if len(message) > self.body_bytes:
            raise InputError(f"a message of this route has at most {self.body_bytes:,} bytes; split it")
        body = len(message).to_bytes(_LENGTH_BYTES, "big") + message.ljust(self.body_bytes, b"\0")
        wrapped = recipient.label + seal(recipient.public, body, context=b"letter", randomness=randomness)
        for position in reversed(range(len(self.keys))):
            wrapped = seal(self.keys[position], wrapped, context=_layer(position), randomness=randomness)
        return wrapped


@dataclass(frozen=True)
class Recipient:
    """A name, which the last mix sees, and the key to which messages are sealed, which it cannot open."""

    name: str
    public: bytes

    @property
    def label(self) -> bytes:
        """The name in a field of fixed length."""
        name = self.name.encode()
        if not 0 < len(name) <= NAME_BYTES or b"\0" in name:
            raise ParameterError(f"a recipient's name has 1 to {NAME_BYTES} bytes")
        return name.ljust(NAME_BYTES, b"\0")


@dataclass(frozen=True)
class MixView:
    """Everything one mix has seen of one batch; packet j out was packet `order[j]` in."""

    position: int
    arrived: tuple[bytes, ...] = field(repr=False)
    departed: tuple[bytes, ...] = field(repr=False)
    order: tuple[int, ...] = field(repr=False)


@dataclass(frozen=True)
class ObserverView:
    """What somebody sees who watches every wire and no mix: who hands in, all packets on all links, who
    receives.

    `links[0]` lies in the order of `senders`, `links[-1]` in the order of `recipients`.
    """

    senders: tuple[str, ...]
    links: tuple[tuple[bytes, ...], ...] = field(repr=False)
    recipients: tuple[str, ...]


class Mix:
    """One mix: its own key, its own memory, its own randomness. It knows its place in the cascade and nothing
    else.
    """

    def __init__(self, position: int, mixes: int, threshold: int, body_bytes: int, randomness: Randomness | None = None) -> None:
        if threshold < 2 or not 0 <= position < mixes or body_bytes < 1:
            raise ParameterError("a mix needs a batch of at least 2, a place in its cascade and room for a message")
        self._randomness = randomness or SystemRandomness()
        self._key = SealingKey.generate(self._randomness)
        self._position = position
        self._threshold = threshold
        self._packet_bytes = Route((b"",) * mixes, body_bytes).packet_bytes
        self._last = position == mixes - 1
        self._pool: list[tuple[bytes, bytes]] = []
        self._seen: set[bytes] = set()  # for as long as the key lives: a packet is never worked on twice

    @property
    def public(self) -> bytes:
        """The key to which senders seal."""
        return self._key.public

    @property
    def waiting(self) -> int:
        """How many packets lie in the mix."""
        return len(self._pool)

    @property
    def ready(self) -> bool:
        """True when the batch is large enough to go out."""
        return self.waiting >= self._threshold

    def accept(self, packet: bytes) -> None:
        """Take a packet in and off its layer; refused when it has another length, came before or does not
        open.
        """
        if len(packet) != self._packet_bytes:
            raise InputError("the packet has another length than those of this cascade")
        sealed = packet[: self._packet_bytes - OVERHEAD * self._position]
        # Padding behind the sealed part is not authenticated and therefore no part of what counts as the same
        # packet.
        mark = hashlib.sha256(sealed).digest()
        if mark in self._seen:
            raise InputError("the packet came before: sending one again would show where it comes out")
        inner = open_sealed(self._key, sealed, context=_layer(self._position))
        self._seen.add(mark)
        self._pool.append((packet, inner))

    def flush(self) -> MixView:
        """Send the batch out in a secret order; refused as long as it is smaller than the threshold."""
        if not self.ready:
            raise InputError(f"only {self.waiting} of {self._threshold} packets are there; a smaller batch would hide less")
        order = tuple(int(place) for place in permutation(self._randomness, self.waiting))
        departed = tuple(self._padded(self._pool[place][1]) for place in order)
        view = MixView(self._position, tuple(packet for packet, _ in self._pool), departed, order)
        self._pool.clear()
        return view

    def _padded(self, inner: bytes) -> bytes:
        return inner if self._last else inner + self._randomness.bytes(self._packet_bytes - len(inner))


@dataclass(frozen=True)
class Delivery:
    """A round of a cascade: what the outside saw and what each mix saw, kept apart."""

    observer: ObserverView
    mixes: tuple[MixView, ...]

    @property
    def letters(self) -> tuple[bytes, ...]:
        """What the last mix handed out, in its order."""
        return self.observer.links[-1]


class Cascade:
    """Mixes in a fixed order, run in one process for demonstration; each has its own key and sees only its
    own packets.

    >>> cascade, ann = Cascade(mixes=3, threshold=2), SealingKey.generate()
    >>> for sender, text in (("bob", b"yes"), ("carla", b"no")):
    ...     cascade.hand_in(sender, cascade.route.packet(text, Recipient("ann", ann.public)))
    >>> sorted(read_letter(ann, letter) for letter in cascade.run().letters)
    [b'no', b'yes']
    """

    def __init__(self, mixes: int = 3, threshold: int = 8, body_bytes: int = 256, randomness: Randomness | None = None) -> None:
        if mixes < 1:
            raise ParameterError("a cascade has at least one mix")
        self._mixes = [Mix(position, mixes, threshold, body_bytes, randomness) for position in range(mixes)]
        self.route = Route(tuple(mix.public for mix in self._mixes), body_bytes)
        self._senders: list[str] = []
        self._arrived: list[bytes] = []

    def hand_in(self, sender: str, packet: bytes) -> None:
        """A sender hands a packet to the first mix, in full view of the observer."""
        self._mixes[0].accept(packet)
        self._senders.append(sender)
        self._arrived.append(packet)

    def run(self) -> Delivery:
        """Pass the batch through all mixes; refused as long as the first one waits for more."""
        views = [self._mixes[0].flush()]
        for mix in self._mixes[1:]:
            for packet in views[-1].departed:
                mix.accept(packet)
            views.append(mix.flush())
        links = (tuple(self._arrived), *(view.departed for view in views))
        recipients = tuple(recipient_of(letter) for letter in links[-1])
        observer = ObserverView(tuple(self._senders), links, recipients)
        self._senders.clear()
        self._arrived.clear()
        return Delivery(observer, tuple(views))


def recipient_of(letter: bytes) -> str:
    """The name on a letter."""
    return letter[:NAME_BYTES].rstrip(b"\0").decode(errors="replace")


def read_letter(key: SealingKey, letter: bytes) -> bytes:
    """The message in a letter, for its recipient."""
    body = open_sealed(key, letter[NAME_BYTES:], context=b"letter")
    length = int.from_bytes(body[:_LENGTH_BYTES], "big")
    if length > len(body) - _LENGTH_BYTES:
        raise InputError("the letter is damaged")
    return body[_LENGTH_BYTES : _LENGTH_BYTES + length]


def _layer(position: int) -> bytes:
    return b"mix %d" % position
