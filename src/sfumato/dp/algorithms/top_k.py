"""Top-k: the k most frequent of declared candidates, without their counts.

k rounds of the exponential mechanism with a k-th of the budget each, the winner leaving the race; or the same race
decided at once by one-sided geometric noise.
McSherry, Talwar, "Mechanism design via differential privacy", FOCS 2007; McKenna, Sheldon, "Permute-and-flip: a new
mechanism for differentially private selection", NeurIPS 2020; Durfee, Rogers, "Practical differentially private top-k
selection with pay-what-you-get composition", NeurIPS 2019; Cesar, Rogers, "Bounding, concentrating, and truncating:
unifying privacy loss composition for data analytics", ALT 2021.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.core.declared import formerly, require_confidence
from sfumato.core.guarantees.loss import LossGuarantee
from sfumato.core.outcome import Outcome
from sfumato.core.progress import Progress, silent
from sfumato.core.randomness import Randomness, default, permutation
from sfumato.core.ranges import ColumnName, Count, Each
from sfumato.data.microdata import Microdata
from sfumato.dp.algorithms.base import RowBounded, counted_rows
from sfumato.dp.algorithms.contributions import BoundedBy, KeptRows
from sfumato.dp.algorithms.declared_values import check_unit, declared_categories, read, refuse, unit_codes
from sfumato.dp.algorithms.engine_codes import also_padded, listed_code
from sfumato.dp.algorithms.engine_counts import cell_counts, fresh_salt, rows_in_engine
from sfumato.dp.algorithms.keywords import Split, mentions
from sfumato.dp.algorithms.spending import Epsilon, LossShare, Rho, one_of_them
from sfumato.dp.outcomes import private_outcome
from sfumato.dp.ranges import AsText
from sfumato.engines.cell_counts import Code
from sfumato.engines.cell_counts import KeptRows as EngineRows
from sfumato.engines.sql.relation import SqlRelation


@formerly(max_rows="rows")
@dataclass(frozen=True)
class TopK(RowBounded):
    """The `k` candidates of a `column` that most units have, in order.

    An adversary who sees the list, and knows everything but the random choices, learns almost nothing about whether one unit
    is in the data. The score of a candidate is the number of units that have it: it changes by at most 1 however many different
    candidates a unit has. With `repeats` it is the number of mentions, of which one unit keeps `max_rows` (by `bounding`,
    "sample"), and its sensitivity is `max_rows`.

    `method`: "peeling" is k rounds of the exponential mechanism, in each a candidate wins with probability
    proportional to exp(ε/k · score / 2S); "permute_and_flip" plays the rounds with that mechanism, never worse in
    expectation; "oneshot" adds one-sided geometric noise of scale S k / ε to every score and takes the k largest.
    Scores only rise when a unit comes, so that the last two need no factor 2. `rho` instead of `epsilon` composes the
    rounds of "peeling" by their bounded range, which for long lists is far better: a round may use √(8ρ/k).

    `candidates` lists what may win; by default it is the declared domain of the column. `split` counts the words of a
    text; sets with a declared separator are split by it.
    """

    column: Annotated[ColumnName, "the column that holds the candidates of a row"]
    k: Annotated[Count, "how many winners there are"]
    epsilon: Epsilon = None
    rho: Rho = None
    method: Annotated[Literal["peeling", "permute_and_flip", "oneshot"], "how winners are chosen"] = "oneshot"
    candidates: Annotated[
        Sequence[str] | None,
        Each(AsText(), at_least=1, different=True, what="a list of different texts"),
        "what may win; the declared domain of the column if left out",
    ] = None
    split: Annotated[Split, "what a candidate is: the whole value, or a word of it"] = "value"
    repeats: Annotated[bool, "whether mentions are counted in place of units"] = False
    max_rows: KeptRows = None
    bounding: BoundedBy = "sample"

    def coherent(self) -> Iterable[str]:
        if self.bounding != "sample":
            yield "repeated mentions are bounded by sample"
        if not self.repeats and self.kept_rows != 1:
            yield "different candidates need no bound; max_rows is for repeats = True"
        if self.rho is not None and self.method != "peeling":
            yield 'rho is for method = "peeling", whose rounds have a bounded range'
        if self.candidates is not None and len(self.candidates) < self.k:
            yield "candidates are at least k different texts"
        yield from one_of_them(self.epsilon, self.rho)

    def contribution(self, unit: str) -> str | None:
        once = f"Each {unit} is counted once for every candidate that it has, however many rows it has"
        return counted_rows(self.max_rows, unit, "mention") if self.repeats else once

    def left_out(self) -> str:
        return "Values that are missing or no candidate are left out"

    @property
    def sensitivity(self) -> int:
        """How much one unit changes a score: 1 where it counts once, else the mentions it may keep."""
        return self.kept_rows if self.repeats else 1

    def loss(self) -> LossGuarantee:
        return self._spending.guarantee()

    def rate(self) -> Fraction:
        """The factor of the score in the exponent of a round, a lower bound of it where ρ makes it irrational."""
        spending = self._spending
        if spending.law == "gaussian":
            return _root_below(8 * spending.amount / self.k) / self.sensitivity
        halved = 2 if self.method == "peeling" else 1
        return spending.amount / (self.k * self.sensitivity * halved)

    def shortfall(self, candidates: int, confidence: float = 0.95) -> float:
        """With that probability no winner of a round has a score further below the best one left than this."""
        require_confidence(confidence)
        return math.log(candidates * self.k / (1 - confidence)) / float(self.rate())

    def run(self, data: Microdata, *, randomness: Randomness | None = None, progress: Progress = silent) -> Outcome[list[str]]:
        """The winners, the first one first."""
        source = randomness or default()
        candidates, scores = self.scores(data, source)
        winners = self.choose(scores, source)
        progress("chosen", self.k, self.k)
        rounds = "ties are broken at random" if self.method == "oneshot" else f"{self.k} rounds, the winner leaving each"
        return private_outcome(
            [candidates[winner] for winner in winners],
            self._spending.guarantee(unit=data.schema.unit or "record"),
            {"name": self.name, **self.parameters()},
            argument=f"the candidates are declared; one unit changes scores by at most {self.sensitivity}, in one direction; "
            f"{self.method} with the rate {self.rate()}, {rounds}",
            randomness=source,
            dataset=data.schema.dataset,
        )

    def scores(self, data: Microdata, randomness: Randomness | None = None) -> tuple[tuple[str, ...], NDArray[np.int64]]:
        """The candidates and their exact scores: the owner's, not for release."""
        candidates = self._declared(data)
        described, unit, source = data.schema.columns.get(self.column), data.schema.unit, randomness or default()
        relation = rows_in_engine(data, [self.column, unit])
        code = None if relation is None else self._engine_code(data, relation, candidates, asking=True)
        if relation is not None and code is not None:
            salt = fresh_salt(source) if self.repeats else None
            limit = self.kept_rows if self.repeats else None
            return candidates, cell_counts(relation, [code], EngineRows(unit, limit, salt, once=not self.repeats))
        table = read(data, [self.column, unit])
        separator = described.items if described is not None else None
        mentioned = mentions(table.column(self.column), unit_codes(table, unit), None, self.split, separator, candidates)
        kept = mentioned.bounded(self.kept_rows, self.bounding, source) if self.repeats else mentioned.distinct()
        return candidates, kept.counts()

    def _engine_code(self, data: Microdata, relation: SqlRelation, candidates: Sequence[str], *, asking: bool) -> Code | None:
        """The candidates as codes that the engine computes; None where a value holds several."""
        described = data.schema.columns.get(self.column)
        if self.split != "value" or (described is not None and described.items is not None):
            return None
        kind = relation.fields[self.column].kind
        places = {text: place for place, text in enumerate(candidates) if text and text == text.strip()}
        if kind == "string" and asking:
            places = also_padded(relation, self.column, places)
        return listed_code(self.column, kind, places, len(candidates))

    def _declared(self, data: Microdata) -> tuple[str, ...]:
        """The candidates; all faults at once, before a row is read."""
        faults: list[str] = []
        unit = data.schema.unit
        candidates = tuple(self.candidates or ())
        if not candidates:
            declared = declared_categories(data, self.column, faults)
            candidates = declared.values if declared is not None else ()
            if declared is not None and len(candidates) < self.k:
                faults.append(f"the domain of column '{self.column}' has fewer than k = {self.k} values")
        elif self.column not in data.column_names:
            faults.append(f"there is no column '{self.column}' in the data")
        if self.repeats:
            check_unit(data, self.max_rows, faults)
        elif unit is not None and unit not in data.column_names:
            faults.append(f"the unit column '{unit}' is not in the data")
        refuse(data, self.name, faults)
        return candidates

    def choose(self, scores: NDArray[np.int64], source: Randomness) -> list[int]:
        """The positions of the winners for these scores."""
        from sfumato.kernels.sampling.noise import geometric, permute_and_flip, select_by_exponent

        if self.method == "oneshot":
            noisy = scores + geometric(1 / self.rate(), scores.size, source)
            order = permutation(source, scores.size)
            return [int(place) for place in order[np.argsort(-noisy[order], kind="stable")][: self.k]]
        rate = self.rate()
        select = select_by_exponent if self.method == "peeling" else permute_and_flip
        left = list(range(scores.size))
        winners = []
        for _ in range(self.k):
            best = max(int(scores[place]) for place in left)
            winners.append(left.pop(select([rate * (best - int(scores[place])) for place in left], source)))
        return winners

    @property
    def _spending(self) -> LossShare:
        return LossShare.of(self.epsilon, self.rho)


def _root_below(value: Fraction) -> Fraction:
    """A rational number at most the square root, close to it."""
    precision = 1 << 40
    return Fraction(math.isqrt(value.numerator * precision**2 // value.denominator), precision)
