"""Private search logs: how many people searched for each keyword, from a log that never leaves.

Keep at most m keywords of every user, count them, add discrete Laplace noise of scale m / ε. The keywords are declared,
or found in the log and shown only above a threshold.
Korolova, Kenthapadi, Mishra, Ntoulas, "Releasing search queries and clicks privately", WWW 2009.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import numpy as np

from sfumato.core.exact import Number, exact
from sfumato.core.guarantees.loss import ApproxDP, LossGuarantee
from sfumato.core.outcome import Outcome
from sfumato.core.plain_data import Plain
from sfumato.core.progress import Progress, silent
from sfumato.core.randomness import Randomness, default
from sfumato.core.ranges import ColumnName, Each, Whole
from sfumato.data.microdata import Microdata
from sfumato.dp.algorithms.base import Algorithm, counted_rows
from sfumato.dp.algorithms.contributions import MOST_ROWS, Bounding, ranks
from sfumato.dp.algorithms.declared_values import read, refuse, unit_codes
from sfumato.dp.algorithms.keywords import Mentions, Split, mentions
from sfumato.dp.algorithms.spending import Epsilon, LossShare, Rho, one_of_them
from sfumato.dp.algorithms.stability import threshold
from sfumato.dp.mechanisms.base import Error
from sfumato.dp.outcomes import private_outcome
from sfumato.dp.ranges import AsText, AsWritten

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class SearchLog(Algorithm):
    """Noisy counts of keywords in a log with one row per search.

    An adversary who sees the counts, and knows everything but the noise, learns almost nothing about whether one user's log
    is in the data; with keywords found in the log, with `delta` added to every bound. Rows and users are not released.

    `column` holds the searches and `split` says what a keyword is: each of their words, or the whole search. `limit` is m,
    the most keywords that one user contributes by `bounding`: a random choice ("sample"), or the first ones by the column
    `order` ("truncate"). A keyword counts once per user unless `repeats`; then a count is a number of searches, which
    changes nothing in L1 but lets one user fill one count. `domain` lists the keywords to count, all of them shown; without
    it keywords are found in the log, which needs `delta`, and those whose noisy count reaches `threshold` are shown. `rho`
    instead of `epsilon` adds Gaussian noise, for a domain.

    >>> SearchLog("query", limit=2, epsilon=1, delta="1e-6").threshold
    30
    """

    column: Annotated[ColumnName, "the column that holds the searches"]
    limit: Annotated[int, Whole(at_least=1, at_most=MOST_ROWS), "the most keywords that one user contributes"]
    epsilon: Epsilon = None
    delta: Annotated[
        Number | None, AsWritten(above=0, below=1), "the probability δ that a keyword of one user alone is shown"
    ] = None
    rho: Rho = None
    domain: Annotated[
        Sequence[str] | None,
        Each(AsText(), at_least=1, different=True, what="one or more keywords, each once"),
        "the keywords that are counted; those in the log if left out",
    ] = None
    split: Annotated[Split, "what a keyword is: a word, or the whole search"] = "words"
    bounding: Annotated[Bounding, "how a user's keywords are chosen: at random, or the first ones"] = "sample"
    order: Annotated[ColumnName | None, "the column by which the first keywords are kept"] = None
    repeats: Annotated[bool, "whether a keyword counts as often as a user searched for it"] = False

    def coherent(self) -> Iterable[str]:
        if self.order is None and self.bounding == "truncate":
            yield "truncating keeps the first keywords: name the column that orders them"
        if self.domain is not None and self.delta is not None:
            yield "keywords of a domain are all shown, which needs no delta; leave one of them out"
        if self.domain is None and (self.epsilon is None or self.delta is None):
            yield "keywords found in the log need epsilon and delta, or a domain"
        if self.domain is None and self.repeats:
            yield "keywords found in the log count once per user; repeats need a domain"
        yield from one_of_them(self.epsilon, self.rho)

    def loss(self) -> LossGuarantee:
        return self._guarantee("record")

    def error(self) -> Error:
        """Of one shown count."""
        return self._spending.error(*self.sensitivity())

    def contribution(self, unit: str) -> str | None:
        return counted_rows(self.limit, unit, "keyword")

    def left_out(self) -> str:
        return "Rows without a keyword are left out" if self.domain is None else "Keywords outside the domain are left out"

    def sensitivity(self) -> tuple[int, int]:
        """(L1, squared L2) of all counts together when one user's log comes or goes."""
        return self.limit, self.limit**2 if self.repeats else self.limit

    @property
    def threshold(self) -> int | None:
        """The least noisy count that is shown where keywords are found in the log."""
        if self.domain is not None or self.delta is None:
            return None
        return threshold(self._spending.noise_parameter(*self.sensitivity()), exact(self.delta, "delta"), self.limit)

    def run(self, data: Microdata, *, randomness: Randomness | None = None, progress: Progress = silent) -> Outcome[pa.Table]:
        """An Arrow table with the columns `keyword` and `count`, the largest counts first."""
        import pyarrow as pa

        source = randomness or default()
        mentioned = self.mentions(data, source)
        progress("adding noise", 0, 0)
        l1, l2_squared = self.sensitivity()
        counts = mentioned.counts()
        noisy = counts + self._spending.noise(len(mentioned.keywords), l1, l2_squared, source)
        least = self.threshold
        # Of one user's keywords δ covers those that were kept: the others, however many, may not be shown for their noise alone.
        shown = np.flatnonzero((counts > 0) & (noisy >= least)) if least is not None else np.arange(noisy.size)
        rows = sorted((-int(noisy[code]), mentioned.keywords[code]) for code in shown)
        return private_outcome(
            pa.table(
                {
                    "keyword": pa.array([word for _, word in rows], pa.string()),
                    "count": pa.array([-n for n, _ in rows], pa.int64()),
                }
            ),
            self._guarantee(data.schema.unit or "record"),
            {"name": self.name, **self.parameters()},
            argument=f"a user keeps {self.limit} keywords; the counts change by at most {l1} in L1 ({l2_squared} in squared L2) "
            f"and carry discrete {self._spending.law} noise with the parameter {self._spending.noise_parameter(l1, l2_squared)}"
            + (f"; a keyword of one user alone reaches {least} with probability at most δ" if least is not None else ""),
            randomness=source,
            dataset=data.schema.dataset,
            **{"threshold": least, **self.tells()},
        )

    def tells(self) -> Plain:
        """The least count that is shown, where there is one, and the standard deviation of a count."""
        least = self.threshold
        return {**({} if least is None else {"threshold": least}), "deviation": self.error().deviation}

    def mentions(self, data: Microdata, randomness: Randomness | None = None) -> Mentions:
        """Who mentions which keyword after bounding: the owner's, not for release."""
        faults: list[str] = []
        unit = data.schema.unit
        if unit is None:
            faults.append('whose searches are these? Give the column that names the user role = "unit"')
        for name in dict.fromkeys([self.column, self.order, unit]):
            if name is not None and name not in data.column_names:
                faults.append(f"there is no column '{name}' in the data")
        refuse(data, self.name, faults)
        table = read(data, [self.column, self.order, unit])
        order = ranks(table.column(self.order)) if self.order else None
        domain = tuple(self.domain) if self.domain is not None else None
        mentioned = mentions(table.column(self.column), unit_codes(table, unit), order, self.split, None, domain)
        return (mentioned if self.repeats else mentioned.distinct()).bounded(self.limit, self.bounding, randomness or default())

    @property
    def _spending(self) -> LossShare:
        return LossShare.of(self.epsilon, self.rho)

    def _guarantee(self, unit: str) -> LossGuarantee:
        spending = self._spending
        if self.domain is not None:
            return spending.guarantee(unit=unit)
        return ApproxDP(spending.amount, exact(self.delta or Fraction(0), "delta"), unit=unit)
