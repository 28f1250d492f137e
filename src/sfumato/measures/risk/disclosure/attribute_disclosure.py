"""Attribute disclosure: how much better a confidential value can be predicted from the release than without it.

The intruder knows some columns of everybody, looks up the released rows nearest in them, and takes their majority (or mean)
as the prediction; the prior is the majority (or mean) of the whole release. What he can predict he need not link. Duncan,
Lambert, "Disclosure-limited data dissemination", JASA 81(393), 1986.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.declared import require
from sfumato.core.errors import InputError
from sfumato.core.ranges import ColumnName, ColumnNames, Count
from sfumato.core.view import Measure, Score
from sfumato.data.masked import Compared, as_masked, compared_columns, sides
from sfumato.data.microdata import Microdata
from sfumato.data.records import CategoryColumn, NumberColumn, Records
from sfumato.kernels.linkage.points import PointTree
from sfumato.measures.risk.linkage.spaces import LinkageDistance, space_of
from sfumato.measures.risk.success import Z95

Real = NDArray[np.float64]
Int = NDArray[np.int64]


@dataclass(frozen=True)
class AttributeDisclosure(Measure[Microdata, Compared]):
    """Gain in predicting `target` from the release: 0 when it is no better than the prior, 1 when it is always right.

    `columns` are what the intruder knows (default: the compared columns without the target). The prediction rests on the
    nearest different positions of released rows that together hold at least `neighbours` rows, so that a class of equal rows is
    looked at as a whole; `distance` as in `DistanceLinkage`. Categories: the gain is (right − prior)/(1 − prior); numbers: 1 −
    squared error/squared error of the mean; never below 0, except in the part "before clipping". It is a gain already, so
    that its floor is 0; the interval takes the prior as it is. Rows need not correspond, so synthetic data are judged too. Parts:
    both figures, and the part "presence": people whose known values occur in the release exactly, which tells an intruder that
    they may well be in it, itself a disclosure where being listed is confidential.

    >>> people = sf.read(sf.data.sample_table(300), schema=sf.data.sample_schema())
    >>> AttributeDisclosure("diagnosis").score(people, people).better
    'lower'
    """

    target: Annotated[ColumnName, "the column that is predicted"]
    neighbours: Annotated[Count, "released rows that a prediction rests on, at the least"] = 5
    distance: LinkageDistance = "auto"
    columns: Annotated[
        ColumnNames | None, "what the intruder knows; the columns compared, without the target, where left out"
    ] = None
    key: ClassVar[str] = "attribute_disclosure"
    masked: ClassVar[bool] = True

    def score(self, original: Microdata, released: Compared) -> Score:
        """The gain over the prior."""
        present, truth, shown, learnt, presence = self._predicted(original, released)
        if isinstance(truth, CategoryColumn):
            prior = np.bincount(shown.codes[shown.known]).argmax()
            hits, blind_hits = truth.codes[present] == learnt[present], truth.codes[present] == prior
            right, blind = float(np.mean(hits)), float(np.mean(blind_hits))
            gains = (hits.astype(np.float64) - blind_hits) / (1.0 - blind) if blind < 1.0 else np.zeros(hits.size)
            parts = {"right": right, "prior": blind}
        else:
            span = float(np.abs(truth.values[present]).max()) or 1.0  # no square overflows
            value, mean = truth.values[present] / span, float((shown.values[shown.known] / span).mean())
            errors, blind_errors = (value - learnt[present] / span) ** 2, (value - mean) ** 2
            error, blind = float(np.mean(errors)), float(np.mean(blind_errors))
            # the ratio of two means, linearised around its own value
            slope = 1.0 - error / blind if blind > 0.0 else 0.0
            gains = slope + ((1.0 - slope) * blind_errors - errors) / blind if blind > 0.0 else np.zeros(value.size)
            parts = {"error": float(np.sqrt(error)) * span, "prior error": float(np.sqrt(blind)) * span}
        gain = float(gains.mean())
        half = Z95 * float(gains.std()) / np.sqrt(gains.size)
        parts["presence"], parts["before clipping"] = presence, gain
        meaning = f"how much better '{self.target}' is predicted with the release than without it"
        value, low, high = (min(max(float(each), 0.0), 1.0) for each in (gain, gain - half, gain + half))
        return Score(self.key, value, "lower", meaning, MappingProxyType(parts), floor=0.0, interval=(low, high))

    def per_record(self, original: Microdata, released: Compared) -> Real:
        """Per original record: 1 where the category is predicted correctly, else 0; for numbers the absolute error. NaN where the
        original value is missing."""
        present, truth, _, learnt, _ = self._predicted(original, released)
        if isinstance(truth, CategoryColumn):
            return np.where(present, (truth.codes == learnt).astype(np.float64), np.nan)
        return np.asarray(np.abs(truth.values - learnt), dtype=np.float64)

    def _predicted(self, original: Microdata, released: Compared) -> tuple[NDArray[np.bool_], Any, Any, Real, float]:
        masked = as_masked(released, original)
        names = tuple(name for name in compared_columns(original, masked, self.columns) if name != self.target)
        require(bool(names), "AttributeDisclosure: the intruder must know at least one column besides the target")
        left, right = sides(original, masked, (*names, self.target))
        truth, shown = left.columns[-1], right.columns[-1]
        if not truth.known.any() or not shown.known.any():
            raise InputError(f"column '{self.target}' has no known value to be learnt")
        ours, theirs = Records(left.columns[:-1], left.size), Records(right.columns[:-1], right.size)
        learnt, presence = self._learnt(ours, theirs, shown)
        return truth.known, truth, shown, learnt, presence

    def _learnt(self, ours: Records, theirs: Records, shown: NumberColumn | CategoryColumn) -> tuple[Real, float]:
        """The prediction for every original record, and the share of them whose known values are in the release."""
        useful = np.flatnonzero(shown.known)
        space = space_of(ours, theirs.take(useful), self.distance)
        places, place_of = np.unique(space.released, axis=0, return_inverse=True)
        place_of = place_of.reshape(-1)
        tree = PointTree(places, space.metric)
        count = min(self.neighbours, places.shape[0])
        sums, nearest = tree.closest(space.original, count)
        rows = np.bincount(place_of, minlength=places.shape[0])
        before = np.cumsum(rows[nearest], axis=1) - rows[nearest]
        counted = before < self.neighbours
        if isinstance(shown, NumberColumn):
            total = np.bincount(place_of, weights=shown.values[useful], minlength=places.shape[0])
            learnt = (total[nearest] * counted).sum(axis=1) / (rows[nearest] * counted).sum(axis=1)
        else:
            learnt = _majority(place_of, shown.codes[useful], nearest, counted, len(shown.labels))
        return learnt, float(np.mean(sums[:, 0] == 0.0))


def _majority(place_of: Int, codes: Any, nearest: Int, counted: NDArray[np.bool_], labels: int) -> Real:
    """The most frequent code over the counted places of each row; the first one where several are. One label at a time, so that
    memory stays linear."""
    best = np.full(nearest.shape[0], -1.0)
    winner = np.zeros(nearest.shape[0])
    places = int(place_of.max()) + 1
    for label in range(labels):
        votes = np.bincount(place_of[codes == label], minlength=places)
        if votes.any():
            share = (votes[nearest] * counted).sum(axis=1)
            winner[share > best] = label
            best = np.maximum(best, share)
    return winner
