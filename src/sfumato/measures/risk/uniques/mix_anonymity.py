"""Who may have sent a message that left a cascade: the adversary's belief, from what the adversary can see.

One honest mix makes every order of a batch equally likely, so the belief is uniform over the packets handed
in, less those the adversary sent; without an honest mix it is certainty. Over several rounds, messages known
to come from one sender narrow the belief by intersection. The result is a probability for each sender, to be
measured as an anonymity set (size, entropy, effective size).
Serjantov, Danezis, "Towards an information theoretic metric for anonymity", PET 2002;
Berthold, Pfitzmann, Standtke, "The disadvantages of free MIX routes and how to overcome them", PET 2000
(intersection).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from sfumato.core.errors import InputError
from sfumato.wire.mix import MixView, ObserverView

Belief = dict[str, float]


def sender_belief(
    view: ObserverView,
    letter: int,
    *,
    colluding: Collection[MixView] = (),
    own_packets: Collection[int] = (),
) -> Belief:
    """Probability of each sender for the letter at a place of the last link.

    `colluding`: views of mixes that work with the adversary. `own_packets`: places on the first link of
    packets the adversary handed in and will recognise, as in a flooding attack; the letter in question is
    none of them.
    """
    if not 0 <= letter < len(view.links[-1]):
        raise InputError(f"there is no letter {letter} in a batch of {len(view.links[-1])}")
    traced = _traced(view, letter, colluding)
    if traced is not None:
        return {name: float(name == view.senders[traced]) for name in dict.fromkeys(view.senders)}
    counted = [name for place, name in enumerate(view.senders) if place not in set(own_packets)]
    if not counted:
        raise InputError("the adversary sent every packet of this batch; there is nobody to look for")
    return {name: counted.count(name) / len(counted) for name in dict.fromkeys(view.senders)}


def narrowed(rounds: Sequence[Mapping[str, float]]) -> Belief:
    """Belief about one sender who is known to have sent a message in each round: the product, scaled to one.

    Before the first round every sender who ever appears is equally likely; who is absent from a round is
    ruled out.
    """
    if not rounds:
        raise InputError("at least one round is needed")
    names = dict.fromkeys(name for belief in rounds for name in belief)
    joint = {name: math.prod(belief.get(name, 0.0) for belief in rounds) for name in names}
    total = math.fsum(joint.values())
    if total <= 0:
        raise InputError("no sender took part in all these rounds: the messages do not come from one sender")
    return {name: value / total for name, value in joint.items()}


def _traced(view: ObserverView, letter: int, colluding: Collection[MixView]) -> int | None:
    """The place on the first link, when the colluding mixes together know the whole way back."""
    orders = {mix.position: mix.order for mix in colluding}
    place = letter
    for position in reversed(range(len(view.links) - 1)):
        if position not in orders:
            return None
        place = orders[position][place]
    return place
