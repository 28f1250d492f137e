"""Term generalisation: in sets of terms, each rare term is replaced by a broader one from a taxonomy.

For documents, search logs and other lists of terms: a term climbs its taxonomy until at least k records show the same
broader term, and is dropped where only the root would do; what it means is kept as far as possible. Sánchez, Batet,
"C-sanitized: a privacy model for document redaction and sanitization", JASIST 67(1), 2016; Terrovitis, Mamoulis, Kalnis,
"Privacy-preserving anonymization of set-valued data", VLDB 2008.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import Unsupported, all_at_once
from sfumato.core.plain_data import Plain
from sfumato.core.ranges import Whole
from sfumato.data.hierarchies.hierarchy import Hierarchy
from sfumato.data.item_sets import ItemSets
from sfumato.data.microdata import Microdata
from sfumato.data.records import Kind, Records, column_of
from sfumato.data.schema import Column, Schema
from sfumato.data.texts.values import CodedText, split
from sfumato.kernels.sampling.draws import Draws
from sfumato.masking.base import Change, Context, Kept, Mask
from sfumato.masking.columns import chosen_columns
from sfumato.masking.shown_rows import ShownRows
from sfumato.masking.transparency import Test

Int = NDArray[np.int64]

_ITSELF, _DROPPED = -1, -2
#: By whom terms are shown.
_COUNTED = ("records", "units")


@dataclass(frozen=True)
class TermGeneralisation(Mask):
    """Replace each term that fewer than `k` records show by the nearest broader term that at least `k` records show.

    Columns are set-valued: the schema names a separator (`items = "|"`) and, as hierarchy, a taxonomy of single terms;
    without one rare terms are dropped. Frequent terms stay. A rare term goes up one step, together with the other rare
    terms below the same broader term; if they are still fewer than k records, further up; at the root it is dropped. The same
    term is treated alike in all records (of a stratum).

    So every term that is shown is shown by at least k records: whoever knows one term of a person is left with at least k
    candidates, or with a term that is not there. Who knows several terms may be left with fewer (`Hybrid` is for that).
    `details` say how many terms were kept, generalised and dropped, and the loss of meaning: the mean over all terms of
    (leaves below what is shown − 1)/(all leaves − 1), with 1 for a dropped term.

    >>> import sfumato as sf
    >>> import pyarrow as pa
    >>> taxonomy = {"pet": ["cat", "dog", "newt"], "tool": ["saw"]}
    >>> terms = {"role": "quasi", "type": "string", "items": "|", "hierarchy": {"tree": taxonomy}}
    >>> logs = sf.read(pa.table({"terms": ["dog|cat", "dog", "newt|saw"]}), {"columns": {"terms": terms}})
    >>> sf.TermGeneralisation(2).apply(logs).result.table.column("terms").to_pylist()
    ['dog|pet', 'dog', 'pet']
    """

    k: Annotated[int, Whole(at_least=2), "the records that show a term, at the least"]
    handles: ClassVar[frozenset[Kind]] = frozenset({"category"})
    refuses_constant: ClassVar[bool] = False
    certain: ClassVar[bool] = True
    generalises: ClassVar[bool] = True
    shows_missing: ClassVar[bool] = True

    def records(self, people: Microdata, table: pa.Table) -> Records:
        """Sets as single texts, which the frame can handle; `change` splits and joins them."""
        names = chosen_columns(self, people)
        _refuse_single_values(people, names)
        return Records(tuple(column_of(table.column(name), name, Column(type="string")) for name in names), table.num_rows)

    def columns_of(self, schema: Schema, names: Sequence[str]) -> tuple[str, ...]:
        """Those named, or the set-valued ones among the quasi-identifiers."""
        chosen = super().columns_of(schema, names)
        if self.columns is not None:
            return chosen
        return tuple(name for name in chosen if schema.columns[name].items is not None) or chosen

    def check(self, records: Records, people: Microdata) -> None:
        """There have to be k records."""
        if records.size < self.k:
            raise Unsupported(
                f"TermGeneralisation: k = {self.k} is more than there are records, {records.size:,} (in a stratum, "
                "where there are strata)"
            )

    def change(self, records: Records, draws: Draws, context: Context) -> Change:
        """Count by whom each term is shown, let rare ones climb, and write the sets again."""
        unit = context.people.schema.unit
        holders = np.arange(records.size) if unit is None else CodedText.of(context.table.column(unit)).codes[context.rows]
        values: dict[str, Any] = {}
        details: dict[str, Any] = {}
        for column in records.categories:
            described = context.people.schema.columns[column.name]
            sets = ItemSets.of(column.name, described, column.labels, context.people.schema.folder)
            occurrences = Occurrences.of([sets.split(label) for label in column.labels], column.codes, holders.astype(np.int64))
            nodes = occurrences.climbed(sets.taxonomy, self.k)
            labels = occurrences.labels(nodes, sets.taxonomy)
            texts = [sets.join({label for term in terms if (label := labels[term])}) for terms in occurrences.sets]
            values[column.name] = CodedText(column.codes, pa.array([], pa.string())).with_values(texts).to_arrow()
            details[column.name] = occurrences.summary(nodes, sets.taxonomy)
        published = {**self.tells(records.names), "counted": _COUNTED[unit is not None]}
        return Change(values, published=published, details=details)

    def tells(self, names: tuple[str, ...]) -> Plain:
        """By how many each term is shown at least, and what was counted."""
        return {"shown_by_at_least": self.k, "counted": Test(lambda counted, _: counted in _COUNTED)}

    def disproved_by(self, shown: ShownRows) -> bool:
        """Where fewer than k rows show a term; different people behind them are no more than the rows."""
        return shown.complete and any(self._shows_rare(name, shown) for name in shown.shown(shown.columns_of(self)))

    def _shows_rare(self, name: str, shown: ShownRows) -> bool:
        separator, by_term = shown.schema.columns[name].items, Counter[str]()
        for text, count in shown.texts(name).items() if separator is not None else ():
            by_term.update(dict.fromkeys(split(text, str(separator)), count))
        return any(count < self.k for count in by_term.values())

    def keeps(self) -> tuple[Kept, ...]:
        """Nothing that numbers could state: what is shown is true, with less detail."""
        return ()


@dataclass(frozen=True, eq=False)
class Occurrences:
    """Which term (by number) occurs with whom: `term[i]` is one of those that `holder[i]` shows.

    `sets` are the numbers of the terms in each distinct set, `terms` their texts.
    """

    terms: tuple[str, ...]
    sets: list[list[int]]
    term: Int
    holder: Int

    @classmethod
    def of(cls, split: Sequence[frozenset[str]], codes: NDArray[np.int32], holders: Int) -> Occurrences:
        """From the distinct sets, which of them each record has (-1: none), and who is behind each record."""
        terms = tuple(sorted(frozenset().union(*split)))
        number = {term: place for place, term in enumerate(terms)}
        sets = [[number[term] for term in sorted(terms_of_set)] for terms_of_set in split]
        lengths = np.array([len(numbers) for numbers in sets], dtype=np.int64)
        flat = np.array([place for numbers in sets for place in numbers], dtype=np.int64)
        present = codes >= 0
        chosen = codes[present]
        repeats = lengths[chosen]
        starts = (np.cumsum(lengths) - lengths)[chosen]
        within = np.arange(int(repeats.sum())) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        return cls(terms, sets, flat[np.repeat(starts, repeats) + within], np.repeat(holders[present], repeats))

    def climbed(self, taxonomy: Hierarchy | None, k: int) -> Int:
        """The node that each term is shown as: -1 for itself, -2 for not at all."""
        shown = np.full(len(self.terms), _ITSELF, dtype=np.int64)
        rare = self._shown_by(self.term, len(self.terms)) < k
        shown[rare] = _DROPPED
        if taxonomy is None or not self.terms:
            return shown
        leaf = np.array([taxonomy.index[term] for term in self.terms], dtype=np.int64)
        root = int(taxonomy.node_of[-1, 0]) if taxonomy.has_root else -1
        for level in range(1, taxonomy.height + 1):
            node = taxonomy.node_of[level, leaf].astype(np.int64)
            climbing = np.where(shown == _DROPPED, node, -1)[self.term]
            enough = self._shown_by(climbing, len(taxonomy.labels)) >= k
            arrived = (shown == _DROPPED) & enough[node] & (node != root)
            shown[arrived] = node[arrived]
        return shown

    def labels(self, shown: Int, taxonomy: Hierarchy | None) -> list[str | None]:
        """What each term is shown as."""
        return [
            term if node == _ITSELF else None if node == _DROPPED or taxonomy is None else taxonomy.labels[int(node)]
            for term, node in zip(self.terms, shown, strict=True)
        ]

    def summary(self, shown: Int, taxonomy: Hierarchy | None) -> dict[str, float]:
        """How many terms were kept, generalised and dropped, over all records, and the loss of meaning."""
        of_each = shown[self.term]
        costs = np.append(
            taxonomy.loss if taxonomy is not None else np.zeros(0), [1.0, 0.0]
        )  # _DROPPED and _ITSELF, from the end
        return {
            "kept": int((of_each == _ITSELF).sum()),
            "generalised": int((of_each >= 0).sum()),
            "dropped": int((of_each == _DROPPED).sum()),
            "loss": float(costs[of_each].mean()) if of_each.size else 0.0,
        }

    def _shown_by(self, what: Int, size: int) -> Int:
        """How many different holders show each of `size` things; `what` names one for each occurrence, -1 for none."""
        there = what >= 0
        pairs = np.unique(self.holder[there] * size + what[there])
        return np.bincount(pairs % size, minlength=size) if size else np.zeros(0, dtype=np.int64)


def _refuse_single_values(people: Microdata, names: tuple[str, ...]) -> None:
    single = [name for name in names if people.schema.columns.get(name, Column()).items is None]
    all_at_once(
        Unsupported,
        "TermGeneralisation",
        (
            f"column '{name}' holds single values; describe it as set-valued in the schema (items = \"|\"), or use Generalisation"
            for name in single
        ),
    )
