"""A question answered from what was measured before, or measured, charged and kept.

Whoever asks for measurements that the ledger holds, with the same noise or more, is shown those, at no cost and with
their own margins; naming, ordering and computing with them is post-processing of what was released. What is kept was
released: numbers after noise, and of discovered groups only those that passed the threshold. Few numbers are kept as they
are, many as packed integers.
"""

from __future__ import annotations

import base64
import datetime
import zlib
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.core.declared import build, parameters
from sfumato.core.errors import LedgerError
from sfumato.core.guarantees import loss as losses
from sfumato.core.guarantees.loss import LossGuarantee
from sfumato.core.plain_data import Plain, PlainDict
from sfumato.core.randomness import Randomness
from sfumato.data.publication import NOTHING_SAID, Publication
from sfumato.dp.algorithms.count_tree import CountTree, consistent_tree, level_sizes, node_deviation
from sfumato.dp.book import Book, drawn
from sfumato.dp.sql.asking.answer import AnswerTable, QueryAnswer, put_together
from sfumato.dp.sql.asking.identity import Identity, identify, result_digest
from sfumato.dp.sql.measuring.measurement import BRANCHING
from sfumato.dp.sql.measuring.noise import Noise, Price
from sfumato.dp.sql.measuring.one_pass import one_pass
from sfumato.dp.sql.measuring.one_query import Group, Measured, Runner, declared_groups, in_order, measure
from sfumato.dp.sql.question import Question
from sfumato.ledger.accounts import Charge, StoredAnswer

FORMAT = "sfumato-measured-1"
#: What the digest of a batch begins with, and what is kept of one: its parts, each by its question, as it would be kept alone.
BATCH = "batch"
BATCH_FORMAT = "sfumato-batch-1"
#: So many numbers are written out, for people to read; more are packed.
WRITTEN_OUT = 64
_WIDTHS = ("<i1", "<i2", "<i4", "<i8")
_LOSSES: Mapping[str, type[LossGuarantee]] = {
    kind.__name__: kind for kind in (losses.PureDP, losses.ApproxDP, losses.ConcentratedDP)
}


@dataclass(frozen=True)
class Asker:
    """Who asks whose data through which book: an analyst, a dataset in one version, and the source of noise."""

    book: Book
    dataset: str
    analyst: str
    version: str
    seed: int | str | None
    source: Randomness
    not_covered: tuple[str, ...] = ()
    publication: Publication = NOTHING_SAID

    def answer(self, question: Question, priced: Price) -> QueryAnswer:
        """What was measured before where that suffices; otherwise reserve, draw, measure, commit."""
        identity = identify(question, priced, self.version, self.seed)
        earlier = self.earlier(identity, question, priced)
        if earlier is not None:
            return earlier
        reservation = self.book.reserve(self.dataset, self.analyst, Charge.of(priced.loss), identity.question)
        if reservation.answer is not None:
            return self.surely(reservation.answer, identity, question, priced)
        together = one_pass([(question, priced)]) if len(question.measurements) > 1 else nullcontext()
        with drawn(self.book, reservation), together as runner:
            answer, kept = self.measured(identity, question, priced, runner)
        stored = self.book.commit(reservation, kept)
        if stored.value == kept:
            return self.answered(question, priced, answer, stored, repeated=False)
        # Somebody else asked the same at the same time and was faster: a question has one answer.
        return self.surely(stored, identity, question, priced)

    def earlier(self, identity: Identity, question: Question, priced: Price) -> QueryAnswer | None:
        """The first answer, alone or in a batch, whose measurements suffice."""
        alone = self.book.stored(self.dataset, self.analyst, f"{identity.context}:")
        batches = self.book.stored(self.dataset, self.analyst, f"{BATCH}:")
        for stored in _in_time(alone, batches, identity.context) if batches else alone:
            earlier = self.shown_again(stored, identity, question, priced)
            if earlier is not None:
                return earlier
        return None

    def measured(
        self, identity: Identity, question: Question, priced: Price, runner: Runner | None
    ) -> tuple[AnswerTable, PlainDict]:
        """The answer, and what is kept of it: its budget is reserved and drawn. `runner` answers its plans."""
        measured = measure(question, priced, self.source, runner)
        answer = put_together(question, priced, measured)
        if identity.as_shown:
            return answer, answer.to_mapping()
        return answer, to_mapping(identity, question, priced, measured, result_digest(answer.table()))

    def answered(
        self, question: Question, price: Price, answer: AnswerTable, stored: StoredAnswer, *, repeated: bool
    ) -> QueryAnswer:
        """The answer with where it is entered."""
        entry = stored.entry or None
        return QueryAnswer(
            answer, question, price, self.dataset, self.source, entry, repeated, self.not_covered, self.publication
        )

    def shown_again(self, stored: StoredAnswer, identity: Identity, question: Question, priced: Price) -> QueryAnswer | None:
        """The answer made of what is stored; None where that does not suffice."""
        if identity.as_shown:
            return self.answered(question, priced, AnswerTable.from_mapping(stored.value), stored, repeated=True)
        earlier = restored(stored.value, identity, question, priced)
        if earlier is None:
            return None
        price, measured = earlier
        answer = put_together(question, price, measured)
        shown = result_digest(answer.table())
        if shown != stored.value.get("sha256"):
            self.book.show(self.dataset, stored.entry, shown, stored.part)
        # An equal price may list its noises in another order than the question does.
        return self.answered(question, priced if price == priced else price, answer, stored, repeated=True)

    def surely(self, stored: StoredAnswer, identity: Identity, question: Question, priced: Price) -> QueryAnswer:
        """The answer made of what is stored, which is one."""
        earlier = self.shown_again(stored, identity, question, priced)
        if earlier is None:
            raise LedgerError("the stored answer to this question is not one: the ledger was edited or damaged. Run verify.")
        return earlier


def in_batch(stored: StoredAnswer, context: str) -> list[StoredAnswer]:
    """The parts of a stored batch that measured on the same rows, as if each had been stored alone."""
    if not isinstance(stored.value, Mapping) or stored.value.get("format") != BATCH_FORMAT:
        return []
    try:
        parts = [(str(part["question"]), dict(part["answer"]), str(part["sha256"])) for part in stored.value["parts"]]
    except (KeyError, TypeError, ValueError):
        raise LedgerError("the answers of a stored batch cannot be read: the ledger was edited or damaged. Run verify.") from None
    return [
        replace(stored, value=answer, part=digest) for question, answer, digest in parts if question.startswith(f"{context}:")
    ]


def _in_time(alone: list[StoredAnswer], batches: list[StoredAnswer], context: str) -> list[StoredAnswer]:
    """The first one first, so that an answered question never changes its answer."""
    parts = [part for each in batches for part in in_batch(each, context)]
    return sorted([*alone, *parts], key=lambda each: each.time)


def to_mapping(identity: Identity, question: Question, priced: Price, measured: Measured, shown: str) -> PlainDict:
    """Plain data for the ledger; `shown` is the digest of the table that is made of it first."""
    arranged = [identity.arranged(group) for group in measured.groups]
    places = {group: place for place, group in enumerate(arranged)}
    groups = sorted(arranged, key=_sorting) if question.discovers else identity.groups(question)
    order = [places[group] for group in groups]
    kept = {}
    for name, held in identity.forms.items():
        noise = priced.noises[name]
        if name in measured.trees:
            numbers = [int(count) for place in order for level in measured.trees[name][place].noisy for count in level]
        else:
            numbers = [measured.numbers[name][place] for place in order]
        kept[held] = {"law": noise.law, "amount": str(noise.amount), "numbers": packed(numbers)}
    return {
        "format": FORMAT,
        "loss": {"name": priced.loss.name, **parameters(priced.loss)},
        "groups": [[_stored(value) for value in group] for group in groups] if question.discovers else None,
        "measurements": kept,
        "sha256": shown,
    }


def restored(
    mapping: Plain,
    identity: Identity,
    question: Question,
    priced: Price,
) -> tuple[Price, Measured] | None:
    """The noise that was drawn and the numbers of this question; None where something was not measured, or not as finely."""
    if mapping.get("format") != FORMAT:
        return None
    try:
        noises = {name: _noise(mapping["measurements"].get(held), priced.noises[name]) for name, held in identity.forms.items()}
        if any(noise is None for noise in noises.values()):
            return None
        drawn_noises = {name: noise for name, noise in noises.items() if noise is not None}
        loss = dict(mapping["loss"])
        price = replace(priced, loss=build(_LOSSES[loss.pop("name")], loss), noises=drawn_noises)
        return price, _measured(mapping, identity, question, price)
    except (AttributeError, KeyError, TypeError, ValueError, ArithmeticError, zlib.error):
        raise LedgerError("a stored measurement cannot be read: the ledger was edited or damaged. Run verify.") from None


def _noise(stored: Mapping[str, Any] | None, largest: Noise) -> Noise | None:
    """The noise of a stored measurement that is no larger than what this question may have."""
    if stored is None or stored["law"] != largest.law or Fraction(stored["amount"]) > largest.amount:
        return None
    return replace(largest, amount=Fraction(stored["amount"]))


def _measured(mapping: Mapping[str, Any], identity: Identity, question: Question, price: Price) -> Measured:
    held = identity.groups(question) if mapping["groups"] is None else _groups(mapping["groups"], identity, question)
    places = {group: place for place, group in enumerate(held)}
    backwards = [identity.keys.index(place) for place in range(len(identity.keys))]
    in_question_order = [tuple(group[place] for place in backwards) for group in held]
    groups = in_order(in_question_order) if question.discovers else declared_groups(question)
    order = [places[identity.arranged(group)] for group in groups]
    leaves = {each.name: each.leaves for each in question.measurements if each.kind == "tree"}
    numbers: dict[str, list[int]] = {}
    trees: dict[str, list[CountTree]] = {}
    for name, form in identity.forms.items():
        stored = mapping["measurements"][form]["numbers"]
        if name in leaves:
            trees[name] = _trees(stored, order, leaves[name], price.noises[name])
        else:
            unordered = unpacked(stored, len(held))
            numbers[name] = [unordered[place] for place in order]
    return Measured(groups, numbers, trees)


def _trees(stored: Any, order: Sequence[int], leaves: int, noise: Noise) -> list[CountTree]:
    sizes = level_sizes(leaves, BRANCHING)
    nodes, ends = sum(sizes), np.cumsum(sizes)[:-1]
    counts = np.array(unpacked(stored, nodes * len(order)), dtype=np.int64)
    deviation = node_deviation(noise.amount, noise.law)
    each = (np.split(counts[place * nodes : (place + 1) * nodes], ends) for place in order)
    return [consistent_tree(levels, BRANCHING, deviation) for levels in each]


def _groups(stored: Sequence[Sequence[Any]], identity: Identity, question: Question) -> tuple[Group, ...]:
    kinds = [question.keys[place].kind for place in identity.keys]
    return tuple(tuple(_restored(cell, kind) for cell, kind in zip(group, kinds, strict=True)) for group in stored)


def packed(numbers: Sequence[int]) -> object:
    """Whole numbers as plain data: few or very large ones as they are, others as compressed bytes of the narrowest width."""
    if len(numbers) <= WRITTEN_OUT or not all(-(2**63) <= number < 2**63 for number in numbers):
        return list(numbers)
    array = np.array(numbers, dtype=np.int64)
    reach = max(int(array.max()), -int(array.min()) - 1)
    width = next(each for each in _WIDTHS if reach <= np.iinfo(each).max)
    # First all lowest bytes, then all next ones: the high bytes of small numbers are then runs, which take no room.
    rows = np.ascontiguousarray(array.astype(width).view(np.uint8).reshape(len(array), -1).T)
    return {"width": width, "bytes": base64.b64encode(zlib.compress(rows.tobytes(), 6)).decode()}


def unpacked(stored: Any, count: int) -> list[int]:  # plain data
    """What was packed, so many numbers and no other."""
    if isinstance(stored, list):
        numbers = [int(number) for number in stored]
    else:
        size = np.dtype(_WIDTHS[_WIDTHS.index(stored["width"])]).itemsize
        content = zlib.decompressobj().decompress(base64.b64decode(stored["bytes"]), count * size + 1)
        rows = np.frombuffer(content, dtype=np.uint8).reshape(size, -1).T
        numbers = np.ascontiguousarray(rows).view(stored["width"]).ravel().tolist()
    if len(numbers) != count:
        raise ValueError("not as many numbers as there are groups")
    return numbers


def _sorting(group: Group) -> list[tuple[bool, str]]:
    return [(value is not None, str(value)) for value in group]


def _stored(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime.date) else value


def _restored(cell: Any, kind: str) -> Any:
    return datetime.date.fromisoformat(cell) if kind == "date" and cell is not None else cell
