"""Scoreboard: a few known items of a person pick out the one sparse record that fits.

Every record is scored by how well it agrees with what is known, rare items counting most; the best is accepted when it
stands out from the second best. Narayanan, Shmatikov, "Robust de-anonymization of large sparse datasets", IEEE S&P 2008.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from sfumato.attacks.adversary import OutputAttack, mapping
from sfumato.attacks.outputs.numeric_input import Real
from sfumato.attacks.outputs.sparse_ratings import KnownItems, Ratings
from sfumato.attacks.tables.classes import Ids
from sfumato.core.declared import build
from sfumato.core.errors import InputError
from sfumato.core.ranges import Number, Positive
from sfumato.core.texts import percent
from sfumato.core.view import AttackResult, Detail, View
from sfumato.measures.risk.success import share, wilson


@dataclass(frozen=True)
class Scoreboard(OutputAttack[Ratings, KnownItems]):
    """The adversary knows a few items of each target, with ratings and dates as far as known, perhaps a little wrong.

    The view's result is a `Ratings`, `knowledge` a `KnownItems`. With `form="rh"` a record scores, for each known item it
    has, exp(-|rating difference|/`rating_scale`) + exp(-|days apart|/`date_scale`), divided by the logarithm of the item's
    support (of 2 at support 1); the best record is accepted when it leads by more than `eccentricity` standard deviations
    of all scores. With `form="plain"` a record scores the worst agreement over all known items, between 0 and 1, and every
    record above `threshold` is a match, one of which is picked. With `answer="distribution"` nobody is picked: each record
    gets a probability proportional to exp(score / standard deviation).

    Success: the share of targets whose record is picked (on average, where one of several is). A target who is not in the
    release counts as right when nobody is picked. Blind guessing picks any record, which is wrong for whoever is not there.
    """

    form: Annotated[Literal["rh", "plain"], "how records are scored"] = "rh"
    rating_scale: Annotated[Positive, "the difference of ratings that counts 1/e"] = 1.5
    date_scale: Annotated[Positive, "the days apart that count 1/e"] = 30.0
    eccentricity: Annotated[float, Number(at_least=0), "standard deviations that the best record has to lead by"] = 1.5
    threshold: Annotated[float, Number(at_least=0, below=1), "the score above which a record matches, in the plain form"] = 0.5
    answer: Annotated[Literal["match", "distribution"], "one record, or a probability for each"] = "match"

    needs: ClassVar[tuple[str, ...]] = ("target", "item")
    knows: ClassVar[type[Any]] = KnownItems

    def fits(self, view: View[object, object]) -> bool:
        """Ratings."""
        return isinstance(view.result, Ratings)

    def published_from(self, published: object) -> Ratings:
        """Which record has which item."""
        return build(Ratings, mapping(published, "published"))

    def run(self, view: View[Ratings, object], knowledge: KnownItems | None = None) -> AttackResult:
        """Score every record for every target."""
        released = view.result
        if not isinstance(released, Ratings) or not isinstance(knowledge, KnownItems):
            raise InputError("the scoreboard attacks a view of Ratings and needs KnownItems as knowledge")
        if knowledge.truth is None:
            raise InputError("the scoreboard is scored against the truth: give KnownItems(…, truth=…), or take .candidates()")
        if knowledge.truth.size and int(knowledge.truth.max()) >= released.records:
            raise InputError("KnownItems: the truth names a record that the release does not have (records are numbered from 0)")
        right, picked, wrong, spread = 0.0, 0, 0, 0.0
        for target, true in enumerate(knowledge.truth.tolist()):
            scores = self.scores(released, knowledge, target)
            if self.answer == "distribution":
                belief = distribution(scores)
                right += float(belief[true]) if true >= 0 else 0.0
                spread += -float((belief[belief > 0] * np.log2(belief[belief > 0])).sum())
                continue
            accepted = self._accepted(scores)
            picked += accepted.size > 0
            hit = true >= 0 and bool((accepted == true).any())
            wrong += accepted.size > 0 and not hit
            right += share(1, accepted.size) if hit else float(true < 0 and not accepted.size)
        targets = int(knowledge.truth.size)
        present = int((knowledge.truth >= 0).sum())
        blind = share(present, targets) / released.records
        size = share(knowledge.size, targets)
        details: dict[str, Detail] = {"form": self.form, "records": released.records, "known_items_per_target": size}
        details["targets_in_the_release"] = present
        if self.answer == "distribution":
            details |= {"mean_entropy_bits": share(spread, targets), "entropy_before_bits": math.log2(released.records)}
        else:
            details |= {"picked": picked, "wrong": wrong, "no_match": targets - picked, "expected_correct": right}
        return AttackResult(
            attack="Scoreboard",
            success=share(right, targets),
            baseline=blind,
            interval=wilson(right, targets),
            targets=targets,
            finding=(
                f"{size:.3g} known items per person pick out the right one of {released.records:,} records for "
                f"{percent(share(right, targets))} of {targets:,} targets; a blind pick is right for "
                f"{percent(blind)}."
            ),
            details=details,
        )

    def candidates(self, released: Ratings, knowledge: KnownItems, target: int = 0) -> Ids:
        """The records that are accepted for a target: none, one, or (plain) all above the threshold."""
        return self._accepted(self.scores(released, knowledge, target))

    def scores(self, released: Ratings, knowledge: KnownItems, target: int = 0) -> Real:
        """The score of every record for one target."""
        if self.form == "rh":
            return self._rare_items_first(released, knowledge, target)
        return self._worst_agreement(released, knowledge, target)

    def _rare_items_first(self, released: Ratings, knowledge: KnownItems, target: int) -> Real:
        scores = np.zeros(released.records)
        for item, rating, date in knowledge.of(target):
            records, ratings, dates = released.holding(item)
            weight = 1 / math.log(max(released.support_of(item), 2))
            terms = self._agreements(rating, date, ratings, dates)
            # One entry per record and item, so plain indexing adds each once.
            scores[records] += weight * sum(terms, np.zeros(records.size)) if terms else weight
        return scores

    def _worst_agreement(self, released: Ratings, knowledge: KnownItems, target: int) -> Real:
        worst = np.full(released.records, np.inf)
        for item, rating, date in knowledge.of(target):
            records, ratings, dates = released.holding(item)
            terms = self._agreements(rating, date, ratings, dates)
            agreement = np.zeros(released.records)
            agreement[records] = sum(terms, np.zeros(records.size)) / len(terms) if terms else 1.0
            np.minimum(worst, agreement, out=worst)
        return np.where(np.isinf(worst), 0.0, worst)

    def _agreements(self, rating: float, date: float, ratings: Real | None, dates: Real | None) -> list[Real]:
        """What is known on both sides, compared: 1 where it is equal, falling with the difference."""
        pairs = ((rating, ratings, self.rating_scale), (date, dates, self.date_scale))
        terms = []
        for one, others, scale in pairs:
            if others is not None and not math.isnan(one):
                near = np.exp(-np.abs(others - one) / scale)
                terms.append(np.where(np.isnan(near), 0.0, near))
        return terms

    def _accepted(self, scores: Real) -> Ids:
        if self.form == "plain":
            return np.flatnonzero(scores > self.threshold).astype(np.int64)
        lead = lead_of_best(scores)
        best = int(np.argmax(scores))
        return np.array([best] if lead > self.eccentricity else [], dtype=np.int64)


def lead_of_best(scores: Real) -> float:
    """By how many (population) standard deviations the best score leads the second best; 0 where nothing stands out. A single
    record has nothing to lead: it stands out when it agrees at all."""
    if scores.size == 1:
        return math.inf if scores[0] > 0 else 0.0
    deviation = float(scores.std())
    if deviation == 0:
        return 0.0
    second, best = np.partition(scores, scores.size - 2)[-2:]
    return float(best - second) / deviation


def distribution(scores: Real) -> Real:
    """A probability for each record, proportional to exp(score / standard deviation of all scores)."""
    deviation = float(scores.std())
    if deviation == 0:
        return np.full(scores.size, 1 / scores.size)
    risen = np.exp((scores - scores.max()) / deviation)
    belief: Real = risen / risen.sum()
    return belief
